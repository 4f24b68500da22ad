//! The risk check of new and moved orders.

use super::Risk;
use super::ledger::Ledger;
use super::symbol::{Exposure, Symbol};
use super::user::UserStatus;
use crate::command::{Action, OrderType, Place, SymbolSpec, SymbolType};
use crate::ids::{SymbolId, UserId};
use crate::result_code::ResultCode;

type Checked = Result<ResultCode, ResultCode>;

impl Risk {
    pub(super) fn check_place(&mut self, place: &Place) -> Checked {
        let user = self
            .users
            .get_mut(place.uid)
            .ok_or(ResultCode::AuthInvalidUser)?;
        if self.rules.refuse_suspended && user.status == UserStatus::Suspended {
            return Err(ResultCode::AuthUserSuspended);
        }
        let symbol = self
            .symbols
            .get_mut(place.symbol)
            .ok_or(ResultCode::InvalidSymbol)?;
        match symbol.spec.symbol_type {
            SymbolType::CurrencyPair => {}
            SymbolType::Option if self.rules.margin_trading => return Err(ResultCode::RiskNsf),
            // Futures come later; until then, as with margin trading off, there is a book only.
            SymbolType::Option | SymbolType::Futures => return Err(ResultCode::InvalidSymbol),
        }
        if self.rules.refuse_not_positive {
            if place.size <= 0 {
                return Err(ResultCode::RiskSizeNotPositive);
            }
            if place.price <= 0 {
                return Err(ResultCode::RiskPriceNotPositive);
            }
        }
        match place.order_type {
            OrderType::Fok if self.rules.fill_fok => {
                return Err(ResultCode::MatchingUnsupportedCommand);
            }
            OrderType::IocBudget if self.rules.fill_ioc_budget => {
                return Err(ResultCode::MatchingUnsupportedCommand);
            }
            _ => {}
        }
        let amount = hold(&symbol.spec, place)?;
        let (slot, currency) = match place.action {
            Action::Ask => (symbol.base, symbol.spec.base_currency),
            Action::Bid => (symbol.quote, symbol.spec.quote_currency),
        };
        if i128::from(user.balance(currency)) < i128::from(amount) {
            return Err(ResultCode::RiskNsf);
        }
        let exposure = symbol.quirks_of_place(place);
        let loss = symbol.loss_of_budget_ask(place);
        self.ledger.check_room(symbol, &exposure, loss)?;

        symbol.drains |= symbol.drains_after(place, &exposure);
        symbol.note_place(place);
        self.ledger.reserve(symbol, &exposure);
        let balance = user.balance_mut(currency);
        self.ledger.get_mut(slot).add(balance, -i128::from(amount));
        Ok(ResultCode::ValidForMatchingEngine)
    }

    /// A moved order needs no more money; the reserve price and the fee floor are checked where
    /// the order is, in matching. A refusal here counts only if there is such an order.
    pub(super) fn check_move(&mut self, uid: UserId, symbol: SymbolId, price: i64) -> Checked {
        let Some(symbol) = self
            .symbols
            .get_mut(symbol)
            .filter(|symbol| symbol.is_pair())
        else {
            return Ok(ResultCode::ValidForMatchingEngine);
        };
        if self.rules.refuse_suspended {
            // The owner of a resting order who has no record was suspended: see `User`.
            let status = self.users.get(uid).map(|user| user.status);
            if status != Some(UserStatus::Active) {
                return Err(ResultCode::AuthUserSuspended);
            }
        }
        if self.rules.refuse_not_positive && price <= 0 {
            return Err(ResultCode::RiskPriceNotPositive);
        }
        let exposure = symbol.quirks_of_move(price, &self.rules);
        self.ledger.check_room(symbol, &exposure, 0)?;

        symbol.drains |= exposure != Exposure::default();
        symbol.note_move(price);
        self.ledger.reserve(symbol, &exposure);
        Ok(ResultCode::ValidForMatchingEngine)
    }
}

impl Ledger {
    /// Refuses what could leave 64 bits. `loss` can be made good by the settlement, `exposure`
    /// stays.
    fn check_room(
        &self,
        symbol: &Symbol,
        exposure: &Exposure,
        loss: i128,
    ) -> Result<(), ResultCode> {
        if *exposure == Exposure::default() && loss == 0 {
            return Ok(());
        }
        let quote = exposure.quote.saturating_add(loss);
        let fits = if symbol.base == symbol.quote {
            self.get(symbol.quote)
                .has_room(quote.saturating_add(exposure.base))
        } else {
            self.get(symbol.quote).has_room(quote) && self.get(symbol.base).has_room(exposure.base)
        };
        if fits {
            Ok(())
        } else {
            Err(ResultCode::RiskArithmeticOverflow)
        }
    }

    fn reserve(&mut self, symbol: &Symbol, exposure: &Exposure) {
        if *exposure != Exposure::default() {
            self.get_mut(symbol.quote).reserved += exposure.quote;
            self.get_mut(symbol.base).reserved += exposure.base;
        }
    }
}

/// What a new order holds: of the base currency for an ASK, of the quote currency for a BID.
fn hold(spec: &SymbolSpec, place: &Place) -> Result<i64, ResultCode> {
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
            let fees = size.checked_mul(spec.taker_fee).ok_or(OVERFLOW)?;
            value(price)?.checked_add(fees).ok_or(OVERFLOW)
        }
        Action::Bid => {
            if reserve_price < price {
                return Err(ResultCode::RiskNsf);
            }
            let per_lot = value(reserve_price)?
                .checked_add(spec.taker_fee)
                .ok_or(OVERFLOW)?;
            size.checked_mul(per_lot).ok_or(OVERFLOW)
        }
        Action::Ask => {
            if value(price)? < spec.taker_fee {
                return Err(ResultCode::RiskNsf);
            }
            size.checked_mul(spec.base_scale).ok_or(OVERFLOW)
        }
    }
}
