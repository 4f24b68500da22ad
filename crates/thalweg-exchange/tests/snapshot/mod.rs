//! State snapshots: what is encoded, decoded and encoded again is the same, does the same, and has
//! the same bytes however it came about.

pub(crate) use crate::accounts::auditor;
pub(crate) use crate::accounts::flow;
pub(crate) use crate::codec::faults;
pub(crate) use crate::money::totals;
pub(crate) use crate::operations::stream;
pub(crate) use crate::properties::commands;
pub(crate) use crate::properties::open_orders;

mod example;
mod heavy_flow;
mod hostile;
mod long;
mod old;
mod random;
mod refused;
mod twins;
mod ways;
