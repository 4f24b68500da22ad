//! Lists of symbols to subscribe to.

use std::fmt;

use zerocopy::FromBytes;
use zerocopy::little_endian::I32;

use super::super::error::CodecError;
use super::super::fields::{Reader, Writer};
use super::super::frame::Head;
use super::super::layout::HEAD_BYTES;
use crate::ids::SymbolId;
use crate::wire::Wire;

/// The most symbols of one subscription.
pub const SYMBOLS_MAX: usize = 4_096;
const SYMBOL_BYTES: usize = 4;
pub(super) const SYMBOLS_BYTES_MAX: usize = HEAD_BYTES + SYMBOLS_MAX * SYMBOL_BYTES;
/// The own byte of a list of all.
const ALL: u8 = 1;

/// Symbols in ascending order, each once; or all of them, also those still to come.
#[derive(Clone, Copy)]
pub struct Symbols<'b>(List<'b>);

#[derive(Clone, Copy)]
enum List<'b> {
    All,
    Ids(&'b [SymbolId]),
    Bytes(&'b [I32]),
}

impl<'b> Symbols<'b> {
    /// Every symbol.
    pub const ALL: Self = Self(List::All);

    /// Returns a list of these symbols, if they ascend, and are at least one and at most
    /// [`SYMBOLS_MAX`].
    #[must_use]
    pub fn of(symbols: &'b [SymbolId]) -> Option<Self> {
        let is_right =
            (1..=SYMBOLS_MAX).contains(&symbols.len()) && symbols.is_sorted_by(|a, b| a < b);
        is_right.then_some(Self(List::Ids(symbols)))
    }

    /// Returns whether it is every symbol.
    #[must_use]
    pub const fn is_all(&self) -> bool {
        matches!(self.0, List::All)
    }

    /// Returns the symbols that are named: none where it is every symbol.
    pub fn iter(&self) -> impl Iterator<Item = SymbolId> + use<'b> {
        let (ids, bytes): (&[SymbolId], &[I32]) = match self.0 {
            List::All => (&[], &[]),
            List::Ids(ids) => (ids, &[]),
            List::Bytes(bytes) => (&[], bytes),
        };
        let read = |bytes: &I32| SymbolId(bytes.get());
        ids.iter().copied().chain(bytes.iter().map(read))
    }

    fn len(&self) -> usize {
        match self.0 {
            List::All => 0,
            List::Ids(ids) => ids.len(),
            List::Bytes(bytes) => bytes.len(),
        }
    }

    pub(super) fn bytes(&self) -> usize {
        HEAD_BYTES + self.len() * SYMBOL_BYTES
    }

    pub(super) fn write(&self, kind: u8, out: &mut Writer<'_>) {
        out.put(&Head::new(self.bytes(), kind, [self.is_all().into(), 0]));
        self.iter().for_each(|symbol| out.put(&symbol.bytes()));
    }

    pub(super) fn read(own: [u8; 2], fields: &mut Reader<'b>) -> Result<Self, CodecError> {
        let first = fields.at();
        let rest = fields.rest();
        if own[0] == ALL {
            return Ok(Self::ALL);
        }
        let ids = <[I32]>::ref_from_bytes(rest).unwrap_or_default();
        let list = Self(List::Bytes(ids));
        let mut last = None;
        for (index, symbol) in list.iter().enumerate() {
            if last >= Some(symbol) {
                return Err(CodecError::NotAscending {
                    what: "a symbol",
                    at: first + index * SYMBOL_BYTES,
                });
            }
            last = Some(symbol);
        }
        Ok(list)
    }
}

impl PartialEq for Symbols<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.is_all() == other.is_all() && self.iter().eq(other.iter())
    }
}

impl Eq for Symbols<'_> {}

impl fmt::Debug for Symbols<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_all() {
            return f.write_str("all symbols");
        }
        f.debug_list()
            .entries(self.iter().map(|symbol| symbol.0))
            .finish()
    }
}

/// Returns the length of a list that is next below `length`; and what it must be for all.
pub(super) fn length_up_to(length: usize, own: u8) -> usize {
    if own == ALL {
        return HEAD_BYTES;
    }
    let symbols = (length.min(SYMBOLS_BYTES_MAX) - HEAD_BYTES) / SYMBOL_BYTES;
    HEAD_BYTES + symbols.max(1) * SYMBOL_BYTES
}
