//! Endpoints that ask: the account, orders, trades.

use std::sync::Arc;

use serde_json::{Value, json};
use thalweg_exchange::FeeUnit;
use thalweg_exchange::risk::UserStatus;

use super::market::time_ms;
use super::{Answer, Call, general};
use crate::error::ApiError;
use crate::orders::{Fill, Order, Status};
use crate::state::now_us;
use crate::symbols::Symbol;

/// Orders and trades of a response, by default and at most.
const LIMIT: i64 = 500;
const LIMIT_MAX: i64 = 1_000;
/// Open orders of a response at most.
const OPEN_MAX: usize = 5_000;
/// The longest time between `startTime` and `endTime`, in milliseconds.
const SPAN_MS_MAX: i64 = 86_400_000;

pub(super) async fn account(call: &Call<'_>) -> Answer {
    let user = call.state.orders.user(call.user()?);
    let without_zeros = call.params.flag("omitZeroBalances")?.unwrap_or(false);
    let symbols = &call.state.symbols;
    let (view, balances) = call.state.orders.balances(&user, symbols, None).await?;
    let is_zero = |text: &str| text.bytes().all(|byte| byte == b'0' || byte == b'.');
    let shown = balances
        .iter()
        .filter(|one| !(without_zeros && is_zero(&one.free) && is_zero(&one.locked)));
    let balances: Vec<Value> = shown
        .map(|one| json!({ "asset": one.asset, "free": one.free, "locked": one.locked }))
        .collect();
    let can_trade =
        view.status == UserStatus::Active && call.key.as_ref().is_some_and(|key| key.may_trade);
    // The highest of all symbols.
    let all = symbols.all();
    let rates = all
        .iter()
        .filter(|symbol| symbol.spec.fee_unit == FeeUnit::Millionth);
    let rates = rates.map(|symbol| (symbol.spec.maker_fee, symbol.spec.taker_fee));
    let (maker, taker) = rates
        .reduce(|one, other| (one.0.max(other.0), one.1.max(other.1)))
        .unwrap_or_default();
    let rate = |millionths: i64| crate::decimal::format(i128::from(millionths) * 100, 8);
    Ok(json!({
        "makerCommission": maker / 100,
        "takerCommission": taker / 100,
        "buyerCommission": 0,
        "sellerCommission": 0,
        "commissionRates": {
            "maker": rate(maker),
            "taker": rate(taker),
            "buyer": rate(0),
            "seller": rate(0),
        },
        "canTrade": can_trade,
        "canWithdraw": false,
        "canDeposit": false,
        "brokered": false,
        "requireSelfTradePrevention": false,
        "preventSor": false,
        "updateTime": call.unit.of(now_us()),
        "accountType": "SPOT",
        "balances": balances,
        "permissions": ["SPOT"],
        "uid": view.uid.0,
    }))
}

/// Finds the order that `orderId`, `origClientOrderId` or both name, if the engine has it.
///
/// # Errors
/// Those of [`find_sent`].
pub(super) fn find_order(
    call: &Call<'_>,
    symbol: &Symbol,
    names: (&str, &str),
    missing: &ApiError,
) -> Result<Order, ApiError> {
    let order = find_sent(call, symbol, names, missing)?;
    match order.status {
        Status::Pending => Err(missing.clone()),
        Status::Unknown => Err(ApiError::TIMEOUT),
        _ => Ok(order),
    }
}

/// Finds the order that `orderId`, `origClientOrderId` or both name, also one that is on its way: a
/// cancel comes behind it.
///
/// # Errors
/// -1102 where neither is there; `missing` where there is no such order.
pub(super) fn find_sent(
    call: &Call<'_>,
    symbol: &Symbol,
    (id_name, client_name): (&str, &str),
    missing: &ApiError,
) -> Result<Order, ApiError> {
    let id = call.params.integer(id_name)?;
    let client_id = call.params.text(client_name)?;
    let user = call.state.orders.user(call.user()?);
    let memory = user.memory();
    let found = match (id, client_id) {
        (None, None) => return Err(ApiError::either(client_name, id_name)),
        (Some(id), _) => memory.sent(symbol.spec.id, id),
        (None, Some(name)) => memory.sent_by_client(symbol.spec.id, name),
    };
    let found = found.filter(|order| client_id.is_none_or(|name| name == order.client_id));
    found.cloned().ok_or_else(|| missing.clone())
}

pub(super) async fn order(call: &Call<'_>) -> Answer {
    let symbol = call.params.symbol(&call.state.symbols)?;
    let names = ("orderId", "origClientOrderId");
    let order = find_order(call, &symbol, names, &ApiError::NO_SUCH_ORDER)?;
    Ok(order.query_json(&symbol, call.unit))
}

pub(super) async fn open_orders(call: &Call<'_>) -> Answer {
    let only = match call.params.text("symbol")? {
        Some(_) => Some(call.params.symbol(&call.state.symbols)?.spec.id),
        None => None,
    };
    let user = call.state.orders.user(call.user()?);
    // Reports are applied under the same lock: what is shown is made without it.
    let open: Vec<Order> = user.memory().open(only).take(OPEN_MAX).cloned().collect();
    let symbols = &call.state.symbols;
    let shown = open.iter().filter_map(|order| {
        let symbol = symbols.by_id(thalweg_exchange::SymbolId(order.symbol))?;
        Some(order.query_json(&symbol, call.unit))
    });
    Ok(shown.collect())
}

/// The part of a list that a request asks for.
struct Range {
    from: Option<i64>,
    start_us: Option<i64>,
    end_us: Option<i64>,
    limit: usize,
}

impl Range {
    fn read(call: &Call<'_>, from: &str) -> Result<Self, ApiError> {
        let params = call.params;
        let (start, end) = (time_ms(params, "startTime")?, time_ms(params, "endTime")?);
        if let (Some(start), Some(end)) = (start, end)
            && (end < start || end - start > SPAN_MS_MAX)
        {
            let msg = "More than 24 hours between startTime and endTime.";
            return Err(ApiError::new(400, -1127, msg));
        }
        let limit = params.integer("limit")?.unwrap_or(LIMIT);
        if !(1..=LIMIT_MAX).contains(&limit) {
            return Err(ApiError::invalid_data("limit"));
        }
        let us = |ms: i64| ms.saturating_mul(1_000);
        Ok(Self {
            from: params.integer(from)?,
            start_us: start.map(us),
            end_us: end.map(|ms| us(ms).saturating_add(999)),
            limit: limit as usize,
        })
    }

    fn has(&self, id: i64, time_us: i64) -> bool {
        self.from.is_none_or(|from| id >= from)
            && self.start_us.is_none_or(|start| time_us >= start)
            && self.end_us.is_none_or(|end| time_us <= end)
    }

    /// Returns whether a list begins with its first element: where its beginning was named. Else
    /// it ends with its last one.
    const fn is_from_start(&self) -> bool {
        self.from.is_some() || self.start_us.is_some()
    }

    /// Returns a list's elements, which come from the end that is wanted, in order.
    fn take<T>(&self, elements: impl Iterator<Item = T>) -> Vec<T> {
        let mut list: Vec<T> = elements.take(self.limit).collect();
        if !self.is_from_start() {
            list.reverse();
        }
        list
    }
}

pub(super) async fn all_orders(call: &Call<'_>) -> Answer {
    let symbol = call.params.symbol(&call.state.symbols)?;
    let range = Range::read(call, "orderId")?;
    let user = call.state.orders.user(call.user()?);
    let found: Vec<Order> = {
        let memory = user.memory();
        let (from, is_reversed) = (range.from.unwrap_or(i64::MIN), !range.is_from_start());
        let all = memory.all(symbol.spec.id, from, is_reversed);
        range.take(all.filter(|o| range.has(o.id, o.created_us)).cloned())
    };
    let shown = found
        .iter()
        .map(|order| order.query_json(&symbol, call.unit));
    Ok(shown.collect())
}

pub(super) async fn my_trades(call: &Call<'_>) -> Answer {
    let symbol = call.params.symbol(&call.state.symbols)?;
    let range = Range::read(call, "fromId")?;
    let order = call.params.integer("orderId")?;
    if range.from.is_some() && range.start_us.or(range.end_us).is_some() {
        return Err(ApiError::BAD_COMBINATION);
    }
    let user = call.state.orders.user(call.user()?);
    let found: Vec<Fill> = {
        let memory = user.memory();
        let fills = memory.fills(symbol.spec.id);
        let is_wanted = |fill: &&Fill| {
            range.has(fill.id, fill.time_us) && order.is_none_or(|order| order == fill.order)
        };
        match range.is_from_start() {
            true => range.take(fills.filter(is_wanted).copied()),
            false => range.take(fills.rev().filter(is_wanted).copied()),
        }
    };
    let found = found.iter();
    Ok(found.map(|fill| fill.to_json(&symbol, call.unit)).collect())
}

pub(super) async fn order_counts(call: &Call<'_>) -> Answer {
    let (in_10s, in_day) = call.state.limits.orders(call.user()?, now_us());
    let mut rows = call.state.limits.to_json(None, now_us());
    let rows = rows.as_array_mut().map(std::mem::take).unwrap_or_default();
    let orders = rows
        .into_iter()
        .filter(|row| row["rateLimitType"] == "ORDERS");
    Ok(orders
        .zip([in_10s, in_day])
        .map(|(mut row, count)| {
            row["count"] = count.into();
            row
        })
        .collect())
}

/// Returns a rate in millionths with some decimals; a fee by lot has none.
fn rate_text(symbol: &Symbol, millionths: i64, decimals: u32) -> String {
    let scaled = match symbol.spec.fee_unit {
        FeeUnit::Millionth => i128::from(millionths) * 10_i128.pow(decimals - 6),
        FeeUnit::PerLot => 0,
    };
    crate::decimal::format(scaled, decimals)
}

pub(super) async fn trade_fee(call: &Call<'_>) -> Answer {
    let symbols = match general::symbols_named(call)? {
        Some(symbols) => symbols,
        None => call.state.symbols.all(),
    };
    let row = |symbol: &Arc<Symbol>| {
        json!({
            "symbol": symbol.name,
            "makerCommission": rate_text(symbol, symbol.spec.maker_fee, 6),
            "takerCommission": rate_text(symbol, symbol.spec.taker_fee, 6),
        })
    };
    Ok(symbols.iter().map(row).collect())
}

pub(super) async fn commission(call: &Call<'_>) -> Answer {
    let symbol = call.params.symbol(&call.state.symbols)?;
    let rates = |maker: i64, taker: i64| {
        json!({
            "maker": rate_text(&symbol, maker, 8),
            "taker": rate_text(&symbol, taker, 8),
            "buyer": rate_text(&symbol, 0, 8),
            "seller": rate_text(&symbol, 0, 8),
        })
    };
    Ok(json!({
        "symbol": symbol.name,
        "standardCommission": rates(symbol.spec.maker_fee, symbol.spec.taker_fee),
        "specialCommission": rates(0, 0),
        "taxCommission": rates(0, 0),
        "discount": {
            "enabledForAccount": false,
            "enabledForSymbol": false,
            "discountAsset": null,
            "discount": "0.00000000",
        },
    }))
}

/// The exchange keeps no prevented matches: the list is empty.
pub(super) async fn prevented_matches(call: &Call<'_>) -> Answer {
    let params = call.params;
    params.symbol(&call.state.symbols)?;
    let (id, order) = (
        params.integer("preventedMatchId")?,
        params.integer("orderId")?,
    );
    match id.is_some() == order.is_some() {
        true => Err(ApiError::BAD_COMBINATION),
        false => Ok(json!([])),
    }
}

#[cfg(test)]
mod tests {
    use thalweg_exchange::execution::{Execution, ExecutionReport};
    use thalweg_exchange::session::ReportNumber;
    use thalweg_exchange::{Action, OrderId, UserId};

    use super::*;
    use crate::keys::ApiKey;
    use crate::link::tests::{Fixture, SYMBOL};
    use crate::orders::UserReport;
    use crate::params::Params;
    use crate::time_unit::TimeUnit;

    fn opened(id: i64) -> UserReport {
        let report = ExecutionReport {
            command: id as u64,
            owner: UserId(1),
            symbol: SYMBOL,
            order: OrderId(id),
            side: Some(Action::Bid),
            price: 5,
            left: 1,
            filled: 0,
            kind: Execution::New,
        };
        UserReport {
            number: ReportNumber(id as u64),
            report,
            trade: None,
            time_us: 1,
            is_auction: false,
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn open_orders_are_at_most_5000_the_first_by_id() {
        let fixture = Fixture::new("open-orders").await;
        let state = Arc::clone(fixture.state());
        state.orders.user(UserId(1));
        for id in 1..=OPEN_MAX as i64 + 1 {
            state.orders.apply(&opened(id), &state.symbols);
        }
        let params = Params::of_request("symbol=BTCUSDT", "").expect("parameters");
        let key = ApiKey::read_only(UserId(1));
        let call = Call {
            state: &state,
            params: &params,
            unit: TimeUnit::default(),
            key: Some(Arc::new(key)),
        };
        let rows = open_orders(&call).await.expect("an answer");
        let rows = rows.as_array().expect("an array");
        assert_eq!(rows.len(), 5_000);
        assert_eq!(rows[4_999]["orderId"], 5_000);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn orders_with_any_id_are_listed_from_a_time_in_either_unit() {
        let fixture = Fixture::new("all-orders").await;
        let state = Arc::clone(fixture.state());
        let now = now_us();
        state.orders.user(UserId(1));
        for (id, time_us) in [(-7, now), (8, now - 3_600_000_000)] {
            let mut reported = opened(8);
            (reported.report.order, reported.time_us) = (OrderId(id), time_us);
            state.orders.apply(&reported, &state.symbols);
        }
        let ask = |query: &str| Params::of_request(&format!("symbol=BTCUSDT{query}"), "");
        let ask = |query: &str| {
            let (params, state) = (ask(query).expect("parameters"), Arc::clone(&state));
            async move {
                let call = Call {
                    state: &state,
                    params: &params,
                    unit: TimeUnit::default(),
                    key: Some(Arc::new(ApiKey::read_only(UserId(1)))),
                };
                let rows = all_orders(&call).await.expect("an answer");
                let rows = rows.as_array().expect("an array").iter();
                rows.map(|row| row["orderId"].as_i64()).collect::<Vec<_>>()
            }
        };
        assert_eq!(ask("").await, [Some(-7), Some(8)]);
        assert_eq!(ask("&orderId=0").await, [Some(8)]);
        let since = now - 60_000_000;
        for since in [since, since / 1_000] {
            assert_eq!(ask(&format!("&startTime={since}")).await, [Some(-7)]);
            assert_eq!(ask(&format!("&endTime={since}")).await, [Some(8)]);
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn an_account_shows_the_highest_fees_of_all_symbols() {
        let fixture = Fixture::new("account-fees").await;
        let state = Arc::clone(fixture.state());
        let params = Params::of_request("", "").expect("parameters");
        let call = Call {
            state: &state,
            params: &params,
            unit: TimeUnit::default(),
            key: Some(Arc::new(ApiKey::read_only(UserId(1)))),
        };
        let shown = account(&call).await.expect("an answer");
        assert_eq!(shown["takerCommission"], 2_000);
        let rates = &shown["commissionRates"];
        let rates = [&rates["maker"], &rates["taker"]];
        assert_eq!(rates, ["0.10000000", "0.20000000"]);
    }
}
