//! A comparison as text.

use super::judge::{Bounded, Comparison, Finding, Row, Side};
use std::fmt;
use thalweg_measure::table::{Cell, Table};

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Finding::Faster => "B is faster",
            Finding::Slower => "B is slower",
            Finding::Less => "B has less",
            Finding::More => "B has more",
            Finding::Untold => "no difference told",
            Finding::Contaminated => "contaminated",
        })
    }
}

fn p(p: f64) -> String {
    if p < 0.001 {
        "<0.001".to_owned()
    } else {
        format!("{p:.3}")
    }
}

fn percent(shift: Bounded) -> String {
    format!(
        "{:+.1} [{:+.1}, {:+.1}]",
        shift.value, shift.low, shift.high
    )
}

fn cells(row: &Row) -> [Cell; 7] {
    let difference = format!(
        "{} [{}, {}]",
        row.unit.signed(row.shift.value),
        row.unit.signed(row.shift.low),
        row.unit.signed(row.shift.high)
    );
    [
        Cell::Text(row.title.to_owned()),
        Cell::Number(row.unit.shown(row.a)),
        Cell::Number(row.unit.shown(row.b)),
        Cell::Number(difference),
        Cell::Number(row.shift_percent.map_or_else(|| "-".to_owned(), percent)),
        Cell::Number(p(row.p_holm)),
        Cell::Text(row.verdict.to_string()),
    ]
}

impl Comparison {
    /// The verdict, and the times that tell a difference.
    fn headline(&self) -> String {
        let is_told = |row: &&Row| matches!(row.verdict, Finding::Faster | Finding::Slower);
        let told = |row: &Row| {
            let shift = row.shift_percent.map_or_else(String::new, percent);
            format!("{} {shift} %", row.title)
        };
        let times: Vec<String> = self.metrics.iter().filter(is_told).map(told).collect();
        match (self.verdict, times.is_empty()) {
            (Finding::Untold, false) => {
                format!(
                    "no difference told in wall time, but in {}",
                    times.join(", ")
                )
            }
            (verdict, false) => format!("{verdict}: {}", times.join(", ")),
            (verdict, true) => verdict.to_string(),
        }
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side = |side: &Side| {
            let way = if side.shell { "  (run by sh -c)" } else { "" };
            format!("{}{way}", side.command)
        };
        writeln!(f, "A  {}\nB  {}", side(&self.a), side(&self.b))?;
        write!(f, "{} runs of each, seed {}: ", self.n, self.seed)?;
        writeln!(f, "{}", self.headline())?;
        if let Some(next) = &self.next {
            writeln!(f, "{next}")?;
        }
        let head = ["metric", "A", "B", "B - A", "per cent of A", "p", "verdict"];
        let mut table = Table::new(head);
        for row in &self.metrics {
            table.row(cells(row));
        }
        write!(f, "\n{table}")
    }
}
