//! Loads and attaches eBPF programs, which the kernel runs at events, by `bpf(2)`.
//!
//! State: none. Rules:
//! 1. Every pointer in an attribute leads to a live value of the size that is passed to the call,
//!    and no call keeps it after it returns.
//! 2. A descriptor is owned by one [`OwnedFd`] from the moment the kernel gave it.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd, RawFd};

/// Commands and kinds, with their numbers in `linux/bpf.h`.
const MAP_CREATE: libc::c_int = 0;
const MAP_UPDATE_ELEM: libc::c_int = 2;
const PROG_LOAD: libc::c_int = 5;
const RAW_TRACEPOINT_OPEN: libc::c_int = 17;
const PROG_TYPE_RAW_TRACEPOINT: u32 = 17;
/// The size of the verifier's log, whose end says why it refuses a program.
const LOG_BYTES: usize = 64 << 10;

/// The kind of a map.
#[derive(Debug, Clone, Copy)]
pub(crate) enum MapKind {
    Array = 2,
    /// A map of events, one for each core, that `perf_event_output` writes to.
    PerfEvents = 4,
}

/// The parts of `union bpf_attr`; fields that are not named are zero.
#[repr(C)]
#[derive(Default)]
struct NewMap {
    kind: u32,
    key_bytes: u32,
    value_bytes: u32,
    entries: u32,
}

#[repr(C)]
#[derive(Default)]
struct Update {
    map: u32,
    padding: u32,
    key: u64,
    value: u64,
    flags: u64,
}

#[repr(C)]
#[derive(Default)]
struct Load {
    kind: u32,
    instructions_len: u32,
    instructions: u64,
    license: u64,
    log_level: u32,
    log_bytes: u32,
    log: u64,
    kernel_version: u32,
    flags: u32,
}

#[repr(C)]
#[derive(Default)]
struct Attach {
    name: u64,
    program: u32,
    padding: u32,
}

/// Makes the system call `bpf(2)`.
///
/// # Safety
/// Rule 1 holds for `attribute`, which is a prefix of `union bpf_attr`.
unsafe fn call<T>(command: libc::c_int, attribute: &T) -> io::Result<RawFd> {
    // SAFETY: rule 1; the bytes behind a prefix count as zero.
    let done = unsafe { libc::syscall(libc::SYS_bpf, command, attribute, size_of::<T>()) };
    match done {
        done if done < 0 => Err(io::Error::last_os_error()),
        done => Ok(done as RawFd),
    }
}

/// Makes a map with keys of four bytes.
pub(crate) fn map(kind: MapKind, value_bytes: u32, entries: u32) -> io::Result<OwnedFd> {
    let attribute = NewMap {
        kind: kind as u32,
        key_bytes: 4,
        value_bytes,
        entries,
    };
    // SAFETY: rules 1 and 2.
    unsafe { call(MAP_CREATE, &attribute).map(|file| OwnedFd::from_raw_fd(file)) }
}

/// Sets an entry of a map; `value` has the size of the map's values.
pub(crate) fn set(map: &OwnedFd, key: u32, value: &[u8]) -> io::Result<()> {
    let attribute = Update {
        map: map.as_raw_fd().cast_unsigned(),
        key: (&raw const key).expose_provenance() as u64,
        value: value.as_ptr().expose_provenance() as u64,
        ..Update::default()
    };
    // SAFETY: rule 1.
    unsafe { call(MAP_UPDATE_ELEM, &attribute).map(drop) }
}

/// Loads an eBPF program for raw tracepoints. If the verifier refuses it, the error contains the
/// verifier's message.
pub(crate) fn load(instructions: &[u64]) -> io::Result<OwnedFd> {
    let mut log = vec![0_u8; LOG_BYTES];
    let mut attribute = Load {
        kind: PROG_TYPE_RAW_TRACEPOINT,
        instructions_len: instructions.len() as u32,
        instructions: instructions.as_ptr().expose_provenance() as u64,
        license: c"Dual MIT/GPL".as_ptr().expose_provenance() as u64,
        ..Load::default()
    };
    // SAFETY: rules 1 and 2.
    let loaded = unsafe {
        call(PROG_LOAD, &attribute).or_else(|first| {
            (attribute.log_level, attribute.log_bytes) = (1, LOG_BYTES as u32);
            attribute.log = log.as_mut_ptr().expose_provenance() as u64;
            let again = call(PROG_LOAD, &attribute);
            let said = CStr::from_bytes_until_nul(&log).unwrap_or_default();
            let said = said.to_string_lossy();
            let last = said
                .lines()
                .rev()
                .find(|line| !line.starts_with("processed"));
            again.map_err(|_| match last {
                Some(last) => io::Error::new(first.kind(), format!("{first}: {last}")),
                None => first,
            })
        })
    };
    // SAFETY: rule 2.
    loaded.map(|file| unsafe { OwnedFd::from_raw_fd(file) })
}

/// Attaches a program to a tracepoint until the returned file is closed.
pub(crate) fn attach(program: BorrowedFd<'_>, tracepoint: &CStr) -> io::Result<OwnedFd> {
    let attribute = Attach {
        name: tracepoint.as_ptr().expose_provenance() as u64,
        program: program.as_raw_fd().cast_unsigned(),
        padding: 0,
    };
    // SAFETY: rules 1 and 2.
    unsafe { call(RAW_TRACEPOINT_OPEN, &attribute).map(|file| OwnedFd::from_raw_fd(file)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd as _;

    const RETURN_0: [u64; 2] = [0xb7, 0x95];

    #[test]
    fn a_program_that_the_verifier_refuses_says_why() {
        match load(&RETURN_0) {
            Err(why) => return println!("skipped: no programs for this user: {why}"),
            Ok(program) => drop(attach(program.as_fd(), c"sched_waking").unwrap()),
        }
        // The program returns a register that was never set.
        let error = load(&RETURN_0[1..]).unwrap_err().to_string();
        assert!(error.contains("R0 !read_ok"), "{error}");
        let program = load(&RETURN_0).unwrap();
        let error = attach(program.as_fd(), c"no_such_tracepoint").unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENOENT));
    }

    #[test]
    fn an_entry_that_a_map_does_not_have_is_an_error() {
        let Ok(map) = map(MapKind::Array, 8, 2) else {
            return println!("skipped: no maps for this user");
        };
        set(&map, 1, &[7; 8]).unwrap();
        assert_eq!(
            set(&map, 2, &[7; 8]).unwrap_err().raw_os_error(),
            Some(libc::E2BIG)
        );
    }
}
