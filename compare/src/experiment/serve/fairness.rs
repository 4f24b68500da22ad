//! A polite user and an administrator beside one who attacks: what each of them feels of it.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use thalweg_exchange::codec::session::{
    ClientFrame, Hello, QueryFrame, SessionQuery, client_frame_bytes, encode_client_frame,
    encode_submit, submit_bytes,
};
use thalweg_exchange::session::{ClientSequence, Role};
use thalweg_exchange::{
    Action, Command, ConditionalOrder, OrderFlags, OrderId, OrderType, Place, SelfTrade, SymbolId,
    UserId, UserLimits,
};
use thalweg_measure::histogram::Histogram;

use super::child::{Child, LIMITED};
use super::session::{Caller, administer, connect, hello};
use super::{SYMBOL, set_up};
use crate::case::{Case, Goal, Settings};
use crate::experiment::Experiment;
use crate::runner::{Metric, Run, Subjects, subject, text};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "fairness",
    shows: "a polite user and an administrator of a served exchange, beside one who attacks",
    peers: &[],
    notes: "The polite user places an order and cancels it every 5 ms. Not durable.",
    cases,
};

const QUIET: &str = "without the attack";
const ATTACKED: &str = "beside the attack";
/// The attackers and the server that they attack take the same processors' time.
const ELSEWHERE: &str = "the attack is on another server";

const METRICS: &[Metric] = &[
    Metric::lower("acknowledged p50", "ns"),
    Metric::lower("acknowledged p99", "ns"),
    Metric::lower("slowest halt", "ns"),
    Metric::lower("attackers' rate of frames", "1/s"),
];
const P99: usize = 1;
const HALT: usize = 2;

const POLITE: i64 = 1;
const ATTACKER: i64 = 2;
/// Own orders of the attacker, where an attack needs some.
const OWN_ORDERS: i64 = 20_000;

/// Makes the next frames of an attack; the numbers of commands and orders go on.
type Frames = fn(&mut u64) -> Vec<u8>;

#[derive(Clone, Copy)]
struct Attack {
    name: &'static str,
    heading: &'static str,
    sessions: u32,
    role: Role,
    needs_orders: bool,
    frames: Frames,
    reconnects: bool,
}

const ATTACKS: [Attack; 8] = [
    Attack {
        name: "fok",
        heading: "16 sessions: FOK bids for all of 20,000 own asks, which they may not meet",
        needs_orders: true,
        ..Attack::new(16, fok)
    },
    Attack {
        name: "icebergs",
        heading: "icebergs of 1,000 lots that show one, and an order that meets them all",
        ..Attack::new(4, icebergs)
    },
    Attack {
        name: "cancel-all",
        heading: "1,000 orders, and all of them cancelled at once",
        ..Attack::new(4, cancel_all)
    },
    Attack {
        name: "books",
        heading: "16 readers ask for books of 10,000 levels",
        role: Role::Read,
        needs_orders: true,
        ..Attack::new(16, books)
    },
    Attack {
        name: "heartbeats",
        heading: "16 readers send nothing but heartbeats",
        role: Role::Read,
        ..Attack::new(16, heartbeats)
    },
    Attack {
        name: "refused",
        heading: "8 readers send orders, which they may not",
        role: Role::Read,
        ..Attack::new(8, cancels)
    },
    Attack {
        name: "too-fast",
        heading: "16 sessions send faster than they may",
        ..Attack::new(16, cancels)
    },
    Attack {
        name: "reconnects",
        heading: "4 connect and disconnect, with 20,000 orders that stay",
        needs_orders: true,
        reconnects: true,
        ..Attack::new(4, heartbeats)
    },
];

impl Attack {
    const fn new(sessions: u32, frames: Frames) -> Self {
        Self {
            name: "",
            heading: "",
            sessions,
            role: Role::Trade,
            needs_orders: false,
            frames,
            reconnects: false,
        }
    }
}

fn cases(settings: &Settings) -> Vec<Case> {
    let span = Duration::from_nanos(settings.count(4_000_000_000));
    let case = |attack: Attack| {
        let case = Case::of(
            attack.name,
            attack.heading,
            METRICS,
            subjects(),
            (attack, span),
        );
        case.goals([
            Goal::ratio([ATTACKED, ELSEWHERE], P99, 0.5),
            Goal::shown([ATTACKED, QUIET], P99),
            Goal::at_most(ATTACKED, HALT, 50e6),
        ])
    };
    ATTACKS.into_iter().map(case).collect()
}

fn subjects() -> Subjects<(Attack, Duration)> {
    let way = |name, attacks: Option<bool>| {
        subject(name, move |&(attack, span): &(Attack, Duration)| {
            let felt = run(attack, span, attacks)?;
            Ok(Run::of([
                felt.latency_ns.quantile(0.5) as f64,
                felt.latency_ns.quantile(0.99) as f64,
                felt.halt_ns as f64,
                felt.frames as f64 * 1e9 / span.as_nanos() as f64,
            ]))
        })
    };
    vec![
        way(ATTACKED, Some(true)),
        way(ELSEWHERE, Some(false)),
        way(QUIET, None),
    ]
}

#[derive(Debug, Default)]
struct Felt {
    latency_ns: Histogram,
    halt_ns: u64,
    frames: u64,
}

/// Starts a server with both users, and the orders that the attack needs.
fn start(attack: Attack) -> Result<(Child, SocketAddr), String> {
    let child = Child::start(LIMITED)?;
    let admin = child.admin.ok_or("a server has an administrator")?;
    let limits = UserLimits::NONE;
    let mut commands = set_up([POLITE, ATTACKER].into_iter()).to_vec();
    commands.push(Command::SetLimits {
        uid: Some(UserId(ATTACKER)),
        limits: attack.needs_orders.then_some(limits),
    });
    administer(admin, &commands)?;
    if attack.needs_orders {
        rest_orders(child.trade)?;
    }
    Ok((child, admin))
}

/// Runs with the attack on this server, on another one, or without.
fn run(attack: Attack, span: Duration, attacks: Option<bool>) -> Result<Felt, String> {
    let (child, admin) = start(attack)?;
    let other = match attacks {
        Some(false) => Some(start(attack)?.0),
        _ => None,
    };
    let attacked = other.as_ref().unwrap_or(&child).trade;
    let (stop, frames) = (AtomicBool::new(false), AtomicU64::new(0));
    let felt = thread::scope(|scope| {
        let sessions = if attacks.is_some() {
            attack.sessions
        } else {
            0
        };
        for number in 1..=sessions {
            let (to, stop, frames) = (attacked, &stop, &frames);
            scope.spawn(move || attack_from(to, number, attack, (stop, frames)));
        }
        let halts = scope.spawn(|| halt_often(admin, &stop));
        let latency_ns = live(child.trade, span);
        // ORDERING: Relaxed, pairs with the loads of those who attack; the scope joins them.
        stop.store(true, Ordering::Relaxed);
        let halt_ns = halts
            .join()
            .map_err(|_| "a thread has panicked".to_owned())?;
        Ok::<_, String>(Felt {
            latency_ns: latency_ns?,
            halt_ns: halt_ns?,
            frames: 0,
        })
    })?;
    // ORDERING: Relaxed; those who count have ended.
    let frames = frames.load(Ordering::Relaxed);
    Ok(Felt { frames, ..felt })
}

/// Places an order and cancels it, every 5 ms, and measures how long the first answer takes.
fn live(to: SocketAddr, span: Duration) -> Result<Histogram, String> {
    let mut caller = Caller::connect(to, hello(Role::Trade, POLITE, false))?;
    let mut latency_ns = Histogram::new();
    let end = Instant::now() + span;
    let mut id = 0;
    while Instant::now() < end || id == 0 {
        id += 1;
        let order = (UserId(POLITE), OrderId(id));
        let place = Place::limit(order, SYMBOL, Action::Ask, (1 << 30, 1));
        let sent = Instant::now();
        caller.call(&Command::Place(place))?;
        latency_ns.record(sent.elapsed().as_nanos() as u64);
        caller.call(&Command::cancel(order.0, SYMBOL, order.1))?;
        thread::sleep(Duration::from_millis(5));
    }
    Ok(latency_ns)
}

/// Halts a symbol that nobody trades, and opens it again; returns the longest time of that.
fn halt_often(to: SocketAddr, stop: &AtomicBool) -> Result<u64, String> {
    let mut caller = Caller::connect(
        to,
        Hello {
            number: 1,
            ..hello(Role::Admin, 1, false)
        },
    )?;
    let symbol = SymbolId(9);
    let spec = thalweg_exchange::SymbolSpec::pair(
        symbol,
        thalweg_exchange::CurrencyId(1),
        thalweg_exchange::CurrencyId(2),
    );
    caller.call(&Command::AddSymbols(std::sync::Arc::new([spec])))?;
    let mut longest_ns = 0;
    // ORDERING: Relaxed, pairs with the store at the end of the run; a flag alone.
    while longest_ns == 0 || !stop.load(Ordering::Relaxed) {
        for command in [Command::Halt { symbol }, Command::Unhalt { symbol }] {
            let sent = Instant::now();
            caller.call(&command)?;
            longest_ns = longest_ns.max(sent.elapsed().as_nanos() as u64);
        }
        thread::sleep(Duration::from_millis(20));
    }
    Ok(longest_ns)
}

/// Orders of the attacker, each at a price of its own.
fn rest_orders(to: SocketAddr) -> Result<(), String> {
    let mut stream = connect(to, hello(Role::Trade, ATTACKER, false))?;
    for first in (0..OWN_ORDERS).step_by(500) {
        let mut bytes = Vec::new();
        for id in first..first + 500 {
            let order = (UserId(ATTACKER), OrderId(id));
            let terms = (1_000 + id % 10_000, 1);
            let place = Place::limit(order, SYMBOL, Action::Ask, terms);
            push(&mut bytes, 1 + id as u64, &Command::Place(place));
        }
        stream.write_all(&bytes).map_err(text)?;
        let mut answers = 0;
        super::session::hear(&mut stream, &mut Vec::new(), |_| {
            answers += 1;
            (answers == 500).then_some(())
        })?;
    }
    Ok(())
}

/// Attacks until it is to stop, whatever the server does; counts the frames that were sent.
fn attack_from(
    to: SocketAddr,
    number: u32,
    attack: Attack,
    (stop, frames): (&AtomicBool, &AtomicU64),
) {
    let hello = Hello {
        number: if attack.role == Role::Read {
            1_000 + number
        } else {
            number % 16
        },
        cancels_on_disconnect: attack.reconnects,
        ..hello(attack.role, ATTACKER, false)
    };
    let mut next = 1;
    // ORDERING: Relaxed, pairs with the store at the end of the run; a flag and counts.
    while !stop.load(Ordering::Relaxed) {
        let Ok(stream) = connect(to, hello) else {
            thread::sleep(Duration::from_millis(1));
            continue;
        };
        if attack.reconnects {
            // ORDERING: Relaxed, as above.
            frames.fetch_add(1, Ordering::Relaxed);
            continue;
        }
        let _ = flood(stream, attack, &mut next, (stop, frames));
    }
}

fn flood(
    mut stream: TcpStream,
    attack: Attack,
    next: &mut u64,
    (stop, frames): (&AtomicBool, &AtomicU64),
) -> std::io::Result<()> {
    stream.set_nonblocking(true)?;
    let mut heard = vec![0; 1 << 16];
    // ORDERING: Relaxed, pairs with the store at the end of the run; a flag and counts.
    while !stop.load(Ordering::Relaxed) {
        let before = *next;
        let bytes = (attack.frames)(next);
        let mut written = 0;
        // ORDERING: Relaxed, as above.
        while written < bytes.len() && !stop.load(Ordering::Relaxed) {
            match stream.write(&bytes[written..]) {
                Ok(count) => written += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    thread::sleep(Duration::from_micros(200));
                }
                Err(error) => return Err(error),
            }
            match stream.read(&mut heard) {
                Ok(0) => return Ok(()),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
        // ORDERING: Relaxed, as above.
        frames.fetch_add(*next - before, Ordering::Relaxed);
    }
    Ok(())
}

fn push(bytes: &mut Vec<u8>, sequence: u64, command: &Command) {
    let at = bytes.len();
    bytes.resize(at + submit_bytes(command), 0);
    encode_submit(ClientSequence(sequence), command, &mut bytes[at..]).expect("there is room");
}

fn push_frame(bytes: &mut Vec<u8>, frame: &ClientFrame<'_>) {
    let at = bytes.len();
    bytes.resize(at + client_frame_bytes(frame), 0);
    encode_client_frame(frame, &mut bytes[at..]).expect("there is room");
}

fn fok(next: &mut u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    for _ in 0..64 {
        let order = (UserId(ATTACKER), OrderId((1 << 40) + *next as i64));
        let mut place = Place::limit(order, SYMBOL, Action::Bid, (11_000, OWN_ORDERS));
        place.order_type = OrderType::Fok;
        place.flags = OrderFlags::NONE.with_self_trade(SelfTrade::CancelMaker);
        push(&mut bytes, *next, &Command::Place(place));
        *next += 1;
    }
    bytes
}

fn icebergs(next: &mut u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    for at in 0..64 {
        let order = (UserId(ATTACKER), OrderId(*next as i64));
        let lots = if at == 63 { 63_000 } else { 1_000 };
        let action = if at == 63 { Action::Bid } else { Action::Ask };
        let mut place = Place::limit(order, SYMBOL, action, (500, lots));
        let command = if at == 63 {
            place.order_type = OrderType::Ioc;
            Command::Place(place)
        } else {
            Command::PlaceWith(std::sync::Arc::new(ConditionalOrder {
                display: Some(1),
                ..place.into()
            }))
        };
        push(&mut bytes, *next, &command);
        *next += 1;
    }
    bytes
}

fn cancel_all(next: &mut u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    for _ in 0..1_000 {
        let order = (UserId(ATTACKER), OrderId(*next as i64));
        let terms = (1_000 + (*next % 500) as i64, 1);
        let place = Place::limit(order, SYMBOL, Action::Ask, terms);
        push(&mut bytes, *next, &Command::Place(place));
        *next += 1;
    }
    let all = Command::cancel_all(Some(UserId(ATTACKER)), None);
    push(&mut bytes, *next, &all);
    *next += 1;
    bytes
}

/// Cancels orders that are not there.
fn cancels(next: &mut u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    for _ in 0..256 {
        let cancel = Command::cancel(UserId(ATTACKER), SYMBOL, OrderId(-(*next as i64)));
        push(&mut bytes, *next, &cancel);
        *next += 1;
    }
    bytes
}

fn books(next: &mut u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    for _ in 0..4 {
        let query = SessionQuery::Book {
            symbol: SYMBOL,
            depth: 10_000,
        };
        push_frame(
            &mut bytes,
            &ClientFrame::Query(QueryFrame { id: *next, query }),
        );
        *next += 1;
    }
    bytes
}

fn heartbeats(next: &mut u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    for _ in 0..4_096 {
        push_frame(&mut bytes, &ClientFrame::Heartbeat);
        *next += 1;
    }
    bytes
}
