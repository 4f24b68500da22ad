//! Explains the costs of a machine for a program whose threads wait for each other.

use super::{Cost, Machine};
use thalweg_measure::table::Nanoseconds;

/// Returns three or four sentences with figures, preceded by a warning if the figures are
/// unreliable.
pub(super) fn of(machine: &Machine) -> Vec<String> {
    let sentences = [
        caveat(machine),
        spinning(machine),
        placement(machine),
        sharing(machine),
        pausing(machine),
    ];
    sentences.into_iter().flatten().collect()
}

fn caveat(machine: &Machine) -> Option<String> {
    let percent = machine.disturbed_percent()?;
    Some(format!(
        "Do not go by what follows before you have measured again while nothing else runs: others \
         took {percent:.0} % of the cores, and every figure here is too high."
    ))
}

/// Explains how long to spin before sleeping.
fn spinning(machine: &Machine) -> Option<String> {
    if machine.cores.len() < 2 {
        return Some(
            "There is one core: a thread that spins keeps the one it waits for from running, so \
             park, and do not spin."
                .to_owned(),
        );
    }
    let (wake, waker) = (machine.cost(Cost::Wake50)?, machine.cost(Cost::Waker)?);
    let (pause, later) = (machine.cost(Cost::Pause)?, machine.cost(Cost::Wake1000)?);
    Some(format!(
        "Waking a thread takes {} until it runs, and costs its waker {}: spin for up to {} ({:.0} \
         pauses) where a core is free, then sleep, and no wait costs more than twice the best. One \
         that slept for 1 ms needs {}.",
        Nanoseconds(wake),
        Nanoseconds(waker),
        Nanoseconds(wake),
        wake / pause.max(0.1),
        Nanoseconds(later),
    ))
}

/// Explains which work belongs on a core of its own.
fn placement(machine: &Machine) -> Option<String> {
    let hand_off = machine.cost(Cost::HandOff)?;
    let by_value = |x: &&super::Pair, y: &&super::Pair| x.figure.value.total_cmp(&y.figure.value);
    let near = machine.pairs.iter().min_by(by_value)?;
    let far = machine.pairs.iter().max_by(by_value)?;
    let spread = if far.figure.value > near.figure.value * 1.5 {
        format!(
            " Cores {} and {} are {} apart, cores {} and {} {}: keep stages that follow each other \
             on near ones.",
            near.from,
            near.to,
            Nanoseconds(near.figure.value),
            far.from,
            far.to,
            Nanoseconds(far.figure.value),
        )
    } else {
        String::new()
    };
    Some(format!(
        "A cache line takes {} to another core: a stage that works for less than some {} on an \
         event is better on the thread of the stage before it, or takes events in batches.{spread}",
        Nanoseconds(hand_off),
        Nanoseconds(2.0 * hand_off),
    ))
}

/// Explains the cost for threads that share a core.
fn sharing(machine: &Machine) -> Option<String> {
    let (futex, large) = (machine.cost(Cost::Switch0)?, machine.cost(Cost::Switch1M)?);
    let yielding = machine.cost(Cost::YieldPeer)?;
    let advice = if yielding > 3.0 * futex {
        "sleep rather than yield there"
    } else if futex > 3.0 * yielding {
        "yield once there before sleeping"
    } else {
        "either will do there"
    };
    Some(format!(
        "Threads that share a core hand it over in {} by sleeping ({} more with 1 MB in use each) \
         and in {} by yielding: {advice}.",
        Nanoseconds(futex),
        Nanoseconds((large - futex).max(0.0)),
        Nanoseconds(yielding),
    ))
}

/// Explains the use of timed sleeps, and the cost of a synced write.
fn pausing(machine: &Machine) -> Option<String> {
    let (late, sync) = (machine.cost(Cost::Slack)?, machine.cost(Cost::DiskSync)?);
    let disk = if machine.is_memory {
        "the directory is in memory, so nothing is known of a disk (--dir names another)".to_owned()
    } else {
        format!(
            "a synced write takes {}, so one that acknowledges each event by itself handles {:.0} \
             a second",
            Nanoseconds(sync),
            1e9 / sync.max(1.0),
        )
    };
    Some(format!(
        "A sleep of 100 µs ends {} late, so polling by sleeping reacts no sooner; {disk}.",
        Nanoseconds(late),
    ))
}
