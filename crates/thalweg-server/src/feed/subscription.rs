//! One reader of the feed.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use thalweg_exchange::SymbolId;
use thalweg_exchange::codec::session::{
    Conflated, ServerFrame, encode_server_frame, server_frame_bytes,
};
use tokio::sync::broadcast::error::TryRecvError;

use super::books::Books;
use super::chunk::{Chunk, marks};
use super::requested::Requested;
use super::{ChunkReceiver, Feed};
use crate::counters::raise;

/// Chunks are put together for one write until it is so long.
const WRITE_BYTES: usize = 1 << 18;

/// The market data of one connection.
#[derive(Debug)]
pub(crate) struct Subscription {
    feed: Arc<Feed>,
    requested: Requested,
    /// Where it reads; `None` while nothing is asked for.
    ring: Option<ChunkReceiver>,
    /// Frames that come before anything of the ring.
    first: VecDeque<Arc<[u8]>>,
    /// The last message of the feed that was given, or left out.
    reached: u64,
    /// The last message of each symbol that was named. Those up to it are not given again.
    given: BTreeMap<SymbolId, u64>,
}

impl Subscription {
    pub(crate) fn new(feed: Arc<Feed>) -> Self {
        Self {
            feed,
            requested: Requested::default(),
            ring: None,
            first: VecDeque::new(),
            reached: 0,
            given: BTreeMap::new(),
        }
    }

    /// Returns whether anything is asked for.
    pub(crate) const fn is_active(&self) -> bool {
        self.ring.is_some()
    }

    /// Serves what is asked for now: each symbol that is new begins with a snapshot.
    pub(crate) fn serve(&mut self, requested: Requested) {
        let before = std::mem::replace(&mut self.requested, requested);
        if !self.requested.all && self.requested.symbols.is_empty() {
            self.ring = None;
            self.first.clear();
            self.given.clear();
            return;
        }
        let feed = Arc::clone(&self.feed);
        let mut books = feed.books();
        if self.requested.all {
            if !before.all {
                self.report_missed(&mut books);
                self.begin_all(&mut books);
            }
            return;
        }
        if before.all {
            self.begin_named(&mut books);
            return;
        }
        if self.ring.is_none() {
            self.ring = Some(books.listen());
            self.reached = books.sequence;
        }
        let symbols = &self.requested.symbols;
        self.given.retain(|symbol, _| symbols.contains(symbol));
        let new: Vec<SymbolId> = symbols.difference(&before.symbols).copied().collect();
        for symbol in new {
            self.snapshot(&mut books, symbol);
        }
    }

    fn snapshot(&mut self, books: &mut Books, symbol: SymbolId) {
        let made = books.snapshot(symbol);
        let as_of = made.as_ref().map_or(0, |made| made.as_of);
        self.first.extend(made.map(|made| made.bytes));
        self.given.insert(symbol, as_of);
    }

    /// Everything, from snapshots and from now on.
    fn begin_all(&mut self, books: &mut Books) {
        self.ring = Some(books.listen());
        self.given.clear();
        self.reached = books.sequence;
        let symbols: Vec<SymbolId> = books.symbols().collect();
        for symbol in symbols {
            self.first
                .extend(books.snapshot(symbol).map(|made| made.bytes));
        }
    }

    /// The symbols that are named, from snapshots and from now on.
    fn begin_named(&mut self, books: &mut Books) {
        self.ring = Some(books.listen());
        self.reached = books.sequence;
        self.first.clear();
        self.given.clear();
        for symbol in self.requested.symbols.clone() {
            self.snapshot(books, symbol);
        }
    }

    /// Adds a frame with the number of messages that were missed, if it is not 0.
    fn push_conflated(&mut self, symbol: Option<SymbolId>, missed: u64) {
        let frame = ServerFrame::Conflated(Conflated { symbol, missed });
        let mut bytes = vec![0; server_frame_bytes(&frame)];
        if missed > 0 && encode_server_frame(&frame, &mut bytes).is_ok() {
            self.first.push_back(bytes.into());
            raise(&self.feed.conflations, 1);
        }
    }

    /// Reports the messages between here and the books, for a reader that leaves them out.
    fn report_missed(&mut self, books: &mut Books) {
        if self.ring.is_some() && self.requested.all {
            let missed = books.sequence.saturating_sub(self.reached);
            self.push_conflated(None, missed);
        }
    }

    /// Handles a ring that went on without the reader: the reader is notified, and begins again
    /// with snapshots.
    fn conflate(&mut self) {
        let feed = Arc::clone(&self.feed);
        let mut books = feed.books();
        // Snapshots that wait are older than those that come now.
        self.first.clear();
        if self.requested.all {
            self.report_missed(&mut books);
            self.begin_all(&mut books);
            return;
        }
        self.ring = Some(books.listen());
        self.reached = books.sequence;
        for symbol in self.requested.symbols.clone() {
            let Some(made) = books.snapshot(symbol) else {
                continue;
            };
            let given = self.given.insert(symbol, made.as_of).unwrap_or(0);
            if made.as_of > given {
                self.push_conflated(Some(symbol), made.as_of - given);
                self.first.push_back(made.bytes);
            }
        }
    }

    /// Adds what there is to write to `out`: as much as one write has, about.
    pub(crate) fn take(&mut self, out: &mut Vec<u8>) {
        let length_max = out.len() + WRITE_BYTES;
        while out.len() < length_max {
            if let Some(bytes) = self.first.pop_front() {
                out.extend_from_slice(&bytes);
                continue;
            }
            let Some(ring) = &mut self.ring else { return };
            match ring.try_recv() {
                Ok(chunk) => self.give(&chunk, out),
                Err(TryRecvError::Lagged(_)) => self.conflate(),
                // The feed is part of the server: where it is gone, the server ends.
                Err(TryRecvError::Empty | TryRecvError::Closed) => return,
            }
        }
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
        let symbols: &BTreeSet<SymbolId> = &self.requested.symbols;
        for mark in marks(chunk.bytes()) {
            if !symbols.contains(&mark.symbol) {
                continue;
            }
            let given = self.given.entry(mark.symbol).or_default();
            if mark.of_symbol > *given || mark.is_snapshot && mark.of_symbol == *given {
                *given = mark.of_symbol;
                out.extend_from_slice(mark.frame);
            }
        }
    }
}
