//! A rule, and what it finds.

use std::fmt;

use super::source::Tree;

/// One habit that a machine can check.
pub(crate) struct Rule {
    /// As printed in a finding.
    pub(crate) name: &'static str,
    /// One line for `--list`.
    pub(crate) summary: &'static str,
    /// Looks at the whole tree.
    pub(crate) check: fn(&Tree, &mut Findings),
}

/// One place that breaks a rule.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    pub(crate) path: String,
    pub(crate) line: usize,
    pub(crate) rule: &'static str,
    pub(crate) message: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}:{}: {}: {}",
            self.path, self.line, self.rule, self.message
        )
    }
}

/// The findings of the rules so far.
#[derive(Default)]
pub(crate) struct Findings {
    rule: &'static str,
    found: Vec<Finding>,
}

impl Findings {
    /// Runs the rules; sorted by path and line.
    pub(crate) fn of(tree: &Tree, rules: impl Iterator<Item = &'static Rule>) -> Vec<Finding> {
        let mut findings = Self::default();
        for rule in rules {
            findings.rule = rule.name;
            (rule.check)(tree, &mut findings);
        }
        findings.found.sort();
        findings.found.dedup();
        findings.found
    }

    /// Notes a place that breaks the rule being run.
    pub(crate) fn add(&mut self, path: &str, line: usize, message: impl Into<String>) {
        let (path, message) = (path.to_owned(), message.into());
        self.found.push(Finding {
            path,
            line,
            rule: self.rule,
            message,
        });
    }
}

/// Cases that a rule must reject or accept; each rule file has its own.
#[cfg(test)]
pub(super) mod case {
    /// Some files, and what one rule must say of them.
    pub(crate) struct Case {
        pub(crate) rule: &'static str,
        pub(crate) files: Vec<(String, String)>,
        /// The line that must be found, if any.
        pub(crate) line: Option<usize>,
    }

    /// Makes cases of a rule that are one Rust file: what it must reject, by line, and accept.
    pub(crate) fn in_rust(
        rule: &'static str,
    ) -> (impl Fn(usize, &str) -> Case, impl Fn(&str) -> Case) {
        let rejects = move |line, text: &str| Case::rejects(rule, line, "src/a.rs", text);
        (rejects, move |text: &str| {
            Case::accepts(rule, "src/a.rs", text)
        })
    }

    impl Case {
        /// `rule` must find something on `line`, and nowhere else.
        pub(crate) fn rejects(rule: &'static str, line: usize, path: &str, text: &str) -> Self {
            Self {
                rule,
                files: vec![(path.to_owned(), text.to_owned())],
                line: Some(line),
            }
        }

        /// `rule` must find nothing.
        pub(crate) fn accepts(rule: &'static str, path: &str, text: &str) -> Self {
            Self {
                rule,
                files: vec![(path.to_owned(), text.to_owned())],
                line: None,
            }
        }

        /// With one more file.
        pub(crate) fn with(mut self, path: &str, text: &str) -> Self {
            self.files.push((path.to_owned(), text.to_owned()));
            self
        }
    }
}
