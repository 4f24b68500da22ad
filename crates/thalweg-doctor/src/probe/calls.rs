//! System calls by what they are for.

use std::fs::File;
use std::os::unix::fs::FileExt as _;

/// What a call is given.
pub(crate) type Arguments = [u64; 6];

/// What a thread waits for in a system call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Class {
    Futex,
    Sleep,
    Poll,
    /// Reads, writes or syncs the file of the first argument.
    File,
    /// Sends or receives on a socket.
    Stream,
    /// Syncs the whole system, or waits for a disk some other way.
    Disk,
    Child,
    Yield,
    Other,
}

macro_rules! classes {
    ($($class:ident: $($(#[$gate:meta])? $name:ident)*;)*) => {
        /// The class of a call by its number.
        pub(crate) fn class(number: u64) -> Class {
            let Ok(number) = libc::c_long::try_from(number) else { return Class::Other };
            $($($(#[$gate])? if number == libc::$name { return Class::$class; })*)*
            Class::Other
        }

        /// The name of a call by its number, if its class is known.
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
    Yield: SYS_sched_yield;
}

/// The number of the call, or where it is a way to sleep that of a sleep: `select` and `poll` with
/// no descriptor to look at.
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

const PRIVATE: u64 = 128;
const CLOCK_REALTIME: u64 = 256;

/// The operation of a call of futex: its second argument.
fn operation(arguments: &Arguments) -> u64 {
    arguments[1] & !(PRIVATE | CLOCK_REALTIME)
}

/// Is the word of a call of futex of one process only?
pub(crate) fn is_private(arguments: &Arguments) -> bool {
    arguments[1] & PRIVATE != 0
}

/// Does a call of futex wait for a lock that is taken? So say LOCK_PI and LOCK_PI2, and a word that
/// holds 2: taken, and somebody waits (Drepper, Futexes Are Tricky; the C library, Rust and Go);
/// musl's holds EBUSY and a flag. Of locks for readers and writers that of the C library holds 3
/// while there is a writer (`pthread_rwlock_common.c`); Rust's has all of its 30 lower bits set,
/// and flags of those that wait (`sys/sync/rwlock/futex.rs`).
pub(crate) fn awaits_lock(arguments: &Arguments) -> bool {
    let value = arguments[2] as u32;
    matches!(operation(arguments), 6 | 13)
        || matches!(value, 2 | 3 | 0x8000_0010 | 0x7fff_ffff | 0xbfff_ffff)
}

/// May it wait for such a lock? With both flags Rust's holds what a parked thread of Rust waits at,
/// which is a word of its own.
pub(crate) fn may_await_lock(arguments: &Arguments) -> bool {
    arguments[2] as u32 == u32::MAX
}

/// Does a call of futex come back by itself?
pub(crate) fn futex_is_timed(arguments: &Arguments) -> bool {
    arguments[3] != 0
}

/// Two words of a program's memory.
pub(crate) type Words = [i64; 2];

/// Two words at an address of a process, which does not change them while it waits in a call.
pub(crate) fn words_at(pid: i32, address: u64) -> Option<Words> {
    let mut bytes = [[0; 8]; 2];
    let memory = File::open(format!("/proc/{pid}/mem")).ok()?;
    memory
        .read_exact_at(bytes.as_flattened_mut(), address)
        .ok()?;
    Some(bytes.map(i64::from_ne_bytes))
}

/// Does a call that polls look again within 100 ms, whether something has come or not? `select`
/// and its like have their timeout in the program's memory, which `words` reads: nothing if it
/// cannot; and nothing for a call that does not wait at all, as Go's runtime makes between others.
pub(crate) fn polls_often(
    number: u64,
    arguments: &Arguments,
    words: impl Fn(u64) -> Option<Words>,
) -> Option<bool> {
    let timeout = poll_timeout_ms(number, arguments, words);
    let timeout = timeout.filter(|&timeout| timeout != 0);
    timeout.map(|timeout| (1..100).contains(&timeout))
}

/// Where a call that polls has its timeout.
enum Timeout {
    /// The number of the argument that is it, in ms.
    Ms(usize),
    /// That of the argument that leads to seconds and to so many parts of a second.
    At(usize, i64),
}

/// The timeout of a call that polls, in ms, below 0 if it waits for ever: nothing if it cannot be
/// told.
fn poll_timeout_ms(
    number: u64,
    arguments: &Arguments,
    words: impl Fn(u64) -> Option<Words>,
) -> Option<i64> {
    let timeout = match libc::c_long::try_from(number).ok()? {
        #[cfg(target_arch = "x86_64")]
        libc::SYS_poll => Timeout::Ms(2),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_epoll_wait => Timeout::Ms(3),
        libc::SYS_epoll_pwait => Timeout::Ms(3),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_select => Timeout::At(4, 1_000_000),
        libc::SYS_pselect6 => Timeout::At(4, 1_000_000_000),
        libc::SYS_ppoll => Timeout::At(2, 1_000_000_000),
        libc::SYS_epoll_pwait2 => Timeout::At(3, 1_000_000_000),
        _ => return None,
    };
    match timeout {
        Timeout::Ms(at) => Some((arguments[at] as i32).into()),
        Timeout::At(at, _) if arguments[at] == 0 => Some(-1),
        Timeout::At(at, parts) => {
            let [seconds, rest] = words(arguments[at])?;
            Some(
                seconds
                    .saturating_mul(1_000)
                    // A part of a ms is a wait, too.
                    .saturating_add((rest as u64).div_ceil(parts as u64 / 1_000).cast_signed()),
            )
        }
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
            0x70 => Some([0, 5_000_000]),
            0x78 => Some([0, 5]),
            _ => None,
        };
        let often = |call: libc::c_long, arguments| polls_often(call as u64, &arguments, words);
        let for_ever = u64::from(u32::MAX);
        let wait = libc::SYS_epoll_pwait;
        assert_eq!(often(wait, [3, 0, 8, 5, 0, 0]), Some(true));
        assert_eq!(often(wait, [3, 0, 8, 500, 0, 0]), Some(false));
        assert_eq!(often(wait, [3, 0, 8, 0, 0, 0]), None, "it does not wait");
        assert_eq!(often(wait, [3, 0, 8, for_ever, 0, 0]), Some(false));
        for (call, at) in [
            (libc::SYS_pselect6, 4),
            (libc::SYS_ppoll, 2),
            (libc::SYS_epoll_pwait2, 3),
        ] {
            let mut arguments = [9, 0, 0, 0, 0, 0];
            assert_eq!(often(call, arguments), Some(false), "for ever");
            arguments[at] = 0x70;
            assert_eq!(often(call, arguments), Some(true), "5 ms");
            arguments[at] = 0x78;
            assert_eq!(often(call, arguments), Some(true), "5 ns");
            arguments[at] = 0x80;
            assert_eq!(often(call, arguments), None, "memory that is not there");
        }
        assert_eq!(often(libc::SYS_read, [3, 0, 8, 5, 0, 0]), None);
    }

    #[test]
    fn words_of_a_process_are_read() {
        let words: Words = [7, -8];
        let own = std::process::id().cast_signed();
        assert_eq!(words_at(own, words.as_ptr() as u64), Some(words));
        assert_eq!(words_at(own, 8), None);
    }
}
