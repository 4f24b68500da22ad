//! The exchange from outside: conformance, properties, money, durability.

thalweg_testkit::count_allocations!();

mod accounts;
mod allocation;
mod book;
mod codec;
mod conformance;
mod digest;
mod durable;
mod futures;
mod fuzz;
mod golden_run;
mod limits;
mod market;
mod money;
mod one_state;
mod operations;
mod properties;
mod refusals;
mod risk;
#[cfg(feature = "serde")]
mod serialised;
mod service;
mod session;
mod snapshot;
mod streams;
mod terms;
