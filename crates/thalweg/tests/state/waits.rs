//! Threads and tasks that wait for a state.

use std::sync::Arc;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use futures_executor::block_on;
use futures_util::FutureExt;
use thalweg::state::{Lifecycle, StateCell, WaitError};

use super::Lifecycle::{Draining, Paused, Running, Starting, Stopped};
use super::Ring;

#[test]
fn a_state_that_is_there_is_not_waited_for() {
    let cell = StateCell::new("thing", Running);
    assert_eq!(cell.wait_for(Running), Ok(()));
    assert_eq!(cell.wait_for(Lifecycle::RUNNING_OR_ENDING), Ok(()));
    assert_eq!(cell.wait_for_deadline(Running, Instant::now()), Ok(()));
    assert_eq!(block_on(cell.wait_for_async(Lifecycle::OPEN)), Ok(()));
}

/// Threads and tasks wait for each state in turn; the cell lives on when they have all been woken.
#[test]
fn all_waiters_are_notified() {
    const WAITERS: usize = 4;
    let cell = Arc::new(StateCell::new("thing", Starting));
    let meeting = Arc::new(Barrier::new(WAITERS + 1));
    let steps = [Running, Paused, Draining, Stopped];
    let waiters: Vec<_> = (0..WAITERS)
        .map(|number| {
            let (cell, meeting) = (Arc::clone(&cell), Arc::clone(&meeting));
            thread::spawn(move || {
                for step in steps {
                    if number % 2 == 0 {
                        cell.wait_for(step).unwrap();
                    } else {
                        block_on(cell.wait_for_async(step)).unwrap();
                    }
                    assert_eq!(cell.get(), step);
                    meeting.wait();
                }
            })
        })
        .collect();
    for step in steps {
        // Mostly long enough that the others sleep.
        (0..200).for_each(|_| thread::yield_now());
        cell.change_to(step, "a test").unwrap();
        meeting.wait();
    }
    waiters
        .into_iter()
        .for_each(|waiter| waiter.join().unwrap());
}

#[test]
fn a_state_that_is_left_again_counts_from_the_call_on() {
    let cell = StateCell::new("thing", Ring::A);
    cell.change_to(Ring::B, "before").unwrap();
    cell.change_to(Ring::C, "before").unwrap();
    let mut waiting = cell.wait_for_async(Ring::B);
    assert_eq!(
        (&mut waiting).now_or_never(),
        None,
        "it was before the call"
    );
    for step in [Ring::A, Ring::B, Ring::D] {
        cell.change_to(step, "after").unwrap();
    }
    assert_eq!(waiting.now_or_never(), Some(Ok(())));
    let error = cell
        .wait_for_async(Ring::B)
        .now_or_never()
        .unwrap()
        .unwrap_err();
    assert_eq!((error.found, error.wanted), (Ring::D, Ring::B.into()));
}

#[test]
fn a_deadline_ends_a_wait() {
    let cell = StateCell::new("thing", Running);
    let deadline = Instant::now() + Duration::from_millis(5);
    let error = cell
        .wait_for_deadline(Lifecycle::ENDING, deadline)
        .unwrap_err();
    assert!(Instant::now() >= deadline);
    assert!(matches!(error, WaitError::TimedOut { found: Running, .. }));
}

/// One of many threads that would leave a state does, again and again, and the log shows how.
#[test]
fn races_have_one_winner() {
    const THREADS: usize = 4;
    const ROUNDS: usize = 500;
    let cell = Arc::new(StateCell::new("thing", Ring::A).with_log_capacity(THREADS * ROUNDS * 3));
    let threads: Vec<_> = (0..THREADS)
        .map(|_| {
            let cell = Arc::clone(&cell);
            thread::spawn(move || {
                let steps = [(Ring::A, Ring::B), (Ring::B, Ring::C), (Ring::C, Ring::A)];
                let tries = steps.iter().cycle().take(ROUNDS * 3);
                tries
                    .filter(|(from, to)| cell.change(*from, *to, "race").is_ok())
                    .count()
            })
        })
        .collect();
    let won: usize = threads
        .into_iter()
        .map(|thread| thread.join().unwrap())
        .sum();
    let log = cell.changes();
    assert_eq!(log.len(), won);
    assert!(log.first().is_some_and(|first| first.from == Ring::A));
    assert!(log.windows(2).all(|pair| pair[0].to == pair[1].from));
    assert_eq!(log.last().map(|last| last.to), Some(cell.get()));
}
