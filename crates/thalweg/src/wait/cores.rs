//! The cores that this program can use, and pinning threads to them.

use std::sync::OnceLock;

/// The cores that the current thread may run on, and the number of threads that can run on them at
/// the same time, by the quota of the cgroup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cores {
    cpus: Vec<usize>,
    count: usize,
}

impl Cores {
    /// Returns a set of these CPU numbers without a quota, for a plan that does not depend on the
    /// machine.
    pub fn of(cpus: impl Into<Vec<usize>>) -> Self {
        let cpus = cpus.into();
        Self {
            count: cpus.len().max(1),
            cpus,
        }
    }

    /// Returns the CPU numbers of the affinity mask, ascending; none where the OS does not report
    /// it.
    pub fn cpus(&self) -> &[usize] {
        &self.cpus
    }

    /// Returns the number of threads that can run at the same time: the smaller of the affinity
    /// mask's CPUs and the cgroup's quota (rounded down), at least 1.
    pub fn count(&self) -> usize {
        self.count
    }
}

/// Returns the cores that the calling thread can use: its affinity, and the CPU quota of its cgroup
/// (v1 or v2), which `std::thread::available_parallelism` reads. It takes some 50 µs; the result
/// may change while a program runs.
pub fn usable() -> Cores {
    let cpus = affinity();
    let quota = std::thread::available_parallelism().map_or(1, |count| count.get());
    let count = if cpus.is_empty() {
        quota
    } else {
        quota.min(cpus.len())
    };
    Cores { cpus, count }
}

/// Threads that the quota of the process pays for, as far as the cgroup says.
static QUOTA: OnceLock<usize> = OnceLock::new();

/// The cores, as a thread that waits sees them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct View {
    /// How many threads of the process can run at the same time: as [`Cores::count`], but a thread
    /// that is pinned to one core counts the others' cores too.
    pub(super) count: usize,
    /// The core that the calling thread is pinned to, if it is but one.
    pub(super) only: Option<usize>,
}

/// Asks the system, in some 10 µs and without allocating. The quota is that of the first
/// [`prepare`].
pub(super) fn view() -> View {
    let quota = QUOTA.get().copied().unwrap_or(usize::MAX);
    let View { count, only } = process_view();
    let count = count.min(quota).max(1);
    View { count, only }
}

/// Asks for the quota; 50 µs the first time.
pub(super) fn prepare() {
    QUOTA.get_or_init(|| {
        let cores = usable();
        // The standard library returns the smaller of both: a quota that is larger is not known.
        let is_known = cores.cpus.is_empty() || cores.count < cores.cpus.len();
        if is_known { cores.count } else { usize::MAX }
    });
}

/// The reason why a thread can't be pinned.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum PinError {
    /// No core was named.
    NoCore,
    /// The core is not one that this thread may use.
    NotUsable {
        /// The core that was asked for.
        core: usize,
        /// The cores that there are.
        usable: Vec<usize>,
    },
    /// This system has no pinning, or refused it.
    Refused(String),
}

errors!(PinError {
    Self::NoCore => "no core to pin to";
    Self::NotUsable { core, usable } =>
        "core {core} is not among the usable cores {usable:?}";
    Self::Refused(why) => "the system refused to pin the thread: {why}";
});

/// Checks that `cores` can be pinned to by a thread that may use `usable`.
///
/// # Errors
/// No core at all, or one that is not usable.
pub(crate) fn check(cores: &[usize], usable: &Cores) -> Result<(), PinError> {
    if cores.is_empty() {
        return Err(PinError::NoCore);
    }
    match cores.iter().find(|core| !usable.cpus.contains(core)) {
        Some(&core) => Err(PinError::NotUsable {
            core,
            usable: usable.cpus.clone(),
        }),
        None => Ok(()),
    }
}

#[cfg(target_os = "linux")]
fn affinity() -> Vec<usize> {
    match rustix::thread::sched_getaffinity(None) {
        Ok(set) => (0..rustix::thread::CpuSet::MAX_CPU)
            .filter(|&cpu| set.is_set(cpu))
            .collect(),
        Err(_) => Vec::new(),
    }
}

#[cfg(not(target_os = "linux"))]
fn affinity() -> Vec<usize> {
    Vec::new()
}

/// Cores that threads of this process were seen to be allowed on, modulo 64. It only grows: where a
/// process loses cores while it runs, the cost of waiting shows that (see `Pace`).
#[cfg(target_os = "linux")]
static SEEN: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);

/// Returns how many cores the threads of this process may use together, as far as is known: the
/// calling thread's, the first thread's, and those of threads that have asked before. Each is a
/// cheap question; a thread that is pinned to a core of its own must not think it shares it with
/// all.
#[cfg(target_os = "linux")]
fn process_view() -> View {
    use std::sync::atomic::Ordering;
    let Ok(own) = rustix::thread::sched_getaffinity(None) else {
        return UNKNOWN;
    };
    if own.count() > 1 {
        let count = own.count() as usize;
        return View { count, only: None };
    }
    let first = rustix::thread::Pid::from_raw(std::process::id() as i32)
        .and_then(|first| rustix::thread::sched_getaffinity(Some(first)).ok())
        .unwrap_or(own);
    let bits = (0..rustix::thread::CpuSet::MAX_CPU)
        .filter(|&cpu| own.is_set(cpu) || first.is_set(cpu))
        .fold(0, |bits: u64, cpu| bits | 1 << (cpu % 64));
    // ORDERING: Relaxed; a set that only grows, and nothing else is read on its strength.
    let seen = SEEN.fetch_or(bits, Ordering::Relaxed) | bits;
    View {
        count: seen.count_ones() as usize,
        only: (0..rustix::thread::CpuSet::MAX_CPU).find(|&cpu| own.is_set(cpu)),
    }
}

#[cfg(not(target_os = "linux"))]
fn process_view() -> View {
    UNKNOWN
}

/// The view where the system does not report cores.
const UNKNOWN: View = View {
    count: usize::MAX,
    only: None,
};

/// Returns the core that the calling thread runs on now, where the system says so.
#[cfg(target_os = "linux")]
pub fn current() -> Option<usize> {
    Some(rustix::thread::sched_getcpu())
}

/// Returns the core that the calling thread runs on now, where the system says so.
#[cfg(not(target_os = "linux"))]
pub fn current() -> Option<usize> {
    None
}

/// Keeps the calling thread on the given cores.
///
/// # Errors
/// No core was named, a core is outside the affinity mask, or the OS refused.
pub fn pin_current_thread(cores: &[usize]) -> Result<(), PinError> {
    check(cores, &Cores::of(affinity()))?;
    pin(cores)
}

#[cfg(target_os = "linux")]
fn pin(cores: &[usize]) -> Result<(), PinError> {
    let mut set = rustix::thread::CpuSet::new();
    for &core in cores {
        set.set(core);
    }
    rustix::thread::sched_setaffinity(None, &set)
        .map_err(|error| PinError::Refused(error.to_string()))
}

#[cfg(not(target_os = "linux"))]
fn pin(_: &[usize]) -> Result<(), PinError> {
    Err(PinError::Refused(
        "pinning is not supported on this system".into(),
    ))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_pinned_thread_sees_one_usable_core() {
        let all = usable();
        let Some(&core) = all.cpus().last() else {
            println!("skipped: this system does not report its cores");
            return;
        };
        let all_count = all.count();
        let seen = std::thread::spawn(move || {
            pin_current_thread(&[core]).unwrap();
            // The other threads of the process have the other cores still.
            assert_eq!(view().count > 1, all_count > 1);
            (usable(), current())
        });
        assert_eq!(view().count, usable().count());
        let (seen, current) = seen.join().unwrap();
        assert_eq!(seen.cpus(), [core]);
        assert_eq!(seen.count(), 1);
        assert_eq!(current, Some(core));
    }

    #[test]
    fn wrong_cores_are_named() {
        let usable = Cores::of([0, 1]);
        assert_eq!(
            check(&[], &usable).unwrap_err().to_string(),
            "no core to pin to"
        );
        assert_eq!(
            check(&[1, 7], &usable).unwrap_err().to_string(),
            "core 7 is not among the usable cores [0, 1]"
        );
        assert!(pin_current_thread(&[100_000]).is_err());
    }
}
