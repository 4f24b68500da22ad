//! Writes the facts of a run as one self-contained page of charts and tables, without external
//! resources.

mod charts;
mod parts;
mod tables;
mod timeline;

use super::facts::Facts;
use super::number::{grouped, rate};
use super::text;
use thalweg_measure::svg::{self, escape, section};
use thalweg_measure::table::Nanoseconds;

/// Returns the page.
pub(crate) fn page(facts: &Facts) -> String {
    let title = format!("thalweg: {}", facts.input.name);
    let body = [
        head(facts),
        section("Where the time goes", &parts::bars(&facts.latency)),
        section("The run over time", &timeline::charts(&facts.latency)),
        section("Latency by percentile", &charts::curves(&facts.latency)),
        section("Times", &tables::times(&facts.latency)),
        facts.parts.as_ref().map_or_else(String::new, |parts| {
            section("Cost of a command", &tables::parts(parts))
        }),
        section("Slowest commands", &tables::slowest(&facts.latency)),
        section("Commands and results", &tables::commands(facts)),
        facts.check.as_ref().map_or_else(String::new, |check| {
            section(
                &format!("Agreement with {}", check.against),
                &tables::check(check),
            )
        }),
        facts
            .books
            .iter()
            .map(|book| {
                section(
                    &format!("Book of symbol {}", book.symbol),
                    &tables::book(book),
                )
            })
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::facts::sample::facts;

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
            "Cost of a command",
            "<td>match</td><td>30.2 ns</td><td>50.42 %</td>",
            "without the pipeline",
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
        facts.parts = None;
        facts.latency.slowest.clear();
        facts.latency.throughput.finished.clear();
        facts.latency.stages.clear();
        facts.latency.breakdowns.clear();
        facts.latency.end_to_end.curve.clear();
        let page = page(&facts);
        for part in [
            "Agreement",
            "Cost of a command",
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
}
