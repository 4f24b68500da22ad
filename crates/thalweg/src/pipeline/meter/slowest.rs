//! The slowest events of a pipeline, with where each spent its time.

use std::sync::Arc;

#[cfg(feature = "tracing")]
use thalweg_measure::clock::Clock;

use super::Profile;
use crate::pipeline::graph::Graph;
use crate::pipeline::timeline::Row;

/// How many are kept.
pub(in crate::pipeline) const SLOWEST: usize = 10;
/// In place of a number: no event yet.
const NONE: u64 = u64::MAX;

/// A slow event; times in clock ticks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::pipeline) struct Slow {
    pub(in crate::pipeline) sequence: u64,
    pub(in crate::pipeline) total: u64,
    /// How much of that was before it was published.
    pub(in crate::pipeline) publish_delay: u64,
    /// The parts that add up to it, per reader of the ring: waited and served; `None` for a reader
    /// that no stage waited for, because another one beside it took longer.
    pub(in crate::pipeline) parts: Vec<Option<(u64, u64)>>,
}

impl Slow {
    /// Returns whether there is an event in this place.
    pub(in crate::pipeline) fn is_there(&self) -> bool {
        self.sequence != NONE
    }
}

/// The list, kept by one last stage. No allocation after `new`.
#[derive(Debug)]
pub(super) struct Slowest {
    graph: Arc<Graph>,
    /// Per reader, the time between the publication of the present event and its release by that
    /// reader.
    done: Vec<u64>,
    list: Vec<Slow>,
    kept: usize,
    /// The place of the least slow, and its total.
    least: (usize, u64),
    changed: bool,
    profile: Arc<Profile>,
    /// The parts of the present event.
    parts: Vec<Option<(u64, u64)>>,
    /// The names of the stages, and the longest time that was logged.
    #[cfg(feature = "tracing")]
    pub(super) names: Vec<String>,
    #[cfg(feature = "tracing")]
    logged: u64,
}

impl Slowest {
    pub(super) fn new(graph: Arc<Graph>, profile: Arc<Profile>) -> Self {
        let empty = Slow {
            sequence: NONE,
            parts: vec![None; graph.after.len()],
            ..Slow::default()
        };
        Self {
            done: vec![0; graph.after.len()],
            parts: vec![None; graph.after.len()],
            profile,
            graph,
            list: vec![empty; SLOWEST],
            kept: 0,
            least: (0, 0),
            changed: false,
            #[cfg(feature = "tracing")]
            names: Vec::new(),
            #[cfg(feature = "tracing")]
            logged: 0,
        }
    }

    /// Logs the event that was noted last, if it is the slowest so far. Of n events in any order,
    /// some ln n are.
    #[cfg(feature = "tracing")]
    pub(super) fn log(&mut self, sequence: u64, total: u64, clock: Clock) {
        if total <= self.logged {
            return;
        }
        self.logged = total;
        let spent = self.parts.iter().enumerate().flat_map(|(stage, part)| {
            let (waited, served) = part.unwrap_or_default();
            [(stage, "waiting", waited), (stage, "served", served)]
        });
        let longest = spent.max_by_key(|&(.., ticks)| ticks);
        let (stage, spent, ticks) = longest.unwrap_or((0, "served", 0));
        tracing::event!(
            target: "thalweg::slow",
            tracing::Level::INFO,
            sequence,
            end_to_end_ns = clock.ns(total),
            publish_delay_ns = clock.ns(self.parts_unsent(total)),
            stage = self.names.get(stage).map_or("", String::as_str),
            spent,
            spent_ns = clock.ns(ticks),
            "the slowest event so far"
        );
    }

    /// Returns the part of a time that is in no stage.
    #[cfg(feature = "tracing")]
    fn parts_unsent(&self, total: u64) -> u64 {
        let parts = self.parts.iter().flatten();
        total.saturating_sub(parts.map(|(waited, served)| waited + served).sum())
    }

    /// Returns the one of these readers that the event left last.
    fn latest(&self, readers: &[usize]) -> Option<usize> {
        readers.iter().copied().max_by_key(|&at| self.done[at])
    }

    /// Notes a finished event, which counts `weight` times in the profile; gives its time from when
    /// it was due to the end of its last stage.
    pub(super) fn note(&mut self, sequence: u64, row: Row<'_>, weight: u64) -> u64 {
        for stage in 0..self.done.len() {
            let ready = self.latest(&self.graph.after[stage]);
            let (waited, served) = row.spent(stage);
            self.done[stage] = ready.map_or(0, |at| self.done[at]) + waited + served.unwrap_or(0);
        }
        let last = self.latest(&self.graph.last);
        let publish_delay = row.publish_delay();
        let total = publish_delay + last.map_or(0, |last| self.done[last]);
        self.parts.fill(None);
        let mut next = last;
        while let Some(stage) = next {
            let (waited, served) = row.spent(stage);
            self.parts[stage] = Some((waited, served.unwrap_or(0)));
            next = self.latest(&self.graph.after[stage]);
        }
        self.profile.note(total, publish_delay, &self.parts, weight);
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
        slow.publish_delay = publish_delay;
        slow.parts.copy_from_slice(&self.parts);
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

    /// Returns the list, for others to see; allocates.
    pub(super) fn shown(&self) -> Vec<Slow> {
        self.list.clone()
    }

    /// Brings a list that [`shown`](Self::shown) gave up to date.
    pub(super) fn show(&mut self, shown: &mut [Slow]) {
        for (shown, slow) in shown.iter_mut().zip(&self.list) {
            shown.sequence = slow.sequence;
            shown.total = slow.total;
            shown.publish_delay = slow.publish_delay;
            // Vec's own, which keeps the memory.
            shown.parts.clone_from(&slow.parts);
        }
        self.changed = false;
    }
}

#[cfg(all(test, not(loom)))]
mod slowest_tests {
    use super::*;
    use crate::pipeline::timeline::Timeline;

    #[test]
    fn the_slowest_are_kept_with_their_parts() {
        let graph = Arc::new(Graph {
            after: vec![[].into(), [].into(), [0, 1].into()],
            last: [2].into(),
        });
        let timeline = Timeline::new(1024, 0, 3, 1, false);
        let profile = Arc::new(Profile::new(3));
        let mut slowest = Slowest::new(graph, Arc::clone(&profile));
        for sequence in 0..1000 {
            // Every event waits 1 and is served `slow`, then 2 and 3; beside that it passes by.
            let slow = if sequence % 100 == 7 {
                10_000 + sequence
            } else {
                5
            };
            timeline.open(sequence, 1_000);
            let row = timeline.row(sequence);
            row.spend(0, 1, Some(slow));
            let beside = if sequence == 207 { 90_000 } else { 4 };
            row.spend(1, beside, None);
            row.spend(2, 2, Some(3));
            assert_eq!(slowest.note(sequence, row, 1), (slow + 1).max(beside) + 5);
        }
        let mut shown = Slowest::new(Arc::clone(&slowest.graph), profile).shown();
        assert!(!shown.iter().any(Slow::is_there));
        slowest.show(&mut shown);
        shown.sort_by_key(|slow| slow.sequence);
        let sequences: Vec<u64> = shown.iter().map(|slow| slow.sequence).collect();
        assert_eq!(sequences, [7, 107, 207, 307, 407, 507, 607, 707, 807, 907]);
        assert_eq!(shown[1].total, 10_107 + 6);
        assert_eq!(shown[1].parts, [Some((1, 10_107)), None, Some((2, 3))]);
        // It waited for another shard to pass by.
        assert_eq!(shown[2].parts, [None, Some((90_000, 0)), Some((2, 3))]);
    }
}
