//! Orders that ask for nothing, on the ways that are made for those that do.

use proptest::prelude::*;
use thalweg_exchange::{
    AccountSpec, Action, Command, ConditionalOrder, CurrencyId, Events, OrderFlags, Rules, State,
    UserId, apply,
};

use crate::terms::commands::{Mix, extreme_command, rules, stream};
use crate::terms::random;
use crate::terms::world::{SYMBOLS, gtc, in_symbol, opening, stop, text, with};

/// The command with an order of conditions that has none.
fn wrapped(command: &Command) -> Command {
    match command {
        Command::Place(place) => with(ConditionalOrder::from(*place)),
        other => other.clone(),
    }
}

/// Without conditions.
fn stripped(command: &Command) -> Command {
    match command {
        Command::Place(place) => Command::Place(place.with_flags(OrderFlags::NONE)),
        Command::PlaceConditional(order) => stripped(&Command::Place(order.place)),
        other => other.clone(),
    }
}

fn both_agree(rules: Rules, commands: &[Command]) -> Result<(), TestCaseError> {
    let mut states = [State::new(rules), State::new(rules)];
    let mut events = [Events::new(), Events::new()];
    for command in commands {
        let result = apply(&mut states[0], command, &mut events[0]);
        let same = apply(&mut states[1], &wrapped(command), &mut events[1]);
        prop_assert_eq!(result, same, "{:?}", command);
        prop_assert_eq!(&events[0][..], &events[1][..], "{:?}", command);
        prop_assert_eq!(text(&states[0]), text(&states[1]), "{:?}", command);
    }
    Ok(())
}

/// A user of its own, with a stop order that is never triggered in every symbol.
fn bystander(waits: bool) -> Vec<Command> {
    let uid = UserId(6);
    let balances = (1..=3).map(|id| (CurrencyId(id), 1_000_000)).collect();
    let account = AccountSpec { uid, balances };
    let mut commands = vec![Command::AddAccounts([account].into())];
    for symbol in SYMBOLS.into_iter().filter(|_| waits) {
        let place = in_symbol(gtc(6, 1_000, Action::Ask, 5, 1), symbol);
        commands.push(with(stop(place, 1)));
    }
    commands
}

/// The text without the bystander.
fn without_bystander(state: &State) -> String {
    let text = text(state);
    let is_other = |line: &&str| {
        let own = ["U,6,", "A,6,", "P,6,", "N,", "L,"];
        !own.iter().any(|start| line.starts_with(start))
    };
    text.lines().filter(is_other).collect()
}

proptest! {
    #[test]
    fn an_order_with_no_condition_is_a_plain_one(
        quirks in stream(Mix::Quirks, 100),
        extreme in prop::collection::vec(extreme_command(), 1..60),
        rules in rules(),
    ) {
        both_agree(Rules::REFERENCE, &quirks)?;
        both_agree(rules, &quirks)?;
        both_agree(rules, &extreme)?;
    }

    #[test]
    fn plain_orders_match_as_ever_where_others_wait(
        commands in random::stream(Rules::MENDED, 200),
        money in random::money(),
        reference: bool,
    ) {
        let rules = if reference { Rules::REFERENCE } else { Rules::MENDED };
        let mut states = [State::new(rules), State::new(rules)];
        let mut events = Events::new();
        for (state, waits) in states.iter_mut().zip([false, true]) {
            for command in opening(money).into_iter().chain(bystander(waits)) {
                apply(state, &command, &mut events);
            }
        }
        for command in commands.iter().map(stripped) {
            let result = apply(&mut states[0], &command, &mut events);
            let expected = events.to_vec();
            prop_assert_eq!(apply(&mut states[1], &command, &mut events), result);
            prop_assert_eq!(&events[..], &expected[..], "{:?}", command);
        }
        prop_assert_eq!(without_bystander(&states[0]), without_bystander(&states[1]));
    }
}
