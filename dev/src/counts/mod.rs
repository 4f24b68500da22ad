//! `cargo dev counts`: instructions of the operations that have to be short, against a baseline.
//!
//! Times need a quiet machine; instruction counts need none, and come out the same in every run.
//! The program `counts` runs the operations, valgrind's callgrind counts, and `baseline.toml`
//! holds what is expected. Counts depend on the compiler and on the instruction set, so both are
//! fixed: an x86-64 without extensions, and the compiler named in the baseline. What libc copies
//! with is fixed too, see [`PLAIN_COPIES`].

mod baseline;
mod callgrind;
mod comparison;

use std::fs;
use std::path::PathBuf;

use crate::plan::Outcome;
use crate::workspace::Workspace;
use baseline::Baseline;
use comparison::Comparison;

const BASELINE: &str = "counts/baseline.toml";
const HOST: &str = "x86_64-unknown-linux-gnu";
/// The instruction set that is built for: the one that every x86-64 has.
const TARGET_CPU: &str = "x86-64";

/// Makes glibc copy with SSE2, whatever the processor has. It chooses when a program starts, and a
/// batch of 64 elements of 32 bytes costs 604 instructions with AVX and 982 without.
const PLAIN_COPIES: &str = "glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-AVX2,-AVX_Fast_Unaligned_Load,\
                            -SSSE3,-ERMS,-FSRM";

/// The step of the gate: skipped where it cannot count, and where another compiler is in use.
pub(crate) fn step(workspace: &Workspace) -> Result<Outcome, String> {
    let release = match release(workspace) {
        Ok(release) => release,
        Err(why) => return Ok(Outcome::Skipped(why)),
    };
    let expected = read(workspace)?;
    if expected.rustc != release {
        let theirs = expected.rustc;
        return Ok(Outcome::Skipped(format!(
            "the baseline is of rustc {theirs}, this is {release}"
        )));
    }
    if compare(workspace, &expected)? {
        Ok(Outcome::Passed)
    } else {
        Err(format!("counts differ from {BASELINE}"))
    }
}

/// `cargo dev counts [--update]`; true if the counts are those of the baseline, or were made it.
///
/// # Errors
/// Another argument, or it cannot be counted here.
pub(crate) fn command(args: &[String]) -> Result<bool, String> {
    let update = match args {
        [] => false,
        [option] if option == "--update" => true,
        _ => return Err(format!("{}: counts takes --update alone", args.join(" "))),
    };
    let workspace = crate::here()?;
    let release = release(&workspace)?;
    if update {
        let counted = Baseline {
            rustc: release,
            counts: count(&workspace)?,
        };
        let path = workspace.root.join(BASELINE);
        fs::write(path, counted.to_string()).map_err(|error| format!("{BASELINE}: {error}"))?;
        println!("{BASELINE}: {} counts written", counted.counts.len());
        return Ok(true);
    }
    let expected = read(&workspace)?;
    if expected.rustc != release {
        let theirs = &expected.rustc;
        println!("the baseline is of rustc {theirs}, this is {release}: counts may differ by that");
    }
    compare(&workspace, &expected)
}

/// The compiler's version.
///
/// # Errors
/// Why it cannot be counted here.
fn release(workspace: &Workspace) -> Result<String, String> {
    let version = workspace.output("rustc", "--version --verbose")?;
    let field = |name: &str| version.lines().find_map(|line| line.strip_prefix(name));
    let host = field("host: ").unwrap_or("an unknown host");
    if host != HOST {
        return Err(format!("the baseline is for {HOST}, this is {host}"));
    }
    if !workspace.works("valgrind", "--version") {
        return Err("valgrind is not installed".to_owned());
    }
    let release = field("release: ").ok_or("rustc does not tell its release")?;
    Ok(release.to_owned())
}

fn read(workspace: &Workspace) -> Result<Baseline, String> {
    let text = fs::read_to_string(workspace.root.join(BASELINE));
    let text = text.map_err(|error| format!("{BASELINE}: {error}"))?;
    Baseline::parse(&text).map_err(|error| format!("{BASELINE}: {error}"))
}

fn compare(workspace: &Workspace, expected: &Baseline) -> Result<bool, String> {
    let comparison = Comparison::new(&expected.counts, &count(workspace)?);
    workspace.say(comparison.to_string().trim_end())?;
    if !comparison.holds() {
        workspace
            .say("If that is meant: `cargo dev counts --update`, and say in the commit why.")?;
    }
    Ok(comparison.holds())
}

/// Builds and counts.
fn count(workspace: &Workspace) -> Result<baseline::Counts, String> {
    // A folder of its own: the flags are not those of other builds.
    let target = workspace.target.join("counts");
    let mut build = workspace.cargo("build --quiet --release --package counts");
    build
        .env("CARGO_TARGET_DIR", &target)
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .env("RUSTFLAGS", format!("-C target-cpu={TARGET_CPU}"))
        // Line numbers would only make the counter's files larger.
        .env("CARGO_PROFILE_RELEASE_DEBUG", "0");
    workspace.compile(&mut build)?;
    let dumps = fresh(target.join("callgrind"))?;
    let mut counter = workspace.command("valgrind");
    counter
        .args(callgrind::options(&dumps))
        .arg(target.join("release/counts"))
        .env("GLIBC_TUNABLES", PLAIN_COPIES);
    let output = counter
        .output()
        .map_err(|error| format!("valgrind: {error}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("valgrind: {}: {}", output.status, said.trim_end()));
    }
    let calls = callgrind::calls(&String::from_utf8_lossy(&output.stdout))?;
    let totals = callgrind::totals(&dumps, calls.len())?;
    callgrind::per_round(&calls, &totals)
}

/// An empty folder.
fn fresh(folder: PathBuf) -> Result<PathBuf, String> {
    let failed = |error| format!("{}: {error}", folder.display());
    if folder.exists() {
        fs::remove_dir_all(&folder).map_err(failed)?;
    }
    fs::create_dir_all(&folder).map_err(failed)?;
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misuse_is_named() {
        let error = command(&["--updat".to_owned()]).unwrap_err();
        assert_eq!(error, "--updat: counts takes --update alone");
    }

    /// The checked-in baseline, line by line with a fault: each must be found, by its name.
    #[test]
    fn a_fault_in_any_line_of_the_baseline_is_refused() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).parent();
        let text = fs::read_to_string(root.unwrap().join(BASELINE)).unwrap();
        let counted = Baseline::parse(&text).unwrap().counts;
        assert!(Comparison::new(&counted, &counted).holds());
        for (name, count) in &counted {
            for (factor, holds) in [(1.04, false), (0.96, false), (1.02, true), (0.98, true)] {
                let mut altered = counted.clone();
                altered.insert(name.clone(), count * factor);
                let comparison = Comparison::new(&altered, &counted);
                assert_eq!(comparison.holds(), holds, "{name} × {factor}");
                let found = comparison.to_string().contains(&format!("\n{name}: "));
                assert_eq!(found, !holds, "{comparison}");
            }
            let mut without = counted.clone();
            without.remove(name);
            assert!(!Comparison::new(&without, &counted).holds(), "{name}");
            assert!(!Comparison::new(&counted, &without).holds(), "{name}");
        }
    }
}
