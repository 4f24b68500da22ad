//! The texts of errors.

use std::time::Instant;

use thalweg::state::{StateCell, StateSet};

use super::Lifecycle::{self, Draining, Paused, Running, Starting, Stopped};

#[test]
fn changes_that_are_refused() {
    let cell = StateCell::new("bus", Draining);
    for (from, to, text) in [
        (
            Running,
            Starting,
            "the bus cannot change from running to starting: from running it may change to \
             paused, draining or stopped",
        ),
        (
            Draining,
            Running,
            "the bus cannot change from draining to running: from draining it may change to \
             stopped",
        ),
        (
            Stopped,
            Stopped,
            "the bus cannot change from stopped to stopped: from stopped it may change to nothing",
        ),
        (
            Running,
            Paused,
            "the bus is draining, not running: it did not change to paused",
        ),
    ] {
        let error = cell.change(from, to, "a test").unwrap_err();
        assert_eq!(error.to_string(), text);
    }
    let error = cell.change_to(Paused, "a test").unwrap_err();
    assert_eq!(
        error.to_string(),
        "the bus cannot change from draining to paused: from draining it may change to stopped"
    );
    assert_eq!(cell.changes(), []);
}

#[test]
fn waits_that_end_without_it() {
    let cell = StateCell::new("bus", Draining);
    let error = cell.wait_for(Lifecycle::OPEN).unwrap_err();
    let text = "the bus is draining and will never be running or paused: from draining it gets to \
                stopped";
    assert_eq!(error.to_string(), text);
    let now = Instant::now();
    let error = cell.wait_for_deadline(Running, now).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the bus is draining and will never be running: from draining it gets to stopped"
    );
    let error = cell.wait_for_deadline(Stopped, now).unwrap_err();
    let text = "the bus was still draining, not stopped, at the deadline";
    assert_eq!(error.to_string(), text);
}

#[test]
fn groups_and_cells() {
    assert_eq!(StateSet::from(Starting).to_string(), "starting");
    assert_eq!(Lifecycle::OPEN.to_string(), "running or paused");
    let cell = StateCell::new("bus", Running);
    assert_eq!(format!("{:?}", cell.view()), "StateView(bus: Running)");
    assert_eq!(cell.name(), "bus");
}
