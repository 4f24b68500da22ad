//! Whatever the engine does, the messages say so.

use proptest::prelude::*;
use thalweg_exchange::market::{Builder, Channels, Epoch};
use thalweg_exchange::{Command, Events, State, apply};

use crate::market::commands::{Mix, extreme_command, rules, stream};
use crate::market::operations::market;
use crate::market::recording::recorded;
use crate::market::streams;
use crate::market::subscriber::World;
use crate::terms::pipelines::world;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(thalweg_testkit::cases(100)))]

    #[test]
    fn a_subscriber_has_the_books_of_the_engine_after_every_command(
        commands in stream(Mix::Quirks, 250),
        rules in rules(),
        joins in prop::collection::vec((0..250_usize, 0..5_usize), 0..4),
        reset in prop::option::of(0..250_usize),
    ) {
        let mut world = World::new(rules);
        for (at, command) in commands.iter().enumerate() {
            world.execute(command, true);
            for &(_, depth) in joins.iter().filter(|&&(when, _)| when == at) {
                world.join(depth);
            }
            if reset == Some(at) {
                world.execute(&Command::Reset, true);
                world.execute(&commands[0], true);
                world.execute(&commands[1], true);
            }
        }
    }

    #[test]
    fn operations_conditions_and_auctions_are_followed(
        (rules, commands) in prop_oneof![market(250), world(250)],
        joins in prop::collection::vec((0..250_usize, 0..5_usize), 0..4),
    ) {
        let mut world = World::new(rules);
        for (at, command) in commands.iter().enumerate() {
            world.execute(command, true);
            for &(_, depth) in joins.iter().filter(|&&(when, _)| when == at) {
                world.join(depth);
            }
        }
    }

    #[test]
    fn any_numbers_at_all_are_followed(
        commands in prop::collection::vec(extreme_command(), 1..200),
        rules in rules(),
    ) {
        let mut world = World::new(rules);
        for command in commands {
            world.execute(&command, true);
        }
    }

    #[test]
    fn a_builder_can_start_or_be_heard_from_the_middle_on(
        (rules, commands) in prop_oneof![market(200), world(200)],
        middle in 0..200_usize,
    ) {
        let mut state = State::new(rules);
        let mut events = Events::new().with_levels();
        let mut whole = Builder::new(Epoch(1), Channels::default());
        let mut silent = whole.clone();
        let mut late: Option<Builder> = None;
        for (at, command) in commands.iter().enumerate() {
            if at == middle {
                let options = Channels::default();
                late = Some(Builder::from_books(&state.matching, Epoch(2), options));
            }
            let result = apply(&mut state, command, &mut events);
            let messages = whole.apply(at as u64, command, result, &events).expect("in step");
            silent.set_silent(at < middle);
            let same = silent.apply(at as u64, command, result, &events).expect("in step");
            prop_assert_eq!(same, if at < middle { &[] } else { messages });
            if let Some(late) = &mut late {
                let again = late.apply(at as u64, command, result, &events).expect("in step");
                prop_assert_eq!(messages.len(), again.len());
                for (one, other) in messages.iter().zip(again) {
                    prop_assert_eq!((one.symbol, one.body), (other.symbol, other.body));
                }
            }
        }
    }
}

#[test]
fn recorded_streams_are_followed() {
    let mut messages = 0;
    let streams = streams();
    // A user's clone has two of the six.
    let least = if streams.len() > 2 { 50_000 } else { 30_000 };
    for path in streams {
        let (rules, commands) = recorded(&path);
        let mut world = World::new(rules);
        let every = (commands.len() / 2_000).max(1);
        for (at, command) in commands.iter().enumerate() {
            // The books get large here: not every one is compared after every command.
            world.execute(command, at % every == 0 || at + 1 == commands.len());
            if at % (commands.len() / 3).max(1) == 0 {
                world.join(at % 7 * 3);
            }
        }
        messages += world.messages();
    }
    assert!(messages > least, "{messages}");
}
