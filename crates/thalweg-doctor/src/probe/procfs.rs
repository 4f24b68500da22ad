//! Reads files under `/proc`, and the resources that processes used.

use crate::sys::Used;
use rustix::fs::{Mode, OFlags};
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

impl Used {
    /// Returns the usage of the process itself up to now; `None` if it is gone.
    pub(crate) fn of(pid: i32) -> Option<Used> {
        Some(Account::of(pid)?.own)
    }

    fn add(&mut self, more: Used) {
        *self = self.with(more, |one, other| one + other, |one, other| one + other);
    }

    /// Returns the excess of this usage over `other`.
    fn less(self, other: Used) -> Used {
        self.with(
            other,
            |one, other| (one - other).max(0.0),
            u64::saturating_sub,
        )
    }

    /// Returns the larger value of each field.
    fn max(self, other: Used) -> Used {
        self.with(other, f64::max, u64::max)
    }

    fn with(self, other: Used, s: fn(f64, f64) -> f64, n: fn(u64, u64) -> u64) -> Used {
        Used {
            user_s: s(self.user_s, other.user_s),
            system_s: s(self.system_s, other.system_s),
            faults_minor: n(self.faults_minor, other.faults_minor),
            faults_major: n(self.faults_major, other.faults_major),
        }
    }
}

/// The usage of a process in `/proc` at one sample.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Account {
    pub(crate) parent: i32,
    pub(crate) own: Used,
    /// The usage of the children that it waited for, and of theirs.
    pub(crate) waited: Used,
}

impl Account {
    pub(crate) fn of(pid: i32) -> Option<Account> {
        Account::parse(&text(format!("/proc/{pid}/stat"))?)
    }

    pub(crate) fn parse(stat: &str) -> Option<Account> {
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        // The first field here is the third of the file.
        let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
        let tick_s = 1.0 / rustix::param::clock_ticks_per_second() as f64;
        let used = |user, system, minor, major| {
            Some(Used {
                user_s: field(user)? as f64 * tick_s,
                system_s: field(system)? as f64 * tick_s,
                faults_minor: field(minor)?,
                faults_major: field(major)?,
            })
        };
        Some(Account {
            parent: i32::try_from(field(4)?).ok()?,
            own: used(14, 15, 10, 12)?,
            waited: used(16, 17, 11, 13)?,
        })
    }

    fn all(&self) -> Used {
        let mut all = self.own;
        all.add(self.waited);
        all
    }
}

/// The usage of each process in its first and its last sample.
#[derive(Debug, Default)]
pub(crate) struct Usage {
    processes: HashMap<i32, (Account, Account)>,
    /// The processes that no longer existed at the last sample.
    ended: HashSet<i32>,
}

impl Usage {
    /// Begins with processes that existed before.
    pub(crate) fn begin(pids: impl Iterator<Item = i32>) -> Usage {
        let known = pids.filter_map(|pid| Some((pid, Account::of(pid)?)));
        Usage {
            processes: known.map(|(pid, used)| (pid, (used, used))).collect(),
            ended: HashSet::new(),
        }
    }

    /// Samples again; the usage of new processes began at zero.
    pub(crate) fn sample(&mut self, pids: impl Iterator<Item = i32>) {
        self.ended = self.processes.keys().copied().collect();
        for pid in pids {
            if let Some(now) = Account::of(pid) {
                let first = Account {
                    parent: now.parent,
                    ..Account::default()
                };
                self.processes.entry(pid).or_insert((first, first)).1 = now;
                self.ended.remove(&pid);
            }
        }
    }

    /// Returns the sum of the usage of all processes. Children that came and went between two
    /// samples are in their parent's usage of the children that it waited for.
    pub(crate) fn total(&self) -> Used {
        let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
        let mut total = Used::default();
        let is_counted = |(pid, parent): (i32, i32)| {
            self.ended.contains(&pid) && pid != parent && self.processes.contains_key(&parent)
        };
        for (&pid, (_, last)) in &self.processes {
            if is_counted((pid, last.parent)) {
                children.entry(last.parent).or_default().push(pid);
            }
        }
        for (&pid, (_, last)) in &self.processes {
            if !is_counted((pid, last.parent)) {
                total.add(self.of_tree(pid, &children));
            }
        }
        total
    }

    /// Returns the usage of a process, with that of its children that ended.
    fn of_tree(&self, pid: i32, children: &HashMap<i32, Vec<i32>>) -> Used {
        let (first, last) = self.processes[&pid];
        let (mut seen, mut before) = (Used::default(), first.waited);
        for &child in children.get(&pid).into_iter().flatten() {
            seen.add(self.of_tree(child, children));
            // Its parent counts all that it ever used.
            before.add(self.processes[&child].0.all());
        }
        // For a child that is not waited for, only the sampled usage is known.
        let mut used = last.own.less(first.own);
        used.add(last.waited.less(before).max(seen));
        used
    }
}

/// The times that a thread ran and that it waited for a core, in ns, and how often it got one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Scheduled {
    pub(crate) ran_ns: u64,
    pub(crate) waited_ns: u64,
    pub(crate) runs: u64,
    /// Whether it wants a core, if this was asked for.
    pub(crate) wants: bool,
}

impl Scheduled {
    /// Returns the figures of a thread since it began; `None` if it is gone, or if the kernel does
    /// not count.
    pub(crate) fn of(pid: i32, tid: i32) -> Option<Scheduled> {
        let text = text(format!("/proc/{pid}/task/{tid}/schedstat"))?;
        let mut numbers = text.split_whitespace().map_while(|word| word.parse().ok());
        let mut next = || numbers.next();
        let (ran_ns, waited_ns, runs) = (next()?, next()?, next()?);
        (runs > 0).then_some(Scheduled {
            ran_ns,
            waited_ns,
            runs,
            wants: false,
        })
    }

    /// Like [`Scheduled::of`], with whether the thread wants a core.
    pub(crate) fn with_state(pid: i32, tid: i32) -> Option<Scheduled> {
        let scheduled = Scheduled::of(pid, tid)?;
        let stat = text(format!("/proc/{pid}/task/{tid}/stat"))?;
        let wants = stat.rsplit_once(')')?.1.starts_with(" R");
        Some(Scheduled { wants, ..scheduled })
    }

    /// Returns the increase since `before`.
    pub(crate) fn since(self, before: Scheduled) -> Scheduled {
        Scheduled {
            ran_ns: self.ran_ns.saturating_sub(before.ran_ns),
            waited_ns: self.waited_ns.saturating_sub(before.waited_ns),
            runs: self.runs.saturating_sub(before.runs),
            wants: self.wants,
        }
    }
}

/// The maximum size of a text in bytes. The mappings of a process are the longest: 65,530 of them
/// by default (`vm.max_map_count`), of about a hundred bytes each.
const TEXT_BYTES_MAX: u64 = 64 << 20;

/// Opens a regular file for reading; `more` are flags for how its path is followed.
///
/// No other kind of file is opened, so that this neither waits for the writer of a pipe nor wakes
/// it, and has no effect on a device.
pub(crate) fn open(path: impl AsRef<Path>, more: OFlags) -> io::Result<File> {
    let look = OFlags::PATH | OFlags::CLOEXEC | more;
    let found = File::from(rustix::fs::open(path.as_ref(), look, Mode::empty())?);
    if !found.metadata()?.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    // The path may lead elsewhere by now; this link leads to the file that was checked.
    let same = format!("/proc/self/fd/{}", found.as_raw_fd());
    let read = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    Ok(File::from(rustix::fs::open(same, read, Mode::empty())?))
}

/// Reads a file of at most `bytes_max` bytes; a longer one is an error.
pub(crate) fn read(path: impl AsRef<Path>, bytes_max: u64, more: OFlags) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    let mut limited = open(path, more)?.take(bytes_max + 1);
    limited.read_to_end(&mut content)?;
    match content.len() as u64 <= bytes_max {
        true => Ok(content),
        false => Err(io::ErrorKind::FileTooLarge.into()),
    }
}

/// Reads the memory of a process at an address. Returns the number of bytes, which are fewer where
/// the memory ends.
pub(crate) fn memory(pid: i32, address: u64, bytes: &mut [u8]) -> Option<usize> {
    let memory = File::open(format!("/proc/{pid}/mem")).ok()?;
    memory.read_at(bytes, address).ok()
}

/// Reads a text of `/proc` or `/sys`. Names in it may be invalid UTF-8, as a thread's name is cut
/// after 15 bytes.
pub(crate) fn text(path: impl AsRef<Path>) -> Option<String> {
    let content = read(path, TEXT_BYTES_MAX, OFlags::empty()).ok()?;
    Some(String::from_utf8_lossy(&content).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{CWD, mkfifoat};
    use std::fs;

    #[test]
    fn fields_are_counted_as_the_manual_does() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194560 101 9 3 2 250 50 100 200 20 0 1 0 1 1 1";
        let used = Account::parse(stat).expect("a line of stat");
        assert_eq!(used.parent, 1);
        assert_eq!((used.own.faults_minor, used.own.faults_major), (101, 3));
        assert_eq!((used.waited.faults_minor, used.waited.faults_major), (9, 2));
        assert!((used.own.user_s / used.own.system_s - 5.0).abs() < 1e-9);
        assert!((used.waited.user_s / used.waited.system_s - 0.5).abs() < 1e-9);
        assert_eq!(Account::parse(""), None);
    }

    #[test]
    fn a_process_that_is_new_began_at_nothing() {
        let own = std::process::id().cast_signed();
        let mut known = Usage::begin([own].into_iter());
        let mut new = Usage::default();
        known.sample([own].into_iter());
        new.sample([own].into_iter());
        assert!(known.total().faults_minor < new.total().faults_minor);
    }

    /// Returns the faults of a process itself, and of the children that it waited for.
    fn account(parent: i32, own: u64, waited: u64) -> Account {
        let faults = |faults_minor| Used {
            faults_minor,
            ..Used::default()
        };
        Account {
            parent,
            own: faults(own),
            waited: faults(waited),
        }
    }

    fn total(processes: &[(i32, Account, Account)], ended: &[i32]) -> u64 {
        let known = processes
            .iter()
            .map(|&(pid, first, last)| (pid, (first, last)));
        let usage = Usage {
            processes: known.collect(),
            ended: ended.iter().copied().collect(),
        };
        usage.total().faults_minor
    }

    #[test]
    fn children_that_came_and_went_are_counted_once() {
        let shell = (7, account(1, 100, 50), account(1, 110, 650));
        assert_eq!(total(&[shell], &[]), 610, "none of them was seen");
        let none = account(7, 0, 0);
        let seen = (8, none, account(7, 30, 0));
        assert_eq!(total(&[shell, seen], &[8]), 610, "its parent counted more");
        assert_eq!(total(&[shell, seen], &[]), 640, "it still runs");
        let before = (9, account(7, 200, 0), account(7, 220, 0));
        let counted = total(&[shell, before], &[9]);
        assert_eq!(counted, 410, "200 of what its parent counted were before");
        let alone = (7, account(1, 100, 50), account(1, 110, 50));
        assert_eq!(total(&[alone, seen], &[8]), 40, "nobody waited for it");
        let deep = (10, account(8, 0, 0), account(8, 5, 0));
        assert_eq!(total(&[alone, seen, deep], &[8, 10]), 45);
        assert_eq!(total(&[shell, seen], &[7, 8]), 610, "both have ended");
    }

    #[test]
    fn only_a_regular_file_of_a_moderate_size_is_read() {
        let folder = thalweg_testkit::Scratch::new("regular");
        let at = |name: &str| folder.join(name);
        fs::write(at("text"), b"caf\xc3 1\n").unwrap();
        std::os::unix::fs::symlink(at("text"), at("link")).unwrap();
        mkfifoat(CWD, at("pipe"), Mode::RWXU).unwrap();
        let all = OFlags::empty();
        assert_eq!(read(at("link"), 8, all).unwrap(), b"caf\xc3 1\n");
        assert_eq!(text(at("text")).as_deref(), Some("caf\u{fffd} 1\n"));
        let refused = [
            read(at("text"), 6, all),
            read(at("link"), 8, OFlags::NOFOLLOW),
            read(at("pipe"), 8, all),
            read(&folder, 8, all),
            read("/dev/zero", 8, all),
            read(at("nowhere"), 8, all),
        ];
        assert!(refused.iter().all(Result::is_err), "{refused:?}");
    }
}
