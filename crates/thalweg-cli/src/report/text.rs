//! The facts of a run as text.

use super::facts::{Book, Check, Distribution, Facts, Latency, Level, Parts, Stage};
use super::number::{grouped, percent, rate, span};
use crate::failure::plural;
use std::fmt::{self, Write};

/// Writes everything a run has to say. `bold` wraps headings, if the reader sees colours.
pub(crate) fn write(facts: &Facts, bold: bool, out: &mut dyn Write) -> fmt::Result {
    let heading = |out: &mut dyn Write, title: &str| match bold {
        true => writeln!(out, "\n\x1b[1m{title}\x1b[0m"),
        false => writeln!(out, "\n{title}"),
    };
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
    if let Some(found) = &facts.parts {
        heading(out, "Cost of a command")?;
        parts(found, out)?;
    }
    Ok(())
}

fn parts(parts: &Parts, out: &mut dyn Write) -> fmt::Result {
    for (name, ns) in parts.rows() {
        writeln!(out, "  {name:<22} {ns:>6.1} ns")?;
    }
    writeln!(out, "  {}", parts.caption())
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
    writeln!(out, "state hash {}", facts.state_hash)
}

fn commands(facts: &Facts, out: &mut dyn Write) -> fmt::Result {
    let commands = &facts.commands;
    let list = |counts: &[super::facts::Count]| {
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

fn book(book: &Book, out: &mut dyn Write) -> fmt::Result {
    let rows = book.bids.len().max(book.asks.len());
    if rows == 0 {
        return writeln!(out, "  empty");
    }
    writeln!(
        out,
        "  {:>8} {:>16} {:>12}   {:<12} {:<16} orders",
        "orders", "lots", "bid", "ask", "lots"
    )?;
    let cell = |levels: &[Level], i: usize| {
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
        span(latency.elapsed_ns as f64)
    )?;
    let columns = ["p50", "p90", "p99", "p99.9", "p99.99", "max", "mean"];
    write!(out, "  {:<22}", "")?;
    for column in columns {
        write!(out, " {column:>9}")?;
    }
    writeln!(out)?;
    for Stage {
        name,
        waited,
        served,
        ..
    } in &latency.stages
    {
        for (what, times) in [("waited", waited), ("served", served)] {
            if let Some(times) = times {
                line(&format!("{name}, {what}"), times, out)?;
            }
        }
    }
    line("end to end", &latency.end_to_end, out)?;
    stages(latency, out)?;
    slowest(latency, out)
}

fn line(name: &str, times: &Distribution, out: &mut dyn Write) -> fmt::Result {
    write!(out, "  {name:<22}")?;
    for ns in quantiles(times) {
        write!(out, " {:>9}", span(ns))?;
    }
    writeln!(out)
}

/// The columns of a latency table: p50, p90, p99, p99.9, p99.99, max and mean.
pub(super) fn quantiles(times: &Distribution) -> [f64; 7] {
    let t = times;
    let quantiles = [
        t.p50_ns,
        t.p90_ns,
        t.p99_ns,
        t.p99_9_ns,
        t.p99_99_ns,
        t.max_ns,
    ];
    let [p50, p90, p99, p999, p9999, max] = quantiles.map(|ns| ns as f64);
    [
        p50,
        p90,
        p99,
        p999,
        p9999,
        max,
        (t.mean_ns * 10.0).round() / 10.0,
    ]
}

fn stages(latency: &Latency, out: &mut dyn Write) -> fmt::Result {
    for stage in &latency.stages {
        let mut parts = Vec::new();
        if let Some(part) = stage.utilisation {
            parts.push(format!("busy {}", percent(part)));
        }
        if let Some(b) = stage.batches {
            parts.push(format!(
                "{} batches, mean {:.1}, p50 {}, p99 {}, max {}",
                grouped(b.count),
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
    writeln!(out, "  slowest of all, from when they were due:")?;
    for slow in &latency.slowest {
        let most = slow.most();
        let parts = most
            .iter()
            .map(|part| format!("{} {}", span(part.ns as f64), part.what));
        writeln!(
            out,
            "    command {} ({}): {}, of that {}",
            grouped(slow.command),
            slow.kind,
            span(slow.end_to_end_ns as f64),
            parts.collect::<Vec<_>>().join(", ")
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::facts::sample::facts;

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
            "risk, waited",
            "risk, served",
            "end to end",
            "risk: busy 25.00 %; 100 batches, mean 10.0, p50 9, p99 64, max 64",
            "command 77 (place): 1.00 ms, of that 940 µs waiting for match, 59.0 µs in match",
            "Cost of a command\n  risk                     20.5 ns\n",
            "together                 60.0 ns\n  means over 990 commands on one thread",
        ] {
            assert!(out.contains(part), "{part} is not in\n{out}");
        }
        assert!(!out.contains('\x1b'));
        assert!(
            !out.contains("match, waited"),
            "what was not measured is left out"
        );
    }

    #[test]
    fn headings_stand_out_only_where_colours_are_seen() {
        let mut out = String::new();
        write(&facts(), true, &mut out).unwrap();
        assert!(out.contains("\x1b[1mLatency\x1b[0m"));
    }
}
