//! How long things took, as the program itself measured it.

use super::{Export, Json, Kept, Source};
use thalweg_measure::histogram::Histogram;

/// A name for each.
struct Latencies(Vec<(String, Histogram)>);

impl Source for Latencies {
    fn kind(&self) -> &'static str {
        "latencies"
    }

    fn look(&mut self) -> Kept {
        None
    }

    fn write(&mut self, json: &mut Json) {
        json.objects("latencies", &self.0, |json, (name, times)| {
            json.put_text("name", name);
            write_times(json, times, times.mean());
        });
    }
}

/// Exports how long things took, in ns, under names of one's own: the whole first, then its parts.
/// For a program that has measured it and is about to end; pipelines export their own. Nothing is
/// written unless [`VARIABLE`](super::VARIABLE) names a directory. Each call writes another file.
///
/// ```
/// use thalweg_measure::histogram::Histogram;
///
/// let mut times = Histogram::new();
/// times.record(1_200);
/// thalweg::export::latencies(&[("end to end".to_owned(), times)]);
/// ```
pub fn latencies(named: &[(String, Histogram)]) {
    if let Some(directory) = super::directory(None) {
        // The end writes it.
        drop(Export::new(directory, Latencies(named.to_vec())));
    }
}

pub(crate) fn write_times(json: &mut Json, times: &Histogram, mean_ns: f64) {
    let summary = times.summary();
    json.put("count", summary.count);
    json.put_fraction("mean_ns", mean_ns);
    json.put("p50_ns", summary.p50);
    json.put("p90_ns", summary.p90);
    json.put("p99_ns", summary.p99);
    json.put("p999_ns", summary.p999);
    json.put("p9999_ns", summary.p9999);
    json.put("max_ns", summary.max);
}
