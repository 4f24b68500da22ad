//! Fills the gaps in which switches are not recorded because there are too many of them.
//!
//! The threads are assumed to continue as they did in the window since the last gap. Such a window
//! lasts some milliseconds and has more than a hundred switches, otherwise there would be no gap.

use super::sums::Totals;
use super::timeline::{Past, Timeline};

/// The minimum share of a window that must remain after the cost of its records is subtracted.
const LEFT_MIN: f64 = 0.3;

/// The window that a gap follows, and the gap.
#[derive(Debug)]
pub(crate) struct Gap {
    window_from_ns: u64,
    before: Totals,
    since_ns: Option<u64>,
    /// The time that the records of the window cost the program.
    cost_ns: f64,
    total_ns: u64,
}

impl Gap {
    pub(super) fn new(from_ns: u64) -> Gap {
        Gap {
            window_from_ns: from_ns,
            before: Totals::default(),
            since_ns: None,
            cost_ns: 0.0,
            total_ns: 0,
        }
    }

    /// Returns the factor by which events are more frequent while they are not recorded: the
    /// records lengthen the window by their cost, divided by the number of threads that run at
    /// once.
    fn often(&self, totals: &Totals, window_ns: u64) -> f64 {
        let ran_ns = totals.all.ran_ns - self.before.all.ran_ns;
        let window_ns = window_ns as f64;
        let at_once = (ran_ns as f64 / window_ns).max(1.0);
        let left = 1.0 - self.cost_ns / at_once / window_ns;
        1.0 / left.max(LEFT_MIN)
    }

    pub(super) fn is_open(&self) -> bool {
        self.since_ns.is_some()
    }
}

impl Timeline {
    /// Returns whether switches are currently not recorded.
    pub(crate) fn in_gap(&self) -> bool {
        self.gap.is_open()
    }

    /// Returns whether it is known that no thread is running or runnable.
    pub(super) fn is_idle(&self) -> bool {
        !self.is_busy() && !self.gap.is_open()
    }

    /// Returns the total time for which switches were not recorded.
    pub(crate) fn gaps_ns(&self) -> u64 {
        self.gap.total_ns
    }

    /// Begins a gap: from `now_ns` on, switches are not recorded. The records since the last gap
    /// cost the program `cost_ns`, on all cores.
    pub(crate) fn begin_gap(&mut self, now_ns: u64, cost_ns: f64, span: &mut impl FnMut(Past)) {
        self.advance(now_ns);
        self.totals.end_blocked();
        for (&tid, thread) in &mut self.threads {
            thread.add(now_ns);
            span(Past {
                tid,
                state: thread.state,
                from_ns: thread.since_ns,
                to_ns: now_ns,
            });
            (thread.since_ns, thread.slept_ns) = (now_ns, None);
        }
        (self.gap.since_ns, self.gap.cost_ns) = (Some(now_ns), cost_ns);
        self.idle_since_ns = None;
    }

    /// Ends a gap: from `now_ns` on, switches are recorded again. The time of the gap, if there was
    /// one, is divided among the states as in the window before it. The threads are assumed to be
    /// in their previous states, which is as likely as at any other moment.
    pub(crate) fn end_gap(&mut self, now_ns: u64, span: &mut impl FnMut(Past)) {
        let Some(since_ns) = self.gap.since_ns else {
            return;
        };
        self.advance(now_ns);
        let gap_ns = self.now_ns - since_ns;
        let window_ns = (since_ns - self.gap.window_from_ns).max(1);
        let factor = gap_ns as f64 / window_ns as f64;
        let often = self.gap.often(&self.totals, window_ns);
        self.totals.repeat(&self.gap.before, factor, often);
        for (&tid, thread) in &mut self.threads {
            let mut from_ns = thread.since_ns;
            for (state, length_ns) in thread.repeat(now_ns, often) {
                let to_ns = from_ns + length_ns;
                span(Past {
                    tid,
                    state,
                    from_ns,
                    to_ns,
                });
                from_ns = to_ns;
            }
            thread.since_ns = now_ns;
            thread.mark();
        }
        self.gap = Gap {
            window_from_ns: now_ns,
            before: self.totals,
            since_ns: None,
            cost_ns: 0.0,
            total_ns: self.gap.total_ns + gap_ns,
        };
        self.idle_since_ns = self.is_idle().then_some(now_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::{Event, What};
    use super::*;
    use crate::recording::State;

    fn event(time_ns: u64, what: What) -> Event {
        Event {
            time_ns,
            core: 0,
            pid: 7,
            tid: 7,
            what,
        }
    }

    /// Adds a window in which a thread runs for a quarter of the time, in spans of 1 µs.
    fn window(timeline: &mut Timeline, from_ns: u64, spans: u64, pasts: &mut Vec<Past>) {
        for at_ns in (0..spans).map(|round| from_ns + 4_000 * round) {
            for (time_ns, what) in [
                (at_ns, What::In),
                (at_ns + 1_000, What::Out { preempted: false }),
            ] {
                timeline.apply(&event(time_ns, what), &mut |past| pasts.push(past));
            }
        }
    }

    #[test]
    fn a_thread_that_ended_is_not_there_again() {
        let mut timeline = Timeline::new(0, true);
        timeline.adopt(7, 7, "a");
        let other = |time_ns, what| Event {
            tid: 8,
            ..event(time_ns, what)
        };
        let events = [
            other(0, What::Forked { parent: 7 }),
            other(1_000, What::In),
            // The thread still has to leave its core, is preempted in between, and its last switch
            // has no thread id.
            other(2_000, What::Exited),
            other(3_000, What::Out { preempted: true }),
            other(4_000, What::In),
            Event {
                pid: -1,
                tid: -1,
                ..other(5_000, What::Out { preempted: false })
            },
        ];
        for event in &events {
            timeline.apply(event, &mut |_| {});
        }
        assert_eq!(timeline.threads.len(), 1, "the first one");
        timeline.apply(&other(6_000, What::Forked { parent: 7 }), &mut |_| {});
        timeline.apply(&other(7_000, What::In), &mut |_| {});
        assert_eq!(
            timeline.threads[&8].state,
            State::Running,
            "its number again"
        );
        assert_eq!(timeline.totals.threads_max, 2);
    }

    #[test]
    fn a_gap_is_spent_as_the_window_before_it() {
        let mut timeline = Timeline::new(0, true);
        timeline.adopt(7, 7, "a");
        let mut pasts = Vec::new();
        window(&mut timeline, 0, 1_000, &mut pasts);
        timeline.begin_gap(4_000_000, 0.0, &mut |past| pasts.push(past));
        assert_eq!(timeline.idle_since_ns, None, "unknown is not idle");
        // A late record of a switch must not be used.
        timeline.apply(&event(5_000_000, What::In), &mut |past| pasts.push(past));
        timeline.end_gap(24_000_000, &mut |past| pasts.push(past));
        window(&mut timeline, 24_000_000, 1_000, &mut pasts);
        timeline.begin_gap(28_000_000, 2_000_000.0, &mut |past| pasts.push(past));
        timeline.close(40_000_000, &mut |past| pasts.push(past));
        let totals = timeline.totals;
        assert_eq!(totals.all.running_ns, 10_000_000);
        assert_eq!(totals.all.blocked_ns, 30_000_000);
        // Half of the second window is the cost of its records.
        assert_eq!(totals.switches_blocked, 1_000 + 5_000 + 1_000 + 2 * 3_000);
        assert_eq!(timeline.gaps_ns(), 32_000_000);
        let mean_ns = totals.blocked_mean_ns().expect("it was blocked");
        assert!((2_900.0..3_100.0).contains(&mean_ns), "{mean_ns}");
        let thread = &timeline.threads[&7];
        assert_eq!((thread.ran_ns, thread.blocks), (10_000_000, 13_000));
        // The spans have no gaps between them and are in order.
        let mut end_ns = 0;
        for past in &pasts {
            assert_eq!(past.from_ns, end_ns);
            end_ns = past.to_ns;
        }
        assert_eq!(end_ns, 40_000_000);
        let ran = pasts.iter().filter(|past| past.state == State::Running);
        assert_eq!(
            ran.map(|past| past.to_ns - past.from_ns).sum::<u64>(),
            10_000_000
        );
    }
}
