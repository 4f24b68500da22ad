//! Channels: this project's beside the others, in the jobs that channels have.

mod duo;
mod roundtrip;
mod samples;
mod scoreboard;
mod stream;

use thalweg_measure::clock::Clock;

use super::{Experiment, Settings, progress_note};
use crate::channels::{Message, WITHOUT_BATCHES, Wide};
use crate::report::{Report, small_ns};
use crate::runner::{Metric, Subject, interleave};
use scoreboard::{Headline, show_trial};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "channels",
    shows: "channels beside crossbeam, flume, kanal, std, tokio, rtrb, ringbuf, gil and others",
    run,
};

/// Repetitions of the cases, `[full, quick]`.
const REPETITIONS: [usize; 2] = [31, 3];
/// Spans of a run, ns, `[full, quick]`.
const STREAM_NS: [u64; 2] = [12_000_000, 3_000_000];
const TRIPS_NS: [u64; 2] = [15_000_000, 4_000_000];
/// Capacities of the streams.
const CAPACITIES: [usize; 2] = [1024, 65_536];

/// A run of the whole experiment.
struct Session<'s> {
    settings: &'s Settings,
    report: Report,
    headlines: Vec<Headline>,
}

impl Session<'_> {
    /// Runs one case: once to warm up, then so many times.
    fn case<L: Sync>(
        &mut self,
        case: &str,
        (heading, metrics, judged): (&str, &'static [Metric], &[usize]),
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
        interleave(case, metrics, &wanted, load, 1);
        let trial = interleave(case, metrics, &wanted, load, repetitions);
        let heading = format!("{case}: {heading}");
        let found = show_trial(&mut self.report, &heading, &trial, judged);
        self.headlines.extend(found);
    }

    fn streams<M: Message>(&mut self) {
        let span_ns = self.settings.span_ns_or(STREAM_NS);
        let shown = (
            "one at a time, try and spin, pinned to two cores",
            stream::METRICS,
            &[0][..],
        );
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
        self.case(
            &case,
            shown,
            &roundtrip::subjects::<M>(),
            &load,
            REPETITIONS,
        );
    }
}

fn run(settings: &Settings) -> Report {
    let mut session = Session {
        settings,
        report: Report::new(EXPERIMENT.name),
        headlines: Vec::new(),
    };
    session.streams::<u64>();
    session.streams::<Wide>();
    session.report.say(WITHOUT_BATCHES);
    session.round_trips::<u64>();
    session.round_trips::<Wide>();
    session.report
}
