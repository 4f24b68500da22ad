//! 1,000 `depth@100ms` streams, each of a book that changes each 100 ms, over one connection or
//! over many; and the same changes without a stream.

use std::time::Duration;

use thalweg_exchange::{Action, Command, OrderId, Place, SymbolId, UserId};
use thalweg_measure::clock::Clock;

use super::client::{frame, until_listed, upgrade};
use super::prepare;
use crate::case::{Case, Goal, Settings};
use crate::experiment::serve::child::{Child, GATEWAY};
use crate::experiment::serve::session::{Line, Session, Socket, administer, wait};
use crate::experiment::serve::set_up;
use crate::runner::{Metric, Ran, Run, subject};

/// Books, and streams.
const BOOKS: usize = 1_000;
/// Changes of all books together in a second.
const PER_S: u64 = 10_000;
const USER: i64 = 1;

const METRICS: &[Metric] = &[
    Metric::higher("events", "1/s"),
    Metric::higher("bytes of events in a run", "bytes"),
    Metric::lower("server's processor time in a second", "ns"),
];
const EVENTS: usize = 0;

/// Returns the name of the symbol with a number, from 1.
pub(super) fn name(symbol: usize) -> String {
    match symbol {
        1 => "BTCUSDT".to_owned(),
        number => format!("S{number}USDT"),
    }
}

pub(super) fn case(settings: &Settings) -> Case {
    let time = |ms: u64| Duration::from_nanos(settings.count(ms * 1_000_000));
    let load = [time(1_000), time(3_000)];
    let way = |name, connections| {
        subject(name, move |&[warm_up, span]: &[Duration; 2]| {
            run(connections, warm_up, span)
        })
    };
    let subjects = vec![
        way(ONE, 1),
        way("gateway, 100 connections", 100),
        way("gateway, no stream", 0),
    ];
    let heading = "1,000 depth@100ms streams; 1,000 books change 10 times a second each";
    let case = Case::of("streams/1000", heading, METRICS, subjects, load);
    case.goal(Goal::at_least(ONE, EVENTS, 9_900.0))
}

const ONE: &str = "gateway, 1 connection";

/// Makes the commands: an order in each book in turn, and its cancel in the next round.
fn commands() -> impl FnMut() -> Command {
    let mut next = 0_usize;
    move || {
        let (round, book) = (next / BOOKS, next % BOOKS);
        next += 1;
        let (user, symbol) = (UserId(USER), SymbolId(book as i32 + 1));
        let id = OrderId(symbol.0.into());
        match round.is_multiple_of(2) {
            true => Place::limit((user, id), symbol, Action::Bid, (10_000, 5)).into(),
            false => Command::cancel(user, symbol, id),
        }
    }
}

/// Opens connections that follow the books in equal parts.
fn follow(child: &Child, connections: usize) -> Result<Vec<Socket>, String> {
    let to = child.gateway.ok_or("a gateway listens")?;
    until_listed(to, &name(BOOKS))?;
    let names: Vec<String> = (1..=BOOKS)
        .map(|symbol| format!("{}@depth@100ms", name(symbol).to_lowercase()))
        .collect();
    let parts = names.chunks(BOOKS / connections.max(1));
    let sockets = parts.take(connections).map(|part| {
        let path = format!("/stream?streams={}", part.join("/"));
        Socket::new(upgrade(to, &path)?)
    });
    sockets.collect()
}

/// The events that came.
#[derive(Debug, Default)]
struct Seen {
    events: u64,
    bytes: u64,
}

fn take(socket: &mut Socket, seen: &mut Seen) -> Result<(), String> {
    socket.receive(|bytes| {
        let mut done = 0;
        while let Some((_, length)) = frame(&bytes[done..]) {
            seen.events += 1;
            seen.bytes += length as u64;
            done += length;
        }
        Ok(done)
    })
}

fn run(connections: usize, warm_up: Duration, span: Duration) -> Ran {
    let child = Child::start_in(GATEWAY, |directory| {
        prepare(directory, BOOKS, std::iter::empty()).map(drop)
    })?;
    let admin = child.admin.ok_or("a server has an administrator")?;
    administer(admin, &set_up(BOOKS as i32, std::iter::once(USER)))?;
    let mut followers = follow(&child, connections)?;
    let mut session = Session::connect(child.trade, USER, false, commands())?;
    let clock = Clock::global();
    let ticks = |time: Duration| clock.ticks_from_ns(time.as_nanos() as u64);
    let begin = clock.ticks();
    let counts_from = begin + ticks(warm_up);
    let end = counts_from + ticks(span);
    let (mut sent, mut before, mut ready) = (0, None, Vec::new());
    let mut seen = Seen::default();
    loop {
        let now = clock.ticks();
        if before.is_none() && now >= counts_from {
            seen = Seen::default();
            before = Some((child.spent_ns(), now));
        }
        if now >= end {
            break;
        }
        let due = clock.ns(now - begin) * PER_S / 1_000_000_000;
        while sent < due && session.under_way() < 1_000 {
            session.push(now);
            sent += 1;
        }
        session.socket().flush()?;
        let all = std::iter::once(session.socket()).chain(followers.iter_mut());
        wait(all, Duration::from_millis(1), &mut ready)?;
        if ready[0] {
            session.receive(|_| {})?;
        }
        for (socket, _) in followers.iter_mut().zip(&ready[1..]).filter(|(_, is)| **is) {
            take(socket, &mut seen)?;
        }
    }
    let (spent_ns, began) = before.unwrap_or((0, begin));
    let took_s = clock.ns(clock.ticks() - began).max(1) as f64 / 1e9;
    Ok(Run::of([
        seen.events as f64 / took_s,
        seen.bytes as f64,
        child.spent_ns().saturating_sub(spent_ns) as f64 / took_s,
    ]))
}
