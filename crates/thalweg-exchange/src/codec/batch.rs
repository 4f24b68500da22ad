//! Lists of symbols and of accounts.

use std::cmp::Ordering;
use std::sync::Arc;

use zerocopy::FromBytes;
use zerocopy::little_endian::{I64, U32};

use super::error::CodecError;
use super::fields::{Reader, Writer};
use super::frame::Head;
use super::layout::HEAD_BYTES;
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

/// The names of items in errors.
const SYMBOLS: &str = "symbols";
const ACCOUNTS: &str = "accounts";
/// A batch without items: the head, and the number of items.
const BYTES_MIN: usize = HEAD_BYTES + size_of::<U32>();
const SYMBOL_BYTES: usize = size_of::<SymbolForm>();
/// An account without balances: the user, and their number.
const ACCOUNT_BYTES_MIN: usize = size_of::<(I64, U32)>();
const BALANCE_BYTES: usize = size_of::<AmountForm<I64>>();

/// Returns the error that the head of a batch, and the number of its items if that is there, prove
/// whatever follows. An account may be longer, by balances of as many bytes.
pub(super) fn check_symbols(bytes: &[u8], head: Head) -> Result<(), CodecError> {
    check(bytes, head, ("a batch of symbols", SYMBOLS, SYMBOL_BYTES))
}

/// Returns the error of a batch of accounts, as [`check_symbols`] does.
pub(super) fn check_accounts(bytes: &[u8], head: Head) -> Result<(), CodecError> {
    check(
        bytes,
        head,
        ("a batch of accounts", ACCOUNTS, ACCOUNT_BYTES_MIN),
    )
}

fn check(
    bytes: &[u8],
    head: Head,
    (frame, what, item_bytes): (&'static str, &'static str, usize),
) -> Result<(), CodecError> {
    let length = head.length()?;
    let room = length.saturating_sub(BYTES_MIN);
    let max = room / item_bytes;
    head.check_length(frame, BYTES_MIN + max * item_bytes)?;
    head.check_own(frame, [0; 2])?;
    let count = bytes.get(HEAD_BYTES..).unwrap_or_default();
    let Ok((count, _)) = U32::read_from_prefix(count) else {
        return Ok(());
    };
    let count = count.get() as usize;
    let at = BYTES_MIN + count * item_bytes;
    match count.cmp(&max) {
        Ordering::Greater => Err(CodecError::TooMany {
            what,
            at: HEAD_BYTES,
            count,
            max,
        }),
        Ordering::Less if count == 0 || what == SYMBOLS => Err(CodecError::TrailingBytes {
            at,
            bytes: length - at,
        }),
        _ => Ok(()),
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

pub(super) fn put_symbols(head: Head, symbols: &[SymbolSpec], out: &mut Writer<'_>) {
    out.put(&head);
    out.count(symbols.len());
    symbols
        .iter()
        .for_each(|symbol| out.value::<SymbolForm>(symbol));
}

pub(super) fn symbols(frame: &[u8]) -> Result<Arc<[SymbolSpec]>, CodecError> {
    let mut fields = Reader::new(frame, HEAD_BYTES);
    let count = fields.count(SYMBOLS, SYMBOL_BYTES)?;
    let symbols = fields.values::<SymbolForm>(count)?;
    fields.end()?;
    Ok(symbols.into())
}

pub(super) fn put_accounts(head: Head, accounts: &[AccountSpec], out: &mut Writer<'_>) {
    out.put(&head);
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

pub(super) fn accounts(frame: &[u8]) -> Result<Arc<[AccountSpec]>, CodecError> {
    let mut fields = Reader::new(frame, HEAD_BYTES);
    let count = fields.count(ACCOUNTS, ACCOUNT_BYTES_MIN)?;
    let mut accounts = Vec::with_capacity(count);
    for _ in 0..count {
        let uid = UserId(fields.get::<I64>()?.get());
        let count = fields.count("balances", BALANCE_BYTES)?;
        let balances = fields.amounts(count)?;
        accounts.push(AccountSpec { uid, balances });
    }
    fields.end()?;
    Ok(accounts.into())
}
