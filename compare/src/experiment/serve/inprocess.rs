//! The durable exchange in this process, without sockets, beside a service without a journal; and
//! its recovery.

use std::path::Path;
use std::time::{Duration, Instant};

use thalweg::pipeline::Placement;
use thalweg_exchange::digest::Digest;
use thalweg_exchange::durable::{
    Exchange, Options, Origin, Published, SnapshotOptions, Submission, SyncMode,
};
use thalweg_exchange::service::{self, Service};
use thalweg_exchange::session::{ClientSequence, Role, SessionKey};
use thalweg_exchange::{Command, Rules, State};
use thalweg_testkit::Scratch;

use super::{Orders, set_up};
use crate::case::{Case, Goal, Settings};
use crate::experiment::journal::settle;
use crate::runner::{Metric, Ran, Run, subject, text};
use crate::threads::process_cpu_ns;

/// This many sessions send their commands in turn.
const SESSIONS: i64 = 8;
/// A flow has this many commands, then it begins again: they fit into a cache.
const ROUND: usize = 1 << 16;
/// A batch has this many commands.
const BATCH: u64 = 256;
/// The clock is read once in this many commands.
const STRIDE: u64 = 64 * BATCH;

const METRICS: &[Metric] = &[
    Metric::higher("commands a second", "1/s"),
    Metric::lower("processor time of a command", "ns"),
];

const NONE: &str = "service without a journal";
const UNSYNCED: &str = "unsynced exchange";
const OPENED: &str = "opened";

pub(crate) fn cases(settings: &Settings) -> [Case; 2] {
    let span = Duration::from_nanos(settings.count(500_000_000));
    let way = |name, sync| subject(name, move |flow: &Flow| with(flow, span, sync));
    let subjects = vec![
        subject(NONE, move |flow: &Flow| without(flow, span)),
        way(UNSYNCED, SyncMode::Never),
        way("durable exchange", SyncMode::Always),
    ];
    let heading = format!("batches of {BATCH} commands, as many as are taken");
    let flow = || Ok(Flow::new());
    let most = Case::new("in-process/max", heading, METRICS, subjects, flow);
    let most = most.repeated(21).goals([
        Goal::ratio([UNSYNCED, NONE], 0, 0.85),
        Goal::at_least(NONE, 0, 12e6),
        Goal::at_most(NONE, 1, 150.0),
    ]);
    let commands = settings.count(3_000_000);
    let heading = format!("{commands} commands in a journal, in the page cache");
    let (subjects, left) = (vec![subject(OPENED, opened)], move || leave(commands));
    let recovery = Case::new("recovery", heading, &METRICS[..1], subjects, left);
    [most, recovery.goal(Goal::at_least(OPENED, 0, 10e6))]
}

/// A flow has the commands of all sessions. It leaves no order behind, so it can be repeated.
#[derive(Debug)]
struct Flow(Vec<(SessionKey, Command)>);

impl Flow {
    fn new() -> Self {
        let session = |holder| (SessionKey::new(Role::Trade, holder, 0), Orders::of(holder));
        let mut sessions: Vec<(SessionKey, Orders)> = (1..=SESSIONS).map(session).collect();
        let mut commands = Vec::with_capacity(ROUND);
        while commands.len() < ROUND {
            commands.extend(sessions.iter_mut().map(|(key, of)| (*key, of.command())));
        }
        for (key, of) in &mut sessions {
            commands.extend(std::iter::from_fn(|| of.cancel()).map(|cancel| (*key, cancel)));
        }
        Self(commands)
    }

    fn at(&self, number: u64) -> &(SessionKey, Command) {
        &self.0[(number % self.0.len() as u64) as usize]
    }

    /// Sends the commands of these numbers in batches; all must be accepted.
    fn send(&self, exchange: &mut Exchange, from: u64, until: u64) -> Result<(), String> {
        for first in (from..until).step_by(BATCH as usize) {
            let batch = (first..until.min(first + BATCH)).map(|number| {
                let (key, command) = self.at(number);
                let (key, sequence) = (*key, ClientSequence(number + 1));
                Submission {
                    origin: Origin::Session { key, sequence },
                    command,
                    tag: 0,
                }
            });
            let mut refused = None;
            exchange.submit_many(batch, |_, taken| {
                if let Err(error) = taken {
                    refused.get_or_insert(error);
                }
            });
            refused.map_or(Ok(()), |error| Err(text(error)))?;
        }
        Ok(())
    }
}

/// Sends strides until the span is over, and waits until all commands are done.
fn measured<T>(
    span: Duration,
    mut target: T,
    send: impl Fn(&mut T, u64, u64) -> Result<(), String>,
    wait: impl FnOnce(&mut T) -> Result<(), String>,
) -> Ran {
    let (begin, spent_ns) = (Instant::now(), process_cpu_ns());
    let mut next = 0;
    while next == 0 || begin.elapsed() < span {
        send(&mut target, next, next + STRIDE)?;
        next += STRIDE;
    }
    wait(&mut target)?;
    let (seconds, spent_ns) = (begin.elapsed().as_secs_f64(), process_cpu_ns() - spent_ns);
    let each_ns = spent_ns as f64 / next as f64;
    Ok(Run::of([next as f64 / seconds, each_ns]))
}

fn without(flow: &Flow, span: Duration) -> Ran {
    settle()?;
    let options = service::ServiceOptions {
        placement: Placement::caller_and_threads(1, 1),
        ..service::ServiceOptions::default()
    };
    // As a durable exchange does.
    let mut digest = Digest::new();
    let started = Service::start(State::new(Rules::default()), options, move |outcome| {
        digest.fold(outcome.command, outcome.result, outcome.events);
        std::hint::black_box(&digest);
    });
    let mut service = started.map_err(text)?;
    for command in set_up(1..=SESSIONS) {
        service.submit(&command, 0).map_err(text)?;
    }
    service.drain().map_err(text)?;
    let send = |service: &mut Service, from: u64, until: u64| {
        for first in (from..until).step_by(BATCH as usize) {
            let write = |at, command: &mut Command| {
                command.clone_from(&flow.at(first + at as u64).1);
                0
            };
            let sent = service.submit_with(BATCH as usize, write);
            sent.map_err(text)?;
        }
        Ok(())
    };
    measured(span, service, send, |service| service.drain().map_err(text))
}

fn with(flow: &Flow, span: Duration, sync: SyncMode) -> Ran {
    settle()?;
    let place = Scratch::new("in-process");
    let exchange = open_new(&place, sync)?;
    let send = |exchange: &mut Exchange, from, until| flow.send(exchange, from, until);
    measured(span, exchange, send, |exchange| {
        exchange.drain().map_err(text)
    })
}

/// Opens an exchange that makes no snapshots.
fn open(place: &Path, sync: SyncMode) -> Result<Exchange, String> {
    let options = Options {
        sync,
        snapshot: SnapshotOptions {
            every_bytes: u64::MAX,
            every: Duration::MAX,
            ..SnapshotOptions::default()
        },
        ..Options::default()
    };
    let publish = |_: Published<'_>| ();
    let (exchange, _) = Exchange::open(place, options, publish).map_err(text)?;
    Ok(exchange)
}

/// Opens an exchange with a new market.
fn open_new(place: &Path, sync: SyncMode) -> Result<Exchange, String> {
    let mut exchange = open(place, sync)?;
    for command in set_up(1..=SESSIONS) {
        let submitted = exchange.submit(Origin::Engine, &command, 0);
        submitted.map_err(text)?;
    }
    exchange.drain().map_err(text)?;
    Ok(exchange)
}

/// The directory of an exchange that ended without a last snapshot.
struct Left {
    place: Scratch,
    commands: u64,
}

/// Has an exchange take this number of commands of a flow, and end as in a crash.
fn leave(commands: u64) -> Result<Left, String> {
    let place = Scratch::new("recovery");
    let mut exchange = open_new(&place, SyncMode::Always)?;
    let commands_before = exchange.number();
    Flow::new().send(&mut exchange, 0, commands)?;
    exchange.drain().map_err(text)?;
    let commands = commands_before + commands;
    Ok(Left { place, commands })
}

fn opened(left: &Left) -> Ran {
    let begin = Instant::now();
    let exchange = open(&left.place, SyncMode::Always)?;
    let took = begin.elapsed();
    let number = exchange.number();
    match number == left.commands {
        true => Ok(Run::of([number as f64 / took.as_secs_f64()])),
        false => Err(format!("{number} commands of {}", left.commands)),
    }
}
