//! Latency by percentile, if the program exports it.

use super::empty;
use thalweg_measure::svg::{Decades, Picture, Window, both, escape, table};
use thalweg_measure::table::Nanoseconds;

/// A latency curve that the observed program exports.
#[derive(Debug, Clone, PartialEq)]
pub struct Latency {
    /// Quantiles from 0 to 1, rising, each with its latency in ns.
    pub points: Vec<(f64, u64)>,
    /// Where it came from.
    pub source: String,
}

/// The curve: every nine of the percentile is as wide as the one before it.
pub(super) fn curve(latency: &Latency) -> String {
    let source = format!("<p class=\"note\">From {}</p>\n", escape(&latency.source));
    let points = latency.points.iter().copied();
    let points: Vec<(f64, u64)> = points.filter(|(q, _)| (0.0..=1.0).contains(q)).collect();
    let (Some(first), Some(last)) = (points.first(), points.last()) else {
        return empty("The curve that the program exports has no points", &[]) + &source;
    };
    let named = [0.5, 0.9, 0.99, 0.999, 0.9999];
    let named = named.iter().filter_map(|wanted| {
        let (_, ns) = points.iter().find(|(q, _)| q >= wanted)?;
        Some((format!("p{}", trimmed(100.0 * wanted)), *ns))
    });
    let mut rows = vec![("lowest".to_owned(), first.1)];
    rows.extend(named);
    rows.push(("highest".to_owned(), last.1));
    let rows = rows.into_iter();
    let rows: Vec<[String; 2]> = rows
        .map(|(name, ns)| [name, Nanoseconds(ns as f64).to_string()])
        .collect();
    format!(
        "{source}{}{}",
        both(|window| picture(&points, window)),
        table(&["percentile", "latency"], &rows)
    )
}

fn picture(points: &[(f64, u64)], window: Window) -> String {
    let area = window.area(14.0, 280.0);
    // The highest quantile that is not all of them; that lies at the right edge.
    let finite = points.iter().map(|(q, _)| nines(*q));
    let most = finite.filter(|n| n.is_finite()).fold(1.0, f64::max);
    // 0.9999 has four nines, and a rounding error.
    let most = (most - 1e-6).ceil();
    let scale = Decades::around(points.iter().map(|(_, ns)| *ns));
    let height = area.bottom() as u32 + 44;
    let label = "latency by percentile, both axes logarithmic";
    let mut picture = Picture::new(window.width(), height, label);
    for (part, name) in scale.ticks() {
        let y = area.y(part);
        picture.line((area.left, y), (area.x(1.0), y), "grid");
        picture.text(area.left - 8.0, y + 4.0, "end", &name);
    }
    for nine in 0..=most as i32 {
        let x = area.x(f64::from(nine) / most);
        picture.line((x, area.top), (x, area.bottom()), "grid");
        // In a narrow picture there is room for every other name.
        if window == Window::Wide || most <= 3.0 || nine % 2 == 0 {
            let class = ["middle", "end"][usize::from(f64::from(nine) >= most)];
            let name = format!("{} %", trimmed(100.0 - 100.0 * 0.1_f64.powi(nine)));
            picture.text(x, area.bottom() + 18.0, class, &name);
        }
    }
    let axis = "percentile";
    picture.text(area.x(0.5), area.bottom() + 38.0, "middle", axis);
    let place = |(q, ns): &(f64, u64)| (area.x(nines(*q) / most), area.y(scale.part(*ns)));
    let path: Vec<_> = points.iter().map(place).collect();
    picture.path(&path, "curve total", "latency");
    picture.finish()
}

/// How many nines a quantile has: 0.9 has one, 0.99 two.
fn nines(quantile: f64) -> f64 {
    -(1.0 - quantile).log10()
}

/// A percentage without zeros at its end.
fn trimmed(percent: f64) -> String {
    let text = format!("{percent:.8}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_have_names_and_the_highest_stays_in_the_picture() {
        let latency = Latency {
            points: vec![(0.0, 100), (0.5, 900), (0.999, 50_000), (1.0, 2_000_000)],
            source: "/dev/shm/<x>".to_owned(),
        };
        let page = curve(&latency);
        for part in [
            "From /dev/shm/&lt;x&gt;",
            "<td>p50</td><td>900 ns</td>",
            "<td>p99.9</td><td>50.0 µs</td>",
            "<td>p99.99</td><td>2.00 ms</td>",
            ">99.9 %<",
            ">0 %<",
        ] {
            assert!(page.contains(part), "{part} is not in {page}");
        }
        assert!(!page.contains("NaN") && !page.contains("inf"), "{page}");
    }

    #[test]
    fn a_curve_without_points_says_so() {
        let latency = Latency {
            points: vec![(f64::NAN, 1)],
            source: "a file".to_owned(),
        };
        assert!(curve(&latency).contains("has no points"));
    }
}
