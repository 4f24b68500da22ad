//! The time that the exchange is told: milliseconds since 1970, never less than before.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Follows the system's clock, and goes on by itself where that goes back.
#[derive(Debug)]
pub(crate) struct WallClock {
    told: Duration,
    at: Instant,
}

impl WallClock {
    pub(crate) fn new(wall: SystemTime, now: Instant) -> Self {
        Self {
            told: since_1970(wall),
            at: now,
        }
    }

    /// The time to tell when the system's clock says `wall`: that, or where it would be less than
    /// what was told plus what has passed since, as far as it went back, that sum. So the time
    /// that is told neither stands still nor goes back; it runs ahead until the system has caught
    /// up.
    pub(crate) fn tell(&mut self, wall: SystemTime, now: Instant) -> i64 {
        let passed = now.saturating_duration_since(self.at);
        let alone = self.told + passed;
        let wall = since_1970(wall);
        // A clock that is slewed is a little behind all the time, and is followed; one that went
        // back by more than half of what passed is not.
        let is_back = wall < self.told + passed / 2;
        self.told = if is_back { alone } else { wall };
        self.at = now;
        i64::try_from(self.told.as_millis()).unwrap_or(i64::MAX)
    }
}

fn since_1970(wall: SystemTime) -> Duration {
    wall.duration_since(UNIX_EPOCH).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_jumps_back_does_not_turn_the_time_back() {
        let now = Instant::now();
        let at = |s: u64| UNIX_EPOCH + Duration::from_secs(s);
        let mut clock = WallClock::new(at(1_000), now);
        let mut tell = |wall, passed| clock.tell(at(wall), now + Duration::from_secs(passed));
        assert_eq!(tell(1_001, 1), 1_001_000);
        // Back by ten minutes: it goes on by itself.
        assert_eq!(tell(402, 2), 1_002_000);
        assert_eq!(tell(403, 3), 1_003_000);
        // The system is right again, or ahead.
        assert_eq!(tell(1_004, 4), 1_004_000);
        assert_eq!(tell(9_000, 5), 9_000_000);
        // Before 1970.
        let before = UNIX_EPOCH - Duration::from_secs(5);
        assert_eq!(clock.tell(before, now + Duration::from_secs(6)), 9_001_000);
    }

    #[test]
    fn a_clock_that_runs_a_little_slow_is_followed() {
        let now = Instant::now();
        let at = |ms: u64| UNIX_EPOCH + Duration::from_millis(ms);
        let mut clock = WallClock::new(at(0), now);
        assert_eq!(clock.tell(at(990), now + Duration::from_secs(1)), 990);
        assert_eq!(clock.tell(at(1_980), now + Duration::from_secs(2)), 1_980);
    }
}
