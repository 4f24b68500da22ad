//! A pipeline gives the results, reports and state that `apply` gives.

use proptest::prelude::*;
use thalweg_exchange::{Command, Events, ResultCode, Rules, State, apply};

use crate::properties::parts::parts_agree;
use crate::properties::served::{on_two_threads, same_under, serial};
use crate::terms::random::{money, stream};
use crate::terms::world::{FUTURES, ask, bid, fitted, good_till, in_symbol, opening, with};

/// Rules, and a stream of all that orders may ask for, with auctions and a clock.
pub(crate) fn world(length: usize) -> impl Strategy<Value = (Rules, Vec<Command>)> {
    let rules = prop::sample::select(vec![Rules::MENDED, Rules::REFERENCE]);
    let streams = rules.prop_flat_map(move |rules| (Just(rules), money(), stream(rules, length)));
    streams.prop_map(|(rules, money, mut commands)| {
        commands.splice(0..0, opening(money));
        let mut state = State::new(rules);
        for command in &mut commands {
            *command = fitted(&state, command);
            apply(&mut state, command, &mut Events::new());
        }
        (rules, commands)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(thalweg_testkit::cases(30)))]

    #[test]
    fn commands_in_parts_give_what_whole_ones_give((rules, commands) in world(200)) {
        parts_agree(rules, &commands)?;
    }

    #[test]
    fn two_threads_give_the_same_answers_and_state((rules, commands) in world(400)) {
        same_under(on_two_threads(), rules, &commands)?;
    }
}

/// User 1 has profit in futures as long as there is a bid of 300, and pays with it in a pair.
#[test]
fn an_order_is_checked_against_the_prices_behind_what_expired_before_it() {
    let rules = Rules {
        cover_futures: false,
        ..Rules::MENDED
    };
    let in_futures = |place| Command::Place(in_symbol(place, FUTURES));
    let mut commands = opening(300);
    commands.extend([
        in_futures(ask(2, 1, 100, 10)),
        in_futures(bid(1, 2, 100, 10)),
        with(good_till(in_symbol(bid(3, 3, 300, 1), FUTURES), 5)),
        Command::Clock { time: 5 },
        Command::Place(bid(1, 4, 100, 10)),
    ]);
    let (answers, _) = serial(rules, &commands);
    let codes: Vec<ResultCode> = answers.iter().map(|answer| answer.0).collect();
    assert_eq!(codes[codes.len() - 1], ResultCode::RiskNsf);
    assert!(
        codes[..codes.len() - 1]
            .iter()
            .all(|code| !code.is_refusal())
    );
    parts_agree(rules, &commands).expect("it agrees");
    // Without the clock it is accepted.
    commands.remove(commands.len() - 2);
    let (answers, _) = serial(rules, &commands);
    assert_eq!(answers[answers.len() - 1].0, ResultCode::Success);
}
