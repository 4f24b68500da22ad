//! Futures that are dropped before they are done, on both sides, all the time.

use crate::channel_shuttle::ledger::{Seen, joined, on_threads};
use crate::channel_shuttle::over_stores;
use crate::channel_shuttle::store::Ends;
use shuttle::future::block_on;
use shuttle::thread;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use thalweg::channel::Shape;

/// Elements that each sender sends; more than fit in.
const EACH: usize = 3;

/// Looks at a future once, as the task that runs.
async fn look<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    poll_fn(|context| Poll::Ready(Pin::new(&mut *future).poll(context))).await
}

/// Nothing is lost, doubled or left asleep. One receiver is a thread, which stands in line with the
/// tasks.
fn dropped_futures_lose_nothing<S: Shape>(ends: Ends<S>) {
    let made = ends.senders.len() * EACH;
    // An element that comes back from a receiver is behind those that met others meanwhile.
    let new_seen = if ends.is_rendezvous && ends.receivers.len() > 1 {
        Seen::in_any_order
    } else {
        Seen::default
    };
    let ledger = ends.ledger.clone();
    let senders = on_threads(ends.senders, move |n, mut tx| {
        let items = ledger.items(n).take(EACH);
        block_on(async {
            for item in items {
                let changes = (item.sender + item.number) % 3;
                let mut place = Some(item);
                for _ in 0..changes {
                    let is_over = look(&mut tx.send_from_async(&mut place)).await.is_ready();
                    // Another thread may have taken it since.
                    assert!(place.is_none() || !is_over);
                }
                tx.send_from_async(&mut place).await.unwrap();
                assert!(place.is_none());
            }
        });
    });
    let receivers = on_threads(ends.receivers, move |n, mut rx| {
        let mut seen = new_seen();
        if n == 1 {
            rx.iter().for_each(|item| seen.see(&item));
            return seen;
        }
        block_on(async {
            loop {
                for _ in 0..(n + seen.len()) % 3 {
                    match look(&mut rx.recv_async()).await {
                        Poll::Ready(Ok(item)) => seen.see(&item),
                        Poll::Ready(Err(_)) => return seen,
                        Poll::Pending => {}
                    }
                }
                match rx.recv_async().await {
                    Ok(item) => seen.see(&item),
                    Err(_) => return seen,
                }
            }
        })
    });
    ends.ledger.check_all_received(senders, receivers, made);
}

over_stores! {
    dropped_futures_lose_nothing:
    packed slotted ordered mpmc packed_mpmc unbounded rendezvous_of_two rendezvous
}

/// A receive is given up after a look, for good, and nothing else wakes the others: each gets its
/// element.
fn a_task_that_goes_passes_its_wake_up_on<S: Shape>(mut ends: Ends<S>) {
    let mut gone = ends.receivers.pop().unwrap();
    let goes = thread::spawn(move || {
        let got = block_on(async { look(&mut gone.recv_async()).await });
        (matches!(got, Poll::Ready(Ok(_))), gone)
    });
    // As tasks: a thread behind a task would be woken with it.
    let receivers = on_threads(ends.receivers, move |_, mut rx| {
        block_on(rx.recv_async()).expect("its sender is there");
        rx
    });
    let mut tx = ends.senders.pop().unwrap();
    let mut made = receivers.len();
    for number in 0..made {
        tx.send(ends.ledger.item(0, number)).unwrap();
    }
    let (has_one, gone) = goes.join().unwrap();
    if has_one {
        tx.send(ends.ledger.item(0, made)).unwrap();
        made += 1;
    }
    let receivers = joined(receivers);
    drop((gone, receivers, tx, ends.senders));
    ends.ledger.check_all_gone(made);
}

over_stores! { a_task_that_goes_passes_its_wake_up_on: mpmc unbounded rendezvous }
