//! The public items of the crates that people add, against a list of each in the tree: a change of
//! them shows in a review, and a line that goes is a breaking change. `cargo public-api` makes the
//! lists of what rustdoc writes as JSON where the step `lint` builds the crates.
//! `cargo semver-checks` has rules for what breaks users, and compares with a revision: the last
//! tag, or the one that is asked for.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::builds::libraries;
use crate::linted::Linted;
use crate::plan::{Outcome, Step};
use crate::workspace::Workspace;

/// The step of the gate.
pub(crate) const STEP: Step = Step {
    name: "api",
    summary: "public items are those of crates/*/public-api.txt (cargo-public-api)",
    has_own_folder: true,
    run: |workspace| match of_all(workspace, compare)? {
        Outcome::Passed => since_the_tag(workspace),
        skipped => Ok(skipped),
    },
};

/// The step of `cargo dev api --update`.
pub(crate) const UPDATE: Step = Step {
    summary: "writes crates/*/public-api.txt",
    run: |workspace| {
        of_all(workspace, |path, list| {
            fs::write(path, list).map_err(|error| format!("{}: {error}", path.display()))
        })
    },
    ..STEP
};

/// The version of the tool: another one may write lines in another way.
const TOOL: &str = "cargo-public-api 0.52.0";

/// The version of the rules; it reads format 57, which rustdoc 1.95 and the nightly 1.97 write.
const RULES: &str = "cargo-semver-checks 0.51.0";

/// Checks against the last tag. Before the first there is no release that a change could break.
fn since_the_tag(workspace: &Workspace) -> Result<Outcome, String> {
    if workspace.output("git", "tag --merged HEAD")?.is_empty() {
        return Ok(Outcome::Passed);
    }
    let tag = workspace.output("git", "describe --tags --abbrev=0")?;
    check_since(workspace, &tag)
}

/// Looks for what breaks users of the crates, in place of a revision.
///
/// # Errors
/// Something does, or the tool fails.
pub(crate) fn check_since(workspace: &Workspace, revision: &str) -> Result<Outcome, String> {
    if workspace
        .output("cargo", "semver-checks --version")
        .as_deref()
        != Ok(RULES)
    {
        return Ok(missing(RULES));
    }
    let mut command = workspace.cargo("semver-checks --all-features --release-type minor");
    command
        .args(["--baseline-rev", revision])
        .args(libraries().flat_map(|name| ["--package", name]))
        .env("CARGO_TARGET_DIR", workspace.target.join("api"));
    workspace.run(&mut command).map(|()| Outcome::Passed)
}

fn missing(tool: &str) -> Outcome {
    let install = tool.replace(' ', "@");
    Outcome::Skipped(format!(
        "no {tool}; `cargo install --locked {install}` has it"
    ))
}

/// Builds the crates as the step `lint` does: these examples need all of them.
const BUILD: &str = "build --workspace --all-features --example requests --example trade";

/// Hands the list of each crate, and the path where it is kept, to `with`.
fn of_all(
    workspace: &Workspace,
    with: impl Fn(&PathBuf, &str) -> Result<(), String>,
) -> Result<Outcome, String> {
    let found = workspace.output("cargo", "public-api --version");
    if found.as_deref() != Ok(TOOL) {
        return Ok(missing(TOOL));
    }
    let Some(linted) = Linted::new(workspace)? else {
        return Ok(Outcome::Skipped("clippy is not installed".to_owned()));
    };
    workspace.compile(&mut linted.cargo(BUILD))?;
    let mut failures = Vec::new();
    for name in libraries() {
        let path = workspace.root.join(format!("crates/{name}/public-api.txt"));
        let result = list(workspace, &linted.items(name)).and_then(|list| with(&path, &list));
        failures.extend(result.err());
    }
    match failures.is_empty() {
        true => Ok(Outcome::Passed),
        false => Err(failures.join("\n")),
    }
}

/// Returns the public items that a file has, without what the compiler derives.
fn list(workspace: &Workspace, items: &Path) -> Result<String, String> {
    let mut command = workspace.cargo("public-api -sss --rustdoc-json");
    let output = command.arg(items).output();
    let output = output.map_err(|error| format!("cargo: {error}"))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => {
            let said = String::from_utf8_lossy(&output.stderr);
            Err(format!("{}: {said}", items.display()))
        }
    }
}

/// The number of lines of a difference that are shown.
const SHOWN: usize = 20;

fn compare(path: &PathBuf, list: &str) -> Result<(), String> {
    let known = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    match difference(&known, list) {
        None => Ok(()),
        Some(lines) => Err(format!(
            "{}: not what is public; `cargo dev api --update` writes what is\n{lines}",
            path.display()
        )),
    }
}

/// Returns the lines that went, which users may miss, and those that came; `None` without any.
fn difference(known: &str, list: &str) -> Option<String> {
    let (old, new): (BTreeSet<&str>, BTreeSet<&str>) =
        (known.lines().collect(), list.lines().collect());
    let gone = old.difference(&new).map(|line| format!("- {line}"));
    let come = new.difference(&old).map(|line| format!("+ {line}"));
    let mut lines: Vec<String> = gone.chain(come).collect();
    if lines.len() > SHOWN {
        let more = lines.len() - SHOWN;
        lines.truncate(SHOWN);
        lines.push(format!("and {more} more"));
    }
    (!lines.is_empty()).then(|| lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_went_is_named_before_what_came() {
        assert_eq!(difference("a\nb\n", "b\na\n"), None);
        let found = difference("pub fn a(u8)\nb\n", "b\npub fn a(u16)\n");
        assert_eq!(found.as_deref(), Some("- pub fn a(u8)\n+ pub fn a(u16)"));
        let many: String = (0..30).map(|number| format!("{number}\n")).collect();
        let found = difference(&many, "").expect("all went");
        assert!(found.ends_with("and 10 more"), "{found}");
    }
}
