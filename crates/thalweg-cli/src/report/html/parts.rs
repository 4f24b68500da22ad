//! Draws the parts that commands spent their time on: a bar for each percentile, cut into its
//! parts.

use super::charts::COLOURS;
use crate::report::facts::{Breakdown, Latency};
use thalweg_measure::svg::{escape, legend};
use thalweg_measure::table::Nanoseconds;

/// The explanation of the names of the parts.
const CAPTION: &str = "Each bar is the time of the commands around one percentile, end to end, \
    cut into its parts. Waiting to be sent: from when a command was due until the pipeline had a \
    place for it. Waiting for a stage: it was ready, and the stage was busy with others, or its \
    thread was not running. In a stage: the stage worked on it; of a batch, its share of the \
    time.";

/// Returns the bars. Each is as wide as the page, whatever its time, which is written beside it.
pub(super) fn bars(latency: &Latency) -> String {
    if latency.breakdowns.is_empty() {
        return String::new();
    }
    let mut names: Vec<&str> = Vec::new();
    for part in latency.breakdowns.iter().flat_map(|found| &found.parts) {
        if !names.contains(&part.what.as_str()) {
            names.push(&part.what);
        }
    }
    let keys = names.iter().map(|name| (*name, class(name, latency)));
    let bars: String = latency
        .breakdowns
        .iter()
        .map(|found| bar(found, latency))
        .collect();
    format!("<p class=\"note\">{CAPTION}</p>\n{}{bars}", legend(keys))
}

fn bar(found: &Breakdown, latency: &Latency) -> String {
    let whole = found.end_to_end_ns.max(1e-9);
    let mut percentiles = latency.end_to_end.known();
    let time = match percentiles.find(|(name, _)| *name == found.of) {
        Some((_, ns)) => Nanoseconds(ns as f64),
        None => Nanoseconds((latency.end_to_end.summary.mean * 10.0).round() / 10.0),
    };
    let part = |part: &crate::report::facts::Part| {
        let share = 100.0 * part.ns / whole;
        let tip = format!(
            "{}: {}, {share:.1} %",
            part.what,
            Nanoseconds(part.ns.round())
        );
        // The name is written beside the colour where there is room for it.
        let text = if share >= 12.0 {
            format!("{share:.0} %")
        } else {
            String::new()
        };
        format!(
            "<i class=\"{}\" style=\"width:{share:.2}%\" title=\"{}\">{text}</i>",
            class(&part.what, latency),
            escape(&tip)
        )
    };
    let parts: String = found.parts.iter().map(part).collect();
    format!(
        "<div class=\"row\"><b>{}</b><span>{time}</span><div class=\"bar\">{parts}</div></div>\n",
        escape(&found.of)
    )
}

/// Returns the colour class of a part: that of its stage, and a pale one where a command waits for
/// the stage.
fn class(what: &str, latency: &Latency) -> String {
    let place = |stage: &str| {
        let at = latency.stages.iter().position(|s| s.name == stage);
        at.unwrap_or(0) % COLOURS
    };
    match (what.strip_prefix("waiting for "), what.strip_prefix("in ")) {
        (Some(stage), _) => format!("fill s{} waited", place(stage)),
        (_, Some(stage)) => format!("fill s{} served", place(stage)),
        _ => "fill unsent".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::facts::sample::facts;

    #[test]
    fn a_bar_is_cut_into_its_parts() {
        let page = bars(&facts().latency);
        assert!(page.contains("<b>p99</b><span>3.00 µs</span>"), "{page}");
        let part = "<i class=\"fill unsent\" style=\"width:96.00%\" \
                    title=\"waiting to be sent: 1.44 µs, 96.0 %\">96 %</i>";
        assert!(page.contains(part), "{page}");
        assert!(
            page.contains("class=\"key fill s1 served\"><i></i>in match"),
            "{page}"
        );
        assert!(page.contains("Waiting for a stage: it was ready"), "{page}");
    }
}
