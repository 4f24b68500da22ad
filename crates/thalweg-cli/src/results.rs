//! `--out`: what came of every command, and the balances and open orders at the end.
//!
//! `docs/orders-csv.md` describes the columns. The commands are executed once more for it, so that
//! writing does not delay the run that is measured; the states at the end are compared.

use crate::failure::Failure;
use crate::input::lines::Lines;
use crate::input::streamed::each;
use crate::output::Output;
use crate::runner::kind;
use crate::source::Source;
use std::io::{self, BufWriter, Write};
use std::iter;
use thalweg_exchange::execution::{CancelReason, Execution, ExecutionReport, ExecutionReports};
use thalweg_exchange::report::state_text::state_hash;
use thalweg_exchange::{
    Action, Command, Events, Place, RejectReason, Removal, State, SymbolId, apply,
};

/// The names of the columns, and of the keys.
const COLUMNS: [&str; 17] = [
    "record", "command", "line", "name", "user", "symbol", "order", "side", "price", "size",
    "left", "filled", "trade", "role", "result", "currency", "amount",
];

/// One line; what does not apply is left out.
#[derive(Clone, Debug, Default)]
struct Record {
    record: &'static str,
    command: Option<u64>,
    line: Option<u64>,
    name: Option<&'static str>,
    user: Option<i64>,
    symbol: Option<i32>,
    order: Option<i64>,
    side: Option<Action>,
    price: Option<i64>,
    size: Option<i64>,
    left: Option<i64>,
    filled: Option<i64>,
    trade: Option<String>,
    role: Option<&'static str>,
    result: Option<&'static str>,
    currency: Option<i32>,
    amount: Option<i64>,
}

impl Record {
    /// The values, in the order of the columns; whether each is a number.
    fn values(&self) -> [Option<(String, bool)>; COLUMNS.len()] {
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

    fn of_order(record: &'static str, symbol: SymbolId, place: &Place) -> Record {
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

/// How records are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Csv,
    JsonLines,
}

struct Writer<W> {
    out: W,
    form: Form,
}

impl<W: Write> Writer<W> {
    /// The names of the columns, where they stand above them.
    fn names(&mut self) -> io::Result<()> {
        match self.form {
            Form::Csv => writeln!(self.out, "{}", COLUMNS.join(",")),
            Form::JsonLines => Ok(()),
        }
    }

    fn write(&mut self, record: &Record) -> io::Result<()> {
        let mut text = String::new();
        for (name, value) in COLUMNS.iter().zip(record.values()) {
            let before = if text.is_empty() { "" } else { "," };
            text += match (self.form, &value) {
                (Form::Csv, Some((value, _))) => format!("{before}{value}"),
                (Form::Csv, None) => before.to_owned(),
                (_, Some((value, true))) => format!("{before}\"{name}\":{value}"),
                (_, Some((value, false))) => format!("{before}\"{name}\":\"{value}\""),
                (_, None) => String::new(),
            }
            .as_str();
        }
        match self.form {
            Form::Csv => writeln!(self.out, "{text}"),
            Form::JsonLines => writeln!(self.out, "{{{text}}}"),
        }
    }
}

/// Executes the first `count` commands once more, and writes what came of them and what is left.
///
/// # Errors
/// Writing fails, or the state at the end is not that of the run; where the commands are read once
/// more, that cannot be done.
pub(crate) fn write(
    source: &Source,
    count: u64,
    hash: u64,
    output: &mut Output,
    form: Form,
) -> Result<(), Failure> {
    let state = match output.begin() {
        Ok(file) => written(source, count, file, form)?,
        Err(error) => Err(error),
    };
    let state = state.map_err(|error| output.failure(error))?;
    let found = state_hash(&state).hash;
    match &source.again {
        _ if found == hash => Ok(()),
        Some(_) if source.feed.count().is_none() => Err(Failure::Recording {
            file: source.name.clone(),
            what:
                "the file has changed since the run began, and its results are not those of the run"
                    .to_owned(),
        }),
        _ => Err(Failure::Nondeterminism {
            planned: found,
            run: hash,
        }),
    }
}

/// The state at the end, or how writing failed.
fn written(
    source: &Source,
    count: u64,
    file: impl Write,
    form: Form,
) -> Result<io::Result<State>, Failure> {
    let out = BufWriter::with_capacity(1 << 20, file);
    let mut again = Again {
        state: source.before.clone(),
        events: Events::new(),
        number: source.from,
        end: source.from.saturating_add(count),
        writer: Writer { out, form },
    };
    let mut told = again.writer.names();
    let mut take = |line, command: &Command| {
        if told.is_ok() {
            told = again.take(line, command);
        }
        told.is_ok() && again.number < again.end
    };
    match &source.again {
        Some((path, format)) if count > 0 && source.feed.count().is_none() => {
            let mut number = 0;
            each(&mut Lines::open(path)?, *format, |_| {
                move |line, command: Command| {
                    number += 1;
                    number < source.from || take(Some(line), &command)
                }
            })?;
        }
        _ if count == 0 => {}
        _ => {
            let lines = source.feed.lines.iter();
            let lines = lines.map(|line| Some(*line).filter(|line| *line > 0));
            let mut lines = lines.chain(iter::repeat(None));
            let head = source.feed.head.iter();
            let _ = head
                .take_while(|command| take(lines.next().flatten(), command))
                .count();
        }
    }
    let left = told.and_then(|()| left(&again.state, &mut again.writer));
    Ok(left
        .and_then(|()| again.writer.out.flush())
        .map(|()| again.state))
}

/// Commands executed once more.
struct Again<W> {
    state: State,
    events: Events,
    /// Of the next command.
    number: u64,
    /// Beyond the last.
    end: u64,
    writer: Writer<W>,
}

impl<W: Write> Again<W> {
    fn take(&mut self, line: Option<u64>, command: &Command) -> io::Result<()> {
        let number = self.number;
        self.number += 1;
        let result = apply(&mut self.state, command, &mut self.events);
        self.writer.write(&Record {
            record: "command",
            command: Some(number),
            line,
            name: Some(name(command)),
            user: command.uid().map(|uid| uid.0),
            symbol: command.symbol().map(|symbol| symbol.0),
            order: order(command),
            result: Some(result.name()),
            ..Record::default()
        })?;
        for report in ExecutionReports::new(number, command, result, &self.events) {
            self.writer.write(&reported(&report, line))?;
        }
        Ok(())
    }
}

/// The command as the orders format has it; else its name in the facts.
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
            _ => "other",
        },
        CancelReason::Removed(why) => match why {
            Removal::CancelAll => "cancel_all",
            Removal::SelfTrade => "self_trade",
            Removal::Expired => "expired",
            Removal::SymbolRemoved => "symbol_removed",
            Removal::OutsideBand => "outside_band",
            Removal::Disconnected => "disconnected",
            Removal::Cancelled | Removal::Reduced | Removal::Decremented => "reduced",
        },
    }
}

/// Balances by user and currency, then the open orders by symbol: those that rest, best first, then
/// stop orders that wait.
fn left(state: &State, writer: &mut Writer<impl Write>) -> io::Result<()> {
    for user in state.risk.users() {
        for (currency, amount) in user.balances() {
            writer.write(&Record {
                record: "balance",
                user: Some(user.uid.0),
                currency: Some(currency.0),
                amount: Some(amount),
                ..Record::default()
            })?;
        }
    }
    for book in state.matching.books() {
        let symbol = book.spec().id;
        for order in [Action::Ask, Action::Bid]
            .into_iter()
            .flat_map(|side| book.orders(side))
        {
            writer.write(&Record {
                record: "open",
                user: Some(order.uid.0),
                symbol: Some(symbol.0),
                order: Some(order.order_id.0),
                side: Some(order.action),
                price: Some(order.price),
                size: Some(order.size),
                left: Some(order.size - order.filled),
                filled: Some(order.filled),
                ..Record::default()
            })?;
        }
        for stop in book.waiting() {
            writer.write(&Record::of_order("waiting", symbol, &stop.place))?;
        }
    }
    Ok(())
}
