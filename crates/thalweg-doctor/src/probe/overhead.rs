//! Decides when the events that cost time for each record may count.

use crate::probe::ebpf::Pace;
use crate::probe::record::{Event, What};

/// The time that the programs at calls add to a call, in seconds. Calls are estimated with it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CallCost {
    /// The cost where each call is recorded.
    pub(crate) each_s: f64,
    /// The cost where one call in 13 is recorded; most of it is the check whether to record.
    pub(crate) few_s: f64,
    /// The cost of that check in a pause that is not a long one.
    pub(crate) idle_s: f64,
}

impl CallCost {
    /// The costs on Zen 3, which hold where they cannot be measured.
    pub(crate) const ZEN_3: CallCost = CallCost {
        each_s: 1.0e-6,
        few_s: 0.22e-6,
        idle_s: 0.15e-6,
    };
}

/// The cost to the program of a wake-up and of each side of a switch, in seconds; see
/// `docs/notes/results-doctor.md`.
const WAKE_S: f64 = 0.6e-6;
const SWITCH_S: f64 = 0.7e-6;
/// The share of a core that these records and reading them may cost before they pause, the share
/// that they may cost with pauses, and the share from which on records of switches pause with the
/// others.
const FREE_SHARE: f64 = 0.06;
const COST_SHARE: f64 = 0.03;
const SWITCH_SHARE: f64 = 0.02;
/// The number of switch sides, which cost 14 ms, before switches pause for the first time: short
/// bursts and short programs are recorded exactly.
const SWITCHES_MIN: u64 = 20_000;
/// Where the records cost less than this part of the free share, each call can be recorded.
const SPARE: f64 = 0.25;
/// The minimum time for which they count, at first, while a program starts, and later; and the
/// maximum length of a pause, later and at first, when only the program's start is known.
const ON_NS_FIRST: u64 = 10_000_000;
const ON_NS_MIN: u64 = 5_000_000;
const OFF_NS_MAX: u64 = 250_000_000;
const OFF_NS_FIRST: u64 = 10_000_000;
/// The length from which on a pause is long. In a long pause, calls have no cost at all. Returning
/// from a shorter one in this way would take up to 30 ms.
const LONG_NS: u64 = 50_000_000;

/// Lets events count all the time while they are rare, and in windows while they are frequent.
#[derive(Debug)]
pub(crate) struct OverheadBudget {
    call: CallCost,
    pace: Pace,
    since_ns: u64,
    off_ns: u64,
    cost_s: f64,
    calls_s: f64,
    /// The time that the doctor itself spent on the records.
    own_s: f64,
    switches_s: f64,
    switches: u64,
    has_paused: bool,
    /// Whether switches can be recorded while the rest pauses.
    apart: bool,
}

impl OverheadBudget {
    /// Creates a budget that begins with all events. `apart` is whether switches can be recorded
    /// while the rest pauses.
    pub(crate) fn new(now_ns: u64, apart: bool) -> OverheadBudget {
        OverheadBudget {
            call: CallCost::ZEN_3,
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

    /// Sets what the programs at calls cost on this machine, as measured.
    pub(crate) fn set_call_cost(&mut self, cost: CallCost) {
        self.call = cost;
    }

    /// Adds system calls and wake-ups that were counted.
    pub(crate) fn add(&mut self, calls: f64, wakes: f64) {
        let call_s = self.call_s();
        self.calls_s += calls * call_s;
        self.cost_s += calls * call_s + wakes * WAKE_S;
    }

    /// Adds records that were read. `whole` is whether they are of the whole machine, or of the
    /// program only.
    pub(crate) fn add_all(&mut self, events: &[Event], whole: bool) {
        for event in events {
            match event.what {
                What::Woken { .. } | What::Waking { .. } => self.add(0.0, 1.0),
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

    /// Adds the time that the doctor spent on reading the records, which the program may lack.
    pub(crate) fn add_own(&mut self, own_s: f64) {
        self.own_s += own_s;
    }

    /// Adds a switch side: a thread got a core, or left it.
    fn add_switch(&mut self) {
        self.cost_s += SWITCH_S;
        self.switches_s += SWITCH_S;
        self.switches += 1;
    }

    /// Returns the cost of the records since the last turn, in ns: of all records, and of all but
    /// calls.
    pub(crate) fn spent_ns(&self) -> (f64, f64) {
        (self.cost_s * 1e9, (self.cost_s - self.calls_s) * 1e9)
    }

    /// Returns the time by which the programs at calls lengthen a call at this pace.
    pub(crate) fn call_s(&self) -> f64 {
        match self.pace {
            Pace::Each => self.call.each_s,
            Pace::Few => self.call.few_s,
            Pace::Paused | Pace::Blind if self.pauses_for_long() => 0.0,
            Pace::Paused | Pace::Blind => self.call.idle_s,
        }
    }

    fn on_min_ns(&self) -> u64 {
        match self.has_paused {
            true => ON_NS_MIN,
            false => ON_NS_FIRST,
        }
    }

    /// Returns whether the events count now.
    pub(crate) fn is_on(&self) -> bool {
        self.pace.is_on()
    }

    /// Returns whether they pause for so long that even the check at each call costs too much.
    pub(crate) fn pauses_for_long(&self) -> bool {
        !self.is_on() && self.off_ns >= LONG_NS
    }

    /// Returns the latest time of the next turn.
    pub(crate) fn next_ns(&self) -> u64 {
        match (self.pace, self.has_paused) {
            (pace, _) if !pace.is_on() => self.since_ns + self.off_ns,
            (_, true) => self.since_ns + self.on_min_ns(),
            (_, false) => u64::MAX,
        }
    }

    /// Changes the pace if it is time to. Returns the new pace.
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
        } else if share < FREE_SHARE * SPARE {
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

    /// Returns whether they have ever paused.
    pub(crate) fn has_paused(&self) -> bool {
        self.has_paused
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rare_events_count_all_the_time() {
        let mut budget = OverheadBudget::new(0, true);
        for round in 1..100 {
            budget.add(100.0, 100.0);
            assert_eq!(budget.turn(round * 10_000_000), None);
        }
        assert!(!budget.has_paused() && budget.is_on());
    }

    #[test]
    fn taking_records_in_is_a_part_of_their_cost() {
        let mut budget = OverheadBudget::new(0, true);
        budget.add(100.0, 100.0);
        budget.add_own(0.001);
        assert_eq!(budget.turn(10_000_000), Some(Pace::Paused));
        assert!(
            budget.spent_ns().0 < 200_000.0,
            "the program runs meanwhile"
        );
    }

    #[test]
    fn frequent_events_cost_no_more_than_their_share() {
        let mut budget = OverheadBudget::new(0, true);
        let (mut on, mut cost_s) = (true, 0.0);
        let rounds = 10_000;
        for round in 1..=rounds {
            if on {
                budget.add(10_000.0, 2_500.0);
                cost_s += 10_000.0 * CallCost::ZEN_3.few_s + 2_500.0 * WAKE_S;
            }
            if let Some(pace) = budget.turn(round * 10_000_000) {
                on = pace.is_on();
            }
        }
        let share = cost_s / (rounds as f64 / 100.0);
        assert!((0.025..0.035).contains(&share), "{share}");
    }

    #[test]
    fn calls_are_each_looked_at_again_once_they_are_rare() {
        let mut budget = OverheadBudget::new(0, true);
        budget.add(100_000.0, 0.0);
        assert_eq!(budget.turn(10_000_000), Some(Pace::Paused));
        assert_eq!(budget.turn(500_000_000), Some(Pace::Few));
        budget.add(950.0, 0.0);
        assert_eq!(budget.turn(510_000_000), None, "2.1 %");
        budget.add(100.0, 0.0);
        assert_eq!(budget.turn(520_000_000), Some(Pace::Each));
        assert!(budget.has_paused());
    }

    #[test]
    fn switches_pause_only_where_they_cost() {
        let mut budget = OverheadBudget::new(0, true);
        let mut now_ns = 0;
        let mut pause = |switches| {
            now_ns += 500_000_000;
            let _ = budget.turn(now_ns);
            budget.add(100_000.0, 0.0);
            (0..switches).for_each(|_| budget.add_switch());
            now_ns += 10_000_000;
            budget.turn(now_ns)
        };
        assert_eq!(
            pause(15_000),
            Some(Pace::Paused),
            "the first ones are recorded"
        );
        assert_eq!(pause(15_000), Some(Pace::Blind));
        assert_eq!(pause(250), Some(Pace::Paused), "1.75 % of the time");
    }
}
