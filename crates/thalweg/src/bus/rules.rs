//! Rules that hold only within limits, and that say why they are on or off.
//!
//! A rule is data: its [`Limits`] are compared with [`Facts`], and the explanation names the number
//! that decided. A rule that is on stays on a quarter beyond its limits, so that a fact that moves
//! around a limit does not switch it back and forth. Cores and capacity are counted, not measured,
//! and have no such margin.

use std::fmt;

/// What is known where rules are looked at.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Facts {
    /// Cores that the program may use.
    pub cores: u64,
    /// Messages that the inbox holds.
    pub capacity: u64,
    /// How full the inbox is.
    pub occupancy_percent: f64,
    /// Messages that publishers want to put in, a second. What is decided must not change it: so
    /// not the idle gap that a consumer sees, which is the shorter the later it wakes.
    pub arrival_per_s: f64,
    /// Messages that consumers take in a second of work; 0 while that is not known.
    pub service_per_s: f64,
}

/// Between which numbers a rule holds, both included. [`Limits::NONE`] has none.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Limits {
    /// The fewest cores.
    pub cores_min: u64,
    /// The smallest inbox.
    pub capacity_min: u64,
    /// The emptiest inbox.
    pub occupancy_percent_min: f64,
    /// The lowest arrival rate.
    pub arrival_per_s_min: f64,
    /// The highest.
    pub arrival_per_s_max: f64,
    /// The longest mean gap between two messages, in ns.
    pub gap_ns_max: f64,
    /// The lowest service rate; above 0, so that it must have been measured.
    pub service_per_s_min: f64,
}

/// How far beyond its limits a rule that is on stays on.
const MARGIN: f64 = 1.25;

impl Limits {
    /// No limit at all.
    pub const NONE: Self = Self {
        cores_min: 0,
        capacity_min: 0,
        occupancy_percent_min: 0.0,
        arrival_per_s_min: 0.0,
        arrival_per_s_max: f64::INFINITY,
        gap_ns_max: f64::INFINITY,
        service_per_s_min: 0.0,
    };

    /// What each of them says of the facts, for a rule that is on or off.
    fn compared(&self, facts: &Facts, is_on: bool) -> [Because; 7] {
        // Not even a negative zero is a rate.
        let comes = facts.arrival_per_s > 0.0;
        let gap_ns = if comes {
            1e9 / facts.arrival_per_s
        } else {
            f64::INFINITY
        };
        let counted = |what, value: u64, limit: u64| Because {
            what,
            value: value as f64,
            bound: Bound::AtLeast(limit as f64),
        };
        let margin = if is_on { MARGIN } else { 1.0 };
        let at_least = |what, value, limit: f64| Because {
            what,
            value,
            bound: Bound::AtLeast(limit / margin),
        };
        let at_most = |what, value, limit: f64| Because {
            what,
            value,
            bound: Bound::AtMost(limit * margin),
        };
        [
            counted("usable cores", facts.cores, self.cores_min),
            counted("capacity", facts.capacity, self.capacity_min),
            at_least(
                "% occupied",
                facts.occupancy_percent,
                self.occupancy_percent_min,
            ),
            at_least(
                "messages/s come",
                facts.arrival_per_s,
                self.arrival_per_s_min,
            ),
            at_most(
                "messages/s come",
                facts.arrival_per_s,
                self.arrival_per_s_max,
            ),
            at_most("ns between messages", gap_ns, self.gap_ns_max),
            at_least(
                "messages/s served",
                facts.service_per_s,
                self.service_per_s_min,
            ),
        ]
    }
}

/// One number beside its limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Because {
    /// What the number is.
    pub what: &'static str,
    /// The number.
    pub value: f64,
    bound: Bound,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Bound {
    AtLeast(f64),
    AtMost(f64),
}

impl Because {
    /// The limit it was compared with.
    pub fn limit(&self) -> f64 {
        match self.bound {
            Bound::AtLeast(limit) | Bound::AtMost(limit) => limit,
        }
    }

    /// How far within its limit the number is, as a factor; below 1 it is not. `None` where there
    /// is no limit.
    fn room(&self) -> Option<f64> {
        let (small, large) = match self.bound {
            Bound::AtLeast(limit) => (limit, self.value),
            Bound::AtMost(limit) => (self.value, limit),
        };
        let is_limit = match self.bound {
            Bound::AtLeast(limit) => limit > 0.0,
            Bound::AtMost(limit) => limit.is_finite(),
        };
        // A number that is none keeps no limit.
        is_limit.then(|| {
            if large >= small {
                large / small
            } else {
                (large / small).clamp(0.0, 1.0 - f64::EPSILON)
            }
        })
    }
}

impl fmt::Display for Because {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match self.bound {
            Bound::AtLeast(_) => "at least",
            Bound::AtMost(_) => "at most",
        };
        let (what, value, limit) = (self.what, self.value, self.limit());
        // A number that is shown as its limit would not explain anything.
        let close = value != limit && (value - limit).abs() < 1.0;
        let digits = if close { 3 } else { 0 };
        write!(f, "{value:.digits$} {what}, {word} {limit:.digits$}")
    }
}

/// One rule of an inbox, and whether it is on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rule {
    /// Its name, for explanations.
    pub name: &'static str,
    /// Where it holds.
    pub limits: Limits,
    is_forced_off: bool,
    is_on: bool,
}

/// Why a rule is on or off.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Explanation {
    /// The rule's name.
    pub rule: &'static str,
    /// Whether it is on.
    pub is_on: bool,
    /// Whether that is because it was not switched on.
    pub is_forced_off: bool,
    /// The number that decided: the first that is beyond its limit, or if the rule is on, the one
    /// that is closest to its limit. `None` where there is no limit.
    pub reason: Option<Because>,
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = if self.is_on { "on" } else { "off" };
        write!(f, "{} is {state}: ", self.rule)?;
        match self.reason {
            _ if self.is_forced_off => f.write_str("it is not switched on"),
            Some(reason) => reason.fmt(f),
            None => f.write_str("it has no limits"),
        }
    }
}

impl Rule {
    /// A rule that is off until facts have been seen.
    pub const fn new(name: &'static str, limits: Limits) -> Self {
        Self {
            name,
            limits,
            is_forced_off: false,
            is_on: false,
        }
    }

    /// Spinning before a thread parks: needs a core for the other thread, and messages that come
    /// within the time that spinning may take (two wake-ups).
    pub const fn spin_before_park(budget_ns: u64) -> Self {
        let limits = Limits {
            cores_min: 2,
            gap_ns_max: budget_ns as f64,
            ..Limits::NONE
        };
        Self::new("spin-before-park", limits)
    }

    /// Batches by what waits ([`Batching`](super::Batching)): needs an inbox in which a batch of
    /// two is a quarter.
    pub const fn batch_by_occupancy() -> Self {
        let limits = Limits {
            capacity_min: 8,
            ..Limits::NONE
        };
        Self::new("batch-by-occupancy", limits)
    }

    /// Producers keep a gap ([`Slowing`](super::Slowing)): needs a measured service rate, a band
    /// with room for the law, and an inbox that is half full.
    pub const fn slow_producers() -> Self {
        let limits = Limits {
            capacity_min: 64,
            occupancy_percent_min: 50.0,
            service_per_s_min: 1.0,
            ..Limits::NONE
        };
        Self::new("slow-producers", limits)
    }

    /// Whether it is on.
    pub fn is_on(&self) -> bool {
        self.is_on && !self.is_forced_off
    }

    /// Switches the rule off for good, or leaves it to its limits again.
    pub fn force_off(&mut self, is_forced_off: bool) {
        self.is_forced_off = is_forced_off;
    }

    /// The rule, switched off for good.
    #[must_use]
    pub const fn off(mut self) -> Self {
        self.is_forced_off = true;
        self
    }

    /// Whether it was switched off for good.
    pub fn is_forced_off(&self) -> bool {
        self.is_forced_off
    }

    /// Compares the facts with the limits: `Some` if that switches the rule.
    pub fn update(&mut self, facts: &Facts) -> Option<Explanation> {
        let was_on = self.is_on();
        let explanation = self.explain(facts);
        // With its limits alone: a rule that is forced off begins anew when it is not any more.
        self.is_on = explanation.is_on;
        (was_on != self.is_on).then_some(explanation)
    }

    /// What the rule would be with these facts, and why.
    pub fn explain(&self, facts: &Facts) -> Explanation {
        let mut reason: Option<(Because, f64)> = None;
        for compared in self.limits.compared(facts, self.is_on()) {
            let Some(room) = compared.room() else {
                continue;
            };
            let was = reason.map_or(f64::INFINITY, |(_, was)| was);
            if was >= 1.0 && (room < 1.0 || room <= was) {
                reason = Some((compared, room));
            }
        }
        let holds = reason.is_none_or(|(_, room)| room >= 1.0);
        Explanation {
            rule: self.name,
            is_on: holds && !self.is_forced_off,
            is_forced_off: self.is_forced_off,
            reason: reason.map(|(reason, _)| reason),
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FACTS: Facts = Facts {
        cores: 2,
        capacity: 1_024,
        occupancy_percent: 10.0,
        arrival_per_s: 500_000.0,
        service_per_s: 1e6,
    };

    fn text(rule: &Rule, facts: Facts) -> String {
        rule.explain(&facts).to_string()
    }

    #[test]
    fn a_rule_says_which_number_decided() {
        let spin = Rule::spin_before_park(10_000);
        let on = "spin-before-park is on: 2 usable cores, at least 2";
        assert_eq!(text(&spin, FACTS), on);
        let alone = "spin-before-park is off: 1 usable cores, at least 2";
        assert_eq!(text(&spin, Facts { cores: 1, ..FACTS }), alone);
        let rare = Facts {
            arrival_per_s: 10_000.0,
            ..FACTS
        };
        let told = "spin-before-park is off: 100000 ns between messages, at most 10000";
        assert_eq!(text(&spin, rare), told);
        let never = Facts {
            arrival_per_s: 0.0,
            ..FACTS
        };
        let told = "spin-before-park is off: inf ns between messages, at most 10000";
        assert_eq!(text(&spin, never), told);

        let batch = Rule::batch_by_occupancy();
        let small = Facts {
            capacity: 7,
            ..FACTS
        };
        assert_eq!(
            text(&batch, small),
            "batch-by-occupancy is off: 7 capacity, at least 8"
        );
        let slow = Rule::slow_producers();
        let told = "slow-producers is off: 10 % occupied, at least 50";
        assert_eq!(text(&slow, FACTS), told);
        let close = Facts {
            occupancy_percent: 49.9996,
            ..FACTS
        };
        let told = "slow-producers is off: 50.000 % occupied, at least 50.000";
        assert_eq!(text(&slow, close), told);
        let unknown = Facts {
            occupancy_percent: 90.0,
            service_per_s: 0.0,
            ..FACTS
        };
        let told = "slow-producers is off: 0 messages/s served, at least 1";
        assert_eq!(text(&slow, unknown), told);
        let always = Rule::new("always", Limits::NONE);
        assert_eq!(text(&always, FACTS), "always is on: it has no limits");
    }

    #[test]
    fn a_rule_can_be_switched_off() {
        let mut rule = Rule::batch_by_occupancy();
        assert!(rule.update(&FACTS).is_some_and(|why| why.is_on));
        rule.force_off(true);
        assert!(!rule.is_on());
        let told = "batch-by-occupancy is off: it is not switched on";
        assert_eq!(text(&rule, FACTS), told);
        assert_eq!(rule.update(&FACTS), None);
        rule.force_off(false);
        assert!(rule.update(&FACTS).is_some_and(|why| why.is_on));
    }

    #[test]
    fn a_rule_that_is_on_stays_on_a_little_longer() {
        let mut rule = Rule::spin_before_park(10_000);
        let mut at = |gap_ns: f64| {
            let arrival_per_s = 1e9 / gap_ns;
            rule.update(&Facts {
                arrival_per_s,
                ..FACTS
            });
            rule.is_on()
        };
        assert_eq!(
            [11e3, 9e3, 12e3, 13e3, 11e3].map(&mut at),
            [false, true, true, false, false]
        );
    }

    proptest! {
        /// Whatever the facts, those that are no numbers included: a rule is on if and only if the
        /// number that it names is within its limit, and its text holds both numbers.
        #[test]
        fn the_reason_agrees_with_the_rule(
            cores in 0_u64..4,
            occupancy_percent: f64,
            arrival_per_s: f64,
            service_per_s: f64,
        ) {
            let facts = Facts {
                cores,
                capacity: 100,
                occupancy_percent,
                arrival_per_s,
                service_per_s,
            };
            for rule in [Rule::spin_before_park(5_000), Rule::slow_producers()] {
                let why = rule.explain(&facts);
                let reason = why.reason.unwrap();
                let holds = match reason.bound {
                    Bound::AtLeast(limit) => reason.value >= limit,
                    Bound::AtMost(limit) => reason.value <= limit,
                };
                prop_assert_eq!(why.is_on, holds);
                prop_assert!(why.to_string().contains(reason.what));
            }
        }
    }
}
