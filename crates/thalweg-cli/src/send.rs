//! `thalweg exchange send` sends commands as they are read, and shows answers and reports as they
//! arrive.
//!
//! There are three threads. This one reads and submits; one waits for the answers in order, of
//! which the client allows a limited number to be pending; one shows events.

use crate::arguments::values::Format;
use crate::failure::{Failure, Finding};
use crate::input::lines::Lines;
use crate::input::orders;
use crate::message::counted;
use crate::results::Record;
use crate::terminal::Notes;
use crate::{session, stdin};
use clap::{ArgGroup, Args};
use std::ffi::OsString;
use std::io::{self, Cursor, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use thalweg_client::{BlockingClient, BlockingEvents, BlockingTicket};
use thalweg_client::{
    DisconnectReason, Event, FileStore, MemoryStore, Options, Outcome, SessionCommand, SessionQuery,
};
use thalweg_exchange::codec::session::{
    AdminCommand, NotForRole, NumberedReport, ReportGap, TradeCommand,
};
use thalweg_exchange::{Command, ResultCode, UserId};

/// The options of `exchange send`.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("sender").args(["user", "admin"]).required(true))]
#[command(after_help = "\
Examples:
  thalweg exchange send orders.csv --user 7 --key-file trader.key
  thalweg exchange send setup.csv --admin 1 --key-file admin.key
  thalweg exchange send place 7 1 1 buy gtc 500 20 --user 7 --format json
  thalweg exchange send --user 7
      Commands from the terminal, one a line

  thalweg exchange send halt 1 --admin 1 --key-file admin.key

Commands of an administrator, among others (docs/orders-csv.md has all):
  deposit USER CURRENCY AMOUNT   Money comes in; withdraw: it goes out
  suspend USER                   A user without money leaves; resume: comes back
  halt SYMBOL                    No new orders; open: they are taken again
  cancel_all USER all            All orders of a user; all all: everybody's")]
pub(crate) struct Send {
    /// A file of commands as docs/orders-csv.md has them, whose first line may be missing; `-` or
    /// none for standard input. Several words are one command of that format
    #[arg(value_name = "FILE | COMMAND FIELD")]
    pub(crate) words: Vec<OsString>,

    /// Host and port of the exchange [default: 127.0.0.1:7411, with --admin 127.0.0.1:7412]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) connect: Option<String>,

    /// Trade for this user
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(0..))]
    pub(crate) user: Option<i64>,

    /// Run the market, with the key of this administrator
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(0..))]
    pub(crate) admin: Option<i64>,

    /// Which of the holder's sessions
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) session: u32,

    /// A file that holds the key; without one, none is sent
    #[arg(long, value_name = "FILE")]
    pub(crate) key_file: Option<PathBuf>,

    /// Remember in this file which sequences were used and which reports were shown, so that the
    /// next start goes on there
    #[arg(long, value_name = "FILE")]
    pub(crate) store: Option<PathBuf>,

    /// Give up after N failed attempts in a row to reconnect [default: never]
    #[arg(long, value_name = "N")]
    attempts: Option<u32>,

    /// Format of answers and reports on standard output; JSON has one object a line
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,

    /// No hints on standard error
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

/// The maximum number of pending answers; the client holds back further commands.
const AWAITED_MAX: usize = 1_024;

/// Above the transaction ids of all balances that come with an account ([`Command::AddAccounts`]):
/// 1,000,000,000 and the number of the currency.
const TRANSACTIONS_FROM: i64 = 1 << 32;

pub(crate) fn send(asked: &Send) -> Result<Finding, Failure> {
    let (address, holder) = match (asked.admin, asked.user) {
        (Some(admin), _) => ("127.0.0.1:7412", admin),
        (None, user) => ("127.0.0.1:7411", user.unwrap_or_default()),
    };
    let address = asked.connect.as_deref().unwrap_or(address);
    let notes = Notes::new(asked.quiet);
    let mut options = session::options(address, holder, asked.key_file.as_deref())?;
    options.number = asked.session;
    options.attempts_max = asked.attempts;
    options.in_flight_max = AWAITED_MAX;
    let source = match &asked.words[..] {
        [] => Source::Standard,
        [file] if file == "-" => Source::Standard,
        // It is opened before it connects, so that a missing file is reported at once.
        [file] => Source::Lines(Box::new(Lines::open(Path::new(file))?)),
        words => Source::Lines(Box::new(one_line(words))),
    };
    let is_terminal = matches!(source, Source::Standard) && !stdin::is_given();
    if is_terminal {
        notes.hint("commands, one a line, as docs/orders-csv.md has them; Ctrl-D ends");
    }
    match asked.admin {
        Some(_) => run::<AdminCommand>(asked, options, source, is_terminal, notes),
        None => run::<TradeCommand>(asked, options, source, is_terminal, notes),
    }
}

/// Where commands come from.
enum Source {
    /// Standard input, which is opened once there is a connection.
    Standard,
    Lines(Box<Lines>),
}

/// Returns the command of these words, as a line of the format.
fn one_line(words: &[OsString]) -> Lines {
    let fields: Vec<&[u8]> = words.iter().map(|word| word.as_encoded_bytes()).collect();
    Lines::new("the command", Cursor::new(fields.join(&b',')))
}

/// A command with its line number and the ticket for its answer.
type Sent = (u64, Command, BlockingTicket);

fn run<C>(
    asked: &Send,
    options: Options,
    source: Source,
    is_terminal: bool,
    notes: Notes,
) -> Result<Finding, Failure>
where
    C: SessionCommand + TryFrom<Command, Error = NotForRole>,
{
    let user = UserId(options.holder);
    let connected = match &asked.store {
        Some(store) => BlockingClient::<C>::connect_with(options, FileStore::new(store)),
        None => BlockingClient::<C>::connect_with(options, MemoryStore::default()),
    };
    let (client, events) = connected
        .map_err(|reason| session::failure(reason, asked.key_file.as_deref(), "--key-file"))?;
    let shown = Arc::new(Mutex::new(Shown::new(asked.format)));
    let (tickets, awaited) = sync_channel(AWAITED_MAX);
    thread::scope(|scope| {
        let answers = Arc::clone(&shown);
        let answers = scope.spawn(move || show_answers(&awaited, &answers));
        let reports = Arc::clone(&shown);
        let reports = scope.spawn(move || show_events(events, &reports, notes));
        // At a terminal the user has already read what the program waits for.
        let lines = match source {
            Source::Lines(lines) => Ok(*lines),
            Source::Standard => Lines::open(Path::new("-")),
        };
        let read = lines.map_err(Failure::from).and_then(|mut lines| {
            submit_all(&client, &mut lines, is_terminal, notes, |sent| {
                tickets.send(sent).is_ok()
            })
        });
        drop(tickets);
        let answered = answers.join().unwrap_or(Err(Failure::Reported));
        // The answer to this query comes after the reports of all commands before it.
        drop(client.query(SessionQuery::Account(user)));
        client.close();
        let ended = reports.join().unwrap_or(Err(Failure::Reported));
        read?;
        // The reason why the rest has no answer is reported first.
        ended?;
        Ok(if answered? {
            Finding::Negative
        } else {
            Finding::Fine
        })
    })
}

/// Reads and submits commands until the input ends, or `take` accepts no more.
fn submit_all<C>(
    client: &BlockingClient<C>,
    lines: &mut Lines,
    is_terminal: bool,
    notes: Notes,
    mut take: impl FnMut(Sent) -> bool,
) -> Result<(), Failure>
where
    C: SessionCommand + TryFrom<Command, Error = NotForRole>,
{
    let mut count = 0;
    // Each start bases the ids of its deposits on a command number of the exchange, so that the ids
    // of a later start are higher.
    let first = TRANSACTIONS_FROM.saturating_add(client.welcome().next_command as i64);
    while let Some(line) = lines.next_data()? {
        if line.trim_ascii_end() == orders::HEADER {
            continue;
        }
        let command = orders::command(line, first.saturating_add(count + 1));
        let command = command.and_then(|command| {
            C::try_from(command.clone())
                .map(|allowed| (command, allowed))
                .map_err(|error| error.to_string())
        });
        let (command, allowed) = match command {
            Ok(both) => both,
            Err(what) if is_terminal => {
                notes.hint(&what);
                continue;
            }
            Err(what) => return Err(lines.wrong(what).into()),
        };
        count += 1;
        let Ok(ticket) = client.submit(allowed) else {
            break;
        };
        if !take((lines.line(), command, ticket)) {
            break;
        }
    }
    match count {
        0 if !is_terminal => Err(lines.empty().into()),
        _ => Ok(()),
    }
}

/// Shows the results of commands, in order. Returns whether one of them did not succeed.
fn show_answers(awaited: &Receiver<Sent>, shown: &Mutex<Shown>) -> Result<bool, Failure> {
    let mut failed = false;
    let mut unknown = 0;
    for (line, command, ticket) in awaited {
        let outcome = ticket.wait();
        failed |= outcome.result() != Some(ResultCode::Success);
        unknown += u64::from(outcome.result().is_none() && !is_refused(&outcome));
        let mut shown = shown.lock().unwrap_or_else(PoisonError::into_inner);
        shown
            .answer(line, &command, &outcome)
            .map_err(Failure::Output)?;
    }
    match unknown {
        0 => Ok(failed),
        n => Err(Failure::Unanswered(counted(n, "command"))),
    }
}

const fn is_refused(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Refused { .. })
}

/// Shows reports, and reports lost connections.
fn show_events(
    mut events: BlockingEvents,
    shown: &Mutex<Shown>,
    notes: Notes,
) -> Result<(), Failure> {
    let mut result = Ok(());
    let mut is_lost = false;
    while let Some(event) = events.next() {
        let mut shown = shown.lock().unwrap_or_else(PoisonError::into_inner);
        let written: io::Result<()> = match event {
            Event::Report(report) => shown.report(&report),
            Event::ReportGap(gap) => shown.gap(&gap),
            Event::Disconnected(reason) => {
                if !is_lost {
                    notes.hint(&format!("{reason}; trying again"));
                }
                is_lost = true;
                Ok(())
            }
            Event::Connected(_) => {
                if std::mem::take(&mut is_lost) {
                    notes.hint("connected again");
                }
                Ok(())
            }
            Event::Closed(DisconnectReason::Done) => Ok(()),
            Event::Closed(reason) => {
                result = Err(Failure::Client(reason));
                Ok(())
            }
            _ => Ok(()),
        };
        written.map_err(Failure::Output)?;
    }
    result
}

/// The output and its format: one line for each answer or report. The keys are the columns of
/// docs/orders-csv.md.
#[derive(Debug)]
pub(crate) struct Shown {
    format: Format,
}

impl Shown {
    pub(crate) const fn new(format: Format) -> Self {
        Self { format }
    }

    pub(crate) fn answer(
        &mut self,
        line: u64,
        command: &Command,
        outcome: &Outcome,
    ) -> io::Result<()> {
        let mut record = Record::of_command(command, Some(line));
        let sequence = match *outcome {
            Outcome::Executed {
                sequence,
                number,
                result,
                ..
            } => {
                record.command = Some(number);
                record.result = Some(result.name());
                Some(sequence)
            }
            Outcome::Refused { sequence, why } => {
                record.record = "refused";
                record.result = Some(why.name());
                Some(sequence)
            }
            Outcome::Unknown { sequence } => {
                record.record = "unknown";
                Some(sequence)
            }
            Outcome::NotSent | Outcome::TooLong { .. } => {
                record.record = "not_sent";
                None
            }
        };
        let sequence = sequence.map(|sequence| ("sequence", sequence.0));
        self.write(&record, sequence)
    }

    pub(crate) fn report(&mut self, report: &NumberedReport) -> io::Result<()> {
        let record = Record::of_report(&report.report, None);
        self.write(&record, Some(("report", report.number.0)))
    }

    pub(crate) fn gap(&mut self, gap: &ReportGap) -> io::Result<()> {
        let record = Record::named("report_gap");
        self.write(&record, Some(("until", gap.to.0)))
    }

    fn write(&mut self, record: &Record, number: Option<(&str, u64)>) -> io::Result<()> {
        let text = match self.format {
            Format::Text => record.text(number),
            Format::Json => record.json(number),
        };
        let mut out = io::stdout().lock();
        writeln!(out, "{text}")?;
        out.flush()
    }
}
