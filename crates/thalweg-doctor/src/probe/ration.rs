//! When the events that cost by the piece may count.

/// What a record costs the program, in seconds. Of a wake 0.5 µs were measured, within the noise of
/// a ping-pong of two threads. A call costs less while only a few are looked at; with these, a
/// program of 2.7 million calls in a second comes out 2 to 7 % low.
const CALL_EACH_S: f64 = 0.4e-6;
const CALL_S: f64 = 0.2e-6;
const WAKE_S: f64 = 0.5e-6;
/// The part of a core that these records may cost.
const COST_SHARE: f64 = 0.03;
/// Where they cost less than this part of that, there is room for a look at each call.
const CALM: f64 = 0.25;
/// How long they count at least, at first, while a program starts, and later; and pause at most.
const ON_NS_FIRST: u64 = 10_000_000;
const ON_NS_MIN: u64 = 5_000_000;
const OFF_NS_MAX: u64 = 250_000_000;

/// Which of them count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pace {
    /// None.
    Paused,
    /// All but calls, of which a few are looked at.
    Few,
    /// All.
    Each,
}

/// Lets events count all the time while they are rare, and now and then while they are not.
#[derive(Debug)]
pub(crate) struct Ration {
    pace: Pace,
    since_ns: u64,
    off_ns: u64,
    cost_s: f64,
    first: Pace,
    has_paused: bool,
}

impl Ration {
    /// One that begins at this pace.
    pub(crate) fn new(now_ns: u64, first: Pace) -> Ration {
        Ration {
            pace: first,
            since_ns: now_ns,
            off_ns: 0,
            cost_s: 0.0,
            first,
            has_paused: false,
        }
    }

    /// System calls were counted, or wakes.
    pub(crate) fn add(&mut self, calls: f64, wakes: f64) {
        self.cost_s += calls * self.call_s() + wakes * WAKE_S;
    }

    /// What it costs the program that a call of it is counted.
    pub(crate) fn call_s(&self) -> f64 {
        match self.pace {
            Pace::Each => CALL_EACH_S,
            Pace::Few | Pace::Paused => CALL_S,
        }
    }

    fn on_min_ns(&self) -> u64 {
        match self.has_paused {
            true => ON_NS_MIN,
            false => ON_NS_FIRST,
        }
    }

    /// Do they count now?
    pub(crate) fn is_on(&self) -> bool {
        self.pace != Pace::Paused
    }

    /// When it is time to turn at the latest.
    pub(crate) fn next_ns(&self) -> u64 {
        match (self.pace, self.has_paused) {
            (Pace::Paused, _) => self.since_ns + self.off_ns,
            (_, true) => self.since_ns + self.on_min_ns(),
            (_, false) => u64::MAX,
        }
    }

    /// Is it time for another pace?
    pub(crate) fn turn(&mut self, now_ns: u64) -> Option<Pace> {
        let span_ns = now_ns.saturating_sub(self.since_ns);
        let before = self.pace;
        if before == Pace::Paused {
            return (span_ns >= self.off_ns).then(|| self.set(Pace::Few, now_ns));
        }
        if span_ns < self.on_min_ns() {
            return None;
        }
        let share = self.cost_s / (span_ns as f64 / 1e9);
        let pace = if share > COST_SHARE {
            let off_ns = span_ns as f64 * (share / COST_SHARE - 1.0);
            self.off_ns = (off_ns as u64).min(OFF_NS_MAX);
            Pace::Paused
        } else if share < COST_SHARE * CALM {
            self.first
        } else {
            before
        };
        self.set(pace, now_ns);
        (pace != before).then_some(pace)
    }

    fn set(&mut self, pace: Pace, now_ns: u64) -> Pace {
        self.has_paused |= pace == Pace::Paused;
        (self.pace, self.since_ns, self.cost_s) = (pace, now_ns, 0.0);
        pace
    }

    /// Did they ever pause?
    pub(crate) fn has_paused(&self) -> bool {
        self.has_paused
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rare_events_count_all_the_time() {
        let mut ration = Ration::new(0, Pace::Each);
        for round in 1..100 {
            ration.add(100.0, 100.0);
            assert_eq!(ration.turn(round * 10_000_000), None);
        }
        assert!(!ration.has_paused() && ration.is_on());
    }

    #[test]
    fn frequent_events_cost_no_more_than_their_share() {
        let mut ration = Ration::new(0, Pace::Few);
        let (mut on, mut cost_s) = (true, 0.0);
        let rounds = 10_000;
        for round in 1..=rounds {
            if on {
                ration.add(20_000.0, 5_000.0);
                cost_s += 20_000.0 * CALL_S + 5_000.0 * WAKE_S;
            }
            if let Some(pace) = ration.turn(round * 10_000_000) {
                on = pace != Pace::Paused;
            }
        }
        let share = cost_s / (rounds as f64 / 100.0);
        assert!((0.02..0.04).contains(&share), "{share}");
    }

    #[test]
    fn calls_are_each_looked_at_again_once_they_are_rare() {
        let mut ration = Ration::new(0, Pace::Each);
        ration.add(100_000.0, 0.0);
        assert_eq!(ration.turn(10_000_000), Some(Pace::Paused));
        assert_eq!(ration.turn(500_000_000), Some(Pace::Few));
        ration.add(600.0, 0.0);
        assert_eq!(ration.turn(510_000_000), None, "1.2 %");
        ration.add(100.0, 0.0);
        assert_eq!(ration.turn(520_000_000), Some(Pace::Each));
        assert!(ration.has_paused());
    }
}
