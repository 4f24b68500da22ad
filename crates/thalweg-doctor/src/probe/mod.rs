//! The probes: each measures some figures from one source.

mod attributes;
mod btf;
pub(crate) mod calls;
mod code;
pub(crate) mod fault;
pub(crate) mod files;
mod gap;
mod hooks;
pub(crate) mod host;
#[cfg(target_arch = "x86_64")]
mod loops;
pub(crate) mod memory;
mod monitors;
pub(crate) mod perf;
pub(crate) mod ration;
pub(crate) mod record;
pub(crate) mod recorder;
pub(crate) mod regular;
pub(crate) mod sums;
mod switch;
pub(crate) mod symbols;
pub(crate) mod tally;
pub(crate) mod ticks;
pub(crate) mod timeline;
mod timers;
pub(crate) mod tree;
pub(crate) mod turns;
pub(crate) mod usage;
pub(crate) mod waits;
pub(crate) mod wakes;
pub(crate) mod words;
