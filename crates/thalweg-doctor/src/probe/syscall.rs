//! Classifies and counts system calls.

use crate::probe::procfs;
use rustix::time::ClockId;
use std::collections::HashMap;

/// The arguments of a call.
pub(crate) type Arguments = [u64; 6];

/// The kind of event that a thread waits for in a system call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Class {
    Futex,
    Sleep,
    Poll,
    /// It reads, writes or syncs the file of the first argument.
    File,
    /// It sends or receives on a socket.
    Stream,
    /// It syncs the whole system, or waits for a disk in another way.
    Disk,
    Child,
    /// It waits for a lock of a file, if [`locked_file`] returns one.
    FileLock,
    Yield,
    Other,
}

macro_rules! classes {
    ($($class:ident: $($(#[$gate:meta])? $name:ident)*;)*) => {
        /// Returns the class of a call by its number.
        pub(crate) fn class(number: u64) -> Class {
            let Ok(number) = libc::c_long::try_from(number) else { return Class::Other };
            $($($(#[$gate])? if number == libc::$name { return Class::$class; })*)*
            Class::Other
        }

        /// Returns the name of a call by its number, if its class is known.
        pub(crate) fn name(number: u64) -> Option<&'static str> {
            let number = libc::c_long::try_from(number).ok()?;
            $($($(#[$gate])? if number == libc::$name {
                return stringify!($name).strip_prefix("SYS_");
            })*)*
            None
        }
    };
}

classes! {
    Futex: SYS_futex SYS_futex_waitv;
    Sleep: SYS_nanosleep SYS_clock_nanosleep;
    Poll:
        #[cfg(target_arch = "x86_64")] SYS_poll
        #[cfg(target_arch = "x86_64")] SYS_select
        #[cfg(target_arch = "x86_64")] SYS_epoll_wait
        SYS_ppoll SYS_pselect6 SYS_epoll_pwait SYS_epoll_pwait2 SYS_io_uring_enter;
    File: SYS_read SYS_write SYS_readv SYS_writev SYS_pread64 SYS_pwrite64 SYS_preadv SYS_pwritev
        SYS_preadv2 SYS_pwritev2 SYS_fsync SYS_fdatasync SYS_sync_file_range SYS_fallocate
        SYS_ftruncate SYS_splice SYS_copy_file_range SYS_sendfile SYS_getdents64;
    Stream: SYS_sendto SYS_sendmsg SYS_sendmmsg SYS_recvfrom SYS_recvmsg SYS_recvmmsg
        SYS_accept SYS_accept4 SYS_connect;
    Disk: SYS_sync SYS_syncfs SYS_msync SYS_io_getevents SYS_openat SYS_renameat2 SYS_unlinkat
        #[cfg(target_arch = "x86_64")] SYS_open
        #[cfg(target_arch = "x86_64")] SYS_rename
        #[cfg(target_arch = "x86_64")] SYS_unlink;
    // A parent waits in vfork until the child runs another program.
    Child: SYS_wait4 SYS_waitid SYS_clone SYS_clone3 #[cfg(target_arch = "x86_64")] SYS_vfork;
    FileLock: SYS_flock SYS_fcntl;
    Yield: SYS_sched_yield;
}

/// Returns the number of the call, or that of a sleep if the call is used only to sleep: `select`
/// and `poll` without any descriptor.
pub(crate) fn meant(number: u64, arguments: &Arguments) -> u64 {
    let Ok(call) = libc::c_long::try_from(number) else {
        return number;
    };
    let descriptors = match call {
        #[cfg(target_arch = "x86_64")]
        libc::SYS_select => arguments[0],
        libc::SYS_pselect6 => arguments[0],
        #[cfg(target_arch = "x86_64")]
        libc::SYS_poll => arguments[1],
        libc::SYS_ppoll => arguments[1],
        _ => return number,
    };
    match descriptors {
        0 => libc::SYS_clock_nanosleep as u64,
        _ => number,
    }
}

/// Returns the file whose lock a call waits for if another process holds it.
pub(crate) fn locked_file(number: u64, arguments: &Arguments) -> Option<u64> {
    let waits = match libc::c_long::try_from(number).ok()? {
        libc::SYS_flock => true,
        libc::SYS_fcntl => {
            matches!(arguments[1] as i32, libc::F_SETLKW | libc::F_OFD_SETLKW)
        }
        _ => false,
    };
    waits.then_some(arguments[0])
}

/// Returns whether a call waits for a new connection, which brings work.
pub(crate) fn accepts(number: u64) -> bool {
    let number = libc::c_long::try_from(number).ok();
    matches!(number, Some(libc::SYS_accept | libc::SYS_accept4))
}

const PRIVATE: u64 = 128;
const CLOCK_REALTIME: u64 = 256;

/// Returns the arguments of the `futex` call that a call equals. The words of `futex_waitv` are in
/// a list, each with its value and flags, which `words` reads; a wait for several words is one at
/// an address of its own, that of the list. All other calls keep their arguments.
pub(crate) fn futex_arguments(
    number: u64,
    arguments: Arguments,
    words: impl Fn(u64) -> Option<Words>,
) -> Arguments {
    const WAIT_BITSET: u64 = 9;
    if i64::try_from(number) != Ok(libc::SYS_futex_waitv) {
        return arguments;
    }
    let [list, count, _, timeout, clock, _] = arguments;
    let realtime = match clock as i32 {
        libc::CLOCK_REALTIME => CLOCK_REALTIME,
        _ => 0,
    };
    let one = || Some((words(list)?, words(list.wrapping_add(16))?));
    let (address, value, private) = match one().filter(|_| count == 1) {
        Some(([value, address], [flags, _])) => {
            (address as u64, value as u64, flags as u64 & PRIVATE)
        }
        None => (list, 0, PRIVATE),
    };
    [
        address,
        WAIT_BITSET | private | realtime,
        value,
        timeout,
        0,
        0,
    ]
}

/// Returns the operation of a futex call: its second argument.
fn operation(arguments: &Arguments) -> u64 {
    arguments[1] & !(PRIVATE | CLOCK_REALTIME)
}

/// Returns whether the futex word of a call is private to one process.
pub(crate) fn is_private(arguments: &Arguments) -> bool {
    arguments[1] & PRIVATE != 0
}

/// Returns whether a futex call waits for a lock that is taken. LOCK_PI and LOCK_PI2 show that, and
/// so does a word that holds 2: taken, with waiters (Drepper, Futexes Are Tricky; the C library,
/// Rust and Go); musl's word holds EBUSY and a flag. For reader-writer locks, the word of the C
/// library holds 3 while there is a writer (`pthread_rwlock_common.c`); Rust's has all of its 30
/// lower bits set, and flags for the waiters (`sys/sync/rwlock/futex.rs`).
pub(crate) fn awaits_lock(arguments: &Arguments) -> bool {
    let value = arguments[2] as u32;
    matches!(operation(arguments), 6 | 13)
        || matches!(value, 2 | 3 | 0x8000_0010 | 0x7fff_ffff | 0xbfff_ffff)
}

/// Returns whether a futex call may wait for such a lock. With both flags, the word of Rust's lock
/// looks like the one at which a parked Rust thread waits, which is a word of its own.
pub(crate) fn may_await_lock(arguments: &Arguments) -> bool {
    arguments[2] as u32 == u32::MAX
}

/// When a wait ends if nothing else ends it: after this many ns, or at this time of the monotonic
/// clock.
pub(crate) type Timeouts = (Option<u64>, Option<u64>);

/// Returns the timeout of a futex call. One that cannot be read counts as over.
pub(crate) fn futex_timeout_ns(
    arguments: &Arguments,
    words: impl Fn(u64) -> Option<Words>,
) -> Timeouts {
    if arguments[3] == 0 {
        return (None, None);
    }
    let ns = words(arguments[3]).and_then(|words| time_ns(words, 1));
    let real_ns = |clock| {
        let time = rustix::time::clock_gettime(clock);
        time_ns([time.tv_sec, time.tv_nsec], 1).unwrap_or(0)
    };
    match (operation(arguments), ns) {
        (_, None) => (Some(0), None),
        (0, ns) => (ns, None),
        (_, Some(ns)) if arguments[1] & CLOCK_REALTIME != 0 => {
            let now_ns = real_ns(ClockId::Monotonic);
            let left_ns = ns.saturating_sub(real_ns(ClockId::Realtime));
            (None, Some(now_ns.saturating_add(left_ns)))
        }
        (_, ns) => (None, ns),
    }
}

/// Converts seconds and a fraction in units of `part_ns` to ns; `None` if one is negative.
fn time_ns([seconds, rest]: Words, part_ns: u64) -> Option<u64> {
    let (seconds, rest) = (u64::try_from(seconds).ok()?, u64::try_from(rest).ok()?);
    let seconds_ns = seconds.saturating_mul(1_000_000_000);
    Some(seconds_ns.saturating_add(rest.saturating_mul(part_ns)))
}

/// Two words of a program's memory.
pub(crate) type Words = [i64; 2];

/// Reads two words at an address of a process, which does not change them while it waits in a call.
pub(crate) fn words_at(pid: i32, address: u64) -> Option<Words> {
    let mut bytes = [[0; 8]; 2];
    let count = procfs::memory(pid, address, bytes.as_flattened_mut())?;
    (count == size_of_val(&bytes)).then(|| bytes.map(i64::from_ne_bytes))
}

/// The location of the timeout of a polling call.
enum Timeout {
    /// The index of the argument that is the timeout in ms.
    Ms(usize),
    /// The index of the argument that points to seconds and a fraction, and the unit of the
    /// fraction in ns.
    At(usize, u64),
}

/// Returns the timeout of a polling call; `None` if it waits without a timeout, or if the timeout
/// is unknown. `select` and similar calls have their timeout in the program's memory, which `words`
/// reads.
pub(crate) fn poll_timeout_ns(
    number: u64,
    arguments: &Arguments,
    words: impl Fn(u64) -> Option<Words>,
) -> Option<u64> {
    let timeout = match libc::c_long::try_from(number).ok()? {
        #[cfg(target_arch = "x86_64")]
        libc::SYS_poll => Timeout::Ms(2),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_epoll_wait => Timeout::Ms(3),
        libc::SYS_epoll_pwait => Timeout::Ms(3),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_select => Timeout::At(4, 1_000),
        libc::SYS_pselect6 => Timeout::At(4, 1),
        libc::SYS_ppoll => Timeout::At(2, 1),
        libc::SYS_epoll_pwait2 => Timeout::At(3, 1),
        _ => return None,
    };
    match timeout {
        // A negative value means no timeout.
        Timeout::Ms(at) => Some(u64::try_from(arguments[at] as i32).ok()? * 1_000_000),
        Timeout::At(at, part_ns) => time_ns(
            words(arguments[at]).filter(|_| arguments[at] != 0)?,
            part_ns,
        ),
    }
}

/// Returns whether a call polls without waiting: its timeout is 0. For a timeout in the program's
/// memory this is not known.
fn polls_without_waiting(number: u64, arguments: &Arguments) -> bool {
    class(meant(number, arguments)) == Class::Poll
        && poll_timeout_ns(number, arguments, |_| None) == Some(0)
}

/// The files that a call polls, or the object that lists them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Polled {
    /// The files of the epoll instance of this number.
    Epoll(u64),
    /// A list at this address, with this number of files.
    List(u64, u64),
}

/// Returns the location of the files that a call polls; `None` for other calls, and for `select`.
pub(crate) fn polled(number: u64, arguments: &Arguments) -> Option<Polled> {
    match libc::c_long::try_from(number).ok()? {
        #[cfg(target_arch = "x86_64")]
        libc::SYS_epoll_wait => Some(Polled::Epoll(arguments[0])),
        libc::SYS_epoll_pwait | libc::SYS_epoll_pwait2 => Some(Polled::Epoll(arguments[0])),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_poll => Some(Polled::List(arguments[0], arguments[1])),
        libc::SYS_ppoll => Some(Polled::List(arguments[0], arguments[1])),
        _ => None,
    }
}

/// The calls of a period in which they were counted, by number and by whether they poll without
/// waiting, and the time that the threads ran in it without the cost of counting.
#[derive(Debug, Default)]
struct Window {
    calls: HashMap<(u64, bool), f64>,
    ran_ns: f64,
}

impl Window {
    fn count(&self) -> f64 {
        // The sum of an empty iterator is −0.
        self.calls.values().sum::<f64>() + 0.0
    }

    fn add(&mut self, other: &Window, scale: f64) {
        for (call, calls) in &other.calls {
            *self.calls.entry(*call).or_default() += calls * scale;
        }
    }
}

/// The minimum share of the threads' run time that remains after the cost of counting is
/// subtracted.
const LEFT_MIN: f64 = 0.2;

/// Counts calls, all the time or in windows. In a pause between two windows, the number of calls
/// per run time of the threads is assumed to be that of these two windows. They make fewer calls
/// while they are counted.
#[derive(Debug, Default)]
pub(crate) struct CallCounts {
    /// The sum of all windows that ended, and of the pauses between them.
    all: Window,
    open: Window,
    /// The window before the pause, the time that threads ran in the pause, and the time that each
    /// call took more in it.
    last: Option<(Window, f64, f64)>,
    /// Whether there was a pause between two windows.
    has_begun: bool,
}

impl CallCounts {
    /// Adds a call that represents `weight` calls.
    pub(crate) fn add(&mut self, number: u64, arguments: &Arguments, weight: f64) {
        let asks = polls_without_waiting(number, arguments);
        let call = (meant(number, arguments), asks);
        *self.open.calls.entry(call).or_default() += weight;
    }

    /// Returns the number of calls that were recorded in this window.
    pub(crate) fn recorded(&self) -> u64 {
        self.open.count() as u64
    }

    /// Ends a window: `counted` calls were counted in it, the threads ran for `ran_ns`, and each
    /// call took `cost_ns` more because it, and the records that came with it, were recorded.
    pub(crate) fn end_window(&mut self, counted: u64, ran_ns: u64, cost_ns: f64) {
        let mut window = std::mem::take(&mut self.open);
        let scale = counted as f64 / window.count().max(1.0);
        window.calls.values_mut().for_each(|calls| *calls *= scale);
        let ran_ns = ran_ns as f64;
        window.ran_ns = (ran_ns - counted as f64 * cost_ns).max(LEFT_MIN * ran_ns);
        if let Some((last, pause_ns, idle_ns)) = self.last.take() {
            // The first window contains the start of the program, which is not typical of the
            // pause.
            let last = if self.has_begun {
                last
            } else {
                Window::default()
            };
            let counted = last.count() + window.count();
            let ran_ns = last.ran_ns + window.ran_ns + counted * idle_ns;
            let scale = pause_ns / ran_ns.max(1.0);
            self.all.add(&last, scale);
            self.all.add(&window, scale);
            self.has_begun = true;
        }
        self.all.add(&window, 1.0);
        self.last = Some((window, 0.0, 0.0));
    }

    /// Ends a pause, in which the threads ran for `ran_ns`, and each call took `cost_ns` more.
    pub(crate) fn end_pause(&mut self, ran_ns: u64, cost_ns: f64) {
        if let Some((_, pause_ns, idle_ns)) = &mut self.last {
            (*pause_ns, *idle_ns) = (ran_ns as f64, cost_ns);
        }
    }

    /// Ends the count where no window follows the pause.
    pub(crate) fn end(&mut self) {
        if let Some((last, pause_ns, idle_ns)) = self.last.take() {
            let ran_ns = last.ran_ns + last.count() * idle_ns;
            self.all.add(&last, pause_ns / ran_ns.max(1.0));
        }
    }

    /// Returns the number of calls in all.
    pub(crate) fn count(&self) -> f64 {
        self.all.count()
    }

    /// Returns the number of calls of a class.
    pub(crate) fn count_of(&self, of: Class) -> f64 {
        let calls = self.all.calls.iter();
        let wanted = calls.filter(|((number, _), _)| class(*number) == of);
        wanted.map(|(_, calls)| calls).sum::<f64>() + 0.0
    }

    /// Returns the share of all calls that poll without waiting.
    pub(crate) fn busy_share(&self) -> f64 {
        let asking = self.all.calls.iter().filter(|((_, asks), _)| *asks);
        asking.map(|(_, calls)| calls).sum::<f64>() / self.count().max(1.0) + 0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_has_a_class_and_a_name() {
        let futex = libc::SYS_futex as u64;
        assert_eq!((class(futex), name(futex)), (Class::Futex, Some("futex")));
        assert_eq!(class(libc::SYS_getpid as u64), Class::Other);
        assert_eq!(class(u64::MAX), Class::Other);
    }

    #[test]
    fn a_poll_of_nothing_is_a_sleep() {
        let meant = |call: libc::c_long, arguments| class(meant(call as u64, &arguments));
        assert_eq!(
            meant(libc::SYS_pselect6, [0, 0, 0, 0, 0x70, 0]),
            Class::Sleep
        );
        assert_eq!(
            meant(libc::SYS_pselect6, [4, 9, 0, 0, 0x70, 0]),
            Class::Poll
        );
        assert_eq!(meant(libc::SYS_ppoll, [0, 0, 0x70, 0, 0, 0]), Class::Sleep);
        assert_eq!(
            meant(libc::SYS_ppoll, [0x80, 1, 0x70, 0, 0, 0]),
            Class::Poll
        );
        assert_eq!(
            meant(libc::SYS_epoll_pwait, [3, 0, 8, 5, 0, 0]),
            Class::Poll
        );
        assert_eq!(meant(libc::SYS_read, [0; 6]), Class::File);
    }

    #[test]
    fn a_poll_has_a_timeout_or_waits_for_ever() {
        let words = |address| match address {
            0x70 => Some([1, 5_000_000]),
            0x78 => Some([0, 5]),
            _ => None,
        };
        let after = |call: libc::c_long, arguments| poll_timeout_ns(call as u64, &arguments, words);
        let for_ever = u64::from(u32::MAX);
        let wait = libc::SYS_epoll_pwait;
        assert_eq!(after(wait, [3, 0, 8, 5, 0, 0]), Some(5_000_000));
        assert_eq!(after(wait, [3, 0, 8, 0, 0, 0]), Some(0));
        assert_eq!(after(wait, [3, 0, 8, for_ever, 0, 0]), None);
        for (call, at) in [
            (libc::SYS_pselect6, 4),
            (libc::SYS_ppoll, 2),
            (libc::SYS_epoll_pwait2, 3),
        ] {
            let mut arguments = [9, 0, 0, 0, 0, 0];
            assert_eq!(after(call, arguments), None, "for ever");
            arguments[at] = 0x70;
            assert_eq!(after(call, arguments), Some(1_005_000_000));
            arguments[at] = 0x78;
            assert_eq!(after(call, arguments), Some(5));
            arguments[at] = 0x80;
            assert_eq!(after(call, arguments), None, "memory that is not there");
        }
        assert_eq!(after(libc::SYS_read, [3, 0, 8, 5, 0, 0]), None);
    }

    #[test]
    fn a_poll_with_a_timeout_of_zero_does_not_wait() {
        let asks = |call: libc::c_long, arguments| polls_without_waiting(call as u64, &arguments);
        let for_ever = u64::from(u32::MAX);
        assert!(asks(libc::SYS_epoll_pwait, [3, 0, 8, 0, 0, 0]));
        assert!(!asks(libc::SYS_epoll_pwait, [3, 0, 8, 1, 0, 0]));
        assert!(!asks(libc::SYS_epoll_pwait, [3, 0, 8, for_ever, 0, 0]));
        assert!(
            !asks(libc::SYS_ppoll, [0x80, 1, 0x70, 0, 0, 0]),
            "not known"
        );
        assert!(!asks(libc::SYS_read, [0; 6]));
        #[cfg(target_arch = "x86_64")]
        assert!(!asks(libc::SYS_poll, [0; 6]), "a sleep of nothing");
    }

    #[test]
    fn a_lock_of_a_file_is_waited_for_unless_it_is_only_tried() {
        let file = |call: libc::c_long, command: i32| {
            locked_file(call as u64, &[7, command as u64, 0, 0, 0, 0])
        };
        assert_eq!(file(libc::SYS_flock, libc::LOCK_EX), Some(7));
        assert_eq!(file(libc::SYS_fcntl, libc::F_SETLKW), Some(7));
        assert_eq!(file(libc::SYS_fcntl, libc::F_OFD_SETLKW), Some(7));
        assert_eq!(file(libc::SYS_fcntl, libc::F_SETLK), None);
        assert_eq!(file(libc::SYS_read, libc::F_SETLKW), None);
    }

    #[test]
    fn a_poll_has_a_list_of_files_or_an_instance_that_has() {
        let of = |call: libc::c_long| polled(call as u64, &[7, 2, 0, 0, 0, 0]);
        assert_eq!(of(libc::SYS_epoll_pwait), Some(Polled::Epoll(7)));
        assert_eq!(of(libc::SYS_ppoll), Some(Polled::List(7, 2)));
        assert_eq!(of(libc::SYS_read), None);
    }

    #[test]
    fn words_of_a_process_are_read() {
        let words: Words = [7, -8];
        let own = std::process::id().cast_signed();
        assert_eq!(words_at(own, words.as_ptr() as u64), Some(words));
        assert_eq!(words_at(own, 8), None);
    }

    const YIELD: u64 = libc::SYS_sched_yield as u64;
    const READ: u64 = libc::SYS_read as u64;
    const NONE: Arguments = [0; 6];

    #[test]
    fn what_is_always_counted_is_exact() {
        let mut tally = CallCounts::default();
        for _ in 0..1_000 {
            tally.add(YIELD, &NONE, 1.0);
            tally.add(READ, &NONE, 1.0);
        }
        tally.end_window(2_000, 1_000_000, 300.0);
        tally.end();
        assert_eq!(tally.count(), 2_000.0);
        assert_eq!(tally.count_of(Class::Yield), 1_000.0);
        let none = tally.count_of(Class::Futex);
        assert!(none == 0.0 && none.is_sign_positive(), "{none}");
    }

    #[test]
    fn a_futex_has_a_timeout_or_a_time() {
        let timeout = |operation, address| {
            let words = |at| (at == 0x7f00).then_some([3, 5]);
            futex_timeout_ns(&[0, operation, 0, address, 0, 0], words)
        };
        assert_eq!(timeout(PRIVATE, 0), (None, None));
        assert_eq!(timeout(PRIVATE, 0x7f00), (Some(3_000_000_005), None));
        assert_eq!(timeout(PRIVATE | 9, 0x7f00), (None, Some(3_000_000_005)));
        assert_eq!(timeout(PRIVATE, 1), (Some(0), None), "it cannot be read");
        // This moment of the realtime clock has passed.
        let (after_ns, at_ns) = timeout(PRIVATE | CLOCK_REALTIME | 9, 0x7f00);
        assert!(after_ns.is_none() && at_ns <= Some(crate::sys::now_ns()));
    }

    /// `selectNow` of Java in a loop was judged SYSCALL-BOUND, because only the class of its calls
    /// was kept.
    #[test]
    fn polls_that_do_not_wait_are_distinguished_from_those_that_do() {
        let mut tally = CallCounts::default();
        let poll = libc::SYS_epoll_pwait as u64;
        for timeout in [0, 0, 0, 5] {
            tally.add(poll, &[3, 0, 8, timeout, 0, 0], 1.0);
        }
        tally.end_window(400, 1_000, 0.0);
        tally.end();
        assert_eq!(tally.count_of(Class::Poll), 400.0);
        assert_eq!(tally.busy_share(), 0.75);
        assert_eq!(CallCounts::default().busy_share(), 0.0);
    }

    /// A program makes a call every `gap_ns`; while it is counted, each takes 250 ns more, and in
    /// some pauses 90 ns more.
    #[test]
    fn pauses_are_filled_in_by_the_time_that_threads_ran() {
        let gaps_ns = [200.0_f64, 500.0, 5_000.0];
        for (gap_ns, idle_ns) in gaps_ns
            .into_iter()
            .flat_map(|gap| [(gap, 0.0), (gap, 90.0)])
        {
            let (mut tally, mut made) = (CallCounts::default(), 0.0);
            for _ in 0..10 {
                let counted = 5e6 / (gap_ns + 250.0);
                tally.add(YIELD, &NONE, counted.ceil());
                tally.end_window(counted as u64, 5_000_000, 250.0);
                tally.end_pause(60_000_000, idle_ns);
                made += counted + 60e6 / (gap_ns + idle_ns);
            }
            tally.end();
            let share = tally.count() / made;
            assert!((share - 1.0).abs() < 0.01, "{gap_ns} {idle_ns}: {share}");
        }
    }

    #[test]
    fn a_pause_between_two_kinds_of_work_has_half_of_each() {
        let mut tally = CallCounts::default();
        let mut window = |number, calls| {
            tally.add(number, &NONE, 1.0);
            tally.end_window(calls, 1_000, 0.0);
            tally.end_pause(4_000, 0.0);
            [Class::File, Class::Yield].map(|class| tally.count_of(class))
        };
        assert_eq!(window(YIELD, 7), [0.0, 7.0]);
        assert_eq!(
            window(READ, 100),
            [100.0 + 400.0, 7.0],
            "not as it was started"
        );
        let [reads, yields] = window(YIELD, 300);
        assert_eq!((reads, yields), (500.0 + 200.0, 7.0 + 300.0 + 600.0));
        tally.end();
        assert_eq!(tally.count_of(Class::Yield), yields + 1_200.0);
    }
}
