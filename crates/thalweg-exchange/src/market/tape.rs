//! Where messages get their numbers.

use super::Channels;
use super::message::{Body, Epoch, FeedSequence, Message, SymbolSequence};
use crate::ids::SymbolId;

/// The messages of one command; the memory is used again for the next.
#[derive(Clone, Debug)]
pub(super) struct Tape {
    messages: Vec<Message>,
    pub(super) epoch: Epoch,
    pub(super) channels: Channels,
    pub(super) sequence: FeedSequence,
}

impl Tape {
    pub(super) fn new(epoch: Epoch, channels: Channels, messages: usize) -> Self {
        Self {
            messages: Vec::with_capacity(messages),
            epoch,
            channels,
            sequence: FeedSequence(0),
        }
    }

    pub(super) fn clear(&mut self) {
        self.messages.clear();
    }

    pub(super) fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// How many messages are here; [`close`](Self::close) takes it.
    pub(super) const fn len(&self) -> usize {
        self.messages.len()
    }

    /// Adds a message, if the feed has those.
    pub(super) fn tell(&mut self, symbol: SymbolId, last: &mut SymbolSequence, body: Body) {
        let is_told = match body {
            Body::Trade { .. } => self.channels.trades,
            Body::Order(_) => self.channels.orders,
            Body::Level(_) => self.channels.levels,
            Body::Best(_) => self.channels.best,
            Body::Cleared => true,
        };
        if !is_told {
            return;
        }
        self.sequence.0 += 1;
        last.0 += 1;
        self.messages.push(Message {
            epoch: self.epoch,
            sequence: self.sequence,
            symbol_sequence: *last,
            channels: self.channels,
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
