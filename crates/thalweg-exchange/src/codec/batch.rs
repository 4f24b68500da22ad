//! Lists of symbols and of accounts.

use std::cmp::Ordering;
use std::sync::Arc;

use zerocopy::FromBytes;
use zerocopy::little_endian::{I64, U32};

use super::error::CodecError;
use super::fields::{Reader, Writer};
use super::frame::{HEAD_BYTES, Head, kind};
use crate::command::{AccountSpec, FeeUnit, SymbolSpec, SymbolType};
use crate::ids::{CurrencyId, SymbolId, UserId};
use crate::wire::{AmountForm, Wire, wire};

wire! {
    struct SymbolForm = SymbolSpec {
        id: SymbolId, symbol_type: SymbolType, fee_unit: FeeUnit | reserved: u16,
        base_currency: CurrencyId, quote_currency: CurrencyId, base_scale: i64, quote_scale: i64,
        taker_fee: i64, maker_fee: i64, margin_buy: i64, margin_sell: i64,
    }
}

/// A batch without items: the head, and the number of items.
const BYTES_MIN: usize = HEAD_BYTES + size_of::<U32>();
const SYMBOL_BYTES: usize = size_of::<SymbolForm>();
/// An account without balances: the user, and their number.
const ACCOUNT_BYTES_MIN: usize = size_of::<(I64, U32)>();
const BALANCE_BYTES: usize = size_of::<AmountForm<I64>>();

/// The kind of items in a batch, and the least length of an item in bytes.
pub(super) struct Items {
    frame: &'static str,
    what: &'static str,
    bytes: usize,
    is_fixed: bool,
}

impl Items {
    const SYMBOLS: Self = Self {
        frame: "a batch of symbols",
        what: "symbols",
        bytes: SYMBOL_BYTES,
        is_fixed: true,
    };
    /// Each may be longer, by balances of as many bytes.
    const ACCOUNTS: Self = Self {
        frame: "a batch of accounts",
        what: "accounts",
        bytes: ACCOUNT_BYTES_MIN,
        is_fixed: false,
    };

    /// `None` where the kind is of no batch.
    pub(super) const fn of(kind: u8) -> Option<Self> {
        match kind {
            kind::ADD_SYMBOLS => Some(Self::SYMBOLS),
            kind::ADD_ACCOUNTS => Some(Self::ACCOUNTS),
            _ => None,
        }
    }

    /// Returns the error that the head of a batch, and the number of its items if that is there,
    /// prove whatever follows.
    pub(super) fn check(&self, bytes: &[u8], head: Head) -> Result<(), CodecError> {
        let length = head.length()?;
        let room = length.saturating_sub(BYTES_MIN);
        head.check_length(self.frame, BYTES_MIN + room - room % self.bytes)?;
        head.check_own(self.frame, [0; 2])?;
        let count = bytes.get(HEAD_BYTES..).unwrap_or_default();
        match U32::read_from_prefix(count) {
            Ok((count, _)) => self.check_count(count.get() as usize, length),
            Err(_) => Ok(()),
        }
    }

    /// Returns an error if a batch of this length cannot hold `count` items.
    fn check_count(&self, count: usize, length: usize) -> Result<(), CodecError> {
        let max = (length - BYTES_MIN) / self.bytes;
        let at = BYTES_MIN + count * self.bytes;
        match count.cmp(&max) {
            Ordering::Greater => Err(CodecError::TooMany {
                what: self.what,
                at: HEAD_BYTES,
                count,
                max,
            }),
            Ordering::Less if count == 0 || self.is_fixed => Err(CodecError::Surplus {
                at,
                bytes: length - at,
            }),
            _ => Ok(()),
        }
    }
}

const _: () = assert!(ACCOUNT_BYTES_MIN == BALANCE_BYTES, "lengths go by one step");

pub(super) const fn symbols_bytes(symbols: &[SymbolSpec]) -> usize {
    BYTES_MIN + symbols.len() * SYMBOL_BYTES
}

pub(super) fn accounts_bytes(accounts: &[AccountSpec]) -> usize {
    let bytes = |account: &AccountSpec| ACCOUNT_BYTES_MIN + account.balances.len() * BALANCE_BYTES;
    BYTES_MIN + accounts.iter().map(bytes).sum::<usize>()
}

pub(super) fn put_symbols(symbols: &[SymbolSpec], out: &mut Writer<'_>) {
    out.count(symbols.len());
    symbols
        .iter()
        .for_each(|symbol| out.value::<SymbolForm>(symbol));
}

pub(super) fn symbols(fields: &mut Reader<'_>) -> Result<Arc<[SymbolSpec]>, CodecError> {
    let count = fields.count(Items::SYMBOLS.what, SYMBOL_BYTES)?;
    Ok(fields.values::<SymbolForm>(count)?.into())
}

pub(super) fn put_accounts(accounts: &[AccountSpec], out: &mut Writer<'_>) {
    out.count(accounts.len());
    for account in accounts {
        out.put(&account.uid.bytes());
        out.count(account.balances.len());
        account
            .balances
            .iter()
            .for_each(|balance| out.put(&AmountForm::of(balance)));
    }
}

pub(super) fn accounts(fields: &mut Reader<'_>) -> Result<Arc<[AccountSpec]>, CodecError> {
    let count = fields.count(Items::ACCOUNTS.what, ACCOUNT_BYTES_MIN)?;
    let mut accounts = Vec::with_capacity(count);
    for _ in 0..count {
        let uid = UserId(fields.get::<I64>()?.get());
        let count = fields.count("balances", BALANCE_BYTES)?;
        let balances = fields.amounts(count)?;
        accounts.push(AccountSpec { uid, balances });
    }
    Ok(accounts.into())
}
