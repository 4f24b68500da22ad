//! A served exchange that is killed (`kill -9`) under load from eight clients, again and again:
//! every acknowledged command is there once and in its place, others are there once or not at all,
//! clients go on by themselves, and the state is that of the journal, executed by itself.
//!
//! `THALWEG_SERVE_KILLS=50` makes it 50 times.

#![cfg(unix)]

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command as Program, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::Value;
use thalweg_client::blocking::{AdminClient, Events, Ticket, TradeClient};
use thalweg_client::exchange::codec::{command_bytes, decode_command, encode_command};
use thalweg_client::exchange::digest::Digest;
use thalweg_client::exchange::session::ClientSequence;
use thalweg_client::exchange::snapshot::state_hash;
use thalweg_client::exchange::{
    AccountSpec, Action, Command, CurrencyId, Events as Made, OrderFlags, OrderId, OrderType,
    Place, ResultCode, State, SymbolId, SymbolSpec, SymbolType, UserId, apply,
};
use thalweg_client::{AdminCommand, Event, Options, Outcome, TradeCommand};
use thalweg_journal::{Lsn, Reader};

const KILLS: u64 = 5;
const CLIENTS: i64 = 8;
/// Commands of a client without an answer.
const WINDOW: usize = 64;
const SYMBOL: SymbolId = SymbolId(1);
/// Bytes of a record before its command.
const RECORD_HEAD: usize = 24;

/// A server, and where it listens.
struct Served {
    child: Child,
    addresses: BTreeMap<String, String>,
}

impl Served {
    /// Starts it; at the same addresses as before, if there was one.
    fn start(directory: &Path, before: &BTreeMap<String, String>) -> Self {
        let mut program = Program::new(env!("CARGO_BIN_EXE_thalweg"));
        program.args(["exchange", "serve", "--format", "json"]);
        program.arg(directory);
        for listener in ["trade", "admin", "http"] {
            let address = before.get(listener).map_or("127.0.0.1:0", String::as_str);
            program.args([format!("--{listener}"), address.to_owned()]);
        }
        program.stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = program.spawn().expect("it starts");
        let mut line = String::new();
        let mut out = BufReader::new(child.stdout.take().expect("it is piped"));
        out.read_line(&mut line).expect("it says where it listens");
        let told: Value = serde_json::from_str(&line).expect("the addresses are JSON");
        let told = told.as_object().expect("an object").iter();
        let addresses = told
            .map(|(name, address)| {
                (
                    name.clone(),
                    address.as_str().unwrap_or_default().to_owned(),
                )
            })
            .collect();
        Self { child, addresses }
    }

    fn kill(&mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it was killed");
    }

    /// Asks it to end, as an operator does.
    fn end(mut self) {
        let id = self.child.id().to_string();
        let asked = Program::new("kill").args(["-TERM", &id]).status();
        assert!(asked.expect("there is a program to do so").success());
        let ended = self.child.wait().expect("it ends");
        assert_eq!(ended.code(), Some(0), "{ended}");
    }
}

impl Drop for Served {
    /// A test that fails leaves none behind.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn options(address: &str, holder: i64) -> Options {
    let mut options = Options::new(address, holder);
    options.retry_max = Duration::from_millis(50);
    options.in_flight_max = WINDOW;
    options
}

/// The symbol, and users with money.
fn set_up(address: &str) {
    let (client, _events) = AdminClient::connect(options(address, 1)).expect("it listens");
    let symbol = SymbolSpec {
        id: SYMBOL,
        symbol_type: SymbolType::CurrencyPair,
        base_currency: CurrencyId(10),
        quote_currency: CurrencyId(20),
        base_scale: 1,
        quote_scale: 1,
        ..SymbolSpec::default()
    };
    let account = |uid| AccountSpec {
        uid: UserId(uid),
        balances: vec![(CurrencyId(10), 1 << 40), (CurrencyId(20), 1 << 40)],
    };
    let accounts: Vec<_> = (1..=CLIENTS).map(account).collect();
    for command in [
        Command::AddSymbols([symbol].into()),
        Command::AddAccounts(accounts.into()),
    ] {
        let command = AdminCommand::try_from(command).expect("an operator's");
        let outcome = client.submit(command).expect("it is open").wait();
        assert_eq!(outcome.result(), Some(ResultCode::Success), "{outcome}");
    }
    client.close();
}

/// Two orders that may meet those of others, then a cancel of the first.
fn command(user: i64, step: i64) -> TradeCommand {
    let order = step - step % 3;
    if step % 3 == 2 {
        return TradeCommand::cancel(UserId(user), SYMBOL, OrderId(order));
    }
    let price = 1_000 + (step * 7 + user) % 11;
    TradeCommand::from(Place {
        uid: UserId(user),
        symbol: SYMBOL,
        order_id: OrderId(step),
        order_type: if step % 3 == 0 {
            OrderType::Gtc
        } else {
            OrderType::Ioc
        },
        action: if (step + user) % 2 == 0 {
            Action::Bid
        } else {
            Action::Ask
        },
        price,
        reserve_price: price,
        size: 1 + step % 4,
        flags: OrderFlags::NONE,
    })
}

/// What a client was told: by step, what became of the command.
type Told = Vec<Outcome>;

/// Clients of a user that trade until they shall end, one after the other: those of users with even
/// numbers give up when the connection is lost, and leave commands without an answer; the others
/// go on by themselves.
fn trade(user: i64, address: &str, is_over: &AtomicBool, answered: &AtomicU64) -> Told {
    let mut options = options(address, user);
    options.attempts_max = (user % 2 == 0).then_some(0);
    let mut told = Told::new();
    let take = |ticket: Ticket, told: &mut Told| {
        told.push(ticket.wait());
        answered.fetch_add(1, Ordering::Relaxed);
    };
    while !is_over.load(Ordering::Relaxed) {
        let (client, events) = match TradeClient::connect(options.clone()) {
            Ok(made) => made,
            // The first connection is the user's to make, and may meet a kill.
            Err(lost) if lost.may_return() => continue,
            Err(lost) => panic!("{user}: {lost}"),
        };
        let first = client.welcome().next_report.0;
        let reports = thread::spawn(move || check_reports(first, events));
        let mut waiting = Vec::new();
        while !is_over.load(Ordering::Relaxed) {
            let step = told.len() + waiting.len();
            let Ok(ticket) = client.submit(command(user, step as i64)) else {
                break;
            };
            waiting.push(ticket);
            if waiting.len() >= WINDOW {
                waiting
                    .drain(..WINDOW / 2)
                    .for_each(|ticket| take(ticket, &mut told));
            }
        }
        waiting
            .into_iter()
            .for_each(|ticket| take(ticket, &mut told));
        client.close();
        reports.join().expect("reports are whole");
    }
    told
}

/// Each report once and in order, whatever happened to the connection.
fn check_reports(first: u64, mut events: Events) {
    let mut last = first - 1;
    while let Some(event) = events.next() {
        match event {
            Event::Report(report) => {
                assert_eq!(report.number.0, last + 1);
                last += 1;
            }
            // One that was away too long is told so.
            Event::ReportGap(gap) => {
                assert_eq!(gap.from.0, last + 1);
                last = gap.to.0;
            }
            _ => {}
        }
    }
}

/// A command in the journal: its number, and its frame.
type Journaled = BTreeMap<(i64, u64), Vec<(u64, Vec<u8>)>>;

/// Executes the journal by itself.
fn replay(directory: &Path) -> (Journaled, u64, Digest, State) {
    let mut reader = Reader::open(directory, Lsn::new(1)).expect("there is a journal");
    let (mut state, mut events, mut digest) = (State::default(), Made::new(), Digest::new());
    let mut found = Journaled::new();
    let mut number = 0;
    while let Some(block) = reader.next_block().expect("it is whole") {
        for (_, record) in block.bytes() {
            let (head, frame) = record.split_at(RECORD_HEAD);
            let long = |at: usize| u64::from_le_bytes(head[at..at + 8].try_into().expect("8"));
            if head[1] == 1 {
                let key = (long(8) as i64, long(16));
                found.entry(key).or_default().push((number, frame.to_vec()));
            }
            let (command, _) = decode_command(frame).expect("a command");
            let result = apply(&mut state, &command, &mut events);
            digest.fold(&command, result, &events);
            number += 1;
        }
    }
    (found, number, digest, state)
}

/// What the last snapshot says: how many commands, their digest, the hash of the state.
fn snapshot(directory: &Path) -> [u64; 3] {
    let names = fs::read_dir(directory).expect("it is there");
    let names = names.map(|entry| entry.expect("it can be read").path());
    let last = names
        .filter(|path| path.extension().is_some_and(|end| end == "thw"))
        .max();
    let bytes = fs::read(last.expect("there is a snapshot")).expect("it can be read");
    [24, 32, 40].map(|at| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes")))
}

fn check_commands(user: i64, told: &Told, journal: &Journaled) -> [usize; 2] {
    let [mut executed, mut unknown] = [0; 2];
    for (step, outcome) in told.iter().enumerate() {
        let sent = command(user, step as i64).into_command();
        let mut frame = vec![0; command_bytes(&sent)];
        encode_command(&sent, &mut frame).expect("there is room");
        match *outcome {
            Outcome::Executed {
                sequence, number, ..
            } => {
                let there = journal.get(&(user, sequence.0));
                assert_eq!(there, Some(&vec![(number, frame)]), "{user}: {sequence}");
                executed += 1;
            }
            Outcome::Unknown { sequence } => {
                let there = journal
                    .get(&(user, sequence.0))
                    .map_or(&[][..], Vec::as_slice);
                assert!(
                    there.len() <= 1,
                    "{user}: {sequence} is there {} times",
                    there.len()
                );
                assert!(there.iter().all(|(_, found)| *found == frame));
                unknown += 1;
            }
            Outcome::NotSent => {}
            ref other => panic!("{user}: {other}"),
        }
    }
    [executed, unknown]
}

fn directory() -> PathBuf {
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join("killed-exchange");
    let _ = fs::remove_dir_all(&place);
    place
}

#[test]
fn what_a_killed_exchange_acknowledged_is_there_once() {
    let kills = env::var("THALWEG_SERVE_KILLS").ok();
    let kills = kills.map_or(KILLS, |text| text.parse().expect("a number of kills"));
    let place = directory();
    let mut served = Served::start(&place, &BTreeMap::new());
    set_up(&served.addresses["admin"]);
    let addresses = served.addresses.clone();
    let trade_at = addresses["trade"].clone();
    let (is_over, answered) = (AtomicBool::new(false), AtomicU64::new(0));
    let told: Vec<Told> = thread::scope(|scope| {
        let one = |user| {
            let (trade_at, answered, is_over) = (&trade_at, &answered, &is_over);
            scope.spawn(move || trade(user, trade_at, is_over, answered))
        };
        let clients: Vec<_> = (1..=CLIENTS).map(one).collect();
        // At another moment each time, now and then soon after the start; and the last life, too,
        // has something to do.
        for more in (0..kills).map(|kill| 1 + kill * 977 % 4_000).chain([1_000]) {
            let until = answered.load(Ordering::Relaxed) + more;
            let is_well = || !clients.iter().any(thread::ScopedJoinHandle::is_finished);
            while answered.load(Ordering::Relaxed) < until && is_well() {
                thread::yield_now();
            }
            served.kill();
            served = Served::start(&place, &addresses);
        }
        is_over.store(true, Ordering::Relaxed);
        let ended = clients
            .into_iter()
            .map(|client| client.join().expect("no panic"));
        ended.collect()
    });
    served.kill();
    let (journal, count, digest, state) = replay(&place);
    let twice = journal.iter().find(|(_, found)| found.len() != 1);
    assert!(twice.is_none(), "executed twice: {twice:?}");
    let mut sums = [0; 2];
    for (told, user) in told.iter().zip(1..) {
        let counted = check_commands(user, told, &journal);
        sums = [sums[0] + counted[0], sums[1] + counted[1]];
    }
    let [executed, unknown] = sums;
    println!("{kills} kills, {executed} commands answered, {unknown} unknown");
    assert!(executed >= 1_000 && unknown > 0);
    // What it recovers to, and then saves, is the state of the journal.
    Served::start(&place, &addresses).end();
    let [saved, saved_digest, saved_hash] = snapshot(&place);
    let (_, after, digest_after, state_after) = replay(&place);
    assert_eq!((saved, saved_digest), (after, digest_after.value()));
    assert_eq!(saved_hash, state_hash(&state_after));
    assert!(after >= count);
    if after == count {
        assert_eq!(digest.value(), digest_after.value());
        assert_eq!(state_hash(&state), saved_hash);
    }
}

/// A journal with one command of user 1, executed so often, and the answer that the client had.
fn checked(times: u64, outcome: Outcome) {
    let sent = command(1, 0).into_command();
    let mut frame = vec![0; command_bytes(&sent)];
    encode_command(&sent, &mut frame).expect("there is room");
    let there = (0..times).map(|number| (number, frame.clone())).collect();
    check_commands(1, &vec![outcome], &Journaled::from([((1, 5), there)]));
}

const ACKNOWLEDGED: Outcome = Outcome::Executed {
    sequence: ClientSequence(5),
    number: 0,
    result: ResultCode::Success,
    is_repeated: false,
};
const LEFT: Outcome = Outcome::Unknown {
    sequence: ClientSequence(5),
};

#[test]
fn the_check_takes_what_is_right() {
    checked(1, ACKNOWLEDGED);
    checked(1, LEFT);
    checked(0, LEFT);
}

#[test]
#[should_panic(expected = "1: 5")]
fn the_check_finds_an_acknowledged_command_that_is_gone() {
    checked(0, ACKNOWLEDGED);
}

#[test]
#[should_panic(expected = "1: 5")]
fn the_check_finds_an_acknowledged_command_that_is_there_twice() {
    checked(2, ACKNOWLEDGED);
}

#[test]
#[should_panic(expected = "1: 5 is there 2 times")]
fn the_check_finds_another_command_that_is_there_twice() {
    checked(2, LEFT);
}
