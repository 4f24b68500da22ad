//! Numbers at their ends, and loops that must end.

use crate::bus::check_totals;
use crate::bus::note::{BLOCK, CONFLATE, KEPT, OLDEST, REJECT, bus, note};
use crate::bus::watchdog::watched;
use std::time::Duration;
use thalweg::bus::{Priority, Topics};

/// "Up to `max` that are there now": a handler that publishes does not keep it going for ever.
#[test]
fn a_batch_ends_though_its_handler_publishes() {
    watched(|| {
        for topic in [BLOCK, REJECT, OLDEST, CONFLATE] {
            let bus = bus(8);
            let mut rx = bus.subscribe(Topics::ALL).unwrap();
            let mut tx = bus.publisher("echo").unwrap();
            tx.publish(note(topic, 0)).unwrap();
            let most = 8 + 2 * KEPT;
            let taken = rx.try_recv_each(usize::MAX, |got| {
                tx.publish(note(topic, got.message.value + 1)).unwrap();
            });
            assert!((1..=most).contains(&taken.unwrap()), "{topic:?}");
            let taken = rx.wait_each(usize::MAX, |got| {
                tx.publish(note(topic, got.message.value + 1)).unwrap();
            });
            assert!((1..=most).contains(&taken.unwrap()), "{topic:?}");
            assert_eq!(rx.try_recv_each(usize::MAX, drop), Ok(1));
            check_totals(&bus.totals());
        }
    });
}

/// A batch has all that can be there at one moment.
#[test]
fn a_batch_takes_all_that_is_there() {
    let bus = bus(5);
    let mut rx = bus.subscribe(Topics::ALL).unwrap();
    let mut tx = bus.publisher("feed").unwrap();
    for _ in 0..2 {
        for n in 0..2 * KEPT as u64 {
            tx.publish(note(OLDEST, n)).unwrap();
        }
        rx.recv().unwrap();
        for n in 0..2 * KEPT as u64 {
            let highest = Priority::Critical;
            let _ = tx.try_publish_with_priority(highest, note(BLOCK, n));
            tx.publish(note(OLDEST, n)).unwrap();
            tx.publish(crate::bus::note::keyed(CONFLATE, n, n)).unwrap();
        }
        let waiting = rx.counts().waiting;
        assert!(waiting > 20, "{waiting}");
        assert_eq!(rx.try_recv_each(usize::MAX, drop), Ok(waiting as usize));
        assert_eq!(rx.counts().waiting, 0);
    }
}

#[test]
fn times_that_no_clock_has_are_for_ever_or_now() {
    watched(|| {
        let bus = bus(1);
        let mut rx = bus.subscribe(Topics::ALL).unwrap();
        let mut tx = bus.publisher("feed").unwrap();
        for timeout in [
            Duration::MAX,
            Duration::from_secs(u64::MAX / 4),
            Duration::ZERO,
        ] {
            tx.publish_timeout(note(BLOCK, 1), timeout).unwrap();
            rx.recv_timeout(timeout).unwrap();
        }
        tx.publish(note(BLOCK, 2)).unwrap();
        assert!(tx.publish_timeout(note(BLOCK, 3), Duration::ZERO).is_err());
        rx.recv_timeout(Duration::ZERO).unwrap();
        assert!(rx.recv_timeout(Duration::ZERO).is_err());
        let waiting = std::thread::spawn(move || (rx.recv_timeout(Duration::MAX), rx));
        tx.publish_timeout(note(BLOCK, 4), Duration::MAX).unwrap();
        let (got, rx) = waiting.join().unwrap();
        assert_eq!(got.unwrap().lost_before, 1);
        check_totals(&bus.totals());
        drop((tx, rx));
    });
}
