//! How many coroutines get how many messages each, and in which order.

use std::time::Instant;

use thalweg_measure::random::SplitMix;

use crate::runner::{Metric, Run};

/// Where it is a message: it is sent, its receiver is resumed, takes it, and waits for the next.
pub(super) const METRICS: &[Metric] = &[Metric::lower("time of one", "ns")];
pub(super) const TIME: usize = 0;

/// In which order the coroutines of a round get their messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// As they were made.
    Made,
    /// Shuffled once, the same in every round.
    Random,
}

#[derive(Debug, Clone)]
pub(super) struct Load {
    pub(super) coroutines: usize,
    pub(super) rounds: u64,
    /// The order of a round, if it is not the one in which they were made.
    shuffled: Option<Vec<u32>>,
}

impl Load {
    pub(super) fn new(coroutines: usize, rounds: u64, order: Order) -> Self {
        let shuffled = (order == Order::Random).then(|| {
            let mut order: Vec<u32> = (0..coroutines as u32).collect();
            let mut random = SplitMix::new(1);
            for left in (1..coroutines).rev() {
                order.swap(left, random.below(left as u64 + 1) as usize);
            }
            order
        });
        Self {
            coroutines,
            rounds,
            shuffled,
        }
    }

    /// Messages of all rounds.
    pub(super) fn messages(&self) -> u64 {
        self.coroutines as u64 * self.rounds
    }

    /// One round: `each` is told the coroutine.
    #[inline(always)]
    pub(super) fn round(&self, mut each: impl FnMut(usize)) {
        match &self.shuffled {
            None => (0..self.coroutines).for_each(each),
            Some(order) => order.iter().for_each(|&at| each(at as usize)),
        }
    }

    /// All rounds, after one that is not timed; gives the time of a message, ns. `each` is told the
    /// coroutine and the message's number: 1, 2, 3…
    pub(super) fn timed(&self, mut each: impl FnMut(usize, u64)) -> f64 {
        let first = self.coroutines as u64;
        let (mut place, mut ns) = (0, 0);
        // `each` is called in one place, so that it is no call.
        for numbers in [1..=first, first + 1..=self.sent()] {
            let begin = Instant::now();
            for number in numbers {
                let at = match &self.shuffled {
                    Some(order) => order[place] as usize,
                    None => place,
                };
                each(at, number);
                place = if place + 1 == self.coroutines {
                    0
                } else {
                    place + 1
                };
            }
            ns = begin.elapsed().as_nanos();
        }
        ns as f64 / self.messages() as f64
    }

    /// Messages that [`timed`](Self::timed) sends, the first round included.
    pub(super) fn sent(&self) -> u64 {
        self.messages() + self.coroutines as u64
    }
}

/// A run in which messages with the numbers from 1 to `sent` were sent, each took so long, and the
/// sum of those that were taken is `sum`.
pub(super) fn run(sum: u64, sent: u64, ns: f64) -> Run {
    let all = (1..=sent).fold(0, u64::wrapping_add);
    Run::of(vec![ns]).with_lost(u64::from(sum != all))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_coroutine_gets_its_messages_in_either_order() {
        for order in [Order::Made, Order::Random] {
            let load = Load::new(100, 3, order);
            let mut got = vec![Vec::new(); 100];
            load.timed(|at, number| got[at].push(number));
            assert!(got.iter().all(|numbers| numbers.len() == 4));
            let in_order = got
                .iter()
                .enumerate()
                .all(|(at, got)| got[0] == at as u64 + 1);
            assert_eq!(in_order, order == Order::Made);
            assert_eq!(load.sent(), 400);
        }
    }

    #[test]
    fn a_message_that_was_not_taken_or_taken_twice_is_told() {
        let lost = |taken: &[u64]| run(taken.iter().sum(), 3, 1.0).lost;
        assert_eq!(lost(&[3, 1, 2]), 0);
        assert_eq!(lost(&[3, 1]), 1);
        assert_eq!(lost(&[3, 1, 1]), 1);
        assert_eq!(lost(&[3, 2, 1, 1]), 1);
    }
}
