//! Formats a machine's costs as text.

use super::{Figure, Machine, Pair};
use std::fmt;
use thalweg_measure::table::{Cell, Nanoseconds, Table};

/// The maximum number of pairs that are shown one by one.
const PAIRS_SHOWN_MAX: usize = 6;

fn cells(title: String, figure: Figure) -> [Cell; 4] {
    let bounds = match (figure.low, figure.high) {
        (Some(low), Some(high)) => format!("[{}, {}]", Nanoseconds(low), Nanoseconds(high)),
        _ => "-".to_owned(),
    };
    [
        Cell::Text(title),
        Cell::Number(Nanoseconds(figure.value).to_string()),
        Cell::Number(bounds),
        Cell::Number(figure.n.to_string()),
    ]
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let processor = self.processor.as_deref().unwrap_or("an unnamed processor");
        let count = self.cores.len();
        let cores = if count == 1 { "core" } else { "cores" };
        writeln!(f, "{processor}, {count} usable {cores}")?;
        if let Some(percent) = self.disturbed_percent() {
            writeln!(
                f,
                "Others took {percent:.0} % of its cores meanwhile: the figures are too high."
            )?;
        }
        let mut table = Table::new(["what it costs", "median", "interval of 95 %", "n"]);
        for &(cost, figure) in &self.costs {
            table.row(cells(cost.title().to_owned(), figure));
        }
        if (2..=PAIRS_SHOWN_MAX).contains(&self.pairs.len()) {
            for &Pair { from, to, figure } in &self.pairs {
                table.row(cells(
                    format!("cache line, core {from} to core {to}"),
                    figure,
                ));
            }
        }
        write!(f, "\n{table}")?;
        for (cost, why) in &self.absent {
            writeln!(f, "not measured: {}: {why}", cost.title())?;
        }
        if self.pairs.len() < self.pairs_all {
            let (some, all) = (self.pairs.len(), self.pairs_all);
            writeln!(f, "{some} of the {all} pairs of cores were measured")?;
        }
        let directory = self.directory.display();
        let kind = if self.is_memory {
            ": in memory, no disk (--dir names another place)"
        } else {
            ""
        };
        writeln!(f, "disk: {directory}{kind}\n")?;
        self.meaning
            .iter()
            .try_for_each(|line| writeln!(f, "{line}"))
    }
}
