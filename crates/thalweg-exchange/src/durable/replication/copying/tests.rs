//! Copies, whole and damaged, and against the log.

use std::io;

use thalweg_journal::SimDisk;

use super::*;
use crate::durable::options::Options;
use crate::durable::replication::CommandLog;
use crate::durable::replication::follower_driver::tests::{add, follow_with};
use crate::durable::replication::simulation::SimLog;
use crate::snapshot::state_hash;

const USERS: u64 = 60;
/// The number of users before the snapshot.
const EARLY: u64 = 20;

fn options() -> Options {
    Options {
        journal: crate::durable::JournalOptions::default()
            .segment_bytes(64 << 10)
            .block_bytes_max(32 << 10)
            .in_background(false),
        ..Options::default()
    }
}

/// Has a replica lead until it has added these users, one in a batch.
fn lead(disk: &SimDisk, log: &SimLog, users: std::ops::Range<u64>) -> u64 {
    let mut exchange = follow_with((disk, options()), "first", log);
    users.for_each(|uid| add(&mut exchange, uid as i64));
    let hash = state_hash(exchange.state());
    exchange.close().expect("it ends in order");
    hash
}

/// Returns a log with a batch for each user, the disk of the replica that wrote it, whose snapshots
/// have 0, [`EARLY`] and all commands, and the hash of its state.
fn world() -> (SimLog, SimDisk, u64) {
    let log = SimLog::well();
    let disk = SimDisk::new();
    lead(&disk, &log, 0..EARLY);
    let hash = lead(&disk, &log, EARLY..USERS);
    (log, disk, hash)
}

fn newest(log: &SimLog) -> u64 {
    let tail = log.clone().read(u64::MAX).expect("it answers");
    tail.newest.expect("there are batches")
}

fn sent(disk: &SimDisk, until: u64) -> (Vec<u8>, Copied) {
    let (mut bytes, mut paced) = (Vec::new(), 0);
    let copied = send(disk, until, &mut bytes, |count| paced += count);
    let copied = copied.expect("there is a copy");
    assert_eq!(paced as u64, copied.bytes);
    (bytes, copied)
}

fn received(mut bytes: &[u8]) -> Result<(SimDisk, Copied), CopyError> {
    let disk = SimDisk::new();
    let copied = receive(&disk, &mut bytes, &options())?;
    Ok((disk, copied))
}

#[test]
fn a_copy_goes_on_with_the_log_where_that_begins_behind_it() {
    let (mut log, disk, hash) = world();
    let (bytes, copied) = sent(&disk, newest(&log));
    let expected = (EARLY, USERS - 1);
    assert_eq!((copied.snapshot, copied.commands), expected);
    let (copy, again) = received(&bytes).expect("it is whole");
    assert_eq!(again, copied);
    let claim = log.read(0).expect("it answers").claim.expect("it is there");
    let needs_copy = |commands| gap(&mut log.clone(), commands).expect("it answers");
    assert_eq!([0, 9, USERS].map(needs_copy), [None; 3]);
    let _ = log.clone().delete_before(&claim, EARLY + 7);
    let oldest = Some(EARLY + 7);
    let needed = [0, EARLY, EARLY + 6, EARLY + 7, USERS].map(needs_copy);
    assert_eq!(needed, [oldest, oldest, oldest, None, None]);
    assert_eq!(commands_in(&disk, &options()).expect("it opens"), USERS);
    assert_eq!(
        commands_in(&SimDisk::new(), &options()).expect("it is empty"),
        0
    );
    assert_eq!(
        check(copy.clone(), options(), &mut log).expect("it fits"),
        USERS
    );
    assert_eq!(lead(&copy, &log, 0..0), hash);
}

#[test]
fn a_copy_that_the_log_has_nothing_behind_is_not_relied_on() {
    let (mut log, disk, _) = world();
    let (bytes, copied) = sent(&disk, USERS);
    assert_eq!((copied.snapshot, copied.commands), (USERS, USERS));
    let (copy, _) = received(&bytes).expect("it is whole");
    let error = check(copy, options(), &mut log).expect_err("nothing shows that it is right");
    let text = "the copy has 60 commands, and the log has no batch after them to check it by";
    assert_eq!(error.to_string(), text);
    let error = send(&SimDisk::new(), 9, &mut Vec::new(), |_| ()).expect_err("there is nothing");
    assert_eq!(
        error.to_string(),
        "sim: no whole snapshot has 9 commands or fewer"
    );
}

#[test]
fn a_copy_of_another_history_is_refused() {
    let (mut log, ..) = world();
    let (other_log, other, _) = {
        let log = SimLog::well();
        let disk = SimDisk::new();
        lead(&disk, &log, 100..100 + EARLY);
        let hash = lead(&disk, &log, EARLY..USERS);
        (log, disk, hash)
    };
    let (bytes, _) = sent(&other, newest(&other_log));
    let (copy, _) = received(&bytes).expect("it is whole");
    // Its last commands are those of the log, those before its snapshot are not.
    let error = check(copy, options(), &mut log).expect_err("it is another history");
    assert!(
        matches!(error, CopyError::Halted(HaltReason::Differs { .. })),
        "{error}"
    );
}

#[test]
fn a_stream_that_ends_early_or_was_changed_is_refused() {
    let (_, disk, _) = world();
    let (bytes, _) = sent(&disk, USERS - 1);
    for length in (0..bytes.len()).step_by(7).chain([bytes.len() - 1]) {
        let error = received(&bytes[..length]).expect_err("it ends early");
        assert!(matches!(error, CopyError::Stream(_)), "{length}: {error}");
    }
    for at in (0..bytes.len()).step_by(5) {
        let mut changed = bytes.clone();
        changed[at] ^= 0x40;
        let refused = received(&changed);
        assert!(refused.is_err(), "byte {at}");
    }
}

#[test]
fn a_damaged_snapshot_is_not_sent_while_there_is_another() {
    let (_, disk, _) = world();
    let (bytes, copied) = sent(&disk, USERS);
    assert_eq!(copied.snapshot, USERS);
    let name = format!("snapshot-{USERS:020}.thw");
    let file = thalweg_journal::Storage::open(&disk, &name, true).expect("it is there");
    let syncing = thalweg_journal::WriteSync::Immediate;
    thalweg_journal::StorageFile::write_at(&file, 200, b"damage", syncing).expect("it is well");
    let (again, copied) = sent(&disk, USERS);
    assert_eq!((copied.snapshot, copied.commands), (EARLY, USERS));
    assert_ne!(again, bytes);
}

#[test]
fn a_receiver_that_is_gone_ends_the_sender() {
    struct Gone;
    impl io::Write for Gone {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let (_, disk, _) = world();
    let error = send(&disk, USERS, &mut Gone, |_| ()).expect_err("nothing is taken");
    assert_eq!(error.to_string(), "the stream of the copy: broken pipe");
}
