//! Writes the results of commands, a record each; `docs/orders-csv.md` describes the columns.

use crate::failure::Failure;
use crate::flow::kind;
use crate::input::each;
use crate::input::lines::Lines;
use crate::output::Output;
use crate::source::Source;
use crate::views::query::side_name;
use crate::views::rows;
use serde_json::Value;
use std::io::{self, BufWriter, Write};
use std::iter;
use thalweg_exchange::execution::{CancelReason, Execution, ExecutionReport, ExecutionReports};
use thalweg_exchange::report::state_text::state_text_hash;
use thalweg_exchange::{
    Action, Command, Events, Place, RejectReason, RemovalReason, State, SymbolId, apply,
};

/// The format of the records.
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
    /// Writes the names of the columns, if the format has a header.
    fn names(&mut self) -> io::Result<()> {
        match self.form {
            Form::Csv => writeln!(self.out, "{}", COLUMNS.join(",")),
            Form::JsonLines => Ok(()),
        }
    }

    fn write(&mut self, record: &Record) -> io::Result<()> {
        let line = match self.form {
            Form::Csv => rows::csv(&record.values()),
            Form::JsonLines => record.json(None),
        };
        writeln!(self.out, "{line}")
    }
}

/// Executes the first `count` commands a second time, and writes their results and the remaining
/// state.
///
/// # Errors
/// Returns an error if writing fails, if the state at the end differs from that of the run, or if
/// commands that must be read a second time cannot be read.
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
    let found = state_text_hash(&state).hash;
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

/// Returns the state at the end, or the error of writing.
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
        number: source.from + source.further,
        left: count,
        writer: Writer { out, form },
    };
    let mut written = again.writer.names();
    let mut take = |line, command: &Command| {
        if written.is_ok() {
            written = again.take(line, command);
        }
        written.is_ok() && again.left > 0
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
    let left = written.and_then(|()| left(&again.state, &mut again.writer));
    Ok(left
        .and_then(|()| again.writer.out.flush())
        .map(|()| again.state))
}

/// The second execution of the commands.
struct Again<W> {
    state: State,
    events: Events,
    /// The number of the next command.
    number: u64,
    /// The number of commands of the stream that are left.
    left: u64,
    writer: Writer<W>,
}

impl<W: Write> Again<W> {
    fn take(&mut self, line: Option<u64>, command: &Command) -> io::Result<()> {
        self.left -= 1;
        self.execute(line, command)?;
        while let Some(command) = self.state.left_over() {
            self.execute(None, &command)?;
        }
        Ok(())
    }

    fn execute(&mut self, line: Option<u64>, command: &Command) -> io::Result<()> {
        let number = self.number;
        self.number += 1;
        let result = apply(&mut self.state, command, &mut self.events);
        self.writer.write(&Record {
            command: Some(number),
            result: Some(result.name()),
            ..Record::of_command(command, line)
        })?;
        for report in ExecutionReports::new(number, command, result, &self.events) {
            self.writer.write(&Record::of_report(&report, line))?;
        }
        Ok(())
    }
}

/// Writes balances by user and currency, then the open orders by symbol: first those that rest, the
/// best first, then stop orders that wait.
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

/// The names of the columns, which are also the keys in JSON.
const COLUMNS: [&str; 17] = [
    "record", "command", "line", "name", "user", "symbol", "order", "side", "price", "size",
    "left", "filled", "trade", "role", "result", "currency", "amount",
];

/// One line; a value that does not apply is left out.
#[derive(Clone, Debug, Default)]
pub(crate) struct Record {
    pub(crate) record: &'static str,
    pub(crate) command: Option<u64>,
    pub(crate) line: Option<u64>,
    pub(crate) name: Option<&'static str>,
    pub(crate) user: Option<i64>,
    pub(crate) symbol: Option<i32>,
    pub(crate) order: Option<i64>,
    pub(crate) side: Option<Action>,
    pub(crate) price: Option<i64>,
    pub(crate) size: Option<i64>,
    pub(crate) left: Option<i64>,
    pub(crate) filled: Option<i64>,
    pub(crate) trade: Option<String>,
    pub(crate) role: Option<&'static str>,
    pub(crate) result: Option<&'static str>,
    pub(crate) currency: Option<i32>,
    pub(crate) amount: Option<i64>,
}

impl Record {
    /// Returns the values in the order of the columns.
    fn values(&self) -> [Value; COLUMNS.len()] {
        [
            self.record.into(),
            self.command.into(),
            self.line.into(),
            self.name.into(),
            self.user.into(),
            self.symbol.into(),
            self.order.into(),
            self.side.map(side_name).into(),
            self.price.into(),
            self.size.into(),
            self.left.into(),
            self.filled.into(),
            self.trade.clone().into(),
            self.role.into(),
            self.result.into(),
            self.currency.into(),
            self.amount.into(),
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
        let number = number.map(|(name, number)| format!(" {name} {number}"));
        let shown = rows::named(&COLUMNS[1..], &self.values()[1..]);
        let text = format!("{}{} {shown}", self.record, number.unwrap_or_default());
        text.trim_end().to_owned()
    }

    /// Formats the record as a JSON object, `number` last.
    pub(crate) fn json(&self, number: Option<(&str, u64)>) -> String {
        let mut object = rows::json(&COLUMNS, &self.values());
        if let Some((name, number)) = number {
            object.pop();
            object += &format!(",\"{name}\":{number}}}");
        }
        object
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

/// Returns the name of the command in the orders format, or else its name in the facts.
fn name(command: &Command) -> &'static str {
    match kind(command) {
        "balance" if is_withdrawal(command) => "withdraw",
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

const fn is_withdrawal(command: &Command) -> bool {
    matches!(command, Command::Balance { amount: ..0, .. })
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
        CancelReason::Requested | CancelReason::Removed(RemovalReason::Cancelled) => "requested",
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
            RemovalReason::CancelAll => "cancel_all",
            RemovalReason::SelfTrade => "self_trade",
            RemovalReason::Expired => "expired",
            RemovalReason::SymbolRemoved => "symbol_removed",
            RemovalReason::OutsideBand => "outside_band",
            RemovalReason::Disconnected => "disconnected",
            RemovalReason::WorkLimit => "work_limit",
            RemovalReason::Cancelled | RemovalReason::Reduced | RemovalReason::Decremented => {
                "reduced"
            }
        },
    }
}
