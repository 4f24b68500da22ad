//! Cases that the tests of crossbeam-channel's select cover and ours did not yet, written for this
//! interface.

use super::watched;
use std::any::Any;
use std::thread;
use std::time::Duration;
use thalweg::channel::mpmc::{Receiver, Sender};
use thalweg::channel::{Select, SelectTimeout, mpmc, unbounded};

type Make = fn() -> (Sender<u8>, Receiver<u8>);

/// An element is sent before each look, and one of the two that are there may be taken away
/// meanwhile: never both.
fn looks_find(make: Make, look: fn(&mut Receiver<u8>, &mut Receiver<u8>) -> bool) {
    const ROUNDS: usize = 5_000;
    let (mut start, mut started) = mpmc::<()>(0);
    let (mut end, mut ended) = mpmc::<()>(0);
    let ((mut to_first, first), (mut to_second, second)) = (make(), make());
    let (mut from_first, mut from_second) = (first.clone(), second.clone());
    let looking = thread::spawn(move || {
        for round in 0..ROUNDS {
            start.send(()).unwrap();
            to_first.send(1).unwrap();
            assert!(look(&mut from_second, &mut from_first), "round {round}");
            end.send(()).unwrap();
            let _ = (from_first.try_recv(), from_second.try_recv());
        }
        (to_first, start, end)
    });
    let (mut first, mut second) = (first, second);
    for _ in 0..ROUNDS {
        started.recv().unwrap();
        to_second.send(1).unwrap();
        let _ = first.try_recv();
        ended.recv().unwrap();
        let _ = second.try_recv();
    }
    drop((looking.join().unwrap(), to_second));
}

#[test]
fn a_look_and_a_wait_without_time_find_what_is_there() {
    for make in [|| mpmc(2), || unbounded(9)] as [Make; 2] {
        looks_find(make, |a, b| {
            Select::new()
                .recv(a, |got| got.is_ok())
                .recv(b, |got| got.is_ok())
                .or_else(|| false)
        });
        looks_find(make, |a, b| {
            Select::new()
                .recv(a, |got| got.is_ok())
                .recv(b, |got| got.is_ok())
                .wait_timeout(Duration::ZERO)
                .is_ok()
        });
    }
}

/// Gives the number of the thread to one other, or gets that of one.
fn pair(threads: u32) {
    let (tx, rx) = mpmc::<u32>(0);
    let waiting: Vec<_> = (0..threads)
        .map(|n| {
            let (mut tx, mut rx) = (tx.clone(), rx.clone());
            thread::spawn(move || {
                let mut own = Some(n);
                let met = Select::new()
                    .recv(&mut rx, |got| got.ok())
                    .send(&mut tx, &mut own, |sent| sent.ok().and(None))
                    .wait();
                assert!(met != Some(n), "itself");
                (met.is_some(), tx, rx)
            })
        })
        .collect();
    if threads % 2 == 1 {
        // One is left over, and meets this thread.
        let (mut tx, mut rx) = (tx, rx);
        Select::new()
            .recv(&mut rx, |got| assert!(got.is_ok()))
            .send(&mut tx, &mut Some(threads), |sent| assert_eq!(sent, Ok(())))
            .wait();
    }
    let done: Vec<_> = waiting.into_iter().map(|one| one.join().unwrap()).collect();
    let received = done.iter().filter(|(is_received, ..)| *is_received).count();
    assert!(received.abs_diff(threads as usize / 2) <= threads as usize % 2);
}

#[test]
fn threads_match_in_pairs() {
    watched(|| (0..20).for_each(|round| pair(10 + round % 2)));
}

#[test]
fn a_channel_goes_through_a_channel_by_select() {
    type Packet = Box<dyn Any + Send>;
    for capacity in 0..3 {
        watched(move || {
            let (mut tx, mut rx) = mpmc::<Packet>(capacity);
            let sending = thread::spawn(move || {
                let mut kept = Vec::new();
                for _ in 0..200 {
                    let (new, new_rx) = mpmc::<Packet>(capacity);
                    let mut packet: Option<Packet> = Some(Box::new(new_rx));
                    Select::new()
                        .send(&mut tx, &mut packet, |sent| sent.unwrap())
                        .wait();
                    kept.push(std::mem::replace(&mut tx, new));
                }
                kept
            });
            for _ in 0..200 {
                let packet = Select::new().recv(&mut rx, |got| got.unwrap()).wait();
                rx = *packet.downcast::<Receiver<Packet>>().unwrap();
            }
            drop(sending.join().unwrap());
        });
    }
}

/// Both sides give up every other time.
#[test]
fn time_limits_on_both_sides_lose_nothing() {
    watched(|| {
        let (mut tx, mut rx) = mpmc::<u32>(2);
        let (mut zero, mut from_zero) = mpmc::<u32>(0);
        let sending = thread::spawn(move || {
            for n in 0..2_000 {
                let (mut one, mut other) = (Some(n), Some(n));
                while Select::new()
                    .send(&mut tx, &mut one, |sent| sent.unwrap())
                    .send(&mut zero, &mut other, |sent| sent.unwrap())
                    .wait_timeout(Duration::from_micros(u64::from(n % 40)))
                    .is_err()
                {
                    thread::yield_now();
                }
            }
            (tx, zero)
        });
        let (mut count, mut sum) = (0, 0);
        while count < 2_000 {
            let got = Select::new()
                .recv(&mut rx, |got| got.unwrap())
                .recv(&mut from_zero, |got| got.unwrap())
                .wait_timeout(Duration::from_micros(count % 30));
            match got {
                Ok(n) => (count, sum) = (count + 1, sum + n),
                Err(SelectTimeout) => thread::yield_now(),
            }
        }
        assert_eq!(sum, 2_000 * 1_999 / 2);
        drop(sending.join().unwrap());
    });
}

/// A try beside selects that come and go.
#[test]
fn tries_and_selects_meet_in_a_loop() {
    watched(|| {
        for _ in 0..20 {
            let (tx1, rx1) = mpmc::<u32>(0);
            let (tx2, rx2) = mpmc::<u32>(0);
            let (end, ended) = mpmc::<()>(0);
            let (mut offering, mut stopped) = (tx1.clone(), ended.clone());
            let one = thread::spawn(move || {
                let mut value = Some(1);
                loop {
                    let (tx, end) = (&mut offering, &mut stopped);
                    let gone = Select::new()
                        .send(tx, &mut value, |sent| sent.is_ok())
                        .recv(end, |_| true)
                        .or_else(|| false);
                    if gone {
                        return;
                    }
                    thread::yield_now();
                }
            });
            let (mut requesting, mut stopped) = (rx2.clone(), ended);
            let two = thread::spawn(move || {
                loop {
                    let gone = Select::new()
                        .recv(&mut requesting, |got| got.is_ok())
                        .recv(&mut stopped, |_| true)
                        .or_else(|| false);
                    if gone {
                        return;
                    }
                    thread::yield_now();
                }
            });
            let (mut rx1, mut tx2) = (rx1, tx2);
            let mut value = Some(2);
            Select::new()
                .recv(&mut rx1, |got| assert_eq!(got, Ok(1)))
                .send(&mut tx2, &mut value, |sent| assert_eq!(sent, Ok(())))
                .wait();
            drop(end);
            one.join().unwrap();
            two.join().unwrap();
            drop((tx1, rx2));
        }
    });
}
