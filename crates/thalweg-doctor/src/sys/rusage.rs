//! `wait4` returns the end of a child, and the resources that it used.
//!
//! State: none. Rules:
//! 1. A pointer that a call is given points to a local variable that outlives the call, of the type
//!    that the call writes, and of which any bytes are a value.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

/// The resources that a process used, with those of the children that it waited for.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Usage {
    pub(crate) user_s: f64,
    pub(crate) system_s: f64,
    pub(crate) rss_max_bytes: u64,
    pub(crate) faults_minor: u64,
    pub(crate) faults_major: u64,
    pub(crate) switches_voluntary: u64,
    pub(crate) switches_involuntary: u64,
}

/// Waits for a child to end, and reaps it.
///
/// # Errors
/// Returns an error if the process is not a child, or was waited for already.
pub(crate) fn wait4(process: u32) -> io::Result<(ExitStatus, Usage)> {
    let mut status = 0;
    // SAFETY: `rusage` holds only integers (rule 1).
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    loop {
        // SAFETY: both pointers are to the local variables above (rule 1).
        let found = unsafe { libc::wait4(process as libc::pid_t, &mut status, 0, &mut usage) };
        if found == process as libc::pid_t {
            break;
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    Ok((ExitStatus::from_raw(status), usage.into()))
}

impl From<libc::rusage> for Usage {
    fn from(usage: libc::rusage) -> Usage {
        let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
        let count = |count: libc::c_long| u64::try_from(count).unwrap_or(0);
        Usage {
            user_s: seconds(usage.ru_utime),
            system_s: seconds(usage.ru_stime),
            rss_max_bytes: count(usage.ru_maxrss) * 1024,
            faults_minor: count(usage.ru_minflt),
            faults_major: count(usage.ru_majflt),
            switches_voluntary: count(usage.ru_nvcsw),
            switches_involuntary: count(usage.ru_nivcsw),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_child_is_waited_for_once() {
        let child = Command::new("sh").args(["-c", "exit 7"]).spawn();
        let id = child.expect("there is a shell").id();
        let (status, usage) = wait4(id).expect("it is a child");
        assert_eq!(status.code(), Some(7));
        assert!(
            usage.rss_max_bytes > 0 && usage.faults_minor > 0,
            "{usage:?}"
        );
        assert!(wait4(id).is_err());
    }
}
