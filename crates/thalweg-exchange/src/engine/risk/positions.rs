//! Positions in futures: what a user holds, what is pending, and the margin for both.
//!
//! Prices of futures are not scaled: a lot at price p is worth p of the quote currency.
//!
//! A position stands for two accounts in the quote currency, *profit* and −*direction* × *price
//! sum* (what was paid for the open lots, or received); a trade moves price × lots from the
//! buyer's accounts to the seller's. The ledger counts both like balances: see [`PositionTotals`].

use super::ledger::PositionTotals;
use super::symbols::{LastPrices, Symbol};
use crate::command::{Action, Place, SymbolSpec};
use crate::ids::{CurrencyId, SymbolId};
use crate::result_code::ResultCode;

/// Which way a position is open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(i8)]
pub enum Direction {
    /// Sold (code −1).
    Short = -1,
    /// Not open (code 0).
    #[default]
    Empty = 0,
    /// Bought (code 1).
    Long = 1,
}

impl Direction {
    const fn of(action: Action) -> Self {
        match action {
            Action::Ask => Self::Short,
            Action::Bid => Self::Long,
        }
    }

    /// `value`, negative of what is sold, nothing of what is not open.
    pub(super) const fn signed(self, value: i128) -> i128 {
        match self {
            Self::Short => -value,
            Self::Empty => 0,
            Self::Long => value,
        }
    }
}

/// A user's record in one futures symbol. Made with the first order, removed when nothing is open
/// and nothing pending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// The futures symbol.
    pub symbol: SymbolId,
    /// Its quote currency.
    pub currency: CurrencyId,
    /// Which way the position is open.
    pub direction: Direction,
    /// Open lots; not negative.
    pub open_volume: i64,
    /// Σ price × lots of what is open.
    pub open_price_sum: i64,
    /// Realised so far and not booked to the balance yet.
    pub profit: i64,
    /// Lots of sell orders that wait or rest.
    pub pending_sell: i64,
    /// Lots of buy orders that wait or rest.
    pub pending_buy: i64,
    /// The symbol's slot.
    pub(super) slot: u32,
}

impl Position {
    pub(super) const fn new(spec: &SymbolSpec, slot: u32) -> Self {
        Self {
            symbol: spec.id,
            currency: spec.quote_currency,
            direction: Direction::Empty,
            open_volume: 0,
            open_price_sum: 0,
            profit: 0,
            pending_sell: 0,
            pending_buy: 0,
            slot,
        }
    }

    /// Returns true where nothing is open and nothing pending.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        matches!(self.direction, Direction::Empty)
            && self.pending_sell == 0
            && self.pending_buy == 0
    }

    /// Returns the position's worth without its open lots: profit − the price paid for them. Over
    /// all positions of a symbol, the open lots cancel out.
    #[must_use]
    pub const fn cash(&self) -> i128 {
        self.profit as i128 - self.direction.signed(self.open_price_sum as i128)
    }

    pub(super) fn totals(&self) -> PositionTotals {
        let paid = -self.direction.signed(self.open_price_sum.into());
        PositionTotals {
            debt: -(paid.min(0) + i128::from(self.profit.min(0))),
            lots: self.open_volume.into(),
        }
    }

    pub(super) const fn pending(&mut self, action: Action) -> &mut i64 {
        match action {
            Action::Ask => &mut self.pending_sell,
            Action::Bid => &mut self.pending_buy,
        }
    }

    /// Profit as it would be if the position were closed at the last price: where that is unknown,
    /// the margin of its side counts as profit.
    pub(super) fn estimated_profit(&self, spec: &SymbolSpec, last: LastPrices) -> i128 {
        let lots = i128::from(self.open_volume);
        let paid = i128::from(self.open_price_sum);
        let open = match self.direction {
            Direction::Empty => 0,
            Direction::Long if last.bid == LastPrices::EMPTY.bid => {
                i128::from(spec.margin_buy) * lots
            }
            Direction::Long => lots * i128::from(last.bid) - paid,
            Direction::Short if last.ask == LastPrices::EMPTY.ask => {
                i128::from(spec.margin_sell) * lots
            }
            Direction::Short => paid - lots * i128::from(last.ask),
        };
        i128::from(self.profit) + open
    }

    /// Returns the margin for open and pending lots, and for this number of further lots.
    fn margin(&self, spec: &SymbolSpec, buys: i64, sells: i64) -> i128 {
        let open = self.direction.signed(self.open_volume.into());
        let buy = i128::from(self.pending_buy) + i128::from(buys) + open;
        let sell = i128::from(self.pending_sell) + i128::from(sells) - open;
        times(spec.margin_buy, buy).max(times(spec.margin_sell, sell))
    }

    /// Margin today.
    fn required_margin(&self, spec: &SymbolSpec) -> i128 {
        self.margin(spec, 0, 0)
    }

    /// Margin with a new order, or `None` where it is not above today's.
    #[inline]
    pub(super) fn margin_with(
        &self,
        spec: &SymbolSpec,
        action: Action,
        lots: i64,
    ) -> Result<Option<i128>, ResultCode> {
        match self.margin_with_in_64_bits(spec, action, lots) {
            Some(margin) => Ok(margin.map(i128::from)),
            None => self.wide_margin_with(spec, action, lots),
        }
    }

    /// Returns the margin as [`margin_with`](Self::margin_with); the outer `None` where 64 bits are
    /// not enough to compute it.
    #[inline]
    #[expect(clippy::option_option, reason = "none of its own, and no answer")]
    fn margin_with_in_64_bits(
        &self,
        spec: &SymbolSpec,
        action: Action,
        lots: i64,
    ) -> Option<Option<i64>> {
        let open = match self.direction {
            Direction::Short => self.open_volume.checked_neg()?,
            Direction::Empty => 0,
            Direction::Long => self.open_volume,
        };
        let buy = self.pending_buy.checked_add(open)?;
        let sell = self.pending_sell.checked_sub(open)?;
        let margin = |buy: i64, sell: i64| {
            let buy = spec.margin_buy.checked_mul(buy)?;
            Some(buy.max(spec.margin_sell.checked_mul(sell)?))
        };
        let today = margin(buy, sell)?;
        let then = match action {
            Action::Ask => margin(buy, sell.checked_add(lots)?)?,
            Action::Bid => margin(buy.checked_add(lots)?, sell)?,
        };
        Some((then > today).then_some(then))
    }

    #[cold]
    fn wide_margin_with(
        &self,
        spec: &SymbolSpec,
        action: Action,
        lots: i64,
    ) -> Result<Option<i128>, ResultCode> {
        let margin = match action {
            Action::Ask => self.margin(spec, 0, lots),
            Action::Bid => self.margin(spec, lots, 0),
        };
        if margin <= self.required_margin(spec) {
            return Ok(None);
        }
        inside_64_bits(margin).map(Some)
    }

    /// Returns whether so much money is enough for the margin with an order, if its owner has
    /// nothing but this record; false where 64 bits are not enough to compute it.
    #[inline(always)]
    pub(super) fn has_margin_for(&self, place: &Place, symbol: &Symbol, money: i64) -> bool {
        let spec = &symbol.spec;
        match self.margin_with_in_64_bits(spec, place.action, place.size) {
            Some(Some(margin)) => {
                let profit = self.estimated_profit(spec, symbol.last_prices());
                let profit = i64::try_from(profit).ok();
                let money = profit.and_then(|profit| money.checked_add(profit));
                money.is_some_and(|money| margin <= money)
            }
            Some(None) => true,
            None => false,
        }
    }

    /// Returns the position's part of its owner's free money: estimated profit − required margin.
    pub(super) fn free_margin(
        &self,
        spec: &SymbolSpec,
        last: LastPrices,
    ) -> Result<i128, ResultCode> {
        let profit = inside_64_bits(self.estimated_profit(spec, last))?;
        Ok(profit - inside_64_bits(self.required_margin(spec))?)
    }

    /// Books a trade of the owner: closes what is open the other way, opens the rest. Returns the
    /// lots opened, on which the fee is due. `realise`: a part that is closed realises its share
    /// of the profit, by the average price (the share of the price sum is rounded towards zero, and
    /// what is cut off stays in the sum).
    ///
    /// # Panics
    /// If a sum leaves 64 bits, which the ledger's rule excludes.
    pub(super) fn trade(&mut self, action: Action, lots: i64, price: i64, realise: bool) -> i64 {
        *self.pending(action) -= lots;
        let direction = Direction::of(action);
        let mut to_open = lots;
        if self.direction != Direction::Empty && self.direction != direction {
            if self.open_volume > lots {
                self.close_part(lots, price, realise);
                return 0;
            }
            let gain =
                i128::from(self.open_volume) * i128::from(price) - i128::from(self.open_price_sum);
            self.profit = narrow(i128::from(self.profit) + self.direction.signed(gain));
            to_open -= self.open_volume;
            self.open_volume = 0;
            self.open_price_sum = 0;
            self.direction = Direction::Empty;
        }
        if to_open > 0 {
            let paid = i128::from(to_open) * i128::from(price);
            self.open_volume = narrow(i128::from(self.open_volume) + i128::from(to_open));
            self.open_price_sum = narrow(i128::from(self.open_price_sum) + paid);
            self.direction = direction;
        }
        to_open
    }

    fn close_part(&mut self, lots: i64, price: i64, realise: bool) {
        let value = i128::from(lots) * i128::from(price);
        let mut leaving = value;
        if realise {
            let (sum, volume) = (self.open_price_sum, self.open_volume);
            leaving = match sum.checked_mul(lots) {
                Some(product) => i128::from(product / volume),
                None => i128::from(sum) * i128::from(lots) / i128::from(volume),
            };
            let gain = self.direction.signed(value - leaving);
            self.profit = narrow(i128::from(self.profit) + gain);
        }
        self.open_volume -= lots;
        self.open_price_sum = narrow(i128::from(self.open_price_sum) - leaving);
    }
}

/// Returns a product. One beyond 128 bits is refused like one beyond 64, so it may saturate.
fn times(margin: i64, lots: i128) -> i128 {
    match i64::try_from(lots) {
        Ok(lots) => i128::from(margin) * i128::from(lots),
        Err(_) => i128::from(margin).saturating_mul(lots),
    }
}

/// Refuses an amount that the reference could not compute in 64 bits.
fn inside_64_bits(amount: i128) -> Result<i128, ResultCode> {
    i64::try_from(amount)
        .map(i128::from)
        .map_err(|_| ResultCode::RiskArithmeticOverflow)
}

fn narrow(amount: i128) -> i64 {
    i64::try_from(amount).expect("the ledger's rule keeps every position inside 64 bits")
}

// A user's records in futures symbols: most have one at a time, which needs no list.

/// Records by ascending symbol. Either there is one at most and it is in `one`, or all are in
/// `many`, until that is empty again.
#[derive(Clone, Debug)]
pub(super) struct Positions {
    one: [Position; 1],
    has_one: bool,
    many: Vec<Position>,
}

impl Default for Positions {
    fn default() -> Self {
        Self {
            one: [Position::new(&SymbolSpec::default(), 0)],
            has_one: false,
            many: Vec::new(),
        }
    }
}

impl Positions {
    pub(super) fn as_slice(&self) -> &[Position] {
        if self.has_one { &self.one } else { &self.many }
    }

    #[inline]
    pub(super) fn get(&self, symbol: SymbolId) -> Option<&Position> {
        if self.has_one {
            return Some(&self.one[0]).filter(|one| one.symbol == symbol);
        }
        let place = self.place(symbol).ok()?;
        Some(&self.many[place])
    }

    /// Returns the record of a symbol, made by `new` where it is missing.
    #[inline(always)]
    pub(super) fn get_or_insert(
        &mut self,
        symbol: SymbolId,
        new: impl FnOnce() -> Position,
    ) -> &mut Position {
        if self.has_one && self.one[0].symbol == symbol {
            return &mut self.one[0];
        }
        self.get_among_many(symbol, new)
    }

    #[inline(never)]
    fn get_among_many(
        &mut self,
        symbol: SymbolId,
        new: impl FnOnce() -> Position,
    ) -> &mut Position {
        if !self.has_one && self.many.is_empty() {
            self.has_one = true;
            self.one = [new()];
            return &mut self.one[0];
        }
        if std::mem::take(&mut self.has_one) {
            self.many.push(self.one[0]);
        }
        let place = self.place(symbol).unwrap_or_else(|place| {
            self.many.insert(place, new());
            place
        });
        &mut self.many[place]
    }

    pub(super) fn remove(&mut self, symbol: SymbolId) -> Option<Position> {
        if self.has_one {
            self.has_one = self.one[0].symbol != symbol;
            return (!self.has_one).then_some(self.one[0]);
        }
        let place = self.place(symbol).ok()?;
        Some(self.many.remove(place))
    }

    fn place(&self, symbol: SymbolId) -> Result<usize, usize> {
        self.many
            .binary_search_by_key(&symbol, |position| position.symbol)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(direction: Direction, volume: i64, sum: i64) -> Position {
        Position {
            direction,
            open_volume: volume,
            open_price_sum: sum,
            ..Position::new(&SymbolSpec::default(), 0)
        }
    }

    #[test]
    fn a_part_closed_keeps_the_average_price_only_when_mended() {
        let mut position = open(Direction::Long, 10, 5_000);
        assert_eq!(position.trade(Action::Ask, 4, 520, false), 0);
        assert_eq!((position.open_price_sum, position.profit), (2_920, 0));
        let mut position = open(Direction::Long, 10, 5_000);
        assert_eq!(position.trade(Action::Ask, 4, 520, true), 0);
        assert_eq!((position.open_price_sum, position.profit), (3_000, 80));
        let mut position = open(Direction::Short, 10, 5_000);
        assert_eq!(position.trade(Action::Bid, 4, 520, true), 0);
        assert_eq!((position.open_price_sum, position.profit), (3_000, -80));
        assert_eq!(position.trade(Action::Bid, 9, 490, true), 3);
        assert_eq!((position.open_price_sum, position.profit), (1_470, -20));
        assert_eq!(position.direction, Direction::Long);
    }

    #[test]
    fn what_is_cut_off_by_rounding_stays_in_the_sum() {
        let mut position = open(Direction::Long, 3, 100);
        let cash = position.cash();
        assert_eq!(position.trade(Action::Ask, 1, 40, true), 0);
        assert_eq!((position.open_price_sum, position.profit), (67, 7));
        assert_eq!(position.cash(), cash + 40);
    }
}

#[cfg(test)]
mod positions_tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn are_those_of_a_set(steps in prop::collection::vec((any::<bool>(), 0_i32..4), 0..100)) {
            let mut positions = Positions::default();
            let mut model = BTreeSet::new();
            for (add, id) in steps {
                let symbol = SymbolId(id);
                let spec = SymbolSpec { id: symbol, ..SymbolSpec::default() };
                if add {
                    let position = positions.get_or_insert(symbol, || Position::new(&spec, 3));
                    prop_assert_eq!(position.symbol, symbol);
                    model.insert(symbol);
                } else {
                    let removed = positions.remove(symbol).map(|position| position.symbol);
                    prop_assert_eq!(removed, model.take(&symbol));
                }
                let found = positions.as_slice().iter().map(|position| position.symbol);
                prop_assert!(found.eq(model.iter().copied()));
                for symbol in (0..4).map(SymbolId) {
                    let found = positions.get(symbol).map(|position| position.symbol);
                    prop_assert_eq!(found, model.get(&symbol).copied());
                }
            }
        }
    }
}
