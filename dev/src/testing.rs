//! `cargo dev test`: everything that a newcomer can run with nothing installed but Rust.

use std::env;
use std::process::Command;

use crate::linted::Linted;
use crate::plan::{Outcome, Step};
use crate::programs;
use crate::tidy;
use crate::workspace::{Tally, Workspace};

/// How often a model may preempt a thread; three find every reordering that the models are about,
/// and keep the whole run under a minute or so.
const LOOM_PREEMPTIONS_MAX: &str = "3";

/// The arguments of `cargo test`: all but the comparisons, whose peers take long to build. All
/// failures are shown, not only those of the first program that has one.
pub(crate) const TESTS: &str =
    "test --workspace --exclude thalweg-compare --all-features --no-fail-fast";

/// The steps of `cargo dev test`.
pub(crate) const STEPS: &[Step] = &[
    Step {
        name: "tidy",
        summary: "the habits that a machine can check (`cargo dev tidy --list`)",
        has_own_folder: false,
        run: tidiness,
    },
    Step {
        name: "test",
        summary: "cargo test with every feature, doc tests included, of all but the comparisons",
        has_own_folder: false,
        run: workspace,
    },
    Step {
        name: "loom",
        summary: "models of rings, waits, channels, tasks: interleavings up to 1 to 3 preemptions",
        has_own_folder: true,
        run: loom,
    },
    Step {
        name: "shuttle",
        summary: "channels, pipelines and a shared journal, under schedules chosen at random",
        has_own_folder: true,
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
    let unlinted = Linted::unlinted(workspace)?;
    let tests = programs::run(workspace, || unlinted.cargo(TESTS), &[]);
    tests.map(Outcome::Tests)
}

/// Builds the program `thalweg` as the gate's step `test` does, so that nothing is built twice.
pub(crate) fn build_program(workspace: &Workspace) -> Result<(), String> {
    let line = "test --workspace --all-features --no-run --test executable";
    workspace.run(&mut Linted::of_the_tests(workspace)?.cargo(line))
}

fn loom(workspace: &Workspace) -> Result<Outcome, String> {
    let which = "--package thalweg --package thalweg-task --lib";
    let command = || {
        let mut command = modelled(workspace, "loom", which);
        command.env("LOOM_MAX_PREEMPTIONS", LOOM_PREEMPTIONS_MAX);
        command
    };
    workspace.run_tests(command, &[]).map(Outcome::Tests)
}

fn shuttle(workspace: &Workspace) -> Result<Outcome, String> {
    let mut tally = Tally::default();
    for (which, filter) in [
        ("--package thalweg --test suite", ""),
        ("--package thalweg-journal --lib", "shared::models"),
    ] {
        let command = || modelled(workspace, "shuttle", which);
        tally.passed += workspace.run_tests(command, &[filter])?.passed;
    }
    Ok(Outcome::Tests(tally))
}

/// The tests that `which` names, with everything concurrent taken from `model`.
pub(crate) fn modelled(workspace: &Workspace, model: &str, which: &str) -> Command {
    let mut command = workspace.cargo("test --release");
    command
        .args(which.split(' '))
        .env("RUSTFLAGS", rustflags(&format!("--cfg {model}")))
        .env("CARGO_TARGET_DIR", workspace.target.join(model))
        // Whole-program optimisation costs more here than the models take, and a model that fails
        // names its place without line numbers.
        .env("CARGO_PROFILE_RELEASE_LTO", "off")
        .env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16")
        .env("CARGO_PROFILE_RELEASE_DEBUG", "0");
    command
}

/// The caller's flags, and ours.
pub(crate) fn rustflags(ours: &str) -> String {
    match env::var("RUSTFLAGS") {
        Ok(theirs) if !theirs.is_empty() => format!("{theirs} {ours}"),
        _ => ours.to_owned(),
    }
}
