//! Channels as a `Stream`, in every flavour.
#![allow(clippy::unwrap_used)] // cases are tests, though their functions are not #[test]

use std::task::Poll;
use std::thread;

use futures_util::StreamExt;
use futures_util::stream::FusedStream;
use thalweg::channel::{ManyReceivers, ManySenders, Overflow, SendError};

use crate::channel::flavour::{Flavour, Made};
use thalweg_testkit::wakers::{Alarm, block_on};

/// `suite! { flavour: FLAVOUR, ..; case case .. }`
macro_rules! suite {
    ($($name:ident: $flavour:ident),+; $cases:tt) => { $(
        mod $name { suite!(@one $flavour; $cases); }
    )+ };
    (@one $flavour:ident; { $($case:ident)+ }) => { $(
        #[test]
        fn $case() {
            crate::channel::watchdog::watched(|| {
                crate::channel_stream::$case(crate::channel::flavour::$flavour);
            });
        }
    )+ };
}

mod any {
    suite! {
        spsc_packed: PACKED, spsc_slotted: SLOTTED, mpsc: ORDERED,
        mpmc: MPMC, unbounded_spsc: UNBOUNDED_SPSC,
        unbounded_mpsc: UNBOUNDED_MPSC, unbounded: UNBOUNDED,
        rendezvous_spsc: RENDEZVOUS_SPSC, rendezvous_mpsc: RENDEZVOUS_MPSC, rendezvous: RENDEZVOUS;
        {
            elements_come_in_order the_end_of_the_sender_ends_the_stream
            closing_ends_the_stream a_waiting_stream_keeps_its_place a_dropped_stream_loses_nothing
        }
    }
}

mod stored {
    suite! {
        spsc_packed: PACKED, spsc_slotted: SLOTTED, mpsc: ORDERED,
        mpmc: MPMC, unbounded_spsc: UNBOUNDED_SPSC,
        unbounded_mpsc: UNBOUNDED_MPSC, unbounded: UNBOUNDED;
        { losses_are_reported }
    }
}

mod many_receivers {
    suite! {
        mpmc: MPMC, unbounded: UNBOUNDED, rendezvous: RENDEZVOUS;
        {
            a_dropped_stream_passes_its_wake_up_on streams_are_dropped_all_the_time
        }
    }
}

fn elements_come_in_order<S: Made>(flavour: Flavour<S>) {
    for capacity in [1, 7] {
        let (tx, mut rx) = flavour.channel::<u64>(capacity);
        thread::scope(|scope| {
            scope.spawn(move || {
                let mut tx = tx;
                block_on(async {
                    for n in 0..1000 {
                        tx.send_async(n).await.unwrap();
                    }
                });
            });
            let got: Vec<u64> = block_on(rx.stream().collect());
            assert!(got.into_iter().eq(0..1000));
        });
    }
}

fn the_end_of_the_sender_ends_the_stream<S: Made>(flavour: Flavour<S>) {
    let (tx, rx) = flavour.channel::<u64>(2);
    let mut stream = rx.into_stream();
    let alarm = Alarm::new();
    assert!(alarm.poll(&mut stream.next()).is_pending());
    assert!(!stream.is_terminated());
    drop(tx);
    assert_eq!(alarm.count(), 1);
    for _ in 0..3 {
        assert_eq!(alarm.poll(&mut stream.next()), Poll::Ready(None));
        assert!(stream.is_terminated());
    }
}

fn closing_ends_the_stream<S: Made>(flavour: Flavour<S>) {
    let (mut tx, rx) = flavour.channel::<u64>(2);
    let kept = if tx.try_send(1).is_ok() {
        Some(1)
    } else {
        None
    };
    let mut stream = rx.into_stream();
    stream.close();
    assert_eq!(tx.send(2), Err(SendError::Disconnected(2)));
    assert_eq!(kept.is_none(), flavour.is_rendezvous);
    assert!(block_on(stream.collect::<Vec<_>>()).into_iter().eq(kept));
}

/// A `next()` that is given up leaves the stream on the list, once.
fn a_waiting_stream_keeps_its_place<S: Made>(flavour: Flavour<S>) {
    let (mut tx, mut rx) = flavour.channel::<u64>(2);
    let mut stream = rx.stream();
    let (first, second) = (Alarm::new(), Alarm::new());
    for _ in 0..3 {
        assert!(first.poll(&mut stream.next()).is_pending());
        assert!(second.poll(&mut stream.next()).is_pending());
    }
    assert_eq!(stream.receiver().counters().parked, 1);
    tx.send(1).unwrap();
    assert_eq!((first.count(), second.count()), (0, 1));
    assert_eq!(first.poll(&mut stream.next()), Poll::Ready(Some(1)));
    assert!(first.poll(&mut stream.next()).is_pending());
    drop(stream);
    let _ = tx.try_send(2);
    assert_eq!((first.count(), second.count()), (0, 1), "no task waits");
}

fn a_dropped_stream_loses_nothing<S: Made>(flavour: Flavour<S>) {
    let (mut tx, mut rx) = flavour.channel::<u64>(2);
    let alarm = Alarm::new();
    for n in 0..50 {
        let mut stream = rx.stream();
        assert!(alarm.poll(&mut stream.next()).is_pending());
        tx.send(n).unwrap();
        drop(stream);
        assert_eq!(rx.try_recv(), Ok(n));
    }
    assert_eq!(alarm.count(), 50);
}

fn losses_are_reported<S: Made>(flavour: Flavour<S>) {
    let options = flavour.options(1).overflow(Overflow::DropNewest);
    let (mut tx, rx) = flavour.make(options).unwrap();
    let mut stream = rx.into_stream();
    for n in 0..4 {
        assert_eq!(tx.send(n), Ok(()));
    }
    assert_eq!(block_on(stream.next()), Some(0));
    assert_eq!(stream.receiver().lost_before(), 0);
    assert_eq!(tx.send(4), Ok(()));
    assert_eq!(block_on(stream.next()), Some(4));
    assert_eq!(stream.receiver().lost_before(), 3);
}

/// Two wait, one is woken and goes: the other is woken in its place.
fn a_dropped_stream_passes_its_wake_up_on<S>(flavour: Flavour<S>)
where
    S: Made + ManySenders + ManyReceivers,
{
    let (mut tx, mut rx) = flavour.channel::<u64>(4);
    let mut stays = rx.clone().into_stream();
    let mut gone = rx.stream();
    let (first, second) = (Alarm::new(), Alarm::new());
    assert!(first.poll(&mut gone.next()).is_pending());
    assert!(second.poll(&mut stays.next()).is_pending());
    tx.send(1).unwrap();
    assert_eq!((first.count(), second.count()), (1, 0));
    drop(gone);
    assert_eq!((first.count(), second.count()), (1, 1));
    assert_eq!(second.poll(&mut stays.next()), Poll::Ready(Some(1)));
}

/// Nothing is lost, doubled or left asleep.
fn streams_are_dropped_all_the_time<S: Made + ManyReceivers>(flavour: Flavour<S>) {
    let (tx, rx) = flavour.channel::<u64>(2);
    let receivers = [rx.clone(), rx];
    let mut seen = thread::scope(|scope| {
        scope.spawn(move || {
            let mut tx = tx;
            (0..2000).for_each(|n| tx.send(n).unwrap());
        });
        let threads = receivers.map(|mut rx| {
            scope.spawn(move || {
                let (alarm, mut seen) = (Alarm::new(), Vec::new());
                loop {
                    for _ in 0..seen.len() % 4 {
                        if let Poll::Ready(Some(n)) = alarm.poll(&mut rx.stream().next()) {
                            seen.push(n);
                        }
                        thread::yield_now();
                    }
                    match block_on(rx.stream().next()) {
                        Some(n) => seen.push(n),
                        None => return seen,
                    }
                }
            })
        });
        threads.map(|thread| thread.join().unwrap()).concat()
    });
    seen.sort_unstable();
    assert!(seen.into_iter().eq(0..2000));
}
