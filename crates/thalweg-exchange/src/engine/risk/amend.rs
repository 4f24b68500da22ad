//! Amended orders: money is held for further lots, as for a new order of that size, before the book
//! is looked at; and given back where the book then refuses.

use super::Risk;
use super::reference::Exposure;
use super::symbol::Symbol;
use super::user::UserStatus;
use crate::command::{Action, Amend, OrderFlags, OrderType, Place};
use crate::event::UserHint;
use crate::result_code::ResultCode;

type Checked = Result<ResultCode, ResultCode>;

impl Risk {
    /// The check of an amended order. What matching finds out is refused there.
    #[cold]
    pub(super) fn check_amend(&mut self, amend: &Amend) -> Checked {
        if amend.size < 0 {
            return Err(ResultCode::RiskSizeNotPositive);
        }
        if amend.price <= 0 {
            return Err(ResultCode::RiskPriceNotPositive);
        }
        let Some(slot) = self.symbols.slot(amend.symbol) else {
            return Ok(ResultCode::ValidForMatchingEngine);
        };
        let symbol = self.symbols.at(slot);
        if !self.amends(symbol) {
            return Err(ResultCode::UnsupportedSymbolType);
        }
        let status = self.users.get(amend.uid).map(|user| user.status);
        if self.rules.refuse_suspended && status != Some(UserStatus::Active) {
            return Err(ResultCode::AuthUserSuspended);
        }
        symbol.gate.check(amend.price, true)?;
        let more = further(amend).ok_or(ResultCode::RiskArithmeticOverflow)?;
        // By the reference's rules an order can be moved to where it may lose more than it holds.
        let quirks = symbol.quirks_of_move(amend.price, &self.rules);
        if symbol.is_pair() && quirks != Exposure::default() {
            return Err(ResultCode::RiskArithmeticOverflow);
        }
        if more == 0 {
            let rules = self.rules;
            self.symbols.at_mut(slot).note_move(amend.price, &rules);
            return Ok(ResultCode::ValidForMatchingEngine);
        }
        check_price(amend, symbol)?;
        self.check_further_lots(amend)?;
        let further = Place {
            uid: amend.uid,
            symbol: amend.symbol,
            order_id: amend.order_id,
            order_type: OrderType::Gtc,
            action: amend.action,
            price: amend.price,
            reserve_price: amend.reserve_price,
            size: more,
            flags: OrderFlags::NONE,
        };
        let checked = self.check_lots(&further, true, false)?;
        self.symbols.at_mut(slot).note_size(amend.size);
        Ok(checked)
    }

    const fn amends(&self, symbol: &Symbol) -> bool {
        let is_covered = self.rules.cover_futures && self.rules.margin_trading;
        symbol.is_pair() || symbol.is_futures() && is_covered
    }

    /// Gives back what was held for the further lots of an order that matching left as it was.
    #[cold]
    pub(super) fn settle_refused(&mut self, amend: &Amend, result: ResultCode) {
        let is_late = matches!(
            result,
            ResultCode::MatchingUnknownOrderId
                | ResultCode::MatchingAmendMismatch
                | ResultCode::MatchingMoveFailedPriceOverRiskLimit
                | ResultCode::MatchingMoveFailedPriceLowerThanFee
                | ResultCode::MatchingMoveFailedPostOnly
                | ResultCode::RiskIcebergDisplay
        );
        let (Some(slot), Some(more)) = (self.symbols.slot(amend.symbol), further(amend)) else {
            return;
        };
        if !is_late || more == 0 {
            return;
        }
        let owner = (UserHint::UNKNOWN, amend.uid);
        if self.symbols.at(slot).is_pair() {
            let lots = (more, amend.reserve_price);
            self.give_back(slot, owner, amend.action, lots, false);
        } else {
            self.release(slot, owner, amend.action, more, false);
        }
    }
}

/// Further lots of an order in a pair could not be held for at a price that matching refuses.
fn check_price(amend: &Amend, symbol: &Symbol) -> Result<(), ResultCode> {
    match amend.action {
        _ if !symbol.is_pair() => Ok(()),
        Action::Bid if amend.price > amend.reserve_price => {
            Err(ResultCode::RiskInvalidReserveBidPrice)
        }
        Action::Ask if amend.price < symbol.spec.lowest_ask() => {
            Err(ResultCode::RiskAskPriceLowerThanFee)
        }
        _ => Ok(()),
    }
}

/// How many lots there are to be more; `None` beyond 64 bits.
fn further(amend: &Amend) -> Option<i64> {
    Some(amend.size.checked_sub(amend.size_before)?.max(0))
}
