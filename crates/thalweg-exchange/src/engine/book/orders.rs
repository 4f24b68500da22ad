//! Orders in their array of cache lines, linked by slot number; and their terms.

use crate::command::{Action, OrderFlags, Place};
use crate::engine::index::OrderKey;
use crate::engine::slab::make_room;
use crate::event::UserHint;
use crate::ids::{OrderId, UserId};

/// Ticks of the window of a book that is used much; their levels are the first slots.
pub(super) const WIDE: u32 = 4096;
/// Ticks of the window of a book that is used little: it takes 8 KiB, and not 256.
pub(super) const NARROW: u32 = 64;
/// Orders and far levels for which a narrow book has room at once.
pub(super) const FEW: usize = 64;
/// Slots that become free together.
const AT_ONCE: u32 = 16;

/// No slot.
pub(super) const NONE: u32 = u32::MAX;

/// Turns prices into keys and back.
#[inline]
pub(super) const fn mask(side: Action) -> i64 {
    -(side as i64)
}

/// An order, or the level that is the sentinel of a circular list of orders.
///
/// For a level, `left` is the volume, `tag` the number of orders, `next` the oldest order,
/// `previous` the newest, and the rest unused, but for the `price` of a level outside the window.
/// For an order that waits, see `stops`.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(super) struct Node {
    pub(super) uid: i64,
    pub(super) id: i64,
    pub(super) price: i64,
    pub(super) reserve_price: i64,
    /// Lots that are not filled yet; of an iceberg order, the displayed ones.
    pub(super) left: i64,
    pub(super) filled: i64,
    pub(super) previous: u32,
    pub(super) next: u32,
    /// For an order, the slot of its owner; for a level, its number of orders.
    pub(super) tag: u32,
    pub(super) action: Action,
    /// The order's flags, which count when it is moved and takes.
    pub(super) flags: OrderFlags,
    /// Which conditions the order has: the bits [`HIDES`], [`EXPIRES`] and [`WAITS`]. Zero for a
    /// plain order, which is all that a fast path checks.
    pub(super) marks: u8,
}

const _: () = assert!(size_of::<Node>() == 64);

impl Node {
    /// Returns a level without orders, for the given slot.
    pub(super) const fn level(slot: u32, price: i64) -> Self {
        Self {
            id: 0,
            uid: 0,
            price,
            reserve_price: 0,
            left: 0,
            filled: 0,
            previous: slot,
            next: slot,
            tag: 0,
            action: Action::Ask,
            flags: OrderFlags::NONE,
            marks: 0,
        }
    }

    /// Returns a new order that is in no queue, and of which nothing is filled.
    #[inline(always)]
    pub(super) const fn new(place: &Place, user: UserHint) -> Self {
        Self {
            id: place.order_id.0,
            uid: place.uid.0,
            price: place.price,
            reserve_price: place.reserve_price,
            left: place.size,
            filled: 0,
            previous: NONE,
            next: NONE,
            tag: user.0,
            action: place.action,
            flags: place.flags,
            marks: 0,
        }
    }

    /// Returns the key by which the order is found; `owner_mask` is the book's.
    #[inline]
    pub(super) const fn key(&self, owner_mask: i64) -> OrderKey {
        OrderKey {
            owner: self.uid & owner_mask,
            id: self.id,
        }
    }

    /// Returns whether that is this key.
    #[inline]
    pub(super) const fn is(&self, key: OrderKey, owner_mask: i64) -> bool {
        self.id == key.id && (self.uid ^ key.owner) & owner_mask == 0
    }

    /// Returns where an order's owner is kept.
    pub(super) const fn user(&self) -> UserHint {
        UserHint(self.tag)
    }

    pub(super) const fn resting(&self) -> RestingOrder {
        RestingOrder {
            order_id: OrderId(self.id),
            uid: UserId(self.uid),
            action: self.action,
            price: self.price,
            reserve_price: self.reserve_price,
            size: self.left + self.filled,
            filled: self.filled,
            hidden: 0,
            display: None,
            good_till: None,
            flags: self.flags,
        }
    }
}

/// The array. Freed slots are linked through `next` and used again, the last freed first.
#[derive(Debug)]
pub(super) struct Nodes {
    list: Vec<Node>,
    /// [`NONE`] if none is.
    free: u32,
    /// How many of the first slots are levels of the window.
    levels: u32,
}

impl Clone for Nodes {
    /// With as much room as this has.
    fn clone(&self) -> Self {
        let mut list = Vec::new();
        if !self.list.is_empty() {
            make_room(&mut list, self.list.len() + 1);
        }
        list.extend_from_slice(&self.list);
        Self {
            list,
            free: self.free,
            levels: self.levels,
        }
    }
}

impl Nodes {
    /// Takes no memory before the first node: many symbols may never see an order.
    pub(super) const fn new() -> Self {
        Self {
            list: Vec::new(),
            free: NONE,
            levels: 0,
        }
    }

    /// Makes levels of the window until there are `levels`, and room for `orders` other nodes, of
    /// which there are none yet.
    pub(super) fn open(&mut self, levels: u32, orders: usize) {
        let more = self.levels..levels;
        make_room(&mut self.list, more.len() + orders);
        self.list.extend(more.map(|slot| Node::level(slot, 0)));
        self.levels = levels;
    }

    /// Returns how many of the first slots are levels of the window.
    #[inline]
    pub(super) const fn levels(&self) -> u32 {
        self.levels
    }

    /// Returns whether there are more nodes than a narrow window is for.
    #[inline]
    pub(super) const fn are_many(&self) -> bool {
        self.list.len() > NARROW as usize + FEW
    }

    /// Stores a node and says where.
    #[inline]
    pub(super) fn insert(&mut self, node: Node) -> u32 {
        let slot = self.free;
        if slot == NONE {
            return self.push(node);
        }
        let place = &mut self.list[slot as usize];
        self.free = place.next;
        *place = node;
        slot
    }

    #[cold]
    fn push(&mut self, node: Node) -> u32 {
        if self.list.is_empty() {
            self.open(NARROW, FEW);
        }
        let first = u32::try_from(self.list.len())
            .ok()
            .filter(|&slot| slot < NONE - AT_ONCE)
            .expect("memory for 2^32 - 17 orders runs out before their numbers do");
        make_room(&mut self.list, AT_ONCE as usize);
        self.list.push(node);
        // Each of the others leads to the next one.
        let next = |slot| {
            if slot + 1 < first + AT_ONCE {
                slot + 1
            } else {
                NONE
            }
        };
        let free = |slot| Node {
            next: next(slot),
            ..Node::level(slot, 0)
        };
        self.list.extend((first + 1..first + AT_ONCE).map(free));
        self.free = first + 1;
        first
    }

    /// Gives a slot back, and shows what was in it. It must not be free already, and no level of
    /// the window.
    #[inline]
    pub(super) fn free(&mut self, slot: u32) -> &Node {
        let node = &mut self.list[slot as usize];
        node.next = std::mem::replace(&mut self.free, slot);
        node
    }

    /// Returns the node in this slot, whatever it is now.
    #[inline]
    pub(super) fn get(&self, slot: u32) -> Option<&Node> {
        self.list.get(slot as usize)
    }

    #[inline]
    pub(super) fn as_mut_slice(&mut self) -> &mut [Node] {
        &mut self.list
    }

    /// Returns all nodes, and the slot that is free next.
    #[inline]
    pub(super) fn with_free(&mut self) -> (&mut [Node], &mut u32) {
        (&mut self.list, &mut self.free)
    }
}

impl std::ops::Index<u32> for Nodes {
    type Output = Node;

    #[inline]
    fn index(&self, slot: u32) -> &Node {
        &self.list[slot as usize]
    }
}

impl std::ops::IndexMut<u32> for Nodes {
    #[inline]
    fn index_mut(&mut self, slot: u32) -> &mut Node {
        &mut self.list[slot as usize]
    }
}

/// A resting order as seen from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct RestingOrder {
    /// Its id.
    pub order_id: OrderId,
    /// Its owner.
    pub uid: UserId,
    /// Its side.
    pub action: Action,
    /// Its limit price.
    pub price: i64,
    /// Its reserve price, as it was placed.
    pub reserve_price: i64,
    /// Its size in lots, what is filled included.
    pub size: i64,
    /// Lots that are filled.
    pub filled: i64,
    /// Lots of an iceberg order that are neither filled nor displayed. They are no part of its
    /// level's volume.
    pub hidden: i64,
    /// How many it displays at a time, while lots are hidden.
    pub display: Option<i64>,
    /// When it expires.
    pub good_till: Option<i64>,
    /// Its flags, which count when it is moved and takes.
    pub flags: OrderFlags,
}

/// Mark of a node: lots of its order are hidden; how many is in its [`Terms`]. An iceberg order
/// that displays all that is left of it has no such mark.
pub(super) const HIDES: u8 = 1;
/// Mark of a node: its order expires; when is in its [`Terms`].
pub(super) const EXPIRES: u8 = 2;
/// Mark of a node: its order waits, and is in no queue. `stops` has further marks of such an order,
/// and none of those above.
pub(super) const WAITS: u8 = 4;

/// The conditions of an order.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terms {
    /// Which of the orders with terms, and of the stop orders, came first.
    pub(super) arrival: u64,
    /// Lots displayed at a time; means something while lots are hidden.
    pub(super) display: i64,
    /// Lots that are neither filled nor displayed.
    pub(super) hidden: i64,
    /// The price under which hidden lots are counted; may lag the node's price during a move.
    pub(super) price: i64,
    pub(super) good_till: Option<i64>,
}

impl Terms {
    pub(super) const fn marks(&self) -> u8 {
        let hides = if self.hidden > 0 { HIDES } else { 0 };
        let expires = if self.good_till.is_some() { EXPIRES } else { 0 };
        hides | expires
    }

    /// Returns how many lots are displayed at a time, while any are hidden.
    pub(super) fn display_in_use(&self) -> Option<i64> {
        (self.hidden > 0).then_some(self.display)
    }
}
