//! The books as the feed's readers know them, and the ring.

use std::collections::BTreeMap;
use std::sync::Arc;

use thalweg_exchange::codec::{decode_message, decode_snapshot, encode_snapshot, snapshot_bytes};
use thalweg_exchange::market::{BookReplica, Channels, Epoch, FeedSequence, Snapshot};
use thalweg_exchange::{Action, SymbolId};
use tokio::sync::broadcast;

use super::ChunkReceiver;
use super::chunk::{Chunk, marks};

#[derive(Debug)]
struct Entry {
    replica: BookReplica,
    /// The snapshot as it was made last, if nothing changed since.
    made: Option<Made>,
}

/// A snapshot that readers share, the number of its last message of the symbol, and its epoch.
#[derive(Clone, Debug)]
pub(super) struct Made {
    pub(super) bytes: Arc<[u8]>,
    pub(super) as_of: u64,
    pub(super) epoch: Epoch,
}

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Books {
    channels: Channels,
    levels: usize,
    entries: BTreeMap<SymbolId, Entry>,
    /// The number of the last message of the feed.
    pub(super) sequence: u64,
    /// The newest epoch.
    epoch: Epoch,
    ring: broadcast::Sender<Chunk>,
    ring_chunks: usize,
    scratch: Snapshot,
}

impl Books {
    pub(super) fn new(channels: Channels, levels: usize, ring_chunks: usize) -> Self {
        Self {
            channels,
            levels: if levels == 0 { usize::MAX } else { levels },
            entries: BTreeMap::new(),
            sequence: 0,
            epoch: Epoch(0),
            ring: broadcast::Sender::new(ring_chunks),
            ring_chunks,
            scratch: Snapshot::default(),
        }
    }

    /// Takes the next messages in, and sends them to the readers.
    pub(super) fn follow(&mut self, bytes: &[u8], is_restart: bool) {
        for mark in marks(bytes) {
            self.sequence = self.sequence.max(mark.number);
            self.epoch = self.epoch.max(mark.epoch);
            let symbol = mark.symbol;
            let entry = self.entries.entry(symbol).or_insert_with(|| Entry {
                replica: BookReplica::new(symbol),
                made: None,
            });
            entry.made = None;
            let followed = if mark.is_snapshot {
                let read = decode_snapshot(mark.frame, &mut self.scratch).map_err(drop);
                read.and_then(|_| entry.replica.restart(&self.scratch).map_err(drop))
            } else {
                let read = decode_message(mark.frame).map_err(drop);
                read.and_then(|(message, _)| entry.replica.apply(&message).map_err(drop))
            };
            if followed.is_err() {
                tracing::error!(
                    symbol = symbol.0,
                    number = mark.number,
                    "market data is broken"
                );
            }
        }
        // There may be no reader.
        let _ = self.ring.send(Chunk::new(bytes, self.sequence, is_restart));
    }

    /// Returns a reader of the ring, from now on.
    pub(super) fn listen(&self) -> ChunkReceiver {
        self.ring.subscribe()
    }

    pub(super) fn readers(&self) -> usize {
        self.ring.receiver_count()
    }

    /// Returns whether an eighth of the ring waits for a reader.
    pub(super) fn is_reader_behind(&self) -> bool {
        self.ring.len() >= self.ring_chunks / 8
    }

    /// Returns the first symbol whose number is not below this one.
    pub(super) fn next_symbol(&self, from: i64) -> Option<SymbolId> {
        let from = SymbolId(i32::try_from(from).ok()?);
        self.entries.range(from..).next().map(|(symbol, _)| *symbol)
    }

    /// Returns the book of a symbol, if there is one in the newest epoch. Where there is one in an
    /// older epoch, the symbol was removed, or its snapshot follows in the ring: a reader who knows
    /// the book gets it if it is empty.
    pub(super) fn snapshot(&mut self, symbol: SymbolId, is_known: bool) -> Option<Made> {
        let (sequence, channels, levels) = (self.sequence, self.channels, self.levels);
        let entry = self.entries.get_mut(&symbol)?;
        let replica = &entry.replica;
        let is_empty = [Action::Ask, Action::Bid]
            .into_iter()
            .all(|side| replica.levels(side).next().is_none());
        if replica.epoch()? != self.epoch && !(is_known && is_empty) {
            return None;
        }
        if let Some(made) = entry.made.as_ref().filter(|made| made.epoch == self.epoch) {
            return Some(made.clone());
        }
        let into = &mut self.scratch;
        let replica = &entry.replica;
        into.symbol = symbol;
        into.epoch = self.epoch;
        into.channels = channels;
        into.sequence = FeedSequence(sequence);
        into.as_of = replica.sequence();
        let sides = [
            (Action::Ask, &mut into.asks, &mut into.asks_cut),
            (Action::Bid, &mut into.bids, &mut into.bids_cut),
        ];
        for (side, into, is_cut) in sides {
            let all = replica.levels(side);
            *is_cut = all.len() > levels;
            into.clear();
            into.extend(all.take(levels));
        }
        let mut bytes = vec![0; snapshot_bytes(into)];
        encode_snapshot(into, &mut bytes).ok()?;
        let made = Made {
            bytes: bytes.into(),
            as_of: replica.sequence().0,
            epoch: into.epoch,
        };
        entry.made = Some(made.clone());
        Some(made)
    }
}
