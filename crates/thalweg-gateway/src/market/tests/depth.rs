//! A program that keeps a book by the documented procedure has the book of each snapshot.

use std::collections::BTreeMap;

use crate::market::depth::{Depth, DepthSnapshot, Diff, Level, Speed};
use proptest::prelude::*;
use thalweg_exchange::Action;

#[derive(Clone, Copy, Debug)]
enum Step {
    /// A command that comes this many after the last one sets a level.
    Set(u64, bool, i64, i64),
    /// The next event of a speed.
    Flush(usize),
    /// A program begins with a snapshot, if none follows this speed.
    Follow(usize),
    /// Everything that was lost is replaced.
    Replace(u64, u8),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (1_u64..9, any::<bool>(), 0_i64..12, 0_i64..4)
            .prop_map(|(skip, buys, price, lots)| Step::Set(skip, buys, price, lots)),
        3 => (0_usize..3).prop_map(Step::Flush),
        1 => (0_usize..3).prop_map(Step::Follow),
        1 => (1_u64..9, any::<u8>()).prop_map(|(skip, seed)| Step::Replace(skip, seed)),
    ]
}

const SPEEDS: [Speed; 3] = [Speed::Immediate, Speed::Fast, Speed::Slow];

/// A program's book.
#[derive(Debug)]
struct Follower {
    number: u64,
    /// Whether an event was applied: from then on none may be missing.
    is_in_step: bool,
    bids: BTreeMap<i64, i64>,
    asks: BTreeMap<i64, i64>,
}

impl Follower {
    fn new(snapshot: DepthSnapshot) -> Self {
        Self {
            number: snapshot.number,
            is_in_step: false,
            bids: snapshot.bids.into_iter().collect(),
            asks: snapshot.asks.into_iter().collect(),
        }
    }

    fn apply(&mut self, diff: &Diff) {
        if diff.last <= self.number {
            return;
        }
        assert!(
            diff.first <= self.number + 1,
            "{diff:?} after {}",
            self.number
        );
        assert!(!self.is_in_step || diff.first == self.number + 1);
        self.is_in_step = true;
        for (levels, own) in [(&diff.bids, &mut self.bids), (&diff.asks, &mut self.asks)] {
            for (price, lots) in levels {
                match lots {
                    0 => own.remove(price),
                    _ => own.insert(*price, *lots),
                };
            }
        }
        self.number = diff.last;
    }

    fn book(&self) -> (Vec<Level>, Vec<Level>) {
        let bids = self.bids.iter().rev().map(|(price, lots)| (*price, *lots));
        let asks = self.asks.iter().map(|(price, lots)| (*price, *lots));
        (bids.collect(), asks.collect())
    }
}

fn levels(seed: u8) -> Vec<Level> {
    let bits = (0..8).filter(|bit| seed >> bit & 1 != 0);
    bits.map(|bit| (bit, bit + 1)).collect()
}

proptest! {
    #[test]
    fn a_book_kept_by_events_is_the_snapshot_of_its_number(
        steps in prop::collection::vec(step(), 1..200)
    ) {
        let mut depth = Depth::new(100);
        let mut number = 100;
        let mut followers: [Option<Follower>; 3] = [None, None, None];
        let mut snapshots = BTreeMap::new();
        let mut last = [None::<u64>; 3];
        for speed in SPEEDS {
            depth.start(speed);
        }
        for step in steps {
            match step {
                Step::Set(skip, buys, price, lots) => {
                    number += skip;
                    let side = if buys { Action::Bid } else { Action::Ask };
                    depth.set(number, side, price, lots);
                }
                Step::Replace(skip, seed) => {
                    number += skip;
                    depth.replace(number, &levels(seed), &levels(!seed));
                    let snapshot = depth.snapshot(usize::MAX);
                    let mut bids = levels(seed);
                    bids.reverse();
                    prop_assert_eq!((snapshot.bids, snapshot.asks), (bids, levels(!seed)));
                }
                Step::Follow(at) => {
                    followers[at] = Some(Follower::new(depth.snapshot(usize::MAX)));
                }
                Step::Flush(at) => {
                    let Some(diff) = depth.diff(SPEEDS[at]) else {
                        continue;
                    };
                    prop_assert!(!diff.bids.is_empty() || !diff.asks.is_empty());
                    prop_assert!(diff.first <= diff.last);
                    let first = last[at].replace(diff.last).map_or(101, |last| last + 1);
                    prop_assert_eq!(diff.first, first);
                    if let Some(follower) = &mut followers[at] {
                        follower.apply(&diff);
                        let snapshot = depth.snapshot(usize::MAX);
                        prop_assert_eq!(follower.number, snapshot.number);
                        prop_assert_eq!(follower.book(), (snapshot.bids, snapshot.asks));
                    }
                }
            }
            let snapshot = depth.snapshot(usize::MAX);
            let before = snapshots.insert(snapshot.number, snapshot.clone());
            // One number, one book.
            prop_assert!(before.is_none_or(|before| before == snapshot));
        }
    }

    #[test]
    fn a_snapshot_taken_when_nothing_waits_is_followed_by_the_next_number(
        steps in prop::collection::vec(step(), 1..100)
    ) {
        let mut depth = Depth::new(7);
        depth.start(Speed::Slow);
        let mut number = 7;
        let mut last = 7;
        for step in steps {
            if let Step::Set(skip, buys, price, lots) = step {
                number += skip;
                let side = if buys { Action::Bid } else { Action::Ask };
                depth.set(number, side, price, lots);
            } else {
                if let Some(diff) = depth.diff(Speed::Slow) {
                    prop_assert_eq!(diff.first, last + 1);
                    last = diff.last;
                }
                prop_assert_eq!(depth.snapshot(1).number, last);
            }
        }
    }
}

#[test]
fn a_change_that_was_taken_back_is_reported_for_those_who_saw_it() {
    let mut depth = Depth::new(1);
    depth.start(Speed::Fast);
    depth.set(5, Action::Ask, 10, 3);
    let mut follower = Follower::new(depth.snapshot(9));
    depth.set(6, Action::Ask, 10, 0);
    let diff = depth.diff(Speed::Fast).expect("a change");
    assert_eq!((diff.first, diff.last), (2, 6));
    follower.apply(&diff);
    assert_eq!(follower.book(), (vec![], vec![]));
}

#[test]
fn nothing_that_changes_no_level_makes_an_event() {
    let mut depth = Depth::new(1);
    depth.start(Speed::Fast);
    depth.set(9, Action::Bid, 4, 1);
    assert_eq!(depth.diff(Speed::Fast).map(|diff| diff.last), Some(9));
    depth.set(10, Action::Bid, 4, 1);
    assert_eq!((depth.number(), depth.diff(Speed::Fast)), (9, None));
    assert_eq!(depth.diff(Speed::Slow), None);
    depth.stop(Speed::Fast);
    depth.set(11, Action::Bid, 4, 2);
    depth.start(Speed::Fast);
    assert_eq!(depth.diff(Speed::Fast), None);
}
