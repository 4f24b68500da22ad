//! Orders that show a part of their lots at a time.
//!
//! An iceberg order takes with all its lots. The resting part shows `display` lots and hides the
//! others; only shown lots count in their level. When they are filled, as many again, or what is
//! left, stand at the end of the queue; a taker may meet them once more when it has met all other
//! orders of that price.
//!
//! *Cancel*: all lots go. *Reduce*: hidden lots go first, so the order keeps its place in time
//! unless it is cancelled by it. *Move*: it takes with all its lots, and what is left shows
//! `display` lots again at its new place. *FOK and FOK_BUDGET* count hidden lots: they would be
//! met. Money is held for all lots as for those of any order.
//!
//! The shown lots when the order comes to rest follow from its unfilled lots. The number of lots
//! that are shown later is reported by an [`Event::Refilled`]: also when it was moved, beyond those
//! that were shown before and are not taken by its trades.

use super::Book;
use super::aside::Terms;
use crate::command::{ConditionalOrder, is_enough};
use crate::event::{Event, Events};
use crate::ids::{OrderId, UserId};

impl Book {
    /// Notes the conditions of an order that came to rest with `hidden` hidden lots.
    pub(super) fn note_terms(
        &mut self,
        slot: u32,
        asked: &ConditionalOrder,
        hidden: i64,
        arrival: Option<u64>,
    ) {
        let good_till = asked.good_till;
        if asked.display.is_none() && good_till.is_none() {
            return;
        }
        let key = self.key_at(slot);
        let aside = self.aside_mut();
        let arrival = arrival.unwrap_or_else(|| aside.next_arrival());
        aside.note_expiry(good_till, arrival, key);
        let terms = Terms {
            arrival,
            display: asked.display.unwrap_or_default(),
            hidden,
            price: self.ladder.nodes[slot].price,
            good_till,
        };
        self.set_terms(slot, terms);
    }

    /// Whether an order that hides lots may have `size` of them: see
    /// [`RiskIcebergDisplay`](crate::ResultCode::RiskIcebergDisplay).
    pub(super) fn shows_enough(&self, slot: u32, size: i64) -> bool {
        let terms = self.terms(self.key_at(slot));
        terms.is_none_or(|terms| terms.hidden == 0 || is_enough(terms.display, size))
    }

    /// Shows lots of an order that is in no queue, of whose lots `left` are left, and appends it.
    /// `shown` of them are shown already.
    pub(super) fn show(&mut self, slot: u32, left: i64, shown: i64, events: &mut Events) {
        let node = &self.ladder.nodes[slot];
        let (order, uid) = (OrderId(node.id), UserId(node.uid));
        let mut now = left;
        if node.marks != 0
            && let Some(&terms) = self.terms(self.key_at(slot))
        {
            if terms.hidden > 0 {
                now = left.min(terms.display);
            }
            let hidden = left - now;
            self.set_terms(slot, Terms { hidden, ..terms });
        }
        self.ladder.nodes[slot].left = now;
        self.ladder.append(slot);
        if now != shown {
            let size = now - shown;
            events.push(Event::Refilled { order, uid, size });
        }
    }

    /// Takes `size` lots, not all that are left, off a resting order: hidden ones first.
    pub(super) fn reduce_hidden_first(&mut self, slot: u32, size: i64) {
        let mut shown = size;
        if let Some(&terms) = self.terms(self.key_at(slot)) {
            let hidden = terms.hidden - terms.hidden.min(size);
            shown -= terms.hidden - hidden;
            self.set_terms(slot, Terms { hidden, ..terms });
        }
        let node = &mut self.ladder.nodes[slot];
        node.left -= shown;
        let (side, price) = (node.action, node.price);
        let level = self.ladder.level_of(side, price);
        self.ladder.nodes[level].left -= shown;
    }
}
