//! The report of a doctor's run: a page of text or HTML for people, JSON for programs.

mod html;
pub(crate) mod page;

use crate::evidence::Evidence;
pub use crate::evidence::breakdown::{Piece, Spent};
use crate::recording::Recording;
pub use crate::report::page::Style;
#[cfg(target_os = "linux")]
pub(crate) use crate::report::page::wrapped;
use crate::rules;
use crate::rules::verdict::Verdict;
use serde::Serialize;
use std::fs;

/// The way in which the observed program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Ending {
    /// It ended by itself, with this exit code.
    Code(i32),
    /// A signal of this number ended it.
    Signal(i32),
    /// The exit status is unknown, as only its parent receives it.
    Unknown,
}

impl Ending {
    /// Returns the exit code that a shell would return.
    #[must_use]
    pub fn code(self) -> i32 {
        match self {
            Ending::Code(code) => code,
            Ending::Signal(signal) => 128 + signal,
            Ending::Unknown => 0,
        }
    }
}

/// The machine on which it was observed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Host {
    /// The kernel's name and release.
    pub kernel: String,
    /// The processor, if the system names it.
    pub processor: Option<String>,
    /// The number of cores that exist, usable or not.
    pub cores: usize,
    /// Whether the doctor ran as root, and so could see more.
    pub root: bool,
}

impl Host {
    /// Reads the facts of this machine.
    #[must_use]
    pub fn here() -> Host {
        let line = |path| fs::read_to_string(path).map(|text| text.trim().to_owned());
        let release = line("/proc/sys/kernel/osrelease").unwrap_or_default();
        let named = line("/proc/cpuinfo").unwrap_or_default();
        Host {
            kernel: format!("{} {release}", std::env::consts::OS)
                .trim()
                .to_owned(),
            processor: processor(),
            cores: named
                .lines()
                .filter(|line| line.starts_with("processor"))
                .count(),
            root: is_root(),
        }
    }
}

/// Returns the name of this machine's processor, if the system has one.
#[must_use]
pub fn processor() -> Option<String> {
    let info = fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = info.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

#[cfg(unix)]
fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}

#[cfg(not(unix))]
fn is_root() -> bool {
    false
}

/// The contents of the report of one run; `docs/doctor-json.md` describes its JSON.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// The command and its arguments; for a process that ran already, its name.
    pub command: Vec<String>,
    /// The way in which it ended; `None` if it still runs.
    pub exit: Option<Ending>,
    /// The division of the time.
    pub time: Vec<Spent>,
    /// The verdicts, the most likely first.
    pub verdicts: Vec<Verdict>,
    /// All figures.
    pub evidence: Evidence,
    /// The machine where it ran.
    pub machine: Host,
    /// The figures that are absent here, with the reasons; those with a common reason are grouped.
    pub cannot_tell: Vec<String>,
}

impl Report {
    /// Judges the figures of a run.
    #[must_use]
    pub fn new(command: Vec<String>, exit: Option<Ending>, evidence: Evidence) -> Report {
        Report {
            command,
            exit,
            time: crate::evidence::breakdown::spent(&evidence),
            verdicts: rules::judge(&evidence),
            cannot_tell: evidence.absent(evidence.readings().map(|(name, _)| name)),
            evidence,
            machine: Host::here(),
        }
    }

    /// Returns a page of text: at most 40 lines of 80 columns.
    #[must_use]
    pub fn page(&self, style: Style) -> String {
        page::page(self, style)
    }

    /// Returns all figures as a table of text, with the file or event that each came from.
    #[must_use]
    pub fn figures(&self) -> String {
        page::figures(&self.evidence)
    }

    /// Returns one self-contained HTML page, with charts of the recording and without external
    /// resources. Equal reports give equal pages. With 64 busy threads it has some megabytes.
    #[must_use]
    pub fn html(&self, recording: &Recording) -> String {
        html::page(self, recording)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::values;
    use crate::evidence::{METRICS, Quality};
    use crate::rules::verdict::{Exhibit, Id};

    const PLAIN: Style = Style {
        colours: false,
        verbose: false,
    };
    const VERBOSE: Style = Style {
        verbose: true,
        ..PLAIN
    };
    const COLOURED: Style = Style {
        colours: true,
        ..PLAIN
    };

    fn fault_bound() -> Report {
        let values = values! {
            time.wall 2.0, cpu.usable 2.0, cpu.used 1.0, threads.max 1.0, state.running 0.9,
            state.waiting 0.0, state.blocked 0.1, block.futex 1.0, fault.cpu_share 0.6,
            fault.minor 250_000.0
        };
        let mut evidence = Evidence::of(&values, Quality::Sampled);
        for name in ["call.futex", "lock.waiters"] {
            evidence.lack(name, "no counters here");
        }
        let command = vec!["./touch".to_owned(), "\x1b[2Ja".to_owned()];
        Report::new(command, Some(Ending::Code(3)), evidence)
    }

    #[test]
    fn a_page_says_what_and_why_and_what_next() {
        let page = fault_bound().page(PLAIN);
        for part in [
            "thalweg doctor: ./touch \\u{1b}[2Ja\n",
            "2.00 s, exit code 3, 1.00 of 2 cores used, 1 thread at once\n",
            "Time  running 90 %: page faults 54 %, computing 36 %\n",
            "blocked 10 %: futex 10 %\n",
            "1. PAGE-FAULTS (confidence ",
            "           0.60  part of the processor time spent in pa… (over 0.25 of the time)\n",
            "   Next: Touch memory once and keep it",
            "call.futex, lock.waiters: no counters here",
        ] {
            assert!(page.contains(part), "{part} is not in\n{page}");
        }
        assert!(!page.contains('\x1b') && !page.contains("by hand"));
        let page = fault_bound().page(VERBOSE);
        for part in [
            "   fault.cpu_share               0.60  × state.running > 0.25 ~ by hand\n",
            "   state.running                 0.90  > 0.25                 ~ by hand\n",
        ] {
            assert!(page.contains(part), "{part} is not in\n{page}");
        }
        assert!(
            fault_bound()
                .page(COLOURED)
                .contains("\x1b[1mPAGE-FAULTS\x1b[0m")
        );
    }

    #[test]
    fn a_page_fits_a_screen_whatever_is_measured() {
        for value in [0.0, 0.2, 0.4, 0.7, 1.0, 30_000.0] {
            let mut evidence = Evidence::new();
            for (number, metric) in METRICS.iter().enumerate() {
                let source = "a long text about where this comes from ".repeat(number % 4);
                match number % 5 {
                    0 => evidence.lack(metric.name, source),
                    _ => evidence.put(metric.name, value, Quality::Exact, source),
                }
            }
            evidence.put("time.wall", 1.0, Quality::Exact, "a clock");
            let report = Report::new(vec!["x".repeat(500)], None, evidence);
            let page = report.page(PLAIN);
            assert!(page.lines().count() <= 40, "{page}");
            assert!(
                page.lines().all(|line| line.chars().count() <= 80),
                "{page}"
            );
        }
    }

    #[test]
    fn a_program_that_ended_at_once_is_not_judged() {
        let mut evidence = Evidence::new();
        evidence.put("time.wall", 0.001, Quality::Exact, "a clock");
        let page =
            Report::new(vec!["true".to_owned()], Some(Ending::Code(0)), evidence).page(PLAIN);
        assert!(page.contains("It ended too soon to tell."), "{page}");
    }

    #[test]
    fn what_speaks_for_a_verdict_is_not_listed_against_it() {
        let values = values! {
            time.wall 2.0, state.running 0.1, state.waiting 0.0, state.blocked 0.9,
            block.futex 1.0, call.futex 50_000.0, futex.wake_share 0.5, lock.waiters 1.6,
            threads.busy 1.0, lock.held_share 0.9
        };
        let evidence = Evidence::of(&values, Quality::Sampled);
        let mut report = Report::new(vec!["queue".to_owned()], Some(Ending::Unknown), evidence);
        let is_parking = |verdict: &Verdict| verdict.id == crate::rules::verdict::Id::FutexParking;
        report.verdicts.retain(is_parking);
        let page = report.page(PLAIN);
        let against = page.split("Against: ").nth(1).expect("a lock has a queue");
        let against = against.split("Next: ").next().expect("the end of the list");
        assert!(
            against.contains("lock.waiters 1.60 threads (> 1)"),
            "{page}"
        );
        assert!(!against.contains("call.futex"), "{page}");
        let html = report.html(&Recording::default());
        let against = html.split("Against it").nth(1).expect("the same in HTML");
        let against = against
            .split("</table>")
            .next()
            .expect("the end of the table");
        assert!(
            against.contains("lock.waiters") && !against.contains("call.futex"),
            "{against}"
        );
        assert!(page.contains("ended meanwhile"), "{page}");
    }

    /// Creates a report in which `sched_yield` takes most of the time, though its calls are few.
    fn yields() -> Report {
        let values = values! {
            time.wall 2.0, cpu.used 1.0, state.running 0.995, call.cpu_share 0.9,
            yield.cpu_share 0.7, call.all 60_000.0, call.yield 40_000.0, cpu.system_share 0.9
        };
        let evidence = Evidence::of(&values, Quality::Exact);
        Report::new(vec!["burst".to_owned()], Some(Ending::Code(0)), evidence)
    }

    /// Creates a report in which faults take half of the time, and kernel calls a third.
    fn faults_and_calls() -> Report {
        let values = values! {
            time.wall 2.0, threads.max 6.0, processes.started 41.0, cpu.used 1.0, cpu.usable 2.0,
            cpu.system_share 0.35, state.running 0.995, state.waiting 0.005, fault.major 0.0,
            block.disk 0.0, state.blocked 0.0, run.wait_peers 0.3, fault.cpu_share 0.505,
            fault.minor 15_000.0, call.cpu_share 0.415, call.all 40_000.0, call.futex 0.0,
            call.yield 0.0, spin.cpu_share 0.0, switch.run_us 900.0
        };
        let evidence = Evidence::of(&values, Quality::Exact);
        Report::new(vec!["burst".to_owned()], Some(Ending::Code(0)), evidence)
    }

    #[test]
    fn a_figure_that_misses_its_threshold_is_marked_everywhere() {
        let report = yields();
        assert!(!report.page(PLAIN).contains("Missed: "));
        let page = report.page(VERBOSE);
        let first = page.split("2. ").next().expect("the first verdict");
        assert!(first.contains("1. YIELD-STORM"), "{page}");
        let below = "   Missed: call.yield 40,000/s (not > 50000 × cpu.used)\n";
        assert!(first.contains(below), "{page}");
        assert!(!first.contains("   call.yield "), "{page}");
        let html = report.html(&Recording::default());
        let below = html.split("Looked at, and not at its threshold").nth(1);
        let below = below.and_then(|rest| rest.split("</table>").next());
        let below = below.expect("a table of its own");
        assert!(
            below.contains("call.yield") && below.contains(">not &gt; 50000 × cpu.used<"),
            "{below}"
        );
        assert!(!below.contains("yield.cpu_share"), "{below}");
        let json = serde_json::to_value(&report).expect("JSON");
        let evidence = json["verdicts"][0]["evidence"].as_array().expect("a list");
        for (metric, reached) in [("yield.cpu_share", true), ("call.yield", false)] {
            let shown = evidence.iter().find(|shown| shown["metric"] == metric);
            assert_eq!(shown.expect(metric)["reached"], reached, "{json}");
        }
    }

    #[test]
    fn what_is_cut_is_said_and_each_verdict_has_a_next_step() {
        let mut report = faults_and_calls();
        let page = report.page(VERBOSE);
        let shown = report.verdicts.len().min(3);
        assert!(shown >= 2, "{page}");
        assert_eq!(page.matches("   Next: ").count(), shown, "{page}");
        let first = &mut report.verdicts[0];
        let one = first.evidence[0].clone();
        for metric in METRICS.iter().take(9) {
            first.evidence.push(Exhibit {
                metric: metric.name,
                ..one.clone()
            });
        }
        let of = first.evidence.len();
        while report.verdicts.len() < 5 {
            report.verdicts.push(report.verdicts[1].clone());
        }
        let page = report.page(VERBOSE);
        let lines = page.lines().filter(|line| line.contains("by hand")).count();
        let cut = format!("   … and {} more: --json\n", of - lines);
        assert!(lines >= 3 && page.contains(&cut), "{page}");
        assert!(page.contains("\nLess likely: SYSCALL-BOUND 0."), "{page}");
    }

    #[test]
    fn the_head_says_what_is_counted() {
        let page = faults_and_calls().page(PLAIN);
        let head = "1.00 of 2 cores used, 6 threads at once, 41 processes in all";
        assert!(page.replace("\n  ", " ").contains(head), "{page}");
    }

    #[test]
    fn parts_of_the_page_are_not_more_than_their_state() {
        let page = faults_and_calls().page(PLAIN);
        let line = "running 100 %: page faults 50 %, other system calls 41 %, computing 8 %\n";
        assert!(page.contains(line), "{page}");
        let html = faults_and_calls().html(&Recording::default());
        for (name, percent) in [("running", 100), ("page faults", 50), ("computing", 8)] {
            let row = format!("<b>{name}</b><span>{percent} %</span>");
            assert!(html.contains(&row), "{row} is not in the page");
        }
        let json = serde_json::to_value(faults_and_calls()).expect("JSON");
        assert_eq!(json["time"][0]["state"], "running");
        assert_eq!(json["time"][0]["parts"][0]["part"], "page faults");
    }

    #[test]
    fn what_is_unknown_is_said_once() {
        // The first verdict and the report both lack one figure, and two verdicts lack another.
        let mut report = fault_bound();
        let missing = "lock.waiters: no counters here".to_owned();
        let first = &mut report.verdicts[0];
        first.cannot_tell.insert(0, missing);
        let second = first.clone();
        report.verdicts.push(second);
        let page = report.page(PLAIN).replace("\n             ", " ");
        let unknown = page
            .split("Cannot tell: ")
            .nth(1)
            .expect("there is something");
        assert_eq!(unknown.matches("lock.waiters").count(), 1, "{page}");
        let html = report.html(&Recording::default());
        let cards = html.split("Where the time went").next().expect("the cards");
        for text in &report.verdicts[1].cannot_tell {
            let item = format!("<li>{text}</li>");
            assert_eq!(cards.matches(&item).count(), 1, "{text}");
        }
        assert!(
            cards.contains("<li>what is said of this above</li>"),
            "{cards}"
        );
    }

    #[test]
    fn why_a_figure_is_absent_is_not_cut() {
        let mut evidence = Evidence::new();
        evidence.put("call.futex", 5.0, Quality::Exact, "/proc");
        let exports =
            "the program exports no figures: it is not built on Thalweg, or ended too soon";
        let calls = "the files of tracepoints cannot be read: Operation not permitted";
        for metric in METRICS {
            if metric.name.starts_with("export.") {
                evidence.lack(metric.name, exports);
            } else if metric.name.starts_with("call.") {
                evidence.lack(metric.name, calls);
            }
        }
        let page = Report::new(vec!["a".to_owned()], None, evidence).page(PLAIN);
        let page = page.replace("\n             ", " ");
        assert!(page.contains(&format!(", …: {exports}")), "{page}");
        let some = format!("call.all, call.cpu_share, call.yield: {calls}");
        assert!(page.contains(&some), "{page}");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_page_says_how_long_messages_took() {
        let mut evidence = Evidence::new();
        let latency = crate::recording::Latency {
            name: "end to end".to_owned(),
            count: 3_906,
            at_ns: [1_100, 1_900, 2_900, 8_000, 41_000, 41_000],
        };
        crate::evidence::export::fill_latency(&mut evidence, &[latency]);
        let page = Report::new(vec!["a".to_owned()], None, evidence).page(PLAIN);
        let line = "\nLatency  p50 1.10 µs, p99 2.90 µs, max 41.0 µs: end to end, 3906 messages\n";
        assert!(page.contains(line), "{page}");
    }

    #[test]
    fn processes_that_go_on_are_reported() {
        let mut evidence = Evidence::new();
        evidence.put("time.wall", 0.001, Quality::Exact, "a clock");
        evidence.put(
            "processes.left",
            2.0,
            Quality::Exact,
            "/proc/*/stat, such as 4711",
        );
        let page = Report::new(vec!["d".to_owned()], Some(Ending::Code(0)), evidence).page(PLAIN);
        assert!(
            page.contains("2 went on, unobserved (such as 4711: see attach)"),
            "{page}"
        );
    }

    #[test]
    fn json_has_all_keys() {
        let json = serde_json::to_value(fault_bound()).expect("JSON");
        assert_eq!(json["exit"]["code"], 3);
        assert_eq!(json["command"][0], "./touch");
        assert_eq!(json["evidence"]["fault.minor"]["value"], 250_000.0);
        assert_eq!(json["evidence"]["lock.waiters"]["quality"], "absent");
        let first = &json["verdicts"][0];
        assert_eq!(first["id"], "PAGE-FAULTS");
        for key in ["metric", "value", "unit", "threshold", "source", "quality"] {
            assert!(!first["evidence"][0][key].is_null(), "{key} in {first}");
        }
        for key in ["contradicts", "cannot_tell", "next", "confidence"] {
            assert!(!first[key].is_null(), "{key} in {first}");
        }
        assert!(json["machine"]["kernel"].is_string());
        assert!(
            json["cannot_tell"][0]
                .as_str()
                .expect("text")
                .contains("no counters here")
        );
    }

    #[test]
    fn raw_figures_name_their_source() {
        let figures = fault_bound().figures();
        let line = figures.lines().find(|line| line.starts_with("fault.minor"));
        let words: Vec<&str> = line.expect("a line").split_whitespace().collect();
        assert_eq!(words, ["fault.minor", "250,000/s", "sampled", "by", "hand"]);
        assert!(figures.contains("absent   no counters here"), "{figures}");
    }

    fn judged(value: impl Fn(&str) -> f64) -> Vec<Verdict> {
        let values = METRICS
            .iter()
            .map(|metric| (metric.name, value(metric.name)));
        rules::judge(&Evidence::of(&values.collect::<Vec<_>>(), Quality::Exact))
    }

    #[test]
    fn every_figure_of_every_verdict_is_reported() {
        let (mut shown, mut ids) = ([0, 0], Vec::new());
        for value in [0.05_f64, 0.15, 0.3, 0.6, 1.0, 30.0, 3e4, 1e6] {
            let verdicts = judged(|name| match name {
                "time.wall" => 1.0,
                _ if metric_is_share(name) => value.min(1.0),
                _ => value,
            });
            for verdict in &verdicts {
                ids.push(verdict.id.name());
                for exhibit in verdict.evidence.iter().chain(&verdict.contradicts) {
                    let reached = exhibit.reached.unwrap_or_else(|| panic!("{exhibit:?}"));
                    shown[usize::from(reached)] += 1;
                }
            }
        }
        ids.sort_unstable();
        ids.dedup();
        assert!(ids.len() >= 8 && shown.iter().all(|&shown| shown >= 10));
    }

    fn metric_is_share(name: &str) -> bool {
        crate::evidence::named(name).is_some_and(|metric| metric.unit == "share")
    }

    #[test]
    fn a_threshold_is_reached_or_missed() {
        let yields = |share, count| {
            let values = values! {
                time.wall 2.0, cpu.used 1.0, state.running 0.9, yield.cpu_share share,
                call.yield count
            };
            let verdicts = rules::judge(&Evidence::of(&values, Quality::Exact));
            let mut yields = verdicts.into_iter().filter(|it| it.id == Id::YieldStorm);
            let shown = yields.next().expect("a share of the time").evidence;
            let shown = shown.into_iter();
            shown.map(|it| (it.metric, it.reached)).collect::<Vec<_>>()
        };
        let [count_of, share] = ["call.yield", "yield.cpu_share"];
        let found = yields(0.35, 40_000.0);
        for figure in [
            (share, Some(true)),
            ("state.running", Some(true)),
            (count_of, Some(false)),
        ] {
            assert!(found.contains(&figure), "{found:?}");
        }
        // The product is compared: 0.9 × 0.25 is less than a quarter.
        let found = yields(0.25, 60_000.0);
        assert!(found.contains(&(share, Some(false))), "{found:?}");
        assert!(found.contains(&(count_of, Some(true))), "{found:?}");
    }
}
