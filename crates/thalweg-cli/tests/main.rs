//! Runs the program as a user runs it.

mod archive;
mod bad_input;
mod conditions;
mod damages;
mod doctor;
mod doctor_compare;
mod durable;
mod endless_files;
mod hash;
mod hostile;
mod idle_pipes;
mod journal;
mod journaled;
mod keys;
mod machine;
mod market;
mod odd_files;
mod output;
mod pages;
mod program;
mod real_flow;
#[cfg(feature = "etcd")]
mod replicated;
mod report;
mod serve;
mod served_kills;
mod sessions;
#[cfg(target_os = "linux")]
mod top;
mod trades;
mod views;
mod wrong_ports;
