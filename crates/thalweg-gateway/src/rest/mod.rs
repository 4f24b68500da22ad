//! The endpoints: one table for REST and the WebSocket API, and what all requests have in common.

mod account;
pub(crate) mod general;
mod market;
mod trading;

use std::future::Future;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;

use hyper::Method;
use serde_json::Value;
use thalweg_exchange::UserId;

use crate::error::ApiError;
use crate::figures::Class;
use crate::keys::{ApiKey, is_api_key};
use crate::params::Params;
use crate::signature::{check_time, time_limit};
use crate::state::{State, now_us};
pub(crate) use crate::time_unit::TimeUnit;

/// A request of an endpoint, whose signature was checked where one is needed.
pub(crate) struct Call<'c> {
    pub(crate) state: &'c Arc<State>,
    pub(crate) params: &'c Params,
    pub(crate) unit: TimeUnit,
    /// `None` where the endpoint needs none.
    pub(crate) key: Option<Arc<ApiKey>>,
}

impl Call<'_> {
    /// Returns the user who signed.
    ///
    /// # Errors
    /// -2015 where the endpoint needs no key.
    pub(crate) fn user(&self) -> Result<UserId, ApiError> {
        let key = self.key.as_ref().ok_or(ApiError::REJECTED_KEY)?;
        Ok(key.user)
    }

    /// Returns until when its commands may be sent, in microseconds.
    ///
    /// # Errors
    /// -1102 without a time; -1100, -1130.
    fn limit_us(&self) -> Result<i64, ApiError> {
        let timestamp = self.params.integer("timestamp")?;
        let timestamp = timestamp.ok_or_else(|| ApiError::mandatory("timestamp"))?;
        time_limit(timestamp, self.params.text("recvWindow")?)
    }
}

/// The proof that a caller must give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Security {
    /// Nothing; a key is neither needed nor refused.
    None,
    /// A signature.
    UserData,
    /// A signature of a key that may trade.
    Trade,
}

impl From<Security> for Class {
    fn from(security: Security) -> Self {
        match security {
            Security::None => Self::Market,
            Security::UserData => Self::Account,
            Security::Trade => Self::Order,
        }
    }
}

pub(crate) type Answer = Result<Value, ApiError>;
pub(crate) type Answering<'c> = Pin<Box<dyn Future<Output = Answer> + Send + 'c>>;
type Handler = for<'c> fn(&'c Call<'c>) -> Answering<'c>;

/// A row of the table.
pub(crate) struct Endpoint {
    pub(crate) method: Method,
    pub(crate) path: &'static str,
    /// The method of the WebSocket API; empty where there is none.
    pub(crate) ws: &'static str,
    pub(crate) weight: fn(&Params) -> u32,
    pub(crate) security: Security,
    pub(crate) handler: Handler,
    /// The parameters that Binance knows of it, but [`OF_ALL`], and [`OF_SIGNED`].
    names: Names,
}

/// Names of parameters, in parts.
type Names = &'static [&'static [&'static str]];

/// Parameters of every request: the time unit, and those of requests of the WebSocket API.
const OF_ALL: [&str; 3] = ["timeUnit", "apiKey", "returnRateLimits"];
/// Parameters of every signed request, besides the signature.
const OF_SIGNED: [&str; 2] = ["recvWindow", "timestamp"];

impl Endpoint {
    /// Checks that all parameters are known.
    ///
    /// # Errors
    /// -1101 where there are more than the endpoint has, -1104 where one is none of them.
    fn check_names(&self, params: &Params) -> Result<(), ApiError> {
        if self.names == ANY {
            return Ok(());
        }
        let is_signed = self.security != Security::None;
        let names = || self.names.iter().copied().flatten();
        let is_known = |name: &str| {
            names().any(|one| *one == name)
                || is_signed && OF_SIGNED.contains(&name)
                || OF_ALL.contains(&name)
        };
        let has_signature = params.signature().is_some();
        let mut unknown = params.names().filter(|name| !is_known(name)).count();
        unknown += usize::from(has_signature && !is_signed);
        if unknown == 0 {
            return Ok(());
        }
        let sent = params.names().count() + usize::from(has_signature);
        let expected = names().count() + if is_signed { 1 + OF_SIGNED.len() } else { 0 };
        Err(match sent > expected {
            true => ApiError::too_many(expected, sent),
            false => ApiError::unread(sent - unknown, sent),
        })
    }
}

/// Makes [`Names`].
macro_rules! names {
    ($($name:tt)*) => {
        &[&[$(stringify!($name)),*]]
    };
}

/// Makes the table; handlers are `async fn(&Call<'_>) -> Answer`.
macro_rules! endpoints {
    ($($method:ident $path:literal, $ws:literal, $weight:expr, $security:ident,
        $($handler:ident)::+, $names:expr;)*) => {
        /// All endpoints; others answer 404.
        pub(crate) static ENDPOINTS: &[Endpoint] = &[$(Endpoint {
            method: Method::$method,
            path: $path,
            ws: $ws,
            weight: $weight,
            security: Security::$security,
            handler: |call| Box::pin($($handler)::+(call)),
            names: $names,
        }),*];
    };
}

/// Returns a weight by whether a symbol is named.
fn with_symbol(params: &Params, with: u32, without: u32) -> u32 {
    params.raw("symbol").map_or(without, |_| with)
}

/// Returns a weight by whether an order is named.
fn with_order(params: &Params, with: u32, without: u32) -> u32 {
    params.raw("orderId").map_or(without, |_| with)
}

/// Parameters that are not checked: those of other families of Binance's endpoints.
const ANY: Names = &[&["*"]];
const CANDLES: Names = &[&[
    "symbol",
    "interval",
    "startTime",
    "endTime",
    "timeZone",
    "limit",
]];
/// Parameters of a new order.
const NEW: &[&str] = &[
    "symbol",
    "side",
    "type",
    "timeInForce",
    "quantity",
    "quoteOrderQty",
    "price",
    "newClientOrderId",
    "strategyId",
    "strategyType",
    "stopPrice",
    "trailingDelta",
    "icebergQty",
    "newOrderRespType",
    "selfTradePreventionMode",
    "pegPriceType",
    "pegOffsetValue",
    "pegOffsetType",
];
const ORDER: Names = &[NEW];
const TEST: Names = &[NEW, &["computeCommissionRates"]];
const REPLACE: Names = &[
    NEW,
    &[
        "cancelReplaceMode",
        "cancelNewClientOrderId",
        "cancelOrigClientOrderId",
        "cancelOrderId",
        "cancelRestrictions",
        "orderRateLimitExceededMode",
    ],
];

endpoints! {
    GET "/api/v3/ping", "ping", |_| 1, None, general::ping, names![];
    GET "/api/v3/time", "time", |_| 1, None, general::time, names![];
    GET "/api/v3/exchangeInfo", "exchangeInfo", |_| 20, None, general::exchange_info,
        names![symbol symbols permissions showPermissionSets symbolStatus];
    GET "/api/v3/depth", "depth", market::depth_weight, None, market::depth,
        names![symbol limit symbolStatus];
    GET "/api/v3/trades", "trades.recent", |_| 25, None, market::trades, names![symbol limit];
    GET "/api/v3/historicalTrades", "trades.historical", |_| 25, None, market::trades,
        names![symbol limit fromId];
    GET "/api/v3/aggTrades", "trades.aggregate", |_| 4, None, market::aggregate_trades,
        names![symbol fromId startTime endTime limit];
    GET "/api/v3/klines", "klines", |_| 2, None, market::candles, CANDLES;
    GET "/api/v3/uiKlines", "uiKlines", |_| 2, None, market::candles, CANDLES;
    GET "/api/v3/ticker/24hr", "ticker.24hr", |p| market::ticker_weight(p, 2, 40, 80), None,
        market::ticker_24hr,
        names![symbol symbols type symbolStatus];
    GET "/api/v3/ticker/price", "ticker.price", |p| market::ticker_weight(p, 2, 4, 4), None,
        market::ticker_price,
        names![symbol symbols symbolStatus];
    GET "/api/v3/ticker/bookTicker", "ticker.book", |p| market::ticker_weight(p, 2, 4, 4), None,
        market::ticker_book,
        names![symbol symbols symbolStatus];
    GET "/api/v3/ticker", "ticker", market::window_weight, None, market::ticker_rolling,
        names![symbol symbols windowSize type symbolStatus];
    GET "/api/v3/ticker/tradingDay", "ticker.tradingDay", market::window_weight, None,
        market::ticker_trading_day,
        names![symbol symbols timeZone type symbolStatus];
    GET "/api/v3/avgPrice", "avgPrice", |_| 2, None, market::average_price, names![symbol];
    GET "/api/v3/account", "account.status", |_| 20, UserData, account::account,
        names![omitZeroBalances];
    POST "/api/v3/order", "order.place", |_| 1, Trade, trading::place, ORDER;
    POST "/api/v3/order/test", "order.test", |_| 1, Trade, trading::test, TEST;
    DELETE "/api/v3/order", "order.cancel", |_| 1, Trade, trading::cancel,
        names![symbol orderId origClientOrderId newClientOrderId cancelRestrictions];
    GET "/api/v3/order", "order.status", |_| 4, UserData, account::order,
        names![symbol orderId origClientOrderId];
    POST "/api/v3/order/cancelReplace", "order.cancelReplace", |_| 1, Trade,
        trading::cancel_replace,
        REPLACE;
    PUT "/api/v3/order/amend/keepPriority", "order.amend.keepPriority", |_| 4, Trade,
        trading::amend,
        names![symbol orderId origClientOrderId newClientOrderId newQty];
    GET "/api/v3/openOrders", "openOrders.status", |p| with_symbol(p, 6, 80), UserData,
        account::open_orders,
        names![symbol];
    DELETE "/api/v3/openOrders", "openOrders.cancelAll", |_| 1, Trade, trading::cancel_all,
        names![symbol];
    GET "/api/v3/allOrders", "allOrders", |_| 20, UserData, account::all_orders,
        names![symbol orderId startTime endTime limit];
    GET "/api/v3/myTrades", "myTrades", |p| with_order(p, 5, 20), UserData, account::my_trades,
        names![symbol orderId startTime endTime fromId limit];
    GET "/api/v3/myPreventedMatches", "myPreventedMatches", |p| with_order(p, 20, 2), UserData,
        account::prevented_matches,
        names![symbol preventedMatchId orderId fromPreventedMatchId limit];
    GET "/api/v3/account/commission", "account.commission", |_| 20, UserData, account::commission,
        names![symbol];
    GET "/api/v3/rateLimit/order", "account.rateLimits.orders", |_| 40, UserData,
        account::order_counts,
        names![];
    GET "/sapi/v1/asset/tradeFee", "", |_| 1, UserData, account::trade_fee, ANY;
    GET "/sapi/v1/capital/config/getall", "", |_| 10, UserData, general::empty_list, ANY;
    GET "/sapi/v1/margin/allPairs", "", |_| 1, None, general::empty_list, ANY;
    GET "/sapi/v1/margin/isolated/allPairs", "", |_| 1, None, general::empty_list, ANY;
    GET "/fapi/v1/exchangeInfo", "", |_| 1, None, general::no_symbols, ANY;
    GET "/dapi/v1/exchangeInfo", "", |_| 1, None, general::no_symbols, ANY;
}

/// Returns the row of a request of REST; `Err` with true where the path is there with another
/// method.
pub(crate) fn find(method: &Method, path: &str) -> Result<&'static Endpoint, bool> {
    let mut at_path = ENDPOINTS.iter().filter(|row| row.path == path).peekable();
    let is_there = at_path.peek().is_some();
    at_path.find(|row| row.method == method).ok_or(is_there)
}

/// Returns the row of a method of the WebSocket API.
pub(crate) fn find_ws(name: &str) -> Option<&'static Endpoint> {
    ENDPOINTS
        .iter()
        .find(|row| row.ws == name && !name.is_empty())
}

/// Weighs a request, and has `authorize` check it. Of an address that shares its count with others,
/// a signed request beyond that counts for its user.
///
/// # Errors
/// -1003, and those of `authorize`.
pub(crate) fn admit(
    state: &State,
    (row, params): (&Endpoint, &Params),
    address: IpAddr,
    authorize: impl FnOnce() -> Result<Option<Arc<ApiKey>>, ApiError>,
) -> Result<Option<Arc<ApiKey>>, ApiError> {
    let (weight, now) = ((row.weight)(params), now_us());
    let Err(refused) = state.limits.weigh(address, weight, now) else {
        return authorize();
    };
    let is_signed = row.security != Security::None && state.limits.is_shared(address, now);
    match is_signed.then(authorize) {
        Some(Ok(Some(key))) => {
            state.limits.weigh_user(key.user, weight, now)?;
            Ok(Some(key))
        }
        _ => Err(refused),
    }
}

/// Answers a request that is weighed and authorized. Where the orders of its user are being
/// compared with those of the exchange, that is waited for; if it takes long, orders are placed and
/// cancelled, and queries are refused.
///
/// # Errors
/// -1001, -1007, -1101, -1104, and those of the endpoint.
pub(crate) async fn run(row: &Endpoint, call: &Call<'_>) -> Answer {
    row.check_names(call.params)?;
    if row.security == Security::Trade {
        call.state.orders.check_primary()?;
    }
    if let Some(key) = &call.key {
        let compared = call.state.orders.compare(key.user).await;
        if row.security == Security::UserData {
            compared?;
        }
    }
    (row.handler)(call).await
}

/// Checks what a row asks for: time, key and signature.
///
/// # Errors
/// -1016, -1021, -1022, -1102, -2014, -2015.
pub(crate) fn authorize(
    state: &State,
    row: &Endpoint,
    params: &Params,
    api_key: Option<&str>,
) -> Result<Option<Arc<ApiKey>>, ApiError> {
    if row.security == Security::None {
        return Ok(None);
    }
    let key = signer(state, params, api_key)?;
    match row.security == Security::Trade && !key.may_trade {
        true => Err(ApiError::REJECTED_KEY),
        false => Ok(Some(key)),
    }
}

/// Checks time, key and signature of a signed request.
///
/// # Errors
/// -1016, -1021, -1022, -1102, -2014, -2015.
pub(crate) fn signer(
    state: &State,
    params: &Params,
    api_key: Option<&str>,
) -> Result<Arc<ApiKey>, ApiError> {
    state.orders.check()?;
    let api_key = api_key
        .filter(|key| is_api_key(key))
        .ok_or(ApiError::BAD_KEY)?;
    let timestamp = params.integer("timestamp")?;
    let timestamp = timestamp.ok_or_else(|| ApiError::mandatory("timestamp"))?;
    check_time(timestamp, params.text("recvWindow")?, now_us())?;
    let signature = params.signature();
    let signature = signature.ok_or_else(|| ApiError::mandatory("signature"))?;
    let key = state.keys.find(api_key).ok_or(ApiError::REJECTED_KEY)?;
    match key.verifier.verify(params.payload(), signature) {
        true => Ok(key),
        false => Err(ApiError::SIGNATURE),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_request_has_one_row() {
        for (at, row) in ENDPOINTS.iter().enumerate() {
            let found = find(&row.method, row.path).expect("it is there");
            assert!(
                std::ptr::eq(found, &ENDPOINTS[at]),
                "{} {}",
                row.method,
                row.path
            );
            if let Some(found) = find_ws(row.ws) {
                assert!(std::ptr::eq(found, &ENDPOINTS[at]), "{}", row.ws);
            }
        }
        assert_eq!(find(&Method::GET, "/api/v3/nothing").err(), Some(false));
        assert_eq!(find(&Method::PATCH, "/api/v3/order").err(), Some(true));
        assert!(find_ws("").is_none());
    }
}
