//! What the formulas and rules promise, in simulations that know nothing of them: queues in exact
//! arithmetic, and loops in which a rule changes what it is fed with.
//!
//! Each loop is also closed with a rule that must swing: one that goes by the depth of the queue,
//! as the adaptive strategy does that these rules replace. So the measure of swinging has something
//! that it must reject.

mod applied;
mod batches;
mod capacity;
mod priorities;
mod producers;
mod queue;
mod waits;

/// How often a series turns back after a move of more than `band`.
fn swings(series: &[f64], band: f64) -> usize {
    let Some((&first, rest)) = series.split_first() else {
        return 0;
    };
    let (mut low, mut high) = (first, first);
    let mut direction = 0;
    let mut turns = 0;
    for &value in rest {
        low = low.min(value);
        high = high.max(value);
        let next = if value - low > band {
            1
        } else if high - value > band {
            -1
        } else {
            continue;
        };
        if next != direction {
            turns += usize::from(direction != 0);
            direction = next;
        }
        (low, high) = if next > 0 {
            (value - band, value)
        } else {
            (value, value + band)
        };
    }
    turns
}

/// How often neighbours differ.
fn changes<T: PartialEq>(series: &[T]) -> usize {
    series.windows(2).filter(|pair| pair[0] != pair[1]).count()
}

/// Uniform random numbers from 0 to 1, both excluded.
struct Random(u64);

impl Random {
    fn next(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 12) as f64 + 0.5) / (1_u64 << 52) as f64
    }

    /// A gap between two messages that come independently.
    fn gap(&mut self, mean: f64) -> f64 {
        -mean * self.next().ln()
    }
}

#[test]
fn a_swing_is_seen_and_a_slope_is_not() {
    let slope: Vec<_> = (0..100).map(f64::from).collect();
    assert_eq!(swings(&slope, 5.0), 0);
    let wave: Vec<_> = (0..100).map(|n| f64::from(n % 20)).collect();
    assert_eq!(swings(&wave, 5.0), 8);
    assert_eq!(swings(&wave, 25.0), 0);
}
