//! A plan of steps, with a table of what happened. A step that fails keeps no other from running.
//!
//! Two steps run at a time. One thread takes those that build in cargo's own folder, one after the
//! other, and then what is left of those that have a folder of their own, which the other takes.
//! What a step says is kept in a file, and printed when the step ends.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::{Duration, Instant};
use std::{fs, thread};

use crate::workspace::{Tally, Workspace, lock};

/// One thing to check.
pub(crate) struct Step {
    pub(crate) name: &'static str,
    /// One line: what it checks.
    pub(crate) summary: &'static str,
    /// Whether it builds in a folder of its own, so that it waits for no other step's build.
    pub(crate) has_own_folder: bool,
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

/// The choice of steps on the command line.
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
    let start = Instant::now();
    let wanted: Vec<&Step> = steps.iter().filter(|step| choice.wants(step)).collect();
    let report = Mutex::new(Report::default());
    if let [step] = wanted[..] {
        report_on(step, &report, choice, || {
            println!("== {}: {}", step.name, step.summary);
            with_times(workspace.for_a_step(), step.run)
        });
    } else {
        let (own, shared): (VecDeque<&Step>, VecDeque<&Step>) =
            wanted.iter().partition(|step| step.has_own_folder);
        let (own, shared) = (Mutex::new(own), Mutex::new(shared));
        let work = |queues: &[&Mutex<VecDeque<&Step>>]| {
            for queue in queues {
                let next = || lock(queue).pop_front();
                while let Some(step) = next() {
                    report_on(step, &report, choice, || beside_others(workspace, step));
                }
            }
        };
        thread::scope(|scope| {
            scope.spawn(|| work(&[&shared, &own]));
            scope.spawn(|| work(&[&own]));
        });
    }
    lock(&report).print(steps, start.elapsed())
}

/// Runs one step of several at the same time. Returns how it ended and how long that took.
fn beside_others(workspace: &Workspace, step: &Step) -> (Result<Outcome, String>, Times) {
    let log = log_of(workspace, step);
    println!("== {}: begins, and writes to {}", step.name, log.display());
    let workspace = match workspace.logging_to(&log) {
        Ok(workspace) => workspace,
        Err(error) => return (Err(format!("{}: {error}", log.display())), Times::default()),
    };
    with_times(workspace, |workspace| {
        let outcome = (step.run)(workspace);
        let output = fs::read(&log).map_err(|error| format!("{}: {error}", log.display()))?;
        println!(
            "== {}: {}\n{}",
            step.name,
            step.summary,
            String::from_utf8_lossy(&output).trim_end()
        );
        outcome
    })
}

/// Runs `run` in the workspace of a step, and returns what it returns and how long that took.
fn with_times(
    workspace: Workspace,
    run: impl FnOnce(&Workspace) -> Result<Outcome, String>,
) -> (Result<Outcome, String>, Times) {
    let start = Instant::now();
    let outcome = run(&workspace);
    let times = Times {
        compiling: workspace.compiling(),
        running: start.elapsed().saturating_sub(workspace.compiling()),
    };
    (outcome, times)
}

fn log_of(workspace: &Workspace, step: &Step) -> PathBuf {
    let name = format!("{}.log", step.name);
    workspace.target.join("gate").join(name)
}

/// Runs a step with `run`, unless `--skip` names it, and adds its row to the report.
fn report_on(
    step: &Step,
    report: &Mutex<Report>,
    choice: &Choice,
    run: impl FnOnce() -> (Result<Outcome, String>, Times),
) {
    let (outcome, times) = match choice.leaves_out(step) {
        Some(why) => (Ok(Outcome::Skipped(why.to_owned())), Times::default()),
        None => run(),
    };
    lock(report).add(step, outcome, times);
}

/// How long a step took.
#[derive(Clone, Copy, Default)]
struct Times {
    compiling: Duration,
    running: Duration,
}

/// The steps that have ended so far.
#[derive(Default)]
struct Report {
    /// The name of each step that ended, and its row of the table.
    rows: Vec<(&'static str, String)>,
    tally: Tally,
    /// The name of each step that failed, and why.
    failures: Vec<(&'static str, String)>,
    /// The name of each step that was skipped, and why.
    skips: Vec<(&'static str, String)>,
}

impl Report {
    fn add(&mut self, step: &Step, outcome: Result<Outcome, String>, times: Times) {
        self.rows.push((step.name, row(step.name, &outcome, times)));
        match outcome {
            Ok(Outcome::Tests(tests)) => {
                self.tally.passed += tests.passed;
                self.tally.failed += tests.failed;
            }
            Ok(Outcome::Skipped(why)) => {
                println!("== {}: skipped: {why}", step.name);
                self.skips.push((step.name, why));
            }
            Ok(_) => {}
            Err(why) => {
                println!("== {}: FAILED: {why}", step.name);
                self.failures.push((step.name, why));
            }
        }
    }

    /// Prints the table, in the order of `steps`; true if nothing failed.
    fn print(&self, steps: &[Step], time: Duration) -> bool {
        println!(
            "\n{:21} {:>9} {:>9}   tests",
            "step", "compiling", "running"
        );
        for step in steps {
            for (_, row) in self.rows.iter().filter(|(name, _)| *name == step.name) {
                println!("{row}");
            }
        }
        println!("{:21} {:17.1} s", "all together", time.as_secs_f64());
        for (name, why) in &self.skips {
            println!("\nskipped: {name}: {why}");
        }
        for (name, why) in &self.failures {
            println!("\nFAILED at {name}: {why}");
        }
        match (self.failures.is_empty(), self.tally == Tally::default()) {
            (false, _) => {}
            // The steps asked for held no tests of their own.
            (true, true) => println!("\nnothing failed"),
            (true, false) => println!("\n{}", self.tally),
        }
        self.failures.is_empty()
    }
}

fn row(name: &str, outcome: &Result<Outcome, String>, times: Times) -> String {
    let (word, detail) = match outcome {
        Ok(Outcome::Passed) => ("passed", String::new()),
        Ok(Outcome::Tests(tests)) => ("passed", tests.to_string()),
        Ok(Outcome::Repeated(tests)) => ("passed", format!("{tests} (again, not in the sum)")),
        Ok(Outcome::Skipped(why)) => ("skipped", why.clone()),
        Err(_) => ("FAILED", String::new()),
    };
    let [compiling, running] = [times.compiling, times.running].map(|time| time.as_secs_f64());
    format!("{name:12} {word:8} {compiling:7.1} s {running:7.1} s   {detail}")
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
    use std::path::Path;
    use std::sync::Condvar;
    use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
    use std::{env, process};

    use super::*;

    const fn step(name: &'static str, run: fn(&Workspace) -> Result<Outcome, String>) -> Step {
        Step {
            name,
            summary: "",
            has_own_folder: false,
            run,
        }
    }

    const STEPS: &[Step] = &[
        step("good", |_| Ok(Outcome::Passed)),
        step("bad", |_| Err("no".to_owned())),
        step("after", |_| {
            AFTER_A_FAILURE.fetch_add(1, SeqCst);
            Ok(Outcome::Passed)
        }),
    ];

    /// Runs of the step behind the one that fails.
    static AFTER_A_FAILURE: AtomicU32 = AtomicU32::new(0);

    fn choice(args: &[&str]) -> Result<Choice, String> {
        let args: Vec<String> = args.iter().map(|&arg| arg.to_owned()).collect();
        Choice::parse(&args, STEPS)
    }

    /// This workspace, with another folder for what is written.
    fn workspace(name: &str) -> Workspace {
        let mut workspace = Workspace::around(Path::new(env!("CARGO_MANIFEST_DIR"))).unwrap();
        workspace.target = env::temp_dir().join(format!("thalweg-plan-{}-{name}", process::id()));
        workspace
    }

    fn run_with(args: &[&str]) -> bool {
        run(&workspace("alone"), STEPS, &choice(args).unwrap())
    }

    #[test]
    fn a_failed_step_fails_the_plan_and_later_steps_run() {
        assert!(!run_with(&[]));
        assert_eq!(AFTER_A_FAILURE.load(SeqCst), 1);
        assert!(!run_with(&["--only", "bad"]));
        assert!(run_with(&["--only", "good"]));
        assert!(run_with(&["--skip=bad", "--skip", "after"]));
        assert_eq!(AFTER_A_FAILURE.load(SeqCst), 1);
    }

    /// Passes if two of them run at the same time; each waits for that.
    fn meets(workspace: &Workspace) -> Result<Outcome, String> {
        static BEGUN: (Mutex<u32>, Condvar) = (Mutex::new(0), Condvar::new());
        workspace.say("a line")?;
        workspace.run(&mut workspace.cargo("--version"))?;
        let (begun, changed) = &BEGUN;
        let mut begun = begun.lock().unwrap();
        *begun += 1;
        changed.notify_all();
        let both = begun.next_multiple_of(2);
        drop(
            changed
                .wait_while(begun, |begun| *begun < both)
                .expect("no step panics"),
        );
        Ok(Outcome::Tests(Tally {
            passed: 1,
            failed: 0,
        }))
    }

    #[test]
    fn a_step_with_its_own_folder_runs_beside_another_and_what_they_say_is_kept_apart() {
        let workspace = workspace("company");
        let mut steps = [step("one", meets), step("two", meets)];
        steps[1].has_own_folder = true;
        assert!(run(&workspace, &steps, &Choice::default()));
        // Where no step needs cargo's own folder, both threads take what is left.
        steps[0].has_own_folder = true;
        assert!(run(&workspace, &steps, &Choice::default()));
        for step in &steps {
            let said = fs::read_to_string(log_of(&workspace, step)).unwrap();
            let lines: Vec<&str> = said.lines().collect();
            assert_eq!(lines.len(), 2, "{said}");
            assert_eq!(lines[0], "a line");
            assert!(lines[1].starts_with("cargo "), "{said}");
        }
        fs::remove_dir_all(&workspace.target).unwrap();
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
        let times = Times {
            compiling: Duration::from_secs(1),
            running: Duration::from_millis(500),
        };
        let skipped = row(
            "asan",
            &Ok(Outcome::Skipped("no nightly".to_owned())),
            times,
        );
        assert_eq!(
            skipped,
            "asan         skipped      1.0 s     0.5 s   no nightly"
        );
        assert_eq!(
            row("test", &Err("x".to_owned()), times),
            "test         FAILED       1.0 s     0.5 s"
        );
    }
}
