//! Operations come to the same results in a service as by `apply`.

use proptest::prelude::*;
use thalweg_exchange::report::state_text::state_hash;
use thalweg_exchange::{Command, Events, ResultCode, Rules, State, apply};

use crate::operations::parts::parts_agree;
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
    fn commands_in_parts_give_what_whole_ones_give((rules, commands) in market(150)) {
        parts_agree(rules, &commands)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(30))]

    #[test]
    fn two_threads_do_the_same((rules, commands) in market(300)) {
        let (expected, answers) = serial(rules, &commands);
        for is_timed in [false, true] {
            let (state, served) = served(rules, &commands, is_timed, |outcome| {
                (outcome.result, outcome.events.clone())
            });
            prop_assert_eq!(&served, &answers, "stamped: {}", is_timed);
            prop_assert_eq!(state_hash(&state), state_hash(&expected));
        }
    }
}
