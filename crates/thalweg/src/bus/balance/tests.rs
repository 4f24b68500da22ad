use super::*;
use proptest::prelude::*;

/// Readings every `step_ns`, of an inbox with the given arrivals a second, a consumer of
/// `service_per_s`, and a queue that loses what does not fit.
struct Inbox {
    reading: Reading,
    step_ns: u64,
    service_per_s: f64,
    arrived: f64,
    served: f64,
}

impl Inbox {
    fn new(service_per_s: f64, capacity: u64, step_ns: u64) -> Self {
        Self {
            reading: Reading {
                capacity,
                consumers: 1,
                ..Reading::default()
            },
            step_ns,
            service_per_s,
            arrived: 0.0,
            served: 0.0,
        }
    }

    fn step(&mut self, arrival_per_s: f64) -> Reading {
        let step_s = self.step_ns as f64 / 1e9;
        self.arrived += arrival_per_s * step_s;
        let come = self.arrived as u64 - self.reading.issued;
        let room = self.reading.capacity - self.reading.waiting;
        let admitted = come.min(room + (self.service_per_s * step_s) as u64);
        self.served += self.service_per_s * step_s;
        let taken = (self.reading.waiting + admitted).min(self.served as u64);
        self.served -= taken as f64;
        if self.reading.waiting + admitted == taken {
            self.served = self.served.fract();
        }
        let reading = &mut self.reading;
        reading.at_ns += self.step_ns;
        reading.issued += come;
        reading.admitted += admitted;
        reading.lost += come - admitted;
        reading.taken += taken;
        reading.busy_ns += (taken as f64 / self.service_per_s * 1e9) as u64;
        reading.waiting = reading.waiting + admitted - taken;
        *reading
    }
}

const STEP_NS: u64 = 5_000_000;

/// Verdicts of a balance over that many seconds of an inbox that serves 10,000 a second.
fn verdicts(seconds: u64, arrival_per_s: impl Fn(f64) -> f64) -> Vec<Report> {
    let mut balance = Balance::new(Horizons::default());
    let mut inbox = Inbox::new(10_000.0, 1_000_000, STEP_NS);
    balance.update(inbox.reading);
    (0..seconds * 1_000_000_000 / STEP_NS)
        .map(|step| balance.update(inbox.step(arrival_per_s((step * STEP_NS) as f64 / 1e9))))
        .collect()
}

#[test]
fn a_steady_flow_is_stable_and_its_rates_are_right() {
    let reports = verdicts(20, |_| 6_000.0);
    assert!(
        reports
            .iter()
            .all(|report| report.verdict == Verdict::Stable)
    );
    let last = reports.last().unwrap();
    assert!((last.arrival_per_s - 6_000.0).abs() < 60.0, "{last:?}");
    assert!(
        (last.service_per_s.unwrap() - 10_000.0).abs() < 100.0,
        "{last:?}"
    );
    assert!((last.utilisation - 0.6).abs() < 0.01, "{last:?}");
    // From the first readings on: what is known is not averaged with what is not.
    assert!((reports[2].arrival_per_s - 6_000.0).abs() < 200.0);
}

#[test]
fn a_burst_is_reported_and_ends() {
    let reports = verdicts(40, |s| if s % 2.0 < 0.2 { 60_000.0 } else { 1_000.0 });
    assert!(
        reports
            .iter()
            .all(|report| report.verdict != Verdict::Overload)
    );
    let bursts = reports
        .iter()
        .filter(|report| report.verdict == Verdict::Burst)
        .count();
    assert!(
        bursts > reports.len() / 20 && bursts < reports.len() / 2,
        "{bursts}"
    );
}

#[test]
fn an_overload_is_a_burst_until_it_has_lasted() {
    let reports = verdicts(30, |_| 20_000.0);
    let first = reports
        .iter()
        .position(|report| report.verdict == Verdict::Overload)
        .unwrap();
    // ln 2 of the long horizon, in steps.
    let expected = (10e9 * std::f64::consts::LN_2 / STEP_NS as f64) as usize;
    assert!(first.abs_diff(expected) < 20, "{first}");
    assert!(
        reports[5..first]
            .iter()
            .all(|report| report.verdict == Verdict::Burst)
    );
    assert!(
        reports[first..]
            .iter()
            .all(|report| report.verdict == Verdict::Overload)
    );
}

#[test]
fn time_to_full_is_what_it_takes() {
    let reports = verdicts(2, |_| 15_000.0);
    let waiting_after = |at: usize| (at + 1) as f64 * STEP_NS as f64 / 1e9 * 5_000.0;
    let actual_s = reports[300].time_to_full_ns.unwrap() as f64 / 1e9;
    let expected_s = (1e6 - waiting_after(300)) / 5_000.0;
    assert!(
        (actual_s / expected_s - 1.0).abs() < 0.05,
        "{actual_s} {expected_s}"
    );
    let full = Reading {
        at_ns: 1,
        waiting: 5,
        capacity: 5,
        ..Reading::default()
    };
    let mut balance = Balance::default();
    balance.update(Reading::default());
    assert_eq!(balance.update(full).time_to_full_ns, Some(0));
}

/// Producers that block send no more than is served, and yet there is an overload: the queue
/// never runs empty.
#[test]
fn a_queue_that_stands_is_an_overload() {
    let mut balance = Balance::new(Horizons::default());
    let mut inbox = Inbox::new(10_000.0, 1_000, STEP_NS);
    inbox.reading.waiting = 900;
    balance.update(inbox.reading);
    let reports: Vec<_> = (0..6_000)
        .map(|_| balance.update(inbox.step(9_000.0)))
        .collect();
    // Nine tenths of the rate: the queue runs empty within a second, and nothing stands.
    assert!(
        reports
            .iter()
            .all(|report| report.verdict != Verdict::Overload)
    );

    inbox.reading.waiting = 900;
    let last = (0..6_000)
        .map(|_| balance.update(inbox.step(9_999.0)))
        .last()
        .unwrap();
    assert!(last.load.unwrap() < 1.0);
    assert_eq!(last.verdict, Verdict::Overload);
}

#[test]
fn a_consumer_that_stalls_is_reported() {
    let mut balance = Balance::new(Horizons::default());
    let mut inbox = Inbox::new(10_000.0, 1_000_000, STEP_NS);
    balance.update(inbox.reading);
    for _ in 0..1_000 {
        assert!(!balance.update(inbox.step(1_000.0)).is_stalled);
    }
    let stalled = |seconds: u64, reading: &Reading| Reading {
        at_ns: reading.at_ns + seconds * 1_000_000_000,
        issued: reading.issued + seconds * 1_000,
        admitted: reading.admitted + seconds * 1_000,
        waiting: reading.waiting + seconds * 1_000,
        ..*reading
    };
    let report = balance.update(stalled(1, &inbox.reading));
    assert!(report.is_stalled);
    assert_eq!(report.verdict, Verdict::Burst);
    let report = balance.update(stalled(11, &inbox.reading));
    assert_eq!(report.verdict, Verdict::Overload);
    // The service rate is that of when it worked.
    assert!((report.service_per_s.unwrap() - 10_000.0).abs() < 100.0);
}

proptest! {
    /// Readings that are torn, go back, or stand still: every number stays one.
    #[test]
    fn torn_readings_give_numbers(
        steps in prop::collection::vec(prop::array::uniform9(any::<u64>()), 1..40),
        shift in 0_u32..64,
    ) {
        let mut balance = Balance::new(Horizons { short_ns: 0, long_ns: u64::MAX });
        for step in steps {
            let [at_ns, issued, admitted, lost, taken, busy_ns, waiting, capacity, consumers] =
                step.map(|word| word >> shift);
            let report = balance.update(Reading {
                at_ns, issued, admitted, lost, taken, busy_ns, waiting, capacity, consumers,
            });
            let rates = [report.arrival_per_s, report.admitted_per_s, report.taken_per_s];
            let others = [report.service_per_s.unwrap_or(0.0), report.load.unwrap_or(0.0)];
            for number in rates.into_iter().chain(others) {
                prop_assert!(number.is_finite() && number >= 0.0, "{:?}", report);
            }
            prop_assert!((0.0..=1.0).contains(&report.utilisation));
        }
    }

    /// Counters that are read a little early or late: rates are right to what was torn.
    #[test]
    fn a_little_tearing_changes_little(
        tears in prop::collection::vec((0_u64..20, 0_u64..20), 400),
    ) {
        let mut balance = Balance::new(Horizons::default());
        let mut inbox = Inbox::new(10_000.0, 100_000, STEP_NS);
        balance.update(inbox.reading);
        let mut report = Report::default();
        for (early, late) in tears {
            let reading = inbox.step(8_000.0);
            report = balance.update(Reading {
                issued: reading.issued - early.min(reading.issued),
                taken: reading.taken - late.min(reading.taken),
                ..reading
            });
            prop_assert_eq!(report.verdict == Verdict::Overload, false);
        }
        // 20 messages of the 800 in a horizon.
        prop_assert!((report.arrival_per_s - 8_000.0).abs() < 400.0, "{:?}", report);
        prop_assert!((report.service_per_s.unwrap() - 10_000.0).abs() < 500.0, "{:?}", report);
    }

    /// It does not matter how often a reading is taken.
    #[test]
    fn rates_do_not_depend_on_when_one_looks(skips in prop::collection::vec(any::<bool>(), 400)) {
        let mut every = Balance::new(Horizons::default());
        let mut some = Balance::new(Horizons::default());
        let mut inbox = Inbox::new(10_000.0, 100_000, STEP_NS);
        every.update(inbox.reading);
        some.update(inbox.reading);
        for skip in skips {
            let reading = inbox.step(8_000.0);
            every.update(reading);
            if !skip {
                some.update(reading);
            }
        }
        let reading = inbox.step(8_000.0);
        let (every, some) = (every.update(reading), some.update(reading));
        prop_assert!((every.arrival_per_s / some.arrival_per_s - 1.0).abs() < 0.01);
        prop_assert_eq!(every.verdict, some.verdict);
    }
}
