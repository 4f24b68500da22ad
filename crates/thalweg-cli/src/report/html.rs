//! Writes the report of a run as one self-contained HTML page.

use crate::message::{grouped, percent, plural, rate};
use crate::report::facts::{
    BookDepth, Breakdown, Check, Count, DepthLevel, Facts, Latency, Point, Stage, Throughput,
};
use crate::report::text::{self, cells, most, rows, sampling};
use thalweg_measure::svg::{
    self, Area, Decades, Picture, Window, both, escape, legend, section, table,
};
use thalweg_measure::table::Nanoseconds;

/// Returns the page.
pub(crate) fn page(facts: &Facts) -> String {
    let title = format!("thalweg: {}", facts.input.name);
    let body = [
        head(facts),
        section("Where the time goes", &bars(&facts.latency)),
        section("The run over time", &charts(&facts.latency)),
        section("Latency by percentile", &curves(&facts.latency)),
        section("Times", &times(&facts.latency)),
        section("Slowest commands", &slowest(&facts.latency)),
        section("Commands and results", &commands(facts)),
        facts.check.as_ref().map_or_else(String::new, |found| {
            section(&format!("Agreement with {}", found.against), &check(found))
        }),
        facts
            .books
            .iter()
            .map(|found| section(&format!("Book of symbol {}", found.symbol), &book(found)))
            .collect(),
    ]
    .concat();
    svg::page(&title, &body)
}

fn head(facts: &Facts) -> String {
    let input = &facts.input;
    let seed = input
        .seed
        .map_or_else(String::new, |seed| format!(", seed {seed}"));
    let pace = input
        .rate_per_s
        .map_or("as fast as it goes".to_owned(), |r| rate(r as f64));
    let how = format!(
        "{}{seed}; rules {}; placement {}; {pace}; state hash {}",
        input.format, input.rules, input.placement, facts.state_hash
    );
    let explanation = facts
        .explanation
        .as_ref()
        .map_or_else(String::new, |found| {
            format!("<p class=\"why\">{}</p>\n", escape(&found.sentence))
        });
    let below: String = text::below(facts)
        .iter()
        .map(|line| format!("<p>{}.</p>\n", escape(line)))
        .collect();
    format!(
        "<header>\n<h1>{}</h1>\n{explanation}{below}<p>{}</p>\n<p>{}</p>\n{}</header>\n",
        escape(&input.name),
        escape(&how),
        escape(&facts.machine.line()),
        tiles(facts)
    )
}

/// Returns the figures that most people look for.
fn tiles(facts: &Facts) -> String {
    let latency = &facts.latency;
    let mut tiles = vec![
        ("commands", grouped(facts.commands.total)),
        ("reached", rate(latency.throughput_per_s)),
        ("trades", grouped(facts.trades.count)),
    ];
    if let Some(asked) = facts.input.rate_per_s {
        tiles.insert(1, ("asked for", rate(asked as f64)));
    }
    let times = &latency.end_to_end;
    let percentiles = times.known().filter(|(name, _)| *name != "p90");
    let times = percentiles.chain([("slowest", times.summary.max)]);
    tiles.extend(times.map(|(name, ns)| (name, Nanoseconds(ns as f64).to_string())));
    let missed = latency.rate_reached == Some(false);
    let tile = |(name, value): &(&str, String)| {
        let class = match *name {
            "reached" if missed => "tile missed",
            _ => "tile",
        };
        let name = match *name {
            "reached" if missed => "reached: less than asked for",
            name => name,
        };
        format!(
            "<div class=\"{class}\"><b>{}</b><span>{name}</span></div>\n",
            escape(value)
        )
    };
    let tiles: String = tiles.iter().map(tile).collect();
    format!("<div class=\"tiles\">\n{tiles}</div>\n")
}

/// Returns the table of waiting and service times of every stage, and of the work that keeps it
/// busy.
pub(crate) fn times(latency: &Latency) -> String {
    let row = |(name, times)| {
        let mut row = vec![name];
        row.extend(cells(times));
        row
    };
    let rows: Vec<_> = rows(latency).into_iter().map(row).collect();
    let headings = ["", "p50", "p90", "p99", "p99.9", "p99.99", "max", "mean"];
    format!(
        "<p class=\"note\">{} Percentiles with fewer than 10 times beyond them are left \
         out, and so are parts that took no time.</p>\n{}{}",
        sampling(latency),
        table(&headings, &rows),
        batches(latency)
    )
}

/// Returns the table of how busy each stage was and of its batch sizes, as far as they were
/// measured.
fn batches(latency: &Latency) -> String {
    let batches = latency.stages.iter().any(|stage| stage.batches.is_some());
    if !batches
        && latency
            .stages
            .iter()
            .all(|stage| stage.utilisation.is_none())
    {
        return String::new();
    }
    let headings = [
        "stage",
        "busy",
        "mean batch",
        "p50 batch",
        "p99 batch",
        "max batch",
    ];
    let shown = if batches { headings.len() } else { 2 };
    let row = |stage: &Stage| {
        let mut row = vec![stage.name.clone()];
        row.push(stage.utilisation.map_or_else(String::new, percent));
        if let Some(b) = stage.batches {
            let mean = format!("{:.1}", b.mean);
            let sizes = [grouped(b.p50), grouped(b.p99), grouped(b.max)];
            row.push(mean);
            row.extend(sizes);
        }
        row.resize(shown, String::new());
        row
    };
    // The sender is not a stage: it is never busy, and has no batches.
    let stages = latency.stages.iter();
    let stages = stages.filter(|stage| stage.batches.is_some() || stage.utilisation.is_some());
    let rows: Vec<Vec<String>> = stages.map(row).collect();
    let note = match batches {
        true => {
            "<p class=\"note\">A batch is what a stage took up together with a sampled \
                 command.</p>"
        }
        false => "<br>",
    };
    format!("{note}\n{}", table(&headings[..shown], &rows))
}

/// Returns the table of the slowest commands, and of the parts they spent their time on.
pub(crate) fn slowest(latency: &Latency) -> String {
    if latency.slowest.is_empty() {
        return String::new();
    }
    let rows: Vec<_> = latency
        .slowest
        .iter()
        .map(|slow| {
            [
                format!("{} ({})", grouped(slow.command), slow.kind),
                Nanoseconds(slow.end_to_end_ns as f64).to_string(),
                most(slow),
            ]
        })
        .collect();
    let since = format!("since it was {}", latency.counted_from());
    let table = table(&["command", &since, "of that"], &rows);
    format!("<div class=\"slowest\">\n{table}</div>\n")
}

/// Returns the tables of the commands, the results and the trades.
pub(crate) fn commands(facts: &Facts) -> String {
    let counts = |heading: &str, counts: &[Count]| {
        let rows: Vec<_> = counts
            .iter()
            .map(|c| [c.name.clone(), grouped(c.count)])
            .collect();
        table(&[heading, "count"], &rows)
    };
    let traded = [
        Count::new("trades", facts.trades.count),
        Count::new("lots", facts.trades.volume_lots),
    ];
    format!(
        "<div class=\"side\">\n{}{}{}</div>\n",
        counts("command", &facts.commands.by_kind),
        counts("result", &facts.commands.by_result),
        counts("traded", &traded)
    )
}

/// Returns the table of how far the run agrees with a recording.
pub(crate) fn check(check: &Check) -> String {
    let scores: Vec<_> = check
        .scores
        .iter()
        .map(|s| {
            [
                s.label.clone(),
                grouped(s.agree),
                grouped(s.of),
                percent(s.part()),
            ]
        })
        .collect();
    let counts: Vec<_> = check
        .counts
        .iter()
        .map(|c| [c.name.replace('_', " "), grouped(c.count)])
        .collect();
    let mut out = table(&["compared", "agree", "of", "part"], &scores);
    if !counts.is_empty() {
        out += "<br>\n";
        out += &table(&["counted", "number"], &counts);
    }
    out
}

/// Returns the table of the best levels of a book.
pub(crate) fn book(book: &BookDepth) -> String {
    let side = |name: &str, levels: &[DepthLevel]| {
        let rows: Vec<_> = levels
            .iter()
            .map(|l| {
                [
                    grouped(l.price_ticks),
                    grouped(l.size_lots),
                    grouped(l.orders),
                ]
            })
            .collect();
        table(&[name, "lots", "orders"], &rows)
    };
    format!(
        "<div class=\"side\">\n{}{}</div>\n<p class=\"note\">{} bid level{} and {} ask level{} \
         in all</p>\n",
        side("bid", &book.bids),
        side("ask", &book.asks),
        grouped(book.bid_levels),
        plural(book.bid_levels),
        grouped(book.ask_levels),
        plural(book.ask_levels)
    )
}

/// The explanation of the names of the parts.
const CAPTION: &str = "Each bar is the time of the commands around one percentile, end to end, \
    cut into its parts. Waiting to be sent: from when a command was due until the pipeline had a \
    place for it. Waiting for a stage: it was ready, and the stage was busy with others, or its \
    thread was not running. In a stage: the stage worked on it; of a batch, its share of the \
    time.";

/// Returns the bars. Each is as wide as the page, whatever its time, which is written beside it.
fn bars(latency: &Latency) -> String {
    if latency.breakdowns.is_empty() {
        return String::new();
    }
    let mut names: Vec<&str> = Vec::new();
    for part in latency.breakdowns.iter().flat_map(|found| &found.parts) {
        if !names.contains(&part.what.as_str()) {
            names.push(&part.what);
        }
    }
    let keys = names.iter().map(|name| (*name, class(name, latency)));
    let bars: String = latency
        .breakdowns
        .iter()
        .map(|found| bar(found, latency))
        .collect();
    format!("<p class=\"note\">{CAPTION}</p>\n{}{bars}", legend(keys))
}

fn bar(found: &Breakdown, latency: &Latency) -> String {
    let whole = found.end_to_end_ns.max(1e-9);
    let mut percentiles = latency.end_to_end.known();
    let time = match percentiles.find(|(name, _)| *name == found.of) {
        Some((_, ns)) => Nanoseconds(ns as f64),
        None => Nanoseconds((latency.end_to_end.summary.mean * 10.0).round() / 10.0),
    };
    let part = |part: &crate::report::facts::Part| {
        let share = 100.0 * part.ns / whole;
        let tip = format!(
            "{}: {}, {share:.1} %",
            part.what,
            Nanoseconds(part.ns.round())
        );
        // The name is written beside the colour where there is room for it.
        let text = if share >= 12.0 {
            format!("{share:.0} %")
        } else {
            String::new()
        };
        format!(
            "<i class=\"{}\" style=\"width:{share:.2}%\" title=\"{}\">{text}</i>",
            class(&part.what, latency),
            escape(&tip)
        )
    };
    let parts: String = found.parts.iter().map(part).collect();
    format!(
        "<div class=\"row\"><b>{}</b><span>{time}</span><div class=\"bar\">{parts}</div></div>\n",
        escape(&found.of)
    )
}

/// Returns the colour class of a part: that of its stage, and a pale one where a command waits for
/// the stage.
fn class(what: &str, latency: &Latency) -> String {
    let place = |stage: &str| {
        let at = latency.stages.iter().position(|s| s.name == stage);
        at.unwrap_or(0) % COLOURS
    };
    match (what.strip_prefix("waiting for "), what.strip_prefix("in ")) {
        (Some(stage), _) => format!("fill s{} waited", place(stage)),
        (_, Some(stage)) => format!("fill s{} served", place(stage)),
        _ => "fill publish-delay".to_owned(),
    }
}

/// The number of colours for stages; further stages start again with the first colour.
const COLOURS: usize = 6;

/// Draws latency by percentile: every further nine of the percentile is as wide as the one before
/// it.
fn curves(latency: &Latency) -> String {
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

/// Returns each line's name, class and points; end to end is first, and drawn above its parts.
fn lines(latency: &Latency) -> Vec<(String, String, &[Point])> {
    let whole = &latency.end_to_end.curve[..];
    let mut all = vec![("end to end".to_owned(), "total".to_owned(), whole)];
    for (i, stage) in latency.stages.iter().enumerate() {
        let forms = [("waited", &stage.waited), ("served", &stage.served)];
        for (what, times) in forms {
            // A stage that never waits, because it runs behind another one on its thread, has no
            // line.
            if let Some(times) = times.as_ref().filter(|times| times.summary.max > 0) {
                let name = format!("{}, {what}", stage.name);
                all.push((name, format!("s{} {what}", i % COLOURS), &times.curve));
            }
        }
    }
    all
}

/// Returns the number of nines in a quantile: 0.9 has one, 0.99 two.
fn nines(quantile: f64) -> f64 {
    -(1.0 - quantile).log10()
}

/// Returns the name of the percentile with this number of nines.
fn percentile(nines: u32) -> String {
    match nines {
        0 => "0 %".to_owned(),
        1 => "90 %".to_owned(),
        2 => "99 %".to_owned(),
        n => format!("99.{} %", "9".repeat(n as usize - 2)),
    }
}

const TIMELINE_CAPTION: &str = "Commands finished a second; end to end of those, to about 20 %; \
    and commands that were due and not done. Where all three jump at the same moment, the machine \
    or a stage stood still.";

/// The height of each of the three charts, and of the space above it.
const HEIGHT: f64 = 120.0;
const ABOVE: f64 = 30.0;

/// Returns all three charts, with a common time axis.
fn charts(latency: &Latency) -> String {
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
        "<p class=\"note\">{TIMELINE_CAPTION}</p>\n{}{}",
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
    rate_bars(&mut picture, area(0), &rates, rate);
    picture.text(area(1).left, area(1).top - 10.0, "name", "end to end");
    latency_lines(&mut picture, area(1), flow);
    picture.text(area(2).left, area(2).top - 10.0, "name", "backlog");
    let backlog: Vec<f64> = flow.backlog.iter().map(|n| *n as f64).collect();
    rate_bars(&mut picture, area(2), &backlog, |value| {
        grouped(value as i128)
    });
    let names = if window == Window::Wide { 4 } else { 2 };
    time_axis(&mut picture, area(2), flow, names);
    picture.finish()
}

/// Draws a bar for each interval, from zero.
fn rate_bars(picture: &mut Picture, area: Area, values: &[f64], name: impl Fn(f64) -> String) {
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
fn latency_lines(picture: &mut Picture, area: Area, flow: &Throughput) {
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
    use crate::report::tests::facts;

    #[test]
    fn a_page_has_every_part_and_nothing_from_outside() {
        let page = page(&facts());
        for part in [
            "Latency by percentile",
            "Where the time goes",
            "The run over time",
            "96 % of the p99 is &lt;waiting&gt;.",
            "The rate of 125.0 k/s was not reached",
            "The machine was quiet",
            "Abacus 9000, 2 usable cores",
            "tile missed",
            "Slowest commands",
            "Agreement with recorded rows",
            "Book of symbol 1",
            "state hash 00000000000000ff",
            "99.9 %",
            "end to end",
        ] {
            assert!(page.contains(part), "{part} is missing");
        }
        for outside in [
            "http:", "https:", "src=", "href=", "url(", "<script", "@import",
        ] {
            assert!(!page.contains(outside), "{outside} is in the page");
        }
        assert!(!page.contains("NaN") && !page.contains("inf\""));
    }

    #[test]
    fn names_cannot_become_markup() {
        let mut facts = facts();
        facts.input.name = "<script>alert(1)</script>".into();
        facts.latency.stages[0].name = "a<b".into();
        facts.latency.breakdowns[0].parts[0].what = "in a<b".into();
        facts.commands.by_kind[0].name = "x\"><img>".into();
        let page = page(&facts);
        assert!(!page.contains("<script") && !page.contains("a<b") && !page.contains("<img"));
        assert!(page.contains("&lt;script&gt;"));
    }

    #[test]
    fn empty_parts_are_left_out() {
        let mut facts = facts();
        facts.check = None;
        facts.latency.slowest.clear();
        facts.latency.throughput.finished.clear();
        facts.latency.stages.clear();
        facts.latency.breakdowns.clear();
        facts.latency.end_to_end.curve.clear();
        let page = page(&facts);
        for part in [
            "Agreement",
            "Slowest",
            "over time",
            "by percentile",
            "Where the time",
        ] {
            assert!(
                !page.contains(part),
                "{part} is there without anything in it"
            );
        }
    }

    #[test]
    fn a_bar_is_cut_into_its_parts() {
        let page = bars(&facts().latency);
        assert!(page.contains("<b>p99</b><span>3.00 µs</span>"), "{page}");
        let part = "<i class=\"fill publish-delay\" style=\"width:96.00%\" \
                    title=\"waiting to be sent: 1.44 µs, 96.0 %\">96 %</i>";
        assert!(page.contains(part), "{page}");
        assert!(
            page.contains("class=\"key fill s1 served\"><i></i>in match"),
            "{page}"
        );
        assert!(page.contains("Waiting for a stage: it was ready"), "{page}");
        // A class without a colour is drawn as nothing.
        let sheet = super::page(&facts());
        let latency = facts().latency;
        for what in ["waiting to be sent", "in match", "in settle"] {
            let class = class(what, &latency);
            let colour = class.split(' ').nth(1).expect("its own class");
            assert!(sheet.contains(&format!(".{colour} {{ --c:")), "{class}");
        }
    }

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
