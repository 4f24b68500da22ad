//! Draws the run over time: the rate, the latency and the backlog, one below the other.

use crate::report::facts::{Latency, Throughput};
use crate::report::number::{grouped, rate};
use thalweg_measure::svg::{Area, Decades, Picture, Window, both, legend};
use thalweg_measure::table::Nanoseconds;

const CAPTION: &str = "Commands finished a second; end to end of those, to about 20 %; and \
    commands that were due and not done. Where all three jump at the same moment, the machine or a \
    stage stood still.";

/// The height of each of the three charts, and of the space above it.
const HEIGHT: f64 = 120.0;
const ABOVE: f64 = 30.0;

/// Returns all three charts, with a common time axis.
pub(super) fn charts(latency: &Latency) -> String {
    let flow = &latency.throughput;
    if flow.finished.is_empty() || flow.interval_ns == 0 {
        return String::new();
    }
    let keys = [
        ("rate and backlog", "area"),
        ("p50", "line p50"),
        ("p99", "line p99"),
    ];
    let keys = keys.map(|(name, class)| (name, class.to_owned()));
    format!(
        "<p class=\"note\">{CAPTION}</p>\n{}{}",
        legend(keys.into_iter()),
        both(|window| picture(latency, window))
    )
}

fn picture(latency: &Latency, window: Window) -> String {
    let flow = &latency.throughput;
    let area = |place: usize| {
        let top = ABOVE + place as f64 * (HEIGHT + ABOVE);
        window.area(top, HEIGHT)
    };
    let height = area(2).bottom() as u32 + 44;
    let label = "rate, latency and backlog over the run";
    let mut picture = Picture::new(window.width(), height, label);
    let last = flow.finished.len() - 1;
    // The last interval ended with the run.
    let rest_ns = latency
        .elapsed_ns
        .saturating_sub(flow.interval_ns * last as u64)
        .clamp(flow.interval_ns / 4, flow.interval_ns);
    let per_s = |(at, n): (usize, &u64)| {
        let ns = if at == last {
            rest_ns
        } else {
            flow.interval_ns
        };
        *n as f64 * 1e9 / ns.max(1) as f64
    };
    let rates: Vec<f64> = flow.finished.iter().enumerate().map(per_s).collect();
    picture.text(
        area(0).left,
        area(0).top - 10.0,
        "name",
        "commands a second",
    );
    bars(&mut picture, area(0), &rates, rate);
    picture.text(area(1).left, area(1).top - 10.0, "name", "end to end");
    lines(&mut picture, area(1), flow);
    picture.text(area(2).left, area(2).top - 10.0, "name", "backlog");
    let backlog: Vec<f64> = flow.backlog.iter().map(|n| *n as f64).collect();
    bars(&mut picture, area(2), &backlog, |value| {
        grouped(value as i128)
    });
    let names = if window == Window::Wide { 4 } else { 2 };
    time_axis(&mut picture, area(2), flow, names);
    picture.finish()
}

/// Draws a bar for each interval, from zero.
fn bars(picture: &mut Picture, area: Area, values: &[f64], name: impl Fn(f64) -> String) {
    let most = values.iter().copied().fold(1.0, f64::max);
    let (top, step) = round_up(most);
    for i in 0..=(top / step).round() as u32 {
        let value = step * f64::from(i);
        let y = area.y(value / top);
        picture.line((area.left, y), (area.x(1.0), y), "grid");
        let name = name(value).replace(".00 ", " ").replace(".0 ", " ");
        picture.text(area.left - 8.0, y + 4.0, "end", &name);
    }
    let width = area.width / values.len() as f64;
    for (i, value) in values.iter().enumerate() {
        let y = area.y(value / top);
        let x = area.left + width * i as f64;
        let gap = if width > 4.0 { 1.0 } else { 0.0 };
        let size = (width - gap, area.bottom() - y);
        picture.bar((x, y), size, "area", &name(*value));
    }
    picture.line(
        (area.left, area.bottom()),
        (area.x(1.0), area.bottom()),
        "axis",
    );
}

/// Draws the p50 and p99 of each interval, with a gap where there were too few commands.
fn lines(picture: &mut Picture, area: Area, flow: &Throughput) {
    let times = || flow.p50_ns.iter().chain(&flow.p99_ns).flatten().copied();
    let scale = Decades::around(times());
    for (part, name) in scale.ticks() {
        let y = area.y(part);
        picture.line((area.left, y), (area.x(1.0), y), "grid");
        picture.text(area.left - 8.0, y + 4.0, "end", &name);
    }
    let n = flow.finished.len() as f64;
    for (values, class) in [(&flow.p50_ns, "p50"), (&flow.p99_ns, "p99")] {
        let points = values.iter().enumerate().filter_map(|(i, ns)| {
            let ns = (*ns)?;
            Some((area.x((i as f64 + 0.5) / n), area.y(scale.part(ns))))
        });
        let points: Vec<_> = points.collect();
        if !points.is_empty() {
            picture.path(&points, &format!("curve {class}"), class);
        }
    }
}

fn time_axis(picture: &mut Picture, area: Area, flow: &Throughput, names: u32) {
    let whole = flow.interval_ns as f64 * flow.finished.len() as f64;
    for i in 0..=names {
        let part = f64::from(i) / f64::from(names);
        let class = ["middle", "end"][usize::from(i == names)];
        let name = Nanoseconds((whole * part).round()).to_string();
        picture.text(area.x(part), area.bottom() + 18.0, class, &name);
    }
    let axis = "time since the first command";
    picture.text(area.x(0.5), area.bottom() + 38.0, "middle", axis);
}

/// Returns a round value of at least `most`, and a round step that divides it into a few parts.
fn round_up(most: f64) -> (f64, f64) {
    let decade = 10_f64.powf(most.log10().floor());
    let step = [0.5, 1.0, 2.0, 2.5, 5.0]
        .map(|s| s * decade)
        .into_iter()
        .find(|step| most / step <= 4.0)
        .unwrap_or(5.0 * decade);
    ((most / step).ceil() * step, step)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::facts::sample::facts;

    #[test]
    fn axes_end_at_round_values() {
        for (most, top) in [
            (1.0, 1.0),
            (740_000.0, 800_000.0),
            (1.1e6, 1.5e6),
            (9.9e6, 10e6),
        ] {
            let (found, step) = round_up(most);
            assert!((found / top - 1.0).abs() < 1e-9, "{most}: {found}");
            assert!(found / step < 6.0);
        }
    }

    #[test]
    fn rate_latency_and_backlog_are_there_and_intervals_without_commands_are_no_points() {
        let page = charts(&facts().latency);
        for part in [
            "commands a second",
            ">backlog<",
            "curve p50",
            "curve p99",
            ">8.00 ms<",
        ] {
            assert!(page.contains(part), "{part} is not in {page}");
        }
        assert!(!page.contains("NaN") && !page.contains("inf"));
    }
}
