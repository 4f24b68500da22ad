//! The time of the exchange: milliseconds since 1970, never less than before.
//!
//! A clock that jumps ahead is not followed: its orders would expire, and no new ones with a last
//! time would be taken until that time has really come. Where the jump is right, an administrator
//! sets the exchange's time.

use std::fmt::Debug;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Where a server has the time from.
pub trait TimeSource: Debug + Send + 'static {
    /// Returns the wall clock's time, which may jump, and a monotonic time, which does not.
    fn now(&mut self) -> (SystemTime, Instant);
}

/// The system's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl TimeSource for SystemClock {
    fn now(&mut self) -> (SystemTime, Instant) {
        (SystemTime::now(), Instant::now())
    }
}

/// By how much the clock on the wall may be ahead of what has passed to be followed.
pub(crate) const AHEAD_MAX: Duration = Duration::from_secs(60);
/// The bound of that at a start, where the server may have been stopped for as long.
pub(crate) const STOPPED_MAX: Duration = Duration::from_secs(31 * 24 * 3600);

/// Follows the clock on the wall, and goes on by itself where that goes back or jumps ahead.
#[derive(Debug)]
pub(crate) struct WallClock<T> {
    source: T,
    time: Duration,
    at: Instant,
    is_ahead: bool,
}

impl<T: TimeSource> WallClock<T> {
    /// Goes on from the last time of the exchange, if there is one, where the wall is behind that,
    /// or ahead by more than this.
    pub(crate) fn new(mut source: T, before_ms: Option<i64>, ahead_max: Duration) -> Self {
        let (wall, at) = source.now();
        let before = Duration::from_millis(before_ms.unwrap_or(0).max(0).cast_unsigned());
        let behind = before.saturating_sub(since_1970(wall));
        if behind > Duration::from_secs(1) {
            tracing::warn!(
                behind_ms = behind.as_millis() as u64,
                "the clock is behind the exchange's time, which goes on by itself"
            );
        }
        let ahead = since_1970(wall).saturating_sub(before);
        let is_ahead = before_ms.is_some() && ahead > ahead_max;
        if is_ahead {
            warn_ahead(ahead);
        }
        let time = match is_ahead {
            true => before,
            false => before.max(since_1970(wall)),
        };
        Self {
            source,
            time,
            at,
            is_ahead,
        }
    }

    /// Goes on from a time that an administrator has set.
    pub(crate) fn set(&mut self, time_ms: i64) {
        let time = Duration::from_millis(time_ms.max(0).cast_unsigned());
        self.time = self.time.max(time);
        (_, self.at) = self.source.now();
    }

    /// Returns the time: that of the wall, or where that would be less than the last time plus
    /// what has passed since, as far as it went back, that sum. So the exchange's time neither
    /// stands still nor goes back; it runs ahead until the wall has caught up.
    pub(crate) fn now(&mut self) -> i64 {
        let (wall, now) = self.source.now();
        let passed = now.saturating_duration_since(self.at);
        let wall = since_1970(wall);
        // A clock that is slewed is a little behind all the time, and is followed; one that went
        // back by more than half of what passed is not.
        let is_back = wall < self.time + passed / 2;
        let ahead = wall.saturating_sub(self.time + passed);
        let is_ahead = ahead > AHEAD_MAX;
        if is_ahead && !self.is_ahead {
            warn_ahead(ahead);
        }
        self.is_ahead = is_ahead;
        let goes_on = is_back || is_ahead;
        self.time = if goes_on { self.time + passed } else { wall };
        self.at = now;
        i64::try_from(self.time.as_millis()).unwrap_or(i64::MAX)
    }
}

fn warn_ahead(ahead: Duration) {
    tracing::error!(
        ahead_ms = ahead.as_millis() as u64,
        "the clock has jumped ahead, and the exchange's time goes on by itself: mend the clock, or \
         set the time as an administrator where it is right"
    );
}

fn since_1970(wall: SystemTime) -> Duration {
    wall.duration_since(UNIX_EPOCH).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The wall clock's time at each call, and the time since the beginning, in ms.
    #[derive(Debug)]
    struct Script(Instant, std::vec::IntoIter<(i64, u64)>);

    impl TimeSource for Script {
        fn now(&mut self) -> (SystemTime, Instant) {
            let (wall, passed) = self.1.next().expect("it is not asked more often");
            let since = Duration::from_millis(wall.unsigned_abs());
            let wall = match wall {
                0.. => UNIX_EPOCH + since,
                _ => UNIX_EPOCH - since,
            };
            (wall, self.0 + Duration::from_millis(passed))
        }
    }

    /// Returns the times of the exchange when the clock has these readings, one after the other.
    fn times_of(before: Option<i64>, readings: &[(i64, u64)]) -> Vec<i64> {
        let source = Script(Instant::now(), Vec::from(readings).into_iter());
        let mut clock = WallClock::new(source, before, STOPPED_MAX);
        (1..readings.len()).map(|_| clock.now()).collect()
    }

    #[test]
    fn a_clock_that_jumps_back_does_not_turn_the_time_back() {
        let readings = [
            (1_000_000, 0),
            (1_001_000, 1_000),
            // Back by ten minutes: it goes on by itself.
            (402_000, 2_000),
            (403_000, 3_000),
            // The wall is right again, or a little ahead; or before 1970.
            (1_004_000, 4_000),
            (1_064_000, 5_000),
            (-5_000, 6_000),
        ];
        let times = [1_001, 1_002, 1_003, 1_004, 1_064, 1_065].map(|s| s * 1_000);
        assert_eq!(times_of(None, &readings), times);
    }

    #[test]
    fn a_clock_that_jumps_ahead_is_not_followed_until_it_is_right_again() {
        let ten_years = 315_360_000_000;
        let readings = [
            (1_000_000, 0),
            (ten_years, 1_000),
            (ten_years + 1_500, 2_500),
            (1_003_500, 3_500),
            // At the bound, and one beyond.
            (1_064_500, 4_500),
            (1_125_501, 5_500),
        ];
        let times = [1_001_000, 1_002_500, 1_003_500, 1_064_500, 1_065_500];
        assert_eq!(times_of(None, &readings), times);
        // At a start it may have been stopped for a month, not for ten years.
        let month = 31 * 24 * 3_600_000;
        assert_eq!(
            times_of(Some(5_000), &[(5_000 + month, 0), (6_000 + month, 1_000)]),
            [6_000 + month]
        );
        assert_eq!(
            times_of(Some(5_000), &[(5_001 + month, 0), (6_001 + month, 1_000)]),
            [6_000]
        );
    }

    #[test]
    fn a_replica_that_takes_over_follows_no_clock_that_is_far_ahead() {
        // The last time was executed here 2 s ago.
        let time_after = |wall| {
            let source = Script(
                Instant::now(),
                vec![(wall, 0), (wall + 1_000, 1_000)].into_iter(),
            );
            let ahead_max = AHEAD_MAX + Duration::from_secs(2);
            WallClock::new(source, Some(5_000), ahead_max).now()
        };
        assert_eq!(time_after(67_000), 68_000);
        assert_eq!(time_after(67_001), 6_000);
    }

    #[test]
    fn a_time_that_an_administrator_has_set_is_gone_on_from() {
        let readings = [
            (1_000, 0),
            (9_000_000, 1_000),
            (9_000_000, 1_000),
            (9_002_000, 3_000),
        ];
        let mut clock = WallClock::new(
            Script(Instant::now(), Vec::from(readings).into_iter()),
            None,
            STOPPED_MAX,
        );
        assert_eq!(clock.now(), 2_000);
        clock.set(8_999_000);
        assert_eq!(clock.now(), 9_002_000);
        assert!(!clock.is_ahead);
    }

    #[test]
    fn a_clock_that_is_behind_at_the_start_goes_on_from_the_last_time() {
        let readings = [(1_000, 0), (1_250, 250), (1_500, 500), (9_800, 800)];
        assert_eq!(times_of(Some(9_000), &readings), [9_250, 9_500, 9_800]);
        assert_eq!(times_of(Some(-9_000), &readings[..2]), [1_250]);
    }

    #[test]
    fn a_clock_that_runs_a_little_slow_is_followed() {
        let readings = [(0, 0), (990, 1_000), (1_980, 2_000)];
        assert_eq!(times_of(None, &readings), [990, 1_980]);
    }
}
