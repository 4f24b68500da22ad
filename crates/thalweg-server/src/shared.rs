//! What all connections of a server have in common.

use std::sync::atomic::{AtomicI64, AtomicU64};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use thalweg::state::StateCell;
use thalweg_exchange::durable::Reports;

use crate::access::Access;
use crate::config::Config;
use crate::execution::ExecutionTimes;
use crate::feed::Feed;
use crate::figures::Figures;
use crate::keys::Keys;
use crate::outbox::Budget;
use crate::rate::{Buckets, LogLimit};
use crate::remembered::{self, TooManySessions};
use crate::roster::Roster;
use crate::seats::Seats;
use crate::stage::Stage;
use crate::turns::Turns;

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) config: Config,
    pub(crate) roster: Arc<Roster>,
    pub(crate) figures: Arc<Figures>,
    pub(crate) execution: Arc<ExecutionTimes>,
    pub(crate) feed: Arc<Feed>,
    pub(crate) stage: Arc<StateCell<Stage>>,
    pub(crate) reports: Arc<OnceLock<Reports>>,
    /// `None` where no keys are needed.
    keys: RwLock<Option<Arc<Keys>>>,
    pub(crate) access: Access,
    /// The number of the journal, once the exchange is open.
    pub(crate) exchange: OnceLock<u64>,
    /// A time that an administrator has set, for the clock to go on from; else `i64::MIN`.
    pub(crate) time_set: Arc<AtomicI64>,
    /// The number of the first command that was not published.
    pub(crate) next_command: Arc<AtomicU64>,
    pub(crate) seats: Arc<Seats>,
    pub(crate) buckets: Buckets,
    /// What waits for all clients together.
    pub(crate) budget: Arc<Budget>,
    /// For lines about connections whose hello was right, and was not.
    pub(crate) log_welcomed: LogLimit,
    pub(crate) log_refused: LogLimit,
    pub(crate) turns: Arc<Turns>,
}

impl Shared {
    pub(crate) fn new(config: Config, keys: Option<Keys>, feed: Arc<Feed>) -> Self {
        let roster = Arc::<Roster>::default();
        let stage = Arc::new(StateCell::new("exchange", Stage::Recovering));
        let buckets = Buckets::new(&config.sessions);
        let budget = Budget::new(config.sessions.out_bytes_total);
        let readers = config.sessions.readers_per_holder as usize;
        let seats = Seats::new(config.server.connections_max, readers);
        Self {
            config,
            access: Access::new(Arc::clone(&stage), Arc::clone(&roster)),
            roster,
            figures: Arc::default(),
            execution: Arc::default(),
            feed,
            stage,
            reports: Arc::default(),
            keys: RwLock::new(keys.map(Arc::new)),
            exchange: OnceLock::new(),
            time_set: Arc::new(AtomicI64::new(i64::MIN)),
            next_command: Arc::default(),
            seats: Arc::new(seats),
            buckets,
            budget: Arc::new(budget),
            log_welcomed: LogLimit::new(100, 1_000),
            log_refused: LogLimit::new(5, 50),
            turns: Arc::default(),
        }
    }

    pub(crate) fn keys(&self) -> Option<Arc<Keys>> {
        let keys = self.keys.read().unwrap_or_else(PoisonError::into_inner);
        keys.clone()
    }

    /// Other keys from now on; gives how many connections end by that.
    pub(crate) fn change_keys(&self, keys: Keys) -> usize {
        let keys = Arc::new(keys);
        {
            let mut place = self.keys.write().unwrap_or_else(PoisonError::into_inner);
            *place = Some(Arc::clone(&keys));
        }
        // After that: who enters from now on looks at the new ones.
        self.roster.withdraw(&keys)
    }

    /// Whether the exchange, which is open, has room for all sessions that these keys may open.
    pub(crate) fn check_sessions(&self, keys: &Keys) -> Result<(), TooManySessions> {
        let remembered = self.reports.get().map(Reports::sessions);
        remembered::check(keys, &self.config.sessions, &remembered.unwrap_or_default())
    }

    /// Returns how many connections are open.
    pub(crate) fn connections(&self) -> usize {
        self.seats.taken()
    }
}
