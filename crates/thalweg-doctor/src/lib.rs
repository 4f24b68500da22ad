//! Determines which kind of bottleneck a program has.
//!
//! Probes measure a running program and the machine under it; [`evidence::Evidence`] holds their
//! figures; rules turn these into [`rules::verdict::Verdict`]s.

#[cfg(target_os = "linux")]
pub mod caps;
#[cfg(target_os = "linux")]
pub mod compare;
#[cfg(all(test, target_os = "linux"))]
mod documented_tests;
pub mod evidence;
#[cfg(target_os = "linux")]
pub mod machine;
#[cfg(target_os = "linux")]
pub mod observe;
#[cfg(target_os = "linux")]
mod probe;
pub mod recording;
pub mod report;
pub mod rules;
#[cfg(target_os = "linux")]
#[allow(unsafe_code, reason = "system calls that no library wraps safely")]
mod sys;
#[cfg(target_os = "linux")]
pub mod target;
