//! Writes a report as one self-contained page of charts and tables, without external resources.

mod flames;
mod threads;

use crate::evidence::{self, Evidence, Quality};
use crate::recording::{Latency, Recording};
use crate::report::page::{against, cut, facts, in_percent, number, plain, why_none};
use crate::report::{Host, Report};
use crate::rules::verdict::{Exhibit, Verdict};
use std::collections::BTreeSet;
use thalweg_measure::svg::{self, escape, section};
use thalweg_measure::table::Nanoseconds;

const STYLE: &str = include_str!("html/style.css");

/// Returns the page.
pub(crate) fn page(report: &Report, recording: &Recording) -> String {
    let body = [
        head(report),
        verdicts(report),
        section("Where the time went", &times(report)),
        curves(recording),
        section("Threads over time", &threads::threads(recording)),
        section("On a core", &flames::on_cpu(recording)),
        section("Waiting", &flames::off_cpu(recording)),
        section(
            "What could not be measured here",
            &list(&missing(report, recording)),
        ),
        section("All figures", &all(&report.evidence)),
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
    for ((spent, percent, parts), class) in in_percent(&report.time).zip(threads::CLASSES) {
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

/// Returns all cards, the most likely verdict first; the evidence of the others is folded.
pub(crate) fn verdicts(report: &Report) -> String {
    if report.verdicts.is_empty() {
        return section(
            "No verdict",
            &empty(why_none(&report.evidence).trim_end_matches('.'), &[]),
        );
    }
    let mut named = BTreeSet::new();
    let cards = report.verdicts.iter().enumerate();
    let cards = cards.map(|(place, verdict)| card(place, verdict, &mut named));
    cards.collect()
}

fn card<'a>(place: usize, verdict: &'a Verdict, named: &mut BTreeSet<&'a str>) -> String {
    let title = format!("{}. {}", place + 1, verdict.id.name());
    let confidence = verdict.confidence.clamp(0.0, 1.0);
    let open = if place == 0 { " open" } else { "" };
    let content = format!(
        "<p class=\"what\">{}</p>\n\
         <p class=\"confidence\"><span>confidence</span>\
         <span class=\"gauge\" aria-hidden=\"true\"><i style=\"width:{:.0}%\"></i></span>\
         <b>{confidence:.2}</b></p>\n\
         {}<p class=\"next\"><b>Next</b> {}</p>\n\
         <details{open}>\n<summary>Evidence</summary>\n{}{}</details>\n",
        escape(verdict.id.meaning()),
        100.0 * confidence,
        places(verdict),
        escape(&plain(&verdict.next)),
        evidence(verdict),
        questions(verdict, named),
    );
    section(&title, &content)
}

fn part(name: &str, content: &str) -> String {
    format!("<h3>{name}</h3>\n{content}")
}

fn places(verdict: &Verdict) -> String {
    match verdict.places.is_empty() {
        true => String::new(),
        false => format!(
            "<p><b>Where</b> {}</p>",
            escape(&plain(&verdict.places.join("; ")))
        ),
    }
}

fn evidence(verdict: &Verdict) -> String {
    let missed = |it: &&Exhibit| it.reached == Some(false);
    let (below, reached): (Vec<_>, Vec<_>) = verdict.evidence.iter().partition(missed);
    let rows = |exhibits: &[&Exhibit]| table(exhibits.iter().map(|it| row(it)));
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

fn row(exhibit: &Exhibit) -> Row<'_> {
    let not = exhibit.reached == Some(false);
    Row {
        metric: exhibit.metric,
        value: exhibit.value,
        unit: exhibit.unit,
        threshold: Some((&exhibit.threshold, not)),
        quality: exhibit.quality,
        source: &exhibit.source,
    }
}

/// A row that shows a figure.
pub(crate) struct Row<'a> {
    pub(crate) metric: &'a str,
    pub(crate) value: Option<f64>,
    pub(crate) unit: &'a str,
    /// The threshold, and whether the figure misses it; `None` where there is no threshold.
    pub(crate) threshold: Option<(&'a str, bool)>,
    pub(crate) quality: Quality,
    pub(crate) source: &'a str,
}

/// Returns a table. In a narrow window each row is a block, and the cells carry their column names
/// themselves; a block has no table roles, so the roles are written out.
pub(crate) fn table<'a>(rows: impl Iterator<Item = Row<'a>>) -> String {
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
    let meaning = evidence::named(row.metric).map_or("", |metric| metric.meaning);
    let cell = |name: &str, text: &str| {
        let text = escape(text);
        format!("<td role=\"cell\" class=\"{name}\" data-name=\"{name}\">{text}</td>")
    };
    let (value, unit) = row
        .value
        .map_or_else(|| ("–".to_owned(), ""), |value| (number(value), row.unit));
    let mut cells = cell("value", &value) + &cell("unit", unit);
    if thresholds {
        let threshold = row.threshold.map(|(text, is_missed)| match is_missed {
            true => format!("not {text}"),
            false => text.to_owned(),
        });
        cells += &cell("threshold", &threshold.unwrap_or_default());
    }
    cells += &cell("quality", row.quality.name());
    cells += &cell("source", &plain(row.source));
    format!(
        "<tr role=\"row\"><th role=\"rowheader\" scope=\"row\">{}<small>{}</small></th>\
         {cells}</tr>\n",
        escape(row.metric),
        escape(meaning)
    )
}

/// Returns the table of all figures.
pub(crate) fn all(evidence: &Evidence) -> String {
    let rows = evidence.readings().map(|(metric, reading)| Row {
        metric,
        value: reading.value,
        unit: evidence::named(metric).map_or("", |metric| metric.unit),
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

const CAPTION: &str = "The time that a share of the messages did not exceed; both axes are \
    logarithmic. For a program that ran already, since it began.";

/// The number of line colours; further lines start again with the first colour.
const COLOURS: usize = 6;

/// Draws the curves, with the values in a latency_table; returns an empty text where the program
/// exports no times.
pub(crate) fn curves(recording: &Recording) -> String {
    let all = &recording.latencies;
    if all.is_empty() {
        return String::new();
    }
    let marks = Latency::PERCENTILES.iter().enumerate();
    let marks: Vec<_> = marks
        .map(|(at, name)| (position(at), (*name).to_owned()))
        .collect();
    let curve = |(at, latency): (usize, &Latency)| svg::Curve {
        name: plain(&latency.name),
        class: class(at),
        points: latency
            .at_ns
            .iter()
            .enumerate()
            .map(|(at, &ns)| (position(at), ns))
            .collect(),
    };
    let lines: Vec<svg::Curve> = all.iter().enumerate().map(curve).collect();
    let content = format!(
        "<p class=\"note\">{CAPTION}</p>\n{}{}",
        svg::curves(&lines, &marks, "percentile of the messages"),
        latency_table(all)
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
fn position(at: usize) -> f64 {
    let nines = match at {
        0 => 0.5_f64.log10().abs(),
        _ => at as f64,
    };
    nines / (Latency::PERCENTILES.len() - 1) as f64
}

fn latency_table(all: &[Latency]) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::{Evidence, METRICS, Quality};
    use crate::recording::{Latency, Span, Stack, State, Track};
    use crate::report::Ending;
    use crate::rules::verdict::{Exhibit, Verdict};

    const HOSTILE: &str = "</script></iframe><img src=x onerror=\"alert(1)\">]]>\u{1b}[2J'&amp;";

    fn report(command: &str, evidence: Evidence) -> Report {
        Report {
            machine: Host::default(),
            ..Report::new(vec![command.to_owned()], Some(Ending::Code(0)), evidence)
        }
    }

    fn latency(name: &str) -> Latency {
        Latency {
            name: name.to_owned(),
            count: 3_906,
            at_ns: [1_100, 1_900, 2_900, 8_000, 41_000, 41_000],
        }
    }

    #[test]
    fn latencies_are_a_curve_and_a_table() {
        let with = Recording {
            latencies: vec![latency("end to end"), latency("match, served")],
            ..Recording::default()
        };
        let curves = page(&report("a", Evidence::new()), &with);
        for part in [
            "<h2>Latency</h2>",
            "class=\"curve total\"",
            "class=\"curve s0\"",
            ">99.99</text>",
            ">3,906</td>",
            ">2.90 µs</td>",
        ] {
            assert!(curves.contains(part), "{part} is not in {curves}");
        }
        let none = page(&report("a", Evidence::new()), &Recording::default());
        assert!(!none.contains("<h2>Latency</h2>"));
    }

    /// Creates the largest possible recording: every column of every thread differs from the next.
    fn largest(name: &str) -> Recording {
        let spans = |thread: u64| -> Vec<Span> {
            let state = [State::Running, State::Runnable, State::Blocked];
            let span = |i: u64| Span {
                from_ns: i * 1_000 + (i * i * 7 + thread * 13) % 900,
                state: state[((i * i + thread) % 3) as usize],
            };
            (0..Recording::SPANS_MAX as u64).map(span).collect()
        };
        let track = |thread: u64| Track {
            process: 1,
            thread: thread as u32,
            name: name.to_owned(),
            end_ns: 4_096_000,
            spans: spans(thread),
            total_ns: [1_000_000, 1_000_000, 2_096_000],
            spans_left_out: 9,
        };
        let stack = |n: u64| Stack {
            frames: vec![name.to_owned(), format!("f{}", n % 9), format!("g{n}_[k]")],
            weight_ns: 1_000_000 + n,
        };
        Recording {
            length_ns: 4_096_000,
            tracks: (0..Recording::TRACKS_MAX as u64).map(track).collect(),
            tracks_left_out: 3,
            on_cpu: (0..500).map(stack).collect(),
            off_cpu: (0..50).map(stack).collect(),
            latencies: vec![latency(name)],
            lacks: vec![name.to_owned()],
        }
    }

    #[test]
    fn hostile_names_cannot_become_markup() {
        let mut evidence = Evidence::new();
        evidence.put("state.running", 0.9, Quality::Exact, HOSTILE);
        evidence.lack("call.futex", HOSTILE);
        let mut report = report(HOSTILE, evidence);
        let exhibit = Exhibit {
            metric: "state.running",
            value: Some(0.9),
            unit: "share",
            threshold: HOSTILE.to_owned(),
            source: HOSTILE.to_owned(),
            quality: Quality::Exact,
            reached: Some(true),
        };
        report.verdicts = vec![Verdict {
            id: crate::rules::verdict::Id::Idle,
            confidence: 0.5,
            evidence: vec![exhibit.clone()],
            contradicts: vec![exhibit],
            cannot_tell: vec![HOSTILE.to_owned()],
            places: vec![HOSTILE.to_owned()],
            next: HOSTILE.to_owned(),
        }];
        report.machine.processor = Some(HOSTILE.to_owned());
        let page = page(&report, &largest(HOSTILE));
        assert!(!page.contains("<img") && !page.contains("onerror=\""));
        // There are the frames of the two graphs; in each of them is one script of ours and one of
        // its own.
        assert_eq!(page.matches("</iframe>").count(), 2);
        assert_eq!(page.matches("</script>").count(), 4);
        assert!(!page.contains('\u{1b}'));
    }

    #[test]
    fn nothing_comes_from_outside() {
        let page = page(&report("a", Evidence::new()), &largest("f"));
        for outside in [" src=", "href=", "url(h", "@import", "<link", "import("] {
            assert!(!page.contains(outside), "{outside} is in the page");
        }
        // The graphs' background colour is the only reference, and it refers to the graph itself.
        assert_eq!(
            page.matches("url(").count(),
            page.matches("url(#background)").count()
        );
        assert!(!page.contains("NaN") && !page.contains("inf\""));
    }

    #[test]
    fn a_report_of_nothing_says_why() {
        let recording = Recording {
            lacks: vec!["threads: perf_event_open: EACCES".to_owned()],
            ..Recording::default()
        };
        let page = page(&report("true", Evidence::new()), &recording);
        for part in [
            "<h2>No verdict</h2>",
            "The figures fit no kind of bottleneck.",
            "No state was measured:",
            "No threads were followed:",
            "No stacks of running threads were taken:",
            "No waiting was seen:",
            "Nothing was measured.",
        ] {
            assert!(page.contains(part), "{part} is not in the page");
        }
        let why = "<li>threads: perf_event_open: EACCES</li>";
        assert_eq!(
            page.matches(why).count(),
            4,
            "each empty part says why, and the list"
        );
    }

    #[test]
    fn the_largest_recording_has_some_megabytes_and_the_same_page_twice() {
        let mut evidence = Evidence::new();
        for metric in METRICS {
            evidence.put(metric.name, 0.5, Quality::Sampled, "by hand");
        }
        let report = report("a", evidence);
        let recording = largest("a thread");
        let first = page(&report, &recording);
        assert!(first.len() < 4 << 20, "{} bytes", first.len());
        assert_eq!(first.matches("class=\"rest\"").count(), 2 * 64);
        assert!(first.contains("Threads left out, with less processor time: 3."));
        assert!(first.contains("(their totals are exact): 64."));
        assert!(first == page(&report, &recording));
    }

    #[test]
    fn every_verdict_is_a_card() {
        let mut report = report("a", Evidence::new());
        let rules = crate::rules::rules().into_iter();
        let verdicts = rules.enumerate().map(|(place, rule)| Verdict {
            id: rule.id,
            confidence: 1.0 - place as f64 / 40.0,
            evidence: Vec::new(),
            contradicts: Vec::new(),
            cannot_tell: Vec::new(),
            places: Vec::new(),
            next: format!("step {place}"),
        });
        report.verdicts = verdicts.collect();
        assert!(report.verdicts.len() >= 19);
        let page = page(&report, &Recording::default());
        for (place, verdict) in report.verdicts.iter().enumerate() {
            let card = format!("<h2>{}. {}</h2>", place + 1, verdict.id.name());
            assert!(page.contains(&card), "{card} is not in the page");
            assert!(page.contains(&format!("</b> step {place}</p>")));
        }
        assert!(page.contains("<b>1.00</b>") && page.contains("<i style=\"width:95%\">"));
        assert_eq!(page.matches("<details open>").count(), 1);
    }

    #[test]
    fn figures_have_value_unit_threshold_quality_and_source() {
        let mut evidence = Evidence::new();
        evidence.put("fault.minor", 250_000.0, Quality::Exact, "rusage");
        evidence.lack("call.futex", "no counters");
        let page = page(&report("a", evidence), &Recording::default());
        let cell = |name: &str, text: &str| {
            format!("<td role=\"cell\" class=\"{name}\" data-name=\"{name}\">{text}</td>")
        };
        let known = [
            ("value", "250,000"),
            ("unit", "1/s"),
            ("quality", "exact"),
            ("source", "rusage"),
        ];
        let absent = [
            ("value", "–"),
            ("unit", ""),
            ("quality", "absent"),
            ("source", "no counters"),
        ];
        for cells in [known, absent] {
            let row: String = cells.iter().map(|(name, text)| cell(name, text)).collect();
            assert!(page.contains(&row), "{row} is not in {page}");
        }
    }
}
