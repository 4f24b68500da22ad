//! Measures each cost of a machine.

use crate::machine::{self, Cost, Estimate, Machine, MeasureOptions, Pair};
use rustix::fs::{fdatasync, fstatfs};
use rustix::thread::futex::{self, Flags};
use rustix::thread::{
    CpuSet, Timespec, nanosleep, sched_getaffinity, sched_setaffinity, sched_yield,
};
use std::fs::{self, OpenOptions};
use std::hint::black_box;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};
use std::{io, thread};
use thalweg_measure::clock::{Clock, Source};

/// The maximum number of pairs of cores that are measured; with more, only neighbours and those of
/// the first core are.
const PAIRS_MAX: usize = 66;
/// The number of measurements of each cost in one pass.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Effort {
    pub(crate) repetitions: usize,
    pub(crate) samples: usize,
    pub(crate) at_most: Duration,
}

/// The values that all passes have measured so far.
#[derive(Debug)]
pub(crate) struct Values {
    costs: Vec<(Cost, Vec<f64>)>,
    absent: Vec<(Cost, String)>,
    pairs: Vec<((usize, usize), Vec<f64>)>,
    pub(crate) is_memory: bool,
}

impl Values {
    pub(crate) fn new(cores: &[usize]) -> Values {
        let between = [
            Cost::HandOff,
            Cost::Wake5,
            Cost::Wake50,
            Cost::Wake1000,
            Cost::Waker,
        ];
        let why = || "this program may use one core only".to_owned();
        let pairs = pairs(cores).into_iter().map(|pair| (pair, Vec::new()));
        Values {
            costs: Vec::new(),
            absent: match cores {
                [_] => between.map(|cost| (cost, why())).to_vec(),
                _ => Vec::new(),
            },
            pairs: pairs.collect(),
            is_memory: false,
        }
    }

    pub(crate) fn put(&mut self, cost: Cost, values: &[f64]) {
        match self.costs.iter_mut().find(|(found, _)| *found == cost) {
            Some((_, all)) => all.extend(values),
            None => self.costs.push((cost, values.to_vec())),
        }
    }

    pub(crate) fn summed_up(
        mut self,
        options: &MeasureOptions,
        cores: Vec<usize>,
        disturbance: f64,
    ) -> Machine {
        let figure = |(pair, values): &((usize, usize), Vec<f64>)| {
            let (from, to) = *pair;
            let figure = Estimate::of(values)?;
            Some(Pair { from, to, figure })
        };
        let pairs: Vec<Pair> = self.pairs.iter().filter_map(figure).collect();
        let between: Vec<f64> = match &self.pairs[..] {
            [(_, values)] => values.clone(),
            _ => pairs
                .iter()
                .map(|pair| pair.figure.interval.value)
                .collect(),
        };
        self.put(Cost::HandOff, &between);
        let (mut costs, mut absent) = (Vec::new(), self.absent);
        for (cost, values) in self.costs {
            match Estimate::of(&values) {
                Some(figure) => costs.push((cost, figure)),
                None if absent.iter().any(|(found, _)| *found == cost) => {}
                None => absent.push((cost, "no repetition ended in time".to_owned())),
            }
        }
        costs.sort_by_key(|(cost, _)| *cost as usize);
        let mut machine = Machine {
            processor: crate::report::processor(),
            clock: match Clock::global().source() {
                Source::Os => "operating system",
                _ => "processor",
            },
            disturbance,
            costs,
            absent,
            pairs,
            pairs_all: cores.len() * cores.len().saturating_sub(1) / 2,
            directory: options.directory.clone(),
            is_memory: self.is_memory,
            meaning: Vec::new(),
            cores,
        };
        machine.meaning = machine::meaning_of(&machine);
        machine
    }

    pub(crate) fn measure_single(&mut self, cores: &[usize], effort: Effort) -> io::Result<()> {
        let (core, clock) = (cores[0], Clock::global());
        let timed = |count, work: fn()| calls(core, effort.repetitions, count, work);
        if clock.source() != Source::Os {
            self.put(
                Cost::Clock,
                &timed(20_000, || {
                    std::hint::black_box(Clock::global().ticks());
                })?,
            );
        }
        self.put(
            Cost::ClockOs,
            &timed(10_000, || {
                std::hint::black_box(std::time::Instant::now());
            })?,
        );
        self.put(Cost::Pause, &timed(10_000, std::hint::spin_loop)?);
        self.put(Cost::YieldAlone, &yields(core, effort.repetitions)?);
        let sleep = Duration::from_micros(100);
        self.put(Cost::Slack, &lateness(core, effort.samples, sleep)?);
        Ok(())
    }

    /// Measures threads on different cores.
    pub(crate) fn measure_between(&mut self, cores: &[usize], effort: Effort) -> io::Result<()> {
        if cores.len() < 2 {
            return Ok(());
        }
        let length = Length {
            repetitions: effort.repetitions,
            rounds: 1_000,
            at_most: effort.at_most,
        };
        for ((from, to), values) in &mut self.pairs {
            values.extend(relay(
                [*from, *to],
                RelayWait::Spin,
                length,
                [|| (), || ()],
            )?);
        }
        let pair = [cores[0], cores[1]];
        for (cost, asleep_us, part) in [
            (Cost::Wake5, 5, 1),
            (Cost::Wake50, 50, 1),
            (Cost::Wake1000, 1_000, 4),
        ] {
            let asleep = Duration::from_micros(asleep_us);
            let wakes = wakes(pair, effort.samples / part, asleep)?;
            self.put(cost, &wakes.latency_ns);
            if cost == Cost::Wake50 {
                self.put(Cost::Waker, &wakes.waker_ns);
            }
        }
        Ok(())
    }

    /// Measures threads on the same core.
    pub(crate) fn measure_shared(&mut self, cores: &[usize], effort: Effort) -> io::Result<()> {
        let core = cores[0];
        let length = |rounds| Length {
            repetitions: effort.repetitions,
            rounds,
            at_most: effort.at_most,
        };
        // Some kernels hand over by a yield only when the time slice ends, after milliseconds.
        let values = relay([core; 2], RelayWait::Yield, length(5), [|| (), || ()])?;
        self.put(Cost::YieldPeer, &values);
        for (cost, set_bytes) in [
            (Cost::Switch0, 0),
            (Cost::Switch64K, 64 << 10),
            (Cost::Switch1M, 1 << 20),
        ] {
            self.put(cost, &switches(core, length(100), set_bytes)?);
        }
        Ok(())
    }
}

/// Returns all pairs; if these are too many, those of neighbours and of the first core.
pub(crate) fn pairs(cores: &[usize]) -> Vec<(usize, usize)> {
    let all = cores.iter().enumerate().flat_map(|(at, &from)| {
        let others = cores[at + 1..].iter().enumerate();
        others.map(move |(apart, &to)| (at, apart, from, to))
    });
    let is_few = cores.len() * cores.len().saturating_sub(1) / 2 <= PAIRS_MAX;
    all.filter(|&(at, apart, _, _)| is_few || at == 0 || apart == 0)
        .map(|(_, _, from, to)| (from, to))
        .collect()
}

/// Returns the time of one call of `work` on that core, in ns: one value for each repetition of
/// `calls` calls.
pub(crate) fn calls(
    core: usize,
    repetitions: usize,
    calls: u32,
    mut work: impl FnMut() + Send,
) -> io::Result<Vec<f64>> {
    let clock = Clock::global();
    let mut repetition = || {
        let before = clock.ticks();
        for _ in 0..calls {
            work();
        }
        clock.ns(clock.ticks().saturating_sub(before)) as f64 / f64::from(calls)
    };
    alone(core, || {
        repetition(); // Warms up.
        (0..repetitions).map(|_| repetition()).collect()
    })
}

/// Measures calls of `sched_yield` where no other thread wants the core.
pub(crate) fn yields(core: usize, repetitions: usize) -> io::Result<Vec<f64>> {
    calls(core, repetitions, 2_000, sched_yield)
}

/// Returns how late sleeps of this length end, in ns.
fn lateness(core: usize, samples: usize, sleep: Duration) -> io::Result<Vec<f64>> {
    let clock = Clock::global();
    let time = Timespec {
        tv_sec: 0,
        tv_nsec: i64::from(sleep.subsec_nanos()),
    };
    alone(core, || {
        (0..samples)
            .map(|_| {
                let before = clock.ticks();
                // A signal may end the sleep early; then it is not late.
                let _ = nanosleep(&time);
                let took = clock.ns(clock.ticks().saturating_sub(before));
                took as f64 - sleep.as_nanos() as f64
            })
            .collect()
    })
}

/// The size of a cache line in bytes, which is the stride at which a working set is touched.
const LINE_BYTES: usize = 64;

/// Reads and writes each line of a working set.
fn touch(set: &mut [u64]) {
    for word in set.iter_mut().step_by(LINE_BYTES / size_of::<u64>()) {
        *word = word.wrapping_add(1);
    }
    black_box(set);
}

/// Returns the time of handing over the core, in ns, where both threads have a working set of this
/// size: the switch, and the cache misses that it causes. The time of touching a set that is in the
/// caches is subtracted (as in lat_ctx; L. McVoy, C. Staelin, "lmbench", 1996).
fn switches(core: usize, length: Length, set_bytes: usize) -> io::Result<Vec<f64>> {
    let set = || vec![0_u64; set_bytes / size_of::<u64>()];
    let mut hot = set();
    let touching = calls(core, length.repetitions, length.rounds, || touch(&mut hot))?;
    let touching_ns = thalweg_measure::statistics::median(&touching).unwrap_or(0.0);
    let mut sets = [set(), set()];
    let works = sets.each_mut().map(|set| || touch(set));
    let turns = relay([core; 2], RelayWait::Futex, length, works)?;
    Ok(turns.into_iter().map(|ns| ns - touching_ns).collect())
}

/// The times in which a disk stores 4 KB, in ns, one value for each write.
#[derive(Debug)]
pub(crate) struct Syncs {
    pub(crate) values_ns: Vec<f64>,
    /// Whether the directory is in memory, so that nothing was stored on a disk.
    pub(crate) is_memory: bool,
}

const BLOCK_BYTES: usize = 4096;
const BLOCKS: usize = 64;

/// The file system types of tmpfs and ramfs in `statfs`.
const IN_MEMORY: [i64; 2] = [0x0102_1994, 0x8584_58f6];

/// The number of names that are tried for a file.
const NAMES_MAX: u32 = 1_000;

/// Makes a file in that directory that exists while it is open.
fn unnamed(directory: &Path) -> io::Result<fs::File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    let mut number = 0;
    loop {
        let name = format!(".thalweg-machine-{}-{number}", std::process::id());
        let path = directory.join(name);
        match options.open(&path) {
            // Another thread measures as well, or a process of this number was killed here.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < NAMES_MAX => {
                number += 1;
            }
            file => return file.and_then(|file| fs::remove_file(&path).map(|()| file)),
        }
    }
}

/// Overwrites a file in that directory block by block, each followed by `fdatasync`. The file is
/// removed at the end.
pub(crate) fn syncs(directory: &Path, samples: usize, at_most: Duration) -> io::Result<Syncs> {
    let file = unnamed(directory)?;
    // The bytes differ between writes, as a disk may detect repeated ones.
    let block = |number: usize| -> Vec<u8> {
        (0..BLOCK_BYTES)
            .map(|at| (number.wrapping_mul(31) ^ at.wrapping_mul(0x9E37) >> 7) as u8)
            .collect()
    };
    let place = |number: usize| (number % BLOCKS * BLOCK_BYTES) as u64;
    for number in 0..BLOCKS {
        file.write_all_at(&block(number), place(number))?;
    }
    file.sync_all()?;
    let began = Instant::now();
    let mut values_ns = Vec::new();
    while values_ns.len() < samples && began.elapsed() < at_most {
        let number = values_ns.len();
        let block = block(number + BLOCKS);
        let before = Instant::now();
        file.write_all_at(&block, place(number))?;
        fdatasync(&file)?;
        values_ns.push(before.elapsed().as_nanos() as f64);
    }
    let kind = fstatfs(&file)?.f_type as i64;
    Ok(Syncs {
        values_ns,
        is_memory: IN_MEMORY.contains(&kind),
    })
}

/// Returns the cores that this program may use, ascending.
pub(crate) fn cores() -> io::Result<Vec<usize>> {
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
pub(crate) fn alone<T: Send>(core: usize, work: impl FnOnce() -> T + Send) -> io::Result<T> {
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
enum RelayWait {
    Spin,
    Yield,
    Futex,
}

/// The value that ends a relay.
const STOP: u32 = u32::MAX;

impl RelayWait {
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
                RelayWait::Spin => std::hint::spin_loop(),
                RelayWait::Yield => sched_yield(),
                // After an interruption and after a change of the word, the loop checks again.
                RelayWait::Futex => drop(futex::wait(&word.0, Flags::PRIVATE, seen, None)),
            }
        }
    }

    /// Passes the turn on. Returns whether a sleeping thread was woken.
    fn pass(self, word: &Word, next: u32) -> bool {
        // ORDERING: Release, pairs with the Acquire in wait().
        word.0.store(next, Ordering::Release);
        self == RelayWait::Futex
            && futex::wake(&word.0, Flags::PRIVATE, 1).is_ok_and(|woken| woken > 0)
    }
}

/// The length of a relay.
#[derive(Clone, Copy, Debug)]
struct Length {
    /// The number of values wanted.
    pub(crate) repetitions: usize,
    /// The number of turns of each thread for one value.
    pub(crate) rounds: u32,
    /// The time after the first repetition from which on no further one begins.
    pub(crate) at_most: Duration,
}

/// Runs two threads that take turns; each does `work` in its turn. Returns the time of a turn, in
/// ns, one value for each repetition.
fn relay<W: FnMut() + Send>(
    cores: [usize; 2],
    way: RelayWait,
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
pub(crate) struct Wakes {
    latency_ns: Vec<f64>,
    waker_ns: Vec<f64>,
}

/// Wakes a thread on another core repeatedly, after it has slept for the time `asleep`.
pub(crate) fn wakes(cores: [usize; 2], samples: usize, asleep: Duration) -> io::Result<Wakes> {
    let (bed, alarm, clock) = (Word::default(), Word::default(), Clock::global());
    let samples = u32::try_from(samples).unwrap_or(u32::MAX / 4);
    let asleep_ticks = clock.ticks_from_ns(asleep.as_nanos() as u64);
    let waker = || {
        (0..samples)
            .map(|sample| {
                RelayWait::Spin.wait(&bed, sample);
                let lay_down = clock.ticks();
                while clock.ticks().saturating_sub(lay_down) < asleep_ticks {
                    std::hint::spin_loop();
                }
                let before = clock.ticks();
                let is_woken = RelayWait::Futex.pass(&alarm, sample + 1);
                (is_woken, before, clock.ticks())
            })
            .collect::<Vec<_>>()
    };
    let sleeper = || {
        (0..samples)
            .map(|sample| {
                RelayWait::Spin.pass(&bed, sample + 1);
                RelayWait::Futex.wait(&alarm, sample);
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
    fn calls_are_made_as_often_as_asked() {
        let core = cores().expect("Linux tells the cores")[0];
        let mut made = 0;
        let values = calls(core, 3, 10, || made += 1).expect("it can be pinned");
        assert_eq!((values.len(), made), (3, 40));
    }

    #[test]
    fn a_sleep_is_late_and_never_early() {
        let core = cores().expect("Linux tells the cores")[0];
        let late = lateness(core, 5, Duration::from_micros(100)).expect("it can be pinned");
        assert_eq!(late.len(), 5);
        assert!(late.iter().all(|&ns| ns > 0.0), "{late:?}");
    }

    #[test]
    fn each_line_of_a_working_set_is_touched() {
        let mut set = vec![0_u64; 64];
        touch(&mut set);
        assert_eq!(set.iter().sum::<u64>(), 8);
        touch(&mut []);
    }

    #[test]
    fn a_directory_of_memory_is_reported_and_nothing_is_left_behind() {
        let Ok(syncs) = syncs(Path::new("/dev/shm"), 3, Duration::MAX) else {
            println!("skipped: there is no /dev/shm to write to");
            return;
        };
        assert_eq!((syncs.values_ns.len(), syncs.is_memory), (3, true));
        let name = format!(".thalweg-machine-{}-0", std::process::id());
        assert!(!Path::new("/dev/shm").join(name).exists());
        assert!(self::syncs(Path::new("/no/such/place"), 1, Duration::ZERO).is_err());
    }

    /// The other one had the file's name for a moment, and this one failed.
    #[test]
    fn two_threads_measure_the_same_directory() {
        let scratch = thalweg_testkit::Scratch::new("syncs");
        let name = format!(".thalweg-machine-{}-0", std::process::id());
        fs::write(scratch.join(&name), "another's").expect("it takes files");
        let syncs = syncs(&scratch, 1, Duration::MAX).expect("the next name");
        assert_eq!(syncs.values_ns.len(), 1);
        let left = fs::read_dir(&*scratch).expect("it is there").flatten();
        assert_eq!(left.map(|it| it.file_name()).collect::<Vec<_>>(), [&*name]);
    }

    #[test]
    fn a_relay_takes_turns_and_ends() {
        let cores = cores().expect("Linux tells the cores");
        let pair = [cores[0], *cores.last().expect("there is a core")];
        // On one core, spinning would use up the other thread's time slices without end.
        for (way, pair) in [
            (RelayWait::Yield, pair),
            (RelayWait::Futex, pair),
            (RelayWait::Futex, [pair[0]; 2]),
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
        let values = relay([core; 2], RelayWait::Futex, length, [|| (), || ()]);
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
