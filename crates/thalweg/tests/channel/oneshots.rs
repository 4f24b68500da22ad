//! The channel for one element. Each end that is awaited lives on while it is.

use crate::channel::forgotten::waiting;
use crate::channel::ledger::Ledger;
use crate::channel::watchdog::watched;
use crate::forgotten::forget;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::thread;
use std::time::{Duration, Instant};
use thalweg::channel::{
    OneshotReceiver, OneshotSender, RecvError, RecvTimeoutError, SendError, TryRecvError, mpsc,
    oneshot,
};
use thalweg::wait::{Pace, WaitMode};
use thalweg_testkit::wakers::{Alarm, block_on};

const SOON: Duration = Duration::from_millis(2);

#[test]
fn the_element_is_received_once_in_every_form() {
    let alarm = Alarm::new();
    for form in 0..6 {
        let (tx, mut rx) = oneshot();
        assert!(!rx.is_closed());
        assert_eq!(rx.try_recv(), Err(TryRecvError::Empty));
        tx.send(7).unwrap();
        assert!(rx.is_closed());
        match form {
            0 => assert_eq!(rx.try_recv(), Ok(7)),
            1 => assert_eq!(rx.recv_timeout(Duration::MAX), Ok(7)),
            2 => assert_eq!(rx.recv_deadline(Instant::now()), Ok(7)),
            3 => assert_eq!(alarm.poll(&mut rx), Poll::Ready(Ok(7))),
            4 => assert_eq!(rx.recv_with_pace(&mut Pace::default(), None), Ok(7)),
            _ => {
                assert_eq!(rx.recv(), Ok(7));
                continue;
            }
        }
        assert_eq!(rx.try_recv(), Err(TryRecvError::Disconnected));
        assert_eq!(alarm.poll(&mut rx), Poll::Ready(Err(RecvError)));
        assert_eq!(rx.recv(), Err(RecvError));
    }
    assert_eq!(alarm.count(), 0);
}

#[test]
fn a_receiver_sees_that_its_sender_went() {
    let (tx, mut rx) = oneshot::<u8>();
    assert_eq!(rx.recv_timeout(SOON), Err(RecvTimeoutError::Timeout));
    let mut pace = Pace::new(WaitMode::LowPower);
    let deadline = Some(Instant::now() + SOON);
    assert_eq!(
        rx.recv_with_pace(&mut pace, deadline),
        Err(RecvTimeoutError::Timeout)
    );
    drop(tx);
    assert_eq!(
        rx.recv_with_pace(&mut pace, None),
        Err(RecvTimeoutError::Disconnected)
    );
    assert_eq!(rx.recv_timeout(SOON), Err(RecvTimeoutError::Disconnected));
    assert_eq!(rx.recv(), Err(RecvError));
}

#[test]
fn who_cancels_gives_the_element_back() {
    let ledger = Ledger::new(3);
    let (tx, rx) = oneshot();
    drop(rx);
    assert!(tx.is_closed());
    let back = tx.send(ledger.item(0)).map_err(SendError::into_inner);
    assert_eq!(back.err().map(|item| item.id), Some(0));
    let (tx, mut rx) = oneshot();
    rx.close();
    assert!(tx.is_closed() && tx.send(ledger.item(1)).is_err());
    assert!(matches!(rx.try_recv(), Err(TryRecvError::Disconnected)));
    // Sent before, it can still be received; and is dropped with the receiver else.
    let (tx, mut rx) = oneshot();
    tx.send(ledger.item(2)).ok().unwrap();
    rx.close();
    drop(rx);
    assert_eq!(ledger.dropped(), [1; 3]);
}

#[test]
fn a_sender_learns_that_no_receiver_waits() {
    let alarm = Alarm::new();
    for by_close in [true, false] {
        let (mut tx, mut rx) = oneshot::<u8>();
        let before = alarm.count();
        drop(waiting(&alarm, tx.closed()));
        let mut closed = waiting(&alarm, tx.closed());
        assert!(alarm.poll(&mut closed).is_pending());
        match by_close {
            true => rx.close(),
            false => drop(rx),
        }
        assert_eq!(alarm.count(), before + 1);
        assert!(alarm.poll(&mut closed).is_ready());
    }
}

#[test]
fn a_task_that_moves_is_woken_where_it_is() {
    let (first, second) = (Alarm::new(), Alarm::new());
    let (tx, mut rx) = oneshot();
    assert!(first.poll(&mut rx).is_pending());
    assert!(second.poll(&mut rx).is_pending());
    // A wait in between has another waker still.
    assert_eq!(rx.recv_timeout(SOON), Err(RecvTimeoutError::Timeout));
    assert!(second.poll(&mut rx).is_pending());
    tx.send(1).unwrap();
    assert_eq!((first.count(), second.count()), (0, 1));
    assert_eq!(second.poll(&mut rx), Poll::Ready(Ok(1)));
}

/// A server that lives on answers threads and tasks, of which some give up.
#[test]
fn replies_are_awaited() {
    const EACH: u32 = if cfg!(miri) { 20 } else { 2_000 };
    watched(|| {
        let (tx, mut rx) = mpsc(4);
        let server = thread::spawn(move || {
            while let Ok((n, reply)) = rx.recv() {
                let reply: OneshotSender<u32> = reply;
                if n % 7 == 3 {
                    drop(reply);
                } else {
                    let _ = reply.send(n + 1);
                }
            }
        });
        let clients = [0, 1, 2].map(|kind| {
            let mut tx = tx.clone();
            thread::spawn(move || {
                let mut pace = Pace::default();
                for n in 0..EACH {
                    let (reply, mut answer) = oneshot();
                    tx.send((n, reply)).unwrap();
                    if n % 5 == 0 && answer.recv_timeout(Duration::ZERO).is_err() {
                        continue;
                    }
                    let expected = if n % 7 == 3 {
                        Err(RecvError)
                    } else {
                        Ok(n + 1)
                    };
                    let answer = match kind {
                        _ if n % 5 == 0 => continue,
                        0 => answer.recv(),
                        1 => answer
                            .recv_with_pace(&mut pace, None)
                            .map_err(|_| RecvError),
                        _ => block_on(answer),
                    };
                    assert_eq!(answer, expected);
                }
            })
        });
        // The first sender is still there, so that no client is saved by the end.
        for client in clients {
            client.join().unwrap();
        }
        drop(tx);
        server.join().unwrap();
    });
}

/// Each sender waits in `closed` until its receiver is dropped elsewhere.
#[test]
fn closed_is_awaited() {
    watched(|| {
        let (mut pass, mut inbox) = mpsc::<OneshotReceiver<u8>>(1);
        let dropper = thread::spawn(move || inbox.iter().count());
        for _ in 0..2_000 {
            let (mut tx, rx) = oneshot();
            pass.send(rx).unwrap();
            block_on(poll_fn(|context| tx.poll_closed(context)));
            assert_eq!(tx.send(1), Err(SendError::Disconnected(1)));
        }
        drop(pass);
        assert_eq!(dropper.join().unwrap(), 2_000);
    });
}

#[test]
fn ends_go_anywhere() {
    fn goes<E: Send + Sync + Unpin>(_: &E) {}
    let (tx, rx) = oneshot::<(std::marker::PhantomPinned, std::cell::Cell<u8>)>();
    goes(&tx);
    goes(&rx);
    assert_eq!(
        format!("{tx:?} {rx:?}"),
        "OneshotSender { closed: false } OneshotReceiver { closed: false }"
    );
}

/// Both ends stay: only the future goes.
#[test]
fn a_future_that_is_dropped_or_forgotten_is_not_woken() {
    let (mut tx, mut rx) = oneshot::<u32>();
    let (alarm, again) = (Alarm::new(), Alarm::new());
    drop(waiting(&alarm, tx.closed()));
    assert_eq!(Arc::strong_count(&alarm), 1);
    forget(waiting(&alarm, tx.closed()));
    let mut closed = waiting(&again, tx.closed());
    rx.close();
    assert_eq!((alarm.count(), again.count()), (0, 1));
    assert!(again.poll(&mut closed).is_ready());
    let (tx, mut rx) = oneshot();
    forget(waiting(&alarm, async { (&mut rx).await }));
    let thread = thread::spawn(move || rx.recv());
    tx.send(1).unwrap();
    assert_eq!(thread.join().unwrap(), Ok(1));
}
