//! A card for each verdict.

use super::figures::{Row, table};
use super::{empty, list};
use crate::report::Report;
use crate::report::page::{against, why_none};
use crate::report::text::plain;
use crate::verdict::{Exhibit, Verdict};
use thalweg_measure::svg::{escape, section};

/// All of them, the most likely first; the evidence of the others is folded.
pub(super) fn verdicts(report: &Report) -> String {
    if report.verdicts.is_empty() {
        return section(
            "No verdict",
            &empty(why_none(&report.evidence).trim_end_matches('.'), &[]),
        );
    }
    let cards = report.verdicts.iter().enumerate();
    cards.map(|(place, verdict)| card(place, verdict)).collect()
}

fn card(place: usize, verdict: &Verdict) -> String {
    let title = format!("{}. {}", place + 1, verdict.id.name());
    let confidence = verdict.confidence.clamp(0.0, 1.0);
    let open = if place == 0 { " open" } else { "" };
    let content = format!(
        "<p class=\"what\">{}</p>\n\
         <p class=\"confidence\"><span>confidence</span>\
         <span class=\"gauge\" aria-hidden=\"true\"><i style=\"width:{:.0}%\"></i></span>\
         <b>{confidence:.2}</b></p>\n\
         <p class=\"next\"><b>Next</b> {}</p>\n\
         <details{open}>\n<summary>Evidence</summary>\n{}</details>\n",
        escape(verdict.id.meaning()),
        100.0 * confidence,
        escape(&plain(&verdict.next)),
        evidence(verdict)
    );
    section(&title, &content)
}

fn evidence(verdict: &Verdict) -> String {
    let part = |name: &str, content: String| format!("<h3>{name}</h3>\n{content}");
    let mut out = part("For it", table(verdict.evidence.iter().map(row)));
    out += &part(
        "Against it",
        if against(verdict).next().is_none() {
            empty("Nothing that was measured speaks against it", &[])
        } else {
            table(against(verdict).map(row))
        },
    );
    if !verdict.cannot_tell.is_empty() {
        out += &part("Cannot tell", list(&verdict.cannot_tell));
    }
    out
}

fn row(exhibit: &Exhibit) -> Row<'_> {
    Row {
        metric: exhibit.metric,
        value: exhibit.value,
        unit: exhibit.unit,
        threshold: Some(&exhibit.threshold),
        quality: exhibit.quality,
        source: &exhibit.source,
    }
}
