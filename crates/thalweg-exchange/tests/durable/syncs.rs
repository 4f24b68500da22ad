//! How often the disk is asked, and what is counted of it.

use std::time::Instant;

use thalweg_exchange::Command;
use thalweg_exchange::durable::{Options, SimDisk, Submission, SyncMode};

use crate::durable::world::{by, held, inline, open};

#[test]
fn one_commit_is_for_all_that_came_meanwhile_and_counts_as_one() {
    let (options, hold) = held();
    let (mut exchange, ..) = open(SimDisk::new(), options);
    exchange.submit(by(1, 1), &Command::Nop, 0).expect("taken");
    hold.wait();
    for sequence in 2..=300 {
        let taken = exchange.submit(by(1, sequence), &Command::Nop, 0);
        taken.expect("taken");
    }
    hold.release();
    exchange.drain().expect("it goes on");
    let journal = exchange.stats().expect("it runs").journal;
    assert_eq!((journal.commits, journal.group.max()), (2, 299));
    exchange.close().expect("it ends");
}

#[test]
fn commands_together_have_one_commit_where_the_caller_waits_for_it() {
    let (mut exchange, ..) = open(SimDisk::new(), inline());
    let requests: Vec<Submission<'_>> = (1..=64)
        .map(|sequence| Submission {
            origin: by(1, sequence),
            command: &Command::Nop,
            tag: 0,
        })
        .collect();
    exchange.submit_many(requests, |_, taken| assert!(taken.is_ok()));
    let journal = exchange.stats().expect("it runs").journal;
    assert_eq!((journal.commits, journal.group.max()), (1, 64));
}

#[test]
fn an_owner_who_is_often_idle_does_not_flush_each_time() {
    let disk = SimDisk::new();
    let unsynced = Options {
        sync: SyncMode::Never,
        ..inline()
    };
    let (mut exchange, ..) = open(disk.clone(), unsynced);
    let (before, began) = (disk.operations(), Instant::now());
    for sequence in 1..=1_000 {
        let taken = exchange.submit(by(1, sequence), &Command::Nop, 0);
        taken.expect("taken");
        exchange.idle().expect("it goes on");
    }
    // A flush may begin a segment, and takes some operations then.
    let operations_max = 8 * (1 + began.elapsed().as_millis() as u64 / 5);
    let operations = disk.operations() - before;
    assert!(
        (1..=operations_max).contains(&operations),
        "{operations} operations, {operations_max} at most"
    );
    exchange.close().expect("it ends");
}
