//! Settlement of orders that a command took out of their books, whoever owns them.

use super::Risk;
use super::position::LastPrices;
use crate::event::{Event, Events, Standing};
use crate::ids::SymbolId;

impl Risk {
    /// Books the events of a command that concerns no single symbol: orders that are gone, and how
    /// the books of their futures symbols stand then.
    #[cold]
    pub(super) fn settle_removals(&mut self, events: &Events) {
        for event in events {
            self.settle_removed(event);
        }
        for (symbol, standing) in events.standings() {
            self.note_last_prices(*symbol, standing);
        }
    }

    /// Gives back what is held for the lots of an [`Event::Removed`]; other events are none of
    /// this function's. Of futures, a lot must have been reserved for at the price of the event.
    ///
    /// Cost: a look-up of the symbol and one of the owner.
    #[cold]
    pub(super) fn settle_removed(&mut self, event: &Event) {
        let Event::Removed {
            symbol,
            uid,
            action,
            price,
            size,
            bidder_hold_price,
            ..
        } = *event
        else {
            return;
        };
        let Some(slot) = self.symbols.slot(symbol) else {
            return;
        };
        let symbol = *self.symbols.at(slot);
        if symbol.is_pair() {
            self.give_back(&symbol, uid, action, size, bidder_hold_price);
        } else if symbol.is_futures() && self.rules.margin_trading {
            self.release(&symbol, slot, (uid, action), size);
            let reserved = symbol.reserved_per_lot(price) * i128::from(size);
            self.ledger.get_mut(symbol.quote).reserved -= reserved;
        }
    }

    /// Remembers the best prices of a futures symbol after a command that succeeded there.
    pub(super) fn note_last_prices(&mut self, symbol: SymbolId, standing: &Standing) {
        if let Some(slot) = self.symbols.slot(symbol) {
            self.symbols.at_mut(slot).last = Some(LastPrices::of(standing));
        }
    }
}

impl LastPrices {
    pub(super) fn of(standing: &Standing) -> Self {
        Self {
            ask: standing.ask.unwrap_or(Self::EMPTY.ask),
            bid: standing.bid.unwrap_or(Self::EMPTY.bid),
        }
    }
}
