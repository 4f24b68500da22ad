//! Call auctions: the phase of a symbol, and the settlement of an uncross.
//!
//! Every order that trades in one was accepted and held for like any other, at its own limit,
//! and trades at a price that is as good for it or better. Both sides pay the taker fee, of the
//! value of each trade where it is of the value: it is what a buyer's hold has, what a seller's
//! limit must bring in, and what futures are covered for.

use super::Risk;
use super::gate::TradingLimits;
use super::settlement::Owner;
use crate::command::Action;
use crate::event::{Event, Events, UserHint};
use crate::ids::SymbolId;
use crate::result_code::ResultCode;

impl Risk {
    pub(super) fn start_auction(&mut self, symbol: SymbolId) -> Result<(), ResultCode> {
        let limits = self.limits(symbol).ok_or(ResultCode::InvalidSymbol)?;
        if !self.has_auctions(symbol) {
            return Err(ResultCode::UnsupportedSymbolType);
        }
        if limits.auction {
            return Err(ResultCode::SymbolInAuction);
        }
        self.set_limits(
            symbol,
            TradingLimits {
                halted: false,
                auction: true,
                busy: false,
                ..limits
            },
        )
    }

    fn has_auctions(&self, symbol: SymbolId) -> bool {
        let is_covered = self.rules.cover_futures && self.rules.margin_trading;
        let symbol = self.symbols.get(symbol);
        let is_traded =
            symbol.is_some_and(|symbol| symbol.is_pair() || symbol.is_futures() && is_covered);
        is_traded && self.rules.refuse_not_positive
    }

    pub(super) fn check_uncross(
        &self,
        symbol: SymbolId,
        reference: Option<i64>,
    ) -> Result<ResultCode, ResultCode> {
        let limits = self.limits(symbol).ok_or(ResultCode::InvalidSymbol)?;
        if !limits.auction {
            return Err(ResultCode::SymbolNotInAuction);
        }
        if limits.halted {
            return Err(ResultCode::SymbolHalted);
        }
        if reference.is_some_and(|price| price <= 0) {
            return Err(ResultCode::RiskPriceNotPositive);
        }
        Ok(ResultCode::ValidForMatchingEngine)
    }

    /// Checks that orders of a symbol trade now.
    pub(crate) fn check_run_stops(&self, symbol: SymbolId) -> Result<ResultCode, ResultCode> {
        let limits = self.limits(symbol).ok_or(ResultCode::InvalidSymbol)?;
        match limits {
            TradingLimits { halted: true, .. } => Err(ResultCode::SymbolHalted),
            TradingLimits { auction: true, .. } => Err(ResultCode::SymbolInAuction),
            TradingLimits { busy: true, .. } => Err(ResultCode::SymbolHalted),
            _ => Ok(ResultCode::ValidForMatchingEngine),
        }
    }

    /// Books an uncross: orders outside the band, the trades, and the stop orders that they
    /// triggered; or stop orders that were left over.
    pub(super) fn settle_uncross(&mut self, symbol: SymbolId, events: &Events) {
        let Some(slot) = self.symbols.slot(symbol) else {
            return;
        };
        let (mut buyer, hints) = (None, events.hints());
        for (at, event) in events.iter().enumerate() {
            match *event {
                Event::Uncrossed {
                    uid,
                    bidder_hold_price,
                    ..
                } => buyer = Some(((UserHint::UNKNOWN, uid), bidder_hold_price)),
                Event::Trade {
                    price,
                    size,
                    maker_uid,
                    maker_completed,
                    taker_completed,
                    ..
                } => {
                    let (buyer, hold) = buyer.expect("a buyer comes before his trades");
                    let seller = (hints.at(at), maker_uid);
                    if self.symbols.at(slot).is_pair() {
                        self.sell_in_auction(slot, seller, (price, size), maker_completed);
                        self.buy_in_auction(slot, buyer, (price, size, hold), taker_completed);
                    } else {
                        let lots = (size, price);
                        let seller = (seller, Action::Ask, true, maker_completed);
                        self.trade_covered(slot, (buyer, Action::Bid, true, taker_completed), lots);
                        self.trade_covered(slot, seller, lots);
                    }
                }
                Event::Triggered { .. } => return self.settle_triggered(slot, &events[at..]),
                Event::Removed { .. } => self.settle_removed(event),
                Event::Reject { .. } | Event::Reduce { .. } | Event::Refilled { .. } => {}
            }
        }
    }

    fn sell_in_auction(&mut self, slot: u32, seller: Owner, lots: (i64, i64), is_gone: bool) {
        let symbol = self.symbols.at(slot);
        let spec = &symbol.spec;
        let [price, size] = [lots.0, lots.1].map(i128::from);
        let fee = spec.taker_fee_of(size, price * size);
        self.ledger.get_mut(symbol.quote).add_fees(fee);
        let user = self.users.settled(seller);
        if is_gone {
            user.note_closed();
        }
        let balance = user.balance_mut(spec.quote_currency);
        let amount = price * i128::from(spec.quote_scale) * size - fee;
        self.ledger.pay_exactly(symbol.quote, balance, amount);
    }

    fn buy_in_auction(
        &mut self,
        slot: u32,
        buyer: Owner,
        (price, size, hold): (i64, i64, i64),
        is_gone: bool,
    ) {
        let symbol = self.symbols.at(slot);
        let spec = &symbol.spec;
        let [price, size] = [price, size].map(i128::from);
        let fee = spec.taker_fee_of(size, price * size);
        self.ledger.get_mut(symbol.quote).add_fees(fee);
        let user = self.users.settled(buyer);
        if is_gone {
            user.note_closed();
        }
        let balance = user.balance_mut(spec.quote_currency);
        let paid = price * i128::from(spec.quote_scale) * size + fee;
        let amount = spec.held_per_lot(hold) * size - paid;
        self.ledger.pay_exactly(symbol.quote, balance, amount);
        let balance = user.balance_mut(spec.base_currency);
        let goods = size * i128::from(spec.base_scale);
        self.ledger.pay_exactly(symbol.base, balance, goods);
    }
}
