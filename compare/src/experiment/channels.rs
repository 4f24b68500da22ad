//! Channels: this project's beside the others, in the jobs that channels have.

pub(super) mod crew;
mod crowd;
pub(super) mod duo;
mod goals;
pub(super) mod idle;
mod paced;
mod reply;
mod roundtrip;
pub(super) mod samples;
pub(super) mod scoreboard;
mod sparse;
mod stream;

use thalweg_measure::clock::Clock;

use super::{Experiment, Settings, progress_note};
use crate::channels::{Message, Shape, WITHOUT_BATCHES, WITHOUT_WAITING, Wide};
use crate::report::{Report, small_ns};
use crate::runner::{Metric, Subject, Trial, interleave};
use scoreboard::{Headline, show_trial};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "channels",
    shows: "channels beside crossbeam, flume, kanal, std, tokio, rtrb, ringbuf, gil and others",
    run,
};

/// Repetitions of the cases, `[full, quick]`.
const REPETITIONS: [usize; 2] = [31, 3];
const PACED_REPETITIONS: [usize; 2] = [21, 3];
const SPARSE_REPETITIONS: [usize; 2] = [9, 2];
const IDLE_REPETITIONS: [usize; 2] = [7, 1];
/// Spans of a run, ns, `[full, quick]`.
const STREAM_NS: [u64; 2] = [12_000_000, 3_000_000];
const TRIPS_NS: [u64; 2] = [15_000_000, 4_000_000];
const PACED_NS: [u64; 2] = [20_000_000, 5_000_000];
const SPARSE_NS: [u64; 2] = [120_000_000, 20_000_000];
const REPLY_NS: [u64; 2] = [8_000_000, 3_000_000];
const IDLE_NS: [u64; 2] = [1_000_000_000, 200_000_000];
/// Messages of a run with several threads on a side, `[full, quick]`.
const CROWD_MESSAGES: [u64; 2] = [300_000, 100_000];
/// Capacities of the streams.
const CAPACITIES: [usize; 2] = [1024, 65_536];
/// Gaps between sparse messages, ns, and their names.
const GAPS: [(&str, u64); 3] = [("20us", 20_000), ("200us", 200_000), ("1ms", 1_000_000)];

/// What a case shows: its heading, what it measures, and which metrics are judged.
type Shown<'a> = (&'a str, &'static [Metric], &'a [usize]);

/// A run of the whole experiment.
struct Session<'s> {
    settings: &'s Settings,
    report: Report,
    headlines: Vec<Headline>,
    trials: Vec<Trial>,
}

impl Session<'_> {
    /// Runs one case: once to warm up, then so many times.
    fn case<L: Sync>(
        &mut self,
        case: &str,
        (heading, metrics, judged): Shown<'_>,
        subjects: &[Box<dyn Subject<L>>],
        load: &L,
        repetitions: [usize; 2],
    ) {
        let wanted = self.settings.wanted(case, subjects);
        if wanted.is_empty() {
            return;
        }
        let repetitions = self.settings.repetitions_or(repetitions);
        progress_note(&format!(
            "{case}: {} subjects, {repetitions} runs",
            wanted.len()
        ));
        if metrics != idle::METRICS {
            interleave(case, metrics, &wanted, load, 1);
        }
        let trial = interleave(case, metrics, &wanted, load, repetitions);
        let heading = format!("{case}: {heading}");
        let found = show_trial(&mut self.report, &heading, &trial, judged);
        self.headlines.extend(found);
        self.trials.push(trial);
    }

    /// Says something about cases, if any of them ran.
    fn note(&mut self, cases: &str, text: &str) {
        if self
            .trials
            .iter()
            .any(|trial| trial.case.starts_with(cases))
        {
            self.report.say(text);
        }
    }

    fn streams<M: Message>(&mut self) {
        let span_ns = self.settings.span_ns_or(STREAM_NS);
        let heading = "one at a time, try and spin, pinned to two cores";
        let shown = (heading, stream::METRICS, &[0][..]);
        for capacity in CAPACITIES {
            let case = format!("one/{}/{capacity}", M::SIZE);
            let load = stream::Load { capacity, span_ns };
            self.case(&case, shown, &stream::one_by_one::<M>(), &load, REPETITIONS);
        }
        let heading = format!("batches of {}, pinned to two cores", stream::BATCH);
        let shown = (heading.as_str(), stream::METRICS, &[0][..]);
        for capacity in CAPACITIES {
            let case = format!("batch/{}/{capacity}", M::SIZE);
            let load = stream::Load { capacity, span_ns };
            self.case(&case, shown, &stream::batches::<M>(), &load, REPETITIONS);
        }
    }

    fn round_trips<M: Message>(&mut self) {
        let span_ns = self.settings.span_ns_or(TRIPS_NS);
        let heading = format!(
            "there and back, pinned to two cores; one clock read of {} a trip included",
            small_ns(Clock::global().read_cost_ns())
        );
        let shown = (heading.as_str(), roundtrip::METRICS, &[0, 1][..]);
        let load = roundtrip::Load { span_ns };
        let case = format!("roundtrip/{}", M::SIZE);
        let subjects = roundtrip::subjects::<M>();
        self.case(&case, shown, &subjects, &load, REPETITIONS);
    }

    fn paces<M: Message>(&mut self) {
        let span_ns = self.settings.span_ns_or(PACED_NS);
        let heading = format!(
            "{} messages a second, latency from the intended time, pinned to two cores",
            paced::PER_S
        );
        let shown = (heading.as_str(), paced::METRICS, &[0, 1][..]);
        let case = format!("paced/{}", M::SIZE);
        let load = paced::Load { span_ns };
        let subjects = paced::subjects::<M>();
        self.case(&case, shown, &subjects, &load, PACED_REPETITIONS);
    }

    fn sparse(&mut self) {
        let span_ns = self.settings.span_ns_or(SPARSE_NS);
        let subjects = sparse::subjects();
        for placement in sparse::Placement::EACH {
            for (gap, gap_ns) in GAPS {
                for (arrivals, poisson) in [("regular", false), ("poisson", true)] {
                    let case = format!("sparse/{gap}/{arrivals}/{}", placement.name());
                    let heading = format!("both ends wait, {}", placement.tells());
                    let shown = (heading.as_str(), sparse::METRICS, sparse::JUDGED);
                    let load = sparse::Load {
                        gap_ns,
                        poisson,
                        placement,
                        span_ns,
                    };
                    self.case(&case, shown, &subjects, &load, SPARSE_REPETITIONS);
                }
            }
        }
    }

    fn crowds(&mut self) {
        let [full, quick] = CROWD_MESSAGES;
        let messages = if self.settings.quick { quick } else { full };
        for (case, senders, receivers) in crowd::SHAPES {
            let shape = Shape { senders, receivers };
            let heading = format!(
                "room for {} in all, waiting calls, not pinned",
                crowd::CAPACITY
            );
            let shown = (heading.as_str(), crowd::METRICS, &[0][..]);
            let load = crowd::Load { shape, messages };
            let subjects = crowd::subjects(shape);
            self.case(case, shown, &subjects, &load, REPETITIONS);
        }
    }

    fn replies(&mut self) {
        let span_ns = self.settings.span_ns_or(REPLY_NS);
        for (case, heading, metrics, judged, across) in [
            (
                "oneshot/alone",
                "made, sent and received on one thread",
                reply::ALONE_METRICS,
                &[0][..],
                false,
            ),
            (
                "oneshot/across",
                "made, sent with a request, replied to, pinned to two cores; the request's way and \
                 two clock reads included",
                reply::ACROSS_METRICS,
                &[0, 1],
                true,
            ),
        ] {
            let load = reply::Load { span_ns, across };
            let shown = (heading, metrics, judged);
            self.case(case, shown, &reply::subjects(), &load, REPETITIONS);
        }
    }

    fn idle(&mut self) {
        let span_ns = self.settings.span_ns_or(IDLE_NS);
        let heading = "a receiver on an empty channel and a sender on a full one";
        let shown = (heading, idle::METRICS, &[][..]);
        let load = idle::Load { span_ns };
        self.case("idle", shown, &idle::subjects(), &load, IDLE_REPETITIONS);
    }
}

fn run(settings: &Settings) -> Report {
    let mut session = Session {
        settings,
        report: Report::new(EXPERIMENT.name),
        headlines: Vec::new(),
        trials: Vec::new(),
    };
    session.streams::<u64>();
    session.streams::<Wide>();
    session.note("batch/", WITHOUT_BATCHES);
    session.round_trips::<u64>();
    session.round_trips::<Wide>();
    session.paces::<u64>();
    session.paces::<Wide>();
    session.sparse();
    session.note("sparse/", WITHOUT_WAITING);
    session.crowds();
    session.replies();
    session.idle();
    let targets = goals::targets(&session.headlines, &session.trials);
    session.report.targets(&targets, settings);
    session.report
}
