//! Draws the latencies of messages that the program exports.

use crate::recording::{Latency, Recording};
use crate::report::text::{number, plain};
use thalweg_measure::svg::{self, section};
use thalweg_measure::table::Nanoseconds;

const CAPTION: &str = "The time that a share of the messages did not exceed; both axes are \
    logarithmic. For a program that ran already, since it began.";

/// The number of line colours; further lines start again with the first colour.
const COLOURS: usize = 6;

/// Draws the curves, with the values in a table; returns an empty text where the program exports no
/// times.
pub(super) fn curves(recording: &Recording) -> String {
    let all = &recording.latencies;
    if all.is_empty() {
        return String::new();
    }
    let marks = Latency::PERCENTILES.iter().enumerate();
    let marks: Vec<_> = marks
        .map(|(at, name)| (part(at), (*name).to_owned()))
        .collect();
    let curve = |(at, latency): (usize, &Latency)| svg::Curve {
        name: plain(&latency.name),
        class: class(at),
        points: latency
            .at_ns
            .iter()
            .enumerate()
            .map(|(at, &ns)| (part(at), ns))
            .collect(),
    };
    let lines: Vec<svg::Curve> = all.iter().enumerate().map(curve).collect();
    let content = format!(
        "<p class=\"note\">{CAPTION}</p>\n{}{}",
        svg::curves(&lines, &marks, "percentile of the messages"),
        table(all)
    );
    section("Latency", &content)
}

/// Returns the colour class: the whole has the colour of text, its parts have other colours.
fn class(at: usize) -> String {
    match at {
        0 => "total".to_owned(),
        _ => format!("s{}", (at - 1) % COLOURS),
    }
}

/// Returns the horizontal position of a percentile: each nine is as wide as the one before it.
fn part(at: usize) -> f64 {
    let nines = match at {
        0 => 0.5_f64.log10().abs(),
        _ => at as f64,
    };
    nines / (Latency::PERCENTILES.len() - 1) as f64
}

fn table(all: &[Latency]) -> String {
    let headings = ["", "messages"].into_iter().chain(Latency::PERCENTILES);
    let headings: Vec<&str> = headings.collect();
    let row = |latency: &Latency| {
        let times = latency
            .at_ns
            .iter()
            .map(|&ns| Nanoseconds(ns as f64).to_string());
        let first = [plain(&latency.name), number(latency.count as f64)];
        first.into_iter().chain(times).collect::<Vec<String>>()
    };
    let rows: Vec<Vec<String>> = all.iter().map(row).collect();
    svg::table(&headings, &rows)
}
