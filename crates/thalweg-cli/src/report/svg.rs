//! Pieces of SVG: text that is always escaped, lines, and scales for axes.

use super::number::span;
use std::fmt::Write;

/// Text for HTML and SVG, with everything escaped that means something there.
pub(super) fn escape(text: &str) -> String {
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

/// Where a chart's area lies in its picture, in picture units.
#[derive(Clone, Copy, Debug)]
pub(super) struct Area {
    pub(super) left: f64,
    pub(super) top: f64,
    pub(super) width: f64,
    pub(super) height: f64,
}

impl Area {
    /// The horizontal place of a part from 0 (left) to 1 (right).
    pub(super) fn x(&self, part: f64) -> f64 {
        self.left + self.width * part.clamp(0.0, 1.0)
    }

    /// The vertical place of a part from 0 (bottom) to 1 (top).
    pub(super) fn y(&self, part: f64) -> f64 {
        self.top + self.height * (1.0 - part.clamp(0.0, 1.0))
    }

    pub(super) fn bottom(&self) -> f64 {
        self.top + self.height
    }
}

/// A picture that is being drawn.
#[derive(Debug)]
pub(super) struct Picture {
    svg: String,
}

impl Picture {
    /// An empty picture of this size. The label says to a screen reader what is in it.
    pub(super) fn new(width: u32, height: u32, label: &str) -> Picture {
        let label = escape(label);
        Picture {
            svg: format!(
                "<svg viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{label}\">\n"
            ),
        }
    }

    /// Text at a place; `class` decides colour and anchor.
    pub(super) fn text(&mut self, x: f64, y: f64, class: &str, text: &str) {
        let text = escape(text);
        self.push(format_args!(
            "<text x=\"{x:.1}\" y=\"{y:.1}\" class=\"{class}\">{text}</text>"
        ));
    }

    /// A straight line.
    pub(super) fn line(&mut self, from: (f64, f64), to: (f64, f64), class: &str) {
        let ((x1, y1), (x2, y2)) = (from, to);
        self.push(format_args!(
            "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" class=\"{class}\"/>"
        ));
    }

    /// A box with a tooltip.
    pub(super) fn bar(&mut self, (x, y): (f64, f64), (w, h): (f64, f64), class: &str, tip: &str) {
        let tip = escape(tip);
        self.push(format_args!(
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{w:.1}\" height=\"{h:.1}\" \
             class=\"{class}\"><title>{tip}</title></rect>"
        ));
    }

    /// A line through points, with a tooltip.
    pub(super) fn path(&mut self, points: &[(f64, f64)], class: &str, tip: &str) {
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

    /// The finished picture.
    pub(super) fn finish(mut self) -> String {
        self.svg.push_str("</svg>\n");
        self.svg
    }

    fn push(&mut self, element: std::fmt::Arguments<'_>) {
        let _ = writeln!(self.svg, "{element}");
    }
}

/// A logarithmic scale of times in whole decades.
#[derive(Clone, Copy, Debug)]
pub(super) struct Decades {
    first: i32,
    last: i32,
}

impl Decades {
    /// The decades that hold all of these times; at least one.
    pub(super) fn around(times_ns: impl Iterator<Item = u64>) -> Decades {
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

    /// Where a time lies, from 0 to 1.
    pub(super) fn part(&self, ns: u64) -> f64 {
        let exponent = (ns.max(1) as f64).log10();
        (exponent - f64::from(self.first)) / f64::from(self.last - self.first)
    }

    /// The places and names of the decades' borders.
    pub(super) fn ticks(&self) -> impl Iterator<Item = (f64, String)> + '_ {
        (self.first..=self.last).map(|exponent| {
            let ns = 10_f64.powi(exponent);
            let name = span(ns).replace(".00 ", " ").replace(".0 ", " ");
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
