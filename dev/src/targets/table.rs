//! The table of crates and systems.

use std::collections::BTreeMap;
use std::fmt;

use crate::workspace::Tally;

/// The state of a crate on a system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cell {
    /// It compiles, without a warning.
    Checked,
    /// Its tests ran.
    Ran(Tally),
    Failed,
}

impl From<Result<(), String>> for Cell {
    fn from(compiled: Result<(), String>) -> Self {
        compiled.map_or(Self::Failed, |()| Self::Checked)
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Checked => f.pad("checked"),
            Self::Ran(tally) => f.pad(&format!("ran {}", tally.passed)),
            Self::Failed => f.pad("FAILED"),
        }
    }
}

/// Cells by row and column, in the order in which these came, and what was skipped.
#[derive(Default)]
pub(super) struct Table {
    rows: Vec<String>,
    columns: Vec<String>,
    cells: BTreeMap<(usize, usize), Cell>,
    notes: Vec<String>,
}

impl Table {
    /// Sets a cell. A failure stays.
    pub(super) fn set(&mut self, row: &str, column: &str, cell: Cell) {
        let at = (place(&mut self.rows, row), place(&mut self.columns, column));
        let old = self.cells.entry(at).or_insert(cell);
        if *old != Cell::Failed {
            *old = cell;
        }
    }

    pub(super) fn skip(&mut self, what: &str, why: &str) {
        self.note(format!("skipped: {what}: {why}"));
    }

    pub(super) fn note(&mut self, line: String) {
        self.notes.push(line);
    }

    pub(super) fn has_failed(&self) -> bool {
        self.cells.values().any(|cell| *cell == Cell::Failed)
    }

    /// Returns the sum of the tests that ran.
    pub(super) fn tally(&self) -> Tally {
        let mut sum = Tally::default();
        for cell in self.cells.values() {
            if let Cell::Ran(tally) = cell {
                sum.passed += tally.passed;
                sum.failed += tally.failed;
            }
        }
        sum
    }
}

/// Returns the place of a name, which is appended if it is new.
fn place(names: &mut Vec<String>, name: &str) -> usize {
    names
        .iter()
        .position(|known| known == name)
        .unwrap_or_else(|| {
            names.push(name.to_owned());
            names.len() - 1
        })
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.rows.iter().map(String::len).max().unwrap_or(0);
        write!(f, "{:width$}", "")?;
        for column in &self.columns {
            write!(f, "  {column:>8}")?;
        }
        for (row, name) in self.rows.iter().enumerate() {
            write!(f, "\n{name:width$}")?;
            for (column, title) in self.columns.iter().enumerate() {
                let width = title.len().max(8);
                match self.cells.get(&(row, column)) {
                    Some(cell) => write!(f, "  {cell:>width$}")?,
                    None => write!(f, "  {:>width$}", "-")?,
                }
            }
        }
        self.notes.iter().try_for_each(|note| write!(f, "\n{note}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_says_what_ran_what_was_checked_and_what_was_skipped() {
        let mut table = Table::default();
        let tally = Tally {
            passed: 12,
            failed: 0,
        };
        table.set("thalweg", "here", Cell::Checked);
        table.set("thalweg-hash", "elsewhere", Cell::Checked);
        table.set("thalweg", "here", Cell::Ran(tally));
        table.skip("the rest", "no time");
        let lines = [
            "                  here  elsewhere",
            "thalweg         ran 12          -",
            "thalweg-hash         -    checked",
            "skipped: the rest: no time",
        ];
        assert_eq!(table.to_string(), lines.join("\n"));
        assert_eq!((table.has_failed(), table.tally()), (false, tally));
    }

    #[test]
    fn a_failure_stays() {
        let mut table = Table::default();
        table.set("thalweg", "here", Cell::Failed);
        table.set("thalweg", "here", Cell::Checked);
        assert!(table.has_failed());
        assert!(table.to_string().ends_with("FAILED"));
    }
}
