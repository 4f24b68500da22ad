//! One side of a book: price levels in order of preference, each a queue in order of time.

use std::collections::BTreeMap;

use super::{Level, Order, RestingOrder};
use crate::command::Action;
use crate::slab::Slab;

/// No order: the end of a queue.
pub(super) const NONE: u32 = u32::MAX;

/// A price level: its orders are a doubly linked list through [`Order::previous`] and `next`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Queue {
    pub(super) price: i64,
    pub(super) volume: i64,
    pub(super) orders: u64,
    pub(super) head: u32,
    pub(super) tail: u32,
}

/// The levels of one action.
#[derive(Clone, Debug)]
pub(super) struct Side {
    action: Action,
    /// From a key that sorts the best price first to the slot of the level.
    levels: BTreeMap<i64, u32>,
    queues: Slab<Queue>,
}

impl Side {
    pub(super) fn new(action: Action) -> Self {
        Self {
            action,
            levels: BTreeMap::new(),
            queues: Slab::default(),
        }
    }

    /// Asks sort upwards, bids downwards; `!price` turns the order round without overflow.
    const fn key(&self, price: i64) -> i64 {
        match self.action {
            Action::Ask => price,
            Action::Bid => !price,
        }
    }

    /// The slot of the best level.
    pub(super) fn best(&self) -> Option<u32> {
        self.levels.first_key_value().map(|(_, &slot)| slot)
    }

    pub(super) fn queue(&self, slot: u32) -> &Queue {
        &self.queues[slot]
    }

    pub(super) fn queue_mut(&mut self, slot: u32) -> &mut Queue {
        &mut self.queues[slot]
    }

    /// Puts the order at the end of the queue of its price.
    pub(super) fn append(&mut self, orders: &mut Slab<Order>, slot: u32) {
        let Order {
            price,
            size,
            filled,
            ..
        } = orders[slot];
        let level = *self.levels.entry(self.key(price)).or_insert_with(|| {
            let queue = Queue {
                price,
                volume: 0,
                orders: 0,
                head: NONE,
                tail: NONE,
            };
            self.queues.insert(queue)
        });
        let queue = &mut self.queues[level];
        let order = &mut orders[slot];
        order.level = level;
        order.previous = queue.tail;
        order.next = NONE;
        queue.volume += size - filled;
        queue.orders += 1;
        let last = std::mem::replace(&mut queue.tail, slot);
        if last == NONE {
            queue.head = slot;
        } else {
            orders[last].next = slot;
        }
    }

    /// Takes the order out of its queue, with what is left of its size.
    pub(super) fn unlink(&mut self, orders: &mut Slab<Order>, slot: u32) {
        let Order {
            level,
            previous,
            next,
            size,
            filled,
            ..
        } = orders[slot];
        let queue = &mut self.queues[level];
        queue.volume -= size - filled;
        queue.orders -= 1;
        if previous == NONE {
            queue.head = next;
        } else {
            orders[previous].next = next;
        }
        if next == NONE {
            queue.tail = previous;
        } else {
            orders[next].previous = previous;
        }
        if queue.head == NONE {
            let key = self.key(self.queues[level].price);
            self.levels.remove(&key);
            self.queues.free(level);
        }
    }

    pub(super) fn levels(&self) -> impl Iterator<Item = Level> + '_ {
        self.levels.values().map(|&slot| {
            let Queue {
                price,
                volume,
                orders,
                ..
            } = self.queues[slot];
            Level {
                price,
                volume,
                orders,
            }
        })
    }

    pub(super) fn orders<'a>(
        &'a self,
        orders: &'a Slab<Order>,
    ) -> impl Iterator<Item = RestingOrder> + 'a {
        self.levels.values().flat_map(move |&level| {
            let head = self.queues[level].head;
            std::iter::successors((head != NONE).then_some(head), |&slot| {
                let next = orders[slot].next;
                (next != NONE).then_some(next)
            })
            .map(|slot| orders[slot].resting())
        })
    }

    /// What `size` lots cost over the levels, or `None` where there are not enough lots.
    ///
    /// Cost: one step per level. In 128 bits, and saturating.
    pub(super) fn cost(&self, mut size: i64) -> Option<i128> {
        let mut cost = 0_i128;
        for level in self.levels() {
            let value = |lots: i64| i128::from(lots) * i128::from(level.price);
            if size <= level.volume {
                return Some(cost.saturating_add(value(size)));
            }
            size -= level.volume;
            cost = cost.saturating_add(value(level.volume));
        }
        None
    }
}
