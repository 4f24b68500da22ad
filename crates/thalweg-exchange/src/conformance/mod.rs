//! Checks that an engine does exactly what a recorded stream says.
//!
//! Every line that the stream records is compared with the line that the engine's answer would
//! print: results, events, changes of balances, checkpoints of the whole state, the final state and
//! its reports. The first difference is returned; a missing or a surplus line is one.

mod mirror;

use std::collections::VecDeque;
use std::fmt;
use std::io::BufRead;

use thiserror::Error;

use self::mirror::Mirror;
use crate::command::Command;
use crate::engine::state::{State, apply};
use crate::event::{Event, Events};
use crate::report::state_text::{state_text_hash, write_state};
use crate::report::{currency_totals, open_interest};
use crate::result_code::ResultCode;
use crate::stream::{Item, Recording, StreamError};

/// Anything that executes commands one after another.
pub trait Engine {
    /// Executes a command and fills `events` (cleared first) with what it made happen.
    fn execute(&mut self, command: &Command, events: &mut Events) -> ResultCode;

    /// Returns the state with every command so far settled; the changes of single commands are
    /// found by comparing it.
    fn state(&mut self) -> &State;
}

impl Engine for State {
    fn execute(&mut self, command: &Command, events: &mut Events) -> ResultCode {
        apply(self, command, events)
    }

    fn state(&mut self) -> &State {
        self
    }
}

/// The first line where the engine and the stream differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// The line of the stream, counted from 1; for an end that comes too early, the line after
    /// the last.
    pub line: u64,
    /// The line that the stream has there; `None` at its end.
    pub expected: Option<String>,
    /// The line that the engine gives; `None` where it has no more lines.
    pub got: Option<String>,
    /// The line of the last command; 0 before the first.
    pub command_line: u64,
    /// The last command's line.
    pub command: String,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let expected = self.expected.as_deref().unwrap_or("(end of file)");
        let got = self.got.as_deref().unwrap_or("(nothing more)");
        write!(f, "line {}: expected {expected}, got {got}", self.line)?;
        if self.command_line > 0 {
            write!(
                f,
                "; after the command in line {}: {}",
                self.command_line, self.command
            )?;
        }
        Ok(())
    }
}

/// Why a stream did not pass.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CheckError {
    /// The file cannot be read.
    #[error("{0}")]
    Stream(#[from] StreamError),
    /// The engine does something else.
    #[error("{0}")]
    Mismatch(Box<Mismatch>),
}

/// The numbers of items that were compared in a stream that passed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Commands executed, batches counted once.
    pub commands: u64,
    /// Events compared.
    pub events: u64,
    /// Checkpoints of the whole state.
    pub checkpoints: u64,
    /// All lines compared.
    pub lines: u64,
}

/// Whether a stream records what each command changes: found out on the way.
#[derive(Debug)]
enum Changes {
    /// No command changed anything yet.
    Unknown,
    Recorded,
    /// A command changed something and the stream did not say so. That is fine if the stream
    /// never does; if it does later, this was the first difference.
    Absent(Box<Mismatch>),
}

/// Runs a recorded stream through an engine.
#[derive(Debug)]
pub struct Checker<R, E> {
    recorded: Recording<R>,
    engine: E,
    mirror: Mirror,
    changes: Changes,
    /// Lines of the engine that the stream has not reached yet.
    pending: VecDeque<String>,
    command: (u64, u64, String),
    summary: Summary,
}

impl<R: BufRead, E: Engine> Checker<R, E> {
    /// Makes a checker of `engine`, which must be empty, under the rules of the stream
    /// ([`Recording::rules`]).
    pub fn new(recorded: Recording<R>, engine: E) -> Self {
        Self {
            recorded,
            engine,
            mirror: Mirror::default(),
            changes: Changes::Unknown,
            pending: VecDeque::new(),
            command: (0, 0, String::new()),
            summary: Summary::default(),
        }
    }

    /// Runs the whole stream.
    ///
    /// # Errors
    /// At the first line that cannot be read, or where the engine disagrees.
    pub fn run(mut self) -> Result<Summary, CheckError> {
        let mut events = Events::new();
        let mut ended = false;
        while let Some((line, item)) = self.recorded.next().transpose()? {
            if ended {
                return Err(self.differs(line, Some(item_text(item)), None));
            }
            match item {
                Item::Output(text) => self.compare(line, text)?,
                Item::Command { seq, command, text } => {
                    self.drain(line, &text)?;
                    self.command = (seq, line, text);
                    self.execute(&command, &mut events);
                }
                Item::FinalState => {
                    self.drain(line, "# FINAL STATE")?;
                    self.pending = final_lines(self.engine.state());
                    self.pending.push_back("# END".into());
                }
                Item::End => {
                    self.compare(line, "# END".into())?;
                    ended = true;
                }
            }
        }
        if !ended {
            let missing = self
                .pending
                .front()
                .cloned()
                .unwrap_or_else(|| "# FINAL STATE".into());
            return Err(self.differs(self.recorded.line(), None, Some(missing)));
        }
        Ok(self.summary)
    }

    fn execute(&mut self, command: &Command, events: &mut Events) {
        let result = self.engine.execute(command, events);
        self.summary.commands += 1;
        self.summary.events += events.len() as u64;
        self.pending.push_back(format!("R,{result}"));
        self.pending.extend(events.iter().map(event_line));
        if !matches!(self.changes, Changes::Absent(_)) {
            let changes = self.mirror.changes(command, events, self.engine.state());
            self.pending.extend(changes);
        }
    }

    /// Compares a line of the stream with the next one of the engine.
    fn compare(&mut self, line: u64, text: String) -> Result<(), CheckError> {
        self.summary.lines += 1;
        if text.starts_with(['+', '-']) {
            if let Changes::Absent(first) = &self.changes {
                return Err(CheckError::Mismatch(first.clone()));
            }
            self.changes = Changes::Recorded;
        }
        let got = if text.starts_with("K,") {
            self.drain(line, &text)?;
            self.summary.checkpoints += 1;
            let state = state_text_hash(self.engine.state());
            Some(format!(
                "K,{},{},{:016x}",
                self.command.0, state.lines, state.hash
            ))
        } else {
            self.pending.pop_front()
        };
        if got.as_ref() == Some(&text) {
            return Ok(());
        }
        Err(self.differs(line, Some(text), got))
    }

    /// Before the next command or checkpoint, the stream must have said all that the engine says,
    /// except changes in a stream that records none.
    fn drain(&mut self, line: u64, text: &str) -> Result<(), CheckError> {
        let Some(next) = self.pending.front() else {
            return Ok(());
        };
        let difference = self.difference(line, Some(text.to_owned()), Some(next.clone()));
        if next.starts_with(['+', '-']) && matches!(self.changes, Changes::Unknown) {
            self.changes = Changes::Absent(difference);
            self.pending.clear();
            return Ok(());
        }
        Err(CheckError::Mismatch(difference))
    }

    fn differs(&self, line: u64, expected: Option<String>, got: Option<String>) -> CheckError {
        CheckError::Mismatch(self.difference(line, expected, got))
    }

    fn difference(
        &self,
        line: u64,
        expected: Option<String>,
        got: Option<String>,
    ) -> Box<Mismatch> {
        let (_, command_line, ref command) = self.command;
        Box::new(Mismatch {
            line,
            expected,
            got,
            command_line,
            command: command.clone(),
        })
    }
}

fn item_text(item: Item) -> String {
    match item {
        Item::Command { text, .. } | Item::Output(text) => text,
        Item::FinalState => "# FINAL STATE".into(),
        Item::End => "# END".into(),
    }
}

/// Returns an event as recorded streams print it.
#[must_use]
pub fn event_line(event: &Event) -> String {
    match *event {
        Event::Trade {
            price,
            size,
            maker_order,
            maker_uid,
            maker_completed,
            taker_completed,
            bidder_hold_price,
            ..
        } => {
            let (maker_done, taker_done) = (u8::from(maker_completed), u8::from(taker_completed));
            format!(
                "T,{price},{size},{maker_order},{maker_uid},{maker_done},{taker_done},\
                 {bidder_hold_price}"
            )
        }
        Event::Reject {
            price,
            size,
            bidder_hold_price,
            ..
        } => {
            format!("J,{price},{size},{bidder_hold_price}")
        }
        Event::Reduce {
            price,
            size,
            completed,
            bidder_hold_price,
            action,
            ..
        } => {
            let (done, action) = (u8::from(completed), action.name());
            format!("D,{price},{size},{done},{bidder_hold_price},{action}")
        }
        _ => format!("X,{event:?}"),
    }
}

/// Returns the whole state and the reports after it.
fn final_lines(state: &State) -> VecDeque<String> {
    let mut text = String::new();
    write_state(state, &mut text).expect("a String takes everything");
    let mut lines: VecDeque<String> = text.lines().map(str::to_owned).collect();
    lines.extend(currency_totals(state).iter().map(|total| {
        format!(
            "G,{},{},{},{},{},{},{}",
            total.currency,
            total.accounts,
            total.fees,
            total.adjustments,
            total.suspends,
            total.order_holds,
            total.sum()
        )
    }));
    lines.extend(
        open_interest(state)
            .iter()
            .map(|interest| format!("I,{},{},{}", interest.symbol, interest.long, interest.short)),
    );
    lines
}
