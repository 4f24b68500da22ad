//! Binance Spot's API before a thalweg exchange: REST v3, WebSocket streams, WebSocket API v3.
//!
//! ```text
//!            HTTP, WebSocket                          loopback TCP, a session a user
//! programs ◀────────────────▶ listener ─▶ endpoint ─▶ orders ───────────▶ trade listener
//!                                │            │         ▲  │ log
//!                                ▼            ▼         │  ▼
//!                            websocket ◀──  market ◀── link ◀──── drop copy ─── exchange's thread
//! ```
//!
//! *In.* A request is parsed into `Params`, weighed (`limits`), and where its
//! row of the one table of endpoints (`rest`) says so, its signature is checked ([`signature`])
//! by the key that it names ([`keys`]). A row has the path of REST, the method of the WebSocket API
//! and one handler for both: a function from a `Call` to JSON, or an
//! `ApiError`.
//!
//! *Orders.* `orders` turns parameters into a command of the engine by the
//! symbol's scales, exactly or not at all. Each user has one trade session
//! (`thalweg-client`, loopback, a number and a key of the gateway's own), so what holds for
//! sessions holds here: each command once, limits, refusals. The order's id is the sequence of its
//! command.
//! Before it is sent, the order is in the gateway's log and durable.
//!
//! *Back.* The server gives a [drop copy](thalweg_server::DropCopy): market messages, execution
//! reports and administrators' commands in one order, each command with its number. One thread
//! (`link`) follows it: it gives every trade its id, writes trades and reports to the log,
//! commits once for all that came together, and only then applies them to `orders` and
//! `market`. So what a client sees is in the log, and both agree on ids. `u` of depth events,
//! and `lastUpdateId`, are the number of the engine's command and 1.
//!
//! *Answers.* A handler that placed an order waits until the drop copy has passed the number of the
//! order's command; what it then reads in `orders` is the state after it.
//!
//! *After a crash.* The log has each order that may have been sent. Those without a report are
//! found in the reports that the exchange keeps of each user. Then the open orders of each user are
//! compared with those that the exchange lists in the drop copy (`orders::reconciliation_queue`,
//! `orders::reconciliation`), as they are whenever reports are lost. An order without a report
//! whose sequence is above the session's last executed one was never executed, and is forgotten.
//!
//! *Bounds.* The drop copy drops at a fixed number of entries and starts anew with books; orders
//! and trades of a user, candles, waiting events of a follower and connections have numbers in the
//! configuration. No task of the gateway is waited for by the exchange's thread.
#![forbid(unsafe_code)]

mod checkpoint;
mod conditions;
mod connection_slots;
pub mod decimal;
pub mod demo;
mod error;
mod figure_rows;
mod figures;
mod instruments;
pub mod keys;
mod limits;
mod link;
mod listener;
mod market;
mod orders;
mod page;
mod params;
mod response;
mod rest;
pub mod signature;
mod stalling;
mod state;
mod stream_counts;
pub mod symbols;
mod time_unit;
mod trade_ids;
mod websocket;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use std::{fmt, io};

use thalweg_server::GatewayLink;
use thalweg_server::config;

use crate::state::State;

/// Locks a mutex, also where a thread that held it has panicked.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Why a gateway does not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GatewayError {
    /// A file cannot be read or written.
    #[error("{}: {source}", .path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file says something that is not possible.
    #[error("{}: {what}", .path.display())]
    Content {
        /// Which.
        path: PathBuf,
        /// The error in it.
        what: String,
    },
    /// The address cannot be listened on.
    #[error("gateway.listen: {address} cannot be listened on: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// The system gives no threads.
    #[error("no threads for the gateway: {0}")]
    Threads(io::Error),
    /// The gateway's log cannot be opened or written.
    #[error("the gateway's log: {0}")]
    Log(#[from] thalweg_journal::Error),
    /// The system has no random numbers.
    #[error("no random numbers for a key: {0}")]
    Random(getrandom::Error),
}

/// The longest time that WebSockets take to be closed.
const DRAINED_WITHIN: Duration = Duration::from_secs(5);

/// A gateway that runs; dropping it ends its connections.
pub struct Gateway {
    address: SocketAddr,
    state: Arc<State>,
    _threads: Threads,
}

/// The threads of a gateway, which are not waited for: they may be dropped within a task of another
/// runtime.
struct Threads(Option<tokio::runtime::Runtime>);

impl Threads {
    fn start(count: usize) -> io::Result<(Self, tokio::runtime::Handle)> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(count)
            .thread_name("gateway")
            .enable_all()
            .build()?;
        let handle = runtime.handle().clone();
        Ok((Self(Some(runtime)), handle))
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

impl fmt::Debug for Gateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let address = &self.address;
        f.debug_struct("Gateway")
            .field("address", address)
            .finish_non_exhaustive()
    }
}

impl Gateway {
    /// Starts a gateway to a server in this process; `directory` is that of the exchange, where
    /// files are whose place `config` does not say, and the gateway's log.
    ///
    /// # Errors
    /// Symbols or keys that are wrong, an address that cannot be listened on, a log that cannot be
    /// opened.
    pub async fn start(
        config: &config::Gateway,
        directory: &Path,
        link: GatewayLink,
    ) -> Result<Self, GatewayError> {
        let address = config.listen.unwrap_or(([127, 0, 0, 1], 7414).into());
        let started = Threads::start(config.worker_threads);
        let (threads, runtime) = started.map_err(GatewayError::Threads)?;
        let state = Arc::new(State::open(config, directory, &link)?);
        let listen = |source| GatewayError::Listen { address, source };
        let inside = runtime.enter();
        let listener = listener::listen(address).map_err(listen)?;
        drop(inside);
        let address = listener.local_addr().map_err(listen)?;
        let GatewayLink {
            copy, instruments, ..
        } = link;
        state.audit_keys("keys read", state.keys.len().to_string());
        figure_rows::publish(&state);
        let ready = link::follow(Arc::clone(&state), copy, &runtime);
        let ready = ready.map_err(GatewayError::Threads)?.await;
        // The exchange has ended where there is no message.
        ready.unwrap_or(Ok(()))?;
        let ticking = Arc::clone(&state);
        runtime.spawn(async move { ticking.market.run().await });
        runtime.spawn(instruments::run(
            Arc::clone(&state.instruments),
            instruments,
        ));
        runtime.spawn(listener::serve(Arc::clone(&state), listener));
        Ok(Self {
            address,
            state,
            _threads: threads,
        })
    }

    /// Returns the address on which it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Reads the API keys again; those that are gone are refused from now on.
    ///
    /// # Errors
    /// The file is wrong: the keys are as before.
    pub fn reload_keys(&self) -> Result<(), GatewayError> {
        let reloaded = self.state.keys.reload();
        let (event, result) = match &reloaded {
            Ok(changes) => ("keys changed", changes.to_string()),
            Err(error) => ("keys not read", error.to_string()),
        };
        self.state.audit_keys(event, result);
        reloaded.map(drop)
    }

    /// Notifies WebSocket clients that the server is about to stop, and takes no new connections.
    pub fn drain(&self) {
        self.state.drain();
    }

    /// Waits until the WebSockets are closed after [`drain`](Self::drain), and connections with
    /// latency: half a second where clients read, five at most.
    pub async fn drained(&self) {
        let closed = self.state.drained();
        let _ = tokio::time::timeout(DRAINED_WITHIN, closed).await;
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.state.drain();
    }
}
