//! The pictures of the page.

use crate::report::facts::{Distribution, Latency, Point};
use crate::report::number::{rate, span};
use crate::report::svg::{Area, Decades, Picture};

const WIDTH: u32 = 900;
/// How many colours there are for stages; further ones begin again.
const COLOURS: usize = 6;

/// One line of the latency picture.
struct Curve<'a> {
    name: String,
    class: String,
    points: &'a [Point],
}

/// Latency by percentile: every nine of the percentile is as wide as the one before it.
pub(super) fn curves(latency: &Latency) -> String {
    let all = lines(latency);
    let points = || all.iter().flat_map(|curve| curve.points);
    if points().next().is_none() {
        return String::new();
    }
    let legend_rows = all.len().div_ceil(LEGEND_COLUMNS);
    let area = Area {
        left: 70.0,
        top: 14.0 + 20.0 * legend_rows as f64,
        width: f64::from(WIDTH) - 90.0,
        height: 320.0,
    };
    let nines_max = points()
        .map(|p| nines(p.quantile))
        .filter(|n| n.is_finite())
        .fold(1.0, f64::max)
        .ceil();
    let scale = Decades::around(points().map(|p| p.ns));
    let height = area.bottom() as u32 + 44;
    let mut picture = Picture::new(
        WIDTH,
        height,
        "latency by percentile, both axes logarithmic",
    );
    legend(&mut picture, &all);
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
        picture.text(x, area.bottom() + 18.0, class, &percentile(nine));
    }
    picture.text(area.x(0.5), area.bottom() + 38.0, "middle", "percentile");
    for curve in &all {
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

const LEGEND_COLUMNS: usize = 4;

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

fn legend(picture: &mut Picture, all: &[Curve<'_>]) {
    let width = f64::from(WIDTH - 70) / LEGEND_COLUMNS as f64;
    for (i, curve) in all.iter().enumerate() {
        let x = 70.0 + width * (i % LEGEND_COLUMNS) as f64;
        let y = 12.0 + 20.0 * (i / LEGEND_COLUMNS) as f64;
        picture.line(
            (x, y - 4.0),
            (x + 26.0, y - 4.0),
            &format!("curve {}", curve.class),
        );
        picture.text(x + 32.0, y, "name", &curve.name);
    }
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

/// Mean waiting and service time of each stage, side by side.
pub(super) fn stages(latency: &Latency) -> String {
    let mean = |times: &Option<Distribution>| times.as_ref().map_or(0.0, |t| t.mean_ns);
    let most = latency
        .stages
        .iter()
        .map(|stage| mean(&stage.waited) + mean(&stage.served))
        .fold(0.0, f64::max);
    if most <= 0.0 {
        return String::new();
    }
    let area = Area {
        left: 110.0,
        top: 30.0,
        width: f64::from(WIDTH) - 250.0,
        height: 0.0,
    };
    let height = 30 + 34 * latency.stages.len() as u32;
    let mut picture = Picture::new(WIDTH, height, "mean waiting and service time of each stage");
    for (x, class, name) in [
        (110.0, "waited", "waited (mean)"),
        (250.0, "worked", "served (mean)"),
    ] {
        picture.bar((x, 4.0), (14.0, 14.0), class, name);
        picture.text(x + 20.0, 16.0, "name", name);
    }
    for (i, stage) in latency.stages.iter().enumerate() {
        let y = 32.0 + 34.0 * i as f64;
        picture.text(area.left - 10.0, y + 16.0, "end name", &stage.name);
        let mut x = area.left;
        for (class, times) in [("waited", &stage.waited), ("worked", &stage.served)] {
            let width = match mean(times) {
                0.0 => 0.0,
                ns => (area.width * ns / most).max(1.5),
            };
            if times.is_some() {
                let tip = format!("{}: {}", stage.name, span(mean(times).round()));
                picture.bar((x, y), (width, 22.0), class, &tip);
            }
            x += width;
        }
        let measured = [&stage.waited, &stage.served].into_iter().flatten();
        let means: Vec<String> = measured.map(|times| span(times.mean_ns.round())).collect();
        let label = means.join(" + ");
        picture.text(x + 8.0, y + 16.0, "name", &label);
    }
    picture.finish()
}

/// Commands finished in each interval of the run.
pub(super) fn throughput(latency: &Latency) -> String {
    let flow = &latency.throughput;
    if flow.finished.is_empty() || flow.interval_ns == 0 {
        return String::new();
    }
    let per_s = |count: u64| count as f64 * 1e9 / flow.interval_ns as f64;
    let most = flow.finished.iter().map(|&n| per_s(n)).fold(1.0, f64::max);
    let (top, step) = round_up(most);
    let area = Area {
        left: 70.0,
        top: 12.0,
        width: f64::from(WIDTH) - 90.0,
        height: 180.0,
    };
    let mut picture = Picture::new(WIDTH, 240, "commands finished a second over time");
    for i in 0..=(top / step).round() as u32 {
        let value = step * f64::from(i);
        let y = area.y(value / top);
        picture.line((area.left, y), (area.x(1.0), y), "grid");
        picture.text(
            area.left - 8.0,
            y + 4.0,
            "end",
            &rate(value).replace(".0 ", " "),
        );
    }
    let width = area.width / flow.finished.len() as f64;
    for (i, &n) in flow.finished.iter().enumerate() {
        let y = area.y(per_s(n) / top);
        let x = area.left + width * i as f64;
        let at = span((flow.interval_ns * i as u64) as f64);
        let gap = if width > 4.0 { 1.0 } else { 0.0 };
        let tip = format!("{} at {at}", rate(per_s(n)));
        picture.bar((x, y), (width - gap, area.bottom() - y), "area", &tip);
    }
    picture.line(
        (area.left, area.bottom()),
        (area.x(1.0), area.bottom()),
        "axis",
    );
    let whole = flow.interval_ns as f64 * flow.finished.len() as f64;
    for i in 0..=4 {
        let part = f64::from(i) / 4.0;
        let class = ["middle", "end"][usize::from(i == 4)];
        picture.text(
            area.x(part),
            area.bottom() + 18.0,
            class,
            &span((whole * part).round()),
        );
    }
    picture.text(
        area.x(0.5),
        area.bottom() + 38.0,
        "middle",
        "time since the first command",
    );
    picture.finish()
}

/// A round value of at least `most`, and a round step that divides it in a few.
fn round_up(most: f64) -> (f64, f64) {
    let decade = 10_f64.powf(most.log10().floor());
    let step = [0.2, 0.25, 0.5, 1.0, 2.0]
        .map(|s| s * decade)
        .into_iter()
        .find(|step| most / step <= 5.0)
        .unwrap_or(2.0 * decade);
    ((most / step).ceil() * step, step)
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

    #[test]
    fn axes_end_at_round_values() {
        for (most, top) in [
            (1.0, 1.0),
            (740_000.0, 800_000.0),
            (1.1e6, 1.25e6),
            (9.9e6, 10e6),
        ] {
            let (found, step) = round_up(most);
            assert!((found / top - 1.0).abs() < 1e-9, "{most}: {found}");
            assert!(found / step < 6.0);
        }
    }
}
