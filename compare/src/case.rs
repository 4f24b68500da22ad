//! Which cases of an experiment to run.

/// Patterns separated by commas, each a part of a name, where `*` stands for anything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Cases {
    /// Each pattern's pieces between the stars; none means everything.
    patterns: Vec<Vec<String>>,
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
        Ok(Self { patterns })
    }

    /// Whether to run this subject in this case; the name that patterns are held against is
    /// `case/subject`.
    pub(crate) fn wants(&self, case: &str, subject: &str) -> bool {
        let name = format!("{case}/{subject}");
        self.patterns.is_empty() || self.patterns.iter().any(|pieces| holds(&name, pieces))
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
    fn empty_patterns_are_refused() {
        for text in ["", ",", "a,", "a,,b", " "] {
            let error = Cases::parse(text).unwrap_err();
            assert_eq!(error, format!("pattern {text:?} has an empty part"));
        }
    }
}
