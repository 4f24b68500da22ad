//! The pictures of the page. Each is drawn twice, for wide and for narrow windows.

use crate::report::facts::{Latency, Point};
use thalweg_measure::svg::{Decades, Picture, Window, both, legend};

/// How many colours there are for stages; further ones begin again.
pub(super) const COLOURS: usize = 6;

/// One line of the latency picture.
struct Curve<'a> {
    name: String,
    class: String,
    points: &'a [Point],
}

/// Latency by percentile: every nine of the percentile is as wide as the one before it.
pub(super) fn curves(latency: &Latency) -> String {
    let all = lines(latency);
    if all.iter().all(|curve| curve.points.is_empty()) {
        return String::new();
    }
    let names = all.iter();
    let names = names.map(|curve| (curve.name.as_str(), format!("line {}", curve.class)));
    legend(names) + &both(|window| picture(&all, window))
}

fn picture(all: &[Curve<'_>], window: Window) -> String {
    let points = || all.iter().flat_map(|curve| curve.points);
    let area = window.area(14.0, 320.0);
    let nines_max = points()
        .map(|p| nines(p.quantile))
        .filter(|n| n.is_finite())
        .fold(1.0, f64::max)
        .ceil();
    let scale = Decades::around(points().map(|p| p.ns));
    let height = area.bottom() as u32 + 44;
    let label = "latency by percentile, both axes logarithmic";
    let mut picture = Picture::new(window.width(), height, label);
    for (part, name) in scale.ticks() {
        let y = area.y(part);
        picture.line((area.left, y), (area.x(1.0), y), "grid");
        picture.text(area.left - 8.0, y + 4.0, "end", &name);
    }
    for nine in 0..=nines_max as u32 {
        let x = area.x(f64::from(nine) / nines_max);
        picture.line((x, area.top), (x, area.bottom()), "grid");
        let class = if f64::from(nine) < nines_max {
            "middle"
        } else {
            "end"
        };
        // In a narrow picture there is room for every other name.
        if window == Window::Wide || nines_max <= 4.0 || nine % 2 == 0 {
            picture.text(x, area.bottom() + 18.0, class, &percentile(nine));
        }
    }
    let axis = "percentile of the commands";
    picture.text(area.x(0.5), area.bottom() + 38.0, "middle", axis);
    // End to end last, on top of its parts.
    for curve in all.iter().rev() {
        let path: Vec<_> = curve
            .points
            .iter()
            .filter(|p| nines(p.quantile).is_finite())
            .map(|p| {
                (
                    area.x(nines(p.quantile) / nines_max),
                    area.y(scale.part(p.ns)),
                )
            })
            .collect();
        picture.path(&path, &format!("curve {}", curve.class), &curve.name);
    }
    picture.finish()
}

fn lines(latency: &Latency) -> Vec<Curve<'_>> {
    let mut all = vec![Curve {
        name: "end to end".to_owned(),
        class: "total".to_owned(),
        points: &latency.end_to_end.curve,
    }];
    for (i, stage) in latency.stages.iter().enumerate() {
        let forms = [("waited", &stage.waited), ("served", &stage.served)];
        for (what, times) in forms {
            // A stage that never waits, behind another on its thread, has no line.
            if let Some(times) = times.as_ref().filter(|times| times.max_ns > 0) {
                all.push(Curve {
                    name: format!("{}, {what}", stage.name),
                    class: format!("s{} {what}", i % COLOURS),
                    points: &times.curve,
                });
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
