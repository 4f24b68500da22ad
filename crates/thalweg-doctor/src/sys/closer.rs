//! Files whose closing takes long, and that nobody has to wait for.
//!
//! The kernel lets whoever closes the last event of a tracepoint wait until no core can be in its
//! code any more: 30 to 50 ms for each tracepoint. A process that nobody waits for does so here.
//!
//! State: none. Rules:
//! 1. After `fork` a child makes async-signal-safe calls only, and never returns.
//! 2. A child closes copies of descriptors; what is open here stays so.

use super::checked;
use std::os::fd::RawFd;
use std::ptr;

/// Gives copies of these files to a process that does nothing but end, so that closing them here
/// takes no time. It belongs to no terminal, and has none of the other files; whoever kills it
/// does no harm. Where there can be no process, whoever closes the files waits.
pub(crate) fn leave(mut files: Vec<RawFd>) {
    files.sort_unstable();
    // SAFETY: rules 1 and 2; `wait4` gets no pointer.
    unsafe {
        match checked(libc::fork()) {
            Ok(0) => {
                // Its child is the one that stays: whoever adopts it reaps it.
                if libc::fork() == 0 {
                    libc::setsid();
                    close_others(&files);
                }
                libc::_exit(0)
            }
            Ok(pid) => {
                while libc::wait4(pid, ptr::null_mut(), 0, ptr::null_mut()) < 0
                    && *libc::__errno_location() == libc::EINTR
                {}
            }
            Err(_) => {}
        }
    }
}

/// Closes all files but these, which are in order.
///
/// # Safety
/// Only in a process that has no use of its files any more.
unsafe fn close_others(files: &[RawFd]) {
    let mut from: libc::c_uint = 0;
    for file in files.iter().map(|file| file.cast_unsigned()) {
        if from < file {
            // SAFETY: the call takes no pointer.
            unsafe { libc::syscall(libc::SYS_close_range, from, file - 1, 0) };
        }
        from = file + 1;
    }
    // SAFETY: the call takes no pointer.
    unsafe { libc::syscall(libc::SYS_close_range, from, u32::MAX, 0) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::pipe::pipe;
    use std::fs::File;
    use std::io::Read as _;
    use std::os::fd::AsRawFd as _;

    #[test]
    fn files_that_were_left_are_closed_as_all_others() {
        let ((read, write), (read_other, other)) = (pipe().unwrap(), pipe().unwrap());
        leave(vec![write.as_raw_fd()]);
        assert!(rustix::io::write(&write, b"7").is_ok(), "it is open here");
        drop((write, other));
        let mut text = String::new();
        // Neither would end if somebody had the other end still.
        File::from(read_other).read_to_string(&mut text).unwrap();
        File::from(read).read_to_string(&mut text).unwrap();
        assert_eq!(text, "7");
    }
}
