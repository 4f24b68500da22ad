//! Sending and receiving by several threads at once, and the end of either side.

use crate::channel_shuttle::ledger::{Seen, joined, on_threads, seen_once};
use crate::channel_shuttle::over_stores;
use crate::channel_shuttle::store::Ends;
use shuttle::thread;
use std::time::Instant;
use thalweg::channel::{RecvTimeoutError, SendError, SendTimeoutError, Shape};

/// Elements that each sender sends; more than fit in.
const EACH: usize = 4;

/// All elements arrive, and every receiver gets the end.
fn all_arrives<S: Shape>(ends: Ends<S>) {
    let made = ends.senders.len() * EACH;
    let ledger = ends.ledger.clone();
    let senders = on_threads(ends.senders, move |n, mut tx| {
        let items = ledger.items(n);
        items.take(EACH).for_each(|item| tx.send(item).unwrap());
    });
    let receivers = on_threads(ends.receivers, move |_, mut rx| {
        let mut seen = Seen::default();
        while let Ok(item) = rx.recv() {
            seen.see(&item);
        }
        (seen, rx)
    });
    joined(senders);
    let (seen, receivers): (Vec<_>, Vec<_>) = joined(receivers).into_iter().unzip();
    assert_eq!(seen_once(&seen), made);
    let counters = receivers[0].counters();
    assert_eq!(
        (counters.sent, counters.received),
        (made as u64, made as u64)
    );
    drop(receivers);
    ends.ledger.check_all_gone(made);
}

over_stores! {
    all_arrives:
    packed slotted ordered mpmc packed_mpmc unbounded rendezvous_of_two rendezvous
}

/// A receiver closes the channel at some moment: what was sent until then is received, the rest
/// comes back.
fn what_was_sent_before_the_close_arrives<S: Shape>(ends: Ends<S>) {
    let ledger = ends.ledger.clone();
    let senders = on_threads(ends.senders, move |n, mut tx| {
        let items = ledger.items(n);
        for (sent, item) in items.enumerate() {
            if let Err(error) = tx.send(item) {
                let SendError::Disconnected(back) = error else {
                    unreachable!("a channel that blocks is never full");
                };
                assert_eq!(back.number, sent);
                return sent;
            }
        }
        unreachable!("the channel is closed before all are sent");
    });
    let receivers = on_threads(ends.receivers, move |_, mut rx| {
        let mut seen = Seen::default();
        while let Ok(item) = rx.recv() {
            seen.see(&item);
            if seen.len() == 2 {
                rx.close();
            }
        }
        (seen, rx)
    });
    let (mut seen, mut receivers): (Vec<_>, Vec<_>) = joined(receivers).into_iter().unzip();
    let sent = joined(senders);
    // A send that was under way may have come after the end, where each sender has its own ring.
    for (seen, rx) in seen.iter_mut().zip(&mut receivers) {
        rx.try_iter().for_each(|item| seen.see(&item));
    }
    let discarded = receivers[0].counters().discarded as usize;
    drop(receivers);
    // Where each sender has its own ring, what came after the end is discarded and counted.
    assert_eq!(seen_once(&seen) + discarded, sent.iter().sum::<usize>());
    // The one that came back, of each sender.
    ends.ledger
        .check_all_gone(sent.iter().map(|sent| sent + 1).sum());
}

/// Receivers leave one by one: what was sent is received or discarded.
fn what_is_left_is_discarded<S: Shape>(ends: Ends<S>) {
    let ledger = ends.ledger.clone();
    let senders = on_threads(ends.senders, move |n, mut tx| {
        let mut items = ledger.items(n);
        let is_sent = |_: &()| tx.send(items.next().unwrap()).is_ok();
        let sent = std::iter::repeat(()).take_while(is_sent).count();
        (sent, tx)
    });
    let receivers = on_threads(ends.receivers, move |n, mut rx| {
        let mut seen = Seen::default();
        // One of three leaves at once.
        (0..(n + 1) % 3).for_each(|_| seen.see(&rx.recv().unwrap()));
        seen
    });
    let seen = joined(receivers);
    let (sent, senders): (Vec<usize>, Vec<_>) = joined(senders).into_iter().unzip();
    let received = seen_once(&seen);
    let figure = |of| Ends::figure(&senders, of);
    assert_eq!(figure(|counters| counters.sent), sent.iter().sum());
    assert_eq!(figure(|counters| counters.received), received);
    let discarded = figure(|counters| counters.discarded);
    // Behind a send that was under way there may be some left, which go with the senders.
    let left = senders[0].len();
    assert_eq!(sent.iter().sum::<usize>(), received + discarded + left);
    drop(senders);
    ends.ledger
        .check_all_gone(sent.iter().map(|sent| sent + 1).sum());
}

over_stores! {
    what_was_sent_before_the_close_arrives:
    packed slotted ordered mpmc packed_mpmc unbounded rendezvous_of_two rendezvous
}

over_stores! {
    what_is_left_is_discarded:
    packed slotted ordered mpmc packed_mpmc unbounded rendezvous_of_two rendezvous
}

/// Both sides wait with a limit that is over, and so may give up at any moment, or try.
fn who_gives_up_loses_nothing<S: Shape>(ends: Ends<S>) {
    let made = ends.senders.len() * EACH;
    let ledger = ends.ledger.clone();
    let senders = on_threads(ends.senders, move |n, mut tx| {
        let items = ledger.items(n).take(EACH);
        for mut item in items {
            while let Err(error) = tx.send_deadline(item, Instant::now()) {
                let SendTimeoutError::Timeout(back) = error else {
                    unreachable!("receivers stay until the end");
                };
                item = back;
                thread::yield_now();
            }
        }
    });
    let receivers = on_threads(ends.receivers, move |_, mut rx| {
        let mut seen = Seen::default();
        loop {
            match rx.recv_deadline(Instant::now()) {
                Ok(item) => seen.see(&item),
                Err(RecvTimeoutError::Timeout) => thread::yield_now(),
                Err(_) => return seen,
            }
        }
    });
    ends.ledger.check_all_received(senders, receivers, made);
}

over_stores! {
    who_gives_up_loses_nothing:
    packed mpmc unbounded
}
