//! Names of types: one name for one type, wherever two could be taken for each other.

use std::collections::BTreeMap;

use super::circle::paths_in;
use super::rule::{Findings, Rule};
use super::rust_lexer::Kind;
use super::source::{Rust, Tree};

pub(crate) const RULES: &[Rule] = &[Rule {
    name: "type-name",
    summary: "a crate exports no two types of one name, and no file names two of one name",
    check: type_names,
}];

/// The types of one name of a crate: the file of each, its line, and whether it is exported.
type Declared<'t> = BTreeMap<(String, &'t str), Vec<(&'t str, usize, bool)>>;

fn type_names(tree: &Tree, findings: &mut Findings) {
    let mut declared = Declared::new();
    for (file, rust) in tree.rust() {
        for (name, line, is_exported) in types(rust) {
            let types = declared.entry((crate_of(&file.path), name)).or_default();
            types.push((&file.path, line, is_exported));
        }
    }
    for ((of, name), types) in &declared {
        let mut exported = types.iter().filter(|it| it.2 && of.ends_with("/src/"));
        let first = exported.next().map_or("", |it| it.0);
        for (file, line, _) in exported.filter(|it| it.0 != first) {
            findings.add(file, *line, format!("`{name}` is in {first} too"));
        }
    }
    for (file, rust) in tree.rust() {
        named_twice(&file.path, rust, &declared, findings);
    }
}

/// Returns the types that a file declares for other files: name, line, and whether it is `pub`,
/// and so exported: the compiler refuses `pub` for others (`unreachable_pub`). An alias for a type
/// of the same name is no second type.
fn types(rust: &Rust) -> impl Iterator<Item = (&str, usize, bool)> {
    let is_item = |word: &str| ["struct", "enum", "union", "trait", "type"].contains(&word);
    rust.tokens
        .windows(3)
        .enumerate()
        .filter_map(move |(at, tokens)| {
            let (is_pub, name) = (tokens[0].is("pub"), &tokens[2]);
            let mut rest = rust.tokens[at + 3..]
                .iter()
                .take_while(|it| !it.is(";") && !it.is("{"));
            let is_type = name.kind == Kind::Word
                && (is_pub || tokens[0].is(")"))
                && is_item(&tokens[1].text);
            let is_alias = tokens[1].is("type") && rest.any(|it| it.is(&name.text));
            (is_type && !is_alias).then_some((name.text.as_str(), name.line, is_pub))
        })
}

/// Returns the folder of the crate, or of its tests or examples, that a file is in.
fn crate_of(path: &str) -> String {
    let ends = ["/src/", "/tests/", "/examples/", "/benches/", "/cases/"];
    let ends = ends
        .iter()
        .filter_map(|end| Some(path.find(end)? + end.len()));
    path[..ends.min().unwrap_or(0)].to_owned()
}

fn named_twice(file: &str, rust: &Rust, declared: &Declared<'_>, findings: &mut Findings) {
    let own = crate_of(file);
    let mut imports: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut others: BTreeMap<String, (String, String)> = BTreeMap::new();
    for (line, mut path, alias) in paths_in(rust, |_| true) {
        match (&alias, imports.get(&path[0])) {
            (Some(name), _) => _ = imports.insert(name.clone(), path.clone()),
            (None, Some(root)) => path = [root, &path[1..]].concat(),
            _ => {}
        }
        let of = match path[0].strip_prefix("thalweg") {
            Some(rest) => format!("crates/thalweg{}/src/", rest.replace('_', "-")),
            None if ["crate", "self", "super"].contains(&path[0].as_str()) => own.clone(),
            None => continue,
        };
        let is_type = |part: &String| part.starts_with(char::is_uppercase);
        let Some(at) = path.iter().position(is_type) else {
            continue;
        };
        let (name, path) = (path[at].as_str(), path[..=at].join("::"));
        let count = declared.get(&(of.clone(), name)).map_or(0, Vec::len);
        let is_renamed = alias.is_some_and(|alias| alias != name && alias != "_");
        let is_ours = declared.contains_key(&(own.clone(), name)) && of != own;
        let other = others.entry(name.to_owned());
        let (other_of, other) = other.or_insert_with(|| (of.clone(), path.clone()));
        if is_renamed && is_ours && count > 0 {
            findings.add(file, line, format!("`{path}` under another name"));
        } else if count > 0 && *other_of != of || count > 1 && *other != path {
            findings.add(file, line, format!("`{path}` beside `{other}`"));
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::rule::case::Case;

    pub(crate) fn cases() -> Vec<Case> {
        let [a, b, c, d] = ["x/src/a", "x/src/b", "y/src/c", "y/src/d"];
        let [a, b, c, d] = [a, b, c, d].map(|file| format!("crates/thalweg-{file}.rs"));
        let (exported, inner) = ("pub struct A;\n", "pub(crate) enum A {}\n");
        let both = "use thalweg_x::a;\nfn f(_: a::A, _: thalweg_x::b::A) {}\n";
        let renamed = "use thalweg_x::A as B;\n";
        let rejects = |line, file, text| Case::rejects("type-name", line, file, text);
        let accepts = |file, text| Case::accepts("type-name", file, text);
        vec![
            rejects(2, &a, exported).with(&b, "\npub type A = u8;\n"),
            rejects(2, &c, both).with(&a, exported).with(&b, inner),
            rejects(1, &c, renamed).with(&a, exported).with(&d, inner),
            accepts(&b, "pub type A = super::a::A;\n").with(&a, exported),
            accepts(&b, inner).with(&a, exported).with(&c, exported),
            accepts(&c, both).with(&a, exported),
            accepts(&c, renamed).with(&a, exported),
        ]
    }
}
