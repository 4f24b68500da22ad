//! Formats a comparison as text.

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
            Finding::NotShown => "not shown to differ",
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

fn cells(row: &Row) -> [Cell; 7] {
    let mut difference = row.unit.signed(row.shift.value);
    if row.shift.is_bounded() {
        let [low, high] = [row.shift.low, row.shift.high].map(|bound| row.unit.signed(bound));
        difference += &format!(" [{low}, {high}]");
    }
    let percent = row.shift_percent.map(Bounded::shown);
    [
        Cell::Text(row.title.to_owned()),
        Cell::Number(row.unit.shown(row.a)),
        Cell::Number(row.unit.shown(row.b)),
        Cell::Number(difference),
        Cell::Number(percent.unwrap_or_else(|| "-".to_owned())),
        Cell::Number(p(row.p_holm)),
        Cell::Text(row.verdict.to_string()),
    ]
}

impl Comparison {
    /// Returns the verdict, and the times that show a difference.
    fn headline(&self) -> String {
        let is_different = |row: &&Row| matches!(row.verdict, Finding::Faster | Finding::Slower);
        let text = |row: &Row| {
            let shift = row.shift_percent.map_or_else(String::new, Bounded::shown);
            format!("{} {shift} %", row.title)
        };
        let times: Vec<String> = self.metrics.iter().filter(is_different).map(text).collect();
        let times = times.join(", ");
        let but = match times.is_empty() {
            true => String::new(),
            false => format!("; but {times}"),
        };
        match (self.verdict, self.metrics.first()) {
            (Finding::NotShown, Some(wall)) if wall.shift.leaves_out_0() => {
                let all = format!("(taken alone; p over all metrics is {})", p(wall.p_holm));
                format!("{}: {} {all}{but}", Finding::NotShown, text(wall))
            }
            (unknown @ Finding::NotShown, Some(wall)) => format!("{unknown}: {}{but}", text(wall)),
            (verdict, _) if times.is_empty() => verdict.to_string(),
            (verdict, _) => format!("{verdict}: {times}"),
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
