//! Where messages get their numbers.

use super::message::{Body, Epoch, FeedSequence, Message, SymbolSequence};
use crate::ids::SymbolId;

/// The messages of one command; the memory is used again for the next.
#[derive(Clone, Debug)]
pub(super) struct Tape {
    messages: Vec<Message>,
    epoch: Epoch,
    sequence: FeedSequence,
}

impl Tape {
    pub(super) fn new(epoch: Epoch, messages: usize) -> Self {
        Self {
            messages: Vec::with_capacity(messages),
            epoch,
            sequence: FeedSequence(0),
        }
    }

    pub(super) fn clear(&mut self) {
        self.messages.clear();
    }

    pub(super) fn messages(&self) -> &[Message] {
        &self.messages
    }

    pub(super) const fn epoch(&self) -> Epoch {
        self.epoch
    }

    pub(super) const fn sequence(&self) -> FeedSequence {
        self.sequence
    }

    /// How many messages are here; [`close`](Self::close) takes it.
    pub(super) const fn len(&self) -> usize {
        self.messages.len()
    }

    pub(super) fn push(
        &mut self,
        command: u64,
        symbol: SymbolId,
        last: &mut SymbolSequence,
        body: Body,
    ) {
        self.sequence.0 += 1;
        last.0 += 1;
        self.messages.push(Message {
            epoch: self.epoch,
            sequence: self.sequence,
            symbol_sequence: *last,
            command,
            symbol,
            is_last: false,
            body,
        });
    }

    /// Marks the last message, if any came since there were `from`.
    pub(super) fn close(&mut self, from: usize) {
        if let Some(last) = self.messages[from..].last_mut() {
            last.is_last = true;
        }
    }
}
