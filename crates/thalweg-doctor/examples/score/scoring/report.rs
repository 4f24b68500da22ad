//! Finds a doctor's report in what it wrote.

use serde::{Deserialize, Serialize};

/// A verdict, as far as it is scored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Told {
    /// The kind of bottleneck.
    pub(crate) id: String,
    /// 0 to 1.
    pub(crate) confidence: f64,
}

#[derive(Deserialize)]
struct Report {
    verdicts: Vec<Told>,
}

/// The verdicts of the report that ends `output`; whatever the program itself wrote is before it.
pub(crate) fn verdicts(output: &str) -> Option<Vec<Told>> {
    let starts = output.match_indices('{').map(|(at, _)| at);
    let report = starts
        .into_iter()
        .find_map(|at| serde_json::from_str::<Report>(&output[at..]).ok())?;
    let sane = |told: &Told| (0.0..=1.0).contains(&told.confidence);
    report.verdicts.iter().all(sane).then_some(report.verdicts)
}
