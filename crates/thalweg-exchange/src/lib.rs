//! A deterministic exchange as a pure state machine: risk check → matching → settlement.
//!
//! No threads, clocks, floats, hash order or I/O: the same commands give the same results, events
//! and state on every machine. [`apply`] executes one command on a [`State`]; the parts of the
//! state can also be owned by different stages of a pipeline.
//!
//! Currency pairs and futures with margin, all five order types, users and balances, reports.
//! Options are refused. [`Rules::REFERENCE`] does what the reference engine does, quirks included;
//! [`Rules::default`] mends them, and has rules of its own that hostile users cannot get around
//! (`docs/exchange-rules.md`).
//!
//! `examples/trade.rs`:
//!
//! ```
#![doc = include_str!("../examples/trade.rs")]
//! ```
#![forbid(unsafe_code)]

// The random commands of the tests name this crate as its users do.
#[cfg(test)]
extern crate self as thalweg_exchange;

pub mod book;
pub mod codec;
pub mod command;
pub mod conformance;
pub mod digest;
pub mod event;
pub mod execution;
pub mod ids;
mod index;
pub mod market;
pub mod matching;
pub mod order_terms;
pub mod report;
pub mod result_code;
pub mod risk;
pub mod rules;
pub mod service;
mod slab;
mod state;
pub mod state_text;
pub mod stream;
mod symbol_index;

pub use command::{
    AccountSpec, Action, AdjustmentKind, Amend, Command, FeeUnit, OrderType, Place, SymbolSpec,
    SymbolType, UserLimits,
};
pub use event::{Event, Events, Moved, RejectReason, Removal, UserHint};
pub use ids::{CurrencyId, OrderId, SymbolId, UserId};
#[doc(hidden)]
pub use index::repeat_secrets;
pub use order_terms::{ConditionalOrder, OrderFlags, SelfTrade};
pub use result_code::ResultCode;
pub use rules::Rules;
pub use state::{State, apply, apply_batch};
