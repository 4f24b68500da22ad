//! Regression tests of defects that there once were.

use super::executor::Alarm;
use super::{LONG, SHORT, linger, watched};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Instant;
use thalweg::channel::{Ready, Select, SelectTimeout, Source, TryRecvError, mpmc, spsc, unbounded};

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

/// And it does not make it look ready, so that a thread that waits for that waits.
#[test]
fn a_claim_that_is_held_makes_nothing_ready() {
    watched(|| {
        let (mut tx, mut rx) = mpmc::<u8>(4);
        let mut claim = tx.claim(1).unwrap();
        rx.close();
        let mut ready = Ready::new();
        let outcome = ready.wait_timeout(&mut [&mut rx], SHORT);
        assert_eq!(outcome, Err(SelectTimeout));
        claim.push(3).unwrap();
        claim.commit();
        assert_eq!(ready.wait_timeout(&mut [&mut rx], LONG), Ok(0));
        assert_eq!(rx.try_recv(), Ok(3));
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
        let mut ready = Ready::new();
        assert_eq!(ready.try_now(&mut [&mut rx]), None);
        assert_eq!(
            ready.wait_timeout(&mut [&mut rx], SHORT),
            Err(SelectTimeout)
        );
        // The end behind holes must be reported.
        let last = tx.claim(1).unwrap();
        rx.close();
        drop((held, last));
        assert_eq!(ready.wait_timeout(&mut [&mut rx], LONG), Ok(0));
        assert_eq!(rx.try_recv(), Err(TryRecvError::Disconnected));
    });
}

/// A receiver that looks whether there is an element passes over holes, and gives their room to
/// senders.
#[test]
fn room_of_a_hole_that_a_watcher_passes_over_goes_to_senders() {
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
        assert_eq!(Ready::new().try_now(&mut [&mut rx]), None);
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

    let mut ready = Ready::new();
    let mut shares = [0; 4];
    for _ in 0..ROUNDS {
        let mut list: [&mut dyn Source; 4] = [&mut a.1, &mut b.1, &mut c.1, &mut d.1];
        shares[ready.wait_timeout(&mut list, LONG).unwrap()] += 1;
    }
    assert!((3_600..4_400).contains(&shares[1]), "{shares:?}");
}

#[test]
fn without_arms_a_time_limit_is_waited_out() {
    watched(|| {
        let begin = Instant::now();
        let outcome = Select::<()>::new().wait_timeout(SHORT);
        assert_eq!(outcome, Err(SelectTimeout));
        assert!(begin.elapsed() >= SHORT);
        let outcome = Ready::new().wait_deadline(&mut [], begin);
        assert_eq!(outcome, Err(SelectTimeout));
        assert_eq!(Ready::new().try_now(&mut []), None);
    });
}

/// Both only watch, and try when they are notified.
#[test]
fn watchers_at_both_sides_of_a_rendezvous_meet() {
    watched(|| {
        let (mut tx, mut rx) = mpmc::<u8>(0);
        let (_other, mut silent) = mpmc::<u8>(0);
        let sending = thread::spawn(move || {
            let mut ready = Ready::new();
            loop {
                let at = ready.wait_timeout(&mut [&mut tx], LONG).unwrap();
                assert_eq!(at, 0);
                if tx.try_send(7).is_ok() {
                    return tx;
                }
            }
        });
        let mut ready = Ready::new();
        loop {
            let mut list: [&mut dyn Source; 2] = [&mut silent, &mut rx];
            assert_eq!(ready.wait_timeout(&mut list, LONG), Ok(1));
            if let Ok(got) = rx.try_recv() {
                assert_eq!(got, 7);
                break;
            }
        }
        // No end disconnects before both are done.
        drop(sending.join().unwrap());
    });
}

/// They wake each other: the receiver's request notifies the sender's watcher, which is the same
/// thread.
#[test]
fn both_ends_of_a_rendezvous_keep_the_time_limit() {
    watched(|| {
        let (mut tx, mut rx) = mpmc::<u32>(0);
        let limit = SHORT;
        let got = Ready::new().wait_timeout(&mut [&mut tx, &mut rx], limit);
        assert_eq!(got, Err(SelectTimeout));
    });
}

/// A list with both ends of a rendezvous does not wake itself, over and over.
#[test]
fn both_ends_of_a_rendezvous_do_not_wake_themselves() {
    watched(|| {
        let (mut tx, mut rx) = mpmc::<u32>(0);
        let (mut other, mut others) = (rx.clone(), tx.clone());
        let alarm = Alarm::new();
        let waker = Waker::from(Arc::clone(&alarm));
        let context = &mut Context::from_waker(&waker);
        let mut ready = Ready::new();
        let mut list: [&mut dyn Source; 2] = [&mut tx, &mut rx];
        let mut wait = Box::pin(ready.wait_async(&mut list));
        for _ in 0..3 {
            assert!(wait.as_mut().poll(context).is_pending());
        }
        assert_eq!(alarm.count(), 0, "by itself");
        // Another one that requests is seen, and another one that offers.
        let mut request = other.recv_async();
        assert!(
            Pin::new(&mut request)
                .poll(&mut Context::from_waker(Waker::noop()))
                .is_pending()
        );
        assert_eq!(alarm.count(), 1);
        assert_eq!(wait.as_mut().poll(context), Poll::Ready(Ok(0)));
        drop((wait, request));
        let mut wait = Box::pin(ready.wait_async(&mut list));
        assert!(wait.as_mut().poll(context).is_pending());
        assert_eq!(others.try_send(5), Ok(()));
        assert_eq!(alarm.count(), 2);
        assert_eq!(wait.as_mut().poll(context), Poll::Ready(Ok(1)));
        drop(wait);
        assert_eq!(rx.try_recv(), Ok(5));
    });
}
