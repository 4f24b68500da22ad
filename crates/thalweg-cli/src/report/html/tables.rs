//! The tables of the page.

use crate::failure::plural;
use crate::report::facts::{Book, Check, Count, Facts, Latency, Level, Parts, Stage};
use crate::report::number::{grouped, percent};
use crate::report::text::{cells, most, rows, sampling};
use thalweg_measure::svg::{escape, table};
use thalweg_measure::table::Nanoseconds;

/// Returns the table of waiting and service times of every stage, and of the work that keeps it
/// busy.
pub(super) fn times(latency: &Latency) -> String {
    let row = |(name, times)| {
        let mut row = vec![name];
        row.extend(cells(times));
        row
    };
    let rows: Vec<_> = rows(latency).into_iter().map(row).collect();
    let headings = ["", "p50", "p90", "p99", "p99.9", "p99.99", "max", "mean"];
    format!(
        "<p class=\"note\">{} Percentiles with fewer than 10 times beyond them are left \
         out, and so are parts that took no time.</p>\n{}{}",
        sampling(latency),
        table(&headings, &rows),
        batches(latency)
    )
}

/// Returns the table of how busy each stage was and of its batch sizes, as far as they were
/// measured.
fn batches(latency: &Latency) -> String {
    let batches = latency.stages.iter().any(|stage| stage.batches.is_some());
    if !batches
        && latency
            .stages
            .iter()
            .all(|stage| stage.utilisation.is_none())
    {
        return String::new();
    }
    let headings = [
        "stage",
        "busy",
        "mean batch",
        "p50 batch",
        "p99 batch",
        "max batch",
    ];
    let shown = if batches { headings.len() } else { 2 };
    let row = |stage: &Stage| {
        let mut row = vec![stage.name.clone()];
        row.push(stage.utilisation.map_or_else(String::new, percent));
        if let Some(b) = stage.batches {
            let mean = format!("{:.1}", b.mean);
            let sizes = [grouped(b.p50), grouped(b.p99), grouped(b.max)];
            row.push(mean);
            row.extend(sizes);
        }
        row.resize(shown, String::new());
        row
    };
    // The sender is not a stage: it is never busy, and has no batches.
    let stages = latency.stages.iter();
    let stages = stages.filter(|stage| stage.batches.is_some() || stage.utilisation.is_some());
    let rows: Vec<Vec<String>> = stages.map(row).collect();
    let note = match batches {
        true => {
            "<p class=\"note\">A batch is what a stage took up together with a sampled \
                 command.</p>"
        }
        false => "<br>",
    };
    format!("{note}\n{}", table(&headings[..shown], &rows))
}

/// Returns the table of a command's cost in each part.
pub(super) fn parts(parts: &Parts) -> String {
    let row = |(name, ns): (&str, f64)| {
        let share = percent(ns / parts.together_ns);
        [name.to_owned(), format!("{ns:.1} ns"), share]
    };
    format!(
        "{}<p class=\"note\">{}</p>\n",
        table(&["part", "a command", "share"], &parts.rows().map(row)),
        escape(&parts.caption())
    )
}

/// Returns the table of the slowest commands, and of the parts they spent their time on.
pub(super) fn slowest(latency: &Latency) -> String {
    if latency.slowest.is_empty() {
        return String::new();
    }
    let rows: Vec<_> = latency
        .slowest
        .iter()
        .map(|slow| {
            [
                format!("{} ({})", grouped(slow.command), slow.kind),
                Nanoseconds(slow.end_to_end_ns as f64).to_string(),
                most(slow),
            ]
        })
        .collect();
    let table = table(&["command", "since it was due", "of that"], &rows);
    format!("<div class=\"slowest\">\n{table}</div>\n")
}

/// Returns the tables of the commands, the results and the trades.
pub(super) fn commands(facts: &Facts) -> String {
    let counts = |heading: &str, counts: &[Count]| {
        let rows: Vec<_> = counts
            .iter()
            .map(|c| [c.name.clone(), grouped(c.count)])
            .collect();
        table(&[heading, "count"], &rows)
    };
    let traded = [
        Count::new("trades", facts.trades.count),
        Count::new("lots", facts.trades.volume_lots),
    ];
    format!(
        "<div class=\"side\">\n{}{}{}</div>\n",
        counts("command", &facts.commands.by_kind),
        counts("result", &facts.commands.by_result),
        counts("traded", &traded)
    )
}

/// Returns the table of how far the run agrees with a recording.
pub(super) fn check(check: &Check) -> String {
    let scores: Vec<_> = check
        .scores
        .iter()
        .map(|s| {
            [
                s.label.clone(),
                grouped(s.agree),
                grouped(s.of),
                percent(s.part()),
            ]
        })
        .collect();
    let counts: Vec<_> = check
        .counts
        .iter()
        .map(|c| [c.name.replace('_', " "), grouped(c.count)])
        .collect();
    let mut out = table(&["compared", "agree", "of", "part"], &scores);
    if !counts.is_empty() {
        out += "<br>\n";
        out += &table(&["counted", "number"], &counts);
    }
    out
}

/// Returns the table of the best levels of a book.
pub(super) fn book(book: &Book) -> String {
    let side = |name: &str, levels: &[Level]| {
        let rows: Vec<_> = levels
            .iter()
            .map(|l| {
                [
                    grouped(l.price_ticks),
                    grouped(l.size_lots),
                    grouped(l.orders),
                ]
            })
            .collect();
        table(&[name, "lots", "orders"], &rows)
    };
    format!(
        "<div class=\"side\">\n{}{}</div>\n<p class=\"note\">{} bid level{} and {} ask level{} \
         in all</p>\n",
        side("bid", &book.bids),
        side("ask", &book.asks),
        grouped(book.bid_levels),
        plural(book.bid_levels),
        grouped(book.ask_levels),
        plural(book.ask_levels)
    )
}
