//! Snapshots: recovery from the newest whole one, what is kept, what is refused.

use thalweg::pipeline::Placement;
use thalweg_exchange::durable::{
    Exchange, History, OpenError, Options, Recovered, SessionLimits, SimDisk, SnapshotFileError,
    SnapshotOptions, Storage, Submission, SubmitOutcome,
};
use thalweg_exchange::session::ReportNumber;
use thalweg_exchange::snapshot::state_hash;
use thalweg_exchange::{Action, Command, UserId};
use thalweg_journal::{Fault, Lsn, Operation};

use crate::durable::world::{by, inline, market, open, options, order};

/// Snapshots are made by the caller, when they are asked for.
pub(crate) fn here(kept: usize) -> Options {
    let snapshot = SnapshotOptions {
        kept,
        in_background: false,
        ..SnapshotOptions::default()
    };
    Options {
        snapshot,
        ..inline()
    }
}

/// Orders of both sides, some of which trade.
pub(crate) fn trade(exchange: &mut Exchange<SimDisk>, sequences: std::ops::Range<i64>) {
    for sequence in sequences {
        let side = match sequence % 3 {
            0 => Action::Bid,
            _ => Action::Ask,
        };
        let uid = 1 + sequence % 4;
        let command = order(uid, sequence, side);
        let admitted = exchange.submit(by(uid, sequence as u64), &command, 0);
        assert!(
            matches!(admitted, Ok(SubmitOutcome::New { .. })),
            "{admitted:?}"
        );
    }
}

pub(crate) fn snapshots(disk: &SimDisk) -> Vec<String> {
    let mut names = disk.list().expect("it can be read");
    names.retain(|name| name.starts_with("snapshot-"));
    names.sort();
    names
}

pub(crate) fn name(commands: u64) -> String {
    format!("snapshot-{commands:020}.thw")
}

/// An exchange with snapshots after 0, 52 and 102 commands, of which it keeps two, and commands
/// behind them; not closed.
pub(crate) fn with_snapshots(kept: usize) -> (SimDisk, u64) {
    made(here(kept))
}

/// Makes that exchange with other options.
pub(crate) fn made(options: Options) -> (SimDisk, u64) {
    let disk = SimDisk::new();
    let (mut exchange, ..) = open(disk.clone(), options);
    market(&mut exchange);
    for round in 0..3 {
        trade(&mut exchange, 1 + round * 50..51 + round * 50);
        if round < 2 {
            exchange.snapshot_now();
            let stats = exchange.stats().expect("it runs").snapshots;
            assert!(stats.failed.is_none(), "{:?}", stats.failed);
            assert_eq!(
                stats.last.map(|last| last.commands),
                Some(52 + 50 * round as u64)
            );
        }
    }
    drop(exchange);
    let hash = replayed_hash(&disk);
    (disk, hash)
}

/// The state hash of all commands, executed from the first one on.
fn replayed_hash(disk: &SimDisk) -> u64 {
    let (exchange, _) = Exchange::open_in(disk.clone(), here(1 << 10), |_| ()).expect("it opens");
    let directory = disk.clone();
    let finished = exchange.close().expect("it ends");
    // As if it had not been closed.
    directory
        .remove(&name(finished.commands))
        .expect("it was written");
    state_hash(&finished.service.state)
}

pub(crate) fn reopened(disk: &SimDisk, kept: usize) -> Result<(u64, Recovered), OpenError> {
    let (mut exchange, recovered) = Exchange::open_in(disk.clone(), here(kept), |_| ())?;
    // The tables are those of the whole journal.
    let again = exchange
        .submit(by(3, 2), &order(3, 2, Action::Ask), 0)
        .expect("known");
    assert!(
        matches!(again, SubmitOutcome::Repeat(first) if first.number == 3),
        "{again:?}"
    );
    let mut frames = Vec::new();
    let resumed = exchange
        .reports()
        .resume(UserId(1), ReportNumber(0), &mut frames);
    assert_eq!(resumed.gap, None);
    assert!(resumed.next > ReportNumber(30), "{resumed:?}");
    let finished = exchange.close().expect("it ends");
    Ok((state_hash(&finished.service.state), recovered))
}

#[test]
fn recovery_begins_with_the_newest_snapshot_and_old_ones_go() {
    let (disk, hash) = with_snapshots(2);
    assert_eq!(snapshots(&disk), [name(52), name(102)]);
    let (recovered_hash, recovered) = reopened(&disk, 2).expect("it opens");
    assert_eq!(recovered_hash, hash);
    assert_eq!((recovered.commands, recovered.replayed), (152, 50));
    assert_eq!(recovered.snapshot.map(|header| header.commands), Some(102));
    // The last one, of the close.
    assert_eq!(snapshots(&disk), [name(102), name(152)]);
    let (recovered_hash, recovered) = reopened(&disk, 2).expect("it opens");
    assert_eq!((recovered_hash, recovered.replayed), (hash, 0));
    let header = recovered.snapshot.expect("there is one");
    assert_eq!(header.state_hash, hash);
}

#[test]
fn a_damaged_snapshot_is_reported_and_the_one_before_taken() {
    let (disk, hash) = with_snapshots(2);
    let good = disk.contents(&name(102)).expect("it is there");
    let last = good.len() - 1;
    for at in [0, 9, 30, 119, 130, good.len() / 2, last] {
        let mut damaged = good.clone();
        damaged[at] ^= 0x10;
        disk.put(&name(102), damaged);
        let (recovered_hash, recovered) = reopened(&disk, 2).expect("it opens");
        assert_eq!((recovered_hash, recovered.replayed), (hash, 100), "{at}");
        assert_eq!(recovered.skipped.len(), 1);
        assert_eq!(recovered.skipped[0].file, format!("sim/{}", name(102)));
        // It went when the next one was durable.
        assert_eq!(snapshots(&disk), [name(52), name(152)]);
        disk.remove(&name(152)).expect("it is there");
    }
    disk.put(&name(102), good[..good.len() - 1].to_vec());
    let (_, recovered) = reopened(&disk, 2).expect("it opens");
    assert!(matches!(
        recovered.skipped[0].why,
        SnapshotFileError::Length { .. }
    ));
}

#[test]
fn a_whole_snapshot_of_another_version_is_refused() {
    let (disk, _) = with_snapshots(2);
    let mut bytes = disk.contents(&name(102)).expect("it is there");
    bytes[9] = 0x10;
    let sum = thalweg_hash::xxh64(0, &bytes[..120]);
    bytes[120..128].copy_from_slice(&sum.to_le_bytes());
    disk.put(&name(102), bytes);
    let text = reopened(&disk, 2).expect_err("it is refused").to_string();
    let message = "version 4098 of the format; this program knows 2";
    assert_eq!(text, format!("sim/{}: {message}", name(102)));
}

#[test]
fn a_journal_that_lost_its_end_is_refused_though_the_newest_snapshot_is_damaged() {
    let (disk, _) = with_snapshots(2);
    thalweg_journal::truncate(&disk, Some(Lsn::new(81))).expect("commands are blocks");
    let behind = "sim: the journal ends after 80 commands, the newest snapshot has 102";
    assert_eq!(reopened(&disk, 2).expect_err("refused").to_string(), behind);
    let mut damaged = disk.contents(&name(102)).expect("it is there");
    damaged[130] ^= 1;
    disk.put(&name(102), damaged);
    assert_eq!(reopened(&disk, 2).expect_err("refused").to_string(), behind);
}

#[test]
fn a_snapshot_that_failed_is_made_when_it_is_asked_for_again() {
    let disk = SimDisk::new();
    let (mut exchange, ..) = open(disk.clone(), here(2));
    market(&mut exchange);
    disk.fail(Operation::Rename, 0, Fault::Io);
    let failed = |exchange: &Exchange<SimDisk>| {
        let stats = exchange.stats().expect("it runs").snapshots;
        stats.failed.is_some()
    };
    exchange.snapshot_now();
    assert!(failed(&exchange));
    assert_eq!(snapshots(&disk), [name(0)]);
    exchange.snapshot_now();
    assert!(!failed(&exchange));
    assert_eq!(snapshots(&disk), [name(0), name(2)]);
}

#[test]
fn nothing_is_guessed_where_no_snapshot_is_whole() {
    let (disk, _) = with_snapshots(2);
    let journal = |disk: &SimDisk| {
        let names = disk.list().expect("it can be read");
        names
            .into_iter()
            .filter(|name| name.ends_with(".segment"))
            .collect::<Vec<_>>()
    };
    disk.put(&name(52), vec![0; 200]);
    disk.put(&name(102), vec![]);
    let refused = reopened(&disk, 2).expect_err("it is refused").to_string();
    let [first, second] = [52, 102].map(name);
    assert_eq!(
        refused,
        format!(
            "no snapshot is whole; sim/{second}: damaged, passed over: it has 0 bytes instead of \
             136; sim/{first}: damaged, passed over: it does not begin as a snapshot does"
        )
    );
    for snapshot in [first, second] {
        disk.remove(&snapshot).expect("it is there");
    }
    let refused = reopened(&disk, 2).expect_err("it is refused").to_string();
    assert_eq!(
        refused,
        "sim: there is a journal and no snapshot: it is none of an exchange, or its snapshots were \
         removed"
    );

    let (disk, _) = with_snapshots(2);
    for segment in journal(&disk) {
        disk.remove(&segment).expect("it is there");
    }
    let refused = reopened(&disk, 2).expect_err("it is refused").to_string();
    assert_eq!(refused, "sim: there are snapshots and no journal");
}

#[test]
fn a_snapshot_of_another_exchange_is_refused() {
    let (disk, _) = with_snapshots(2);
    let (other, _) = with_snapshots(2);
    disk.put(&name(102), other.contents(&name(102)).expect("it is there"));
    let refused = reopened(&disk, 2).expect_err("it is refused");
    let why = match refused {
        OpenError::Snapshot { why, .. } => why,
        other => panic!("{other}"),
    };
    assert!(matches!(why, SnapshotFileError::OtherJournal { .. }));
}

#[test]
fn the_journal_goes_up_to_the_oldest_snapshot_that_is_kept() {
    for kept in [1, 2, 3] {
        let disk = SimDisk::new();
        let options = || Options {
            service: options(Placement::inline()).service,
            ..here(kept)
        };
        let (mut exchange, ..) = open(disk.clone(), options());
        market(&mut exchange);
        let mut rounds = Vec::new();
        for round in 0..8 {
            trade(&mut exchange, 1 + round * 2_000..2_001 + round * 2_000);
            exchange.snapshot_now();
            rounds.push(2_002 + round as u64 * 2_000);
        }
        let names: Vec<String> = rounds[8 - kept..].iter().map(|of| name(*of)).collect();
        assert_eq!(snapshots(&disk), names);
        drop(exchange);
        let reader = thalweg_journal::Reader::open_in(disk.clone(), thalweg_journal::Lsn::ZERO);
        let first = reader.expect("there is a journal").next().number();
        let oldest = rounds[8 - kept];
        assert!(first <= oldest + 1, "{first}");
        // Segments have 64 KiB, a command 80 bytes or less.
        assert!(first + 1_000 > oldest, "{first} of {oldest}");
    }
}

#[test]
fn a_thread_makes_snapshots_beside_the_exchange() {
    // Few: commands drop answers and reports while they are being copied. Many: each list is copied
    // by itself, with commands in between.
    for (kept, least) in [(32, 500), (1_024, 6_000)] {
        snapshots_beside_the_exchange(kept, least);
    }
}

/// Makes snapshots in the background, of lists with up to `kept` entries, until there are some of
/// more than this number of commands.
fn snapshots_beside_the_exchange(kept: u32, least: u64) {
    let snapshot = SnapshotOptions {
        every_bytes: 20_000,
        kept: 1 << 10,
        ..SnapshotOptions::default()
    };
    let sessions = SessionLimits {
        answers_kept: kept,
        reports_kept: kept,
        ..SessionLimits::default()
    };
    let beside = || Options {
        snapshot,
        sessions,
        ..options(Placement::caller_and_threads(1, 1))
    };
    let disk = SimDisk::new();
    let (mut exchange, ..) = open(disk.clone(), beside());
    market(&mut exchange);
    let mut sequence = 1;
    let made = loop {
        trade(&mut exchange, sequence..sequence + 100);
        sequence += 100;
        exchange.drain().expect("it goes on");
        let stats = exchange.stats().expect("it runs").snapshots;
        assert!(stats.failed.is_none(), "{:?}", stats.failed);
        let last = stats.last.filter(|last| last.commands > least);
        if let Some(last) = last.filter(|_| stats.made >= 3) {
            break last;
        }
        std::thread::yield_now();
    };
    let commands = exchange.number();
    drop(exchange);
    let opened = Exchange::open_in(disk.clone(), beside(), |_| ());
    let (exchange, recovered) = opened.expect("it opens");
    assert_eq!(recovered.commands, commands);
    assert!(recovered.snapshot.expect("there is one").commands >= made.commands);
    drop(exchange);
    // Each is, byte for byte, what the journal gives.
    let mut history = History::open_in(disk).expect("there is an exchange");
    while history.step(|_| ()) {}
    assert!(history.snapshots() >= 3);
    let wrong: Vec<String> = history.wrong().iter().map(ToString::to_string).collect();
    assert!(wrong.is_empty(), "{wrong:?}");
}

/// Commands of a session that is known are taken in runs.
#[test]
fn commands_that_are_taken_together_have_snapshots_made() {
    let disk = SimDisk::new();
    let mut snapshotting = here(8);
    snapshotting.snapshot.every_bytes = 20_000;
    let (mut exchange, ..) = open(disk, snapshotting);
    let mut sequence = 0;
    for _ in 0..20 {
        let requests: Vec<Submission<'_>> = (0..200)
            .map(|tag| {
                sequence += 1;
                Submission {
                    origin: by(1, sequence),
                    command: &Command::Nop,
                    tag,
                }
            })
            .collect();
        exchange.submit_many(requests, |_, taken| assert!(taken.is_ok(), "{taken:?}"));
        exchange.drain().expect("it goes on");
    }
    let stats = exchange.stats().expect("it runs").snapshots;
    assert!(stats.failed.is_none(), "{:?}", stats.failed);
    assert!(stats.made > 0);
}

#[test]
fn snapshots_of_other_limits_are_none_that_differ() {
    let disk = SimDisk::new();
    for (round, answers_kept) in (0..).zip([1024, 2, 1024, 1024]) {
        let mut options = here(8);
        options.sessions.answers_kept = answers_kept;
        let (mut exchange, ..) = open(disk.clone(), options);
        if round == 0 {
            market(&mut exchange);
        }
        trade(&mut exchange, 1 + round * 50..51 + round * 50);
        exchange.drain().expect("it goes on");
        exchange.snapshot_now();
    }
    let mut history = History::open_in(disk).expect("there is an exchange");
    while history.step(|_| ()) {}
    assert_eq!((history.number(), history.snapshots()), (202, 5));
    let wrong: Vec<String> = history.wrong().iter().map(ToString::to_string).collect();
    assert!(wrong.is_empty(), "{wrong:?}");
}
