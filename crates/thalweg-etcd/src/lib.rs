//! The command log of a replicated exchange, kept by etcd: see [`EtcdLog`].
//!
//! ```no_run
//! use thalweg_etcd::{Address, EtcdLog};
//! use thalweg_exchange::durable::replication::CommandLog;
//!
//! let address: Address = "etcd://10.0.0.1:2379,10.0.0.2:2379/exchange".parse()?;
//! let mut log = EtcdLog::new(address)?;
//! println!("{:?}", log.read(0)?.claim);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod address;
mod endpoints;
mod log;
mod message;

pub use self::address::{Address, AddressError};
pub use self::log::{EtcdLog, Position, Times};
