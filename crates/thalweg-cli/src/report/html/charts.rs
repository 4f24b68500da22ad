//! Latency by percentile.

use crate::report::facts::{Latency, Point};
use thalweg_measure::svg;

/// The number of colours for stages; further stages start again with the first colour.
pub(super) const COLOURS: usize = 6;

/// Draws latency by percentile: every further nine of the percentile is as wide as the one before
/// it.
pub(super) fn curves(latency: &Latency) -> String {
    let all = lines(latency);
    if all.iter().all(|(.., points)| points.is_empty()) {
        return String::new();
    }
    let points = all.iter().flat_map(|(.., points)| *points);
    let nines_max = points
        .map(|p| nines(p.quantile))
        .filter(|n| n.is_finite())
        .fold(1.0, f64::max)
        .ceil();
    let marks = (0..=nines_max as u32).map(|nine| (f64::from(nine) / nines_max, percentile(nine)));
    let marks: Vec<_> = marks.collect();
    let curve = |(name, class, points): (String, String, &[Point])| {
        let points = points.iter().map(|p| (nines(p.quantile) / nines_max, p.ns));
        let points = points.filter(|(part, _)| part.is_finite()).collect();
        svg::Curve {
            name,
            class,
            points,
        }
    };
    let all: Vec<svg::Curve> = all.into_iter().map(curve).collect();
    svg::curves(&all, &marks, "percentile of the commands")
}

/// Returns each line's name, class and points; end to end is first, and drawn above its parts.
fn lines(latency: &Latency) -> Vec<(String, String, &[Point])> {
    let whole = &latency.end_to_end.curve[..];
    let mut all = vec![("end to end".to_owned(), "total".to_owned(), whole)];
    for (i, stage) in latency.stages.iter().enumerate() {
        let forms = [("waited", &stage.waited), ("served", &stage.served)];
        for (what, times) in forms {
            // A stage that never waits, because it runs behind another one on its thread, has no
            // line.
            if let Some(times) = times.as_ref().filter(|times| times.summary.max > 0) {
                let name = format!("{}, {what}", stage.name);
                all.push((name, format!("s{} {what}", i % COLOURS), &times.curve));
            }
        }
    }
    all
}

/// Returns the number of nines in a quantile: 0.9 has one, 0.99 two.
fn nines(quantile: f64) -> f64 {
    -(1.0 - quantile).log10()
}

/// Returns the name of the percentile with this number of nines.
fn percentile(nines: u32) -> String {
    match nines {
        0 => "0 %".to_owned(),
        1 => "90 %".to_owned(),
        2 => "99 %".to_owned(),
        n => format!("99.{} %", "9".repeat(n as usize - 2)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nines_are_names() {
        assert_eq!(
            [0, 1, 2, 3, 4].map(percentile),
            ["0 %", "90 %", "99 %", "99.9 %", "99.99 %"]
        );
        assert!((nines(0.999) - 3.0).abs() < 1e-9);
    }
}
