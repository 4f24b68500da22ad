//! Any numbers in orders that ask for something: no panic, and no money out of nothing.

use proptest::prelude::*;
use thalweg_exchange::{
    Command, ConditionalOrder, Events, OrderFlags, Place, ResultCode, Rules, State, apply,
};

use crate::terms::commands::{Mix, extreme_command, rules, stream};
use crate::terms::watch::money_is_conserved;

fn number() -> impl Strategy<Value = Option<i64>> {
    let limits = vec![i64::MIN, -1, 0, 1, 2, 100, 1 << 40, i64::MAX - 1, i64::MAX];
    prop_oneof![
        3 => Just(None),
        3 => (1..20_i64).prop_map(Some),
        1 => prop::sample::select(limits).prop_map(Some),
    ]
}

/// A command whose order, if it places one, asks for anything at all.
fn asking() -> impl Strategy<Value = Command> {
    let terms = (number(), number(), number(), 0..16_u8, 0..4_u8);
    let command = prop_oneof![
        9 => extreme_command(),
        1 => (-5..20_i64).prop_map(|time| Command::Clock { time }),
    ];
    (command, terms).prop_map(|(command, (trigger, display, good_till, flags, kind))| {
        let Command::Place(place) = command else {
            return command;
        };
        let flags = OrderFlags::from_code(flags).unwrap_or_default();
        let place = Place { flags, ..place };
        if kind == 0 {
            return Command::Place(place);
        }
        let order = ConditionalOrder {
            place,
            trigger,
            display,
            good_till,
        };
        Command::PlaceConditional(order.into())
    })
}

proptest! {
    #[test]
    fn any_numbers_are_taken_or_refused(
        small in stream(Mix::Plain, 40),
        asking in prop::collection::vec(asking(), 1..150),
        rules in rules(),
    ) {
        for rules in [Rules::MENDED, rules] {
            let mut state = State::new(rules);
            let mut events = Events::new();
            for command in small.iter().chain(&asking) {
                let result = apply(&mut state, command, &mut events);
                prop_assert_ne!(result, ResultCode::MatchingUnsupportedCommand);
                if rules == Rules::MENDED {
                    money_is_conserved(&state)?;
                }
            }
        }
    }
}
