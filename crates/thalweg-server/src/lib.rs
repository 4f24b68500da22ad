//! The durable exchange as a server: the binary protocol over TCP, with keys and roles, private
//! execution reports, market data and metrics.
//!
//! ```text
//! connections ──commands, under one lock──▶ driver: owns the exchange ──▶ pipeline, journal
//!      ▲  ▲                                                                │ durable
//!      │  └── outboxes (bounded) ◀── publisher: answers, reports ◀─────────┤
//!      └───── ring of chunks ◀── feed: market data ◀───────────────────────┘
//! ```
//!
//! Nobody in this picture waits for a client: what a client does not take is bounded, and it is
//! cut, or told what it missed. `docs/serving.md` is for operators, `docs/exchange-protocol.md`
//! has the protocol.
#![forbid(unsafe_code)]

mod access;
mod audit;
mod buckets;
pub mod config;
mod connection;
pub mod demo;
mod desk;
mod directory;
mod doors;
mod driver;
mod error;
mod execution;
mod feed;
mod figures;
mod greeting;
mod http;
pub mod keys;
mod listener;
pub mod logs;
mod metrics;
mod outbox;
mod publisher;
mod rate;
mod reading;
mod remembered;
mod request;
mod roster;
mod seats;
mod server;
mod session;
mod shared;
mod stage;
mod turns;
mod wall_clock;

pub use self::doors::Addresses;
pub use self::error::ServeError;
pub use self::remembered::TooManySessions;
pub use self::server::Server;
pub use self::wall_clock::{SystemClock, TimeSource};
