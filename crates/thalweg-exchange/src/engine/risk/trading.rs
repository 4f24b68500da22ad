//! The risk check of new and moved orders.

use super::Risk;
use super::conditional::check_flags;
use super::cover::locked;
use super::futures::free_margin;
use super::user::UserStatus;
use crate::command::OrderFlags;
use crate::command::{Action, OrderType, Place, SymbolSpec, SymbolType};
use crate::ids::{SymbolId, UserId};
use crate::result_code::ResultCode;

type Checked = Result<ResultCode, ResultCode>;

impl Risk {
    /// `has_limit` says whether the band is about its price.
    pub(super) fn check_place(&mut self, place: &Place, has_limit: bool) -> Checked {
        let code = self.check_lots(place, has_limit, true)?;
        self.note_order(place);
        Ok(code)
    }

    /// The check of lots of a new order, or further ones of one that was counted.
    pub(super) fn check_lots(&mut self, place: &Place, has_limit: bool, is_new: bool) -> Checked {
        if place.flags != OrderFlags::NONE {
            check_flags(place)?;
        }
        let user = self
            .users
            .get(place.uid)
            .ok_or(ResultCode::AuthInvalidUser)?;
        if self.rules.refuse_suspended && user.status == UserStatus::Suspended {
            return Err(ResultCode::AuthUserSuspended);
        }
        if is_new {
            self.check_id(place, user)?;
        }
        let slot = self
            .symbols
            .slot(place.symbol)
            .ok_or(ResultCode::InvalidSymbol)?;
        let symbol_type = self.symbols.at(slot).spec.symbol_type;
        if symbol_type != SymbolType::CurrencyPair && !self.rules.margin_trading {
            // There is a book only.
            return Err(ResultCode::InvalidSymbol);
        }
        if symbol_type == SymbolType::Option {
            return Err(ResultCode::RiskNsf);
        }
        self.symbols.at(slot).gate.check(place.price, has_limit)?;
        if self.symbols.at(slot).gate.is_auction()
            && (place.order_type != OrderType::Gtc || place.flags.is_post_only())
        {
            return Err(ResultCode::SymbolInAuction);
        }
        let is_futures = symbol_type == SymbolType::Futures;
        if is_futures && self.rules.cover_futures && !self.symbols.at(slot).gate.has_band() {
            return Err(ResultCode::SymbolWithoutPriceBand);
        }
        if self.rules.refuse_not_positive {
            if place.size <= 0 {
                return Err(ResultCode::RiskSizeNotPositive);
            }
            if place.price <= 0 {
                return Err(ResultCode::RiskPriceNotPositive);
            }
        }
        let owner = self.users.slot(place.uid).expect("looked up before");
        if is_new {
            self.check_limits(place, self.users.at(owner))?;
        }
        if is_futures {
            self.check_place_futures(place, owner, slot)
        } else {
            self.check_place_pair(place, slot)
        }
    }

    fn check_place_pair(&mut self, place: &Place, slot: u32) -> Checked {
        let symbol = self.symbols.at(slot);
        let user = self.users.get(place.uid).expect("looked up before");
        let amount = hold(&symbol.spec, place)?;
        let (money, currency) = match place.action {
            Action::Ask => (symbol.base, symbol.spec.base_currency),
            Action::Bid => (symbol.quote, symbol.spec.quote_currency),
        };
        let free = if !user.has_futures() {
            0
        } else if self.rules.cover_futures {
            -locked(user, &self.symbols, currency)
        } else {
            free_margin(user, &self.symbols, currency, None)?
        };
        let balance = i128::from(user.balance(currency));
        let after = balance - i128::from(amount);
        if after + free < 0 {
            return Err(ResultCode::RiskNsf);
        }
        // Against profit in futures, a balance may go below zero.
        let debt = (balance.min(0) - after.min(0)).max(0);
        self.make_room_for_order(place, slot, debt)?;
        let user = self.users.get_mut(place.uid).expect("looked up before");
        let balance = user.balance_mut(currency);
        self.ledger.get_mut(money).add(balance, -i128::from(amount));
        Ok(ResultCode::ValidForMatchingEngine)
    }

    /// A moved order needs no more money; the reserve price and the fee floor are checked where
    /// the order is, in matching. A refusal here counts only if there is such an order.
    pub(super) fn check_move(&mut self, uid: UserId, symbol: SymbolId, price: i64) -> Checked {
        let trades = |slot: &u32| {
            let symbol = self.symbols.at(*slot);
            symbol.is_pair() || (symbol.is_futures() && self.rules.margin_trading)
        };
        let Some(slot) = self.symbols.slot(symbol).filter(trades) else {
            return Ok(ResultCode::ValidForMatchingEngine);
        };
        if self.rules.refuse_suspended {
            // The owner of a resting order who has no record was suspended: see `User`.
            let status = self.users.get(uid).map(|user| user.status);
            if status != Some(UserStatus::Active) {
                return Err(ResultCode::AuthUserSuspended);
            }
        }
        self.symbols.at(slot).gate.check(price, true)?;
        if self.rules.refuse_not_positive && price <= 0 {
            return Err(ResultCode::RiskPriceNotPositive);
        }
        if self.symbols.at(slot).is_futures() {
            return self.check_move_futures(uid, slot, price);
        }
        self.make_room_for_move(price, slot)?;
        Ok(ResultCode::ValidForMatchingEngine)
    }
}

/// Returns the hold of a new order: of the base currency for an ASK, of the quote currency for a
/// BID.
pub(super) fn hold(spec: &SymbolSpec, place: &Place) -> Result<i64, ResultCode> {
    const OVERFLOW: ResultCode = ResultCode::RiskArithmeticOverflow;
    let Place {
        price,
        reserve_price,
        size,
        ..
    } = *place;
    let value = |price: i64| price.checked_mul(spec.quote_scale).ok_or(OVERFLOW);
    match place.action {
        Action::Bid if place.order_type.is_budget() => {
            if reserve_price != price {
                return Err(ResultCode::RiskNsf);
            }
            let fees = spec.taker_fee_of(size.into(), price.into());
            let fees = i64::try_from(fees).map_err(|_| OVERFLOW)?;
            value(price)?.checked_add(fees).ok_or(OVERFLOW)
        }
        Action::Bid => {
            if reserve_price < price {
                return Err(ResultCode::RiskNsf);
            }
            let per_lot = i64::try_from(spec.held_per_lot(reserve_price)).map_err(|_| OVERFLOW)?;
            size.checked_mul(per_lot).ok_or(OVERFLOW)
        }
        Action::Ask => {
            if i128::from(value(price)?) < spec.fee_held(price) {
                return Err(ResultCode::RiskNsf);
            }
            size.checked_mul(spec.base_scale).ok_or(OVERFLOW)
        }
    }
}
