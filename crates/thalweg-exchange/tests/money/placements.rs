//! Hostile commands do the same under every placement: results, events and state, totals included.

use proptest::prelude::*;
use std::sync::{Arc, Mutex};
use thalweg::pipeline::Placement;
use thalweg_exchange::service::{Service, ServiceOptions};
use thalweg_exchange::{Command, Event, Events, ResultCode, Rules, State, apply};

use crate::money::hostile::everybody;
use crate::money::watch::text;

type Outcomes = Vec<(ResultCode, Vec<Event>)>;

fn serial(rules: Rules, commands: &[Command]) -> (Outcomes, String) {
    let mut state = State::new(rules);
    let mut events = Events::new();
    let outcomes = commands
        .iter()
        .map(|command| (apply(&mut state, command, &mut events), events.to_vec()))
        .collect();
    (outcomes, text(&state))
}

fn served(rules: Rules, commands: &[Command], options: ServiceOptions) -> (Outcomes, String) {
    let outcomes: Arc<Mutex<Outcomes>> = Arc::default();
    let published = Arc::clone(&outcomes);
    let mut service = Service::start(State::new(rules), options, move |outcome| {
        let mut published = published.lock().expect("no panic");
        published.push((outcome.result, outcome.events.to_vec()));
    })
    .expect("good options");
    service.submit_batch(commands, |_| 0).expect("no panic");
    let finished = service.join().expect("no panic");
    let outcomes = std::mem::take(&mut *outcomes.lock().expect("no panic"));
    (outcomes, text(&finished.state))
}

fn placements() -> [ServiceOptions; 4] {
    let options = |placement, is_timed| ServiceOptions {
        capacity: 64,
        placement,
        is_timed,
        ..ServiceOptions::default()
    };
    [
        options(Placement::inline(), false),
        options(Placement::threads(2), false),
        options(Placement::inline(), true),
        options(Placement::caller_and_threads(1, 1), true),
    ]
}

pub(crate) fn same_under_every_placement(commands: &[Command]) -> Result<(), TestCaseError> {
    for rules in [Rules::default(), Rules::REFERENCE] {
        let expected = serial(rules, commands);
        for options in placements() {
            let what = format!("{}, stamped: {}", options.placement, options.is_timed);
            let got = served(rules, commands, options);
            prop_assert!(got == expected, "{what}");
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn hostile_commands_do_the_same_under_every_placement(commands in everybody(250)) {
        same_under_every_placement(&commands)?;
    }
}

#[test]
fn another_rule_set_would_be_noticed() {
    use proptest::strategy::ValueTree;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let is_seen = (0..50).any(|_| {
        let commands = everybody(250)
            .new_tree(&mut runner)
            .expect("a stream")
            .current();
        let [inline, ..] = placements();
        served(Rules::REFERENCE, &commands, inline) != serial(Rules::default(), &commands)
    });
    assert!(is_seen);
}
