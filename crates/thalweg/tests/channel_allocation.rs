//! Bounded channels allocate nothing after construction and a thread's first wait. A binary of its
//! own, for its allocator.
#![allow(clippy::unwrap_used)] // all of it is tests, though not every function is #[test]

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Barrier};
use std::task::{Context, Waker};
use std::thread;
use std::time::Duration;
use thalweg::channel::{Builder, ClaimError, ManySenders, Overflow, Receiver, Sender, Shape};
use thalweg::wait::WaitMode;
use thalweg_testkit::counting::calls;

const SOON: Duration = Duration::from_micros(50);
const ROOM: usize = 16;

/// This thread's first waits.
fn warm_up<S: Shape>(tx: &mut Sender<u64, S>, rx: &mut Receiver<u64, S>) {
    assert!(rx.recv_timeout(SOON).is_err());
    while tx.try_send(0).is_ok() && tx.len() < ROOM && tx.capacity() > 0 {}
    let _ = tx.send_timeout(1, SOON);
    while rx.try_recv().is_ok() {}
}

/// Every form that one thread can go through alone.
fn forms<S: Shape>(tx: &mut Sender<u64, S>, rx: &mut Receiver<u64, S>, out: &mut Vec<u64>) {
    tx.send(1).unwrap();
    tx.try_send(2).unwrap();
    tx.send_many(3..7).unwrap();
    assert_eq!(tx.try_send_many(7..10), Ok(3));
    assert_eq!((tx.len(), rx.len(), rx.is_closed()), (9, 9, false));
    assert_eq!((rx.recv(), rx.try_recv()), (Ok(1), Ok(2)));
    assert_eq!(rx.recv_timeout(SOON), Ok(3));
    assert_eq!(rx.try_recv_each(1, drop), Ok(1));
    assert_eq!(rx.batch(2).count(), 2);
    assert_eq!(
        rx.recv_many(out, 2).unwrap() + rx.try_recv_many(out, 9).unwrap(),
        3
    );
    out.clear();
    match tx.claim(3) {
        Ok(mut claim) => {
            claim.push(1).unwrap();
            assert_eq!(claim.write(&[2, 3]), 2);
            assert_eq!(claim.commit(), 3);
            assert_eq!(rx.try_iter().sum::<u64>(), 6);
        }
        Err(error) => assert!(matches!(error, ClaimError::Unsupported { .. })),
    }
    drop(tx.try_claim(2));
    while tx.len() < ROOM {
        tx.send(1).unwrap();
    }
    // Full: refused, dropped, or in vain, as the policy says.
    let _ = tx.try_send(2);
    let _ = tx.send_timeout(3, SOON);
    let _ = tx.try_claim(4).is_ok();
    assert_eq!(tx.try_send_many(5..7).unwrap_err().sent, 0);
    while rx.try_recv().is_ok() {}
    assert!(rx.recv_timeout(SOON).is_err());
    assert!(rx.lost_before() <= tx.counters().sent + rx.counters().dropped);
}

/// Futures that are ready, that wait, that are woken and that are dropped.
fn tasks<S: Shape>(tx: &mut Sender<u64, S>, rx: &mut Receiver<u64, S>, waker: &Waker) {
    let mut context = Context::from_waker(waker);
    let mut future = rx.recv_async();
    assert!(Pin::new(&mut future).poll(&mut context).is_pending());
    tx.send(1).unwrap();
    assert!(Pin::new(&mut future).poll(&mut context).is_ready());
    drop(future);
    let _ = Pin::new(&mut rx.recv_async()).poll(&mut context);
    let mut place = None;
    while place.is_none() && tx.len() < ROOM {
        place = Some(2);
        let mut future = tx.send_from_async(&mut place);
        let _ = Pin::new(&mut future).poll(&mut context);
    }
    let _ = Pin::new(&mut tx.send_async(3)).poll(&mut context);
    while rx.try_recv().is_ok() {}
}

fn check<S: Shape>(name: &str, (mut tx, mut rx): (Sender<u64, S>, Receiver<u64, S>)) {
    let waker = Waker::noop();
    let mut out = Vec::with_capacity(2 * ROOM);
    warm_up(&mut tx, &mut rx);
    let calls = calls(|| {
        for _ in 0..100 {
            forms(&mut tx, &mut rx, &mut out);
            tasks(&mut tx, &mut rx, waker);
        }
    });
    assert_eq!(calls, 0, "{name}");
}

#[test]
fn no_form_allocates_under_any_policy() {
    for overflow in [
        Overflow::Block,
        Overflow::Reject,
        Overflow::DropNewest,
        Overflow::DropOldest,
    ] {
        for &mode in WaitMode::ALL {
            let options = || Builder::new(ROOM).overflow(overflow).mode(mode);
            check("spsc", options().spsc().unwrap());
            check("mpsc", options().mpsc().unwrap());
            check("mpmc", options().mpmc().unwrap());
        }
    }
}

#[test]
fn a_oneshot_is_one_allocation() {
    wait_once();
    let calls = calls(|| {
        let (tx, mut rx) = thalweg::channel::oneshot();
        assert!(rx.recv_timeout(SOON).is_err());
        assert!(
            Pin::new(&mut rx)
                .poll(&mut Context::from_waker(Waker::noop()))
                .is_pending()
        );
        tx.send([1u64; 16]).unwrap();
        assert_eq!(rx.recv(), Ok([1; 16]));
    });
    assert_eq!(calls, 2, "allocated and freed");
}

/// The first wait of a thread allocates what it sleeps on.
fn wait_once() {
    let (_tx, mut rx) = thalweg::channel::spsc::<u8>(1);
    assert!(rx.recv_timeout(SOON).is_err());
}

/// Two threads that wait for each other all the time.
fn check_threads<S: Shape>(name: &str, make: impl Fn() -> (Sender<u64, S>, Receiver<u64, S>)) {
    const ROUNDS: u64 = 2000;
    let ((mut ping, mut pinged), (mut pong, mut ponged)) = (make(), make());
    // The parker of a thread is freed by the thread that woke it last, if its own is gone by then.
    let end = Arc::new(Barrier::new(2));
    let their_end = Arc::clone(&end);
    let echo = thread::spawn(move || {
        let echo = |from: &mut Receiver<u64, S>, to: &mut Sender<u64, S>, rounds| {
            for _ in 0..rounds {
                let n = from.recv().unwrap();
                to.send(n + 1).unwrap();
            }
        };
        wait_once();
        echo(&mut pinged, &mut pong, 100);
        let calls = calls(|| echo(&mut pinged, &mut pong, ROUNDS));
        their_end.wait();
        calls
    });
    let mut serve = |rounds| {
        for n in 0..rounds {
            ping.send(n).unwrap();
            assert_eq!(ponged.recv(), Ok(n + 1));
        }
    };
    wait_once();
    serve(100);
    let here = calls(|| serve(ROUNDS));
    end.wait();
    assert_eq!((here, echo.join().unwrap()), (0, 0), "{name}");
}

#[test]
fn waiting_threads_do_not_allocate() {
    for capacity in [0, 1] {
        let options = || Builder::new(capacity);
        check_threads("spsc", || options().spsc().unwrap());
        check_threads("mpsc", || options().mpsc().unwrap());
        check_threads("mpmc", || options().mpmc().unwrap());
    }
    check_threads("mpmc, power", || {
        Builder::new(1).mode(WaitMode::LowPower).mpmc().unwrap()
    });
}

/// Many senders that sleep for room, one after another.
fn check_crowd<S: ManySenders>(name: &str, (tx, mut rx): (Sender<u64, S>, Receiver<u64, S>)) {
    const EACH: u64 = 500;
    let end = Arc::new(Barrier::new(4));
    let threads = [(); 3].map(|()| {
        let (mut tx, end) = (tx.clone(), Arc::clone(&end));
        thread::spawn(move || {
            wait_once();
            (0..EACH).for_each(|n| tx.send(n).unwrap());
            let calls = calls(|| (0..EACH).for_each(|n| tx.send(n).unwrap()));
            drop(tx);
            end.wait();
            calls
        })
    });
    drop(tx);
    wait_once();
    (0..3 * EACH).for_each(|_| assert!(rx.recv().is_ok()));
    let here = calls(|| while rx.recv().is_ok() {});
    end.wait();
    let there = threads.map(|thread| thread.join().unwrap());
    assert_eq!((here, there), (0, [0; 3]), "{name}");
}

#[test]
fn crowds_do_not_allocate() {
    check_crowd("mpsc", Builder::new(2).mpsc().unwrap());
    check_crowd("mpmc", Builder::new(2).mpmc().unwrap());
}
