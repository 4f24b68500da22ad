//! Foreign code that panics: wakers, destructors and closures, at every call. Each element is
//! delivered once, given back once, or counted, and is dropped once; and no waiter is forgotten
//! while both ends are there.

use crate::channel::flavour::{Flavour, Made};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use thalweg::channel::{Builder, Overflow, Receiver, Select, Sender, Shape, oneshot};
use thalweg_testkit::fuse::{Fuse, at_every_call, attempt};
use thalweg_testkit::wakers::Alarm;

/// Elements of a case, by number: how often each was dropped.
#[derive(Clone)]
struct Elements {
    fuse: Arc<Fuse>,
    drops: Arc<Mutex<Vec<u32>>>,
}

struct Element {
    id: usize,
    of: Elements,
}

impl Drop for Element {
    fn drop(&mut self) {
        self.of.drops.lock().unwrap()[self.id] += 1;
        self.of.fuse.burn();
    }
}

impl Elements {
    fn new(fuse: &Arc<Fuse>) -> Self {
        Self {
            fuse: Arc::clone(fuse),
            drops: Arc::default(),
        }
    }

    fn make(&self) -> Element {
        let mut drops = self.drops.lock().unwrap();
        drops.push(0);
        Element {
            id: drops.len() - 1,
            of: self.clone(),
        }
    }

    fn assert_each_dropped_once(&self) {
        let drops = self.drops.lock().unwrap();
        assert!(drops.iter().all(|&drops| drops == 1), "{drops:?}");
    }
}

/// Sends, and counts what was taken.
fn send<S: Shape>(tx: &mut Sender<Element, S>, element: Element, taken: &mut u64) {
    let sent = tx.try_send(element);
    *taken += u64::from(sent.is_ok());
    attempt(|| drop(sent));
}

/// Receives what is there, and counts.
fn drain<S: Shape>(rx: &mut Receiver<Element, S>, got: &mut u64) {
    while let Ok(element) = rx.try_recv() {
        *got += 1;
        attempt(|| drop(element));
    }
}

/// Both wait and are woken, as if nothing had happened.
fn both_ends_work<S: Made>(
    tx: &mut Sender<Element, S>,
    rx: &mut Receiver<Element, S>,
    of: &Elements,
) {
    let alarm = Alarm::new();
    let mut waits = rx.recv_async();
    assert!(alarm.poll(&mut waits).is_pending());
    assert!(tx.try_send(of.make()).is_ok());
    assert_eq!(alarm.count(), 1, "the receiver is woken");
    let Poll::Ready(Ok(element)) = alarm.poll(&mut waits) else {
        panic!("it is there");
    };
    attempt(|| drop((waits, element)));
    while tx.capacity() > tx.len() {
        assert!(tx.try_send(of.make()).is_ok());
    }
    let alarm = Alarm::new();
    let mut waits = tx.send_async(of.make());
    assert!(alarm.poll(&mut waits).is_pending());
    let element = rx.try_recv().ok();
    assert!(element.is_some(), "it is full");
    assert_eq!(alarm.count(), 1, "the sender is woken");
    assert!(alarm.poll(&mut waits).is_ready());
    attempt(|| drop((waits, element)));
}

pub(crate) fn wakers_that_panic_lose_nothing<S: Made>(flavour: Flavour<S>) {
    at_every_call(if flavour.is_rendezvous { 12 } else { 14 }, |fuse| {
        let of = Elements::new(fuse);
        let (mut tx, mut rx) = flavour.channel::<Element>(2);
        let (mut taken, mut got) = (0, 0);
        // A receiver waits, is polled by another task, and gets an element, or goes.
        for goes in [false, true] {
            let mut waits = rx.recv_async();
            for _ in 0..2 {
                assert!(fuse.poll(&mut waits).is_none());
            }
            send(&mut tx, of.make(), &mut taken);
            if !goes && let Some(Ok(element)) = fuse.poll(&mut waits) {
                got += 1;
                attempt(|| drop(element));
            }
            attempt(|| drop(waits));
            drain(&mut rx, &mut got);
            assert_eq!(got, taken, "received, of those that were sent");
        }
        // A sender waits for room, and its element stays where it is until it is sent.
        for goes in [false, true] {
            while tx.capacity() > tx.len() {
                send(&mut tx, of.make(), &mut taken);
            }
            let mut place = Some(of.make());
            let mut waits = tx.send_from_async(&mut place);
            for _ in 0..2 {
                assert!(fuse.poll(&mut waits).is_none());
            }
            if let Ok(element) = rx.try_recv() {
                got += 1;
                attempt(|| drop(element));
            }
            if !goes {
                fuse.poll(&mut waits);
            }
            attempt(|| drop(waits));
            taken += u64::from(place.is_none());
            attempt(|| drop(place));
            drain(&mut rx, &mut got);
            assert_eq!(got, taken, "received, of those that were sent");
        }
        // A select waits.
        let mut chosen = None;
        let select = Select::new().recv(&mut rx, |element| chosen = element.ok());
        let mut waits = Box::pin(select.wait_async());
        assert!(fuse.poll(&mut waits).is_none());
        send(&mut tx, of.make(), &mut taken);
        fuse.poll(&mut waits);
        attempt(|| drop(waits));
        got += u64::from(chosen.is_some());
        attempt(|| drop(chosen));
        drain(&mut rx, &mut got);
        assert_eq!(got, taken, "received, of those that were sent");
        assert_eq!((rx.counters().sent, rx.counters().received), (taken, got));
        both_ends_work(&mut tx, &mut rx, &of);
        attempt(|| drop(rx));
        attempt(|| drop(tx));
        of.assert_each_dropped_once();
    });
}

pub(crate) fn destructors_and_closures_that_panic_lose_nothing<S: Made>(flavour: Flavour<S>) {
    at_every_call(if flavour.has_claims { 12 } else { 8 }, |fuse| {
        let of = Elements::new(fuse);
        let (mut tx, mut rx) = flavour.channel::<Element>(4);
        // Claims: one that is dropped, and one of which a part is used.
        for uses in [false, true] {
            let Ok(mut claim) = tx.claim(3) else { break };
            for _ in 0..2 {
                assert!(claim.push(of.make()).is_ok());
            }
            attempt(|| match uses {
                true => assert_eq!(claim.commit(), 2),
                false => drop(claim),
            });
            assert_eq!(rx.len(), if uses { 2 } else { 0 });
        }
        let mut taken = rx.len() as u64;
        (0..2).for_each(|_| send(&mut tx, of.make(), &mut taken));
        let got = AtomicU64::new(0);
        // ORDERING: SeqCst, a test's count.
        let count = |element: Element| (got.fetch_add(1, SeqCst), of.fuse.burn(), drop(element)).0;
        attempt(|| rx.try_recv_each(1, |element| _ = count(element)));
        attempt(|| rx.batch(1).for_each(|element| _ = count(element)));
        let mut many = Vec::new();
        let more = rx.try_recv_many(&mut many, 4).unwrap_or(0);
        assert_eq!(many.len(), more);
        many.into_iter()
            .for_each(|element| _ = attempt(|| count(element)));
        // ORDERING: SeqCst, a test's count.
        assert_eq!((got.load(SeqCst), rx.len()), (taken, 0));
        assert_eq!((rx.counters().sent, rx.counters().received), (taken, taken));
        (0..3).for_each(|_| send(&mut tx, of.make(), &mut taken));
        attempt(|| drop(rx));
        assert_eq!(tx.counters().discarded, 3, "counted, and dropped");
        send(&mut tx, of.make(), &mut taken);
        attempt(|| drop(tx));
        of.assert_each_dropped_once();
    });
}

pub(crate) fn what_is_dropped_for_others_is_counted<S: Made>(flavour: Flavour<S>) {
    at_every_call(5, |fuse| {
        let of = Elements::new(fuse);
        let options = flavour.options(2).overflow(Overflow::DropOldest);
        let (mut tx, mut rx) = flavour.make::<Element>(options).unwrap();
        for _ in 0..5 {
            attempt(|| assert!(tx.send(of.make()).is_ok()));
        }
        let (mut got, mut lost) = (0, 0);
        while let Ok(element) = rx.try_recv() {
            (got, lost) = (got + 1, lost + rx.lost_before());
            attempt(|| drop(element));
        }
        assert_eq!((got, lost, rx.counters().dropped), (2, 3, 3));
        both_ends_work_without_waiting(&mut tx, &mut rx, &of);
        attempt(|| drop((rx, tx)));
        of.assert_each_dropped_once();
    });
}

fn both_ends_work_without_waiting<S: Made>(
    tx: &mut Sender<Element, S>,
    rx: &mut Receiver<Element, S>,
    of: &Elements,
) {
    assert!(tx.try_send(of.make()).is_ok());
    let element = rx.try_recv().ok();
    assert!(element.is_some());
    attempt(|| drop(element));
}

#[test]
fn a_reply_is_delivered_or_given_back_whatever_panics() {
    for case in 0..4 {
        at_every_call(2, |fuse| {
            let of = Elements::new(fuse);
            let (mut tx, mut rx) = oneshot::<Element>();
            for _ in 0..2 {
                fuse.poll(&mut Box::pin(tx.closed()));
                assert!(fuse.poll(&mut rx).is_none());
            }
            match case {
                0 => {
                    assert!(
                        tx.send(of.make()).is_ok(),
                        "a panic of a waker is not the sender's"
                    );
                    let element = rx.try_recv().ok();
                    assert!(element.is_some(), "it was sent");
                    attempt(|| drop(element));
                }
                1 => drop(tx),
                2 => {
                    attempt(|| drop(rx));
                    let back = tx.send(of.make());
                    assert!(back.is_err());
                    attempt(|| drop(back));
                }
                _ => {
                    assert!(tx.send(of.make()).is_ok());
                    attempt(|| drop(rx));
                }
            }
            of.assert_each_dropped_once();
        });
    }
}

/// A receiver behind one whose waker panics is woken, too.
#[test]
fn a_waker_that_panics_keeps_no_other_from_being_woken() {
    at_every_call(3, |fuse| {
        let (mut tx, mut first) = Builder::new(4).mpmc::<u32>().unwrap();
        let mut second = first.clone();
        let (mut first, mut second) = (first.recv_async(), second.recv_async());
        let alarm = Alarm::new();
        fuse.poll(&mut first);
        assert!(alarm.poll(&mut second).is_pending());
        assert!(tx.send(1).is_ok() && tx.send(2).is_ok());
        assert_eq!(alarm.count(), 1);
        attempt(|| drop(first));
    });
}

/// Both ends of a raw ring go with elements inside.
#[test]
fn a_ring_drops_what_is_left_whatever_panics() {
    use thalweg::ring::{Layout, MpmcRing, spsc};
    for layout in [Layout::Packed, Layout::Slotted] {
        at_every_call(4, |fuse| {
            let of = Elements::new(fuse);
            let (mut producer, consumer) = spsc(8, layout).unwrap();
            (0..4).for_each(|_| assert!(producer.try_push(of.make()).is_ok()));
            attempt(|| drop((consumer, producer)));
            let ring = MpmcRing::new(8, layout).unwrap();
            (0..4).for_each(|_| assert!(ring.try_push(of.make()).is_ok()));
            attempt(|| drop(ring));
            of.assert_each_dropped_once();
        });
    }
}
