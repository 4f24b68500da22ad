//! Snapshots that are damaged: whether that is seen in time, and what can still be opened.

use thalweg_exchange::Rules;
use thalweg_exchange::durable::{
    Exchange, History, OpenError, Options, SimDisk, Storage, SyncMode,
};
use thalweg_exchange::snapshot::state_hash;
use thalweg_journal::{Journal, Lsn, Reader};

use crate::durable::snapshots::{here, made, name, reopened, snapshots, trade, with_snapshots};
use crate::durable::world::{inline, market, open};

/// Changes a byte behind the header of a snapshot.
fn damage(disk: &SimDisk, commands: u64) {
    let mut bytes = disk.contents(&name(commands)).expect("it is there");
    bytes[200] ^= 1;
    disk.put(&name(commands), bytes);
}

#[test]
fn where_no_snapshot_is_whole_the_whole_journal_is_executed_if_it_gives_their_digests() {
    let mut long = here(2);
    long.journal = long.journal.segment_bytes(1 << 20);
    let (disk, hash) = made(long);
    damage(&disk, 52);
    damage(&disk, 102);
    let other = Options {
        rules: Rules::REFERENCE,
        ..here(2)
    };
    let opened = Exchange::open_in(disk.clone(), other, |_| ()).map(drop);
    let refused = opened.expect_err("other rules");
    assert!(
        matches!(refused, OpenError::OtherRules { commands: 52, .. }),
        "{refused}"
    );
    let (recovered_hash, recovered) = reopened(&disk, 2).expect("it opens");
    assert_eq!((recovered_hash, recovered.replayed), (hash, 152));
    assert!(recovered.snapshot.is_none());
    assert_eq!(recovered.skipped.len(), 2);
    assert_eq!(snapshots(&disk), [name(152)]);
}

#[test]
fn a_snapshot_that_was_damaged_meanwhile_does_not_count_as_kept() {
    let (disk, hash) = with_snapshots(2);
    let (exchange, recovered) = Exchange::open_in(disk.clone(), here(2), |_| ()).expect("opens");
    assert!(recovered.skipped.is_empty());
    damage(&disk, 102);
    exchange.close().expect("it ends");
    assert_eq!(snapshots(&disk), [name(52), name(152)]);

    let (exchange, recovered) = Exchange::open_in(disk.clone(), here(2), |_| ()).expect("opens");
    assert_eq!(recovered.replayed, 0);
    damage(&disk, 152);
    exchange.close().expect("it ends");
    let (recovered_hash, recovered) = reopened(&disk, 2).expect("it opens");
    assert_eq!((recovered_hash, recovered.replayed), (hash, 0));
    assert!(recovered.skipped.is_empty(), "it was written again");
}

#[test]
fn a_snapshot_within_a_block_is_compared_and_the_rest_of_the_block_executed() {
    let mut long = here(2);
    long.journal = long.journal.segment_bytes(1 << 20);
    let (disk, _) = made(long);
    // Equal commands in one block.
    let one = SimDisk::new();
    let number = reopened(&disk, 2).expect("it opens").1.snapshot;
    let number = number.expect("there is one").journal;
    let options = here(2).journal.journal_number(number);
    let mut journal = Journal::<[u8], _>::open_in(one.clone(), options).expect("it opens");
    let mut reader = Reader::open_in(disk.clone(), Lsn::ZERO).expect("it opens");
    while let Some(block) = reader.next_block().expect("it is whole") {
        for (_, record) in block.bytes() {
            journal.append_bytes(record).expect("there is room");
        }
    }
    let _ = journal.commit().expect("the disk is well");
    drop(journal);
    for commands in [102, 152] {
        let bytes = disk.contents(&name(commands)).expect("it is there");
        one.put(&name(commands), bytes);
    }
    let mut exchange = open(one.clone(), here(2)).0;
    trade(&mut exchange, 200..210);
    drop(exchange);
    let mut history = History::open_in(one).expect("it opens");
    let mut sequences = Vec::new();
    while history.step(|recorded| sequences.push(recorded.outcome.sequence)) {}
    assert_eq!(history.wrong().len(), 0, "{:?}", history.wrong());
    assert!(sequences.into_iter().eq(102..162));
    assert_eq!((history.snapshots(), history.number()), (2, 162));
}

/// A journal of more than four megabytes is read by a thread of its own.
#[test]
fn a_long_journal_gives_the_same_state_and_is_refused_where_it_is_wrong() {
    let mut options = here(2);
    options.sync = SyncMode::Never;
    options.snapshot.every_bytes = u64::MAX;
    options.journal = options.journal.segment_bytes(16 << 20);
    let disk = SimDisk::new();
    let (mut exchange, ..) = open(disk.clone(), options.clone());
    market(&mut exchange);
    trade(&mut exchange, 1..60_000);
    let finished = exchange.close().expect("it ends");
    let hash = state_hash(&finished.service.state);
    disk.remove(&name(finished.commands))
        .expect("it was written");
    let progress = &mut |_, _| ();
    let opened = Exchange::open_showing(disk.clone(), options.clone(), |_| (), progress);
    let (exchange, recovered) = opened.expect("it opens");
    assert_eq!(recovered.replayed, finished.commands);
    let again = exchange.close().expect("it ends");
    assert_eq!(
        (state_hash(&again.service.state), again.digest),
        (hash, finished.digest)
    );

    // A command that comes twice, near the beginning: the thread is far ahead of it.
    let twice = SimDisk::new();
    let first = disk.contents(&name(0)).expect("it is there");
    twice.put(&name(0), first);
    let number = recovered.snapshot.expect("it has the rules").journal;
    let journal = options.journal.clone().journal_number(number);
    let mut journal = Journal::<[u8], _>::open_in(twice.clone(), journal).expect("it opens");
    let mut reader = Reader::open_in(disk, Lsn::ZERO).expect("it opens");
    while let Some(block) = reader.next_block().expect("it is whole") {
        for (lsn, record) in block.bytes() {
            let times = if lsn.number() == 500 { 2 } else { 1 };
            (0..times).for_each(|_| _ = journal.append_bytes(record).expect("there is room"));
        }
    }
    let _ = journal.commit().expect("the disk is well");
    drop(journal);
    let refused = Exchange::open_in(twice, options, |_| ()).map(drop);
    let refused = refused.expect_err("one is there twice");
    assert!(
        matches!(&refused, OpenError::Record { lsn, .. } if lsn.number() == 501),
        "{refused}"
    );
}

#[test]
fn memory_for_a_snapshot_is_that_of_its_header_not_of_its_file() {
    let directory = thalweg_testkit::Scratch::new("long");
    let (mut exchange, _) = Exchange::open(&directory, inline(), |_| ()).expect("it opens");
    market(&mut exchange);
    exchange.close().expect("it ends");
    let long = std::fs::File::create(directory.join(name(1))).expect("a file");
    // No memory has so much.
    long.set_len(1 << 42).expect("a file with a hole");
    std::fs::remove_file(directory.join(name(2))).expect("it is there");
    let (_, recovered) = Exchange::open(&directory, inline(), |_| ()).expect("it opens");
    assert_eq!((recovered.replayed, recovered.skipped.len()), (2, 1));
}
