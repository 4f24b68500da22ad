//! What processes used while they were watched, where nobody waits for them.

use std::collections::HashMap;
use std::fs;

/// Sums over processes.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Used {
    pub(crate) user_s: f64,
    pub(crate) system_s: f64,
    pub(crate) faults_minor: u64,
    pub(crate) faults_major: u64,
    /// Bytes from and towards a disk.
    pub(crate) bytes_read: u64,
    pub(crate) bytes_written: u64,
}

impl Used {
    /// A process up to now; nothing if it is gone.
    pub(crate) fn of(pid: i32) -> Option<Used> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let io = fs::read_to_string(format!("/proc/{pid}/io")).unwrap_or_default();
        Used::parse(&stat, &io)
    }

    fn parse(stat: &str, io: &str) -> Option<Used> {
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        // The first one here is the third of the file.
        let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
        let tick_s = 1.0 / rustix::param::clock_ticks_per_second() as f64;
        let bytes = |name: &str| {
            let line = io.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|value| value.trim().parse().ok())
                .unwrap_or(0)
        };
        Some(Used {
            user_s: field(14)? as f64 * tick_s,
            system_s: field(15)? as f64 * tick_s,
            faults_minor: field(10)?,
            faults_major: field(12)?,
            bytes_read: bytes("read_bytes:"),
            bytes_written: bytes("write_bytes:"),
        })
    }

    fn add_since(&mut self, now: Used, before: Used) {
        self.user_s += (now.user_s - before.user_s).max(0.0);
        self.system_s += (now.system_s - before.system_s).max(0.0);
        self.faults_minor += now.faults_minor.saturating_sub(before.faults_minor);
        self.faults_major += now.faults_major.saturating_sub(before.faults_major);
        self.bytes_read += now.bytes_read.saturating_sub(before.bytes_read);
        self.bytes_written += now.bytes_written.saturating_sub(before.bytes_written);
    }
}

/// What each process used, first and last.
#[derive(Debug, Default)]
pub(crate) struct Usage(HashMap<i32, (Used, Used)>);

impl Usage {
    /// Begins with processes that were there before.
    pub(crate) fn begin(pids: impl Iterator<Item = i32>) -> Usage {
        Usage(
            pids.filter_map(|pid| Used::of(pid).map(|used| (pid, (used, used))))
                .collect(),
        )
    }

    /// Looks again; those that are new began at nothing.
    pub(crate) fn look(&mut self, pids: impl Iterator<Item = i32>) {
        for pid in pids {
            if let Some(now) = Used::of(pid) {
                self.0.entry(pid).or_default().1 = now;
            }
        }
    }

    /// The sum of what all of them used.
    pub(crate) fn total(&self) -> Used {
        let mut total = Used::default();
        for &(first, last) in self.0.values() {
            total.add_since(last, first);
        }
        total
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_counted_as_the_manual_does() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194560 101 0 3 0 250 50 0 0 20 0 1 0 1 1 1";
        let used = Used::parse(stat, "rchar: 5\nread_bytes: 4096\nwrite_bytes: 512\n").unwrap();
        assert_eq!((used.faults_minor, used.faults_major), (101, 3));
        assert_eq!((used.bytes_read, used.bytes_written), (4096, 512));
        assert!((used.user_s / used.system_s - 5.0).abs() < 1e-9);
        assert_eq!(Used::parse("", ""), None);
    }

    #[test]
    fn a_process_that_is_new_began_at_nothing() {
        let own = std::process::id().cast_signed();
        let mut known = Usage::begin([own].into_iter());
        let mut new = Usage::default();
        known.look([own].into_iter());
        new.look([own].into_iter());
        assert!(known.total().faults_minor < new.total().faults_minor);
    }
}
