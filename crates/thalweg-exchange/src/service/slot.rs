//! The slot: the value that goes through the stages.

use super::query::Inquiry;
use super::stamps::Stamps;
use crate::command::Command;
use crate::event::Events;
use crate::result_code::ResultCode;

/// A command for what others have left over.
#[derive(Debug)]
pub(super) struct Further {
    pub(super) command: Command,
    pub(super) result: ResultCode,
    pub(super) events: Events,
}

/// A command or a query on its way through the stages.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) command: Command,
    pub(super) tag: u64,
    pub(super) due: u64,
    /// Their begin is 0 where the command was not stamped.
    pub(super) stamps: Stamps,
    pub(super) result: ResultCode,
    pub(super) events: Events,
    /// The commands that were executed for what this one has left over, if any were.
    pub(super) further: Option<Box<[Further]>>,
    /// The query, if this is one, until it is published.
    pub(super) inquiry: Option<Box<Inquiry>>,
}

impl Slot {
    /// Returns a slot for events of this number, which list levels if they are to.
    pub(super) fn new(events: usize, levels: bool) -> Self {
        let events = Events::with_capacity(events);
        Self {
            command: Command::Nop,
            tag: 0,
            due: 0,
            stamps: Stamps::default(),
            result: ResultCode::New,
            events: if levels { events.with_levels() } else { events },
            further: None,
            inquiry: None,
        }
    }

    /// Becomes a command, with the note of its sender.
    #[inline]
    pub(super) const fn become_command(&mut self, tag: u64) {
        debug_assert!(self.inquiry.is_none(), "it was published");
        self.tag = tag;
        self.due = 0;
        self.stamps.begun = 0;
    }

    pub(super) fn become_query(&mut self, inquiry: Box<Inquiry>) {
        self.command = Command::Nop;
        self.inquiry = Some(inquiry);
    }
}
