//! `cargo dev test`: everything that a newcomer can run with nothing installed but Rust.

use std::env;
use std::process::Command;

use crate::plan::{Outcome, Step, Tally};
use crate::tidy;
use crate::workspace::Workspace;

/// How often a model may preempt a thread; three find every reordering that the models are about,
/// and keep the whole run under a minute or so.
const LOOM_PREEMPTIONS_MAX: &str = "3";

/// The steps of `cargo dev test`.
pub(crate) const STEPS: &[Step] = &[
    Step {
        name: "tidy",
        summary: "the habits that a machine can check (`cargo dev tidy --list`)",
        in_company: false,
        run: tidiness,
    },
    Step {
        name: "test",
        summary: "cargo test --workspace --all-features, doc tests included",
        in_company: false,
        run: workspace,
    },
    Step {
        name: "loom",
        summary: "models of rings, waits, channels, tasks: every interleaving up to 3 preemptions",
        in_company: true,
        run: loom,
    },
    Step {
        name: "shuttle",
        summary: "channels, pipelines and a shared journal, under schedules chosen at random",
        in_company: true,
        run: shuttle,
    },
];

fn tidiness(workspace: &Workspace) -> Result<Outcome, String> {
    if tidy::check(&workspace.root, &[])?.print() {
        Ok(Outcome::Passed)
    } else {
        Err("the tree is not tidy".to_owned())
    }
}

fn workspace(workspace: &Workspace) -> Result<Outcome, String> {
    // All that fails is told, not only what the first program with a failure found.
    tests(
        workspace,
        &mut workspace.cargo("test --workspace --all-features --no-fail-fast"),
    )
}

fn loom(workspace: &Workspace) -> Result<Outcome, String> {
    let which = "--package thalweg --package thalweg-task --lib";
    let mut command = modelled(workspace, "loom", which);
    command.env("LOOM_MAX_PREEMPTIONS", LOOM_PREEMPTIONS_MAX);
    tests(workspace, &mut command)
}

fn shuttle(workspace: &Workspace) -> Result<Outcome, String> {
    let mut tally = Tally::default();
    for which in [
        "--package thalweg --test suite",
        "--package thalweg-journal --lib shared::models",
    ] {
        let mut command = modelled(workspace, "shuttle", which);
        let mut these = Tally::default();
        workspace.run_watched(&mut command, |line| these.see(line))?;
        tally.passed += at_least_one(these)?.passed;
    }
    Ok(Outcome::Tests(tally))
}

/// The tests that `which` names, with everything concurrent taken from `model`.
fn modelled(workspace: &Workspace, model: &str, which: &str) -> Command {
    let mut command = workspace.cargo("test --release");
    command
        .args(which.split(' '))
        .env("RUSTFLAGS", rustflags(&format!("--cfg {model}")))
        .env("CARGO_TARGET_DIR", workspace.target.join(model))
        // Whole-program optimisation costs more here than the models take, and a model that fails
        // tells its place without line numbers.
        .env("CARGO_PROFILE_RELEASE_LTO", "off")
        .env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16")
        .env("CARGO_PROFILE_RELEASE_DEBUG", "0");
    command
}

fn tests(workspace: &Workspace, command: &mut Command) -> Result<Outcome, String> {
    let mut tally = Tally::default();
    workspace.run_watched(command, |line| tally.see(line))?;
    at_least_one(tally).map(Outcome::Tests)
}

/// The caller's flags, and ours.
pub(crate) fn rustflags(ours: &str) -> String {
    match env::var("RUSTFLAGS") {
        Ok(theirs) if !theirs.is_empty() => format!("{theirs} {ours}"),
        _ => ours.to_owned(),
    }
}

/// A run of no tests at all is a failure: the tests were not found.
pub(crate) fn at_least_one(tally: Tally) -> Result<Tally, String> {
    if tally.passed > 0 {
        Ok(tally)
    } else {
        Err("no test ran".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_without_tests_fails() {
        assert_eq!(at_least_one(Tally::default()).unwrap_err(), "no test ran");
        assert!(
            at_least_one(Tally {
                passed: 1,
                failed: 0
            })
            .is_ok()
        );
    }
}
