//! Checks of the code that a compiler makes of the kernels for 64-bit ARM: two traps, both in the
//! products, cost all that a hybrid gains, and neither shows in a result.
//!
//! Any x86-64 compiler emits this code if it has the standard library for that target. Where the
//! default one has not, `THALWEG_AARCH64_RUSTC` may name one that has.

use std::path::{Path, PathBuf};
use std::process::Command;

const TARGET: &str = "aarch64-unknown-linux-gnu";

/// A compiler with the target's standard library.
fn compiler() -> Result<String, String> {
    let named = std::env::var("THALWEG_AARCH64_RUSTC");
    let compiler = named.unwrap_or_else(|_| "rustc".to_owned());
    let printed = Command::new(&compiler)
        .args(["--print", "target-libdir", "--target", TARGET])
        .output()
        .map_err(|error| format!("{compiler}: {error}"))?;
    let libraries = PathBuf::from(String::from_utf8_lossy(&printed.stdout).trim());
    let entries = std::fs::read_dir(&libraries)
        .into_iter()
        .flatten()
        .flatten();
    let mut names = entries.map(|entry| entry.file_name());
    match names.any(|name| name.to_string_lossy().starts_with("libcore-")) {
        true => Ok(compiler),
        false => Err(format!("{compiler} has no standard library for {TARGET}")),
    }
}

/// The crate's assembly.
fn assembly(compiler: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/lib.rs");
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("thalweg-hash-aarch64.s");
    let emitted = Command::new(compiler)
        .args([
            "--edition",
            "2024",
            "--crate-type",
            "lib",
            "--target",
            TARGET,
        ])
        .args(["--crate-name", "thalweg_hash", "--emit", "asm", "-O", "-o"])
        .arg(&out)
        .args(["--cfg", "feature=\"std\""])
        .arg(&root)
        .output()
        .expect("it ran before");
    let errors = String::from_utf8_lossy(&emitted.stderr);
    assert!(emitted.status.success(), "{errors}");
    std::fs::read_to_string(&out).expect("it was just written")
}

/// The instructions of a function whose mangled name holds `part`.
fn function<'a>(assembly: &'a str, part: &str) -> Vec<Vec<&'a str>> {
    let mut lines = assembly.lines();
    let found = lines.find(|line| line.ends_with(':') && line.contains(part));
    assert!(found.is_some(), "no function {part}");
    lines
        .take_while(|line| !line.contains(".cfi_endproc"))
        .map(|line| {
            line.split([' ', '\t', ','])
                .filter(|word| !word.is_empty())
                .collect()
        })
        .filter(|words: &Vec<&str>| {
            words
                .first()
                .is_some_and(|word| !word.starts_with(['.', '/']))
        })
        .collect()
}

/// Returns how often an instruction has these first two words; an empty second one stands for any.
fn count(function: &[Vec<&str>], [name, operand]: [&str; 2]) -> usize {
    let same = |words: &&Vec<&str>| {
        words[0] == name && words.get(1).is_some_and(|word| word.starts_with(operand))
    };
    function.iter().filter(same).count()
}

#[test]
fn the_loops_are_what_they_should_be() {
    let compiler = match compiler() {
        Ok(compiler) => compiler,
        Err(why) => {
            println!("skipped: {why}");
            return;
        }
    };
    let assembly = assembly(&compiler);

    // Scalar: the product and the addition in one instruction, the rotation in one.
    let scalar = function(&assembly, "one_by_one7stripes");
    assert!(count(&scalar, ["madd", "x"]) >= 4, "{scalar:?}");
    assert!(count(&scalar, ["ror", "x"]) >= 4, "{scalar:?}");

    let hybrid = function(&assembly, "neon6groups");
    let rotations = count(&hybrid, ["ror", "x"]);
    let multiplies = count(&hybrid, ["mul", "x"]) + count(&hybrid, ["madd", "x"]);
    let products = count(&hybrid, ["umlal", "v"]);
    assert!(rotations >= 32 && products >= 16, "{hybrid:?}");
    // One multiply a rotation: the other one of each word is in the vectors. With both here, LLVM
    // has made a 64-bit multiply of the products, and taken the vectors apart.
    assert!(
        multiplies <= rotations,
        "{multiplies} multiplies, {rotations} rotations"
    );
    // And no word is taken out of a vector: products go through memory.
    let moves = count(&hybrid, ["fmov", "x"]) + count(&hybrid, ["umov", "x"]);
    let moves = moves + count(&hybrid, ["mov", "v"]);
    assert_eq!(moves, 0, "{hybrid:?}");
}
