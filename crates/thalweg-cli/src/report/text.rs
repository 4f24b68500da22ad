//! Writes the facts of a run as text.

use crate::message::{grouped, percent, plural, rate};
use crate::report::explanation;
use crate::report::facts::{
    BookDepth, Check, DepthLevel, Distribution, Facts, Journal, Latency, Slow,
};
use std::fmt::{self, Write};
use thalweg_measure::table::{Cell, Nanoseconds, Table};

/// Writes all facts of a run. `bold` wraps headings, if the reader sees colours.
pub(crate) fn write(facts: &Facts, bold: bool, out: &mut dyn Write) -> fmt::Result {
    let heading = |out: &mut dyn Write, title: &str| match bold {
        true => writeln!(out, "\n\x1b[1m{title}\x1b[0m"),
        false => writeln!(out, "\n{title}"),
    };
    top(facts, bold, out)?;
    input(facts, out)?;
    heading(out, "Commands")?;
    commands(facts, out)?;
    for shown in &facts.books {
        heading(out, &format!("Book of symbol {}", shown.symbol))?;
        book(shown, out)?;
    }
    if let Some(found) = &facts.check {
        heading(out, &format!("Agreement with {}", found.against))?;
        check(found, out)?;
    }
    heading(out, "Latency")?;
    latency(&facts.latency, out)?;
    // The most important lines are repeated at the end, which a terminal shows last.
    match explanation::missed_rate(&facts.input, &facts.latency) {
        Some(missed) => heading(out, &capital(&missed)),
        None => Ok(()),
    }
}

/// Writes the summary of the run, before all figures.
fn top(facts: &Facts, bold: bool, out: &mut dyn Write) -> fmt::Result {
    if let Some(found) = &facts.explanation {
        match bold {
            true => writeln!(out, "\x1b[1m{}\x1b[0m", found.sentence)?,
            false => writeln!(out, "{}", found.sentence)?,
        }
    }
    for line in below(facts) {
        writeln!(out, "{line}")?;
    }
    writeln!(out)
}

/// Returns the sentences below the summary, each without its full stop.
pub(super) fn below(facts: &Facts) -> Vec<String> {
    let missed = explanation::missed_rate(&facts.input, &facts.latency);
    let disturbed = facts.machine.disturbance.line();
    let placement = explanation::placement(&facts.latency);
    let lines = missed.into_iter().chain(placement).chain([disturbed]);
    lines.map(|line| capital(&line)).collect()
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

fn input(facts: &Facts, out: &mut dyn Write) -> fmt::Result {
    let input = &facts.input;
    write!(out, "{} ({}", input.name, input.format)?;
    if let Some(seed) = input.seed {
        write!(out, ", seed {seed}")?;
    }
    let pace = input
        .rate_per_s
        .map_or("as fast as it goes".to_owned(), |r| rate(r as f64));
    writeln!(
        out,
        "), rules {}, placement {}, {pace}",
        input.rules, input.placement
    )?;
    writeln!(out, "{}", facts.machine.line())?;
    writeln!(out, "state hash {}", facts.state_hash)?;
    facts
        .journal
        .as_ref()
        .map_or(Ok(()), |found| journal(found, out))
}

fn journal(journal: &Journal, out: &mut dyn Write) -> fmt::Result {
    write!(
        out,
        "journal {}: {} command{} ({} of them before), sync {}",
        journal.directory,
        grouped(journal.commands),
        plural(journal.commands),
        grouped(journal.commands_before),
        journal.sync
    )?;
    if let (Some(took), Some(group)) = (&journal.commit, journal.commands_per_commit) {
        write!(
            out,
            "; {} commit{} of {group:.1} commands, median {}",
            grouped(journal.commits),
            plural(journal.commits),
            Nanoseconds(took.summary.p50 as f64)
        )?;
    }
    writeln!(
        out,
        "\n  digest {}, state hash of its snapshot {}",
        journal.digest, journal.state_hash
    )?;
    match &journal.snapshot_failed {
        Some(failed) => writeln!(out, "  {failed}"),
        None => Ok(()),
    }
}

fn commands(facts: &Facts, out: &mut dyn Write) -> fmt::Result {
    let commands = &facts.commands;
    let list = |counts: &[crate::report::facts::Count]| {
        let items = counts
            .iter()
            .map(|c| format!("{} {}", c.name, grouped(c.count)));
        items.collect::<Vec<_>>().join(", ")
    };
    writeln!(
        out,
        "  {} command{}: {}",
        grouped(commands.total),
        plural(commands.total),
        list(&commands.by_kind)
    )?;
    writeln!(out, "  results: {}", list(&commands.by_result))?;
    let trades = facts.trades;
    writeln!(
        out,
        "  {} trade{}, {} lot{}",
        grouped(trades.count),
        plural(trades.count),
        grouped(trades.volume_lots),
        plural(trades.volume_lots)
    )
}

fn book(book: &BookDepth, out: &mut dyn Write) -> fmt::Result {
    let rows = book.bids.len().max(book.asks.len());
    if rows == 0 {
        return writeln!(out, "  empty");
    }
    writeln!(
        out,
        "  {:>8} {:>16} {:>12}   {:<12} {:<16} orders",
        "orders", "lots", "bid", "ask", "lots"
    )?;
    let cell = |levels: &[DepthLevel], i: usize| {
        levels.get(i).map_or_else(Default::default, |l| {
            (
                grouped(l.orders),
                grouped(l.size_lots),
                grouped(l.price_ticks),
            )
        })
    };
    for i in 0..rows {
        let (orders, size, price) = cell(&book.bids, i);
        let left = format!("{orders:>8} {size:>16} {price:>12}");
        let (orders, size, price) = cell(&book.asks, i);
        let both = format!("  {left}   {price:<12} {size:<16} {orders}");
        writeln!(out, "{}", both.trim_end())?;
    }
    writeln!(
        out,
        "  {} bid level{}, {} ask level{}",
        grouped(book.bid_levels),
        plural(book.bid_levels),
        grouped(book.ask_levels),
        plural(book.ask_levels)
    )
}

fn check(check: &Check, out: &mut dyn Write) -> fmt::Result {
    for score in &check.scores {
        let of = format!("{} of {}", grouped(score.agree), grouped(score.of));
        writeln!(
            out,
            "  {of:>20}  {:>9}  {}",
            percent(score.part()),
            score.label
        )?;
    }
    for count in &check.counts {
        writeln!(
            out,
            "  {:>20}  {:>9}  {}",
            grouped(count.count),
            "",
            count.name.replace('_', " ")
        )?;
    }
    Ok(())
}

fn latency(latency: &Latency, out: &mut dyn Write) -> fmt::Result {
    writeln!(
        out,
        "  {} in {}",
        rate(latency.throughput_per_s),
        Nanoseconds(latency.elapsed_ns as f64)
    )?;
    let mut table = Table::new(["", "p50", "p90", "p99", "p99.9", "p99.99", "max", "mean"]);
    for (name, times) in rows(latency) {
        let cells = cells(times).into_iter().map(Cell::Number);
        table.row([name.into()].into_iter().chain(cells));
    }
    for line in table.to_string().lines() {
        writeln!(out, "  {line}")?;
    }
    writeln!(out, "  {}", sampling(latency))?;
    breakdowns(latency, out)?;
    stages(latency, out)?;
    slowest(latency, out)
}

/// Describes which commands a latency table covers.
pub(super) fn sampling(latency: &Latency) -> String {
    match latency.sampled_every {
        1 => "Times are of every command.".to_owned(),
        every => {
            format!("Times are of every command; what publishing served is of one in {every}.")
        }
    }
}

/// Returns the rows of a latency table: every part, and end to end. Parts that never took any time
/// are left out.
pub(super) fn rows(latency: &Latency) -> Vec<(String, &Distribution)> {
    let mut rows = Vec::new();
    for stage in &latency.stages {
        let name = match stage.part_of {
            Some(_) => format!("  {}", stage.name),
            None => stage.name.clone(),
        };
        for (what, times) in [("waited", &stage.waited), ("served", &stage.served)] {
            let times = times.as_ref().filter(|times| times.summary.max > 0);
            rows.extend(times.map(|times| (format!("{name}, {what}"), times)));
        }
    }
    rows.push(("end to end".to_owned(), &latency.end_to_end));
    if let Some(first) = &latency.warm_up {
        rows.push((format!("  first {}", grouped(first.summary.count)), first));
    }
    rows
}

/// Returns the cells of a latency table: the percentiles, empty where there are too few times, max
/// and mean.
pub(super) fn cells(times: &Distribution) -> Vec<String> {
    let percentiles = times.percentiles().into_iter();
    let shown = |ns: Option<f64>| ns.map_or_else(String::new, |ns| Nanoseconds(ns).to_string());
    let mean = (times.summary.mean * 10.0).round() / 10.0;
    percentiles
        .map(|(_, _, ns)| ns.map(|ns| ns as f64))
        .chain([Some(times.summary.max as f64), Some(mean)])
        .map(shown)
        .collect()
}

/// Writes the parts that commands around each percentile spent their time on.
fn breakdowns(latency: &Latency, out: &mut dyn Write) -> fmt::Result {
    for found in &latency.breakdowns {
        let whole = found.end_to_end_ns.max(1e-9);
        let mut parts: Vec<_> = found.parts.iter().collect();
        parts.sort_by(|a, b| b.ns.total_cmp(&a.ns));
        let parts = parts.iter().map(|part| (&part.what, part.ns / whole));
        // Shares that round to zero are left out.
        let parts = parts.filter(|(_, share)| *share >= 0.005);
        let parts: Vec<_> = parts
            .map(|(what, share)| format!("{:.0} % {what}", share * 100.0))
            .collect();
        writeln!(out, "  around the {}: {}", found.of, parts.join(", "))?;
    }
    Ok(())
}

/// Returns the parts of a slow command that make up most of its time.
pub(super) fn most(slow: &Slow) -> String {
    let most = slow.most();
    let parts = most
        .iter()
        .map(|part| format!("{} {}", Nanoseconds(part.ns as f64), part.what));
    parts.collect::<Vec<_>>().join(", ")
}

fn stages(latency: &Latency, out: &mut dyn Write) -> fmt::Result {
    for stage in &latency.stages {
        let mut parts = Vec::new();
        if let Some(part) = stage.utilisation {
            parts.push(format!("busy {}", percent(part)));
        }
        if let Some(b) = stage.batches {
            parts.push(format!(
                "batches of a sampled command: mean {:.1}, p50 {}, p99 {}, max {}",
                b.mean,
                grouped(b.p50),
                grouped(b.p99),
                grouped(b.max)
            ));
        }
        if !parts.is_empty() {
            writeln!(out, "  {}: {}", stage.name, parts.join("; "))?;
        }
    }
    Ok(())
}

fn slowest(latency: &Latency, out: &mut dyn Write) -> fmt::Result {
    if latency.slowest.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "  slowest of all, from when they were {}:",
        latency.counted_from()
    )?;
    for slow in &latency.slowest {
        writeln!(
            out,
            "    command {} ({}): {}, of that {}",
            grouped(slow.command),
            slow.kind,
            Nanoseconds(slow.end_to_end_ns as f64),
            most(slow)
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::facts;

    #[test]
    fn every_fact_is_there() {
        let mut out = String::new();
        write(&facts(), false, &mut out).unwrap();
        for part in [
            "orders.csv (orders, seed 7), rules default, placement threads:2, 125.0 k/s",
            "state hash 00000000000000ff",
            "1,000 commands: place 600, cancel 400",
            "results: SUCCESS 990, RISK_NSF 10",
            "123 trades, 4,567 lots",
            "Book of symbol 1",
            "999 of 1,000",
            "99.90 %",
            "  execute, waited ",
            "  execute, served ",
            "    match, served ",
            "end to end",
            "what publishing served is of one in 32.\n",
            "execute: busy 25.00 %; batches of a sampled command: mean 10.0, p50 9, p99 64, max 64",
            "command 77 (place): 1.00 ms, of that 940 µs waiting for execute, 59.0 µs in match",
        ] {
            assert!(out.contains(part), "{part} is not in\n{out}");
        }
        assert!(!out.contains('\x1b'));
        let top = "96 % of the p99 is <waiting>.\n\
                   The rate of 125.0 k/s was not reached: 125.0 k/s (100 %)\n\
                   The machine was quiet: an idle loop before and after saw no gap above 10 µs\n\n";
        assert!(out.starts_with(top), "{out}");
        for part in [
            "Abacus 9000, 2 usable cores; thalweg 0.1.0; 2026-11-23 05:40 UTC",
            "around the p99: 96 % waiting to be sent, 3 % in match, 1 % waiting for execute",
            "  first 1,000 ",
        ] {
            assert!(out.contains(part), "{part} is not in\n{out}");
        }
        // Only one of 1,000 commands is beyond the p99.9, which is too few for a percentile.
        let end_to_end = out
            .lines()
            .find(|line| line.trim_start().starts_with("end to end"));
        let end_to_end = end_to_end.expect("it was just there");
        assert!(
            !end_to_end.contains("12.0 µs") && end_to_end.contains("3.00 µs"),
            "{end_to_end}"
        );
        assert!(
            !out.contains("match, waited"),
            "what was not measured is left out"
        );
    }

    #[test]
    fn a_part_that_took_no_time_has_no_row() {
        let mut facts = facts();
        let mut none = Distribution::default();
        none.summary.count = 1_000;
        facts.latency.stages[1].waited = Some(none);
        let mut out = String::new();
        write(&facts, false, &mut out).unwrap();
        assert!(
            out.contains("match, served") && !out.contains("match, waited"),
            "{out}"
        );
    }

    #[test]
    fn headings_stand_out_only_where_colours_are_seen() {
        let mut out = String::new();
        write(&facts(), true, &mut out).unwrap();
        assert!(out.contains("\x1b[1mLatency\x1b[0m"));
    }
}
