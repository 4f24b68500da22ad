//! A deterministic exchange as a pure state machine: risk check → matching → settlement.
//!
//! No threads, clocks, floats, hash order or I/O: the same commands give the same results, events
//! and state on every machine.
#![forbid(unsafe_code)]

pub mod command;
pub mod event;
pub mod ids;
pub mod result_code;
pub mod rules;

pub use command::{
    AccountSpec, Action, AdjustmentKind, Command, OrderType, Place, SymbolSpec, SymbolType,
};
pub use event::{Event, Events};
pub use ids::{CurrencyId, OrderId, SymbolId, UserId};
pub use result_code::ResultCode;
pub use rules::Rules;
