//! Documentation. rustc's `missing_docs` is the full check of the library crates; this one needs no
//! compiler, and sees to it that no crate escapes rustc's.

use super::manifest::{Manifest, manifests};
use super::rule::{Findings, Rule};
use super::rust_lexer::Kind;
use super::source::{Rust, Tree};

pub(crate) const RULES: &[Rule] = &[
    Rule {
        name: "public-docs",
        summary: "a public item of a library has a doc comment",
        check: public_docs,
    },
    Rule {
        name: "crate-docs",
        summary: "the root of a crate begins with what the crate is for",
        check: crate_docs,
    },
    Rule {
        name: "workspace-lints",
        summary: "every crate inherits the workspace's lints, and those ask for docs",
        check: workspace_lints,
    },
];

fn public_docs(tree: &Tree, findings: &mut Findings) {
    for (file, rust) in tree.rust() {
        let Some((krate, _)) = file.path.split_once("/src/") else {
            continue;
        };
        if rust.is_test || tree.get(&format!("{krate}/src/lib.rs")).is_none() {
            continue;
        }
        let mut at = 0;
        while at < rust.tokens.len() {
            if rust.reads(at, &["macro_rules", "!"]) {
                // An item that a macro writes is documented where it is called.
                at = rust.closing((at + 3).min(rust.tokens.len() - 1));
            }
            let line = rust.tokens[at].line;
            if let Some(name) = public_item(rust, at)
                && !rust.in_test(line)
                && !is_documented(rust, line)
            {
                findings.add(
                    &file.path,
                    line,
                    format!("`{name}` is public and has no docs"),
                );
            }
            at += 1;
        }
    }
}

/// The name if a public item or field begins at `at`. `pub use` has the docs of what it names,
/// `pub mod name;` those of the file, and `pub(crate)` is not public.
fn public_item(rust: &Rust, at: usize) -> Option<&str> {
    if !rust.tokens[at].is("pub") {
        return None;
    }
    let qualifiers = ["const", "async", "unsafe", "extern", "safe"];
    let items = [
        "fn", "struct", "enum", "union", "trait", "type", "static", "const", "macro",
    ];
    let words = rust.tokens[at + 1..]
        .iter()
        .filter(|token| token.kind != Kind::Text);
    let mut words = words.peekable();
    let mut last = "";
    while let Some(word) = words.next_if(|word| {
        word.kind == Kind::Word
            && (qualifiers.contains(&&*word.text) || items.contains(&&*word.text))
    }) {
        last = &word.text;
    }
    let name = words.next().filter(|name| name.kind == Kind::Word)?;
    let field = last.is_empty() && words.next().is_some_and(|mark| mark.is(":"));
    (items.contains(&last) || field).then_some(&*name.text)
}

fn is_documented(rust: &Rust, line: usize) -> bool {
    rust.comments_above(line, false)
        .iter()
        .any(|comment| comment.is_outer_doc())
        || (0..rust.tokens.len())
            .filter(|&at| rust.reads(at, &["#", "[", "doc"]))
            .any(|at| rust.tokens[rust.closing(at + 1)].line + 1 == line)
}

fn crate_docs(tree: &Tree, findings: &mut Findings) {
    for (file, rust) in tree.rust() {
        if !file.path.ends_with("/src/lib.rs") && !file.path.ends_with("/src/main.rs") {
            continue;
        }
        let documented = rust.comments.first().is_some_and(|comment| {
            let words = comment.text.split_whitespace().count() > 2;
            comment.line == 1 && comment.is_inner_doc() && words
        });
        if !documented {
            findings.add(
                &file.path,
                1,
                "the crate does not begin with `//! what it is for`",
            );
        }
    }
}

fn workspace_lints(tree: &Tree, findings: &mut Findings) {
    for (file, manifest) in manifests(tree) {
        match manifest.section("workspace") {
            Some(line) if !asks_for_docs(&manifest) => {
                findings.add(
                    &file.path,
                    line,
                    "the workspace's lints do not name missing_docs",
                );
            }
            Some(_) => {}
            None if manifest.value("lints", "workspace") != Some("true") => {
                findings.add(&file.path, 1, "no `[lints] workspace = true`");
            }
            None => {}
        }
    }
}

fn asks_for_docs(root: &Manifest<'_>) -> bool {
    root.value("workspace.lints.rust", "missing_docs")
        .is_some_and(|level| level != "allow")
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::rule::case::Case;

    pub(crate) fn cases() -> Vec<Case> {
        [public_cases(), crate_cases(), lint_cases()]
            .into_iter()
            .flatten()
            .collect()
    }

    fn public_cases() -> Vec<Case> {
        let in_library = |case: Case| case.with("a/src/lib.rs", "//! A crate.\n");
        let rejects =
            |line, text| in_library(Case::rejects("public-docs", line, "a/src/b.rs", text));
        let accepts = |text| in_library(Case::accepts("public-docs", "a/src/b.rs", text));
        vec![
            rejects(1, "pub fn b() {}\n"),
            rejects(
                2,
                "// Not a doc comment.\npub(crate) struct A; pub const unsafe fn b() {}\n",
            ),
            rejects(3, "/// A.\npub struct A {\n    pub b: u8,\n}\n"),
            rejects(2, "#[derive(Debug)]\npub enum A {}\n"),
            accepts("/// A.\n#[derive(Debug)]\npub struct A;\n"),
            accepts("#[doc = \"A.\"]\npub const A: u8 = 1;\n"),
            accepts("pub(crate) fn a() {}\npub use b::C;\npub mod d;\n"),
            accepts("macro_rules! a {\n    () => { pub fn b() {} };\n}\n"),
            accepts("#[cfg(test)]\nmod tests {\n    pub fn a() {}\n}\n"),
            Case::accepts("public-docs", "a/src/main.rs", "pub fn b() {}\n"),
        ]
    }

    fn crate_cases() -> Vec<Case> {
        let rule = "crate-docs";
        vec![
            Case::rejects(
                rule,
                1,
                "a/src/lib.rs",
                "#![forbid(unsafe_code)]\n//! A crate for b.\n",
            ),
            Case::rejects(rule, 1, "a/src/main.rs", "//! Placeholder.\nfn main() {}\n"),
            Case::accepts(rule, "a/src/lib.rs", "//! A crate for b.\nmod b;\n"),
            Case::accepts(rule, "a/src/b.rs", "mod c;\n"),
        ]
    }

    fn lint_cases() -> Vec<Case> {
        let rule = "workspace-lints";
        let named = "[package]\nname = \"a\"\n";
        let root = "[workspace]\n\n[workspace.lints.rust]\n";
        vec![
            Case::rejects(rule, 1, "a/Cargo.toml", named),
            Case::rejects(
                rule,
                1,
                "Cargo.toml",
                &format!("{root}missing_docs = \"allow\"\n"),
            ),
            Case::rejects(rule, 1, "Cargo.toml", root),
            Case::accepts(
                rule,
                "Cargo.toml",
                &format!("{root}missing_docs = \"warn\"\n"),
            ),
            Case::accepts(
                rule,
                "a/Cargo.toml",
                &format!("{named}[lints]\nworkspace = true\n"),
            ),
        ]
    }
}
