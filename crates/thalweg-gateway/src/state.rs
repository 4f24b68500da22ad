//! The state that all connections of a gateway share.

use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

use thalweg_server::conditions::{DelayLines, NetworkConditions};
use thalweg_server::{ExchangeHandle, GatewayLine, GatewayLink, GatewayObserver, config};
use tokio::sync::watch;

use crate::GatewayError;
use crate::connection_slots::ConnectionSlots;
use crate::error::ApiError;
use crate::figures::Figures;
use crate::instruments::Followers;
use crate::keys::ApiKeys;
use crate::limits::Limits;
use crate::market::Market;
use crate::orders::Orders;
use crate::stream_counts::StreamCounts;
use crate::symbols::Symbols;
pub(crate) use crate::time_unit::now_us;

/// See the [module](self).
pub(crate) struct State {
    pub(crate) symbols: Symbols,
    pub(crate) keys: ApiKeys,
    pub(crate) limits: Limits,
    pub(crate) market: Market,
    pub(crate) orders: Orders,
    pub(crate) instruments: Arc<Followers>,
    /// `None` where the network is as it is.
    pub(crate) conditions: Option<Arc<NetworkConditions>>,
    /// The lines of connections with latency.
    pub(crate) lines: DelayLines,
    pub(crate) slots: Arc<ConnectionSlots>,
    /// The address whose `X-Forwarded-For` is read.
    pub(crate) proxy: Option<IpAddr>,
    pub(crate) stream_counts: StreamCounts,
    pub(crate) figures: Figures,
    pub(crate) observer: GatewayObserver,
    pub(crate) exchange: ExchangeHandle,
    /// Bytes of the log between two checkpoints at least.
    pub(crate) checkpoint_bytes: u64,
    draining: watch::Sender<bool>,
    /// How many WebSockets are open.
    websockets: watch::Sender<usize>,
}

/// A WebSocket that is open, until it is dropped.
pub(crate) struct OpenWebSocket(Arc<State>);

impl Drop for OpenWebSocket {
    fn drop(&mut self) {
        self.0.websockets.send_modify(|count| *count -= 1);
    }
}

impl State {
    /// Reads symbols, keys and the log.
    pub(crate) fn open(
        config: &config::Gateway,
        directory: &Path,
        link: &GatewayLink,
    ) -> Result<Self, GatewayError> {
        let or = |path: &Option<_>, name| path.clone().unwrap_or_else(|| directory.join(name));
        let symbols = Symbols::read(&or(&config.symbols, "symbols.toml"))?;
        symbols.limit_open_orders(link.open_orders_max);
        let keys = ApiKeys::read(&or(&config.keys, "api-keys.toml"))?;
        let proxy = config.proxy.map(|proxy| proxy.to_canonical());
        let orders = Orders::open(config, &directory.join("gateway"), link)?;
        Ok(Self {
            symbols,
            keys,
            limits: Limits::new(config),
            market: Market::new(),
            orders,
            instruments: Arc::new(Followers::new(config.instruments)),
            conditions: link.conditions.clone(),
            lines: DelayLines::default(),
            slots: ConnectionSlots::new(config.connections_max, proxy),
            proxy,
            stream_counts: StreamCounts::default(),
            figures: Figures::new(config.access_log),
            observer: link.observer.clone(),
            exchange: link.exchange.clone(),
            checkpoint_bytes: config.checkpoint_bytes,
            draining: watch::Sender::new(false),
            websockets: watch::Sender::new(0),
        })
    }

    /// Has connections end in order.
    pub(crate) fn drain(&self) {
        self.draining.send_replace(true);
        self.lines.flush();
    }

    /// Returns a receiver of whether the gateway is about to stop.
    pub(crate) fn draining(&self) -> watch::Receiver<bool> {
        self.draining.subscribe()
    }

    /// Counts a WebSocket.
    pub(crate) fn open_websocket(self: &Arc<Self>) -> OpenWebSocket {
        self.websockets.send_modify(|count| *count += 1);
        OpenWebSocket(Arc::clone(self))
    }

    /// Returns how many WebSockets are open.
    pub(crate) fn websockets(&self) -> usize {
        *self.websockets.borrow()
    }

    /// Writes a line to the audit log where an error says that a client is not who it claims to
    /// be. A key that is not known is left out: it may be a secret that was put there by mistake.
    pub(crate) fn audit_refused(&self, address: IpAddr, api_key: Option<&str>, error: &ApiError) {
        let is_refused = [
            ApiError::SIGNATURE,
            ApiError::BAD_KEY,
            ApiError::REJECTED_KEY,
        ];
        if is_refused.contains(error) {
            let known = api_key.filter(|key| self.keys.find(key).is_some());
            self.observer.audit_refused(GatewayLine {
                event: "log-on refused",
                address: Some(address),
                key: known.map(str::to_owned),
                result: format!("{} {}", error.code, error.msg),
            });
        }
    }

    /// Writes a line about the file of keys to the audit log.
    pub(crate) fn audit_keys(&self, event: &'static str, result: String) {
        self.observer.audit(GatewayLine {
            event,
            address: None,
            key: None,
            result,
        });
    }

    /// Waits until no WebSocket is open, and no connection with latency.
    pub(crate) async fn drained(&self) {
        // The sender is there as long as this.
        let _ = self
            .websockets
            .subscribe()
            .wait_for(|count| *count == 0)
            .await;
        self.lines.ended().await;
    }
}
