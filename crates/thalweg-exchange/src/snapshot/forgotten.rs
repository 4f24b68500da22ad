//! Tests with snapshots that lack a field: an exchange that begins with one behaves differently.

use std::cell::Cell;

use super::field::Field;
use super::{decode_state, encode_state};
use crate::{Command, Events, ResultCode, Rules, State, apply};

#[path = "../../tests/fuzz/language.rs"]
#[allow(dead_code)] // made for the fuzzer; this file needs a part of it
mod language;

use language::{Words, setup};

const ALL: [Field; 12] = [
    Field::Clock,
    Field::TransactionId,
    Field::UsedIds,
    Field::Halt,
    Field::Protection,
    Field::LastTrade,
    Field::LargestPrice,
    Field::Room,
    Field::Filled,
    Field::Flags,
    Field::Display,
    Field::Turn,
];

thread_local! {
    static FORGOTTEN: Cell<Option<Field>> = const { Cell::new(None) };
}

pub(super) fn is_forgotten(field: Field) -> bool {
    FORGOTTEN.get() == Some(field)
}

/// Some commands of every kind, the same for the same seed.
fn commands(seed: u64) -> Vec<Command> {
    let mut state = seed;
    let mut byte = || {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (state ^ state >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB) as u8
    };
    let bytes: Vec<u8> = (0..400).map(|_| byte()).collect();
    let mut commands = Words::new(&bytes).commands(false);
    commands.retain(|command| *command != Command::Reset);
    commands.iter_mut().for_each(bring_times_together);
    commands
}

/// So that orders expire, and some at one time.
fn bring_times_together(command: &mut Command) {
    match command {
        Command::Clock { time } => *time = 497 + time.rem_euclid(4),
        Command::PlaceConditional(order) => {
            let mut order = **order;
            let good_till = &mut order.good_till;
            *good_till = good_till.map(|time| 499 + time.rem_euclid(2));
            *command = Command::PlaceConditional(order.into());
        }
        _ => {}
    }
}

fn run(state: &mut State, commands: &[Command]) -> Vec<(ResultCode, Events)> {
    let run = |command| {
        let mut events = Events::new();
        (apply(state, command, &mut events), events)
    };
    commands.iter().map(run).collect()
}

/// Returns whether what was written with this field forgotten is refused, or does something else.
fn is_noticed(seed: u64, forgotten: Option<Field>) -> bool {
    let rules = [Rules::MENDED, Rules::REFERENCE][(seed % 2) as usize];
    let mut state = State::new(rules);
    run(&mut state, &setup());
    run(&mut state, &commands(3 * seed));
    let mut bytes = Vec::new();
    FORGOTTEN.set(forgotten);
    encode_state(&state, &mut bytes);
    FORGOTTEN.set(None);
    let Ok(mut copy) = decode_state(&bytes) else {
        return true;
    };
    (1..3).any(|more| {
        let commands = commands(3 * seed + more);
        run(&mut copy, &commands) != run(&mut state, &commands)
    })
}

#[test]
fn a_field_that_is_forgotten_is_noticed_by_what_the_exchange_does() {
    const SEEDS: u64 = 20_000;
    assert!((0..SEEDS / 50).all(|seed| !is_noticed(seed, None)));
    for field in ALL {
        let is_noticed = (0..SEEDS).any(|seed| is_noticed(seed, Some(field)));
        assert!(is_noticed, "{field:?}");
    }
}
