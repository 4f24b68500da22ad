//! The pace under a clock that is set by hand: a tick is a nanosecond.

use super::*;
use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

const US: u64 = 1_000;

/// Goes on by `step` at every read.
#[derive(Clone, Default)]
struct Hand {
    now: Rc<Cell<u64>>,
    step: Rc<Cell<u64>>,
}

impl Hand {
    fn pass(&self, ns: u64) {
        self.now.set(self.now.get() + ns);
    }
}

impl TimeSource for Hand {
    fn ticks(&self) -> u64 {
        self.pass(self.step.get());
        self.now.get()
    }

    fn ns(&self, ticks: u64) -> u64 {
        ticks
    }

    fn ticks_from_ns(&self, ns: u64) -> u64 {
        ns
    }
}

fn free(count: usize) -> View {
    View { count, only: None }
}

/// Pinned to the first of two cores.
fn pinned() -> View {
    View {
        count: 2,
        only: Some(0),
    }
}

fn pace(mode: WaitMode, cores: fn() -> View) -> (Hand, Pace<Hand>) {
    let clock = Hand::default();
    clock.step.set(200);
    (clock.clone(), Pace::with(mode, clock, cores))
}

/// Spins to the end; returns how long that took and the number of rounds.
fn spin(clock: &Hand, pace: &mut Pace<Hand>) -> (u64, u32) {
    let begin = clock.now.get();
    pace.begin(None);
    let mut rounds = 0;
    while pace.spin_more() {
        rounds += 1;
    }
    (clock.now.get() - begin, rounds)
}

/// Waits while something comes after `gap`; returns whether it slept.
fn wait(clock: &Hand, pace: &mut Pace<Hand>, gap: u64, wake: u64) -> bool {
    wait_for(clock, pace, (gap, wake), None)
}

/// Waits as `wait` does, where `core` is the sender's.
fn wait_for(
    clock: &Hand,
    pace: &mut Pace<Hand>,
    (gap, wake): (u64, u64),
    core: Option<usize>,
) -> bool {
    let due = clock.now.get() + gap;
    pace.begin(None);
    while pace.spin_more() {
        if clock.now.get() >= due {
            pace.found_spinning();
            return false;
        }
    }
    pace.before_sleep();
    let due = due.max(clock.now.get());
    clock.now.set(due + wake - clock.step.get());
    pace.woken(Woken { at: due, core });
    true
}

#[test]
fn spinning_ends_after_what_a_wake_up_costs() {
    let (clock, mut pace) = pace(WaitMode::Balanced, || free(2));
    let (took, rounds) = spin(&clock, &mut pace);
    assert!((5 * US..6 * US).contains(&took), "{took}");
    assert!(rounds > 16);
}

#[test]
fn latency_mode_spins_for_5_ms_and_power_mode_never() {
    let (clock, mut pace) = pace(WaitMode::Latency, || free(2));
    let (took, _) = spin(&clock, &mut pace);
    assert!((5_000 * US..5_001 * US).contains(&took), "{took}");
    for _ in 0..20 {
        wait(&clock, &mut pace, 50_000 * US, 5 * US);
    }
    let (took, _) = spin(&clock, &mut pace);
    assert!(took >= 5_000 * US, "whatever it has learned: {took}");
    pace.mode = WaitMode::LowPower;
    assert_eq!(spin(&clock, &mut pace).1, 0);
    assert_eq!(pace.mode(), WaitMode::LowPower);
}

#[test]
fn no_thread_spins_beyond_the_deadline() {
    let (clock, mut pace) = pace(WaitMode::Latency, || free(2));
    pace.begin(Some(Instant::now()));
    while pace.spin_more() {}
    assert!(clock.now.get() < 10 * US);
    pace.begin(Some(Instant::now() + Duration::from_secs(3600)));
    while pace.spin_more() {}
    assert!(clock.now.get() >= 5_000 * US);
}

#[test]
fn long_gaps_end_the_spinning_and_short_ones_bring_it_back() {
    let (clock, mut pace) = pace(WaitMode::Balanced, || free(2));
    for _ in 0..8 {
        assert!(wait(&clock, &mut pace, 200 * US, 5 * US));
    }
    assert_eq!(spin(&clock, &mut pace).1, 0, "sleeps at once");
    // After an hour of nothing, a few short gaps are enough.
    wait(&clock, &mut pace, 3_600_000_000 * US, 5 * US);
    let sleeps = (0..20)
        .filter(|_| wait(&clock, &mut pace, US, 5 * US))
        .count();
    assert!((1..=8).contains(&sleeps), "{sleeps}");
    assert!(spin(&clock, &mut pace).1 > 0);
}

#[test]
fn spinning_goes_on_where_it_mostly_pays() {
    let (clock, mut pace) = pace(WaitMode::Balanced, || free(2));
    // Every eighth gap is long.
    let sleeps = (0..800)
        .filter(|n| {
            wait(
                &clock,
                &mut pace,
                if n % 8 == 7 { 500 * US } else { US },
                5 * US,
            )
        })
        .count();
    assert_eq!(sleeps, 100, "only in the long gaps");
}

#[test]
fn gaps_of_one_wake_up_are_spun_over() {
    let (clock, mut pace) = pace(WaitMode::Balanced, || free(2));
    for _ in 0..20 {
        wait(&clock, &mut pace, 200 * US, 4 * US);
    }
    // As with two threads that wake each other and both have come to sleep.
    let gaps = [3_500, 5_000, 4_200, 4_800, 3_800];
    let gaps = gaps.into_iter().cycle();
    let sleeps = gaps
        .take(200)
        .filter(|&gap| wait(&clock, &mut pace, gap, 4 * US));
    assert!(sleeps.count() < 20);
    // Gaps of two wake-ups are not.
    let sleeps = (0..200).filter(|_| wait(&clock, &mut pace, 8 * US, 4 * US));
    assert!(sleeps.count() > 180);
}

#[test]
fn the_cost_of_a_wake_up_is_learned_within_bounds() {
    let (clock, mut pace) = pace(WaitMode::Balanced, || free(2));
    assert_eq!(pace.clock.ns(pace.wake), 5 * US);
    for (wake, learned) in [(20, 20), (1, 2), (50, 50), (51, 50), (400, 50), (8, 8)] {
        for _ in 0..100 {
            wait(&clock, &mut pace, 300 * US, wake * US);
        }
        assert_eq!(pace.clock.ns(pace.wake), learned * US, "{wake}");
    }
}

#[test]
fn a_very_long_wake_up_makes_the_next_waits_yield() {
    let (clock, mut pace) = pace(WaitMode::Latency, || free(2));
    wait(&clock, &mut pace, 6_000 * US, 60 * US);
    let mut yielding = 0;
    for _ in 0..100 {
        pace.begin(None);
        yielding += u32::from(pace.action == SpinAction::Yield);
    }
    assert_eq!(yielding, CROWDED_WAITS);
}

#[test]
fn who_loses_the_core_while_spinning_yields() {
    let (clock, mut pace) = pace(WaitMode::Latency, || free(2));
    pace.begin(None);
    while pace.spin_more() {
        // Others have the core every millisecond or so.
        if clock.now.get() % (1_000 * US) < 200 {
            clock.pass(60 * US);
        }
    }
    assert_eq!(pace.action, SpinAction::Yield);
    let (_, rounds) = spin(&clock, &mut pace);
    assert_eq!(pace.action, SpinAction::Yield);
    assert!(rounds > 1_000);
    for _ in 0..CROWDED_WAITS {
        pace.begin(None);
    }
    assert_eq!(pace.action, SpinAction::Pause, "for a while");
}

#[test]
fn cores_are_read_again() {
    std::thread_local! {
        static LOOKS: Cell<u32> = const { Cell::new(0) };
        static CORES: Cell<usize> = const { Cell::new(2) };
    }
    let (clock, mut pace) = pace(WaitMode::Balanced, || {
        LOOKS.set(LOOKS.get() + 1);
        free(CORES.get())
    });
    for cores in [2, 1, 2] {
        CORES.set(cores);
        // Two seconds: about 20 looks.
        LOOKS.set(0);
        for _ in 0..100 {
            wait(&clock, &mut pace, 20_000 * US, 5 * US);
        }
        assert!((15..=20).contains(&LOOKS.get()), "{}", LOOKS.get());
        assert_eq!(pace.cores.is_alone(), cores == 1);
    }
    LOOKS.set(0);
    pace.mode = WaitMode::Latency;
    let end = clock.now.get() + 3_000_000 * US;
    while clock.now.get() < end {
        wait(&clock, &mut pace, 4 * US, 5 * US);
        clock.pass(6 * US);
    }
    assert!(
        (2..=4).contains(&LOOKS.get()),
        "who never sleeps: once a second"
    );
}

#[test]
fn a_timeout_counts_as_a_long_gap_if_it_was_one() {
    let (clock, mut pace) = pace(WaitMode::Balanced, || free(2));
    let before = pace.gap;
    pace.begin(None);
    pace.before_sleep();
    clock.pass(US);
    pace.timed_out();
    assert_eq!(pace.gap, before);
    clock.pass(100 * US);
    pace.timed_out();
    assert!(pace.gap > before);
}

mod shared {
    //! Waits on a core that others need.

    use super::*;

    /// Another thread on the one core of both, which sends and goes on with its own work. It has
    /// the core whenever the waiter has not; a yield gives it away until its time slice is over.
    struct Peer {
        clock: Hand,
        gap: u64,
        due: u64,
    }

    const SLICE: u64 = 4_000 * US;
    const WAKE: u64 = 2_400;

    impl Peer {
        fn new(clock: &Hand, gap: u64) -> Self {
            Self {
                clock: clock.clone(),
                gap,
                due: clock.now.get() + gap,
            }
        }

        /// Waits for the next message; returns how long that message has been there by its end.
        fn wait(&mut self, pace: &mut Pace<Hand>) -> u64 {
            let due = self.due;
            pace.begin(None);
            let mut is_late = false;
            while pace.spin_more() {
                if matches!(pace.action, SpinAction::Yield | SpinAction::YieldOnce) {
                    self.clock.pass(SLICE);
                    is_late = true;
                }
                // It cannot send while the waiter has the core.
                if is_late && self.clock.now.get() >= due {
                    pace.found_spinning();
                    return self.taken(due);
                }
            }
            pace.before_sleep();
            let due = due.max(self.clock.now.get());
            self.clock.now.set(due + WAKE - self.clock.step.get());
            pace.woken(Woken {
                at: due,
                core: Some(0),
            });
            self.taken(due)
        }

        /// Takes all that has come since `due`.
        fn taken(&mut self, due: u64) -> u64 {
            let now = self.clock.now.get();
            while self.due <= now {
                self.due += self.gap;
            }
            now - due
        }
    }

    /// Returns how many of the messages that come in the time that 10,000 waits take are older than
    /// 20 µs when they are seen, in 1,000.
    fn late_per_mille(gap: u64, cores: fn() -> View) -> u64 {
        let (clock, mut pace) = pace(WaitMode::Balanced, cores);
        let mut other = Peer::new(&clock, gap);
        let begin = clock.now.get();
        let late: u64 = (0..10_000).map(|_| other.wait(&mut pace) / gap).sum();
        1_000 * late / ((clock.now.get() - begin) / gap)
    }

    #[test]
    fn a_sender_that_keeps_the_core_is_slept_for() {
        // Two trials cost 8 ms.
        for gap in [3, 5, 20] {
            for cores in [|| free(1), pinned] {
                let late = late_per_mille(gap * US, cores);
                assert!(late < 250, "{gap} µs: {late} of 1,000 are late");
            }
        }
    }

    #[test]
    fn trials_become_rare() {
        let (clock, mut pace) = pace(WaitMode::Balanced, pinned);
        let mut other = Peer::new(&clock, 5 * US);
        let mut trials = |waits: u32| {
            (0..waits)
                .filter(|_| other.wait(&mut pace) > 100 * US)
                .count()
        };
        assert!((1..=3).contains(&trials(20_000)));
        assert!((1..=2).contains(&trials(50_000)));
    }

    #[test]
    fn a_pinned_thread_learns_from_its_waker_whether_they_share_the_core() {
        let (clock, mut pace) = pace(WaitMode::Balanced, pinned);
        let [quick, slow] = [US, 12 * US].map(|gap| (gap, WAKE));
        assert!(wait_for(&clock, &mut pace, slow, Some(1)));
        assert!(spin(&clock, &mut pace).1 > 1, "another core: it spins");
        assert!(wait_for(&clock, &mut pace, slow, Some(0)));
        assert_eq!(spin(&clock, &mut pace).1, 0, "its own: it sleeps");
        assert!(wait_for(&clock, &mut pace, quick, None));
        assert!(!wait_for(&clock, &mut pace, quick, None), "not known yet");
        // A thread that may run on two cores is moved.
        pace.cores = CoreView::new(|| free(2));
        assert!(wait_for(&clock, &mut pace, slow, Some(0)));
        assert!(!wait_for(&clock, &mut pace, quick, Some(0)));
    }

    #[test]
    fn a_pinned_thread_that_loses_its_core_asks_who_wakes_it() {
        let (clock, mut pace) = pace(WaitMode::Latency, pinned);
        pace.begin(None);
        while pace.spin_more() {
            clock.pass(SLICE);
        }
        assert_eq!(spin(&clock, &mut pace).1, 0, "sleeps to know");
        let quick = (US, WAKE);
        assert!(wait_for(&clock, &mut pace, quick, Some(1)));
        assert!(!wait_for(&clock, &mut pace, quick, Some(1)), "spins again");
        pace.cores.preempted();
        assert!(wait_for(&clock, &mut pace, quick, Some(0)));
        assert_eq!(spin(&clock, &mut pace).1, 0, "sleeps for its peer");
    }

    /// Returns the modes whose waits may spin.
    fn spinning() -> impl Iterator<Item = WaitMode> {
        WaitMode::ALL.iter().copied().filter(|mode| mode.may_spin())
    }

    /// Waits for one that answers after 1 µs, until a yield is tried; returns how many waits slept.
    fn until_trial(clock: &Hand, pace: &mut Pace<Hand>) -> usize {
        let slept = (0..100_000).take_while(|_| {
            pace.begin(None);
            if pace.action == SpinAction::YieldOnce {
                assert!(pace.spin_more());
                pace.found_spinning();
                return false;
            }
            while pace.spin_more() {}
            pace.before_sleep();
            let at = clock.now.get() + US;
            clock.now.set(at + WAKE);
            pace.woken(Woken { at, core: None });
            true
        });
        slept.count()
    }

    #[test]
    fn on_one_core_a_time_slice_is_given_away_once_where_answers_are_quick() {
        for mode in spinning() {
            let (clock, mut pace) = pace(mode, || free(1));
            assert!((1_000..10_000).contains(&until_trial(&clock, &mut pace)));
            for _ in 0..100 {
                assert_eq!(spin(&clock, &mut pace).1, 1, "{mode:?}");
                pace.found_spinning();
            }
        }
    }

    #[test]
    fn on_one_core_who_waits_long_sleeps_at_once() {
        let (clock, mut pace) = pace(WaitMode::Balanced, || free(1));
        until_trial(&clock, &mut pace);
        // The time slice that it gave away was used by the other for 20 µs after the send.
        pace.begin(None);
        assert!(pace.spin_more());
        clock.pass(20 * US);
        pace.found_spinning();
        for mode in spinning() {
            pace.mode = mode;
            assert_eq!(spin(&clock, &mut pace).1, 0, "{mode:?}");
        }
        // Where the other answers quickly, yielding comes back, and sooner than the first time.
        assert!((1..100).contains(&until_trial(&clock, &mut pace)));
        // Long gaps end it too.
        for _ in 0..20 {
            wait(&clock, &mut pace, 20 * US, WAKE);
        }
        assert_eq!(spin(&clock, &mut pace).1, 0);
    }

    #[test]
    fn a_yield_in_vain_on_one_core_is_no_sign_of_a_crowd() {
        let (clock, mut pace) = pace(WaitMode::Balanced, || free(1));
        until_trial(&clock, &mut pace);
        clock.pass(10_000 * US);
        assert_eq!(spin(&clock, &mut pace).1, 1);
        assert_eq!(pace.crowded, 0);
    }

    #[test]
    fn who_spins_on_one_core_finds_out_soon() {
        let (clock, mut pace) = pace(WaitMode::Latency, || free(1));
        let (took, rounds) = spin(&clock, &mut pace);
        assert!(took < US && rounds <= ROUNDS_PER_READ, "{took} {rounds}");
        assert_eq!(spin(&clock, &mut pace).1, 0);
    }
}

mod costs {
    use super::super::*;

    // Installed costs are of the whole process: the example above and `tests/costs.rs` do that.
    #[test]
    fn unlikely_costs_are_those_of_a_wake_up_that_is_learned() {
        let taken = [0, 1_999, 2_000, 4_300, 50_000, 50_001, u64::MAX].map(WaitCosts::new);
        let known = [2_000, 2_000, 2_000, 4_300, 50_000, 50_000, 50_000];
        assert_eq!(taken.map(|costs| costs.wake_ns), known);
        assert_eq!(WaitCosts::current().wake_ns, 5_000);
    }
}
