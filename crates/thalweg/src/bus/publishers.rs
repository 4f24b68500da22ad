//! The publishers of an inbox, present and past.

use std::sync::Arc as Shared;

use super::PublisherId;
use super::express::Lanes;
use super::ledger::{Flow, Ledger};
use super::shelf::Shelf;

/// The publishers that send something here.
#[derive(Default)]
pub(super) struct Publishers {
    pub(super) rows: Vec<Row>,
    /// The outcomes of the messages of publishers that have no row any more.
    pub(super) gone: Flow,
    /// By what shelves know publishers: how many there are, and those that are free.
    pub(super) links: u32,
    pub(super) free: Vec<u32>,
}

/// A publisher.
pub(super) struct Row {
    pub(super) publisher: PublisherId,
    /// By what shelves know it.
    pub(super) link: u32,
    pub(super) name: Shared<str>,
    pub(super) ledger: Shared<Ledger>,
    pub(super) left: Option<Left>,
}

/// How a publisher went.
#[derive(Clone, Copy)]
pub(super) struct Left {
    /// The positions in the rings behind its last messages.
    pub(super) end: Lanes,
    /// No message came after one that was lost.
    pub(super) has_unreported: bool,
}

/// The number of publishers that are remembered after they left with losses that were never
/// reported.
const UNREPORTED_MAX: usize = 64;

impl Publishers {
    /// Keeps only the sum of the publishers that have left and whose messages consumers at `popped`
    /// have taken, unless a caller may ask where a loss came from.
    pub(super) fn fold<M>(&mut self, popped: Lanes, shelves: &[Option<Shelf<M>>]) {
        let Self {
            rows, gone, free, ..
        } = self;
        // `None`: still at work here. Else whether a loss was not reported.
        let has_unreported = |row: &Row| {
            let is_taken = |left: &Left| left.end.iter().zip(&popped).all(|(end, at)| end <= at);
            let left = row.left.filter(is_taken)?;
            let mut shelves = shelves.iter().flatten().map(|shelf| shelf.left(row.link));
            shelves.try_fold(left.has_unreported, |unreported, (waits, all_reported)| {
                (!waits).then_some(unreported || !all_reported)
            })
        };
        let unreported = rows.iter().filter(|row| has_unreported(row) == Some(true));
        let mut spare = unreported.count().saturating_sub(UNREPORTED_MAX);
        rows.retain(|row| {
            let is_kept = match has_unreported(row) {
                None => true,
                Some(true) if spare == 0 => true,
                Some(true) => {
                    spare -= 1;
                    false
                }
                Some(false) => false,
            };
            if !is_kept {
                gone.add(&row.ledger.flow());
                free.push(row.link);
            }
            is_kept
        });
    }
}
