//! The state that all connections of a server share.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::time::Instant;

use subtle::ConstantTimeEq;
use thalweg_exchange::durable::Reports;
use thalweg_exchange::session::SessionKey;

use crate::conditions::{DelayLine, DelayLines, NetworkConditions, RELAYED_FILES};
use crate::config::Config;
use crate::connect_limits::ConnectLimits;
use crate::connection_slots::ConnectionSlots;
use crate::counters::Counters;
use crate::execution_times::ExecutionTimes;
use crate::feed::Feed;
use crate::flow::FlowCounts;
use crate::gateway_observer::GatewayRows;
use crate::keys::{self, KeyHash, Keys};
use crate::lifecycle::LifecycleCell;
use crate::lock;
use crate::open_order_queries::OpenOrderQueries;
use crate::order_notes::OrderNotes;
use crate::replication::ReplicaFigures;
use crate::request::{Request, Requests};
use crate::session_capacity::{self, TooManySessions};
use crate::sessions::ReportReaders;
use crate::token_bucket::LogLimit;

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) config: Config,
    pub(crate) counters: Arc<Counters>,
    pub(crate) execution: Arc<ExecutionTimes>,
    pub(crate) report_readers: Arc<ReportReaders>,
    pub(crate) feed: Arc<Feed>,
    /// Set where a market trades beside the sessions.
    pub(crate) flow: OnceLock<Arc<FlowCounts>>,
    pub(crate) gateway_rows: Arc<GatewayRows>,
    /// The notes of a gateway in this process, where this is a replica.
    pub(crate) order_notes: OrderNotes,
    pub(crate) open_order_queries: OpenOrderQueries,
    pub(crate) lifecycle: Arc<LifecycleCell>,
    /// Whether the listeners are open: a replica that leads is ready then.
    is_listening: AtomicBool,
    /// The figures of a replica.
    replica: Mutex<Option<ReplicaFigures>>,
    /// Once the exchange is open.
    pub(crate) reports: OnceLock<Reports>,
    /// `None` where no keys are needed.
    keys: RwLock<Option<Arc<Keys>>>,
    /// The key by which a gateway in this process opens sessions, where there is one.
    gateway: Option<(String, KeyHash)>,
    pub(crate) requests: Requests,
    /// `None` where the network is as it is.
    pub(crate) conditions: Option<Arc<NetworkConditions>>,
    /// The lines of sessions with latency.
    pub(crate) lines: DelayLines,
    /// A time that an administrator has set, for the clock to go on from; else `i64::MIN`.
    pub(crate) time_set: Arc<AtomicI64>,
    pub(crate) connection_slots: Arc<ConnectionSlots>,
    pub(crate) connect_limits: ConnectLimits,
    /// For lines about connections whose hello was right, and was not.
    pub(crate) log_welcomed: LogLimit,
    pub(crate) log_refused: LogLimit,
}

impl Shared {
    pub(crate) fn new(
        config: Config,
        keys: Option<Keys>,
        gateway: Option<String>,
        feed: Arc<Feed>,
        conditions: Option<Arc<NetworkConditions>>,
    ) -> Self {
        let gateway = gateway.map(|key| (keys::hash(key.as_bytes()), key));
        let gateway = gateway.map(|(hash, key)| (key, hash));
        let hash = gateway.as_ref().map(|(_, hash)| *hash);
        let keys = keys.map(|keys| keys.with_gateway(hash));
        let lifecycle = Arc::new(LifecycleCell::new());
        let readers = config.sessions.readers_per_holder as usize;
        let has_latency = conditions.as_ref().is_some_and(|all| all.has_latency());
        let files_each = if has_latency { RELAYED_FILES } else { 1 };
        let slots = ConnectionSlots::new(config.server.connections_max, readers, files_each);
        let connect_limits = ConnectLimits::new(&config, Instant::now());
        Self {
            config,
            counters: Arc::default(),
            execution: Arc::default(),
            report_readers: Arc::default(),
            feed,
            flow: OnceLock::new(),
            gateway_rows: Arc::default(),
            order_notes: OrderNotes::default(),
            open_order_queries: OpenOrderQueries::default(),
            lifecycle,
            is_listening: AtomicBool::default(),
            replica: Mutex::default(),
            reports: OnceLock::new(),
            keys: RwLock::new(keys.map(Arc::new)),
            gateway,
            requests: Requests::default(),
            conditions,
            lines: DelayLines::default(),
            time_set: Arc::new(AtomicI64::new(i64::MIN)),
            connection_slots: Arc::new(slots),
            connect_limits,
            log_welcomed: LogLimit::new(100, 1_000),
            log_refused: LogLimit::new(5, 50),
        }
    }

    /// Notes that the listeners are open, and wakes the exchange's thread, which may wait for that.
    pub(crate) fn note_listening(&self) {
        // ORDERING: Relaxed, pairs with the load in is_listening(); a flag alone.
        self.is_listening.store(true, Ordering::Relaxed);
        self.requests.wake();
    }

    pub(crate) fn is_listening(&self) -> bool {
        // ORDERING: Relaxed, pairs with the store in note_listening(); a flag alone.
        self.is_listening.load(Ordering::Relaxed)
    }

    /// Notes the figures of a replica.
    pub(crate) fn note_replica(&self, figures: ReplicaFigures) {
        *lock(&self.replica) = Some(figures);
    }

    /// Returns the figures of a replica, as they were noted last, and whether its thread hangs: it
    /// may not be the primary any more then.
    pub(crate) fn replica(&self, now: Instant) -> Option<(ReplicaFigures, bool)> {
        let replica = lock(&self.replica);
        let mut figures = replica.clone()?;
        let is_hung = figures.is_hung(now);
        figures.stats.leads &= !is_hung;
        Some((figures, is_hung))
    }

    /// Returns the network's conditions for a session, where there are some.
    pub(crate) fn conditions_of(&self, key: SessionKey) -> Option<&NetworkConditions> {
        let conditions = self.conditions.as_deref()?;
        let per_holder = self.config.sessions.per_holder;
        NetworkConditions::concerns(key, per_holder).then_some(conditions)
    }

    /// Returns a line for a session that has latency.
    pub(crate) fn line(&self, key: SessionKey) -> Option<Arc<DelayLine>> {
        let conditions = self.conditions_of(key)?;
        let delays = conditions.delays(None, key.holder)?;
        let line = self.lines.line(delays, conditions.seed);
        line.trust();
        Some(line)
    }

    pub(crate) fn keys(&self) -> Option<Arc<Keys>> {
        let keys = self.keys.read().unwrap_or_else(PoisonError::into_inner);
        keys.clone()
    }

    /// Returns the key of the gateway in this process.
    pub(crate) fn gateway_key(&self) -> Option<&str> {
        self.gateway.as_ref().map(|(key, _)| &**key)
    }

    /// Returns the hash of a key if it is that of the gateway.
    pub(crate) fn gateway_hash(&self, key: &[u8]) -> Option<KeyHash> {
        let hash = keys::hash(key);
        let (_, own) = self.gateway.as_ref()?;
        bool::from(own.ct_eq(&hash)).then_some(hash)
    }

    /// Has other keys count from now on; connections whose keys are gone end.
    pub(crate) fn change_keys(&self, keys: Keys) {
        let hash = self.gateway.as_ref().map(|(_, hash)| *hash);
        let keys = Arc::new(keys.with_gateway(hash));
        let mut current = self.keys.write().unwrap_or_else(PoisonError::into_inner);
        *current = Some(Arc::clone(&keys));
        drop(current);
        // After that: a session that enters from now on is checked against the new ones.
        self.requests.send(Request::Keys(keys));
    }

    /// Checks that the exchange, which is open, has room for all sessions that these keys may open.
    pub(crate) fn check_sessions(&self, keys: &Keys) -> Result<(), TooManySessions> {
        let remembered = self.reports.get().map(Reports::sessions);
        session_capacity::check(keys, &self.config.sessions, &remembered.unwrap_or_default())
    }
}
