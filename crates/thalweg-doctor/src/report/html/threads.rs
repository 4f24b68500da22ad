//! Draws the state of each thread over time.

use super::empty;
use crate::recording::{Recording, Span, State, Track};
use crate::report::page::{cut, percent, plain};
use thalweg_measure::svg::{self, Area, Picture, Window, both, legend};
use thalweg_measure::table::Nanoseconds;

/// The classes of running, waiting for a core, and blocked.
pub(crate) const CLASSES: [&str; 3] = ["run", "ready", "rest"];
const NAMES: [&str; 3] = ["runs", "could run and has no core", "blocked"];

const CAPTION: &str = "A line for each thread, from its start to its end. Where it did several \
    things within the width of a pixel, each takes its part of the height.";

/// The maximum number of characters of a thread's name where there is room.
const NAME_MAX: usize = 100;
/// The height of a line; the distance between two lines is larger.
const HEIGHT: f64 = 14.0;
/// Space for the axis above the lines, and below them.
const AXIS: f64 = 24.0;

/// Draws the picture, with the values in a table.
pub(crate) fn threads(recording: &Recording) -> String {
    if recording.tracks.is_empty() || recording.length_ns == 0 {
        return empty("No threads were followed", &recording.lacks);
    }
    let keys = NAMES.iter().zip(CLASSES);
    let keys = keys.map(|(name, class)| (*name, format!("fill {class}")));
    format!(
        "<p class=\"note\">{CAPTION}{}</p>\n{}{}{}",
        left_out(recording),
        legend(keys),
        both(|window| picture(recording, window)),
        totals(recording)
    )
}

fn left_out(recording: &Recording) -> String {
    let mut text = String::new();
    let threads = recording.tracks_left_out;
    if threads > 0 {
        text += &format!(" Threads left out, with less processor time: {threads}.");
    }
    let coarse = recording.tracks.iter();
    let coarse = coarse.filter(|track| track.spans_left_out > 0).count();
    if coarse > 0 {
        text += &format!(
            " Threads that switched more often than could be kept, and so have a coarser picture \
             (their totals are exact): {coarse}."
        );
    }
    text
}

fn picture(recording: &Recording, window: Window) -> String {
    let wide = window == Window::Wide;
    // In a narrow picture names stand above their lines.
    let (left, step, below) = if wide {
        (190.0, HEIGHT + 5.0, 0.0)
    } else {
        (4.0, HEIGHT + 21.0, 15.0)
    };
    let lines = recording.tracks.len() as f64;
    let area = Area {
        left,
        top: AXIS,
        width: f64::from(window.width()) - left - 12.0,
        height: lines * step,
    };
    let height = (area.bottom() + AXIS) as u32;
    let label = format!("what {lines} threads did over time");
    let mut picture = Picture::new(window.width(), height, &label);
    axis(&mut picture, area, recording.length_ns, wide);
    for (place, track) in recording.tracks.iter().enumerate() {
        let top = area.top + place as f64 * step;
        if wide {
            let name = called(track, 25);
            picture.text(left - 8.0, top + HEIGHT - 2.0, "end name", &name);
        } else {
            picture.text(left, top + 11.0, "name", &called(track, 46));
        }
        let row = Area {
            top: top + below,
            height: HEIGHT,
            ..area
        };
        line(&mut picture, row, track, recording.length_ns);
    }
    picture.finish()
}

/// Draws a thread's line: the blocked state over its whole length, and the other states above that.
fn line(picture: &mut Picture, row: Area, track: &Track, length_ns: u64) {
    let bins = bins(track, length_ns, row.width as usize);
    let (Some(first), Some(last)) = (
        bins.iter().position(|bin| *bin != [0; 3]),
        bins.iter().rposition(|bin| *bin != [0; 3]),
    ) else {
        return;
    };
    let tip = in_words(track);
    let x = |bin: usize| row.left + bin as f64;
    let size = (x(last + 1) - x(first), row.height);
    picture.bar((x(first), row.top), size, CLASSES[2], &tip);
    // The running part is drawn over the runnable part.
    for states in [2, 1] {
        let heights = bins.iter().map(|bin| filled(bin, states, row.height));
        let points = outline(heights, row);
        if !points.is_empty() {
            picture.path(&points, CLASSES[states - 1], &tip);
        }
    }
}

/// Returns the height to which the first `states` states fill a bin, in whole units. Even a short
/// moment is visible.
fn filled(bin: &[u64; 3], states: usize, height: f64) -> f64 {
    let part: u64 = bin[..states].iter().sum();
    let whole: u64 = bin.iter().sum();
    if part == 0 {
        return 0.0;
    }
    (height * part as f64 / whole as f64).round().max(1.0)
}

/// Returns the corners of a shape with these heights, which stands on the row's lower edge.
fn outline(heights: impl Iterator<Item = f64>, row: Area) -> Vec<(f64, f64)> {
    let mut points = Vec::new();
    let mut before = 0.0;
    let y = |height: f64| row.bottom() - height;
    for (bin, height) in heights.chain([0.0]).enumerate() {
        if height != before {
            let x = row.left + bin as f64;
            points.extend([(x, y(before)), (x, y(height))]);
            before = height;
        }
    }
    points
}

/// Returns the ns in each state, in as many bins as the picture has columns.
fn bins(track: &Track, length_ns: u64, count: usize) -> Vec<[u64; 3]> {
    let mut bins = vec![[0; 3]; count];
    // Returns the first ns of a bin.
    let border = |bin: usize| {
        let ns = (u128::from(length_ns) * bin as u128).div_ceil(count as u128);
        ns as u64
    };
    let place = |ns: u64| (u128::from(ns) * count as u128 / u128::from(length_ns)) as usize;
    let ends = track.spans.iter().skip(1).map(|span| span.from_ns);
    let ends = ends.chain([track.end_ns]);
    for (Span { from_ns, state }, end_ns) in track.spans.iter().zip(ends) {
        let end_ns = end_ns.min(length_ns);
        if *from_ns >= end_ns {
            continue;
        }
        let last = place(end_ns - 1).min(count - 1);
        let first = place(*from_ns).min(last);
        for (bin, times) in bins.iter_mut().enumerate().take(last + 1).skip(first) {
            let from = border(bin).max(*from_ns);
            let to = border(bin + 1).min(end_ns);
            times[*state as usize] += to.saturating_sub(from);
        }
    }
    bins
}

/// Draws round times above and below the lines, with a rule through them.
fn axis(picture: &mut Picture, area: Area, length_ns: u64, wide: bool) {
    let step = round_step(length_ns, if wide { 8 } else { 4 });
    let mut at = 0;
    while at <= length_ns {
        let x = area.x(at as f64 / length_ns as f64);
        picture.line((x, area.top - 4.0), (x, area.bottom() + 4.0), "grid");
        let name = Nanoseconds(at as f64).to_string();
        let name = match at {
            0 => "0".to_owned(),
            _ => name.replace(".00 ", " ").replace(".0 ", " "),
        };
        // A label at an edge stays inside the picture.
        let class = match () {
            () if at == 0 => "start",
            () if x > area.x(1.0) - 24.0 => "end",
            () => "middle",
        };
        for y in [area.top - 10.0, area.bottom() + 18.0] {
            picture.text(x, y, class, &name);
        }
        at += step;
    }
}

/// Returns a round time that divides a length into at most `most` parts.
fn round_step(length_ns: u64, most: u64) -> u64 {
    let mut decade: u64 = 1;
    loop {
        for factor in [1, 2, 5] {
            let step = decade.saturating_mul(factor);
            if length_ns / step <= most {
                return step;
            }
        }
        decade = decade.saturating_mul(10);
    }
}

/// Returns a thread's name and number in at most `columns` characters; the name is shortened if
/// necessary.
fn called(track: &Track, columns: usize) -> String {
    let name = match track.name.trim() {
        "" => "[unknown]",
        name => name,
    };
    let number = match (track.process, track.thread) {
        (process, thread) if process == thread => format!(" {thread}"),
        (process, thread) => format!(" {process}/{thread}"),
    };
    cut(&plain(name), columns.saturating_sub(number.len())) + &number
}

fn in_words(track: &Track) -> String {
    let [run, ready, rest] = track.total_ns.map(|ns| Nanoseconds(ns as f64));
    format!(
        "{}: ran {run}, waited for a core {ready}, blocked {rest}",
        called(track, NAME_MAX)
    )
}

/// Returns the table of the time in each state, by thread.
fn totals(recording: &Recording) -> String {
    let row = |track: &Track| {
        let whole: u64 = track
            .total_ns
            .iter()
            .fold(0, |sum, ns| sum.saturating_add(*ns));
        let time = |state: State| {
            let ns = track.total_ns[state as usize];
            let share = percent(ns as f64 / whole.max(1) as f64);
            format!("{} ({share})", Nanoseconds(ns as f64))
        };
        [
            called(track, NAME_MAX),
            time(State::Running),
            time(State::Runnable),
            time(State::Blocked),
        ]
    };
    let rows: Vec<_> = recording.tracks.iter().map(row).collect();
    let headings = ["thread", "ran", "waited for a core", "blocked"];
    format!(
        "<details>\n<summary>The same in figures</summary>\n{}</details>\n",
        svg::table(&headings, &rows)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn track(spans: &[(u64, State)], end_ns: u64) -> Track {
        Track {
            process: 7,
            thread: 8,
            name: "worker".to_owned(),
            end_ns,
            spans: spans
                .iter()
                .map(|&(from_ns, state)| Span { from_ns, state })
                .collect(),
            total_ns: [0; 3],
            spans_left_out: 0,
        }
    }

    #[test]
    fn time_falls_into_bins() {
        use State::{Blocked, Runnable, Running};
        let track = track(&[(5, Running), (25, Runnable), (30, Blocked)], 35);
        let filled = bins(&track, 40, 4);
        assert_eq!(filled, [[5, 0, 0], [10, 0, 0], [5, 5, 0], [0, 0, 5]]);
        // There are more bins than ns.
        let total = |state: usize| -> u64 {
            let bins = bins(&track, 40, 300);
            bins.iter().map(|bin| bin[state]).sum()
        };
        assert_eq!([total(0), total(1), total(2)], [20, 5, 5]);
    }

    #[test]
    fn spans_that_go_backwards_or_beyond_the_end_do_no_harm() {
        use State::{Blocked, Running};
        let track = track(
            &[(90, Running), (10, Blocked), (u64::MAX, Running)],
            u64::MAX,
        );
        let total: u64 = bins(&track, 100, 10).iter().flatten().sum();
        assert_eq!(total, 90);
    }

    #[test]
    fn an_outline_has_a_corner_where_the_height_changes() {
        let row = Area {
            left: 10.0,
            top: 0.0,
            width: 4.0,
            height: 14.0,
        };
        let points = outline([0.0, 14.0, 14.0, 7.0].into_iter(), row);
        let corners = [
            (11.0, 14.0),
            (11.0, 0.0),
            (13.0, 0.0),
            (13.0, 7.0),
            (14.0, 7.0),
            (14.0, 14.0),
        ];
        assert_eq!(points, corners);
        assert_eq!(filled(&[1, 0, 999_999], 1, 14.0), 1.0);
        assert_eq!(filled(&[0, 0, 10], 2, 14.0), 0.0);
    }

    #[test]
    fn steps_of_the_axis_are_round() {
        for (length, most, step) in [(1, 4, 1), (40, 4, 10), (1_900_000_000, 8, 500_000_000)] {
            assert_eq!(round_step(length, most), step);
        }
        assert!(u64::MAX / round_step(u64::MAX, 8) <= 8);
    }
}
