//! The slowest events, and where each of them spent its time.

use std::sync::Arc;

use super::graph::Graph;
use super::timeline::Row;

/// How many are kept.
pub(super) const SLOWEST: usize = 10;
/// In place of a number: no event yet.
const NONE: u64 = u64::MAX;

/// A slow event; times in clock ticks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Slow {
    pub(super) sequence: u64,
    pub(super) total: u64,
    /// Per reader of the ring: waited and served; `None` for a shard that only passed the event by.
    pub(super) parts: Vec<Option<(u64, u64)>>,
}

impl Slow {
    /// Whether there is an event in this place.
    pub(super) fn is_there(&self) -> bool {
        self.sequence != NONE
    }
}

/// The list, kept by one last stage. No allocation after `new`.
#[derive(Debug)]
pub(super) struct Slowest {
    graph: Arc<Graph>,
    list: Vec<Slow>,
    kept: usize,
    /// The place of the least slow, and its total.
    least: (usize, u64),
    changed: bool,
}

impl Slowest {
    pub(super) fn new(graph: Arc<Graph>) -> Self {
        let empty = Slow {
            sequence: NONE,
            parts: vec![None; graph.after.len()],
            ..Slow::default()
        };
        Self {
            graph,
            list: vec![empty; SLOWEST],
            kept: 0,
            least: (0, 0),
            changed: false,
        }
    }

    /// Notes a finished event; gives its time from publishing to the end of its last stage.
    pub(super) fn note(&mut self, sequence: u64, row: Row<'_>) -> u64 {
        let published = row.published();
        let ended = row.ready(&self.graph.last);
        let total = ended.saturating_sub(published);
        let place = if self.kept < SLOWEST {
            self.kept += 1;
            self.kept - 1
        } else if total > self.least.1 {
            self.least.0
        } else {
            return total;
        };
        let slow = &mut self.list[place];
        slow.sequence = sequence;
        slow.total = total;
        for (stage, part) in slow.parts.iter_mut().enumerate() {
            *part = row.begin(stage).map(|begin| {
                let wait = begin.saturating_sub(row.ready(&self.graph.after[stage]));
                (wait, row.end(stage).saturating_sub(begin))
            });
        }
        let totals = self.list[..self.kept]
            .iter()
            .map(|slow| slow.total)
            .enumerate();
        self.least = totals.min_by_key(|&(_, total)| total).unwrap_or_default();
        self.changed = true;
        total
    }

    pub(super) fn is_changed(&self) -> bool {
        self.changed
    }

    /// The list, for others to see; allocates.
    pub(super) fn shown(&self) -> Vec<Slow> {
        self.list.clone()
    }

    /// Brings a list that [`shown`](Self::shown) gave up to date.
    pub(super) fn show(&mut self, shown: &mut [Slow]) {
        for (shown, slow) in shown.iter_mut().zip(&self.list) {
            shown.sequence = slow.sequence;
            shown.total = slow.total;
            // Vec's own, which keeps the memory.
            shown.parts.clone_from(&slow.parts);
        }
        self.changed = false;
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::pipeline::timeline::Timeline;

    #[test]
    fn the_slowest_are_kept_with_their_parts() {
        let graph = Arc::new(Graph {
            after: vec![[].into(), [0].into()],
            last: [1].into(),
        });
        let timeline = Timeline::new(1024, 0, 2, 1, false);
        let mut slowest = Slowest::new(graph);
        for sequence in 0..1000 {
            // Every event waits 1 and is served `slow`, then 2 and 3.
            let slow = if sequence % 100 == 7 {
                10_000 + sequence
            } else {
                5
            };
            timeline.open(sequence, 1_000);
            let row = timeline.row(sequence);
            row.worked(0, Some(1_001), 1_001 + slow);
            row.worked(1, Some(1_003 + slow), 1_006 + slow);
            assert_eq!(slowest.note(sequence, row), slow + 6);
        }
        let mut shown = Slowest::new(Arc::clone(&slowest.graph)).shown();
        assert!(!shown.iter().any(Slow::is_there));
        slowest.show(&mut shown);
        shown.sort_by_key(|slow| slow.sequence);
        let sequences: Vec<u64> = shown.iter().map(|slow| slow.sequence).collect();
        assert_eq!(sequences, [7, 107, 207, 307, 407, 507, 607, 707, 807, 907]);
        assert_eq!(shown[1].total, 10_107 + 6);
        assert_eq!(shown[1].parts, [Some((1, 10_107)), Some((2, 3))]);
    }
}
