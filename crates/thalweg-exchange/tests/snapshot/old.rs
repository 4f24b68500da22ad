//! Bytes of version 1, as they were first written, open.

use std::path::Path;

use thalweg_exchange::snapshot::{decode_state, state_hash};
use thalweg_exchange::{Action, Command, Events, ResultCode, Rules, SymbolId, UserId, apply};
use thalweg_hash::xxh64;

use crate::one_state::encoded as bytes;
use crate::snapshot::example::{FUTURES, PAIR, limit, state};
use crate::snapshot::twins::reopened;

/// Never to be changed: who has written such bytes will read them.
const HASH: u64 = 0xa29e_d9f5_c497_8645;

/// `THALWEG_WRITE_SEEDS=1` writes it.
#[test]
fn bytes_of_version_1_open() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/state-v1.bin");
    if std::env::var_os("THALWEG_WRITE_SEEDS").is_some() {
        std::fs::write(&path, bytes(&state(Rules::default()))).expect("it can be written");
    }
    let old = std::fs::read(&path).expect("it is there");
    assert_eq!(xxh64(0, &old), HASH, "{:x}", xxh64(0, &old));
    let mut state = decode_state(&old).expect("it opens");
    assert_eq!(state_hash(&state), HASH);
    assert!(bytes(&state) == old);
    let book = state.matching.book(PAIR).expect("it is there");
    assert_eq!((book.order_count(), book.waiting().count()), (5, 3));
    assert_eq!(state.risk.users().len(), 3);
    assert_eq!(state.risk.open_orders(UserId(1003)), 1);
    assert_eq!(state.risk.clock(), Some(500_009));
    assert!(
        state
            .risk
            .limits(SymbolId(13))
            .is_some_and(|limits| limits.halted)
    );
    let position = state
        .risk
        .user(UserId(1001))
        .and_then(|user| user.position(FUTURES));
    assert_eq!(position.map(|position| position.open_volume), Some(13));
    let next = Command::Place(limit(PAIR, 1001, 3000, Action::Bid, (66_001, 2)));
    let mut events = Events::new();
    assert_eq!(apply(&mut state, &next, &mut events), ResultCode::Success);
    assert_eq!(events.len(), 1);
    reopened(&state).expect("as it was");
}
