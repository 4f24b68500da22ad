//! What all connections of a server have in common.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use thalweg::state::StateCell;
use thalweg_exchange::durable::Reports;

use crate::access::Access;
use crate::config::Config;
use crate::execution::ExecutionTimes;
use crate::feed::Feed;
use crate::figures::Figures;
use crate::greeting::Door;
use crate::keys::Keys;
use crate::rate::Buckets;
use crate::remembered::{self, TooManySessions};
use crate::roster::Roster;
use crate::stage::Stage;

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
    /// The number of the first command that was not published.
    pub(crate) next_command: Arc<AtomicU64>,
    /// At each door.
    connections: [AtomicUsize; 2],
    pub(crate) buckets: Buckets,
    next_id: AtomicU64,
}

/// A place among the connections that may be open at once; given back when dropped.
#[derive(Debug)]
pub(crate) struct Seat {
    pub(crate) shared: Arc<Shared>,
    pub(crate) door: Door,
    /// Connections are numbered as they are taken.
    pub(crate) id: u64,
}

impl Drop for Seat {
    fn drop(&mut self) {
        // ORDERING: Relaxed, pairs with seat(); a count alone.
        self.shared.connections[self.door as usize].fetch_sub(1, Ordering::Relaxed);
    }
}

impl Shared {
    pub(crate) fn new(config: Config, keys: Option<Keys>, feed: Arc<Feed>) -> Self {
        let roster = Arc::<Roster>::default();
        let stage = Arc::new(StateCell::new("exchange", Stage::Recovering));
        let buckets = Buckets::new(&config.sessions);
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
            next_command: Arc::default(),
            connections: Default::default(),
            buckets,
            next_id: AtomicU64::new(1),
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

    /// A place for a connection, if there is one at its door: who fills one door does not shut an
    /// administrator out of the other.
    pub(crate) fn seat(self: &Arc<Self>, door: Door) -> Option<Seat> {
        // ORDERING: Relaxed, pairs with Seat's drop; a count alone.
        let before = self.connections[door as usize].fetch_add(1, Ordering::Relaxed);
        let seat = Seat {
            shared: Arc::clone(self),
            door,
            id: self.next_id(),
        };
        (before < self.config.server.connections_max).then_some(seat)
    }

    pub(crate) fn connections(&self) -> usize {
        // ORDERING: Relaxed, pairs with seat().
        let at_door = |count: &AtomicUsize| count.load(Ordering::Relaxed);
        self.connections.iter().map(at_door).sum()
    }

    fn next_id(&self) -> u64 {
        // ORDERING: Relaxed, pairs with nothing; only the numbers must differ.
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }
}
