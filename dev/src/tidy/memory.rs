//! Unsafe code and atomics: every one says why it is right. Lints look at unsafe code, too:
//! `unsafe_code` keeps it in the modules that allow it, and clippy has it say why it is right, but
//! only where it is compiled for this processor, and not for models.

use super::policy::{ORDERING_LINES_ABOVE_MAX, ORDERINGS_ALLOWED, ORDERINGS_NAMED_IN, within};
use super::rule::{Findings, Rule};
use super::rust_lexer::Kind;
use super::source::{Rust, Tree};

pub(crate) const RULES: &[Rule] = &[
    Rule {
        name: "unsafe-comment",
        summary: "an unsafe block or impl says why it is right, in a SAFETY comment",
        check: unsafe_comment,
    },
    Rule {
        name: "ordering-comment",
        summary: "an atomic access names its partner in an ORDERING comment (not in tests)",
        check: ordering_comment,
    },
    Rule {
        name: "ordering-name",
        summary: "an ordering that a proof may rest on has a name in `ring/sync.rs` (not in tests)",
        check: ordering_name,
    },
];

fn unsafe_comment(tree: &Tree, findings: &mut Findings) {
    for (file, rust) in tree.rust() {
        for at in 0..rust.tokens.len() {
            let opens = |word| rust.reads(at, &["unsafe", word]);
            if !opens("{") && !opens("impl") {
                continue;
            }
            let line = rust.tokens[at].line;
            let above = rust.comments_above(line, true).into_iter();
            let mut comments = above.chain(rust.comments_on(line..=line));
            if !comments.any(|comment| comment.text.contains("SAFETY:")) {
                let message = "unsafe code without a SAFETY comment above it".to_owned();
                findings.add(&file.path, line, message);
            }
        }
    }
}

fn ordering_comment(tree: &Tree, findings: &mut Findings) {
    for (file, rust) in tree.rust() {
        for at in 0..rust.tokens.len() {
            if !is_atomic_access(rust, at) {
                continue;
            }
            let line = rust.tokens[at].line;
            let last = rust.tokens[rust.closing(at + 1)].line;
            if rust.in_test(line) || has_ordering(rust, line, last) {
                continue;
            }
            let what = &rust.tokens[at].text;
            let message = format!(
                "`{what}` without an ORDERING comment on the line or ending at most \
                 {ORDERING_LINES_ABOVE_MAX} lines above"
            );
            findings.add(&file.path, line, message);
        }
    }
}

/// A literal can't be weakened by a model that is to show what it is for.
fn ordering_name(tree: &Tree, findings: &mut Findings) {
    for (file, rust) in tree.rust() {
        let is_allowed = |place: &&str| within(&file.path, place);
        if !within(&file.path, ORDERINGS_NAMED_IN) || ORDERINGS_ALLOWED.iter().any(is_allowed) {
            continue;
        }
        for token in &rust.tokens {
            let is_strong = ["Acquire", "Release", "AcqRel", "SeqCst"]
                .iter()
                .any(|ordering| token.is(ordering));
            if is_strong && !rust.in_test(token.line) {
                let what = &token.text;
                let message =
                    format!("`{what}`: give it a name, and a weak twin, in `ring/sync.rs`");
                findings.add(&file.path, token.line, message);
            }
        }
    }
}

/// Is the token at `at` the name of a method or function that accesses an atomic, being called?
fn is_atomic_access(rust: &Rust, at: usize) -> bool {
    let name = &rust.tokens[at];
    let after = |mark| at > 0 && rust.tokens[at - 1].is(mark);
    let fence = !after("fn")
        && ["fence", "compiler_fence"]
            .iter()
            .any(|fence| name.is(fence));
    let family = |prefix| name.kind == Kind::Word && name.text.starts_with(prefix);
    let method = after(".")
        && (["load", "store", "swap"]
            .iter()
            .any(|method| name.is(method))
            || family("fetch_")
            || family("compare_exchange"));
    if !rust.reads(at + 1, &["("]) || !(fence || method) {
        return false;
    }
    // A slice has a `swap`, a file a `load`: an atomic's takes an ordering.
    let arguments = &rust.tokens[at + 2..=rust.closing(at + 1)];
    let orderings = [
        "Ordering", "order", "Relaxed", "Acquire", "Release", "AcqRel", "SeqCst",
    ];
    arguments
        .iter()
        .any(|token| orderings.iter().any(|word| token.is(word)))
}

/// Is there an ORDERING comment on the lines of the access, or in a block of comments that ends
/// shortly above it?
fn has_ordering(rust: &Rust, line: usize, last: usize) -> bool {
    let start = line.saturating_sub(ORDERING_LINES_ABOVE_MAX);
    let says = |text: &str| text.contains("ORDERING:");
    let near = rust.comments_on(start..=last).any(|comment| {
        let block = rust.comments_above(comment.line, false);
        says(&comment.text) || block.iter().any(|above| says(&above.text))
    });
    // A chain of calls may put the access further from the top of its statement.
    near || rust
        .comments_above(line, true)
        .iter()
        .any(|comment| says(&comment.text))
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::rule::case::{Case, in_rust};

    pub(crate) fn cases() -> Vec<Case> {
        [comment_cases(), ordering_cases(), name_cases()]
            .into_iter()
            .flatten()
            .collect()
    }

    fn comment_cases() -> Vec<Case> {
        let (rejects, accepts) = in_rust("unsafe-comment");
        vec![
            rejects(2, "fn a() {\n    unsafe { b() }\n}\n"),
            rejects(2, "#[cfg(loom)]\nunsafe impl Send for A {}\n"),
            rejects(3, "// SAFETY: rule 1.\nb();\nunsafe { c() }\n"),
            accepts("// SAFETY: rule 1,\n// and 2.\nlet a =\n unsafe { b() };\n"),
            accepts("// `unsafe { a() }`\nlet a = \"unsafe { a() }\";\n"),
        ]
    }

    fn ordering_cases() -> Vec<Case> {
        let rule = "ordering-comment";
        let path = "src/a.rs";
        let far = "// ORDERING: Acquire.\n\n\n\na.load(Ordering::Acquire);\n";
        let block =
            "// ORDERING: Release, pairs\n// with\n// the\n// Acquire.\na.store(1, Release);\n";
        let lines = "a.compare_exchange(\n    0, // ORDERING: AcqRel.\n    1,\n    AcqRel,\n);\n";
        let chain = "// ORDERING: Release.\na\n    .b\n    .c\n    .d\n    .store(1, Release);\n";
        let model = "#[cfg(all(test, loom))]\nmod models {\n    fn a() { b.load(Acquire); }\n}\n";
        vec![
            Case::rejects(rule, 2, path, "// Reads.\na.load(Ordering::Acquire);\n"),
            Case::rejects(rule, 1, path, "a.fetch_add(1, order::publish());\n"),
            Case::rejects(rule, 1, path, "fence(SeqCst);\n"),
            Case::rejects(rule, 1, path, "atomic::fence(order::full());\n"),
            Case::rejects(rule, 5, path, far),
            Case::accepts(rule, path, "a.load(Acquire); // ORDERING: pairs with b.\n"),
            Case::accepts(rule, path, block),
            Case::accepts(rule, path, chain),
            Case::accepts(rule, path, lines),
            Case::accepts(rule, path, model),
            Case::accepts(rule, path, "slice.swap(0, 1); file.load(path);\n"),
            Case::accepts(rule, path, "use std::sync::atomic::{Ordering, fence};\n"),
            Case::accepts(rule, "tests/a.rs", "a.load(Ordering::Acquire);\n"),
        ]
    }

    fn name_cases() -> Vec<Case> {
        let rule = "ordering-name";
        let text = "// ORDERING: Release.\na.store(1, Ordering::Release);\n";
        let test = "#[cfg(test)]\nmod tests {\n    fn a() { b.load(SeqCst); }\n}\n";
        vec![
            Case::rejects(rule, 2, "crates/thalweg/src/pipeline/auto.rs", text),
            Case::rejects(rule, 1, "crates/thalweg/src/a.rs", "fence(SeqCst);\n"),
            Case::accepts(
                rule,
                "crates/thalweg/src/a.rs",
                "b.load(order::observe());\n",
            ),
            Case::accepts(
                rule,
                "crates/thalweg/src/a.rs",
                "b.load(Ordering::Relaxed);\n",
            ),
            Case::accepts(rule, "crates/thalweg/src/ring/sync.rs", text),
            Case::accepts(rule, "crates/thalweg/src/wait/barrier.rs", text),
            Case::accepts(rule, "crates/thalweg/src/pipeline/auto.rs", test),
            Case::accepts(rule, "crates/thalweg-measure/src/a.rs", text),
        ]
    }
}
