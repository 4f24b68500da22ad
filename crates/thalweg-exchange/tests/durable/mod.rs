//! A durable exchange from outside: answers after a restart, repeats, resumed reports, full disks,
//! failed syncs; on a simulated disk and in a directory.

mod damaged;
mod golden;
mod shortage;
mod snapshots;
mod syncs;
mod world;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use thalweg::pipeline::Placement;
use thalweg_exchange::durable::{
    Exchange, ExchangeError, OpenError, Options, Origin, Published, SessionLimits, SimDisk,
    Submission, SubmitError, SubmitOutcome, SyncMode,
};
use thalweg_exchange::service::Query;
use thalweg_exchange::session::{ClientSequence, Refusal, ReportNumber, Role, SessionKey};
use thalweg_exchange::{Action, Command, ResultCode, UserId};
use thalweg_journal::{Fault, Operation};

use world::{Output, by, held, inline, key, market, open, options, order, refusal};

const DONE: ResultCode = ResultCode::Success;

#[test]
fn what_was_answered_is_there_after_a_restart_and_repeats_have_their_first_answer() {
    for placement in [
        Placement::inline(),
        Placement::caller_and_threads(1, 1),
        Placement::threads(2),
    ] {
        let disk = SimDisk::new();
        let (mut exchange, recovered, recorder) = open(disk.clone(), options(placement.clone()));
        assert_eq!(recovered.commands, 0);
        market(&mut exchange);
        let sell = order(1, 7, Action::Ask);
        let buy = order(2, 7, Action::Bid);
        exchange.submit(by(1, 5), &sell, 11).expect("taken");
        exchange.submit(by(2, 1), &buy, 12).expect("taken");
        exchange.query(Query::User(UserId(1)), 13).expect("asked");
        exchange.drain().expect("it goes on");
        let trade = Output::Outcome(3, 12, DONE, vec![(2, 1), (2, 2), (1, 2)]);
        let rest = Output::Outcome(2, 11, DONE, vec![(1, 1)]);
        let outputs = recorder.take();
        assert_eq!(
            outputs[2..],
            [rest, trade, Output::Answer(13)],
            "{placement}"
        );
        drop(exchange);
        disk.restart(1);

        let (mut exchange, recovered, recorder) = open(disk, options(placement));
        assert_eq!((recovered.commands, recovered.replayed), (4, 4));
        let again = exchange.submit(by(1, 5), &sell, 0).expect("known");
        assert!(matches!(again, SubmitOutcome::Repeat(first) if first.number == 2));
        assert_eq!(
            refusal(&mut exchange, by(1, 5), &buy),
            Refusal::SequenceReused
        );
        assert_eq!(
            refusal(&mut exchange, by(1, 4), &sell),
            Refusal::NotExecuted
        );
        let reports = exchange.reports();
        assert_eq!(reports.session(key(1)).last_executed, ClientSequence(5));
        let mut frames = Vec::new();
        let resumed = reports.resume(UserId(1), ReportNumber(0), &mut frames);
        assert_eq!(
            (resumed.first, resumed.next),
            (ReportNumber(1), ReportNumber(3))
        );
        assert_eq!(frames.len(), 160);
        exchange
            .submit(by(1, 6), &order(1, 8, Action::Ask), 21)
            .expect("new");
        let finished = exchange.close().expect("it ends");
        assert_eq!(finished.commands, 5);
        assert_eq!(
            recorder.take(),
            [Output::Outcome(4, 21, DONE, vec![(1, 3)])]
        );
    }
}

#[test]
fn the_digest_goes_on_as_if_nothing_had_happened() {
    let run = |restarts: bool| {
        let disk = SimDisk::new();
        let (mut exchange, ..) = open(disk.clone(), inline());
        market(&mut exchange);
        for sequence in 1..=100 {
            let side = if sequence % 2 == 0 {
                Action::Bid
            } else {
                Action::Ask
            };
            let command = order(1 + sequence % 3, sequence, side);
            exchange
                .submit(by(1, sequence as u64), &command, 0)
                .expect("taken");
            if restarts && sequence % 9 == 0 {
                drop(exchange);
                disk.restart(sequence as u64);
                let opened = open(disk.clone(), inline());
                assert_eq!(opened.1.commands, 2 + sequence as u64);
                exchange = opened.0;
            }
        }
        let finished = exchange.close().expect("it ends");
        finished.digest
    };
    assert_eq!(run(true), run(false));
}

#[test]
fn commands_in_flight_are_known_and_bounded() {
    let (held, hold) = held();
    let options = Options {
        sessions: SessionLimits {
            answers_kept: 3,
            ..SessionLimits::default()
        },
        ..held
    };
    let (mut exchange, _, recorder) = open(SimDisk::new(), options);
    exchange
        .submit(by(3, 1), &Command::Nop, 1)
        .expect("it is the first");
    hold.wait();
    for (number, sequence) in (1..).zip([2, 4, 5]) {
        let admitted = exchange.submit(by(1, sequence), &Command::Nop, sequence);
        assert_eq!(admitted.expect("taken"), SubmitOutcome::New { number });
    }
    let again = exchange.submit(by(1, 5), &Command::Nop, 9).expect("known");
    assert_eq!(again, SubmitOutcome::Pending { number: 3 });
    assert_eq!(
        refusal(&mut exchange, by(1, 5), &Command::Reset),
        Refusal::SequenceReused
    );
    assert_eq!(
        refusal(&mut exchange, by(1, 3), &Command::Nop),
        Refusal::NotExecuted
    );
    let limit = Refusal::InFlight { limit: 3 };
    assert_eq!(refusal(&mut exchange, by(1, 6), &Command::Nop), limit);
    exchange
        .submit(by(2, 1), &Command::Nop, 6)
        .expect("another session");
    hold.release();
    exchange.drain().expect("it goes on");
    let tags = recorder.take().into_iter().map(|output| match output {
        Output::Outcome(_, tag, ..) => tag,
        other => panic!("{other:?}"),
    });
    assert_eq!(tags.collect::<Vec<_>>(), [1, 2, 4, 5, 6]);
    let admitted = exchange.submit(by(1, 6), &Command::Nop, 0);
    assert!(matches!(admitted, Ok(SubmitOutcome::New { number: 5 })));
    exchange.close().expect("it ends");
}

#[test]
fn sessions_are_bounded_and_readers_send_nothing() {
    let sessions = SessionLimits {
        sessions_per_user: 2,
        sessions_max: 2,
        ..SessionLimits::default()
    };
    let bounded = Options {
        sessions,
        ..inline()
    };
    let (mut exchange, ..) = open(SimDisk::new(), bounded);
    let first = |key| Origin::Session {
        key,
        sequence: ClientSequence(1),
    };
    let limit = Refusal::Sessions { limit: 2 };
    let third_of_user = SessionKey {
        number: 2,
        ..key(1)
    };
    assert_eq!(
        refusal(&mut exchange, first(third_of_user), &Command::Nop),
        limit
    );
    let reader = SessionKey {
        role: Role::Read,
        ..key(1)
    };
    assert_eq!(
        refusal(&mut exchange, first(reader), &Command::Nop),
        Refusal::Role
    );
    for holder in [1, 2] {
        exchange
            .submit(by(holder, 1), &Command::Nop, 0)
            .expect("a session");
    }
    assert_eq!(refusal(&mut exchange, by(3, 1), &Command::Nop), limit);
    exchange
        .submit(by(1, 2), &Command::Nop, 0)
        .expect("it is there");
    let zero = exchange.submit(by(1, 0), &Command::Nop, 0);
    assert!(matches!(zero, Err(SubmitError::SequenceZero)));
}

#[test]
fn a_full_disk_refuses_commands_until_it_has_room_and_loses_none() {
    for placement in [Placement::inline(), Placement::caller_and_threads(1, 1)] {
        let disk = SimDisk::new();
        let (mut exchange, _, recorder) = open(disk.clone(), options(placement.clone()));
        let (mut taken, mut refused) = (0, 0);
        (0..8).for_each(|_| disk.fail(Operation::Allocate, 0, Fault::Full));
        // 32 bytes each: several segments.
        for sequence in 1..=6_000 {
            // The thread that prepares segments may meet the faults before a command does.
            if refused == 0 && sequence % 16 == 0 {
                disk.fail(Operation::Allocate, 0, Fault::Full);
            }
            match exchange.submit(by(sequence as i64 % 8, sequence), &Command::Nop, 0) {
                Ok(SubmitOutcome::New { number }) => {
                    assert_eq!(number, taken);
                    taken += 1;
                }
                Err(SubmitError::Refused(Refusal::DiskFull)) => refused += 1,
                other => panic!("{other:?}"),
            }
        }
        exchange.drain().expect("it goes on");
        assert!(refused > 0, "{placement}");
        let numbers = recorder.take().into_iter().map(|output| match output {
            Output::Outcome(number, ..) => number,
            other => panic!("{other:?}"),
        });
        assert!(numbers.eq(0..taken));
        drop(exchange);
        disk.restart(5);
        assert_eq!(open(disk, options(placement)).1.commands, taken);
    }
}

#[test]
fn a_close_does_not_wait_for_room() {
    let disk = SimDisk::new();
    let patient = Options {
        room_pause: Duration::from_secs(3600),
        ..options(Placement::caller_and_threads(1, 1))
    };
    let (mut exchange, _, recorder) = open(disk.clone(), patient);
    let (mut sequence, mut taken) = (0, 0);
    disk.fail(Operation::Allocate, 0, Fault::Full);
    loop {
        sequence += 1;
        match exchange.submit(by(sequence as i64 % 8, sequence), &Command::Nop, 0) {
            Ok(_) => taken += 1,
            Err(SubmitError::Refused(Refusal::DiskFull)) => break,
            other => panic!("{other:?}"),
        }
    }
    // The lack may be over for what was taken already, or come again.
    let closed = exchange.close();
    let outputs = recorder.take();
    match closed {
        Ok(_) => assert_eq!(outputs.len(), taken, "each is answered"),
        Err(failed) => {
            assert!(matches!(failed, ExchangeError::NoRoom(_)), "{failed}");
            assert!(matches!(outputs.last(), Some(Output::Failed(_))));
        }
    }
}

#[test]
fn a_failed_sync_stops_everything_and_nothing_more_is_answered() {
    let disk = SimDisk::new();
    let (mut exchange, _, recorder) = open(disk.clone(), inline());
    market(&mut exchange);
    recorder.take();
    disk.fail(Operation::WriteNow, 0, Fault::Io);
    let _ = exchange.submit(by(1, 1), &order(1, 1, Action::Ask), 0);
    let failed = exchange.drain().expect_err("it has stopped");
    assert!(matches!(failed, ExchangeError::Journal(_)), "{failed}");
    let outputs = recorder.take();
    assert!(matches!(&outputs[..], [Output::Failed(_)]), "{outputs:?}");
    let refused = exchange.submit(by(1, 2), &Command::Nop, 0);
    assert!(matches!(
        refused,
        Err(SubmitError::Failed(ExchangeError::Journal(_)))
    ));
    assert_eq!(recorder.take(), []);
}

/// Returns who sends commands: the exchange itself, which are looked at one by one, and a session
/// that is known, which are taken in runs.
fn senders() -> [fn(u64) -> Origin; 2] {
    [|_| Origin::Engine, |tag| by(1, tag + 2)]
}

/// Returns this many commands of a sender, whose session is opened.
fn nops(
    exchange: &mut Exchange<SimDisk>,
    sender: fn(u64) -> Origin,
    count: u64,
) -> Vec<Submission<'static>> {
    let opened = exchange.submit(by(1, 1), &Command::Nop, 0);
    opened.expect("it is taken");
    let nop = |tag| Submission {
        origin: sender(tag),
        command: &Command::Nop,
        tag,
    };
    (0..count).map(nop).collect()
}

#[test]
fn a_journal_that_stopped_elsewhere_is_reported_where_answers_are_published() {
    for sender in senders() {
        let disk = SimDisk::new();
        let unsynced = Options {
            sync: SyncMode::Never,
            ..inline()
        };
        let (mut exchange, _, recorder) = open(disk.clone(), unsynced);
        let requests = nops(&mut exchange, sender, 1_000);
        recorder.take();
        disk.fail(Operation::Write, 0, Fault::Io);
        let (mut taken, mut refused) = (0, 0);
        exchange.submit_many(requests, |_, admitted| match admitted {
            Ok(_) => taken += 1,
            Err(SubmitError::Failed(_)) => refused += 1,
            other => panic!("{other:?}"),
        });
        assert!(taken % 64 > 0 && refused > 0, "{taken} and {refused}");
        let outputs = recorder.take();
        assert!(outputs.len() < taken, "some were on their way");
        let failed = outputs
            .iter()
            .filter(|one| matches!(one, Output::Failed(_)));
        assert_eq!(failed.count(), 1, "reported once");
        assert!(matches!(outputs.last(), Some(Output::Failed(_))));
        drop(exchange);
        assert_eq!(recorder.take(), []);
    }
}

/// Commands in the journal are executed, whatever the callback with their results does.
#[test]
fn commands_are_executed_that_were_taken_before_a_callback_panicked() {
    for (at, sender) in [0, 1, 63, 64, 100, 199]
        .into_iter()
        .flat_map(|at| senders().map(|sender| (at, sender)))
    {
        let (mut exchange, _, recorder) = open(SimDisk::new(), inline());
        let requests = nops(&mut exchange, sender, 200);
        let submit = AssertUnwindSafe(|| {
            exchange.submit_many(requests, |number, admitted| {
                assert!(admitted.is_ok());
                if number == at {
                    resume_unwind(Box::new("a callback"));
                }
            });
        });
        assert!(catch_unwind(submit).is_err());
        let next = exchange.submit(Origin::Engine, &Command::Nop, 999);
        assert!(next.is_ok(), "{next:?}");
        drop(exchange);
        assert_eq!(
            recorder.take().len(),
            at + 3,
            "the first, each that was taken, and the next"
        );
    }
}

#[test]
fn a_full_disk_refuses_commands_also_where_the_caller_publishes() {
    let disk = SimDisk::new();
    let patient = Options {
        room_pause: Duration::from_millis(1),
        ..inline()
    };
    let (mut exchange, ..) = open(disk.clone(), patient);
    (0..200).for_each(|_| disk.fail(Operation::Allocate, 0, Fault::Full));
    let refused = (1..).find_map(|sequence| {
        match exchange.submit(by(sequence as i64 % 8, sequence), &Command::Nop, 0) {
            Ok(_) => (sequence > 6_000).then_some(false),
            Err(SubmitError::Refused(Refusal::DiskFull)) => Some(true),
            other => panic!("{other:?}"),
        }
    });
    assert_eq!(refused, Some(true), "it waited until there was room");
    exchange.drain().expect("there is room in the end");
    exchange.close().expect("it ends");
}

#[test]
fn unsynced_answers_do_not_wait_and_are_durable_after_a_close() {
    let disk = SimDisk::new();
    let unsynced = || Options {
        sync: SyncMode::Never,
        ..inline()
    };
    let (mut exchange, _, recorder) = open(disk.clone(), unsynced());
    market(&mut exchange);
    let commits = exchange.stats().expect("it runs").journal.commits;
    assert_eq!((recorder.take().len(), commits), (2, 0));
    exchange.close().expect("it ends");
    disk.restart(3);
    assert_eq!(open(disk, unsynced()).1.commands, 2);
}

#[test]
fn a_directory_of_something_else_is_refused() {
    let directory = thalweg_testkit::Scratch::new("durable");
    std::fs::write(directory.join("thesis.txt"), "mine").expect("a file");
    let refused = Exchange::open(&directory, inline(), |_| ()).expect_err("not ours");
    assert!(matches!(refused, OpenError::NotOurs { .. }));
    let place = directory.display();
    assert_eq!(
        refused.to_string(),
        format!("{place}: no exchange is here, and the directory is not empty: thesis.txt")
    );
    std::fs::remove_file(directory.join("thesis.txt")).expect("it is there");
    let (mut exchange, _) = Exchange::open(&directory, inline(), |_| ()).expect("ours now");
    market(&mut exchange);
    let second = Exchange::open(&directory, inline(), |_| ()).expect_err("in use");
    assert_eq!(
        second.to_string(),
        format!("{place}: another journal writes here")
    );
    exchange.close().expect("it ends");
    let (_, recovered) = Exchange::open(&directory, inline(), |_| ()).expect("ours");
    assert_eq!(recovered.commands, 2);
}

#[test]
fn the_recovered_state_is_published_before_anything_else() {
    let disk = SimDisk::new();
    let published = Arc::new(Mutex::new(Vec::new()));
    let start = || {
        let published = Arc::clone(&published);
        let closure = move |output: Published<'_>| {
            let one = match output {
                Published::Started { state, number } => {
                    Some((number, state.risk.user(UserId(7)).is_some()))
                }
                Published::Outcomes(_) => None,
                _ => return,
            };
            published.lock().expect("no panic").push(one);
        };
        let opened = Exchange::open_in(disk.clone(), inline(), closure);
        opened.expect("it opens").0
    };
    let mut exchange = start();
    let add = Command::AddUser { uid: UserId(7) };
    exchange.submit(Origin::Engine, &add, 0).expect("it runs");
    exchange.close().expect("the disk is well");
    start().close().expect("the disk is well");
    let published = published.lock().expect("no panic").clone();
    assert_eq!(published, [Some((0, false)), None, Some((1, true))]);
}

/// A session may submit its next command when it has an answer.
#[test]
fn a_session_that_waits_for_each_answer_is_never_refused_for_too_many_in_flight() {
    let options = Options {
        sessions: SessionLimits {
            answers_kept: 1,
            ..SessionLimits::default()
        },
        ..options(Placement::caller_and_threads(1, 1))
    };
    let (mut exchange, _, recorder) = open(SimDisk::new(), options);
    for sequence in 1..=200 {
        let submitted = exchange.submit(by(1, sequence), &Command::Nop, 0);
        let number = sequence - 1;
        assert_eq!(
            submitted.expect("it is not one too many"),
            SubmitOutcome::New { number }
        );
        while recorder.take().is_empty() {
            exchange.idle().expect("it goes on");
            std::thread::yield_now();
        }
    }
    exchange.close().expect("it ends");
}
