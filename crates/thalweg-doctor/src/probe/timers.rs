//! Finds timers among the files that a call polls.

use super::calls::{self, Arguments, Polled};
use super::regular;
use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;

/// The maximum number of files of one call that are examined.
const FILES_MAX: usize = 32;

/// Returns the time until the first timer that a call polls expires, if it polls one.
pub(crate) fn left_ns(pid: i32, number: u64, arguments: &Arguments) -> Option<u64> {
    let files = match calls::polled(number, arguments)? {
        Polled::Epoll(instance) => {
            let path = format!("/proc/{pid}/fdinfo/{instance}");
            watched(&regular::text(path)?)
        }
        Polled::List(address, count) => listed(pid, address, count)?,
    };
    let timers = files.into_iter().filter(|&file| is_timer(pid, file));
    let left =
        timers.filter_map(|file| value_ns(&regular::text(format!("/proc/{pid}/fdinfo/{file}"))?));
    left.min()
}

/// Returns whether this open file is a timer (`timerfd_create`).
pub(crate) fn is_timer(pid: i32, file: u64) -> bool {
    let link = fs::read_link(format!("/proc/{pid}/fd/{file}"));
    link.is_ok_and(|link| link.as_os_str() == "anon_inode:[timerfd]")
}

/// Returns the files of an epoll instance, from its `fdinfo`.
fn watched(text: &str) -> Vec<u64> {
    let file = |line: &str| {
        let after = line.strip_prefix("tfd:")?;
        after.split_whitespace().next()?.parse().ok()
    };
    text.lines().filter_map(file).take(FILES_MAX).collect()
}

/// Returns the files of a list of `struct pollfd`.
fn listed(pid: i32, address: u64, count: u64) -> Option<Vec<u64>> {
    let count = usize::try_from(count).ok()?.min(FILES_MAX);
    let mut bytes = vec![[0; 8]; count];
    let memory = File::open(format!("/proc/{pid}/mem")).ok()?;
    memory
        .read_exact_at(bytes.as_flattened_mut(), address)
        .ok()?;
    let file = |entry: &[u8; 8]| {
        let number = entry.first_chunk().copied().map(i32::from_ne_bytes)?;
        u64::try_from(number).ok()
    };
    Some(bytes.iter().filter_map(file).collect())
}

/// Returns the time until a timer expires, from its `fdinfo`; `None` if it is not set.
fn value_ns(text: &str) -> Option<u64> {
    let value = text
        .lines()
        .find_map(|line| line.strip_prefix("it_value:"))?;
    let value = value.trim().strip_prefix('(')?.strip_suffix(')')?;
    let (seconds, rest_ns) = value.split_once(", ")?;
    let (seconds, rest_ns): (u64, u64) = (seconds.parse().ok()?, rest_ns.parse().ok()?);
    let value_ns = seconds
        .saturating_mul(1_000_000_000)
        .saturating_add(rest_ns);
    (value_ns > 0).then_some(value_ns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::epoll;
    use rustix::time::{
        Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
        timerfd_settime,
    };
    use std::os::fd::{AsRawFd as _, OwnedFd};

    #[test]
    fn an_instance_and_a_list_tell_their_timer() {
        let own = std::process::id().cast_signed();
        let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC).unwrap();
        let instance = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
        let data = epoll::EventData::new_u64(0);
        epoll::add(&instance, &timer, data, epoll::EventFlags::IN).unwrap();
        let list = [[timer.as_raw_fd(), 1], [-1, 1]];
        let number = |file: &OwnedFd| u64::try_from(file.as_raw_fd()).unwrap();
        let left = || {
            let calls = [
                (libc::SYS_epoll_pwait, [number(&instance), 0]),
                (libc::SYS_ppoll, [list.as_ptr() as u64, 2]),
            ];
            calls.map(|(call, [a, b])| left_ns(own, call as u64, &[a, b, 0, 0, 0, 0]))
        };
        assert_eq!(left(), [None, None], "it is not set");
        let zero = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        let value = Timespec {
            tv_sec: 100,
            ..zero
        };
        let once = Itimerspec {
            it_interval: zero,
            it_value: value,
        };
        timerfd_settime(&timer, TimerfdTimerFlags::empty(), &once).unwrap();
        for left_ns in left() {
            let left_s = left_ns.expect("it is set") / 1_000_000_000;
            assert!((1..=100).contains(&left_s), "{left_s}");
        }
        assert!(is_timer(own, number(&timer)) && !is_timer(own, number(&instance)));
        assert_eq!(
            left_ns(own, libc::SYS_read as u64, &[number(&timer); 6]),
            None
        );
    }

    #[test]
    fn what_is_no_timer_has_no_value() {
        assert_eq!(value_ns("pos:\t0\nflags:\t02\n"), None);
        assert_eq!(value_ns("it_value: (0, 49406829)\n"), Some(49_406_829));
        assert_eq!(value_ns("it_value: (0, 0)\n"), None);
        assert_eq!(
            watched("pos:\t0\ntfd:       12 events:  19 data: 0\n"),
            [12]
        );
    }
}
