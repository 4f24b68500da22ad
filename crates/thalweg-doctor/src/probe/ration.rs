//! When the events that cost by the piece may count.

use super::record::{Event, What};

/// What the records of a call are taken to add to its time, in seconds, where calls are estimated:
/// with these, a program of 1.3 million calls in a second comes out 8 to 12 % low (Zen 3). A call
/// costs less while only a few are looked at.
const CALL_EACH_S: f64 = 0.4e-6;
const CALL_S: f64 = 0.2e-6;
/// What a record costs the program, in seconds, as measured with an event alone: `docs/notes/
/// results-doctor.md`. Of calls: the same, to look at each or at a few.
const COST_EACH_S: f64 = 0.9e-6;
const COST_FEW_S: f64 = 0.35e-6;
const WAKE_S: f64 = 0.7e-6;
const SWITCH_S: f64 = 0.7e-6;
/// The part of a core that these records and taking them in may cost before they pause, the part
/// that they may cost with pauses, and the part from which on those of switches pause with the
/// others.
const FREE_SHARE: f64 = 0.06;
const COST_SHARE: f64 = 0.03;
const SWITCH_SHARE: f64 = 0.02;
/// So many records of switches, which cost 14 ms, come before any pause of them: short bursts and
/// short programs are told exactly.
const SWITCHES_MIN: u64 = 20_000;
/// Where they cost less than this part of that, there is room for a look at each call.
const CALM: f64 = 0.25;
/// How long they count at least, at first, while a program starts, and later; and pause at most,
/// and in the first pause, of which only the program's start is known.
const ON_NS_FIRST: u64 = 10_000_000;
const ON_NS_MIN: u64 = 5_000_000;
const OFF_NS_MAX: u64 = 250_000_000;
const OFF_NS_FIRST: u64 = 10_000_000;

/// Which of them count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pace {
    /// None, and no switches either: nothing tells who runs.
    Blind,
    /// None but switches.
    Paused,
    /// All but calls, of which a few are looked at.
    Few,
    /// All.
    Each,
}

impl Pace {
    /// Do any of them count?
    pub(crate) fn is_on(self) -> bool {
        !matches!(self, Pace::Blind | Pace::Paused)
    }
}

/// Lets events count all the time while they are rare, and now and then while they are not.
#[derive(Debug)]
pub(crate) struct Ration {
    pace: Pace,
    since_ns: u64,
    off_ns: u64,
    cost_s: f64,
    calls_s: f64,
    /// What the doctor itself took for the records.
    own_s: f64,
    switches_s: f64,
    switches: u64,
    has_paused: bool,
    /// Switches are told without the rest, or all pauses.
    apart: bool,
}

impl Ration {
    /// One that begins with all. Can switches be told `apart` from the rest?
    pub(crate) fn new(now_ns: u64, apart: bool) -> Ration {
        Ration {
            pace: Pace::Each,
            since_ns: now_ns,
            off_ns: 0,
            cost_s: 0.0,
            calls_s: 0.0,
            own_s: 0.0,
            switches_s: 0.0,
            switches: 0,
            has_paused: false,
            apart,
        }
    }

    /// System calls were counted, or wakes.
    pub(crate) fn add(&mut self, calls: f64, wakes: f64) {
        let call_s = match self.pace {
            Pace::Each => COST_EACH_S,
            _ => COST_FEW_S,
        };
        self.calls_s += calls * call_s;
        self.cost_s += calls * call_s + wakes * WAKE_S;
    }

    /// Records were read; of the whole machine, or of the program only.
    pub(crate) fn add_all(&mut self, events: &[Event], whole: bool) {
        for event in events {
            match event.what {
                What::Woken { .. } | What::Roused { .. } => self.add(0.0, 1.0),
                What::Called { weight, .. } => self.add(weight as f64, 0.0),
                // A clock that belongs to a thread is set at each switch.
                What::In if !whole => self.add(0.0, 1.0),
                _ => {}
            }
            if matches!(event.what, What::In | What::Out { .. }) {
                self.add_switch();
            }
        }
    }

    /// Taking in the records took the doctor so much of a core, which the program may lack.
    pub(crate) fn add_own(&mut self, own_s: f64) {
        self.own_s += own_s;
    }

    /// A thread got a core, or left it.
    pub(crate) fn add_switch(&mut self) {
        self.cost_s += SWITCH_S;
        self.switches_s += SWITCH_S;
        self.switches += 1;
    }

    /// What the records since the last turn cost, in ns: all of them, and those but calls.
    pub(crate) fn spent_ns(&self) -> (f64, f64) {
        (self.cost_s * 1e9, (self.cost_s - self.calls_s) * 1e9)
    }

    /// What a call is taken to last longer because it is counted.
    pub(crate) fn call_s(&self) -> f64 {
        match self.pace {
            Pace::Each => CALL_EACH_S,
            _ => CALL_S,
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
        self.pace.is_on()
    }

    /// When it is time to turn at the latest.
    pub(crate) fn next_ns(&self) -> u64 {
        match (self.pace, self.has_paused) {
            (pace, _) if !pace.is_on() => self.since_ns + self.off_ns,
            (_, true) => self.since_ns + self.on_min_ns(),
            (_, false) => u64::MAX,
        }
    }

    /// Is it time for another pace?
    pub(crate) fn turn(&mut self, now_ns: u64) -> Option<Pace> {
        let span_ns = now_ns.saturating_sub(self.since_ns);
        let before = self.pace;
        if !before.is_on() {
            return (span_ns >= self.off_ns).then(|| self.set(Pace::Few, now_ns));
        }
        if span_ns < self.on_min_ns() {
            return None;
        }
        let share = (self.cost_s + self.own_s) / (span_ns as f64 / 1e9);
        let pace = if share > FREE_SHARE {
            let off_ns = span_ns as f64 * (share / COST_SHARE - 1.0);
            let most_ns = match self.has_paused {
                true => OFF_NS_MAX,
                false => OFF_NS_FIRST,
            };
            self.off_ns = (off_ns as u64).min(most_ns);
            let often = self.switches_s > SWITCH_SHARE * span_ns as f64 / 1e9;
            match (often && self.switches > SWITCHES_MIN, self.apart) {
                (true, _) => Pace::Blind,
                (false, true) => Pace::Paused,
                (false, false) => before,
            }
        } else if share < FREE_SHARE * CALM {
            Pace::Each
        } else {
            before
        };
        self.set(pace, now_ns);
        (pace != before).then_some(pace)
    }

    fn set(&mut self, pace: Pace, now_ns: u64) -> Pace {
        self.has_paused |= !pace.is_on();
        (self.pace, self.since_ns) = (pace, now_ns);
        (self.cost_s, self.calls_s) = (0.0, 0.0);
        (self.own_s, self.switches_s) = (0.0, 0.0);
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
        let mut ration = Ration::new(0, true);
        for round in 1..100 {
            ration.add(100.0, 100.0);
            assert_eq!(ration.turn(round * 10_000_000), None);
        }
        assert!(!ration.has_paused() && ration.is_on());
    }

    #[test]
    fn taking_records_in_is_a_part_of_their_cost() {
        let mut ration = Ration::new(0, true);
        ration.add(100.0, 100.0);
        ration.add_own(0.001);
        assert_eq!(ration.turn(10_000_000), Some(Pace::Paused));
        assert!(
            ration.spent_ns().0 < 200_000.0,
            "the program runs meanwhile"
        );
    }

    #[test]
    fn frequent_events_cost_no_more_than_their_share() {
        let mut ration = Ration::new(0, true);
        let (mut on, mut cost_s) = (true, 0.0);
        let rounds = 10_000;
        for round in 1..=rounds {
            if on {
                ration.add(10_000.0, 2_500.0);
                cost_s += 10_000.0 * COST_FEW_S + 2_500.0 * WAKE_S;
            }
            if let Some(pace) = ration.turn(round * 10_000_000) {
                on = pace.is_on();
            }
        }
        let share = cost_s / (rounds as f64 / 100.0);
        assert!((0.025..0.035).contains(&share), "{share}");
    }

    #[test]
    fn calls_are_each_looked_at_again_once_they_are_rare() {
        let mut ration = Ration::new(0, true);
        ration.add(100_000.0, 0.0);
        assert_eq!(ration.turn(10_000_000), Some(Pace::Paused));
        assert_eq!(ration.turn(500_000_000), Some(Pace::Few));
        ration.add(600.0, 0.0);
        assert_eq!(ration.turn(510_000_000), None, "2.1 %");
        ration.add(100.0, 0.0);
        assert_eq!(ration.turn(520_000_000), Some(Pace::Each));
        assert!(ration.has_paused());
    }

    #[test]
    fn switches_pause_only_where_they_cost() {
        let mut ration = Ration::new(0, true);
        let mut now_ns = 0;
        let mut pause = |switches| {
            now_ns += 500_000_000;
            let _ = ration.turn(now_ns);
            ration.add(100_000.0, 0.0);
            (0..switches).for_each(|_| ration.add_switch());
            now_ns += 10_000_000;
            ration.turn(now_ns)
        };
        assert_eq!(pause(15_000), Some(Pace::Paused), "the first ones are told");
        assert_eq!(pause(15_000), Some(Pace::Blind));
        assert_eq!(pause(250), Some(Pace::Paused), "1.75 % of the time");
    }
}
