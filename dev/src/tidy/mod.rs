//! `cargo dev tidy`: the habits of the house that a machine can check.
//!
//! Rules read text and tokens, not types: they take a second, need no build, and are meant to be
//! easy to add to. Each has cases that it must reject and must accept.

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

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, io};

use rule::{Finding, Findings};
use source::Tree;

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
        let (rules, found) = (rule::rules().count(), self.findings.len());
        println!(
            "tidy: {} files, {rules} rules, {found} findings",
            self.files
        );
        self.findings.is_empty()
    }
}

/// Prints each rule with its summary.
pub(crate) fn print_rules() {
    for rule in rule::rules() {
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
    let mut findings = Findings::of(&tree);
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

/// Reads every text file; `Cargo.lock` is cargo's.
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
            Err(_) => {}
        }
    }
    Ok(Tree::new(files))
}

/// Files that git tracks or would track; without git, every file outside `target` and hidden
/// folders.
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
        .output();
    let mut paths = match listing {
        Ok(output) if output.status.success() => {
            let names = String::from_utf8_lossy(&output.stdout);
            names.split_terminator('\0').map(str::to_owned).collect()
        }
        _ => {
            println!("tidy: git gives no list of files; looking at the folders themselves");
            let mut paths = Vec::new();
            walk(root, Path::new(""), &mut paths).map_err(|error| error.to_string())?;
            paths
        }
    };
    paths.sort();
    paths.dedup();
    Ok(paths)
}

fn walk(root: &Path, folder: &Path, paths: &mut Vec<String>) -> io::Result<()> {
    for entry in fs::read_dir(root.join(folder))? {
        let entry = entry?;
        let path = folder.join(entry.file_name());
        let hidden = entry.file_name().to_string_lossy().starts_with('.');
        if entry.file_type()?.is_dir() {
            if !hidden && path.file_name() != Some(OsStr::new("target")) {
                walk(root, &path, paths)?;
            }
        } else if let Some(path) = path.to_str() {
            paths.push(path.replace('\\', "/"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
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

    #[test]
    fn folders_are_walked_without_git() {
        let mut paths = Vec::new();
        walk(
            Path::new(env!("CARGO_MANIFEST_DIR")),
            Path::new(""),
            &mut paths,
        )
        .unwrap();
        assert!(paths.contains(&"src/tidy/mod.rs".to_owned()), "{paths:?}");
        assert!(!paths.iter().any(|path| path.starts_with("target/")));
    }
}
