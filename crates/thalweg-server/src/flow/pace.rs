//! When the events of a flow are executed.

use std::time::{Duration, Instant};

/// The speed of a flow, and where it begins.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pace {
    /// How many times as fast as recorded; `None` for as fast as the exchange takes it.
    pub speed: Option<f64>,
    /// The events before this one are executed at once.
    pub from: u64,
}

impl Pace {
    /// Returns when an event is due. `origin` is an event with its time, and when it was executed.
    pub(crate) fn due(self, event: u64, due_ns: u64, origin: (u64, Instant)) -> Option<Instant> {
        let speed = self.speed.filter(|_| event >= self.from)?;
        let after_ns = due_ns.saturating_sub(origin.0) as f64 / speed;
        // Beyond a century it waits for the end of the server.
        let after = Duration::from_nanos(after_ns.min(3e18) as u64);
        Some(origin.1 + after)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_due_by_speed_and_at_once_before_the_first_that_is_wanted() {
        let now = Instant::now();
        let due = |speed, from, due_ns| {
            let due = Pace { speed, from }.due(7, due_ns, (1_000, now));
            due.map(|due| due.duration_since(now).as_nanos())
        };
        assert_eq!(due(Some(1.0), 0, 3_000), Some(2_000));
        assert_eq!(due(Some(10.0), 7, 3_000), Some(200));
        assert_eq!(due(Some(0.5), 7, 3_000), Some(4_000));
        assert_eq!(due(Some(1.0), 7, 500), Some(0));
        assert_eq!(due(Some(1.0), 8, 3_000), None);
        assert_eq!(due(None, 0, 3_000), None);
    }
}
