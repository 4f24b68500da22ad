//! Results for people ([`Table`], [`Nanoseconds`]) and for programs ([`Measurement`],
//! [`Comparison`]: one JSON object a line).

use crate::statistics::{Better, Interval, median, median_interval, paired_ratio};
use std::fmt;

/// A span for people: three significant digits in ns, µs, ms or s; a whole number of nanoseconds
/// below 1000 is exact as it stands.
///
/// ```
/// # use thalweg_measure::table::Nanoseconds;
/// assert_eq!(Nanoseconds(4_321.0).to_string(), "4.32 µs");
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Nanoseconds(
    /// The span in nanoseconds.
    pub f64,
);

impl fmt::Display for Nanoseconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.0.is_finite() {
            return f.pad("-");
        }
        // The limits are where three digits would round up to 1000 of the smaller unit.
        let (unit, name) = match self.0.abs() {
            ns if ns < 999.5 && ns.fract() == 0.0 => return f.pad(&format!("{} ns", self.0)),
            ns if ns < 999.5 => (1.0, "ns"),
            ns if ns < 999.5e3 => (1e3, "µs"),
            ns if ns < 999.5e6 => (1e6, "ms"),
            _ => (1e9, "s"),
        };
        f.pad(&format!("{} {name}", three_digits(self.0 / unit)))
    }
}

/// Returns a number with three significant digits, or all digits before the point; 0 as `0.00`.
#[must_use]
pub fn three_digits(number: f64) -> String {
    let mut decimals = 2;
    // The limits are where three digits would round up to the next power of ten.
    let mut limit = 0.9995;
    while number.abs() < limit && number != 0.0 && decimals < 308 {
        decimals += 1;
        limit /= 10.0;
    }
    let more = [99.95, 9.995];
    decimals -= more.iter().filter(|&&limit| number.abs() >= limit).count();
    format!("{number:.decimals$}")
}

/// Returns decimal digits with a comma between groups of three.
///
/// ```
/// # use thalweg_measure::table::grouped;
/// assert_eq!(grouped("1234567"), "1,234,567");
/// ```
#[must_use]
pub fn grouped(digits: &str) -> String {
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Returns a bound of an interval, if it has one.
fn bound(interval: Option<Interval>, of: fn(Interval) -> f64) -> Option<f64> {
    interval.map(of).filter(|bound| bound.is_finite())
}

/// One field of a [`Table`].
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// Aligned left.
    Text(String),
    /// Aligned right.
    Number(String),
}

impl Cell {
    fn text(&self) -> &str {
        match self {
            Cell::Text(text) | Cell::Number(text) => text,
        }
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Cell {
        Cell::Text(text.to_owned())
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Cell {
        Cell::Text(text)
    }
}

impl From<Nanoseconds> for Cell {
    fn from(span: Nanoseconds) -> Cell {
        Cell::Number(span.to_string())
    }
}

impl From<u64> for Cell {
    fn from(number: u64) -> Cell {
        Cell::Number(number.to_string())
    }
}

impl From<usize> for Cell {
    fn from(number: usize) -> Cell {
        Cell::Number(number.to_string())
    }
}

impl From<f64> for Cell {
    /// Returns three significant digits; `-` for what is not a number.
    fn from(number: f64) -> Cell {
        Cell::Number(if number.is_finite() {
            three_digits(number)
        } else {
            "-".to_owned()
        })
    }
}

impl From<Interval> for Cell {
    /// Returns the value and its bounds: `1.52 [1.48, 1.57]`, or `1.52 -` where it has none.
    fn from(interval: Interval) -> Cell {
        let bounds = interval.bounds(three_digits);
        Cell::Number(format!("{} {bounds}", three_digits(interval.value)))
    }
}

/// A text table: columns two spaces apart, a rule below the head, numbers to the right. A column
/// is to the right, its head too, where any of its cells is a number.
///
/// ```
/// # use thalweg_measure::table::{Nanoseconds, Table};
/// let mut table = Table::new(["stage", "events", "p99"]);
/// table.row(["risk".into(), 1000_u64.into(), Nanoseconds(310.0).into()]);
/// assert_eq!(table.to_string(), "\
/// stage  events     p99
/// -----  ------  ------
/// risk     1000  310 ns
/// ");
/// ```
#[derive(Clone, Debug)]
pub struct Table {
    head: Vec<String>,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    /// Returns a table with these columns and no rows.
    #[must_use]
    pub fn new<const N: usize>(head: [&str; N]) -> Self {
        Table {
            head: head.map(str::to_owned).to_vec(),
            rows: Vec::new(),
        }
    }

    /// Adds a row; cells that lack are empty.
    ///
    /// # Panics
    /// Where there are more cells than columns.
    pub fn row(&mut self, cells: impl IntoIterator<Item = Cell>) -> &mut Self {
        let cells: Vec<Cell> = cells.into_iter().collect();
        let (columns, given) = (self.head.len(), cells.len());
        assert!(
            given <= columns,
            "a row of {given} cells in a table of {columns} columns"
        );
        self.rows.push(cells);
        self
    }

    /// Returns whether there are no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    fn column(&self, column: usize) -> impl Iterator<Item = &Cell> {
        self.rows.iter().filter_map(move |row| row.get(column))
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns: Vec<(usize, bool)> = (0..self.head.len())
            .map(|column| {
                let cells = self.column(column).map(|cell| cell.text().chars().count());
                let width = cells
                    .chain([self.head[column].chars().count()])
                    .max()
                    .unwrap_or(0);
                (
                    width,
                    self.column(column)
                        .any(|cell| matches!(cell, Cell::Number(_))),
                )
            })
            .collect();
        let rule: Vec<String> = columns
            .iter()
            .map(|&(width, _)| "-".repeat(width))
            .collect();
        let line = |f: &mut fmt::Formatter<'_>, cells: &[&str]| {
            let mut line = String::new();
            for (cell, &(width, right)) in cells.iter().zip(&columns) {
                line += &if right {
                    format!("{cell:>width$}  ")
                } else {
                    format!("{cell:<width$}  ")
                };
            }
            writeln!(f, "{}", line.trim_end())
        };
        line(f, &self.head.iter().map(String::as_str).collect::<Vec<_>>())?;
        line(f, &rule.iter().map(String::as_str).collect::<Vec<_>>())?;
        for row in &self.rows {
            line(f, &row.iter().map(Cell::text).collect::<Vec<_>>())?;
        }
        Ok(())
    }
}

/// One measured value of an experiment, as a JSON row with exactly these keys in this order.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "json", derive(serde::Serialize))]
pub struct Measurement {
    /// The experiment, such as `pipeline`.
    pub experiment: String,
    /// The case of it, such as `1M/s`.
    pub case: String,
    /// The subject that was measured, such as `inline`.
    pub subject: String,
    /// The metric, such as `latency_p99`.
    pub metric: String,
    /// The unit of `value`, `low` and `high`, such as `ns`.
    pub unit: String,
    /// The median of the repetitions; null where there was none.
    pub value: Option<f64>,
    /// The lower bound of its interval; null where it has none.
    pub low: Option<f64>,
    /// The upper bound of its interval; null where it has none.
    pub high: Option<f64>,
    /// The number of repetitions.
    pub n: usize,
}

impl Measurement {
    /// Returns the row of these repetitions: their median and its interval.
    #[must_use]
    pub fn new(
        [experiment, case, subject]: [&str; 3],
        [metric, unit]: [&str; 2],
        repetitions: &[f64],
    ) -> Self {
        let interval = median_interval(repetitions);
        Measurement {
            experiment: experiment.to_owned(),
            case: case.to_owned(),
            subject: subject.to_owned(),
            metric: metric.to_owned(),
            unit: unit.to_owned(),
            value: median(repetitions),
            low: bound(interval, |interval| interval.low),
            high: bound(interval, |interval| interval.high),
            n: repetitions.len(),
        }
    }

    /// Returns one line of JSON, without the line feed.
    #[must_use]
    #[cfg(feature = "json")]
    pub fn json(&self) -> String {
        serde_json::to_string(self).expect("strings and numbers always serialize")
    }
}

/// One comparison of two subjects, as a JSON row with exactly these keys in this order. A ratio
/// above 1 always means that `subject` is better.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "json", derive(serde::Serialize))]
pub struct Comparison {
    /// The experiment, such as `pipeline`.
    pub experiment: String,
    /// The case of it, such as `1M/s`.
    pub case: String,
    /// The metric, such as `latency_p99`.
    pub metric: String,
    /// The one that is better where the ratio is above 1.
    pub subject: String,
    /// The other.
    pub versus: String,
    /// The median ratio of the pairs.
    pub ratio: f64,
    /// The lower bound of its interval; minus infinity, in JSON null, where it has none.
    pub low: f64,
    /// The upper bound of its interval; infinity, in JSON null, where it has none.
    pub high: f64,
}

impl Comparison {
    /// Returns the row of these paired repetitions, `(subject, versus)`; `None` where
    /// [`paired_ratio`] is none.
    #[must_use]
    pub fn new(
        [experiment, case, metric]: [&str; 3],
        [subject, versus]: [&str; 2],
        pairs: &[(f64, f64)],
        better: Better,
    ) -> Option<Self> {
        let interval = paired_ratio(pairs, better)?;
        Some(Comparison {
            experiment: experiment.to_owned(),
            case: case.to_owned(),
            metric: metric.to_owned(),
            subject: subject.to_owned(),
            versus: versus.to_owned(),
            ratio: interval.value,
            low: interval.low,
            high: interval.high,
        })
    }

    /// Returns one line of JSON, without the line feed.
    #[must_use]
    #[cfg(feature = "json")]
    pub fn json(&self) -> String {
        serde_json::to_string(self).expect("strings and numbers always serialize")
    }
}
