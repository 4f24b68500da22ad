//! Measurements that need only one thread.

use super::threads::{Length, Way, alone, relay};
use rustix::fs::{fdatasync, fstatfs};
use rustix::thread::{Timespec, nanosleep, sched_yield};
use std::fs::{self, OpenOptions};
use std::hint::black_box;
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, Instant};
use thalweg_measure::clock::Clock;

/// Returns the time of one call of `work` on that core, in ns: one value for each repetition of
/// `calls` calls.
pub(super) fn calls(
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
pub(super) fn yields(core: usize, repetitions: usize) -> io::Result<Vec<f64>> {
    calls(core, repetitions, 2_000, sched_yield)
}

/// Returns how late sleeps of this length end, in ns.
pub(super) fn lateness(core: usize, samples: usize, sleep: Duration) -> io::Result<Vec<f64>> {
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
pub(super) fn switches(core: usize, length: Length, set_bytes: usize) -> io::Result<Vec<f64>> {
    let set = || vec![0_u64; set_bytes / size_of::<u64>()];
    let mut hot = set();
    let touching = calls(core, length.repetitions, length.rounds, || touch(&mut hot))?;
    let touching_ns = thalweg_measure::statistics::median(&touching).unwrap_or(0.0);
    let mut sets = [set(), set()];
    let works = sets.each_mut().map(|set| || touch(set));
    let turns = relay([core; 2], Way::Futex, length, works)?;
    Ok(turns.into_iter().map(|ns| ns - touching_ns).collect())
}

/// The times in which a disk stores 4 KB, in ns, one value for each write.
#[derive(Debug)]
pub(super) struct Syncs {
    pub(super) values_ns: Vec<f64>,
    /// Whether the directory is in memory, so that nothing was stored on a disk.
    pub(super) is_memory: bool,
}

const BLOCK_BYTES: usize = 4096;
const BLOCKS: usize = 64;

/// The file system types of tmpfs and ramfs in `statfs`.
const IN_MEMORY: [i64; 2] = [0x0102_1994, 0x8584_58f6];

/// Overwrites a file in that directory block by block, each followed by `fdatasync`. The file is
/// removed at the end.
pub(super) fn syncs(directory: &Path, samples: usize, at_most: Duration) -> io::Result<Syncs> {
    let path = directory.join(format!(".thalweg-machine-{}", std::process::id()));
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    let file = options.open(&path)?;
    // The file exists while it is open.
    fs::remove_file(&path)?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::threads::cores;

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
        let name = format!(".thalweg-machine-{}", std::process::id());
        assert!(!Path::new("/dev/shm").join(name).exists());
        assert!(self::syncs(Path::new("/no/such/place"), 1, Duration::ZERO).is_err());
    }
}
