//! The slots of connections: a number of them in all, half of it for one address, an eighth for one
//! user.
//!
//! *Rules.*
//! 1. Where no slot is left for an address, or at all, one that waits for its next request goes:
//!    first those that have not shown a key, of these the one that waits longest. A request that is
//!    read still, and a connection without one yet, wait too. A connection whose response is being
//!    written is at work where it has shown a key; where it has not, it goes before those that wait
//!    and have, for a client may take a response as slowly as it likes.
//! 2. A WebSocket does not wait. Where nothing else does, the oldest that has shown no key goes, of
//!    the address that has most of these, if that has more slots than the new connection's would.
//! 3. Where all are at work, the new connection is refused.
//! 4. Once a request of a connection was signed, it is its user's: until it becomes a WebSocket,
//!    and one of a proxy until its next request, which may be another client's. Beyond an eighth of
//!    the slots, one of the user's own goes: first those that wait, then the oldest.
//! 5. WebSockets that have shown no key of their user that trades have three quarters of the slots.
//!    Beyond that, the oldest goes of the holder that has most of these: an address without a key,
//!    or the user of a key that reads. If that has no more than the new one's would, the new one is
//!    a guest, which goes as if it waited, unless it shows a key that trades.
//! 6. An address is that of the peer until a request says which client a proxy stands for; from
//!    then on its connection counts for that one.
//!
//! *Cost.* Each change takes time in the logarithm of the slots, whatever the others do.

use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use thalweg_exchange::UserId;
use thalweg_server::network;
use tokio::sync::watch;

use crate::keys::ApiKey;
use crate::lock;

/// The use of a slot, in the order in which they go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Use {
    Waiting,
    /// The response to a request without a key is being written.
    Writing,
    WaitingWithKey,
    /// A WebSocket that has shown no key.
    Following,
    /// A WebSocket that has shown keys that read only.
    Reading,
    Working,
}

/// The stage of a connection by HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// It has no request, or one that is read still.
    Waiting,
    Working,
    /// Its response is being written.
    Writing,
}

/// A use, the count at which it began, and the id of the slot.
type Rank = (Use, u64, u64);

#[derive(Debug)]
struct Taken {
    address: IpAddr,
    /// Whether the peer is the proxy: the next request may be another client's.
    is_shared: bool,
    /// The user of the last signed request.
    user: Option<UserId>,
    /// Whether a key of the user that trades was shown.
    is_trader: bool,
    stage: Stage,
    is_websocket: bool,
    /// Whether there was no place for the WebSocket among those that stay.
    is_guest: bool,
    /// When it was taken, or began to write or to wait: a count.
    since: u64,
    /// Dropped with the slot: all that wait for that are notified.
    _taken: watch::Sender<()>,
}

impl Taken {
    fn is(&self) -> Use {
        let stays = self.is_websocket && !self.is_guest;
        match (self.user, self.stage) {
            (Some(_), _) if self.is_websocket && self.is_trader => Use::Working,
            (Some(_), _) if stays => Use::Reading,
            (None, _) if stays => Use::Following,
            (_, Stage::Working) | (Some(_), Stage::Writing) => Use::Working,
            (Some(_), Stage::Waiting) => Use::WaitingWithKey,
            (None, Stage::Writing) => Use::Writing,
            (None, Stage::Waiting) => Use::Waiting,
        }
    }

    fn show(&mut self, key: &ApiKey) {
        let was_trader = self.is_trader && self.user == Some(key.user);
        (self.user, self.is_trader) = (Some(key.user), was_trader || key.may_trade);
    }

    fn forget_key(&mut self) {
        (self.user, self.is_trader) = (None, false);
    }
}

/// ConnectionSlots by holder.
#[derive(Debug)]
struct Held<K> {
    slots: HashMap<K, BTreeSet<Rank>>,
    /// The holders by how many they have.
    counts: BTreeSet<(usize, K)>,
    total: usize,
}

impl<K> Default for Held<K> {
    fn default() -> Self {
        Self {
            slots: HashMap::new(),
            counts: BTreeSet::new(),
            total: 0,
        }
    }
}

impl<K: Copy + Ord + Hash> Held<K> {
    /// Adds a slot of a holder, or removes it.
    fn put(&mut self, holder: K, rank: Rank, is_there: bool) {
        let slots = self.slots.entry(holder).or_default();
        self.counts.remove(&(slots.len(), holder));
        match is_there {
            true => self.total += usize::from(slots.insert(rank)),
            false => self.total -= usize::from(slots.remove(&rank)),
        }
        match slots.len() {
            0 => drop(self.slots.remove(&holder)),
            count => drop(self.counts.insert((count, holder))),
        }
    }

    fn count(&self, holder: K) -> usize {
        self.slots.get(&holder).map_or(0, BTreeSet::len)
    }

    /// Returns the slots of a holder, in the order in which they go.
    fn of(&self, holder: K) -> impl Iterator<Item = Rank> + '_ {
        self.slots.get(&holder).into_iter().flatten().copied()
    }

    /// Returns how many the holder with most has, and which of them goes first.
    fn most(&self) -> Option<(usize, Rank)> {
        let (count, holder) = self.counts.last()?;
        Some((*count, self.of(*holder).next()?))
    }
}

#[derive(Debug, Default)]
struct Plan {
    taken: HashMap<u64, Taken>,
    /// All, in the order in which they go.
    order: BTreeSet<Rank>,
    by_address: Held<IpAddr>,
    by_user: Held<UserId>,
    /// WebSockets without a key.
    followers: Held<IpAddr>,
    /// WebSockets with keys that read only.
    readers: Held<UserId>,
    next: u64,
}

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct ConnectionSlots {
    max: usize,
    /// The peer whose connections are of many clients.
    proxy: Option<IpAddr>,
    plan: Mutex<Plan>,
}

/// The slot of a connection, until it is dropped.
#[derive(Debug)]
pub(crate) struct ConnectionSlot {
    slots: Arc<ConnectionSlots>,
    id: u64,
    is_websocket: AtomicBool,
    is_taken: watch::Receiver<()>,
}

impl Plan {
    fn count(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn index(&mut self, id: u64, slot: &Taken, is_there: bool) {
        let rank = (slot.is(), slot.since, id);
        match is_there {
            true => self.order.insert(rank),
            false => self.order.remove(&rank),
        };
        self.by_address.put(slot.address, rank, is_there);
        if let Some(user) = slot.user {
            self.by_user.put(user, rank, is_there);
        }
        match (rank.0, slot.user) {
            (Use::Following, _) => self.followers.put(slot.address, rank, is_there),
            (Use::Reading, Some(user)) => self.readers.put(user, rank, is_there),
            _ => {}
        }
    }

    fn insert(&mut self, id: u64, slot: Taken) {
        self.index(id, &slot, true);
        self.taken.insert(id, slot);
    }

    fn remove(&mut self, id: u64) -> Option<Taken> {
        let slot = self.taken.remove(&id)?;
        self.index(id, &slot, false);
        Some(slot)
    }

    fn change(&mut self, id: u64, change: impl FnOnce(&mut Taken)) {
        if let Some(mut slot) = self.remove(id) {
            change(&mut slot);
            self.insert(id, slot);
        }
    }

    /// Has a connection go, if it waits.
    fn evict_waiting(&mut self, first: Option<Rank>) -> bool {
        let waiting = first.filter(|(is, ..)| *is <= Use::WaitingWithKey);
        waiting.is_some_and(|(.., id)| self.remove(id).is_some())
    }

    /// Has a WebSocket go, if its holder has more than this many.
    fn evict_of_most(&mut self, most: Option<(usize, Rank)>, own: usize) -> bool {
        let more = most.filter(|(count, _)| *count > own);
        more.is_some_and(|(_, (.., id))| self.remove(id).is_some())
    }

    /// Makes room for one more of an address. Returns whether there is some.
    fn has_room(&mut self, address: IpAddr, max: usize) -> bool {
        let first = self.by_address.of(address).next();
        self.by_address.count(address) < max.div_ceil(2) || self.evict_waiting(first)
    }

    /// Makes room for one more at all, of an address. Returns whether there is some.
    fn has_any(&mut self, address: IpAddr, max: usize) -> bool {
        let first = self.order.first().copied();
        let own = self.by_address.count(address) + 1;
        self.taken.len() < max
            || self.evict_waiting(first)
            || self.evict_of_most(self.followers.most(), own)
    }

    /// Makes room for one more WebSocket without a key. Returns whether there is some.
    fn has_follower(&mut self, address: IpAddr, max: usize) -> bool {
        let most = [self.followers.most(), self.readers.most()];
        let most = most.into_iter().flatten().max_by_key(|(count, _)| *count);
        let own = self.followers.count(address) + 1;
        self.followers.total + self.readers.total < max - max / 4 || self.evict_of_most(most, own)
    }

    /// Has the slots of a user go that are beyond its number, other than this one.
    fn limit_user(&mut self, user: UserId, own: u64, max: usize) {
        while self.by_user.count(user) > max.div_ceil(8) {
            let mut others = self.by_user.of(user).filter(|(.., id)| *id != own);
            let Some((.., id)) = others.next() else {
                return;
            };
            drop(others);
            self.remove(id);
        }
    }
}

impl ConnectionSlots {
    pub(crate) fn new(max: usize, proxy: Option<IpAddr>) -> Arc<Self> {
        Arc::new(Self {
            max,
            proxy,
            plan: Mutex::default(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Plan> {
        lock(&self.plan)
    }

    /// Returns how many are taken.
    pub(crate) fn taken(&self) -> usize {
        self.lock().taken.len()
    }

    /// Returns a slot for a connection; `None` where there is none.
    pub(crate) fn take(self: &Arc<Self>, peer: IpAddr) -> Option<ConnectionSlot> {
        let address = network(peer);
        let mut plan = self.lock();
        if !plan.has_room(address, self.max) || !plan.has_any(address, self.max) {
            return None;
        }
        let id = plan.count();
        let (sender, is_taken) = watch::channel(());
        let slot = Taken {
            address,
            is_shared: self.proxy == Some(peer.to_canonical()),
            user: None,
            is_trader: false,
            stage: Stage::Waiting,
            is_websocket: false,
            is_guest: false,
            since: id,
            _taken: sender,
        };
        plan.insert(id, slot);
        drop(plan);
        Some(ConnectionSlot {
            slots: Arc::clone(self),
            id,
            is_websocket: AtomicBool::new(false),
            is_taken,
        })
    }
}

impl ConnectionSlot {
    /// Waits until another connection has got the slot.
    pub(crate) async fn evicted(&self) {
        // An error is that the sender is gone.
        let _ = self.is_taken.clone().changed().await;
    }

    pub(crate) fn is_websocket(&self) -> bool {
        // ORDERING: Relaxed; it is set and read by the connection's own tasks.
        self.is_websocket.load(Ordering::Relaxed)
    }

    /// Has the slot count for a client's address. Returns whether that has room.
    fn belong(&self, plan: &mut Plan, client: IpAddr) -> bool {
        let address = network(client);
        let Some(before) = plan.taken.get(&self.id).map(|slot| slot.address) else {
            return false;
        };
        if before != address {
            if !plan.has_room(address, self.slots.max) {
                return false;
            }
            plan.change(self.id, |slot| slot.address = address);
        }
        true
    }

    /// A request is at work, for a client's address. Returns whether the address has a slot.
    pub(crate) fn work(&self, client: IpAddr) -> bool {
        let mut plan = self.slots.lock();
        let belongs = self.belong(&mut plan, client);
        if belongs {
            plan.change(self.id, |slot| {
                slot.stage = Stage::Working;
                if slot.is_shared {
                    slot.forget_key();
                }
            });
        }
        belongs
    }

    /// The connection becomes a WebSocket of a client's address. Returns whether the address has a
    /// slot.
    pub(crate) fn follow(&self, client: IpAddr) -> bool {
        let mut plan = self.slots.lock();
        let belongs = self.belong(&mut plan, client);
        if belongs {
            // ORDERING: Relaxed, as in is_websocket().
            self.is_websocket.store(true, Ordering::Relaxed);
            let is_guest = !plan.has_follower(network(client), self.slots.max);
            plan.change(self.id, |slot| {
                (slot.is_websocket, slot.is_guest) = (true, is_guest);
                slot.stage = Stage::Waiting;
                slot.forget_key();
            });
        }
        belongs
    }

    /// A request of a WebSocket was signed.
    pub(crate) fn show(&self, key: &ApiKey) {
        let mut plan = self.slots.lock();
        plan.change(self.id, |slot| slot.show(key));
        plan.limit_user(key.user, self.id, self.slots.max);
    }

    /// The request is answered; `key` has signed it. The next one is waited for once the response,
    /// which holds what this returns, is written.
    pub(crate) fn write(self: &Arc<Self>, key: Option<&ApiKey>) -> Writing {
        Writing {
            since: self.begin_writing(key),
            slot: Arc::clone(self),
        }
    }

    /// Returns when the writing began.
    fn begin_writing(&self, key: Option<&ApiKey>) -> u64 {
        let mut plan = self.slots.lock();
        let since = plan.count();
        plan.change(self.id, |slot| {
            (slot.since, slot.stage) = (since, Stage::Writing);
            if let Some(key) = key {
                slot.show(key);
            }
        });
        if let Some(key) = key {
            plan.limit_user(key.user, self.id, self.slots.max);
        }
        since
    }

    /// Has the connection wait, unless its next request, which it may send before, has come.
    fn end_writing(&self, begun: u64) {
        let mut plan = self.slots.lock();
        let since = plan.count();
        plan.change(self.id, |slot| {
            if (slot.since, slot.stage) == (begun, Stage::Writing) {
                (slot.since, slot.stage) = (since, Stage::Waiting);
            }
        });
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.slots.lock().remove(self.id);
    }
}

/// A response that is being written, until it is dropped.
#[derive(Debug)]
pub(crate) struct Writing {
    slot: Arc<ConnectionSlot>,
    since: u64,
}

impl Drop for Writing {
    fn drop(&mut self) {
        self.slot.end_writing(self.since);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    fn trader(user: i64) -> ApiKey {
        let mut key = ApiKey::read_only(UserId(user));
        key.may_trade = true;
        key
    }

    impl ConnectionSlot {
        fn wait(&self, key: Option<&ApiKey>) {
            self.end_writing(self.begin_writing(key));
        }
    }

    fn is_there(slot: &ConnectionSlot) -> bool {
        slot.slots.lock().taken.contains_key(&slot.id)
    }

    #[test]
    fn an_address_has_half_of_the_slots_whatever_it_does() {
        let slots = ConnectionSlots::new(8, None);
        let one = ip("10.0.0.1");
        let taken: Vec<ConnectionSlot> = (0..4).map(|_| slots.take(one).expect("room")).collect();
        assert!(taken.iter().all(|slot| slot.work(one)));
        assert!(slots.take(one).is_none());
        let others = [2, 3].map(|host| ip(&format!("10.0.0.{host}")));
        let others = others.map(|other| slots.take(other).expect("room"));
        taken[2].wait(None);
        let next = slots.take(one).expect("one waits");
        let left: Vec<bool> = taken.iter().map(is_there).collect();
        assert_eq!(left, [true, true, false, true]);
        assert!(is_there(&next) && others.iter().all(is_there));
        // A whole network of IPv6 is one address.
        let near = |host: u16| slots.take(ip(&format!("2001:db8::{host:x}")));
        let near: Vec<Option<ConnectionSlot>> = (1..=6).map(near).collect();
        assert!(near.iter().all(Option::is_some));
        let left = near.iter().flatten().filter(|slot| is_there(slot)).count();
        assert_eq!(left, 4, "a fifth takes the place of the first");
    }

    #[test]
    fn those_that_wait_longest_without_a_key_go_first_and_those_at_work_never() {
        let slots = ConnectionSlots::new(4, None);
        let address = |host: u8| ip(&format!("10.0.0.{host}"));
        let taken = [0, 1, 2, 3].map(|host| {
            let slot = slots.take(address(host)).expect("room");
            assert!(slot.work(address(host)));
            slot
        });
        assert!(slots.take(address(9)).is_none());
        taken[0].wait(Some(&ApiKey::read_only(UserId(1))));
        taken[2].wait(None);
        taken[1].wait(None);
        let left = || -> Vec<bool> { taken.iter().map(is_there).collect() };
        let second = slots.take(address(8)).expect("one waits");
        assert_eq!(left(), [true, true, false, true]);
        let third = slots.take(address(9)).expect("one waits");
        assert_eq!(left(), [true, false, false, true]);
        assert!(second.work(address(8)) && third.work(address(9)));
        let fourth = slots.take(address(7)).expect("one waits");
        assert_eq!(left(), [false, false, false, true]);
        assert!(fourth.work(address(7)) && !taken[0].work(address(0)));
        assert!(slots.take(address(6)).is_none());
        drop((second, third, fourth, taken));
        assert!(slots.lock().taken.is_empty() && slots.lock().by_address.slots.is_empty());
    }

    #[test]
    fn a_connection_waits_once_its_response_is_written_and_one_with_a_key_does_not_go_before() {
        let slots = ConnectionSlots::new(4, None);
        let address = |host: u8| ip(&format!("10.0.0.{host}"));
        let work = |host: u8| {
            let slot = Arc::new(slots.take(address(host))?);
            assert!(slot.work(address(host)));
            Some(slot)
        };
        let taken = [0, 1, 2, 3].map(|host| work(host).expect("room"));
        let signed = taken[0].write(Some(&ApiKey::read_only(UserId(1))));
        let unsigned = taken[1].write(None);
        taken[2].wait(Some(&ApiKey::read_only(UserId(2))));
        taken[3].wait(None);
        let left = || taken.each_ref().map(|slot| is_there(slot));
        let _first = work(4).expect("one waits");
        assert_eq!(left(), [true, true, true, false]);
        let _second = work(5).expect("one without a key is written to");
        assert_eq!(left(), [true, false, true, false]);
        let _third = work(6).expect("one waits");
        assert_eq!(left(), [true, false, false, false]);
        assert!(work(7).is_none());
        // A request that came before the response was written is at work.
        assert!(taken[0].work(address(0)));
        drop((signed, unsigned));
        assert!(work(7).is_none());
        let older = taken[0].write(None);
        let newer = taken[0].write(Some(&trader(1)));
        drop(older);
        assert!(work(7).is_none());
        drop(newer);
        assert!(work(7).is_some());
        assert_eq!(left(), [false; 4]);
    }

    #[test]
    fn a_websocket_without_a_key_goes_for_an_address_with_fewer_slots() {
        let slots = ConnectionSlots::new(12, None);
        let [one, two, three] = [1, 2, 3].map(|host| ip(&format!("10.0.0.{host}")));
        let working: Vec<ConnectionSlot> = (4..8)
            .map(|host| ip(&format!("10.0.0.{host}")))
            .map(|address| {
                let slot = slots.take(address).expect("room");
                assert!(slot.work(address));
                slot
            })
            .collect();
        let taken = [one, two].map(|address| {
            let four = [(); 4].map(|()| slots.take(address).expect("room"));
            assert!(four.iter().all(|slot| slot.follow(address)));
            four
        });
        // One has shown a key.
        taken[0][0].show(&trader(1));
        let left = || taken.each_ref().map(|four| four.each_ref().map(is_there));
        let next = slots.take(three).expect("a follower goes");
        assert_eq!(left(), [[true; 4], [false, true, true, true]]);
        assert!(next.work(three));
        let further = slots.take(three).expect("three are more than two");
        assert_eq!(
            left().as_flattened().iter().filter(|there| **there).count(),
            6
        );
        assert!(further.work(three) && is_there(&taken[0][0]));
        assert!(
            slots.take(three).is_none(),
            "three are as many as it would have"
        );
        assert!(working.iter().all(is_there));
    }

    /// Returns the slots that are there of this many WebSockets, each from the next of the
    /// addresses, with a key.
    fn websockets(
        slots: &Arc<ConnectionSlots>,
        count: usize,
        from: &[&str],
        key: Option<&ApiKey>,
    ) -> Vec<ConnectionSlot> {
        let mut all = Vec::new();
        for (_, address) in (0..count).zip(from.iter().cycle()) {
            let address = ip(address);
            let Some(slot) = slots.take(address).filter(|slot| slot.follow(address)) else {
                continue;
            };
            if let Some(key) = key {
                slot.show(key);
            }
            all.push(slot);
        }
        all.retain(is_there);
        all
    }

    #[test]
    fn one_user_has_an_eighth_of_the_slots_from_any_addresses() {
        let slots = ConnectionSlots::new(32, None);
        let reader = ApiKey::read_only(UserId(1));
        let own = websockets(&slots, 100, &["10.0.0.1", "10.0.0.2"], Some(&reader));
        assert_eq!(own.len(), 4);
        let more = websockets(&slots, 100, &["10.0.0.3"], Some(&trader(1)));
        assert_eq!(
            (more.len(), own.iter().filter(|slot| is_there(slot)).count()),
            (4, 0)
        );
        // Its requests by HTTP count as well: those that wait go before those that do not.
        let connections: Vec<ConnectionSlot> = (0..6)
            .map(|_| {
                let slot = slots.take(ip("10.0.0.4")).expect("room");
                assert!(slot.work(ip("10.0.0.4")));
                slot.wait(Some(&reader));
                slot
            })
            .collect();
        let there: Vec<bool> = connections.iter().map(is_there).collect();
        assert_eq!(there, [false, false, false, false, false, true]);
        assert_eq!(more.iter().filter(|slot| is_there(slot)).count(), 3);
        let others = websockets(&slots, 4, &["10.0.0.1"], Some(&trader(2)));
        assert_eq!(others.len(), 4);
        assert_eq!(slots.taken(), 8);
    }

    #[test]
    fn a_quarter_of_the_slots_is_for_keys_that_trade() {
        let slots = ConnectionSlots::new(16, None);
        let mut held = Vec::new();
        for user in 1..=20 {
            let reader = ApiKey::read_only(UserId(user));
            let addresses = [format!("10.0.1.{user}"), format!("10.0.2.{user}")];
            let addresses = [&*addresses[0], &addresses[1]];
            held.extend(websockets(&slots, 2, &addresses, Some(&reader)));
        }
        assert_eq!(slots.lock().readers.total, 12);
        for host in 0..16 {
            let address = format!("10.0.3.{host}");
            held.extend(websockets(&slots, 1, &[&address], None));
        }
        let stay = |plan: &Plan| plan.followers.total + plan.readers.total;
        assert_eq!(stay(&slots.lock()), 12);
        assert_eq!(slots.taken(), 16);
        // Connections that wait, and guests, leave their slots, and keys that trade keep them.
        let mut traders = Vec::new();
        for user in 1..=4 {
            let _waiting: Vec<_> = (0..20)
                .map(|host| slots.take(ip(&format!("10.0.4.{host}"))))
                .collect();
            let address = ip(&format!("10.0.5.{user}"));
            let slot = slots.take(address).expect("one waits");
            assert!(slot.follow(address));
            slot.show(&trader(100 + user));
            traders.push(slot);
        }
        assert!(traders.iter().all(is_there));
        drop((held, traders));
        let plan = slots.lock();
        assert!(plan.taken.is_empty() && plan.order.is_empty());
        assert_eq!((plan.by_address.total, plan.by_user.total), (0, 0));
        assert_eq!((plan.followers.total, plan.readers.total), (0, 0));
    }

    #[test]
    fn a_connection_of_a_proxy_counts_for_its_client() {
        let slots = ConnectionSlots::new(4, Some(ip("127.0.0.1")));
        let (proxy, client) = (ip("127.0.0.1"), ip("10.0.0.1"));
        let taken: Vec<ConnectionSlot> = (0..2).map(|_| slots.take(proxy).expect("room")).collect();
        assert!(taken.iter().all(|slot| slot.work(client)));
        let third = slots.take(proxy).expect("the proxy has none");
        assert!(!third.work(client), "its client has two");
        assert!(third.work(ip("10.0.0.2")));
        assert_eq!(slots.lock().by_address.count(proxy), 0);
    }

    #[test]
    fn a_connection_of_a_proxy_is_a_users_until_its_next_request() {
        let [proxy, first, second] = ["127.0.0.1", "10.0.0.1", "10.0.0.2"].map(ip);
        let slots = ConnectionSlots::new(4, Some(proxy));
        let slot = slots.take(proxy).expect("room");
        let users = |slots: &ConnectionSlots| slots.lock().by_user.count(UserId(1));
        // Two programs of one address, and another client, by one connection of the proxy.
        for client in [first, first, second] {
            assert!(slot.work(client));
            assert_eq!(users(&slots), 0);
            slot.wait(Some(&trader(1)));
            assert_eq!(users(&slots), 1);
        }
        assert!(slot.work(first));
        slot.wait(None);
        assert_eq!(users(&slots), 0);
        slot.wait(Some(&trader(1)));
        assert!(slot.follow(second));
        assert_eq!(
            (users(&slots), slots.lock().followers.count(second)),
            (0, 1)
        );
        // Nor has it shown a key that trades.
        slot.show(&ApiKey::read_only(UserId(2)));
        assert_eq!(slots.lock().readers.count(UserId(2)), 1);
    }

    #[test]
    fn a_connection_of_a_client_is_its_users_until_it_is_a_websocket() {
        let slots = ConnectionSlots::new(4, None);
        let client = ip("10.0.0.1");
        let slot = slots.take(client).expect("room");
        slot.wait(Some(&trader(1)));
        assert!(slot.work(client));
        slot.wait(None);
        assert_eq!(slots.lock().by_user.count(UserId(1)), 1);
        assert!(slot.follow(client));
        assert_eq!(slots.lock().followers.count(client), 1);
        // A key that trades is that of its user.
        slot.show(&trader(1));
        assert_eq!(slots.lock().readers.total, 0);
        slot.show(&ApiKey::read_only(UserId(1)));
        assert_eq!(slots.lock().readers.total, 0);
        slot.show(&ApiKey::read_only(UserId(2)));
        assert_eq!(slots.lock().readers.count(UserId(2)), 1);
    }
}
