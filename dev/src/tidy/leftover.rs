//! Rules about remains of work in progress, and tests that stay short in a soak. Clippy finds
//! `todo!`, `unimplemented!`, `dbg!`, `.unwrap()` and threads that sleep.

use super::rule::{Findings, Rule};
use super::rust_lexer::Kind;
use super::source::{Rust, Tree};

pub(crate) const RULES: &[Rule] = &[
    Rule {
        name: "leftover",
        summary: "no note to self in a comment",
        check: leftover,
    },
    Rule {
        name: "ignored-test",
        summary: "no #[ignore], and no example in the docs that is not compiled",
        check: ignored_test,
    },
    Rule {
        name: "soaked-cases",
        summary: "a property's number of cases goes through `cases`, so that a soak runs more",
        check: soaked_cases,
    },
    Rule {
        name: "allow-reason",
        summary: "an allowed lint of clippy, dead or unused code gives its reason",
        check: allow_reason,
    },
];

fn leftover(tree: &Tree, findings: &mut Findings) {
    let notes = ["TODO", "FIXME", "XXX", "HACK"];
    for (file, rust) in tree.rust() {
        for comment in &rust.comments {
            let mut words = comment
                .text
                .split(|c: char| !c.is_alphanumeric() && c != '_');
            if let Some(word) = words.find(|word| notes.contains(word)) {
                findings.add(&file.path, comment.line, format!("`{word}` is left over"));
            }
        }
    }
}

fn ignored_test(tree: &Tree, findings: &mut Findings) {
    for (file, rust) in tree.rust() {
        for at in 0..rust.tokens.len() {
            if rust.reads(at, &["#", "[", "ignore"]) {
                let message = "an ignored test shows nothing: make it fast, or print why it skips";
                findings.add(&file.path, rust.tokens[at].line, message);
            }
        }
        for comment in rust
            .comments
            .iter()
            .filter(|c| c.is_outer_doc() || c.is_inner_doc())
        {
            if comment.text.contains("```ignore") {
                let message = "an ignored example: use `no_run`, or `text` if it is not Rust";
                findings.add(&file.path, comment.line, message);
            }
        }
    }
}

fn soaked_cases(tree: &Tree, findings: &mut Findings) {
    for (file, rust) in tree.rust() {
        for at in 0..rust.tokens.len() {
            let is_call = |at| {
                let short: &[&str] = &["cases", "("];
                let full: &[&str] = &["thalweg_testkit", ":", ":", "cases", "("];
                rust.reads(at, short) || rust.reads(at, full)
            };
            let number = if rust.reads(at, &["with_cases"]) {
                (!rust.reads(at + 1, &["("]) || !is_call(at + 2)).then_some(at)
            } else if rust.reads(at, &["ProptestConfig", "{"]) || rust.reads(at, &["Config", "{"]) {
                let mut fields = at + 1..rust.closing(at + 1);
                let is_own = |at| {
                    ["{", ","]
                        .iter()
                        .any(|mark| rust.reads(at, &[mark, "cases"]))
                };
                let own = fields.find(|&mark| is_own(mark)).map(|mark| mark + 1);
                own.filter(|&own| !rust.reads(own + 1, &[":"]) || !is_call(own + 2))
            } else {
                None
            };
            if let Some(number) = number {
                let message = "a soak runs no more cases of this: `thalweg_testkit::cases(NUMBER)`";
                findings.add(&file.path, rust.tokens[number].line, message);
            }
        }
    }
}

fn allow_reason(tree: &Tree, findings: &mut Findings) {
    for (file, rust) in tree.rust() {
        for at in 0..rust.tokens.len() {
            let Some(open) = allow(rust, at) else {
                continue;
            };
            let close = rust.closing(open);
            let inside = &rust.tokens[open..=close];
            let guarded =
                |text: &str| text == "dead_code" || text == "clippy" || text.starts_with("unused");
            let lint = inside
                .iter()
                .find(|token| token.kind == Kind::Word && guarded(&token.text));
            let reason = inside.iter().any(|token| token.is("reason"));
            let (first, last) = (rust.tokens[at].line, rust.tokens[close].line);
            let plain = rust.comments_on(last..=last).next().is_some()
                || rust
                    .comments_above(first, false)
                    .iter()
                    .any(|c| !c.is_outer_doc());
            if let Some(lint) = lint
                && !reason
                && !plain
            {
                let message = format!("`{}` is allowed without a reason beside it", lint.text);
                findings.add(&file.path, first, message);
            }
        }
    }
}

/// The bracket of the list if the token at `at` allows or expects lints.
fn allow(rust: &Rust, at: usize) -> Option<usize> {
    let word = rust.tokens[at].is("allow") || rust.tokens[at].is("expect");
    let attribute = at > 0 && ["[", ","].iter().any(|mark| rust.tokens[at - 1].is(mark));
    (word && attribute && rust.reads(at + 1, &["("])).then_some(at + 1)
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::rule::case::{Case, in_rust};

    pub(crate) fn cases() -> Vec<Case> {
        [
            leftover_cases(),
            ignored_cases(),
            soaked_cases(),
            allow_cases(),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    fn leftover_cases() -> Vec<Case> {
        let (rejects, accepts) = in_rust("leftover");
        vec![
            rejects(1, "let a = 1; // FIXME: later\n"),
            rejects(1, "/// HACK\nfn a() {}\n"),
            accepts("fn todo() { a(\"TODO\", FIXMES) }\n"),
            accepts("// No `todo!` here, and no HACKS.\n"),
        ]
    }

    fn ignored_cases() -> Vec<Case> {
        let rule = "ignored-test";
        let (rejects, accepts) = in_rust(rule);
        vec![
            rejects(2, "#[test]\n#[ignore]\nfn a() {}\n"),
            rejects(1, "#[ignore = \"slow\"]\nfn a() {}\n"),
            rejects(1, "/// ```ignore\n/// a\n/// ```\n"),
            accepts("/// ```no_run\n#[test]\nfn ignore() {}\n"),
        ]
    }

    fn soaked_cases() -> Vec<Case> {
        let (rejects, accepts) = in_rust("soaked-cases");
        vec![
            rejects(
                2,
                "proptest! {\n#![proptest_config(ProptestConfig::with_cases(20))]\n}\n",
            ),
            rejects(1, "[64].map(Config::with_cases);\n"),
            rejects(2, "let a = ProptestConfig {\ncases: 24,\n..default() };\n"),
            rejects(1, "let a = Config { cases, ..default() };\n"),
            accepts("a(ProptestConfig::with_cases(thalweg_testkit::cases(20)));\n"),
            accepts("a(Config { seed, cases: cases(20), ..default() });\n"),
            accepts("a(Config { seed, ..Config::with_cases(thalweg_testkit::cases(20)) });\n"),
            accepts("a(Other { cases: 7 }); a(Config { seed }); // with_cases(20)\n"),
        ]
    }

    fn allow_cases() -> Vec<Case> {
        let rule = "allow-reason";
        let (rejects, accepts) = in_rust(rule);
        vec![
            rejects(1, "#[allow(dead_code)]\nfn a() {}\n"),
            rejects(1, "#![allow(clippy::all)]\n"),
            rejects(2, "/// A.\n#[expect(unused_mut)]\nfn a() {}\n"),
            rejects(1, "#[cfg_attr(loom, allow(unused))]\nfn a() {}\n"),
            accepts("#[allow(dead_code)] // Read by loom only.\nfn a() {}\n"),
            accepts("#[allow(clippy::a, reason = \"b\")]\nfn a() {}\n"),
            accepts("// Read by loom only.\n#[allow(unused)]\nfn a() {}\n"),
            accepts("a.expect(unused); #[allow(missing_docs)]\n"),
        ]
    }
}
