//! Pictures of results: pieces of SVG, text that is always escaped, lines, and scales for axes.
//!
//! ```
//! use thalweg_measure::svg::{Decades, Picture, Window};
//! let area = Window::Narrow.area(10.0, 100.0);
//! let scale = Decades::around([800, 20_000].into_iter());
//! let mut picture = Picture::new(Window::Narrow.width(), 120, "two latencies");
//! let (first, last) = (area.y(scale.part(800)), area.y(scale.part(20_000)));
//! picture.path(&[(area.x(0.0), first), (area.x(1.0), last)], "curve", "p99");
//! assert!(picture.finish().contains("<title>p99</title>"));
//! ```

use crate::table::Nanoseconds;
use std::fmt::Write;

/// Returns the text for HTML and SVG, with every character escaped that has a meaning there.
#[must_use]
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            // Neither may stand in a document, not even escaped.
            c if c.is_control() && c != '\n' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// How pages look: no font, script or picture from outside; light or dark as the reader has it.
const STYLE: &str = include_str!("svg/style.css");

/// Returns a whole page around `body`, self-contained.
#[must_use]
pub fn page(title: &str, body: &str) -> String {
    styled_page(title, "", body)
}

/// Returns a page as [`page`] does, with more CSS, which goes into the page as it is.
#[must_use]
pub fn styled_page(title: &str, style: &str, body: &str) -> String {
    let title = escape(title);
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title}</title>\n<style>\n{STYLE}{style}</style>\n</head>\n<body>\n<main>\n\
         {body}</main>\n</body>\n</html>\n"
    )
}

/// Returns a part of a page; none if there is nothing in it.
#[must_use]
pub fn section(title: &str, content: &str) -> String {
    if content.is_empty() {
        return String::new();
    }
    format!(
        "<section>\n<h2>{}</h2>\n{content}</section>\n",
        escape(title)
    )
}

/// Returns a table; every cell is escaped here, and so is every heading.
#[must_use]
pub fn table<R: AsRef<[String]>>(headings: &[&str], rows: &[R]) -> String {
    let cells = |row: &[String], tag: &str| {
        let cell = |text: &String| format!("<{tag}>{}</{tag}>", escape(text));
        format!("<tr>{}</tr>\n", row.iter().map(cell).collect::<String>())
    };
    let headings: Vec<String> = headings.iter().map(|h| (*h).to_owned()).collect();
    format!(
        "<table>\n<thead>{}</thead>\n<tbody>\n{}</tbody>\n</table>\n",
        cells(&headings, "th"),
        rows.iter()
            .map(|row| cells(row.as_ref(), "td"))
            .collect::<String>()
    )
}

/// The place of a chart's area in its picture, in picture units.
#[derive(Clone, Copy, Debug)]
pub struct Area {
    /// Its left edge.
    pub left: f64,
    /// Its upper edge.
    pub top: f64,
    /// Its width.
    pub width: f64,
    /// Its height.
    pub height: f64,
}

impl Area {
    /// Returns the horizontal place of a part from 0 (left) to 1 (right).
    #[must_use]
    pub fn x(&self, part: f64) -> f64 {
        self.left + self.width * part.clamp(0.0, 1.0)
    }

    /// Returns the vertical place of a part from 0 (bottom) to 1 (top).
    #[must_use]
    pub fn y(&self, part: f64) -> f64 {
        self.top + self.height * (1.0 - part.clamp(0.0, 1.0))
    }

    /// Returns its lower edge.
    #[must_use]
    pub fn bottom(&self) -> f64 {
        self.top + self.height
    }
}

/// The windows for which a picture is made: one that is scaled down has letters that are too small
/// to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Window {
    /// The window of a desktop computer.
    Wide,
    /// The window of a phone.
    Narrow,
}

impl Window {
    /// Returns the width of its pictures, in picture units.
    #[must_use]
    pub const fn width(self) -> u32 {
        match self {
            Window::Wide => 900,
            Window::Narrow => 360,
        }
    }

    /// Returns the area of a chart with an axis on its left.
    #[must_use]
    pub fn area(self, top: f64, height: f64) -> Area {
        let left = if self == Window::Wide { 76.0 } else { 58.0 };
        Area {
            left,
            top,
            width: f64::from(self.width()) - left - 16.0,
            height,
        }
    }
}

/// Returns the picture for both kinds of windows, of which a reader sees one: classes `wide` and
/// `narrow`.
#[must_use]
pub fn both(draw: impl Fn(Window) -> String) -> String {
    let (wide, narrow) = (draw(Window::Wide), draw(Window::Narrow));
    format!("<div class=\"wide\">\n{wide}</div>\n<div class=\"narrow\">\n{narrow}</div>\n")
}

/// Returns the legend of a picture: the names of its colours, with their classes.
#[must_use]
pub fn legend<'n>(names: impl Iterator<Item = (&'n str, String)>) -> String {
    let key = |(name, class): (&str, String)| {
        let name = escape(name);
        format!("<span class=\"key {class}\"><i></i>{name}</span>\n")
    };
    format!(
        "<p class=\"legend\">\n{}</p>\n",
        names.map(key).collect::<String>()
    )
}

/// One line of [`curves`]: its name, its class, and times in ns at places from 0 to 1.
#[derive(Clone, Debug)]
pub struct Curve {
    /// The name in the legend and the tooltip.
    pub name: String,
    /// The class, which decides its colour.
    pub class: String,
    /// The place of a percentile, and the time that it has.
    pub points: Vec<(f64, u64)>,
}

/// Returns latencies by percentile, both axes logarithmic, with their legend. `marks` are the
/// percentiles' places from 0 to 1 with their names; the first curve is drawn on top.
#[must_use]
pub fn curves(all: &[Curve], marks: &[(f64, String)], axis: &str) -> String {
    let keys = all.iter();
    let keys = keys.map(|curve| (curve.name.as_str(), format!("line {}", curve.class)));
    let letters: usize = marks.iter().map(|(_, name)| name.chars().count()).sum();
    let scale = Decades::around(all.iter().flat_map(|c| &c.points).map(|&(_, ns)| ns));
    let draw = |window: Window| {
        let area = window.area(14.0, 320.0);
        let height = area.bottom() as u32 + 44;
        let label = "latency by percentile, both axes logarithmic";
        let mut picture = Picture::new(window.width(), height, label);
        for (part, name) in scale.ticks() {
            let y = area.y(part);
            picture.line((area.left, y), (area.x(1.0), y), "grid");
            picture.text(area.left - 8.0, y + 4.0, "end", &name);
        }
        for (at, (part, name)) in marks.iter().enumerate() {
            let x = area.x(*part);
            picture.line((x, area.top), (x, area.bottom()), "grid");
            let class = match at + 1 == marks.len() {
                true => "end",
                false => "middle",
            };
            // In a narrow picture there is room for every other name, if they are long.
            if window == Window::Wide || letters <= 28 || at % 2 == 0 {
                picture.text(x, area.bottom() + 18.0, class, name);
            }
        }
        picture.text(area.x(0.5), area.bottom() + 38.0, "middle", axis);
        for curve in all.iter().rev() {
            let points = curve.points.iter();
            let path = points.map(|&(part, ns)| (area.x(part), area.y(scale.part(ns))));
            let path: Vec<(f64, f64)> = path.collect();
            picture.path(&path, &format!("curve {}", curve.class), &curve.name);
        }
        picture.finish()
    };
    legend(keys) + &both(draw)
}

/// A picture that is being drawn.
#[derive(Debug)]
pub struct Picture {
    svg: String,
}

impl Picture {
    /// Returns an empty picture of this size. The label says to a screen reader what is in it.
    #[must_use]
    pub fn new(width: u32, height: u32, label: &str) -> Picture {
        let label = escape(label);
        Picture {
            svg: format!(
                "<svg viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{label}\">\n"
            ),
        }
    }

    /// Draws text at a place; `class` decides colour and anchor.
    pub fn text(&mut self, x: f64, y: f64, class: &str, text: &str) {
        let text = escape(text);
        self.push(format_args!(
            "<text x=\"{x:.1}\" y=\"{y:.1}\" class=\"{class}\">{text}</text>"
        ));
    }

    /// Draws a straight line.
    pub fn line(&mut self, from: (f64, f64), to: (f64, f64), class: &str) {
        let ((x1, y1), (x2, y2)) = (from, to);
        self.push(format_args!(
            "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" class=\"{class}\"/>"
        ));
    }

    /// Draws a box with a tooltip.
    pub fn bar(&mut self, (x, y): (f64, f64), (w, h): (f64, f64), class: &str, tip: &str) {
        let tip = escape(tip);
        self.push(format_args!(
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{w:.1}\" height=\"{h:.1}\" \
             class=\"{class}\"><title>{tip}</title></rect>"
        ));
    }

    /// Draws a line through points, with a tooltip.
    pub fn path(&mut self, points: &[(f64, f64)], class: &str, tip: &str) {
        let mut d = String::new();
        for (i, (x, y)) in points.iter().enumerate() {
            let letter = if i == 0 { 'M' } else { 'L' };
            // Writing to a String does not fail.
            let _ = write!(d, "{letter}{x:.1} {y:.1}");
        }
        let tip = escape(tip);
        self.push(format_args!(
            "<path d=\"{d}\" class=\"{class}\"><title>{tip}</title></path>"
        ));
    }

    /// Returns the finished picture.
    #[must_use]
    pub fn finish(mut self) -> String {
        self.svg.push_str("</svg>\n");
        self.svg
    }

    fn push(&mut self, element: std::fmt::Arguments<'_>) {
        let _ = writeln!(self.svg, "{element}");
    }
}

/// A logarithmic scale of times in whole decades.
#[derive(Clone, Copy, Debug)]
pub struct Decades {
    first: i32,
    last: i32,
}

impl Decades {
    /// Returns the decades that hold all of these times; at least one.
    #[must_use]
    pub fn around(times_ns: impl Iterator<Item = u64>) -> Decades {
        let (mut least, mut most) = (u64::MAX, 1);
        for ns in times_ns {
            least = least.min(ns.max(1));
            most = most.max(ns);
        }
        let least = least.min(most);
        let first = (least as f64).log10().floor() as i32;
        let last = (most as f64).log10().ceil() as i32;
        Decades {
            first,
            last: last.max(first + 1),
        }
    }

    /// Returns the place of a time, from 0 to 1.
    #[must_use]
    pub fn part(&self, ns: u64) -> f64 {
        let exponent = (ns.max(1) as f64).log10();
        (exponent - f64::from(self.first)) / f64::from(self.last - self.first)
    }

    /// Returns the places and names of the decades' borders.
    pub fn ticks(&self) -> impl Iterator<Item = (f64, String)> + '_ {
        (self.first..=self.last).map(|exponent| {
            let name = Nanoseconds(10_f64.powi(exponent)).to_string();
            let name = name.replace(".00 ", " ").replace(".0 ", " ");
            (
                f64::from(exponent - self.first) / f64::from(self.last - self.first),
                name,
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_become_markup() {
        assert_eq!(
            escape("<b a=\"1\">&'\u{1}"),
            "&lt;b a=&quot;1&quot;&gt;&amp;&#39;\u{fffd}"
        );
    }

    #[test]
    fn decades_enclose() {
        let scale = Decades::around([250, 80_000].into_iter());
        let ticks: Vec<_> = scale.ticks().map(|(_, name)| name).collect();
        assert_eq!(ticks, ["100 ns", "1 µs", "10 µs", "100 µs"]);
        assert!(scale.part(250) > 0.0 && scale.part(80_000) < 1.0);
        let none = Decades::around(std::iter::empty());
        assert_eq!(none.ticks().count(), 2);
        let one = Decades::around([1000].into_iter());
        assert_eq!(one.part(1000), 0.0);
    }
}
