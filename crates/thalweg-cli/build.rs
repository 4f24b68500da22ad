//! Passes the commit that the program is built from to the compiler, where that commit is known.

use std::path::Path;
use std::process::Command;

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let text = text.trim();
    (output.status.success() && !text.is_empty()).then(|| text.to_owned())
}

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // An unpacked registry package is not a repository of its own, although it may lie inside one.
    let Some(head) = git(&["ls-files", "build.rs"]).and(git(&["rev-parse", "--git-path", "HEAD"]))
    else {
        return;
    };
    let log = git(&["rev-parse", "--git-path", "logs/HEAD"]);
    for path in [Some(head), log].into_iter().flatten() {
        // Cargo would treat a path that does not exist as changed at every build.
        if Path::new(&path).exists() {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    if let Some(commit) = git(&["describe", "--always", "--tags"]) {
        println!("cargo::rustc-env=THALWEG_COMMIT={commit}");
    }
}
