//! A deterministic exchange as a pure state machine: risk check → matching → settlement.
//!
//! No threads, clocks, floats, hash order or I/O: the same commands give the same results, events
//! and state on every machine. [`apply`] executes one command on a [`State`], [`apply_batch`] many;
//! nothing else changes one, in a running [`service`], at recovery or in a simulation.
//!
//! Currency pairs and futures with margin, the six order types of [`OrderType`], users and
//! balances, reports. Options are not traded: their symbols are refused. [`Rules::REFERENCE`] does
//! what the reference engine does, quirks included; [`Rules::default`] mends them, and has rules of
//! its own that hostile users cannot get around (`docs/exchange-rules.md`).
//!
//! - [`command`], [`result_code`], [`event`], [`ids`]: what [`apply`] takes, and what it returns.
//! - [`engine`], [`rules`]: the state machine ([`book`], [`matching`], [`risk`]), and where it is
//!   as the reference.
//! - [`execution`], [`market`], [`report`]: execution reports, market data, views of a whole state.
//! - [`service`]: the engine on threads of its own, with clients and queries.
//! - [`durable`], [`session`], [`snapshot`], [`digest`]: journal, recovery and replicas; how each
//!   command of a session is executed once; the state as bytes; a running hash.
//! - [`codec`]: commands, sessions, reports and market data as bytes.
//! - [`stream`], [`conformance`]: recorded streams, and whether an engine does what they say.
//!
//! `examples/trade.rs`:
//!
//! ```
#![doc = include_str!("../examples/trade.rs")]
//! ```
#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

// The random commands of the tests name this crate as its users do.
#[cfg(test)]
extern crate self as thalweg_exchange;

pub mod codec;
mod codes;
pub mod command;
pub mod conformance;
pub mod digest;
pub mod durable;
pub mod engine;
pub mod event;
pub mod execution;
pub mod ids;
pub mod market;
pub mod report;
pub mod result_code;
pub mod rules;
pub mod service;
pub mod session;
pub mod snapshot;
pub mod stream;
mod wire;

pub use command::{
    AccountSpec, Action, AdjustmentKind, Amend, Command, ConditionalOrder, FeeUnit, OrderFlags,
    OrderType, Place, SelfTrade, SymbolSpec, SymbolType, UserLimits,
};
#[doc(hidden)]
pub use engine::index::repeat_secrets;
pub use engine::state::{State, apply, apply_batch, apply_in_parts, apply_left_over};
pub use engine::{book, matching, risk};
pub use event::{Event, Events, LevelChange, MovedOrder, RejectReason, RemovalReason};
pub use ids::{CurrencyId, OrderId, SymbolId, UserId};
pub use result_code::ResultCode;
pub use rules::{REFILL_WORK, Rules, WORK_MAX};
