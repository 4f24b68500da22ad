//! The fuzz targets of `fuzz/`, each for a few seconds with a fixed seed, and each against the
//! fault that is seeded in it.
//!
//! Built as cargo-fuzz does without a sanitizer, which needs neither that program nor a nightly
//! compiler, but a C++ compiler for libFuzzer itself.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use crate::plan::Outcome;
use crate::testing::rustflags;
use crate::workspace::{Workspace, host_of};

const TARGETS: [&str; 10] = [
    "codec",
    "decimal",
    "engine",
    "hash",
    "journal_block",
    "journal_recovery",
    "packed_batch",
    "session",
    "state",
    "streams",
];

/// The compiler's flags that let libFuzzer see which code an input has reached.
const COVERAGE: &str = "--cfg fuzzing -Cpasses=sancov-module \
    -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares";

/// Time for each target to find nothing.
const SECONDS: u32 = 2;
/// Time for each to find its fault; it takes much less.
const FAULT_SECONDS: u32 = 300;
/// Time in which an input must be through, also where others have the cores; each takes some ms.
const INPUT_SECONDS: u32 = 300;
/// How libFuzzer ends when it has found something.
const FOUND: i32 = 77;

/// The reason for a skip where libFuzzer cannot be built.
const NO_COMPILER: &str = "no C++ compiler, which libFuzzer is built with";

pub(crate) fn step(workspace: &Workspace) -> Result<Outcome, String> {
    let Some(targets) = Targets::build(workspace)? else {
        return Ok(Outcome::Skipped(NO_COMPILER.to_owned()));
    };
    targets.find_nothing(7, SECONDS)?;
    for target in TARGETS {
        let (status, _) = targets.fuzz(target, true, 7, FAULT_SECONDS)?;
        if status.code() != Some(FOUND) {
            return Err(format!(
                "{target}: the seeded fault was not found: {status}"
            ));
        }
        workspace.say(format_args!("{target}: the seeded fault was found"))?;
    }
    Ok(Outcome::Passed)
}

/// Runs each target for `seconds`, from a seed.
///
/// # Errors
/// A target finds something; the input is printed.
pub(crate) fn for_longer(workspace: &Workspace, seed: u64, seconds: u32) -> Result<(), String> {
    match Targets::build(workspace)? {
        // A seed is 1 to 2³² - 1; libFuzzer takes another one for 0.
        Some(targets) => targets.find_nothing(seed % u64::from(u32::MAX) + 1, seconds),
        None => workspace.say(format_args!("skipped: {NO_COMPILER}")),
    }
}

/// The targets, built for a host in a folder.
struct Targets<'w> {
    workspace: &'w Workspace,
    host: String,
    folder: PathBuf,
}

impl<'w> Targets<'w> {
    /// Returns `None` where there is no C++ compiler. With a target, what is built for building
    /// (scripts, macros) is spared the flags.
    fn build(workspace: &'w Workspace) -> Result<Option<Self>, String> {
        if !workspace.works("c++", "--version") {
            return Ok(None);
        }
        let version = workspace.output("rustc", "--version --verbose")?;
        let (host, folder) = (host_of(&version).to_owned(), workspace.target.join("fuzz"));
        let manifest = "build --quiet --manifest-path fuzz/Cargo.toml --release";
        let mut command = workspace.cargo(manifest);
        command
            .args(["--target", &host])
            .env("RUSTFLAGS", rustflags(COVERAGE))
            .env("CARGO_TARGET_DIR", &folder);
        workspace.compile(&mut command)?;
        Ok(Some(Self {
            workspace,
            host,
            folder,
        }))
    }

    fn find_nothing(&self, seed: u64, seconds: u32) -> Result<(), String> {
        for target in TARGETS {
            let (status, said) = self.fuzz(target, false, seed, seconds)?;
            if !status.success() {
                self.workspace.say(said)?;
                return Err(format!("{target}: {status}; the input is printed above"));
            }
            let found = format_args!("{target}: nothing found in {seconds} s");
            self.workspace.say(found)?;
        }
        Ok(())
    }

    /// Returns how a target ends, and what it says. It begins with the inputs of `fuzz/seeds`, and
    /// with nothing that an earlier run has made of them.
    fn fuzz(
        &self,
        target: &str,
        has_fault: bool,
        seed: u64,
        seconds: u32,
    ) -> Result<(ExitStatus, String), String> {
        let artifacts = self.folder.join("artifacts");
        let corpus = self.folder.join("corpus").join(target);
        let failed = |path: &Path, error| format!("{}: {error}", path.display());
        if corpus.exists() {
            fs::remove_dir_all(&corpus).map_err(|error| failed(&corpus, error))?;
        }
        for new in [&artifacts, &corpus] {
            fs::create_dir_all(new).map_err(|error| failed(new, error))?;
        }
        let program = self.folder.join(&self.host).join("release").join(target);
        let mut command = self.workspace.command(&program.display().to_string());
        if has_fault {
            command.env("THALWEG_FUZZ_FAULT", "1");
        }
        let artifacts = artifacts.display();
        let output = command
            .arg("-verbosity=0")
            .arg(format!("-timeout={INPUT_SECONDS}"))
            .arg(format!("-seed={seed}"))
            .arg(format!("-max_total_time={seconds}"))
            .arg(format!("-artifact_prefix={artifacts}/{target}-"))
            .arg(corpus)
            .arg(self.workspace.root.join("fuzz/seeds").join(target))
            .output()
            .map_err(|error| failed(&program, error))?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        Ok((output.status, said))
    }
}
