//! Bytes of states, mutated or any: what decodes gives the same bytes again, and is an exchange
//! that goes on.

use thalweg_exchange::report::currency_totals;
use thalweg_exchange::snapshot::{decode_state, encode_state};
use thalweg_exchange::{Command, Events, Rules, State, apply};

use super::language::{Words, setup};

/// Where it stands whether everybody's order ids count once.
const IDS_ONCE_AT: usize = 33;

/// Checks the property for any bytes; with a fault, that the limit of everybody's ids is
/// overlooked.
///
/// # Panics
/// If it does not hold.
pub(crate) fn check(bytes: &[u8], has_fault: bool) {
    let mut words = Words::new(bytes);
    let state = match words.byte() & 3 {
        0 => bytes.get(1..).unwrap_or_default().to_vec(),
        rules => mutated(&mut words, rules == 1),
    };
    let mut read = state.clone();
    if has_fault && let Some(byte) = read.get_mut(IDS_ONCE_AT) {
        *byte = 0;
    }
    let Ok(mut decoded) = decode_state(&read) else {
        return;
    };
    assert!(encoded(&decoded) == state, "other bytes");
    goes_on(&mut decoded, bytes);
}

/// The bytes of what some commands lead to, some of them changed.
fn mutated(words: &mut Words<'_>, is_reference: bool) -> Vec<u8> {
    let changes = words.byte() % 5;
    let changes: Vec<[u8; 4]> = (0..changes)
        .map(|_| [(); 4].map(|()| words.byte()))
        .collect();
    let rules = if is_reference {
        Rules::REFERENCE
    } else {
        Rules::default()
    };
    let mut state = State::new(rules);
    let mut commands = setup().to_vec();
    commands.extend(words.commands(false));
    for command in &commands {
        apply(&mut state, command, &mut Events::new());
    }
    let mut bytes = encoded(&state);
    for [low, high, how, value] in changes {
        let at = usize::from(u16::from_le_bytes([low, high])) % bytes.len();
        bytes[at] = match how % 3 {
            0 => value,
            1 => bytes[at].wrapping_add(1),
            _ => bytes[at].wrapping_sub(1),
        };
    }
    bytes
}

fn encoded(state: &State) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_state(state, &mut bytes);
    bytes
}

/// A hundred commands later no money was made or lost, and what there is can be written and read.
fn goes_on(state: &mut State, bytes: &[u8]) {
    let is_mended = *state.risk.rules() == Rules::default();
    for command in &commands(bytes) {
        apply(state, command, &mut Events::new());
        if is_mended {
            for total in currency_totals(state) {
                assert_eq!(total.sum(), 0, "{total:?} after {command:?}");
            }
        }
    }
    if is_mended {
        let bytes = encoded(state);
        let again = decode_state(&bytes).map(|again| encoded(&again) == bytes);
        assert_eq!(again, Ok(true));
    }
}

/// Any commands, which follow from the bytes.
fn commands(bytes: &[u8]) -> Vec<Command> {
    let mut seed = bytes.iter().fold(0xCBF2_9CE4_8422_2325_u64, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3)
    });
    let mut letters = || {
        seed = seed.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1);
        (seed >> 56) as u8
    };
    let mut commands = Vec::new();
    for _ in 0..2 {
        let letters: Vec<u8> = (0..400).map(|_| letters()).collect();
        commands.extend(Words::new(&letters).commands(false));
    }
    commands.retain(|command| *command != Command::Reset);
    commands
}
