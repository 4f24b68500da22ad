//! Counts beside those of the baseline.

use std::collections::BTreeSet;
use std::fmt;

use super::baseline::Counts;

/// How far a count may be from the baseline's, either way: less is a new baseline too.
const CHANGE_PERCENT_MAX: f64 = 3.0;

/// One operation; at least one of the two is there.
struct Row {
    name: String,
    expected: Option<f64>,
    counted: Option<f64>,
}

impl Row {
    fn change_percent(&self) -> Option<f64> {
        let (expected, counted) = (self.expected?, self.counted?);
        let change = (counted / expected - 1.0) * 100.0;
        // The baseline is rounded, and `-0.0 %` would look like a change.
        Some(if change.abs() < 0.05 { 0.0 } else { change })
    }

    /// A sentence that says what is wrong, if anything is.
    fn fault(&self) -> Option<String> {
        let name = &self.name;
        match (self.expected, self.counted, self.change_percent()) {
            (Some(expected), Some(counted), Some(change)) if change.abs() > CHANGE_PERCENT_MAX => {
                Some(format!(
                    "{name}: {counted:.2} instructions, {change:+.1} % from {expected:.2}; \
                     {CHANGE_PERCENT_MAX} % are allowed"
                ))
            }
            (Some(_), None, _) => Some(format!("{name}: in the baseline, but not counted")),
            (None, Some(_), _) => Some(format!("{name}: counted, but not in the baseline")),
            _ => None,
        }
    }
}

/// All operations, by name; shown as a table and a line for each fault.
pub(super) struct Comparison(Vec<Row>);

impl Comparison {
    pub(super) fn new(expected: &Counts, counted: &Counts) -> Self {
        let names: BTreeSet<&String> = expected.keys().chain(counted.keys()).collect();
        let row = |name: &String| Row {
            name: name.clone(),
            expected: expected.get(name).copied(),
            counted: counted.get(name).copied(),
        };
        Self(names.into_iter().map(row).collect())
    }

    /// Is every count near its baseline, and is each known on both sides?
    pub(super) fn holds(&self) -> bool {
        self.0.iter().all(|row| row.fault().is_none())
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cell = |count: Option<f64>| count.map_or("-".to_owned(), |count| format!("{count:.2}"));
        writeln!(
            f,
            "{:32} {:>9} {:>9} {:>9}",
            "instructions", "baseline", "counted", "change"
        )?;
        for row in &self.0 {
            let change = row.change_percent();
            let change = change.map_or("-".to_owned(), |change| format!("{change:+.1} %"));
            let (expected, counted) = (cell(row.expected), cell(row.counted));
            let mark = if row.fault().is_some() { "  <-" } else { "" };
            let name = &row.name;
            writeln!(f, "{name:32} {expected:>9} {counted:>9} {change:>9}{mark}")?;
        }
        let faults: Vec<String> = self.0.iter().filter_map(Row::fault).collect();
        for fault in &faults {
            writeln!(f, "{fault}")?;
        }
        writeln!(
            f,
            "counts: {} operations, {} differ",
            self.0.len(),
            faults.len()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(counts: &[(&str, f64)]) -> Counts {
        let owned = |&(name, count): &(&str, f64)| (name.to_owned(), count);
        counts.iter().map(owned).collect()
    }

    #[test]
    fn three_percent_are_allowed_either_way() {
        let expected = counts(&[("a", 100.0)]);
        for (count, holds) in [
            (100.0, true),
            (102.9, true),
            (97.1, true),
            (103.1, false),
            (96.9, false),
        ] {
            let comparison = Comparison::new(&expected, &counts(&[("a", count)]));
            assert_eq!(comparison.holds(), holds, "{count}");
        }
    }

    #[test]
    fn each_fault_is_named_below_the_table() {
        let expected = counts(&[("a", 50.0), ("b", 7.0), ("c", 200.0), ("e", 53.01)]);
        let counted = counts(&[("a", 52.0), ("c", 200.6), ("d", 9.0), ("e", 53.007)]);
        let shown = "\
instructions                      baseline   counted    change
a                                    50.00     52.00    +4.0 %  <-
b                                     7.00         -         -  <-
c                                   200.00    200.60    +0.3 %
d                                        -      9.00         -  <-
e                                    53.01     53.01    +0.0 %
a: 52.00 instructions, +4.0 % from 50.00; 3 % are allowed
b: in the baseline, but not counted
d: counted, but not in the baseline
counts: 5 operations, 3 differ
";
        assert_eq!(Comparison::new(&expected, &counted).to_string(), shown);
    }
}
