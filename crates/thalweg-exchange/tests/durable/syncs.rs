//! How often the disk is asked, and what is counted of it.

use std::sync::mpsc::channel;
use std::time::Instant;

use thalweg::pipeline::Placement;
use thalweg_exchange::Command;
use thalweg_exchange::durable::{Exchange, Options, Published, SimDisk, SyncMode};

use crate::durable::world::{by, inline, open, options};

#[test]
fn one_commit_is_for_all_that_came_meanwhile_and_counts_as_one() {
    let (begun, hears) = channel();
    let (goes_on, may_go_on) = channel::<()>();
    let options = options(Placement::caller_and_threads(1, 1));
    let publish = move |published: Published<'_>| {
        if let Published::Outcome(executed) = published
            && executed.outcome.sequence == 0
        {
            begun.send(()).expect("the test waits");
            may_go_on.recv().expect("the test says so");
        }
    };
    let opened = Exchange::open_in(SimDisk::new(), options, publish);
    let (mut exchange, _) = opened.expect("the disk is empty");
    let mut submit = |sequence| {
        let taken = exchange.submit(by(1, sequence), &Command::Nop, 0);
        taken.expect("taken");
    };
    submit(1);
    hears.recv().expect("it is published");
    (2..=300).for_each(&mut submit);
    goes_on.send(()).expect("it waits");
    exchange.drain().expect("it goes on");
    let journal = exchange.stats().expect("it runs").journal;
    assert_eq!((journal.commits, journal.group.max()), (2, 299));
    exchange.close().expect("it ends");
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
