//! Symbols as the risk check and settlement see them.

use std::mem::offset_of;

use thalweg::ring::prefetch;

use super::fast_path::PlainPrices;
use super::gate::Gate;
use super::ledger::Ledger;
use super::position::LastPrices;
use super::reference::Seen;
use crate::command::{Action, SymbolSpec, SymbolType};
use crate::engine::slab::Slab;
use crate::engine::symbol_index::{NO_SLOT, SymbolIndex};
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
        self.index.near(id).filter(|&slot| slot != NO_SLOT)
    }

    /// The symbol, if it is found without a hash, and its slot.
    #[inline(always)]
    pub(super) fn near_with_slot(&self, id: SymbolId) -> Option<(u32, &Symbol)> {
        let slot = self.index.near(id)?;
        Some((slot, self.symbols.get(slot as usize)?))
    }

    /// The symbol, if it is found without a hash.
    #[inline(always)]
    pub(super) fn near_ref(&self, id: SymbolId) -> Option<&Symbol> {
        self.symbols.get(self.index.near(id)? as usize)
    }

    /// Whether what is read of a symbol is far away most of the time.
    #[inline]
    pub(super) const fn are_many(&self) -> bool {
        self.index.are_many()
    }

    /// Prefetches the fields of a symbol that the fast path reads.
    #[inline]
    pub(super) fn fetch(&self, id: SymbolId) {
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
