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

mod audit;
mod buckets;
pub mod config;
pub mod demo;
mod doors;
mod driver;
mod error;
mod exchange_thread;
mod execution;
mod feed;
mod figures;
mod frames;
mod greeting;
mod http;
pub mod keys;
mod listener;
pub mod logs;
mod metrics;
mod output;
mod publisher;
mod rate;
mod remembered;
mod request;
mod scheduler;
mod seats;
mod server;
mod session;
mod sessions;
mod shared;
mod stage;
mod wall_clock;

pub use self::doors::Addresses;
pub use self::error::ServeError;
pub use self::remembered::TooManySessions;
pub use self::server::Server;
pub use self::wall_clock::{SystemClock, TimeSource};
