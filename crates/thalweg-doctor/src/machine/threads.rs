//! Threads that are pinned to a core: one alone, or two that exchange turns.

use rustix::thread::futex::{self, Flags};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity, sched_yield};
use std::io;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use thalweg_measure::clock::Clock;

/// Returns the cores that this program may use, ascending.
pub(super) fn cores() -> io::Result<Vec<usize>> {
    let set = sched_getaffinity(None)?;
    Ok((0..CpuSet::MAX_CPU)
        .filter(|&core| set.is_set(core))
        .collect())
}

fn pin(core: usize) -> io::Result<()> {
    let mut set = CpuSet::new();
    set.set(core);
    Ok(sched_setaffinity(None, &set)?)
}

/// Runs `work` on a thread of its own on that core.
pub(super) fn alone<T: Send>(core: usize, work: impl FnOnce() -> T + Send) -> io::Result<T> {
    thread::scope(|scope| {
        let worker = scope.spawn(|| pin(core).map(|()| work()));
        worker.join().expect("the measurement does not panic")
    })
}

/// Runs both closures at the same time, each on a thread of its own on its core.
fn both<A: Send, B: Send>(
    cores: [usize; 2],
    first: impl FnOnce() -> A + Send,
    second: impl FnOnce() -> B + Send,
) -> io::Result<(A, B)> {
    let (start, is_pinned) = (Barrier::new(2), AtomicBool::new(true));
    let ready = |core| {
        let pinned = pin(core);
        if pinned.is_err() {
            // ORDERING: Relaxed, pairs with the load below; the barrier is between them.
            is_pinned.store(false, Ordering::Relaxed);
        }
        start.wait();
        pinned?;
        // ORDERING: Relaxed, as above.
        match is_pinned.load(Ordering::Relaxed) {
            true => Ok(()),
            false => Err(io::Error::other("the other thread cannot be pinned")),
        }
    };
    let ready = &ready;
    thread::scope(|scope| {
        let second = scope.spawn(move || ready(cores[1]).map(|()| second()));
        let first = scope.spawn(move || ready(cores[0]).map(|()| first()));
        let first = first.join().expect("the measurement does not panic")?;
        let second = second.join().expect("the measurement does not panic")?;
        Ok((first, second))
    })
}

/// A word in cache lines of its own, including the adjacent line that is prefetched with it.
#[derive(Default)]
#[repr(align(128))]
struct Word(AtomicU32);

/// The way in which a thread waits for its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Spin,
    Yield,
    Futex,
}

/// The value that ends a relay.
const STOP: u32 = u32::MAX;

impl Way {
    /// Waits until the word differs from `seen`, and returns its new value.
    fn wait(self, word: &Word, seen: u32) -> u32 {
        loop {
            // ORDERING: Acquire, pairs with the Release in pass(): the writes of one thread are
            // visible to the other.
            let now = word.0.load(Ordering::Acquire);
            if now != seen {
                return now;
            }
            match self {
                Way::Spin => std::hint::spin_loop(),
                Way::Yield => sched_yield(),
                // After an interruption and after a change of the word, the loop checks again.
                Way::Futex => drop(futex::wait(&word.0, Flags::PRIVATE, seen, None)),
            }
        }
    }

    /// Passes the turn on. Returns whether a sleeping thread was woken.
    fn pass(self, word: &Word, next: u32) -> bool {
        // ORDERING: Release, pairs with the Acquire in wait().
        word.0.store(next, Ordering::Release);
        self == Way::Futex && futex::wake(&word.0, Flags::PRIVATE, 1).is_ok_and(|woken| woken > 0)
    }
}

/// The length of a relay.
#[derive(Clone, Copy, Debug)]
pub(super) struct Length {
    /// The number of values wanted.
    pub(super) repetitions: usize,
    /// The number of turns of each thread for one value.
    pub(super) rounds: u32,
    /// The time after the first repetition from which on no further one begins.
    pub(super) at_most: Duration,
}

/// Runs two threads that take turns; each does `work` in its turn. Returns the time of a turn, in
/// ns, one value for each repetition.
pub(super) fn relay<W: FnMut() + Send>(
    cores: [usize; 2],
    way: Way,
    length: Length,
    [mut first, mut second]: [W; 2],
) -> io::Result<Vec<f64>> {
    let (word, clock) = (Word::default(), Clock::global());
    let lead = || {
        let (mut turn, began) = (0, Instant::now());
        let mut values = Vec::new();
        // The first repetition warms up.
        for repetition in 0..=length.repetitions {
            let before = clock.ticks();
            for _ in 0..length.rounds {
                first();
                way.pass(&word, turn + 1);
                turn = way.wait(&word, turn + 1);
            }
            let ns = clock.ns(clock.ticks().saturating_sub(before)) as f64;
            if repetition > 0 {
                values.push(ns / f64::from(2 * length.rounds));
            }
            if began.elapsed() > length.at_most {
                break;
            }
        }
        way.pass(&word, STOP);
        values
    };
    let follow = || {
        let mut turn = 0;
        loop {
            turn = way.wait(&word, turn);
            if turn == STOP {
                return;
            }
            second();
            turn += 1;
            way.pass(&word, turn);
        }
    };
    both(cores, lead, follow).map(|(values, ())| values)
}

/// The costs of waking a sleeping thread, in ns: the time until it runs, and the time for its
/// waker.
#[derive(Debug, Default)]
pub(super) struct Wakes {
    pub(super) latency_ns: Vec<f64>,
    pub(super) waker_ns: Vec<f64>,
}

/// Wakes a thread on another core repeatedly, after it has slept for the time `asleep`.
pub(super) fn wakes(cores: [usize; 2], samples: usize, asleep: Duration) -> io::Result<Wakes> {
    let (bed, alarm, clock) = (Word::default(), Word::default(), Clock::global());
    let samples = u32::try_from(samples).unwrap_or(u32::MAX / 4);
    let asleep_ticks = clock.ticks_from_ns(asleep.as_nanos() as u64);
    let waker = || {
        (0..samples)
            .map(|sample| {
                Way::Spin.wait(&bed, sample);
                let lay_down = clock.ticks();
                while clock.ticks().saturating_sub(lay_down) < asleep_ticks {
                    std::hint::spin_loop();
                }
                let before = clock.ticks();
                let is_woken = Way::Futex.pass(&alarm, sample + 1);
                (is_woken, before, clock.ticks())
            })
            .collect::<Vec<_>>()
    };
    let sleeper = || {
        (0..samples)
            .map(|sample| {
                Way::Spin.pass(&bed, sample + 1);
                Way::Futex.wait(&alarm, sample);
                clock.ticks()
            })
            .collect::<Vec<_>>()
    };
    let (waker, sleeper) = both(cores, waker, sleeper)?;
    let mut found = Wakes::default();
    for ((is_woken, before, after), ran) in waker.into_iter().zip(sleeper) {
        // If the thread had not yet fallen asleep, the sample is dropped.
        if is_woken {
            let ns = |ticks: u64| clock.ns(ticks.saturating_sub(before)) as f64;
            found.latency_ns.push(ns(ran));
            found.waker_ns.push(ns(after));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relay_takes_turns_and_ends() {
        let cores = cores().expect("Linux tells the cores");
        let pair = [cores[0], *cores.last().expect("there is a core")];
        // On one core, spinning would use up the other thread's time slices without end.
        for (way, pair) in [
            (Way::Yield, pair),
            (Way::Futex, pair),
            (Way::Futex, [pair[0]; 2]),
        ] {
            let length = Length {
                repetitions: 3,
                rounds: 5,
                at_most: Duration::MAX,
            };
            let (mut first, mut second) = (0, 0);
            let work: [Box<dyn FnMut() + Send>; 2] =
                [Box::new(|| first += 1), Box::new(|| second += 1)];
            let values = relay(pair, way, length, work).expect("both can be pinned");
            assert_eq!(values.len(), 3);
            assert!(values.iter().all(|&ns| ns > 0.0), "{values:?}");
            assert_eq!((first, second), (20, 20), "{way:?}");
        }
    }

    #[test]
    fn a_relay_that_takes_long_is_cut_short() {
        let core = cores().expect("Linux tells the cores")[0];
        let length = Length {
            repetitions: 1_000_000,
            rounds: 1,
            at_most: Duration::ZERO,
        };
        let values = relay([core; 2], Way::Futex, length, [|| (), || ()]);
        assert!(values.expect("both can be pinned").is_empty());
    }

    #[test]
    fn a_core_that_is_not_there_is_refused() {
        assert!(alone(CpuSet::MAX_CPU - 1, || ()).is_err());
        let core = cores().expect("Linux tells the cores")[0];
        let pair = [core, CpuSet::MAX_CPU - 1];
        assert!(wakes(pair, 1, Duration::ZERO).is_err());
    }
}
