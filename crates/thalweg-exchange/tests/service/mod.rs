//! The service gives what `apply` gives, command by command, whatever the placement.

pub(crate) use crate::properties::commands;

pub(crate) use crate::market::recording;

mod allocation;
mod clients;
mod endings;
mod large;
mod left_over;
mod queries;
mod restart;
mod tasks;
mod times;

use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::sync::{Arc, Mutex};

use flate2::bufread::GzDecoder;
use proptest::prelude::*;
use thalweg::pipeline::Placement;
use thalweg_exchange::digest::Digest;
use thalweg_exchange::report::state_text::state_text_hash;
use thalweg_exchange::service::{Service, ServiceOptions};
use thalweg_exchange::stream::LoadStream;
use thalweg_exchange::{Command, Event, Events, ResultCode, Rules, State, apply};
use thalweg_testkit::shared;

use self::commands::{Mix, rules, stream};
use self::recording::recorded;

fn placements() -> Vec<Placement> {
    vec![
        Placement::inline(),
        Placement::auto(),
        Placement::threads(1),
        Placement::threads(2),
        Placement::caller_and_threads(1, 1),
        Placement::explicit()
            .on_caller(["publish"])
            .on_thread(["execute"]),
    ]
}

/// Every command's result and events, the hash of the state after the last, and the digest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Record {
    results: Vec<ResultCode>,
    events: Vec<Event>,
    state: String,
    digest: Digest,
}

fn serial(rules: Rules, commands: &[Command]) -> Record {
    let mut state = State::new(rules);
    let mut events = Events::new();
    let mut record = Record::default();
    for command in commands {
        let result = apply(&mut state, command, &mut events);
        record.digest.fold(command, result, &events);
        record.results.push(result);
        record.events.extend_from_slice(&events);
    }
    record.state = format!("{:?}", state_text_hash(&state));
    record
}

/// Records what a service makes of the commands, `batch` of them at a time.
fn served(rules: Rules, commands: &[Command], placement: Placement, batch: usize) -> Record {
    let options = ServiceOptions {
        capacity: 256,
        placement,
        ..ServiceOptions::default()
    };
    served_as(rules, commands, options, batch)
}

fn served_as(rules: Rules, commands: &[Command], options: ServiceOptions, batch: usize) -> Record {
    let record = Arc::new(Mutex::new(Record::default()));
    let out = Arc::clone(&record);
    let mut service = Service::start(State::new(rules), options, move |outcome| {
        let mut record = out.lock().expect("no panic");
        let digest = &mut record.digest;
        digest.fold(outcome.command, outcome.result, outcome.events);
        assert_eq!(outcome.sequence, record.results.len() as u64);
        assert_eq!(outcome.tag, outcome.sequence * 3);
        record.results.push(outcome.result);
        record.events.extend_from_slice(outcome.events);
    })
    .expect("a valid placement");
    let mut first = 0;
    for piece in commands.chunks(batch) {
        if let [command] = piece {
            service.submit(command, first * 3).expect("no failure");
        } else {
            service
                .submit_batch(piece, |at| (first + at as u64) * 3)
                .expect("no failure");
        }
        first += piece.len() as u64;
    }
    let finished = service.join().expect("no failure");
    let mut record = std::mem::take(&mut *record.lock().expect("no panic"));
    record.state = format!("{:?}", state_text_hash(&finished.state));
    record
}

#[test]
fn recorded_streams_give_the_same_under_every_placement() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let own = ["edge_nomargin.txt.gz", "exchange_20k.txt.gz"].map(|name| data.join(name));
    let others = [
        "edge.txt.gz",
        "edge_quirks.txt.gz",
        "margin_20k.txt.gz",
        "multi_40k.txt.gz",
    ];
    let others = shared("conformance").map(|folder| others.map(|name| folder.join(name)));
    for path in own.into_iter().chain(others.into_iter().flatten()) {
        let name = path.display();
        let (rules, commands) = recorded(&path);
        let expected = serial(rules, &commands);
        for placement in placements() {
            for batch in [1, 64] {
                let record = served(rules, &commands, placement.clone(), batch);
                assert!(record == expected, "{name} {placement} batch {batch}");
            }
        }
    }
}

#[test]
fn the_load_stream_gives_the_same_under_every_placement() {
    let Some(path) = shared("streams/perf_exchange_1m.csv.gz") else {
        return;
    };
    let file = File::open(path).expect("it can be read");
    let stream = LoadStream::read(BufReader::new(GzDecoder::new(BufReader::new(file))))
        .expect("a load stream");
    let mut commands = stream.setup;
    commands.extend(stream.commands.into_iter().take(100_000));
    let expected = serial(Rules::default(), &commands);
    for placement in placements() {
        let record = served(Rules::default(), &commands, placement.clone(), 64);
        assert!(record == expected, "{placement}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(thalweg_testkit::cases(24)))]

    /// Little money and few users: many refusals depend on what was settled just before.
    #[test]
    fn random_streams_give_the_same_under_every_placement(
        commands in stream(Mix::Quirks, 400),
        rules in rules(),
    ) {
        let expected = serial(rules, &commands);
        for placement in placements() {
            let record = served(rules, &commands, placement.clone(), 64);
            prop_assert_eq!(&record.results, &expected.results, "{}", placement);
            prop_assert!(record == expected, "{}", placement);
        }
    }
}

#[test]
fn impossible_options_are_refused_with_the_limit() {
    let start = |options| {
        Service::start(State::default(), options, |_| ())
            .expect_err("an impossible option")
            .to_string()
    };
    let placement = Placement::threads(3);
    assert_eq!(
        start(ServiceOptions::placed(placement)),
        "3 stage threads asked for; 2 stages can use 1 to 2"
    );
    assert_eq!(
        start(ServiceOptions {
            capacity: 0,
            ..ServiceOptions::default()
        }),
        "pipeline capacity 0 is outside 1 to 1073741824 events"
    );
    assert_eq!(
        start(ServiceOptions {
            progress: Some(0),
            ..ServiceOptions::default()
        }),
        "stage \"execute\" has a progress interval of 0 events; 1 or more"
    );
    assert_eq!(
        start(ServiceOptions {
            events: usize::MAX,
            ..ServiceOptions::default()
        }),
        "room for 18446744073709551615 events a slot asked for; 0 to 1048576 are possible"
    );
    assert_eq!(
        start(ServiceOptions {
            first_sequence: (1 << 63) + 1,
            ..ServiceOptions::default()
        }),
        "the first command is to be 9223372036854775809; 0 to 2^63 are possible"
    );
}

#[test]
fn a_publisher_that_panics_is_an_error_and_not_a_hang() {
    for placement in placements() {
        let options = ServiceOptions::placed(placement);
        let mut service = Service::start(State::default(), options, |outcome| {
            assert!(outcome.sequence < 10, "seeded");
        })
        .expect("valid options");
        let stopped = (0..1_000_000).find_map(|_| service.submit(&Command::Nop, 0).err());
        assert!(
            stopped
                .expect("it stops")
                .to_string()
                .contains("\"publish\" panicked: seeded")
        );
        assert_eq!(service.join().expect_err("it has failed").stage, "publish");
    }
}

#[test]
fn a_placement_by_the_names_of_parts_of_execution_is_refused() {
    for name in ["risk", "match", "settle"] {
        let placement = Placement::explicit()
            .on_caller([name])
            .on_thread(["execute", "publish"]);
        let options = ServiceOptions::placed(placement);
        let error = Service::start(State::default(), options, |_| ()).expect_err("no stage");
        let expected = format!(
            "{name:?} is no stage by itself: \"execute\" checks, matches and settles on one thread"
        );
        assert_eq!(error.to_string(), expected);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(thalweg_testkit::cases(24)))]

    /// A service gives the results, events, state and digest of `apply` with every command stamped,
    /// with one in three, and with one in 2²⁰.
    #[test]
    fn stamps_change_nothing(commands in stream(Mix::Quirks, 400), rules in rules()) {
        let expected = serial(rules, &commands);
        for (is_timed, sample_every) in [(true, 512), (false, 3), (false, 1 << 20)] {
            let options = ServiceOptions {
                capacity: 256,
                placement: Placement::inline(),
                is_timed,
                sample_every,
                ..ServiceOptions::default()
            };
            let record = served_as(rules, &commands, options, 64);
            prop_assert!(record == expected, "{is_timed}, one in {sample_every}");
        }
    }
}
