//! What a metric says of a program by itself, and what all say together.

use super::diagnosis::Cause;

/// What was measured of a run, in the order of [`METRICS`](super::diagnosis::METRICS).
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Seen {
    /// Percent of the time that the consumer was on a core, and that it waited for one.
    pub(super) cpu: f64,
    pub(super) queued: f64,
    /// The consumer's voluntary switches of a second.
    pub(super) switches_per_s: f64,
    /// The producer's of a message.
    pub(super) producer_switches: f64,
    /// Percent of the slots that were taken.
    pub(super) occupancy: f64,
    pub(super) p99_ns: f64,
}

/// A consumer with less time to spare is busy.
const BUSY_PERCENT: f64 = 85.0;
/// One in 50 µs: at such a rate a wake-up (some 5 µs) is a tenth of the time.
const SWITCHES_PER_S: f64 = 20_000.0;
/// A producer that nobody holds up has none but its own sleeps.
const HELD_UP: f64 = 0.1;
const FULL_PERCENT: f64 = 50.0;
const LATE_NS: f64 = 200_000.0;

/// A way to judge: its name, and what it says.
pub(super) type Judge = (&'static str, fn(&Seen) -> Cause);

pub(super) const ALONE: [Judge; 4] = [
    ("consumer's CPU", |seen| {
        by(seen.cpu >= BUSY_PERCENT, Cause::Compute)
    }),
    ("voluntary switches", |seen| {
        by(seen.switches_per_s >= SWITCHES_PER_S, Cause::Parking)
    }),
    ("occupancy", |seen| {
        by(seen.occupancy >= FULL_PERCENT, Cause::Imbalance)
    }),
    ("latency p99", |seen| {
        by(seen.p99_ns >= LATE_NS, Cause::Convoy)
    }),
];
pub(super) const TOGETHER: Judge = ("all together", together);

fn by(is_high: bool, cause: Cause) -> Cause {
    if is_high { cause } else { Cause::None }
}

/// Each metric leaves out what the one before cannot tell from it.
fn together(seen: &Seen) -> Cause {
    // Time in the run queue is time in which it wanted to work.
    if seen.cpu + seen.queued >= BUSY_PERCENT && seen.switches_per_s < SWITCHES_PER_S {
        Cause::Compute
    } else if seen.producer_switches >= HELD_UP {
        // It never waits for room, and yet it was held up.
        Cause::Convoy
    } else if seen.occupancy >= FULL_PERCENT {
        // The consumer has time, and does not take what is there: it waits for something else.
        Cause::Imbalance
    } else {
        by(seen.switches_per_s >= SWITCHES_PER_S, Cause::Parking)
    }
}

impl Seen {
    /// # Panics
    /// If these are not the values of a run of the diagnosis.
    pub(super) fn of(values: &[f64]) -> Self {
        let &[
            cpu,
            queued,
            switches_per_s,
            producer_switches,
            occupancy,
            p99_ns,
        ] = values
        else {
            panic!("{} values of a run, not 6", values.len());
        };
        Self {
            cpu,
            queued,
            switches_per_s,
            producer_switches,
            occupancy,
            p99_ns,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDLE: Seen = Seen {
        cpu: 6.0,
        queued: 1.0,
        switches_per_s: 5_000.0,
        producer_switches: 0.0,
        occupancy: 0.0,
        p99_ns: 30_000.0,
    };

    #[test]
    fn all_together_tell_causes_apart_that_one_cannot() {
        let convoy = Seen {
            switches_per_s: 30_000.0,
            producer_switches: 0.8,
            p99_ns: 1e6,
            ..IDLE
        };
        let parking = Seen {
            switches_per_s: 33_000.0,
            ..IDLE
        };
        let imbalance = Seen {
            occupancy: 90.0,
            p99_ns: 1e7,
            ..IDLE
        };
        let compute = Seen {
            cpu: 95.0,
            switches_per_s: 900.0,
            occupancy: 60.0,
            p99_ns: 1e6,
            ..IDLE
        };
        let all = [
            (convoy, Cause::Convoy),
            (parking, Cause::Parking),
            (imbalance, Cause::Imbalance),
            (compute, Cause::Compute),
            (IDLE, Cause::None),
        ];
        for (seen, cause) in all {
            assert_eq!(together(&seen), cause, "{seen:?}");
        }
        // No metric alone is right about all of them.
        for (name, judge) in ALONE {
            let right = all.iter().filter(|(seen, cause)| judge(seen) == *cause);
            assert!(right.count() < all.len(), "{name}");
        }
    }
}
