//! Which kind of bottleneck does a program have?
//!
//! Probes measure a running program and the machine under it; [`evidence::Evidence`] holds their
//! figures; rules turn these into [`verdict::Verdict`]s.
#![deny(unsafe_code)]

#[cfg(target_os = "linux")]
pub mod contrast;
pub mod evidence;
#[cfg(target_os = "linux")]
pub mod machine;
pub mod metrics;
#[cfg(target_os = "linux")]
#[allow(unsafe_code, reason = "system calls")]
mod sys;
pub mod verdict;
