//! Channels as a `Stream` and a `Sink`, in every flavour.
#![allow(clippy::unwrap_used)] // cases are tests, though their functions are not #[test]

use crate::channel::flavour;
use crate::channel::ledger;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::thread;

use flavour::{Flavour, Made};
use futures_util::stream::FusedStream;
use futures_util::{Sink, SinkExt, StreamExt};
use ledger::Ledger;
use thalweg::channel::{
    ManyReceivers, ManySenders, Overflow, RecvError, SendError, SendSink, Shape, TryRecvError,
};
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
            a_sink_without_receivers_gives_back a_sink_at_work_gives_back_what_its_receiver_left
            the_slot_can_be_had_back a_dropped_sink_drops_its_element_once a_closed_sink_disconnects
            a_sink_that_is_not_ready_takes_nothing
            sinks_are_given_up_all_the_time
        }
    }
}

mod stored {
    suite! {
        spsc_packed: PACKED, spsc_slotted: SLOTTED, mpsc: ORDERED,
        mpmc: MPMC, unbounded_spsc: UNBOUNDED_SPSC,
        unbounded_mpsc: UNBOUNDED_MPSC, unbounded: UNBOUNDED;
        {
            a_full_channel_holds_the_sink_back closing_waits_for_the_slot
            what_does_not_fit_comes_back losses_are_reported
        }
    }
}

mod rendezvous {
    suite! {
        spsc: RENDEZVOUS_SPSC, mpsc: RENDEZVOUS_MPSC, mpmc: RENDEZVOUS;
        { a_flush_is_done_when_the_element_is_taken }
    }
}

mod many_senders {
    suite! {
        mpsc: ORDERED, mpmc: MPMC,
        unbounded_mpsc: UNBOUNDED_MPSC, unbounded: UNBOUNDED, rendezvous_mpsc: RENDEZVOUS_MPSC,
        rendezvous: RENDEZVOUS;
        { a_closed_sink_leaves_others_open }
    }
}

/// Senders that share one store.
mod one_store {
    suite! {
        mpsc: ORDERED, mpmc: MPMC, unbounded_mpsc: UNBOUNDED_MPSC, unbounded: UNBOUNDED;
        { a_dropped_sink_passes_its_wake_up_on }
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

type Sent<T> = Poll<Result<(), SendError<T>>>;
/// One of the polling methods of a sink.
type Way<T, S> = fn(Pin<&mut SendSink<T, S>>, &mut Context<'_>) -> Sent<T>;

/// Polls a sink in one of its ways, with the alarm for its waker.
fn poll<T, S: Shape>(alarm: &Arc<Alarm>, sink: &mut SendSink<T, S>, how: Way<T, S>) -> Sent<T> {
    let waker = Waker::from(Arc::clone(alarm));
    how(Pin::new(sink), &mut Context::from_waker(&waker))
}

/// Puts an element into the slot of a sink that has to be ready for it.
fn put<T, S: Shape>(alarm: &Arc<Alarm>, sink: &mut SendSink<T, S>, value: T) {
    assert!(matches!(
        poll(alarm, sink, Sink::poll_ready),
        Poll::Ready(Ok(()))
    ));
    Pin::new(sink).start_send(value).ok().unwrap();
}

/// Fills the channel, for what its capacity is, and the slot, and sees that no more goes. Returns
/// how many were sent.
fn fill<T, S: Shape>(
    alarm: &Arc<Alarm>,
    sink: &mut SendSink<T, S>,
    mut values: impl Iterator<Item = T>,
) -> usize {
    let holds = sink.sender().unwrap().capacity();
    for _ in 0..holds {
        put(alarm, sink, values.next().unwrap());
        let flushed = poll(alarm, sink, Sink::poll_flush);
        assert!(matches!(flushed, Poll::Ready(Ok(()))));
    }
    put(alarm, sink, values.next().unwrap());
    assert!(poll(alarm, sink, Sink::poll_flush).is_pending());
    holds
}

fn elements_come_in_order<S: Made>(flavour: Flavour<S>) {
    for capacity in [1, 7] {
        let (tx, mut rx) = flavour.channel::<u64>(capacity);
        thread::scope(|scope| {
            scope.spawn(move || {
                let mut sink = tx.into_sink();
                block_on(async {
                    for n in 0..500 {
                        sink.feed(n).await.unwrap();
                    }
                    let mut rest = futures_util::stream::iter(500..1000).map(Ok);
                    sink.send_all(&mut rest).await.unwrap();
                    sink.close().await.unwrap();
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

fn a_sink_without_receivers_gives_back<S: Made>(flavour: Flavour<S>) {
    let (tx, rx) = flavour.channel::<u64>(2);
    let mut sink = tx.into_sink();
    drop(rx);
    for n in 0..3 {
        assert_eq!(block_on(sink.feed(n)), Err(SendError::Disconnected(n)));
        assert_eq!(block_on(sink.send(n)), Err(SendError::Disconnected(n)));
    }
    assert_eq!(block_on(sink.close()), Ok(()));
}

fn a_sink_at_work_gives_back_what_its_receiver_left<S: Made>(flavour: Flavour<S>) {
    for how in [Sink::poll_ready, Sink::poll_flush, Sink::poll_close] {
        let (tx, rx) = flavour.channel::<u64>(2);
        let (mut sink, alarm) = (tx.into_sink(), Alarm::new());
        let left = fill(&alarm, &mut sink, 0..) as u64;
        drop(rx);
        assert_eq!(alarm.count(), 1);
        let back = poll(&alarm, &mut sink, how);
        assert_eq!(back, Poll::Ready(Err(SendError::Disconnected(left))));
        assert_eq!(sink.into_inner().1, None, "given back once");
    }
}

fn the_slot_can_be_had_back<S: Made>(flavour: Flavour<S>) {
    let (tx, mut rx) = flavour.channel::<u64>(2);
    let (mut sink, alarm) = (tx.into_sink(), Alarm::new());
    let left = fill(&alarm, &mut sink, 0..) as u64;
    let (tx, slot) = sink.into_inner();
    assert_eq!((tx.is_some(), slot), (true, Some(left)));
    assert!(rx.try_iter().eq(0..left));
    assert_eq!(rx.try_recv(), Err(TryRecvError::Empty));
    assert_eq!(alarm.count(), 0, "no task waits");
    // Before it was flushed, too.
    let mut sink = tx.unwrap().into_sink();
    put(&alarm, &mut sink, 7);
    assert_eq!(sink.into_inner().1, Some(7));
    assert_eq!(rx.try_recv(), Err(TryRecvError::Disconnected));
}

fn a_dropped_sink_drops_its_element_once<S: Made>(flavour: Flavour<S>) {
    let ledger = Ledger::new(3);
    let (tx, rx) = flavour.channel(2);
    let (mut sink, alarm) = (tx.into_sink(), Alarm::new());
    let left = fill(&alarm, &mut sink, ledger.items(0..3));
    drop(sink);
    assert_eq!(ledger.dropped()[left], 1);
    assert_eq!(block_on(rx.into_stream().count()), left);
    assert!(ledger.dropped()[..=left].iter().all(|&count| count == 1));
}

fn a_closed_sink_disconnects<S: Made>(flavour: Flavour<S>) {
    let (tx, mut rx) = flavour.channel::<u64>(2);
    let (mut sink, alarm) = (tx.into_sink(), Alarm::new());
    assert_eq!(block_on(sink.close()), Ok(()));
    assert_eq!(rx.recv(), Err(RecvError));
    for how in [Sink::poll_ready, Sink::poll_flush, Sink::poll_close] {
        assert_eq!(poll(&alarm, &mut sink, how), Poll::Ready(Ok(())));
    }
    assert_eq!(block_on(sink.send(3)), Err(SendError::Disconnected(3)));
    assert!(sink.sender().is_none());
    let (tx, slot) = sink.into_inner();
    assert_eq!((tx.is_none(), slot), (true, None));
}

fn a_sink_that_is_not_ready_takes_nothing<S: Made>(flavour: Flavour<S>) {
    let (tx, _rx) = flavour.channel::<u64>(2);
    let (mut sink, alarm) = (tx.into_sink(), Alarm::new());
    let left = fill(&alarm, &mut sink, 0..) as u64;
    let put = catch_unwind(AssertUnwindSafe(|| Pin::new(&mut sink).start_send(9)));
    let text = *put.unwrap_err().downcast::<&str>().unwrap();
    assert_eq!(
        text,
        "an element is put into a sink that was not ready for it"
    );
    assert_eq!(sink.into_inner().1, Some(left));
}

/// A sink is made, used as far as it goes, and taken apart again, all the time.
fn sinks_are_given_up_all_the_time<S: Made>(flavour: Flavour<S>) {
    let (tx, rx) = flavour.channel::<u64>(1);
    thread::scope(|scope| {
        scope.spawn(move || {
            let alarm = Alarm::new();
            let (mut tx, mut n, mut slot, mut turn) = (Some(tx), 0, None, 0);
            while n < 1000 || slot.is_some() {
                let mut sink = tx.take().unwrap().into_sink();
                let value = slot.take().unwrap_or_else(|| {
                    n += 1;
                    n - 1
                });
                put(&alarm, &mut sink, value);
                turn += 1;
                for _ in 0..turn % 3 {
                    if poll(&alarm, &mut sink, Sink::poll_flush).is_pending() {
                        thread::yield_now();
                    }
                }
                (tx, slot) = sink.into_inner();
            }
        });
        let got: Vec<u64> = block_on(rx.into_stream().collect());
        assert!(got.into_iter().eq(0..1000));
    });
}

fn a_full_channel_holds_the_sink_back<S: Made>(flavour: Flavour<S>) {
    let (tx, mut rx) = flavour.channel::<u64>(1);
    let (mut sink, alarm) = (tx.into_sink(), Alarm::new());
    let other = Alarm::new();
    assert_eq!(fill(&alarm, &mut sink, 0..), 1);
    for how in [Sink::poll_ready, Sink::poll_flush, Sink::poll_close] {
        assert!(poll(&other, &mut sink, how).is_pending());
    }
    assert_eq!(rx.counters().parked, 1);
    for n in 1..20 {
        assert_eq!(rx.try_recv(), Ok(n - 1));
        // The last one that polled is woken.
        assert_eq!((alarm.count(), other.count()), (0, n as usize));
        assert_eq!(
            poll(&alarm, &mut sink, Sink::poll_ready),
            Poll::Ready(Ok(()))
        );
        put(&alarm, &mut sink, n + 1);
        assert!(poll(&other, &mut sink, Sink::poll_flush).is_pending());
    }
}

fn closing_waits_for_the_slot<S: Made>(flavour: Flavour<S>) {
    let (tx, mut rx) = flavour.channel::<u64>(1);
    let (mut sink, alarm) = (tx.into_sink(), Alarm::new());
    fill(&alarm, &mut sink, 0..);
    assert!(poll(&alarm, &mut sink, Sink::poll_close).is_pending());
    assert_eq!((rx.recv(), alarm.count()), (Ok(0), 1));
    let closed = poll(&alarm, &mut sink, Sink::poll_close);
    assert_eq!(closed, Poll::Ready(Ok(())));
    assert!(rx.iter().eq([1]));
}

fn what_does_not_fit_comes_back<S: Made>(flavour: Flavour<S>) {
    let options = flavour.options(1).overflow(Overflow::Reject);
    let (tx, mut rx) = flavour.make(options).unwrap();
    let mut sink = tx.into_sink();
    assert_eq!(block_on(sink.send(1)), Ok(()));
    assert_eq!(block_on(sink.send(2)), Err(SendError::Full(2)));
    assert_eq!(block_on(sink.feed(3)), Ok(()));
    assert_eq!(block_on(sink.close()), Err(SendError::Full(3)));
    assert_eq!(rx.recv(), Ok(1));
    assert_eq!(block_on(sink.send(4)), Ok(()), "still of use");
    assert_eq!((rx.recv(), rx.counters().refused), (Ok(4), 2));
}

fn losses_are_reported<S: Made>(flavour: Flavour<S>) {
    let options = flavour.options(1).overflow(Overflow::DropNewest);
    let (tx, rx) = flavour.make(options).unwrap();
    let (mut sink, mut stream) = (tx.into_sink(), rx.into_stream());
    for n in 0..4 {
        assert_eq!(block_on(sink.send(n)), Ok(()));
    }
    assert_eq!(block_on(stream.next()), Some(0));
    assert_eq!(stream.receiver().lost_before(), 0);
    assert_eq!(block_on(sink.send(4)), Ok(()));
    assert_eq!(block_on(stream.next()), Some(4));
    assert_eq!(stream.receiver().lost_before(), 3);
}

fn a_flush_is_done_when_the_element_is_taken<S: Made>(flavour: Flavour<S>) {
    let (tx, mut rx) = flavour.channel::<u64>(0);
    let (mut sink, alarm) = (tx.into_sink(), Alarm::new());
    for n in 0..3 {
        put(&alarm, &mut sink, n);
        assert_eq!(rx.try_recv(), Err(TryRecvError::Empty), "not flushed");
        assert!(poll(&alarm, &mut sink, Sink::poll_flush).is_pending());
        assert!(poll(&alarm, &mut sink, Sink::poll_ready).is_pending());
        assert_eq!(rx.try_recv(), Ok(n));
        let flushed = poll(&alarm, &mut sink, Sink::poll_flush);
        assert_eq!(
            (flushed, alarm.count() as u64),
            (Poll::Ready(Ok(())), n + 1)
        );
    }
}

fn a_closed_sink_leaves_others_open<S: Made + ManySenders>(flavour: Flavour<S>) {
    let (tx, rx) = flavour.channel::<u64>(2);
    let mut sink = tx.into_sink();
    let mut other = sink.sender().unwrap().clone().into_sink();
    assert_eq!(block_on(sink.close()), Ok(()));
    let (mut stream, alarm) = (rx.into_stream(), Alarm::new());
    assert!(alarm.poll(&mut stream.next()).is_pending());
    assert_eq!(block_on(other.send(1)), Ok(()));
    assert_eq!(block_on(stream.next()), Some(1));
    assert!(alarm.poll(&mut stream.next()).is_pending());
    assert_eq!(block_on(other.close()), Ok(()));
    assert_eq!(block_on(stream.next()), None);
}

/// Two wait, one is woken and goes: the other is woken in its place.
fn a_dropped_sink_passes_its_wake_up_on<S: Made + ManySenders>(flavour: Flavour<S>) {
    for by_drop in [true, false] {
        let (tx, mut rx) = flavour.channel::<u64>(1);
        let (first, second) = (Alarm::new(), Alarm::new());
        let mut stays = tx.clone().into_sink();
        let mut gone = tx.into_sink();
        fill(&first, &mut gone, 0..);
        put(&second, &mut stays, 2);
        assert!(poll(&second, &mut stays, Sink::poll_flush).is_pending());
        assert_eq!(rx.recv(), Ok(0));
        assert_eq!((first.count(), second.count()), (1, 0));
        match by_drop {
            true => drop(gone),
            false => assert_eq!(gone.into_inner().1, Some(1)),
        }
        assert_eq!((first.count(), second.count()), (1, 1));
        assert_eq!(block_on(stays.close()), Ok(()));
        assert!(rx.iter().eq([2]));
    }
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
            let mut numbers = futures_util::stream::iter(0..2000).map(Ok);
            block_on(tx.into_sink().send_all(&mut numbers)).unwrap();
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
