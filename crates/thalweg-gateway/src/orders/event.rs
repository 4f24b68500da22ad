//! Events of user data streams.

use std::sync::Arc;

use serde_json::{Value, json};

use super::order::{Change, Order, self_trade_name, side_name};
use crate::rest::TimeUnit;
use crate::symbols::Symbol;

/// An event of a user data stream.
#[derive(Clone, Debug)]
pub(crate) enum UserEvent {
    /// Something happened to an order.
    Execution(Box<Executed>),
    /// Balances that may have changed.
    Position {
        balances: Vec<Balance>,
        time_us: i64,
    },
    /// A deposit or a withdrawal.
    Balance {
        asset: String,
        delta: String,
        time_us: i64,
    },
}

/// An order after a report.
#[derive(Clone, Debug)]
pub(crate) struct Executed {
    pub(super) order: Order,
    pub(super) change: Change,
    pub(super) symbol: Arc<Symbol>,
    /// The name of the reason of a rejection.
    pub(super) reason: &'static str,
    pub(super) id: u64,
    pub(super) time_us: i64,
}

/// A balance as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Balance {
    pub(crate) asset: String,
    pub(crate) free: String,
    pub(crate) locked: String,
}

impl UserEvent {
    /// Returns the event as clients get it.
    pub(crate) fn to_json(&self, unit: TimeUnit) -> Value {
        match self {
            Self::Execution(executed) => executed.to_json(unit),
            Self::Position { balances, time_us } => json!({
                "e": "outboundAccountPosition",
                "E": unit.of(*time_us),
                "u": unit.of(*time_us),
                "B": balances.iter().map(|balance| json!({
                    "a": balance.asset,
                    "f": balance.free,
                    "l": balance.locked,
                })).collect::<Vec<_>>(),
            }),
            Self::Balance {
                asset,
                delta,
                time_us,
            } => json!({
                "e": "balanceUpdate",
                "E": unit.of(*time_us),
                "a": asset,
                "d": delta,
                "T": unit.of(*time_us),
            }),
        }
    }
}

impl Executed {
    fn to_json(&self, unit: TimeUnit) -> Value {
        let Self {
            order,
            symbol,
            change,
            ..
        } = self;
        let fill = change.fill;
        let time = unit.of(self.time_us);
        let (last, price, traded) = fill.map_or((0, 0, 0), |fill| {
            (
                fill.lots,
                fill.price,
                symbol.notional(fill.price, fill.lots),
            )
        });
        let is_cancel = change.what == "CANCELED";
        let mut value = json!({
            "e": "executionReport",
            "E": time,
            "s": symbol.name,
            "c": order.client_id,
            "S": side_name(order.side),
            "o": order.kind.name(),
            "f": order.life.name(),
            "q": symbol.quantity_text(order.lots),
            "p": symbol.price_text(order.limit()),
            "P": symbol.price_text(order.stop.unwrap_or(0)),
            "F": symbol.quantity_text(order.display.unwrap_or(0)),
            "g": -1,
            "C": if is_cancel { &*order.client_id } else { "" },
            "x": change.what,
            "X": order.status.name(),
            "r": self.reason,
            "i": order.id,
            "l": symbol.quantity_text(last),
            "z": symbol.quantity_text(order.filled),
            "L": symbol.price_text(price),
            "n": fill.map_or_else(|| "0".to_owned(), |fill| symbol.quote_text(fill.fee)),
            "N": fill.map(|_| &*symbol.quote.name),
            "T": time,
            "t": fill.map_or(-1, |fill| fill.id),
            "I": self.id,
            "w": order.working_us > 0 && order.status.is_open(),
            "m": fill.is_some_and(|fill| fill.is_maker),
            "M": false,
            "O": unit.of(order.created_us),
            "Z": symbol.quote_text(order.spent),
            "Y": symbol.quote_text(traded),
            "Q": symbol.quote_text(order.quote.into()),
            "V": self_trade_name(order.flags.self_trade()),
        });
        if order.working_us > 0 {
            value["W"] = unit.of(order.working_us).into();
        }
        value
    }
}
