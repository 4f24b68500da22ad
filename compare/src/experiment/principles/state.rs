//! First principle: one atomic word for the state, not a flag for each of its aspects.
//!
//! The article times a loop that reads and drops what it has read. Nobody else knows its state, so
//! the compiler reads nothing: what is timed is the loop's counter, or nothing at all. The mended
//! loop counts what it read, from a state that another thread changes.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Instant;

use thalweg_measure::clock::Clock;

use super::place::{Cores, Line};
use crate::runner::{Metric, Run, Subject, subject};

pub(super) const METRICS: &[Metric] = &[Metric::lower("time of one", "ns")];
/// The state is paused, and goes on at once, every so often.
const CHANGE_NS: u64 = 100_000;

/// Names of the subjects.
pub(super) const NONE: &str = "no read";
pub(super) const FAR: &str = "four flags on four lines";
pub(super) const NEAR: &str = "four flags on one line";
pub(super) const WORD: &str = "one word";

const RUNNING: u32 = 1;
const PAUSED: u32 = 2;

/// What a thread must know before it goes on.
trait State: Default + Send + Sync + 'static {
    fn may_run(&self) -> bool;
    fn set(&self, phase: u32);
}

/// `true` in the first, and in none of the others, says go.
macro_rules! flags {
    ($name:ident, $flag:ty, $at:ident => $place:expr) => {
        impl State for $name {
            #[inline(always)]
            fn may_run(&self) -> bool {
                let flag = |$at: &$flag| {
                    // ORDERING: Acquire, pairs with the Release in set(): what came before.
                    $place.load(Ordering::Acquire)
                };
                flag(&self.running)
                    && !flag(&self.paused)
                    && !flag(&self.draining)
                    && !flag(&self.stopped)
            }

            fn set(&self, phase: u32) {
                let set = |$at: &$flag, value| {
                    // ORDERING: Release, pairs with the Acquire in may_run(): what came before.
                    $place.store(value, Ordering::Release)
                };
                set(&self.running, phase == RUNNING);
                set(&self.paused, phase == PAUSED);
            }
        }
    };
}

#[derive(Debug, Default)]
struct Far {
    running: Line<AtomicBool>,
    paused: Line<AtomicBool>,
    draining: Line<AtomicBool>,
    stopped: Line<AtomicBool>,
}

#[derive(Debug, Default)]
#[repr(align(128))]
struct Near {
    running: AtomicBool,
    paused: AtomicBool,
    draining: AtomicBool,
    stopped: AtomicBool,
}

flags!(Far, Line<AtomicBool>, flag => flag.0);
flags!(Near, AtomicBool, flag => flag);

#[derive(Debug, Default)]
struct Word(Line<AtomicU32>);

impl State for Word {
    #[inline(always)]
    fn may_run(&self) -> bool {
        // ORDERING: Acquire, pairs with the Release in set(): what came before.
        self.0.0.load(Ordering::Acquire) == RUNNING
    }

    fn set(&self, phase: u32) {
        // ORDERING: Release, pairs with the Acquire in may_run(): what came before.
        self.0.0.store(phase, Ordering::Release);
    }
}

/// Always says go.
#[derive(Debug, Default)]
struct Nothing;

impl State for Nothing {
    #[inline(always)]
    fn may_run(&self) -> bool {
        true
    }

    fn set(&self, _: u32) {}
}

/// What is done beside each read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Path {
    /// Nothing.
    Loop,
    /// A message of 64 bytes, from 256 KiB of them, is added up.
    Data,
}

/// How many reads, beside what, and whether another core changes the state meanwhile.
#[derive(Debug, Clone, Copy)]
pub(super) struct Load {
    pub(super) reads: u64,
    pub(super) path: Path,
    pub(super) cores: Cores,
}

/// Counts how often the state said go.
#[inline(never)]
fn count<S: State>(state: &S, reads: u64) -> u64 {
    let mut went = 0;
    for _ in 0..reads {
        went += u64::from(state.may_run());
    }
    went
}

/// Adds up messages while the state says go.
#[inline(never)]
fn add<S: State>(state: &S, messages: &[[u64; 8]], reads: u64) -> u64 {
    let (mut went, mut sum, mut at) = (0, 0_u64, 0);
    for _ in 0..reads {
        if state.may_run() {
            let message = &messages[at];
            sum = message.iter().fold(sum, |sum, &word| sum ^ word);
            at = if at + 1 == messages.len() { 0 } else { at + 1 };
            went += 1;
        }
    }
    black_box(sum);
    went
}

/// Reads beside a thread that changes the state now and then, or alone.
fn read<S: State>(load: &Load) -> Result<Run, String> {
    let state = S::default();
    state.set(RUNNING);
    let over = AtomicBool::new(false);
    let messages = vec![[1_u64; 8]; 4096];
    let reader = || {
        let begin = Instant::now();
        let went = match load.path {
            Path::Loop => count(black_box(&state), load.reads),
            Path::Data => add(black_box(&state), &messages, load.reads),
        };
        let ns = begin.elapsed().as_nanos() as f64;
        // ORDERING: Relaxed; only says that nobody reads any more.
        over.store(true, Ordering::Relaxed);
        (ns, went)
    };
    let writer = || {
        let clock = Clock::global();
        let mut due = clock.ticks();
        // ORDERING: Relaxed; only says that nobody reads any more.
        while load.cores == Cores::Two && !over.load(Ordering::Relaxed) {
            due += clock.ticks_from_ns(CHANGE_NS);
            load.cores.until(due);
            state.set(PAUSED);
            state.set(RUNNING);
        }
    };
    let ((ns, went), ()) = load.cores.seats()?.run(reader, writer)?;
    // Where nobody pauses it, every read says go.
    let lost = match load.cores {
        Cores::One => load.reads - went,
        Cores::Two => 0,
    };
    Ok(Run::of(vec![ns / load.reads as f64]).with_lost(lost))
}

/// All states; where there is other work, also none.
pub(super) fn subjects(path: Path) -> Vec<Box<dyn Subject<Load>>> {
    let none = (path == Path::Data).then(|| subject(NONE, read::<Nothing>));
    let states = [
        subject(FAR, read::<Far>),
        subject(NEAR, read::<Near>),
        subject(WORD, read::<Word>),
    ];
    none.into_iter().chain(states).collect()
}

/// The article's loop: the state is the loop's own, and what is read is dropped.
#[inline(never)]
fn dropped<S: State>(reads: u64) {
    let state = S::default();
    state.set(RUNNING);
    for _ in 0..reads {
        let _ = state.may_run();
    }
}

/// The same, with a counter that the compiler must keep.
#[inline(never)]
fn counted<S: State>(reads: u64) {
    let state = S::default();
    state.set(RUNNING);
    for at in 0..reads {
        black_box(at);
        let _ = state.may_run();
    }
}

fn article(loops: fn(u64)) -> impl Fn(&Load) -> Result<Run, String> + Send + Sync + 'static {
    move |load| {
        let begin = Instant::now();
        loops(black_box(load.reads));
        let ns = begin.elapsed().as_nanos() as f64;
        Ok(Run::of(vec![ns / load.reads as f64]))
    }
}

pub(super) const EMPTY: &str = "empty loop, counter kept";
pub(super) const ARTICLE_FAR: &str = "four flags, counter kept";
pub(super) const ARTICLE_WORD: &str = "one word, counter kept";

/// The article's loops, as the compiler leaves them.
pub(super) fn article_subjects() -> Vec<Box<dyn Subject<Load>>> {
    vec![
        subject("four flags, result dropped", article(dropped::<Far>)),
        subject("one word, result dropped", article(dropped::<Word>)),
        subject(ARTICLE_FAR, article(counted::<Far>)),
        subject(ARTICLE_WORD, article(counted::<Word>)),
        subject(EMPTY, article(counted::<Nothing>)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn goes<S: State>() -> [bool; 3] {
        let state = S::default();
        let before = state.may_run();
        state.set(RUNNING);
        let running = state.may_run();
        state.set(PAUSED);
        [before, running, state.may_run()]
    }

    #[test]
    fn every_state_says_go_only_while_it_runs() {
        assert_eq!(goes::<Far>(), [false, true, false]);
        assert_eq!(goes::<Near>(), [false, true, false]);
        assert_eq!(goes::<Word>(), [false, true, false]);
    }

    #[test]
    fn a_stopped_or_draining_state_does_not_say_go() {
        let state = Near::default();
        state.set(RUNNING);
        // ORDERING: Relaxed; one thread.
        state.draining.store(true, Ordering::Relaxed);
        assert!(!state.may_run());
    }

    #[test]
    fn what_was_read_is_counted() {
        let state = Word::default();
        assert_eq!(count(&state, 10), 0);
        state.set(RUNNING);
        assert_eq!(count(&state, 10), 10);
        assert_eq!(add(&state, &[[1; 8]; 3], 10), 10);
    }
}
