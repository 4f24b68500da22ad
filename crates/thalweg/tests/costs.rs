//! Costs of waiting that were measured before are what waiting begins with.

use thalweg_testkit::alone;

use thalweg::wait::{Pace, WaitCosts, WaitMode};

#[test]
fn a_pace_begins_with_the_costs_of_the_process() {
    alone(a_pace_begins_with_the_costs_of_the_process, || {
        let before = format!("{:?}", Pace::new(WaitMode::Balanced));
        assert!(before.contains("wake_ns: 5000"), "{before}");
        WaitCosts::new(12_000).install().expect("none were set yet");
        let after = format!("{:?}", Pace::new(WaitMode::Balanced));
        assert!(after.contains("wake_ns: 12000"), "{after}");
        assert_eq!(WaitCosts::new(3_000).install(), Err(WaitCosts::new(12_000)));
    });
}
