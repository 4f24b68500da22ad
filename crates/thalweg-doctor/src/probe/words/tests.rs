//! Tests queues at locks and at conditions.

use super::*;

const WAIT: u64 = 128;
const SECONDS: f64 = 2.0;

/// Returns threads that ran for these times, in ms.
fn ran<const N: usize>(ms: [(i32, u64); N]) -> HashMap<i32, Deeds> {
    let deeds = |ms| Deeds {
        ran_ns: ms * 1_000_000,
        blocks: 0,
    };
    HashMap::from(ms.map(|(tid, ms)| (tid, deeds(ms))))
}

fn equally() -> HashMap<i32, Deeds> {
    ran([(1, 400), (2, 400), (3, 400), (9, 400)])
}

fn seen(words: &[(i32, [u64; 6])], rounds: usize) -> Words {
    let mut seen = Words::default();
    for _ in 0..rounds {
        words
            .iter()
            .for_each(|(tid, word)| _ = seen.add(1, *tid, word, 1.0));
        seen.end_round(true);
    }
    seen
}

/// Adds waits at a word that end by these wakers, after which one of the threads waits again.
fn woken(words: &mut Words, address: u64, pairs: &[(i32, i32)]) {
    let spot = Spot::Word((1, address));
    for (turn, &(waker, woken)) in (1..).zip(pairs) {
        words.wait(woken, spot, Some(10 * turn), 1.0);
        words.wake(waker, woken, 10 * turn, 10 * turn + 5);
    }
    words.wait(pairs[0].1, spot, Some(u64::MAX), 1.0);
}

fn pairs(turns: i32, pair: impl Fn(i32) -> (i32, i32)) -> Vec<(i32, i32)> {
    (0..turns).map(pair).collect()
}

/// Recorded from six threads at a mutex of the C library, by a user without wake-up events.
#[test]
fn a_taken_mutex_is_a_lock() {
    let mutex = [0x4040c0, WAIT, 2, 0, 0, 0];
    let waiting = [
        (1, mutex),
        (2, mutex),
        (3, mutex),
        (4, [0x7f0010, 265, 4, 0, 0, 0]),
    ];
    let line = seen(&waiting, 10)
        .line(&Wakes::default(), &equally(), SECONDS)
        .expect("seen at a futex");
    assert_eq!((line.waiters, line.locked), (3.0, Some(1.0)));
}

/// Two senders at a condition variable were judged to be at a lock.
#[test]
fn a_condition_is_no_lock() {
    let mut words = Words::default();
    for value in 0..10 {
        words.add(1, 1, &[0x1000, WAIT, value, 0, 0, 0], 1.0);
        words.add(1, 2, &[0x1000, WAIT, value, 0, 0, 0], 1.0);
        words.end_round(true);
    }
    let line = words
        .line(&Wakes::default(), &equally(), SECONDS)
        .expect("seen at a futex");
    assert_eq!((line.waiters, line.locked), (2.0, Some(0.0)));
    // The receiver's word is next to that of the senders.
    let (zero, next) = ([0x1000, WAIT, 0, 0, 0, 0], [0x1004, WAIT, 0, 0, 0, 0]);
    let mut words = seen(&[(1, zero), (2, zero), (9, next)], 10);
    woken(&mut words, 0x1000, &pairs(50, |turn| (9, 1 + turn % 2)));
    let line = words
        .line(&Wakes::default(), &equally(), SECONDS)
        .expect("seen at a futex");
    assert_eq!((line.waiters, line.locked), (2.0, Some(0.0)));
}

#[test]
fn a_condition_of_the_c_library_has_two_words() {
    let mut words = Words::default();
    for turn in 0..10 {
        let word = [0x1000 + turn % 2 * 4, WAIT, 0, 0, 0, 0];
        (1..4).for_each(|tid| _ = words.add(1, tid, &word, 1.0));
        words.end_round(true);
    }
    assert_eq!(
        words
            .line(&Wakes::default(), &equally(), SECONDS)
            .expect("seen at a futex")
            .waiters,
        3.0
    );
}

/// Java parks each thread at a word of its own.
#[test]
fn threads_that_take_turns_are_in_line_wherever_they_wait() {
    let mut wakes = Wakes::default();
    for (waker, woken) in (0..60).map(|turn| (1 + turn % 4, 1 + turn / 4 % 4)) {
        wakes.add(waker, woken);
    }
    let own = |tid: i32| {
        (
            tid,
            [0x1000 * u64::from(tid.unsigned_abs()), 393, 0, 0, 0, 0],
        )
    };
    let words = seen(&[own(1), own(2), own(3), own(4), own(77)], 10);
    let turns = ran([(1, 400), (2, 400), (3, 400), (4, 400)]);
    let line = words
        .line(&wakes, &turns, SECONDS)
        .expect("seen at a futex");
    assert_eq!(line.waiters, 3.0);
    assert!(line.locked > Some(0.5), "{line:?}");
    // A Go runtime wakes threads that find nothing to do.
    let one = ran([(1, 1_000), (2, 1), (3, 1), (4, 1)]);
    assert!(
        words
            .line(&wakes, &one, SECONDS)
            .expect("seen at a futex")
            .waiters
            <= 1.0
    );
    // Without known wakers, this is only weak evidence.
    let line = words
        .line(&Wakes::default(), &turns, SECONDS)
        .expect("seen at a futex");
    assert_eq!((line.waiters, line.locked), (3.0, Some(RAN_APART)));
}

/// Cases without wake-up records: threads at one condition that compute in turns (an interpreter
/// lock), idle workers at one condition, and senders whose receiver runs as well.
#[test]
fn those_who_wake_must_have_run() {
    let zero = [0x1000, WAIT, 0, 0, 0, 0];
    let words = seen(&[(1, zero), (2, zero), (3, zero)], 10);
    let line = |ran| {
        words
            .line(&Wakes::default(), &ran, SECONDS)
            .expect("seen at a futex")
    };
    let turns = line(ran([(1, 400), (2, 390), (3, 410), (8, 2)]));
    assert_eq!((turns.waiters, turns.locked), (3.0, Some(RAN_AT_WORD)));
    assert_eq!(line(ran([(1, 1), (2, 1), (8, 1_200)])).locked, Some(0.0));
    assert_eq!(line(equally()).locked, Some(0.0));
    assert_eq!(line(HashMap::new()).locked, None);
    let mut start = ran([(1, 1), (2, 1), (3, 1), (8, 1_200)]);
    start
        .iter_mut()
        .for_each(|(tid, it)| it.blocks = if *tid == 8 { 9 } else { 99 });
    assert_eq!(
        line(start).locked,
        None,
        "they block, and who wakes them is not known"
    );
    assert_eq!(
        Words::default().line(&Wakes::default(), &equally(), SECONDS),
        None
    );
}

/// Threads at a condition that the next one of them signals, as at the lock of an interpreter.
#[test]
fn the_wakers_of_a_lock_have_waited_there() {
    let zero = [0x1000, WAIT, 0, 0, 0, 0];
    let locked = |wakes: &[(i32, i32)]| {
        let mut words = seen(&[(1, zero), (2, zero), (3, zero)], 10);
        woken(&mut words, 0x1000, wakes);
        // Wake-ups elsewhere, as at the program's start, show nothing about this word.
        let mut elsewhere = Wakes::default();
        (0..100).for_each(|turn| elsewhere.add(1 + turn % 3, 1 + (turn + 1) % 3));
        let line = words.line(&elsewhere, &ran([(9, 1_000)]), SECONDS);
        line.expect("seen at a futex").locked
    };
    assert_eq!(
        locked(&pairs(50, |turn| (1 + turn % 3, 1 + (turn + 1) % 3))),
        Some(1.0)
    );
    assert_eq!(locked(&pairs(50, |turn| (9, 1 + turn % 3))), Some(0.0));
}

/// An idle Python pool was judged LOCK-CONVOY: its main thread blocks often, and at the program's
/// end each worker wakes the next one.
#[test]
fn a_pool_that_is_idle_is_no_lock_when_woken_at_the_end() {
    for value in [0, 2] {
        let word = [0x1000, WAIT, value, 0, 0, 0];
        let pool: Vec<_> = (1..=12).map(|tid| (tid, word)).collect();
        let mut words = seen(&pool, 200);
        let spot = Spot::Word((1, 0x1000));
        for _ in 0..200 {
            (1..=12).for_each(|tid| words.wait(tid, spot, Some(tid as u64), 1.0));
        }
        let locked = |words: &Words, seconds| {
            let mut deeds = ran([(1, 1), (2, 1), (9, 1_000)]);
            (deeds.values_mut()).for_each(|it| it.blocks = 100);
            let line = words.line(&Wakes::default(), &deeds, seconds);
            line.expect("seen at a futex").locked
        };
        (1..12).for_each(|tid| words.wake(tid, tid + 1, tid as u64 + 1, 900));
        assert_eq!(locked(&words, 6.0), Some(0.0), "{value}");
        // The run was short, and the waits were frequent: the end still shows nothing.
        if value == 0 {
            assert_ne!(locked(&words, 0.1), Some(11.0 / 11.0));
            words.wait(1, spot, Some(1_000), 1.0);
            assert_eq!(locked(&words, 0.1), Some(1.0), "it was not the end");
        }
    }
}

/// Readers and writers at Rust's lock, made by hand after `price-cache`: the readers wait at the
/// lock's word, the writers at a counter next to it.
#[test]
fn readers_and_writers_wait_in_one_line() {
    let mut words = Words::default();
    for value in 0..10 {
        let readers = [0x1000, WAIT, 0x7fff_ffff, 0, 0, 0];
        (1..=4).for_each(|tid| _ = words.add(1, tid, &readers, 1.0));
        words.add(1, 6, &[0x1004, WAIT, value, 0, 0, 0], 1.0);
        words.end_round(true);
    }
    // Writers wake the readers, and never wait where these do.
    let wakes = pairs(50, |turn| (6 + turn % 2, 1 + turn % 5));
    for wakes in [&[][..], &wakes] {
        if !wakes.is_empty() {
            woken(&mut words, 0x1000, wakes);
        }
        let line = words.line(&Wakes::default(), &equally(), SECONDS);
        let line = line.expect("seen at a futex");
        assert_eq!(line.waiters, 5.0);
        assert!(line.locked > Some(0.8), "{line:?}");
    }
}

/// A mutex next to the condition variable that it belongs to: few threads wait for it.
#[test]
fn a_mutex_makes_no_lock_of_the_condition_beside_it() {
    let mut words = Words::default();
    for value in 0..10 {
        let condition = [0x1004, WAIT, 100 + value, 0, 0, 0];
        (1..4).for_each(|tid| _ = words.add(1, tid, &condition, 1.0));
        words.end_round(true);
    }
    words.add(1, 9, &[0x1000, WAIT, 2, 0, 0, 0], 1.0);
    words.end_round(true);
    woken(&mut words, 0x1004, &pairs(50, |turn| (9, 1 + turn % 3)));
    let line = words.line(&Wakes::default(), &equally(), SECONDS);
    let line = line.expect("seen at a futex");
    assert!(line.waiters * line.locked.unwrap_or(1.0) < 0.5, "{line:?}");
}

/// Two threads wake each other, whatever they wait for; a third that was seen once is not a party.
/// Two threads at a mutex are recognised by its value.
#[test]
fn two_threads_tell_no_lock_from_a_hand_over() {
    let wakes = pairs(50, |turn| (1 + turn % 2, 2 - turn % 2));
    let line = |value| {
        let word = [0x1000, WAIT, value, 0, 0, 0];
        let mut words = seen(&[(1, word), (2, word)], 100);
        words.add(1, 3, &word, 1.0);
        woken(&mut words, 0x1000, &wakes);
        words
            .line(&Wakes::default(), &equally(), SECONDS)
            .expect("seen at a futex")
            .locked
    };
    assert_eq!((line(0), line(2)), (Some(0.0), Some(1.0)));
}

/// The word at which a parked Rust thread waits looks like a reader-writer lock.
#[test]
fn a_parked_thread_waits_for_no_lock() {
    let at = |address| [address, WAIT, u64::from(u32::MAX), 0, 0, 0];
    let locked = |words: &[(i32, [u64; 6])]| {
        let line = seen(words, 10).line(&Wakes::default(), &HashMap::new(), SECONDS);
        line.expect("seen at a futex").locked
    };
    assert_eq!(locked(&[(1, at(0x1000))]), Some(0.0));
    let both = [(1, at(0x1000)), (2, at(0x1000)), (3, at(0x1000))];
    assert_eq!(locked(&both), Some(1.0));
}

/// A Java pool, made by hand after `scatter-gather`: one thread gives work to four, which also wake
/// each other, and then sleeps. Each waits at a word of its own, and no thread holds a lock
/// meanwhile.
#[test]
fn workers_that_have_nothing_to_do_are_in_no_line() {
    let mut wakes = Wakes::default();
    (0..60).for_each(|turn| wakes.add(1 + turn % 5, 1 + turn / 5 % 4));
    assert!(
        wakes.one_sided().expect("wakes were recorded").0 > 0.25,
        "as of threads in turn"
    );
    let waiting = |running: fn(u64) -> bool| {
        let mut words = Words::default();
        for round in 0..20 {
            (1..=4_u8).for_each(|tid| {
                let own = [0x1000 * u64::from(tid), 393, 0, 0, 0, 0];
                words.add(1, tid.into(), &own, 1.0);
            });
            words.end_round(running(round));
        }
        // The result must not depend on how long the start of the virtual machine has run.
        [0, 200].map(|start_ms| {
            let mut deeds = ran([(1, 40), (2, 40), (3, 40), (4, 40), (9, start_ms)]);
            (deeds.values_mut()).for_each(|it| it.blocks = 100);
            let line = words
                .line(&wakes, &deeds, SECONDS)
                .expect("seen at a futex");
            line.waiters * line.locked.unwrap_or(1.0)
        })
    };
    assert_eq!(waiting(|_| false), [0.0, 0.0]);
    assert_eq!(waiting(|round| round % 4 == 0), [0.0, 0.0]);
    let [held, _] = waiting(|round| round % 4 != 0);
    assert!(held > 0.5, "while one of them runs they wait: {held}");
}

/// Five processes at `flock` were judged CPU-COMPUTE, because no futex is called.
#[test]
fn who_waits_for_the_lock_of_a_file_is_in_line() {
    let mut seen = Words::default();
    for _ in 0..10 {
        (0..4).for_each(|_| _ = seen.add_file((1, 7), 1.0));
        seen.add_file((1, 8), 1.0);
        seen.end_round(true);
    }
    let line = seen.line(&Wakes::default(), &HashMap::new(), SECONDS);
    let (waiters, locked) = (4.0, Some(1.0));
    assert_eq!(line, Some(Line { waiters, locked }));
    assert_eq!(seen.waiters_max(), Some(4.0));
}

/// Another program holds it, and the main thread blocks often meanwhile.
#[test]
fn a_lock_of_a_file_that_never_changes_hands_is_none_that_goes_round() {
    let locked = |waits: u64| {
        let mut seen = Words::default();
        for round in 0..100 {
            for tid in 1..=3 {
                let spot = seen.add_file((1, 7), 1.0);
                seen.wait(tid, spot, Some(round * waits / 100), 1.0);
            }
            seen.end_round(true);
        }
        let line = seen.line(&Wakes::default(), &equally(), SECONDS);
        line.expect("seen at a lock").locked
    };
    assert_eq!([locked(1), locked(20)], [Some(0.0), Some(1.0)]);
}

/// Six workers that share a receiver under a mutex were judged LOCK-CONVOY: one of them holds it
/// and waits for work, and five wait for the mutex. If the holder waits for another lock, it does
/// delay this one.
#[test]
fn a_lock_whose_holder_waits_for_work_holds_nobody_up() {
    let mutex = [0x1000, WAIT, 2, 0, 0, 0];
    let locked = |holder: &dyn Fn(&mut Words, i32)| {
        let mut words = Words::default();
        for round in 0..60 {
            let holds = 1 + round % 6;
            let others = (1..=6).filter(|&tid| tid != holds);
            others.for_each(|tid| _ = words.add(1, tid, &mutex, 1.0));
            holder(&mut words, holds);
            words.add_other(9, false);
            words.end_round(true);
        }
        let line = words.line(&Wakes::default(), &equally(), SECONDS);
        let line = line.expect("seen at a futex");
        (
            line.waiters,
            line.locked.expect("the word's value tells it"),
        )
    };
    let at = |value| [0x2000, WAIT, value, 0, 0, 0];
    let for_work = locked(&|words, tid| _ = words.add(1, tid, &at(0), 1.0));
    assert!(for_work.1 < 0.01, "{for_work:?}");
    let accepts = locked(&|words, tid| words.add_other(tid, true));
    assert!(accepts.1 < 0.01, "{accepts:?}");
    let for_a_lock = locked(&|words, tid| _ = words.add(1, tid, &at(2), 1.0));
    assert_eq!(for_a_lock, (5.0, 1.0));
    let works = locked(&|words, tid| words.add_other(tid, false));
    assert_eq!(works, (5.0, 1.0));
    // One of them holds it nearly always, as it takes it again before the threads that it wakes
    // run.
    let always = |accepts| {
        let mut words = Words::default();
        for _ in 0..60 {
            (1..=5).for_each(|tid| _ = words.add(1, tid, &mutex, 1.0));
            words.add_other(6, accepts);
            words.end_round(true);
        }
        woken(&mut words, 0x1000, &pairs(60, |turn| (6, 1 + turn % 5)));
        let line = words.line(&Wakes::default(), &equally(), SECONDS);
        line.expect("seen at a futex").locked
    };
    assert_eq!([always(true), always(false)], [Some(0.0), Some(1.0)]);
}

/// Eight Java handlers whose monitor is held asleep were judged SLEEP-POLLING.
#[test]
fn who_waits_for_a_monitor_is_in_line() {
    let mut seen = Words::default();
    (0..10).for_each(|_| seen.end_round(false));
    seen.add_monitor(1, 70.0, 40.0);
    let line = seen.line(&Wakes::default(), &HashMap::new(), SECONDS);
    let (waiters, locked) = (7.0, Some(1.0));
    assert_eq!(line, Some(Line { waiters, locked }));
}
