//! A server in this process, spoken to over loopback sockets, frame by frame.
//!
//! A client that waits for what never comes fails after a minute, and prints what it waited for:
//! that is no bound on how fast the server is.

mod client;
mod conditions;
mod deferred_cancels;
mod disconnect;
mod disk;
mod handshake;
mod hostile;
mod jumping;
mod limited;
mod limits;
mod many;
mod market;
mod operations;
mod orders;
mod packaging;
mod resume;
mod silence;
mod stalled;
mod test_server;
