//! The operations whose instructions `cargo dev counts` counts, run one after another.
//!
//! Each case runs twice inside [`counted`], the one function that the counter looks at: `FEW`
//! rounds and `MANY`. The difference over the difference in rounds is what a round costs, without
//! what is done once. Before that it has warmed up for two laps of its ring. All on one thread, so
//! that every run takes the same path; a line `NAME ROUNDS` tells of each counted call.
#![forbid(unsafe_code)]

mod bus;
mod channel;
mod exchange;
mod hash;
mod journal;
mod measure;
mod pipeline;
mod ring;
mod task;
mod wire;

use std::collections::BTreeMap;
use std::hint::black_box;
use std::io::{self, Write};

/// Elements that a ring or channel has room for.
const CAPACITY: usize = 1024;
/// Elements of a batch.
const BATCH: usize = 64;
/// Whole laps, so that what happens once a lap is shared by all of its rounds.
const WARM: u64 = 2 * CAPACITY as u64;
const FEW: u64 = CAPACITY as u64;
const MANY: u64 = 3 * CAPACITY as u64;

/// Runs as many rounds as its argument says.
type Work = Box<dyn FnMut(u64)>;

/// Cases by name, so that they come in the order of the baseline.
type Cases = BTreeMap<String, fn() -> Work>;

/// An element, of 8 or of 32 bytes.
trait Element: Copy + Send + 'static {
    fn of(number: u64) -> Self;
}

impl Element for u64 {
    #[inline(always)]
    fn of(number: u64) -> Self {
        number
    }
}

impl Element for [u64; 4] {
    #[inline(always)]
    fn of(number: u64) -> Self {
        [number; 4]
    }
}

/// A loop around one round. The loop itself costs two or three instructions a round.
fn rounds(mut round: impl FnMut(u64) + 'static) -> Work {
    Box::new(move |count| (0..count).for_each(&mut round))
}

/// The counter looks at this alone: it knows the function by this name.
#[inline(never)]
fn counted(work: &mut dyn FnMut(u64), count: u64) {
    work(black_box(count));
}

fn cases() -> Cases {
    let mut cases = Cases::new();
    ring::add(&mut cases);
    task::add(&mut cases);
    bus::add(&mut cases);
    channel::add(&mut cases);
    exchange::add(&mut cases);
    hash::add(&mut cases);
    journal::add(&mut cases);
    measure::add(&mut cases);
    pipeline::add(&mut cases);
    wire::add(&mut cases);
    cases
}

fn main() -> io::Result<()> {
    // Else what an order costs would differ from run to run, by up to 15 %.
    thalweg_exchange::repeat_secrets(1);
    let mut output = io::stdout().lock();
    let wanted = std::env::args().nth(1).unwrap_or_default();
    let wanted = |name: &String| name.starts_with(&wanted);
    for (name, make) in cases().into_iter().filter(|(name, _)| wanted(name)) {
        let mut work = make();
        work(WARM);
        for count in [FEW, MANY] {
            counted(&mut *work, count);
            writeln!(output, "{name} {count}")?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_runs_more_than_a_lap() {
        let cases = cases();
        assert!(cases.len() > 30, "{}", cases.len());
        for (name, make) in cases {
            assert!(!name.contains([' ', '"']), "{name}");
            // Each checks what it receives.
            make()(WARM);
        }
    }
}
