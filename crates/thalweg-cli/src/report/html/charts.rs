//! Latency by percentile.

use crate::report::facts::{Latency, Point};
use thalweg_measure::svg;

/// How many colours there are for stages; further ones begin again.
pub(super) const COLOURS: usize = 6;

/// Latency by percentile: every nine of the percentile is as wide as the one before it.
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

/// Each line's name, class and points; end to end first, and on top of its parts.
fn lines(latency: &Latency) -> Vec<(String, String, &[Point])> {
    let whole = &latency.end_to_end.curve[..];
    let mut all = vec![("end to end".to_owned(), "total".to_owned(), whole)];
    for (i, stage) in latency.stages.iter().enumerate() {
        let forms = [("waited", &stage.waited), ("served", &stage.served)];
        for (what, times) in forms {
            // A stage that never waits, behind another on its thread, has no line.
            if let Some(times) = times.as_ref().filter(|times| times.summary.max > 0) {
                let name = format!("{}, {what}", stage.name);
                all.push((name, format!("s{} {what}", i % COLOURS), &times.curve));
            }
        }
    }
    all
}

/// How many nines a quantile has: 0.9 has one, 0.99 two.
fn nines(quantile: f64) -> f64 {
    -(1.0 - quantile).log10()
}

/// The percentile with so many nines, as a name.
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
