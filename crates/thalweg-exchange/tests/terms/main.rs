//! What orders may ask for beyond the reference: exact cases, and properties over random streams.

mod good_till;
mod iceberg;
mod post_only;
mod random;
mod self_trade;
mod stops;
mod watch;
mod world;
