//! Evidence recorded of programs that were judged wrongly.

use super::cases::{blocked, evidence, first};
use super::*;

#[test]
fn a_line_at_a_lock_is_told_from_a_line_at_a_condition() {
    // Six threads, and whoever has the lock sleeps for 15 ms: it was SLEEP-POLLING.
    let asleep = [
        ("block.sleep", 1.0),
        ("sleep.us", 15_100.0),
        ("call.sleep", 66.0),
        ("call.futex", 190.0),
        ("switch.blocked", 140.0),
        ("lock.waiters", 4.9),
        ("lock.held_share", 1.0),
    ];
    first(Id::LockConvoy, &blocked(&asleep));
    // Two senders and a receiver at a queue with one place: it was LOCK-CONVOY.
    let senders = [
        ("state.running", 0.59),
        ("state.blocked", 0.41),
        ("block.futex", 1.0),
        ("futex.wake_share", 1.0),
        ("call.all", 120_758.0),
        ("call.futex", 120_540.0),
        ("call.cpu_share", 0.94),
        ("switch.blocked", 63_377.0),
        ("switch.run_us", 7.4),
        ("lock.waiters", 1.53),
        ("lock.held_share", 0.0),
    ];
    first(Id::FutexParking, &evidence(&senders));
    // Six threads at a monitor of Java, each at a word of its own: it was CPU-COMPUTE.
    let monitor = [
        ("call.futex", 14_281.0),
        ("call.all", 14_500.0),
        ("switch.blocked", 7_140.0),
        ("switch.run_us", 135.0),
        ("lock.waiters", 2.9),
        ("lock.held_share", 0.7),
    ];
    first(Id::LockConvoy, &evidence(&monitor));
}

#[test]
fn two_answers_that_are_near_are_not_sure() {
    let both = [("fault.cpu_share", 0.45), ("call.cpu_share", 0.45)];
    let both = evidence(&[&both[..], &[("call.all", 1e6)]].concat());
    let verdicts = judge(&both);
    assert!(verdicts.len() > 1, "{verdicts:?}");
    for verdict in verdicts {
        assert!(verdict.confidence <= 0.6, "{verdict:?}");
    }
}
