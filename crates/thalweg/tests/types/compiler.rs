//! Asks the compiler what it refuses, and why.
//!
//! All lines of a file are tried in one run, which costs a quarter of a second; a `compile_fail`
//! doc test for each line would be a run for each, and on a stable compiler does not look at the
//! error's number.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// The mark before the error that a line must give: the beginning of its number and text.
const MARK: &str = "//~ ";

/// Compiles `source` with the library that this test was built with. Each line with a [`MARK`] must
/// give errors that all begin as it says, and the others none.
pub(crate) fn assert_refused(library: &str, source: &str) {
    let Some(text) = output(library, source, "short") else {
        return;
    };
    let errors: Vec<_> = text.lines().filter_map(placed).collect();
    let lines = (1..).zip(source.lines());
    let marks = lines.filter_map(|(line, text)| Some((line, text.split_once(MARK)?.1)));
    let expected: BTreeMap<usize, &str> = marks.collect();
    assert!(!expected.is_empty(), "nothing to be refused");
    let lines: BTreeSet<usize> = errors.iter().map(|(line, _)| *line).collect();
    let accepted = expected.keys().filter(|line| !lines.contains(line));
    let accepted: Vec<_> = accepted.map(|line| source.lines().nth(line - 1)).collect();
    assert!(accepted.is_empty(), "compiles, and must not: {accepted:#?}");
    let as_expected = |(line, error): &&(usize, String)| {
        (expected.get(line)).is_some_and(|expected| error.starts_with(expected))
    };
    let others: Vec<_> = errors.iter().filter(|error| !as_expected(error)).collect();
    assert!(others.is_empty(), "refused for other reasons: {others:#?}");
}

/// Returns the line of an error in the short format, and its number, if it has one, with its text.
fn placed(line: &str) -> Option<(usize, String)> {
    let (place, error) = line.split_once(": error")?;
    let line = place.split(':').nth(1)?.parse().ok()?;
    let error = error.replacen(['[', ']'], "", 2);
    Some((line, error.trim_start_matches(": ").to_owned()))
}

/// Returns the output of `rustc` for `source`, which it must refuse; nothing if it can't use the
/// library.
pub(crate) fn output(library: &str, source: &str, format: &str) -> Option<String> {
    let program = std::env::current_exe().expect("this program");
    let folder = program.parent().expect("it is in a folder");
    let built = |name: &str| newest(folder, &format!("lib{name}-"));
    if built("std").is_some() {
        println!("skipped: the standard library was built too, and rustc has another one");
        return None;
    }
    let path = built(library).unwrap_or_else(|| panic!("no {library} beside {program:?}"));
    let beside_cargo = Path::new(env!("CARGO")).with_file_name("rustc");
    let rustc = std::env::var_os("RUSTC").unwrap_or(beside_cargo.into());
    let mut command = Command::new(rustc);
    command.args(["-", "--edition=2024", "--crate-type=lib", "--emit=metadata"]);
    command.arg(concat!("--out-dir=", env!("CARGO_TARGET_TMPDIR")));
    command.args(["--cap-lints=allow", &format!("--error-format={format}")]);
    command.arg(format!("-Ldependency={}", folder.display()));
    // Where a target is named, macros of dependencies are built for the host, in its own folder.
    let host = folder.join("../../../debug/deps");
    command.arg(format!("-Ldependency={}", host.display()));
    command.arg(format!("--extern={library}={path}"));
    command.args(
        std::env::var("RUSTFLAGS")
            .unwrap_or_default()
            .split_whitespace(),
    );
    command.stdin(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("rustc");
    let mut input = child.stdin.take().expect("piped");
    input.write_all(source.as_bytes()).expect("rustc reads");
    drop(input);
    let output = child.wait_with_output().expect("rustc ends");
    let text = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.success(), text.is_empty(), "{text}");
    Some(text)
}

/// The library that was built last: no other is built from later sources than this test.
fn newest(folder: &Path, start: &str) -> Option<String> {
    let files = std::fs::read_dir(folder).expect("a folder").flatten();
    let found = files.filter_map(|file| {
        let name = file.file_name().into_string().ok()?;
        let is_one = name.starts_with(start) && name.ends_with(".rlib");
        is_one.then(|| (file.metadata().and_then(|data| data.modified()).ok(), name))
    });
    let (_, name) = found.max()?;
    Some(folder.join(name).display().to_string())
}
