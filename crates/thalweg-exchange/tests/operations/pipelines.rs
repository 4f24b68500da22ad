//! The same through a pipeline, whatever waits for what.

use proptest::prelude::*;
use thalweg_exchange::report::state_text::state_hash;
use thalweg_exchange::{Command, Events, ResultCode, Rules, State, apply};

use crate::operations::late::late_agrees;
use crate::operations::served::served;
use crate::operations::stream::market;

/// Events with how books stand.
type Answers = Vec<(ResultCode, Events)>;

fn serial(rules: Rules, commands: &[Command]) -> (State, Answers) {
    let mut state = State::new(rules);
    let mut events = Events::new();
    let mut answer = |command| (apply(&mut state, command, &mut events), events.clone());
    let answers = commands.iter().map(&mut answer).collect();
    (state, answers)
}

proptest! {
    // 256 cases each; PROPTEST_CASES asks for more.
    #![proptest_config(ProptestConfig::default())]

    #[test]
    fn an_early_acceptance_is_the_late_answer(
        (rules, commands) in market(150),
        pace in prop::collection::vec(prop_oneof![4 => Just(0), 1 => 1_u8..3, 1 => Just(9)], 1..20),
    ) {
        late_agrees(rules, &commands, &pace)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(30))]

    #[test]
    fn two_threads_and_any_shards_do_the_same((rules, commands) in market(300)) {
        let (expected, answers) = serial(rules, &commands);
        for shards in 1..4 {
            let (state, served) = served(rules, &commands, shards, |outcome| {
                (outcome.result, outcome.events.clone())
            });
            prop_assert_eq!(&served, &answers, "{} shards", shards);
            prop_assert_eq!(state_hash(&state), state_hash(&expected));
        }
    }
}
