//! Regression tests of defects that there once were.

use super::{LONG, SHORT, linger, watched};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Instant;
use thalweg::channel::{
    RecvTimeoutError, Select, SelectTimeout, TryRecvError, mpmc, spsc, unbounded,
};

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

/// A claim that was given up between an element and a claim that is held: nothing can be received
/// there.
#[test]
fn a_hole_at_the_head_is_nothing_to_receive() {
    watched(|| {
        let (mut tx, mut rx) = mpmc::<u8>(4);
        let mut later = tx.clone();
        tx.send(1).unwrap();
        let given_up = tx.claim(1).unwrap();
        let held = later.claim(1).unwrap();
        drop(given_up);
        assert_eq!(rx.try_recv(), Ok(1));
        assert_eq!(rx.try_recv(), Err(TryRecvError::Empty));
        assert_eq!(rx.recv_timeout(SHORT), Err(RecvTimeoutError::Timeout));
        // The end behind holes must be reported.
        let last = tx.claim(1).unwrap();
        rx.close();
        drop((held, last));
        assert_eq!(rx.recv_timeout(LONG), Err(RecvTimeoutError::Disconnected));
    });
}

/// A receiver that finds nothing passes over holes, and gives their room to senders.
#[test]
fn room_of_a_hole_that_a_receiver_passes_over_goes_to_senders() {
    watched(|| {
        let (mut tx, mut rx) = mpmc::<u8>(4);
        let (mut second, mut waits) = (tx.clone(), tx.clone());
        tx.send(1).unwrap();
        let given_up = tx.claim(2).unwrap();
        let held = second.claim(1).unwrap();
        drop(given_up);
        assert_eq!(rx.try_recv(), Ok(1));
        // Room for one. A thread that waits for more may or may not sleep by now.
        let waiting = thread::spawn(move || waits.claim(3).map(|claim| claim.capacity()).unwrap());
        linger();
        assert_eq!(rx.try_recv(), Err(TryRecvError::Empty));
        assert_eq!(waiting.join().unwrap(), 3);
        drop(held);
    });
}

/// The second and third of four arms are ready.
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
