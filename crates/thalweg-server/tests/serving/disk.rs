//! A disk without room, and one that fails.

use std::time::{Duration, Instant};

use thalweg_exchange::codec::session::CloseReason;
use thalweg_exchange::durable::replication::{log_of, note_log};
use thalweg_exchange::durable::{History, SimDisk};
use thalweg_exchange::session::Refusal;
use thalweg_exchange::{Action, ResultCode};
use thalweg_journal::{Fault, Operation};
use thalweg_server::config::SyncSetting;

use crate::client::{Client, Received, order};
use crate::limited::Limited;
use crate::test_server::{Place, TestServer, scratch};

fn server_on(disk: &SimDisk) -> TestServer {
    let server = TestServer::on(Place::Disk(disk.clone()), |config| {
        config.journal.segment_bytes = 1 << 20;
        config.sessions.rate_per_s = 0;
    });
    server.set_market();
    server
}

#[test]
fn a_disk_that_fails_ends_all_with_a_reason_and_no_answer() {
    let disk = SimDisk::new();
    let server = server_on(&disk);
    let (mut client, _) = server.trade(1);
    let (mut other, _) = server.trade(2);
    client.submit(1, &order(1, 1, Action::Bid, 10, 1));
    client.succeeds(1);
    // One may be met by the thread that prepares the next file.
    (0..4).for_each(|_| disk.fail(Operation::WriteNow, 0, Fault::Io));
    client.submit(2, &order(1, 2, Action::Bid, 10, 1));
    loop {
        match client.receive() {
            Received::Report(_) => {}
            Received::Bye(why, _) => break assert_eq!(why, CloseReason::Failed),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(other.bye().0, CloseReason::Failed);
    assert_eq!(server.get("/healthz"), (503, "failed\n".to_owned()));
    assert_eq!(server.get("/readyz"), (503, "failed\n".to_owned()));
}

#[test]
fn the_thread_of_an_exchange_that_has_failed_rests() {
    let disk = SimDisk::new();
    let server = server_on(&disk);
    let (mut client, _) = server.trade(1);
    (0..4).for_each(|_| disk.fail(Operation::WriteNow, 0, Fault::Io));
    client.submit(1, &order(1, 1, Action::Bid, 10, 1));
    assert_eq!(client.bye().0, CloseReason::Failed);
    rests(&server);
}

#[test]
fn the_thread_rests_while_the_disk_is_full_and_while_nothing_happens() {
    let directory = scratch();
    let disk = Limited::new(&directory);
    let (server, mut client, mut sequence) = filled(&disk);
    rests(&server);
    disk.set_full(false);
    takes_again(&server, &mut client, &mut sequence);
    rests(&server);
    drop(server);
}

#[test]
fn the_directory_of_a_replica_that_is_served_alone_belongs_to_no_log_any_more() {
    let disk = SimDisk::new();
    note_log(&disk, 7).expect("there is room");
    let server = TestServer::on(Place::Disk(disk.clone()), |_| ());
    server.serves();
    assert_eq!(log_of(&disk).expect("it is read"), None);
}

/// Sends orders of user 1 until one is taken, after which the server serves.
fn takes_again(server: &TestServer, client: &mut Client, sequence: &mut u64) {
    let from = *sequence;
    let is_taken = |received: &Received| match received {
        Received::Answer(answer) => answer.sequence.0 > from,
        _ => false,
    };
    send_until((client, 1), sequence, is_taken);
    server.serves();
}

/// Looks at four pages of metrics. A thread that spins looks at its sockets many thousand times
/// meanwhile, as that takes 0.6 s at least.
#[track_caller]
fn rests(server: &TestServer) {
    let polls = || {
        let (_, page) = server.get("/metrics");
        let name = "thalweg_polls_total ";
        let line = page.lines().find_map(|line| line.strip_prefix(name));
        let count = line.and_then(|line| line.parse().ok());
        count.expect("it is counted")
    };
    let first: u64 = polls();
    let mut seen = vec![first];
    while seen.len() < 4 {
        let now = polls();
        if !seen.contains(&now) {
            seen.push(now);
        }
        std::thread::yield_now();
    }
    assert!(seen[3] - first < 1_000, "{seen:?}");
}

/// Waits until this number of commands is in the files.
#[track_caller]
fn wait_for(disk: &Limited, commands: u64) {
    let begin = Instant::now();
    loop {
        let mut history = History::open_in(disk.clone()).expect("it is there");
        while history.step(|_| ()) {}
        if history.number() == commands {
            return;
        }
        let found = history.number();
        let is_over = begin.elapsed() > Duration::from_secs(600);
        assert!(!is_over, "{found} of {commands} commands are there");
        std::thread::yield_now();
    }
}

/// A kill of the program would leave the present content of the files.
#[test]
fn without_sync_what_was_answered_is_soon_in_the_files() {
    let directory = scratch();
    let disk = Limited::new(&directory);
    let server = TestServer::on(Place::Limited(disk.clone()), |config| {
        config.journal.sync = SyncSetting::Never;
    });
    server.set_market();
    let (mut client, _) = server.trade(1);
    // Some come right after a flush, and nothing comes after them.
    for id in 1..=60 {
        client.submit(id, &order(1, id as i64, Action::Bid, 10, 1));
        client.succeeds(id);
        if id % 3 == 0 {
            wait_for(&disk, 2 + id);
        }
    }
    drop(server);
}

/// Sends orders of a user, without waiting for answers, until a frame comes for which `is_it` is
/// true.
pub(crate) fn send_until(
    (client, user): (&mut Client, i64),
    sequence: &mut u64,
    is_it: impl Fn(&Received) -> bool,
) {
    loop {
        *sequence += 1;
        client.submit(
            *sequence,
            &order(user, *sequence as i64, Action::Bid, 10, 1),
        );
        while let Some(received) = client.receive_soon() {
            match &received {
                received if is_it(received) => return,
                Received::Answer(answer) => assert_eq!(answer.result, ResultCode::Success),
                Received::Refused(refusal) => assert_eq!(refusal.why, Refusal::DiskFull),
                Received::Report(_) => {}
                other => panic!("{other:?}"),
            }
        }
    }
}

pub(crate) fn is_full(received: &Received) -> bool {
    matches!(received, Received::Refused(refusal) if refusal.why == Refusal::DiskFull)
}

/// A server on a disk that has no room for what its client has sent.
fn filled(disk: &Limited) -> (TestServer, Client, u64) {
    let server = TestServer::on(Place::Limited(disk.clone()), |config| {
        config.journal.segment_bytes = 1 << 20;
        config.sessions.rate_per_s = 0;
        config.sessions.answers_kept = 1 << 16;
    });
    server.set_market();
    let (mut client, _) = server.trade(1);
    let mut sequence = 0;
    disk.set_full(true);
    send_until((&mut client, 1), &mut sequence, is_full);
    (server, client, sequence)
}

#[test]
fn a_server_ends_while_its_disk_has_no_room() {
    let directory = scratch();
    let disk = Limited::new(&directory);
    let (mut server, mut client, _) = filled(&disk);
    let error = server.try_stop().expect_err("some has no room");
    let text = "the exchange was closed while commands waited for room on the disk: ";
    assert!(error.to_string().starts_with(text), "{error}");
    assert_eq!(client.bye().0, CloseReason::Shutdown);
    disk.set_full(false);
    server.start();
    server.serves();
    drop(server);
}

#[test]
fn a_full_disk_refuses_orders_serves_readers_and_goes_on_when_there_is_room() {
    let directory = scratch();
    let disk = Limited::new(&directory);
    let (server, mut client, mut sequence) = filled(&disk);
    // A client that connects is welcomed, and sees the market; only orders are refused.
    let (mut reader, _) = server.trade(2);
    reader.subscribe(&[1]);
    let Received::Snapshot(snapshot) = reader.receive() else {
        panic!("a snapshot was expected");
    };
    assert!(!snapshot.bids.is_empty());
    reader.submit(1, &order(2, 1, Action::Bid, 10, 1));
    assert_eq!(reader.refused().why, Refusal::DiskFull);
    assert_eq!(server.get("/readyz").0, 200);
    let (_, page) = server.get("/metrics");
    assert!(
        !page.contains("thalweg_refusals_total{reason=\"DISK_FULL\"} 0"),
        "{page}"
    );
    disk.set_full(false);
    takes_again(&server, &mut client, &mut sequence);
    drop(server);
}
