//! The publisher's end of the feed: outcomes become messages.

use std::collections::BTreeSet;

use thalweg_exchange::codec::{MESSAGE_BYTES_MAX, encode_message, encode_snapshot, snapshot_bytes};
use thalweg_exchange::market::{Builder, Channels, Epoch, OutcomeError, Snapshot};
use thalweg_exchange::service::Outcome;
use thalweg_exchange::{Command, ResultCode, State, SymbolId};

use super::{Feed, INLET_BYTES_MAX};
use crate::lock;

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct FeedWriter {
    builder: Builder,
    symbols: BTreeSet<SymbolId>,
    /// Symbols that were removed since the last hand-over: their messages may be dropped.
    removed: BTreeSet<SymbolId>,
    /// The frames that were made since the last hand-over.
    bytes: Vec<u8>,
    /// Messages were dropped, or no session has subscribed yet, and snapshots are to follow.
    is_behind: bool,
    /// Whether these snapshots are the first ones.
    is_first: bool,
    snapshot: Snapshot,
}

impl FeedWriter {
    /// Goes on from a state: the books' snapshots are what the feed begins with, once it is
    /// [wanted](Feed::want).
    pub(crate) fn new(state: &State, feed: &Feed) -> Self {
        let books = state.matching.books();
        Self {
            builder: Builder::from_books(&state.matching, feed.epoch(), feed.channels),
            symbols: books.iter().map(|book| book.spec().id).collect(),
            removed: BTreeSet::new(),
            bytes: Vec::new(),
            is_behind: true,
            is_first: true,
            snapshot: Snapshot::default(),
        }
    }

    /// Takes the next outcome in.
    ///
    /// # Errors
    /// An outcome is missing: the writer cannot be used any more.
    pub(crate) fn take(&mut self, outcome: &Outcome<'_>) -> Result<(), OutcomeError> {
        let Outcome {
            sequence,
            command,
            result,
            events,
            ..
        } = *outcome;
        self.builder.set_silent(self.is_behind);
        for message in self.builder.apply(sequence, command, result, events)? {
            let at = self.bytes.len();
            self.bytes.extend_from_slice(&[0; MESSAGE_BYTES_MAX]);
            let length = encode_message(message, &mut self.bytes[at..]).unwrap_or(0);
            self.bytes.truncate(at + length);
        }
        if result == ResultCode::Success {
            self.note_symbols(command);
        }
        if self.bytes.len() > INLET_BYTES_MAX {
            self.fall_behind();
        }
        Ok(())
    }

    /// Drops the messages that are here, and frees their memory.
    pub(crate) fn fall_behind(&mut self) {
        self.bytes = Vec::new();
        self.is_behind = true;
    }

    fn note_symbols(&mut self, command: &Command) {
        match command {
            Command::AddSymbols(specs) => {
                for spec in specs.iter() {
                    self.removed.remove(&spec.id);
                    if self.symbols.insert(spec.id) && !self.is_behind {
                        self.add_snapshot(spec.id);
                    }
                }
            }
            Command::RemoveSymbol { symbol } => {
                self.symbols.remove(symbol);
                self.removed.insert(*symbol);
            }
            Command::Reset => self.removed.append(&mut self.symbols),
            _ => return,
        }
        if self.is_first {
            // No reader has seen them.
            self.removed.clear();
        }
    }

    fn add_snapshot(&mut self, symbol: SymbolId) {
        if !self
            .builder
            .snapshot(symbol, usize::MAX, &mut self.snapshot)
        {
            return;
        }
        self.encode_snapshot();
    }

    /// Adds the book of a symbol that was removed: it is empty.
    fn add_empty(&mut self, symbol: SymbolId, channels: Channels) {
        self.snapshot = Snapshot {
            symbol,
            epoch: self.builder.epoch(),
            channels,
            sequence: self.builder.sequence(),
            as_of: self.builder.symbol_sequence(symbol),
            ..Snapshot::default()
        };
        self.encode_snapshot();
    }

    fn encode_snapshot(&mut self) {
        let at = self.bytes.len();
        self.bytes.resize(at + snapshot_bytes(&self.snapshot), 0);
        if encode_snapshot(&self.snapshot, &mut self.bytes[at..]).is_err() {
            self.bytes.truncate(at);
        }
    }

    /// Hands over what there is, if a session has subscribed. Never waits.
    pub(crate) fn hand_over(&mut self, feed: &Feed) {
        if self.is_behind {
            return self.catch_up(feed);
        }
        if !self.bytes.is_empty() && !feed.leave(&mut self.bytes, false) {
            return self.fall_behind();
        }
        self.removed.clear();
    }

    /// Snapshots of all books in place of what was dropped, once the inlet is empty.
    fn catch_up(&mut self, feed: &Feed) {
        if !feed.is_wanted() || !lock(&feed.inlet).bytes.is_empty() {
            return;
        }
        let is_lost = !std::mem::take(&mut self.is_first);
        self.is_behind = false;
        self.leave_snapshots(feed, is_lost);
    }

    /// Begins a new epoch: the messages of the one before are followed by snapshots of all books.
    pub(crate) fn begin_epoch(&mut self, feed: &Feed, epoch: Epoch) {
        self.hand_over(feed);
        self.builder.begin_epoch(epoch);
        // One that is behind has the snapshots to come.
        if !self.is_behind {
            self.leave_snapshots(feed, true);
        }
    }

    /// Leaves snapshots of all books in the inlet.
    fn leave_snapshots(&mut self, feed: &Feed, is_restart: bool) {
        self.bytes.clear();
        for symbol in std::mem::take(&mut self.symbols) {
            self.add_snapshot(symbol);
            self.symbols.insert(symbol);
        }
        for symbol in std::mem::take(&mut self.removed) {
            self.add_empty(symbol, feed.channels);
        }
        // They are let in: the first ones find the inlet empty.
        let _ = self.bytes.is_empty() || feed.leave(&mut self.bytes, is_restart);
    }

    #[cfg(test)]
    pub(super) fn bytes_kept(&self) -> usize {
        self.bytes.capacity()
    }
}
