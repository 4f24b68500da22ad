//! Random histories, opened again at random points.

use proptest::prelude::*;
use thalweg_exchange::{Command, Rules};

use crate::snapshot::auditor::Auditor;
use crate::snapshot::commands::{Mix, extreme_command, rules, stream};
use crate::snapshot::flow::Flow;
use crate::snapshot::stream::market;
use crate::snapshot::twins::Twins;

/// Runs the commands; the copy is opened again after every `step` of them.
pub(crate) fn follow(rules: Rules, commands: &[Command], step: usize) -> Result<(), TestCaseError> {
    let mut twins = Twins::new(rules);
    for (at, command) in commands.iter().enumerate() {
        if at % step == step - 1 {
            twins.reopen(at % 2 == 0)?;
        }
        twins.execute(command)?;
    }
    twins.end().map(drop)
}

proptest! {
    #[test]
    fn markets_go_on_from_a_snapshot((rules, commands) in market(150), step in 1..40_usize) {
        follow(rules, &commands, step)?;
    }

    #[test]
    fn small_worlds_go_on_under_any_rules(
        rules in rules(),
        commands in stream(Mix::Quirks, 150),
        step in 1..40_usize,
    ) {
        follow(rules, &commands, step)?;
    }

    #[test]
    fn extreme_numbers_go_on_under_any_rules(
        rules in rules(),
        commands in prop::collection::vec(extreme_command(), 1..120),
        step in 1..20_usize,
    ) {
        follow(rules, &commands, step)?;
    }
}

/// Long runs with auctions, halts, bands, amendments, fees of value, users who go and come back.
#[test]
fn long_runs_go_on_from_a_snapshot() {
    for seed in 0..60 {
        let mut auditor = Auditor::default();
        let mut flow = Flow::new(seed);
        let mut twins = Twins::new(Rules::default());
        for at in 0..600_u64 {
            let command = flow.next(&auditor);
            if at % 7 == 0 {
                let reopened = twins.reopen(at % 2 == 0);
                reopened.unwrap_or_else(|error| panic!("{seed}, {at}: {error}"));
            }
            let result = twins.execute(&command);
            let result = result.unwrap_or_else(|error| panic!("{seed}, {at}: {error}"));
            let noted = auditor.note((at, &command), result, twins.events());
            noted.expect("the auditor of the accounts agrees");
        }
        twins.end().expect("both end alike");
    }
}
