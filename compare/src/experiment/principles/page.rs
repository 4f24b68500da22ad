//! The page: for each principle what it says, what was found, and pictures.

use thalweg_measure::statistics::Interval;
use thalweg_measure::svg::{
    self, Area, Decades, Picture, Window, both, escape, legend, section, table,
};

use super::verdict::{Claim, Verdict};
use crate::report::times;

/// One principle.
#[derive(Debug, Default)]
pub(super) struct Section {
    pub(super) title: &'static str,
    /// What the principle says.
    pub(super) says: &'static str,
    pub(super) claims: Vec<Claim>,
    pub(super) figures: Vec<Figure>,
}

#[derive(Debug)]
pub(super) struct Figure {
    pub(super) title: String,
    pub(super) chart: Chart,
}

#[derive(Debug)]
pub(super) enum Chart {
    /// Curves over a logarithmic axis.
    Lines {
        axis: &'static str,
        /// Places on that axis that have names.
        ticks: Vec<(f64, String)>,
        scale: Scale,
        curves: Vec<(String, Vec<(f64, f64)>)>,
    },
    /// A bar a row, from 0.
    Bars {
        show: fn(f64) -> String,
        rows: Vec<(String, f64)>,
    },
    /// Ratios with their intervals, around 1.
    Ratios(Vec<(String, Interval)>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scale {
    /// Logarithmic.
    Nanoseconds,
    /// Linear, 0 to 100.
    Percent,
}

/// Colours for curves; further ones begin again, dashed.
const COLOURS: usize = 6;
const ROW: f64 = 40.0;

/// The page of what ran.
pub(super) fn page(machine: &str, sections: &[Section]) -> String {
    let ran = || sections.iter().filter(|section| section.ran());
    let tiles: String = ran().map(tile).collect();
    let head = format!(
        "<header>\n<h1>Five principles of lock-free buses, on this machine</h1>\n<p>{}</p>\n\
         <div class=\"tiles\">\n{tiles}</div>\n</header>\n",
        escape(machine)
    );
    let body: String = ran().map(Section::html).collect();
    svg::page("thalweg: five principles", &(head + &body))
}

/// How many of its claims hold at all.
fn tile(section: &Section) -> String {
    let holds = |claim: &&Claim| matches!(claim.verdict(), Verdict::Holds | Verdict::HoldsOn(_));
    let told = section
        .claims
        .iter()
        .filter(|claim| claim.verdict() != Verdict::NotRun);
    let (count, holding) = (told.clone().count(), told.filter(holds).count());
    format!(
        "<div class=\"tile\"><b>{holding} of {count}</b><span>{}</span></div>\n",
        escape(section.title)
    )
}

impl Section {
    fn ran(&self) -> bool {
        !self.figures.is_empty()
            || self
                .claims
                .iter()
                .any(|claim| claim.verdict() != Verdict::NotRun)
    }

    fn html(&self) -> String {
        let says = format!("<p class=\"why\">{}</p>\n", escape(self.says));
        let figures = self.figures.iter().map(Figure::html);
        let content = says + &claims(&self.claims) + &figures.collect::<String>();
        section(self.title, &content)
    }
}

/// A ratio and its interval as text.
pub(super) fn interval(interval: Option<Interval>) -> String {
    interval.map_or_else(
        || "-".to_owned(),
        |found| format!("{} {}", times(found.value), found.bounds(times)),
    )
}

fn claims(claims: &[Claim]) -> String {
    let row = |claim: &Claim| {
        let [one, two] = claim.on.map(interval);
        let limit = format!("≥ {}", times(claim.limit));
        [
            claim.what.clone(),
            claim.verdict().to_string(),
            limit,
            one,
            two,
        ]
    };
    let rows: Vec<_> = claims.iter().map(row).collect();
    let headings = ["claim", "verdict", "limit", "1 core", "2 cores"];
    format!(
        "<div class=\"claims\">\n{}</div>\n",
        table(&headings, &rows)
    )
}

fn class(at: usize) -> String {
    let dashed = if at < COLOURS { "" } else { " served" };
    format!("s{}{dashed}", at % COLOURS)
}

impl Figure {
    fn html(&self) -> String {
        let keys = match &self.chart {
            Chart::Lines { curves, .. } => {
                let names = curves.iter().enumerate();
                legend(names.map(|(at, (name, _))| (&**name, format!("line {}", class(at)))))
            }
            _ => String::new(),
        };
        let draw = |window| match &self.chart {
            Chart::Lines { .. } => self.lines(window),
            Chart::Bars { show, rows } => self.bars(window, *show, rows),
            Chart::Ratios(rows) => self.ratios(window, rows),
        };
        format!(
            "<br>\n<p class=\"note\">{}</p>\n{keys}{}",
            escape(&self.title),
            both(draw)
        )
    }

    fn lines(&self, window: Window) -> String {
        let Chart::Lines {
            axis,
            ticks,
            scale,
            curves,
        } = &self.chart
        else {
            return String::new();
        };
        let area = window.area(14.0, 260.0);
        let mut picture = Picture::new(window.width(), area.bottom() as u32 + 44, &self.title);
        let points = || curves.iter().flat_map(|(_, points)| points);
        let decades = Decades::around(points().map(|&(_, y)| y.max(1.0) as u64));
        let heights: Vec<(f64, String)> = match scale {
            Scale::Nanoseconds => decades.ticks().collect(),
            Scale::Percent => (0..=4)
                .map(|n| (f64::from(n) / 4.0, format!("{} %", n * 25)))
                .collect(),
        };
        for (part, name) in heights {
            let y = area.y(part);
            picture.line((area.left, y), (area.x(1.0), y), "grid");
            picture.text(area.left - 8.0, y + 4.0, "end", &name);
        }
        let across = Span::around(ticks.iter().map(|(x, _)| *x));
        for (at, (x, name)) in ticks.iter().enumerate() {
            let place = area.x(across.part(*x));
            picture.line((place, area.top), (place, area.bottom()), "grid");
            // A narrow picture has room for every other name.
            if window == Window::Wide || ticks.len() < 5 || at % 2 == 0 {
                picture.text(place, area.bottom() + 18.0, edge(at, ticks.len()), name);
            }
        }
        picture.text(area.x(0.5), area.bottom() + 38.0, "middle", axis);
        let height = |y: f64| match scale {
            Scale::Nanoseconds => decades.part(y.max(1.0) as u64),
            Scale::Percent => y / 100.0,
        };
        for (at, (name, points)) in curves.iter().enumerate() {
            let place = |&(x, y): &(f64, f64)| (area.x(across.part(x)), area.y(height(y)));
            let places: Vec<_> = points.iter().map(place).collect();
            picture.path(&places, &format!("curve {}", class(at)), name);
        }
        picture.finish()
    }

    fn bars(&self, window: Window, show: fn(f64) -> String, rows: &[(String, f64)]) -> String {
        let (area, mut picture) = self.rows(window, rows.len());
        let most = rows
            .iter()
            .map(|(_, value)| *value)
            .fold(f64::MIN_POSITIVE, f64::max);
        for (at, (name, value)) in rows.iter().enumerate() {
            let top = area.top + ROW * at as f64;
            let text = format!("{name}: {}", show(*value));
            picture.text(area.left, top, "name", &text);
            let width = area.width * value / most;
            picture.bar((area.left, top + 6.0), (width, 14.0), "area s0", &text);
        }
        picture.finish()
    }

    fn ratios(&self, window: Window, rows: &[(String, Interval)]) -> String {
        let (area, mut picture) = self.rows(window, rows.len());
        let bounds = rows
            .iter()
            .flat_map(|(_, found)| [found.low, found.value, found.high]);
        let sound = bounds.filter(|bound| bound.is_finite() && *bound > 0.0);
        let across = Span::around(sound.chain([0.5, 2.0]));
        let one = area.x(across.part(1.0));
        picture.line((one, area.top - 14.0), (one, area.bottom()), "axis");
        for (at, (name, found)) in rows.iter().enumerate() {
            let top = area.top + ROW * at as f64;
            let text = format!("{name}: {}", interval(Some(*found)));
            picture.text(area.left, top, "name", &text);
            let place = |value: f64| (area.x(across.part(value)), top + 12.0);
            let colour = if found.value < 1.0 { "s1" } else { "s2" };
            let ends = [found.low, found.high]
                .map(|end| place(if end.is_finite() { end } else { found.value }));
            picture.path(&ends, &format!("curve {colour}"), &text);
            let (x, y) = place(found.value);
            picture.bar(
                (x - 4.0, y - 4.0),
                (8.0, 8.0),
                &format!("area {colour}"),
                &text,
            );
        }
        picture.finish()
    }

    /// A picture with room for so many rows, from edge to edge.
    fn rows(&self, window: Window, count: usize) -> (Area, Picture) {
        let area = Area {
            left: 8.0,
            top: 18.0,
            width: f64::from(window.width()) - 16.0,
            height: ROW * count as f64 - 8.0,
        };
        let picture = Picture::new(window.width(), area.bottom() as u32 + 4, &self.title);
        (area, picture)
    }
}

/// The anchor of a name on an axis, which the last must not leave.
fn edge(at: usize, count: usize) -> &'static str {
    if at + 1 == count { "end" } else { "middle" }
}

/// A logarithmic axis from the least to the largest.
#[derive(Debug, Clone, Copy)]
struct Span {
    low: f64,
    high: f64,
}

impl Span {
    fn around(values: impl Iterator<Item = f64>) -> Self {
        let (low, high) = values.fold((f64::INFINITY, 0.0_f64), |(low, high), value| {
            (low.min(value), high.max(value))
        });
        if high > low {
            Self { low, high }
        } else {
            Self {
                low: 1.0,
                high: 10.0,
            }
        }
    }

    fn part(self, value: f64) -> f64 {
        (value / self.low).ln() / (self.high / self.low).ln()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(chart: Chart) -> Figure {
        let title = "a <figure>".to_owned();
        Figure { title, chart }
    }

    fn sections() -> Vec<Section> {
        let found = Interval {
            low: 0.8,
            value: 1.2,
            high: 3.0,
        };
        let few = Interval {
            low: f64::NEG_INFINITY,
            value: 0.7,
            high: f64::INFINITY,
        };
        let claims = vec![Claim {
            what: "a<b".to_owned(),
            limit: 1.0,
            on: [Some(found), None],
        }];
        let curves = vec![("x<y".to_owned(), vec![(2.0, 250.0), (20.0, 9_000.0)])];
        let lines = |scale| Chart::Lines {
            axis: "gap",
            ticks: vec![(2.0, "2 µs".to_owned()), (20.0, "20 µs".to_owned())],
            scale,
            curves: curves.clone(),
        };
        let figures = vec![
            figure(lines(Scale::Nanoseconds)),
            figure(lines(Scale::Percent)),
            figure(Chart::Bars {
                show: times,
                rows: vec![("b<c".to_owned(), 3.0)],
            }),
            figure(Chart::Ratios(vec![
                ("d<e".to_owned(), found),
                ("few".to_owned(), few),
            ])),
        ];
        let title = "1. State";
        let says = "One word.";
        vec![
            Section {
                title,
                says,
                claims,
                figures,
            },
            Section {
                title: "2. Empty",
                ..Section::default()
            },
        ]
    }

    #[test]
    fn a_page_has_what_ran_and_nothing_from_outside() {
        let page = page("two cores & more", &sections());
        for part in [
            "1. State",
            "a&lt;b",
            "cannot tell",
            "1.20× [0.80×, 3.00×]",
            "two cores &amp; more",
            "0 of 1",
        ] {
            assert!(page.contains(part), "{part} is missing\n{page}");
        }
        for absent in [
            "2. Empty", "http:", "https:", "src=", "href=", "url(", "<script", "NaN", "inf",
            "<figure", "d<e",
        ] {
            assert!(!page.contains(absent), "{absent} is in the page\n{page}");
        }
        // Each picture for both kinds of windows.
        assert_eq!(page.matches("<svg").count(), 8);
    }

    #[test]
    fn ratios_stand_on_their_side_of_one() {
        let across = Span::around([0.5, 2.0].into_iter());
        assert!((across.part(1.0) - 0.5).abs() < 1e-12);
        assert!(across.part(0.8) < 0.5 && across.part(1.2) > 0.5);
        assert_eq!(across.part(2.0), 1.0);
    }
}
