//! Pre-trade checks: new, moved and amended orders, conditions of orders, the fast path.

use super::Risk;
use super::cover::locked;
use super::futures::free_margin;
use super::limits::OwnOrder;
use super::reference::Exposure;
use super::symbols::Symbol;
use super::users::UserStatus;
use crate::command::{
    Action, Amend, Command, ConditionalOrder, OrderFlags, OrderType, Place, SymbolSpec, SymbolType,
    display_is_large_enough,
};
use crate::event::{Event, Hints, UserHint};
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

    /// Checks lots of a new order, or further ones of one that was counted.
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
            -locked(user, (&self.symbols, &self.rules), currency)
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

// Orders with conditions beyond price, size and type: their risk check, and the settlement of stop
// orders that were triggered.
//
// Terms that make no sense are refused before anything else is looked at; they depend on the
// command and the clock alone. Then the order is checked like one without them, and its money is
// held, or its margin asked for, from then on.

/// Refuses flags that do not fit the type of a new order.
#[cold]
fn check_flags(place: &Place) -> Result<(), ResultCode> {
    if place.flags.is_post_only() && place.order_type != OrderType::Gtc {
        return Err(ResultCode::RiskPostOnlyOrderType);
    }
    Ok(())
}

impl Risk {
    /// Checks a new order with conditions.
    #[cold]
    pub(super) fn check_place_with(&mut self, order: &ConditionalOrder) -> Checked {
        let mut place = order.place;
        let has_limit = place.order_type.has_limit();
        // The codec writes it as an order without conditions: it is checked like one.
        if !order.has_conditions() {
            return self.check_place(&place, has_limit);
        }
        if let Some(user) = self.users.get(place.uid) {
            self.check_id(&place, user)?;
        }
        self.check_terms(order)?;
        if order.trigger.is_some() {
            // In futures, a waiting lot is reserved for at its price whatever becomes of it.
            place.order_type = OrderType::Gtc;
        }
        self.check_place(&place, has_limit)
    }

    fn check_terms(&self, order: &ConditionalOrder) -> Result<(), ResultCode> {
        let place = &order.place;
        check_flags(place)?;
        let rests = place.order_type == OrderType::Gtc;
        let may_wait = matches!(
            place.order_type,
            OrderType::Gtc | OrderType::Ioc | OrderType::Market
        );
        if order.trigger.is_some() && !may_wait {
            return Err(ResultCode::RiskStopOrderType);
        }
        if order.display.is_some() && !rests {
            return Err(ResultCode::RiskIcebergOrderType);
        }
        if order.good_till.is_some() && !rests && order.trigger.is_none() {
            return Err(ResultCode::RiskGoodTillOrderType);
        }
        let is_plain = *order == ConditionalOrder::from(*place);
        if !is_plain && place.size <= 0 {
            return Err(ResultCode::RiskSizeNotPositive);
        }
        if !is_plain && (place.price <= 0 || order.trigger.is_some_and(|trigger| trigger <= 0)) {
            return Err(ResultCode::RiskPriceNotPositive);
        }
        let displays_enough =
            |display| display >= 1 && display_is_large_enough(display, place.size);
        if !order.display.is_none_or(displays_enough) {
            return Err(ResultCode::RiskIcebergDisplay);
        }
        if order.good_till.is_some_and(|time| Some(time) <= self.clock) {
            return Err(ResultCode::RiskGoodTillPassed);
        }
        Ok(())
    }

    /// Returns the time of the last clock command since the last reset.
    #[must_use]
    pub const fn clock(&self) -> Option<i64> {
        self.clock
    }

    /// Takes note of the time, which may stand still but not go back.
    pub(super) fn set_clock(&mut self, time: i64) -> Result<(), ResultCode> {
        if self.clock.is_some_and(|last| time < last) {
            return Err(ResultCode::RiskClockWentBack);
        }
        self.clock = Some(time);
        Ok(())
    }

    /// Books what triggered stop orders did: `events` begin with the first of them.
    ///
    /// Each is settled like a command of its owner's that placed it now, but that the money for it
    /// is held since it began to wait; of futures, what was reserved for its lots at its price is
    /// what is reserved for those that rest now, so only what is gone is given back.
    #[inline]
    pub(super) fn settle_triggered(&mut self, slot: u32, events: &[Event]) {
        if !events.is_empty() {
            self.settle_each_triggered(slot, events);
        }
    }

    #[cold]
    fn settle_each_triggered(&mut self, slot: u32, events: &[Event]) {
        let symbol = self.symbols.at(slot).spec.id;
        let is_futures = self.symbols.at(slot).is_futures();
        let mut events = events;
        while let Some((
            &Event::Triggered {
                order,
                uid,
                action,
                price,
                size,
                bidder_hold_price,
                ..
            },
            after,
        )) = events.split_first()
        {
            let is_next = |event: &Event| matches!(event, Event::Triggered { .. });
            let end = after.iter().position(is_next).unwrap_or(after.len());
            let (of_order, next) = after.split_at(end);
            let own = OwnOrder::new(size);
            let command = Command::Place(Place {
                uid,
                symbol,
                order_id: order,
                order_type: OrderType::Gtc,
                action,
                price,
                reserve_price: bidder_hold_price,
                size: 0,
                flags: OrderFlags::NONE,
            });
            if is_futures {
                self.settle_events(&command, (slot, uid), own, (of_order, Hints::NONE, None));
            } else {
                self.settle_pair(&command, (slot, uid), own, (of_order, Hints::NONE));
            }
            events = next;
        }
    }
}

// Amended orders: money is held for further lots, as for a new order of that size, before the book
// is looked at; and given back where the book then refuses.

impl Risk {
    /// Checks an amended order. Errors that only matching can find are refused there.
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

/// Returns how many lots there are to be more; `None` beyond 64 bits.
fn further(amend: &Amend) -> Option<i64> {
    Some(amend.size.checked_sub(amend.size_before)?.max(0))
}

// Fast path: an order in a pair at a plain price, of an owner with enough money. Everything else
// takes the slow path, above, which also defines the answer here: this one only comes to it sooner.
//
// A price is *plain* (in the `PlainPrices` range) in a pair's symbol if it is above zero, inside
// the symbol's price band, not under the fee of an ask, where orders are remembered
// (`Symbol::remembers`) not above every price seen there before, and if the symbol has nothing
// special: it is not halted, its maker fee is not above its taker fee, and no order of
// negative size was ever accepted. All of that is one range, kept with the symbol.
//
// *A move* to a plain price passes: its exposure is nothing, nothing new is seen, and only the
// status of its owner is left. As long as no user was ever removed, that need not be looked at:
// the owner of every resting order had a record when the order was placed and has it still, and a
// record becomes a suspended one only where a settlement makes it again. A user without a record
// owns no order, so matching refuses the move whatever is answered here.
//
// *A new order* without a budget passes at a plain price if its size is above zero, its reserve
// price covers a bid and, where orders are remembered, was seen too, and its owner is active and
// has the money, beyond what must stay for covered futures (see `CoverCache`): again its exposure
// is nothing, and as no balance falls below zero no total changes. In a *simple* symbol, which
// remembers nothing and whose fees are per lot, that is done in place.
//
// *In futures* a price is plain if it is above zero and inside the band of a symbol that is not
// halted: then a move of an active user's order is up to the ledger's bound alone, and where
// futures are covered to nothing, as in pairs; and a new order without a budget to that and the
// margin.

impl Risk {
    /// Returns whether a move passes, as far as it takes nothing but a look at the price, and of
    /// futures at its user.
    #[inline(always)]
    pub(crate) fn passes_move(&mut self, uid: UserId, id: SymbolId, price: i64) -> bool {
        let Some(symbol) = self.symbols.near_ref(id) else {
            return false;
        };
        if symbol.plain_prices.holds(price) && !self.users.lost_any() {
            return true;
        }
        self.passes_move_in_futures(uid, id, price).is_some()
    }

    /// Returns the slot of the symbol if a move in futures passes, as
    /// [`passes_move`](Self::passes_move).
    #[inline(always)]
    pub(crate) fn passes_move_in_futures(
        &mut self,
        uid: UserId,
        id: SymbolId,
        price: i64,
    ) -> Option<u32> {
        let (slot, symbol) = self.symbols.near_with_slot(id)?;
        if !symbol.plain_futures_prices.holds(price) {
            return None;
        }
        let passes = if self.rules.cover_futures {
            !self.users.lost_any() || self.users.near_active(uid).is_some()
        } else {
            self.has_room_for_move(uid, id, price)
        };
        passes.then_some(slot)
    }

    /// Returns whether a move passes on the fast path.
    #[inline]
    pub(super) fn move_takes_fast_path(&self, uid: UserId, symbol: SymbolId, price: i64) -> bool {
        let Some(symbol) = self.symbols.get(symbol) else {
            return false;
        };
        if symbol.plain_prices.holds(price) {
            return !self.users.lost_any() || self.may_trade(uid);
        }
        symbol.plain_futures_prices.holds(price)
            && self.futures_move_takes_fast_path(uid, symbol, price)
    }

    #[inline(never)]
    fn may_trade(&self, uid: UserId) -> bool {
        let is_active = |uid| {
            let user = self.users.get(uid);
            user.is_some_and(|user| user.status == UserStatus::Active)
        };
        !self.rules.refuse_suspended || is_active(uid)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::command::SymbolSpec;
    use crate::ids::{CurrencyId, OrderId};
    use crate::risk::ledger::Ledger;
    use crate::risk::reference::Exposure;
    use crate::risk::symbols::{Gate, Symbols, TradingLimits};
    use crate::rules::Rules;

    type Terms = (i64, i64, i64, bool, u8);

    fn place((price, reserve_price, size, bid, order_type): Terms) -> Place {
        Place::limit(
            (UserId(1), OrderId(1)),
            SymbolId(1),
            if bid { Action::Bid } else { Action::Ask },
            (price, size),
        )
        .with_type(OrderType::ALL[usize::from(order_type)])
        .with_reserve(reserve_price)
    }

    fn terms(sizes: std::ops::Range<i64>) -> impl Strategy<Value = Terms> {
        (-3_i64..60, -3_i64..60, sizes, any::<bool>(), 0_u8..5)
    }

    proptest! {
        /// At plain prices, the slow path finds nothing, and nothing new is remembered.
        #[test]
        fn at_plain_prices_the_slow_path_finds_nothing(
            (taker_fee, maker_fee, quote_scale) in (0_i64..40, 0_i64..40, 1_i64..5),
            (mended, halted) in (any::<bool>(), prop::bool::weighted(0.1)),
            (low, high) in (-3_i64..40, 20_i64..70),
            seen in prop::collection::vec(terms(0..9), 0..4),
            odd in prop::option::weighted(0.1, terms(-9..0)),
            next in terms(-1..9),
        ) {
            let spec = SymbolSpec::pair(SymbolId(1), CurrencyId(1), CurrencyId(2))
                .with_scales(3, quote_scale)
                .with_fees(taker_fee, maker_fee);
            let rules = if mended { Rules::MENDED } else { Rules::REFERENCE };
            let mut symbols = Symbols::default();
            symbols.add(&spec, &mut Ledger::default(), &rules);
            let symbol = symbols.at_mut(0);
            symbol.gate = Gate::new(TradingLimits {
                halted,
                auction: false,
                busy: false,
                low,
                high,
            });
            symbol.renew_plain_prices(&rules);
            for terms in seen.into_iter().chain(odd) {
                symbol.note_place(&place(terms), &rules);
            }
            let next = place(next);
            prop_assert_eq!(symbol.remembers, !mended);
            prop_assert_eq!(symbol.is_simple, mended);
            if symbol.plain_prices.holds(next.price) {
                prop_assert!(mended || next.price.unsigned_abs() <= symbol.price_max());
                prop_assert!(symbol.gate.check(next.price, true).is_ok());
                prop_assert_eq!(symbol.quirks_of_move(next.price, &rules), Exposure::default());
            }
            if mended {
                let in_simple = symbol.plain_hold::<true>(&next);
                prop_assert_eq!(in_simple, symbol.plain_hold::<false>(&next));
            }
            if let Some(amount) = symbol.plain_hold::<false>(&next) {
                prop_assert_eq!(symbol.quirks_of_place(&next, &rules), Exposure::default());
                prop_assert_eq!(symbol.loss_of_budget_ask(&next, &rules), 0);
                prop_assert_eq!(hold(&spec, &next), Ok(amount));
                prop_assert!(amount > 0);
                let price_max = symbol.price_max();
                symbol.note_place(&next, &rules);
                prop_assert_eq!(symbol.price_max(), price_max);
            }
        }
    }
}
