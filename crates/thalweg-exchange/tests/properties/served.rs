//! Commands through a service on two threads.

use std::sync::{Arc, Mutex};

use thalweg::pipeline::Placement;
use thalweg_exchange::service::{Outcome, Service, ServiceOptions};
use thalweg_exchange::{Command, Rules, State};

/// The state at the end, and what `answer` makes of each outcome. `is_timed`: every command is
/// stamped.
pub(crate) fn served<A: Send + 'static>(
    rules: Rules,
    commands: &[Command],
    is_timed: bool,
    answer: fn(&Outcome<'_>) -> A,
) -> (State, Vec<A>) {
    let answers = Arc::new(Mutex::new(Vec::new()));
    let publish = Arc::clone(&answers);
    let options = ServiceOptions {
        placement: Placement::threads(2),
        capacity: 64,
        is_timed,
        ..ServiceOptions::default()
    };
    let mut service = Service::start(State::new(rules), options, move |outcome| {
        publish.lock().expect("no panic").push(answer(&outcome));
    })
    .expect("the options are good");
    service.submit_batch(commands, |_| 0).expect("it runs");
    let finished = service.join().expect("no stage panics");
    let answers = Arc::into_inner(answers).expect("all stages have ended");
    (finished.state, answers.into_inner().expect("no panic"))
}
