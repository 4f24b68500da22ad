//! What orders may ask for beyond the reference: exact cases, and properties over random streams.

mod amend;
mod auction;
#[path = "../properties/commands.rs"]
#[allow(dead_code)] // made for the properties; this file needs a part of it
mod commands;
mod extreme;
mod good_till;
mod iceberg;
#[path = "../properties/late.rs"]
mod late;
mod market_orders;
mod pipelines;
mod plain;
mod post_only;
mod random;
mod reports;
mod self_trade;
#[path = "../properties/served.rs"]
mod served;
mod stops;
#[path = "../money/totals.rs"]
#[allow(dead_code)] // seeded faults need the rest
mod totals;
mod watch;
mod windows;
mod world;

use world::text;
