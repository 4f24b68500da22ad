//! Where a new order can rest at once, and putting it there.

use super::super::node::Node;
use super::super::owners::Owners;
use super::{Ladder, mask};
use crate::command::Place;
use crate::event::UserHint;

/// A free slot, and the level to whose queue the order in it will belong.
pub(in crate::engine::book) struct Spot<'l> {
    nodes: &'l mut [Node],
    free: &'l mut u32,
    tick: &'l mut u8,
    at: usize,
    bound: &'l mut [i64; 2],
    owners: &'l mut Option<Box<Owners>>,
}

impl Spot<'_> {
    #[inline(always)]
    pub(in crate::engine::book) const fn slot(&self) -> u32 {
        *self.free
    }

    /// Puts a new order there.
    #[inline(always)]
    pub(in crate::engine::book) fn put(self, place: &Place, user: UserHint) {
        let slot = *self.free;
        *self.tick = 1;
        let level = &mut self.nodes[self.at];
        level.left += place.size;
        level.tag += 1;
        let last = std::mem::replace(&mut level.previous, slot);
        self.nodes[last as usize].next = slot;
        let node = &mut self.nodes[slot as usize];
        *self.free = node.next;
        *node = Node {
            previous: last,
            next: self.at as u32,
            ..Node::new(place, user)
        };
        let bound = &mut self.bound[place.action as usize];
        *bound = (*bound).min(place.price ^ mask(place.action));
        if let Some(owners) = self.owners {
            owners.note_queued(slot, place.uid.0, place.flags);
        }
    }
}

impl Ladder {
    /// Where a new order can be put at the end of the queue of a price in the window; `None` where
    /// there is no such level, or no slot is free.
    #[inline(always)]
    pub(in crate::engine::book) fn spot(&mut self, price: i64) -> Option<Spot<'_>> {
        let at = self.offset(price) as usize;
        let (nodes, free) = self.nodes.with_free();
        let tick = self.occupied.as_mut_slice().get_mut(at)?;
        if *free as usize >= nodes.len() || at >= nodes.len() {
            return None;
        }
        Some(Spot {
            nodes,
            free,
            tick,
            at,
            bound: &mut self.bound,
            owners: &mut self.owners,
        })
    }
}
