//! The probes: each measures some figures from one source.

pub(crate) mod blocked;
mod btf;
pub(crate) mod ebpf;
pub(crate) mod futex;
pub(crate) mod host;
pub(crate) mod memory;
pub(crate) mod overhead;
pub(crate) mod perf;
pub(crate) mod procfs;
pub(crate) mod record;
pub(crate) mod recorder;
pub(crate) mod samples;
#[cfg(target_arch = "x86_64")]
mod spin_loop;
pub(crate) mod symbols;
pub(crate) mod syscall;
pub(crate) mod thread;
pub(crate) mod timeline;
pub(crate) mod totals;
pub(crate) mod tree;
pub(crate) mod waits;
pub(crate) mod watch;
