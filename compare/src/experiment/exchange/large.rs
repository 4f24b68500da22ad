//! The service where a book or the symbols are too many for the nearer caches, beside the same
//! service on a small book, and beside the engine alone.
//!
//! Wall time a command, from the first until the last is done. Each run has a copy of one state,
//! which the commands have not seen. Every command must succeed, and leave as many orders as it
//! should.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use thalweg::pipeline::Placement;
use thalweg_exchange::service::{Options, Service};
use thalweg_exchange::{
    Command, Events, Place, ResultCode, Rules, State, SymbolId, SymbolSpec, apply, apply_batch,
};
use thalweg_measure::clock::Clock;

use super::mixes::Resting;
use super::{LARGE_COMMANDS, Session};
use crate::runner::{Metric, Run, Subject, subject};

pub(super) const METRICS: &[Metric] = &[Metric::lower("time_per_command", "ns")];
pub(super) const PLAIN: &str = "service-1m/plain";
/// The cases that are beside it, what they promise over it, and what they are.
pub(super) const CASES: [(&str, f64, &str); 2] = [
    (
        "service-1m/resting_1m",
        1.15,
        "1,000,000 resting orders of 100,000 users, 500 levels a side",
    ),
    (
        "service-1m/symbols_10k",
        1.5,
        "10 resting orders of 1,000 users in each of 10,000 symbols, 16 levels a side",
    ),
];
/// Commands submitted together.
const BATCH: usize = 64;
/// Commands in flight at most: a lap of the ring stays in a core's own cache.
const CAPACITY: usize = 256;

/// Commands on many orders.
#[derive(Debug)]
pub(super) struct Crowd {
    state: State,
    commands: Vec<Command>,
    /// Orders that rest at the end.
    left: usize,
}

impl Crowd {
    pub(super) fn plain(count: usize) -> Self {
        Self::of(Resting::plain(1_000, 1_000, 500), 1, count)
    }

    pub(super) fn resting(orders: usize, count: usize) -> Self {
        Self::of(Resting::plain(orders, 100_000, 500), 1, count)
    }

    pub(super) fn symbols(symbols: i32, count: usize) -> Self {
        let orders = 10 * symbols as usize;
        Self::of(Resting::plain(orders, 1_000, 16), symbols, count)
    }

    /// The orders of a stream, each in the symbol that follows from its id.
    fn of(shape: Resting, symbols: i32, count: usize) -> Self {
        let flow = shape.flow(count);
        let mut state = State::new(Rules::MENDED);
        let mut events = Events::new();
        let left = flow
            .levels
            .iter()
            .map(|(_, level)| level.orders)
            .sum::<u64>() as usize;
        for command in flow.setup.into_iter().chain(flow.prefill) {
            let code = apply(&mut state, &spread(command, symbols), &mut events);
            assert_eq!(code, ResultCode::Success);
        }
        let commands = flow.commands.into_iter();
        Self {
            state,
            commands: commands.map(|command| spread(command, symbols)).collect(),
            left,
        }
    }

    fn figures(&self, ticks: u64, state: &State, succeeded: u64) -> Run {
        let took_ns = Clock::global().ns(ticks);
        let count = self.commands.len();
        assert_eq!(succeeded, count as u64, "wrong result: commands failed");
        let books = state.matching.books();
        let left = books.iter().map(|book| book.order_count()).sum::<usize>();
        assert_eq!(left, self.left, "wrong result: other orders rest");
        Run::of(vec![took_ns as f64 / count as f64])
    }
}

/// The same command on one of so many symbols.
fn spread(mut command: Command, symbols: i32) -> Command {
    let of = |id: i64| SymbolId((id % i64::from(symbols)) as i32);
    match &mut command {
        Command::AddSymbols(specs) => {
            let spec = specs[0];
            let id = |id| SymbolSpec {
                id: SymbolId(id),
                ..spec
            };
            *specs = (0..symbols).map(id).collect();
        }
        Command::Place(Place {
            symbol, order_id, ..
        })
        | Command::Move {
            symbol, order_id, ..
        }
        | Command::Reduce {
            symbol, order_id, ..
        }
        | Command::Cancel {
            symbol, order_id, ..
        } => *symbol = of(order_id.0),
        _ => {}
    }
    command
}

pub(super) const INLINE: &str = "thalweg service, inline";

/// The service, and the engine alone, in batches and command by command.
pub(super) fn subjects() -> Vec<Box<dyn Subject<Crowd>>> {
    let service = |placement: Placement| {
        let name = format!("thalweg service, {placement}");
        subject(name, move |crowd| served(crowd, &placement))
    };
    vec![
        service(Placement::inline()),
        service(Placement::threads(1)),
        subject("thalweg apply_batch, no service", |crowd| {
            Ok(alone(crowd, true))
        }),
        subject("thalweg apply, no service", |crowd| Ok(alone(crowd, false))),
    ]
}

fn alone(crowd: &Crowd, in_batches: bool) -> Run {
    let mut state = crowd.state.clone();
    let mut events = Events::with_capacity(1024);
    let mut succeeded = 0;
    let begin = Clock::global().ticks();
    for batch in crowd.commands.chunks(BATCH) {
        if in_batches {
            apply_batch(&mut state, batch, &mut events, |_, result, _| {
                succeeded += u64::from(result == ResultCode::Success);
            });
        } else {
            for command in batch {
                let result = black_box(apply(&mut state, command, &mut events));
                succeeded += u64::from(result == ResultCode::Success);
            }
        }
    }
    let ticks = Clock::global().ticks().saturating_sub(begin);
    crowd.figures(ticks, &state, succeeded)
}

fn served(crowd: &Crowd, placement: &Placement) -> Result<Run, String> {
    let state = crowd.state.clone();
    let options = Options {
        capacity: CAPACITY,
        placement: placement.clone(),
        ..Options::default()
    };
    let succeeded = Arc::new(AtomicU64::new(0));
    let told = Arc::clone(&succeeded);
    let mut count = 0;
    let service = Service::start(state, options, move |outcome| {
        count += u64::from(outcome.result == ResultCode::Success);
        // ORDERING: Relaxed; read after the service has ended, which is a synchronization.
        told.store(count, Ordering::Relaxed);
    });
    let mut service = service.map_err(|error| error.to_string())?;
    let begin = Clock::global().ticks();
    for batch in crowd.commands.chunks(BATCH) {
        let submitted = service.submit_batch(batch, |_| 0);
        submitted.map_err(|error| error.to_string())?;
    }
    service.drain().map_err(|error| error.to_string())?;
    let ticks = Clock::global().ticks().saturating_sub(begin);
    let finished = service.join().map_err(|error| error.to_string())?;
    // ORDERING: Relaxed; see above.
    let succeeded = succeeded.load(Ordering::Relaxed);
    Ok(crowd.figures(ticks, &finished.state, succeeded))
}

impl Session<'_> {
    /// The service on a small book, and where a book or the symbols are many.
    pub(super) fn large(&mut self) {
        let commands = self.count(LARGE_COMMANDS);
        let resting = self.count([1_000_000, 100_000]);
        let [(many, _, of_orders), (spread, _, of_symbols)] = CASES;
        type Load = Box<dyn FnOnce() -> Crowd>;
        let cases: [(&str, &str, Load); 3] = [
            (
                PLAIN,
                "1,000 resting orders of 1,000 users, 500 levels a side",
                Box::new(move || Crowd::plain(commands)),
            ),
            (
                many,
                of_orders,
                Box::new(move || Crowd::resting(resting, commands)),
            ),
            (
                spread,
                of_symbols,
                Box::new(move || Crowd::symbols(10_000, commands)),
            ),
        ];
        for (case, heading, load) in cases {
            let metrics = |_: &Crowd| METRICS;
            self.case((case, heading), metrics, &subjects(), || Ok(load()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_body_executes_every_command() {
        let crowds = [
            Crowd::plain(2_000),
            Crowd::resting(3_000, 2_000),
            Crowd::symbols(300, 2_000),
        ];
        let names: Vec<String> = subjects().iter().map(|subject| subject.name()).collect();
        assert_eq!(names[0], INLINE);
        for crowd in &crowds {
            for subject in subjects() {
                let run = subject.run(crowd).unwrap();
                assert!(run.values[0] > 0.0, "{}", subject.name());
            }
        }
        let books = crowds[2].state.matching.books();
        assert!(books.len() == 300 && books.iter().all(|book| book.order_count() == 10));
    }
}
