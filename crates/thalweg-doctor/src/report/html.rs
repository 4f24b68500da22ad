//! Writes a report as one self-contained page of charts and tables, without external resources.

mod cards;
mod figures;
mod flames;
mod latency;
mod timeline;

use super::page::{facts, in_percent};
use super::text::{cut, plain};
use super::{Host, Report};
use crate::recording::Recording;
use thalweg_measure::svg::{self, escape, section};

const STYLE: &str = include_str!("html/style.css");

/// Returns the page.
pub(super) fn page(report: &Report, recording: &Recording) -> String {
    let body = [
        head(report),
        cards::verdicts(report),
        section("Where the time went", &times(report)),
        latency::curves(recording),
        section("Threads over time", &timeline::threads(recording)),
        section("On a core", &flames::on_cpu(recording)),
        section("Waiting", &flames::off_cpu(recording)),
        section(
            "What could not be measured here",
            &list(&missing(report, recording)),
        ),
        section("All figures", &figures::all(&report.evidence)),
    ]
    .concat();
    svg::styled_page(&title(report), STYLE, &body)
}

fn title(report: &Report) -> String {
    cut(
        &format!("thalweg doctor: {}", plain(&report.command.join(" "))),
        300,
    )
}

fn head(report: &Report) -> String {
    let line = |text: &str| format!("<p>{}</p>\n", escape(text));
    format!(
        "<header>\n<h1>{}</h1>\n{}{}</header>\n",
        escape(&title(report)),
        line(&facts(report).join(", ")),
        line(&machine(&report.machine)),
    )
}

fn machine(host: &Host) -> String {
    let cores = if host.cores == 1 { "core" } else { "cores" };
    let processor = host.processor.as_deref().unwrap_or("unnamed processor");
    let right = if host.root {
        "observed as root"
    } else {
        "observed without root"
    };
    let text = format!(
        "{processor}, {} {cores}, {}, {right}",
        host.cores, host.kernel
    );
    plain(&text)
}

/// Returns a bar for each state of the program and for each of its parts.
fn times(report: &Report) -> String {
    let mut rows = String::new();
    let bar = |name: &str, share: f64, percent: u32, class: &str| {
        let width = 100.0 * share.clamp(0.0, 1.0);
        format!(
            "<div class=\"row\"><b>{}</b><span>{percent} %</span><div class=\"bar\">\
             <i class=\"fill {class}\" style=\"width:{width:.1}%\"></i></div></div>\n",
            escape(name),
        )
    };
    for ((spent, percent, parts), class) in in_percent(&report.time).zip(timeline::CLASSES) {
        rows += &bar(spent.state, spent.share, percent, class);
        let parts = spent.parts.iter().zip(parts);
        let parts: String = parts
            .map(|(piece, percent)| bar(piece.part, piece.share, percent, class))
            .collect();
        rows += &format!("<div class=\"parts\">\n{parts}</div>\n");
    }
    if rows.is_empty() {
        let names = ["state.running", "state.waiting", "state.blocked"];
        return empty("No state was measured", &report.evidence.absent(names));
    }
    format!(
        "<p class=\"note\">Shares of the time that the program was observed. It runs when at least \
         one of its threads runs, and is blocked when all of them are.</p>\n\
         <div class=\"spent\">\n{rows}</div>\n"
    )
}

/// Returns everything that is missing, with the reasons.
fn missing(report: &Report, recording: &Recording) -> Vec<String> {
    let mut all = report.cannot_tell.clone();
    for lack in &recording.lacks {
        if !all.contains(lack) {
            all.push(lack.clone());
        }
    }
    all
}

fn list(texts: &[String]) -> String {
    if texts.is_empty() {
        return String::new();
    }
    let item = |text: &String| format!("<li>{}</li>\n", escape(&plain(text)));
    let items: String = texts.iter().map(item).collect();
    format!("<ul>\n{items}</ul>\n")
}

/// Returns the text that replaces a chart.
fn empty(what: &str, why: &[String]) -> String {
    let end = if why.is_empty() { "." } else { ":" };
    format!(
        "<p class=\"empty\">{}{end}</p>\n{}",
        escape(what),
        list(why)
    )
}

#[cfg(test)]
mod tests;
