//! An element that comes after the last receiver has gone is dropped at once, not with the senders.

use crate::channel::flavour::{Flavour, Made};
use crate::channel::ledger::{Item, Ledger};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Barrier};
use std::thread;
use thalweg::channel::{ManySenders, Sender, Shape, Spsc, TryRecvError, spsc};

/// Nothing is in the channel, and all that it took was discarded.
fn check_gone<T, S: Shape>(tx: &Sender<T, S>, sent: u64) {
    let counters = tx.counters();
    let figures = (counters.sent, counters.received, counters.discarded);
    assert_eq!((tx.len(), figures), (0, (sent, 0, sent)));
}

pub(crate) fn a_late_commit_is_discarded_at_once<S: Made>(flavour: Flavour<S>) {
    let ledger = Ledger::new(4);
    let (mut tx, rx) = flavour.channel(4);
    tx.send(ledger.item(0)).ok().unwrap();
    let mut claim = tx.claim(2).unwrap();
    assert!(claim.push(ledger.item(1)).is_ok());
    drop(rx);
    assert_eq!(ledger.dropped(), [1, 0, 0, 0]);
    assert!(claim.push(ledger.item(2)).is_ok());
    assert_eq!(claim.commit(), 2);
    assert_eq!(ledger.dropped(), [1, 1, 1, 0]);
    check_gone(&tx, 3);
    assert!(tx.send(ledger.item(3)).is_err());
    assert_eq!(ledger.dropped(), [1; 4]);
    drop(tx);
    assert_eq!(ledger.dropped(), [1; 4], "none twice");
}

/// The receiver goes while the iterator gives elements: what was sent is discarded, and the next
/// comes back.
pub(crate) fn a_late_batch_is_discarded_at_once<S: Made>(flavour: Flavour<S>) {
    let ledger = Ledger::new(3);
    let (mut tx, rx) = flavour.channel(4);
    let mut rx = Some(rx);
    let items = ledger.items(0..3).inspect(|item| {
        if item.id == 1 {
            rx = None;
        }
    });
    let error = tx.try_send_many(items).err().unwrap();
    assert!(error.error.is_disconnected());
    assert_eq!((error.sent, error.error.into_inner().id), (1, 1));
    assert_eq!(ledger.dropped(), [1, 1, 0]);
    check_gone(&tx, 1);
    drop(tx);
    assert_eq!(
        ledger.dropped(),
        [1, 1, 0],
        "nothing was left for the senders"
    );
}

/// Elements whose drop panics are dropped, and those behind them, by the sender that comes late.
pub(crate) fn a_panic_of_a_late_element_drops_the_others<S: Made>(flavour: Flavour<S>) {
    struct Bomb(Item);
    impl Drop for Bomb {
        fn drop(&mut self) {
            assert!(self.0.id != 1, "seeded");
        }
    }
    let ledger = Ledger::new(3);
    let (mut tx, rx) = flavour.channel(4);
    let mut claim = tx.claim(3).unwrap();
    for item in ledger.items(0..3) {
        assert!(claim.push(Bomb(item)).is_ok());
    }
    drop(rx);
    let panic = catch_unwind(AssertUnwindSafe(|| claim.commit()));
    assert!(panic.is_err());
    assert_eq!(ledger.dropped(), [1; 3]);
    check_gone(&tx, 3);
    drop(tx);
    assert_eq!(ledger.dropped(), [1; 3], "none twice");
}

/// A batch whose end is forgotten has taken elements that it did not give back the room of.
pub(crate) fn a_forgotten_batch_is_not_discarded<S: Made>(flavour: Flavour<S>) {
    let ledger = Ledger::new(3);
    ledger.keep();
    let (mut tx, mut rx) = flavour.channel(4);
    tx.send_many(ledger.items(0..2)).ok().unwrap();
    let mut claim = tx.claim(1).unwrap();
    assert!(claim.push(ledger.item(2)).is_ok());
    let mut batch = rx.batch(2);
    drop(batch.next());
    crate::forgotten::forget(batch);
    drop(rx);
    let before = ledger.dropped();
    assert_eq!((before[0], before[2]), (1, 0));
    assert_eq!(claim.commit(), 1);
    assert_eq!(ledger.dropped(), [1, before[1], 1]);
    drop(tx);
    assert_eq!(ledger.dropped(), [1, before[1], 1]);
}

/// After `close` figures are still counted.
pub(crate) fn what_a_closed_channel_holds_is_counted<S: Made>(flavour: Flavour<S>) {
    let (mut tx, mut rx) = flavour.channel::<u32>(4);
    tx.send_many(0..3).unwrap();
    rx.close();
    assert_eq!(rx.recv(), Ok(0));
    drop(rx);
    let counters = tx.counters();
    let figures = (counters.sent, counters.received, counters.discarded);
    assert_eq!(figures, (3, 1, 2));
}

/// A claim of one hides what another sends behind it, until it is given up or committed.
pub(crate) fn what_a_claim_hid_is_discarded<S: Made + ManySenders>(flavour: Flavour<S>) {
    for is_given_up in [false, true] {
        let ledger = Ledger::new(2);
        let (mut tx, rx) = flavour.channel(4);
        let mut other = tx.clone();
        let mut claim = tx.claim(1).unwrap();
        assert!(claim.push(ledger.item(0)).is_ok());
        other.send(ledger.item(1)).ok().unwrap();
        drop(rx);
        assert_eq!(ledger.dropped(), [0, 0], "hidden");
        if is_given_up {
            drop(claim);
        } else {
            assert_eq!(claim.commit(), 1);
        }
        assert_eq!(ledger.dropped(), [1, 1]);
        assert_eq!(other.len(), 0);
    }
}

/// A client that asks learns that there is no answer, in every round of a race between two threads.
pub(crate) fn requests_are_not_kept<S: Made>(flavour: Flavour<S>) {
    const ROUNDS: usize = 500;
    let start = Barrier::new(2);
    thread::scope(|scope| {
        for _ in 0..ROUNDS {
            let (mut tx, rx) = flavour.channel::<Sender<u32, Spsc>>(2);
            let leaver = scope.spawn(|| {
                start.wait();
                drop(rx);
            });
            let (request, mut reply) = spsc(1);
            start.wait();
            if tx.send(request).is_ok() {
                assert!(reply.recv().is_err());
                leaver.join().unwrap();
                check_gone(&tx, 1);
            }
        }
    });
}

/// Sends and claims race with a close; once the receiver has got the end, nothing comes. An element
/// that came too late for that is counted as discarded, and dropped. The sender stays.
pub(crate) fn nothing_comes_after_the_end<S: Made>(flavour: Flavour<S>) {
    for round in 0..400 {
        let life = Arc::new(());
        let (mut tx, mut rx) = flavour.channel(4);
        let sender = thread::spawn({
            let life = Arc::clone(&life);
            move || {
                let mut sent = 0;
                loop {
                    let element = Arc::clone(&life);
                    let is_sent = if flavour.has_claims && (sent + round) % 3 == 0 {
                        tx.claim(1).is_ok_and(|mut claim| {
                            assert!(claim.push(element).is_ok());
                            claim.commit() == 1
                        })
                    } else {
                        tx.send(element).is_ok()
                    };
                    if !is_sent {
                        return (sent, tx);
                    }
                    sent += 1;
                }
            }
        });
        for _ in 0..round % 13 {
            rx.recv().unwrap();
        }
        rx.close();
        while rx.try_recv() != Err(TryRecvError::Disconnected) {
            thread::yield_now();
        }
        let received = rx.counters().received;
        let (sent, tx) = sender.join().unwrap();
        assert_eq!(rx.try_recv(), Err(TryRecvError::Disconnected));
        let counters = rx.counters();
        assert_eq!((counters.received, counters.sent), (received, sent));
        assert_eq!((counters.discarded, rx.len()), (sent - received, 0));
        assert_eq!(Arc::strong_count(&life), 1, "elements that are kept");
        drop(tx);
    }
}
