//! A consumer whose batch size changes what waits, by which it chooses the batch size.

use super::{Random, changes};
use crate::bus::BATCH_MAX;
use crate::bus::batching::Batching;
use proptest::prelude::*;

/// The costs of a batch and of a message, and the time between messages, in ns.
#[derive(Debug, Clone, Copy)]
struct Load {
    batch_ns: f64,
    message_ns: f64,
    gap_ns: f64,
}

/// Returns the sizes over this number of looks, and the most that waited in the second half.
fn sizes(
    load: Load,
    looks: usize,
    mut gap: impl FnMut(f64) -> f64,
    mut rule: impl FnMut(usize) -> usize,
) -> (Vec<usize>, usize) {
    let (mut now, mut next, mut waiting) = (0.0, 0.0, 0_usize);
    let mut sizes = Vec::new();
    let mut most = 0;
    for look in 0..looks {
        if waiting == 0 {
            now = f64::max(now, next);
        }
        while next <= now {
            waiting += 1;
            next += gap(load.gap_ns);
        }
        if look > looks / 2 {
            most = most.max(waiting);
        }
        let size = rule(waiting);
        sizes.push(size);
        let taken = size.min(waiting);
        waiting -= taken;
        now += load.batch_ns + load.message_ns * taken as f64;
    }
    (sizes, most)
}

/// By depth alone: one at a time, and all where many wait.
fn by_depth(waiting: usize) -> usize {
    if waiting > 64 { BATCH_MAX } else { 1 }
}

const LOOKS: usize = 20_000;
/// A batch costs as much as ten messages, and one message at a time is too slow.
const LOAD: Load = Load {
    batch_ns: 1_000.0,
    message_ns: 100.0,
    gap_ns: 250.0,
};

#[test]
fn going_by_depth_alone_swings() {
    let (sizes, most) = sizes(LOAD, LOOKS, |gap| gap, by_depth);
    assert!(
        changes(&sizes[LOOKS / 2..]) > LOOKS / 100,
        "{}",
        changes(&sizes)
    );
    // And all messages wait for it: 64 where 8 would do.
    assert!(most > 64);
}

#[test]
fn a_batch_settles_where_it_is_large_enough() {
    let mut batching = Batching::new(4_096);
    let (sizes, most) = sizes(LOAD, LOOKS, |gap| gap, |waiting| batching.look(waiting));
    assert_eq!(changes(&sizes[LOOKS / 10..]), 0);
    // λ·o / (1 − λ·c) = 4 / 0.6 = 6.7.
    assert_eq!(*sizes.last().unwrap(), 8);
    assert!(most <= 8, "{most}");
}

/// Messages that come independently, and in flocks: a size changes for what comes, but rarely.
#[test]
fn noise_moves_a_batch_rarely() {
    for flock in [1.0, 8.0, 32.0] {
        let mut random = Random(5);
        let mut left = 0.0;
        let gap = |mean: f64| {
            left -= 1.0;
            if left > 0.0 {
                return 1.0;
            }
            left = flock;
            random.gap(mean * flock)
        };
        let mut batching = Batching::new(4_096);
        let (sizes, _) = sizes(LOAD, LOOKS, gap, |waiting| batching.look(waiting));
        let changed = changes(&sizes[LOOKS / 10..]);
        assert!(changed < LOOKS / 20, "{flock}: {changed}");
    }
}

proptest! {
    /// Whatever is below what full batches can carry: the size comes to rest.
    #[test]
    fn a_batch_comes_to_rest(
        batch_ns in 1.0..10_000.0_f64, message_ns in 1.0..1_000.0_f64, slack in 1.02..50.0_f64,
    ) {
        let carried = message_ns + batch_ns / BATCH_MAX as f64;
        let load = Load { batch_ns, message_ns, gap_ns: carried * slack };
        let mut batching = Batching::new(4_096);
        let (sizes, most) = sizes(load, 4_000, |gap| gap, |waiting| batching.look(waiting));
        let end = &sizes[3_000..];
        prop_assert_eq!(changes(end), 0, "{:?}", end);
        prop_assert!(most <= BATCH_MAX);
    }
}
