//! The waiting rules under every lag between check, match and settlement, without threads; and
//! the same without the rules, which must go wrong.

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};
use thalweg::pipeline::Flow;

use super::ledger::{Checked, Ledger};
use crate::{Command, Events, ResultCode, Rules, State, apply};

#[path = "../../tests/properties/commands.rs"]
#[allow(dead_code)] // made for the properties; this file needs a part of it
mod commands;

use commands::{Mix, stream};

fn serial(rules: Rules, commands: &[Command]) -> Vec<ResultCode> {
    let mut state = State::new(rules);
    let mut events = Events::new();
    let apply = |command| apply(&mut state, command, &mut events);
    commands.iter().map(apply).collect()
}

/// Runs the stages with lags taken from `lags`; `obey` says whether a `Retry` is obeyed.
fn lagging(rules: Rules, commands: &[Command], lags: &[usize], obey: bool) -> Vec<ResultCode> {
    let state = State::new(rules);
    let mut ledger = Ledger::new(state.risk);
    let mut matching = state.matching;
    let mut done: Vec<(ResultCode, ResultCode, Events)> = Vec::new();
    let (mut matched, mut settled) = (0, 0);
    let mut lag = lags.iter().cycle();
    while settled < commands.len() {
        // How far risk may run ahead of settlement in this turn.
        let ahead = *lag.next().expect("a cycle");
        while done.len() < commands.len() && done.len() <= settled + ahead {
            let at = done.len();
            let mut checked = Checked::NOT_YET;
            if ledger.check(&commands[at], at as u64, &mut checked) == Flow::Retry {
                if obey {
                    break;
                }
                checked.code = ledger.check_regardless(&commands[at]);
            }
            done.push((checked.code, ResultCode::New, Events::new()));
        }
        while matched < done.len() {
            let (checked, result, events) = &mut done[matched];
            *result = matching.execute(&commands[matched], *checked, events);
            matched += 1;
        }
        let until = matched.min(settled + 1 + *lag.next().expect("a cycle"));
        while settled < until {
            let (_, result, events) = &done[settled];
            ledger.settle(&commands[settled], *result, events, settled as u64);
            settled += 1;
        }
    }
    done.into_iter().map(|(_, result, _)| result).collect()
}

#[test]
fn results_do_not_depend_on_the_lag() {
    let strategy = (
        stream(Mix::Quirks, 300),
        prop::collection::vec(0..40_usize, 1..20),
        prop::sample::select(vec![Rules::default(), Rules::REFERENCE]),
    );
    let mut runner = TestRunner::new(ProptestConfig::with_cases(300));
    let outcome = runner.run(&strategy, |(commands, lags, rules)| {
        let expected = serial(rules, &commands);
        prop_assert_eq!(lagging(rules, &commands, &lags, true), expected);
        Ok(())
    });
    outcome.unwrap();
}

#[test]
fn without_the_waiting_rules_it_goes_wrong() {
    let config = ProptestConfig::default();
    let random = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(config, random);
    let wrong = (0..200).filter(|_| {
        let tree = stream(Mix::Quirks, 300).new_tree(&mut runner).unwrap();
        let commands = tree.current();
        lagging(Rules::REFERENCE, &commands, &[30, 3], false) != serial(Rules::REFERENCE, &commands)
    });
    assert!(
        wrong.count() > 0,
        "the simulation would not notice a missing wait"
    );
}
