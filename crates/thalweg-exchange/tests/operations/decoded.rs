//! Settlement of outcomes that were written and read again gives the engine's state and digest.

use proptest::prelude::*;
use thalweg_exchange::codec::{OutcomeHead, decode_outcome, encode_outcome, outcome_bytes};
use thalweg_exchange::digest::Digest;
use thalweg_exchange::{Command, Events, Rules, State, apply};

use crate::operations::stream::market;
use crate::operations::text;

/// Executes, and settles what is decoded. Gives how many tops_of_book there were: of the command's
/// book, and of others.
fn settled(rules: Rules, commands: &[Command]) -> Result<[usize; 2], TestCaseError> {
    let (mut state, mut events) = (State::new(rules), Events::new());
    let (mut reader, mut read) = (state.risk.clone(), Events::new());
    let mut digests = [Digest::new(); 2];
    let mut tops_of_book = [0; 2];
    for (sequence, command) in (0..).zip(commands) {
        let result = apply(&mut state, command, &mut events);
        let mut frame = vec![0; outcome_bytes(&events)];
        let outcome = OutcomeHead { sequence, result };
        prop_assert_eq!(
            encode_outcome(outcome, &events, &mut frame),
            Ok(frame.len())
        );
        let decoded = decode_outcome(&frame, &mut read);
        prop_assert_eq!(decoded, Ok((outcome, frame.len())));
        prop_assert_eq!(&read, &events, "{:?}", command);
        // After a restart, the reader's digest goes on.
        digests[1] = Digest::from_parts(digests[1].value(), digests[1].outcomes());
        for (digest, events) in digests.iter_mut().zip([&events, &read]) {
            digest.fold(command, result, events);
        }
        prop_assert_eq!(digests[0], digests[1], "{:?}", command);
        reader.check(command);
        reader.settle(command, result, &read);
        tops_of_book[0] += usize::from(events.top_of_book().is_some());
        tops_of_book[1] += events.tops_of_book().len();
    }
    // The debug text shows everything, what is reserved and remembered included.
    prop_assert_eq!(format!("{:?}", reader), format!("{:?}", state.risk));
    let again = State {
        risk: reader,
        matching: state.matching.clone(),
    };
    prop_assert_eq!(text(&again), text(&state));
    Ok(tops_of_book)
}

proptest! {
    #[test]
    fn decoded_outcomes_settle_to_the_same_state((rules, commands) in market(150)) {
        settled(rules, &commands)?;
    }
}

#[test]
fn the_streams_have_standings_of_both_kinds() {
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
