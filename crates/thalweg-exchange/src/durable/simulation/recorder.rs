//! The recorded output of an exchange, and the counts of a run.

use std::sync::{Arc, Mutex};

use super::model::PublishedOutcome;
use crate::durable::published::Published;
use crate::snapshot::state_hash;

super::counts! {
    crashes: "crashes",
    crashes_in_open: "crashes in open",
    stopped: "stopped",
    closed: "closed",
    lost: "lost",
    kept_unanswered: "kept though unanswered",
    repeated: "repeated",
    sent_again: "sent again and new",
    refused_full: "refused by a full disk",
    snapshots: "snapshots",
    fallbacks: "fallbacks",
    left_over: "opened in the midst of a mass operation",
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
                Published::Outcomes(outcomes) => {
                    recorded.1.extend(outcomes.map(|executed| {
                        PublishedOutcome {
                            number: executed.outcome.sequence,
                            origin: executed.origin,
                            result: executed.outcome.result,
                            reports: (executed.reports.iter())
                                .map(|report| (report.owner, report.number.0, report.frame))
                                .collect(),
                        }
                    }));
                }
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
