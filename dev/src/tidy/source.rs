//! The files that tidy reads: their text, and for Rust its tokens, comments and test code.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use super::rust_lexer::{Comment, Kind, Token, lex};

/// A text file, by its path from the workspace root, with forward slashes.
pub(crate) struct Source {
    pub(crate) path: String,
    pub(crate) text: String,
    /// Present for `.rs`.
    pub(crate) rust: Option<Rust>,
}

impl Source {
    /// The last part of the path.
    pub(crate) fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }

    /// The part of the name after its last dot; empty for `LICENSE-MIT` or `.ci/run`.
    pub(crate) fn extension(&self) -> &str {
        self.name()
            .rsplit_once('.')
            .map_or("", |(_, extension)| extension)
    }

    /// Lines with their numbers, from 1.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text
            .split_terminator('\n')
            .enumerate()
            .map(|(index, line)| (index + 1, line))
    }
}

/// A Rust file, lexed.
pub(crate) struct Rust {
    pub(crate) tokens: Vec<Token>,
    pub(crate) comments: Vec<Comment>,
    /// The whole file is test code: `tests/`, `benches/`, or a module under `#[cfg(test)]`.
    pub(crate) is_test: bool,
    test_lines: Vec<RangeInclusive<usize>>,
    attribute_lines: BTreeSet<usize>,
    /// The last token of each line that has code.
    last_tokens: BTreeMap<usize, usize>,
}

impl Rust {
    fn new(path: &str, text: &str) -> (Self, Vec<String>) {
        let (tokens, comments) = lex(text);
        let is_test = path
            .split('/')
            .any(|part| part == "tests" || part == "benches");
        let mut last_tokens = BTreeMap::new();
        for (index, token) in tokens.iter().enumerate() {
            last_tokens.insert(token.line, index);
        }
        let mut rust = Self {
            tokens,
            comments,
            is_test,
            test_lines: Vec::new(),
            attribute_lines: BTreeSet::new(),
            last_tokens,
        };
        let test_modules = rust.find_attributes(path);
        (rust, test_modules)
    }

    /// Is the line test code, by its file or by a `#[cfg(test)]` or `#[test]` around it?
    pub(crate) fn in_test(&self, line: usize) -> bool {
        self.is_test || self.test_lines.iter().any(|lines| lines.contains(&line))
    }

    /// The index of the bracket that closes the one at `open`, or of the last token.
    pub(crate) fn closing(&self, open: usize) -> usize {
        let mut depth = 0_usize;
        for (index, token) in self.tokens.iter().enumerate().skip(open) {
            if token.kind != Kind::Mark {
                continue;
            }
            match token.text.as_str() {
                "(" | "[" | "{" => depth += 1,
                ")" | "]" | "}" => depth = depth.saturating_sub(1),
                _ => continue,
            }
            if depth == 0 {
                return index;
            }
        }
        self.tokens.len().saturating_sub(1)
    }

    /// Do the tokens from `at` on read like `pattern`?
    pub(crate) fn reads(&self, at: usize, pattern: &[&str]) -> bool {
        self.tokens.len() >= at + pattern.len()
            && pattern
                .iter()
                .zip(&self.tokens[at..])
                .all(|(text, token)| token.is(text))
    }

    /// Comments on the lines, whether alone or after code.
    pub(crate) fn comments_on(
        &self,
        lines: RangeInclusive<usize>,
    ) -> impl Iterator<Item = &Comment> {
        self.comments.iter().filter(move |comment| {
            comment.line <= *lines.end() && comment.line_end >= *lines.start()
        })
    }

    /// The comments that stand directly above a line, past attributes, and past the earlier lines
    /// of the same statement if `statement` says so.
    pub(crate) fn comments_above(&self, line: usize, statement: bool) -> Vec<&Comment> {
        let mut found = Vec::new();
        let mut line = line;
        while line > 1 {
            line -= 1;
            let Some(&last) = self.last_tokens.get(&line) else {
                let Some(comment) = self.comments_on(line..=line).next() else {
                    break;
                };
                found.push(comment);
                line = comment.line;
                continue;
            };
            let ends = [";", "{", "}", ","]
                .iter()
                .any(|mark| self.tokens[last].is(mark));
            if !self.attribute_lines.contains(&line) && (ends || !statement) {
                break;
            }
        }
        found
    }

    /// Notes attributes and test code; gives the paths that files of test modules may have.
    fn find_attributes(&mut self, path: &str) -> Vec<String> {
        let mut modules = Vec::new();
        for at in 0..self.tokens.len() {
            let inner = self.reads(at, &["#", "!", "["]);
            if !inner && !self.reads(at, &["#", "["]) {
                continue;
            }
            let close = self.closing(if inner { at + 2 } else { at + 1 });
            let first = self.tokens[at].line;
            self.attribute_lines.extend(first..=self.tokens[close].line);
            if !is_test_attribute(&self.tokens[at..=close]) {
                continue;
            }
            if inner {
                self.is_test = true;
                continue;
            }
            let (end, module) = self.item(close + 1);
            self.test_lines.push(first..=self.tokens[end].line);
            modules.extend(
                module
                    .into_iter()
                    .flat_map(|name| module_paths(path, &name)),
            );
        }
        modules
    }

    /// The last token of the item that begins at `at`, and its name if it is a `mod name;`.
    fn item(&self, at: usize) -> (usize, Option<String>) {
        let mut at = at;
        let mut module = None;
        while at < self.tokens.len() {
            let token = &self.tokens[at];
            if token.is("{") {
                return (self.closing(at), None);
            } else if token.is(";") {
                return (at, module);
            } else if token.is("(") || token.is("[") {
                at = self.closing(at);
            } else if token.is("mod") {
                module = self.tokens.get(at + 1).map(|name| name.text.clone());
            }
            at += 1;
        }
        (self.tokens.len() - 1, None)
    }
}

/// `#[test]`, or a `cfg` that cannot hold unless `test`, `loom` or `shuttle` does.
fn is_test_attribute(tokens: &[Token]) -> bool {
    match tokens.iter().position(|token| token.kind == Kind::Word) {
        Some(word) if tokens[word].is("test") => true,
        Some(word) if tokens[word].is("cfg") => !Holds::of(&mut tokens[word + 2..].iter()).yes,
        _ => false,
    }
}

/// Can a `cfg` predicate be true, and can it be false, in a build without `test`, `loom` and
/// `shuttle`?
#[derive(Clone, Copy)]
struct Holds {
    yes: bool,
    no: bool,
}

impl Holds {
    /// Reads one predicate, and the comma or bracket after it.
    fn of<'a>(tokens: &mut impl Iterator<Item = &'a Token>) -> Self {
        Self::next(tokens).unwrap_or(Self {
            yes: true,
            no: true,
        })
    }

    /// None at the bracket that closes the list of predicates.
    fn next<'a>(tokens: &mut impl Iterator<Item = &'a Token>) -> Option<Self> {
        let name = tokens.find(|token| !token.is(","))?;
        match name.text.as_str() {
            ")" => None,
            "test" | "loom" | "shuttle" => Some(Self {
                yes: false,
                no: true,
            }),
            list @ ("all" | "any" | "not") => {
                tokens.next();
                let parts: Vec<Self> = std::iter::from_fn(|| Self::next(tokens)).collect();
                let (yes, no) = (|part: &Self| part.yes, |part: &Self| part.no);
                let mut parts = parts.iter();
                Some(match list {
                    "all" => Self {
                        yes: parts.clone().all(yes),
                        no: parts.any(no),
                    },
                    "any" => Self {
                        yes: parts.clone().any(yes),
                        no: parts.all(no),
                    },
                    _ => Self {
                        yes: parts.clone().any(no),
                        no: parts.any(yes),
                    },
                })
            }
            // `unix`, or `feature = "name"`: its value is read as one more that may be either.
            _ => Some(Self {
                yes: true,
                no: true,
            }),
        }
    }
}

/// Where the file of `mod name;` in `path` may be.
fn module_paths(path: &str, name: &str) -> [String; 2] {
    let (folder, file) = path.rsplit_once('/').unwrap_or(("", path));
    let folder = match file {
        "mod.rs" | "lib.rs" | "main.rs" => folder.to_owned(),
        _ => format!("{folder}/{}", file.trim_end_matches(".rs")),
    };
    [
        format!("{folder}/{name}.rs"),
        format!("{folder}/{name}/mod.rs"),
    ]
}

/// All files under one root.
pub(crate) struct Tree {
    pub(crate) files: Vec<Source>,
}

impl Tree {
    /// Lexes what is Rust. Pairs are path and text.
    pub(crate) fn new(files: impl IntoIterator<Item = (String, String)>) -> Self {
        let mut test_modules = Vec::new();
        let mut files: Vec<Source> = files
            .into_iter()
            .map(|(path, text)| {
                let rust = path.ends_with(".rs").then(|| {
                    let (rust, modules) = Rust::new(&path, &text);
                    test_modules.extend(modules);
                    rust
                });
                Source { path, text, rust }
            })
            .collect();
        for file in &mut files {
            let folder_of_test = |module: &String| {
                let folder = module.trim_end_matches("/mod.rs").trim_end_matches(".rs");
                file.path
                    .strip_prefix(folder)
                    .is_some_and(|rest| rest.starts_with('/'))
            };
            let inside = |module: &String| *module == file.path || folder_of_test(module);
            if let Some(rust) = &mut file.rust
                && test_modules.iter().any(inside)
            {
                rust.is_test = true;
            }
        }
        Self { files }
    }

    /// The Rust files.
    pub(crate) fn rust(&self) -> impl Iterator<Item = (&Source, &Rust)> {
        self.files
            .iter()
            .filter_map(|file| file.rust.as_ref().map(|rust| (file, rust)))
    }

    /// The file at exactly this path.
    pub(crate) fn get(&self, path: &str) -> Option<&Source> {
        self.files.iter().find(|file| file.path == path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[(&str, &str)]) -> Tree {
        Tree::new(
            files
                .iter()
                .map(|&(path, text)| (path.to_owned(), text.to_owned())),
        )
    }

    fn rust(text: &str) -> Rust {
        Rust::new("src/a.rs", text).0
    }

    #[test]
    fn test_code_is_a_region_of_its_file() {
        let file = rust("fn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\nfn c() {}\n");
        let lines: Vec<bool> = (1..=6).map(|line| file.in_test(line)).collect();
        assert_eq!(lines, [false, true, true, true, true, false]);
        assert!(rust("#[cfg(all(test, loom))]\nmod m {\n}").in_test(2));
        assert!(!rust("#[cfg(not(test))]\nmod m {\n}").in_test(2));
    }

    #[test]
    fn a_cfg_that_needs_test_or_a_model_is_test_code() {
        let is_test = |cfg: &str| rust(&format!("#[cfg({cfg})]\nmod m {{\n}}")).in_test(2);
        for cfg in [
            "test",
            "loom",
            "all(test, not(loom))",
            "all(unix, any(test, loom))",
            "any(loom, shuttle)",
        ] {
            assert!(is_test(cfg), "{cfg}");
        }
        for cfg in [
            "not(test)",
            "any(test, unix)",
            "feature = \"test\"",
            "all(unix, not(loom))",
            "not(any(loom, shuttle))",
        ] {
            assert!(!is_test(cfg), "{cfg}");
        }
        assert!(!is_test("all(feature = \"a\", not(all(test, loom)))"));
    }

    #[test]
    fn a_module_under_cfg_test_makes_its_file_and_folder_test_code() {
        let tree = tree(&[
            (
                "src/ring.rs",
                "#[cfg(all(loom, test))]\nmod models;\nmod lane;",
            ),
            ("src/ring/models.rs", ""),
            ("src/ring/models/deep.rs", ""),
            ("src/ring/lane.rs", ""),
            ("tests/ring.rs", ""),
        ]);
        let is_test: Vec<bool> = tree.rust().map(|(_, rust)| rust.is_test).collect();
        assert_eq!(is_test, [false, true, true, false, true]);
    }

    #[test]
    fn comments_above_skip_attributes_but_not_other_statements() {
        let file = rust("// one\n#[inline]\nfn a() {\n    let x =\n        b();\n}\n");
        assert_eq!(file.comments_above(3, false).len(), 1);
        assert!(file.comments_above(4, true).is_empty());
        let file = rust("// one\nlet x =\n    b();\n");
        assert_eq!(file.comments_above(3, true).len(), 1);
        assert!(file.comments_above(3, false).is_empty());
    }

    #[test]
    fn brackets_in_text_do_not_count() {
        let file = rust("f(\"}\", ')', { 1 }) x");
        assert!(file.tokens[file.closing(1) + 1].is("x"));
    }
}
