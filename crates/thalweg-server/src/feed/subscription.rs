//! One reader of the feed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use thalweg_exchange::SymbolId;
use thalweg_exchange::codec::session::{
    Conflated, ServerFrame, Symbols, encode_server_frame, server_frame_bytes,
};
use thalweg_exchange::market::Epoch;
use tokio::sync::broadcast::error::TryRecvError;

use super::books::Books;
use super::chunk::{Chunk, marks};
use super::{ChunkReceiver, Feed};
use crate::counters::raise;
use crate::lock;

/// Bytes that one [`take`](Subscription::take) gives or goes through, about: some 20 µs.
pub(super) const TAKE_BYTES: usize = 1 << 16;
/// Bytes that looking for a snapshot counts as.
const LOOK_UP_BYTES: usize = 256;

/// The market data that a session has asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Requested {
    pub(crate) all: bool,
    /// Shared by the session and its subscription, until the session changes it.
    pub(crate) symbols: Arc<BTreeSet<SymbolId>>,
}

impl Requested {
    /// Adds symbols.
    pub(crate) fn add(&mut self, symbols: &Symbols<'_>) {
        self.all |= symbols.is_all();
        Arc::make_mut(&mut self.symbols).extend(symbols.iter());
    }

    /// Takes symbols away; all of them, with the subscription to all. A symbol that is named has no
    /// effect on that.
    pub(crate) fn remove(&mut self, symbols: &Symbols<'_>) {
        if symbols.is_all() {
            *self = Self::default();
            return;
        }
        let named = Arc::make_mut(&mut self.symbols);
        for symbol in symbols.iter() {
            named.remove(&symbol);
        }
    }
}

/// Symbols whose snapshots are still to be given.
#[derive(Debug, Default)]
enum Pending {
    #[default]
    None,
    Named(BTreeSet<SymbolId>),
    /// All of the books, from this number on.
    From(i64),
}

impl Pending {
    /// Takes the next symbol out.
    fn take(&mut self, books: &Books) -> Option<SymbolId> {
        let next = match self {
            Self::None => None,
            Self::Named(symbols) => symbols.pop_first(),
            Self::From(first) => books.next_symbol(*first),
        };
        match (&mut *self, next) {
            (Self::From(first), Some(symbol)) => *first = i64::from(symbol.0) + 1,
            (_, Some(_)) => {}
            (_, None) => *self = Self::None,
        }
        next
    }

    const fn is_none(&self) -> bool {
        matches!(self, Self::None)
    }
}

/// The market data of one connection.
///
/// Snapshots are made one after the other, when they are about to be written: a reader that takes
/// nothing keeps none, and one that subscribes to thousands of books holds nobody up. The ring is
/// read once all were given, from where it was before the first. Of symbols that were named, the
/// messages that their snapshots contain are left out.
#[derive(Debug)]
pub(crate) struct Subscription {
    feed: Arc<Feed>,
    requested: Requested,
    /// Where it reads; `None` while nothing is asked for.
    ring: Option<ChunkReceiver>,
    /// Frames that come before anything else.
    first: Vec<u8>,
    pending: Pending,
    /// The last message of the feed that was given, or left out.
    reached: u64,
    /// The last message of each symbol that was named, and its epoch. Those up to it are not given
    /// again, nor is a snapshot of that epoch as of it.
    given: BTreeMap<SymbolId, (u64, Epoch)>,
}

impl Subscription {
    pub(crate) fn new(feed: Arc<Feed>) -> Self {
        Self {
            feed,
            requested: Requested::default(),
            ring: None,
            first: Vec::new(),
            pending: Pending::None,
            reached: 0,
            given: BTreeMap::new(),
        }
    }

    /// Serves what is asked for now: each symbol that is new begins with a snapshot.
    pub(crate) fn serve(&mut self, requested: Requested) {
        let before = std::mem::replace(&mut self.requested, requested);
        let symbols = Arc::clone(&self.requested.symbols);
        if self.requested.all {
            if !before.all {
                self.begin_all();
            }
            return;
        }
        if before.all || symbols.is_empty() {
            self.ring = None;
            self.given.clear();
        }
        if symbols.is_empty() {
            self.first.clear();
            self.pending = Pending::None;
        } else if self.ring.is_none() {
            self.begin(Pending::Named(BTreeSet::clone(&symbols)));
        } else {
            self.given.retain(|symbol, _| symbols.contains(symbol));
            let mut pending = match std::mem::take(&mut self.pending) {
                Pending::Named(pending) => pending,
                _ => BTreeSet::new(),
            };
            pending.retain(|symbol| symbols.contains(symbol));
            pending.extend(symbols.difference(&before.symbols));
            self.pending = Pending::Named(pending);
        }
    }

    /// Reads the ring from now on, after these snapshots.
    fn begin(&mut self, pending: Pending) {
        let books = lock(&self.feed.books);
        self.ring = Some(books.listen());
        self.reached = books.sequence;
        drop(books);
        self.pending = pending;
    }

    /// Everything, from snapshots and from now on. A reader that has read before is sent the number
    /// of messages that it misses.
    fn begin_all(&mut self) {
        let (reached, has_read) = (self.reached, self.ring.is_some());
        self.begin(Pending::From(i32::MIN.into()));
        self.given.clear();
        if has_read {
            self.push_conflated(None, self.reached.saturating_sub(reached));
        }
    }

    /// Adds a frame with the number of messages that were missed, if it is not 0.
    fn push_conflated(&mut self, symbol: Option<SymbolId>, missed: u64) {
        let frame = ServerFrame::Conflated(Conflated { symbol, missed });
        let mut bytes = vec![0; server_frame_bytes(&frame)];
        if missed > 0 && encode_server_frame(&frame, &mut bytes).is_ok() {
            self.first.append(&mut bytes);
            raise(&self.feed.conflations, 1);
        }
    }

    /// Handles a ring that went on without the reader: the reader is notified, and begins again
    /// with snapshots.
    pub(super) fn conflate(&mut self) {
        if self.requested.all {
            self.begin_all();
        } else {
            let symbols = BTreeSet::clone(&self.requested.symbols);
            self.begin(Pending::Named(symbols));
        }
    }

    /// Adds what there is to write to `out`, as much as is given together. Returns whether there
    /// may be more, and the bytes that were gone through.
    pub(crate) fn take(&mut self, out: &mut Vec<u8>) -> (bool, usize) {
        let mut seen = 0;
        while seen < TAKE_BYTES {
            if !self.first.is_empty() {
                seen += self.first.len();
                out.append(&mut self.first);
            } else if !self.pending.is_none() {
                seen += self.give_snapshot(out);
            } else if let Some(ring) = &mut self.ring {
                match ring.try_recv() {
                    Ok(chunk) => {
                        seen += chunk.bytes().len();
                        self.give(&chunk, out);
                    }
                    Err(TryRecvError::Lagged(_)) => self.conflate(),
                    // The feed is part of the server: where it is gone, the server ends.
                    Err(TryRecvError::Empty | TryRecvError::Closed) => return (false, seen),
                }
            } else {
                return (false, seen);
            }
        }
        (true, seen)
    }

    /// Gives the next snapshot. Returns its bytes, or as many as looking for it counts.
    fn give_snapshot(&mut self, out: &mut Vec<u8>) -> usize {
        let feed = Arc::clone(&self.feed);
        let mut books = lock(&feed.books);
        let Some(symbol) = self.pending.take(&books) else {
            return 0;
        };
        let is_known = self.given.get(&symbol).is_some_and(|given| given.0 > 0);
        let made = books.snapshot(symbol, is_known);
        drop(books);
        let as_of = made.as_ref().map(|made| (made.as_of, made.epoch));
        let given = match self.requested.all {
            true => None,
            false => self.given.insert(symbol, as_of.unwrap_or_default()),
        };
        let Some(made) = made.filter(|_| given != as_of) else {
            return LOOK_UP_BYTES;
        };
        if let Some((given, _)) = given {
            self.push_conflated(Some(symbol), made.as_of.saturating_sub(given));
            out.append(&mut self.first);
        }
        out.extend_from_slice(&made.bytes);
        LOOK_UP_BYTES + made.bytes.len()
    }

    fn give(&mut self, chunk: &Chunk, out: &mut Vec<u8>) {
        if chunk.is_restart() {
            return self.conflate();
        }
        if self.requested.all {
            out.extend_from_slice(chunk.bytes());
        } else {
            self.give_named(chunk, out);
        }
        self.reached = self.reached.max(chunk.last());
    }

    fn give_named(&mut self, chunk: &Chunk, out: &mut Vec<u8>) {
        let symbols = &self.requested.symbols;
        for mark in marks(chunk.bytes()) {
            if !symbols.contains(&mark.symbol) {
                continue;
            }
            let given = self.given.entry(mark.symbol).or_default();
            if mark.of_symbol > given.0 || mark.is_snapshot && mark.of_symbol == given.0 {
                *given = (mark.of_symbol, mark.epoch);
                out.extend_from_slice(mark.frame);
            }
        }
    }
}
