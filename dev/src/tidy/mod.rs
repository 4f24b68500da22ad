//! `cargo dev tidy`: the habits of the house that a machine can check.
//!
//! Rules read text and tokens, not types: they take a second, need no build, and are meant to be
//! easy to add to. Each has cases that it must reject and must accept.

mod circle;
mod leftover;
mod length;
mod link;
mod manifest;
mod memory;
mod naming;
pub(crate) mod policy;
mod rule;
mod rust_lexer;
mod source;
mod text;
mod type_name;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, io};

use rule::{Finding, Findings, Rule};
use source::Tree;

/// Every rule, in the order of `--list`.
pub(crate) fn rules() -> impl Iterator<Item = &'static Rule> {
    let parts = [
        length::RULES,
        circle::RULES,
        text::RULES,
        link::RULES,
        memory::RULES,
        leftover::RULES,
        naming::RULES,
        type_name::RULES,
        manifest::RULES,
    ];
    parts.into_iter().flatten()
}

/// The findings of tidy, and how much it looked at.
pub(crate) struct Report {
    files: usize,
    findings: Vec<Finding>,
}

impl Report {
    /// Prints every finding, then a line that sums them up; true if there is none.
    pub(crate) fn print(&self) -> bool {
        for finding in &self.findings {
            println!("{finding}");
        }
        let (count, found) = (rules().count(), self.findings.len());
        println!(
            "tidy: {} files, {count} rules, {found} findings",
            self.files
        );
        self.findings.is_empty()
    }
}

/// Prints each rule with its summary.
pub(crate) fn print_rules() {
    for rule in rules() {
        println!("{:18} {}", rule.name, rule.summary);
    }
}

/// Checks the tree at `root`; with `paths`, tells only of what is in those files and folders.
///
/// # Errors
/// A path that does not exist, or a file that cannot be read.
pub(crate) fn check(root: &Path, paths: &[String]) -> Result<Report, String> {
    let mut wanted = Vec::new();
    for path in paths {
        wanted.push(relative(root, path)?);
    }
    let tree = read(root)?;
    let is_wanted = |path: &str| {
        wanted.is_empty()
            || wanted
                .iter()
                .any(|place| Path::new(path).starts_with(place))
    };
    let files = tree
        .files
        .iter()
        .filter(|file| is_wanted(&file.path))
        .count();
    let mut findings = Findings::of(&tree, rules());
    findings.retain(|finding| is_wanted(&finding.path));
    Ok(Report { files, findings })
}

/// A path of the command line as seen from the root.
fn relative(root: &Path, path: &str) -> Result<PathBuf, String> {
    let say = |error: io::Error| format!("{path}: {error}");
    let full = fs::canonicalize(path).map_err(say)?;
    let root = fs::canonicalize(root).map_err(say)?;
    match full.strip_prefix(&root) {
        Ok(inside) => Ok(inside.to_owned()),
        Err(_) => Err(format!("{path}: outside the workspace {}", root.display())),
    }
}

/// Reads every text file, and the names of pictures; `Cargo.lock` is cargo's.
fn read(root: &Path) -> Result<Tree, String> {
    let mut files = Vec::new();
    for path in list(root)? {
        let full = root.join(&path);
        if path.ends_with("Cargo.lock") || !full.is_file() {
            continue;
        }
        let bytes = fs::read(&full).map_err(|error| format!("{path}: {error}"))?;
        match String::from_utf8(bytes) {
            Ok(text) if !text.contains('\0') => files.push((path, text)),
            Ok(_) => {}
            Err(_) if path.ends_with(".rs") => return Err(format!("{path}: not UTF-8")),
            // A picture is there for links, and has no lines.
            Err(_) if path.ends_with(".png") => files.push((path, String::new())),
            Err(_) => {}
        }
    }
    Ok(Tree::new(files))
}

/// Files that git tracks or would track.
fn list(root: &Path) -> Result<Vec<String>, String> {
    let listing = Command::new("git")
        .args([
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
        ])
        .current_dir(root)
        .output()
        .map_err(|error| format!("git: {error}"))?;
    if !listing.status.success() {
        let why = String::from_utf8_lossy(&listing.stderr);
        return Err(format!("git lists no files: {}", why.trim_end()));
    }
    let names = String::from_utf8_lossy(&listing.stdout);
    let mut paths: Vec<_> = names.split_terminator('\0').map(str::to_owned).collect();
    paths.sort();
    paths.dedup();
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::rule::case::Case;
    use super::*;

    #[test]
    fn a_path_that_is_not_there_is_named() {
        let error = check(Path::new("."), &["no/such/file.rs".to_owned()])
            .err()
            .unwrap();
        assert!(error.starts_with("no/such/file.rs: "), "{error}");
    }

    #[test]
    fn a_path_outside_the_workspace_is_refused() {
        let error = check(Path::new("src"), &["..".to_owned()]).err().unwrap();
        assert!(error.contains("outside the workspace"), "{error}");
    }

    fn cases() -> Vec<Case> {
        let parts = [
            length::tests::cases(),
            circle::tests::cases(),
            text::tests::cases(),
            link::tests::cases(),
            memory::tests::cases(),
            leftover::tests::cases(),
            naming::tests::cases(),
            type_name::tests::cases(),
            manifest::tests::cases(),
        ];
        parts.into_iter().flatten().collect()
    }

    #[test]
    fn every_rule_has_a_case_to_reject_and_one_to_accept() {
        let cases = cases();
        for rule in rules() {
            let of_rule = || cases.iter().filter(|case| case.rule == rule.name);
            assert!(
                of_rule().any(|case| case.line.is_some()),
                "{} rejects nothing",
                rule.name
            );
            assert!(
                of_rule().any(|case| case.line.is_none()),
                "{} accepts nothing",
                rule.name
            );
        }
        for case in &cases {
            assert!(
                rules().any(|rule| rule.name == case.rule),
                "no rule {}",
                case.rule
            );
        }
    }

    #[test]
    fn every_case_is_judged_as_it_says() {
        for case in cases() {
            let tree = Tree::new(case.files.clone());
            let mut findings = Findings::of(&tree, rules());
            findings.retain(|finding| finding.rule == case.rule);
            let lines: Vec<usize> = findings.iter().map(|finding| finding.line).collect();
            let expected: Vec<usize> = case.line.into_iter().collect();
            assert_eq!(
                lines, expected,
                "{} on {:?}: {findings:?}",
                case.rule, case.files
            );
        }
    }

    #[test]
    fn names_are_unique_and_every_rule_is_summed_up_in_a_line() {
        let mut names: Vec<_> = rules().map(|rule| rule.name).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
        assert!(rules().all(|rule| !rule.summary.is_empty() && !rule.summary.contains('\n')));
    }

    #[test]
    fn a_finding_reads_as_path_line_rule_message() {
        let tree = Tree::new([("src/a.rs".to_owned(), "fn a() {}".to_owned())]);
        let found = Findings::of(&tree, rules());
        let texts: Vec<String> = found.iter().map(Finding::to_string).collect();
        assert_eq!(
            texts,
            ["src/a.rs:1: final-newline: the file does not end with one newline"]
        );
    }
}
