//! A plan of steps: run in order up to the first failure, with a table of what happened.

use std::fmt;
use std::time::{Duration, Instant};

use crate::workspace::Workspace;

/// One thing to check.
pub(crate) struct Step {
    pub(crate) name: &'static str,
    /// One line: what it checks.
    pub(crate) summary: &'static str,
    /// An error is the reason of the failure.
    pub(crate) run: fn(&Workspace) -> Result<Outcome, String>,
}

/// How a step ended, if it did not fail.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It holds.
    Passed,
    /// It holds, by this many tests.
    Tests(Tally),
    /// It holds, by tests that another step has counted already.
    Repeated(Tally),
    /// It could not be looked at, and why.
    Skipped(String),
}

/// Tests that ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
}

impl Tally {
    /// Adds a closing line of the test runner; other lines do not count.
    pub(crate) fn see(&mut self, line: &str) {
        let Some(counts) = line.strip_prefix("test result: ") else {
            return;
        };
        let count = |what: &str| {
            let part = counts
                .split(['.', ';'])
                .map(str::trim)
                .find(|part| part.ends_with(what));
            part.and_then(|part| part.split(' ').next()?.parse::<u64>().ok())
                .unwrap_or(0)
        };
        self.passed += count(" passed");
        self.failed += count(" failed");
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed)
    }
}

/// What the command line asks for.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Choice {
    only: Vec<String>,
    skip: Vec<String>,
    pub(crate) list: bool,
}

impl Choice {
    /// Reads `--only STEP`, `--skip STEP` (each may be repeated) and `--list`.
    ///
    /// # Errors
    /// Another option, a step that is not in the plan, or one that is missing.
    pub(crate) fn parse(args: &[String], steps: &[Step]) -> Result<Self, String> {
        let mut choice = Self::default();
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            let (option, value) = match arg.split_once('=') {
                Some((option, value)) => (option, Some(value.to_owned())),
                None => (arg.as_str(), None),
            };
            let names = match option {
                "--list" => {
                    choice.list = true;
                    continue;
                }
                "--only" => &mut choice.only,
                "--skip" => &mut choice.skip,
                _ => {
                    return Err(format!(
                        "{arg}: not known; there are --only, --skip and --list"
                    ));
                }
            };
            let known: Vec<&str> = steps.iter().map(|step| step.name).collect();
            match value.or_else(|| args.next().cloned()) {
                Some(name) if known.contains(&name.as_str()) => names.push(name),
                Some(name) => {
                    return Err(format!(
                        "{name}: no such step; there are {}",
                        known.join(", ")
                    ));
                }
                None => return Err(format!("{option}: needs one of {}", known.join(", "))),
            }
        }
        Ok(choice)
    }

    /// Why a step is left out, if it is.
    fn leaves_out(&self, step: &Step) -> Option<&'static str> {
        self.skip
            .iter()
            .any(|name| name == step.name)
            .then_some("--skip")
    }

    /// Is the step among those asked for?
    fn wants(&self, step: &Step) -> bool {
        self.only.is_empty() || self.only.iter().any(|name| name == step.name)
    }
}

/// Runs the steps, and prints a table; true if none failed.
pub(crate) fn run(workspace: &Workspace, steps: &[Step], choice: &Choice) -> bool {
    let mut rows = Vec::new();
    let mut tally = Tally::default();
    let mut failure = None;
    for step in steps.iter().filter(|step| choice.wants(step)) {
        let start = Instant::now();
        let outcome = if failure.is_some() {
            Ok(Outcome::Skipped("an earlier step failed".to_owned()))
        } else if let Some(why) = choice.leaves_out(step) {
            Ok(Outcome::Skipped(why.to_owned()))
        } else {
            println!("== {}: {}", step.name, step.summary);
            (step.run)(workspace)
        };
        match &outcome {
            Ok(Outcome::Tests(tests)) => {
                tally.passed += tests.passed;
                tally.failed += tests.failed;
            }
            Ok(Outcome::Skipped(why)) => println!("== {}: skipped: {why}", step.name),
            Ok(_) => {}
            Err(why) => {
                println!("== {}: FAILED: {why}", step.name);
                failure = Some((step.name, why.clone()));
            }
        }
        rows.push(row(step.name, &outcome, start.elapsed()));
    }
    println!("\n{}", rows.join("\n"));
    match failure {
        Some((name, why)) => println!("\nFAILED at {name}: {why}"),
        // The steps asked for held no tests of their own.
        None if tally == Tally::default() => println!("\nnothing failed"),
        None => println!("\n{tally}"),
    }
    rows.iter().all(|row| !row.contains("FAILED"))
}

fn row(name: &str, outcome: &Result<Outcome, String>, time: Duration) -> String {
    let (word, detail) = match outcome {
        Ok(Outcome::Passed) => ("passed", String::new()),
        Ok(Outcome::Tests(tests)) => ("passed", tests.to_string()),
        Ok(Outcome::Repeated(tests)) => ("passed", format!("{tests} (again, not in the sum)")),
        Ok(Outcome::Skipped(why)) => ("skipped", why.clone()),
        Err(_) => ("FAILED", String::new()),
    };
    format!("{name:12} {word:8} {:7.1} s   {detail}", time.as_secs_f64())
        .trim_end()
        .to_owned()
}

/// Prints the steps of a plan, each with its summary.
pub(crate) fn print_steps(steps: &[Step]) {
    for step in steps {
        println!("{:12} {}", step.name, step.summary);
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    const STEPS: &[Step] = &[
        Step {
            name: "good",
            summary: "holds",
            run: |_| Ok(Outcome::Passed),
        },
        Step {
            name: "bad",
            summary: "fails",
            run: |_| Err("no".to_owned()),
        },
        Step {
            name: "after",
            summary: "panics",
            run: |_| panic!("must not run"),
        },
    ];

    fn choice(args: &[&str]) -> Result<Choice, String> {
        let args: Vec<String> = args.iter().map(|&arg| arg.to_owned()).collect();
        Choice::parse(&args, STEPS)
    }

    fn run_with(args: &[&str]) -> bool {
        let workspace = Workspace {
            root: PathBuf::new(),
            target: PathBuf::new(),
        };
        run(&workspace, STEPS, &choice(args).unwrap())
    }

    #[test]
    fn a_failure_stops_the_plan() {
        assert!(!run_with(&[]));
        assert!(!run_with(&["--only", "bad"]));
        assert!(run_with(&["--only", "good"]));
        assert!(run_with(&["--skip=bad", "--skip", "after"]));
    }

    #[test]
    fn misuse_is_named() {
        let error = |args| choice(args).unwrap_err();
        assert_eq!(
            error(&["--only", "x"]),
            "x: no such step; there are good, bad, after"
        );
        assert_eq!(error(&["--skip"]), "--skip: needs one of good, bad, after");
        assert_eq!(
            error(&["-v"]),
            "-v: not known; there are --only, --skip and --list"
        );
    }

    #[test]
    fn the_runner_s_closing_lines_are_summed() {
        let mut tally = Tally::default();
        tally.see("test result: ok. 20 passed; 0 failed; 1 ignored; 0 measured; 3 filtered out");
        tally.see("test result: FAILED. 2 passed; 1 failed; 0 ignored; finished in 0.14s");
        tally.see("99 passed; 99 failed");
        assert_eq!(tally.to_string(), "22 passed, 1 failed");
    }

    #[test]
    fn rows_tell_the_outcome() {
        let time = Duration::from_millis(1500);
        let skipped = row("asan", &Ok(Outcome::Skipped("no nightly".to_owned())), time);
        assert_eq!(skipped, "asan         skipped      1.5 s   no nightly");
        assert_eq!(
            row("test", &Err("x".to_owned()), time),
            "test         FAILED       1.5 s"
        );
    }
}
