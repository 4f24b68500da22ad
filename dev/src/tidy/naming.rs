//! Names of files and folders, and words of identifiers and comments.

use super::policy::{EMPTY_NAMES, HOUSE_OPENINGS, HOUSE_PHRASES, HOUSE_WORDS};
use super::rule::{Findings, Rule};
use super::rust_lexer::Kind;
use super::source::{Rust, Tree};

pub(crate) const RULES: &[Rule] = &[
    Rule {
        name: "file-name",
        summary: "a file or folder is named by what is in it: no utils, common, helpers, misc",
        check: file_name,
    },
    Rule {
        name: "house-word",
        summary: "names and comments use the field's words (`docs/GLOSSARY.md`), not our own",
        check: house_word,
    },
];

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

fn house_word(tree: &Tree, findings: &mut Findings) {
    for (file, rust) in tree.rust() {
        for token in rust.tokens.iter().filter(|token| token.kind == Kind::Word) {
            if let Some(word) = words(&token.text).find(|word| HOUSE_WORDS.contains(&&**word)) {
                let message = format!("`{}`: `{word}` is a word of our own", token.text);
                findings.add(&file.path, token.line, message);
            }
        }
        for (line, found) in house_words_of_comments(rust) {
            findings.add(&file.path, line, format!("a comment: `{found}`"));
        }
    }
}

/// Returns the line and the word, phrase or opening of each comment that has one of ours.
fn house_words_of_comments(rust: &Rust) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut next_line = 0;
    for comment in &rust.comments {
        let text = comment.text.trim_start_matches(['/', '!', '*', ' ']);
        let is_first = comment.line != next_line;
        next_line = comment.line_end + 1;
        let opening = HOUSE_OPENINGS.iter().find(|opening| {
            let rest = text.strip_prefix(**opening);
            is_first && rest.is_some_and(|rest| rest.starts_with([' ', ',']))
        });
        let lower = text.to_lowercase();
        let phrase = HOUSE_PHRASES.iter().find(|phrase| lower.contains(**phrase));
        let mut parts = lower.split(|c: char| !c.is_alphanumeric());
        let word = parts.find(|word| HOUSE_WORDS.contains(word));
        let first = opening.or(phrase).map(|text| (*text).to_owned());
        if let Some(text) = first.or(word.map(str::to_owned)) {
            found.push((comment.line, text));
        }
    }
    found
}

/// Returns the words of an identifier in snake case or camel case, in lower case.
fn words(name: &str) -> impl Iterator<Item = String> {
    let mut words = vec![String::new()];
    for c in name.chars() {
        let ends = words
            .last()
            .is_some_and(|word| word.ends_with(char::is_lowercase));
        if c == '_' || (c.is_uppercase() && ends) {
            words.push(String::new());
        }
        if c != '_'
            && let Some(word) = words.last_mut()
        {
            word.push(c);
        }
    }
    words.into_iter().map(|word| word.to_lowercase())
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
            Case::rejects("house-word", 1, "src/a.rs", "fn is_told() {}\n"),
            Case::rejects("house-word", 1, "src/a.rs", "struct CalmLimits;\n"),
            Case::rejects("house-word", 1, "tests/a.rs", "const TOLD_MAX: u8 = 1;\n"),
            Case::rejects(
                "house-word",
                2,
                "src/a.rs",
                "// A line.\n// Whoever waits.\n",
            ),
            Case::rejects(
                "house-word",
                1,
                "src/a.rs",
                "/// There are so many of them.\n",
            ),
            Case::rejects("house-word", 1, "src/a.rs", "/// The same for a lane.\n"),
            Case::accepts(
                "house-word",
                "src/a.rs",
                "/// Returns those\n/// Of a lane; usually the same.\nfn stolder() { \"told\" }\n",
            ),
        ]
    }
}
