//! Writes a card for each verdict.

use super::figures::{Row, table};
use super::{empty, list};
use crate::report::Report;
use crate::report::page::{against, misses, why_none};
use crate::report::text::plain;
use crate::verdict::{Exhibit, Verdict};
use std::collections::BTreeSet;
use thalweg_measure::svg::{escape, section};

/// Returns all cards, the most likely verdict first; the evidence of the others is folded.
pub(super) fn verdicts(report: &Report) -> String {
    if report.verdicts.is_empty() {
        return section(
            "No verdict",
            &empty(why_none(&report.evidence).trim_end_matches('.'), &[]),
        );
    }
    let mut named = BTreeSet::new();
    let cards = report.verdicts.iter().enumerate();
    let cards = cards.map(|(place, verdict)| card(place, verdict, report, &mut named));
    cards.collect()
}

fn card<'a>(
    place: usize,
    verdict: &'a Verdict,
    report: &Report,
    named: &mut BTreeSet<&'a str>,
) -> String {
    let title = format!("{}. {}", place + 1, verdict.id.name());
    let confidence = verdict.confidence.clamp(0.0, 1.0);
    let open = if place == 0 { " open" } else { "" };
    let content = format!(
        "<p class=\"what\">{}</p>\n\
         <p class=\"confidence\"><span>confidence</span>\
         <span class=\"gauge\" aria-hidden=\"true\"><i style=\"width:{:.0}%\"></i></span>\
         <b>{confidence:.2}</b></p>\n\
         <p class=\"next\"><b>Next</b> {}</p>\n\
         <details{open}>\n<summary>Evidence</summary>\n{}{}</details>\n",
        escape(verdict.id.meaning()),
        100.0 * confidence,
        escape(&plain(&verdict.next)),
        evidence(verdict, report),
        questions(verdict, named),
    );
    section(&title, &content)
}

fn part(name: &str, content: &str) -> String {
    format!("<h3>{name}</h3>\n{content}")
}

fn evidence(verdict: &Verdict, report: &Report) -> String {
    let missed = |it: &&Exhibit| misses(verdict, it, report);
    let (below, reached): (Vec<_>, Vec<_>) = verdict.evidence.iter().partition(missed);
    let rows = |exhibits: &[&Exhibit]| table(exhibits.iter().map(|it| row(it, verdict, report)));
    let against: Vec<&Exhibit> = against(verdict).collect();
    let mut out = part("For it", &rows(&reached));
    if !below.is_empty() {
        out += &part("Looked at, and not at its threshold", &rows(&below));
    }
    out + &part(
        "Against it",
        &match against.is_empty() {
            true => empty("Nothing that was measured speaks against it", &[]),
            false => rows(&against),
        },
    )
}

/// Returns the open questions of a verdict. A question of another card above is not repeated.
fn questions<'a>(verdict: &'a Verdict, named: &mut BTreeSet<&'a str>) -> String {
    let all = verdict.cannot_tell.iter();
    let new = all.filter(|text| named.insert(text)).cloned();
    let mut new: Vec<String> = new.collect();
    if new.len() < verdict.cannot_tell.len() {
        new.push("what is said of this above".to_owned());
    }
    match new.is_empty() {
        true => String::new(),
        false => part("Cannot tell", &list(&new)),
    }
}

fn row<'a>(exhibit: &'a Exhibit, verdict: &Verdict, report: &Report) -> Row<'a> {
    let not = misses(verdict, exhibit, report);
    Row {
        metric: exhibit.metric,
        value: exhibit.value,
        unit: exhibit.unit,
        threshold: Some((&exhibit.threshold, not)),
        quality: exhibit.quality,
        source: &exhibit.source,
    }
}
