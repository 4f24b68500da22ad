//! The resting orders of a book by owner, so that all of one owner's are found without a look at
//! others'.
//!
//! *State*: beside the nodes, in the same slots, a link for each resting order to the next one of
//! its owner; the first of each owner is found through an index. *Rules*: (1) an order is in its
//! owner's list exactly while it rests; (2) an owner without orders has no list; (3) of two orders
//! in one queue, the one that came to it first has the lower arrival.
//!
//! *Why not from the beginning*: an order that rests takes 95 instructions more, one that goes 47
//! (`cargo dev counts`, `owners-kept`), and in large books lines of memory. So the lists are made
//! when orders of one owner are first asked for, by a look at every order, and kept from then on;
//! until then the book pays for the question whether there are any. A request on an empty exchange
//! never waits for that.

use thalweg::ring::prefetch;

use super::Book;
use super::orders::{NONE, RestingOrder, mask};
use crate::command::{Action, OrderFlags};
use crate::engine::index::Index;
use crate::engine::slab::{Slab, make_room};
use crate::event::{Events, RemovalReason};
use crate::ids::UserId;

#[derive(Clone, Copy, Debug)]
struct Link {
    previous: u32,
    next: u32,
    /// When the order came to the end of its queue; 0 of a slot without a resting order.
    arrival: u64,
}

impl Link {
    const NOTHING: Self = Self {
        previous: NONE,
        next: NONE,
        arrival: 0,
    };
}

/// The orders of an owner, in two chains: those that stay when his session ends, and those that go.
#[derive(Clone, Copy, Debug)]
struct List {
    owner: i64,
    first: [u32; 2],
}

/// The lists of a book.
#[derive(Clone, Debug, Default)]
pub(super) struct Owners {
    links: Vec<Link>,
    index: Index,
    lists: Slab<List>,
    arrivals: u64,
}

impl Owners {
    /// An order came to the end of its queue: for the first time, or again.
    #[cold]
    pub(super) fn note_queued(&mut self, slot: u32, owner: i64, flags: OrderFlags) {
        self.make_links_to(slot);
        let at = slot as usize;
        self.arrivals += 1;
        let is_new = self.links[at].arrival == 0;
        self.links[at].arrival = self.arrivals;
        if is_new {
            self.add(slot, owner, flags.is_cancel_on_disconnect());
        }
    }

    /// Makes links for all slots up to this one. To be called for each new slot: made later, those
    /// of many stop orders would all be the work of one order that rests.
    pub(super) fn make_links_to(&mut self, slot: u32) {
        let slots = slot as usize + 1;
        if let Some(more) = slots.checked_sub(self.links.len()) {
            make_room(&mut self.links, more);
            self.links.resize(slots, Link::NOTHING);
        }
    }

    /// Orders that rest, those of one queue in order of time.
    fn note_all(&mut self, orders: &mut Vec<(u32, i64, OrderFlags)>) {
        for (slot, owner, flags) in orders.drain(..) {
            self.note_queued(slot, owner, flags);
        }
    }

    fn add(&mut self, slot: u32, owner: i64, is_cancel_on_disconnect: bool) {
        let chain = usize::from(is_cancel_on_disconnect);
        let Some(list) = self.find(owner) else {
            let mut first = [NONE; 2];
            first[chain] = slot;
            let list = self.lists.insert(List { owner, first });
            self.index.insert(owner, list);
            return;
        };
        let next = std::mem::replace(&mut self.lists[list].first[chain], slot);
        if next != NONE {
            self.links[slot as usize].next = next;
            self.links[next as usize].previous = slot;
        }
    }

    /// An order rests no more.
    #[cold]
    pub(super) fn note_gone(&mut self, slot: u32, owner: i64) {
        let link = std::mem::replace(&mut self.links[slot as usize], Link::NOTHING);
        if link.next != NONE {
            self.links[link.next as usize].previous = link.previous;
        }
        if link.previous != NONE {
            self.links[link.previous as usize].next = link.next;
            return;
        }
        let list = self.find(owner).expect("a list as long as an order rests");
        let first = &mut self.lists[list].first;
        let chain = usize::from(first[0] != slot);
        first[chain] = link.next;
        if *first == [NONE; 2] {
            let lists = &self.lists;
            self.index.remove(owner, |list| lists[list].owner);
            self.lists.free(list);
        }
    }

    fn find(&self, owner: i64) -> Option<u32> {
        self.index.find(owner, |list| self.lists[list].owner)
    }

    /// Returns the slots of an owner's orders that go with his session, or of those that stay, in
    /// no meaningful order.
    fn chain(&self, owner: i64, is_cancel_on_disconnect: bool) -> impl Iterator<Item = u32> + '_ {
        let first = self.find(owner).map(|list| self.lists[list].first);
        let first = first.map(|first| first[usize::from(is_cancel_on_disconnect)]);
        std::iter::successors(first.filter(|&slot| slot != NONE), |&slot| {
            let next = self.links[slot as usize].next;
            (next != NONE).then_some(next)
        })
    }

    /// Returns the slots of an owner's orders, in no meaningful order.
    fn slots(&self, owner: i64) -> impl Iterator<Item = u32> + '_ {
        self.chain(owner, false).chain(self.chain(owner, true))
    }

    fn arrival(&self, slot: u32) -> u64 {
        self.links[slot as usize].arrival
    }
}

impl Book {
    /// Finds one owner's orders without a look at others' from now on. Cost: the first time, a look
    /// at every order that rests.
    pub(crate) fn keep_owners(&mut self) {
        if self.ladder.owners.is_some() {
            return;
        }
        const TOGETHER: usize = 64;
        let mut owners = Box::<Owners>::default();
        if let Some(last) = self.ladder.nodes.as_mut_slice().len().checked_sub(1) {
            owners.make_links_to(last as u32);
        }
        // Links lie as orders do, anywhere: those of many orders are asked for together.
        let mut together: Vec<(u32, i64, OrderFlags)> = Vec::with_capacity(TOGETHER);
        for side in [Action::Ask, Action::Bid] {
            self.ladder.visit_queues(side, |slot, order| {
                prefetch(&owners.links[slot as usize]);
                together.push((slot, order.uid, order.flags));
                if together.len() == TOGETHER {
                    owners.note_all(&mut together);
                }
            });
        }
        owners.note_all(&mut together);
        self.ladder.owners = Some(owners);
    }

    /// Returns whether an order of this owner may rest or wait here: certain once the owners are
    /// kept, and where ids are per user.
    pub(crate) fn may_have_orders_of(&self, uid: UserId) -> bool {
        let owners = self.ladder.owners.as_ref();
        owners.is_none_or(|owners| owners.find(uid.0).is_some()) || self.may_wait(uid)
    }

    /// Returns the resting orders of `uid`: asks, then bids, each best price first, then in order
    /// of time. Cost: visits every order, or those of `uid` alone where owners are kept.
    #[must_use]
    pub fn orders_of(&self, uid: UserId) -> Vec<RestingOrder> {
        self.some_orders_of(uid, usize::MAX)
    }

    /// Returns the resting orders of a user, but no more than `most`; it is not specified which, if
    /// there are more. Cost: a visit to each of those.
    pub(crate) fn some_orders_of(&self, uid: UserId, most: usize) -> Vec<RestingOrder> {
        if self.ladder.owners.is_some() {
            let slots = self.slots_of(uid, most).into_iter();
            let orders = slots.map(|slot| self.ladder.nodes[slot].resting());
            return orders.map(|order| self.with_terms(order)).collect();
        }
        let mut orders = Vec::new();
        for side in [Action::Ask, Action::Bid] {
            self.ladder.visit_queues(side, |_, order| {
                if order.uid == uid.0 {
                    orders.push(self.with_terms(order.resting()));
                }
            });
        }
        orders.truncate(most);
        // Orders of one level came in order of time, and a stable sort leaves that.
        orders.sort_by_key(|order| (order.action, order.price ^ mask(order.action)));
        orders
    }

    /// Returns the slots of an owner's resting orders, `most` at most: asks, then bids, each best
    /// price first, then in order of time. The owners must be kept.
    fn slots_of(&self, uid: UserId, most: usize) -> Vec<u32> {
        let owners = self.ladder.owners.as_ref();
        let slots = owners.map(|owners| owners.slots(uid.0).take(most).collect());
        self.in_turn(slots.unwrap_or_default())
    }

    /// Returns the slots of an owner's resting orders that go with his session, in the same order.
    /// Visits no others. The owners must be kept.
    fn slots_with_session(&self, uid: UserId) -> Vec<u32> {
        let owners = self.ladder.owners.as_ref();
        let slots = owners.map(|owners| owners.chain(uid.0, true).collect());
        self.in_turn(slots.unwrap_or_default())
    }

    fn in_turn(&self, mut slots: Vec<u32>) -> Vec<u32> {
        let Some(owners) = self.ladder.owners.as_ref() else {
            return slots;
        };
        slots.sort_unstable_by_key(|&slot| {
            let node = &self.ladder.nodes[slot];
            let key = node.price ^ mask(node.action);
            (node.action, key, owners.arrival(slot))
        });
        slots
    }
}

// Mass cancels: many orders leave a book at once, by a command that names none of them.

impl Book {
    /// Takes out at most `most` orders that are priced outside the band, in the order of
    /// [`remove_all`](Self::remove_all): resting ones, then of futures waiting ones. Returns
    /// whether orders are left outside.
    pub(crate) fn remove_outside(&mut self, most: usize, events: &mut Events) -> bool {
        let before = events.len();
        let why = RemovalReason::OutsideBand;
        self.remove_resting((why, most), events, Some(self.band));
        if self.is_futures() {
            let most = most.saturating_sub(events.len() - before);
            self.remove_waiting_outside((why, most), events);
        }
        self.drop_empty_cold_state();
        self.has_outside()
    }

    /// Returns whether orders rest, or of futures rest or wait, outside the band.
    pub(crate) fn has_outside(&self) -> bool {
        let mut sides = [Action::Ask, Action::Bid].into_iter();
        sides.any(|side| self.ladder.slots_outside(side, self.band).next().is_some())
            || self.is_futures() && self.waits_outside()
    }

    /// Takes out at most `most` orders: asks, then bids, each best price first, then in order of
    /// time; then stop orders that wait. Returns whether orders are left.
    pub(crate) fn remove_all(
        &mut self,
        why: RemovalReason,
        most: usize,
        events: &mut Events,
    ) -> bool {
        let before = events.len();
        self.remove_resting((why, most), events, None);
        let most = most.saturating_sub(events.len() - before);
        self.remove_all_waiting((why, most), events);
        self.drop_empty_cold_state();
        self.count_all() > 0
    }

    /// Returns how many orders rest or wait.
    pub(crate) const fn count_all(&self) -> usize {
        self.index.len()
    }

    /// Takes out the orders of `uid`, in the same order as all would go; for
    /// [`RemovalReason::Disconnected`] those that go with his session.
    ///
    /// Cost: those orders, sorted; the first time, a visit to every order. Where ids are not per
    /// user, the waiting orders of all users.
    pub(crate) fn remove_of(&mut self, uid: UserId, why: RemovalReason, events: &mut Events) {
        self.keep_owners();
        let is_end = why == RemovalReason::Disconnected;
        let slots = match is_end {
            true => self.slots_with_session(uid),
            false => self.slots_of(uid, usize::MAX),
        };
        for slot in slots {
            self.remove(slot, why, events);
        }
        self.remove_waiting_of(uid, (why, is_end), events);
        self.drop_empty_cold_state();
    }

    /// Takes out all resting orders, or those that are priced outside a band, `most` of them at
    /// most. Cost: those orders.
    fn remove_resting(
        &mut self,
        (why, most): (RemovalReason, usize),
        events: &mut Events,
        band: Option<(i64, i64)>,
    ) {
        let mut slots = Vec::new();
        for side in [Action::Ask, Action::Bid] {
            match band {
                Some(band) => {
                    slots.extend(
                        self.ladder
                            .slots_outside(side, band)
                            .take(most - slots.len()),
                    );
                }
                None => slots.extend(self.ladder.slots(side).take(most - slots.len())),
            }
        }
        events.reserve_exact(slots.len());
        for slot in slots {
            self.remove(slot, why, events);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rules;
    use crate::command::{ConditionalOrder, Place, SymbolSpec};
    use crate::event::UserHint;
    use crate::ids::{OrderId, SymbolId};

    #[test]
    fn stop_orders_leave_no_links_to_be_made_by_the_next_order_that_rests() {
        let mut book = Book::with_capacity(SymbolSpec::default(), &Rules::MENDED, 0);
        book.keep_owners();
        for id in 0..1_000 {
            let owner = (UserId(1), OrderId(id));
            let order = ConditionalOrder {
                trigger: Some(500),
                ..Place::limit(owner, SymbolId(0), Action::Bid, (100, 1)).into()
            };
            book.place_with(
                &order,
                UserHint::UNKNOWN,
                &Rules::MENDED,
                &mut Events::new(),
            );
            let slots = book.ladder.nodes.as_mut_slice().len();
            let owners = book.ladder.owners.as_ref().expect("they are kept");
            // A few nodes are made ahead.
            assert!(slots - owners.links.len() < 64, "order {id}");
        }
    }
}
