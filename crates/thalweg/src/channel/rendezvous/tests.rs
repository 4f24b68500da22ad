//! Tests of one rendezvous, step by step; threads that meet are in `tests/channel_select`.

use crate::channel::{Overflow, RecvFuture, TryRecvError, TrySendError, mpmc, spsc};
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use thalweg_testkit::wakers::Alarm;

fn is_pending<T>(poll: Poll<T>) -> bool {
    matches!(poll, Poll::Pending)
}

#[test]
fn nothing_is_ever_in_it() {
    let (mut tx, mut rx) = spsc::<u8>(0);
    assert_eq!(
        (tx.len(), tx.capacity(), rx.len(), rx.capacity()),
        (0, 0, 0, 0)
    );
    assert!(tx.is_empty() && tx.is_full() && rx.is_empty());
    assert_eq!(tx.try_send(1), Err(TrySendError::Full(1)));
    assert_eq!(rx.try_recv(), Err(TryRecvError::Empty));
    assert_eq!(tx.try_send_many([1, 2]).unwrap_err().sent, 0);
    assert_eq!(tx.counters().refused, 2);
    drop(rx);
    assert_eq!(tx.try_send(1), Err(TrySendError::Disconnected(1)));
}

#[test]
fn a_waiting_task_meets_a_try() {
    let (mut tx, mut rx) = mpmc(0);
    let count = Alarm::new();
    {
        let mut receiving = pin!(rx.recv_async());
        assert!(is_pending(count.poll(&mut receiving)));
        assert_eq!(tx.try_send(7), Ok(()));
        assert_eq!(tx.try_send(8), Err(TrySendError::Full(8)), "it has one");
        assert_eq!(count.count(), 1);
        assert_eq!(count.poll(&mut receiving), Poll::Ready(Ok(7)));
    }
    let mut sending = pin!(tx.send_async(9));
    assert!(is_pending(count.poll(&mut sending)));
    assert!(is_pending(count.poll(&mut sending)));
    assert_eq!(rx.len(), 0);
    assert_eq!(rx.try_recv(), Ok(9));
    assert_eq!(count.count(), 2);
    assert!(count.poll(&mut sending).is_ready());
    let counters = rx.counters();
    assert_eq!((counters.sent, counters.received), (2, 2));
    assert_eq!((counters.parked, counters.woken), (2, 2));
}

#[test]
fn a_dropped_send_takes_its_element_back() {
    let (mut tx, mut rx) = spsc(0);
    let (_, waker) = Alarm::pair();
    let mut context = Context::from_waker(&waker);
    let mut value = Some(String::from("mine"));
    {
        let mut sending = pin!(tx.send_from_async(&mut value));
        assert!(is_pending(sending.as_mut().poll(&mut context)));
    }
    assert_eq!(value.as_deref(), Some("mine"));
    assert_eq!(rx.try_recv(), Err(TryRecvError::Empty));
    let mut sending = tx.send_async(String::from("taken"));
    assert!(is_pending(pin!(&mut sending).poll(&mut context)));
    assert_eq!(sending.take().as_deref(), Some("taken"));
    assert_eq!(rx.try_recv(), Err(TryRecvError::Empty));
}

/// Polls once, has `tx` send, and drops the future without polling it again.
fn fulfil_and_drop(future: RecvFuture<'_, u8, crate::channel::Mpmc>, send: impl FnOnce()) {
    let (_, waker) = Alarm::pair();
    let mut future = pin!(future);
    assert!(is_pending(
        future.as_mut().poll(&mut Context::from_waker(&waker))
    ));
    send();
}

#[test]
fn what_a_dropped_receive_got_goes_to_the_next() {
    let (mut tx, mut rx) = mpmc(0);
    let mut other = rx.clone();
    fulfil_and_drop(rx.recv_async(), || tx.try_send(1).unwrap());
    assert_eq!((rx.len(), tx.len(), rx.counters().received), (1, 1, 0));
    assert_eq!(other.try_recv(), Ok(1), "it came back");
    assert_eq!(
        (rx.len(), rx.counters().sent, rx.counters().received),
        (0, 1, 1)
    );

    let count = Alarm::new();
    let mut waiting = pin!(other.recv_async());
    fulfil_and_drop(rx.recv_async(), || {
        tx.try_send(2).unwrap();
        assert!(is_pending(count.poll(&mut waiting)));
    });
    assert_eq!(count.count(), 1);
    assert_eq!(count.poll(&mut waiting), Poll::Ready(Ok(2)));
    assert_eq!(rx.counters().sent, 2);
}

#[test]
fn what_came_back_survives_the_senders_and_goes_with_the_receivers() {
    let (mut tx, mut rx) = mpmc(0);
    fulfil_and_drop(rx.recv_async(), || tx.try_send(1).unwrap());
    drop(tx);
    assert_eq!(rx.try_recv(), Ok(1));
    assert_eq!(rx.try_recv(), Err(TryRecvError::Disconnected));

    let (mut tx, mut rx) = mpmc::<Arc<u8>>(0);
    let element = Arc::new(1);
    {
        let (_, waker) = Alarm::pair();
        let mut future = pin!(rx.recv_async());
        assert!(is_pending(
            future.as_mut().poll(&mut Context::from_waker(&waker))
        ));
        tx.try_send(Arc::clone(&element)).unwrap();
    }
    drop(rx);
    assert_eq!(Arc::strong_count(&element), 1);
}

#[test]
fn closing_wakes_everybody_and_gives_elements_back() {
    let (mut tx, mut rx) = mpmc(0);
    let count = Alarm::new();
    let mut value = Some(5);
    let mut other = tx.clone();
    let mut sending = pin!(tx.send_async(4));
    let mut from = pin!(other.send_from_async(&mut value));
    assert!(is_pending(count.poll(&mut sending)));
    assert!(is_pending(count.poll(&mut from)));
    rx.close();
    assert_eq!(count.count(), 2);
    assert_eq!(rx.try_recv(), Err(TryRecvError::Disconnected));
    drop(rx);
    let Poll::Ready(Err(error)) = count.poll(&mut sending) else {
        panic!("it is closed");
    };
    assert!(error.is_disconnected() && error.into_inner() == 4);
    let Poll::Ready(Err(error)) = count.poll(&mut from) else {
        panic!("it is closed");
    };
    assert_eq!(error.into_inner(), 5);
}

#[test]
fn a_task_that_moves_is_woken_where_it_is() {
    let (mut tx, mut rx) = spsc(0);
    let ((before, first), (after, second)) = (Alarm::pair(), Alarm::pair());
    let mut receiving = pin!(rx.recv_async());
    assert!(is_pending(
        receiving.as_mut().poll(&mut Context::from_waker(&first))
    ));
    assert!(is_pending(
        receiving.as_mut().poll(&mut Context::from_waker(&second))
    ));
    tx.try_send(1).unwrap();
    assert_eq!((before.count(), after.count()), (0, 1));
}

#[test]
fn a_policy_that_drops_has_nothing_to_drop_from() {
    use crate::channel::Builder;
    for overflow in [Overflow::DropNewest, Overflow::DropOldest] {
        let error = Builder::new(0).overflow(overflow).mpmc::<u8>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "a channel can't have a capacity of 0 together with a policy that drops"
        );
    }
    let (mut tx, _rx) = Builder::new(0).overflow(Overflow::Reject).spsc().unwrap();
    assert_eq!(tx.send(1).unwrap_err().into_inner(), 1);
}

mod state {
    use super::super::*;

    #[test]
    fn who_came_first_is_served_first_and_anybody_may_leave() {
        let mut state = State::<u64>::new();
        let mut list = |n| state.offers.push(None, (n, None));
        let entries = [10, 11, 12, 13].map(&mut list);
        assert_eq!(
            state
                .offers
                .remove(entries[1])
                .expect("it is offered")
                .element
                .0,
            11
        );
        assert!(state.offers.remove(entries[1]).is_none(), "it left");
        let mut take = || match state.take(None) {
            Taken::From(value, _) => Some(value),
            _ => None,
        };
        assert_eq!(
            [take(), take(), take(), take()],
            [Some(10), Some(12), Some(13), None]
        );
        assert_eq!(
            (state.handed_over, state.popped(), state.moves()),
            (3, 3, 4)
        );
    }
}
