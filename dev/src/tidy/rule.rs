//! The list of rules, what a rule is, and what it finds.

use std::fmt;

use super::source::Tree;
use super::{leftover, length, link, manifest, memory, naming, text};

/// One habit that a machine can check.
pub(crate) struct Rule {
    /// As printed in a finding.
    pub(crate) name: &'static str,
    /// One line for `--list`.
    pub(crate) summary: &'static str,
    /// Looks at the whole tree.
    pub(crate) check: fn(&Tree, &mut Findings),
}

/// Every rule, in the order of `--list`.
pub(crate) fn rules() -> impl Iterator<Item = &'static Rule> {
    let parts = [
        length::RULES,
        text::RULES,
        link::RULES,
        memory::RULES,
        leftover::RULES,
        naming::RULES,
        manifest::RULES,
    ];
    parts.into_iter().flatten()
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
    /// Runs every rule; sorted by path and line.
    pub(crate) fn of(tree: &Tree) -> Vec<Finding> {
        let mut findings = Self::default();
        for rule in rules() {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn cases() -> Vec<case::Case> {
        let parts = [
            length::tests::cases(),
            text::tests::cases(),
            link::tests::cases(),
            memory::tests::cases(),
            leftover::tests::cases(),
            naming::tests::cases(),
            manifest::tests::cases(),
        ];
        parts.into_iter().flatten().collect()
    }

    #[test]
    fn every_rule_has_a_case_to_reject_and_one_to_accept() {
        let cases = cases();
        for rule in rules() {
            let of_rule = || cases.iter().filter(|case| case.rule == rule.name);
            assert!(
                of_rule().any(|case| case.line.is_some()),
                "{} rejects nothing",
                rule.name
            );
            assert!(
                of_rule().any(|case| case.line.is_none()),
                "{} accepts nothing",
                rule.name
            );
        }
        for case in &cases {
            assert!(
                rules().any(|rule| rule.name == case.rule),
                "no rule {}",
                case.rule
            );
        }
    }

    #[test]
    fn every_case_is_judged_as_it_says() {
        for case in cases() {
            let tree = Tree::new(case.files.clone());
            let mut findings = Findings::of(&tree);
            findings.retain(|finding| finding.rule == case.rule);
            let lines: Vec<usize> = findings.iter().map(|finding| finding.line).collect();
            let expected: Vec<usize> = case.line.into_iter().collect();
            assert_eq!(
                lines, expected,
                "{} on {:?}: {findings:?}",
                case.rule, case.files
            );
        }
    }

    #[test]
    fn names_are_unique_and_every_rule_is_summed_up_in_a_line() {
        let mut names: Vec<_> = rules().map(|rule| rule.name).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
        assert!(rules().all(|rule| !rule.summary.is_empty() && !rule.summary.contains('\n')));
    }

    #[test]
    fn a_finding_reads_as_path_line_rule_message() {
        let found = Findings::of(&Tree::new([(
            "src/a.rs".to_owned(),
            "fn a() {}".to_owned(),
        )]));
        let texts: Vec<String> = found.iter().map(Finding::to_string).collect();
        assert_eq!(
            texts,
            ["src/a.rs:1: final-newline: the file does not end with one newline"]
        );
    }
}
