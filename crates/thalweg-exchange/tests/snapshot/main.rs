//! State snapshots: what is encoded, decoded and encoded again is the same, does the same, and has
//! the same bytes however it came about.

#[path = "../accounts/clerk.rs"]
#[allow(dead_code)] // made for the accounts; this file needs a part of it
mod clerk;
#[path = "../properties/commands.rs"]
#[allow(dead_code)] // made for the properties; this file needs a part of it
mod commands;
#[path = "../market/counting.rs"]
#[allow(dead_code)] // made for the market; this file needs a part of it
mod counting;
#[path = "../codec/faults.rs"]
#[allow(dead_code)] // made for the codec; this file needs a part of it
mod faults;
#[path = "../accounts/flow.rs"]
mod flow;
#[path = "../properties/open_orders.rs"]
mod open_orders;
#[path = "../accounts/orders.rs"]
#[allow(dead_code)] // made for the accounts; this file needs a part of it
mod orders;
#[path = "../operations/stream.rs"]
mod stream;
#[path = "../money/totals.rs"]
#[allow(dead_code)] // seeded faults need the rest
mod totals;

mod bazaar;
mod hostile;
mod long;
mod old;
mod random;
mod refused;
mod twins;
mod ways;
mod wide;
