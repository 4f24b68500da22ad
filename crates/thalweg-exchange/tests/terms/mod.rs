//! Conditions of orders beyond the reference: exact cases, and properties over random streams.

mod amend;
mod auction;
mod bounds;
pub(crate) use crate::properties::commands;
mod extreme;
mod good_till;
mod growth;
mod iceberg;
mod market_orders;
pub(crate) mod pipelines;
mod plain;
mod post_only;
mod random;
mod reports;
mod self_trade;
mod steps;
mod stops;
pub(crate) use crate::money::totals;
pub(crate) mod watch;
mod windows;
mod world;
