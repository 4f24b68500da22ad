//! The exchange's behaviour where the system or the disk refuses something, and where a session is
//! full.

use std::time::Duration;

use thalweg_exchange::Command;
use thalweg_exchange::durable::{
    Exchange, ExchangeError, Options, SessionLimits, SimDisk, Submission, SubmitError,
};
use thalweg_exchange::session::Refusal;
use thalweg_journal::{Fault, Operation};

use crate::durable::world::{by, inline, open};

/// Submits until one is not taken.
fn until_refused(exchange: &mut Exchange<SimDisk>) -> SubmitError {
    (1..=9_000)
        .find_map(|sequence| {
            let by = by(sequence as i64 % 8, sequence);
            exchange.submit(by, &Command::Nop, 0).err()
        })
        .expect("segments are full sooner")
}

#[test]
fn a_lack_of_files_is_reported_as_such_and_passes() {
    let disk = SimDisk::new();
    let patient = Options {
        room_pause: Duration::from_millis(1),
        ..inline()
    };
    let mut exchange = open(disk.clone(), patient).0;
    (0..60).for_each(|_| disk.fail(Operation::Open, 0, Fault::NoFiles));
    let refused = until_refused(&mut exchange);
    assert!(
        matches!(refused, SubmitError::Refused(Refusal::Resources)),
        "{refused}"
    );
    exchange.drain().expect("there are files in the end");
    exchange.close().expect("it ends");
}

#[test]
fn a_segment_that_cannot_be_made_stops_the_exchange() {
    for (operation, fault) in [
        (Operation::Open, Fault::Io),
        (Operation::Allocate, Fault::Io),
        (Operation::Rename, Fault::ReadOnly),
    ] {
        let disk = SimDisk::new();
        let mut exchange = open(disk.clone(), inline()).0;
        disk.fail(operation, 0, fault);
        let stopped = until_refused(&mut exchange);
        assert!(
            matches!(&stopped, SubmitError::Failed(ExchangeError::Journal(_))),
            "{operation:?}: {stopped}"
        );
    }
}

#[test]
fn commands_together_are_taken_as_those_one_by_one() {
    for answers_kept in [1, 3, 64] {
        let sessions = SessionLimits {
            answers_kept,
            ..SessionLimits::default()
        };
        let few = Options {
            sessions,
            ..inline()
        };
        let mut exchange = open(SimDisk::new(), few).0;
        let requests: Vec<Submission<'_>> = (1..=200)
            .map(|sequence| Submission {
                origin: by(1, sequence),
                command: &Command::Nop,
                tag: 0,
            })
            .collect();
        let mut taken = 0;
        exchange.submit_many(requests, |at, admitted| {
            admitted.unwrap_or_else(|error| panic!("{answers_kept}: {at}: {error}"));
            taken += 1;
        });
        assert_eq!(taken, 200);
        exchange.drain().expect("it goes on");
    }
}
