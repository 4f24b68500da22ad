//! The page.

use super::text::{COLUMNS, cut, number, percent, plain, quantity, wrapped};
use super::{Ending, Report};
use crate::budget::Part;
use crate::evidence::{Evidence, Quality};
use crate::metrics;
use crate::verdict::{Exhibit, Verdict};
use thalweg_measure::table::Nanoseconds;

/// Verdicts that are shown; more would only confuse.
const VERDICTS: usize = 3;
/// Figures of the first verdict that are shown.
const FIGURES: usize = 6;
/// Open questions that are shown.
const QUESTIONS: usize = 3;

const BOLD: &str = "\x1b[1m";
const PLAIN: &str = "\x1b[0m";

/// A page of at most 40 lines.
pub(super) fn page(report: &Report, colours: bool) -> String {
    let mut lines = head(report);
    lines.push(String::new());
    lines.extend(times(&report.evidence));
    lines.extend(latency(&report.evidence));
    if report.verdicts.is_empty() {
        lines.push(String::new());
        lines.push(why_none(&report.evidence).to_owned());
    }
    for (place, verdict) in report.verdicts.iter().take(VERDICTS).enumerate() {
        lines.push(String::new());
        lines.extend(answer(place, verdict, colours));
    }
    let questions = questions(report);
    if !questions.is_empty() {
        lines.push(String::new());
        lines.extend(questions);
    }
    lines.join("\n") + "\n"
}

/// For how long it ran, how it ended, and on how much it ran.
pub(super) fn facts(report: &Report) -> Vec<String> {
    let value = |name| report.evidence.value(name);
    let mut facts = Vec::new();
    if let Some(wall) = value("time.wall") {
        facts.push(format!("{} s", number(wall)));
    }
    facts.push(match report.exit {
        Some(Ending::Code(code)) => format!("exit code {code}"),
        Some(Ending::Signal(signal)) => format!("ended by signal {signal}"),
        Some(Ending::Unknown) => "ended meanwhile".to_owned(),
        None => "still running".to_owned(),
    });
    if let (Some(used), Some(usable)) = (value("cpu.used"), value("cpu.usable")) {
        facts.push(format!("{} of {} cores used", number(used), usable));
    }
    for (name, one, many) in [
        ("threads.max", "thread", "threads"),
        ("processes.started", "process", "processes"),
    ] {
        if let Some(count) = value(name) {
            let noun = if count == 1.0 { one } else { many };
            facts.push(format!("{count:.0} {noun}"));
        }
    }
    if let Some(left) = value("processes.left").filter(|&left| left > 0.0) {
        let reading = report.evidence.reading("processes.left");
        let such = reading.and_then(|reading| reading.source.rsplit_once(", "));
        let such = such.map_or("", |(_, such)| such);
        if report.exit.is_some() {
            facts.push(format!(
                "{left:.0} went on, unobserved ({such}: see attach)"
            ));
        }
    }
    facts
}

fn head(report: &Report) -> Vec<String> {
    let command = plain(&report.command.join(" "));
    let title = cut(&format!("thalweg doctor: {command}"), COLUMNS);
    let facts = wrapped("  ", &facts(report).join(", "), 2);
    [vec![title], facts].concat()
}

/// Why there is no verdict.
pub(super) fn why_none(evidence: &Evidence) -> &'static str {
    match evidence.value("time.wall") {
        Some(wall) if wall < 0.1 => "It ended too soon to tell.",
        _ => "The figures fit no kind of bottleneck.",
    }
}

/// A state of the program, its share of the time, and its parts, the largest first.
pub(super) type Spent = (&'static str, f64, Vec<(f64, Part)>);

/// Where the time went, as far as it is known.
pub(super) fn spent(evidence: &Evidence) -> Vec<Spent> {
    use Part::{Child, Disk, Faults, Futex, FutexCalls, Other, OtherCalls, Poll};
    use Part::{Queue, Quota, Sleep, Spin, Stream, Work, Yield};
    let states: [(&str, &str, &[Part]); 3] = [
        (
            "state.running",
            "running",
            &[Work, Faults, Spin, Yield, FutexCalls, OtherCalls],
        ),
        ("state.waiting", "waiting for a core", &[Queue, Quota]),
        (
            "state.blocked",
            "blocked",
            &[Futex, Disk, Stream, Sleep, Poll, Child, Other],
        ),
    ];
    let mut spent = Vec::new();
    for (name, state, parts) in states {
        let Some(share) = evidence.value(name) else {
            continue;
        };
        let known = parts
            .iter()
            .filter_map(|&part| Some((part.share(evidence)?, part)));
        let mut known: Vec<(f64, Part)> = known.filter(|(share, _)| *share >= 0.005).collect();
        known.sort_by(|a, b| b.0.total_cmp(&a.0));
        spent.push((state, share, known));
    }
    spent
}

/// A line for each state, with its largest parts.
fn times(evidence: &Evidence) -> Vec<String> {
    let mut lines = Vec::new();
    for (state, share, parts) in spent(evidence) {
        let each = parts
            .iter()
            .map(|(share, part)| format!("{} {}", part.name(), percent(*share)));
        let each: Vec<String> = each.collect();
        let colon = if each.is_empty() { "" } else { ": " };
        let head = if lines.is_empty() { "Time  " } else { "      " };
        let text = format!("{state} {}{colon}{}", percent(share), each.join(", "));
        lines.extend(wrapped(head, &text, 2));
    }
    lines
}

/// How long messages took, where the program says.
fn latency(evidence: &Evidence) -> Option<String> {
    let shown = |name: &str| {
        let us = evidence.value(&format!("export.latency_{name}"))?;
        Some(format!("{name} {}", Nanoseconds(us * 1e3)))
    };
    let source = &evidence.reading("export.latency_p99")?.source;
    let figures = [shown("p50")?, shown("p99")?, shown("max")?].join(", ");
    let text = format!("Latency  {figures}: {}", plain(source));
    Some(cut(&text, COLUMNS))
}

/// The first verdict with all that it rests on, the others in short.
fn answer(place: usize, verdict: &Verdict, colours: bool) -> Vec<String> {
    let name = verdict.id.name();
    let title = format!(
        "{} (confidence {:.2}): {}",
        name,
        verdict.confidence,
        verdict.id.meaning()
    );
    let mut lines = wrapped(&format!("{}. ", place + 1), &title, 2);
    if colours {
        lines[0] = lines[0].replacen(name, &format!("{BOLD}{name}{PLAIN}"), 1);
    }
    if place > 0 {
        let shown = verdict.evidence.iter().take(3).map(in_short);
        lines.extend(wrapped("   ", &shown.collect::<Vec<_>>().join(", "), 1));
        return lines;
    }
    lines.extend(verdict.evidence.iter().take(FIGURES).map(in_full));
    let against = against(verdict).map(in_short);
    let against = against.collect::<Vec<_>>().join(", ");
    if !against.is_empty() {
        lines.extend(wrapped("   Against: ", &against, 2));
    }
    lines.extend(wrapped("   Next: ", &verdict.next, 4));
    lines
}

/// What speaks against a verdict. Of figures that do so only together, one may speak for it: it is
/// left out here.
pub(super) fn against(verdict: &Verdict) -> impl Iterator<Item = &Exhibit> {
    let is_for = |exhibit: &Exhibit| {
        let mut others = verdict.evidence.iter();
        others.any(|it| (it.metric, &it.threshold) == (exhibit.metric, &exhibit.threshold))
    };
    verdict
        .contradicts
        .iter()
        .filter(move |exhibit| !is_for(exhibit))
}

fn value(exhibit: &Exhibit) -> String {
    let known = exhibit.value.map(|value| quantity(value, exhibit.unit));
    known.unwrap_or_else(|| "absent".to_owned())
}

fn in_short(exhibit: &Exhibit) -> String {
    format!(
        "{} {} ({})",
        exhibit.metric,
        value(exhibit),
        exhibit.threshold
    )
}

fn in_full(exhibit: &Exhibit) -> String {
    let line = format!(
        "   {:<21} {:>12}  {:<22} {}{}",
        exhibit.metric,
        value(exhibit),
        cut(&exhibit.threshold, 24),
        if exhibit.quality == Quality::Sampled {
            "~ "
        } else {
            ""
        },
        plain(&exhibit.source),
    );
    cut(line.trim_end(), COLUMNS)
}

/// What cannot be told, of the first verdict or of any.
fn questions(report: &Report) -> Vec<String> {
    let first = report.verdicts.first();
    let own = first.map_or(&[][..], |verdict| &verdict.cannot_tell[..]);
    let mut all: Vec<&String> = own.iter().collect();
    all.extend(report.cannot_tell.iter().filter(|text| !own.contains(text)));
    let mut lines = Vec::new();
    for question in all.iter().take(QUESTIONS) {
        let head = if lines.is_empty() {
            "Cannot tell: "
        } else {
            "             "
        };
        lines.extend(wrapped(head, &plain(question), 2));
    }
    let more = all.len().saturating_sub(QUESTIONS);
    if more > 0 {
        lines.push(format!("             and {more} more (--json lists them)"));
    }
    lines
}

/// A table of all figures.
pub(super) fn figures(evidence: &Evidence) -> String {
    let mut text = String::new();
    for (name, reading) in evidence.readings() {
        let unit = metrics::named(name).map_or("", |metric| metric.unit);
        let value = match reading.value {
            Some(value) => quantity(value, unit),
            None => "absent".to_owned(),
        };
        let quality = match reading.quality {
            Quality::Exact => "exact",
            Quality::Sampled => "sampled",
            Quality::Absent => "",
        };
        let source = plain(&reading.source);
        text += &format!("{name:<22} {value:>20}  {quality:<8} {source}\n");
    }
    text
}
