//! `cargo dev gate`: what a change passes before it lands. Steps whose tool is not there say so.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::{env, iter, process};

use crate::api;
use crate::clients;
use crate::counts;
use crate::fuzz;
use crate::linted::Linted;
use crate::package;
use crate::page;
use crate::plan::{Outcome, Step};
use crate::programs;
use crate::readme::{PASTED, TEST, commands, program};
use crate::targets;
use crate::testing::{self, rustflags};
use crate::workspace::{Scratch, Workspace, host_of};

const BEFORE: &[Step] = &[
    Step {
        name: "fmt",
        summary: "cargo fmt --check",
        has_own_folder: false,
        run: fmt,
    },
    Step {
        name: "lint",
        summary: "clippy on every target, rustdoc on every library, every feature: no warning",
        has_own_folder: false,
        run: lint,
    },
    // Beside what compiles: beside other tests whose threads spin, its own take three times as long
    Step {
        name: "asan",
        summary: "thalweg, thalweg-task under the address and leak sanitizers (nightly)",
        has_own_folder: true,
        run: asan,
    },
];

const AFTER: &[Step] = &[
    Step {
        name: "counts",
        summary: "instructions of rings and channels, within 3 % of the baseline (valgrind)",
        has_own_folder: true,
        run: counts::step,
    },
    Step {
        name: "fuzz",
        summary: "the fuzz targets find nothing in a few seconds, and their seeded faults (C++)",
        has_own_folder: true,
        run: fuzz::step,
    },
    Step {
        name: "fresh-clone",
        summary: "a clone of HEAD runs the commands of the README, unoptimised, and its program",
        has_own_folder: true,
        run: fresh_clone,
    },
    package::STEP,
    targets::QUICK,
    Step {
        name: "tsan",
        summary: "channels, pipelines: thread sanitizer (a compiler that THALWEG_TSAN_RUSTC names)",
        has_own_folder: true,
        run: tsan,
    },
    clients::STEP,
    page::STEP,
    api::STEP,
];

/// The steps of `cargo dev gate`: cheap checks, `cargo dev test`, then what needs more tools.
pub(crate) fn steps() -> Vec<Step> {
    let all = BEFORE.iter().chain(testing::STEPS).chain(AFTER);
    all.map(|step| match step.name {
        "test" => Step {
            summary: "cargo test with every feature, doc tests and comparisons included",
            run: test,
            ..*step
        },
        _ => Step { ..*step },
    })
    .collect()
}

fn fmt(workspace: &Workspace) -> Result<Outcome, String> {
    if !workspace.works("cargo", "fmt --version") {
        return Ok(Outcome::Skipped("rustfmt is not installed".to_owned()));
    }
    workspace.run(&mut workspace.cargo("fmt --all --check"))?;
    Ok(Outcome::Passed)
}

/// The build that is tested: with `thalweg-compare`, whose features of dependencies are those of
/// all, so that nothing is built twice.
const EVERYTHING: &str = "test --workspace --all-features --no-fail-fast";

fn lint(workspace: &Workspace) -> Result<Outcome, String> {
    let Some(linted) = Linted::new(workspace)? else {
        return Ok(Outcome::Skipped("clippy is not installed".to_owned()));
    };
    // Benchmarks are looked at, too; they are built, and not run.
    let mut build = linted.cargo(EVERYTHING);
    build.args(["--quiet", "--all-targets", "--no-run"]);
    let said = workspace.compile_and_listen(&mut build)?;
    match said.lines().any(|line| line.starts_with("warning")) {
        false => Ok(Outcome::Passed),
        true => Err("there are warnings".to_owned()),
    }
}

/// Tests that use recorded streams beside the repository, by parts of their names.
const ON_STREAMS: [&str; 7] = [
    "allocation",
    "conform",
    "following",
    "load_stream",
    "real_flow",
    "recorded",
    "snapshot::long",
];

/// Runs the programs that the step `lint` has built, if clippy is installed; first the tests on
/// recorded streams as in a user's clone, which has no streams beside it.
fn test(workspace: &Workspace) -> Result<Outcome, String> {
    let compiler = Linted::of_the_tests(workspace)?;
    let without = || {
        let mut command = compiler.cargo(EVERYTHING);
        command.arg("--tests").env("THALWEG_SHARED", "/nonexistent");
        command
    };
    programs::run(workspace, without, &ON_STREAMS)?;
    let tests = programs::run(workspace, || compiler.cargo(EVERYTHING), &[]);
    tests.map(Outcome::Tests)
}

/// Runs a program under the address sanitizer, with its options. A test of `thalweg` asks for
/// more memory than there is, which must be an error and no abort. Fibers are not shadowed by fake
/// stacks: one is left behind by each that ends (corosensei 0.3.4), until the kernel has no memory
/// for more.
const RUNNER: &str = r#"
    case $CARGO_PKG_NAME in
        thalweg) export ASAN_OPTIONS=allocator_may_return_null=1 ;;
        thalweg-task) export ASAN_OPTIONS=detect_stack_use_after_return=0 ;;
    esac
    exec "$@""#;

/// Tests of what takes how long, and of models without memory of their own, which a sanitizer makes
/// slow. With `pipeline::auto`, stages that move to another thread by load are left out, too, and
/// so is a fiber whose frames, with red zones, do not fit into the smallest stack.
const UNSANITIZED: [&str; 7] = [
    "bus::pattern",
    "bus::simulated",
    "fiber::processes::a_fiber_on_the_smallest_stack_makes_others",
    "pipeline::attribution",
    "pipeline::auto",
    "pipeline::meter::tests",
    "wait::pace",
];

fn asan(workspace: &Workspace) -> Result<Outcome, String> {
    // A report has no names of variables; those of `cargo dev soak` have them.
    let flags = "-Zsanitizer=address -Zfewer-names=yes --cfg sanitized";
    sanitized(workspace, flags, &["--features", "thalweg/stream"])
}

/// Runs the tests of the crates with lock-free code under the address and leak sanitizers.
/// `--cfg sanitized` among the flags leaves out those that find nothing about memory, and
/// so do fewer features: what others call by `serde`, `metrics` and `tracing` has no unsafe code.
pub(crate) fn sanitized(
    workspace: &Workspace,
    flags: &str,
    features: &[&str],
) -> Result<Outcome, String> {
    let Ok(version) = workspace.output("rustup", "run nightly rustc --version --verbose") else {
        return Ok(Outcome::Skipped("no nightly toolchain".to_owned()));
    };
    let host = host_of(&version);
    if !host.ends_with("-unknown-linux-gnu") {
        return Ok(Outcome::Skipped(format!(
            "the leak sanitizer is not for {host}"
        )));
    }
    let runner = format!("target.{host}.runner=['sh', '-c', '''{RUNNER}''', 'sh']");
    let command = || {
        let mut command = workspace.command("rustup");
        command
            .args(["run", "nightly", "cargo", "test"])
            .args(["--package", "thalweg", "--package", "thalweg-task"])
            .args(["--lib", "--tests"])
            .args(features)
            // With a target, build scripts and macros are spared.
            .args(["--target", host])
            .args(["--config", &runner])
            .env("RUSTFLAGS", rustflags(flags))
            .env("CARGO_TARGET_DIR", workspace.target.join("asan"));
        command
    };
    let rest: Vec<&str> = UNSANITIZED
        .iter()
        .flat_map(|name| ["--skip", name])
        .collect();
    workspace.run_tests(command, &rest).map(Outcome::Repeated)
}

/// Needs a compiler beside which the sources of its standard library lie, since that is built with
/// the sanitizer as well; the sanitizer's own library must be there, too.
fn tsan(workspace: &Workspace) -> Result<Outcome, String> {
    let Ok(rustc) = env::var("THALWEG_TSAN_RUSTC") else {
        return Ok(Outcome::Skipped(
            "THALWEG_TSAN_RUSTC names no compiler".to_owned(),
        ));
    };
    let version = workspace.output(&rustc, "--version --verbose")?;
    let host = host_of(&version);
    let command = || {
        let mut command = workspace.cargo("test --package thalweg --package thalweg-task");
        command
            .args(["--lib", "--test", "suite", "-Zbuild-std", "--target", host])
            .env("RUSTC", &rustc)
            // A stable compiler takes `-Z` with it.
            .env("RUSTC_BOOTSTRAP", "1")
            .env("RUSTFLAGS", rustflags("-Zsanitizer=thread"))
            // A test asks for more memory than there is, and wants to be refused.
            .env("TSAN_OPTIONS", "allocator_may_return_null=1")
            .env("CARGO_TARGET_DIR", workspace.target.join("tsan"));
        command
    };
    workspace.run_tests(command, &[]).map(Outcome::Repeated)
}

/// Returns the command without optimisation: the release build takes minutes, and each program runs
/// once. Runs and sweeps of the made-up flow, a sweep nine times, have a tenth of it.
fn unoptimised(command: &str) -> String {
    let command = command
        .replace("cargo run --release", "cargo run")
        .replace("cargo install", "cargo install --debug")
        .replace("exchange sweep", "exchange sweep --commands 100k");
    match command.contains(".csv") {
        true => command,
        false => command.replace("exchange run", "exchange run --commands 100k"),
    }
}

/// Puts what the step `lint` has built into another folder, where cargo finds the crates of others.
/// Compiled files are linked, since nothing writes into one; cargo writes into its own notes.
fn share_dependencies(workspace: &Workspace, to: &Path) -> Result<(), String> {
    let (from, to) = (workspace.target.join("debug"), to.join("debug"));
    let _no_build = locked(&from).map_err(|error| format!("{}: {error}", from.display()))?;
    let _ = fs::remove_dir_all(&to);
    fs::create_dir_all(&to).map_err(|error| format!("{}: {error}", to.display()))?;
    for (folder, how) in [("deps", "-al"), ("build", "-a"), (".fingerprint", "-a")] {
        let folder = from.join(folder);
        if folder.is_dir() {
            workspace.run(workspace.command("cp").arg(how).arg(&folder).arg(&to))?;
        }
    }
    Ok(())
}

/// Waits until cargo does not build in a folder, and takes its lock, so that files do not go while
/// they are copied. Returns `None` where cargo has not built anything.
fn locked(folder: &Path) -> io::Result<Option<File>> {
    match File::open(folder.join(".cargo-lock")) {
        Ok(lock) => lock.lock().map(|()| Some(lock)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Packages of the workspace that its profile has optimised, for tests that run long.
const OPTIMISED: [&str; 4] = [
    "thalweg-exchange",
    "thalweg-hash",
    "thalweg-journal",
    "thalweg-measure",
];

/// Writes settings of cargo beside the clone, by which our packages are not optimised: they take
/// half a minute less to compile, and each command runs once.
fn compile_quickly(folder: &Path) -> Result<(), String> {
    let section = |name| format!("[profile.dev.package.{name}]\nopt-level = 0\n");
    let settings: String = OPTIMISED.into_iter().map(section).collect();
    let file = folder.join(".cargo/config.toml");
    fs::create_dir_all(folder.join(".cargo"))
        .and_then(|()| fs::write(&file, settings))
        .map_err(|error| format!("{}: {error}", file.display()))
}

/// Whether the folder has what HEAD has, and nothing more but what cargo has built.
fn is_clean(workspace: &Workspace) -> Result<bool, String> {
    let status = workspace.output("git", "status --porcelain --ignored")?;
    Ok(status.lines().all(|line| line == "!! target/"))
}

/// Builds the program and examples that the commands run, of what the step `test` has. Returns the
/// cargo that did.
fn build_programs<'w>(workspace: &'w Workspace, commands: &[String]) -> Result<Linted<'w>, String> {
    let built = Linted::of_the_tests(workspace)?;
    let mut build = built.cargo("build --workspace --all-features --bin thalweg");
    let examples = commands
        .iter()
        .filter_map(|line| line.strip_prefix("cargo run --example "));
    build.args(examples.flat_map(|line| ["--example", line.split(' ').next().unwrap_or(line)]));
    workspace.run(&mut build)?;
    Ok(built)
}

fn fresh_clone(workspace: &Workspace) -> Result<Outcome, String> {
    if let Err(why) = workspace.output("git", "rev-parse HEAD") {
        let why = why.lines().next().unwrap_or_default().to_owned();
        return Ok(Outcome::Skipped(format!(
            "git gives no HEAD to clone: {why}"
        )));
    }
    let folder = env::temp_dir().join(format!("thalweg-clone-{}", process::id()));
    let scratch = Scratch(folder);
    // Files that the README puts beside the clone are inside the folder that is removed.
    let clone = scratch.0.join("thalweg");
    workspace.run(
        workspace
            .command("git")
            .args(["clone", "--quiet", "."])
            .arg(&clone),
    )?;
    let readme = fs::read_to_string(clone.join("README.md"));
    let readme = readme.map_err(|error| format!("README.md of HEAD: {error}"))?;
    let (program, pasted) = (program(&readme)?, clone.join(PASTED));
    let commands = commands(&readme)?;
    let tested = match is_clean(workspace)? {
        true => Some(build_programs(workspace, &commands)?),
        false => None,
    };
    workspace.say(match tested {
        Some(_) => "this folder is HEAD: the clone is checked, and runs the programs built here",
        None => "this folder is not HEAD: the clone compiles its programs",
    })?;
    compile_quickly(&scratch.0)?;
    let built = Scratch(workspace.target.join("clone"));
    share_dependencies(workspace, &built.0)?;
    let installed = scratch.0.join("installed");
    let path = env::var_os("PATH").unwrap_or_default();
    let path = iter::once(installed.join("bin")).chain(env::split_paths(&path));
    let path = env::join_paths(path).map_err(|error| format!("PATH: {error}"))?;
    // The tests of the tree have run, in a step of their own.
    for line in commands.iter().filter(|line| *line != TEST) {
        let line = unoptimised(line);
        workspace.say(format_args!("$ {line}"))?;
        if pasted.is_file() {
            // The command before has made its crate.
            let written = fs::write(&pasted, &program);
            written.map_err(|error| format!("{}: {error}", pasted.display()))?;
        }
        let mut command = workspace.command("sh");
        command
            .args(["-e", "-c", &line])
            .current_dir(&clone)
            .env("PATH", &path)
            .env("CARGO_INSTALL_ROOT", &installed)
            .env("CARGO_TARGET_DIR", &built.0);
        if let Some(tested) = &tested {
            tested.check_only(&mut command)?;
        }
        workspace.run(&mut command)?;
    }
    Ok(Outcome::Passed)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn commands_are_run_unoptimised() {
        assert_eq!(unoptimised("cargo run --release -- a"), "cargo run -- a");
        assert_eq!(unoptimised("thalweg a --release"), "thalweg a --release");
        let run = unoptimised("cargo run --release -- exchange run");
        assert_eq!(run, "cargo run -- exchange run --commands 100k");
        assert_eq!(unoptimised("exchange run a.csv"), "exchange run a.csv");
        let install = unoptimised("cargo install --locked --path a");
        assert_eq!(install, "cargo install --debug --locked --path a");
    }

    #[test]
    fn cargo_does_not_build_while_its_lock_is_held() {
        let name = format!("thalweg-gate-lock-{}", process::id());
        let scratch = Scratch(env::temp_dir().join(name));
        fs::create_dir_all(&scratch.0).expect("there is room");
        let lock = || locked(&scratch.0).expect("the folder is there");
        assert!(lock().is_none());
        let of_cargo = File::create(scratch.0.join(".cargo-lock")).expect("there is room");
        let held = lock();
        let refused = of_cargo.try_lock();
        assert!(
            matches!(refused, Err(fs::TryLockError::WouldBlock)),
            "{refused:?}"
        );
        drop(held);
        of_cargo.try_lock().expect("it is free");
    }

    #[test]
    fn what_the_profile_optimises_is_not_optimised_in_the_clone() {
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../Cargo.toml");
        let manifest = fs::read_to_string(manifest).expect("it is there");
        let (_, section) = manifest
            .split_once("[profile.dev.package]\n")
            .expect("it has the section");
        let lines = section.lines().take_while(|line| !line.starts_with('['));
        let names = lines.filter_map(|line| Some(line.split_once(".opt-level")?.0));
        let ours = names.filter(|name| name.starts_with("thalweg-"));
        assert_eq!(BTreeSet::from_iter(ours), BTreeSet::from(OPTIMISED));
    }

    #[test]
    fn the_gate_holds_every_step_of_the_test_command() {
        let names: Vec<&str> = steps().iter().map(|step| step.name).collect();
        assert!(
            testing::STEPS.iter().all(|step| names.contains(&step.name)),
            "{names:?}"
        );
    }
}
