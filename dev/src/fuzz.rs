//! The fuzz targets of `fuzz/`, each for a few seconds with a fixed seed, and each against the
//! fault that is seeded in it.
//!
//! Built as cargo-fuzz does without a sanitizer, which needs neither that program nor a nightly
//! compiler, but a C++ compiler for libFuzzer itself.

use std::fs;
use std::path::Path;
use std::process::ExitStatus;

use crate::gate::host_of;
use crate::plan::Outcome;
use crate::testing::rustflags;
use crate::workspace::Workspace;

const TARGETS: [&str; 8] = [
    "codec",
    "engine",
    "hash",
    "journal_block",
    "journal_recovery",
    "session",
    "state",
    "streams",
];

/// What tells libFuzzer which code an input has reached.
const COVERAGE: &str = "--cfg fuzzing -Cpasses=sancov-module \
    -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares";

/// Time for each target to find nothing.
const SECONDS: u32 = 2;
/// Time for each to find its fault; it takes much less.
const FAULT_SECONDS: u32 = 30;
/// How libFuzzer ends when it has found something.
const FOUND: i32 = 77;

pub(crate) fn step(workspace: &Workspace) -> Result<Outcome, String> {
    if !workspace.works("c++", "--version") {
        let why = "no C++ compiler, which libFuzzer is built with";
        return Ok(Outcome::Skipped(why.to_owned()));
    }
    let host = workspace.output("rustc", "--version --verbose")?;
    let host = host_of(&host).to_owned();
    let folder = workspace.target.join("fuzz");
    build(workspace, &host, &folder)?;
    search_all(workspace, &host, &folder, &Search::nothing(7, SECONDS))?;
    for target in TARGETS {
        let (status, _) = fuzz(workspace, &host, &folder, target, &Search::FAULT)?;
        if status.code() != Some(FOUND) {
            return Err(format!(
                "{target}: the seeded fault was not found: {status}"
            ));
        }
        workspace.say(format_args!("{target}: the seeded fault was found"))?;
    }
    Ok(Outcome::Passed)
}

/// What a target looks for, and for how long.
struct Search {
    /// Whether the fault that is seeded is there to be found.
    fault: bool,
    /// 1 to 2³² - 1; libFuzzer takes another one for 0.
    seed: u64,
    seconds: u32,
}

impl Search {
    const FAULT: Self = Self {
        fault: true,
        seed: 7,
        seconds: FAULT_SECONDS,
    };

    const fn nothing(seed: u64, seconds: u32) -> Self {
        Self {
            fault: false,
            seed,
            seconds,
        }
    }
}

fn search_all(
    workspace: &Workspace,
    host: &str,
    folder: &Path,
    search: &Search,
) -> Result<(), String> {
    for target in TARGETS {
        let (status, said) = fuzz(workspace, host, folder, target, search)?;
        if !status.success() {
            workspace.say(said)?;
            return Err(format!("{target}: {status}; the input is printed above"));
        }
        let seconds = search.seconds;
        workspace.say(format_args!("{target}: nothing found in {seconds} s"))?;
    }
    Ok(())
}

/// Runs each target for `seconds`, from a seed.
///
/// # Errors
/// There is no C++ compiler, or a target finds something; the input is printed.
pub(crate) fn for_longer(workspace: &Workspace, seed: u64, seconds: u32) -> Result<(), String> {
    if !workspace.works("c++", "--version") {
        return workspace.say("skipped: no C++ compiler, which libFuzzer is built with");
    }
    let host = workspace.output("rustc", "--version --verbose")?;
    let host = host_of(&host).to_owned();
    let folder = workspace.target.join("fuzz");
    build(workspace, &host, &folder)?;
    search_all(
        workspace,
        &host,
        &folder,
        &Search::nothing(seed % u64::from(u32::MAX) + 1, seconds),
    )
}

/// With a target, what is built for building (scripts, macros) is spared the flags.
fn build(workspace: &Workspace, host: &str, folder: &Path) -> Result<(), String> {
    let manifest = "build --quiet --manifest-path fuzz/Cargo.toml --release";
    let mut command = workspace.cargo(manifest);
    command
        .args(["--target", host])
        .env("RUSTFLAGS", rustflags(COVERAGE))
        .env("CARGO_TARGET_DIR", folder);
    workspace.compile(&mut command)
}

/// How a target ends, and what it says. It begins with the inputs of `fuzz/seeds`, and with nothing
/// that an earlier run has made of them.
fn fuzz(
    workspace: &Workspace,
    host: &str,
    folder: &Path,
    target: &str,
    search: &Search,
) -> Result<(ExitStatus, String), String> {
    let artifacts = folder.join("artifacts");
    let corpus = folder.join("corpus").join(target);
    if corpus.exists() {
        fs::remove_dir_all(&corpus).map_err(|error| format!("{}: {error}", corpus.display()))?;
    }
    for new in [&artifacts, &corpus] {
        fs::create_dir_all(new).map_err(|error| format!("{}: {error}", new.display()))?;
    }
    let program = folder.join(host).join("release").join(target);
    let mut command = workspace.command(&program.display().to_string());
    if search.fault {
        command.env("THALWEG_FUZZ_FAULT", "1");
    }
    let output = command
        .args(["-verbosity=0", "-timeout=10"])
        .arg(format!("-seed={}", search.seed))
        .arg(format!("-max_total_time={}", search.seconds))
        .arg(format!(
            "-artifact_prefix={}/{target}-",
            artifacts.display()
        ))
        .arg(corpus)
        .arg(workspace.root.join("fuzz/seeds").join(target))
        .output()
        .map_err(|error| format!("{}: {error}", program.display()))?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    Ok((output.status, said))
}
