//! Effects of ends on each other: claims in tasks, weak ends, counts, and the end of receiving.

use crate::channel::crowds::{await_parked, check_all, element};
use crate::channel::flavour::{Flavour, Made};
use std::future::poll_fn;
use std::task::Poll;
use std::thread;
use thalweg::channel::{
    ClaimError, ManyReceivers, ManySenders, Overflow, RecvError, SendError, TryRecvError, mpmc,
};
use thalweg_testkit::wakers::{Alarm, block_on};

pub(crate) fn a_claim_in_a_task_waits_for_all_of_its_room<S: Made>(flavour: Flavour<S>) {
    let alarm = Alarm::new();
    let (mut tx, mut rx) = flavour.channel::<u32>(4);
    tx.send_many(0..4).unwrap();
    let mut future = Box::pin(tx.claim_async(3));
    assert!(alarm.poll(&mut future).is_pending());
    for n in 0..3 {
        let before = alarm.count();
        assert_eq!(rx.recv(), Ok(n));
        assert_eq!(alarm.count(), before + 1, "room for {}", n + 1);
        if n < 2 {
            assert!(alarm.poll(&mut future).is_pending());
        }
    }
    let Poll::Ready(Ok(mut claim)) = alarm.poll(&mut future) else {
        panic!("there is room for 3");
    };
    assert_eq!(claim.write(&[4, 5, 6]), 3);
    assert_eq!(claim.commit(), 3);
    drop(future);
    assert_eq!(rx.try_iter().collect::<Vec<_>>(), [3, 4, 5, 6]);
    // At once, if there is room; and what can't be had is refused at once.
    let one = alarm.poll(&mut Box::pin(tx.claim_async(1)));
    assert!(matches!(&one, Poll::Ready(Ok(claim)) if claim.capacity() == 1));
    drop(one);
    let too_large = alarm
        .poll(&mut Box::pin(tx.claim_async(5)))
        .map(Result::unwrap_err);
    let (asked, capacity) = (5, 4);
    assert_eq!(
        too_large,
        Poll::Ready(ClaimError::TooLarge { asked, capacity })
    );
}

pub(crate) fn a_claim_in_a_task_ends_with_the_channel<S: Made>(flavour: Flavour<S>) {
    for by_close in [true, false] {
        let alarm = Alarm::new();
        let (mut tx, mut rx) = flavour.channel::<u32>(1);
        tx.send(1).unwrap();
        let mut future = Box::pin(tx.claim_async(1));
        assert!(alarm.poll(&mut future).is_pending());
        match by_close {
            true => rx.close(),
            false => drop(rx),
        }
        assert_eq!(alarm.count(), 1);
        let outcome = alarm.poll(&mut future).map(Result::unwrap_err);
        assert_eq!(outcome, Poll::Ready(ClaimError::Disconnected));
    }
    let options = flavour.options(1).overflow(Overflow::Reject);
    let (mut tx, _rx) = flavour.make::<u32>(options).unwrap();
    tx.send(1).unwrap();
    let (asked, free) = (1, 0);
    let outcome = block_on(tx.claim_async(1)).map(drop);
    assert_eq!(outcome, Err(ClaimError::Full { asked, free }));
}

/// A claim in a task that is given up keeps no room.
pub(crate) fn a_dropped_claim_future_keeps_nothing<S: Made>(flavour: Flavour<S>) {
    let alarm = Alarm::new();
    let (mut tx, mut rx) = flavour.channel::<u32>(2);
    for n in 0..50 {
        tx.send(n).unwrap();
        let mut future = Box::pin(tx.claim_async(2));
        assert!(alarm.poll(&mut future).is_pending());
        if n % 2 == 0 {
            assert_eq!(rx.try_recv(), Ok(n));
        }
        drop(future);
        if n % 2 == 1 {
            assert_eq!(rx.try_recv(), Ok(n));
        }
        assert_eq!(
            (tx.len(), tx.try_claim(2).map(|claim| claim.commit())),
            (0, Ok(0))
        );
        assert!(rx.try_recv().is_err(), "passes what the claim left");
    }
    assert_eq!(alarm.count(), 25);
}

/// Two wait for room, one is woken and gives up: the other is woken in its place. For a ring that
/// is shared.
pub(crate) fn a_dropped_claim_future_passes_its_wake_up_on<S: Made + ManySenders>(
    flavour: Flavour<S>,
) {
    let (first, second) = (Alarm::new(), Alarm::new());
    let (mut tx, mut rx) = flavour.channel::<u32>(1);
    let mut other = tx.clone();
    tx.send(1).unwrap();
    let (mut claim, mut send) = (Box::pin(tx.claim_async(1)), other.send_async(2));
    assert!(first.poll(&mut claim).is_pending());
    assert!(second.poll(&mut send).is_pending());
    assert_eq!(rx.recv(), Ok(1));
    assert_eq!((first.count(), second.count()), (1, 0));
    drop(claim);
    assert_eq!(second.count(), 1);
    assert_eq!(second.poll(&mut send), Poll::Ready(Ok(())));
    assert_eq!(rx.recv(), Ok(2));
}

/// Tasks that claim, and threads that send, while a receiver answers what it gets; all of them
/// stay until the last answer.
pub(crate) fn claims_in_tasks_compete<S: Made + ManySenders>(flavour: Flavour<S>) {
    const EACH: u64 = 300;
    let (mut first, mut rx) = flavour.channel::<u64>(2);
    let (answer, mut answers) = thalweg::channel::mpsc::<u64>(4096);
    thread::scope(|scope| {
        for sender in 1..4 {
            let mut tx = first.clone();
            let mut answer = answer.clone();
            scope.spawn(move || {
                for n in (0..EACH).step_by(2) {
                    let mut claim = block_on(tx.claim_async(2)).unwrap();
                    claim.push(element(sender, n)).unwrap();
                    if n + 1 < EACH && sender != 3 {
                        claim.push(element(sender, n + 1)).unwrap();
                        claim.commit();
                    } else {
                        claim.commit();
                        block_on(tx.send_async(element(sender, n + 1))).unwrap();
                    }
                }
                answer.send(u64::MAX).unwrap();
                tx
            });
        }
        scope.spawn(move || {
            (0..EACH).for_each(|n| first.send(element(0, n)).unwrap());
            first
        });
        let receiver = scope.spawn(move || {
            let mut answer = answer;
            for _ in 0..4 * EACH {
                answer.send(rx.recv().unwrap()).unwrap();
            }
        });
        let answers = answers.iter().take(4 * EACH as usize + 3);
        check_all(answers.filter(|n| *n != u64::MAX).collect(), 4, EACH);
        receiver.join().unwrap();
    });
}

pub(crate) fn many_are_received_in_a_task<S: Made>(flavour: Flavour<S>) {
    let alarm = Alarm::new();
    let (mut tx, mut rx) = flavour.channel::<u32>(4);
    let mut out = vec![0];
    assert_eq!(block_on(rx.recv_many_async(&mut out, 0)), Ok(0));
    tx.send_many(1..4).unwrap();
    assert_eq!(block_on(rx.recv_many_async(&mut out, 2)), Ok(2));
    assert_eq!(block_on(rx.recv_many_async(&mut out, 9)), Ok(1));
    let mut future = Box::pin(rx.recv_many_async(&mut out, 9));
    assert!(alarm.poll(&mut future).is_pending());
    tx.send(4).unwrap();
    assert_eq!(alarm.count(), 1);
    // Given up with a wake-up that it has not used: nothing is lost.
    drop(future);
    tx.send(5).unwrap();
    assert_eq!(block_on(rx.recv_many_async(&mut out, 9)), Ok(2));
    assert_eq!(out, [0, 1, 2, 3, 4, 5]);
    drop(tx);
    assert_eq!(block_on(rx.recv_many_async(&mut out, 9)), Err(RecvError));
}

/// For any store, also none: threads send what a task receives in batches.
pub(crate) fn batches_are_received_in_a_task<S: Made>(flavour: Flavour<S>) {
    const ALL: u32 = 2_000;
    let (mut tx, mut rx) = flavour.channel::<u32>(2);
    thread::scope(|scope| {
        let sender = scope.spawn(move || {
            (0..ALL).for_each(|n| tx.send(n).unwrap());
            tx
        });
        let mut out = Vec::new();
        while out.len() < ALL as usize {
            let count = block_on(rx.recv_many_async(&mut out, 3)).unwrap();
            assert!((1..=3).contains(&count));
        }
        assert!(out.into_iter().eq(0..ALL));
        drop(sender.join().unwrap());
    });
    assert_eq!(
        block_on(rx.recv_many_async(&mut Vec::new(), 3)),
        Err(RecvError)
    );
}

/// A polled receiver gives its receiver back, which loses nothing by it.
pub(crate) fn a_receiver_is_polled_and_comes_back<S: Made>(flavour: Flavour<S>) {
    let alarm = Alarm::new();
    let (mut tx, mut rx) = flavour.channel::<u32>(2);
    for n in 0..20 {
        let mut stream = rx.into_stream();
        let mut next = poll_fn(|context| stream.poll_recv(context));
        assert!(alarm.poll(&mut next).is_pending());
        assert_eq!(tx.try_send(n), Ok(()));
        assert_eq!(alarm.count(), 1 + n as usize);
        if n % 2 == 0 {
            let mut next = poll_fn(|context| stream.poll_recv(context));
            assert_eq!(alarm.poll(&mut next), Poll::Ready(Ok(n)));
        }
        rx = stream.into_inner();
        if n % 2 == 1 {
            assert_eq!(rx.try_recv(), Ok(n));
        }
    }
    drop(tx);
    let mut stream = rx.stream();
    let mut next = poll_fn(|context| stream.poll_recv(context));
    assert_eq!(alarm.poll(&mut next), Poll::Ready(Err(RecvError)));
    assert_eq!(alarm.poll(&mut next), Poll::Ready(Err(RecvError)));
}

pub(crate) fn closed_is_awaited<S: Made>(flavour: Flavour<S>) {
    for by_close in [true, false] {
        let alarm = Alarm::new();
        let (mut tx, mut rx) = flavour.channel::<u32>(1);
        let (mut closed, mut dropped) = (tx.closed(), tx.closed());
        assert!(alarm.poll(&mut closed).is_pending());
        assert!(alarm.poll(&mut dropped).is_pending());
        drop(dropped);
        let waiting = tx.closed();
        let waiter = thread::spawn(move || waiting.wait());
        match by_close {
            true => rx.close(),
            false => drop(rx),
        }
        assert_eq!(alarm.count(), 1);
        assert!(alarm.poll(&mut closed).is_ready());
        waiter.join().unwrap();
        assert!(tx.is_closed());
        tx.closed().wait();
        assert_eq!(tx.send(1), Err(SendError::Disconnected(1)));
        let mut late = tx.closed();
        drop(tx);
        assert!(alarm.poll(&mut late).is_ready(), "without a sender, too");
    }
}

/// Not by the room that a waiting sender wants, nor by one of several receivers.
pub(crate) fn closed_waits_for_the_last_receiver<S: Made + ManyReceivers>(flavour: Flavour<S>) {
    let alarm = Alarm::new();
    let (mut tx, mut rx) = flavour.channel::<u32>(2);
    let other = rx.clone();
    let mut closed = tx.closed();
    assert!(alarm.poll(&mut closed).is_pending());
    if tx.try_send(1).is_ok() {
        assert_eq!(rx.recv(), Ok(1));
    }
    drop(rx);
    assert!(alarm.poll(&mut closed).is_pending());
    assert_eq!(alarm.count(), 0);
    drop(other);
    assert_eq!(alarm.count(), 1);
}

pub(crate) fn weak_senders_do_not_count<S: Made + ManySenders>(flavour: Flavour<S>) {
    let (tx, mut rx) = flavour.channel::<u32>(2);
    let (stranger, _other) = flavour.channel::<u32>(2);
    let weak = tx.downgrade();
    let twin = weak.clone();
    assert_eq!(
        (tx.sender_count(), rx.sender_count(), rx.receiver_count()),
        (1, 1, 1)
    );
    let again = weak.upgrade().unwrap();
    assert_eq!((again.sender_count(), again.receiver_count()), (2, 1));
    assert!(again.same_channel(&tx) && !again.same_channel(&stranger));
    assert!(weak.same_channel(&twin) && !weak.same_channel(&stranger.downgrade()));
    drop(tx);
    let mut last = twin.upgrade().unwrap();
    drop(again);
    thread::scope(|scope| {
        scope.spawn(|| {
            last.send(7).unwrap();
            last.send(8).unwrap();
        });
        assert_eq!((rx.recv(), rx.recv()), (Ok(7), Ok(8)));
        assert_eq!(rx.try_recv(), Err(TryRecvError::Empty));
    });
    drop(last);
    assert_eq!(rx.recv(), Err(RecvError));
    assert!(weak.upgrade().is_none() && twin.upgrade().is_none());
    assert_eq!((rx.sender_count(), rx.recv()), (0, Err(RecvError)));
}

pub(crate) fn weak_receivers_do_not_count<S: Made + ManyReceivers>(flavour: Flavour<S>) {
    let (mut tx, mut rx) = flavour.channel::<u32>(2);
    let (_tx, stranger) = flavour.channel::<u32>(2);
    let weak = rx.downgrade();
    let mut again = weak.upgrade().unwrap();
    assert_eq!((tx.receiver_count(), rx.receiver_count()), (2, 2));
    assert!(again.same_channel(&rx) && !again.same_channel(&stranger));
    assert!(weak.same_channel(&weak.clone()) && !weak.same_channel(&stranger.downgrade()));
    thread::scope(|scope| {
        scope.spawn(|| (0..2).for_each(|n| tx.send(n).unwrap()));
        assert_eq!((rx.recv(), again.recv()), (Ok(0), Ok(1)));
    });
    drop(rx);
    assert!(!tx.is_closed());
    drop(again);
    assert!(tx.is_closed() && weak.upgrade().is_none());
    assert_eq!(
        (tx.receiver_count(), tx.send(2)),
        (0, Err(SendError::Disconnected(2)))
    );
}

/// A sender that leaves beside one that is upgraded: the receiver gets the elements that came in
/// time, and is woken by the end else.
pub(crate) fn an_upgrade_comes_in_time_or_not_at_all<S: Made + ManySenders>(flavour: Flavour<S>) {
    for round in 0..300 {
        let (tx, mut rx) = flavour.channel::<u32>(1);
        let weak = tx.downgrade();
        thread::scope(|scope| {
            let leaver = scope.spawn(move || drop(tx));
            let upgraded = scope.spawn(move || {
                let sent = weak.upgrade().map(|mut tx| tx.send(round));
                assert!(sent.is_none_or(|sent| sent.is_ok()));
                (weak, sent.is_some())
            });
            let got = rx.recv();
            let (weak, sent) = upgraded.join().unwrap();
            leaver.join().unwrap();
            assert_eq!(got, if sent { Ok(round) } else { Err(RecvError) });
            assert!(weak.upgrade().is_none());
        });
    }
}

/// A receiver that sleeps frees what senders that have gone left behind.
pub(crate) fn a_sleeping_receiver_forgets_who_has_gone<S: Made + ManySenders>(flavour: Flavour<S>) {
    const GONE: u64 = 50;
    let (tx, mut rx) = flavour.channel::<u32>(4);
    let weak = tx.downgrade();
    let (mut first, capacity) = (tx.clone(), rx.capacity());
    thread::scope(|scope| {
        let receiver = scope.spawn(move || (rx.recv(), rx));
        await_parked(|| tx.counters().parked);
        for _ in 0..GONE {
            drop(weak.upgrade());
        }
        first.send(1).unwrap();
        let (got, mut rx) = receiver.join().unwrap();
        assert_eq!(got, Ok(1));
        assert_eq!(rx.try_recv(), Err(TryRecvError::Empty));
        assert!(rx.capacity() <= capacity, "{} for 2 senders", rx.capacity());
    });
}

#[test]
fn ends_and_futures_are_unpin_for_every_element() {
    use std::marker::PhantomPinned;
    use thalweg::channel::*;
    fn goes<E: Unpin + Send>() {}
    type T = PhantomPinned;
    goes::<Sender<T, Spsc>>();
    goes::<Sender<T, Mpmc>>();
    goes::<Receiver<T, Spsc>>();
    goes::<Receiver<T, Mpsc>>();
    goes::<RecvFuture<'_, T, Mpsc>>();
    goes::<SendFuture<'_, T, Mpsc, Option<T>>>();
    goes::<RecvStream<T, Spsc>>();
    goes::<Closed>();
    goes::<WeakSender<T, Mpsc>>();
    goes::<WeakReceiver<T, Mpmc>>();
    fn is_sent(_: impl Send) {}
    let (mut tx, mut rx) = mpmc::<Option<T>>(8);
    is_sent(rx.recv_many_async(&mut Vec::new(), 1));
    is_sent(tx.claim_async(1));
    is_sent(Select::new().recv(&mut rx, drop).wait_async());
    fn is_unpin<E: Unpin>() {}
    goes::<Claim<'_, T>>();
    goes::<Batch<'_, T>>();
    is_unpin::<Iter<'_, T, Mpsc>>();
    is_unpin::<IntoIter<T, Mpsc>>();
}

#[test]
fn a_claim_may_end_on_another_thread() {
    let (mut tx, mut rx) = mpmc::<String>(4);
    for (is_committed, got) in [(true, 2), (false, 0)] {
        let mut claim = tx.claim(3).unwrap();
        claim.push("here".to_owned()).unwrap();
        thread::scope(|scope| {
            scope.spawn(move || {
                claim.push("there".to_owned()).unwrap();
                if is_committed {
                    assert_eq!(claim.commit(), 2);
                }
            });
        });
        assert_eq!(rx.try_iter().count(), got);
    }
    assert_eq!(tx.send_many(["x"; 4].map(String::from)), Ok(()));
}

/// A process ends where a stack is too small. The last receiver drops what is left, and has room.
#[test]
fn an_endpoint_that_goes_needs_no_room_for_an_element_on_the_stack() {
    let (sender, receiver) = mpmc::<[u8; 128 << 10]>(1);
    let clones = (sender.clone(), receiver.clone());
    let small = thread::Builder::new().stack_size(96 << 10);
    let thread = small.spawn(move || drop(clones));
    let thread = thread.expect("there is a thread");
    thread.join().expect("both go");
    drop((sender, receiver));
}
