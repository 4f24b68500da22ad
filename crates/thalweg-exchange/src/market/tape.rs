//! Where messages get their numbers.

use super::Channels;
use super::message::{Body, Epoch, FeedSequence, Message, SymbolSequence};
use crate::ids::SymbolId;

/// The last numbers of a symbol. They outlive its removal: if it is added again, they go on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Numbers {
    pub(super) symbol: SymbolId,
    pub(super) sequence: SymbolSequence,
}

impl Numbers {
    pub(super) const fn new(symbol: SymbolId) -> Self {
        Self {
            symbol,
            sequence: SymbolSequence(0),
        }
    }
}

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
    #[inline(always)]
    pub(super) fn add(&mut self, numbers: &mut Numbers, body: Body) {
        let is_on = match body {
            Body::Trade { .. } => self.channels.trades,
            Body::Level(_) => self.channels.levels,
            Body::Best(_) => self.channels.best,
            Body::Cleared => true,
        };
        if !is_on {
            return;
        }
        self.sequence.0 += 1;
        numbers.sequence.0 += 1;
        self.messages.push(Message {
            epoch: self.epoch,
            sequence: self.sequence,
            symbol_sequence: numbers.sequence,
            channels: self.channels,
            symbol: numbers.symbol,
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
