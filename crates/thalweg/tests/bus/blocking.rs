//! Publishers that wait, with different limits, while all ends stay alive.

use crate::bus::check_totals;
use crate::bus::note::{BLOCK, Note, note};
use crate::bus::watchdog::watched;
use std::sync::mpsc;
use std::thread;
use thalweg::bus::{Admission, Bus, Priority, Topics};
use thalweg::wait::WaitMode;

const ROUNDS: usize = 100;

/// Limits of 1, 2, 3 and 4 messages.
fn bus(mode: WaitMode) -> Bus<Note> {
    let bus = Bus::builder().capacity(4).mode(mode);
    bus.admission(Admission::reserve(1, 1, 1)).build().unwrap()
}

/// Four publishers wait. Each message that is taken makes room for at most one of them, and which
/// one is known: another publisher that was woken for it must not keep it from that one.
fn room_reaches_the_one_that_can_use_it(mode: WaitMode) {
    let bus = bus(mode);
    let mut rx = bus.subscribe(Topics::ALL).unwrap();
    let mut filler = bus.publisher("filler").unwrap();
    let (done, dones) = mpsc::channel();
    let (orders, threads): (Vec<_>, Vec<_>) = Priority::ALL
        .into_iter()
        .map(|priority| {
            let mut tx = bus.publisher("waiter").unwrap();
            let (order, orders) = mpsc::channel();
            let done = done.clone();
            let thread = thread::spawn(move || {
                while let Ok(value) = orders.recv() {
                    tx.publish_with_priority(priority, note(BLOCK, value))
                        .unwrap();
                    done.send(priority).unwrap();
                }
            });
            (order, thread)
        })
        .unzip();
    for round in 0..ROUNDS as u64 {
        for _ in 0..4 {
            filler
                .publish_with_priority(Priority::Critical, note(BLOCK, round))
                .unwrap();
        }
        for order in &orders {
            order.send(round).unwrap();
        }
        // 4 in the ring: 3, and back to 4; then down to 2, 1 and 0 below their limits.
        for (pops, priority) in [1, 2, 2, 2]
            .into_iter()
            .zip(Priority::ALL.into_iter().rev())
        {
            for _ in 0..pops {
                rx.recv().unwrap();
            }
            assert_eq!(dones.recv(), Ok(priority));
        }
        assert_eq!(rx.recv().unwrap().priority, Priority::Low);
        assert_eq!(rx.counts().waiting, 0);
    }
    check_totals(&bus.totals());
    drop(orders);
    threads
        .into_iter()
        .for_each(|thread| thread.join().unwrap());
}

#[test]
fn room_reaches_the_one_that_can_use_it_in_every_mode() {
    for &mode in WaitMode::ALL {
        watched(move || room_reaches_the_one_that_can_use_it(mode));
    }
}

#[test]
fn a_stream_through_little_room_loses_nothing() {
    watched(|| {
        const EACH: u64 = 2_000;
        let bus = bus(WaitMode::Balanced);
        let mut rx = bus.subscribe(Topics::ALL).unwrap();
        let mut second = rx.share();
        let threads = Priority::ALL.map(|priority| {
            let mut tx = bus.publisher("stream").unwrap();
            thread::spawn(move || {
                for n in 0..EACH {
                    tx.publish_with_priority(priority, note(BLOCK, n)).unwrap();
                }
                tx
            })
        });
        let other = thread::spawn(move || {
            let mut received = 0;
            while second.recv().is_ok() {
                received += 1;
            }
            received
        });
        let publishers = threads.map(|thread| thread.join().unwrap());
        let mut take = || rx.try_recv_each(usize::MAX, |got| assert_eq!(got.lost_before, 0));
        let mut received = take().unwrap_or(0);
        bus.close();
        received += take().unwrap_or(0);
        assert_eq!((received + other.join().unwrap()) as u64, 4 * EACH);
        check_totals(&bus.totals());
        drop(publishers);
    });
}
