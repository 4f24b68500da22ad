//! A polite user and an administrator of a served exchange beside an attacker: the latencies of
//! both, with the attack, without it, and with the attack on another server.
#![expect(clippy::disallowed_methods)] // users rest, and attackers do not spin

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use thalweg_exchange::codec::session::{ClientFrame, Hello, QueryFrame, SessionQuery};
use thalweg_exchange::session::Role;
use thalweg_exchange::{
    Action, Command, ConditionalOrder, CurrencyId, OrderFlags, OrderId, OrderType, Place,
    SelfTrade, SymbolId, SymbolSpec, UserId, UserLimits,
};
use thalweg_measure::histogram::Histogram;

use super::child::{Child, LIMITED};
use super::session::{Caller, administer, connect, hear, hello, push_frame, push_submit};
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
/// The attackers and the server that they attack take as much of the processors' time.
const ELSEWHERE: &str = "the attack is on another server";

const METRICS: &[Metric] = &[
    Metric::lower("acknowledged p50", "ns"),
    Metric::lower("acknowledged p99", "ns"),
    Metric::lower("slowest halt", "ns"),
    Metric::lower("attackers' rate of frames", "1/s"),
];
const METRICS_TOGETHER: &[Metric] = &[
    Metric::lower("acknowledged p50", "ns"),
    Metric::lower("acknowledged p99", "ns"),
    Metric::lower("slowest halt", "ns"),
    Metric::lower("memory at most in the first third", "B"),
    Metric::lower("memory at most", "B"),
];
const P99: usize = 1;
const HALT: usize = 2;
const MEMORY: usize = 4;
/// The sum of the table in `docs/serving.md`, without what users and connections add.
const MEMORY_MOST_BYTES: f64 = 3_012e6;

const POLITE: i64 = 1;
const ATTACKER: i64 = 2;
/// The attacker has this many orders, where an attack needs some.
const OWN_ORDERS: i64 = 20_000;

#[derive(Clone, Copy)]
struct Attack {
    name: &'static str,
    heading: &'static str,
    sessions: u32,
    role: Role,
    needs_orders: bool,
    reconnects: bool,
    /// Makes the next frames of a user; the numbers of commands and orders go on.
    frames: fn(i64, &mut u64) -> Vec<u8>,
}

const ATTACKS: [Attack; 8] = [
    Attack {
        name: "fok",
        heading: "16 sessions: FOK bids for all of 20,000 own asks, which they may not meet",
        needs_orders: true,
        ..traders(16, fok)
    },
    Attack {
        name: "icebergs",
        heading: "icebergs of 1,000 lots that show one, and an order that meets them all",
        ..traders(4, icebergs)
    },
    Attack {
        name: "cancel-all",
        heading: "1,000 orders, and all of them cancelled at once",
        ..traders(4, cancel_all)
    },
    Attack {
        name: "books",
        heading: "16 readers ask for books of 10,000 levels",
        needs_orders: true,
        ..readers(16, books)
    },
    Attack {
        name: "heartbeats",
        heading: "16 readers send nothing but heartbeats",
        ..readers(16, heartbeats)
    },
    Attack {
        name: "refused",
        heading: "8 readers send orders, which they may not",
        ..readers(8, cancels)
    },
    Attack {
        name: "too-fast",
        heading: "16 sessions send faster than they may",
        ..traders(16, cancels)
    },
    Attack {
        name: "reconnects",
        heading: "4 connect and disconnect, with 20,000 orders that stay",
        needs_orders: true,
        reconnects: true,
        ..traders(4, heartbeats)
    },
];

const fn traders(sessions: u32, frames: fn(i64, &mut u64) -> Vec<u8>) -> Attack {
    Attack {
        name: "",
        heading: "",
        sessions,
        role: Role::Trade,
        needs_orders: false,
        reconnects: false,
        frames,
    }
}

const fn readers(sessions: u32, frames: fn(i64, &mut u64) -> Vec<u8>) -> Attack {
    Attack {
        role: Role::Read,
        ..traders(sessions, frames)
    }
}

fn cases(settings: &Settings) -> Vec<Case> {
    let span = Duration::from_nanos(settings.count(4_000_000_000));
    let case = |attack: Attack| {
        let (name, heading, load) = (attack.name, attack.heading, (attack, span));
        Case::of(name, heading, METRICS, subjects(), load).goals([
            Goal::ratio([ATTACKED, ELSEWHERE], P99, 0.5),
            Goal::shown([ATTACKED, QUIET], P99),
            Goal::at_most(ATTACKED, HALT, 50e6),
        ])
    };
    let together = Case::of(
        "together",
        "all of these at once, each by a user of its own",
        METRICS_TOGETHER,
        vec![subject(ATTACKED, move |&(): &()| run_together(span))],
        (),
    );
    let together = together.goals([
        Goal::at_most(ATTACKED, HALT, 50e6),
        Goal::at_most(ATTACKED, MEMORY, MEMORY_MOST_BYTES),
    ]);
    ATTACKS.into_iter().map(case).chain([together]).collect()
}

fn subjects() -> Subjects<(Attack, Duration)> {
    let way = |name, attacks: Option<bool>| {
        subject(name, move |&(attack, span): &(Attack, Duration)| {
            run(attack, span, attacks)
        })
    };
    vec![
        way(ATTACKED, Some(true)),
        way(ELSEWHERE, Some(false)),
        way(QUIET, None),
    ]
}

/// The end of a run, and the frames that the attackers have sent.
#[derive(Debug, Default)]
struct Control {
    stop: AtomicBool,
    frames: AtomicU64,
}

impl Control {
    fn goes_on(&self) -> bool {
        // ORDERING: Relaxed, pairs with the store in `stop`; the flag publishes nothing.
        !self.stop.load(Ordering::Relaxed)
    }

    fn stop(&self) {
        // ORDERING: Relaxed, pairs with the load in `goes_on`; the scope joins the threads.
        self.stop.store(true, Ordering::Relaxed);
    }

    fn count(&self, frames: u64) {
        // ORDERING: Relaxed; the sum is read after the threads were joined.
        self.frames.fetch_add(frames, Ordering::Relaxed);
    }
}

/// Starts a server with its users, and the orders that the attacks need.
fn start(attacks: &[(i64, Attack)]) -> Result<(Child, SocketAddr), String> {
    let child = Child::start(LIMITED)?;
    let admin = child.admin.ok_or("a server has an administrator")?;
    let attackers = attacks.iter().map(|&(uid, _)| uid);
    let mut commands = set_up([POLITE].into_iter().chain(attackers)).to_vec();
    let (limits, needs_orders) = (UserLimits::NONE, |attack: &Attack| attack.needs_orders);
    commands.extend(attacks.iter().map(|(uid, attack)| Command::SetLimits {
        uid: Some(UserId(*uid)),
        limits: needs_orders(attack).then_some(limits),
    }));
    administer(admin, &commands)?;
    for (uid, _) in attacks.iter().filter(|(_, attack)| needs_orders(attack)) {
        rest_orders(child.trade, *uid)?;
    }
    Ok((child, admin))
}

/// Runs with the attack on this server, on another one, or without.
fn run(attack: Attack, span: Duration, attacks: Option<bool>) -> Result<Run, String> {
    let attacker = [(ATTACKER, attack)];
    let (child, admin) = start(&attacker)?;
    let other = match attacks {
        Some(false) => Some(start(&attacker)?.0),
        _ => None,
    };
    let attacked = other.as_ref().unwrap_or(&child).trade;
    let attackers = if attacks.is_some() {
        &attacker[..]
    } else {
        &[]
    };
    let seen = beside((attacked, attackers), (&child, admin), span)?;
    Ok(Run::of([
        seen.latency_ns.quantile(0.5) as f64,
        seen.latency_ns.quantile(0.99) as f64,
        seen.halt_ns as f64,
        seen.frames as f64 * 1e9 / span.as_nanos() as f64,
    ]))
}

/// Runs all attacks at once, each by a user of its own.
fn run_together(span: Duration) -> Result<Run, String> {
    let attackers: Vec<(i64, Attack)> = (ATTACKER..).zip(ATTACKS).collect();
    let (child, admin) = start(&attackers)?;
    let seen = beside((child.trade, &attackers), (&child, admin), span)?;
    let [third, rest] = seen.memory_bytes;
    Ok(Run::of([
        seen.latency_ns.quantile(0.5) as f64,
        seen.latency_ns.quantile(0.99) as f64,
        seen.halt_ns as f64,
        third as f64,
        third.max(rest) as f64,
    ]))
}

/// The figures that a run beside attackers gives.
struct Seen {
    /// The times until the polite user's orders were acknowledged.
    latency_ns: Histogram,
    /// The longest time until the administrator's halt was.
    halt_ns: u64,
    /// The frames that the attackers have sent.
    frames: u64,
    /// The most memory that the server had resident in the first third of the time, and then.
    memory_bytes: [u64; 2],
}

/// Attacks a server, and meanwhile measures the one of the child, which may be another.
fn beside(
    (attacked, attackers): (SocketAddr, &[(i64, Attack)]),
    (child, admin): (&Child, SocketAddr),
    span: Duration,
) -> Result<Seen, String> {
    let control = &Control::default();
    let (latency_ns, halt_ns, memory_bytes) = thread::scope(|scope| {
        for &attacker in attackers {
            for number in 1..=attacker.1.sessions {
                scope.spawn(move || attack_from(attacked, number, attacker, control));
            }
        }
        let halts = scope.spawn(|| halt_often(admin, control));
        let memory = scope.spawn(|| watch_memory(child, span / 3, control));
        let latency_ns = trade_politely(child.trade, span);
        control.stop();
        let halt_ns = halts.join().map_err(|_| "a thread has panicked")?;
        let memory_bytes = memory.join().map_err(|_| "a thread has panicked")?;
        Ok::<_, String>((latency_ns?, halt_ns?, memory_bytes))
    })?;
    // ORDERING: Relaxed; the threads that count were joined.
    let frames = control.frames.load(Ordering::Relaxed);
    Ok(Seen {
        latency_ns,
        halt_ns,
        frames,
        memory_bytes,
    })
}

/// Returns the most memory of a child until a time has passed, and from then on.
fn watch_memory(child: &Child, first: Duration, control: &Control) -> [u64; 2] {
    let (begin, mut most_bytes) = (Instant::now(), [0; 2]);
    while most_bytes[0] == 0 || control.goes_on() {
        let most = &mut most_bytes[usize::from(begin.elapsed() > first)];
        *most = child.memory_bytes().max(*most);
        // Often enough for a most, and seldom enough to disturb nothing.
        thread::sleep(Duration::from_millis(20));
    }
    most_bytes
}

/// Places an order and cancels it, every 5 ms, and measures how long the first answer takes.
fn trade_politely(to: SocketAddr, span: Duration) -> Result<Histogram, String> {
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

/// Halts and opens a symbol that has no orders; returns the longest time of that.
fn halt_often(to: SocketAddr, control: &Control) -> Result<u64, String> {
    let hello = Hello {
        number: 1,
        ..hello(Role::Admin, 1, false)
    };
    let mut caller = Caller::connect(to, hello)?;
    let symbol = SymbolId(9);
    let spec = SymbolSpec::pair(symbol, CurrencyId(1), CurrencyId(2));
    caller.call(&Command::AddSymbols(Arc::new([spec])))?;
    let mut longest_ns = 0;
    while longest_ns == 0 || control.goes_on() {
        for command in [Command::Halt { symbol }, Command::Unhalt { symbol }] {
            let sent = Instant::now();
            caller.call(&command)?;
            longest_ns = longest_ns.max(sent.elapsed().as_nanos() as u64);
        }
        thread::sleep(Duration::from_millis(20));
    }
    Ok(longest_ns)
}

/// Places the orders of an attacker on 10,000 levels.
fn rest_orders(to: SocketAddr, uid: i64) -> Result<(), String> {
    let mut stream = connect(to, hello(Role::Trade, uid, false))?;
    for first in (0..OWN_ORDERS).step_by(500) {
        let mut bytes = Vec::new();
        for id in first..first + 500 {
            let order = place(uid, id, Action::Ask, (1_000 + id % 10_000, 1));
            push_submit(&mut bytes, 1 + id as u64, &Command::Place(order));
        }
        stream.write_all(&bytes).map_err(text)?;
        let mut answers = 0;
        hear(&mut stream, &mut Vec::new(), |_| {
            answers += 1;
            (answers == 500).then_some(())
        })?;
    }
    Ok(())
}

/// Attacks until the run ends, whatever the server does.
fn attack_from(to: SocketAddr, number: u32, (uid, attack): (i64, Attack), control: &Control) {
    let number = match attack.role {
        Role::Read => 1_000 + number,
        _ => number % 16,
    };
    let hello = Hello {
        number,
        cancels_on_disconnect: attack.reconnects,
        ..hello(attack.role, uid, false)
    };
    let mut next = 1;
    while control.goes_on() {
        match connect(to, hello) {
            Ok(_) if attack.reconnects => control.count(1),
            Ok(stream) => _ = flood(stream, (uid, attack), &mut next, control),
            Err(_) => thread::sleep(Duration::from_millis(1)),
        }
    }
}

fn flood(
    mut stream: TcpStream,
    (uid, attack): (i64, Attack),
    next: &mut u64,
    control: &Control,
) -> std::io::Result<()> {
    stream.set_nonblocking(true)?;
    let mut heard = vec![0; 1 << 16];
    while control.goes_on() {
        let before = *next;
        let bytes = (attack.frames)(uid, next);
        let mut written = 0;
        while written < bytes.len() && control.goes_on() {
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
        control.count(*next - before);
    }
    Ok(())
}

/// Makes `count` frames; `push` appends one, given its place among them and its number.
fn frames(next: &mut u64, count: u64, push: impl Fn(&mut Vec<u8>, u64, u64)) -> Vec<u8> {
    let mut bytes = Vec::new();
    for at in 0..count {
        push(&mut bytes, at, *next);
        *next += 1;
    }
    bytes
}

/// Makes the frames of `count` commands.
fn commands(next: &mut u64, count: u64, command: impl Fn(u64, u64) -> Command) -> Vec<u8> {
    frames(next, count, |bytes, at, number| {
        push_submit(bytes, number, &command(at, number));
    })
}

fn place(uid: i64, id: i64, action: Action, terms: (i64, i64)) -> Place {
    Place::limit((UserId(uid), OrderId(id)), SYMBOL, action, terms)
}

fn fok(uid: i64, next: &mut u64) -> Vec<u8> {
    commands(next, 64, |_, number| {
        let mut place = place(
            uid,
            (1 << 40) + number as i64,
            Action::Bid,
            (11_000, OWN_ORDERS),
        );
        place.order_type = OrderType::Fok;
        place.flags = OrderFlags::NONE.with_self_trade(SelfTrade::CancelMaker);
        Command::Place(place)
    })
}

fn icebergs(uid: i64, next: &mut u64) -> Vec<u8> {
    commands(next, 64, |at, number| {
        if at == 63 {
            let mut taker = place(uid, number as i64, Action::Bid, (500, 63_000));
            taker.order_type = OrderType::Ioc;
            return Command::Place(taker);
        }
        let iceberg = place(uid, number as i64, Action::Ask, (500, 1_000));
        Command::PlaceConditional(Arc::new(ConditionalOrder::from(iceberg).with_display(1)))
    })
}

fn cancel_all(uid: i64, next: &mut u64) -> Vec<u8> {
    commands(next, 1_001, |at, number| match at {
        1_000 => Command::cancel_all(Some(UserId(uid)), None),
        _ => {
            let terms = (1_000 + (number % 500) as i64, 1);
            Command::Place(place(uid, number as i64, Action::Ask, terms))
        }
    })
}

/// Cancels orders that do not exist.
fn cancels(uid: i64, next: &mut u64) -> Vec<u8> {
    commands(next, 256, |_, number| {
        Command::cancel(UserId(uid), SYMBOL, OrderId(-(number as i64)))
    })
}

fn books(_: i64, next: &mut u64) -> Vec<u8> {
    frames(next, 4, |bytes, _, id| {
        let (symbol, depth) = (SYMBOL, 10_000);
        let query = SessionQuery::Book { symbol, depth };
        push_frame(bytes, &ClientFrame::Query(QueryFrame { id, query }));
    })
}

fn heartbeats(_: i64, next: &mut u64) -> Vec<u8> {
    frames(next, 4_096, |bytes, _, _| {
        push_frame(bytes, &ClientFrame::Heartbeat);
    })
}
