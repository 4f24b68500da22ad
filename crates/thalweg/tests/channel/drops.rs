//! Every element is dropped once, whatever happens.

use crate::channel::crowds::await_parked;
use crate::channel::flavour::{Flavour, Made};
use crate::channel::ledger::{Item, Ledger};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread;
use thalweg::channel::{Overflow, SendError, TryRecvError};

fn panics(work: impl FnOnce()) -> bool {
    catch_unwind(AssertUnwindSafe(work)).is_err()
}

pub(crate) fn elements_left_inside_are_dropped_with_the_last_receiver<S: Made>(
    flavour: Flavour<S>,
) {
    for sender_first in [false, true] {
        let ledger = Ledger::new(8);
        let (mut tx, mut rx) = flavour.channel::<Item>(5);
        tx.send_many(ledger.items(0..3)).ok().unwrap();
        assert_eq!(rx.try_iter().count(), 3);
        tx.send_many(ledger.items(3..8)).ok().unwrap();
        drop(rx.recv());
        assert_eq!(ledger.dropped(), [1, 1, 1, 1, 0, 0, 0, 0]);
        if sender_first {
            drop(tx);
            assert_eq!(ledger.dropped(), [1, 1, 1, 1, 0, 0, 0, 0]);
            drop(rx);
        } else {
            drop(rx);
            assert_eq!(ledger.dropped(), [1; 8], "at once");
            assert_eq!(tx.counters().discarded, 4);
            drop(tx);
        }
        assert_eq!(ledger.dropped(), [1; 8]);
    }
}

pub(crate) fn refused_elements_come_back<S: Made>(flavour: Flavour<S>) {
    let ledger = Ledger::new(4);
    let (mut tx, rx) = flavour.channel::<Item>(1);
    tx.send(ledger.item(0)).ok().unwrap();
    let back = tx.try_send(ledger.item(1)).unwrap_err().into_inner();
    assert_eq!((back.id, ledger.dropped()), (1, vec![0; 4]));
    drop(rx);
    assert_eq!(ledger.dropped(), [1, 0, 0, 0]);
    let error = tx.send(back).unwrap_err();
    assert!(matches!(error, SendError::Disconnected(Item { id: 1, .. })));
    drop(error);
    let error = tx.send_many(ledger.items(2..4)).unwrap_err();
    assert_eq!(ledger.dropped(), [1, 1, 0, 0]);
    drop(error);
    assert_eq!(ledger.dropped(), [1, 1, 1, 0], "the rest was not asked for");
}

pub(crate) fn a_panicking_iterator_sends_what_it_gave<S: Made>(flavour: Flavour<S>) {
    let ledger = Ledger::new(4);
    let (mut tx, mut rx) = flavour.channel::<Item>(8);
    for known_length in [false, true] {
        let items = |last: usize| {
            ledger
                .items(0..4)
                .inspect(move |item| assert!(item.id < last, "seeded"))
        };
        assert!(panics(|| {
            let _ = match known_length {
                false => tx.send_many(items(2).filter(|_| true)),
                true => tx.send_many(items(2)),
            };
        }));
        let got: Vec<_> = rx.try_iter().map(|item| item.id).collect();
        assert_eq!(got, [0, 1]);
        assert_eq!(rx.try_recv().err(), Some(TryRecvError::Empty));
    }
    assert_eq!(ledger.dropped(), [2, 2, 2, 0]);
    assert!(
        tx.try_send_many(ledger.items(0..4))
            .is_ok_and(|sent| sent == 4)
    );
    assert_eq!(rx.try_iter().count(), 4);
}

/// The receiver sleeps while the iterator gives elements, and panics then.
pub(crate) fn a_panicking_iterator_wakes_the_receiver<S: Made>(flavour: Flavour<S>) {
    let (mut tx, mut rx) = flavour.channel::<u32>(8);
    thread::scope(|scope| {
        let receiver = scope.spawn(move || (rx.recv(), rx.recv(), rx));
        await_parked(|| tx.counters().parked);
        let mut given = 0..2;
        let values = std::iter::from_fn(|| Some(given.next().expect("seeded")));
        assert!(panics(|| tx.send_many(values).unwrap()));
        let (first, second, rx) = receiver.join().unwrap();
        assert_eq!((first, second), (Ok(0), Ok(1)));
        drop((tx, rx));
    });
}

pub(crate) fn a_panic_in_recv_each_leaves_the_rest<S: Made>(flavour: Flavour<S>) {
    let ledger = Ledger::new(5);
    let (mut tx, mut rx) = flavour.channel::<Item>(5);
    tx.send_many(ledger.items(0..5)).ok().unwrap();
    assert!(panics(|| {
        let _ = rx.try_recv_each(5, |item| assert!(item.id < 1, "seeded"));
    }));
    assert_eq!((ledger.dropped(), rx.len()), (vec![1, 1, 0, 0, 0], 3));
    assert!(panics(|| rx
        .batch(3)
        .for_each(|item| assert!(item.id < 2, "seeded"))));
    assert_eq!((ledger.dropped(), rx.len()), (vec![1, 1, 1, 0, 0], 2));
    assert!(panics(|| rx
        .try_iter()
        .for_each(|item| assert!(item.id > 9, "seeded"))));
    assert_eq!((ledger.dropped(), tx.len()), (vec![1, 1, 1, 1, 0], 1));
    let sent = tx.try_send_many(ledger.items(0..4));
    assert!(sent.is_ok(), "the room came back");
    assert_eq!(rx.try_iter().count(), 5);
}

/// An element whose drop panics once.
struct Bomb {
    is_armed: bool,
    drops: Arc<AtomicUsize>,
}

impl Drop for Bomb {
    fn drop(&mut self) {
        // ORDERING: SeqCst, a test's count.
        self.drops.fetch_add(1, SeqCst);
        assert!(!self.is_armed || thread::panicking(), "seeded");
    }
}

pub(crate) fn a_panic_while_elements_are_dropped_drops_the_others<S: Made>(flavour: Flavour<S>) {
    let drops = Arc::new(AtomicUsize::new(0));
    let bomb = |is_armed| Bomb {
        is_armed,
        drops: Arc::clone(&drops),
    };
    let (mut tx, rx) = flavour.channel::<Bomb>(5);
    for n in 0..5 {
        tx.send(bomb(n == 1)).ok().unwrap();
    }
    assert!(panics(|| drop(rx)));
    let back = tx.send(bomb(false)).unwrap_err();
    assert!(back.is_disconnected(), "it is closed all the same");
    drop(back);
    drop(tx);
    // ORDERING: SeqCst, a test's count.
    assert_eq!(drops.load(SeqCst), 6);
}

/// The oldest element is dropped for a newer one, and its drop panics.
pub(crate) fn a_panic_of_the_oldest_is_counted<S: Made>(flavour: Flavour<S>) {
    let drops = Arc::new(AtomicUsize::new(0));
    let bomb = |is_armed| Bomb {
        is_armed,
        drops: Arc::clone(&drops),
    };
    let options = flavour.options(2).overflow(Overflow::DropOldest);
    let (mut tx, mut rx) = flavour.make::<Bomb>(options).unwrap();
    assert!(tx.send(bomb(true)).is_ok() && tx.send(bomb(false)).is_ok());
    assert!(panics(|| drop(tx.send(bomb(false)))));
    // The old one; the new one is in its place.
    // ORDERING: SeqCst, a test's count.
    assert_eq!((drops.load(SeqCst), tx.counters().dropped), (1, 1));
    assert!(tx.send(bomb(false)).is_ok() && tx.send(bomb(false)).is_ok());
    assert!(rx.recv().is_ok());
    assert_eq!((rx.lost_before(), rx.counters().dropped), (3, 3));
    drop((tx, rx));
    // ORDERING: SeqCst, a test's count.
    assert_eq!(drops.load(SeqCst), 5);
}

/// Random steps between two threads, as in crossbeam's `drops`.
pub(crate) fn every_element_is_dropped_once_between_threads<S: Made>(flavour: Flavour<S>) {
    const ITEMS: usize = 2000;
    for (left, received) in [(0, ITEMS), (10, 700), (25, 0)] {
        let ledger = Ledger::new(ITEMS + left);
        let (mut tx, mut rx) = flavour.channel::<Item>(32);
        thread::scope(|scope| {
            let ledger = &ledger;
            scope.spawn(move || {
                for item in ledger.items(0..ITEMS) {
                    if tx.send(item).is_err() {
                        break;
                    }
                }
                for item in ledger.items(ITEMS..ITEMS + left) {
                    let _ = tx.try_send(item);
                }
            });
            rx.iter().take(received).for_each(drop);
            drop(rx);
        });
        let dropped = ledger.dropped();
        assert!(dropped.iter().all(|&count| count <= 1));
        assert!(dropped[..received].iter().all(|&count| count == 1));
        // An item that was never made was never dropped: a prefix, but for those tried at the end.
        let made = dropped[..ITEMS]
            .iter()
            .take_while(|&&count| count == 1)
            .count();
        assert!(dropped[made..ITEMS].iter().all(|&count| count == 0));
    }
}
