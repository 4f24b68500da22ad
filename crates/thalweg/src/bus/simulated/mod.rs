//! Checks of what the formulas and rules promise, in simulations that know nothing of them: queues
//! in exact arithmetic, and loops in which a rule changes what it is fed with.
//!
//! Each loop is also closed with a rule that must swing: one that goes by the depth of the queue,
//! as the adaptive strategy does that these rules replace. So the measure of swinging has something
//! that it must reject.

mod batches;
mod priorities;

/// Returns how often adjacent elements differ.
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

    /// Returns a gap between two messages that come independently.
    fn gap(&mut self, mean: f64) -> f64 {
        -mean * self.next().ln()
    }
}
