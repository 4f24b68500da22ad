//! A server in this process, spoken to over loopback sockets, frame by frame.
//!
//! A client that waits for what never comes fails after a minute, and says what it waited for: that
//! is no bound on how fast the server is.

#![cfg(unix)]

mod client;
mod disconnect;
mod disk;
mod greeting;
mod hostile;
mod house;
mod jumping;
mod limited;
mod limits;
mod many;
mod market;
mod operations;
mod orders;
mod owed;
mod resume;
mod silence;
mod stalled;
