//! Copies over loopback, into a directory that has something else.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::Ordering;

use thalweg_exchange::durable::replication::{FollowOptions, FollowOutcome, FollowerDriver};
use thalweg_exchange::durable::{Exchange, JournalOptions, Origin, SimDisk};
use thalweg_exchange::{Command, UserId};
use thalweg_testkit::Scratch;

use super::*;
use crate::replication::tests::OneLog;

const USERS: i64 = 30;
const ANYWHERE: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

pub(super) fn options() -> Options {
    Options {
        journal: JournalOptions::default()
            .segment_bytes(64 << 10)
            .block_bytes_max(32 << 10),
        ..Options::default()
    }
}

/// Returns the disk of a replica that has added all users, and its log, which has given up all but
/// the last batches.
fn primary() -> (SimDisk, OneLog) {
    let (disk, mut log) = (SimDisk::new(), OneLog::default());
    let opened = Exchange::open_in(disk.clone(), options(), |_| ());
    let (exchange, _) = opened.expect("the disk is empty");
    let mut follow_options = FollowOptions::new("one:1");
    follow_options.bootstrap = true;
    let following = FollowerDriver::start(exchange, Box::new(log.clone()), follow_options);
    let mut following = following.expect("there are threads");
    while following.turn().expect("it does not halt") != FollowOutcome::Leads {
        std::thread::yield_now();
    }
    let mut exchange = following.into_exchange();
    for uid in 0..USERS {
        let command = Command::AddUser { uid: UserId(uid) };
        exchange
            .submit(Origin::Engine, &command, 0)
            .expect("it is taken");
        exchange.drain().expect("it is acknowledged");
    }
    exchange.close().expect("it ends in order");
    let claim = log.read(0).expect("it answers").claim.expect("it was made");
    let _ = log.delete_before(&claim, USERS as u64 - 5);
    (disk, log)
}

fn run(place: &Path, log: &OneLog, listener: &PeerListener) -> Result<u64, CatchUpError> {
    let mut log = log.clone();
    let catch_up = CatchUp::new((place, false), "two:2", listener);
    // One that another program has open has none.
    let commands = commands_in(&Files::new(place), &options()).unwrap_or_default();
    catch_up.run(
        &options(),
        (&mut log, USERS as u64 - 5, commands),
        &mut |_| true,
    )
}

/// Makes an exchange with a command in a directory.
fn make_one(place: &Path) {
    let (mut exchange, _) = Exchange::open(place, options(), |_| ()).expect("it opens");
    exchange
        .submit(Origin::Engine, &Command::Nop, 0)
        .expect("it is taken");
    exchange.close().expect("it ends in order");
}

/// Returns the start of the chain of a log.
fn number_of(log: &OneLog) -> u64 {
    let claim = log.clone().read(0).expect("it answers").claim;
    claim.expect("it was made").chain_start()
}

fn opened(place: &Path) -> (u64, u64) {
    let (_, recovered) = Exchange::open(place, options(), |_| ()).expect("it opens");
    (recovered.commands, recovered.digest.value())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_is_replaced_by_the_copy_of_a_peer_and_only_by_one() {
    let (disk, mut log) = primary();
    let place = Scratch::new("catches-up");
    make_one(&place);
    note_log(&Files::new(&place), number_of(&log)).expect("there is room");
    let before = opened(&place);

    let listener = PeerListener::start(ANYWHERE, disk.clone())
        .await
        .expect("a free port");
    let error = run(&place, &log, &listener).expect_err("there is no peer");
    let text = "no other replica that is far enough has noted where it gives copies";
    assert_eq!(error.to_string(), text);

    let right = listener.place("127.0.0.1");
    // The replica itself, another key, and a port at which none listens.
    let (address, _) = right.split_once(' ').expect("there is a key");
    let wrong = format!("{address} {}", "0".repeat(64));
    let gone = PeerListener::start(ANYWHERE, disk.clone())
        .await
        .expect("a free port");
    let away = gone.place("127.0.0.1");
    drop(gone);
    for (replica, place) in [("two:2", &right), ("three:3", &wrong), ("four:4", &away)] {
        let _ = log.note_peer(replica, place);
    }
    let error = run(&place, &log, &listener)
        .expect_err("no peer gives a copy")
        .to_string();
    let text = "no replica has given a copy that fits the log; three:3: the stream of the copy: \
                it was refused: the key is not that of this replica; four:4: the stream of the \
                copy";
    assert!(error.starts_with(text), "{error}");
    assert_eq!(opened(&place), before);

    let _ = log.note_peer("one:1", &right);
    let catch_up = |has_archive| CatchUp::new((&place, has_archive), "two:2", &listener);
    let mut prepare = |has_archive| {
        let prepared = catch_up(has_archive).prepare(&options(), &mut log, |time| time.is_zero());
        prepared.expect("the directory is well")
    };
    assert!(prepare(true));
    assert_eq!(opened(&place), before, "an archive is of one journal");
    assert!(prepare(false));
    let (mut exchange, recovered) = Exchange::open_in(disk, options(), |_| ()).expect("it opens");
    exchange.drain().expect("it is well");
    assert_eq!(opened(&place), (USERS as u64, recovered.digest.value()));
    let aside = place.join("before-catch-up");
    assert_eq!(opened(&aside), before, "what was there is kept");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_of_another_log_is_refused_and_kept() {
    let (disk, mut log) = primary();
    let listener = PeerListener::start(ANYWHERE, disk.clone()).await;
    let listener = listener.expect("a free port");
    let _ = log.note_peer("one:1", &listener.place("127.0.0.1"));
    let place = Scratch::new("other-log");
    make_one(&place);
    let aside = place.join("before-catch-up");
    std::fs::create_dir(&aside).expect("there is room");
    let before = opened(&place);
    let catch_up = CatchUp::new((&place, false), "two:2", &listener);
    let refused = |log: &mut OneLog| {
        let prepared = catch_up.prepare(&options(), log, |time| time.is_zero());
        let error = prepared.expect_err("it is another log's").to_string();
        assert_eq!(opened(&place), before);
        assert!(aside.is_dir(), "nothing is removed");
        error
    };
    let number = number_of(&log);
    let text = format!(
        "{number:016x}, which has given up what it would need to go on: move them aside, and an \
         empty directory gets a copy of another replica"
    );
    let directory = place.display();
    let unknown = format!(
        "{directory}: its 1 commands belong to a command log that it does not name, maybe to {text}"
    );
    assert_eq!(refused(&mut log), unknown);
    note_log(&Files::new(&place), number ^ 1).expect("there is room");
    let other = number ^ 1;
    let other = format!(
        "{directory}: its 1 commands belong to the command log {other:016x}, not to {text}"
    );
    assert_eq!(refused(&mut log), other);
    // It is said of the one that gives the copy.
    assert_eq!(log_of(&disk).expect("it is read"), Some(number));
    std::fs::remove_dir_all(&*place).expect("it is there");
    assert!(
        catch_up
            .prepare(&options(), &mut log, |time| time.is_zero())
            .expect("it is empty")
    );
    assert_eq!(opened(&place).0, USERS as u64);
    let noted = log_of(&Files::new(&place)).expect("it is read");
    assert_eq!(noted, Some(number));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_that_has_lost_its_segments_is_not_empty() {
    let (disk, log) = primary();
    let listener = PeerListener::start(ANYWHERE, disk.clone()).await;
    let listener = listener.expect("a free port");
    let _ = log.clone().note_peer("one:1", &listener.place("127.0.0.1"));
    let place = Scratch::new("lost-segments");
    let of_commands = place.join(format!("snapshot-{:020}.thw", 7));
    std::fs::write(&of_commands, "of another exchange").expect("there is room");
    let refused = run(&place, &log, &listener).expect_err("it may be another exchange's");
    assert!(
        matches!(refused, CatchUpError::OtherLog { own: None, .. }),
        "{refused}"
    );
    assert!(of_commands.is_file(), "nothing is moved");
    // One of no commands is that of a replica that has followed no log yet.
    let of_none = place.join(format!("snapshot-{:020}.thw", 0));
    std::fs::rename(&of_commands, of_none).expect("it is there");
    let commands = run(&place, &log, &listener).expect("a copy takes its place");
    assert_eq!(commands, USERS as u64);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_is_looked_at_only_where_no_other_program_has_it() {
    let (disk, log) = primary();
    let listener = PeerListener::start(ANYWHERE, disk.clone()).await;
    let listener = listener.expect("a free port");
    let _ = log.clone().note_peer("one:1", &listener.place("127.0.0.1"));
    let place = Scratch::new("looked-at");
    let catch_up = CatchUp::new((&place, false), "two:2", &listener);
    let run = |log: &OneLog| {
        let log: &mut dyn CommandLog = &mut log.clone();
        // It was empty when that was looked at.
        let found = (log, USERS as u64 - 5, 0);
        catch_up.run(&options(), found, &mut |_| true)
    };
    let (mut exchange, _) = Exchange::open(&place, options(), |_| ()).expect("it opens");
    exchange
        .submit(Origin::Engine, &Command::Nop, 0)
        .expect("it is taken");
    exchange.drain().expect("it is durable");
    note_log(&Files::new(&place), 7).expect("there is room");
    let in_use = run(&log).expect_err("it is in use").to_string();
    assert!(in_use.ends_with("another program has it open"), "{in_use}");
    // As a crash leaves it: the command is in the journal alone.
    drop(exchange);
    let other = run(&log).expect_err("it is another log's");
    let is_other = matches!(other, CatchUpError::OtherLog { own: Some(7), .. });
    assert!(is_other, "{other}");
    assert_eq!(opened(&place).0, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_that_does_not_fit_the_log_replaces_nothing() {
    let (_, mut log) = primary();
    let other = SimDisk::new();
    let (mut exchange, _) = Exchange::open_in(other.clone(), options(), |_| ()).expect("it opens");
    for uid in 100..100 + USERS {
        let command = Command::AddUser { uid: UserId(uid) };
        exchange
            .submit(Origin::Engine, &command, 0)
            .expect("it is taken");
    }
    exchange.close().expect("it ends in order");
    let listener = PeerListener::start(ANYWHERE, other)
        .await
        .expect("a free port");
    let _ = log.note_peer("one:1", &listener.place("127.0.0.1"));
    let place = Scratch::new("does-not-fit");
    let error = run(&place, &log, &listener)
        .expect_err("it is another exchange's")
        .to_string();
    let text = "no replica has given a copy that fits the log; one:1: command 28 in the journal of \
                this replica is another one than in the log";
    assert!(error.starts_with(text), "{error}");
    assert!(!place.join("before-catch-up").exists());
    assert!(
        !place.join("catch-up.part").exists(),
        "nothing of it is left"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_aside_goes_before_a_copy_is_received_and_a_start_that_is_to_end_ends() {
    let (disk, mut log) = primary();
    let listener = PeerListener::start(ANYWHERE, disk).await;
    let listener = listener.expect("a free port");
    let _ = log.note_peer("one:1", &listener.place(""));
    let place = Scratch::new("has-room");
    let aside = place.join("before-catch-up");
    std::fs::create_dir_all(&aside).expect("there is room");
    let catch_up = CatchUp::new((&place, false), "two:2", &listener);
    let prepare = |pause: &mut dyn FnMut(Duration) -> bool| {
        let prepared = catch_up.prepare(&options(), &mut log.clone(), pause);
        prepared.expect("the directory is well")
    };
    // Before the first byte of the answer, before the next ones, and at the latest before it is put
    // in place.
    for looks in 0..3 {
        let mut left = looks;
        let mut pause = |_| {
            assert!(left >= 0, "it looks no more once it is to end");
            left -= 1;
            left >= 0
        };
        assert!(!prepare(&mut pause), "{looks}");
        assert!(!aside.exists());
        assert!(!place.join("catch-up.part").exists());
        assert_eq!(opened(&place).0, 0, "nothing is replaced");
    }
    // The last of them may be under way yet.
    assert!(prepare(&mut |_| {
        std::thread::yield_now();
        true
    }));
    assert_eq!(opened(&place).0, USERS as u64);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_that_another_program_has_open_is_not_touched() {
    let (disk, mut log) = primary();
    let listener = PeerListener::start(ANYWHERE, disk).await;
    let listener = listener.expect("a free port");
    let _ = log.note_peer("one:1", &listener.place(""));
    let place = Scratch::new("in-use");
    let (_exchange, _) = Exchange::open(&place, options(), |_| ()).expect("it opens");
    let part = place.join("catch-up.part");
    std::fs::create_dir(&part).expect("there is room");
    let error = run(&place, &log, &listener).expect_err("it is in use");
    let text = error.to_string();
    assert!(text.ends_with("another program has it open"), "{text}");
    assert!(part.exists(), "it is the other one's");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_waits_for_no_note_which_is_made_later() {
    let (disk, mut log) = primary();
    let listener = PeerListener::start(ANYWHERE, disk.clone()).await;
    let listener = listener.expect("a free port");
    // ORDERING: Relaxed; a flag of a test.
    log.is_full.store(true, Ordering::Relaxed);
    // It takes nothing over.
    // ORDERING: Relaxed; a flag of a test.
    log.is_alive.store(true, Ordering::Relaxed);
    let place = Scratch::new("no-note");
    let (mut exchange, _) = Exchange::open_in(disk.clone(), options(), |_| ()).expect("it opens");
    exchange.drain().expect("it is well");
    let catch_up = CatchUp::new((&place, true), "two:2", &listener);
    let prepared = catch_up.prepare(&options(), &mut log, |time| time.is_zero());
    assert!(prepared.expect("the directory is well"));
    let mut follow_options = FollowOptions::new("two:2");
    follow_options.peer_place = Some(catch_up.place().to_owned());
    let following = FollowerDriver::start(exchange, Box::new(log.clone()), follow_options);
    let mut following = following.expect("there are threads");
    while following.turn().expect("it does not halt") == FollowOutcome::Nothing {
        std::thread::yield_now();
    }
    assert_eq!(log.peers(), Ok(Vec::new()));
    // ORDERING: Relaxed; a flag of a test.
    log.is_full.store(false, Ordering::Relaxed);
    while log.peers().expect("it answers").is_empty() {
        let _ = following.turn().expect("it does not halt");
        std::thread::yield_now();
    }
    let noted = ("two:2".to_owned(), catch_up.place().to_owned());
    assert_eq!(log.peers(), Ok(vec![noted]));
}

#[test]
fn replicas_that_have_given_nothing_are_asked_less_and_less() {
    let error = CopyError::Unchecked { commands: 1 };
    let error = CatchUpError::NoCopy(vec![("one:1".to_owned(), error)]);
    let mut again = PEERS_AGAIN;
    let waits: Vec<u64> = (0..8).map(|_| error.wait(&mut again).as_secs()).collect();
    assert_eq!(waits, [5, 10, 20, 40, 80, 160, 300, 300]);
    assert_eq!(
        CatchUpError::NoCopy(Vec::new()).wait(&mut again),
        PEERS_AGAIN
    );
}

#[test]
fn texts_name_the_directory() {
    let error = CatchUpError::Directory {
        place: PathBuf::from("/srv/exchange"),
        source: io::Error::other("no room"),
    };
    let text = "/srv/exchange: a copy cannot be put there: no room";
    assert_eq!(error.to_string(), text);
}
