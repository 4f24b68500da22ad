//! The rules of an inbox, applied: how full it is, which rules hold there, and how far apart its
//! publishers keep their messages.
//!
//! *Who looks.* Where publishers are slowed, one that is above half of its limit makes a look, once
//! in [`LOOK_NS`]; so does a consumer that is about to wait while they are slowed. Besides, whoever
//! asks for explanations or figures. Otherwise nobody looks, and nothing is paid. A look is made
//! under a lock, for which only those wait who ask.
//!
//! *What is decided* is two words: the gap that publishers keep at three quarters of their limit,
//! or 0, and the level. Each change of them is a [`Decision`] in the trace of the bus.

use std::fmt;
use std::sync::Arc as Shared;

use super::balance::{Balance, Horizons, Reading, Report};
use super::inbox::{Inbox, Options};
use super::ledger::Count;
use super::level::{Gauge, Level};
use super::rules::{Explanation, Facts, Limits, Rule};
use super::slowing::Slowing;
use super::topic::Message;
use super::trace::{Decision, Event, Recorder};
use super::{InboxId, Priority};
use crate::ring::sync::{Mutex, lock};
use crate::wait::{Mode, cores};
use thalweg_measure::clock::Clock;

/// How old a look may be where publishers are slowed. It takes some µs.
const LOOK_NS: u64 = 1_000_000;
/// A publisher is at work until it has published nothing for so long, and for so many of the gaps
/// that it keeps at three quarters of a limit. One that is counted for too long makes the others a
/// little slower; one that is not counted lets the inbox fill up to the limit.
const ACTIVE_NS: u64 = 100_000_000;
const ACTIVE_SHARES: u64 = 8;
/// How old the count of cores may be, which takes some 50 µs.
const CORES_NS: u64 = 100_000_000;

/// See the module.
pub(super) struct Governor {
    share_ns: Count,
    level: Count,
    /// When a publisher makes the next look.
    due_ns: Count,
    watch: Mutex<Watch>,
    recorder: Shared<Recorder>,
}

struct Watch {
    balance: Balance,
    gauge: Gauge,
    slow: Rule,
    batch: Rule,
    mode: Mode,
    cores: u64,
    cores_ns: u64,
}

/// What a look has found.
pub(super) struct Looked {
    pub(super) reading: Reading,
    pub(super) report: Report,
    pub(super) level: Level,
    pub(super) facts: Facts,
    spin: (Rule, Facts),
    batch: Rule,
    slow: Rule,
}

/// Why a rule of an inbox is on or off, with all that is known there; see
/// [`Bus::explain`](super::Bus::explain).
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Explained {
    /// The inbox.
    pub inbox: InboxId,
    /// The rule, whether it is on, and why.
    pub explanation: Explanation,
    /// The limits between which the rule holds.
    pub limits: Limits,
    /// What they were compared with.
    pub facts: Facts,
}

impl fmt::Display for Explained {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "inbox {}: {}", self.inbox.index(), self.explanation)
    }
}

impl Governor {
    /// For an inbox with such limits of priorities, from `now_ns` on.
    pub(super) fn new(
        options: &Options,
        limits: &[u64; Priority::COUNT],
        recorder: &Shared<Recorder>,
        now_ns: u64,
    ) -> Self {
        let mut balance = Balance::new(Horizons::default());
        balance.update(Reading {
            at_ns: now_ns,
            capacity: limits[Priority::COUNT - 1],
            consumers: 1,
            ..Reading::default()
        });
        let mut slow = options.slowing;
        // Where the law begins for the lowest priority.
        let half = 50.0 * limits[0] as f64 / limits[Priority::COUNT - 1] as f64;
        let least = &mut slow.limits.occupancy_percent_min;
        *least = least.min(half);
        Self {
            share_ns: Count::default(),
            level: Count::default(),
            due_ns: Count::default(),
            watch: Mutex::new(Watch {
                balance,
                gauge: Gauge::default(),
                slow,
                batch: options.batching,
                mode: options.mode,
                cores: 0,
                cores_ns: 0,
            }),
            recorder: Shared::clone(recorder),
        }
    }

    /// How publishers are slowed now, if they are.
    #[inline]
    pub(super) fn slowing(&self) -> Option<Slowing> {
        Slowing::of_share(self.share_ns.get())
    }

    /// The level at the last look.
    pub(super) fn level(&self) -> Level {
        Level::ALL[self.level.get() as usize % Level::ALL.len()]
    }

    pub(super) fn note(&self, decision: &Decision) {
        self.recorder.note(decision);
    }
}

impl<M: Message> Inbox<M> {
    /// A look at an inbox whose ring holds `len` elements.
    pub(super) fn look(&self, len: usize, clock: &Clock) -> Looked {
        self.look_with(&mut lock(&self.governor.watch), len, clock)
    }

    /// As [`look`](Self::look), if it is time and nobody else is at it.
    pub(super) fn look_if_due(&self, len: usize, clock: &Clock, now_ns: u64) {
        let governor = &self.governor;
        if now_ns >= governor.due_ns.get()
            && let Ok(mut watch) = governor.watch.try_lock()
        {
            self.look_with(&mut watch, len, clock);
        }
    }

    /// As [`look`](Self::look), with figures and a time that are given.
    #[cfg(all(test, not(any(loom, shuttle))))]
    pub(super) fn look_at(&self, reading: Reading) {
        self.judge(&mut lock(&self.governor.watch), reading);
    }

    fn look_with(&self, watch: &mut Watch, len: usize, clock: &Clock) -> Looked {
        self.judge(watch, self.reading(len, clock))
    }

    /// Applies the rules to what a reading says.
    fn judge(&self, watch: &mut Watch, reading: Reading) -> Looked {
        let now_ns = reading.at_ns;
        let was = watch.balance.report().verdict;
        let report = watch.balance.update(reading);
        let facts = watch.facts(&reading, &report);
        let note = |event, from, to, number| {
            let (at_ns, inbox) = (now_ns, self.id.0);
            if from != to {
                self.governor.note(&Decision {
                    at_ns,
                    event,
                    inbox,
                    from,
                    to,
                    number,
                });
            }
        };
        let percent = facts.occupancy_percent as u64;
        note(
            Event::Verdict,
            was as u32,
            report.verdict as u32,
            reading.waiting,
        );
        let was = watch.gauge.level();
        watch.gauge.update(reading.waiting, reading.capacity);
        let level = watch.gauge.level();
        note(Event::Level, was as u32, level as u32, reading.waiting);
        self.governor.level.set(level as u64);
        for (rule, event) in [
            (&mut watch.slow, Event::Slow),
            (&mut watch.batch, Event::Batching),
        ] {
            let was = rule.is_on();
            rule.update(&facts);
            note(event, was.into(), rule.is_on().into(), percent);
        }
        let slowing = match watch.slow.is_on() {
            true => {
                // Longer than the gaps that they keep, and however often somebody looks.
                let window_ns = self.governor.share_ns.get().saturating_mul(ACTIVE_SHARES);
                let active = self.active_publishers(now_ns, window_ns.max(ACTIVE_NS));
                Slowing::new(facts.service_per_s, active)
            }
            false => None,
        };
        let share_ns = slowing.map_or(0, |slowing| slowing.share_ns());
        self.governor.share_ns.set(share_ns);
        self.governor.due_ns.set(now_ns + LOOK_NS);
        Looked {
            reading,
            report,
            level,
            facts,
            spin: spinning(watch.mode, &facts, self.waits_ns()),
            batch: watch.batch,
            slow: watch.slow,
        }
    }
}

impl Watch {
    fn facts(&mut self, reading: &Reading, report: &Report) -> Facts {
        if self.cores == 0 || reading.at_ns.saturating_sub(self.cores_ns) >= CORES_NS {
            self.cores = cores::usable().count() as u64;
            self.cores_ns = reading.at_ns;
        }
        Facts {
            cores: self.cores,
            capacity: reading.capacity,
            occupancy_percent: reading.waiting as f64 * 100.0 / reading.capacity.max(1) as f64,
            arrival_per_s: report.arrival_per_s,
            service_per_s: report.service_per_s.unwrap_or(0.0),
        }
    }
}

/// The rule by which a consumer's `Pace` decides, and what it knows: that spins while what comes is
/// expected within one and a half wake-ups.
fn spinning(mode: Mode, facts: &Facts, (gap_ns, wake_ns): (u64, u64)) -> (Rule, Facts) {
    let mut rule = Rule::spin_before_park(wake_ns + wake_ns / 2);
    match mode {
        Mode::Latency => rule.limits.gap_ns_max = f64::INFINITY,
        Mode::Power => rule.force_off(true),
        Mode::Balanced => {}
    }
    let facts = Facts {
        arrival_per_s: 1e9 / gap_ns.max(1) as f64,
        ..*facts
    };
    (rule, facts)
}

impl Looked {
    /// Why each rule is on or off.
    pub(super) fn explained(&self, inbox: InboxId) -> [Explained; 3] {
        let (spin, spin_facts) = self.spin;
        let (batch, slow, facts) = (self.batch, self.slow, self.facts);
        [(spin, spin_facts), (batch, facts), (slow, facts)].map(|(rule, facts)| Explained {
            inbox,
            explanation: rule.explain(&facts),
            limits: rule.limits,
            facts,
        })
    }
}
