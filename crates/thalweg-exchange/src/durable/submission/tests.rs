//! Commands that are taken in runs are taken as those that are looked at one by one.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use thalweg::pipeline::Placement;
use thalweg_journal::{Fault, JournalOptions, Operation, Reader, SimDisk};

use super::*;
use crate::command::{Action, Place};
use crate::durable::options::{Options, SessionLimits, SyncMode};
use crate::ids::{OrderId, SymbolId, UserId};
use crate::service::ServiceOptions;
use crate::session::Role;

impl<S: Storage> Exchange<S> {
    /// Submits as [`submit_many`](Self::submit_many) does, with all looks for each command.
    fn submit_each<'c>(
        &mut self,
        requests: impl IntoIterator<Item = Submission<'c>>,
        mut admitted: impl FnMut(usize, Result<SubmitOutcome, SubmitError>),
    ) {
        for (at, request) in requests.into_iter().enumerate() {
            if self.in_flight.to_execute() == ROUND {
                self.execute();
                let _ = self.publish();
            }
            let taken = self.admit_behind(request);
            admitted(at, taken);
        }
        self.execute();
        let _ = self.publish();
    }
}

/// A command of a session, and by how much its sequence is above the session's last one.
#[derive(Clone, Copy, Debug)]
struct Asked {
    /// From 6 on, the exchange itself.
    session: usize,
    step: i64,
    command: u8,
}

fn asked() -> impl Strategy<Value = Asked> {
    let step = prop_oneof![20 => Just(1_i64), 1 => -3..=3_i64, 1 => Just(-1_000)];
    let session = prop_oneof![6 => 0..2_usize, 1 => 0..7_usize];
    (session, step, 0..8_u8).prop_map(|(session, step, command)| Asked {
        session,
        step,
        command,
    })
}

const KEYS: [SessionKey; 6] = [
    SessionKey::new(Role::Trade, 1, 0),
    SessionKey::new(Role::Trade, 2, 0),
    SessionKey::new(Role::Trade, -3, 0),
    SessionKey::new(Role::Admin, 1, 0),
    SessionKey::new(Role::Read, 1, 0),
    SessionKey::new(Role::Trade, 1, 7),
];

/// Returns the requests, with sequences below 0 as 0.
fn requests(all: &[Asked]) -> Vec<(Origin, Command)> {
    let mut last = [0; KEYS.len()];
    let request = |asked: &Asked| {
        let origin = match KEYS.get(asked.session) {
            None => Origin::Engine,
            Some(key) => {
                let last = &mut last[asked.session];
                let sequence = *last + asked.step;
                *last = sequence.max(*last);
                Origin::Session {
                    key: *key,
                    sequence: ClientSequence(sequence.max(0) as u64),
                }
            }
        };
        let (user, id) = (UserId(1 + i64::from(asked.command % 2)), OrderId(7));
        let command = match asked.command {
            0 => Command::AddUser { uid: user },
            1 => Command::Nop,
            2..5 => Command::cancel(user, SymbolId(1), id),
            5 => Command::AddAccounts(Arc::new([])),
            _ => Command::Place(Place::limit((user, id), SymbolId(1), Action::Bid, (9, 1))),
        };
        (origin, command)
    };
    all.iter().map(request).collect()
}

/// Submits all in batches of these lengths, and returns what came of it: results, outputs, records.
fn outcome(
    all: &[(Origin, Command)],
    batches: &[usize],
    options: &Options,
    full_at: usize,
    in_runs: bool,
) -> String {
    let disk = SimDisk::new();
    let (mut text, published) = (String::new(), Arc::new(Mutex::new(String::new())));
    let output = Arc::clone(&published);
    let opened = Exchange::open_in(disk.clone(), options.clone(), move |published| {
        let Published::Outcomes(outcomes) = published else {
            return;
        };
        for executed in outcomes {
            let outcome = &executed.outcome;
            let (number, tag, result) = (outcome.sequence, outcome.tag, outcome.result);
            let (origin, reports) = (executed.origin, executed.reports);
            let own = outcome.reports().map(|report| report.owner);
            assert!(own.eq(reports.iter().map(|report| report.owner)));
            let reports: Vec<_> = reports
                .iter()
                .map(|one| (one.number, one.report()))
                .collect();
            let mut output = output.lock().expect("no panic");
            let _ = writeln!(output, "{number} {tag} {result:?} {origin:?} {reports:?}");
        }
    });
    let (mut exchange, _) = opened.expect("it is new");
    let (mut rest, mut lengths) = (all, batches.iter().cycle());
    for number in 0.. {
        if rest.is_empty() {
            break;
        }
        if number == full_at {
            (0..3).for_each(|_| disk.fail(Operation::Allocate, 0, Fault::Full));
        }
        let (batch, others) = rest.split_at(rest.len().min(*lengths.next().expect("a cycle")));
        rest = others;
        let submissions = batch.iter().map(|(origin, command)| Submission {
            origin: *origin,
            command,
            tag: number as u64,
        });
        let note = |at: usize, taken: Result<SubmitOutcome, SubmitError>| {
            let _ = writeln!(text, "{number} {at} {taken:?}");
        };
        match in_runs {
            true => exchange.submit_many(submissions, note),
            false => exchange.submit_each(submissions, note),
        }
    }
    let (owner, digest) = (&exchange.owner, exchange.digest);
    let _ = writeln!(text, "{} {} {digest:?}", owner.number, owner.bytes);
    exchange.drain().expect("there is room again");
    let last = Lsn::new(exchange.number());
    let is_durable = |_| last == Lsn::ZERO || exchange.journal.commit(last).is_ok();
    assert!((0..10).any(is_durable), "there is room again");
    drop(exchange);
    let mut reader = Reader::open_in(disk, Lsn::ZERO).expect("it is there");
    while let Some(block) = reader.next_block().expect("it is whole") {
        for record in block.bytes() {
            let _ = writeln!(text, "{record:?}");
        }
    }
    text + &published.lock().expect("no panic")
}

fn options(answers_kept: u32, sync: SyncMode, capacity: usize) -> Options {
    let service = ServiceOptions {
        capacity,
        ..ServiceOptions::placed(Placement::inline())
    };
    Options {
        service,
        sync,
        room_pause: Duration::ZERO,
        journal: JournalOptions::default()
            .segment_bytes(32 << 10)
            .block_bytes_max(4 << 10)
            // Else another thread may meet the full disk.
            .in_background(false),
        sessions: SessionLimits {
            answers_kept,
            sessions_per_user: 4,
            sessions_max: 4,
            ..SessionLimits::default()
        },
        ..Options::default()
    }
}

proptest! {
    #[test]
    fn commands_are_refused_in_runs_as_they_are_one_by_one(
        all in vec(asked(), 1..400),
        batches in vec(1..150_usize, 1..6),
        answers_kept in prop_oneof![Just(2_u32), Just(40), Just(1_024)],
        sync in prop_oneof![Just(SyncMode::Never), Just(SyncMode::Always)],
        capacity in prop_oneof![Just(16_usize), Just(64), Just(1_024)],
        full_at in prop_oneof![Just(usize::MAX), 0..3_usize],
    ) {
        let (all, options) = (requests(&all), options(answers_kept, sync, capacity));
        let [one_by_one, in_runs] =
            [false, true].map(|in_runs| outcome(&all, &batches, &options, full_at, in_runs));
        prop_assert_eq!(one_by_one, in_runs);
    }
}

/// The third of a run is refused, a later one comes a second time, and a third one is a repetition
/// with another command.
#[test]
fn a_run_goes_on_behind_what_is_refused() {
    let steps = [1, 1, -1_000, 1, -1, 0, 1, 1].into_iter();
    let asked = |(step, command)| Asked {
        session: 0,
        step,
        command,
    };
    let commands = [1, 1, 1, 1, 1, 2, 1, 1];
    let all: Vec<Asked> = steps.zip(commands).map(asked).collect();
    let all = requests(&all);
    let options = options(1_024, SyncMode::Never, 64);
    let text = outcome(&all, &[8], &options, usize::MAX, true);
    let mut results: Vec<&str> = text.lines().take(8).collect();
    let results = results.iter_mut().map(|line| &line[4..]);
    let expected = [
        "Ok(New { number: 0 })",
        "Ok(New { number: 1 })",
        "Err(SequenceZero)",
        "Ok(New { number: 2 })",
        "Ok(Pending { number: 1 })",
        "Err(Refused(SequenceReused))",
        "Ok(New { number: 3 })",
        "Ok(New { number: 4 })",
    ];
    assert_eq!(results.collect::<Vec<_>>(), expected);
}
