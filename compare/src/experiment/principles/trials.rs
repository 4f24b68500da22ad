//! The five experiments: their cases, what they claim, and their pictures.

mod diagnosis;
mod loss;

pub(super) use diagnosis::diagnosis;
pub(super) use loss::loss;
use thalweg_measure::statistics::Interval;

use super::course::{Both, Course, bars, middle};
use super::page::{Chart, Scale};
use super::place::Cores;
use super::verdict::better_in_one;
use super::{optimisations, state, waiting};
use crate::report::ns;
use crate::runner::Trial;

/// Repetitions, `[full, quick]`.
const STATE_REPETITIONS: [usize; 2] = [21, 3];
const WAITING_REPETITIONS: [usize; 2] = [9, 1];
const STREAM_REPETITIONS: [usize; 2] = [21, 3];
/// Spans of a run, ns, `[full, quick]`.
const STATE_NS: [u64; 2] = [4_000_000, 1_000_000];
const STREAM_NS: [u64; 2] = [10_000_000, 3_000_000];
/// A quick run of the waiting takes this share of a full one's spans.
const QUICK_SHARE: u64 = 4;
/// Within 1.15 times of the other.
const WITHIN: f64 = 1.0 / 1.15;

fn tiny_ns(value: f64) -> String {
    format!("{value:.2} ns")
}

fn percent(value: f64) -> String {
    format!("{value:.0} %")
}

pub(super) fn state(course: &mut Course<'_>) {
    course.principle(
        "1. State",
        "One atomic word for the state: a reader loads once, not once for each flag.",
    );
    let reads = course.settings.span_ns_or(STATE_NS).max(1_000);
    let load = |path| move |cores| state::Load { reads, path, cores };
    let (loops, data) = (load(state::Path::Loop), load(state::Path::Data));
    let subjects = state::article_subjects();
    let case = [
        "state/article",
        "the article's loops: a state that nobody else knows",
    ];
    let article = course.case(
        case,
        state::METRICS,
        &subjects,
        &loops(Cores::One),
        STATE_REPETITIONS,
    );
    let heading = "alone on 1 core; on 2, beside a thread that changes it each 0.1 ms";
    let case = ["state/loop", heading];
    let subjects = state::subjects(state::Path::Loop);
    let tight = course.both(case, state::METRICS, &subjects, loops, STATE_REPETITIONS);
    let case = [
        "state/path",
        "the same, and a message of 64 bytes is read each time",
    ];
    let subjects = state::subjects(state::Path::Data);
    let path = course.both(case, state::METRICS, &subjects, data, STATE_REPETITIONS);

    state_claims(course, article.as_ref(), &tight, &path);
    course.conclude();

    let [alone, beside] = &tight;
    for (title, trial) in [
        ("The article's loops, as the compiler leaves them", &article),
        ("A read in a loop, alone", alone),
        ("A read in a loop, beside a writer on another core", beside),
        (
            "A message and a read, beside a writer on another core",
            &path[1],
        ),
    ] {
        if let Some(trial) = trial {
            course.figure(title, bars(trial, 0, tiny_ns));
        }
    }
}

/// What is claimed of the loops: the article's, in a loop that only reads, and on a data path.
fn state_claims(course: &mut Course<'_>, article: Option<&Trial>, tight: &Both, path: &Both) {
    let sides = [state::ARTICLE_WORD, state::ARTICLE_FAR];
    let own = course.ratio(article, sides, 0);
    course.claim(
        "the article's loop: one word is twice as fast",
        2.0,
        [own, None],
    );
    let found = course.ratios(tight, [state::WORD, state::FAR], 0);
    course.claim(
        "in a loop: one word is faster than flags on four lines",
        1.0,
        found,
    );
    course.claim("in a loop: twice as fast, as the article says", 2.0, found);
    let found = course.ratios(tight, [state::WORD, state::NEAR], 0);
    course.claim(
        "in a loop: one word is faster than flags on one line",
        1.0,
        found,
    );
    let found = course.ratios(path, [state::WORD, state::FAR], 0);
    course.claim(
        "on a data path: one word is faster than flags on four lines",
        1.0,
        found,
    );
}

/// A gap's trials.
type Gap = (&'static str, u64, Both);

pub(super) fn waiting(course: &mut Course<'_>) {
    course.principle(
        "2. Waiting",
        "Adapt the waiting: spin where messages come soon, sleep where they do not.",
    );
    let subjects = waiting::subjects();
    let gaps: Vec<Gap> = waiting::GAPS
        .into_iter()
        .map(|(name, gap_ns, span_ns)| {
            let span_ns = course.settings.span_ns_or([span_ns, span_ns / QUICK_SHARE]);
            let load = |cores| waiting::Load {
                gap_ns,
                span_ns,
                cores,
            };
            let case = format!("waiting/{name}");
            let heading = "the sender sleeps until it is due on 1 core, and spins on 2";
            let case = [case.as_str(), heading];
            let both = course.both(case, waiting::METRICS, &subjects, load, WAITING_REPETITIONS);
            (name, gap_ns, both)
        })
        .collect();
    for (name, _, both) in &gaps {
        waiting_claims(course, name, both);
    }
    course.conclude();
    for (at, cores) in Cores::EACH.into_iter().enumerate() {
        for (what, metric) in [
            ("Latency, median", waiting::P50),
            ("Processor time of a message", waiting::CPU),
        ] {
            let title = format!("{what}, by the gap between messages; {}", cores.name());
            if let Some(chart) = over_gaps(&gaps, at, metric) {
                course.figure(title, chart);
            }
        }
    }
}

/// What is claimed of a gap.
fn waiting_claims(course: &mut Course<'_>, gap: &str, both: &Both) {
    use waiting::{ARTICLE, BALANCED, CPU, P50, PARK, SLEEP, SPIN};
    let mut claim = |what: &str, limit, sides, metric| {
        let found = course.ratios(both, sides, metric);
        course.claim(format!("{gap}: {what}"), limit, found);
    };
    match gap {
        "2us" => claim(
            "balanced: p50 within 1.15× of spin",
            WITHIN,
            [BALANCED, SPIN],
            P50,
        ),
        "20us" => {
            claim("spin is quicker than park", 1.0, [SPIN, PARK], P50);
            claim("sleep(10 µs) is as quick as park", 1.0, [SLEEP, PARK], P50);
            no_better(course, both);
        }
        "100us" => {
            let what = "the article's adaptive is as quick as its sleep(10 µs)";
            claim(what, 1.0, [ARTICLE, SLEEP], P50);
        }
        _ => {
            claim(
                "balanced: p50 within 1.15× of park",
                WITHIN,
                [BALANCED, PARK],
                P50,
            );
            claim(
                "balanced: CPU within 1.15× of park",
                WITHIN,
                [BALANCED, PARK],
                CPU,
            );
        }
    }
}

/// That no other strategy is better than balanced in latency and in processor time.
fn no_better(course: &mut Course<'_>, both: &Both) {
    let [one, two] = both.each_ref().map(|trial| closest(trial.as_ref()?));
    let name = |found: &Option<(&'static str, Interval)>| found.map_or("-", |(name, _)| name);
    let what = format!(
        "20us: none beats balanced in p50 and in CPU (closest: {}; {})",
        name(&one),
        name(&two)
    );
    course.claim(
        what,
        1.0,
        [one, two].map(|found| found.map(|(_, interval)| interval)),
    );
}

/// The strategy that comes closest to beating balanced in both, and how far it is from that: the
/// better of the two ratios of balanced to it.
fn closest(trial: &Trial) -> Option<(&'static str, Interval)> {
    let others = waiting::ALL
        .into_iter()
        .filter(|&name| name != waiting::BALANCED);
    let found = others.filter_map(|name| {
        let pairs = |metric| trial.pairs(waiting::BALANCED, name, metric);
        Some((
            name,
            better_in_one(&pairs(waiting::P50), &pairs(waiting::CPU))?,
        ))
    });
    found.min_by(|(_, a), (_, b)| a.value.total_cmp(&b.value))
}

fn over_gaps(gaps: &[Gap], at: usize, metric: usize) -> Option<Chart> {
    let ran = || gaps.iter().filter(|(.., both)| both[at].is_some());
    ran().next()?;
    let curve = |name: &str| {
        let point = |(_, gap_ns, both): &Gap| {
            Some((*gap_ns as f64, middle(both[at].as_ref(), name, metric)?))
        };
        (name.to_owned(), ran().filter_map(point).collect())
    };
    Some(Chart::Lines {
        axis: "gap between messages",
        ticks: ran()
            .map(|(_, gap_ns, _)| (*gap_ns as f64, ns(*gap_ns as f64)))
            .collect(),
        scale: Scale::Nanoseconds,
        curves: waiting::ALL.into_iter().map(curve).collect(),
    })
}

pub(super) fn optimisations(course: &mut Course<'_>) {
    use optimisations::{BASE, BATCHED, EACH, LANES, ONE_LANE, OTHER, STREAM, TWO_LANES};
    use optimisations::{UNCACHED, UNPADDED, URGENT};
    course.principle(
        "5. Optimisations",
        "Optimise what was measured: each has cores and loads where it loses.",
    );
    // A message takes some 10 ns.
    let messages = (course.settings.span_ns_or(STREAM_NS) / 10).max(1_024);
    let stream = |urgent| {
        move |cores| optimisations::Load {
            messages,
            cores,
            urgent,
        }
    };
    let case = [
        "optimise/stream",
        "1,024 slots, both ends at work all the time",
    ];
    let subjects = optimisations::streams();
    let streams = course.both(case, STREAM, &subjects, stream(0), STREAM_REPETITIONS);
    let subjects = optimisations::lane_subjects();
    let case = [
        "optimise/lanes",
        "bursts of 512, one in 16 is urgent, each takes 0.2 µs",
    ];
    let few = |cores| optimisations::Load {
        messages: messages / 16,
        cores,
        urgent: 16,
    };
    let mixed = course.both(case, LANES, &subjects, few, STREAM_REPETITIONS);
    let case = [
        "optimise/one-kind",
        "the same, nothing is urgent and nothing is to do",
    ];
    let plain = course.both(case, LANES, &subjects, stream(0), STREAM_REPETITIONS);
    let [near, far] = spin_or_park(course);
    let spin = [waiting::BALANCED, waiting::POWER];
    let lane = [TWO_LANES, ONE_LANE];
    let mut found = Vec::new();
    for (what, both, sides, metric) in [
        ("batches of 64 are faster", &streams, [BATCHED, BASE], 0),
        ("padding is faster", &streams, [BASE, UNPADDED], 0),
        ("a cached index is faster", &streams, [BASE, UNCACHED], 0),
        ("spin before park: p50 at 5 µs", &near, spin, waiting::P50),
        ("spin before park: CPU at 5 µs", &near, spin, waiting::CPU),
        ("spin before park: p50 at 200 µs", &far, spin, waiting::P50),
        ("spin before park: CPU at 200 µs", &far, spin, waiting::CPU),
        ("an urgent lane: p99 of the urgent", &mixed, lane, URGENT),
        ("an urgent lane: p99 of the others", &mixed, lane, OTHER),
        (
            "an urgent lane: time where nothing is urgent",
            &plain,
            lane,
            EACH,
        ),
    ] {
        let ratios = course.ratios(both, sides, metric);
        course.claim(what, 1.0, ratios);
        found.push((what, ratios));
    }
    course.conclude();
    with_over_without(course, &found);
}

/// Messages now and then, for those that spin before they park and those that do not.
fn spin_or_park(course: &mut Course<'_>) -> [Both; 2] {
    let sparse = [("5us", 5_000, 15_000_000), ("200us", 200_000, 60_000_000)];
    sparse.map(|(name, gap_ns, span_ns)| {
        let span_ns = course.settings.span_ns_or([span_ns, span_ns / QUICK_SHARE]);
        let load = |cores| waiting::Load {
            gap_ns,
            span_ns,
            cores,
        };
        let case = format!("optimise/spin/{name}");
        let case = [
            case.as_str(),
            "spin for a while before parking, or park at once",
        ];
        let subjects = waiting::spin_or_park();
        course.both(case, waiting::METRICS, &subjects, load, STREAM_REPETITIONS)
    })
}

/// The picture of what each gives, on one core and on two.
fn with_over_without(course: &mut Course<'_>, found: &[(&str, [Option<Interval>; 2])]) {
    for (at, cores) in Cores::EACH.into_iter().enumerate() {
        let row = |(what, ratios): &(&str, [Option<Interval>; 2])| {
            Some(((*what).to_owned(), ratios[at]?))
        };
        let rows: Vec<_> = found.iter().filter_map(row).collect();
        if !rows.is_empty() {
            let title = format!(
                "With it over without it: right of the line wins; {}",
                cores.name()
            );
            course.figure(title, Chart::Ratios(rows));
        }
    }
}
