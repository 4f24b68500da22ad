//! Which kind of bottleneck does a program have?
//!
//! Probes measure a running program and the machine under it; [`evidence::Evidence`] holds their
//! figures; rules turn these into [`verdict::Verdict`]s.
pub mod budget;
pub mod evidence;
pub mod metrics;
pub mod recording;
pub mod report;
pub mod rules;
pub mod verdict;
