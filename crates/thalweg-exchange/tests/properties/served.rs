//! Commands through a service, under several placements: each gives the results, events, reports
//! and state that `apply` gives.

use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use thalweg::pipeline::Placement;
use thalweg_exchange::execution::{ExecutionReport, ExecutionReports};
use thalweg_exchange::service::{Service, ServiceOptions};
use thalweg_exchange::{Command, Events, ResultCode, Rules, State, apply};

use crate::money::watch::text;

/// The result of each command, its events with how books stand, and its execution reports.
pub(crate) type Answers = Vec<(ResultCode, Events, Vec<ExecutionReport>)>;

/// Returns the answers of `apply`, and the state at the end with its totals.
pub(crate) fn serial(rules: Rules, commands: &[Command]) -> (Answers, String) {
    let (mut state, mut events) = (State::new(rules), Events::new());
    let mut answer = |(sequence, command)| {
        let result = apply(&mut state, command, &mut events);
        let reports = ExecutionReports::new(sequence, command, result, &events);
        (result, events.clone(), reports.collect())
    };
    let answers = (0..).zip(commands).map(&mut answer).collect();
    (answers, text(&state))
}

/// Returns the same of a service.
pub(crate) fn served(
    rules: Rules,
    commands: &[Command],
    options: ServiceOptions,
) -> (Answers, String) {
    let answers: Arc<Mutex<Answers>> = Arc::default();
    let published = Arc::clone(&answers);
    let mut service = Service::start(State::new(rules), options, move |outcome| {
        let answer = (
            outcome.result,
            outcome.events.clone(),
            outcome.reports().collect(),
        );
        published.lock().expect("no panic").push(answer);
    })
    .expect("good options");
    service.submit_batch(commands, |_| 0).expect("no panic");
    let finished = service.join().expect("no panic");
    let answers = std::mem::take(&mut *answers.lock().expect("no panic"));
    (answers, text(&finished.state))
}

fn placed(placement: Placement, is_timed: bool) -> ServiceOptions {
    ServiceOptions {
        capacity: 64,
        is_timed,
        ..ServiceOptions::placed(placement)
    }
}

/// The stages on two threads, with every command stamped or not.
pub(crate) fn on_two_threads() -> Vec<ServiceOptions> {
    [false, true]
        .map(|is_timed| placed(Placement::threads(2), is_timed))
        .into()
}

pub(crate) fn everywhere() -> Vec<ServiceOptions> {
    vec![
        placed(Placement::inline(), false),
        placed(Placement::threads(2), false),
        placed(Placement::inline(), true),
        placed(Placement::caller_and_threads(1, 1), true),
    ]
}

/// Checks that each of these services gives what `apply` gives.
pub(crate) fn same_under(
    placements: Vec<ServiceOptions>,
    rules: Rules,
    commands: &[Command],
) -> Result<(), TestCaseError> {
    let expected = serial(rules, commands);
    for options in placements {
        let what = format!("{}, stamped: {}", options.placement, options.is_timed);
        prop_assert!(served(rules, commands, options) == expected, "{what}");
    }
    Ok(())
}
