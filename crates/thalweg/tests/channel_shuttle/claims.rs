//! Room that is claimed, partly used and given back, among plain sends.

use crate::channel_shuttle::ledger::{Seen, joined, on_threads, seen_once};
use crate::channel_shuttle::over_stores;
use crate::channel_shuttle::store::Ends;
use thalweg::channel::Shape;

/// Rounds of each sender.
const ROUNDS: usize = 4;

/// Written elements arrive; unused room becomes free, wakes the waiter for it, and holds no end
/// back.
fn unused_room_comes_back<S: Shape>(ends: Ends<S>) {
    let ledger = ends.ledger.clone();
    let senders = on_threads(ends.senders, move |n, mut tx| {
        let mut items = ledger.items(n);
        let mut sent = 0;
        for round in n..n + ROUNDS {
            match round % 4 {
                // Half of it.
                0 => {
                    let mut claim = tx.claim(2).unwrap();
                    claim.push(items.next().unwrap()).unwrap();
                    sent += claim.commit();
                }
                // Nothing of it.
                1 => drop(tx.claim(1 + n % 2).unwrap()),
                2 => {
                    tx.send(items.next().unwrap()).unwrap();
                    sent += 1;
                }
                // All of it, if there is room at once.
                _ => {
                    if let Ok(mut claim) = tx.try_claim(1) {
                        claim.push(items.next().unwrap()).unwrap();
                        sent += claim.commit();
                    }
                }
            }
        }
        sent
    });
    let receivers = on_threads(ends.receivers, move |_, mut rx| {
        let mut seen = Seen::default();
        rx.iter().for_each(|item| seen.see(&item));
        assert_eq!((rx.len(), rx.is_closed()), (0, true));
        seen
    });
    let sent = joined(senders).into_iter().sum();
    let seen = joined(receivers);
    assert_eq!(seen_once(&seen), sent);
    ends.ledger.check_all_gone(sent);
}

over_stores! { unused_room_comes_back: packed slotted ordered mpmc packed_mpmc }

/// Batches larger than the room that there is, received in batches.
fn batches_arrive_whole<S: Shape>(ends: Ends<S>) {
    const EACH: usize = 5;
    let made = ends.senders.len() * EACH;
    let ledger = ends.ledger.clone();
    let senders = on_threads(ends.senders, move |n, mut tx| {
        let items = ledger.items(n).take(EACH);
        tx.send_many(items).unwrap()
    });
    let receivers = on_threads(ends.receivers, move |n, mut rx| {
        let mut seen = Seen::default();
        let mut items = Vec::new();
        while rx.recv_many(&mut items, 2).is_ok() {
            items.drain(..).for_each(|item| seen.see(&item));
            // One leaves some of its batches unread.
            rx.batch(2).take(n).for_each(|item| seen.see(&item));
        }
        seen
    });
    ends.ledger.check_all_received(senders, receivers, made);
}

over_stores! {
    batches_arrive_whole:
    packed ordered mpmc packed_mpmc unbounded rendezvous
}
