//! A new order as a client asks for it.

use std::sync::Arc;

use thalweg_exchange::{Action, OrderFlags, SelfTrade};

use super::order::{Kind, Life};
use crate::error::{ApiError, CLIENT_ID_RANGE};
use crate::params::Params;
use crate::symbols::{Symbol, Symbols};

/// The longest client order id.
const CLIENT_ID_CHARS_MAX: usize = 36;
/// Lots that an iceberg order may have for each that it displays.
const ICEBERG_PARTS_MAX: i64 = 1_000;
/// Parameters that change what an order is, and that the engine cannot do.
const UNSUPPORTED: [&str; 4] = [
    "trailingDelta",
    "pegPriceType",
    "pegOffsetValue",
    "pegOffsetType",
];

/// How much a response says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Detail {
    Ack,
    Result,
    Full,
}

/// How much is to be traded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Amount {
    /// Lots.
    Lots(i64),
    /// Units of the quote asset: a market order only.
    Quote(i64),
}

/// See the [module](self).
#[derive(Clone, Debug)]
pub(crate) struct Draft {
    pub(crate) symbol: Arc<Symbol>,
    pub(crate) kind: Kind,
    pub(crate) life: Life,
    pub(crate) side: Action,
    /// The engine's price, where the type has a limit.
    pub(crate) price: Option<i64>,
    pub(crate) amount: Amount,
    pub(crate) stop: Option<i64>,
    pub(crate) display: Option<i64>,
    pub(crate) flags: OrderFlags,
    pub(crate) client_id: Option<String>,
    pub(crate) detail: Detail,
}

impl Draft {
    /// Reads and checks the parameters of a new order.
    ///
    /// # Errors
    /// Those of parameters; -1013 for filters; -1106, -1111, -1114 to -1117.
    pub(crate) fn read(params: &Params, symbols: &Symbols) -> Result<Self, ApiError> {
        let symbol = params.symbol(symbols)?;
        if UNSUPPORTED.iter().any(|name| params.raw(name).is_some()) {
            return Err(ApiError::UNSUPPORTED);
        }
        let side = match params.required("side")? {
            "BUY" => Action::Bid,
            "SELL" => Action::Ask,
            _ => return Err(ApiError::INVALID_SIDE),
        };
        let kind = Kind::named(params.required("type")?).ok_or(ApiError::INVALID_ORDER_TYPE)?;
        let life = life_of(kind, params)?;
        let price = price_of(&symbol, kind, params)?;
        let amount = amount_of(&symbol, kind, params)?;
        let stop = stop_of(&symbol, kind, params)?;
        let display = display_of(&symbol, kind, life, amount, params)?;
        if let (Some(price), Amount::Lots(lots)) = (price.or(stop), amount) {
            check_notional(&symbol, price, lots)?;
        }
        Ok(Self {
            flags: flags_of(kind, params)?,
            client_id: client_id(params, "newClientOrderId")?,
            detail: detail_of(kind, params)?,
            symbol,
            kind,
            life,
            side,
            price,
            amount,
            stop,
            display,
        })
    }
}

fn life_of(kind: Kind, params: &Params) -> Result<Life, ApiError> {
    let name = params.text("timeInForce")?;
    match (kind, name) {
        (Kind::Limit | Kind::StopLossLimit, None) => Err(ApiError::mandatory("timeInForce")),
        (Kind::Limit | Kind::StopLossLimit, Some(name)) => {
            let life = Life::named(name).ok_or(ApiError::INVALID_TIF)?;
            match (kind, life) {
                // The engine has no such stop order.
                (Kind::StopLossLimit, Life::Fok) => Err(ApiError::COMBINATION),
                _ => Ok(life),
            }
        }
        (_, None) => Ok(Life::Gtc),
        // ccxt sends it with post-only orders of older versions; it says nothing else.
        (Kind::LimitMaker, Some("GTC")) => Ok(Life::Gtc),
        (_, Some(_)) => Err(ApiError::TIF_NOT_REQUIRED),
    }
}

fn price_of(symbol: &Symbol, kind: Kind, params: &Params) -> Result<Option<i64>, ApiError> {
    match kind {
        Kind::Market | Kind::StopLoss => match params.text("price")? {
            Some(_) => Err(ApiError::not_required("price")),
            None => Ok(None),
        },
        _ => required_price(symbol, "price", params).map(Some),
    }
}

fn required_price(symbol: &Symbol, name: &str, params: &Params) -> Result<i64, ApiError> {
    let units = params.decimal(name, symbol.price_decimals, &ApiError::PRICE_FILTER)?;
    let units = units.ok_or_else(|| ApiError::mandatory(name))?;
    symbol.price_of(units).map_err(|_| ApiError::PRICE_FILTER)
}

fn amount_of(symbol: &Symbol, kind: Kind, params: &Params) -> Result<Amount, ApiError> {
    let lots = lots_of(symbol, "quantity", params)?;
    let most = symbol.max_quantity() / symbol.spec.base_scale;
    if lots.is_some_and(|lots| lots > most) {
        return Err(ApiError::LOT_SIZE);
    }
    let quote = params.decimal("quoteOrderQty", symbol.quote.decimals, &ApiError::NOTIONAL)?;
    match (lots, quote) {
        (Some(_), Some(_)) => Err(ApiError::BAD_COMBINATION),
        (Some(lots), None) => Ok(Amount::Lots(lots)),
        (None, Some(_)) if kind != Kind::Market => Err(ApiError::not_required("quoteOrderQty")),
        (None, Some(quote)) if quote > 0 && is_worth(symbol, quote.into()) => {
            Ok(Amount::Quote(quote))
        }
        (None, Some(_)) => Err(ApiError::NOTIONAL),
        (None, None) if kind == Kind::Market => Err(ApiError::either("quantity", "quoteOrderQty")),
        (None, None) => Err(ApiError::mandatory("quantity")),
    }
}

/// Returns lots, where the parameter is there.
///
/// # Errors
/// Those of decimals; -1013 where they are no multiple of the step.
pub(crate) fn lots_of(
    symbol: &Symbol,
    name: &str,
    params: &Params,
) -> Result<Option<i64>, ApiError> {
    let units = params.decimal(name, symbol.base.decimals, &ApiError::LOT_SIZE)?;
    let lots = units.map(|units| symbol.lots_of(units));
    lots.transpose().map_err(|_| ApiError::LOT_SIZE)
}

fn stop_of(symbol: &Symbol, kind: Kind, params: &Params) -> Result<Option<i64>, ApiError> {
    let is_stop = matches!(kind, Kind::StopLoss | Kind::StopLossLimit);
    match (is_stop, params.text("stopPrice")?) {
        (true, _) => required_price(symbol, "stopPrice", params).map(Some),
        (false, Some(_)) => Err(ApiError::not_required("stopPrice")),
        (false, None) => Ok(None),
    }
}

fn display_of(
    symbol: &Symbol,
    kind: Kind,
    life: Life,
    amount: Amount,
    params: &Params,
) -> Result<Option<i64>, ApiError> {
    let zero = params.raw("icebergQty").and_then(|text| {
        let units = crate::decimal::parse(text, symbol.base.decimals);
        units.ok().filter(|units| *units == 0)
    });
    if zero.is_some() {
        return Ok(None);
    }
    let (Some(display), Amount::Lots(lots)) = (lots_of(symbol, "icebergQty", params)?, amount)
    else {
        return Ok(None);
    };
    if matches!(kind, Kind::Market | Kind::StopLoss) {
        return Err(ApiError::not_required("icebergQty"));
    }
    if life != Life::Gtc {
        return Err(ApiError::COMBINATION);
    }
    if display > lots {
        return Err(ApiError::ICEBERG_QTY);
    }
    match display.saturating_mul(ICEBERG_PARTS_MAX) >= lots {
        true => Ok(Some(display)),
        false => Err(ApiError::ICEBERG_PARTS),
    }
}

fn flags_of(kind: Kind, params: &Params) -> Result<OrderFlags, ApiError> {
    let mode = match params.text("selfTradePreventionMode")? {
        None | Some("NONE") => SelfTrade::Allow,
        Some("EXPIRE_TAKER") => SelfTrade::CancelTaker,
        Some("EXPIRE_MAKER") => SelfTrade::CancelMaker,
        Some("EXPIRE_BOTH") => SelfTrade::CancelBoth,
        Some(_) => return Err(ApiError::invalid_data("selfTradePreventionMode")),
    };
    let flags = OrderFlags::NONE.with_self_trade(mode);
    Ok(match kind {
        Kind::LimitMaker => flags.with_post_only(),
        _ => flags,
    })
}

fn detail_of(kind: Kind, params: &Params) -> Result<Detail, ApiError> {
    match params.text("newOrderRespType")? {
        Some("ACK") => Ok(Detail::Ack),
        Some("RESULT") => Ok(Detail::Result),
        Some("FULL") => Ok(Detail::Full),
        Some(_) => Err(ApiError::invalid_data("newOrderRespType")),
        None if matches!(kind, Kind::Market | Kind::Limit) => Ok(Detail::Full),
        None => Ok(Detail::Ack),
    }
}

/// Returns a client order id, where it is there.
///
/// # Errors
/// -1100 for other characters, and for more than 36.
pub(crate) fn client_id(params: &Params, name: &str) -> Result<Option<String>, ApiError> {
    let Some(text) = params.text(name)? else {
        return Ok(None);
    };
    let is_legal = |byte: u8| byte.is_ascii_alphanumeric() || b".:/_-".contains(&byte);
    match text.len() <= CLIENT_ID_CHARS_MAX && text.bytes().all(is_legal) {
        true => Ok(Some(text.to_owned())),
        false => Err(ApiError::illegal(name, CLIENT_ID_RANGE)),
    }
}

fn is_worth(symbol: &Symbol, amount: i128) -> bool {
    (symbol.min_notional.into()..=symbol.max_notional().into()).contains(&amount)
}

/// Checks the worth of an order.
///
/// # Errors
/// -1013.
pub(crate) fn check_notional(symbol: &Symbol, price: i64, lots: i64) -> Result<(), ApiError> {
    match is_worth(symbol, symbol.notional(price, lots)) {
        true => Ok(()),
        false => Err(ApiError::NOTIONAL),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use thalweg_exchange::risk::TradingLimits;
    use thalweg_exchange::{CurrencyId, SymbolId, SymbolSpec};

    use super::*;

    fn symbols() -> Symbols {
        let text = "[assets]\nA = { currency = 1, decimals = 2 }\n\
                    B = { currency = 2, decimals = 3 }\n\
                    [symbols.AB]\nsymbol = 1\nbase = \"A\"\nquote = \"B\"\nmin_notional = \"1\"\n";
        let symbols = Symbols::parse(Path::new("s.toml"), text).expect("it is right");
        let spec = SymbolSpec::pair(SymbolId(1), CurrencyId(1), CurrencyId(2));
        symbols.add(spec, TradingLimits::NONE);
        symbols
    }

    fn read(query: &str) -> Result<Draft, ApiError> {
        let params = Params::of_request(&format!("symbol=AB&side=BUY&{query}"), "")?;
        Draft::read(&params, &symbols())
    }

    #[test]
    fn each_type_has_its_parameters() {
        let limit = read("type=LIMIT&timeInForce=GTC&quantity=1.50&price=2.1").expect("it is fine");
        assert_eq!((limit.price, limit.amount), (Some(21), Amount::Lots(150)));
        assert_eq!((limit.life, limit.detail), (Life::Gtc, Detail::Full));
        let maker = read("type=LIMIT_MAKER&quantity=1&price=2").expect("it is fine");
        assert!(maker.flags.is_post_only() && maker.detail == Detail::Ack);
        let market = read("type=MARKET&quoteOrderQty=1.5").expect("it is fine");
        assert_eq!((market.price, market.amount), (None, Amount::Quote(1_500)));
        let stop = "type=STOP_LOSS_LIMIT&timeInForce=IOC&quantity=1&price=2&stopPrice=1.9";
        assert_eq!(read(stop).expect("it is fine").stop, Some(19));
    }

    #[test]
    fn what_does_not_fit_is_refused_by_its_own_error() {
        let missing = ApiError::mandatory;
        for (query, error) in [
            ("type=LIMIT&quantity=1&price=2", missing("timeInForce")),
            ("type=LIMIT&timeInForce=GTC&price=2", missing("quantity")),
            ("type=LIMIT&timeInForce=GTC&quantity=1", missing("price")),
            (
                "type=LIMIT&timeInForce=GTD&quantity=1&price=2",
                ApiError::INVALID_TIF,
            ),
            ("type=OCO&quantity=1", ApiError::INVALID_ORDER_TYPE),
            (
                "type=MARKET&quantity=1&timeInForce=GTC",
                ApiError::TIF_NOT_REQUIRED,
            ),
            (
                "type=MARKET&quantity=1&price=2",
                ApiError::not_required("price"),
            ),
            ("type=MARKET", ApiError::either("quantity", "quoteOrderQty")),
            (
                "type=MARKET&quantity=1&trailingDelta=5",
                ApiError::UNSUPPORTED,
            ),
            (
                "type=LIMIT&timeInForce=GTC&quantity=0.001&price=2",
                ApiError::too_precise("quantity"),
            ),
            (
                "type=LIMIT&timeInForce=GTC&quantity=1&price=2.01",
                ApiError::PRICE_FILTER,
            ),
            (
                "type=LIMIT&timeInForce=GTC&quantity=0&price=2",
                ApiError::LOT_SIZE,
            ),
            (
                "type=LIMIT&timeInForce=GTC&quantity=0.1&price=2",
                ApiError::NOTIONAL,
            ),
            (
                "type=LIMIT&timeInForce=GTC&quantity=9000000001&price=2",
                ApiError::LOT_SIZE,
            ),
            (
                "type=LIMIT&timeInForce=GTC&quantity=1&price=9000000001",
                ApiError::PRICE_FILTER,
            ),
            (
                "type=LIMIT&timeInForce=GTC&quantity=9000000000&price=2",
                ApiError::NOTIONAL,
            ),
            (
                "type=STOP_LOSS&quantity=0.1&stopPrice=2",
                ApiError::NOTIONAL,
            ),
            (
                "type=LIMIT&timeInForce=IOC&quantity=1&price=2&icebergQty=0.5",
                ApiError::COMBINATION,
            ),
            (
                "type=LIMIT&timeInForce=GTC&quantity=1&price=2&newClientOrderId=a%20b",
                ApiError::illegal("newClientOrderId", CLIENT_ID_RANGE),
            ),
        ] {
            assert_eq!(read(query).expect_err(query), error, "{query}");
        }
    }
}
