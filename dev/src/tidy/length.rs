//! Lengths of files, functions and lines.

use super::policy::{FILE_LINES_MAX, FUNCTION_LINES_LIMIT, LINE_COLUMNS_MAX};
use super::rule::{Findings, Rule};
use super::rust_lexer::Kind;
use super::source::{Rust, Source, Tree};

pub(crate) const RULES: &[Rule] = &[
    Rule {
        name: "file-length",
        summary: "a Rust file has at most 700 lines outside its tests",
        check: files,
    },
    Rule {
        name: "function-length",
        summary: "a function has fewer than 70 lines",
        check: functions,
    },
    Rule {
        name: "line-length",
        summary: "a line of Rust or Markdown has at most 100 columns (not URLs, tables, listings)",
        check: lines,
    },
];

fn files(tree: &Tree, findings: &mut Findings) {
    for (file, rust) in tree.rust() {
        let code = file
            .lines()
            .filter(|&(line, _)| !rust.in_test(line))
            .count();
        if code > FILE_LINES_MAX {
            let message = format!("{code} lines outside its tests, at most {FILE_LINES_MAX}");
            findings.add(&file.path, code, message);
        }
    }
}

fn functions(tree: &Tree, findings: &mut Findings) {
    for (file, rust) in tree.rust() {
        for (at, token) in rust.tokens.iter().enumerate() {
            let Some(name) = rust.tokens.get(at + 1) else {
                continue;
            };
            if !token.is("fn") || name.kind != Kind::Word {
                continue;
            }
            let Some(open) = body(rust, at) else { continue };
            let lines = rust.tokens[rust.closing(open)].line - token.line + 1;
            if lines >= FUNCTION_LINES_LIMIT {
                let message = format!(
                    "`{}` has {lines} lines, fewer than {FUNCTION_LINES_LIMIT} are allowed",
                    name.text
                );
                findings.add(&file.path, token.line, message);
            }
        }
    }
}

/// The brace that opens the body of the function at `at`; none for a declaration.
fn body(rust: &Rust, at: usize) -> Option<usize> {
    let mut at = at;
    while at < rust.tokens.len() {
        let token = &rust.tokens[at];
        if token.is("{") {
            return Some(at);
        } else if token.is(";") {
            return None;
        } else if token.is("(") || token.is("[") {
            at = rust.closing(at);
        }
        at += 1;
    }
    None
}

fn lines(tree: &Tree, findings: &mut Findings) {
    for file in &tree.files {
        match file.extension() {
            "rs" => long_lines(file, file.lines(), findings),
            "md" => long_lines(file, prose(file), findings),
            _ => {}
        }
    }
}

/// The lines of a Markdown file that are neither in a fenced block nor a row of a table.
fn prose(file: &Source) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    file.lines().filter(move |(_, line)| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        !fenced && !fence && !line.trim_start().starts_with('|')
    })
}

fn long_lines<'a>(
    file: &Source,
    lines: impl Iterator<Item = (usize, &'a str)>,
    findings: &mut Findings,
) {
    for (number, line) in lines {
        let columns = line.chars().count();
        if columns > LINE_COLUMNS_MAX && !line.contains("://") {
            let message = format!("{columns} columns, at most {LINE_COLUMNS_MAX}");
            findings.add(&file.path, number, message);
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::rule::case::{Case, in_rust};

    pub(crate) fn cases() -> Vec<Case> {
        [file_cases(), function_cases(), line_cases()]
            .into_iter()
            .flatten()
            .collect()
    }

    fn file_cases() -> Vec<Case> {
        let rule = "file-length";
        let (rejects, accepts) = in_rust(rule);
        let tests = |lines| format!("#[cfg(test)]\nmod tests {{\n{}}}\n", "//\n".repeat(lines));
        vec![
            rejects(701, &"//\n".repeat(701)),
            rejects(701, &("//\n".repeat(701) + &tests(9))),
            accepts(&"//\n".repeat(700)),
            accepts(&("//\n".repeat(700) + &tests(900))),
            Case::accepts(rule, "a.md", &"a\n".repeat(700)),
        ]
    }

    fn function_cases() -> Vec<Case> {
        let rule = "function-length";
        let (rejects, accepts) = in_rust(rule);
        let function = |lines| format!("// a\nfn f(x: [u8; 2]) {{\n{}}}\n", "g();\n".repeat(lines));
        let braces = format!("fn f() {{\n\"}}\";\n{}}}\n", "g('}');\n".repeat(68));
        vec![
            rejects(2, &function(68)),
            rejects(1, &braces),
            accepts(&function(67)),
            accepts(&("type F = fn();\n".to_owned() + &"//\n".repeat(90))),
            accepts(&format!("trait A {{ fn f();\n{}}}", "//\n".repeat(90))),
        ]
    }

    fn line_cases() -> Vec<Case> {
        let rule = "line-length";
        let long = |start: &str| format!("a\n{start}{}\n", "é".repeat(101 - start.len()));
        vec![
            Case::rejects(rule, 2, "src/a.rs", &long("// ")),
            Case::rejects(rule, 2, "a.md", &long("")),
            Case::accepts(rule, "src/a.rs", &"é".repeat(100)),
            Case::accepts(rule, "src/a.rs", &long("// https://example.org/")),
            Case::accepts(rule, "a.md", &long("| ")),
            Case::accepts(rule, "a.md", &format!("```text\n{}```\n", long(""))),
            Case::accepts(rule, "a.csv", &long("")),
        ]
    }
}
