//! A record of the results of commands; `docs/orders-csv.md` describes the columns.

use crate::runner::kind;
use thalweg_exchange::execution::{CancelReason, Execution, ExecutionReport};
use thalweg_exchange::{Action, Command, Place, RejectReason, Removal, SymbolId};

/// The names of the columns, which are also the keys in JSON.
pub(super) const COLUMNS: [&str; 17] = [
    "record", "command", "line", "name", "user", "symbol", "order", "side", "price", "size",
    "left", "filled", "trade", "role", "result", "currency", "amount",
];

/// One line; a value that does not apply is left out.
#[derive(Clone, Debug, Default)]
pub(crate) struct Record {
    pub(crate) record: &'static str,
    pub(crate) command: Option<u64>,
    pub(super) line: Option<u64>,
    pub(super) name: Option<&'static str>,
    pub(super) user: Option<i64>,
    pub(super) symbol: Option<i32>,
    pub(super) order: Option<i64>,
    pub(super) side: Option<Action>,
    pub(super) price: Option<i64>,
    pub(super) size: Option<i64>,
    pub(super) left: Option<i64>,
    pub(super) filled: Option<i64>,
    pub(super) trade: Option<String>,
    pub(super) role: Option<&'static str>,
    pub(crate) result: Option<&'static str>,
    pub(super) currency: Option<i32>,
    pub(super) amount: Option<i64>,
}

impl Record {
    /// Returns the values in the order of the columns, each with whether it is a number.
    pub(super) fn values(&self) -> [Option<(String, bool)>; COLUMNS.len()] {
        fn number(value: Option<impl ToString>) -> Option<(String, bool)> {
            value.map(|value| (value.to_string(), true))
        }
        let text = |value: Option<&str>| value.map(|value| (value.to_owned(), false));
        let side = |side| if side == Action::Bid { "buy" } else { "sell" };
        [
            text(Some(self.record)),
            number(self.command),
            number(self.line),
            text(self.name),
            number(self.user),
            number(self.symbol),
            number(self.order),
            text(self.side.map(side)),
            number(self.price),
            number(self.size),
            number(self.left),
            number(self.filled),
            text(self.trade.as_deref()),
            text(self.role),
            text(self.result),
            number(self.currency),
            number(self.amount),
        ]
    }

    /// Creates a record that has only this name.
    pub(crate) fn named(record: &'static str) -> Record {
        Record {
            record,
            ..Record::default()
        }
    }

    /// Creates a record of the values that a command names.
    pub(crate) fn of_command(command: &Command, line: Option<u64>) -> Record {
        Record {
            line,
            name: Some(name(command)),
            user: command.uid().map(|uid| uid.0),
            symbol: command.symbol().map(|symbol| symbol.0),
            order: order(command),
            ..Record::named("command")
        }
    }

    /// Creates a record of an execution report.
    pub(crate) fn of_report(report: &ExecutionReport, line: Option<u64>) -> Record {
        reported(report, line)
    }

    /// Formats the record for people: its name, then names and values. `number`, which has a name
    /// of its own, comes first.
    pub(crate) fn text(&self, number: Option<(&str, u64)>) -> String {
        let mut text = self.record.to_owned();
        let number = number.map(|(name, number)| format!(" {name} {number}"));
        text += &number.unwrap_or_default();
        let values = COLUMNS.iter().zip(self.values()).skip(1);
        for (name, value) in values.filter_map(|(name, value)| Some((name, value?.0))) {
            text += " ";
            text += name;
            text += " ";
            text += &value;
        }
        text
    }

    /// Formats the record as a JSON object.
    pub(crate) fn json(&self, number: Option<(&str, u64)>) -> String {
        let number = number.map(|(name, number)| format!("\"{name}\":{number}"));
        let values = COLUMNS.iter().zip(self.values());
        let values = values.filter_map(|(name, value)| match value? {
            (value, true) => Some(format!("\"{name}\":{value}")),
            (value, false) => Some(format!("\"{name}\":\"{value}\"")),
        });
        let fields: Vec<String> = values.chain(number).collect();
        format!("{{{}}}", fields.join(","))
    }

    pub(super) fn of_order(record: &'static str, symbol: SymbolId, place: &Place) -> Record {
        Record {
            record,
            user: Some(place.uid.0),
            symbol: Some(symbol.0),
            order: Some(place.order_id.0),
            side: Some(place.action),
            price: Some(place.price),
            size: Some(place.size),
            left: Some(place.size),
            filled: Some(0),
            ..Record::default()
        }
    }
}

/// Returns the name of the command in the orders format, or else its name in the facts.
fn name(command: &Command) -> &'static str {
    match kind(command) {
        "add_user" => "user",
        "balance" => "deposit",
        "add_symbols" => "symbol",
        "place_with" => "place",
        "set_price_band" => "band",
        "set_market_protection" => "protection",
        "start_auction" => "auction",
        "remove_symbol" => "remove",
        other => other,
    }
}

fn order(command: &Command) -> Option<i64> {
    match command {
        Command::Cancel { order_id, .. }
        | Command::Move { order_id, .. }
        | Command::Reduce { order_id, .. } => Some(order_id.0),
        Command::Amend(amend) => Some(amend.order_id.0),
        other => other.place().map(|place| place.order_id.0),
    }
}

fn reported(report: &ExecutionReport, line: Option<u64>) -> Record {
    let mut record = Record {
        command: Some(report.command),
        line,
        user: Some(report.owner.0),
        symbol: Some(report.symbol.0),
        order: Some(report.order.0),
        side: report.side,
        price: Some(report.price),
        left: Some(report.left),
        filled: Some(report.filled),
        ..Record::default()
    };
    match report.kind {
        Execution::New => record.record = "new",
        Execution::Trade {
            id,
            price,
            size,
            is_maker,
        } => {
            record.record = "trade";
            record.price = Some(price);
            record.size = Some(size);
            record.trade = Some(id.to_string());
            record.role = Some(if is_maker { "maker" } else { "taker" });
        }
        Execution::Replaced { reduced_by } => {
            record.record = "replaced";
            record.size = Some(reduced_by);
        }
        Execution::Cancelled { size, why } => {
            record.record = "cancelled";
            record.size = Some(size);
            record.result = Some(reason(why));
        }
        Execution::Expired { size } => {
            record.record = "expired";
            record.size = Some(size);
        }
        Execution::Triggered => record.record = "triggered",
        Execution::Rejected(code) => {
            record.record = "rejected";
            record.result = Some(code.name());
        }
        Execution::RequestRejected(code) => {
            record.record = "request_rejected";
            record.result = Some(code.name());
        }
        _ => record.record = "other",
    }
    record
}

fn reason(why: CancelReason) -> &'static str {
    match why {
        CancelReason::Requested | CancelReason::Removed(Removal::Cancelled) => "requested",
        CancelReason::Left(why) => match why {
            RejectReason::ImmediateOrCancel => "immediate_or_cancel",
            RejectReason::Budget => "budget",
            RejectReason::FillOrKill => "fill_or_kill",
            RejectReason::PostOnly => "post_only",
            RejectReason::DuplicateId => "duplicate_id",
            RejectReason::SelfTrade => "self_trade",
            RejectReason::WorkLimit => "work_limit",
            _ => "other",
        },
        CancelReason::Removed(why) => match why {
            Removal::CancelAll => "cancel_all",
            Removal::SelfTrade => "self_trade",
            Removal::Expired => "expired",
            Removal::SymbolRemoved => "symbol_removed",
            Removal::OutsideBand => "outside_band",
            Removal::Disconnected => "disconnected",
            Removal::WorkLimit => "work_limit",
            Removal::Cancelled | Removal::Reduced | Removal::Decremented => "reduced",
        },
    }
}
