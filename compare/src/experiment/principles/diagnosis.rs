//! Fourth principle: measure before you mend. One program in four bad states and a good one, and
//! what single metrics say of it.
//!
//! A producer sends on schedule, a consumer serves. What is wrong is known, since it was built in.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use thalweg::channel::{Builder, spsc};
use thalweg::wait::{Mode, cores};
use thalweg_measure::clock::Clock;

use super::place::{Cores, sleep_ns, sleep_precisely, work_ns};
use crate::experiment::channels::idle::Account;
use crate::experiment::channels::samples::Samples;
use crate::runner::{Metric, Run, Subject, subject};

pub(super) const METRICS: &[Metric] = &[
    Metric::lower("consumer_cpu", "percent"),
    Metric::lower("consumer_run_queue", "percent"),
    Metric::lower("consumer_switches", "switches/s"),
    Metric::lower("producer_switches_per_message", "switches"),
    Metric::lower("occupancy", "percent"),
    Metric::lower("latency_p99", "ns"),
];

const CAPACITY: usize = 256;
/// How often the bystander of a convoy takes the lock, and for how long.
const HELD_NS: u64 = 40_000;
const FREE_NS: u64 = 5_000;

/// What can be wrong, or is said to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cause {
    Compute,
    Parking,
    Imbalance,
    Convoy,
    None,
}

impl Cause {
    pub(super) const EACH: [Self; 5] = [
        Self::Compute,
        Self::Parking,
        Self::Imbalance,
        Self::Convoy,
        Self::None,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Compute => "compute-bound consumer",
            Self::Parking => "parks too often",
            Self::Imbalance => "rates out of balance",
            Self::Convoy => "lock convoy",
            Self::None => "nothing wrong",
        }
    }

    fn program(self) -> Program {
        let sound = Program {
            gap_ns: 200_000,
            service_ns: 10_000,
            mode: Mode::Balanced,
            away_ns: 0,
            is_locked: false,
        };
        match self {
            // 95 % of the time.
            Self::Compute => Program {
                gap_ns: 50_000,
                service_ns: 47_500,
                ..sound
            },
            Self::Parking => Program {
                gap_ns: 30_000,
                service_ns: 1_000,
                mode: Mode::Power,
                ..sound
            },
            // It waits for something else, 64 messages at a time, and gets half of what comes.
            Self::Imbalance => Program {
                gap_ns: 10_000,
                service_ns: 500,
                away_ns: 1_200_000,
                ..sound
            },
            Self::Convoy => Program {
                gap_ns: 60_000,
                service_ns: 1_000,
                is_locked: true,
                ..sound
            },
            Self::None => sound,
        }
    }
}

/// The one program, and what differs.
#[derive(Debug, Clone, Copy)]
struct Program {
    gap_ns: u64,
    service_ns: u64,
    mode: Mode,
    /// After each 64 messages the consumer waits for so long for something else.
    away_ns: u64,
    /// Both sides write into a book that a third thread reads slowly, under one lock.
    is_locked: bool,
}

/// How long, and where.
#[derive(Debug, Clone, Copy)]
pub(super) struct Load {
    pub(super) span_ns: u64,
    pub(super) cores: Cores,
}

/// The book that a convoy forms at.
type Book = Mutex<u64>;

impl Program {
    fn note(self, book: &Book) {
        if self.is_locked {
            *book.lock().expect("nobody panics with it") += 1;
        }
    }

    /// Gives what was sent, refused, and the producer's switches but for its own sleeps.
    fn produce(self, load: Load, mut tx: spsc::Sender<u64>, book: &Book) -> Produced {
        sleep_precisely();
        let clock = Clock::global();
        let before = Account::own();
        let (mut sent, mut refused, mut slept) = (0, 0_u64, 0_u64);
        let begin = clock.ticks();
        for number in 1..=load.span_ns / self.gap_ns {
            let due = begin + clock.ticks_from_ns(number * self.gap_ns);
            slept += u64::from(load.cores.until(due));
            self.note(book);
            match tx.try_send(due) {
                Ok(()) => sent += 1,
                Err(_) => refused += 1,
            }
        }
        let switches = before.and_then(|before| Ok(Account::own()?.voluntary - before.voluntary));
        let switches = switches.map(|all| (all - slept as f64).max(0.0));
        Produced {
            sent,
            refused,
            switches,
        }
    }

    /// Gives what was taken, what the system says of the consumer, mean occupancy and latencies.
    fn consume(
        self,
        load: Load,
        mut rx: spsc::Receiver<u64>,
        book: &Book,
    ) -> Result<Consumed, String> {
        let clock = Clock::global();
        let room = (load.span_ns / self.gap_ns) as usize;
        let mut samples = Samples::with_room(room.max(1));
        let (mut taken, mut waiting) = (0_u64, 0_u64);
        let (before, begin) = (Account::own()?, clock.ticks());
        while let Ok(due) = rx.recv() {
            waiting += rx.len() as u64;
            self.note(book);
            work_ns(self.service_ns);
            samples.take(clock.ticks().saturating_sub(due));
            taken += 1;
            if self.away_ns > 0 && taken % 64 == 0 {
                sleep_ns(self.away_ns);
            }
        }
        let span_ns = clock.ns(clock.ticks() - begin) as f64;
        let after = Account::own()?;
        let share = |ns: f64| 100.0 * ns / span_ns;
        let each = taken.max(1) as f64;
        Ok(Consumed {
            taken,
            cpu: share(after.cpu_ns - before.cpu_ns),
            queued: share(after.queued_ns - before.queued_ns),
            switches: (after.voluntary - before.voluntary) * 1e9 / span_ns,
            occupancy: 100.0 * waiting as f64 / each / CAPACITY as f64,
            samples,
        })
    }

    fn run(self, load: &Load) -> Result<Run, String> {
        let builder = Builder::new(CAPACITY).mode(self.mode);
        let (tx, rx) = builder.spsc().map_err(|error| error.to_string())?;
        let (book, over) = (Book::default(), AtomicBool::new(false));
        let seats = load.cores.seats()?;
        let (produced, consumed) = thread::scope(|scope| {
            if self.is_locked {
                // Spawned here, it is pinned to nothing yet: on two cores it runs on either.
                scope.spawn(|| {
                    if load.cores == Cores::One {
                        let _ = cores::pin_current_thread(&[seats.sender]);
                    }
                    read_slowly(&book, &over);
                });
            }
            let both = seats.run(
                || self.produce(*load, tx, &book),
                || self.consume(*load, rx, &book),
            );
            // ORDERING: Relaxed; only says that nobody else is there any more.
            over.store(true, Ordering::Relaxed);
            both
        })?;
        let consumed = consumed?;
        let messages = (produced.sent + produced.refused).max(1) as f64;
        let [p99] = consumed.samples.quantiles_ns([0.99]);
        let values = vec![
            consumed.cpu,
            consumed.queued,
            consumed.switches,
            produced.switches? / messages,
            consumed.occupancy,
            p99,
        ];
        Ok(Run::of(values).with_lost(produced.sent.abs_diff(consumed.taken)))
    }
}

/// The bystander: it holds the lock for long, and lets go for a moment.
fn read_slowly(book: &Book, over: &AtomicBool) {
    // ORDERING: Relaxed; only says that nobody else is there any more.
    while !over.load(Ordering::Relaxed) {
        let held = book.lock().expect("nobody panics with it");
        work_ns(HELD_NS);
        drop(held);
        work_ns(FREE_NS);
    }
}

struct Produced {
    sent: u64,
    refused: u64,
    switches: Result<f64, String>,
}

struct Consumed {
    taken: u64,
    cpu: f64,
    queued: f64,
    switches: f64,
    occupancy: f64,
    samples: Samples,
}

pub(super) fn subjects() -> Vec<Box<dyn Subject<Load>>> {
    let named = |cause: Cause| {
        let program = cause.program();
        subject(cause.name(), move |load: &Load| program.run(load))
    };
    Cause::EACH.map(named).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_variant_accounts_for_every_message() {
        let load = Load {
            span_ns: 3_000_000,
            cores: Cores::One,
        };
        for cause in Cause::EACH {
            let job = || cause.program().run(&load);
            match thread::scope(|scope| scope.spawn(job).join().expect("no panic")) {
                Ok(run) => {
                    assert_eq!(run.lost, 0, "{}", cause.name());
                    assert_eq!(run.values.len(), METRICS.len());
                }
                Err(why) => println!("skipped: {why}"),
            }
        }
    }
}
