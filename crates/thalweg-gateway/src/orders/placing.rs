//! Placing, cancelling and reducing orders.

use std::sync::Arc;

use thalweg_client::TradeCommand;
use thalweg_exchange::{
    Action, Amend, Command, ConditionalOrder, FeeUnit, OrderId, OrderType, Place, ResultCode,
    SymbolId,
};

use super::order::{Fill, Kind, Life, Order, Status};
use super::request::{Amount, Draft};
use super::session::Executed;
use super::{ANSWER_TIME, Memory, Noted, Orders, Record, User};
use crate::error::ApiError;
use crate::state::now_us;
use crate::symbols::Symbol;

/// The part of its trigger by which a bought STOP_LOSS may take beyond it: money is held at that
/// price.
const STOP_RANGE_PART: i64 = 20;
/// A market order to buy takes up to this many times the best price: money is held at that price,
/// and what it does not need is there for the user's other orders.
const MARKET_RANGE: i64 = 2;

/// An order after its command.
#[derive(Clone, Debug)]
pub(crate) struct Placed {
    pub(crate) order: Order,
    /// Its trades as a taker.
    pub(crate) fills: Vec<Fill>,
}

/// An order by the numbers of the engine.
struct Terms {
    order_type: OrderType,
    price: i64,
    lots: i64,
}

impl Orders {
    /// Places an order, and returns it as it is after the command, which is sent before `limit_us`.
    ///
    /// # Errors
    /// -2010 and -1013 where the engine refuses it, -1007 where its reports are lost, and those of
    /// sessions.
    pub(crate) async fn place(
        &self,
        user: &Arc<User>,
        draft: &Draft,
        limit_us: i64,
    ) -> Result<Placed, ApiError> {
        let symbol = &draft.symbol;
        if !symbol.is_trading() && draft.price.is_none() {
            return Err(ApiError::MARKET_CLOSED);
        }
        let terms = self.terms(user, draft).await?;
        let created_us = now_us();
        let (id, done) = self.submit(user, limit_us, |memory, id| {
            let order = order(user, draft, &terms, (id, created_us));
            if memory.is_open_client(symbol.spec.id, &order.client_id) {
                return Err(ApiError::DUPLICATE_ORDER);
            }
            let command = command(&order, draft, &terms);
            Ok((Noted::Order(Box::new(order)), command))
        })?;
        let (number, result) = answer(done).await?;
        self.reach(number).await?;
        self.find(user, (symbol.spec.id, id), result).await?;
        let memory = user.memory();
        match memory.order(symbol.spec.id, id) {
            Some(order) => Ok(Placed {
                order: order.clone(),
                fills: fills_of(&memory, symbol.spec.id, id, number),
            }),
            None => Err(refusal(result)),
        }
    }

    /// Waits until something is known of an order whose command was executed: at once, unless its
    /// reports were lost.
    ///
    /// # Errors
    /// -1007.
    async fn find(
        &self,
        user: &User,
        (symbol, id): (SymbolId, i64),
        result: ResultCode,
    ) -> Result<(), ApiError> {
        {
            let mut memory = user.memory();
            let order = memory.sent(symbol, id);
            if order.is_none_or(|order| order.status != Status::Pending) {
                return Ok(());
            }
            if result != ResultCode::Success {
                memory.forget(symbol.0, id);
                let _ = self.log.append(&Record::Forgotten(user.id, (symbol.0, id)));
                return Ok(());
            }
        }
        self.reconciliation.want(user.id);
        let compared =
            tokio::time::timeout(ANSWER_TIME, self.reconciliation.compared(user.id)).await;
        compared.map_err(|_| ApiError::TIMEOUT)
    }

    /// Returns type, price and size of an order for the engine.
    async fn terms(&self, user: &User, draft: &Draft) -> Result<Terms, ApiError> {
        let symbol = &draft.symbol;
        let order_type = match draft.life {
            Life::Gtc => OrderType::Gtc,
            Life::Ioc => OrderType::Ioc,
            Life::Fok => OrderType::Fok,
        };
        if let (Some(price), Amount::Lots(lots)) = (draft.price, draft.amount) {
            return Ok(Terms {
                order_type,
                price,
                lots,
            });
        }
        let best = self.best(symbol.spec.id);
        let opposite = match draft.side {
            Action::Bid => best.ask,
            Action::Ask => best.bid,
        };
        match (draft.amount, draft.side, draft.stop) {
            (Amount::Lots(lots), Action::Ask, _) => Ok(Terms {
                order_type: OrderType::Market,
                price: lowest_price(symbol),
                lots,
            }),
            (Amount::Lots(lots), Action::Bid, Some(stop)) => Ok(Terms {
                order_type: OrderType::Market,
                price: stop
                    .saturating_add((stop / STOP_RANGE_PART).max(1))
                    .min(symbol.limits.high)
                    .max(stop),
                lots,
            }),
            (Amount::Lots(lots), Action::Bid, None) => {
                let price = self.affordable(user, symbol, lots).await?;
                let best = opposite.map_or(price, |best| best.price);
                if price < best {
                    return Err(ApiError::NO_BALANCE);
                }
                Ok(Terms {
                    order_type: OrderType::Market,
                    price: price.min(best.saturating_mul(MARKET_RANGE)),
                    lots,
                })
            }
            (Amount::Quote(_), Action::Ask, _) => Err(ApiError::new(
                400,
                -2010,
                "Quote order qty market orders are not support for this symbol.",
            )),
            (Amount::Quote(quote), Action::Bid, _) => {
                let best = opposite.ok_or(ApiError::THIN_BOOK)?;
                let budget = quote / symbol.spec.quote_scale;
                match budget.checked_div(best.price) {
                    Some(lots @ 1..) => Ok(Terms {
                        order_type: OrderType::IocBudget,
                        price: budget,
                        lots,
                    }),
                    _ => Err(ApiError::LOT_SIZE),
                }
            }
        }
    }

    /// Returns the highest price at which the free balance of a user pays for lots.
    async fn affordable(&self, user: &User, symbol: &Symbol, lots: i64) -> Result<i64, ApiError> {
        let view = self.account(user).await?;
        let currency = symbol.spec.quote_currency;
        let free = view.balances.iter().find(|(id, _)| *id == currency);
        let free = free.map_or(0, |(_, amount)| i128::from(*amount));
        let per_lot = free / i128::from(lots);
        let fee = i128::from(symbol.spec.taker_fee);
        let scale = i128::from(symbol.spec.quote_scale);
        let mut price = match symbol.spec.fee_unit {
            FeeUnit::PerLot => (per_lot - fee) / scale,
            FeeUnit::Millionth => per_lot * 1_000_000 / (1_000_000 + fee) / scale,
        };
        // A pair's band may end below zero.
        price = price.min(symbol.limits.high.into());
        // The fee is rounded up.
        let held = |price: i128| symbol.held_per_lot(price as i64) * i128::from(lots);
        while price > 0 && held(price) > free {
            price -= 1;
        }
        match price {
            ..=0 => Err(ApiError::NO_BALANCE),
            price => Ok(price as i64),
        }
    }

    /// Cancels an open order, and returns it as it is after that.
    ///
    /// # Errors
    /// -2011 where it is not open, and those of sessions.
    pub(crate) async fn cancel(
        &self,
        user: &Arc<User>,
        (symbol, id): (SymbolId, i64),
        limit_us: i64,
    ) -> Result<Order, ApiError> {
        let cancel = TradeCommand::cancel(user.id, symbol, OrderId(id));
        let change = (cancel, limit_us);
        self.change(user, (symbol, id), change, |_| Ok(Noted::Nothing))
            .await
    }

    /// Gives an open order fewer lots, and returns it as it is after that. An order that has not
    /// `order.lots` any more, since another change came first, is left as it is.
    ///
    /// # Errors
    /// -2010 and -1013 where the engine refuses it, -2011 where it is not open, -2038 where it has
    /// changed, and those of sessions.
    pub(crate) async fn amend(
        &self,
        user: &Arc<User>,
        order: &Order,
        lots: i64,
        limit_us: i64,
    ) -> Result<Order, ApiError> {
        if order.stop.is_some() && order.working_us == 0 {
            return self.reduce_waiting(user, order, lots, limit_us).await;
        }
        let symbol = SymbolId(order.symbol);
        let command = TradeCommand::try_from(Command::Amend(Arc::new(Amend {
            uid: user.id,
            symbol,
            order_id: OrderId(order.id),
            action: order.side,
            reserve_price: order.reserve,
            size_before: order.lots,
            price: order.price,
            size: lots,
        })))
        .map_err(|_| ApiError::UNSUPPORTED)?;
        let (key, change) = ((symbol, order.id), (command, limit_us));
        self.change(user, key, change, |_| Ok(Noted::Nothing)).await
    }

    /// Works as [`amend`](Self::amend) for a stop order that waits, which the engine does not
    /// amend: it takes lots off the size that the order has then.
    async fn reduce_waiting(
        &self,
        user: &Arc<User>,
        order: &Order,
        lots: i64,
        limit_us: i64,
    ) -> Result<Order, ApiError> {
        let (symbol, by) = (SymbolId(order.symbol), order.lots - lots);
        let command = TradeCommand::reduce(user.id, symbol, OrderId(order.id), by);
        let begin = |memory: &mut Memory| {
            let begun = memory.begin_reduction(order, by);
            begun.map(Noted::Reduction).ok_or(ApiError::AMEND_LATE)
        };
        let (key, change) = ((symbol, order.id), (command, limit_us));
        let changed = self.change(user, key, change, begin).await;
        if changed.is_ok() {
            // Its report may have come in a comparison, together with others.
            user.memory().end_reduction((order.symbol, order.id));
        }
        match changed {
            Ok(order) if order.lots != lots => Err(ApiError::AMENDED_OTHERWISE),
            changed => changed,
        }
    }

    async fn change(
        &self,
        user: &Arc<User>,
        (symbol, id): (SymbolId, i64),
        (command, limit_us): (TradeCommand, i64),
        begin: impl FnOnce(&mut Memory) -> Result<Noted, ApiError>,
    ) -> Result<Order, ApiError> {
        let make = |memory: &mut Memory, _| Ok((begin(memory)?, command));
        let (_, done) = self.submit(user, limit_us, make)?;
        let (number, result) = answer(done).await?;
        self.reach(number).await?;
        match result {
            ResultCode::Success => {
                let memory = user.memory();
                memory
                    .order(symbol, id)
                    .cloned()
                    .ok_or(ApiError::UNKNOWN_ORDER)
            }
            ResultCode::MatchingAmendMismatch => Err(ApiError::AMEND_LATE),
            ResultCode::MatchingUnknownOrderId | ResultCode::MatchingInvalidOrderBookId => {
                Err(ApiError::UNKNOWN_ORDER)
            }
            result => Err(refusal(result)),
        }
    }

    /// Cancels all open orders of a symbol, and returns them as they are after that.
    ///
    /// # Errors
    /// -2011 where none is open; -1007 where some are that a step of an auction ends later; and
    /// those of sessions.
    pub(crate) async fn cancel_all(
        &self,
        user: &Arc<User>,
        symbol: SymbolId,
        limit_us: i64,
    ) -> Result<Vec<Order>, ApiError> {
        // Also where none is open: one may be on its way before this.
        let command = TradeCommand::cancel_all(user.id, Some(symbol));
        let mut open = Vec::new();
        let make = |memory: &mut Memory, _| {
            open.extend(memory.open_or_sent(Some(symbol)).map(|order| order.id));
            Ok((Noted::Nothing, command))
        };
        let (_, done) = self.submit(user, limit_us, make)?;
        let (number, result) = answer(done).await?;
        self.reach(number).await?;
        if result != ResultCode::Success {
            return Err(refusal(result));
        }
        let memory = user.memory();
        let gone = memory.cancelled(symbol, number);
        if !gone.is_empty() {
            return Ok(gone);
        }
        // A later command ends them, or has done so by now.
        let mut left = memory.open(Some(symbol));
        let mut known = open.iter().filter_map(|id| memory.order(symbol, *id));
        match left.any(|o| o.command < number) || known.any(|o| o.command > number) {
            true => Err(ApiError::TIMEOUT),
            false => Err(ApiError::UNKNOWN_ORDER),
        }
    }
}

/// Returns the trades of an order as the taker of a command. They are among the last ones: the
/// commands of trades ascend.
fn fills_of(memory: &Memory, symbol: SymbolId, order: i64, command: u64) -> Vec<Fill> {
    let last = memory.fills_since(command);
    let own = last.filter(|fill| fill.symbol == symbol.0 && fill.order == order);
    let own = own.filter(|fill| fill.command == command);
    let mut fills: Vec<Fill> = own.copied().collect();
    fills.reverse();
    fills
}

/// Waits for the outcome of a command.
///
/// # Errors
/// That of the session; -1007 where there is none for long: it may still be executed.
async fn answer<E>(
    done: impl Future<Output = Result<Result<Executed, ApiError>, E>>,
) -> Result<Executed, ApiError> {
    match tokio::time::timeout(ANSWER_TIME, done).await {
        Ok(Ok(done)) => done,
        _ => Err(ApiError::TIMEOUT),
    }
}

/// Returns the worst price at which a market order sells.
fn lowest_price(symbol: &Symbol) -> i64 {
    let scale = symbol.spec.quote_scale;
    let fee = match symbol.spec.fee_unit {
        FeeUnit::PerLot => symbol.spec.taker_fee.div_euclid(scale) + 1,
        FeeUnit::Millionth => 1,
    };
    fee.max(symbol.limits.low).max(1)
}

fn order(user: &User, draft: &Draft, terms: &Terms, (id, created_us): (i64, i64)) -> Order {
    let quote = match draft.amount {
        Amount::Quote(quote) => quote,
        Amount::Lots(_) => 0,
    };
    let generated = || format!("twg-{}-{id}", user.id);
    let client_id = draft.client_id.clone().unwrap_or_else(generated);
    let lots = if quote > 0 { 0 } else { terms.lots };
    Order {
        kind: draft.kind,
        life: draft.life,
        quote,
        stop: draft.stop,
        display: draft.display,
        flags: draft.flags,
        ..Order::pending(
            (user.id, draft.symbol.spec.id.0, id),
            client_id,
            (draft.side, terms.price, lots),
            created_us,
        )
    }
}

fn command(order: &Order, draft: &Draft, terms: &Terms) -> TradeCommand {
    let order_type = match (draft.kind, terms.order_type) {
        (Kind::StopLoss, _) => OrderType::Market,
        (_, order_type) => order_type,
    };
    let place = Place {
        uid: order.user,
        symbol: draft.symbol.spec.id,
        order_id: OrderId(order.id),
        order_type,
        action: draft.side,
        price: terms.price,
        reserve_price: terms.price,
        size: terms.lots,
        flags: draft.flags,
    };
    if draft.stop.is_none() && draft.display.is_none() {
        return place.into();
    }
    ConditionalOrder {
        place,
        trigger: draft.stop,
        display: draft.display,
        good_till: None,
    }
    .into()
}

/// Returns the error of an order of which there is no report.
fn refusal(result: ResultCode) -> ApiError {
    use ResultCode as Code;
    match result {
        // It was executed, and its reports are lost.
        Code::Success => ApiError::TIMEOUT,
        Code::RiskNsf => ApiError::NO_BALANCE,
        Code::AuthUserSuspended | Code::AuthInvalidUser => ApiError::DISABLED,
        Code::InvalidSymbol | Code::MatchingInvalidOrderBookId => ApiError::BAD_SYMBOL,
        Code::SymbolHalted | Code::SymbolInAuction | Code::SymbolWithoutPriceBand => {
            ApiError::MARKET_CLOSED
        }
        Code::RiskPriceOutsideBand | Code::RiskPriceNotPositive => ApiError::PRICE_FILTER,
        Code::RiskOrderTooLarge | Code::RiskArithmeticOverflow | Code::RiskSizeNotPositive => {
            ApiError::LOT_SIZE
        }
        Code::RiskAskPriceLowerThanFee => ApiError::NOTIONAL,
        Code::RiskTooManyOrders => ApiError::MAX_NUM_ORDERS,
        Code::RiskIcebergDisplay => ApiError::ICEBERG_PARTS,
        Code::RiskStopOrderType | Code::RiskIcebergOrderType | Code::RiskPostOnlyOrderType => {
            ApiError::COMBINATION
        }
        Code::MatchingRejectedPostOnly => ApiError::WOULD_TAKE,
        Code::RiskOrderIdUsed | Code::RiskOrderIdTooOld | Code::MatchingRejectedDuplicateId => {
            ApiError::DUPLICATE_ORDER
        }
        _ => ApiError::REJECTED,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_that_was_executed_is_not_refused_where_its_reports_are_lost() {
        assert_eq!(refusal(ResultCode::Success), ApiError::TIMEOUT);
        assert_eq!(refusal(ResultCode::RiskNsf), ApiError::NO_BALANCE);
    }
}
