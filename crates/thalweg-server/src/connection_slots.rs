//! Which connections may be open at once.
//!
//! - *The system's limit* of open files bounds all together: some are left for the journal and the
//!   metrics, and some connections for administrators, so that clients without a key cannot stop
//!   the exchange or lock them out.
//! - *Without a hello*: where a listener is full, the oldest connection that has sent none gives
//!   its slot to the new one.
//! - *Readers* have three quarters of the trade listener's slots at most, and one holder of a read
//!   key has [`sessions.readers_per_holder`](crate::config::Sessions); the rest is for trade
//!   sessions.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};

use thalweg_exchange::session::{Role, SessionKey};
use tokio::sync::Notify;

use crate::lock;

/// Files that are left for the journal, snapshots, the audit file, and the system's own.
const FILES_KEPT: u64 = 64;
/// The text to a connection whose slot was given to another.
pub(crate) const EVICTED: &str = "others came before its hello";
/// Connections of the metrics listener.
pub(crate) const HTTP_MAX: usize = 32;

/// A listener, by the roles that it serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListenerKind {
    /// Trade and read.
    Trade,
    /// Admin.
    Admin,
}

impl ListenerKind {
    pub(crate) fn serves(self, role: Role) -> bool {
        (self == Self::Admin) == (role == Role::Admin)
    }
}

#[derive(Debug, Default)]
struct Inner {
    taken: [usize; 2],
    readers: usize,
    by_reader: HashMap<i64, usize>,
    /// Connections that have sent no hello, in the order of their ids.
    silent: [BTreeMap<u64, Arc<Notify>>; 2],
    next_id: u64,
}

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct ConnectionSlots {
    /// At each listener.
    max: [usize; 2],
    readers_per_holder: usize,
    inner: Mutex<Inner>,
}

/// The right to keep a connection open, given back when it is dropped.
#[derive(Debug)]
pub(crate) struct ConnectionSlot {
    slots: Arc<ConnectionSlots>,
    pub(crate) listener: ListenerKind,
    /// Connections are numbered as they are taken.
    pub(crate) id: u64,
    /// Notified when the slot is given to another connection before the hello.
    evicted: Arc<Notify>,
    reader: Option<i64>,
}

/// Returns how many connections a listener may have, of this number that may be open by the
/// configuration, with this many files of the process, and of each connection.
fn limits(connections_max: usize, files: Option<u64>, files_each: u64) -> [usize; 2] {
    let Some(files) = files else {
        return [connections_max; 2];
    };
    let left = files.saturating_sub(FILES_KEPT + HTTP_MAX as u64);
    let left = usize::try_from(left / files_each).unwrap_or(usize::MAX);
    let of_admin = (left / 8).clamp(1, connections_max);
    let of_trade = left.saturating_sub(of_admin).clamp(1, connections_max);
    [of_trade, of_admin]
}

/// Raises the number of files that the process may have open as far as it may, and returns it.
fn open_files_max() -> Option<u64> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    match setrlimit(Resource::Nofile, raised) {
        Ok(()) => limit.maximum,
        Err(_) => limit.current,
    }
}

impl ConnectionSlots {
    /// Makes the slots, for the files that the process may have open: that limit is raised first.
    pub(crate) fn new(connections_max: usize, readers_per_holder: usize, files_each: u64) -> Self {
        let files = open_files_max();
        Self::with_files(connections_max, readers_per_holder, (files, files_each))
    }

    fn with_files(
        connections_max: usize,
        readers_per_holder: usize,
        (files, files_each): (Option<u64>, u64),
    ) -> Self {
        let max = limits(connections_max, files, files_each);
        if max[ListenerKind::Trade as usize] < connections_max {
            tracing::warn!(
                configured = connections_max,
                trade = max[ListenerKind::Trade as usize],
                admin = max[ListenerKind::Admin as usize],
                open_files = files,
                "fewer connections are served: the limit of open files (ulimit -n) is low"
            );
        }
        Self {
            max,
            readers_per_holder,
            inner: Mutex::default(),
        }
    }

    /// Returns how many connections a listener may have.
    pub(crate) const fn max(&self, listener: ListenerKind) -> usize {
        self.max[listener as usize]
    }

    /// Returns how many connections are open.
    pub(crate) fn taken(&self) -> usize {
        lock(&self.inner).taken.iter().sum()
    }

    /// Takes a slot of a listener: a free one, or that of the oldest connection without a hello.
    pub(crate) fn take(self: &Arc<Self>, listener: ListenerKind) -> Option<ConnectionSlot> {
        let mut inner = lock(&self.inner);
        let at = listener as usize;
        if inner.taken[at] >= self.max[at] {
            let (_, evicted) = inner.silent[at].pop_first()?;
            evicted.notify_one();
        }
        inner.taken[at] += 1;
        inner.next_id += 1;
        let id = inner.next_id;
        let evicted = Arc::new(Notify::new());
        inner.silent[at].insert(id, Arc::clone(&evicted));
        drop(inner);
        Some(ConnectionSlot {
            slots: Arc::clone(self),
            listener,
            id,
            evicted,
            reader: None,
        })
    }
}

impl ConnectionSlot {
    /// Waits until the slot belongs to another connection, since its own has sent no hello.
    pub(crate) async fn evicted(&self) {
        self.evicted.notified().await;
    }

    /// Keeps the slot for a session whose hello was right.
    ///
    /// # Errors
    /// Which limit of readers is reached, or that the slot was given away.
    pub(crate) fn keep(&mut self, key: SessionKey) -> Result<(), String> {
        let slots = Arc::clone(&self.slots);
        let mut inner = lock(&slots.inner);
        let silent = &mut inner.silent[self.listener as usize];
        silent.remove(&self.id).ok_or(EVICTED)?;
        if key.role != Role::Read {
            return Ok(());
        }
        let max = (slots.max(ListenerKind::Trade) * 3 / 4).max(1);
        if inner.readers >= max {
            return Err(format!("{max} that read are served"));
        }
        let of_holder = inner.by_reader.entry(key.holder).or_default();
        if *of_holder >= slots.readers_per_holder {
            let max = slots.readers_per_holder;
            return Err(format!("{max} that read for one holder are served"));
        }
        *of_holder += 1;
        inner.readers += 1;
        self.reader = Some(key.holder);
        Ok(())
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        let mut inner = lock(&self.slots.inner);
        let at = self.listener as usize;
        inner.taken[at] -= 1;
        inner.silent[at].remove(&self.id);
        if let Some(holder) = self.reader {
            inner.readers -= 1;
            if let Some(of_holder) = inner.by_reader.get_mut(&holder) {
                *of_holder -= 1;
                if *of_holder == 0 {
                    inner.by_reader.remove(&holder);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slots(connections_max: usize, readers_per_holder: usize) -> Arc<ConnectionSlots> {
        Arc::new(ConnectionSlots::with_files(
            connections_max,
            readers_per_holder,
            (None, 1),
        ))
    }

    fn key(role: Role, holder: i64) -> SessionKey {
        SessionKey::new(role, holder, 0)
    }

    #[test]
    fn files_are_left_for_the_journal_and_slots_for_administrators() {
        assert_eq!(limits(8192, None, 3), [8192, 8192]);
        assert_eq!(limits(8192, Some(1 << 20), 1), [8192, 8192]);
        let kept = FILES_KEPT + HTTP_MAX as u64;
        for (files, each) in [0, 90, 97, 200, 1024, 4096]
            .into_iter()
            .flat_map(|files| [(files, 1), (files, 3)])
        {
            let [trade, admin] = limits(8192, Some(files), each);
            let all = (trade + admin) as u64 * each + kept;
            assert!(all <= files.max(kept + 2 * each), "{files}, {each}");
            assert!(trade >= 1 && admin >= 1, "{files}, {each}");
        }
        assert_eq!(limits(10, Some(1024), 1), [10, 10]);
    }

    #[tokio::test]
    async fn the_oldest_without_a_hello_gives_its_slot() {
        let slots = slots(3, 9);
        let take = || slots.take(ListenerKind::Trade);
        let [mut first, second, third] = [take(), take(), take()].map(|slot| slot.expect("free"));
        first.keep(key(Role::Trade, 1)).expect("no reader");
        let fourth = take().expect("that of the second");
        second.evicted().await;
        // A hello that is read now comes too late.
        let mut second = second;
        let kept = second.keep(key(Role::Trade, 1));
        assert_eq!(kept.err().as_deref(), Some(EVICTED));
        // The next one is the third's, though the second is not gone yet.
        let fifth = take().expect("that of the third");
        third.evicted().await;
        drop((second, third));
        assert_eq!(slots.taken(), 3);
        let mut others = [fourth, fifth];
        for slot in &mut others {
            slot.keep(key(Role::Trade, 2)).expect("no reader");
        }
        assert!(take().is_none());
        // The other listener has its own.
        assert!(slots.take(ListenerKind::Admin).is_some());
        drop(others);
        assert!(take().is_some());
    }

    #[test]
    fn readers_leave_slots_to_trade_sessions() {
        let slots = slots(8, 4);
        let take = || slots.take(ListenerKind::Trade).expect("free");
        let reader = |holder| {
            let mut slot = take();
            slot.keep(key(Role::Read, holder)).map(|()| slot)
        };
        let of_one: Vec<ConnectionSlot> = (0..4).map(|_| reader(1).expect("four of one")).collect();
        assert_eq!(
            reader(1).err().as_deref(),
            Some("4 that read for one holder are served")
        );
        let others = [reader(2), reader(3)].map(|slot| slot.expect("six in all"));
        assert_eq!(reader(4).err().as_deref(), Some("6 that read are served"));
        let mut trades = [take(), take()];
        for slot in &mut trades {
            slot.keep(key(Role::Trade, 1))
                .expect("two slots are theirs");
        }
        drop((of_one, others));
        assert!(reader(1).is_ok());
        assert_eq!(slots.taken(), 2);
        assert!(lock(&slots.inner).by_reader.is_empty());
    }
}
