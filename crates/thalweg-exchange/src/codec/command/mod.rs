//! Commands as bytes. The four that make up nearly all of a stream have a path of their own, with
//! every place known when it is compiled; the others, and whatever is wrong, go field by field.

mod decode;
mod encode;

pub(super) use self::decode::{check, frequent_bytes};
pub use self::decode::{decode_command, decode_command_into};
pub use self::encode::encode_command;
use super::batch;
use super::frame::{HEAD_BYTES, Head, kind};
use crate::command::Command;

const PLACE_BYTES: usize = 52;
const CANCEL_BYTES: usize = 28;
/// Also of a reduction.
const MOVE_BYTES: usize = 36;
const PLACE_WITH_BYTES: usize = PLACE_BYTES + 24;
/// The length of a command that has one user or one time, and nothing else.
const ONE_LONG_BYTES: usize = 16;
/// The length of a command that has one symbol, and nothing else.
const ONE_SYMBOL_BYTES: usize = 12;
const BALANCE_BYTES: usize = 36;
const CANCEL_ALL_BYTES: usize = 20;
const SET_LIMITS_BYTES: usize = 28;
const SET_PRICE_BAND_BYTES: usize = 28;
const AMEND_BYTES: usize = PLACE_BYTES + 8;
/// The length of a command that has one symbol and one price or number of ticks.
const SYMBOL_AND_LONG_BYTES: usize = 20;

const PLACE: u64 = Head::form(PLACE_BYTES, kind::PLACE);
const CANCEL: u64 = Head::form(CANCEL_BYTES, kind::CANCEL);
const MOVE: u64 = Head::form(MOVE_BYTES, kind::MOVE);
const REDUCE: u64 = Head::form(MOVE_BYTES, kind::REDUCE);

/// Bits of an order's first own byte: its type in bits 0 to 2, its side, and which conditions it
/// has.
const SIDE_BIT: u32 = 3;
const CONDITION_BITS: [u8; 3] = [1 << 4, 1 << 5, 1 << 6];
/// Bits of a mass cancel's first own byte: which of its two fields it has.
const OF_USER: u8 = 1;
const OF_SYMBOL: u8 = 2;
/// Further bits of limits: there are some, and ids count once.
const HAS_LIMITS: u8 = 2;
const IDS_ONCE: u8 = 4;

/// How long a command's frame is, in bytes.
#[must_use]
pub fn command_bytes(command: &Command) -> usize {
    match command {
        Command::Place(_) => PLACE_BYTES,
        Command::PlaceWith(order) if order.has_conditions() => PLACE_WITH_BYTES,
        Command::PlaceWith(_) => PLACE_BYTES,
        Command::Amend(_) => AMEND_BYTES,
        Command::Cancel { .. } => CANCEL_BYTES,
        Command::Move { .. } | Command::Reduce { .. } => MOVE_BYTES,
        Command::AddUser { .. }
        | Command::Suspend { .. }
        | Command::Resume { .. }
        | Command::Disconnect { .. }
        | Command::Clock { .. } => ONE_LONG_BYTES,
        Command::Balance { .. } | Command::PayFees { .. } => BALANCE_BYTES,
        Command::AddSymbols(symbols) => batch::symbols_bytes(symbols),
        Command::AddAccounts(accounts) => batch::accounts_bytes(accounts),
        Command::CancelAll { .. } => CANCEL_ALL_BYTES,
        Command::SetLimits { .. } => SET_LIMITS_BYTES,
        Command::SetPriceBand { .. } => SET_PRICE_BAND_BYTES,
        Command::SetMarketProtection { .. } | Command::Uncross { .. } => SYMBOL_AND_LONG_BYTES,
        Command::Halt { .. }
        | Command::Unhalt { .. }
        | Command::StartAuction { .. }
        | Command::RunStops { .. }
        | Command::RemoveSymbol { .. } => ONE_SYMBOL_BYTES,
        Command::Nop | Command::Reset => HEAD_BYTES,
    }
}
