//! Costs that were measured before are what waiting begins with.

use thalweg_testkit::alone;

use thalweg::wait::{Costs, Pace, WaitMode};

#[test]
fn a_pace_begins_with_the_costs_of_the_process() {
    alone(a_pace_begins_with_the_costs_of_the_process, || {
        let before = format!("{:?}", Pace::new(WaitMode::Balanced));
        assert!(before.contains("wake_ns: 5000"), "{before}");
        Costs::new(12_000).install().expect("none were set yet");
        let after = format!("{:?}", Pace::new(WaitMode::Balanced));
        assert!(after.contains("wake_ns: 12000"), "{after}");
        assert_eq!(Costs::new(3_000).install(), Err(Costs::new(12_000)));
    });
}
