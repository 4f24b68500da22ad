//! Scores a doctor: builds programs whose bottleneck is known, runs them under the doctor, and
//! compares its first verdict with the known cause.

use serde::Deserialize;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::{fmt, fs};

/// The options of a scoring run.
#[derive(Debug, Clone)]
pub(crate) struct Options {
    /// The command in front of each program's own command, in words.
    pub(crate) doctor: Vec<String>,
    /// The folder that holds the folders of the cases.
    pub(crate) cases: PathBuf,
    /// The folder where programs are built and run.
    pub(crate) out: PathBuf,
    /// The time that each program runs, in seconds.
    pub(crate) seconds: f64,
    /// The number of times that each case runs.
    pub(crate) repeat: usize,
    /// The user as whom each case also runs.
    pub(crate) user: Option<String>,
}

/// Runs the cases, one after the other, and shows each row when it is complete.
///
/// # Errors
/// Returns an error if a case does not build, or if the machine cannot start one: no score is
/// possible then.
pub(crate) fn score(
    cases: &[Case],
    options: &Options,
    mut show: impl FnMut(&Row),
) -> Result<Tally, String> {
    let stage = Stage::new(options)?;
    let mut tally = Tally::default();
    for case in cases {
        let missing = stage.build(case)?;
        for _ in 0..options.repeat {
            let users = [None].into_iter().chain(options.user.as_deref().map(Some));
            for user in users {
                let outcome = match &missing {
                    Some(why) => Outcome::Skipped(why.clone()),
                    None => stage.run(case, user)?,
                };
                let row = Row::new(case, user, outcome);
                show(&row);
                tally.add(row);
            }
        }
    }
    Ok(tally)
}

/// The folder of a case's program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Folder {
    /// Authors of rules may look at these cases.
    Known,
    /// These cases were written after the rules, to check whether the rules hold for other
    /// programs.
    HeldOut,
}

impl Folder {
    /// Returns the name in the file system and in the table.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Folder::Known => "known",
            Folder::HeldOut => "held-out",
        }
    }
}

impl fmt::Display for Folder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A program, and the cause that slows it down. In its commands, `{folder}` is the folder of its
/// source, `{out}` the output of its build, `{python}` an interpreter that every user can start,
/// and `{seconds}` how long it is to run.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Case {
    /// The name, which is unique in the table.
    pub(crate) name: String,
    /// The folder of its program.
    pub(crate) folder: Folder,
    /// The language in which it is written.
    pub(crate) language: String,
    /// The command that builds it; empty if it need not be built.
    #[serde(default)]
    pub(crate) build: Vec<String>,
    /// The command that runs it.
    pub(crate) run: Vec<String>,
    /// The command of a peer that runs beside it, outside of what the doctor observes. The peer
    /// prints `ready`, and is ended after the run.
    #[serde(default)]
    pub(crate) beside: Vec<String>,
    /// The ids of verdicts: the right one, then others that are not wrong.
    pub(crate) expected: Vec<String>,
}

/// Reads `cases.json` of a folder.
///
/// # Errors
/// Returns an error if the file does not exist, if it is not such a table, or if a case has no
/// verdict or a name occurs twice.
pub(crate) fn read(folder: &Path) -> Result<Vec<Case>, String> {
    let path = folder.join("cases.json");
    let text = std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    parse(&text).map_err(|e| format!("{}: {e}", path.display()))
}

/// Parses the text of such a table.
///
/// # Errors
/// Returns an error if the text is not a table, or if a case has no verdict or a name occurs twice.
pub(crate) fn parse(text: &str) -> Result<Vec<Case>, String> {
    let cases: Vec<Case> = serde_json::from_str(text).map_err(|e| e.to_string())?;
    for (number, case) in cases.iter().enumerate() {
        if case.expected.is_empty() || case.run.is_empty() {
            return Err(format!("case {} lacks a command or a verdict", case.name));
        } else if cases[..number].iter().any(|other| other.name == case.name) {
            return Err(format!("two cases are called {}", case.name));
        }
    }
    Ok(cases)
}

/// The part of a verdict that is scored.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(crate) struct Verdict {
    /// The kind of bottleneck.
    pub(crate) id: String,
    /// The confidence, from 0 to 1.
    pub(crate) confidence: f64,
}

#[derive(Deserialize)]
struct Report {
    verdicts: Vec<Verdict>,
}

/// Returns the verdicts of the report at the end of `output`; the program's own output precedes it.
pub(crate) fn verdicts(output: &str) -> Option<Vec<Verdict>> {
    let starts = output.match_indices('{').map(|(at, _)| at);
    let report = starts
        .into_iter()
        .find_map(|at| serde_json::from_str::<Report>(&output[at..]).ok())?;
    let sane = |verdict: &Verdict| (0.0..=1.0).contains(&verdict.confidence);
    report.verdicts.iter().all(sane).then_some(report.verdicts)
}

/// A program ends with this exit code if it cannot demonstrate its bottleneck on this machine.
const CANNOT_RUN_HERE: i32 = 77;
/// The timeout in seconds, which exceeds the duration of every case; a doctor that hangs is ended.
const SECONDS_MAX: &str = "60";
/// The exit codes of `timeout` when it had to end a program.
const TIMED_OUT: [i32; 2] = [124, 137];

/// The place where cases are built and run.
pub(crate) struct Stage<'a> {
    options: &'a Options,
    python: String,
}

impl<'a> Stage<'a> {
    /// Creates the folder for the programs.
    ///
    /// # Errors
    /// Returns an error if the folder cannot be made.
    pub(crate) fn new(options: &'a Options) -> Result<Stage<'a>, String> {
        make_folder(&options.out)?;
        // The system's interpreter is preferred: another one may be a script, or lie in a home
        // directory that other users cannot read.
        let python = match is_there("/usr/bin/python3") {
            true => "/usr/bin/python3",
            false => "python3",
        };
        Ok(Stage {
            options,
            python: python.to_owned(),
        })
    }

    /// Builds a case. If the machine lacks its language, returns a message that says so.
    ///
    /// # Errors
    /// Returns an error if the compiler exists and fails.
    pub(crate) fn build(&self, case: &Case) -> Result<Option<String>, String> {
        let (build, run) = (self.words(case, &case.build), self.words(case, &case.run));
        let built = self.program(case);
        let tools = [build.first(), run.first()].into_iter().flatten();
        if let Some(tool) = tools
            .filter(|tool| !Path::new(tool).starts_with(&built))
            .find(|tool| !is_there(tool))
        {
            return Ok(Some(format!("no {tool} on this machine")));
        }
        let Some((compiler, arguments)) = build.split_first() else {
            return Ok(None);
        };
        let output = Command::new(compiler)
            .args(arguments)
            .output()
            .map_err(|e| format!("{compiler}: {e}"))?;
        if !output.status.success() {
            let text = String::from_utf8_lossy(&output.stderr);
            return Err(format!("{} does not build:\n{text}", case.name));
        }
        Ok(None)
    }

    /// Runs a case under the doctor, as another user if one is named.
    ///
    /// # Errors
    /// Returns an error if a folder cannot be made, or if the peer or the doctor cannot be started.
    pub(crate) fn run(&self, case: &Case, user: Option<&str>) -> Result<Outcome, String> {
        let place = self.options.out.join(format!("{}.run", case.name));
        if place.exists() {
            fs::remove_dir_all(&place).map_err(|e| format!("{}: {e}", place.display()))?;
        }
        make_folder(&place)?;
        let mut words = ["timeout", "--kill-after=5", SECONDS_MAX]
            .map(str::to_owned)
            .to_vec();
        if let Some(user) = user {
            words.extend(become_user(user)?);
        }
        words.extend_from_slice(&self.options.doctor);
        words.extend(self.words(case, &case.run));
        let _beside = Beside::start(&self.words(case, &case.beside), &place)?;
        let output = Command::new(&words[0])
            .args(&words[1..])
            .current_dir(&place)
            .stdin(Stdio::null())
            .output()
            .map_err(|e| format!("{}: {e}", words[0]))?;
        Ok(judge(&output))
    }

    fn program(&self, case: &Case) -> PathBuf {
        self.options.out.join(&case.name)
    }

    fn words(&self, case: &Case, words: &[String]) -> Vec<String> {
        let folder = self.options.cases.join(Folder::name(case.folder));
        let fill = |word: &String| {
            word.replace("{folder}", &folder.to_string_lossy())
                .replace("{out}", &self.program(case).to_string_lossy())
                .replace("{python}", &self.python)
                .replace("{seconds}", &self.options.seconds.to_string())
        };
        words.iter().map(fill).collect()
    }
}

/// Converts the output of a doctor's run into an outcome.
fn judge(output: &Output) -> Outcome {
    let errors = String::from_utf8_lossy(&output.stderr);
    let last = errors.lines().last().unwrap_or("").to_owned();
    match output.status.code() {
        Some(CANNOT_RUN_HERE) => Outcome::Skipped(format!("cannot run here: {last}")),
        Some(code) if TIMED_OUT.contains(&code) => {
            Outcome::Failed(format!("no end after {SECONDS_MAX} s"))
        }
        Some(0) => match verdicts(&String::from_utf8_lossy(&output.stdout)) {
            Some(verdicts) => Outcome::Verdicts(verdicts),
            None => Outcome::Failed(format!("no report: {last}")),
        },
        Some(code) => Outcome::Failed(format!("exit code {code}: {last}")),
        None => Outcome::Failed(format!("{}: {last}", output.status)),
    }
}

/// The peer of a case, which is ended when this is dropped.
struct Beside(Option<Child>);

impl Beside {
    fn start(words: &[String], place: &Path) -> Result<Beside, String> {
        let Some((program, arguments)) = words.split_first() else {
            return Ok(Beside(None));
        };
        let mut child = Command::new(program)
            .args(arguments)
            .current_dir(place)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|e| format!("{program}: {e}"))?;
        let output = child.stdout.take().expect("it is a pipe");
        let beside = Beside(Some(child));
        let mut line = String::new();
        let read = BufReader::new(output).read_line(&mut line);
        match read {
            Ok(_) if line.trim() == "ready" => Ok(beside),
            _ => Err(format!("the peer {words:?} does not get ready")),
        }
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            // The peer may have ended by itself, and then there is nothing to end.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Makes a folder in which every user may write.
fn make_folder(path: &Path) -> Result<(), String> {
    fs::create_dir_all(path)
        .and_then(|()| open_to_all(path))
        .map_err(|e| format!("{}: {e}", path.display()))
}

#[cfg(unix)]
fn open_to_all(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(0o777))
}

#[cfg(not(unix))]
fn open_to_all(_: &Path) -> std::io::Result<()> {
    Ok(())
}

/// Returns whether a program exists, by its path or on `PATH`.
fn is_there(program: &str) -> bool {
    if program.contains('/') {
        return Path::new(program).is_file();
    }
    let paths = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&paths).any(|folder| folder.join(program).is_file())
}

/// Returns the command that runs the words after it as `user`, without any of root's rights.
fn become_user(user: &str) -> Result<Vec<String>, String> {
    let id = |option| {
        let output = Command::new("id").args([option, user]).output();
        let output = output.map_err(|e| format!("id: {e}"))?;
        let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        match output.status.success() {
            true => Ok(text),
            false => Err(format!("no user is called {user}")),
        }
    };
    Ok(vec![
        "setpriv".to_owned(),
        format!("--reuid={}", id("-u")?),
        format!("--regid={}", id("-g")?),
        "--clear-groups".to_owned(),
    ])
}

/// A wrong verdict with a confidence above this is worse than no verdict.
pub(crate) const SURE: f64 = 0.6;
/// The minimum share of the cases in which another user must get the same first verdict.
const SAME_SHARE_MIN: f64 = 0.8;
/// The verdict that gives a reason to have no answer; it never counts as wrong and sure.
const DECLINED: &str = "CONTAMINATED";

/// The outcome of a case.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Outcome {
    /// The verdicts, the most likely first.
    Verdicts(Vec<Verdict>),
    /// The case cannot run here, for this reason.
    Skipped(String),
    /// There is no report, for this reason.
    Failed(String),
}

/// A run of a case.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    name: String,
    folder: Folder,
    language: String,
    expected: Vec<String>,
    user: Option<String>,
    outcome: Outcome,
    right: Option<bool>,
}

impl Row {
    pub(crate) fn new(case: &Case, user: Option<&str>, outcome: Outcome) -> Row {
        let mut row = Row {
            name: case.name.clone(),
            folder: case.folder,
            language: case.language.clone(),
            expected: case.expected.clone(),
            user: user.map(str::to_owned),
            outcome,
            right: None,
        };
        let is_right = |verdict: &Verdict| row.expected.contains(&verdict.id);
        row.right = match &row.outcome {
            Outcome::Skipped(_) => None,
            _ => Some(row.first().is_some_and(is_right)),
        };
        row
    }

    fn first(&self) -> Option<&Verdict> {
        match &self.outcome {
            Outcome::Verdicts(verdicts) => verdicts.first(),
            _ => None,
        }
    }

    fn sure_and_wrong(&self) -> bool {
        let sure = |verdict: &Verdict| verdict.confidence > SURE && verdict.id != DECLINED;
        self.right == Some(false) && self.first().is_some_and(sure)
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let user = self.user.as_deref().unwrap_or("-");
        let (name, expected, language) = (&self.name, &self.expected[0], &self.language);
        write!(f, "{name:<16} {language:<7} {user:<7} {expected:<17} ")?;
        match (&self.outcome, self.first()) {
            (Outcome::Skipped(why), _) => write!(f, "skipped: {why}"),
            (Outcome::Failed(why), _) => write!(f, "wrong: {why}"),
            (Outcome::Verdicts(_), None) => write!(f, "wrong: no verdict"),
            (Outcome::Verdicts(_), Some(Verdict { id, confidence })) => {
                let right = match self.right {
                    Some(true) => "right",
                    _ if self.sure_and_wrong() => "wrong and sure",
                    _ => "wrong",
                };
                write!(f, "{id:<17} {confidence:>5.2}  {right}")
            }
        }
    }
}

/// Returns the line above the rows.
pub(crate) fn heading() -> String {
    let (name, language, user) = ("case", "in", "as");
    let (expected, first) = ("expected", "first verdict");
    format!("{name:<16} {language:<7} {user:<7} {expected:<17} {first:<17}  sure")
}

/// The number of right runs among all runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Score {
    /// The number of runs whose first verdict is right.
    pub(crate) right: usize,
    /// The number of runs that could be right.
    pub(crate) of: usize,
    /// The number of runs that could not be made.
    pub(crate) skipped: usize,
    /// The number of wrong first verdicts with a confidence above [`SURE`].
    pub(crate) wrong_and_sure: usize,
}

/// All runs.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tally {
    rows: Vec<Row>,
}

impl Tally {
    pub(crate) fn add(&mut self, row: Row) {
        self.rows.push(row);
    }

    /// Returns the scores by folder and user.
    pub(crate) fn scores(&self) -> BTreeMap<(Folder, Option<&str>), Score> {
        let mut scores: BTreeMap<_, Score> = BTreeMap::new();
        for row in &self.rows {
            let score = scores.entry((row.folder, row.user.as_deref())).or_default();
            score.of += usize::from(row.right.is_some());
            score.right += usize::from(row.right == Some(true));
            score.skipped += usize::from(row.right.is_none());
            score.wrong_and_sure += usize::from(row.sure_and_wrong());
        }
        scores
    }

    /// Returns the number of runs of another user with the same first verdict as the run before,
    /// and the number of all such pairs in which both could run.
    pub(crate) fn same(&self) -> (usize, usize) {
        let pairs = self.rows.windows(2).filter(|pair| {
            let both = pair.iter().all(|row| row.right.is_some());
            both && pair[0].user.is_none() && pair[1].user.is_some()
        });
        let same = |pair: &&[Row]| {
            let [one, other] = [pair[0].first(), pair[1].first()];
            one.is_some() && one.map(|verdict| &verdict.id) == other.map(|verdict| &verdict.id)
        };
        (pairs.clone().filter(same).count(), pairs.count())
    }

    /// Returns the exit code. 0: no complaint. 1: wrong verdicts, or another user gets too many
    /// different verdicts. 2: no score was possible.
    pub(crate) fn exit_code(&self) -> u8 {
        let scores = self.scores();
        let own = scores.iter().filter(|((_, user), _)| user.is_none());
        let (same, pairs) = self.same();
        if scores.values().all(|score| score.of == 0) {
            2
        } else {
            let differs = (same as f64) < SAME_SHARE_MIN * pairs as f64;
            u8::from(own.map(|(_, it)| it.of - it.right).sum::<usize>() > 0 || differs)
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for ((folder, user), score) in self.scores() {
            let user = user.map(|user| format!(" as {user}")).unwrap_or_default();
            let Score { right, of, .. } = score;
            let (skipped, sure) = (score.skipped, score.wrong_and_sure);
            write!(f, "{folder}{user}: first verdict right in {right} of {of}")?;
            writeln!(f, ", {sure} wrong and sure, {skipped} skipped")?;
        }
        match self.same() {
            (_, 0) => Ok(()),
            (same, pairs) => writeln!(f, "both users: the same in {same} of {pairs}"),
        }
    }
}
