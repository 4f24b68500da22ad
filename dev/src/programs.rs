//! The programs of the tests, which cargo builds and this runs, two at a time: many of them wait
//! most of their time, and the last test of each has a core for itself.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::{io, thread};

use crate::failures::failures;
use crate::workspace::{Tally, Workspace, ended, lock};

/// How many programs run at a time; each has a thread for each core.
const LANES: usize = 2;

/// The programs that take longest, which begin first: folder of the package, and target.
const LONG: [(&str, &str); 4] = [
    ("thalweg-cli", "suite"),
    ("thalweg", "suite"),
    ("thalweg-doctor", "observing"),
    ("thalweg-exchange", "suite"),
];

/// A program of tests.
#[derive(Debug, PartialEq, Eq)]
struct Program {
    path: PathBuf,
    /// The folder of its package, in which it runs.
    package: PathBuf,
    target: String,
}

impl Program {
    /// Reads a message of cargo about what it has built, if that is a program of tests.
    ///
    /// # Errors
    /// It is one, but does not say which.
    fn read(message: &str) -> Result<Option<Self>, String> {
        let parts = message.split_once("\"profile\":{");
        let parts = parts.and_then(|(target, profile)| Some((target, profile.split_once('}')?)));
        match parts {
            Some((target, (profile, rest)))
                if profile.contains("\"test\":true") && !rest.contains("\"executable\":null") =>
            {
                let program = Self::of(target, rest);
                let why = || format!("a message of cargo is not understood: {message}");
                program.map(Some).ok_or_else(why)
            }
            _ => Ok(None),
        }
    }

    /// Reads what stands before and behind the profile in a message.
    fn of(target: &str, rest: &str) -> Option<Self> {
        let value = |text: &str, name: &str| {
            let (_, value) = text.split_once(&format!("\"{name}\":\""))?;
            Some(value.split('"').next()?.replace(r"\\", r"\"))
        };
        let manifest = PathBuf::from(value(target, "manifest_path")?);
        let (_, target) = target.split_once("\"target\":")?;
        Some(Self {
            path: value(rest, "executable")?.into(),
            package: manifest.parent()?.to_owned(),
            target: value(target, "name")?,
        })
    }

    fn place(&self) -> usize {
        let is_it = |long: &(&str, &str)| self.package.ends_with(long.0) && self.target == long.1;
        LONG.iter().position(is_it).unwrap_or(LONG.len())
    }
}

/// Compiles what `command` tests, then runs it: the programs by themselves, with what the command
/// has in its environment, and the examples of the documentation by cargo. `names` are parts of the
/// names of tests; with some, no examples are run.
///
/// # Errors
/// Something does not compile, or a program fails.
pub(crate) fn run(
    workspace: &Workspace,
    command: impl Fn() -> Command,
    names: &[&str],
) -> Result<Tally, String> {
    let mut build = command();
    build.args(["--no-run", "--message-format", "json-render-diagnostics"]);
    let mut read = Vec::new();
    workspace.compile_and_watch(&mut build, |line| read.push(Program::read(line)))?;
    let programs = read.into_iter().filter_map(Result::transpose);
    let mut programs = programs.collect::<Result<Vec<Program>, String>>()?;
    programs.sort_by_key(Program::place);
    let jobs = programs.iter().map(|program| {
        let mut job = workspace.command(&program.path.to_string_lossy());
        let all = command();
        for (name, value) in all.get_envs() {
            if let Some(value) = value {
                job.env(name, value);
            }
        }
        job.env("CARGO_MANIFEST_DIR", &program.package);
        job.current_dir(&program.package).args(names);
        job
    });
    let mut jobs: VecDeque<Command> = jobs.collect();
    if names.is_empty() {
        let mut examples = command();
        examples.arg("--doc");
        jobs.push_front(examples);
    }
    let (jobs, outcomes) = (Mutex::new(jobs), Mutex::default());
    thread::scope(|scope| {
        for _ in 0..LANES {
            scope.spawn(|| {
                while let Some(mut job) = next(&jobs) {
                    let outcome = run_alone(workspace, &mut job);
                    lock::<Vec<_>>(&outcomes).push(outcome);
                }
            });
        }
    });
    let (mut tally, mut failures) = (Tally::default(), Vec::new());
    for outcome in lock(&outcomes).drain(..) {
        match outcome {
            Ok(tests) => tally.passed += tests,
            Err(why) => failures.push(why),
        }
    }
    match (failures.is_empty(), tally.passed) {
        (false, _) => Err(failures.join("\n")),
        (true, 0) => Err("no test ran".to_owned()),
        (true, _) => Ok(tally),
    }
}

fn next(jobs: &Mutex<VecDeque<Command>>) -> Option<Command> {
    lock(jobs).pop_front()
}

/// Runs a program, and prints what it has said when it has ended. Meanwhile that is in a file, for
/// which nothing waits, as for a pipe that a child of the program may hold. Returns how many tests
/// passed.
fn run_alone(workspace: &Workspace, job: &mut Command) -> Result<u64, String> {
    let program = Path::new(job.get_program()).to_owned();
    let failed = |error: io::Error| format!("{}: {error}", program.display());
    let directory = workspace.root.join("target/tests");
    fs::create_dir_all(&directory).map_err(failed)?;
    let name = program.file_name().unwrap_or(program.as_os_str());
    let path = directory.join(name).with_extension("out");
    let file = File::create(&path).map_err(failed)?;
    job.stdin(Stdio::null());
    job.stdout(file.try_clone().map_err(failed)?).stderr(file);
    let status = job.status().map_err(failed)?;
    let said = fs::read(&path).map_err(failed)?;
    let said = String::from_utf8_lossy(&said);
    let mut tally = Tally::default();
    said.lines().for_each(|line| tally.see(line));
    let said = said.trim_end();
    workspace.say(format_args!("     Running {}\n{said}", program.display()))?;
    let ended = ended(job, Ok(status)).map(|()| tally.passed);
    ended.map_err(|why| why + &failures(said))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_of_tests_are_read_from_the_messages_of_cargo() {
        let message = |test: bool, executable: &str| {
            [
                r#"{"reason":"compiler-artifact","manifest_path":"/w/crates/thalweg/Cargo.toml","#,
                r#""target":{"kind":["test"],"crate_types":["bin"],"name":"suite","test":true},"#,
                &format!("\"profile\":{{\"opt_level\":\"0\",\"test\":{test}}},"),
                &format!("\"features\":[],\"executable\":{executable},\"fresh\":true}}"),
            ]
            .concat()
        };
        let read = |message: &str| Program::read(message).expect("it is understood");
        let program = read(&message(true, "\"/t/suite-1\"")).expect("it is one");
        let expected = Program {
            path: "/t/suite-1".into(),
            package: "/w/crates/thalweg".into(),
            target: "suite".to_owned(),
        };
        assert_eq!(program, expected);
        assert_eq!(program.place(), 1);
        assert_eq!(read(&message(false, "\"/t/suite-1\"")), None);
        assert_eq!(read(&message(true, "null")), None);
        assert_eq!(read(r#"{"reason":"build-finished"}"#), None);
        let other = message(true, "\"/t/suite-1\"").replace("manifest_path", "manifest");
        assert!(Program::read(&other).is_err());
    }

    #[test]
    fn a_program_that_fails_says_which_test_failed() {
        let workspace = Workspace::around(Path::new(env!("CARGO_MANIFEST_DIR")));
        let workspace = workspace.expect("this package is in it");
        // Its output, with a test that seems to fail, is kept out of ours.
        let log = workspace.target.join("tests/a_program_that_fails.log");
        let workspace = workspace.logging_to(&log).expect("a log");
        let mut job = workspace.command("false");
        assert_eq!(
            run_alone(&workspace, &mut job),
            Err("`false`: exit status: 1".to_owned())
        );
        let mut job = workspace.command("sh");
        job.args(["-c", "echo 'test a ... FAILED'; exit 1"]);
        let why = run_alone(&workspace, &mut job).expect_err("it ends with 1");
        assert!(why.ends_with("`: exit status: 1\n  a"), "{why}");
    }
}
