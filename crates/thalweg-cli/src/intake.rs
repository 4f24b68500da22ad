//! The part of a stream that is run: the commands before it are executed as they are read, and not
//! kept.

use crate::input::lines::RECORDS_MAX as COMMANDS_MAX;
use thalweg_exchange::{Command, Events, Rules, State, apply};

/// Takes the commands of a stream one after another.
pub(crate) struct Intake {
    /// The exchange before the first command that is kept.
    pub(crate) before: State,
    pub(crate) commands: Vec<Command>,
    /// The line of each, where they have lines.
    pub(crate) lines: Vec<u64>,
    /// The number of the first that is kept, from 1.
    pub(crate) from: u64,
    limit: usize,
    passed: u64,
    events: Events,
}

impl Intake {
    /// Of a stream under these rules: from command `from`, counted from 1, so many.
    pub(crate) fn new(rules: Rules, from: u64, limit: Option<u64>) -> Intake {
        let limit = limit.and_then(|limit| usize::try_from(limit).ok());
        Intake {
            before: State::new(rules),
            commands: Vec::new(),
            lines: Vec::new(),
            from,
            limit: limit.unwrap_or(usize::MAX),
            passed: 1,
            events: Events::new(),
        }
    }

    /// Whether no further command is wanted, or none fits.
    pub(crate) fn is_full(&self) -> bool {
        self.commands.len() >= self.limit || self.is_too_large()
    }

    /// Whether it holds more than is kept without a limit.
    pub(crate) fn is_too_large(&self) -> bool {
        self.limit == usize::MAX && self.commands.len() > COMMANDS_MAX
    }

    /// The next command of the stream.
    pub(crate) fn take(&mut self, line: Option<u64>, command: Command) {
        if self.passed < self.from {
            self.passed += 1;
            apply(&mut self.before, &command, &mut self.events);
            return;
        }
        self.commands.push(command);
        self.lines.extend(line);
    }

    /// Commands that have no lines, until no more are wanted.
    pub(crate) fn take_all(&mut self, commands: Vec<Command>) {
        for command in commands {
            if self.is_full() {
                break;
            }
            self.take(None, command);
        }
    }

    /// How many commands were taken, those before the first that is kept included.
    pub(crate) fn taken(&self) -> u64 {
        self.passed - 1 + self.commands.len() as u64
    }
}
