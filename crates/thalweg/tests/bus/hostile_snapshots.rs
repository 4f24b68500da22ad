//! Figures of one snapshot while others publish and take: nothing is received before it is
//! admitted, or admitted before it is issued.

use crate::bus::check_totals;
use crate::bus::note::{BLOCK, CONFLATE, Note, OLDEST, REJECT, RETAINED, bus, keyed};
use crate::bus::watchdog::watched;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread::{self, yield_now};
use thalweg::bus::{Bus, Consumer, OutcomeCounts, Priority, Publisher, TopicId, Topics};

fn check_flow(outcomes: &OutcomeCounts, delivered: [u64; Priority::COUNT]) {
    for (p, delivered) in delivered.into_iter().enumerate() {
        let left = delivered + outcomes.evicted[p] + outcomes.discarded[p];
        assert!(left <= outcomes.admitted[p], "{left} left of {outcomes:?}");
        let known = outcomes.admitted[p] + outcomes.refused[p] + outcomes.timed_out[p];
        assert!(known <= outcomes.issued[p], "{outcomes:?}");
    }
}

/// Snapshots while two publishers publish and consumers take.
fn snapshots(look: impl Fn(&Bus<Note>, &Consumer<Note>)) {
    const TOPICS: [TopicId; 5] = [BLOCK, REJECT, OLDEST, CONFLATE, RETAINED];
    let bus = bus(16);
    let first = bus.subscribe(Topics::ALL).unwrap();
    let over = Arc::new(AtomicBool::new(false));
    let publish = |mut tx: Publisher<Note>| {
        let over = Arc::clone(&over);
        thread::spawn(move || {
            let mut n = 0;
            while !over.load(SeqCst) {
                let _ = tx.try_publish(keyed(TOPICS[n as usize % 5], n % 3, n));
                n += 1;
            }
            tx
        })
    };
    let publishers = ["a", "b"].map(|name| publish(bus.publisher(name).unwrap()));
    let consumers = [(); 2].map(|()| {
        let (mut rx, over) = (first.share(), Arc::clone(&over));
        thread::spawn(move || {
            while !over.load(SeqCst) {
                if rx.try_recv_each(64, drop).is_err() {
                    yield_now();
                }
            }
            rx
        })
    });
    for _ in 0..40_000 {
        look(&bus, &first);
    }
    over.store(true, SeqCst);
    let publishers = publishers.map(|thread| thread.join().unwrap());
    let consumers = consumers.map(|thread| thread.join().unwrap());
    check_totals(&bus.totals());
    drop((publishers, consumers));
}

#[test]
fn totals_are_never_ahead_of_themselves() {
    watched(|| {
        snapshots(|bus, _| {
            let totals = bus.totals();
            check_flow(&totals.outcomes, totals.consumers.delivered);
        });
    });
}

#[test]
fn losses_are_never_ahead_of_themselves() {
    watched(|| {
        snapshots(|_, rx| {
            for losses in rx.publisher_counts() {
                check_flow(&losses.outcomes, [0; Priority::COUNT]);
            }
        });
    });
}

#[test]
fn readings_are_never_ahead_of_themselves() {
    watched(|| {
        snapshots(|bus, _| {
            for (_, reading) in bus.inbox_readings() {
                assert!(reading.taken <= reading.admitted, "{reading:?}");
                assert!(reading.admitted <= reading.issued, "{reading:?}");
            }
        });
    });
}
