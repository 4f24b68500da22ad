//! The *state snapshot*: the whole state of an exchange as bytes, and from bytes again.
//!
//! It serves processes that begin where another left off: recovery, a replica, a comparison of two.
//! (The snapshots of [`codec`](crate::codec) are market data: what is displayed of one book.)
//! `docs/snapshot-format.md` has the tables.
//!
//! *Canonical.* Little-endian, everything in one order: currencies, symbols and users by id, levels
//! by price, orders as they stand in their queue. Two states that do the same after every further
//! command have the same bytes, on every machine, whatever way they came about: by
//! [`apply`](crate::apply) or [`apply_batch`](crate::apply_batch), in a service or without one.
//! Nothing that only costs time is in them: where in memory things are, how far tables have grown,
//! whether a book keeps lists of its owners' orders (it makes them again when they are asked for),
//! for how many orders [`Matching::with_capacity`] made room. Values that follow from the rest are
//! left out as well, and computed again: volumes of levels, numbers of open orders, pending lots,
//! last prices of futures, and the totals by which the ledger keeps amounts inside 64 bits.
//!
//! *Decoding* trusts nothing. Every length, order, reference and sign is checked, and what must add
//! up: lots bought and sold, and the money of each currency, to the unit. A state that a rule set
//! does not allow is refused under that rule set. It never panics, and takes memory for what is
//! there, not for what a number claims.
//!
//! *Cost.* A pass over all of it; to encode or hash takes 4 bytes for each order of a few levels.
//! A book of 1,000,000 resting orders, 42 MB, took 36 to 56 ms to encode, 18 to 28 to hash and 142
//! to 286 to decode (a shared Zen 3, medians of several runs of
//! `cargo bench --bench snapshot_speed`).
//!
//! ```
//! use thalweg_exchange::snapshot::{decode_state, encode_state, state_hash};
//! use thalweg_exchange::{Command, Events, State, UserId, apply};
//!
//! let mut state = State::default();
//! apply(&mut state, &Command::AddUser { uid: UserId(7) }, &mut Events::new());
//! let mut bytes = Vec::new();
//! encode_state(&state, &mut bytes);
//! let again = decode_state(&bytes)?;
//! assert!(again.risk.user(UserId(7)).is_some());
//! assert_eq!(state_hash(&again), state_hash(&state));
//! # Ok::<(), thalweg_exchange::snapshot::SnapshotError>(())
//! ```

mod accounts;
mod auction;
mod books;
mod currencies;
mod error;
mod field;
#[cfg(test)]
mod forgotten;
mod forms;
mod head;
mod money;
mod orders;
mod reader;
mod stops;
mod symbols;
mod writer;

pub use self::error::SnapshotError;
use self::money::Money;
use self::reader::Reader;
use self::writer::Writer;
use crate::engine::state::State;
use crate::matching::Matching;

/// Version of the format.
pub const STATE_VERSION: u32 = 1;

/// The first bytes of every state.
const MAGIC: [u8; 4] = *b"TWXS";

/// Appends the canonical bytes of a state to `out`.
///
/// # Panics
/// If the parts of the state are not those of one exchange between two commands: made under
/// different rules, or with different symbols.
pub fn encode_state(state: &State, out: &mut Vec<u8>) {
    write(state, &mut Writer::new(out));
}

/// XXH64 of the canonical bytes, seed 0: the state hash. Cost: that of encoding, without memory for
/// all bytes.
///
/// # Panics
/// As [`encode_state`].
#[must_use]
pub fn state_hash(state: &State) -> u64 {
    let mut room = Vec::new();
    let mut out = Writer::hashing(&mut room);
    write(state, &mut out);
    out.digest()
}

fn write(state: &State, out: &mut Writer<'_>) {
    assert!(
        state.risk.rules() == state.matching.rules(),
        "both parts of a state have the same rules"
    );
    head::encode(&state.risk, out);
    currencies::encode(state, out);
    let symbols = state.risk.saved_symbols();
    symbols::encode(&symbols, &state.matching, out);
    accounts::encode(&state.risk, out);
    for symbol in &symbols {
        books::encode(symbols::book_of(symbol, &state.matching), out);
    }
}

/// Rebuilds a state; the whole slice must be one state.
///
/// # Errors
/// The first error in the bytes, and where it is. A state that decodes gives the same bytes when it
/// is encoded again.
pub fn decode_state(bytes: &[u8]) -> Result<State, SnapshotError> {
    let fields = &mut Reader::new(bytes);
    let mut risk = head::decode(fields)?;
    let mut money = Money::default();
    currencies::decode(fields, &mut risk, &mut money)?;
    let symbols = symbols::decode(fields, &mut risk)?;
    accounts::decode(fields, &mut risk, &mut money)?;
    let mut matching = Matching::new(*risk.rules());
    matching.restore_time(risk.clock());
    for symbol in &symbols {
        let book = books::decode(fields, symbol, &mut risk, &mut money)?;
        matching.restore(book, symbol.is_cancelling, symbol.saved.limits);
    }
    fields.end()?;
    money.close(&mut risk)?;
    Ok(State { risk, matching })
}
