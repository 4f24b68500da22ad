//! Under the default rules nobody is robbed: what was once possible, and properties over hostile
//! users who work together.

mod fees;
mod hostile;
mod market;
#[path = "../properties/open_orders.rs"]
mod open_orders;
mod placements;
mod reserve;
mod robberies;
mod strange;
mod totals;
mod watch;
