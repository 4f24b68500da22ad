//! loom models of changes, reads and waits, each with the fault that it must catch. A lost wake-up
//! is a deadlock, which loom reports.

use super::*;
use crate::ring::sync::{AtomicU32, Ordering, fault, models};
use crate::wait::block_at_low_power;
use loom::thread;
// Not the model's, which must not be touched once a model has failed.
use std::sync::Arc;

use Lifecycle::{Draining, Paused, Running, Starting, Stopped};

models! { fault::check;
    a_thread_that_sees_a_state_sees_what_came_before:
        a_reader_sees_what_came_before, ["change", "changed"];
    one_of_two_changes_from_the_same_state_is_made: two_change, ["change_unlocked"];
    a_waiter_is_woken: a_waiter, ["change_unnotified", "dekker"];
    a_state_that_is_left_again_is_not_missed: a_passing_state, ["passing_unseen"];
    a_wait_for_what_never_comes_ends: a_vain_wait, ["change_unnotified"];
}

fn cell(initial: Lifecycle) -> Arc<StateCell> {
    Arc::new(StateCell::new("model", initial))
}

/// Work done before a change is visible to a thread that sees the change, or the one after it,
/// which another thread makes.
fn a_reader_sees_what_came_before() {
    let (state, effect) = (cell(Starting), Arc::new(AtomicU32::new(0)));
    let (theirs, done) = (Arc::clone(&state), Arc::clone(&effect));
    let reading = thread::spawn(move || {
        if theirs.is_within(Lifecycle::OPEN) {
            assert_eq!(done.load(Ordering::Relaxed), 1);
        }
    });
    let theirs = Arc::clone(&state);
    let pausing = thread::spawn(move || theirs.change(Running, Paused, "wait").is_ok());
    effect.store(1, Ordering::Relaxed);
    state
        .change(Starting, Running, "started")
        .expect("it starts");
    reading.join().unwrap();
    let expected = match pausing.join().unwrap() {
        true => Paused,
        false => Running,
    };
    assert_eq!(state.get(), expected);
}

/// Two leave the same state for different ones.
fn two_change() {
    let state = cell(Running);
    let theirs = Arc::clone(&state);
    let other = thread::spawn(move || theirs.change(Running, Draining, "drain").is_ok());
    let paused = state.change(Running, Paused, "pause");
    assert!(other.join().unwrap() != paused.is_ok(), "one of them does");
    if let Err(error) = paused {
        let (of, expected, found, to) = ("model", Running, Draining, Paused);
        let elsewhere = ChangeError::WrongState {
            of,
            expected,
            found,
            to,
        };
        assert_eq!(error, elsewhere);
    }
    assert_eq!(state.changes().len(), 1);
}

/// A change and a version bump beside each other: both are counted, and the state is the new one.
fn a_change_and_a_version_bump() {
    let state = cell(Running);
    let before = state.version();
    let theirs = Arc::clone(&state);
    let other = thread::spawn(move || theirs.bump_version());
    state.change(Running, Paused, "pause").expect("it runs");
    let between = state.version();
    assert!(between != before && between.state() == Paused);
    other.join().unwrap();
    assert_eq!(state.version().number(), 2);
    assert!(state.is(Paused));
}

#[test]
fn a_version_bump_loses_no_change() {
    loom::model(a_change_and_a_version_bump);
}

/// A waiter and a change: it sleeps through nothing.
fn a_waiter() {
    let state = cell(Draining);
    let theirs = Arc::clone(&state);
    let other = thread::spawn(move || theirs.wait_for(Stopped));
    state.change(Draining, Stopped, "empty").expect("it drains");
    assert_eq!(other.join().unwrap(), Ok(()));
}

/// A state that is left again at once: a waiter that began before does not miss it.
fn a_passing_state() {
    let state = cell(Paused);
    let theirs = Arc::clone(&state);
    let looking = state.check_for(Running.into());
    let other = thread::spawn(move || {
        theirs.change(Paused, Running, "go on").expect("paused");
        theirs
            .change(Running, Draining, "the end")
            .expect("running");
    });
    let waited = block_at_low_power(&state.event_count, None, looking);
    assert_eq!(waited, Ok(Ok(())));
    other.join().unwrap();
}

/// A waiter for a state that can never come gets an error by the change that makes it so.
fn a_vain_wait() {
    let state = cell(Paused);
    let theirs = Arc::clone(&state);
    let other = thread::spawn(move || theirs.wait_for(Running));
    state.change(Paused, Draining, "the end").expect("paused");
    let (of, found, wanted) = ("model", Draining, Running.into());
    assert_eq!(
        other.join().unwrap(),
        Err(Unreachable { of, found, wanted })
    );
}
