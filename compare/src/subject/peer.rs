//! The `disruptor` crate: one processor that does all stages, or a chain of one each.

use std::sync::PoisonError;
use std::time::Duration;

use disruptor::wait_strategies::WaitStrategy;
use disruptor::{BusySpin, ProcessorSettings, Producer, Sequence, Sleep, build_single_producer};
use thalweg::wait::cores;
use thalweg_measure::clock::Clock;
use thalweg_measure::histogram::recorder;

use crate::runner::{Run, Subject};
use crate::sender::{Line, Load, Sent, figures, send};
use crate::workload::{CAPACITY, Event, STAGES, Stamp, Step, Tail, Workload};

/// How its processors wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waiting {
    /// Its own `BusySpin`.
    BusySpin,
    /// Its own `Sleep` with the shortest time that means anything; the system makes 50 to 60 µs of
    /// it.
    Sleep,
    /// Not part of the crate: a strategy that its user writes.
    Yield,
}

/// `yield_now` for as long as there is nothing.
#[derive(Clone, Copy)]
struct Yielding;

impl WaitStrategy for Yielding {
    #[inline]
    fn wait_for(&self, _: Sequence) {
        std::thread::yield_now();
    }
}

/// A disruptor with its processors.
#[derive(Debug, Clone)]
pub(crate) struct Disruptor {
    pub(crate) waiting: Waiting,
    /// 1 (all stages in one handler) or [`STAGES`] (a chain).
    pub(crate) processors: usize,
    /// By hand: the processors on the core that the producer leaves.
    pub(crate) pinned: bool,
    pub(crate) workload: Workload,
}

impl Disruptor {
    pub(crate) fn name_of(waiting: Waiting, processors: usize, pinned: bool) -> String {
        let waiting = match waiting {
            Waiting::BusySpin => "busy-spin",
            Waiting::Sleep => "sleep",
            Waiting::Yield => "yield",
        };
        let pinned = if pinned { " pinned" } else { "" };
        format!("disruptor {waiting}:{processors}{pinned}")
    }
}

/// The producer's core and another one.
fn two_cores() -> Result<(usize, usize), String> {
    let usable = cores::usable();
    let own = cores::current().ok_or("the system does not tell the current core")?;
    let other = usable.cpus().iter().copied().find(|&core| core != own);
    match other {
        Some(other) => Ok((own, other)),
        None => Err(format!(
            "needs 2 cores to pin to, has {}",
            usable.cpus().len()
        )),
    }
}

impl Subject<Load> for Disruptor {
    fn name(&self) -> String {
        Self::name_of(self.waiting, self.processors, self.pinned)
    }

    fn run(&self, load: &Load) -> Result<Run, String> {
        match self.waiting {
            Waiting::BusySpin => self.run_with(BusySpin, *load),
            Waiting::Sleep => self.run_with(Sleep::new(Duration::from_micros(1)), *load),
            Waiting::Yield => self.run_with(Yielding, *load),
        }
    }
}

fn seat<E, W, B: ProcessorSettings<E, W>>(builder: B, core: Option<usize>) -> B {
    match core {
        Some(core) => builder.pin_at_core(core),
        None => builder,
    }
}

impl Disruptor {
    fn run_with<W: WaitStrategy + 'static>(&self, wait: W, load: Load) -> Result<Run, String> {
        let cores = self.pinned.then(two_cores).transpose()?;
        let core = cores.map(|(_, other)| other);
        let (writer, reader) = recorder();
        let (mut tail, tally) = Tail::new(writer);
        let rounds = self.workload.rounds_of(STAGES);
        let mut steps = [0, 1, 2].map(|place| Step::new(place, rounds));
        let builder = seat(build_single_producer(CAPACITY, Event::default, wait), core);
        let producer = if self.processors == 1 {
            let all = move |event: &Event, _: Sequence, _: bool| {
                for step in &mut steps {
                    step.work(event);
                }
                tail.end(event);
            };
            builder.handle_events_with(all).build()
        } else {
            let [mut first, mut second, mut third] = steps;
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
        // Only now: the processors' threads would inherit it.
        if let Some((own, _)) = cores {
            cores::pin_current_thread(&[own]).map_err(|error| error.to_string())?;
        }
        let sent: Sent = send(Chained(producer), load);
        let tally = *tally.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(figures(load, sent, tally, &reader))
    }
}

struct Chained<P>(P);

impl<P: Producer<Event>> Line for Chained<P> {
    #[inline]
    fn publish(&mut self, stamp: Stamp, deadline_ticks: u64) -> bool {
        // As its own `publish`, which spins, but with an end.
        until(deadline_ticks, || {
            self.0.try_publish(|event| event.set(stamp)).is_ok()
        })
    }

    #[inline]
    fn publish_batch(&mut self, first: u64, count: usize, deadline_ticks: u64) -> bool {
        until(deadline_ticks, || {
            let published = self.0.try_batch_publish(count, |events| {
                for (number, event) in (first..).zip(events) {
                    event.set(Stamp {
                        number,
                        intended_ticks: 0,
                    });
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
