//! The recorded output of an exchange, and the counts of a run.

use std::ops::AddAssign;
use std::sync::{Arc, Mutex};

use super::model::PublishedOutcome;
use crate::durable::published::Published;
use crate::snapshot::state_hash;

/// How often each thing happened.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub(super) crashes: u64,
    pub(super) crashes_in_open: u64,
    pub(super) stopped: u64,
    pub(super) closed: u64,
    pub(super) lost: u64,
    pub(super) kept_unanswered: u64,
    pub(super) repeated: u64,
    pub(super) sent_again: u64,
    pub(super) refused_full: u64,
    pub(super) snapshots: u64,
    pub(super) fallbacks: u64,
    /// How often an exchange was opened in the midst of a mass operation.
    pub(super) left_over: u64,
}

impl Counts {
    pub(super) fn by_name(&self) -> [(&'static str, u64); 12] {
        [
            ("crashes", self.crashes),
            ("crashes in open", self.crashes_in_open),
            ("stopped", self.stopped),
            ("closed", self.closed),
            ("lost", self.lost),
            ("kept though unanswered", self.kept_unanswered),
            ("repeated", self.repeated),
            ("sent again and new", self.sent_again),
            ("refused by a full disk", self.refused_full),
            ("snapshots", self.snapshots),
            ("fallbacks", self.fallbacks),
            ("opened with work left over", self.left_over),
        ]
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.crashes += other.crashes;
        self.crashes_in_open += other.crashes_in_open;
        self.stopped += other.stopped;
        self.closed += other.closed;
        self.lost += other.lost;
        self.kept_unanswered += other.kept_unanswered;
        self.repeated += other.repeated;
        self.sent_again += other.sent_again;
        self.refused_full += other.refused_full;
        self.snapshots += other.snapshots;
        self.fallbacks += other.fallbacks;
        self.left_over += other.left_over;
    }
}

/// The record of what the publish closure was called with.
#[derive(Clone, Debug, Default)]
pub(super) struct Recorder(Arc<Mutex<(Option<u64>, Vec<PublishedOutcome>)>>);

impl Recorder {
    pub(super) fn closure(&self) -> impl FnMut(Published<'_>) + Send + 'static {
        let recorded = Arc::clone(&self.0);
        move |published| {
            let mut recorded = recorded.lock().expect("no panic");
            match published {
                Published::Started { state, .. } => recorded.0 = Some(state_hash(state)),
                Published::Outcome(executed) => recorded.1.push(PublishedOutcome {
                    number: executed.outcome.sequence,
                    origin: executed.origin,
                    result: executed.outcome.result,
                    reports: (executed.reports.iter())
                        .map(|report| (report.owner, report.number.0, report.frame))
                        .collect(),
                }),
                _ => {}
            }
        }
    }

    pub(super) fn hash(&self) -> Option<u64> {
        self.0.lock().expect("no panic").0
    }

    pub(super) fn take(&self) -> Vec<PublishedOutcome> {
        std::mem::take(&mut self.0.lock().expect("no panic").1)
    }
}
