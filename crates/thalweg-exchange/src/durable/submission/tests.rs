//! Commands that are taken in runs are taken as those that are looked at one by one.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use thalweg::pipeline::Placement;
use thalweg_journal::{Fault, JournalOptions, Operation, Reader, SimDisk};

use super::*;
use crate::codec::session::{encode_submit, submit_bytes};
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

/// How commands are submitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    OneByOne,
    InRuns,
    /// As frames, as far as they are taken so.
    AsFrames,
}

/// Submits the first of these commands as frames, as many as are of one session. Returns how many
/// were taken.
fn submit_frames(exchange: &mut Exchange<SimDisk>, batch: &[(Origin, Command)], tag: u64) -> usize {
    let Some(key) = batch[0].0.key() else {
        return 0;
    };
    let (mut frames, mut ends) = (Vec::new(), vec![0]);
    for (origin, command) in batch {
        let Origin::Session { key: of, sequence } = *origin else {
            break;
        };
        if of != key || sequence.0 == 0 {
            break;
        }
        let at = frames.len();
        frames.resize(at + submit_bytes(command), 0);
        encode_submit(sequence, command, &mut frames[at..]).expect("there is room");
        ends.push(frames.len());
    }
    let (count, bytes) = exchange.submit_frames((key, tag), &frames, batch.len());
    assert_eq!(bytes, ends[count]);
    count
}

/// Has an exchange publish everything, and returns the records of its journal.
fn records(mut exchange: Exchange<SimDisk>, disk: SimDisk) -> String {
    let mut text = String::new();
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
    text
}

/// Submits all in batches of these lengths, and returns what came of it: results, outputs, records;
/// and the lengths of the batches, which are shorter where one is submitted as frames in part.
fn outcome(
    all: &[(Origin, Command)],
    batches: &[usize],
    options: &Options,
    full_at: usize,
    way: Way,
) -> (String, Vec<usize>) {
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
            let (origin, frames) = (executed.origin, executed.reports);
            let reports = frames.iter().map(ReportFrame::report);
            assert!(outcome.reports().eq(reports.clone()));
            let reports: Vec<_> = frames.iter().map(|one| one.number).zip(reports).collect();
            let mut output = output.lock().expect("no panic");
            let _ = writeln!(output, "{number} {tag} {result:?} {origin:?} {reports:?}");
        }
    });
    let (mut exchange, _) = opened.expect("it is new");
    let (mut rest, mut lengths, mut submitted) = (all, batches.iter().cycle(), Vec::new());
    for number in 0.. {
        if rest.is_empty() {
            break;
        }
        if number == full_at {
            (0..3).for_each(|_| disk.fail(Operation::Allocate, 0, Fault::Full));
        }
        let mut batch = &rest[..rest.len().min(*lengths.next().expect("a cycle"))];
        let mut note = |at: usize, taken: Result<SubmitOutcome, SubmitError>| {
            let _ = writeln!(text, "{number} {at} {taken:?}");
        };
        if way == Way::AsFrames {
            let before = exchange.number();
            let count = submit_frames(&mut exchange, batch, number as u64);
            let numbers = (before..).take(count).enumerate();
            numbers.for_each(|(at, number)| note(at, Ok(SubmitOutcome::New { number })));
            batch = &batch[..count.max(1)];
            if count > 0 {
                rest = &rest[count..];
                submitted.push(count);
                continue;
            }
        }
        rest = &rest[batch.len()..];
        submitted.push(batch.len());
        let submissions = batch.iter().map(|(origin, command)| Submission {
            origin: *origin,
            command,
            tag: number as u64,
        });
        match way {
            Way::InRuns => exchange.submit_many(submissions, note),
            Way::OneByOne | Way::AsFrames => exchange.submit_each(submissions, note),
        }
    }
    let (owner, digest) = (&exchange.owner, exchange.digest);
    let _ = writeln!(text, "{} {} {digest:?}", owner.number, owner.bytes);
    let text = text + &records(exchange, disk);
    (text + &published.lock().expect("no panic"), submitted)
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
        let [one_by_one, in_runs] = [Way::OneByOne, Way::InRuns]
            .map(|way| outcome(&all, &batches, &options, full_at, way));
        prop_assert_eq!(one_by_one, in_runs);
        let (as_frames, lengths) = outcome(&all, &batches, &options, full_at, Way::AsFrames);
        let (one_by_one, _) = outcome(&all, &lengths, &options, full_at, Way::OneByOne);
        prop_assert_eq!(one_by_one, as_frames);
    }
}

/// Frames are taken up to the first that is none of a trader's own order, or does not come for the
/// first time; more of them than one round has.
#[test]
fn frames_are_taken_up_to_the_first_that_needs_another_look() {
    let asked = |command| Asked {
        session: 0,
        step: 1,
        command,
    };
    // The user of the even ones is that of the session; 1 does nothing, and comes as it is.
    let commands = std::iter::once(1).chain([2; 150]).chain([1, 6, 4, 3, 2]);
    let mut all = requests(&commands.map(asked).collect::<Vec<_>>());
    all.push(all[10].clone());
    let mut options = options(1_024, SyncMode::Never, 64);
    options.journal = options.journal.block_bytes_max(16 << 10);
    let (text, lengths) = outcome(&all, &[1_000], &options, usize::MAX, Way::AsFrames);
    assert_eq!(lengths, [1, 150, 1, 2, 1, 1, 1]);
    assert!(
        text.contains("\n6 0 Ok(Repeat(FirstAnswer { number: 10,"),
        "{text}"
    );
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
    let (text, _) = outcome(&all, &[8], &options, usize::MAX, Way::InRuns);
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

/// Notes each call of an exchange: of outcomes, which commands, which have stamps, and whose
/// reports; of an answer, its tag.
fn calls_noted(calls: &Arc<Mutex<Vec<String>>>) -> impl FnMut(Published<'_>) + Send + 'static {
    let calls = Arc::clone(calls);
    move |published| {
        let mut call = String::new();
        match published {
            Published::Outcomes(outcomes) => {
                for executed in outcomes {
                    let (outcome, reports) = (&executed.outcome, executed.reports);
                    let number = outcome.sequence;
                    assert!(
                        outcome
                            .reports()
                            .eq(reports.iter().map(ReportFrame::report))
                    );
                    let stamped = if outcome.stamps.is_some() { "!" } else { "" };
                    let _ = write!(call, " {number}{stamped}");
                    for report in reports {
                        let _ = write!(call, "+{}", report.number.0);
                    }
                    if let Some(stamps) = outcome.stamps {
                        assert!(stamps.journaled >= stamps.settled && stamps.settled > 0);
                    }
                }
            }
            Published::Answer { tag, .. } => _ = write!(call, "answer {tag}"),
            Published::ChunkEnd => call += "end",
            _ => return,
        }
        calls.lock().expect("no panic").push(call);
    }
}

/// Takes a query without publishing anything.
fn ask<S: Storage>(exchange: &mut Exchange<S>, tag: u64) {
    let number = exchange.owner.number;
    let slot = exchange.in_flight.take();
    (slot.number, slot.tag, slot.taken) = (number, tag, 0);
    slot.question = Some(Box::new(InFlightQuery {
        query: Query::Totals,
        answered: None,
    }));
}

#[test]
fn queries_and_stamped_commands_part_what_is_published_together() {
    let mut options = options(1_024, SyncMode::Never, 64);
    options.service.sample_every = 5;
    let calls = Arc::default();
    let opened = Exchange::open_in(SimDisk::new(), options, calls_noted(&calls));
    let (mut exchange, _) = opened.expect("it is new");
    let cancel = Command::cancel(UserId(1), SymbolId(1), OrderId(7));
    // A slot had a query before it has a command, and the other way around.
    for round in 0..3_u64 {
        (round == 0).then(|| ask(&mut exchange, 90));
        for at in 0..12 {
            let (key, sequence) = (KEYS[0], ClientSequence(1 + 12 * round + at));
            let request = Submission {
                origin: Origin::Session { key, sequence },
                // Every third one has no report.
                command: if at % 3 == 1 { &Command::Nop } else { &cancel },
                tag: at,
            };
            exchange.admit(request, 0).expect("there is room");
            [2, 4, 5].contains(&at).then(|| ask(&mut exchange, at));
        }
        exchange.execute();
        exchange.publish().expect("it goes on");
        assert_eq!(exchange.in_flight.waiting_events(), 0);
    }
    let calls = std::mem::take(&mut *calls.lock().expect("no panic"));
    let expected = [
        "answer 90",
        " 0!+1",
        " 1 2+2",
        "answer 2",
        " 3+3 4",
        "answer 4",
        " 5!+4",
        "answer 5",
        " 6+5 7 8+6 9+7",
        " 10!",
        " 11+8",
        "end",
    ];
    assert_eq!(calls[..expected.len()], expected, "{calls:?}");
    let outcomes = calls.iter().filter(|call| call.starts_with(' '));
    let commands = outcomes.flat_map(|call| call.split_whitespace());
    let number = |command: &str| command.split(['!', '+']).next().map(str::to_owned);
    let numbers = commands.filter_map(number);
    assert!(
        numbers.eq((0..36).map(|number| number.to_string())),
        "{calls:?}"
    );
    let stamped = calls.iter().filter(|call| call.contains('!')).count() as u64;
    assert_eq!(stamped, 8);
    let stats = exchange.stage_times.stats(36);
    assert_eq!(stats.end_to_end_ns.count(), stamped);
}

#[test]
fn an_exchange_whose_closure_panics_amid_a_run_publishes_no_more_outcomes() {
    let calls = Arc::<Mutex<Vec<u64>>>::default();
    let noted = Arc::clone(&calls);
    let publish = move |published: Published<'_>| {
        if let Published::Outcomes(outcomes) = published {
            outcomes.for_each(|executed| {
                let number = executed.outcome.sequence;
                noted.lock().expect("no panic").push(number);
                if number == 5 {
                    resume_unwind(Box::new("a closure"));
                }
            });
        }
    };
    let opened = Exchange::open_in(SimDisk::new(), options(9, SyncMode::Never, 64), publish);
    let (mut exchange, _) = opened.expect("it is new");
    let request = |tag| Submission {
        origin: Origin::Engine,
        command: &Command::Nop,
        tag,
    };
    let submit = AssertUnwindSafe(|| exchange.submit_many((0..10).map(request), |_, _| ()));
    assert!(catch_unwind(submit).is_err());
    for _ in 0..2 {
        let next = exchange.submit(Origin::Engine, &Command::Nop, 0);
        let stopped = matches!(next, Err(SubmitError::Failed(ExchangeError::Panicked)));
        assert!(stopped, "{next:?}");
    }
    assert!(!exchange.reports.is_poisoned(), "the closure has no lock");
    drop(exchange);
    assert_eq!(*calls.lock().expect("no panic"), [0, 1, 2, 3, 4, 5]);
}
