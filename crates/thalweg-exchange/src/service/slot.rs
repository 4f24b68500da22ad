//! What goes through the stages.

use std::sync::{Arc, Weak};

use super::ledger::Checked;
use super::query::Inquiry;
use crate::command::Command;
use crate::event::Events;
use crate::result_code::ResultCode;

/// A command on its way through the stages.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) command: Command,
    pub(super) tag: u64,
    pub(super) due: u64,
    pub(super) checked_at: u64,
    pub(super) matched_at: u64,
    pub(super) checked: Checked,
    pub(super) result: ResultCode,
    pub(super) events: Events,
    pub(super) work: Work,
    /// What is asked, where this is a query, as long as somebody waits for the answer.
    pub(super) inquiry: Weak<Inquiry>,
    pub(super) note: Note,
}

/// What a durable exchange has to know of a command when it is published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Note {
    /// The place of the session that sent it.
    pub(crate) session: u32,
    /// By what it is known to be the same if it comes again.
    pub(crate) check: u32,
    /// The number that its session gave it.
    pub(crate) sequence: u64,
}

impl Note {
    /// Of a command that no session sent.
    pub(crate) const NONE: Self = Self {
        session: u32::MAX,
        check: 0,
        sequence: 0,
    };
}

/// What the stages have to do with a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Work {
    /// To execute its command.
    Command,
    /// Nothing: the front stage executed it as a whole.
    Done,
    /// To answer its query.
    Query,
    /// Nothing: the front stage answered it as a whole.
    Answered,
}

impl Slot {
    /// A slot for events of this number.
    pub(super) fn new(events: usize) -> Self {
        Self {
            command: Command::Nop,
            tag: 0,
            due: 0,
            checked_at: 0,
            matched_at: 0,
            checked: Checked::NOT_YET,
            result: ResultCode::New,
            events: Events::with_capacity(events),
            work: Work::Command,
            inquiry: Weak::new(),
            note: Note::NONE,
        }
    }

    /// Becomes a command, with the note of whoever sent it.
    #[inline]
    pub(super) const fn become_command(&mut self, tag: u64) {
        self.work = Work::Command;
        self.tag = tag;
        self.due = 0;
        (self.checked_at, self.matched_at) = (0, 0);
    }

    /// Whether it is no command.
    #[inline(always)]
    pub(super) const fn is_query(&self) -> bool {
        matches!(self.work, Work::Query | Work::Answered)
    }

    pub(super) fn become_query(&mut self, inquiry: &Arc<Inquiry>, tag: u64) {
        self.command = Command::Nop;
        self.work = Work::Query;
        self.inquiry = Arc::downgrade(inquiry);
        self.tag = tag;
    }
}
