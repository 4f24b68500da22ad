//! System calls by what they are for.

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

const PRIVATE: u64 = 128;
const CLOCK_REALTIME: u64 = 256;

/// The operation of a call of futex: its second argument.
fn operation(arguments: &[u64; 6]) -> u64 {
    arguments[1] & !(PRIVATE | CLOCK_REALTIME)
}

/// Is the word of a call of futex of one process only?
pub(crate) fn is_private(arguments: &[u64; 6]) -> bool {
    arguments[1] & PRIVATE != 0
}

/// Does a call of futex wait for a lock that is taken? So say LOCK_PI and LOCK_PI2, and a word that
/// holds 2: taken, and somebody waits (Drepper, Futexes Are Tricky; the C library, Rust and Go);
/// musl's holds EBUSY and a flag.
pub(crate) fn awaits_lock(arguments: &[u64; 6]) -> bool {
    matches!(operation(arguments), 6 | 13) || matches!(arguments[2] as u32, 2 | 0x8000_0010)
}

/// Does a call of futex come back by itself?
pub(crate) fn futex_is_timed(arguments: &[u64; 6]) -> bool {
    arguments[3] != 0
}

/// Does a call that polls look again within 100 ms, whether something has come or not? Nothing
/// if only the program's memory tells, as for `select` and `ppoll`.
pub(crate) fn polls_often(number: u64, arguments: &[u64; 6]) -> Option<bool> {
    poll_timeout_ms(number, arguments).map(|timeout| (0..100).contains(&timeout))
}

/// Where in the program's memory the timeout of a call that polls is, 0 if it has none, and how
/// many ns its second word counts in.
pub(crate) fn timeout_at(number: u64, arguments: &[u64; 6]) -> Option<(u64, i64)> {
    let number = libc::c_long::try_from(number).ok()?;
    #[cfg(target_arch = "x86_64")]
    if number == libc::SYS_select {
        return Some((arguments[4], 1_000));
    }
    match number {
        libc::SYS_pselect6 => Some((arguments[4], 1)),
        libc::SYS_ppoll => Some((arguments[2], 1)),
        libc::SYS_epoll_pwait2 => Some((arguments[3], 1)),
        _ => None,
    }
}

/// The timeout of a call that polls, in ms, below 0 if it waits for ever: nothing if only the
/// program's memory tells.
fn poll_timeout_ms(number: u64, arguments: &[u64; 6]) -> Option<i32> {
    let number = libc::c_long::try_from(number).ok()?;
    #[cfg(target_arch = "x86_64")]
    if number == libc::SYS_poll {
        return Some(arguments[2] as i32);
    }
    #[cfg(target_arch = "x86_64")]
    if number == libc::SYS_epoll_wait {
        return Some(arguments[3] as i32);
    }
    (number == libc::SYS_epoll_pwait).then_some(arguments[3] as i32)
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
    fn a_poll_for_ever_has_no_timeout() {
        let wait = libc::SYS_epoll_pwait as u64;
        assert_eq!(poll_timeout_ms(wait, &[3, 0, 8, 5, 0, 0]), Some(5));
        assert_eq!(
            polls_often(wait, &[3, 0, 8, u64::from(u32::MAX), 0, 0]),
            Some(false)
        );
        assert_eq!(
            polls_often(libc::SYS_pselect6 as u64, &[3, 0, 8, 5, 0, 0]),
            None
        );
        assert_eq!(
            poll_timeout_ms(libc::SYS_read as u64, &[3, 0, 8, 5, 0, 0]),
            None
        );
    }
}
