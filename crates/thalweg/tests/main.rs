//! Tests of the behaviour on which users of channels, pipelines, the bus, states and rings rely.
//!
//! `sanitized` leaves out what the gate's step `asan` does not compile: cases of figures, times and
//! types, which find nothing about memory, and the chaos and histories of the bus, whose memory is
//! that of its channels.

#[cfg(not(any(loom, shuttle)))]
thalweg_testkit::count_allocations!();

#[cfg(not(any(loom, shuttle, sanitized)))]
mod allocations;
#[cfg(not(any(loom, shuttle)))]
mod bus;
#[cfg(not(any(loom, shuttle)))]
mod channel;
#[cfg(not(any(loom, shuttle, sanitized)))]
mod channel_allocation;
#[cfg(not(any(loom, shuttle)))]
mod channel_select;
#[cfg(shuttle)]
mod channel_shuttle;
#[cfg(all(feature = "stream", not(any(loom, shuttle))))]
mod channel_stream;
#[cfg(not(any(loom, shuttle, sanitized)))]
mod costs;
#[cfg(not(any(loom, shuttle, sanitized)))]
mod export;
#[cfg(not(any(loom, shuttle)))]
mod forgotten;
#[cfg(not(any(loom, shuttle, sanitized)))]
mod memory;
#[cfg(all(feature = "metrics", not(any(loom, shuttle))))]
mod metrics;
#[cfg(not(any(loom, shuttle)))]
mod pipeline;
#[cfg(shuttle)]
mod pipeline_shuttle;
#[cfg(not(any(loom, shuttle)))]
mod ring_conformance;
#[cfg(all(feature = "serde", not(any(loom, shuttle))))]
mod serialised;
#[cfg(not(any(loom, shuttle)))]
mod state;
#[cfg(all(feature = "tracing", not(any(loom, shuttle))))]
mod tracing;
#[cfg(not(any(loom, shuttle, sanitized)))]
mod types;
