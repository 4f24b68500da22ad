//! Formats the page of text.

use crate::evidence::{self, Evidence, Quality};
use crate::report::{Ending, Report, Spent};
use crate::rules::verdict::{Exhibit, Verdict};
use std::collections::BTreeSet;
use thalweg_measure::table::{Nanoseconds, grouped};

/// The number of verdicts that are shown in full; more would be confusing.
const VERDICTS: usize = 3;
/// The maximum number of lines of a page.
const LINES: usize = 40;

/// The number of items of each kind that are shown.
struct Room {
    /// The number of figures of the first verdict.
    figures: usize,
    /// The number of lines of each list and of the next step.
    lines: usize,
    /// The number of open questions.
    questions: usize,
}

/// The sizes in order: the first that fits is used. The last fits whatever is measured.
const ROOMS: [Room; 4] = [
    Room::of(6, 4, 3),
    Room::of(5, 3, 2),
    Room::of(4, 2, 1),
    Room::of(3, 1, 1),
];

impl Room {
    const fn of(figures: usize, lines: usize, questions: usize) -> Room {
        Room {
            figures,
            lines,
            questions,
        }
    }
}

const BOLD: &str = "\x1b[1m";
const PLAIN: &str = "\x1b[0m";

/// The way in which a page is shown.
#[derive(Debug, Clone, Copy, Default)]
pub struct Style {
    /// Whether it has colours.
    pub colours: bool,
    /// Whether it names each figure, its source and its threshold, and the figures that miss
    /// their thresholds.
    pub verbose: bool,
}

/// Returns a page of at most [`LINES`] lines.
pub(crate) fn page(report: &Report, style: Style) -> String {
    let mut lines = Vec::new();
    for room in &ROOMS {
        lines = page_in(report, style, room);
        if lines.len() <= LINES {
            break;
        }
    }
    lines.join("\n") + "\n"
}

fn page_in(report: &Report, style: Style, room: &Room) -> Vec<String> {
    let mut lines = head(report);
    lines.push(String::new());
    lines.extend(times(&report.time));
    lines.extend(latency(&report.evidence));
    if report.verdicts.is_empty() {
        lines.push(String::new());
        lines.push(why_none(&report.evidence).to_owned());
    }
    for (place, verdict) in report.verdicts.iter().take(VERDICTS).enumerate() {
        lines.push(String::new());
        lines.extend(answer(place, verdict, style, room));
    }
    let others = report.verdicts.iter().skip(VERDICTS);
    let others = others.map(|it| format!("{} {:.2}", it.id.name(), it.confidence));
    let others = others.collect::<Vec<_>>().join(", ");
    if !others.is_empty() {
        lines.extend(wrapped("Less likely: ", &others, 1));
    }
    let questions = questions(report, room);
    if !questions.is_empty() {
        lines.push(String::new());
        lines.extend(questions);
    }
    lines
}

/// Returns how long the program ran, how it ended, and on which machine it ran.
pub(crate) fn facts(report: &Report) -> Vec<String> {
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
    for (name, one, many, when) in [
        ("threads.max", "thread", "threads", "at once"),
        ("processes.started", "process", "processes", "in all"),
    ] {
        if let Some(count) = value(name) {
            let noun = if count == 1.0 { one } else { many };
            facts.push(format!("{count:.0} {noun} {when}"));
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

/// Returns the reason why there is no verdict.
pub(crate) fn why_none(evidence: &Evidence) -> &'static str {
    match evidence.value("time.wall") {
        Some(wall) if wall < 0.1 => "It ended too soon to tell.",
        _ => "The figures fit no kind of bottleneck.",
    }
}

/// Returns a line for each state, with its largest parts.
fn times(time: &[Spent]) -> Vec<String> {
    let mut lines = Vec::new();
    for (spent, share, parts) in in_percent(time) {
        let each = spent.parts.iter().zip(parts).filter(|(_, it)| *it > 0);
        let each = each.map(|(piece, percent)| format!("{} {percent} %", piece.part));
        let each: Vec<String> = each.collect();
        let colon = if each.is_empty() { "" } else { ": " };
        let head = if lines.is_empty() { "Time  " } else { "      " };
        let text = format!("{} {share} %{colon}{}", spent.state, each.join(", "));
        lines.extend(wrapped(head, &text, 2));
    }
    lines
}

/// Returns each state with its share and those of its parts in whole per cent; no sum of parts
/// exceeds the whole.
pub(crate) fn in_percent(time: &[Spent]) -> impl Iterator<Item = (&Spent, u32, Vec<u32>)> {
    let shares = percents(time.iter().map(|spent| spent.share), 100);
    time.iter().zip(shares).map(|(spent, share)| {
        let parts = percents(spent.parts.iter().map(|piece| piece.share), share);
        (spent, share, parts)
    })
}

/// Returns the latencies of messages, if the program exports them.
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

/// Writes the first verdict with all its evidence, and the others briefly.
fn answer(place: usize, verdict: &Verdict, style: Style, room: &Room) -> Vec<String> {
    let name = verdict.id.name();
    let title = format!(
        "{} (confidence {:.2}): {}",
        name,
        verdict.confidence,
        verdict.id.meaning()
    );
    let mut lines = wrapped(&format!("{}. ", place + 1), &title, 2);
    if style.colours {
        lines[0] = lines[0].replacen(name, &format!("{BOLD}{name}{PLAIN}"), 1);
    }
    let places: Vec<String> = verdict.places.iter().map(|place| plain(place)).collect();
    if !places.is_empty() {
        // The first may be CONTAMINATED, and the second what it is about.
        let most = if place < 2 {
            2 * room.lines
        } else {
            room.lines.min(3)
        };
        lines.extend(wrapped("   Where: ", &places.join("; "), most));
    }
    let missed = |it: &&Exhibit| it.reached == Some(false);
    let (below, reached): (Vec<_>, Vec<_>) = verdict.evidence.iter().partition(missed);
    let list = |head: &str, exhibits: &[&Exhibit], hidden: usize| {
        let mut texts: Vec<String> = exhibits.iter().map(|it| in_short(it)).collect();
        if hidden > 0 {
            texts.push(format!("… and {hidden} more"));
        }
        match texts.is_empty() {
            true => Vec::new(),
            false => wrapped(head, &texts.join(", "), room.lines.min(2)),
        }
    };
    let (below, full): (&[&Exhibit], fn(&Exhibit) -> String) = match style.verbose {
        true => (&below, in_full),
        false => (&[], in_words),
    };
    if place > 0 {
        let shown = reached.len().min(3);
        let all = [&reached[..shown], below].concat();
        lines.extend(list("   ", &all, reached.len() - shown));
        lines.extend(wrapped("   Next: ", &verdict.next, room.lines.min(2)));
        return lines;
    }
    lines.extend(reached.iter().take(room.figures).map(|it| full(it)));
    let more = reached.len().saturating_sub(room.figures);
    if more > 0 {
        lines.push(format!("   … and {more} more: --json"));
    }
    lines.extend(list("   Missed: ", below, 0));
    let against: Vec<&Exhibit> = against(verdict).collect();
    lines.extend(list("   Against: ", &against, 0));
    lines.extend(wrapped("   Next: ", &verdict.next, room.lines));
    lines
}

/// Returns the figures against a verdict. Among figures that contradict only together, one may
/// support the verdict: it is left out here.
pub(crate) fn against(verdict: &Verdict) -> impl Iterator<Item = &Exhibit> {
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
    let not = if exhibit.reached == Some(false) {
        "not "
    } else {
        ""
    };
    format!(
        "{} {} ({not}{})",
        exhibit.metric,
        value(exhibit),
        exhibit.threshold
    )
}

/// Returns a figure with its meaning, and with its threshold in words.
fn in_words(exhibit: &Exhibit) -> String {
    // A share that counts by its product with that of a state is compared as a part of the time.
    let (threshold, of) = match exhibit.threshold.rsplit_once(" > ") {
        Some((_, share)) => (format!("> {share}"), " of the time"),
        None => (exhibit.threshold.clone(), ""),
    };
    let threshold = threshold.replace("> ", "over ").replace("< ", "under ");
    let meaning = evidence::named(exhibit.metric).map_or("", |metric| metric.meaning);
    let head = format!("   {:>12}  ", value(exhibit));
    let end = format!(" ({threshold}{of})");
    let room = COLUMNS.saturating_sub(head.chars().count() + end.chars().count());
    format!("{head}{}{end}", cut(meaning, room))
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

/// Returns the open questions, of the first verdict or of any. A figure is named once.
fn questions(report: &Report, room: &Room) -> Vec<String> {
    let first = report.verdicts.first();
    let mut all = first.map_or_else(Vec::new, |verdict| verdict.cannot_tell.clone());
    let named: BTreeSet<&str> = all.iter().flat_map(|text| names(text)).collect();
    let others = report.evidence.readings().map(|(name, _)| name);
    let others = others.filter(|name| !named.contains(name));
    let mut others = report.evidence.absent(others);
    all.append(&mut others);
    let mut lines = Vec::new();
    for question in all.iter().take(room.questions) {
        let head = if lines.is_empty() {
            "Cannot tell: "
        } else {
            "             "
        };
        let question = plain(question);
        lines.extend(asked(head, &question, room.lines.min(2)));
    }
    let more = all.len().saturating_sub(room.questions);
    if more > 0 {
        lines.push(format!("             … and {more} more: --json"));
    }
    lines
}

/// Returns a question in at most `most` lines. Its reason is not shortened: names are shortened
/// instead.
fn asked(head: &str, question: &str, most: usize) -> Vec<String> {
    let (names, why) = question.split_once(": ").unwrap_or((question, ""));
    let names: Vec<&str> = names.split(", ").collect();
    let text = |count: usize| {
        let cut = if count < names.len() { ", …" } else { "" };
        let colon = if why.is_empty() { "" } else { ": " };
        format!("{}{cut}{colon}{why}", names[..count].join(", "))
    };
    let fits = |count: &usize| wrapped(head, &text(*count), usize::MAX).len() <= most;
    let count = (1..=names.len()).rev().find(fits).unwrap_or(1);
    wrapped(head, &text(count), most)
}

/// Returns the words of a text that may be names of figures.
fn names(text: &str) -> impl Iterator<Item = &str> {
    let is_other = |c: char| !(c.is_ascii_lowercase() || c.is_ascii_digit() || "._".contains(c));
    text.split(is_other)
}

/// Returns a table of all figures.
pub(crate) fn figures(evidence: &Evidence) -> String {
    let mut text = String::new();
    for (name, reading) in evidence.readings() {
        let unit = evidence::named(name).map_or("", |metric| metric.unit);
        let value = reading.value.map(|value| quantity(value, unit));
        let value = value.unwrap_or_default();
        let (quality, source) = (reading.quality.name(), plain(&reading.source));
        text += &format!("{name:<22} {value:>20}  {quality:<8} {source}\n");
    }
    text
}

/// The width of a page in columns.
const COLUMNS: usize = 80;

/// Formats a number with at most four significant digits, and its thousands separated.
pub(crate) fn number(value: f64) -> String {
    let digits = match value.abs() {
        v if v == 0.0 || v >= 100.0 => 0,
        v if v >= 10.0 => 1,
        v if v >= 0.01 => 2,
        _ => 4,
    };
    let text = format!("{value:.digits$}");
    let (whole, fraction) = text.split_at(text.find('.').unwrap_or(text.len()));
    let (sign, whole) = whole.split_at(whole.len() - whole.trim_start_matches('-').len());
    format!("{sign}{}{fraction}", grouped(whole))
}

/// Formats a number with its unit.
fn quantity(value: f64, unit: &str) -> String {
    let number = number(value);
    match unit {
        "share" | "1" => number,
        "1/s" => format!("{number}/s"),
        _ => format!("{number} {unit}"),
    }
}

/// Formats a share of the time in per cent.
pub(crate) fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// Converts shares of the time into whole per cent, so that their sum does not exceed `most`: all
/// are rounded down, and the largest remainders are rounded up while there is room.
fn percents(shares: impl IntoIterator<Item = f64>, most: u32) -> Vec<u32> {
    let exact: Vec<f64> = shares.into_iter().map(|share| share * 100.0).collect();
    let mut whole: Vec<u32> = exact.iter().map(|exact| *exact as u32).collect();
    let sum = exact.iter().sum::<f64>().round() as u32;
    let mut left = sum.min(most).saturating_sub(whole.iter().sum());
    let mut order: Vec<usize> = (0..exact.len()).collect();
    order.sort_by(|&a, &b| exact[b].fract().total_cmp(&exact[a].fract()));
    for at in order {
        let one = left.min(1);
        whole[at] += one;
        left -= one;
    }
    whole
}

/// Shortens a text to `columns` columns, with an ellipsis where it is longer.
pub(crate) fn cut(text: &str, columns: usize) -> String {
    if text.chars().count() <= columns {
        return text.to_owned();
    }
    let kept = text.chars().take(columns.saturating_sub(1));
    kept.chain(['…']).collect()
}

/// Removes control characters: the name of another program must not control our terminal.
pub(crate) fn plain(text: &str) -> String {
    let mut safe = String::new();
    for c in text.chars() {
        if c.is_control() {
            safe.extend(c.escape_default());
        } else {
            safe.push(c);
        }
    }
    safe
}

/// Wraps words into lines, the first behind `head`, the others indented to its end. There are at
/// most `most` lines; if the text is longer, the last one ends with an ellipsis.
pub(crate) fn wrapped(head: &str, text: &str, most: usize) -> Vec<String> {
    let indent = " ".repeat(head.chars().count());
    let mut lines = vec![head.to_owned()];
    let mut is_empty = true;
    for word in text.split_whitespace() {
        let line = lines.last().map_or(0, |line| line.chars().count());
        let space = usize::from(!is_empty);
        if !is_empty && line + space + word.chars().count() > COLUMNS {
            lines.push(indent.clone());
            is_empty = true;
        }
        let line = lines.last_mut().expect("it has one from the start");
        if !is_empty {
            line.push(' ');
        }
        line.push_str(word);
        is_empty = false;
    }
    if lines.len() > most {
        lines.truncate(most);
        if let Some(last) = lines.last_mut() {
            // The ellipsis replaces a word if there is no room for it.
            let whole = last.chars().count() <= COLUMNS - 2;
            let end = last.rfind(' ').filter(|_| !whole).unwrap_or(last.len());
            last.truncate(end);
            last.push_str(" …");
        }
    }
    lines.into_iter().map(|line| cut(&line, COLUMNS)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_few_digits() {
        let shown = [
            0.0,
            0.000_21,
            0.25,
            1.0,
            12.34,
            999.6,
            1_234_567.8,
            -1_000.0,
        ];
        let shown: Vec<String> = shown.into_iter().map(number).collect();
        let expected = [
            "0",
            "0.0002",
            "0.25",
            "1.00",
            "12.3",
            "1,000",
            "1,234,568",
            "-1,000",
        ];
        assert_eq!(shown, expected);
        assert_eq!(quantity(2.0, "cores"), "2.00 cores");
        assert_eq!(quantity(2_000.0, "1/s"), "2,000/s");
        assert_eq!(quantity(0.5, "share"), "0.50");
    }

    #[test]
    fn percents_of_a_whole_are_not_more_than_it() {
        assert_eq!(percent(0.255), "26 %");
        assert_eq!(percents([0.255], 100), [26]);
        // If each were rounded by itself, the sum would be 102.
        let parts = [0.255, 0.255, 0.245, 0.245];
        assert_eq!(percents(parts, 100).iter().sum::<u32>(), 100);
        assert_eq!(percents([0.356, 0.297, 0.296], 94), [35, 30, 29]);
        assert_eq!(percents([0.3, 0.1], 100), [30, 10]);
        assert!(percents([], 100).is_empty());
    }

    #[test]
    fn long_texts_are_cut_and_wrapped() {
        assert_eq!(cut("abcdef", 4), "abc…");
        assert_eq!(cut("abcd", 4), "abcd");
        assert_eq!(plain("a\x1b[31mb\n"), "a\\u{1b}[31mb\\n");
        let words = "word ".repeat(40);
        let lines = wrapped("head: ", &words, 9);
        assert_eq!(lines.len(), 3);
        assert!(lines.iter().all(|line| line.chars().count() <= COLUMNS));
        assert!(lines[1].starts_with("      word"));
        let short = wrapped("head: ", &words, 2);
        assert_eq!(short.len(), 2);
        assert!(short[1].ends_with('…'));
        // A line of 80 columns has no room for the ellipsis.
        let full = wrapped("", &format!("{} {} b", "a".repeat(75), "a".repeat(4)), 1);
        assert_eq!(full, [format!("{} …", "a".repeat(75))]);
        let long = wrapped("", &"x".repeat(200), 5);
        assert!(long.iter().all(|line| line.chars().count() <= COLUMNS));
    }
}
