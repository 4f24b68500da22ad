//! Finds a doctor's report in the output of a run.

use serde::{Deserialize, Serialize};

/// The part of a verdict that is scored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Verdict {
    /// The kind of bottleneck.
    pub(crate) id: String,
    /// The confidence, from 0 to 1.
    pub(crate) confidence: f64,
}

#[derive(Deserialize)]
struct Report {
    verdicts: Vec<Verdict>,
}

/// Returns the verdicts of the report at the end of `output`; the program's own output precedes it.
pub(crate) fn verdicts(output: &str) -> Option<Vec<Verdict>> {
    let starts = output.match_indices('{').map(|(at, _)| at);
    let report = starts
        .into_iter()
        .find_map(|at| serde_json::from_str::<Report>(&output[at..]).ok())?;
    let sane = |verdict: &Verdict| (0.0..=1.0).contains(&verdict.confidence);
    report.verdicts.iter().all(sane).then_some(report.verdicts)
}
