//! Numbers at their ends, and loops that must end.

use crate::bus::check_totals;
use crate::bus::note::{BLOCK, CONFLATE, KEPT, Note, OLDEST, REJECT, bus, note};
use crate::bus::watchdog::watched;
use std::time::Duration;
use thalweg::bus::{Admission, Burst, Priority, Publisher, Reserves, Topics};

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
            let taken = rx.recv_each(usize::MAX, |got| {
                tx.publish(note(topic, got.message.value + 1)).unwrap();
            });
            assert!((1..=most).contains(&taken), "{taken} of {topic:?}");
            let taken = rx.wait_each(usize::MAX, |got| {
                tx.publish(note(topic, got.message.value + 1)).unwrap();
            });
            assert!((1..=most).contains(&taken.unwrap()), "{topic:?}");
            assert_eq!(rx.recv_each(usize::MAX, drop), 1);
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
            let _ = tx.try_publish_at(highest, note(BLOCK, n));
            tx.publish(note(OLDEST, n)).unwrap();
            tx.publish(crate::bus::note::keyed(CONFLATE, n, n)).unwrap();
        }
        let waiting = rx.service().waiting;
        assert!(waiting > 20, "{waiting}");
        assert_eq!(rx.recv_each(usize::MAX, drop) as u64, waiting);
        assert_eq!(rx.service().waiting, 0);
    }
}

/// More than there are numbers for is refused, and is no small reserve.
#[test]
fn a_reserve_without_bounds_is_not_a_small_one() {
    let burst = |messages, rate_per_s, period| Burst {
        messages,
        rate_per_s,
        period,
    };
    for (burst, service_per_s, stall) in [
        (burst(u64::MAX, 1e300, Duration::MAX), 1e9, Duration::ZERO),
        (burst(u64::MAX, 1e300, Duration::MAX), 1e9, Duration::MAX),
        (burst(u64::MAX, 1e19, Duration::MAX), 2.0, Duration::MAX),
        (
            burst(1, 1e300, Duration::from_nanos(1)),
            1e300,
            Duration::MAX,
        ),
    ] {
        let capacity = burst.capacity(service_per_s, stall);
        let Ok(reserves) = Reserves::sized(&[None, None, None, Some(burst)], service_per_s, stall)
        else {
            assert!(capacity.is_err());
            continue;
        };
        assert!(reserves.elements[3] > 1 << 40, "{burst:?} {reserves:?}");
        assert_eq!(capacity, Ok(reserves.elements[3]));
        assert!(Admission::from(reserves).limits(1 << 29).is_err());
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

/// Topics that drop the oldest or conflate are admitted in any case, and take a place each: so a
/// reserve has one for each of them, and then keeps what it promises.
#[test]
fn a_reserve_holds_beside_shelves() {
    for n in 0..256_u64 {
        let reserves = [0, 2, 4].map(|shift| n >> shift & 3);
        let tokens = if n >> 6 & 1 == 0 { 0 } else { 2 };
        let topics = if tokens == 0 {
            Topics::of(&[REJECT])
        } else {
            Topics::of(&[REJECT, OLDEST, CONFLATE])
        };
        let [medium, high, critical] = reserves.map(|r| if r == 0 { 0 } else { r + tokens });
        let bus = bus(64);
        let options = bus.subscription(topics).capacity(24);
        let admission = Admission::reserve(medium, high, critical);
        let rx = options.admission(admission).open().unwrap();
        let mut tx = bus.publisher("feed").unwrap();
        let all = |tx: &mut Publisher<Note>, priority| {
            let more = |_: &u64| tx.try_publish_at(priority, note(REJECT, 0)).is_ok();
            (0..).take_while(more).count() as u64
        };
        all(&mut tx, Priority::Low);
        if n >> 7 == 0 {
            tx.publish(note(OLDEST, 0)).unwrap();
            tx.publish(note(CONFLATE, 0)).unwrap();
        }
        for (priority, reserve) in Priority::ALL[1..].iter().zip(reserves) {
            assert!(
                all(&mut tx, *priority) >= reserve,
                "{priority:?} of {reserves:?}"
            );
            tx.publish(note(OLDEST, 0)).unwrap();
            tx.publish(note(CONFLATE, 0)).unwrap();
        }
        drop(rx);
    }
}
