//! Draws flame graphs of stacks. Each is in a frame of its own: the script that zooms and searches
//! finds its one graph by ids, and a sandbox without the page's origin prevents misuse.

use super::empty;
use crate::recording::{Recording, Stack};
use inferno::flamegraph::color::{BasicPalette, Palette};
use inferno::flamegraph::{Direction, Options, TextTruncateDirection, from_lines};
use std::collections::BTreeMap;
use std::io;
use thalweg_measure::svg::{escape, table};
use thalweg_measure::table::Nanoseconds;

const STYLE: &str = include_str!("flames.css");
const SCRIPT: &str = include_str!("flames.js");
/// The maximum height of a frame; a higher one scrolls.
const HEIGHT_MAX: usize = 640;
/// The number of rows of the table below a graph.
const ROWS: usize = 8;
/// The maximum number of characters of a function's name.
const NAME_MAX: usize = 200;
/// The width, in per cent, below which parts of a graph are left out.
const WIDTH_MIN: f64 = 0.05;

const ON: &str = "Processor time by stack: the wider a function, the more of it was spent there \
    or in what it called, below it. [k] marks functions of the kernel. Left to right is no order \
    of time. Click a function to zoom.";
const OFF: &str = "Time in which the program did not run, by what its threads waited for: system \
    call, then the place in the kernel. Left to right is no order of time.";

/// Draws the flame graph of processor time.
pub(crate) fn on_cpu(recording: &Recording) -> String {
    let itself = |stack: &Stack| stack.frames.last().map_or_else(unknown, |last| shown(last));
    let hot = Palette::Basic(BasicPalette::Hot);
    graph(&recording.on_cpu, hot, "flame graph of processor time", ON)
        .map(|graph| graph + &heaviest("function, itself", &recording.on_cpu, itself))
        .unwrap_or_else(|| empty("No stacks of running threads were taken", &recording.lacks))
}

/// Draws the flame graph of waits.
pub(crate) fn off_cpu(recording: &Recording) -> String {
    let whole = |stack: &Stack| {
        let frames: Vec<String> = stack.frames.iter().map(|frame| shown(frame)).collect();
        frames.join(" › ")
    };
    let aqua = Palette::Basic(BasicPalette::Aqua);
    graph(&recording.off_cpu, aqua, "flame graph of waiting time", OFF)
        .map(|graph| graph + &heaviest("waited for", &recording.off_cpu, whole))
        .unwrap_or_else(|| empty("No waiting was seen", &recording.lacks))
}

/// Returns a graph; `None` if no stack has any weight.
fn graph(stacks: &[Stack], colours: Palette, label: &str, note: &str) -> Option<String> {
    let folded = folded(stacks);
    if folded.is_empty() {
        return None;
    }
    let (svg, height) = match drawn(&folded, colours) {
        Ok(drawn) => drawn,
        Err(error) => return Some(empty(&format!("The {label} failed: {error}"), &[])),
    };
    let label = escape(label);
    // The frame is a document of its own, and declares itself that it needs no external resources.
    let document = format!(
        "<!DOCTYPE html><html lang=\"en\"><meta charset=\"utf-8\">\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
         script-src 'unsafe-inline'; style-src 'unsafe-inline'\">\
         <title>{label}</title><style>{STYLE}</style><script>{SCRIPT}</script>\n\
         <input id=\"find\" type=\"search\" placeholder=\"Search\" \
         aria-label=\"search the {label}, regular expression\">\n\
         <svg width=\"1200\" height=\"{height}\" viewBox=\"0 0 1200 {height}\" role=\"img\" \
         aria-label=\"{label}\" onload=\"init(evt)\">{svg}"
    );
    Some(format!(
        "<p class=\"note\">{}</p>\n<iframe class=\"flames\" title=\"{label}\" \
         sandbox=\"allow-scripts\" style=\"height:{}px\" srcdoc=\"{}\"></iframe>\n",
        escape(note),
        height.min(HEIGHT_MAX),
        document.replace('&', "&amp;").replace('"', "&quot;")
    ))
}

/// Returns the contents of the picture's outermost element, its end included, and the picture's
/// height.
fn drawn(folded: &[String], colours: Palette) -> io::Result<(String, usize)> {
    let mut options = Options::default();
    options.colors = colours;
    options.hash = true;
    options.title = String::new();
    options.name_type = String::new();
    options.count_name = "µs".to_owned();
    options.min_width = WIDTH_MIN;
    options.direction = Direction::Inverted;
    options.text_truncate_direction = TextTruncateDirection::Right;
    let mut svg = Vec::new();
    from_lines(&mut options, folded.iter().map(String::as_str), &mut svg)?;
    let svg = String::from_utf8(svg).map_err(io::Error::other)?;
    let height = svg
        .split_once("height=\"")
        .and_then(|(_, rest)| rest.split_once('"'));
    let height = height.and_then(|(height, _)| height.parse().ok());
    // The part before this is needed only in a separate file.
    match (height, svg.find("<defs>")) {
        (Some(height), Some(inside)) => Ok((svg[inside..].to_owned(), height)),
        _ => Err(io::Error::other("it has no height or no content")),
    }
}

/// Returns a line for each stack: its functions, and µs.
fn folded(stacks: &[Stack]) -> Vec<String> {
    let line = |stack: &Stack| {
        let us = stack.weight_ns.div_ceil(1_000);
        if us == 0 || stack.frames.is_empty() {
            return None;
        }
        // A space or a semicolon would be read as the end of a name.
        let name = |frame: &String| shown(frame).replace(' ', "\u{a0}").replace(';', ",");
        let frames: Vec<String> = stack.frames.iter().map(name).collect();
        Some(format!("{} {us}", frames.join(";")))
    };
    stacks.iter().filter_map(line).collect()
}

/// Returns a function's name for people.
fn shown(frame: &str) -> String {
    let (name, kernel) = match frame.strip_suffix("_[k]") {
        Some(name) => (name, " [k]"),
        None => (frame, ""),
    };
    let one = |c: char| match c {
        c if c.is_whitespace() => ' ',
        c if c.is_control() => '\u{fffd}',
        c => c,
    };
    let name: String = name.trim().chars().map(one).take(NAME_MAX).collect();
    match name.trim() {
        "" => unknown(),
        name => format!("{name}{kernel}"),
    }
}

fn unknown() -> String {
    "[unknown]".to_owned()
}

/// Lists the heaviest stacks in words, for people who cannot see or zoom the picture.
fn heaviest(heading: &str, stacks: &[Stack], name: impl Fn(&Stack) -> String) -> String {
    let mut weights: BTreeMap<String, u64> = BTreeMap::new();
    for stack in stacks {
        let weight = weights.entry(name(stack)).or_default();
        *weight = weight.saturating_add(stack.weight_ns);
    }
    let whole: u64 = weights.values().fold(0, |sum, ns| sum.saturating_add(*ns));
    let mut weights: Vec<(String, u64)> = weights.into_iter().collect();
    weights.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
    let row = |(name, ns): &(String, u64)| {
        let share = format!("{:.1} %", 100.0 * *ns as f64 / whole.max(1) as f64);
        [name.clone(), Nanoseconds(*ns as f64).to_string(), share]
    };
    let rows: Vec<_> = weights.iter().take(ROWS).map(row).collect();
    let left = weights.len().saturating_sub(ROWS);
    let more = if left > 0 {
        format!("<p class=\"note\">and {left} more with less</p>\n")
    } else {
        String::new()
    };
    let table = table(&[heading, "time", "share"], &rows);
    format!("<div class=\"heaviest\">\n{table}{more}</div>\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stack(frames: &[&str], weight_ns: u64) -> Stack {
        Stack {
            frames: frames.iter().map(|frame| (*frame).to_owned()).collect(),
            weight_ns,
        }
    }

    #[test]
    fn names_cannot_break_a_line() {
        let stacks = [
            stack(&["main", "a b;c 12", "x\n9"], 1_500),
            stack(&["# main", "", "do_futex_[k]"], 1),
            stack(&[], 5_000),
            stack(&["nothing"], 0),
        ];
        assert_eq!(
            folded(&stacks),
            [
                "main;a\u{a0}b,c\u{a0}12;x\u{a0}9 2",
                "#\u{a0}main;[unknown];do_futex\u{a0}[k] 1"
            ]
        );
        let hot = Palette::Basic(BasicPalette::Hot);
        let (svg, height) = drawn(&folded(&stacks), hot).expect("two stacks weigh something");
        assert!(svg.starts_with("<defs>") && svg.ends_with("</svg>"));
        assert!(svg.contains("do_futex\u{a0}[k] (1 µs, 33.33%)"), "{svg}");
        assert!(height > 3 * 16, "{height}");
    }

    #[test]
    fn stacks_without_weight_are_no_graph() {
        let recording = Recording {
            on_cpu: vec![stack(&["main"], 0)],
            lacks: vec!["on-CPU stacks: <refused>".to_owned()],
            ..Recording::default()
        };
        let page = on_cpu(&recording);
        assert!(!page.contains("<iframe"), "{page}");
        assert!(page.contains("<li>on-CPU stacks: &lt;refused&gt;</li>"));
    }

    #[test]
    fn the_heaviest_come_first_and_the_rest_is_counted() {
        let stacks: Vec<Stack> = (1..=10)
            .map(|n| stack(&["main", &format!("f{n}")], n * 1_000_000))
            .collect();
        let recording = Recording {
            on_cpu: stacks,
            ..Recording::default()
        };
        let page = on_cpu(&recording);
        let row = "<td>f10</td><td>10.0 ms</td><td>18.2 %</td>";
        assert!(page.contains(row), "{page}");
        assert!(page.contains("and 2 more") && !page.contains("<td>f2</td>"));
    }
}
