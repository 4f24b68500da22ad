//! Records which thread wakes which.

use std::collections::{HashMap, HashSet};

/// The maximum number of pairs of threads that are remembered.
const PAIRS_MAX: usize = 4_096;
/// The minimum number of wake-ups for a statement on which thread wakes which.
const WAKES_MIN: f64 = 8.0;
/// The minimum share of the wake-ups between threads that makes a thread a party of a lock.
const PART_MIN: f64 = 0.02;

/// The wake-ups of the threads of the program, by waker.
#[derive(Debug, Default)]
pub(crate) struct Wakes {
    /// The number of wake-ups by waker and woken thread.
    pairs: HashMap<(i32, i32), f64>,
}

impl Wakes {
    /// Adds a wake-up of one thread of the program by another one.
    pub(crate) fn add(&mut self, waker: i32, woken: i32) {
        let pair = (waker, woken);
        let known = self.pairs.len() < PAIRS_MAX || self.pairs.contains_key(&pair);
        if waker != woken && known {
            *self.pairs.entry(pair).or_default() += 1.0;
        }
    }

    /// Returns the minimum share of the wake-ups between threads that stay on one side when the
    /// threads are divided into two sides, and the threads that take part in them. The wake-ups of
    /// senders and receivers all cross the sides and leave no share; threads that take turns leave
    /// a third or more.
    pub(crate) fn one_sided(&self) -> Option<(f64, HashSet<i32>)> {
        let all: f64 = self.pairs.values().sum();
        if all < WAKES_MIN {
            return None;
        }
        let mut pairs: HashMap<(i32, i32), f64> = HashMap::new();
        for (&(a, b), count) in &self.pairs {
            *pairs.entry((a.min(b), a.max(b))).or_default() += count;
        }
        let mut pairs: Vec<_> = pairs.into_iter().collect();
        pairs.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        let sides = divide(&pairs);
        let mut parts: HashMap<i32, f64> = HashMap::new();
        let mut same = 0.0;
        for ((a, b), count) in pairs {
            if sides[&a] == sides[&b] {
                same += count;
            }
            *parts.entry(a).or_default() += count;
            *parts.entry(b).or_default() += count;
        }
        parts.retain(|_, count| *count >= PART_MIN * all);
        Some((same / all, parts.into_keys().collect()))
    }
}

/// Divides threads into two sides, so that few wake-ups stay on one: each thread goes to the side
/// where it has the fewest, until no change is a gain. The heaviest pairs are placed first.
fn divide(pairs: &[((i32, i32), f64)]) -> HashMap<i32, bool> {
    let mut near: HashMap<i32, Vec<(i32, f64)>> = HashMap::new();
    let mut order = Vec::new();
    for &((a, b), count) in pairs {
        for (from, to) in [(a, b), (b, a)] {
            let of = near.entry(from).or_default();
            if of.is_empty() {
                order.push(from);
            }
            of.push((to, count));
        }
    }
    let mut sides = HashMap::new();
    for &first in &order {
        let mut open = vec![first];
        while let Some(tid) = open.pop().filter(|tid| !sides.contains_key(tid)) {
            sides.insert(tid, gain(&sides, &near[&tid]) < 0.0);
            open.extend(near[&tid].iter().rev().map(|&(to, _)| to));
            open.retain(|tid| !sides.contains_key(tid));
        }
    }
    // Each change reduces the wake-ups that stay on a side, so this ends; the bound limits the
    // time.
    for _ in 0..order.len() {
        let mut changed = false;
        for tid in &order {
            let side = sides[tid];
            let sign = if side { 1.0 } else { -1.0 };
            if sign * gain(&sides, &near[tid]) > 0.0 {
                sides.insert(*tid, !side);
                changed = true;
            }
        }
        if !changed {
            break;
        }
    }
    sides
}

/// Returns how many more wake-ups a thread has with the threads on one side than with those on the
/// other.
fn gain(sides: &HashMap<i32, bool>, near: &[(i32, f64)]) -> f64 {
    let signed = |&(tid, count): &(i32, f64)| match sides.get(&tid) {
        Some(true) => count,
        Some(false) => -count,
        None => 0.0,
    };
    near.iter().map(signed).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wakes(pairs: &[(i32, i32, usize)]) -> Wakes {
        let mut wakes = Wakes::default();
        for &(waker, woken, count) in pairs {
            (0..count).for_each(|_| wakes.add(waker, woken));
        }
        wakes
    }

    fn share(pairs: &[(i32, i32, usize)]) -> f64 {
        wakes(pairs).one_sided().expect("enough wakes").0
    }

    #[test]
    fn senders_and_receivers_wake_each_other_across() {
        let queue = [(1, 9, 50), (2, 9, 40), (9, 1, 45), (9, 2, 44)];
        assert_eq!(share(&queue), 0.0);
        let stages = [(1, 2, 50), (2, 3, 50), (3, 4, 50), (4, 3, 20), (2, 1, 9)];
        assert_eq!(share(&stages), 0.0);
    }

    #[test]
    fn threads_that_take_turns_have_no_two_sides() {
        let turns = |threads: i32| {
            let pairs = (0..threads).flat_map(|a| (0..threads).map(move |b| (a, b, 3)));
            share(&pairs.filter(|(a, b, _)| a != b).collect::<Vec<_>>())
        };
        assert!((turns(3) - 1.0 / 3.0).abs() < 1e-9, "{}", turns(3));
        assert!((turns(6) - 6.0 / 15.0).abs() < 1e-9, "{}", turns(6));
        let (_, threads) = wakes(&[(1, 2, 9), (2, 3, 9), (3, 1, 9)])
            .one_sided()
            .unwrap();
        assert_eq!(threads, HashSet::from([1, 2, 3]));
    }
}
