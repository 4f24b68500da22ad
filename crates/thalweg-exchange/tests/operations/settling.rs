//! A reader of commands, results and events, without the books, has the engine's risk state.

use proptest::prelude::*;
use thalweg_exchange::{Command, Events, Rules, State, apply};

use crate::operations::stream::market;

/// Executes, and settles the events elsewhere. Returns how many best prices there were: of the
/// command's book, and of others.
fn settled(rules: Rules, commands: &[Command]) -> Result<[usize; 2], TestCaseError> {
    let (mut state, mut events) = (State::new(rules), Events::new());
    let mut reader = state.risk.clone();
    let mut tops_of_book = [0; 2];
    for command in commands {
        let result = apply(&mut state, command, &mut events);
        reader.check(command);
        reader.settle(command, result, &events);
        tops_of_book[0] += usize::from(events.top_of_book().is_some());
        tops_of_book[1] += events.tops_of_book().len();
    }
    // The debug text shows everything, what is reserved and remembered included.
    prop_assert_eq!(format!("{:?}", reader), format!("{:?}", state.risk));
    Ok(tops_of_book)
}

proptest! {
    #[test]
    fn events_settle_to_the_same_state((rules, commands) in market(150)) {
        settled(rules, &commands)?;
    }
}

#[test]
fn the_streams_have_best_prices_of_both_kinds() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;

    let mut runner = TestRunner::deterministic();
    let mut all = [0; 2];
    for _ in 0..200 {
        let tree = market(250).new_tree(&mut runner).expect("a stream");
        let (rules, commands) = tree.current();
        let found = settled(rules, &commands).expect("it holds");
        all = [all[0] + found[0], all[1] + found[1]];
    }
    assert!(all[0] > 500 && all[1] > 50, "{all:?}");
}
