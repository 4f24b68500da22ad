//! The durable exchange as a server.
#![forbid(unsafe_code)]

pub mod config;
pub mod keys;
