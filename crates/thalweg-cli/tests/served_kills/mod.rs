//! Kills a served exchange (`kill -9`) under load from eight clients, again and again. Every
//! acknowledged command must be in the journal once and in its place, other commands once or not at
//! all, clients must reconnect by themselves, and the state must equal that of the journal,
//! executed by itself.
//!
//! `THALWEG_SERVE_KILLS=50` sets the number of kills to 50.

pub(crate) mod clients;
mod mass;
pub(crate) mod served;

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::io::Write;
use std::net::TcpListener;
use std::path::Path;
use std::thread;
use std::time::Duration;

use thalweg_client::Outcome;
use thalweg_client::exchange::codec::{command_bytes, decode_command, encode_command};
use thalweg_client::exchange::digest::Digest;
use thalweg_client::exchange::session::{ClientSequence, Refusal};
use thalweg_client::exchange::snapshot::state_hash;
use thalweg_client::exchange::{Events as Made, ResultCode, State, apply};
use thalweg_journal::{Lsn, Reader};

use clients::{CLIENTS, Clients, Outcomes, command, set_up};
use served::{Folder, Served};

const KILLS: u64 = 5;
/// The number of bytes in a record before its command.
const RECORD_HEAD: usize = 24;

/// The commands in the journal, each with its number and its frame.
pub(crate) type Journaled = BTreeMap<(i64, u64), Vec<(u64, Vec<u8>)>>;

/// Executes the journal by itself.
pub(crate) fn replay(directory: &Path) -> (Journaled, u64, Digest, State) {
    replay_with(directory, |_, _| ())
}

/// Executes the journal by itself, and calls `each` with the number of commands and the state
/// before each, and after the last.
pub(crate) fn replay_with(
    directory: &Path,
    mut each: impl FnMut(u64, &State),
) -> (Journaled, u64, Digest, State) {
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
            each(number, &state);
            let result = apply(&mut state, &command, &mut events);
            digest.fold(&command, result, &events);
            number += 1;
        }
    }
    each(number, &state);
    (found, number, digest, state)
}

/// Returns the contents of the last snapshot: the number of commands, their digest, and the hash of
/// the state.
fn snapshot(directory: &Path) -> [u64; 3] {
    let names = fs::read_dir(directory).expect("it is there");
    let names = names.map(|entry| entry.expect("it can be read").path());
    let last = names
        .filter(|path| path.extension().is_some_and(|end| end == "thw"))
        .max();
    let bytes = fs::read(last.expect("there is a snapshot")).expect("it can be read");
    [24, 32, 40].map(|at| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes")))
}

pub(crate) fn check_commands(user: i64, outcomes: &Outcomes, journal: &Journaled) -> [usize; 2] {
    let [mut executed, mut unknown] = [0; 2];
    for (step, outcome) in outcomes.iter().enumerate() {
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
            Outcome::Refused {
                sequence,
                why: Refusal::Draining,
            } => assert_eq!(journal.get(&(user, sequence.0)), None, "{user}: {sequence}"),
            ref other => panic!("{user}: {other}"),
        }
    }
    [executed, unknown]
}

#[test]
fn what_a_killed_exchange_acknowledged_is_there_once() {
    let kills = env::var("THALWEG_SERVE_KILLS").ok();
    let kills = kills.map_or(KILLS, |text| text.parse().expect("a number of kills"));
    let place = Folder::new("killed-exchange");
    let mut served = Served::start(&place, &BTreeMap::new());
    set_up(&served.addresses["admin"]);
    let addresses = served.addresses.clone();
    let mut clients = Clients::start(&addresses["trade"]);
    // Each kill comes at another moment, and some come soon after the start. The last server has
    // work to do as well.
    for more in (0..kills).map(|kill| 1 + kill * 977 % 4_000).chain([1_000]) {
        clients.trade(more, &place);
        served.kill();
        served = Served::start(&place, &addresses);
    }
    let outcomes = clients.end(&place);
    served.kill();
    let (journal, count, digest, state) = replay(&place.exchange);
    let twice = journal.iter().find(|(_, found)| found.len() != 1);
    assert!(twice.is_none(), "executed twice: {twice:?}");
    let mut sums = [0; 2];
    for (outcomes, user) in outcomes.iter().zip(1..) {
        let counted = check_commands(user, outcomes, &journal);
        sums = [sums[0] + counted[0], sums[1] + counted[1]];
    }
    let [executed, unknown] = sums;
    println!("{kills} kills, {executed} commands answered, {unknown} unknown");
    assert!(executed >= 1_000 && unknown > 0);
    // The state that the server recovers and then saves must be the state of the journal.
    Served::start(&place, &addresses).end();
    let [saved, saved_digest, saved_hash] = snapshot(&place.exchange);
    let (_, after, digest_after, state_after) = replay(&place.exchange);
    assert_eq!((saved, saved_digest), (after, digest_after.value()));
    assert_eq!(saved_hash, state_hash(&state_after));
    assert!(after >= count);
    if after == count {
        assert_eq!(digest.value(), digest_after.value());
        assert_eq!(state_hash(&state), saved_hash);
    }
}

/// Checks a journal in which one command of user 1 was executed `times` times, against the answer
/// that the client received.
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

#[test]
#[should_panic(expected = "answers: it hangs at 3\nthe server's log ends:\n")]
fn what_hangs_ends_the_test() {
    let place = Folder::new("hanging-exchange");
    place.wait_looks("answers", Duration::ZERO, || Err::<(), _>(3));
}

#[test]
#[should_panic(expected = "a client ended: ")]
fn a_client_that_fails_ends_the_test() {
    let place = Folder::new("no-exchange");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let mut clients = Clients::start(&listener.local_addr().expect("it listens").to_string());
    let mut taken = Vec::new();
    thread::scope(|scope| {
        scope.spawn(|| {
            // Bytes that are not a frame are not an answer.
            for stream in listener.incoming().take(CLIENTS as usize).flatten() {
                let _ = (&stream).write_all(&[0; 8]);
                taken.push(stream);
            }
        });
        clients.trade(1, &place);
    });
}
