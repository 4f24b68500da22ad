//! When the events that cost by the piece may count.

/// What a record costs the program, in seconds. Of a wake 0.5 µs were measured, within the noise of
/// a ping-pong of two threads; a call is assumed to cost the same.
const CALL_S: f64 = 0.5e-6;
const WAKE_S: f64 = 0.5e-6;
/// The part of a core that these records may cost.
const COST_SHARE: f64 = 0.03;
/// How long they count at least, and pause at most.
const ON_NS_MIN: u64 = 20_000_000;
const OFF_NS_MAX: u64 = 1_000_000_000;

/// Lets events count all the time while they are rare, and now and then while they are not.
#[derive(Debug)]
pub(crate) struct Ration {
    on: bool,
    since_ns: u64,
    off_ns: u64,
    cost_s: f64,
    counted_ns: u64,
    pauses: u64,
}

impl Ration {
    pub(crate) fn new(now_ns: u64) -> Ration {
        Ration {
            on: true,
            since_ns: now_ns,
            off_ns: 0,
            cost_s: 0.0,
            counted_ns: 0,
            pauses: 0,
        }
    }

    /// System calls were counted, or wakes.
    pub(crate) fn add(&mut self, calls: f64, wakes: f64) {
        self.cost_s += calls * CALL_S + wakes * WAKE_S;
    }

    /// Is it time to stop or to go on? Then this says which.
    pub(crate) fn turn(&mut self, now_ns: u64) -> Option<bool> {
        let span_ns = now_ns.saturating_sub(self.since_ns);
        if !self.on {
            return (span_ns >= self.off_ns).then(|| self.set(true, now_ns));
        }
        if span_ns < ON_NS_MIN {
            return None;
        }
        let share = self.cost_s / (span_ns as f64 / 1e9);
        if share > COST_SHARE {
            let off_ns = span_ns as f64 * (share / COST_SHARE - 1.0);
            self.off_ns = (off_ns as u64).min(OFF_NS_MAX);
            return Some(self.set(false, now_ns));
        }
        self.set(true, now_ns);
        None
    }

    fn set(&mut self, on: bool, now_ns: u64) -> bool {
        if self.on {
            self.counted_ns += now_ns.saturating_sub(self.since_ns);
            self.pauses += u64::from(!on);
        }
        (self.on, self.since_ns, self.cost_s) = (on, now_ns, 0.0);
        on
    }

    /// How long they have counted.
    pub(crate) fn counted_ns(&self, now_ns: u64) -> u64 {
        let open_ns = if self.on {
            now_ns.saturating_sub(self.since_ns)
        } else {
            0
        };
        self.counted_ns + open_ns
    }

    /// Did they ever pause?
    pub(crate) fn has_paused(&self) -> bool {
        self.pauses > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rare_events_count_all_the_time() {
        let mut ration = Ration::new(0);
        for round in 1..100 {
            ration.add(100.0, 100.0);
            assert_eq!(ration.turn(round * 10_000_000), None);
        }
        assert!(!ration.has_paused());
        assert_eq!(ration.counted_ns(990_000_000), 990_000_000);
    }

    #[test]
    fn frequent_events_cost_no_more_than_their_share() {
        let mut ration = Ration::new(0);
        let (mut on, mut cost_s) = (true, 0.0);
        let rounds = 10_000;
        for round in 1..=rounds {
            if on {
                ration.add(8_000.0, 5_000.0);
                cost_s += 8_000.0 * CALL_S + 5_000.0 * WAKE_S;
            }
            on = ration.turn(round * 10_000_000).unwrap_or(on);
        }
        let share = cost_s / (rounds as f64 / 100.0);
        assert!((0.02..0.04).contains(&share), "{share}");
        let counted = ration.counted_ns(rounds * 10_000_000) as f64 / (rounds as f64 * 1e7);
        assert!((counted - share / 0.65).abs() < 0.01, "{counted}");
    }
}
