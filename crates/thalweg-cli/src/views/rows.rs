//! Lists of records, as a table for people, as lines of JSON, and as CSV.

use crate::failure::Failure;
use crate::output::print;
use clap::ValueEnum;
use serde_json::Value;
use thalweg_measure::table::{Cell, Table};

/// A format of a list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ListFormat {
    /// For people
    #[default]
    Text,
    /// One object a line, its keys stable
    Json,
    /// A line of names, then the values
    Csv,
}

/// Records with the same columns. A value that does not apply is [`Value::Null`].
#[derive(Debug)]
pub(crate) struct Rows<const N: usize> {
    columns: [&'static str; N],
    rows: Vec<[Value; N]>,
}

impl<const N: usize> Rows<N> {
    pub(crate) const fn new(columns: [&'static str; N]) -> Self {
        Rows {
            columns,
            rows: Vec::new(),
        }
    }

    pub(crate) fn push(&mut self, row: [Value; N]) {
        self.rows.push(row);
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Drops all but the last of them.
    pub(crate) fn keep_last(&mut self, count: usize) {
        let surplus = self.rows.len().saturating_sub(count);
        self.rows.drain(..surplus);
    }

    /// Returns how many there are, with their noun.
    pub(crate) fn counted(&self, what: &str) -> String {
        crate::message::counted(self.rows.len() as u64, what)
    }

    /// Prints all: with a title where it is for people, who see a table.
    pub(crate) fn print(&self, format: ListFormat, title: &str) -> Result<(), Failure> {
        let lines = self.rows.iter().map(|row| self.line(format, row));
        let text = match format {
            ListFormat::Text if self.is_empty() => format!("{title}\n"),
            ListFormat::Text => format!("{title}\n{}", self.table()),
            ListFormat::Json => lines.collect(),
            ListFormat::Csv => self.names() + &lines.collect::<String>(),
        };
        print(text.as_bytes())
    }

    /// Returns a record as a line; for people, with the name of each value.
    pub(crate) fn line(&self, format: ListFormat, row: &[Value; N]) -> String {
        let line = match format {
            ListFormat::Json => json(&self.columns, row),
            ListFormat::Csv => csv(row),
            ListFormat::Text => named(&self.columns, row),
        };
        line + "\n"
    }

    /// Returns the line of names that CSV begins with.
    pub(crate) fn names(&self) -> String {
        self.columns.join(",") + "\n"
    }

    fn table(&self) -> Table {
        let mut table = Table::new(self.columns);
        for row in &self.rows {
            table.row(row.iter().map(|value| match value {
                Value::Number(number) => Cell::Number(number.to_string()),
                other => Cell::Text(text(other)),
            }));
        }
        table
    }
}

/// Returns the pairs of a name and a value that applies.
fn pairs<'r>(columns: &'r [&str], row: &'r [Value]) -> impl Iterator<Item = (&'r str, &'r Value)> {
    let pairs = columns.iter().copied().zip(row);
    pairs.filter(|(_, value)| !value.is_null())
}

/// Returns a record as a JSON object.
pub(crate) fn json(columns: &[&str], row: &[Value]) -> String {
    let fields = pairs(columns, row).map(|(name, value)| format!("\"{name}\":{value}"));
    format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
}

/// Returns a record for people, with the name of each value.
pub(crate) fn named(columns: &[&str], row: &[Value]) -> String {
    let shown = pairs(columns, row).map(|(name, value)| format!("{name} {}", text(value)));
    shown.collect::<Vec<_>>().join(" ")
}

/// Returns a record as values between commas.
pub(crate) fn csv(row: &[Value]) -> String {
    row.iter().map(text).collect::<Vec<_>>().join(",")
}

fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_has_three_forms() {
        let rows = Rows::new(["side", "price", "trigger"]);
        let row = ["sell".into(), 5.into(), Value::Null];
        assert_eq!(rows.line(ListFormat::Text, &row), "side sell price 5\n");
        assert_eq!(
            rows.line(ListFormat::Json, &row),
            "{\"side\":\"sell\",\"price\":5}\n"
        );
        assert_eq!(rows.line(ListFormat::Csv, &row), "sell,5,\n");
        assert_eq!(rows.names(), "side,price,trigger\n");
    }
}
