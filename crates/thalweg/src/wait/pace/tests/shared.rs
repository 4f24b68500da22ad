//! Waits on a core that others need.

use super::*;

/// Another thread on the one core of both, which sends and goes on with its own work. It has the
/// core whenever the waiter has not; a yield gives it away until its time slice is over.
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
            if matches!(pace.turns, Turns::Yield | Turns::YieldOnce) {
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

/// Returns how many of the messages that come in the time that 10,000 waits take are older than 20
/// µs when they are seen, in 1,000.
fn late_per_mille(gap: u64, cores: fn() -> View) -> u64 {
    let (clock, mut pace) = pace(Mode::Balanced, cores);
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
    let (clock, mut pace) = pace(Mode::Balanced, pinned);
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
    let (clock, mut pace) = pace(Mode::Balanced, pinned);
    let [quick, slow] = [US, 12 * US].map(|gap| (gap, WAKE));
    assert!(wait_for(&clock, &mut pace, slow, Some(1)));
    assert!(spin(&clock, &mut pace).1 > 1, "another core: it spins");
    assert!(wait_for(&clock, &mut pace, slow, Some(0)));
    assert_eq!(spin(&clock, &mut pace).1, 0, "its own: it sleeps");
    assert!(wait_for(&clock, &mut pace, quick, None));
    assert!(!wait_for(&clock, &mut pace, quick, None), "not known yet");
    // A thread that may run on two cores is moved.
    pace.place = Place::new(|| free(2));
    assert!(wait_for(&clock, &mut pace, slow, Some(0)));
    assert!(!wait_for(&clock, &mut pace, quick, Some(0)));
}

#[test]
fn a_pinned_thread_that_loses_its_core_asks_who_wakes_it() {
    let (clock, mut pace) = pace(Mode::Latency, pinned);
    pace.begin(None);
    while pace.spin_more() {
        clock.pass(SLICE);
    }
    assert_eq!(spin(&clock, &mut pace).1, 0, "sleeps to know");
    let quick = (US, WAKE);
    assert!(wait_for(&clock, &mut pace, quick, Some(1)));
    assert!(!wait_for(&clock, &mut pace, quick, Some(1)), "spins again");
    pace.place.lost();
    assert!(wait_for(&clock, &mut pace, quick, Some(0)));
    assert_eq!(spin(&clock, &mut pace).1, 0, "sleeps for its peer");
}

/// Waits for one that answers after 1 µs, until a yield is tried; returns how many waits slept.
fn until_trial(clock: &Hand, pace: &mut Pace<Hand>) -> usize {
    let slept = (0..100_000).take_while(|_| {
        pace.begin(None);
        if pace.turns == Turns::YieldOnce {
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
fn on_one_core_a_turn_is_given_away_once_where_answers_are_quick() {
    for mode in [Mode::Balanced, Mode::Latency] {
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
    let (clock, mut pace) = pace(Mode::Balanced, || free(1));
    until_trial(&clock, &mut pace);
    // The turn that it gave away was used by the other for 20 µs after the send.
    pace.begin(None);
    assert!(pace.spin_more());
    clock.pass(20 * US);
    pace.found_spinning();
    for mode in [Mode::Balanced, Mode::Latency] {
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
    let (clock, mut pace) = pace(Mode::Balanced, || free(1));
    until_trial(&clock, &mut pace);
    clock.pass(10_000 * US);
    assert_eq!(spin(&clock, &mut pace).1, 1);
    assert_eq!(pace.crowded, 0);
}

#[test]
fn who_spins_on_one_core_finds_out_soon() {
    let (clock, mut pace) = pace(Mode::Latency, || free(1));
    let (took, turns) = spin(&clock, &mut pace);
    assert!(took < US && turns <= TURNS_PER_LOOK, "{took} {turns}");
    assert_eq!(spin(&clock, &mut pace).1, 0);
}
