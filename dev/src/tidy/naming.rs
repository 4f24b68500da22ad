//! Names of files and folders.

use super::policy::EMPTY_NAMES;
use super::rule::{Findings, Rule};
use super::source::Tree;

pub(crate) const RULES: &[Rule] = &[Rule {
    name: "file-name",
    summary: "a file or folder is named by what is in it: no utils, common, helpers, misc",
    check: file_name,
}];

fn file_name(tree: &Tree, findings: &mut Findings) {
    for file in &tree.files {
        for part in file.path.split('/') {
            let stem = part.split('.').next().unwrap_or(part);
            if EMPTY_NAMES.contains(&stem) {
                findings.add(
                    &file.path,
                    1,
                    format!("`{part}` says nothing of what is inside"),
                );
            }
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::rule::case::Case;

    pub(crate) fn cases() -> Vec<Case> {
        vec![
            Case::rejects("file-name", 1, "src/utils.rs", "\n"),
            Case::rejects("file-name", 1, "tests/common/mod.rs", "\n"),
            Case::accepts("file-name", "src/commonality.rs", "\n"),
            Case::accepts("file-name", "src/ring/lane.rs", "\n"),
        ]
    }
}
