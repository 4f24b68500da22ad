//! Tasks that select, and that are given up.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::thread;
use thalweg::channel::{Select, TryRecvError, mpmc, spsc};
use thalweg_testkit::wakers::{Alarm, block_on};

#[test]
fn a_task_selects() {
    let (mut tx, mut rx) = spsc(1);
    let (mut zero, mut from_zero) = mpmc(0);
    let other = thread::spawn(move || {
        for n in 0..1_000_u32 {
            if n % 2 == 0 {
                tx.send(n).unwrap();
            } else {
                zero.send(n).unwrap();
            }
        }
        // Not disconnected before all is received.
        (tx, zero)
    });
    let mut got = Vec::new();
    for _ in 0..1_000 {
        let select = Select::new()
            .recv(&mut rx, |got| got.unwrap())
            .recv(&mut from_zero, |got| got.unwrap());
        got.push(block_on(select.wait_async()));
    }
    drop(other.join().unwrap());
    got.sort_unstable();
    assert!(got.into_iter().eq(0..1_000));
}

#[test]
fn a_select_that_is_given_up_passes_its_notification_on() {
    let (mut tx, mut rx) = mpmc(1);
    let (_other, mut silent) = mpmc::<u8>(1);
    let mut second = rx.clone();
    let alarm = Alarm::new();
    let waker = Waker::from(Arc::clone(&alarm));
    let mut context = Context::from_waker(&waker);
    let mut waiting = pin!(second.recv_async());
    {
        let mut select = pin!(
            Select::new()
                .recv(&mut silent, |_| ())
                .recv(&mut rx, |_| ())
                .wait_async()
        );
        assert!(select.as_mut().poll(&mut context).is_pending());
        assert!(select.as_mut().poll(&mut context).is_pending());
        assert!(waiting.as_mut().poll(&mut context).is_pending());
        tx.send(1).unwrap();
        assert_eq!(alarm.count(), 1, "the one that came first");
    }
    assert_eq!(alarm.count(), 2, "it went, and woke the next");
    assert_eq!(waiting.as_mut().poll(&mut context), Poll::Ready(Ok(1)));
}

#[test]
fn a_select_that_is_given_up_loses_no_element() {
    let (mut tx, mut rx) = mpmc::<u8>(0);
    let (mut out, mut sink) = mpmc::<String>(0);
    let waker = Waker::from(Alarm::new());
    let mut context = Context::from_waker(&waker);
    let mut value = Some(String::from("mine"));
    {
        let select = Select::new()
            .recv(&mut rx, |_| ())
            .send(&mut out, &mut value, |_| ());
        let mut select = pin!(select.wait_async());
        assert!(select.as_mut().poll(&mut context).is_pending());
        tx.try_send(1).unwrap();
        assert_eq!(sink.try_recv(), Err(TryRecvError::Empty), "one arm fires");
    }
    assert_eq!(value.as_deref(), Some("mine"));
    assert_eq!(rx.try_recv(), Ok(1), "it came back");
    assert_eq!(sink.try_recv(), Err(TryRecvError::Empty));
}

#[test]
fn tasks_that_are_given_up_again_and_again_lose_nothing() {
    const TOTAL: u64 = 5_000;
    let (mut tx, mut rx) = mpmc::<u64>(0);
    let (mut queue, mut from_queue) = mpmc::<u64>(2);
    let other = thread::spawn(move || {
        for n in 0..TOTAL {
            let (mut a, mut b) = (Some(n), Some(n));
            let select =
                Select::new()
                    .send(&mut tx, &mut a, |sent| sent)
                    .send(&mut queue, &mut b, |sent| sent);
            block_on(select.wait_async()).unwrap();
        }
    });
    let waker = Waker::from(Alarm::new());
    let mut context = Context::from_waker(&waker);
    let (mut sum, mut count, mut open) = (0, 0, [true; 2]);
    let mut turns = 0_u32;
    while open != [false; 2] {
        turns += 1;
        let select = Select::new()
            .recv(&mut rx, |got| (0, got))
            .recv(&mut from_queue, |got| (1, got));
        let mut select = pin!(select.wait_async());
        for _ in 0..turns % 3 {
            if let Poll::Ready((at, got)) = select.as_mut().poll(&mut context) {
                match got {
                    Ok(value) => {
                        sum += value;
                        count += 1;
                    }
                    Err(_) => open[at] = false,
                }
                break;
            }
            thread::yield_now();
        }
    }
    other.join().unwrap();
    assert_eq!((count, sum), (TOTAL, TOTAL * (TOTAL - 1) / 2));
}
