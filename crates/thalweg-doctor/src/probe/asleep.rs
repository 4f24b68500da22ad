//! Who waits in line for a lock whose holder sleeps, or waits for something else.

use super::wakes::Wakes;
use super::words::{Line, PART_MIN, THREADS_TELLING};
use std::collections::{HashMap, HashSet};

/// Pairs of threads that are remembered.
const PAIRS_MAX: usize = 4_096;

/// Times in which all threads were blocked, by the thread that woke first: it may hold what the
/// others wait for.
#[derive(Debug, Default)]
pub(crate) struct Asleep {
    /// Looks at which each thread was about to wake first.
    ended: HashMap<i32, f64>,
    /// By that thread and one that waited at a futex, without a timeout, meanwhile.
    waited: HashMap<(i32, i32), f64>,
}

impl Asleep {
    /// A thread woke first after so many looks.
    pub(super) fn end(&mut self, first: i32, looks: f64) {
        if self.ended.len() < PAIRS_MAX || self.ended.contains_key(&first) {
            *self.ended.entry(first).or_default() += looks;
        }
    }

    /// Another one waited at a futex meanwhile.
    pub(super) fn add(&mut self, first: i32, waiting: i32, looks: f64) {
        let pair = (first, waiting);
        if self.waited.len() < PAIRS_MAX || self.waited.contains_key(&pair) {
            *self.waited.entry(pair).or_default() += looks;
        }
    }

    /// Threads that wake first in turn, wait for each other meanwhile, and wake each other. One
    /// that gives work to others and sleeps wakes first itself, and they never do.
    pub(crate) fn line(&self, rounds: u64, wakes: &Wakes) -> Option<Line> {
        let all: f64 = self.ended.values().sum();
        let waiting = self.waited.keys().map(|&(_, waiting)| waiting);
        let ended = |tid: &i32| self.ended.get(tid).copied().unwrap_or(0.0);
        let in_line: HashSet<i32> = waiting.filter(|tid| ended(tid) >= PART_MIN * all).collect();
        let locked = wakes.in_turn(&in_line)?;
        let waited = self
            .waited
            .iter()
            .filter(|((first, waiting), _)| in_line.contains(first) && in_line.contains(waiting));
        let waited: f64 = waited.map(|(_, looks)| looks).sum();
        (in_line.len() >= THREADS_TELLING).then(|| Line {
            waiters: waited / rounds.max(1) as f64,
            locked: Some(locked),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As many wakes of each pair, waker first.
    fn wakes(pairs: &[(i32, i32)]) -> Wakes {
        let mut wakes = Wakes::default();
        for _ in 0..20 {
            (pairs.iter()).for_each(|&(waker, woken)| wakes.add(waker, woken));
        }
        wakes
    }

    /// Each of them in turn wakes first, and the others wait meanwhile.
    fn turns(tids: &[i32]) -> Asleep {
        let mut asleep = Asleep::default();
        for &first in tids {
            asleep.end(first, 10.0);
            let others = tids.iter().filter(|&&tid| tid != first);
            others.for_each(|&tid| asleep.add(first, tid, 10.0));
        }
        asleep
    }

    /// A monitor of Java that is held over `Thread.sleep`, handed on in a fixed order: it was
    /// SLEEP-POLLING at 0.93.
    #[test]
    fn a_lock_that_is_held_asleep_has_a_line() {
        let ring = [(1, 2), (2, 3), (3, 4), (4, 1)];
        let line = turns(&[1, 2, 3, 4])
            .line(40, &wakes(&ring))
            .expect("in turn");
        assert_eq!((line.waiters, line.locked), (3.0, Some(1.0)));
    }

    /// They wake each other in any order, but the one that gives the work sleeps.
    #[test]
    fn workers_of_one_that_sleeps_are_in_no_line() {
        let pool = [(9, 1), (1, 2), (2, 3), (3, 1)];
        let mut asleep = Asleep::default();
        asleep.end(9, 40.0);
        (1..4).for_each(|worker| asleep.add(9, worker, 40.0));
        assert_eq!(asleep.line(40, &wakes(&pool)), None);
    }

    /// Senders and receivers that sleep in turn.
    #[test]
    fn those_who_wake_each_other_across_wait_for_no_lock() {
        let queue = [(1, 9), (2, 9), (9, 1), (9, 2)];
        let line = turns(&[1, 2, 9]).line(30, &wakes(&queue)).expect("in turn");
        assert_eq!(line.locked, Some(0.0));
    }
}
