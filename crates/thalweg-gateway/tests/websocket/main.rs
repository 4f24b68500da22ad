//! Market streams and the WebSocket API over sockets, before a server in this process.
#![forbid(unsafe_code)]

mod api;
mod conditions;
mod figures;
mod fixture;
mod hostile;
mod orders;
mod reconciliation;
mod recorded;
mod rows;
mod rsa;
mod rules;
mod slots;
mod streams;
mod trading;
