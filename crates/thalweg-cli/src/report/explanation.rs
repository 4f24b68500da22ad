//! Explains in one sentence where the tail latency of a run comes from.

use crate::message::rate;
use crate::report::facts::{Breakdown, Explanation, Input, Latency, Part};
use thalweg_measure::table::Nanoseconds;

/// A part of at least this share is named alone.
const ALONE: f64 = 0.5;
/// The number of parts that are named otherwise.
const TOGETHER: usize = 3;

/// Explains the p99, or the highest percentile below it that has enough times.
pub(crate) fn explain(input: &Input, latency: &Latency) -> Option<Explanation> {
    let percentiles = latency.end_to_end.known().take(3);
    let explained = percentiles.filter_map(|(name, ns)| {
        let mut breakdowns = latency.breakdowns.iter();
        Some((ns, breakdowns.find(|found| found.of == name)?))
    });
    let (ns, breakdown) = explained.last()?;
    let parts = largest(breakdown);
    let (most, share) = *parts.first()?;
    let of = &breakdown.of;
    let whole = Nanoseconds(ns as f64);
    let sentence = if share >= ALONE {
        let why = why(most, input, latency);
        format!(
            "{} of the {of} ({whole}) is {}{why}.",
            percent(share),
            most.what
        )
    } else {
        let named = parts.iter().take(TOGETHER);
        let named: Vec<_> = named
            .map(|(part, share)| format!("{} {}", percent(*share), part.what))
            .collect();
        format!(
            "The {of} ({whole}) has no single cause: {}.",
            named.join(", ")
        )
    };
    Some(Explanation {
        sentence,
        percentile: of.clone(),
        end_to_end_ns: ns,
        most: most.what.clone(),
        share,
    })
}

/// Returns the parts with their shares, the largest first.
fn largest(breakdown: &Breakdown) -> Vec<(&Part, f64)> {
    let whole = breakdown.end_to_end_ns.max(1e-9);
    let parts = breakdown.parts.iter();
    let mut parts: Vec<_> = parts.map(|part| (part, part.ns / whole)).collect();
    parts.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    parts
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// Returns the known reason for the largest part.
fn why(most: &Part, input: &Input, latency: &Latency) -> String {
    if most.what == "waiting to be sent" {
        return publish_delay(input, latency);
    }
    if let Some(stage) = most.what.strip_prefix("waiting for ") {
        let stage = latency.stages.iter().find(|s| s.name == stage);
        return match stage.and_then(|stage| stage.utilisation).unwrap_or(0.0) {
            busy if busy >= 0.01 => format!(", which is busy {} of the time", percent(busy)),
            _ => String::new(),
        };
    }
    String::new()
}

fn publish_delay(input: &Input, latency: &Latency) -> String {
    let reached = rate(latency.throughput_per_s);
    match (input.rate_per_s, latency.rate_reached) {
        (Some(asked), Some(false)) => {
            let asked = rate(asked as f64);
            format!(": the engine was asked for {asked} and reached {reached}")
        }
        (Some(_), _) => {
            let mut stages = latency.stages.iter();
            let late = stages.find(|stage| stage.name == "send");
            let late = late.and_then(|stage| stage.waited.as_ref());
            let late = late.map_or(0, |times| times.summary.max);
            format!(
                ": the rate was reached, but the sender was held up and late by up to {}",
                Nanoseconds(late as f64)
            )
        }
        (None, _) => {
            let busiest = latency
                .stages
                .iter()
                .filter_map(|stage| Some((&stage.name, stage.utilisation?)))
                .max_by(|(_, a), (_, b)| a.total_cmp(b));
            let busiest = busiest.map_or_else(String::new, |(name, busy)| {
                format!(
                    "; the busiest stage is {name}, {} of the time",
                    percent(busy)
                )
            });
            format!(": without a rate the sender waits for a free slot{busiest}")
        }
    }
}

/// Returns one line about what the automatic placement did; `None` for other placements.
pub(crate) fn placement(latency: &Latency) -> Option<String> {
    let changes = latency.placement_changes.as_ref()?;
    let count = latency.placement_change_count.unwrap_or(0);
    if changes.is_empty() {
        return Some("auto kept all stages on the sender's thread".to_owned());
    }
    let shown = changes.iter().take(3).map(|change| {
        let at = format!(
            "after {} (command {})",
            Nanoseconds(change.at_ns as f64),
            crate::message::grouped(change.commands)
        );
        match change.worker.as_slice() {
            [] => format!("{at} it took all stages back"),
            worker => format!("{at} it moved {} to a second thread", worker.join(", ")),
        }
    });
    let shown: Vec<_> = shown.collect();
    let more = match count.saturating_sub(3) {
        0 => String::new(),
        1 => "; then it moved stages once more".to_owned(),
        more => format!("; then it moved stages {more} more times"),
    };
    Some(format!(
        "auto began on the sender's thread; {}{more}",
        shown.join("; ")
    ))
}

/// Returns a message that a rate was not reached; `None` where it was, or where none was asked for.
pub(crate) fn missed_rate(input: &Input, latency: &Latency) -> Option<String> {
    let asked = input
        .rate_per_s
        .filter(|_| latency.rate_reached == Some(false))?;
    Some(format!(
        "the rate of {} was not reached: {} ({})",
        rate(asked as f64),
        rate(latency.throughput_per_s),
        percent(latency.throughput_per_s / asked as f64)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::facts::{Facts, HandOver};
    use crate::report::tests::facts;

    fn sentence(change: impl FnOnce(&mut Facts)) -> String {
        let mut facts = facts();
        change(&mut facts);
        let found = explain(&facts.input, &facts.latency).expect("there are enough commands");
        found.sentence
    }

    /// Makes the p99 consist of these parts.
    fn tail(facts: &mut Facts, parts: &[(&str, f64)]) {
        let tail = facts.latency.breakdowns.last_mut().expect("it has a p99");
        tail.end_to_end_ns = parts.iter().map(|(_, ns)| ns).sum();
        let part = |&(what, ns): &(&str, f64)| Part {
            what: what.to_owned(),
            ns,
        };
        tail.parts = parts.iter().map(part).collect();
    }

    #[test]
    fn a_rate_that_was_not_reached_is_the_reason_for_waiting_to_be_sent() {
        let text = sentence(|facts| {
            facts.input.rate_per_s = Some(20_000_000);
            facts.latency.throughput_per_s = 5_500_000.0;
        });
        assert_eq!(
            text,
            "96 % of the p99 (3.00 µs) is waiting to be sent: the engine was asked for 20.00 M/s \
             and reached 5.50 M/s."
        );
    }

    #[test]
    fn a_sender_that_was_held_up_is_reported_though_the_rate_was_reached() {
        let text = sentence(|facts| {
            let mut sender = facts.latency.stages[0].clone();
            sender.name = "send".into();
            facts.latency.stages.insert(0, sender);
            facts.latency.rate_reached = Some(true);
        });
        assert!(
            text.ends_with(
                "is waiting to be sent: the rate was reached, but the sender was held up and late \
                 by up to 10.8 µs."
            ),
            "{text}"
        );
    }

    #[test]
    fn without_a_rate_the_sender_waits_for_the_busiest_stage() {
        let text = sentence(|facts| {
            facts.input.rate_per_s = None;
            facts.latency.rate_reached = None;
        });
        assert!(
            text.ends_with(
                ": without a rate the sender waits for a free slot; the busiest stage is execute, \
                 25 % of the time."
            ),
            "{text}"
        );
    }

    #[test]
    fn the_stage_that_was_waited_for_and_how_busy_it_was_is_reported() {
        let text = sentence(|facts| {
            tail(
                facts,
                &[("waiting for execute", 800.0), ("in match", 200.0)],
            );
        });
        let expected = "80 % of the p99 (3.00 µs) is waiting for execute, which is busy 25 % of \
                        the time.";
        assert_eq!(text, expected);
    }

    #[test]
    fn a_stage_that_takes_long_is_reported() {
        let text = sentence(|facts| {
            tail(facts, &[("waiting for execute", 10.0), ("in match", 990.0)]);
        });
        assert_eq!(text, "99 % of the p99 (3.00 µs) is in match.");
    }

    #[test]
    fn where_no_part_is_most_of_it_the_largest_are_reported() {
        let text = sentence(|facts| {
            let parts = [
                ("in risk", 200.0),
                ("in match", 400.0),
                ("in settle", 300.0),
            ];
            tail(facts, &[&parts[..], &[("in publish", 100.0)]].concat());
        });
        assert_eq!(
            text,
            "The p99 (3.00 µs) has no single cause: 40 % in match, 30 % in settle, 20 % in risk."
        );
    }

    #[test]
    fn of_few_commands_a_lower_percentile_is_explained_and_of_none_nothing() {
        let mut facts = facts();
        facts.latency.end_to_end.summary.count = 900;
        let found = explain(&facts.input, &facts.latency).expect("the p50 can be explained");
        assert_eq!((&found.percentile[..], found.end_to_end_ns), ("p50", 600));
        assert_eq!(found.sentence, "83 % of the p50 (600 ns) is in match.");
        facts.latency.end_to_end.summary.count = 0;
        assert_eq!(explain(&facts.input, &facts.latency), None);
    }

    #[test]
    fn a_missed_rate_is_reported_with_what_was_reached() {
        let facts = facts();
        let mut latency = facts.latency.clone();
        latency.throughput_per_s = 27_500.0;
        assert_eq!(
            missed_rate(&facts.input, &latency).as_deref(),
            Some("the rate of 125.0 k/s was not reached: 27.5 k/s (22 %)")
        );
        latency.rate_reached = Some(true);
        assert_eq!(missed_rate(&facts.input, &latency), None);
    }

    #[test]
    fn what_auto_chose_is_reported() {
        let mut latency = facts().latency;
        assert_eq!(placement(&latency), None, "it was not automatic");
        latency.placement_changes = Some(Vec::new());
        let kept = placement(&latency).expect("it was automatic");
        assert_eq!(kept, "auto kept all stages on the sender's thread");
        let switch = |at_ns, commands, worker: &[&str]| HandOver {
            at_ns,
            commands,
            worker: worker.iter().map(|&stage| stage.to_owned()).collect(),
        };
        latency.placement_changes = Some(vec![
            switch(52_000_000, 110_203, &["execute", "publish"]),
            switch(80_000_000, 150_000, &[]),
        ]);
        latency.placement_change_count = Some(5);
        assert_eq!(
            placement(&latency).as_deref(),
            Some(
                "auto began on the sender's thread; after 52.0 ms (command 110,203) it moved \
                 execute, publish to a second thread; after 80.0 ms (command 150,000) it took all \
                 stages back; then it moved stages 2 more times"
            )
        );
    }
}
