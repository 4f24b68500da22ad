//! Builds the cases and runs them under the doctor.

use super::Options;
use super::case::{Case, Folder};
use super::report;
use super::tally::Outcome;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

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
        Some(0) => match report::verdicts(&String::from_utf8_lossy(&output.stdout)) {
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
