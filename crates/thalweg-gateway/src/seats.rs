//! The seats of connections: a number of them in all, and half of it for one address.
//!
//! *Rules.*
//! 1. Where no seat is left for an address, or at all, one that waits for its next request goes:
//!    first those that have not shown a key, of these the one that waits longest. A request that is
//!    read still, and a connection without one yet, wait too.
//! 2. A WebSocket does not wait. Where nothing else does, the oldest that has shown no key goes, of
//!    the address that has most of these, if that has more seats than the new connection's would.
//!    Once a request of it was signed, it is at work until it ends.
//! 3. Where all are at work, the new connection is refused.
//! 4. An address is that of the peer until a request says which client a proxy stands for; from
//!    then on its connection counts for that one.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use crate::limits::network;

/// The use of a seat, in the order in which they go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Use {
    Waiting,
    WaitingWithKey,
    /// A WebSocket that has shown no key.
    Following,
    Working,
}

#[derive(Debug)]
struct Taken {
    address: IpAddr,
    is: Use,
    /// Whether a request has been signed by a key.
    has_key: bool,
    /// When its use began: a count.
    since: u64,
    /// Dropped with the seat: all that wait for that are notified.
    _taken: watch::Sender<()>,
}

#[derive(Debug, Default)]
struct Plan {
    taken: BTreeMap<u64, Taken>,
    by_address: HashMap<IpAddr, usize>,
    next: u64,
}

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Seats {
    max: usize,
    plan: Mutex<Plan>,
}

/// The seat of a connection, until it is dropped.
#[derive(Debug)]
pub(crate) struct Seat {
    seats: Arc<Seats>,
    id: u64,
    is_taken: watch::Receiver<()>,
}

impl Plan {
    fn count(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Has the connection go that may go first, among those that are wanted.
    fn evict(&mut self, is_wanted: impl Fn(&Taken) -> bool) -> bool {
        let waiting = self.taken.iter();
        let waiting = waiting.filter(|(_, seat)| seat.is <= Use::WaitingWithKey && is_wanted(seat));
        let first = waiting.min_by_key(|(_, seat)| (seat.is, seat.since));
        let Some(id) = first.map(|(id, _)| *id) else {
            return false;
        };
        self.remove(id);
        true
    }

    /// Has the oldest WebSocket without a key go, of the address that has most of them, for one
    /// more of an address that has fewer seats.
    fn evict_follower(&mut self, newcomer: IpAddr) -> bool {
        let mut followers: BTreeMap<IpAddr, (usize, u64)> = BTreeMap::new();
        for (id, seat) in &self.taken {
            if seat.is == Use::Following {
                let (count, _) = followers.entry(seat.address).or_insert((0, *id));
                *count += 1;
            }
        }
        let own = self.by_address.get(&newcomer).copied().unwrap_or(0);
        match followers.into_values().max_by_key(|(count, _)| *count) {
            Some((count, oldest)) if count > own + 1 => {
                self.remove(oldest);
                true
            }
            _ => false,
        }
    }

    fn remove(&mut self, id: u64) {
        if let Some(seat) = self.taken.remove(&id) {
            self.leave(seat.address);
        }
    }

    fn leave(&mut self, address: IpAddr) {
        if let Some(count) = self.by_address.get_mut(&address) {
            *count -= 1;
            if *count == 0 {
                self.by_address.remove(&address);
            }
        }
    }

    /// Makes room for one more of an address. Returns whether there is some.
    fn has_room(&mut self, address: IpAddr, max: usize) -> bool {
        let of_address = self.by_address.get(&address).copied().unwrap_or(0);
        of_address < max.div_ceil(2) || self.evict(|seat| seat.address == address)
    }
}

impl Seats {
    pub(crate) fn new(max: usize) -> Arc<Self> {
        Arc::new(Self {
            max,
            plan: Mutex::default(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Plan> {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns how many are taken.
    pub(crate) fn taken(&self) -> usize {
        self.lock().taken.len()
    }

    /// Returns a seat for a connection; `None` where there is none.
    pub(crate) fn take(self: &Arc<Self>, peer: IpAddr) -> Option<Seat> {
        let address = network(peer);
        let mut plan = self.lock();
        if !plan.has_room(address, self.max)
            || (plan.taken.len() >= self.max
                && !plan.evict(|_| true)
                && !plan.evict_follower(address))
        {
            return None;
        }
        let id = plan.count();
        let (sender, is_taken) = watch::channel(());
        let seat = Taken {
            address,
            is: Use::Waiting,
            has_key: false,
            since: id,
            _taken: sender,
        };
        plan.taken.insert(id, seat);
        *plan.by_address.entry(address).or_insert(0) += 1;
        drop(plan);
        Some(Seat {
            seats: Arc::clone(self),
            id,
            is_taken,
        })
    }
}

impl Seat {
    /// Waits until another connection has got the seat.
    pub(crate) async fn evicted(&self) {
        // An error is that the sender is gone.
        let _ = self.is_taken.clone().changed().await;
    }

    /// A request is at work, for a client's address. Returns whether the address has a seat.
    pub(crate) fn work(&self, client: IpAddr) -> bool {
        let address = network(client);
        let mut plan = self.seats.lock();
        let Some(before) = plan.taken.get(&self.id).map(|seat| seat.address) else {
            return false;
        };
        if before != address {
            if !plan.has_room(address, self.seats.max) {
                return false;
            }
            plan.leave(before);
            *plan.by_address.entry(address).or_insert(0) += 1;
        }
        if let Some(seat) = plan.taken.get_mut(&self.id) {
            (seat.address, seat.is) = (address, Use::Working);
        }
        true
    }

    /// The connection is a WebSocket now, which has shown no key.
    pub(crate) fn follow(&self) {
        if let Some(seat) = self.seats.lock().taken.get_mut(&self.id) {
            seat.is = Use::Following;
        }
    }

    /// The request is answered, and the next one is waited for; `has_key` says whether it was
    /// signed.
    pub(crate) fn wait(&self, has_key: bool) {
        let mut plan = self.seats.lock();
        let since = plan.count();
        if let Some(seat) = plan.taken.get_mut(&self.id) {
            seat.since = since;
            seat.has_key |= has_key;
            seat.is = match seat.has_key {
                true => Use::WaitingWithKey,
                false => Use::Waiting,
            };
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.seats.lock().remove(self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    fn is_there(seat: &Seat) -> bool {
        seat.seats.lock().taken.contains_key(&seat.id)
    }

    #[test]
    fn an_address_has_half_of_the_seats_whatever_it_does() {
        let seats = Seats::new(8);
        let one = ip("10.0.0.1");
        let taken: Vec<Seat> = (0..4).map(|_| seats.take(one).expect("room")).collect();
        assert!(taken.iter().all(|seat| seat.work(one)));
        assert!(seats.take(one).is_none());
        let others = [2, 3].map(|host| ip(&format!("10.0.0.{host}")));
        let others = others.map(|other| seats.take(other).expect("room"));
        taken[2].wait(false);
        let next = seats.take(one).expect("one waits");
        let left: Vec<bool> = taken.iter().map(is_there).collect();
        assert_eq!(left, [true, true, false, true]);
        assert!(is_there(&next) && others.iter().all(is_there));
        // A whole network of IPv6 is one address.
        let near = |host: u16| seats.take(ip(&format!("2001:db8::{host:x}")));
        let near: Vec<Option<Seat>> = (1..=6).map(near).collect();
        assert!(near.iter().all(Option::is_some));
        let left = near.iter().flatten().filter(|seat| is_there(seat)).count();
        assert_eq!(left, 4, "a fifth takes the place of the first");
    }

    #[test]
    fn those_that_wait_longest_without_a_key_go_first_and_those_at_work_never() {
        let seats = Seats::new(4);
        let address = |host: u8| ip(&format!("10.0.0.{host}"));
        let taken = [0, 1, 2, 3].map(|host| {
            let seat = seats.take(address(host)).expect("room");
            assert!(seat.work(address(host)));
            seat
        });
        assert!(seats.take(address(9)).is_none());
        taken[0].wait(true);
        taken[2].wait(false);
        taken[1].wait(false);
        let left = || -> Vec<bool> { taken.iter().map(is_there).collect() };
        let second = seats.take(address(8)).expect("one waits");
        assert_eq!(left(), [true, true, false, true]);
        let third = seats.take(address(9)).expect("one waits");
        assert_eq!(left(), [true, false, false, true]);
        assert!(second.work(address(8)) && third.work(address(9)));
        let fourth = seats.take(address(7)).expect("one waits");
        assert_eq!(left(), [false, false, false, true]);
        assert!(fourth.work(address(7)) && !taken[0].work(address(0)));
        assert!(seats.take(address(6)).is_none());
        drop((second, third, fourth, taken));
        assert!(seats.lock().taken.is_empty() && seats.lock().by_address.is_empty());
    }

    #[test]
    fn a_websocket_without_a_key_goes_for_an_address_with_fewer_seats() {
        let seats = Seats::new(8);
        let [one, two, three] = [1, 2, 3].map(|host| ip(&format!("10.0.0.{host}")));
        let taken = [one, two].map(|address| {
            let four = [(); 4].map(|()| seats.take(address).expect("room"));
            for seat in &four {
                assert!(seat.work(address));
                seat.follow();
            }
            four
        });
        // One has shown a key.
        assert!(taken[0][0].work(one));
        let left = || taken.each_ref().map(|four| four.each_ref().map(is_there));
        let next = seats.take(three).expect("a follower goes");
        assert_eq!(left(), [[true; 4], [false, true, true, true]]);
        assert!(next.work(three));
        let further = seats.take(three).expect("three are more than two");
        assert_eq!(
            left().as_flattened().iter().filter(|there| **there).count(),
            6
        );
        assert!(further.work(three) && is_there(&taken[0][0]));
        assert!(
            seats.take(three).is_none(),
            "three are as many as it would have"
        );
    }

    #[test]
    fn a_connection_of_a_proxy_counts_for_its_client() {
        let seats = Seats::new(4);
        let (proxy, client) = (ip("127.0.0.1"), ip("10.0.0.1"));
        let taken: Vec<Seat> = (0..2).map(|_| seats.take(proxy).expect("room")).collect();
        assert!(taken.iter().all(|seat| seat.work(client)));
        let third = seats.take(proxy).expect("the proxy has none");
        assert!(!third.work(client), "its client has two");
        assert!(third.work(ip("10.0.0.2")));
        assert_eq!(seats.lock().by_address.get(&proxy), None);
    }
}
