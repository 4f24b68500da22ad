//! Endpoints that place, change and cancel orders.

use serde_json::{Value, json};

use super::account::{find_order, find_sent};
use super::{Answer, Call};
use crate::error::ApiError;
use crate::market::SymbolMarket;
use crate::orders::{
    Amount, Detail, Draft, Order, Placed, Status, check_notional, client_id, lots_of,
};
use crate::state::now_us;
use crate::symbols::Symbol;

/// Reads a new order; one without a price is worth what its lots are at the last one.
fn draft(call: &Call<'_>) -> Result<Draft, ApiError> {
    let draft = Draft::read(call.params, &call.state.symbols)?;
    if let (None, Amount::Lots(lots)) = (draft.price.or(draft.stop), draft.amount) {
        let last = |market: &SymbolMarket| market.trades.last().map(|trade| trade.price);
        if let Some(price) = call.state.market.read(draft.symbol.spec.id, last) {
            check_notional(&draft.symbol, price, lots)?;
        }
    }
    Ok(draft)
}

pub(super) async fn place(call: &Call<'_>) -> Answer {
    let draft = draft(call)?;
    let user = call.user()?;
    call.state.limits.count_order(user, now_us())?;
    let user = call.state.orders.user(user);
    let limit_us = call.limit_us()?;
    let placed = call.state.orders.place(&user, &draft, limit_us).await?;
    Ok(placed_json(call, &draft, &placed))
}

fn placed_json(call: &Call<'_>, draft: &Draft, placed: &Placed) -> Value {
    let (order, symbol) = (&placed.order, &draft.symbol);
    match draft.detail {
        Detail::Ack => order.ack_json(symbol, call.unit),
        Detail::Result => order.new_json(symbol, call.unit, None),
        Detail::Full => order.new_json(symbol, call.unit, Some(&placed.fills)),
    }
}

pub(super) async fn test(call: &Call<'_>) -> Answer {
    draft(call)?;
    Ok(json!({}))
}

/// Returns the client order id of a cancel.
fn cancel_id(call: &Call<'_>, name: &str, order: &Order) -> Result<String, ApiError> {
    let generated = || format!("twg-cancel-{}", order.id);
    Ok(client_id(call.params, name)?.unwrap_or_else(generated))
}

fn check_restrictions(call: &Call<'_>, order: &Order) -> Result<(), ApiError> {
    let needed = match call.params.text("cancelRestrictions")? {
        None => return Ok(()),
        Some("ONLY_NEW") => Status::New,
        Some("ONLY_PARTIALLY_FILLED") => Status::PartiallyFilled,
        Some(_) => return Err(ApiError::new(400, -1145, "Invalid cancelRestrictions")),
    };
    let msg = "Order was not canceled due to cancel restrictions.";
    match order.status == needed {
        true => Ok(()),
        false => Err(ApiError::new(400, -2011, msg)),
    }
}

async fn cancel_named(call: &Call<'_>, symbol: &Symbol, names: (&str, &str), id: &str) -> Answer {
    let order = find_sent(call, symbol, names, &ApiError::UNKNOWN_ORDER)?;
    if !order.status.is_open() {
        return Err(ApiError::UNKNOWN_ORDER);
    }
    let cancel_id = cancel_id(call, id, &order)?;
    check_restrictions(call, &order)?;
    let user = call.state.orders.user(call.user()?);
    let (key, limit_us) = ((symbol.spec.id, order.id), call.limit_us()?);
    let order = call.state.orders.cancel(&user, key, limit_us).await?;
    Ok(order.cancel_json(symbol, call.unit, &cancel_id))
}

pub(super) async fn cancel(call: &Call<'_>) -> Answer {
    let symbol = call.params.symbol(&call.state.symbols)?;
    let names = ("orderId", "origClientOrderId");
    cancel_named(call, &symbol, names, "newClientOrderId").await
}

pub(super) async fn cancel_all(call: &Call<'_>) -> Answer {
    let symbol = call.params.symbol(&call.state.symbols)?;
    let user = call.state.orders.user(call.user()?);
    let orders = &call.state.orders;
    let orders = orders.cancel_all(&user, symbol.spec.id, call.limit_us()?);
    let orders = orders.await?;
    let shown = orders.iter().map(|order| {
        let id = format!("twg-cancel-{}", order.id);
        order.cancel_json(&symbol, call.unit, &id)
    });
    Ok(shown.collect())
}

pub(super) async fn cancel_replace(call: &Call<'_>) -> Answer {
    let stops = match call.params.required("cancelReplaceMode")? {
        "STOP_ON_FAILURE" => true,
        "ALLOW_FAILURE" => false,
        _ => return Err(ApiError::invalid_data("cancelReplaceMode")),
    };
    match call.params.text("orderRateLimitExceededMode")? {
        None | Some("DO_NOTHING") => {}
        Some(_) => return Err(ApiError::UNSUPPORTED),
    }
    let draft = draft(call)?;
    let user = call.user()?;
    call.state.limits.count_order(user, now_us())?;
    let names = ("cancelOrderId", "cancelOrigClientOrderId");
    let named = [names.0, names.1];
    if named.iter().all(|name| call.params.raw(name).is_none()) {
        return Err(ApiError::either(names.1, names.0));
    }
    let cancelled = cancel_named(call, &draft.symbol, names, "cancelNewClientOrderId").await;
    let placed = if cancelled.is_err() && stops {
        None
    } else {
        let user = call.state.orders.user(user);
        let limit_us = call.limit_us()?;
        let placed = call.state.orders.place(&user, &draft, limit_us).await;
        Some(placed.map(|placed| placed_json(call, &draft, &placed)))
    };
    both(&cancelled, placed.as_ref())
}

/// Returns the response of a cancel-replace; `placed` is `None` where the order was not attempted.
fn both(cancelled: &Answer, placed: Option<&Answer>) -> Answer {
    let response = |answer: &Answer| match answer {
        Ok(value) => value.clone(),
        Err(error) => error.to_json(),
    };
    let result = |answer: &Answer| if answer.is_ok() { "SUCCESS" } else { "FAILURE" };
    let value = json!({
        "cancelResult": result(cancelled),
        "newOrderResult": placed.map_or("NOT_ATTEMPTED", result),
        "cancelResponse": response(cancelled),
        "newOrderResponse": placed.map_or(Value::Null, response),
    });
    let is_placed = placed.is_some_and(Result::is_ok);
    let mut error = match (cancelled.is_ok(), is_placed) {
        (true, true) => return Ok(value),
        (false, false) => ApiError::CANCEL_REPLACE_FAILED,
        _ => ApiError::CANCEL_REPLACE_PARTLY,
    };
    error.data = Some(value);
    Err(error)
}

pub(super) async fn amend(call: &Call<'_>) -> Answer {
    let symbol = call.params.symbol(&call.state.symbols)?;
    let names = ("orderId", "origClientOrderId");
    let order = find_order(call, &symbol, names, &ApiError::UNKNOWN_ORDER)?;
    if !order.status.is_open() {
        return Err(ApiError::UNKNOWN_ORDER);
    }
    let renamed = client_id(call.params, "newClientOrderId")?;
    if renamed.is_some_and(|name| name != order.client_id) {
        return Err(ApiError::UNSUPPORTED);
    }
    let lots = lots_of(&symbol, "newQty", call.params)?;
    let lots = lots.ok_or_else(|| ApiError::mandatory("newQty"))?;
    if lots == order.lots {
        return Err(ApiError::AMEND_NOTHING);
    }
    if lots > order.lots {
        return Err(ApiError::AMEND_INCREASE);
    }
    if lots <= order.filled {
        return Err(ApiError::LOT_SIZE);
    }
    let user = call.state.orders.user(call.user()?);
    let orders = &call.state.orders;
    let limit_us = call.limit_us()?;
    let order = orders.amend(&user, &order, lots, limit_us).await?;
    let mut amended = order.query_json(&symbol, call.unit);
    let fields = amended
        .as_object_mut()
        .map(std::mem::take)
        .unwrap_or_default();
    let renamed = fields.into_iter().filter_map(|(name, value)| match &*name {
        "origQty" => Some(("qty".to_owned(), value)),
        "cummulativeQuoteQty" => Some(("cumulativeQuoteQty".to_owned(), value)),
        "stopPrice" | "icebergQty" | "time" | "updateTime" | "isWorking" | "origQuoteOrderQty" => {
            None
        }
        _ => Some((name, value)),
    });
    let mut amended: serde_json::Map<String, Value> = renamed.collect();
    amended.insert(
        "origClientOrderId".to_owned(),
        order.client_id.clone().into(),
    );
    amended.insert("preventedQty".to_owned(), symbol.quantity_text(0).into());
    Ok(json!({
        "transactTime": call.unit.of(order.updated_us),
        "executionId": order.command,
        "amendedOrder": amended,
    }))
}
