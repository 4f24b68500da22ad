//! Several threads. Waits yield, since there may be one core.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread::{scope, yield_now};

use super::{LAYOUTS, ring};
use crate::ring::{PopError, PushError};

/// The number of messages of each sender.
const COUNT: u64 = 20_000;

/// The sender, its number, and a check sum, in a box of its own.
type Message = Box<[u64; 3]>;

fn message(sender: u64, number: u64) -> Message {
    Box::new([sender, number, !(sender ^ number)])
}

/// Sends `COUNT` messages, in all the ways in turn.
macro_rules! send {
    ($tx:expr, $sender:expr) => {{
        let mut next = 0;
        while next < COUNT {
            let pushed = match next % 2 {
                0 => usize::from($tx.try_push(message($sender, next)).is_ok()),
                _ => $tx.claim(3.min($tx.capacity())).map_or(0, |mut claim| {
                    let numbers = next..COUNT.min(next + 3);
                    for number in numbers.take(claim.len()) {
                        claim
                            .push(message($sender, number))
                            .expect("room for three");
                    }
                    claim.commit()
                }),
            };
            next += pushed as u64;
            if pushed == 0 {
                yield_now();
            }
        }
    }};
}

/// Receives until the ring is closed, in both ways in turn; the numbers of each sender must grow.
/// Returns how many came, and their sum.
macro_rules! receive {
    ($rx:expr, $senders:expr) => {{
        let mut out: Vec<Message> = Vec::new();
        let mut next = vec![0; $senders];
        let (mut count, mut sum) = (0, 0);
        loop {
            let popped = if count % 2 == 0 {
                $rx.try_pop().map(|message| out.push(message))
            } else {
                $rx.pop_into(&mut out, 7).map(|_| ())
            };
            match popped {
                Err(PopError::Closed) => break (count, sum),
                Err(_) => yield_now(),
                Ok(()) => {}
            }
            for message in out.drain(..) {
                let [sender, number, check] = *message;
                assert_eq!(check, !(sender ^ number), "torn");
                let next = &mut next[sender as usize];
                assert!(number >= *next, "out of order: {number} after {next}");
                *next = number + 1;
                count += 1;
                sum += number;
            }
        }
    }};
}

/// Returns how many messages `senders` senders send, and the sum of the numbers.
fn all_of(senders: u64) -> (u64, u64) {
    (senders * COUNT, senders * (COUNT * (COUNT - 1) / 2))
}

fn both((count, sum): (u64, u64), (more, with): (u64, u64)) -> (u64, u64) {
    (count + more, sum + with)
}

#[test]
fn many_to_many_exactly_once_and_in_order() {
    for layout in LAYOUTS {
        for (senders, receivers, capacity) in [(3, 3, 1), (2, 2, 7), (4, 1, 64), (1, 4, 100)] {
            let ring = ring(capacity, layout);
            let sending = AtomicU64::new(senders);
            let (ring, sending) = (&ring, &sending);
            let received = scope(|scope| {
                for sender in 0..senders {
                    scope.spawn(move || {
                        send!(ring, sender);
                        // ORDERING: Relaxed, a count; the ring orders what matters.
                        if sending.fetch_sub(1, Relaxed) == 1 {
                            ring.close();
                        }
                    });
                }
                let receivers: Vec<_> = (0..receivers)
                    .map(|_| scope.spawn(move || receive!(ring, senders as usize)))
                    .collect();
                let join = |receiver: std::thread::ScopedJoinHandle<'_, _>| {
                    receiver.join().expect("receiver")
                };
                receivers.into_iter().map(join).fold((0, 0), both)
            });
            assert_eq!(received, all_of(senders));
            assert_eq!((ring.len(), ring.pushed()), (0, ring.popped()));
        }
    }
}

#[test]
fn what_got_in_before_the_close_comes_out() {
    for round in 0..300 {
        let ring = ring(8, LAYOUTS[round % 2]);
        let ring = &ring;
        scope(|scope| {
            let senders = [0, 1].map(|sender| {
                scope.spawn(move || {
                    let mut sent = 0_u64;
                    loop {
                        match ring.try_push(message(sender, sent)) {
                            Ok(()) => sent += 1,
                            Err(PushError::Full(_)) => yield_now(),
                            Err(_) => break sent,
                        }
                    }
                })
            });
            let receivers = [(); 2].map(|()| scope.spawn(move || receive!(ring, 2).0));
            while ring.popped() < 20 {
                yield_now();
            }
            assert!(ring.close());
            let sum = |threads: [std::thread::ScopedJoinHandle<'_, u64>; 2]| {
                threads
                    .map(|thread| thread.join().expect("no panic"))
                    .iter()
                    .sum::<u64>()
            };
            assert_eq!(sum(senders), sum(receivers));
        });
    }
}

#[test]
fn the_length_is_within_bounds_at_all_times() {
    let ring = ring(3, LAYOUTS[0]);
    let ring = &ring;
    scope(|scope| {
        scope.spawn(move || {
            send!(ring, 0);
            ring.close();
        });
        scope.spawn(move || receive!(ring, 1));
        while !ring.is_closed() {
            assert!(ring.len() <= 3);
            yield_now();
        }
    });
    assert!(ring.is_empty());
}
