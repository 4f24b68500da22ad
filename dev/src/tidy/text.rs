//! White space, and words from outside the project.

use super::policy::FOREIGN_WORDS;
use super::rule::{Findings, Rule};
use super::source::{Source, Tree};

pub(crate) const RULES: &[Rule] = &[
    Rule {
        name: "white-space",
        summary: "no tab, no carriage return, no white space at the end of a line",
        check: white_space,
    },
    Rule {
        name: "final-newline",
        summary: "a text file ends with exactly one newline",
        check: final_newline,
    },
    Rule {
        name: "foreign-word",
        summary: "no tool or path of the machine that the project was written on",
        check: foreign_word,
    },
];

/// Files that people write; recorded data keeps the form it was recorded in.
fn is_written(file: &Source) -> bool {
    let written = [
        "rs", "toml", "md", "sh", "html", "css", "js", "yml", "yaml", "",
    ];
    let extension = if file.name().starts_with('.') {
        ""
    } else {
        file.extension()
    };
    written.contains(&extension)
}

fn white_space(tree: &Tree, findings: &mut Findings) {
    for file in tree.files.iter().filter(|file| is_written(file)) {
        for (number, line) in file.lines() {
            if line.contains('\t') {
                findings.add(&file.path, number, "a tab");
            } else if line.contains('\r') {
                findings.add(&file.path, number, "a carriage return");
            } else if line.trim_end() != line {
                findings.add(&file.path, number, "white space at the end of the line");
            }
        }
    }
}

fn final_newline(tree: &Tree, findings: &mut Findings) {
    for file in tree
        .files
        .iter()
        .filter(|file| is_written(file) && !file.text.is_empty())
    {
        if !file.text.ends_with('\n') || file.text.ends_with("\n\n") {
            let line = file.lines().count();
            findings.add(&file.path, line, "the file does not end with one newline");
        }
    }
}

fn foreign_word(tree: &Tree, findings: &mut Findings) {
    for file in &tree.files {
        for (number, line) in file.lines() {
            let line = line.to_lowercase();
            for word in FOREIGN_WORDS.iter().filter(|&&word| line.contains(word)) {
                findings.add(
                    &file.path,
                    number,
                    format!("`{word}` is not part of the project"),
                );
            }
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::rule::case::Case;

    pub(crate) fn cases() -> Vec<Case> {
        let word = format!("a\nrun {} 7\n", concat!("Farm", "-Bench"));
        vec![
            Case::rejects("white-space", 2, "src/a.rs", "a\n\tb\n"),
            Case::rejects("white-space", 1, "a.md", "a \nb\n"),
            Case::rejects("white-space", 1, "Cargo.toml", "a\r\n"),
            Case::rejects("white-space", 1, ".ci/run", "a \n"),
            Case::accepts("white-space", "src/a.rs", "a\n    b\n\nc\n"),
            Case::accepts("white-space", "tests/recorded.csv", "a\tb \n"),
            Case::rejects("final-newline", 2, "src/a.rs", "a\nb"),
            Case::rejects("final-newline", 2, "a.md", "a\n\n"),
            Case::accepts("final-newline", "src/a.rs", "a\nb\n"),
            Case::accepts("final-newline", "src/a.rs", ""),
            Case::rejects("foreign-word", 2, "docs/a.md", &word),
            Case::rejects("foreign-word", 2, "src/a.rs", &word),
            Case::accepts(
                "foreign-word",
                "docs/a.md",
                "the bench of a farm shows issues\n",
            ),
        ]
    }
}
