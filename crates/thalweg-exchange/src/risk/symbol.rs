//! Symbols as the risk stage sees them, and what quirks could cost in them.

mod memory;

use super::calm::Calm;
use super::gate::Gate;
use super::ledger::Ledger;
use super::position::LastPrices;
use crate::command::{Action, OrderType, Place, SymbolSpec, SymbolType};
use crate::ids::{CurrencyId, SymbolId};
use crate::result_code::ResultCode;
use crate::rules::Rules;
use crate::slab::Slab;
use crate::symbol_index::SymbolIndex;

/// No slot in the ledger.
pub(super) const NO_CURRENCY: u32 = u32::MAX;

/// A symbol, its currencies' slots in the ledger, and what was seen of it.
///
/// Everything below `spec` but the last prices changes only when a command is checked and accepted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Symbol {
    pub(super) spec: SymbolSpec,
    /// Slots in the ledger; of a pair from the beginning, of futures only the quote currency's, and
    /// from their first order on.
    pub(super) base: u32,
    pub(super) quote: u32,
    /// Prices that need no closer look, of a pair.
    pub(super) calm: Calm,
    /// The same of futures, as long as margin trading is on.
    pub(super) calm_futures: Calm,
    /// What an order of each side holds for a lot of a pair with fees per lot: its reserve price
    /// times the first, and the second, of the third.
    scales: [i64; 2],
    mores: [i64; 2],
    pub(super) currencies: [CurrencyId; 2],
    /// A pair, with fees per lot.
    pub(super) is_plain: bool,
    /// The same where orders are not remembered either.
    pub(super) is_swift: bool,
    /// Which new and moved orders it takes.
    pub(super) gate: Gate,
    /// Futures: the best prices after the last command that succeeded. Written by settlement.
    pub(super) last: Option<LastPrices>,
    /// Sticky: from here on a settlement in this symbol may lower a balance.
    pub(super) drains: bool,
    /// Whether orders are remembered: where later ones could lose more than they hold by them.
    pub(super) remembers: bool,
    /// Sticky: an order of negative size was accepted.
    inverted: bool,
    /// The largest order so far, in lots.
    size_max: i64,
    /// All lots ever ordered.
    lots_total: i128,
    /// The largest price, reserve price or budget so far, by magnitude.
    price_max: u64,
}

/// What a command could lose beyond what is held for it: what must fit into the ledger first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Exposure {
    pub(super) base: i128,
    pub(super) quote: i128,
}

impl Symbol {
    pub(super) const fn is_pair(&self) -> bool {
        matches!(self.spec.symbol_type, SymbolType::CurrencyPair)
    }

    pub(super) const fn is_futures(&self) -> bool {
        matches!(self.spec.symbol_type, SymbolType::Futures)
    }

    /// The best prices of a futures symbol, as far as they are known.
    pub(super) fn last_prices(&self) -> LastPrices {
        self.last.unwrap_or(LastPrices::EMPTY)
    }

    pub(super) const fn fee_max(&self) -> i64 {
        if self.spec.maker_fee > self.spec.taker_fee {
            self.spec.maker_fee
        } else {
            self.spec.taker_fee
        }
    }

    /// What a new order could cost its owner, or an owner whom it meets, beyond its hold, by a
    /// quirk of the reference. Nothing under mended rules.
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
        if self.inverted || place.size < 0 {
            let more = self.turnover_with(lots, price.max(reserve));
            let before = if self.inverted {
                self.turnover_with(0, 0)
            } else {
                Exposure::default()
            };
            exposure.quote = exposure.quote.saturating_add(more.quote - before.quote);
            exposure.base = exposure.base.saturating_add(more.base - before.base);
        }
        exposure
    }

    /// What moving an order to `price` could cost by a quirk of the reference. The risk stage
    /// knows neither the side nor the size of the order, so it takes the worst of both.
    pub(super) fn quirks_of_move(&self, price: i64, rules: &Rules) -> Exposure {
        let scale = i128::from(self.spec.quote_scale);
        let fee = i128::from(self.fee_max());
        let mut exposure = Exposure::default();
        let value = i128::from(price) * scale;
        if price <= 0 || (value < fee && !rules.refuse_moved_ask_under_fee) {
            // Its lots may be sold for less than the fee, or for less than nothing.
            let per_lot = fee + (-value).max(0) + 1;
            exposure.quote = i128::from(self.size_max).saturating_mul(per_lot);
        }
        if self.inverted {
            let more = self.turnover_with(0, i128::from(price.unsigned_abs()));
            let before = self.turnover_with(0, 0);
            exposure.quote = exposure.quote.saturating_add(more.quote - before.quote);
        }
        exposure
    }

    /// The most that a budget ASK may lose: it has no limit per lot, and pays a fee per lot. A
    /// FOK_BUDGET brings in at least its price, which is a budget for its whole size; an IOC_BUDGET
    /// that is filled may bring in nothing but positive prices. Zero for every other order.
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

    /// True where an accepted order may lower a balance from now on.
    pub(super) const fn drains_after(&self, place: &Place, exposure: &Exposure) -> bool {
        // A rejected IOC_BUDGET makes money, but takes none.
        exposure.base > 0
            || (exposure.quote > 0
                && (!matches!(place.order_type, OrderType::IocBudget) || place.price <= 0))
    }

    /// Remembers an accepted order.
    pub(super) fn note_place(&mut self, place: &Place, rules: &Rules) {
        if !self.remembers {
            return;
        }
        let price = place.price.unsigned_abs();
        self.price_max = self
            .price_max
            .max(price)
            .max(place.reserve_price.unsigned_abs());
        let lots = i128::from(place.size.unsigned_abs());
        self.lots_total = self.lots_total.saturating_add(lots);
        self.size_max = self.size_max.max(place.size.saturating_abs());
        self.inverted |= place.size < 0;
        self.renew_calm(rules);
    }

    /// Remembers an accepted order of this size, above zero, at prices that were seen before.
    #[inline]
    pub(super) fn note_calm_lots(&mut self, size: i64) {
        // No run of an exchange is long enough to leave 128 bits.
        self.lots_total = self.lots_total.wrapping_add(size.into());
        self.size_max = self.size_max.max(size);
    }

    /// Remembers an accepted move.
    pub(super) fn note_move(&mut self, price: i64, rules: &Rules) {
        if !self.remembers {
            return;
        }
        self.price_max = self.price_max.max(price.unsigned_abs());
        self.renew_calm(rules);
    }

    /// What is held for lots of an order in a pair, in the currency of its side: units of the base
    /// currency, or the reserve price and its taker fee. `None` beyond 64 bits.
    #[inline]
    pub(super) fn money(&self, action: Action, lots: i64, reserve_price: i64) -> Option<i64> {
        if self.is_plain {
            return self.plain_money(action, lots, reserve_price);
        }
        let spec = &self.spec;
        let per_lot = match action {
            Action::Ask => spec.base_scale,
            Action::Bid => i64::try_from(spec.held_per_lot(reserve_price)).ok()?,
        };
        per_lot.checked_mul(lots)
    }

    /// The same where fees are per lot. Both sides in one: which it is cannot be foreseen.
    #[inline(always)]
    pub(super) fn plain_money(&self, action: Action, lots: i64, reserve: i64) -> Option<i64> {
        let side = action as usize;
        let per_lot = reserve.checked_mul(self.scales[side])?;
        per_lot.checked_add(self.mores[side])?.checked_mul(lots)
    }

    pub(super) const fn is_inverted(&self) -> bool {
        self.inverted
    }

    pub(super) const fn price_max(&self) -> u64 {
        self.price_max
    }

    /// More than all that can ever change hands by the orders seen so far, whatever their sign,
    /// and by so many lots more at such a price: a negative order makes its counterparty trade that
    /// many lots more, so at most three times the lots ordered are traded, each at no more than the
    /// largest price.
    fn turnover_with(&self, lots: i128, price: i128) -> Exposure {
        let spec = &self.spec;
        let lots = self.lots_total.saturating_add(lots).saturating_mul(8);
        let fees = i128::from(spec.taker_fee) + i128::from(spec.maker_fee);
        let price = price.max(self.price_max.into());
        let money = price.saturating_mul(i128::from(spec.quote_scale));
        Exposure {
            base: lots.saturating_mul(i128::from(spec.base_scale)),
            quote: lots.saturating_mul(money.saturating_add(fees + 1)),
        }
    }
}

/// Refuses a symbol that has no meaning, or that the rules forbid.
pub(super) fn check_spec(spec: &SymbolSpec, rules: &Rules) -> Result<(), ResultCode> {
    let is_negative = |margin: i64| margin < 0;
    let margins = [spec.margin_buy, spec.margin_sell];
    if spec.base_scale < 1 || spec.quote_scale < 1 || margins.into_iter().any(is_negative) {
        return Err(ResultCode::SymbolInvalidSpec);
    }
    spec.check_fees(rules)
}

/// All symbols.
#[derive(Clone, Debug, Default)]
pub(super) struct Symbols {
    symbols: Slab<Symbol>,
    index: SymbolIndex,
}

impl Symbols {
    pub(super) fn get(&self, id: SymbolId) -> Option<&Symbol> {
        self.slot(id).map(|slot| &self.symbols[slot])
    }

    /// The symbol in a slot, if there is such a slot.
    #[inline(always)]
    pub(super) fn get_at(&self, slot: u32) -> Option<&Symbol> {
        self.symbols.get(slot as usize)
    }

    /// The symbol in a slot that [`Self::slot`] gave.
    pub(super) fn at(&self, slot: u32) -> &Symbol {
        &self.symbols[slot]
    }

    pub(super) fn at_mut(&mut self, slot: u32) -> &mut Symbol {
        &mut self.symbols[slot]
    }

    /// In no meaningful order: sort before use.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Symbol> {
        self.index.slots().map(|slot| &self.symbols[slot])
    }

    #[inline]
    pub(super) fn slot(&self, id: SymbolId) -> Option<u32> {
        let id_of = |slot: u32| self.symbols[slot].spec.id;
        self.index.find(id, id_of)
    }

    /// The slot of a symbol, if it is found without a hash.
    #[inline]
    pub(super) fn near(&self, id: SymbolId) -> Option<u32> {
        self.index.find_small(id)
    }

    /// The symbol, if it is found without a hash.
    #[inline(always)]
    pub(super) fn near_ref(&self, id: SymbolId) -> Option<&Symbol> {
        self.symbols.get(self.index.find_small(id)? as usize)
    }

    /// The same, to change it.
    #[inline(always)]
    pub(super) fn near_mut(&mut self, id: SymbolId) -> Option<&mut Symbol> {
        let slot = self.index.find_small(id)?;
        self.symbols.get_mut(slot)
    }

    /// Adds a symbol, unless its id is known.
    pub(super) fn add(&mut self, spec: &SymbolSpec, ledger: &mut Ledger, rules: &Rules) {
        if self.slot(spec.id).is_some() {
            return;
        }
        let pair = spec.symbol_type == SymbolType::CurrencyPair;
        let mut currency = |id| {
            if pair {
                ledger.find_or_add(id)
            } else {
                NO_CURRENCY
            }
        };
        let mut symbol = Symbol {
            spec: *spec,
            base: currency(spec.base_currency),
            quote: currency(spec.quote_currency),
            calm: Calm::default(),
            calm_futures: Calm::default(),
            scales: [0, spec.quote_scale],
            mores: [spec.base_scale, spec.taker_fee],
            currencies: [spec.base_currency, spec.quote_currency],
            is_plain: pair && !spec.fees_are_of_value(),
            is_swift: pair && !spec.fees_are_of_value() && !rules.remember_orders(),
            gate: Gate::OPEN,
            last: None,
            drains: pair && spec.maker_fee > spec.taker_fee,
            remembers: rules.remember_orders(),
            inverted: false,
            size_max: 0,
            lots_total: 0,
            price_max: 0,
        };
        symbol.renew_calm(rules);
        let slot = self.symbols.insert(symbol);
        self.index.insert(spec.id, slot);
    }

    /// Forgets a symbol. Nothing may refer to its slot any more, as the next symbol gets it.
    pub(super) fn remove(&mut self, id: SymbolId) {
        let symbols = &self.symbols;
        if let Some(slot) = self.index.remove(id, |slot| symbols[slot].spec.id) {
            self.symbols.free(slot);
        }
    }
}
