//! Halted symbols and price bands: which new and moved orders a symbol takes at all.
//!
//! An order is held to a gate once, by its risk check, before anything is held for it. Orders that
//! rest or wait when a gate closes stay, and may be cancelled and reduced; what a resting order
//! trades for after that is up to the orders that come, and those are held to the gate.
//!
//! Futures that are covered (see `cover`) need a band. Where they are not, a band bounds what one
//! order can reserve of the ledger's 64 bits, which is its price times its lots: without one, a
//! user's order far from the market can leave no room in the currency for others.

use super::Risk;
use super::cover::FUTURES_PRICE_MAX;
use crate::command::Command;
use crate::ids::SymbolId;
use crate::result_code::ResultCode;

/// The limits of a symbol for new and moved orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TradingLimits {
    /// True where it takes none; see [`Command::Halt`](crate::Command::Halt).
    pub halted: bool,
    /// True while orders are collected for an auction; see
    /// [`Command::StartAuction`](crate::Command::StartAuction).
    pub auction: bool,
    /// True where it takes no orders while [`Command::Uncross`](crate::Command::Uncross), or in
    /// covered futures [`Command::SetPriceBand`](crate::Command::SetPriceBand), goes on in further
    /// commands.
    pub busy: bool,
    /// The lowest price; `i64::MIN` for none. See
    /// [`Command::SetPriceBand`](crate::Command::SetPriceBand).
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
    pub(super) const OPEN: Self = Self::new(TradingLimits::NONE);

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

    /// The lowest price that passes; above [`Self::high`] where none does.
    pub(super) const fn low(&self) -> i64 {
        self.low
    }

    /// The highest price that passes.
    pub(super) const fn high(&self) -> i64 {
        self.high
    }

    /// The prices of the band, halted or not.
    pub(super) const fn band(&self) -> (i64, i64) {
        (self.limits.low, self.limits.high)
    }

    /// Whether there is a band, as futures that are covered need one: above zero.
    pub(super) const fn has_band(&self) -> bool {
        self.limits.low > 0
    }

    /// Whether an auction collects orders, so that not every order can come.
    pub(super) const fn is_auction(&self) -> bool {
        self.limits.auction
    }

    /// Whether an order at this price passes; `has_limit` is false where the price is a budget, or
    /// the worst one of a market order.
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
    pub fn limited(&self) -> Vec<(SymbolId, TradingLimits)> {
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

    /// Whether a symbol's futures are covered; see the `cover` module.
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
