//! Endpoints about the exchange as a whole.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::{Value, json};

use super::{Answer, Call, TimeUnit};
use crate::error::ApiError;
use crate::state::now_us;
use crate::symbols::Symbol;

/// Parts of an iceberg order: see the engine's rules.
const ICEBERG_PARTS_MAX: u32 = 1_000;
/// The types of orders that the engine has.
const ORDER_TYPES: [&str; 5] = [
    "LIMIT",
    "LIMIT_MAKER",
    "MARKET",
    "STOP_LOSS",
    "STOP_LOSS_LIMIT",
];

pub(super) async fn ping(_: &Call<'_>) -> Answer {
    Ok(json!({}))
}

pub(super) async fn time(call: &Call<'_>) -> Answer {
    Ok(json!({ "serverTime": call.unit.of(now_us()) }))
}

pub(super) async fn empty_list(_: &Call<'_>) -> Answer {
    Ok(json!([]))
}

pub(super) async fn no_symbols(_: &Call<'_>) -> Answer {
    Ok(json!({ "symbols": [] }))
}

pub(super) async fn exchange_info(call: &Call<'_>) -> Answer {
    let named = symbols_named(call)?;
    let params = call.params;
    let (permissions, status) = (params.text("permissions")?, params.text("symbolStatus")?);
    if named.is_some() && permissions.or(status).is_some() {
        return Err(ApiError::BAD_COMBINATION);
    }
    let mut listed = named.unwrap_or_else(|| call.state.symbols.all());
    if !has_spot(permissions)? {
        listed.clear();
    }
    match status {
        None => {}
        Some("TRADING" | "HALT" | "BREAK") => {
            listed.retain(|symbol| status == Some(symbol.status()));
        }
        Some(_) => return Err(ApiError::invalid_data("symbolStatus")),
    }
    let orders_max = call.state.symbols.open_orders_max();
    let has_sets = params.flag("showPermissionSets")?.unwrap_or(true);
    let symbol_row = |symbol: &Arc<Symbol>| {
        let mut row = symbol_info(symbol, orders_max);
        if !has_sets {
            row["permissionSets"] = json!([]);
        }
        row
    };
    let now = now_us();
    Ok(json!({
        "timezone": "UTC",
        "serverTime": TimeUnit::of(call.unit, now),
        "rateLimits": call.state.limits.to_json(None, now),
        "exchangeFilters": [],
        "symbols": listed.iter().map(symbol_row).collect::<Vec<_>>(),
    }))
}

/// Returns whether symbols of these permissions are asked for: a name, or a list of names.
fn has_spot(permissions: Option<&str>) -> Result<bool, ApiError> {
    let Some(text) = permissions else {
        return Ok(true);
    };
    if !text.starts_with('[') {
        return Ok(text == "SPOT");
    }
    let names: Result<Vec<String>, _> = serde_json::from_str(text);
    let names = names.map_err(|_| ApiError::invalid_data("permissions"))?;
    Ok(names.iter().any(|name| name == "SPOT"))
}

/// Returns the symbols that `symbol` or `symbols` name; `None` where neither is there. Each is
/// there once: so an answer is never longer than that about all symbols.
///
/// # Errors
/// -1101 for repetitions; -1121, -1128, -1130.
pub(crate) fn symbols_named(call: &Call<'_>) -> Result<Option<Vec<Arc<Symbol>>>, ApiError> {
    let params = call.params;
    match (params.text("symbol")?, params.text("symbols")?) {
        (Some(_), Some(_)) => Err(ApiError::BAD_COMBINATION),
        (Some(_), None) => Ok(Some(vec![params.symbol(&call.state.symbols)?])),
        (None, None) => Ok(None),
        (None, Some(list)) => {
            let names: Result<Vec<String>, _> = serde_json::from_str(list);
            let names = names.map_err(|_| ApiError::invalid_data("symbols"))?;
            let found = names.iter().map(|name| call.state.symbols.by_name(name));
            let found: Option<Vec<_>> = found.collect();
            let found = found.ok_or(ApiError::BAD_SYMBOL)?;
            let mut seen = HashSet::new();
            match found.iter().all(|symbol| seen.insert(symbol.spec.id)) {
                true => Ok(Some(found)),
                false => Err(ApiError::DUPLICATE_PARAMETER),
            }
        }
    }
}

fn symbol_info(symbol: &Symbol, orders_max: Option<u32>) -> Value {
    json!({
        "symbol": symbol.name,
        "status": symbol.status(),
        "baseAsset": symbol.base.name,
        "baseAssetPrecision": symbol.base.decimals,
        "quoteAsset": symbol.quote.name,
        "quotePrecision": symbol.quote.decimals,
        "quoteAssetPrecision": symbol.quote.decimals,
        "baseCommissionPrecision": symbol.base.decimals,
        "quoteCommissionPrecision": symbol.quote.decimals,
        "orderTypes": ORDER_TYPES,
        "icebergAllowed": true,
        "ocoAllowed": false,
        "otoAllowed": false,
        "opoAllowed": false,
        "quoteOrderQtyMarketAllowed": true,
        "allowTrailingStop": false,
        "cancelReplaceAllowed": true,
        "amendAllowed": true,
        "pegInstructionsAllowed": false,
        "isSpotTradingAllowed": true,
        "isMarginTradingAllowed": false,
        "filters": filters(symbol, orders_max),
        "permissions": [],
        "permissionSets": [["SPOT"]],
        "defaultSelfTradePreventionMode": "NONE",
        "allowedSelfTradePreventionModes": ["NONE", "EXPIRE_TAKER", "EXPIRE_MAKER", "EXPIRE_BOTH"],
    })
}

/// Returns the filters of a symbol. `orders_max` is how many open orders a user may have.
fn filters(symbol: &Symbol, orders_max: Option<u32>) -> Value {
    let price = |units: i64| crate::decimal::format(units.into(), symbol.price_decimals);
    let quantity = |units: i64| crate::decimal::format(units.into(), symbol.base.decimals);
    let of_band = |at: i64| at.saturating_mul(symbol.price_unit);
    let low = of_band(symbol.limits.low).max(symbol.tick);
    let high = of_band(symbol.limits.high).min(symbol.max_price());
    let mut filters = vec![
        json!({
            "filterType": "PRICE_FILTER",
            "minPrice": price(low),
            "maxPrice": price(high),
            "tickSize": price(symbol.tick),
        }),
        json!({
            "filterType": "LOT_SIZE",
            "minQty": quantity(symbol.step),
            "maxQty": quantity(symbol.max_quantity()),
            "stepSize": quantity(symbol.step),
        }),
        json!({
            "filterType": "NOTIONAL",
            "minNotional": symbol.quote_text(symbol.min_notional.into()),
            "applyMinToMarket": true,
            "maxNotional": symbol.quote_text(symbol.max_notional().into()),
            "applyMaxToMarket": true,
            "avgPriceMins": 0,
        }),
        json!({ "filterType": "ICEBERG_PARTS", "limit": ICEBERG_PARTS_MAX }),
    ];
    if let Some(most) = orders_max {
        filters.push(json!({ "filterType": "MAX_NUM_ORDERS", "maxNumOrders": most }));
    }
    Value::Array(filters)
}
