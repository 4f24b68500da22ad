//! A client of a thalweg exchange: pipelined, resumed after a break, each command executed once.
//!
//! A [`Client`] is one session. It sends commands without waiting for their answers; each has a
//! [`Ticket`] for its [outcome](Outcome). [`Events`] has the rest: execution reports, market data,
//! lost and new connections. When a connection is lost the client connects again by itself, sends
//! again what has no answer, and asks for the reports that it missed. [`BlockingClient`] is for
//! threads.
//!
//! The commands of a session are determined by its type: a [`TradeClient`] sends [`TradeCommand`]s
//! about the orders of one user, an [`AdminClient`] [`AdminCommand`]s, a [`ReadClient`] nothing.
//! Every queue is bounded.
//!
//! `docs/exchange-protocol.md` has the protocol. `examples/session.rs`:
//!
//! ```no_run
#![doc = include_str!("../examples/session.rs")]
//! ```
#![forbid(unsafe_code)]

mod blocking;
mod client;
mod connection;
mod disconnect_reason;
mod event;
mod options;
mod outcome;
mod pending;
mod protocol;
mod store;
mod subscriptions;

pub use blocking::{
    BlockingAdminClient, BlockingClient, BlockingEvents, BlockingReadClient, BlockingTicket,
    BlockingTradeClient,
};
pub use client::{AdminClient, Client, NoCommand, ReadClient, SessionCommand, TradeClient};
pub use disconnect_reason::DisconnectReason;
pub use event::{Event, Events};
pub use options::Options;
pub use outcome::{Closed, Outcome, Ticket};
pub use store::{FileStore, MemoryStore, SavedSession, SessionStore};
pub use thalweg_exchange as exchange;
#[doc(no_inline)]
pub use thalweg_exchange::codec::session::{AdminCommand, SessionQuery, TradeCommand};
