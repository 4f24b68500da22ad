//! Which cases of an experiment to run.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

/// Patterns separated by commas, each a part of a name, where `*` stands for anything.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cases {
    /// Each pattern's pieces between the stars; none means everything.
    patterns: Vec<Vec<String>>,
    /// What the experiment has asked about so far, shared with all clones.
    asked: Arc<Mutex<Asked>>,
}

#[derive(Debug, Default)]
struct Asked {
    cases: BTreeSet<String>,
    is_any_wanted: bool,
}

impl Cases {
    /// Reads patterns.
    ///
    /// # Errors
    /// A pattern is empty.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let pieces = |pattern: &str| -> Vec<String> {
            let pieces = pattern.split('*').filter(|piece| !piece.is_empty());
            pieces.map(str::to_owned).collect()
        };
        let patterns = text.split(',').map(str::trim);
        if patterns.clone().any(str::is_empty) {
            return Err(format!("pattern {text:?} has an empty part"));
        }
        let patterns = patterns.map(pieces).collect();
        let asked = Arc::default();
        Ok(Self { patterns, asked })
    }

    /// Whether to run this subject in this case; the name that patterns are held against is
    /// `case/subject`.
    pub(crate) fn wants(&self, case: &str, subject: &str) -> bool {
        let name = format!("{case}/{subject}");
        let is_wanted =
            self.patterns.is_empty() || self.patterns.iter().any(|pieces| holds(&name, pieces));
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked.is_any_wanted |= is_wanted;
        if !asked.cases.contains(case) {
            asked.cases.insert(case.to_owned());
        }
        is_wanted
    }

    /// The cases that the experiment has, if none of them was wanted.
    pub(crate) fn without_any(&self) -> Option<String> {
        let asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let is_none = !asked.is_any_wanted && !asked.cases.is_empty();
        let names: Vec<&str> = asked.cases.iter().map(String::as_str).collect();
        is_none.then(|| names.join(", "))
    }
}

/// Whether `name` has all pieces, one after the other.
fn holds(name: &str, pieces: &[String]) -> bool {
    let mut rest = name;
    pieces
        .iter()
        .all(|piece| match rest.split_once(piece.as_str()) {
            Some((_, behind)) => {
                rest = behind;
                true
            }
            None => false,
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_parts_of_the_name() {
        let wants = |text: &str, case: &str, subject: &str| {
            Cases::parse(text).unwrap().wants(case, subject)
        };
        assert!(wants("inline", "1M/s", "thalweg inline"));
        assert!(!wants("inline", "1M/s", "thalweg auto"));
        assert!(wants("1M*inline", "1M/s", "thalweg inline"));
        assert!(!wants("inline*1M", "1M/s", "thalweg inline"));
        assert!(wants("2M, auto", "1M/s", "thalweg auto"));
        assert!(wants("*", "1M/s", "thalweg auto"));
        assert!(Cases::default().wants("1M/s", "thalweg auto"));
    }

    #[test]
    fn a_run_without_any_wanted_case_is_known_with_the_cases_that_there_are() {
        let cases = Cases::parse("nosuch").unwrap();
        assert_eq!(cases.without_any(), None, "nothing was asked about");
        let within = cases.clone();
        for (case, subject) in [("two", "a"), ("one", "a"), ("one", "b")] {
            assert!(!within.wants(case, subject));
        }
        assert_eq!(cases.without_any().unwrap(), "one, two");
        assert!(within.wants("nosuch", "a"));
        assert_eq!(cases.without_any(), None);
    }

    #[test]
    fn empty_patterns_are_refused() {
        for text in ["", ",", "a,", "a,,b", " "] {
            let error = Cases::parse(text).unwrap_err();
            assert_eq!(error, format!("pattern {text:?} has an empty part"));
        }
    }
}
