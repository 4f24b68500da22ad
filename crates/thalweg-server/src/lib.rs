//! The durable exchange as a server: the binary protocol over TCP, with keys and roles, private
//! execution reports, market data and metrics.
//!
//! ```text
//!                 control: accept, hello, keys, clock, metrics
//!                     │ sessions, requests
//!                     ▼
//! clients ◀─────▶ exchange's thread: reads, executes, answers ──▶ committer: writes and syncs
//!                     ▲        │
//!                     └ chunks ┴──outcomes──▶ feed: market data
//! ```
//!
//! No thread in this picture waits for a client: the output that a client does not take is bounded,
//! and the client is disconnected, or notified of what it missed. `docs/serving.md` is for
//! operators, `docs/exchange-protocol.md` has the protocol.
#![forbid(unsafe_code)]

mod accept;
mod audit;
mod catch_up;
mod command_trace;
pub mod conditions;
pub mod config;
mod connect_limits;
mod connection_slots;
mod counters;
pub mod demo;
mod driver;
mod drop_copy;
mod error;
mod exchange_thread;
mod execution_times;
mod feed;
pub mod flow;
mod gateway_link;
mod gateway_observer;
mod handshake;
mod http;
mod inbound;
pub mod keys;
mod latency_monitor;
mod lifecycle;
mod listeners;
pub mod logs;
mod metrics;
mod open_order_queries;
mod order_notes;
mod outage_log;
mod output;
pub mod private_files;
mod replication;
mod request;
mod scheduler;
mod server;
mod session;
mod session_capacity;
mod sessions;
mod shared;
mod token_bucket;
mod wall_clock;

use std::sync::{Mutex, MutexGuard, PoisonError};

pub use self::audit::GatewayLine;
pub use self::catch_up::CatchUpError;
pub use self::command_trace::CommandTrace;
pub use self::connect_limits::{RateDecision, network};
pub use self::drop_copy::{DropCopy, DropCopyEvent, OpenOrdersOf};
pub use self::error::ServeError;
pub use self::gateway_link::{ExchangeHandle, GatewayLink};
pub use self::gateway_observer::{GatewayObserver, GatewayRow, Histogram, RowLabels, RowValues};
pub use self::latency_monitor::{
    LatencyMonitor, LatencyReading, LatencySummary, StageTimes, TailBreakdown,
};
pub use self::listeners::{Addresses, BACKLOG, bind};
pub use self::order_notes::OrderNotes;
pub use self::replication::Replication;
pub use self::server::Server;
pub use self::session_capacity::TooManySessions;
pub use self::wall_clock::{SystemClock, TimeSource};

/// Locks a mutex, also where a thread that held it has panicked.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
