//! Slots with several receivers: whose turn it is, and which notifications the others get.

use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use super::alarm::Polled;
use futures::FutureExt;
use thalweg_task::slot::{RecvError, SendError, TryRecvError};
use thalweg_task::{Family, Local, LocalExecutor, Shared, slot_many};
use thalweg_testkit::wakers::poll_once;

for_both! {
    a_receive_that_is_over_is_not_notified who_was_robbed_keeps_its_turn
    a_replaced_value_notifies_one_receiver a_forgotten_receive_keeps_no_other_waiting
    all_receivers_hear_that_one_cancelled
}

/// A receive polled out of turn takes the value; kept, it must not take the next one's word.
fn a_receive_that_is_over_is_not_notified<F: Family>() {
    let (tx, rx) = slot_many::<u32, F>();
    let (mut first, mut other) = (rx.clone(), rx);
    let mut first = Polled::new(async move { first.recv().await });
    assert!(first.poll().is_pending());
    // Not dropped when it is over.
    let (mut second, mut context) = (other.recv(), Context::from_waker(Waker::noop()));
    assert!(Pin::new(&mut second).poll(&mut context).is_pending());
    tx.send(1).unwrap();
    let got = Pin::new(&mut second).poll(&mut context);
    assert_eq!(got, Poll::Ready(Ok(1)));
    assert!(first.heeds());
    assert!(first.poll().is_pending());
    tx.send(2).unwrap();
    assert!(first.heeds(), "it is the only one that waits");
    assert_eq!(first.poll(), Poll::Ready(Ok(2)));
    drop((tx, second));
}

fn who_was_robbed_keeps_its_turn<F: Family>() {
    let (tx, rx) = slot_many::<u32, F>();
    let (mut first, mut second, mut robber) = (rx.clone(), rx.clone(), rx);
    let mut first = Polled::new(async move { first.recv().await });
    let mut second = Polled::new(async move { second.recv().await });
    assert!(first.poll().is_pending() && second.poll().is_pending());
    for n in 0..3 {
        tx.send(n).unwrap();
        assert_eq!(robber.try_recv(), Ok(n));
        assert!(first.heeds() && !second.heeds(), "it has waited longest");
        assert!(first.poll().is_pending());
    }
    tx.send(7).unwrap();
    assert!(first.heeds() && !second.heeds());
    assert_eq!(first.poll(), Poll::Ready(Ok(7)));
    tx.send(8).unwrap();
    assert!(second.heeds());
    assert_eq!(second.poll(), Poll::Ready(Ok(8)));
}

fn a_replaced_value_notifies_one_receiver<F: Family>() {
    let (tx, rx) = slot_many::<u32, F>();
    let (mut first, mut second) = (rx.clone(), rx);
    let mut first = Polled::new(async move { first.recv().await });
    let mut second = Polled::new(async move { second.recv().await });
    assert!(first.poll().is_pending() && second.poll().is_pending());
    assert_eq!(tx.replace(1), Ok(None));
    assert_eq!(tx.replace(2), Ok(Some(1)));
    assert!(first.heeds() && !second.heeds(), "one value, one receiver");
    drop(first);
    assert!(second.heeds(), "passed on");
    assert_eq!(second.poll(), Poll::Ready(Ok(2)));
}

/// All ends stay, but for the one whose drop is tried.
fn a_forgotten_receive_keeps_no_other_waiting<F: Family>() {
    type Use<F> = fn(Many<F>) -> Option<Many<F>>;
    type Many<F> = thalweg_task::slot::SlotReceiver<u32, F, thalweg_task::slot::Many<F>>;
    let uses: [Use<F>; 3] = [
        |mut rx| {
            drop(rx.recv());
            Some(rx)
        },
        |mut rx| {
            assert_eq!(rx.try_recv(), Err(TryRecvError::Empty));
            Some(rx)
        },
        |rx| {
            drop(rx);
            None
        },
    ];
    for (at, used) in uses.into_iter().enumerate() {
        for is_notified_before in [false, true] {
            let (tx, rx) = slot_many::<u32, F>();
            let (mut first, mut second) = (rx.clone(), rx);
            let mut receive = first.recv();
            assert!(poll_once(&mut receive).is_pending());
            std::mem::forget(receive);
            let mut second = Polled::new(async move { second.recv().await });
            assert!(second.poll().is_pending());
            if is_notified_before {
                // A try would take it.
                if at == 1 {
                    continue;
                }
                tx.send(1).unwrap();
                assert!(!second.heeds());
            }
            let first = used(first);
            if !is_notified_before {
                tx.send(1).unwrap();
            }
            assert!(second.heeds());
            assert_eq!(second.poll(), Poll::Ready(Ok(1)));
            drop(first);
        }
    }
}

fn all_receivers_hear_that_one_cancelled<F: Family>() {
    let executor = LocalExecutor::new();
    let (tx, rx) = slot_many::<u32, F>();
    let (mut waits, mut asks, other) = (rx.clone(), rx.clone(), rx.clone());
    let waits = executor.spawn(async move { waits.recv().await });
    while executor.poll() {}
    tx.send(1).unwrap();
    rx.cancel();
    assert_eq!(executor.block_on(waits), Ok(Err(RecvError::Cancelled)));
    assert_eq!(asks.try_recv(), Err(TryRecvError::Cancelled));
    assert_eq!(asks.recv().now_or_never(), Some(Err(RecvError::Cancelled)));
    assert_eq!(tx.send(2), Err(SendError::Cancelled(2)));
    other.cancel();
    drop(tx);
    assert_eq!(
        asks.try_recv(),
        Err(TryRecvError::Cancelled),
        "that came first"
    );
    assert_eq!(asks.recv().now_or_never(), Some(Err(RecvError::Cancelled)));
}
