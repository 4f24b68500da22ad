//! Writes tables of figures, with the file or event that each came from.

use super::empty;
use crate::evidence::{Evidence, Quality};
use crate::metrics;
use crate::report::text::{number, plain};
use thalweg_measure::svg::escape;

/// A row that shows a figure.
pub(super) struct Row<'a> {
    pub(super) metric: &'a str,
    pub(super) value: Option<f64>,
    pub(super) unit: &'a str,
    /// The threshold, and whether the figure misses it; `None` where there is no threshold.
    pub(super) threshold: Option<(&'a str, bool)>,
    pub(super) quality: Quality,
    pub(super) source: &'a str,
}

/// Returns a table. In a narrow window each row is a block, and the cells carry their column names
/// themselves; a block has no table roles, so the roles are written out.
pub(super) fn table<'a>(rows: impl Iterator<Item = Row<'a>>) -> String {
    let rows: Vec<Row<'a>> = rows.collect();
    let thresholds = rows.iter().any(|row| row.threshold.is_some());
    let mut headings = vec!["figure", "value", "unit"];
    if thresholds {
        headings.push("threshold");
    }
    headings.extend(["quality", "source"]);
    let heading = |name: &&str| format!("<th role=\"columnheader\" scope=\"col\">{name}</th>");
    let headings: String = headings.iter().map(heading).collect();
    let rows: String = rows.iter().map(|row| line(row, thresholds)).collect();
    format!(
        "<table class=\"figures\" role=\"table\">\n\
         <thead role=\"rowgroup\"><tr role=\"row\">{headings}</tr></thead>\n\
         <tbody role=\"rowgroup\">\n{rows}</tbody>\n</table>\n"
    )
}

fn line(row: &Row<'_>, thresholds: bool) -> String {
    let meaning = metrics::named(row.metric).map_or("", |metric| metric.meaning);
    let cell = |name: &str, text: &str| {
        let text = escape(text);
        format!("<td role=\"cell\" class=\"{name}\" data-name=\"{name}\">{text}</td>")
    };
    let (value, unit) = row
        .value
        .map_or_else(|| ("–".to_owned(), ""), |value| (number(value), row.unit));
    let quality = match row.quality {
        Quality::Exact => "exact",
        Quality::Sampled => "sampled",
        Quality::Absent => "absent",
    };
    let mut cells = cell("value", &value) + &cell("unit", unit);
    if thresholds {
        let threshold = row.threshold.map(|(text, is_missed)| match is_missed {
            true => format!("not {text}"),
            false => text.to_owned(),
        });
        cells += &cell("threshold", &threshold.unwrap_or_default());
    }
    cells += &cell("quality", quality);
    cells += &cell("source", &plain(row.source));
    format!(
        "<tr role=\"row\"><th role=\"rowheader\" scope=\"row\">{}<small>{}</small></th>\
         {cells}</tr>\n",
        escape(row.metric),
        escape(meaning)
    )
}

/// Returns the table of all figures.
pub(super) fn all(evidence: &Evidence) -> String {
    let rows = evidence.readings().map(|(metric, reading)| Row {
        metric,
        value: reading.value,
        unit: metrics::named(metric).map_or("", |metric| metric.unit),
        threshold: None,
        quality: reading.quality,
        source: &reading.source,
    });
    let mut rows = rows.peekable();
    if rows.peek().is_none() {
        return empty("Nothing was measured", &[]);
    }
    table(rows)
}
