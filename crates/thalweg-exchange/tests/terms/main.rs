//! What orders may ask for beyond the reference: exact cases, and properties over random streams.

mod post_only;
mod random;
mod self_trade;
mod watch;
mod world;
