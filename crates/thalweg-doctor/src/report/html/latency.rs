//! How long messages took, as the program exports it.

use crate::recording::{Latency, Recording};
use crate::report::text::{number, plain};
use thalweg_measure::svg::{self, Decades, Picture, Window, both, legend, section};
use thalweg_measure::table::Nanoseconds;

const CAPTION: &str = "The time that so many of the messages did not exceed; both axes are \
    logarithmic. For a program that ran already, since it began.";

/// Colours of lines; further ones begin again.
const COLOURS: usize = 6;

/// The curves and the same in figures; nothing where the program exports no times.
pub(super) fn curves(recording: &Recording) -> String {
    let all = &recording.latencies;
    if all.is_empty() {
        return String::new();
    }
    let names: Vec<String> = all.iter().map(|latency| plain(&latency.name)).collect();
    let classes = (0..all.len()).map(|at| format!("line {}", class(at)));
    let content = format!(
        "<p class=\"note\">{CAPTION}</p>\n{}{}{}",
        legend(names.iter().map(String::as_str).zip(classes)),
        both(|window| picture(all, window)),
        table(all)
    );
    section("Latency", &content)
}

/// The whole in the colour of text, its parts in others.
fn class(at: usize) -> String {
    match at {
        0 => "total".to_owned(),
        _ => format!("s{}", (at - 1) % COLOURS),
    }
}

/// Where a percentile is from left to right: each nine is as wide as the one before it.
fn part(at: usize) -> f64 {
    let nines = match at {
        0 => 0.5_f64.log10().abs(),
        _ => at as f64,
    };
    nines / (Latency::PERCENTILES.len() - 1) as f64
}

fn picture(all: &[Latency], window: Window) -> String {
    let area = window.area(14.0, 320.0);
    let scale = Decades::around(all.iter().flat_map(|latency| latency.at_ns));
    let height = area.bottom() as u32 + 44;
    let label = "latency by percentile, both axes logarithmic";
    let mut picture = Picture::new(window.width(), height, label);
    for (part, name) in scale.ticks() {
        let y = area.y(part);
        picture.line((area.left, y), (area.x(1.0), y), "grid");
        picture.text(area.left - 8.0, y + 4.0, "end", &name);
    }
    for (at, name) in Latency::PERCENTILES.iter().enumerate() {
        let x = area.x(part(at));
        picture.line((x, area.top), (x, area.bottom()), "grid");
        let class = match at + 1 == Latency::PERCENTILES.len() {
            true => "end",
            false => "middle",
        };
        picture.text(x, area.bottom() + 18.0, class, name);
    }
    let axis = "percentile of the messages";
    picture.text(area.x(0.5), area.bottom() + 38.0, "middle", axis);
    // The whole last, on top of its parts.
    for (at, latency) in all.iter().enumerate().rev() {
        let points = latency.at_ns.iter().enumerate();
        let path: Vec<(f64, f64)> = points
            .map(|(at, &ns)| (area.x(part(at)), area.y(scale.part(ns))))
            .collect();
        let class = format!("curve {}", class(at));
        picture.path(&path, &class, &plain(&latency.name));
    }
    picture.finish()
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
