//! Threads and tasks that wait for a state.

use std::sync::Arc;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use futures_executor::block_on;
use futures_util::FutureExt;
use thalweg::state::{Lifecycle, StateCell, WaitError};

use super::Lifecycle::{Draining, Paused, Running, Starting, Stopped};

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
    let cell = StateCell::new("thing", Starting);
    cell.change_to(Running, "before").unwrap();
    cell.change_to(Paused, "before").unwrap();
    let mut waiting = cell.wait_for_async(Running);
    let first = (&mut waiting).now_or_never();
    assert_eq!(first, None, "it was before the call");
    for step in [Running, Paused, Draining] {
        cell.change_to(step, "after").unwrap();
    }
    assert_eq!(waiting.now_or_never(), Some(Ok(())));
    let vain = cell.wait_for_async(Running).now_or_never();
    let error = vain.expect("it never comes").unwrap_err();
    assert_eq!((error.found, error.wanted), (Draining, Running.into()));
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
    let cell = StateCell::new("thing", Running);
    // Returns how often it has paused, and gone on.
    let race = || {
        let mut won = [0; 2];
        for _ in 0..ROUNDS {
            won[0] += u64::from(cell.change(Running, Paused, "race").is_ok());
            won[1] += u64::from(cell.change(Paused, Running, "race").is_ok());
            let log = cell.changes();
            assert!(log.windows(2).all(|pair| pair[0].to == pair[1].from));
            assert!(
                log.windows(2)
                    .all(|pair| pair[0].number + 1 == pair[1].number)
            );
        }
        won
    };
    let [pauses, others] = thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(race)).collect();
        let won = threads
            .into_iter()
            .map(|thread| thread.join().expect("no panic"));
        won.fold([0; 2], |sum, won| [sum[0] + won[0], sum[1] + won[1]])
    });
    // States and winners take turns: with two winners of one step, their numbers differ by more.
    let end = match pauses.checked_sub(others) {
        Some(0) => Running,
        Some(1) => Paused,
        _ => panic!("{pauses} pauses, and {others} ends of one"),
    };
    assert_eq!(cell.get(), end);
    let log = cell.changes();
    assert_eq!(log.last().map(|last| last.number), Some(pauses + others));
    assert_eq!(log.last().map(|last| last.to), Some(end));
}
