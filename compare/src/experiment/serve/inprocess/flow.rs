//! An exchange in this process, and what its sessions send.

use std::path::Path;
use std::time::Duration;

use thalweg_exchange::Command;
use thalweg_exchange::durable::{
    Exchange, Executed, Options, Origin, Published, Request, SnapshotOptions, SyncMode,
};
use thalweg_exchange::session::{ClientSequence, Role, SessionKey};
use thalweg_measure::clock::Clock;
use thalweg_measure::histogram::{Reader, recorder};

use super::super::venue::{Orders, set_up};
use super::{Told, told};

const SESSIONS: i64 = 8;
/// Commands before a flow begins again: they fit into a cache.
const ROUND: usize = 1 << 16;
/// Commands that are handed over together at most.
pub(super) const BATCH: u64 = 256;

/// Users of the sessions.
pub(super) fn users() -> impl Iterator<Item = i64> {
    1..=SESSIONS
}

/// What sessions send in turn. It leaves no order behind, so it can be sent again and again.
#[derive(Debug)]
pub(super) struct Flow {
    commands: Vec<(SessionKey, Command)>,
}

impl Flow {
    pub(super) fn new() -> Self {
        let mut sessions: Vec<(SessionKey, Orders)> = users()
            .map(|holder| {
                let (role, number) = (Role::Trade, 0);
                let key = SessionKey::new(role, holder, number);
                (key, Orders::of(holder))
            })
            .collect();
        let mut commands = Vec::with_capacity(ROUND);
        while commands.len() < ROUND {
            commands.extend(sessions.iter_mut().map(|(key, of)| (*key, of.next())));
        }
        for (key, of) in &mut sessions {
            commands.extend(std::iter::from_fn(|| of.cancel()).map(|cancel| (*key, cancel)));
        }
        Self { commands }
    }

    fn at(&self, number: u64) -> &(SessionKey, Command) {
        &self.commands[(number % self.commands.len() as u64) as usize]
    }

    pub(super) fn command(&self, number: u64) -> &Command {
        &self.at(number).1
    }

    pub(super) fn request(&self, number: u64, tag: u64) -> Request<'_> {
        let (key, command) = self.at(number);
        let sequence = ClientSequence(number + 1);
        let origin = Origin::Session {
            key: *key,
            sequence,
        };
        Request {
            origin,
            command,
            tag,
        }
    }
}

/// Opens an exchange that makes snapshots only where it is asked to. Its commands' tags are when
/// they were due, in ticks, or 0; what comes with it has the ticks until those that have one were
/// acknowledged.
pub(super) fn open(place: &Path, sync: SyncMode) -> Told<(Exchange, Reader)> {
    let (acknowledged, reader) = recorder();
    let options = Options {
        sync,
        snapshot: SnapshotOptions {
            every_bytes: u64::MAX,
            every: Duration::MAX,
            ..SnapshotOptions::default()
        },
        ..Options::default()
    };
    let clock = Clock::global();
    let publish = move |published: Published<'_>| {
        if let Published::Outcome(Executed { outcome, .. }) = published
            && outcome.tag != 0
        {
            acknowledged.record(clock.ticks().saturating_sub(outcome.tag));
        }
    };
    let (exchange, _) = Exchange::open(place, options, publish).map_err(told)?;
    Ok((exchange, reader))
}

/// The same on a new market.
pub(super) fn open_new(place: &Path, sync: SyncMode) -> Told<(Exchange, Reader)> {
    let (mut exchange, reader) = open(place, sync)?;
    for command in set_up(users()) {
        exchange.submit(Origin::Engine, &command, 0).map_err(told)?;
    }
    exchange.drain().map_err(told)?;
    Ok((exchange, reader))
}

/// Sends commands together, all of which must be taken.
pub(super) fn send(exchange: &mut Exchange, requests: &[Request<'_>]) -> Told<()> {
    let mut refused = None;
    exchange.submit_many(requests, |_, taken| {
        if let Err(error) = taken {
            refused.get_or_insert(error);
        }
    });
    refused.map_or(Ok(()), |error| Err(told(error)))
}

/// Sends so many commands of a flow, as fast as they are taken.
pub(super) fn send_all(exchange: &mut Exchange, flow: &Flow, from: u64, until: u64) -> Told<()> {
    let mut batch = Vec::new();
    let mut next = from;
    while next < until {
        let end = until.min(next + BATCH);
        batch.clear();
        batch.extend((next..end).map(|number| flow.request(number, 0)));
        send(exchange, &batch)?;
        next = end;
    }
    Ok(())
}
