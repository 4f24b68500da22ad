//! Tests pages of reports made by hand.

use super::*;
use crate::evidence::{Evidence, Quality};
use crate::metrics::METRICS;
use crate::recording::{Latency, Span, Stack, State, Track};
use crate::report::Ending;
use crate::verdict::{Exhibit, Verdict};

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
    evidence.lack("hardware.ipc", HOSTILE);
    let mut report = report(HOSTILE, evidence);
    let exhibit = Exhibit {
        metric: "state.running",
        value: Some(0.9),
        unit: "share",
        threshold: HOSTILE.to_owned(),
        source: HOSTILE.to_owned(),
        quality: Quality::Exact,
    };
    report.verdicts = vec![Verdict {
        id: crate::verdict::Id::Idle,
        confidence: 0.5,
        evidence: vec![exhibit.clone()],
        contradicts: vec![exhibit],
        cannot_tell: vec![HOSTILE.to_owned()],
        next: HOSTILE.to_owned(),
    }];
    report.machine.processor = Some(HOSTILE.to_owned());
    let page = page(&report, &largest(HOSTILE));
    assert!(!page.contains("<img") && !page.contains("onerror=\""));
    // There are the frames of the two graphs; in each of them is one script of ours and one of its
    // own.
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
        next: format!("step {place}"),
    });
    report.verdicts = verdicts.collect();
    assert!(report.verdicts.len() >= 20);
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
    evidence.lack("hardware.ipc", "no counters");
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
