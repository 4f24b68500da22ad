//! An order as clients see it, and its trades.

use serde_json::{Value, json};
use thalweg_exchange::execution::{CancelReason, Execution, ExecutionReport};
use thalweg_exchange::session::ReportNumber;
use thalweg_exchange::{
    Action, OrderFlags, RejectReason, RemovalReason, ResultCode, SelfTrade, UserId,
};

use crate::rest::TimeUnit;
use crate::symbols::Symbol;

/// A report, and the id of its trade.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct UserReport {
    pub(crate) number: ReportNumber,
    pub(crate) report: ExecutionReport,
    pub(crate) trade: Option<i64>,
    pub(crate) time_us: i64,
    /// It is of an auction: both sides pay the taker's fee.
    pub(crate) is_auction: bool,
}

macro_rules! names {
    ($(#[$doc:meta])* $type:ident {
        $($(#[$variant_doc:meta])* $variant:ident = $code:literal, $name:literal;)*
    }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum $type { $($(#[$variant_doc])* $variant = $code),* }

        impl $type {
            pub(crate) const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),* }
            }

            #[allow(dead_code, reason = "no request names a status")]
            pub(crate) fn named(name: &str) -> Option<Self> {
                match name { $($name => Some(Self::$variant),)* _ => None }
            }

            pub(super) const fn from_code(code: u8) -> Option<Self> {
                match code { $($code => Some(Self::$variant),)* _ => None }
            }
        }
    };
}

names! {
    /// The type of an order.
    Kind {
        Limit = 0, "LIMIT";
        LimitMaker = 1, "LIMIT_MAKER";
        Market = 2, "MARKET";
        StopLoss = 3, "STOP_LOSS";
        StopLossLimit = 4, "STOP_LOSS_LIMIT";
    }
}

names! {
    /// How long an order lives.
    Life {
        Gtc = 0, "GTC";
        Ioc = 1, "IOC";
        Fok = 2, "FOK";
    }
}

names! {
    /// The status of an order.
    Status {
        Pending = 0, "PENDING_NEW";
        New = 1, "NEW";
        PartiallyFilled = 2, "PARTIALLY_FILLED";
        Filled = 3, "FILLED";
        Canceled = 4, "CANCELED";
        Rejected = 5, "REJECTED";
        Expired = 6, "EXPIRED";
        ExpiredInMatch = 7, "EXPIRED_IN_MATCH";
        /// Its command was executed, and its reports are lost.
        Unknown = 8, "UNKNOWN";
    }
}

const OUT_OF_BUDGET: CancelReason = CancelReason::Left(RejectReason::Budget);

impl Status {
    /// Returns whether queries show an order with this status.
    pub(super) const fn is_shown(self) -> bool {
        !matches!(self, Self::Pending | Self::Unknown)
    }

    pub(crate) const fn is_open(self) -> bool {
        matches!(self, Self::Pending | Self::New | Self::PartiallyFilled)
    }
}

/// Returns the name of a self-trade mode.
pub(crate) const fn self_trade_name(mode: SelfTrade) -> &'static str {
    match mode {
        SelfTrade::Allow => "NONE",
        SelfTrade::CancelTaker => "EXPIRE_TAKER",
        SelfTrade::CancelMaker => "EXPIRE_MAKER",
        SelfTrade::CancelBoth => "EXPIRE_BOTH",
        SelfTrade::Decrement => "DECREMENT",
    }
}

/// An order. Prices and lots are the engine's; amounts are units of the quote asset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Order {
    pub(crate) user: UserId,
    pub(crate) symbol: i32,
    /// Its id: the sequence of its command.
    pub(crate) id: i64,
    pub(crate) client_id: String,
    pub(crate) kind: Kind,
    pub(crate) life: Life,
    pub(crate) side: Action,
    /// The limit, or the worst price of a market order.
    pub(crate) price: i64,
    /// The price at which money is held for a bid: the one that it was placed with, wherever it was
    /// moved since.
    pub(super) reserve: i64,
    /// 0 of an order by `quoteOrderQty`, until it is filled.
    pub(crate) lots: i64,
    /// The amount that was asked for by `quoteOrderQty`; else 0.
    pub(crate) quote: i64,
    pub(crate) stop: Option<i64>,
    pub(crate) display: Option<i64>,
    pub(crate) flags: OrderFlags,
    /// When it was accepted; before, when it was asked for.
    pub(crate) created_us: i64,
    pub(crate) updated_us: i64,
    /// When it came into the book or traded; 0 before.
    pub(crate) working_us: i64,
    pub(crate) status: Status,
    pub(crate) filled: i64,
    pub(crate) spent: i128,
    /// The last command that changed it.
    pub(crate) command: u64,
    /// The worth of its trades as taker of that command, and their fee.
    pub(super) taken: (i128, i128),
}

/// A trade of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fill {
    pub(crate) id: i64,
    pub(crate) order: i64,
    pub(crate) symbol: i32,
    pub(crate) price: i64,
    pub(crate) lots: i64,
    /// Units of the quote asset; below zero, a rebate.
    pub(crate) fee: i128,
    pub(crate) side: Action,
    pub(crate) is_maker: bool,
    pub(crate) time_us: i64,
    pub(crate) command: u64,
}

/// The effect of a report on an order.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    /// The execution type, as events have it.
    pub(crate) what: &'static str,
    pub(crate) fill: Option<Fill>,
}

impl Order {
    /// Returns a limit order that is on its way.
    pub(crate) fn pending(
        (user, symbol, id): (UserId, i32, i64),
        client_id: String,
        (side, price, lots): (Action, i64, i64),
        created_us: i64,
    ) -> Self {
        Self {
            user,
            symbol,
            id,
            client_id,
            kind: Kind::Limit,
            life: Life::Gtc,
            side,
            price,
            reserve: price,
            lots,
            quote: 0,
            stop: None,
            display: None,
            flags: OrderFlags::NONE,
            created_us,
            updated_us: created_us,
            working_us: 0,
            status: Status::Pending,
            filled: 0,
            spent: 0,
            command: 0,
            taken: (0, 0),
        }
    }

    /// Returns an order that another session of the user has placed, from its first report.
    pub(super) fn of_other_session(report: &ExecutionReport, time_us: i64) -> Option<Self> {
        let key = (report.owner, report.symbol.0, report.order.0);
        let client_id = format!("session-{}", report.order.0);
        let lots = report.left + report.filled;
        let terms = (report.side?, report.price, lots);
        Some(Self::pending(key, client_id, terms, time_us))
    }

    /// Applies a report about it. `symbol` is `None` where it is not listed any more: amounts stay
    /// as they are then. Returns `None` for the refusal of a request, which changes nothing.
    pub(super) fn apply(
        &mut self,
        reported: &UserReport,
        symbol: Option<&Symbol>,
    ) -> Option<Change> {
        let report = &reported.report;
        if self.command != report.command {
            self.taken = (0, 0);
        }
        let mut fill = None;
        let what = match report.kind {
            Execution::New => {
                self.status = Status::New;
                // The time of its first response, not that of the request.
                self.created_us = reported.time_us;
                if self.stop.is_none() {
                    self.working_us = reported.time_us;
                }
                "NEW"
            }
            Execution::Triggered => {
                self.working_us = reported.time_us;
                "NEW"
            }
            Execution::Trade { .. } => {
                fill = self.trade(reported, symbol);
                // Where reports are lost, the trades are not known one by one.
                if fill.is_some() { "TRADE" } else { "REPLACED" }
            }
            Execution::Replaced { reduced_by } => {
                self.lots -= reduced_by;
                self.price = report.price;
                self.reserve = self.reserve.max(self.price);
                "REPLACED"
            }
            Execution::Cancelled { why, .. } => {
                self.status = ended_by(why);
                if self.quote > 0 && self.filled > 0 && why == OUT_OF_BUDGET {
                    // It is filled as far as the amount goes.
                    self.status = Status::Filled;
                }
                execution_type(self.status)
            }
            Execution::Expired { .. } => {
                self.status = Status::Expired;
                "EXPIRED"
            }
            Execution::Rejected(code) => {
                self.status = match code {
                    ResultCode::MatchingRejectedSelfTrade => Status::ExpiredInMatch,
                    ResultCode::MatchingRejectedFillOrKill
                    | ResultCode::MatchingRejectedWorkLimit => Status::Expired,
                    _ => Status::Rejected,
                };
                execution_type(self.status)
            }
            _ => return None,
        };
        self.updated_us = reported.time_us;
        self.command = report.command;
        Some(Change { what, fill })
    }

    fn trade(&mut self, reported: &UserReport, symbol: Option<&Symbol>) -> Option<Fill> {
        let report = &reported.report;
        let Execution::Trade {
            price,
            size,
            is_maker,
            ..
        } = report.kind
        else {
            return None;
        };
        self.filled = report.filled;
        self.status = match report.left {
            0 => Status::Filled,
            _ => Status::PartiallyFilled,
        };
        if self.quote > 0 {
            self.lots = self.filled;
        }
        if self.working_us == 0 {
            self.working_us = reported.time_us;
        }
        let fee = symbol.map_or(0, |symbol| {
            let cost = symbol.notional(price, size);
            self.spent += cost;
            if reported.is_auction {
                return symbol.fee(false, price, size);
            }
            if is_maker {
                return symbol.fee(true, price, size);
            }
            // A taker's fee is rounded once for all trades of a command.
            let before = self.taken;
            let cost = before.0 + cost;
            let whole = symbol.fee_of_cost(cost, price, size, before);
            self.taken = (cost, whole);
            whole - before.1
        });
        Some(Fill {
            id: reported.trade?,
            order: self.id,
            symbol: self.symbol,
            price,
            lots: size,
            fee,
            side: self.side,
            is_maker,
            time_us: reported.time_us,
            command: report.command,
        })
    }

    /// Returns the limit that clients see: 0 where there is none.
    pub(crate) const fn limit(&self) -> i64 {
        match self.kind {
            Kind::Market | Kind::StopLoss => 0,
            Kind::Limit | Kind::LimitMaker | Kind::StopLossLimit => self.price,
        }
    }

    /// Returns the lots of which money is held.
    pub(crate) const fn left(&self) -> i64 {
        match self.status.is_open() {
            true => self.lots - self.filled,
            false => 0,
        }
    }

    /// Returns the fields that all responses about an order have.
    fn result(&self, symbol: &Symbol, unit: TimeUnit) -> Value {
        let mut value = json!({
            "symbol": symbol.name,
            "orderId": self.id,
            "orderListId": -1,
            "clientOrderId": self.client_id,
            "price": symbol.price_text(self.limit()),
            "origQty": symbol.quantity_text(self.lots),
            "executedQty": symbol.quantity_text(self.filled),
            "origQuoteOrderQty": symbol.quote_text(self.quote.into()),
            "cummulativeQuoteQty": symbol.quote_text(self.spent),
            "status": self.status.name(),
            "timeInForce": self.life.name(),
            "type": self.kind.name(),
            "side": side_name(self.side),
            "selfTradePreventionMode": self_trade_name(self.flags.self_trade()),
        });
        if self.working_us > 0 {
            value["workingTime"] = unit.of(self.working_us).into();
        }
        if let Some(stop) = self.stop {
            value["stopPrice"] = symbol.price_text(stop).into();
        }
        if let Some(display) = self.display {
            value["icebergQty"] = symbol.quantity_text(display).into();
        }
        value
    }

    /// Returns the response of a query.
    pub(crate) fn query_json(&self, symbol: &Symbol, unit: TimeUnit) -> Value {
        let mut value = self.result(symbol, unit);
        value["stopPrice"] = symbol.price_text(self.stop.unwrap_or(0)).into();
        value["icebergQty"] = symbol.quantity_text(self.display.unwrap_or(0)).into();
        value["time"] = unit.of(self.created_us).into();
        value["updateTime"] = unit.of(self.updated_us).into();
        value["isWorking"] = (self.working_us > 0).into();
        if self.working_us == 0 {
            value["workingTime"] = (-1).into();
        }
        value
    }

    /// Returns the short response of a new order.
    pub(crate) fn ack_json(&self, symbol: &Symbol, unit: TimeUnit) -> Value {
        json!({
            "symbol": symbol.name,
            "orderId": self.id,
            "orderListId": -1,
            "clientOrderId": self.client_id,
            "transactTime": unit.of(self.updated_us),
        })
    }

    /// Returns the response of a new order, with its trades where `fills` are given.
    pub(crate) fn new_json(
        &self,
        symbol: &Symbol,
        unit: TimeUnit,
        fills: Option<&[Fill]>,
    ) -> Value {
        let mut value = self.result(symbol, unit);
        value["transactTime"] = unit.of(self.updated_us).into();
        if let Some(fills) = fills {
            let fills = fills.iter().map(|fill| {
                json!({
                    "price": symbol.price_text(fill.price),
                    "qty": symbol.quantity_text(fill.lots),
                    "commission": symbol.quote_text(fill.fee),
                    "commissionAsset": symbol.quote.name,
                    "tradeId": fill.id,
                })
            });
            value["fills"] = fills.collect();
        }
        value
    }

    /// Returns the response of a cancel, which has a client order id of its own.
    pub(crate) fn cancel_json(&self, symbol: &Symbol, unit: TimeUnit, cancel_id: &str) -> Value {
        let mut value = self.result(symbol, unit);
        value["origClientOrderId"] = self.client_id.clone().into();
        value["clientOrderId"] = cancel_id.into();
        value["transactTime"] = unit.of(self.updated_us).into();
        value
    }
}

impl Fill {
    /// Returns the trade as `myTrades` has it.
    pub(crate) fn to_json(self, symbol: &Symbol, unit: TimeUnit) -> Value {
        json!({
            "symbol": symbol.name,
            "id": self.id,
            "orderId": self.order,
            "orderListId": -1,
            "price": symbol.price_text(self.price),
            "qty": symbol.quantity_text(self.lots),
            "quoteQty": symbol.notional_text(self.price, self.lots),
            "commission": symbol.quote_text(self.fee),
            "commissionAsset": symbol.quote.name,
            "time": unit.of(self.time_us),
            "isBuyer": self.side == Action::Bid,
            "isMaker": self.is_maker,
            "isBestMatch": true,
        })
    }
}

/// Returns the name of a side.
pub(crate) const fn side_name(side: Action) -> &'static str {
    match side {
        Action::Ask => "SELL",
        Action::Bid => "BUY",
    }
}

/// Returns the execution type of a report that ended an order with this status.
const fn execution_type(status: Status) -> &'static str {
    match status {
        Status::Canceled => "CANCELED",
        Status::Rejected => "REJECTED",
        Status::ExpiredInMatch => "TRADE_PREVENTION",
        _ => "EXPIRED",
    }
}

/// Returns the status of an order whose rest was cancelled.
const fn ended_by(why: CancelReason) -> Status {
    match why {
        CancelReason::Left(RejectReason::SelfTrade)
        | CancelReason::Removed(RemovalReason::SelfTrade) => Status::ExpiredInMatch,
        CancelReason::Left(_)
        | CancelReason::Removed(
            RemovalReason::OutsideBand | RemovalReason::WorkLimit | RemovalReason::Expired,
        ) => Status::Expired,
        _ => Status::Canceled,
    }
}
