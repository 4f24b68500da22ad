//! The quirks of the reference, exchange-core 0.5, in the risk check and settlement: orders that
//! lose more than they hold. Before one is accepted there must be room for that in the `ledger`,
//! and it marks its symbol for good. Under the default rules nothing of this ever happens, and no
//! order is remembered.

use super::Risk;
use super::ledger::Ledger;
use super::symbols::Symbol;
use crate::command::{Action, OrderType, Place};
use crate::result_code::ResultCode;
use crate::rules::Rules;

/// The amount that a command could lose beyond its holds: it must fit into the ledger first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Exposure {
    pub(super) base: i128,
    pub(super) quote: i128,
}

impl Exposure {
    /// As room is asked for it: it stays in R, and may come to N.
    const fn twice(self) -> Self {
        Self {
            base: self.base.saturating_mul(2),
            quote: self.quote.saturating_mul(2),
        }
    }
}

impl Symbol {
    /// Returns how much a new order could cost its owner, or an owner whom it meets, beyond its
    /// hold, by a quirk of the reference. Nothing under mended rules.
    pub(super) fn quirks_of_place(&self, place: &Place, rules: &Rules) -> Exposure {
        // A budget order without size holds its price all the same: as if it had one lot.
        let lots = i128::from(place.size.unsigned_abs().max(1));
        let scale = i128::from(self.spec.quote_scale);
        let fees = i128::from(self.spec.taker_fee) + i128::from(self.spec.maker_fee);
        let price = i128::from(place.price.unsigned_abs());
        let reserve = i128::from(place.reserve_price.unsigned_abs());
        let mut exposure = Exposure::default();
        if self.spec.maker_fee > self.spec.taker_fee {
            // A buying maker pays the difference, a selling one may be under the higher fee.
            let difference = self.spec.maker_fee - self.spec.taker_fee;
            exposure.quote += lots * i128::from(difference);
        }
        let bid = place.action == Action::Bid;
        if place.price <= 0 || place.size <= 0 || (bid && place.reserve_price <= 0) {
            // Trades at such prices, holds below zero, and lots that no money stands for.
            let per_lot = (price + reserve)
                .saturating_mul(scale)
                .saturating_add(fees + 1);
            exposure.quote = exposure.quote.saturating_add(lots.saturating_mul(per_lot));
        }
        if bid && place.order_type == OrderType::IocBudget && !rules.fill_ioc_budget {
            // Its rejection gives back the budget once per lot.
            let made = lots.saturating_mul(price.saturating_mul(scale));
            exposure.quote = exposure.quote.saturating_add(made);
        }
        if self.seen.inverted || place.size < 0 {
            let more = self.turnover_with(lots, price.max(reserve));
            let before = if self.seen.inverted {
                self.turnover_with(0, 0)
            } else {
                Exposure::default()
            };
            exposure.quote = exposure.quote.saturating_add(more.quote - before.quote);
            exposure.base = exposure.base.saturating_add(more.base - before.base);
        }
        exposure
    }

    /// Returns how much a move of an order to `price` could cost by a quirk of the reference. The
    /// risk check knows neither the side nor the size of the order, so it takes the worst of both.
    pub(super) fn quirks_of_move(&self, price: i64, rules: &Rules) -> Exposure {
        let scale = i128::from(self.spec.quote_scale);
        let fee = i128::from(self.fee_max());
        let mut exposure = Exposure::default();
        let value = i128::from(price) * scale;
        if price <= 0 || (value < fee && !rules.refuse_moved_ask_under_fee) {
            // Its lots may be sold for less than the fee, or for less than nothing.
            let per_lot = fee + (-value).max(0) + 1;
            exposure.quote = i128::from(self.seen.size_max).saturating_mul(per_lot);
        }
        if self.seen.inverted {
            let more = self.turnover_with(0, i128::from(price.unsigned_abs()));
            let before = self.turnover_with(0, 0);
            exposure.quote = exposure.quote.saturating_add(more.quote - before.quote);
        }
        exposure
    }

    /// Returns the most that a budget ASK may lose: it has no limit per lot, and pays a fee per
    /// lot. A FOK_BUDGET brings in at least its price, which is a budget for its whole size; an
    /// IOC_BUDGET that is filled may bring in nothing but positive prices. Zero for every other
    /// order.
    pub(super) fn loss_of_budget_ask(&self, place: &Place, rules: &Rules) -> i128 {
        if rules.bound_budgets {
            return 0;
        }
        let proceeds = match place.order_type {
            OrderType::FokBudget => i128::from(place.price) * i128::from(self.spec.quote_scale),
            OrderType::IocBudget if rules.fill_ioc_budget => 0,
            _ => return 0,
        };
        if place.action == Action::Bid {
            return 0;
        }
        let fees = i128::from(self.spec.taker_fee) * i128::from(place.size);
        (fees - proceeds).max(0)
    }

    /// Remembers an accepted order.
    pub(super) fn note_place(&mut self, place: &Place, rules: &Rules) {
        if !self.remembers {
            return;
        }
        let price = place.price.unsigned_abs();
        self.seen.price_max = self
            .seen
            .price_max
            .max(price)
            .max(place.reserve_price.unsigned_abs());
        let lots = i128::from(place.size.unsigned_abs());
        self.seen.lots_total = self.seen.lots_total.saturating_add(lots);
        self.seen.size_max = self.seen.size_max.max(place.size.saturating_abs());
        self.seen.inverted |= place.size < 0;
        self.renew_plain_prices(rules);
    }

    /// Remembers an accepted order of this size, above zero, at prices that were seen before.
    #[inline]
    pub(super) fn note_plain_lots(&mut self, size: i64) {
        // No run of an exchange is long enough to leave 128 bits.
        self.seen.lots_total = self.seen.lots_total.wrapping_add(size.into());
        self.seen.size_max = self.seen.size_max.max(size);
    }

    /// Remembers how large an order gets that is amended: its further lots were noted as an order.
    pub(super) fn note_size(&mut self, size: i64) {
        if self.remembers {
            self.seen.size_max = self.seen.size_max.max(size);
        }
    }

    /// Remembers an accepted move.
    pub(super) fn note_move(&mut self, price: i64, rules: &Rules) {
        if !self.remembers {
            return;
        }
        self.seen.price_max = self.seen.price_max.max(price.unsigned_abs());
        self.renew_plain_prices(rules);
    }

    pub(super) const fn is_inverted(&self) -> bool {
        self.seen.inverted
    }

    pub(super) const fn price_max(&self) -> u64 {
        self.seen.price_max
    }

    /// Returns more than all that can ever change hands by the orders seen so far, whatever their
    /// sign, and by `lots` further lots at `price`: a negative order makes its counterparty trade
    /// that many lots more, so at most three times the lots ordered are traded, each at no more
    /// than the largest price.
    fn turnover_with(&self, lots: i128, price: i128) -> Exposure {
        let spec = &self.spec;
        let lots = self.seen.lots_total.saturating_add(lots).saturating_mul(8);
        let fees = i128::from(spec.taker_fee) + i128::from(spec.maker_fee);
        let price = price.max(self.seen.price_max.into());
        let money = price.saturating_mul(i128::from(spec.quote_scale));
        Exposure {
            base: lots.saturating_mul(i128::from(spec.base_scale)),
            quote: lots.saturating_mul(money.saturating_add(fees + 1)),
        }
    }
}

impl Risk {
    /// Refuses a new order in a pair that could lose what has no room in the ledger, `debt` in the
    /// currency of its side among it; else makes room and remembers the order.
    pub(super) fn make_room_for_order(
        &mut self,
        place: &Place,
        slot: u32,
        debt: i128,
    ) -> Result<(), ResultCode> {
        let rules = &self.rules;
        let symbol = self.symbols.at_mut(slot);
        if !symbol.remembers && rules.bound_budgets && debt == 0 {
            return Ok(());
        }
        let exposure = symbol.quirks_of_place(place, rules);
        let mut worst = exposure.twice();
        let loss = symbol.loss_of_budget_ask(place, rules);
        worst.quote = worst.quote.saturating_add(loss);
        let side = match place.action {
            Action::Ask => &mut worst.base,
            Action::Bid => &mut worst.quote,
        };
        *side = side.saturating_add(debt);
        self.ledger.check_room(symbol, &worst)?;
        symbol.note_place(place, rules);
        self.ledger.reserve(symbol, &exposure);
        Ok(())
    }

    /// Makes room in the ledger for an order of a pair that is moved.
    pub(super) fn make_room_for_move(&mut self, price: i64, slot: u32) -> Result<(), ResultCode> {
        let symbol = self.symbols.at_mut(slot);
        if !symbol.remembers {
            return Ok(());
        }
        let exposure = symbol.quirks_of_move(price, &self.rules);
        self.ledger.check_room(symbol, &exposure.twice())?;
        symbol.note_move(price, &self.rules);
        self.ledger.reserve(symbol, &exposure);
        Ok(())
    }
}

impl Ledger {
    /// Refuses what could leave 64 bits.
    fn check_room(&self, symbol: &Symbol, worst: &Exposure) -> Result<(), ResultCode> {
        if *worst == Exposure::default() {
            return Ok(());
        }
        let (quote, base) = (self.get(symbol.quote), self.get(symbol.base));
        let fits = if symbol.base == symbol.quote {
            quote.has_room(worst.quote.saturating_add(worst.base))
        } else {
            quote.has_room(worst.quote) && base.has_room(worst.base)
        };
        if fits {
            Ok(())
        } else {
            Err(ResultCode::RiskArithmeticOverflow)
        }
    }

    fn reserve(&mut self, symbol: &Symbol, exposure: &Exposure) {
        if *exposure != Exposure::default() {
            self.get_mut(symbol.quote).take_room(exposure.quote);
            self.get_mut(symbol.base).take_room(exposure.base);
        }
    }
}

/// A FOK_BUDGET of no size that could be filled gets nothing back.
pub(super) const fn gets_nothing_back(place: &Place) -> bool {
    matches!(place.order_type, OrderType::FokBudget)
}

impl Rules {
    /// True for a buyer's order that holds its price as a budget for its whole size, and gets
    /// back exactly what is left of it: a refused one, too, for a refusal changes nothing.
    pub(super) const fn holds_budget(&self, place: &Place) -> bool {
        match (place.action, place.order_type) {
            (Action::Bid, OrderType::FokBudget) => true,
            (Action::Bid, OrderType::IocBudget) => self.fill_ioc_budget || self.refuse_rejected,
            _ => false,
        }
    }
}
