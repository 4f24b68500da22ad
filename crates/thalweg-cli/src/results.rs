//! `--output` writes the result of every command, and the balances and open orders at the end.
//!
//! `docs/orders-csv.md` describes the columns. The commands are executed a second time for this, so
//! that writing does not delay the run that is measured. The states at the end are compared.

mod record;

use self::record::COLUMNS;
pub(crate) use self::record::Record;
use crate::failure::Failure;
use crate::input::lines::Lines;
use crate::input::streamed::each;
use crate::output::Output;
use crate::source::Source;
use crate::terminal::Notes;
use std::io::{self, BufWriter, Write};
use std::iter;
use thalweg_exchange::execution::ExecutionReports;
use thalweg_exchange::report::state_text::state_hash;
use thalweg_exchange::{Action, Command, Events, State, apply};

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
        if self.form == Form::JsonLines {
            return writeln!(self.out, "{}", record.json(None));
        }
        let values = record
            .values()
            .map(|value| value.map_or_else(String::new, |value| value.0));
        writeln!(self.out, "{}", values.join(","))
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
            each(&mut Lines::open(path, Notes::new(true))?, *format, |_| {
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
