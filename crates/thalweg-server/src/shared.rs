//! The state that all connections of a server share.

use std::sync::atomic::AtomicI64;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use thalweg::state::StateCell;
use thalweg_exchange::durable::Reports;

use crate::config::Config;
use crate::execution::ExecutionTimes;
use crate::feed::Feed;
use crate::figures::Figures;
use crate::keys::Keys;
use crate::rate::LogLimit;
use crate::remembered::{self, TooManySessions};
use crate::request::{Request, Requests};
use crate::seats::Seats;
use crate::stage::Stage;

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) config: Config,
    pub(crate) figures: Arc<Figures>,
    pub(crate) execution: Arc<ExecutionTimes>,
    pub(crate) feed: Arc<Feed>,
    pub(crate) stage: Arc<StateCell<Stage>>,
    /// Once the exchange is open.
    pub(crate) reports: OnceLock<Reports>,
    /// `None` where no keys are needed.
    keys: RwLock<Option<Arc<Keys>>>,
    pub(crate) requests: Requests,
    /// A time that an administrator has set, for the clock to go on from; else `i64::MIN`.
    pub(crate) time_set: Arc<AtomicI64>,
    pub(crate) seats: Arc<Seats>,
    /// For lines about connections whose hello was right, and was not.
    pub(crate) log_welcomed: LogLimit,
    pub(crate) log_refused: LogLimit,
}

impl Shared {
    pub(crate) fn new(config: Config, keys: Option<Keys>, feed: Arc<Feed>) -> Self {
        let stage = Arc::new(StateCell::new("exchange", Stage::Recovering));
        let readers = config.sessions.readers_per_holder as usize;
        let seats = Seats::new(config.server.connections_max, readers);
        Self {
            config,
            figures: Arc::default(),
            execution: Arc::default(),
            feed,
            stage,
            reports: OnceLock::new(),
            keys: RwLock::new(keys.map(Arc::new)),
            requests: Requests::default(),
            time_set: Arc::new(AtomicI64::new(i64::MIN)),
            seats: Arc::new(seats),
            log_welcomed: LogLimit::new(100, 1_000),
            log_refused: LogLimit::new(5, 50),
        }
    }

    pub(crate) fn keys(&self) -> Option<Arc<Keys>> {
        let keys = self.keys.read().unwrap_or_else(PoisonError::into_inner);
        keys.clone()
    }

    /// Has other keys count from now on; connections whose keys are gone end.
    pub(crate) fn change_keys(&self, keys: Keys) {
        let keys = Arc::new(keys);
        let mut place = self.keys.write().unwrap_or_else(PoisonError::into_inner);
        *place = Some(Arc::clone(&keys));
        drop(place);
        // After that: who enters from now on looks at the new ones.
        self.requests.send(Request::Keys(keys));
    }

    /// Whether the exchange, which is open, has room for all sessions that these keys may open.
    pub(crate) fn check_sessions(&self, keys: &Keys) -> Result<(), TooManySessions> {
        let remembered = self.reports.get().map(Reports::sessions);
        remembered::check(keys, &self.config.sessions, &remembered.unwrap_or_default())
    }
}
