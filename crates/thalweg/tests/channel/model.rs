//! Random sequences of operations by one thread, against a queue that obviously does the same.

use crate::channel::flavour::{Ends, Flavour, Made};
use std::collections::VecDeque;
use thalweg::channel::{ClaimError, Overflow, TryRecvError, TrySendError};

/// xorshift64*.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % bound
    }
}

/// A model of the channel in the simplest form. Elements are numbers from 0; a gap is kept with the
/// element behind it.
struct Model {
    capacity: usize,
    overflow: Overflow,
    queue: VecDeque<(u64, u64)>,
    /// Lost since the element at the end (newest) or before the one in front (oldest).
    gap: u64,
    sent: u64,
    received: u64,
    refused: u64,
    dropped: u64,
}

impl Model {
    fn is_full(&self) -> bool {
        self.queue.len() == self.capacity
    }

    /// Returns whether it is taken, by the channel or by the policy.
    fn send(&mut self, n: u64) -> bool {
        if self.is_full() {
            match self.overflow {
                Overflow::DropNewest => {
                    self.gap += 1;
                    self.dropped += 1;
                    return true;
                }
                Overflow::DropOldest => {
                    let (_, before) = self.queue.pop_front().unwrap();
                    self.gap += 1 + before;
                    self.dropped += 1;
                }
                _ => {
                    self.refused += 1;
                    return false;
                }
            }
        }
        let before = match self.overflow {
            Overflow::DropNewest => std::mem::take(&mut self.gap),
            _ => 0,
        };
        self.queue.push_back((n, before));
        self.sent += 1;
        true
    }

    fn recv(&mut self) -> Option<(u64, u64)> {
        let (n, mut before) = self.queue.pop_front()?;
        if self.overflow == Overflow::DropOldest {
            before = std::mem::take(&mut self.gap);
        }
        self.received += 1;
        Some((n, before))
    }

    /// Returns up to `max` elements, and the loss before any of them.
    fn recv_many(&mut self, max: usize) -> (Vec<u64>, u64) {
        let (mut all, mut lost) = (Vec::new(), 0);
        while all.len() < max
            && let Some((n, before)) = self.recv()
        {
            all.push(n);
            lost += before;
        }
        (all, lost)
    }
}

struct Run<S: Made> {
    flavour: Flavour<S>,
    ends: Ends<S, u64>,
    model: Model,
    random: Random,
    next: u64,
}

impl<S: Made> Run<S> {
    fn fresh(&mut self, count: usize) -> Vec<u64> {
        let first = self.next;
        self.next += count as u64;
        (first..self.next).collect()
    }

    fn send_one(&mut self) {
        let n = self.next;
        self.next += 1;
        let room = self.model.send(n);
        match self.ends.0.try_send(n) {
            Ok(()) => assert!(room),
            Err(TrySendError::Full(back)) => assert!(!room && back == n),
            Err(_) => panic!("no end has left"),
        }
    }

    /// Some, as far as there is room.
    fn send_some(&mut self) {
        let count = self.random.below(self.model.capacity + 2);
        let room = self.model.capacity - self.model.queue.len();
        let values = self.fresh(count);
        let sent = match self.ends.0.try_send_many(values.iter().copied()) {
            Ok(sent) => sent,
            Err(error) => {
                self.model.refused += 1;
                assert_eq!(error.error.into_inner(), values[error.sent]);
                error.sent
            }
        };
        assert_eq!(sent, count.min(room));
        values[..sent]
            .iter()
            .for_each(|&n| assert!(self.model.send(n)));
    }

    /// All, by the policy.
    fn send_all(&mut self) {
        let count = self.random.below(self.model.capacity + 2);
        let values = self.fresh(count);
        if matches!(self.model.overflow, Overflow::Block | Overflow::Reject) {
            let room = self.model.capacity - self.model.queue.len();
            let values = &values[..count.min(room)];
            self.ends.0.send_many(values.iter().copied()).unwrap();
            values.iter().for_each(|&n| assert!(self.model.send(n)));
        } else {
            self.ends.0.send_many(values.iter().copied()).unwrap();
            values.iter().for_each(|&n| assert!(self.model.send(n)));
        }
    }

    fn claim(&mut self) {
        if !self.flavour.has_claims || self.model.overflow == Overflow::DropOldest {
            return;
        }
        let count = self.random.below(self.model.capacity + 2);
        let room = self.model.capacity - self.model.queue.len();
        let mut used = self.random.below(count + 1);
        // A sole sender that may drop has the ring that senders share.
        let gives_back = self.flavour.gives_back && !self.model.overflow.is_lossy();
        if !gives_back {
            used = count;
        }
        let values = self.fresh(used);
        match self.ends.0.try_claim(count) {
            Ok(mut claim) => {
                assert!(count <= room);
                assert_eq!(claim.write(&values), used);
                if gives_back && self.random.below(4) == 0 {
                    drop(claim);
                    return;
                }
                assert_eq!(claim.commit(), used);
                values.iter().for_each(|&n| assert!(self.model.send(n)));
            }
            Err(ClaimError::Full { asked, free }) => {
                assert_eq!((asked, free), (count, room));
                assert!(count > room);
            }
            Err(ClaimError::TooLarge { asked, capacity }) => {
                assert_eq!((asked, capacity), (count, self.model.capacity));
                assert!(count > capacity);
            }
            Err(error) => panic!("{error}"),
        }
    }

    fn recv_one(&mut self) {
        match (self.ends.1.try_recv(), self.model.recv()) {
            (Ok(n), want) => assert_eq!(Some((n, self.ends.1.lost_before())), want),
            (Err(TryRecvError::Empty), want) => assert_eq!(want, None),
            (Err(error), _) => panic!("{error}"),
        }
    }

    fn recv_some(&mut self) {
        let max = self.random.below(self.model.capacity + 2);
        let rx = &mut self.ends.1;
        let mut got = Vec::new();
        match self.random.below(4) {
            // With what was lost before any of them.
            0 if max > 0 && !self.model.queue.is_empty() => {
                let want = self.model.recv_many(max);
                while got.len() < want.0.len() {
                    let lost_before = rx.lost_before();
                    let left = want.0.len() - got.len();
                    let count = rx.recv_many(&mut got, left).unwrap();
                    if count == want.0.len() {
                        assert_eq!(rx.lost_before(), want.1, "{lost_before}");
                    }
                }
                assert_eq!(got, want.0);
                return;
            }
            1 => {
                let _ = rx.try_recv_each(max, |n| got.push(n));
            }
            2 => got.extend(rx.batch(max)),
            _ => got.extend(rx.try_iter().take(max)),
        }
        assert_eq!(got, self.model.recv_many(max).0);
    }

    fn check(&self) {
        let (tx, rx) = &self.ends;
        let len = self.model.queue.len();
        assert_eq!((tx.len(), rx.len()), (len, len));
        assert_eq!(
            (tx.is_full(), rx.is_empty()),
            (self.model.is_full(), len == 0)
        );
        let counters = rx.counters();
        assert_eq!(counters, tx.counters());
        assert_eq!(
            [
                counters.sent,
                counters.received,
                counters.refused,
                counters.dropped
            ],
            [
                self.model.sent,
                self.model.received,
                self.model.refused,
                self.model.dropped
            ]
        );
    }
}

fn run<S: Made>(flavour: Flavour<S>, seed: u64, overflow: Overflow) {
    let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    let capacity = 1 + random.below(9);
    let mut run = Run {
        flavour,
        ends: (flavour.make(flavour.options(capacity).overflow(overflow))).unwrap(),
        model: Model {
            capacity,
            overflow,
            queue: VecDeque::new(),
            gap: 0,
            sent: 0,
            received: 0,
            refused: 0,
            dropped: 0,
        },
        random,
        next: 0,
    };
    for _ in 0..300 {
        match run.random.below(8) {
            0 | 1 => run.send_one(),
            2 => run.send_some(),
            3 => run.send_all(),
            4 => run.claim(),
            5 | 6 => run.recv_one(),
            _ => run.recv_some(),
        }
        run.check();
    }
}

pub(crate) fn random_walks<S: Made>(flavour: Flavour<S>) {
    for overflow in [
        Overflow::Block,
        Overflow::Reject,
        Overflow::DropNewest,
        Overflow::DropOldest,
    ] {
        for seed in 0..40 {
            let walk = std::panic::catch_unwind(|| run(flavour, seed, overflow));
            assert!(walk.is_ok(), "seed {seed}, {overflow:?}");
        }
    }
}
