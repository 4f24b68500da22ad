//! The schedule and its sender under a clock that the test drives.

use std::cell::Cell;
use std::ops::ControlFlow;
use std::rc::Rc;
use thalweg_measure::clock::{Clock, TimeSource};
use thalweg_measure::load::{OpenLoop, Rate};

/// 4 ticks a nanosecond; each look at it takes 40 ticks.
#[derive(Clone, Default)]
struct HandClock {
    now: Rc<Cell<u64>>,
}

const LOOK_TICKS: u64 = 40;

impl HandClock {
    fn pass(&self, ticks: u64) {
        self.now.set(self.now.get() + ticks);
    }
}

impl TimeSource for HandClock {
    fn ticks(&self) -> u64 {
        self.pass(LOOK_TICKS);
        self.now.get()
    }
    fn ns(&self, ticks: u64) -> u64 {
        ticks / 4
    }
    fn ticks_from_ns(&self, ns: u64) -> u64 {
        ns * 4
    }
}

fn rate(text: &str) -> Rate {
    text.parse().expect("a rate")
}

/// Ticks between two events at a million a second.
const GAP: u64 = 4_000;

#[test]
fn events_are_sent_on_time_and_not_before() {
    for yielding in [false, true] {
        let clock = HandClock::default();
        let mut load = OpenLoop::new(clock.clone(), rate("1M")).yielding(yielding);
        let mut due = Vec::new();
        let report = load.run(50, |i, intended| {
            assert_eq!(i, due.len() as u64);
            let now = clock.now.get();
            assert!(
                now >= intended && now - intended <= LOOK_TICKS * 2,
                "{intended} at {now}"
            );
            due.push(intended);
        });
        assert_eq!(report.sent, 50);
        assert!(due.windows(2).all(|two| two[1] - two[0] == GAP), "{due:?}");
        assert!(report.lateness_ns.max() <= LOOK_TICKS * 2 / 4);
        assert_eq!(report.lateness_ns.count(), 50);
        // 50 events and 50 gaps, though the last one was sent after 49.
        assert_eq!((report.scheduled_ns, report.sent_per_s()), (50_000, 1e6));
        assert!(
            (report.span_ns).abs_diff(49_000) < 100,
            "{}",
            report.span_ns
        );
    }
}

#[test]
fn a_stall_is_caught_up_and_counted() {
    let clock = HandClock::default();
    let mut load = OpenLoop::new(clock.clone(), rate("1M"));
    let (mut due, mut sent_at) = (Vec::new(), Vec::new());
    let report = load.run(40, |i, intended| {
        due.push(intended);
        sent_at.push(clock.now.get());
        if i == 9 {
            clock.pass(20 * GAP);
        }
    });
    // The schedule does not move: all events, each at its own time.
    assert!(due.windows(2).all(|two| two[1] - two[0] == GAP), "{due:?}");
    // Event 10 was due one gap after event 9, and 19 gaps more had passed.
    let late_ticks = sent_at[10] - due[10];
    assert!(
        late_ticks.abs_diff(19 * GAP) <= 3 * LOOK_TICKS,
        "{late_ticks}"
    );
    assert!(report.lateness_ns.max().abs_diff(late_ticks / 4) <= 1);
    // Back to back: one look at the clock between two sends, until there is nothing to catch up.
    for i in 10..29 {
        assert_eq!(sent_at[i + 1] - sent_at[i], LOOK_TICKS, "event {i}");
        assert!(sent_at[i] > due[i]);
    }
    assert!(sent_at[35] - due[35] < GAP, "caught up");
    // 20 events were late, those from 10 to 29 by 19 gaps, 18 gaps, ...: the median of 40 is not.
    assert!(report.lateness_ns.quantile(0.45) <= LOOK_TICKS * 2 / 4);
    assert!(report.lateness_ns.quantile(0.55) > GAP / 4 / 2);
}

#[test]
fn a_rate_that_does_not_divide_does_not_drift() {
    let clock = HandClock::default();
    let mut load = OpenLoop::new(clock, rate("3"));
    let first = load.next_due();
    let due: Vec<u64> = (0..3_000_000).map(|_| load.next_due() - first).collect();
    assert_eq!(due[0], 1_333_333_333);
    assert_eq!(due[2], 4_000_000_000);
    assert_eq!(due[2_999_999], 4_000_000_000 * 1_000_000);
}

#[test]
fn max_has_no_schedule() {
    let clock = HandClock::default();
    let mut load = OpenLoop::new(clock.clone(), Rate::MAX);
    let report = load.run(10, |_, intended| assert_eq!(intended, clock.now.get()));
    assert_eq!(report.sent, 10);
    assert!(report.lateness_ns.is_empty());
    // Ten looks, one an event, and one at the end: ten spans of 10 ns.
    assert_eq!(report.span_ns, 100);
    assert_eq!(report.sent_per_s(), 1e8);
}

#[test]
fn a_run_can_be_ended() {
    let mut load = OpenLoop::new(HandClock::default(), rate("1M"));
    let report = load.run_until(100, |i, _| match i {
        0..7 => ControlFlow::Continue(()),
        _ => ControlFlow::Break(()),
    });
    assert_eq!(report.sent, 7);
    // The eighth was not sent: neither its lateness nor its gap counts.
    assert_eq!(report.lateness_ns.count(), 7);
    assert_eq!(report.scheduled_ns, 7_000);
    // One more look at the clock, after the eighth was due.
    assert_eq!(report.span_ns, 7_010);
    let nothing = OpenLoop::new(HandClock::default(), rate("1M")).run(0, |_, _| unreachable!());
    assert_eq!(
        (nothing.sent, nothing.span_ns, nothing.sent_per_s()),
        (0, 0, 0.0)
    );
}

#[test]
fn the_real_clock_is_not_early() {
    let clock = Clock::global();
    let mut load = OpenLoop::new(clock, rate("100k"));
    let report = load.run(500, |_, intended| assert!(clock.ticks() >= intended));
    assert!(report.span_ns >= 499 * 10_000 - 100, "{}", report.span_ns);
}

/// The event that panics was due and is gone; the schedule goes on behind it.
#[test]
fn a_send_that_panics_leaves_the_schedule_as_it_was() {
    for at in 0..10 {
        let clock = HandClock::default();
        let mut load = OpenLoop::new(clock, rate("1M"));
        let mut due = Vec::new();
        let run = std::panic::AssertUnwindSafe(|| {
            load.run(10, |number, intended| {
                due.push(intended);
                if number == at {
                    std::panic::resume_unwind(Box::new("seeded"));
                }
            })
        });
        assert!(std::panic::catch_unwind(run).is_err());
        let report = load.run(9 - at, |_, intended| due.push(intended));
        assert_eq!((report.sent, due.len()), (9 - at, 10));
        assert!(due.windows(2).all(|two| two[1] - two[0] == GAP), "{due:?}");
    }
}
