//! A queue with one consumer, in exact arithmetic.

use std::collections::VecDeque;

/// Bursts, and a consumer that stalls once. Rates are whole numbers a second.
#[derive(Debug, Clone, Copy)]
pub(super) struct Case {
    pub(super) messages: u64,
    pub(super) rate_per_s: u64,
    pub(super) period_ns: u64,
    pub(super) service_per_s: u64,
    pub(super) stall_begin_ns: u64,
    pub(super) stall_ns: u64,
}

impl Case {
    /// Time in units that both a gap between messages and a service are a whole number of.
    fn ns(&self, ns: u64) -> u128 {
        u128::from(ns) * u128::from(self.rate_per_s) * u128::from(self.service_per_s)
    }

    /// Messages lost of so many bursts, by a queue that keeps a message while it is being served.
    pub(super) fn lost(&self, bursts: u64, capacity: u64) -> u64 {
        self.run(bursts, capacity).0
    }

    /// Whether a queue that loses nothing has been empty by then.
    pub(super) fn is_empty_at(&self, bursts: u64, at_ns: u64) -> bool {
        let (_, served) = self.run(bursts, u64::MAX);
        served.idle.iter().any(|&idle| idle <= self.ns(at_ns))
    }

    fn run(&self, bursts: u64, capacity: u64) -> (u64, Served) {
        let gap = 1_000_000_000 * u128::from(self.service_per_s);
        let mut waiting = Served::new(
            1_000_000_000 * u128::from(self.rate_per_s),
            self.ns(self.stall_begin_ns)..self.ns(self.stall_begin_ns + self.stall_ns),
        );
        let mut lost = 0;
        for burst in 0..bursts {
            for message in 0..self.messages {
                let now = self.ns(self.period_ns) * u128::from(burst) + gap * u128::from(message);
                if waiting.at(now) < capacity {
                    waiting.push(now);
                } else {
                    lost += 1;
                }
            }
        }
        waiting.at(u128::MAX);
        (lost, waiting)
    }
}

/// When the messages that wait will be served.
struct Served {
    service: u128,
    stall: std::ops::Range<u128>,
    ends: VecDeque<u128>,
    last: u128,
    /// When nothing was left, after something was.
    idle: Vec<u128>,
}

impl Served {
    fn new(service: u128, stall: std::ops::Range<u128>) -> Self {
        Self {
            service,
            stall,
            ends: VecDeque::new(),
            last: 0,
            idle: Vec::new(),
        }
    }

    /// How many wait, or are being served.
    fn at(&mut self, now: u128) -> u64 {
        while self.ends.front().is_some_and(|&end| end <= now) {
            self.ends.pop_front();
            if self.ends.is_empty() {
                self.idle.push(self.last);
            }
        }
        self.ends.len() as u64
    }

    fn push(&mut self, now: u128) {
        let begin = self.last.max(now);
        let worked = begin + self.service;
        self.last = if self.stall.contains(&begin) {
            self.stall.end + self.service
        } else if begin < self.stall.start && worked > self.stall.start {
            worked + (self.stall.end - self.stall.start)
        } else {
            worked
        };
        self.ends.push_back(self.last);
    }
}
