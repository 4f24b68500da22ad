//! Waiting on an event count does not allocate, but for the first wait of a thread.

use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Waker;
use std::time::{Duration, Instant};

use thalweg::wait::{EventCount, Pace, TimedOut, WaitMode, block};

use super::calls;

/// After this, the thread has what it sleeps on.
fn wait_once() {
    let (event_count, mut pace) = (EventCount::new(), Pace::new(WaitMode::LowPower));
    let never = block(&event_count, &mut pace, Some(Instant::now()), || None::<()>);
    assert_eq!(never, Err(TimedOut));
}

#[test]
fn a_list_of_sixteen_does_not_allocate() {
    let event_count = EventCount::new();
    let mut entries = Vec::with_capacity(16);
    let calls = calls(|| {
        for round in 0..1000 {
            entries.extend((0..16).map(|_| event_count.register(Waker::noop())));
            (0..round % 17).for_each(|_| _ = event_count.notify_one());
            for (place, entry) in entries.drain(..).enumerate() {
                assert_eq!(
                    event_count.update(entry, Waker::noop()),
                    place >= round % 17
                );
                assert_eq!(event_count.unregister(entry), place >= round % 17);
            }
        }
    });
    assert_eq!(calls, 0);
}

#[test]
fn a_wait_that_times_out_does_not_allocate() {
    wait_once();
    let event_count = EventCount::new();
    for &mode in WaitMode::ALL {
        let mut pace = Pace::new(mode);
        let calls = calls(|| {
            for _ in 0..20 {
                let soon = Instant::now() + Duration::from_millis(1);
                let never = block(&event_count, &mut pace, Some(soon), || None::<()>);
                assert_eq!(never, Err(TimedOut));
            }
            // Long enough for a look at the cores.
            let later = Instant::now() + Duration::from_millis(120);
            for deadline in [later, later + Duration::from_millis(1)] {
                let never = block(&event_count, &mut pace, Some(deadline), || None::<()>);
                assert_eq!(never, Err(TimedOut));
            }
        });
        assert_eq!(calls, 0, "{mode:?}");
    }
}

#[test]
fn threads_that_wake_each_other_do_not_allocate() {
    const TURNS: u64 = 500;
    for &mode in WaitMode::ALL {
        let (turn, event_counts) = (AtomicU64::new(0), [EventCount::new(), EventCount::new()]);
        let both = Barrier::new(2);
        let play = |me: u64| {
            wait_once();
            let mut pace = Pace::new(mode);
            both.wait();
            let calls = calls(|| {
                for now in (me..TURNS).step_by(2) {
                    let mine = || (turn.load(Ordering::Acquire) == now).then_some(());
                    block(&event_counts[me as usize], &mut pace, None, mine).unwrap();
                    turn.store(now + 1, Ordering::Release);
                    event_counts[1 - me as usize].notify_one();
                }
            });
            // A thread that ends frees what it slept on, or its last waker does.
            both.wait();
            assert_eq!(calls, 0, "{mode:?}");
        };
        std::thread::scope(|scope| {
            scope.spawn(|| play(1));
            play(0);
        });
        let parked: u64 = event_counts.iter().map(EventCount::registrations).sum();
        assert!(mode != WaitMode::LowPower || parked > 0, "no thread slept");
    }
}
