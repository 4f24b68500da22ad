//! One reader of the feed.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use thalweg_exchange::SymbolId;
use thalweg_exchange::codec::session::{
    Conflated, ServerFrame, encode_server_frame, server_frame_bytes,
};
use tokio::sync::broadcast::error::TryRecvError;

use super::board::Board;
use super::chunk::{Chunk, marks};
use super::interest::Interest;
use super::{ChunkReceiver, Feed};
use crate::figures::raise;

/// Chunks are put together for one write until it is so long.
const WRITE_BYTES: usize = 1 << 18;

/// The market data of one connection.
#[derive(Debug)]
pub(crate) struct Subscription {
    feed: Arc<Feed>,
    interest: Interest,
    /// Where it reads; `None` while nothing is wanted.
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
            interest: Interest::default(),
            ring: None,
            first: VecDeque::new(),
            reached: 0,
            given: BTreeMap::new(),
        }
    }

    /// Returns whether anything is wanted.
    pub(crate) const fn is_active(&self) -> bool {
        self.ring.is_some()
    }

    /// Serves another interest: what is newly wanted begins with a snapshot.
    pub(crate) fn serve(&mut self, interest: Interest) {
        let before = std::mem::replace(&mut self.interest, interest);
        if !self.interest.all && self.interest.symbols.is_empty() {
            self.ring = None;
            self.first.clear();
            self.given.clear();
            return;
        }
        let feed = Arc::clone(&self.feed);
        let mut board = feed.board();
        if self.interest.all {
            if !before.all {
                self.tell_missed(&mut board);
                self.begin_all(&mut board);
            }
            return;
        }
        if before.all {
            self.begin_named(&mut board);
            return;
        }
        if self.ring.is_none() {
            self.ring = Some(board.listen());
            self.reached = board.sequence;
        }
        let wanted = &self.interest.symbols;
        self.given.retain(|symbol, _| wanted.contains(symbol));
        let new: Vec<SymbolId> = wanted.difference(&before.symbols).copied().collect();
        for symbol in new {
            self.snapshot(&mut board, symbol);
        }
    }

    fn snapshot(&mut self, board: &mut Board, symbol: SymbolId) {
        let made = board.snapshot(symbol);
        let as_of = made.as_ref().map_or(0, |made| made.as_of);
        self.first.extend(made.map(|made| made.bytes));
        self.given.insert(symbol, as_of);
    }

    /// Everything, from snapshots and from now on.
    fn begin_all(&mut self, board: &mut Board) {
        self.ring = Some(board.listen());
        self.given.clear();
        self.reached = board.sequence;
        let symbols: Vec<SymbolId> = board.symbols().collect();
        for symbol in symbols {
            self.first
                .extend(board.snapshot(symbol).map(|made| made.bytes));
        }
    }

    /// The symbols that are named, from snapshots and from now on.
    fn begin_named(&mut self, board: &mut Board) {
        self.ring = Some(board.listen());
        self.reached = board.sequence;
        self.first.clear();
        self.given.clear();
        for symbol in self.interest.symbols.clone() {
            self.snapshot(board, symbol);
        }
    }

    fn tell(&mut self, symbol: Option<SymbolId>, missed: u64) {
        let frame = ServerFrame::Conflated(Conflated { symbol, missed });
        let mut bytes = vec![0; server_frame_bytes(&frame)];
        if missed > 0 && encode_server_frame(&frame, &mut bytes).is_ok() {
            self.first.push_back(bytes.into());
            raise(&self.feed.conflations, 1);
        }
    }

    /// Reports the messages between here and the board, for a reader that leaves them out.
    fn tell_missed(&mut self, board: &mut Board) {
        if self.ring.is_some() && self.interest.all {
            let missed = board.sequence.saturating_sub(self.reached);
            self.tell(None, missed);
        }
    }

    /// Handles a ring that went on without the reader: the reader is notified, and begins again
    /// with snapshots.
    fn conflate(&mut self) {
        let feed = Arc::clone(&self.feed);
        let mut board = feed.board();
        // Snapshots that wait are older than those that come now.
        self.first.clear();
        if self.interest.all {
            self.tell_missed(&mut board);
            self.begin_all(&mut board);
            return;
        }
        self.ring = Some(board.listen());
        self.reached = board.sequence;
        for symbol in self.interest.symbols.clone() {
            let Some(made) = board.snapshot(symbol) else {
                continue;
            };
            let given = self.given.insert(symbol, made.as_of).unwrap_or(0);
            if made.as_of > given {
                self.tell(Some(symbol), made.as_of - given);
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
        if self.interest.all {
            out.extend_from_slice(chunk.bytes());
        } else {
            self.give_named(chunk, out);
        }
        self.reached = self.reached.max(chunk.last());
    }

    fn give_named(&mut self, chunk: &Chunk, out: &mut Vec<u8>) {
        let wanted: &BTreeSet<SymbolId> = &self.interest.symbols;
        for mark in marks(chunk.bytes()) {
            if !wanted.contains(&mark.symbol) {
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
