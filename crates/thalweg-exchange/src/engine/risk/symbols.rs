//! Symbols as the risk check and settlement see them: terms, plain prices, gates.

use std::mem::offset_of;

use thalweg::ring::prefetch;

use super::Risk;
use super::ledger::Ledger;
use crate::command::{Action, Command, OrderType, Place, SymbolSpec, SymbolType};
use crate::engine::index::{NO_SLOT, SymbolIndex};
use crate::engine::slab::Slab;
use crate::event::TopOfBook;
use crate::ids::{CurrencyId, SymbolId};
use crate::result_code::ResultCode;
use crate::rules::Rules;

/// No slot in the ledger.
pub(super) const NO_CURRENCY: u32 = u32::MAX;

/// A symbol, its currencies' slots in the ledger, and what was seen of it.
///
/// All but `spec` and the last prices changes only when a command is checked and accepted. Its
/// first cache line has what the fast path of a pair reads.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(super) struct Symbol {
    /// Prices of a pair that take the fast path.
    pub(super) plain_prices: PlainPrices,
    /// The hold of an order of each side for a lot of a pair with fees per lot: its reserve price
    /// times the first, and the second, of the third.
    scales: [i64; 2],
    mores: [i64; 2],
    pub(super) currencies: [CurrencyId; 2],
    /// A pair, with fees per lot.
    pub(super) is_plain: bool,
    /// It is plain, and its orders may be cancelled and reduced.
    pub(super) gives_back: bool,
    /// It is plain, has two currencies, and orders are not remembered either.
    pub(super) is_simple: bool,
    /// Whether orders are remembered: where later ones could lose more than they hold by them.
    pub(super) remembers: bool,
    /// Slots in the ledger; of a pair from the beginning, of futures only the quote currency's, and
    /// from their first order on.
    pub(super) base: u32,
    pub(super) quote: u32,
    /// Prices of futures that take the fast path, as long as margin trading is on.
    pub(super) plain_futures_prices: PlainPrices,
    /// Which new and moved orders it takes.
    pub(super) gate: Gate,
    pub(super) spec: SymbolSpec,
    /// Futures: the best prices after the last command that succeeded. Written by settlement.
    pub(super) last: Option<LastPrices>,
    /// The records of its orders.
    pub(super) seen: Seen,
}

const _: () = assert!(offset_of!(Symbol, quote) == 64);

impl Symbol {
    pub(super) const fn is_pair(&self) -> bool {
        matches!(self.spec.symbol_type, SymbolType::CurrencyPair)
    }

    pub(super) const fn is_futures(&self) -> bool {
        matches!(self.spec.symbol_type, SymbolType::Futures)
    }

    /// Returns the best prices of a futures symbol, as far as they are known.
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

    /// Returns the hold for lots of an order in a pair, in the currency of its side: units of the
    /// base currency, or the reserve price and its taker fee. `None` beyond 64 bits.
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

    /// Returns the hold where fees are per lot. Both sides in one: which it is cannot be foreseen.
    #[inline(always)]
    pub(super) fn plain_money(&self, action: Action, lots: i64, reserve: i64) -> Option<i64> {
        let side = action as usize;
        let per_lot = reserve.checked_mul(self.scales[side])?;
        per_lot.checked_add(self.mores[side])?.checked_mul(lots)
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

    /// Returns the symbol in a slot that [`Self::slot`] gave.
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

    /// Returns the slot of a symbol, if it is found without a hash.
    #[inline]
    pub(super) fn near(&self, id: SymbolId) -> Option<u32> {
        self.index.near(id).filter(|&slot| slot != NO_SLOT)
    }

    /// Returns the symbol, if it is found without a hash, and its slot.
    #[inline(always)]
    pub(super) fn near_with_slot(&self, id: SymbolId) -> Option<(u32, &Symbol)> {
        let slot = self.index.near(id)?;
        Some((slot, self.symbols.get(slot as usize)?))
    }

    /// Returns the symbol, if it is found without a hash.
    #[inline(always)]
    pub(super) fn near_ref(&self, id: SymbolId) -> Option<&Symbol> {
        self.symbols.get(self.index.near(id)? as usize)
    }

    /// Returns whether what is read of a symbol is far away most of the time.
    #[inline]
    pub(super) const fn are_many(&self) -> bool {
        self.index.are_many()
    }

    /// Prefetches the fields of a symbol that the fast path reads.
    #[inline]
    pub(super) fn prefetch(&self, id: SymbolId) {
        if let Some(symbol) = self.near_ref(id) {
            prefetch(&symbol.plain_prices);
            prefetch(&symbol.quote);
        }
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
        let is_plain = pair && !spec.fees_are_of_value();
        let is_of_two = spec.base_currency != spec.quote_currency;
        let mut symbol = Symbol {
            spec: *spec,
            base: currency(spec.base_currency),
            quote: currency(spec.quote_currency),
            plain_prices: PlainPrices::default(),
            plain_futures_prices: PlainPrices::default(),
            scales: [0, spec.quote_scale],
            mores: [spec.base_scale, spec.taker_fee],
            currencies: [spec.base_currency, spec.quote_currency],
            is_plain,
            gives_back: is_plain,
            is_simple: is_plain && is_of_two && !rules.remember_orders(),
            gate: Gate::OPEN,
            last: None,
            remembers: rules.remember_orders(),
            seen: Seen::default(),
        };
        symbol.renew_plain_prices(rules);
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

/// The best prices of a futures symbol after the last command that succeeded there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastPrices {
    /// The best ask; `i64::MAX` where there is none.
    pub ask: i64,
    /// The best bid; 0 where there is none.
    pub bid: i64,
}

impl LastPrices {
    /// The last prices of an empty book.
    pub const EMPTY: Self = Self {
        ask: i64::MAX,
        bid: 0,
    };
}

impl LastPrices {
    pub(super) fn of(top_of_book: &TopOfBook) -> Self {
        Self {
            ask: top_of_book.ask.unwrap_or(Self::EMPTY.ask),
            bid: top_of_book.bid.unwrap_or(Self::EMPTY.bid),
        }
    }
}

/// The highest price that a band of a covered futures symbol may have: with
/// [`FUTURES_LOTS_MAX`], all sums of a position stay inside 64 bits.
pub const FUTURES_PRICE_MAX: i64 = 1 << 36;

/// The most lots that a user may come to have bought or sold in a covered futures symbol, whichever
/// pending ones trade. An order that closes an open position is never too much.
pub const FUTURES_LOTS_MAX: i64 = 1 << 25;

/// The records of a symbol's orders.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    /// Sticky: an order of negative size was accepted.
    pub(crate) inverted: bool,
    /// The largest order so far, in lots.
    pub(crate) size_max: i64,
    /// All lots ever ordered.
    pub(crate) lots_total: i128,
    /// The largest price, reserve price or budget so far, by magnitude.
    pub(crate) price_max: u64,
}

/// A range of plain prices; empty where none is.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PlainPrices {
    low: i64,
    /// How many prices there are from `low` on.
    prices: u64,
}

impl PlainPrices {
    #[inline]
    pub(super) const fn holds(&self, price: i64) -> bool {
        price.wrapping_sub(self.low).cast_unsigned() < self.prices
    }

    const fn within(may_be: bool, low: i64, high: i64) -> Self {
        let prices = if may_be && low <= high {
            (high - low).unsigned_abs() + 1
        } else {
            0
        };
        Self { low, prices }
    }
}

impl Symbol {
    /// Computes the range of plain prices anew. Must be called after every change of what it
    /// depends on.
    pub(super) fn renew_plain_prices(&mut self, rules: &Rules) {
        let spec = &self.spec;
        let floor = if rules.refuse_moved_ask_under_fee {
            1
        } else {
            lowest_price(self.fee_max(), spec.quote_scale).max(1)
        };
        let low = floor.max(spec.lowest_ask()).max(self.gate.low());
        // A price times its scale fits, too.
        let mut high = self.gate.high().min(i64::MAX / spec.quote_scale);
        if self.remembers {
            high = high.min(i64::try_from(self.price_max()).unwrap_or(i64::MAX));
        }
        let may_be = !self.gate.is_auction()
            && self.is_pair()
            && !self.is_inverted()
            && spec.maker_fee <= spec.taker_fee;
        self.plain_prices = PlainPrices::within(may_be, low, high);
        self.gives_back = self.is_plain && !self.gate.is_auction();
        let (low, high) = (self.gate.low().max(1), self.gate.high());
        let has_band = !rules.cover_futures || self.gate.has_band();
        let is_open = !self.gate.is_auction();
        let may_be = is_open && self.is_futures() && rules.margin_trading && has_band;
        self.plain_futures_prices = PlainPrices::within(may_be, low, high);
    }

    /// Returns the hold of a new order in the currency of its side, if the order takes the fast
    /// path in all that does not concern its owner. `SIMPLE`: in a simple symbol.
    #[inline(always)]
    pub(super) fn plain_hold<const SIMPLE: bool>(&self, place: &Place) -> Option<i64> {
        let Place {
            action,
            price,
            reserve_price: reserve,
            size,
            ..
        } = *place;
        // Which side it is cannot be foreseen.
        let is_paid_for = (reserve >= price) | (action == Action::Ask);
        if !(self.plain_prices.holds(price) && size > 0 && is_paid_for && is_plain(place)) {
            return None;
        }
        if SIMPLE {
            return self.plain_money(action, size, reserve);
        }
        let is_new = self.remembers && reserve.unsigned_abs() > self.price_max();
        if is_new {
            return None;
        }
        self.money(action, size, reserve)
    }
}

/// True of an order whose price is a limit, and whose flags fit its type whatever they are.
#[inline]
pub(super) const fn is_plain(place: &Place) -> bool {
    matches!(place.order_type, OrderType::Gtc)
        || !(place.order_type.is_budget() || place.flags.is_post_only())
}

fn lowest_price(fee: i64, scale: i64) -> i64 {
    fee / scale + i64::from(fee % scale != 0)
}

// Halted symbols and price bands: which new and moved orders a symbol takes at all.
//
// An order is held to a gate once, by its risk check, before anything is held for it. Orders that
// rest or wait when a gate closes stay, and may be cancelled and reduced, but while an auction ends
// in steps; what a resting order trades for after that is up to the orders that come, and those are
// held to the gate.
//
// Futures that are covered (see `cover`) need a band. Where they are not, a band bounds what one
// order can reserve of the ledger's 64 bits, which is its price times its lots: without one, a
// user's order far from the market can leave no room in the currency for others.

/// The limits of a symbol for new and moved orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TradingLimits {
    /// True where it takes none; see [`Command::Halt`].
    pub halted: bool,
    /// True while orders are collected for an auction; see [`Command::StartAuction`].
    pub auction: bool,
    /// True where it takes no orders while [`Command::Uncross`], or in covered futures
    /// [`Command::SetPriceBand`], goes on in further commands.
    pub busy: bool,
    /// The lowest price; `i64::MIN` for none. See [`Command::SetPriceBand`].
    pub low: i64,
    /// The highest price; `i64::MAX` for none.
    pub high: i64,
}

impl TradingLimits {
    /// No limits: what a new symbol has.
    pub const NONE: Self = Self {
        halted: false,
        auction: false,
        busy: false,
        low: i64::MIN,
        high: i64::MAX,
    };
}

/// The limits of a symbol, in a form that costs a new order two comparisons that are foreseen.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gate {
    /// Whatever has a price from here…
    low: i64,
    /// …to here passes. Empty while the symbol is halted or busy.
    high: i64,
    limits: TradingLimits,
}

impl Gate {
    const OPEN: Self = Self::new(TradingLimits::NONE);

    pub(super) const fn new(limits: TradingLimits) -> Self {
        let (low, high) = if limits.halted || limits.busy {
            (i64::MAX, i64::MIN)
        } else {
            (limits.low, limits.high)
        };
        Self { low, high, limits }
    }

    pub(super) const fn limits(&self) -> TradingLimits {
        self.limits
    }

    /// Returns the lowest price that passes; above [`Self::high`] where none does.
    pub(super) const fn low(&self) -> i64 {
        self.low
    }

    /// Returns the highest price that passes.
    pub(super) const fn high(&self) -> i64 {
        self.high
    }

    /// Returns the prices of the band, halted or not.
    pub(super) const fn band(&self) -> (i64, i64) {
        (self.limits.low, self.limits.high)
    }

    /// Returns whether there is a band, as futures that are covered need one: above zero.
    pub(super) const fn has_band(&self) -> bool {
        self.limits.low > 0
    }

    /// Returns whether an auction collects orders, so that not every order can come.
    pub(super) const fn is_auction(&self) -> bool {
        self.limits.auction
    }

    /// Checks that an order at this price passes; `has_limit` is false where the price is a budget,
    /// or the worst one of a market order.
    #[inline]
    pub(super) const fn check(&self, price: i64, has_limit: bool) -> Result<(), ResultCode> {
        if self.low <= price && price <= self.high {
            Ok(())
        } else {
            self.look(has_limit)
        }
    }

    /// Checks a price that is not in the range.
    #[cold]
    const fn look(&self, has_limit: bool) -> Result<(), ResultCode> {
        if self.limits.busy && self.limits.auction && !self.limits.halted {
            Err(ResultCode::SymbolInAuction)
        } else if self.limits.halted || self.limits.busy {
            Err(ResultCode::SymbolHalted)
        } else if has_limit {
            Err(ResultCode::RiskPriceOutsideBand)
        } else {
            Ok(())
        }
    }
}

impl Risk {
    /// Returns the limits of a symbol for new and moved orders; `None` where there is no such
    /// symbol.
    #[must_use]
    pub fn limits(&self, symbol: SymbolId) -> Option<TradingLimits> {
        self.symbols.get(symbol).map(|symbol| symbol.gate.limits())
    }

    /// Returns the limits of all symbols that have any, by ascending id. Cost: visits every symbol.
    #[must_use]
    pub fn symbols_with_limits(&self) -> Vec<(SymbolId, TradingLimits)> {
        let limits = |symbol: &super::Symbol| (symbol.spec.id, symbol.gate.limits);
        let mut limited: Vec<_> = self
            .symbols
            .iter()
            .map(limits)
            .filter(|&(_, limits)| limits != TradingLimits::NONE)
            .collect();
        limited.sort_unstable_by_key(|&(symbol, _)| symbol);
        limited
    }

    pub(super) fn halt(&mut self, symbol: SymbolId, halted: bool) -> Result<(), ResultCode> {
        let mut limits = self.limits(symbol).ok_or(ResultCode::InvalidSymbol)?;
        if limits.halted == halted {
            return Err(if halted {
                ResultCode::SymbolAlreadyHalted
            } else {
                ResultCode::SymbolNotHalted
            });
        }
        limits.halted = halted;
        self.set_limits(symbol, limits)
    }

    pub(super) fn set_band(
        &mut self,
        symbol: SymbolId,
        low: i64,
        high: i64,
    ) -> Result<(), ResultCode> {
        let limits = self.limits(symbol).ok_or(ResultCode::InvalidSymbol)?;
        let is_covered = self.is_covered_symbol(symbol);
        if low > high || (is_covered && (low < 1 || high > FUTURES_PRICE_MAX)) {
            return Err(ResultCode::SymbolInvalidPriceBand);
        }
        if limits.busy && limits.auction {
            return Err(ResultCode::SymbolInAuction);
        }
        let is_moved = !self.rules.bound_work || (low, high) != (limits.low, limits.high);
        if is_covered && limits.low > 0 && is_moved {
            self.note_band_moved(symbol);
        }
        self.set_limits(
            symbol,
            TradingLimits {
                low,
                high,
                ..limits
            },
        )
    }

    /// Notes whether a price band, or the end of an auction, goes on in further commands: where
    /// orders could trade before that is done, the symbol takes none. In an auction, none does.
    pub(super) fn note_step(&mut self, command: &Command, is_unfinished: bool) {
        let (Command::SetPriceBand { symbol, .. } | Command::Uncross { symbol, .. }) = *command
        else {
            return;
        };
        let Some(before) = self.limits(symbol) else {
            return;
        };
        let mut limits = before;
        if matches!(command, Command::Uncross { .. }) {
            (limits.auction, limits.busy) = (is_unfinished, is_unfinished);
        } else {
            limits.busy = is_unfinished && !limits.auction;
        }
        if limits != before {
            self.set_limits(symbol, limits)
                .expect("the symbol is known");
        }
    }

    /// Returns the command that goes on with a price band or the end of an auction that is not
    /// done; `None` in a halted auction.
    pub(crate) fn next_step(&self, symbol: SymbolId) -> Option<Command> {
        let limits = self.limits(symbol)?;
        let TradingLimits { low, high, .. } = limits;
        let reference = None;
        match limits.busy && limits.auction {
            true => (!limits.halted).then_some(Command::Uncross { symbol, reference }),
            false => Some(Command::SetPriceBand { symbol, low, high }),
        }
    }

    /// Returns whether a symbol's futures are covered; see the `cover` module.
    fn is_covered_symbol(&self, symbol: SymbolId) -> bool {
        let is_futures = self
            .symbols
            .get(symbol)
            .is_some_and(super::Symbol::is_futures);
        is_futures && self.rules.margin_trading && self.rules.cover_futures
    }

    pub(super) fn set_limits(
        &mut self,
        symbol: SymbolId,
        limits: TradingLimits,
    ) -> Result<(), ResultCode> {
        let slot = self.symbols.slot(symbol);
        let slot = slot.ok_or(ResultCode::InvalidSymbol)?;
        let symbol = self.symbols.at_mut(slot);
        symbol.gate = Gate::new(limits);
        symbol.renew_plain_prices(&self.rules);
        self.epoch += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_halted_gate_lets_no_price_through_and_keeps_its_band() {
        let band = TradingLimits {
            low: 5,
            high: 9,
            ..TradingLimits::NONE
        };
        let (open, halted) = (
            Gate::new(band),
            Gate::new(TradingLimits {
                halted: true,
                ..band
            }),
        );
        for price in [i64::MIN, 4, 5, 9, 10, i64::MAX] {
            let inside = (5..=9).contains(&price);
            let expected = if inside {
                Ok(())
            } else {
                Err(ResultCode::RiskPriceOutsideBand)
            };
            assert_eq!(open.check(price, true), expected);
            assert_eq!(open.check(price, false), Ok(()));
            assert_eq!(Gate::OPEN.check(price, true), Ok(()));
            for has_limit in [false, true] {
                assert_eq!(
                    halted.check(price, has_limit),
                    Err(ResultCode::SymbolHalted)
                );
            }
        }
    }
}
