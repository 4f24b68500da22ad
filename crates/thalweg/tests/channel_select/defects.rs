//! What was wrong once.

use super::{LONG, SHORT, linger, watched};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Instant;
use thalweg::channel::{RecvError, Select, SelectTimeout, mpmc, spsc, unbounded};

/// A claim keeps a closed ring from its end: it is not ready, and not empty either.
#[test]
fn a_claim_that_is_held_does_not_keep_a_select_from_its_deadline() {
    watched(|| {
        let (mut tx, mut rx) = mpmc::<u8>(4);
        let (_zero, mut from_zero) = mpmc::<u8>(0);
        let claim = tx.claim(1).unwrap();
        rx.close();
        let outcome = Select::new()
            .recv(&mut rx, |_| ())
            .recv(&mut from_zero, |_| ())
            .wait_timeout(SHORT);
        assert_eq!(outcome, Err(SelectTimeout));
        drop(claim);
    });
}

/// The iterator of a sender waits, and room for its element is set aside.
#[test]
fn an_iterator_that_waits_does_not_keep_a_select_from_its_deadline() {
    watched(|| {
        let (mut tx, mut rx) = unbounded::<u8>(4);
        let (_zero, mut from_zero) = mpmc::<u8>(0);
        let (go, gate) = channel::<()>();
        let (begin, begun) = channel::<()>();
        let sending = thread::spawn(move || {
            let waits = std::iter::from_fn(|| {
                begin.send(()).unwrap();
                gate.recv().err().and(None)
            });
            tx.send_many(waits).unwrap();
            tx
        });
        begun.recv().unwrap();
        let outcome = Select::new()
            .recv(&mut rx, |_| ())
            .recv(&mut from_zero, |_| ())
            .wait_timeout(SHORT);
        assert_eq!(outcome, Err(SelectTimeout));
        drop(go);
        sending.join().unwrap();
    });
}

/// And it does not make an arm ready.
#[test]
fn a_claim_that_is_held_makes_nothing_ready() {
    watched(|| {
        let (mut tx, mut rx) = mpmc::<u8>(4);
        let mut claim = tx.claim(1).unwrap();
        rx.close();
        let mut select = |limit| Select::new().recv(&mut rx, |got| got).wait_timeout(limit);
        assert_eq!(select(SHORT), Err(SelectTimeout));
        claim.push(3).unwrap();
        claim.commit();
        assert_eq!(select(LONG), Ok(Ok(3)));
    });
}

/// A claim that was given up between an element and a claim that is held: nothing can be received
/// there.
#[test]
fn a_hole_at_the_head_makes_nothing_ready() {
    watched(|| {
        let (mut tx, mut rx) = mpmc::<u8>(4);
        let mut later = tx.clone();
        tx.send(1).unwrap();
        let given_up = tx.claim(1).unwrap();
        let held = later.claim(1).unwrap();
        drop(given_up);
        assert_eq!(rx.try_recv(), Ok(1));
        assert_eq!(Select::new().recv(&mut rx, |got| got).try_now(), None);
        let outcome = Select::new().recv(&mut rx, |got| got).wait_timeout(SHORT);
        assert_eq!(outcome, Err(SelectTimeout));
        // The end behind holes is one that there is to be told of.
        let last = tx.claim(1).unwrap();
        rx.close();
        drop((held, last));
        let outcome = Select::new().recv(&mut rx, |got| got).wait_timeout(LONG);
        assert_eq!(outcome, Ok(Err(RecvError)));
    });
}

/// Who looks whether there is an element passes over what is none, and gives that room to senders.
#[test]
fn room_of_a_hole_that_a_watcher_passes_over_is_told() {
    watched(|| {
        let (mut tx, mut rx) = mpmc::<u8>(4);
        let (mut second, mut waits) = (tx.clone(), tx.clone());
        tx.send(1).unwrap();
        let given_up = tx.claim(2).unwrap();
        let held = second.claim(1).unwrap();
        drop(given_up);
        assert_eq!(rx.try_recv(), Ok(1));
        // Room for one. A thread that waits for more may or may not sleep by now.
        let waiting = thread::spawn(move || waits.claim(3).map(|claim| claim.len()).unwrap());
        linger();
        assert_eq!(Select::new().recv(&mut rx, |got| got).try_now(), None);
        assert_eq!(waiting.join().unwrap(), 3);
        drop(held);
    });
}

/// Of four arms, the second and third are ready.
#[test]
fn silent_arms_do_not_shift_the_shares() {
    const ROUNDS: usize = 8_000;
    let [mut a, mut b, mut c, mut d] = [(); 4].map(|()| spsc::<u8>(ROUNDS));
    b.0.send_many(std::iter::repeat_n(0, ROUNDS)).unwrap();
    c.0.send_many(std::iter::repeat_n(0, ROUNDS)).unwrap();
    let mut first = 0;
    for _ in 0..ROUNDS {
        first += Select::new()
            .recv(&mut a.1, |_| unreachable!("nothing is sent"))
            .recv(&mut b.1, |_| 1)
            .recv(&mut c.1, |_| 0)
            .recv(&mut d.1, |_| unreachable!("nothing is sent"))
            .wait();
    }
    // By chance, less than this is as likely as ten strokes of lightning.
    assert!((3_600..4_400).contains(&first), "{first} of {ROUNDS}");
}

#[test]
fn without_arms_a_time_limit_is_waited_out() {
    watched(|| {
        let begin = Instant::now();
        let outcome = Select::<()>::new().wait_timeout(SHORT);
        assert_eq!(outcome, Err(SelectTimeout));
        assert!(begin.elapsed() >= SHORT);
    });
}

/// The receiver's wish is of the same select as the sender's offer.
#[test]
fn both_ends_of_a_rendezvous_keep_the_time_limit() {
    watched(|| {
        let (mut tx, mut rx) = mpmc::<u32>(0);
        let outcome = Select::new()
            .send(&mut tx, &mut Some(1), |_| ())
            .recv(&mut rx, |_| ())
            .wait_timeout(SHORT);
        assert_eq!(outcome, Err(SelectTimeout));
    });
}
