//! Circles of imports: a file that imports another may not be imported by it, on any way round.
//!
//! Nodes are the files of a crate, and edges the paths in their code, outside tests: those of
//! `use`, and those that begin with `crate`, `super` or a child. A path to what a file only imports
//! leads to where that is from. A file may use what a file above it defines: a parent and its
//! children are no circle.

use std::collections::{BTreeMap, BTreeSet};

use super::rule::{Findings, Rule};
use super::rust_lexer::{Kind, Token};
use super::source::{Rust, Tree};

pub(crate) const RULES: &[Rule] = &[Rule {
    name: "import-circle",
    summary: "no file imports another that imports it, but a parent and its children",
    check: circles,
}];

/// How often the origin of a name is looked up through imports.
const ORIGIN_STEPS_MAX: usize = 8;

type Path = Vec<String>;

/// A file of a crate: what it imports.
struct Module {
    file: String,
    /// Full paths from the root of the crate that its code names.
    named: Vec<Path>,
    /// The full path of each name that it imports.
    imports: BTreeMap<String, Path>,
}

fn circles(tree: &Tree, findings: &mut Findings) {
    let mut crates: BTreeMap<&str, Vec<(Path, &str, &Rust)>> = BTreeMap::new();
    for (file, rust) in tree.rust().filter(|(_, rust)| !rust.is_test) {
        if let Some((of, inside)) = file.path.split_once("/src/") {
            crates
                .entry(of)
                .or_default()
                .push((module(inside), &file.path, rust));
        }
    }
    for files in crates.into_values() {
        let paths: BTreeSet<Path> = files.iter().map(|(path, ..)| path.clone()).collect();
        let read = |(path, file, rust): &(Path, &str, &Rust)| {
            (path.clone(), Module::read(path, file, rust, &paths))
        };
        let modules: BTreeMap<Path, Module> = files.iter().map(read).collect();
        let edges: BTreeMap<&Path, BTreeSet<&Path>> = modules
            .iter()
            .map(|(path, module)| (path, module.imported(path, &modules)))
            .collect();
        report(&modules, &edges, findings);
    }
}

/// Returns the path of the module that is in a file, whose path begins behind `src/`.
fn module(file: &str) -> Path {
    let mut path: Path = file
        .trim_end_matches(".rs")
        .split('/')
        .map(str::to_owned)
        .collect();
    if matches!(path.last().map(String::as_str), Some("mod" | "lib")) || file == "main.rs" {
        path.pop();
    }
    path
}

fn report(
    modules: &BTreeMap<Path, Module>,
    edges: &BTreeMap<&Path, BTreeSet<&Path>>,
    findings: &mut Findings,
) {
    let reachable: BTreeMap<&Path, BTreeSet<&Path>> = edges
        .keys()
        .map(|from| (*from, reachable(from, edges)))
        .collect();
    let in_circle: Vec<&Path> = edges
        .keys()
        .copied()
        .filter(|path| reachable[path].contains(path))
        .collect();
    let mut seen: BTreeSet<&Path> = BTreeSet::new();
    for path in in_circle {
        if seen.insert(path) {
            seen.extend(
                reachable[path]
                    .iter()
                    .filter(|it| reachable[**it].contains(path)),
            );
            let way = way_round(path, edges, &reachable);
            let way: Vec<&str> = way
                .iter()
                .map(|path| modules[*path].file.as_str())
                .collect();
            findings.add(
                &modules[path].file,
                1,
                format!("imports {}", way.join(", which imports ")),
            );
        }
    }
}

fn reachable<'a>(
    from: &Path,
    edges: &BTreeMap<&'a Path, BTreeSet<&'a Path>>,
) -> BTreeSet<&'a Path> {
    let mut found = BTreeSet::new();
    let mut open: Vec<&Path> = edges[from].iter().copied().collect();
    while let Some(path) = open.pop() {
        if found.insert(path) {
            open.extend(&edges[path]);
        }
    }
    found
}

/// Returns the shortest way from a file back to itself.
fn way_round<'a>(
    from: &'a Path,
    edges: &BTreeMap<&'a Path, BTreeSet<&'a Path>>,
    reachable: &BTreeMap<&'a Path, BTreeSet<&'a Path>>,
) -> Vec<&'a Path> {
    let mut ways = std::collections::VecDeque::from([vec![from]]);
    let mut seen = BTreeSet::new();
    while let Some(way) = ways.pop_front() {
        for next in &edges[way[way.len() - 1]] {
            if *next == from {
                return [&way[1..], &[from]].concat();
            }
            if reachable[next].contains(from) && seen.insert(*next) {
                ways.push_back([&way[..], &[*next]].concat());
            }
        }
    }
    Vec::new()
}

impl Module {
    fn read(path: &Path, file: &str, rust: &Rust, paths: &BTreeSet<Path>) -> Self {
        let mut module = Self {
            file: file.to_owned(),
            named: Vec::new(),
            imports: BTreeMap::new(),
        };
        for (_, leaf, name) in paths_in(rust, |line| !rust.in_test(line)) {
            if let Some(full) = full(path, &leaf, paths) {
                module.named.push(full.clone());
                module.imports.extend(name.map(|name| (name, full)));
            }
        }
        module
    }

    /// Returns the files that this one imports.
    fn imported<'a>(&self, path: &Path, modules: &'a BTreeMap<Path, Module>) -> BTreeSet<&'a Path> {
        let origins = self.named.iter().filter_map(|named| origin(named, modules));
        origins.filter(|origin| !path.starts_with(origin)).collect()
    }
}

/// Returns the file that defines what a full path names.
fn origin<'a>(named: &Path, modules: &'a BTreeMap<Path, Module>) -> Option<&'a Path> {
    let mut named = named.clone();
    for _ in 0..ORIGIN_STEPS_MAX {
        let len = (0..=named.len())
            .rev()
            .find(|&len| modules.contains_key(&named[..len]))?;
        let (path, module) = modules.get_key_value(&named[..len])?;
        let import = named.get(len).and_then(|name| module.imports.get(name));
        match import {
            Some(import) if import[..] != named[..=len] => {
                named = [&import[..], &named[len + 1..]].concat();
            }
            _ => return Some(path),
        }
    }
    None
}

/// Returns a path from the root of the crate; none for another crate's.
fn full(path: &Path, leaf: &[String], paths: &BTreeSet<Path>) -> Option<Path> {
    let (first, rest) = leaf.split_first()?;
    let ups = leaf.iter().take_while(|part| *part == "super").count();
    match first.as_str() {
        "crate" => Some(rest.to_vec()),
        "self" => Some([path, rest].concat()),
        "super" => Some([path.get(..path.len().checked_sub(ups)?)?, &leaf[ups..]].concat()),
        _ => {
            let child = [&path[..], &leaf[..1]].concat();
            paths.contains(&child).then(|| [&path[..], leaf].concat())
        }
    }
}

/// Returns the paths in the code of some lines, each with its line; those of imports with the names
/// that they have here.
pub(super) fn paths_in(
    rust: &Rust,
    is_read: impl Fn(usize) -> bool,
) -> Vec<(usize, Path, Option<String>)> {
    let tokens = rust.tokens.iter().filter(|token| is_read(token.line));
    let tokens: Vec<&Token> = tokens.collect();
    let (mut paths, mut at) = (Vec::new(), 0);
    while at < tokens.len() {
        let line = tokens[at].line;
        if tokens[at].is("use") && tokens.get(at + 1).is_some_and(|next| !next.is("<")) {
            let mut leaves = Vec::new();
            at = use_tree(&tokens, at + 1, &[], &mut leaves);
            let leaves = leaves.into_iter();
            paths.extend(leaves.map(|(leaf, name)| (line, leaf, Some(name))));
        } else if tokens[at].kind == Kind::Word && !(at > 1 && is_colons(&tokens, at - 2)) {
            let (leaf, end) = plain_path(&tokens, at);
            paths.extend((leaf.len() > 1).then_some((line, leaf, None)));
            at = end;
        } else {
            at += 1;
        }
    }
    paths
}

/// Reads `a::b::c`; returns its parts, and where it ends.
fn plain_path(tokens: &[&Token], at: usize) -> (Path, usize) {
    let (mut parts, mut at) = (vec![tokens[at].text.clone()], at + 1);
    while is_colons(tokens, at) && tokens.get(at + 2).is_some_and(|it| it.kind == Kind::Word) {
        parts.push(tokens[at + 2].text.clone());
        at += 3;
    }
    (parts, at)
}

fn is_colons(tokens: &[&Token], at: usize) -> bool {
    tokens.get(at).is_some_and(|it| it.is(":")) && tokens.get(at + 1).is_some_and(|it| it.is(":"))
}

/// Reads the tree of a `use`; adds its leaves with the names that they have here. Returns where it
/// ends.
fn use_tree(
    tokens: &[&Token],
    at: usize,
    before: &[String],
    leaves: &mut Vec<(Path, String)>,
) -> usize {
    let (mut path, mut at) = (before.to_vec(), at);
    while let Some(token) = tokens.get(at) {
        if token.is("{") {
            at += 1;
            while tokens
                .get(at)
                .is_some_and(|token| !token.is("}") && !token.is(";"))
            {
                at = use_tree(tokens, at, &path, leaves);
                at += usize::from(tokens.get(at).is_some_and(|token| token.is(",")));
            }
            return at + 1;
        }
        if token.kind == Kind::Word && token.is("as") {
            let name = tokens.get(at + 1).map_or("_", |token| &token.text);
            leaves.push((path, name.to_owned()));
            return at + 2;
        }
        match token.text.as_str() {
            "," | ";" | "}" => break,
            "self" if path.len() > before.len() || !before.is_empty() => {}
            _ if token.kind == Kind::Word => path.push(token.text.clone()),
            _ => {}
        }
        at += 1;
    }
    let name = path.last().cloned().unwrap_or_default();
    leaves.push((path, name));
    at
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::rule::case::Case;

    pub(crate) fn cases() -> Vec<Case> {
        let (lib, a, b) = ("c/src/lib.rs", "c/src/a.rs", "c/src/b.rs");
        vec![
            Case::rejects("import-circle", 1, a, "use crate::b::B;\n")
                .with(b, "fn f(_: super::a::A) {}\n")
                .with(lib, "mod a;\nmod b;\n"),
            Case::rejects("import-circle", 1, a, "use crate::d::B;\n")
                .with(b, "use super::a::{self, A};\n")
                .with("c/src/d/mod.rs", "pub(crate) use crate::b::B;\n"),
            Case::accepts("import-circle", a, "mod inner;\nuse inner::B;\nstruct A;\n")
                .with("c/src/a/inner.rs", "use super::A;\nuse crate::Root;\n")
                .with(lib, "use a::A;\nstruct Root;\n"),
            Case::accepts("import-circle", a, "use crate::b::B;\n")
                .with(b, "#[cfg(test)]\nmod tests {\n    use crate::a::A;\n}\n")
                .with(lib, "mod a;\nmod b;\n"),
        ]
    }
}
