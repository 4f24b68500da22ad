//! Hostile commands do the same under every placement: results, events and state, totals included.

use proptest::prelude::*;
use thalweg_exchange::{Command, Rules};

use crate::money::hostile::everybody;
use crate::properties::served::{everywhere, same_under, serial, served};

pub(crate) fn same_under_every_placement(commands: &[Command]) -> Result<(), TestCaseError> {
    for rules in [Rules::default(), Rules::REFERENCE] {
        same_under(everywhere(), rules, commands)?;
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(thalweg_testkit::cases(40)))]

    #[test]
    fn hostile_commands_do_the_same_under_every_placement(commands in everybody(250)) {
        same_under_every_placement(&commands)?;
    }
}

#[test]
fn another_rule_set_would_be_noticed() {
    use proptest::strategy::ValueTree;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let is_seen = (0..50).any(|_| {
        let commands = everybody(250)
            .new_tree(&mut runner)
            .expect("a stream")
            .current();
        let inline = everywhere().swap_remove(0);
        served(Rules::REFERENCE, &commands, inline) != serial(Rules::default(), &commands)
    });
    assert!(is_seen);
}
