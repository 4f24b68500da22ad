//! Which kind of bottleneck does a program have?
//!
//! Probes measure a running program and the machine under it; [`evidence::Evidence`] holds their
//! figures; rules turn these into [`verdict::Verdict`]s.
pub mod evidence;
#[cfg(target_os = "linux")]
pub mod export;
pub mod metrics;
pub mod recording;
pub mod verdict;
