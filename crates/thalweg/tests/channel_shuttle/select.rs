//! Waiting for several channels at once.

use crate::channel_shuttle::ledger::{Item, Ledger, Seen, joined, on_threads, seen_once};
use crate::channel_shuttle::store::Ends;
use crate::channel_shuttle::{explore, over_stores, store};
use shuttle::thread;
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Waker};
use thalweg::channel::{Builder, Mpmc, Receiver, Select, Sender, Shape, mpmc, spsc};

/// Elements that each sender sends.
const EACH: usize = 3;

fn send_either<S: Shape>(
    left: &mut Sender<Item, Mpmc>,
    right: &mut Sender<Item, S>,
    items: impl Iterator<Item = Item>,
) {
    let mut items = items.fuse();
    let (mut first, mut second) = (items.next(), items.next());
    for sent in 1..=EACH {
        let is_left = Select::new()
            .send(left, &mut first, |sent| sent.map(|()| true))
            .send(right, &mut second, |sent| sent.map(|()| false))
            .wait()
            .unwrap();
        let (of_arm, of_other) = if is_left {
            (&mut first, &second)
        } else {
            (&mut second, &first)
        };
        assert!(of_arm.is_none() && of_other.is_some(), "{sent} sent");
        *of_arm = items.next();
    }
}

fn recv_either<S: Shape>(
    left: &mut Receiver<Item, Mpmc>,
    right: &mut Receiver<Item, S>,
) -> Vec<(usize, usize)> {
    let mut seen = Vec::new();
    let mut see = |item: Item| seen.push((item.sender, item.number));
    loop {
        let (is_left, got) = Select::new()
            .recv(left, |got| (true, got))
            .recv(right, |got| (false, got))
            .wait();
        match got {
            Ok(item) => see(item),
            Err(_) if is_left => {
                right.iter().for_each(see);
                return seen;
            }
            Err(_) => {
                left.iter().for_each(see);
                return seen;
            }
        }
    }
}

/// Several offer to two channels at once, and several request from both.
fn each_element_is_sent_and_received_by_one_arm<S: Shape>(ends: Ends<S>) {
    let (left, from_left) = Builder::new(1).mpmc().unwrap();
    let senders = ends.senders.into_iter().enumerate().map(|(n, mut right)| {
        let (items, mut left) = (ends.ledger.items(n), left.clone());
        thread::spawn(move || send_either(&mut left, &mut right, items))
    });
    let senders: Vec<_> = senders.collect();
    let made = senders.len();
    drop(left);
    let receivers = ends.receivers.into_iter().map(|mut right| {
        let mut left = from_left.clone();
        thread::spawn(move || recv_either(&mut left, &mut right))
    });
    let receivers: Vec<_> = receivers.collect();
    drop(from_left);
    joined(senders);
    let mut seen: Vec<_> = joined(receivers).into_iter().flatten().collect();
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), made * EACH);
    // With the two that were offered last.
    ends.ledger.check_all_gone(made * (EACH + 2));
}

over_stores! {
    each_element_is_sent_and_received_by_one_arm:
    packed ordered mpmc unbounded rendezvous_of_two rendezvous
}

/// Four threads offer and request on one rendezvous: two pairs meet, and no thread itself.
fn selects_meet_in_pairs() {
    let (tx, rx) = mpmc::<usize>(0);
    let threads = [0, 1, 2, 3].map(|n| {
        let (mut tx, mut rx) = (tx.clone(), rx.clone());
        thread::spawn(move || {
            let mut offer = Some(n);
            let got = Select::new()
                .send(&mut tx, &mut offer, |sent| sent.map(|()| None).unwrap())
                .recv(&mut rx, |got| Some(got.unwrap()))
                .wait();
            assert_eq!(offer.is_none(), got.is_none());
            // No end disconnects before all are done.
            (got, tx, rx)
        })
    });
    let done = threads.map(|thread| thread.join().unwrap());
    let mut met = Vec::new();
    for (n, (got, ..)) in done.iter().enumerate() {
        met.extend(got.map(|other| [n, other]).into_iter().flatten());
    }
    met.sort_unstable();
    assert_eq!(met, [0, 1, 2, 3]);
}

#[test]
fn four_selects_meet_in_pairs() {
    explore(selects_meet_in_pairs);
}

/// A select offers on a rendezvous where a partner may come and go, beside a ring with room at some
/// moment: it sends to one.
fn offers_to_one() {
    let ledger = Ledger::new(1);
    let (mut zero, mut from_zero) = spsc::<Item>(0);
    let (mut ring, mut from_ring) = spsc::<Item>(1);
    let mut items = ledger.items(0);
    ring.send(items.next().unwrap()).unwrap();
    let partner = thread::spawn(move || {
        let got = from_zero.recv_deadline(std::time::Instant::now());
        (got.is_ok(), from_zero)
    });
    let drain = thread::spawn(move || {
        assert_eq!(from_ring.recv().unwrap().number, 0);
        from_ring
    });
    let (mut first, mut second) = (items.next(), items.next());
    let is_first = Select::new()
        .send(&mut zero, &mut first, |sent| sent.map(|()| true))
        .send(&mut ring, &mut second, |sent| sent.map(|()| false))
        .wait()
        .unwrap();
    assert_eq!((first.is_none(), second.is_none()), (is_first, !is_first));
    let (is_met, from_zero) = partner.join().unwrap();
    assert_eq!(is_met, is_first);
    let mut from_ring = drain.join().unwrap();
    assert_eq!(from_ring.try_recv().is_ok(), !is_first);
    drop((zero, ring, from_zero, first, second, items));
    ledger.check_all_gone(3);
}

#[test]
fn an_offer_is_taken_once() {
    explore(offers_to_one);
}

/// Receivers that select and receivers that do not stand in one line.
fn selects_and_plain_receives_share() {
    let ends = store::mpmc();
    let mut receivers = ends.receivers.into_iter();
    let (mut one, mut two) = (receivers.next().unwrap(), receivers.next().unwrap());
    drop(receivers);
    let (_kept, mut silent) = spsc::<Item>(1);
    let selecting = thread::spawn(move || {
        let mut seen = Seen::default();
        let mut is_open = true;
        while is_open {
            is_open = Select::new()
                .recv(&mut one, |got| {
                    got.is_ok_and(|item| {
                        seen.see(&item);
                        true
                    })
                })
                .recv(&mut silent, |_| unreachable!("nothing is sent there"))
                .wait();
        }
        seen
    });
    let plain = thread::spawn(move || {
        let mut seen = Seen::default();
        two.iter().for_each(|item| seen.see(&item));
        seen
    });
    let made = ends.senders.len() * EACH;
    let ledger = ends.ledger.clone();
    let senders = on_threads(ends.senders, move |n, mut tx| {
        let items = ledger.items(n).take(EACH);
        items.for_each(|item| tx.send(item).unwrap());
    });
    joined(senders);
    let seen = [selecting.join().unwrap(), plain.join().unwrap()];
    assert_eq!(seen_once(&seen), made);
    ends.ledger.check_all_gone(made);
}

#[test]
fn a_select_passes_its_wake_up_on() {
    explore(selects_and_plain_receives_share);
}

/// One of two channels has an element at every moment: it comes to the second before it goes from
/// the first.
fn look_at_what_moves(make: impl Fn() -> (Sender<u8, Mpmc>, Receiver<u8, Mpmc>)) {
    let ((mut to_first, first), (mut to_second, second)) = (make(), make());
    let (mut from_first, mut from_second) = (first.clone(), second.clone());
    let mut mover = first.clone();
    // Futures, since at a rendezvous an element is there as long as a sender waits with it.
    let mut context = Context::from_waker(Waker::noop());
    let mut sending = pin!(to_first.send_async(1));
    let _ = sending.as_mut().poll(&mut context);
    let moving = thread::spawn(move || {
        let mut context = Context::from_waker(Waker::noop());
        {
            let mut sending = pin!(to_second.send_async(2));
            let waits = sending.as_mut().poll(&mut context).is_pending();
            let _ = mover.try_recv();
            if waits {
                // There until it is taken.
                shuttle::future::block_on(sending).unwrap();
            }
        }
        (to_second, mover)
    });
    let found = Select::new()
        .recv(&mut from_second, |got| got.ok())
        .recv(&mut from_first, |got| got.ok())
        .or_else(|| None);
    while found != Some(2) && from_second.try_recv().is_err() {
        thread::yield_now();
    }
    assert!(found.is_some(), "it was in one of both all the time");
    drop((moving.join().unwrap(), first, second));
}

mod what_moves_is_not_missed {
    use thalweg::channel::{self, unbounded};

    #[test]
    fn mpmc() {
        crate::channel_shuttle::explore(|| super::look_at_what_moves(|| channel::mpmc(1)));
    }

    #[test]
    fn unbounded_() {
        crate::channel_shuttle::explore(|| super::look_at_what_moves(|| unbounded(1)));
    }

    #[test]
    fn rendezvous() {
        crate::channel_shuttle::explore(|| super::look_at_what_moves(|| channel::mpmc(0)));
    }
}

/// A list of arms, as long as there are channels: each element is received once, and each of two
/// senders, one of them a list too, sends what it has.
fn lists_of_arms() {
    let channels: Vec<_> = [mpmc::<u8>(0), mpmc(1), mpmc(0)].into();
    let (senders, mut receivers): (Vec<_>, Vec<_>) = channels.into_iter().unzip();
    let threads = [0, 1].map(|n| {
        let mut senders = senders.clone();
        thread::spawn(move || {
            let mut values = [Some(n); 3];
            let mut select = Select::dynamic();
            for (tx, value) in senders.iter_mut().zip(&mut values) {
                select.push_send(tx, value, |at, sent| sent.map(|()| at).unwrap());
            }
            let at = select.wait().unwrap();
            for (other, value) in values.iter().enumerate() {
                assert_eq!(value.is_none(), other == at);
            }
            senders
        })
    });
    let mut seen = [0; 2];
    for _ in 0..2 {
        let mut select = Select::dynamic();
        for rx in &mut receivers {
            select.push_recv(rx, |_, got| got.unwrap());
        }
        seen[usize::from(select.wait().unwrap())] += 1;
    }
    assert_eq!(seen, [1, 1]);
    drop((threads.map(|thread| thread.join().unwrap()), senders));
}

#[test]
fn a_list_of_arms_sends_and_meets() {
    explore(lists_of_arms);
}
