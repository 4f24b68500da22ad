//! Under the default rules no user is robbed: attacks that were once possible, and properties over
//! hostile users who work together.

mod fees;
mod hostile;
mod market;
pub(crate) use crate::properties::open_orders;
mod exploits;
mod placements;
mod reserve;
mod strange;
pub(crate) mod totals;
pub(crate) mod watch;
