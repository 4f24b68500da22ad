//! Forged bytes: no panic, and no memory but for what is there.

use proptest::prelude::*;
use thalweg_exchange::snapshot::decode_state;
use thalweg_exchange::{
    Action, Command, CurrencyId, Events, OrderId, Place, Rules, State, SymbolId, SymbolSpec,
    UserId, apply,
};
use thalweg_testkit::counting::held;

use crate::one_state::encoded as bytes;
use crate::snapshot::example::state;
use crate::snapshot::heavy_flow::HeavyFlow;

fn large() -> Vec<u8> {
    let mut flow = HeavyFlow::new(3);
    let mut state = State::default();
    for _ in 0..1_500 {
        apply(&mut state, &flow.next(), &mut Events::new());
    }
    bytes(&state)
}

/// Checks that a state that decodes encodes to the same bytes, and goes on.
fn survives(bytes: &[u8]) {
    let Ok(mut state) = decode_state(bytes) else {
        return;
    };
    assert!(crate::one_state::encoded(&state) == bytes);
    let mut flow = HeavyFlow::new(bytes.len() as u64);
    for _ in 0..100 {
        apply(&mut state, &flow.next(), &mut Events::new());
    }
}

proptest! {
    #[test]
    fn changed_bytes_are_refused_or_are_a_state(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in prop::option::weighted(0.2, any::<prop::sample::Index>()),
    ) {
        let [mended, reference] = [Rules::default(), Rules::REFERENCE].map(state);
        for mut bytes in [bytes(&mended), bytes(&reference), large()] {
            for (at, byte) in &changes {
                let at = at.index(bytes.len());
                bytes[at] = *byte;
            }
            if let Some(cut) = &cut {
                bytes.truncate(cut.index(bytes.len()));
            }
            survives(&bytes);
        }
    }
}

#[test]
fn every_bit_is_refused_or_counts() {
    for whole in [
        bytes(&state(Rules::default())),
        bytes(&state(Rules::REFERENCE)),
    ] {
        for bit in 0..8 * whole.len() {
            let mut bytes = whole.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            survives(&bytes);
        }
    }
}

#[test]
fn memory_is_for_what_is_there() {
    // Longer lists get addresses ahead, which are no memory yet.
    let users = (0..900).map(|uid| Command::AddUser { uid: UserId(uid) });
    let pair = |id| SymbolSpec::pair(SymbolId(id), CurrencyId(1), CurrencyId(2));
    let symbols = Command::AddSymbols((0..80).map(pair).collect());
    let money =
        |uid| thalweg_exchange::AccountSpec::new(UserId(uid), vec![(CurrencyId(1), 1 << 40)]);
    let accounts = Command::AddAccounts([money(5_000)].into());
    let order = |id: i64| {
        let owner = (UserId(5_000), OrderId(id));
        let symbol = SymbolId((id % 80) as i32);
        Command::Place(Place::limit(owner, symbol, Action::Ask, (100 + id, 1)))
    };
    let mut state = State::default();
    let all = users
        .chain([symbols, accounts])
        .chain((0..60 * 80).map(order));
    for command in all {
        apply(&mut state, &command, &mut Events::new());
    }
    let bytes = bytes(&state);
    let before = held();
    let again = decode_state(&bytes);
    let taken = held() - before;
    assert!(again.is_ok());
    // A book takes some KiB with its first order, and a symbol a few hundred bytes.
    let most = 12 * bytes.len() as i64;
    assert!(taken < most, "{taken} of {}", bytes.len());
    // Numbers of entries that are not there take nothing.
    for at in [34, 38] {
        let mut bytes = bytes.clone();
        bytes[at..at + 4].copy_from_slice(&u32::MAX.to_le_bytes());
        let before = held();
        assert!(decode_state(&bytes).is_err());
        assert_eq!(held(), before);
    }
}
