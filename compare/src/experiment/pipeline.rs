//! A pipeline of three stages under every placement, beside the `disruptor` crate, with more
//! threads than cores and without: neither latency nor throughput may collapse.

use std::time::Duration;

use disruptor::wait_strategies::WaitStrategy;
use disruptor::{BusySpin, ProcessorSettings, Producer, Sequence, Sleep, build_single_producer};
use thalweg::pipeline::{Pipeline, PipelineBuilder, Placement};
use thalweg::wait::cores;
use thalweg_measure::clock::Clock;

use super::Experiment;
use crate::case::{Case, Goal, Settings};
use crate::pipelines::{
    CAPACITY, Event, STAGE_NS, STAGES, Stamp, Step, Tail, rounds_for, stage_ns,
};
use crate::runner::{Ran, Subjects, subject, text};
use crate::sender::{LATENCY, Line, Load, THROUGHPUT, line, run};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "pipeline",
    shows: "tails of one 3-stage pipeline on any number of threads, beside the disruptor crate",
    peers: &["disruptor"],
    notes: "",
    cases,
};

const ALONE: &str = "no pipeline (the machine alone)";
const INLINE: &str = "thalweg inline";
const CALLER_AND_THREAD: &str = "thalweg caller:1+threads:1";
const ONE: &str = "thalweg threads:1";
const THREE: &str = "thalweg threads:3";
const AUTO: &str = "thalweg auto";
const SPIN_1_PINNED: &str = "disruptor busy-spin:1 pinned";
const SPIN_3: &str = "disruptor busy-spin:3";
const SLEEP_3: &str = "disruptor sleep:3";
const YIELD_3_PINNED: &str = "disruptor yield:3 pinned";
const PEERS: [&str; 3] = [SPIN_3, SLEEP_3, YIELD_3_PINNED];

const P50: usize = 0;
const P99: usize = 1;
const P999: usize = 2;

fn cases(settings: &Settings) -> Vec<Case> {
    let rounds = rounds_for(STAGE_NS);
    let span_ns = settings.count(150_000_000);
    let (stage, count) = (stage_ns(rounds), cores::usable().count());
    let about = format!("{STAGES} stages of {stage:.1} ns on {count} cores");
    let heading = format!("open loop, latency from the intended send time; {about}");
    let per_s = 1_000_000;
    let load = Load::Open { per_s, span_ns };
    let versus = PEERS
        .iter()
        .flat_map(|peer| [[THREE, peer], [INLINE, peer]]);
    let open = Case::of("1M/s", heading, LATENCY, subjects(rounds), load)
        .goals(versus.map(|sides| Goal::shown(sides, P99)))
        .goals([
            Goal::ratio([INLINE, ALONE], P99, 0.8),
            Goal::ratio([INLINE, ALONE], P999, 0.8),
            Goal::ratio([AUTO, INLINE], P99, 1.0 / 1.5),
            Goal::shown([INLINE, ALONE], P50),
            Goal::ratio([THREE, SPIN_3], P99, 100.0),
            Goal::ratio([THREE, SLEEP_3], P99, 5.0),
        ]);
    let closed = [1, 64].map(|batch| {
        let (name, heading) = (
            format!("max batch {batch}"),
            format!("closed loop; {about}"),
        );
        let load = Load::Closed { batch, span_ns };
        let case = Case::of(name, heading, THROUGHPUT, subjects(rounds), load);
        case.goals([
            Goal::ratio([ONE, SPIN_1_PINNED], 0, 0.95),
            Goal::ratio([CALLER_AND_THREAD, INLINE], 0, 1.15),
            Goal::ratio([AUTO, CALLER_AND_THREAD], 0, 0.9),
        ])
    });
    [open].into_iter().chain(closed).collect()
}

fn subjects(rounds: u32) -> Subjects<Load> {
    let mut all = vec![subject(ALONE, move |load| alone(rounds, load))];
    for (name, placement) in [
        (INLINE, Placement::inline()),
        (CALLER_AND_THREAD, Placement::caller_and_threads(1, 1)),
        (ONE, Placement::threads(1)),
        (THREE, Placement::threads(3)),
        (AUTO, Placement::auto()),
    ] {
        all.push(subject(name, move |load| {
            ours(rounds, load, |stages| stages.placement(placement.clone()))
        }));
    }
    let sleep = Sleep::new(Duration::from_micros(1));
    all.extend([
        subject(SPIN_1_PINNED, disruptor(BusySpin, 1, true, rounds)),
        subject(SPIN_3, disruptor(BusySpin, 3, false, rounds)),
        subject(SLEEP_3, disruptor(sleep, 3, false, rounds)),
        subject(YIELD_3_PINNED, disruptor(Yielding, 3, true, rounds)),
    ]);
    all
}

fn steps(rounds: u32) -> [Step; STAGES] {
    std::array::from_fn(|place| Step::new(place, rounds))
}

/// Does the work in a plain loop on the sender's thread. The rest of the tail is the machine's own,
/// and no subject that runs on one core can be below it.
fn alone(rounds: u32, load: &Load) -> Ran {
    run(*load, |tail| {
        let (mut event, mut steps) = (Event::default(), steps(rounds));
        let publish = move |tail: &mut Tail, stamp| {
            event.set(stamp);
            for step in &mut steps {
                step.work(&event);
            }
            tail.end(&event);
            true
        };
        Ok(line(tail, publish, drop))
    })
}

/// Runs a pipeline of three stages, which `set` completes.
pub(super) fn ours(
    rounds: u32,
    load: &Load,
    set: impl Fn(PipelineBuilder<Event>) -> PipelineBuilder<Event>,
) -> Ran {
    run(*load, |mut tail| {
        let [mut first, mut second, mut third] = steps(rounds);
        let stages = Pipeline::builder(CAPACITY, Event::default)
            .stage("first", move |event: &mut Event, _| first.work(event))
            .stage("second", move |event: &mut Event, _| second.work(event))
            .after("first")
            .stage("third", move |event: &mut Event, _| {
                third.work(event);
                tail.end(event);
            })
            .after("second");
        Ok(Owned(set(stages).build().map_err(text)?))
    })
}

/// Publishes as a user does: [`Pipeline::publish`] waits for room in its own way, which is
/// measured.
struct Owned(Pipeline<Event>);

impl Line for Owned {
    #[inline]
    fn publish(&mut self, stamp: Stamp, _: u64) -> bool {
        self.0.publish(|event| event.set(stamp)).is_ok()
    }

    #[inline]
    fn publish_batch(&mut self, first: u64, count: usize, _: u64) -> bool {
        let set = |at: usize, event: &mut Event| event.set(Stamp::untimed(first + at as u64));
        self.0.publish_batch(count, set).is_ok()
    }

    fn finish(self) {
        // A stage here does not panic; if one did, the tally would show what was lost.
        let _ = self.0.join();
    }
}

/// The user of the crate writes this strategy; it has none of the kind.
#[derive(Clone, Copy)]
struct Yielding;

impl WaitStrategy for Yielding {
    #[inline]
    fn wait_for(&self, _: Sequence) {
        std::thread::yield_now();
    }
}

fn seat<E, W, B: ProcessorSettings<E, W>>(builder: B, core: Option<usize>) -> B {
    match core {
        Some(core) => builder.pin_at_core(core),
        None => builder,
    }
}

/// Runs one processor with all stages in its handler, or a chain of one each; pinned by their user
/// to the core that the producer leaves.
fn disruptor<W: WaitStrategy + Sync + 'static>(
    wait: W,
    processors: usize,
    pinned: bool,
    rounds: u32,
) -> impl Fn(&Load) -> Ran + Sync + 'static {
    move |load| {
        let cores = match (pinned, cores::usable().cpus()) {
            (false, _) => None,
            (true, &[own, other, ..]) => Some((own, other)),
            (true, _) => return Err("needs 2 cores to pin to".to_owned()),
        };
        let core = cores.map(|(_, other)| other);
        run(*load, |mut tail| {
            let [mut first, mut second, mut third] = steps(rounds);
            let builder = seat(build_single_producer(CAPACITY, Event::default, wait), core);
            let producer = if processors == 1 {
                let all = move |event: &Event, _: Sequence, _: bool| {
                    first.work(event);
                    second.work(event);
                    third.work(event);
                    tail.end(event);
                };
                builder.handle_events_with(all).build()
            } else {
                let first = move |event: &Event, _: Sequence, _: bool| first.work(event);
                let second = move |event: &Event, _: Sequence, _: bool| second.work(event);
                let third = move |event: &Event, _: Sequence, _: bool| {
                    third.work(event);
                    tail.end(event);
                };
                let builder = seat(builder.handle_events_with(first).and_then(), core);
                let builder = seat(builder.handle_events_with(second).and_then(), core);
                builder.handle_events_with(third).build()
            };
            // The processors' threads, which have started, would inherit it.
            if let Some((own, _)) = cores {
                cores::pin_current_thread(&[own]).map_err(text)?;
            }
            Ok(Chained(producer))
        })
    }
}

struct Chained<P>(P);

impl<P: Producer<Event>> Line for Chained<P> {
    #[inline]
    fn publish(&mut self, stamp: Stamp, deadline_ticks: u64) -> bool {
        // It spins as its own `publish` does, but with an end.
        until(deadline_ticks, || {
            self.0.try_publish(|event| event.set(stamp)).is_ok()
        })
    }

    #[inline]
    fn publish_batch(&mut self, first: u64, count: usize, deadline_ticks: u64) -> bool {
        until(deadline_ticks, || {
            let published = self.0.try_batch_publish(count, |events| {
                for (number, event) in (first..).zip(events) {
                    event.set(Stamp::untimed(number));
                }
            });
            published.is_ok()
        })
    }

    fn finish(self) {
        // Its drop waits for the processors.
        drop(self.0);
    }
}

/// Tries until it works, or `false` if `deadline_ticks` has passed.
#[inline]
fn until(deadline_ticks: u64, mut work: impl FnMut() -> bool) -> bool {
    while !work() {
        if Clock::global().ticks() > deadline_ticks {
            return false;
        }
    }
    true
}
