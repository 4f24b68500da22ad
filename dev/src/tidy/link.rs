//! Links from page to page.

use std::collections::BTreeSet;

use super::policy::REPOSITORY;
use super::rule::{Findings, Rule};
use super::source::{Source, Tree};

pub(crate) const RULES: &[Rule] = &[
    Rule {
        name: "dead-link",
        summary: "a link leads to a file of the tree, and to a heading that is there",
        check: dead_link,
    },
    Rule {
        name: "dead-page",
        summary: "a page that a text or a comment names as `docs/….md` is there",
        check: dead_page,
    },
    Rule {
        name: "dead-name",
        summary: "an item of CONTRIBUTING.md names files that are there, and what they have",
        check: dead_name,
    },
];

fn dead_link(tree: &Tree, findings: &mut Findings) {
    for file in tree.files.iter().filter(|file| file.extension() == "md") {
        for (number, line) in prose(file) {
            for target in targets(&line) {
                if let Some(why) = fault(tree, file, target) {
                    findings.add(&file.path, number, why);
                }
            }
        }
    }
}

/// Lines outside fenced code, with what stands between backticks blanked.
fn prose(file: &Source) -> impl Iterator<Item = (usize, String)> {
    let mut fenced = false;
    file.lines().filter_map(move |(number, line)| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        if fence || fenced {
            return None;
        }
        let mut parts = line.split('`').enumerate();
        let text = parts.by_ref().map(|(at, part)| match at % 2 {
            0 => part.to_owned(),
            _ => " ".repeat(part.len()),
        });
        Some((number, text.collect()))
    })
}

/// Returns the targets of the links of a line: `[text](target)` and `[text]: target`.
fn targets(line: &str) -> Vec<&str> {
    let inline = line.split("](").skip(1);
    let mut found: Vec<&str> = inline
        .filter_map(|rest| rest.split([')', ' ']).next())
        .collect();
    if line.starts_with('[')
        && let Some((_, target)) = line.split_once("]: ")
    {
        found.push(target.trim());
    }
    found
}

/// Why a link leads nowhere, if it does. Others' pages are not checked, and rustdoc checks links to
/// Rust items.
fn fault(tree: &Tree, file: &Source, target: &str) -> Option<String> {
    let (path, heading) = target.split_once('#').unwrap_or((target, ""));
    let own = REPOSITORY.iter().find_map(|place| path.strip_prefix(place));
    if own.is_none() && (path.contains("::") || path.contains("://")) {
        return None;
    }
    let folder = file.path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let path = match own {
        Some(path) => join("", path),
        None if path.is_empty() => Some(file.path.clone()),
        None => join(folder, path),
    };
    let Some(path) = path else {
        return Some(format!("`{target}` leads out of the tree"));
    };
    let inside = format!("{path}/");
    let is_folder = tree.files.iter().any(|file| file.path.starts_with(&inside));
    match tree.get(&path) {
        None if is_folder || path.is_empty() => None,
        None => Some(format!("`{target}`: there is no {path}")),
        Some(page) if !heading.is_empty() && page.extension() == "md" => {
            let missing = || format!("`{target}`: {path} has no such heading");
            (!headings(page).contains(heading)).then(missing)
        }
        Some(_) => None,
    }
}

/// A path from the root; `None` if it leads above it.
fn join(folder: &str, path: &str) -> Option<String> {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            _ => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// The headings of a page, as they are named in links.
fn headings(page: &Source) -> BTreeSet<String> {
    let mut fenced = false;
    let headings = page.lines().filter_map(|(_, line)| {
        fenced ^= line.trim_start().starts_with("```");
        let text = line.trim_start_matches('#');
        (!fenced && text.len() < line.len()).then(|| text.trim())
    });
    headings.map(slug).collect()
}

fn slug(heading: &str) -> String {
    let kept = heading.chars().filter_map(|c| match c {
        ' ' => Some('-'),
        '-' | '_' => Some(c),
        _ => c.is_alphanumeric().then_some(c),
    });
    kept.flat_map(char::to_lowercase).collect()
}

fn dead_page(tree: &Tree, findings: &mut Findings) {
    let is_read = |file: &&Source| ["md", "rs", "toml"].contains(&file.extension());
    for file in tree.files.iter().filter(is_read) {
        let is_case = |line| file.rust.as_ref().is_some_and(|rust| rust.in_test(line));
        for (number, line) in file.lines().filter(|line| !is_case(line.0)) {
            for name in pages(line) {
                if !is_page(tree, file, name) {
                    findings.add(&file.path, number, format!("there is no {name}"));
                }
            }
        }
    }
}

/// Names of pages in a line: `docs/….md`, with nothing of a path before.
fn pages(line: &str) -> impl Iterator<Item = &str> {
    let ends = |c: char| !(c.is_ascii_alphanumeric() || "/._-".contains(c));
    let words = line.split(ends).map(|word| word.trim_end_matches('.'));
    words.filter(|word| word.starts_with("docs/") && word.ends_with(".md"))
}

/// A page's name counts from the root, or from the crate of the file that names it.
fn is_page(tree: &Tree, file: &Source, name: &str) -> bool {
    let crate_folder: Vec<&str> = file.path.splitn(3, '/').take(2).collect();
    let inside = format!("{}/{name}", crate_folder.join("/"));
    tree.get(name).is_some() || tree.get(&inside).is_some()
}

/// The folder that paths in CONTRIBUTING.md may leave out.
const LEFT_OUT: &str = "crates/thalweg-exchange";

fn dead_name(tree: &Tree, findings: &mut Findings) {
    let Some(page) = tree.get("CONTRIBUTING.md") else {
        return;
    };
    // The files of the item that a line belongs to, and the folder of the last one of them.
    let (mut files, mut folder) = (Vec::new(), String::new());
    for (number, line) in page.lines() {
        if !line.starts_with("  ") {
            files.clear();
        }
        if !line.starts_with("- `") && files.is_empty() {
            continue;
        }
        for quoted in line.split('`').skip(1).step_by(2) {
            let is_path = [".rs", ".md"].iter().any(|end| quoted.ends_with(end));
            let candidates = [quoted.to_owned(), format!("{LEFT_OUT}/{quoted}")];
            let near = format!("{folder}/{quoted}");
            let mut file = candidates
                .iter()
                .chain([&near])
                .filter_map(|path| tree.get(path));
            let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
            match file.next() {
                Some(file) if is_path => {
                    folder = file
                        .path
                        .rsplit_once('/')
                        .map_or("", |(at, _)| at)
                        .to_owned();
                    files.push(file);
                }
                None if is_path => findings.add(&page.path, number, format!("no file {quoted}")),
                _ => {
                    let name = quoted.trim_end_matches("()").rsplit("::").next();
                    let name = name.filter(|name| name.chars().all(is_name) && *name != "bool");
                    let has = |file: &&Source, name: &str| {
                        let words = |line: &str| line.split(|c| !is_name(c)).any(|it| it == name);
                        file.lines().any(|(_, line)| words(line))
                    };
                    if name.is_some_and(|name| !files.iter().any(|file| has(file, name)))
                        && !files.is_empty()
                    {
                        findings.add(&page.path, number, format!("no `{quoted}` in these files"));
                    }
                }
            }
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::rule::case::Case;

    pub(crate) fn cases() -> Vec<Case> {
        let rejects = |line, text: &str| Case::rejects("dead-link", line, "docs/a.md", text);
        let accepts = |text: &str| Case::accepts("dead-link", "docs/a.md", text);
        let page = "docs/b.md";
        vec![
            rejects(2, "see\n[b](b.md)\n").with("b.md", "# B\n"),
            rejects(1, "[b](../b.md#not-there)\n").with("b.md", "# B\n"),
            rejects(1, "[b](#not-there)\n"),
            rejects(1, "[`b`](c/b.rs), [c](c/a.rs)\n").with("docs/c/a.rs", ""),
            rejects(1, "[b](../../b.md)\n").with("b.md", ""),
            rejects(3, "a [b]\n\n[b]: ../c.md\n").with("b.md", ""),
            rejects(
                1,
                "[b](https://github.com/thalweg-rs/thalweg/blob/main/docs/b.md)\n",
            ),
            accepts("[b](../b.md#what-it-is-1-of-2), [c](c/)\n")
                .with("b.md", "```\n# no\n```\n## What `it` is, 1 of 2\n")
                .with("docs/c/a.rs", ""),
            accepts(
                "[b](https://example.org/b.md) [c](crate::b) `[b](b.md)`\n```\n[b](b.md)\n```\n",
            ),
            accepts(
                "# A b\n[here](#a-b) [a](https://github.com/thalweg-rs/thalweg/blob/main/docs/a.md)\n",
            ),
            Case::rejects(
                "dead-page",
                2,
                "src/a.rs",
                &format!("// x\n// see {page}.\n"),
            ),
            Case::rejects(
                "dead-page",
                1,
                "CHANGELOG.md",
                &format!("({page}, Results)\n"),
            ),
            Case::accepts("dead-page", "src/a.rs", &format!("// see {page}.\n")).with(page, ""),
            Case::rejects(
                "dead-name",
                1,
                "CONTRIBUTING.md",
                "- `src/a.rs`: `Gone::new()`\n",
            )
            .with(
                "crates/thalweg-exchange/src/a.rs",
                "struct Gone; fn new_one() {}\n",
            ),
            Case::rejects(
                "dead-name",
                2,
                "CONTRIBUTING.md",
                "- `src/a.rs`,\n  `src/b.rs`\n",
            )
            .with("src/a.rs", ""),
            Case::accepts(
                "dead-name",
                "CONTRIBUTING.md",
                "- `src/a.rs`: `Here`\n  or `b.rs` (`there`)\n\n`None`\n",
            )
            .with("src/a.rs", "struct Here;\n")
            .with("src/b.rs", "fn there() {}\n"),
            Case::accepts("dead-page", "tests/a.rs", &format!("f(\"{page}\");\n")),
            Case::accepts("dead-page", "crates/a/src/a.rs", &format!("\"{page}\"\n"))
                .with(&format!("crates/a/{page}"), ""),
        ]
    }
}
