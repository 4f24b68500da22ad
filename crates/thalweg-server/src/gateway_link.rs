//! Access to the exchange for a gateway in the same process.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use thalweg_exchange::UserId;
use thalweg_exchange::durable::Reports;

use crate::conditions::NetworkConditions;
use crate::connect_limits::RateDecision;
use crate::drop_copy::DropCopy;
use crate::gateway_observer::GatewayObserver;
use crate::latency_monitor::LatencyMonitor;
use crate::order_notes::OrderNotes;
use crate::request::Request;
use crate::shared::Shared;

/// The exchange and its server, as a gateway asks them.
#[derive(Clone, Debug)]
pub struct ExchangeHandle(Arc<Shared>);

impl ExchangeHandle {
    pub(crate) const fn new(shared: Arc<Shared>) -> Self {
        Self(shared)
    }

    /// Asks for the open orders of a user: they come as
    /// [`DropCopyEvent::OpenOrders`](crate::DropCopyEvent::OpenOrders), with the token. Cost, on
    /// the exchange's thread: a visit to each of a user's orders; of a few users at a time.
    pub fn ask_open_orders(&self, user: UserId, token: u64) {
        self.0.requests.send(Request::OpenOrders(user, token));
    }

    /// Returns whether this server is one of several replicas.
    #[must_use]
    pub fn is_replica(&self) -> bool {
        self.0.replica(Instant::now()).is_some()
    }

    /// Returns the address of the primary's trade listener, where this server is a replica that
    /// follows it; empty where that is not known.
    #[must_use]
    pub fn primary(&self) -> String {
        let replica = self.0.replica(Instant::now());
        replica.map_or_else(String::new, |(figures, _)| figures.primary)
    }

    /// Counts a connection from an address to the gateway's listener, which are bounded by
    /// `server.connects_per_s`, and of an address by `server.connects_per_address_s`.
    #[must_use]
    pub fn arrive(&self, from: IpAddr) -> RateDecision {
        let limits = &self.0.connect_limits;
        limits.arrive_at_gateway(from, Instant::now())
    }
}

/// Access to the exchange for a gateway in the same process.
#[derive(Debug)]
pub struct GatewayLink {
    /// The address of the trade listener.
    pub trade: std::net::SocketAddr,
    /// A key, valid in this process, that opens a trade session of any user, and sessions that
    /// read.
    pub key: Vec<u8>,
    /// The session number that only this key may use.
    pub session: u32,
    /// The reports and sessions of all users.
    pub reports: Reports,
    /// See [`DropCopy`].
    pub copy: DropCopy,
    /// The open orders that a user without limits of its own could have when the exchange was
    /// opened; the drop copy has what administrators change.
    pub open_orders_max: u32,
    /// See [`OrderNotes`].
    pub notes: OrderNotes,
    /// See [`ExchangeHandle`].
    pub exchange: ExchangeHandle,
    /// The network between users and the exchange, where it is slow or loses commands.
    pub conditions: Option<Arc<NetworkConditions>>,
    /// See [`GatewayObserver`].
    pub observer: GatewayObserver,
    /// See [`LatencyMonitor`].
    pub instruments: LatencyMonitor,
}
