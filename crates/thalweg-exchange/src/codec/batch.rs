//! Lists of symbols and of accounts.

use std::sync::Arc;

use super::error::CodecError;
use super::fields::{Reader, Writer};
use super::frame::{HEAD_BYTES, kind};
use crate::command::{AccountSpec, FeeUnit, SymbolSpec, SymbolType};
use crate::ids::{CurrencyId, SymbolId, UserId};

/// A batch without items.
pub(super) const BYTES_MIN: usize = HEAD_BYTES + 4;
const SYMBOL_BYTES: usize = 64;
/// An account without balances.
const ACCOUNT_BYTES_MIN: usize = 12;
const BALANCE_BYTES: usize = 12;

/// The kind of items in a batch, and the least length of an item in bytes.
pub(super) struct Items {
    what: &'static str,
    bytes: usize,
    is_fixed: bool,
}

impl Items {
    pub(super) const SYMBOLS: Self = Self {
        what: "symbols",
        bytes: SYMBOL_BYTES,
        is_fixed: true,
    };
    /// Each may be longer, by balances of as many bytes.
    pub(super) const ACCOUNTS: Self = Self {
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

    /// The longest batch that is not longer than `length`; the shortest of all where each is.
    pub(super) const fn length_up_to(&self, length: usize) -> usize {
        let room = length.saturating_sub(BYTES_MIN);
        BYTES_MIN + room - room % self.bytes
    }

    /// Returns an error if a batch of this length cannot hold `count` items.
    pub(super) const fn check_count(&self, count: usize, length: usize) -> Result<(), CodecError> {
        let max = (length - BYTES_MIN) / self.bytes;
        let (what, at) = (self.what, HEAD_BYTES);
        if count > max {
            return Err(CodecError::TooMany {
                what,
                at,
                count,
                max,
            });
        }
        if count == max || count != 0 && !self.is_fixed {
            return Ok(());
        }
        let at = BYTES_MIN + count * self.bytes;
        Err(CodecError::Surplus {
            at,
            bytes: length - at,
        })
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
    for symbol in symbols {
        out.int(symbol.id.0);
        out.bytes([symbol.symbol_type as u8, symbol.fee_unit as u8, 0, 0]);
        out.int(symbol.base_currency.0);
        out.int(symbol.quote_currency.0);
        out.longs([symbol.base_scale, symbol.quote_scale]);
        out.longs([symbol.taker_fee, symbol.maker_fee]);
        out.longs([symbol.margin_buy, symbol.margin_sell]);
    }
}

pub(super) fn symbols(fields: &mut Reader<'_>) -> Result<Arc<[SymbolSpec]>, CodecError> {
    let count = fields.count(Items::SYMBOLS.what, SYMBOL_BYTES)?;
    let mut symbols = Vec::with_capacity(count);
    for _ in 0..count {
        let id = SymbolId(fields.int()?);
        let (symbol_type, fee_unit) = symbol_type(fields)?;
        symbols.push(SymbolSpec {
            id,
            symbol_type,
            base_currency: CurrencyId(fields.int()?),
            quote_currency: CurrencyId(fields.int()?),
            base_scale: fields.long()?,
            quote_scale: fields.long()?,
            taker_fee: fields.long()?,
            maker_fee: fields.long()?,
            margin_buy: fields.long()?,
            margin_sell: fields.long()?,
            fee_unit,
        });
    }
    Ok(symbols.into())
}

/// The type, the unit of the fees, and two bytes that mean nothing.
fn symbol_type(fields: &mut Reader<'_>) -> Result<(SymbolType, FeeUnit), CodecError> {
    let at = fields.at();
    let code = fields.int()?;
    let unknown = |what| CodecError::UnknownCode {
        what,
        at,
        code: code.into(),
    };
    let [symbol_type, fee_unit, 0, 0] = code.to_le_bytes() else {
        return Err(unknown("the type of a symbol"));
    };
    let symbol_type = match symbol_type {
        0 => SymbolType::CurrencyPair,
        1 => SymbolType::Futures,
        2 => SymbolType::Option,
        _ => return Err(unknown("the type of a symbol")),
    };
    let fee_unit = match fee_unit {
        0 => FeeUnit::PerLot,
        1 => FeeUnit::Millionth,
        _ => return Err(unknown("the unit of a symbol's fees, with its type,")),
    };
    Ok((symbol_type, fee_unit))
}

pub(super) fn put_accounts(accounts: &[AccountSpec], out: &mut Writer<'_>) {
    out.count(accounts.len());
    for account in accounts {
        out.long(account.uid.0);
        out.count(account.balances.len());
        for (currency, amount) in &account.balances {
            out.int(currency.0);
            out.long(*amount);
        }
    }
}

pub(super) fn accounts(fields: &mut Reader<'_>) -> Result<Arc<[AccountSpec]>, CodecError> {
    let count = fields.count(Items::ACCOUNTS.what, ACCOUNT_BYTES_MIN)?;
    let mut accounts = Vec::with_capacity(count);
    for _ in 0..count {
        let uid = UserId(fields.long()?);
        let count = fields.count("balances", BALANCE_BYTES)?;
        let mut balances = Vec::with_capacity(count);
        for _ in 0..count {
            balances.push((CurrencyId(fields.int()?), fields.long()?));
        }
        accounts.push(AccountSpec { uid, balances });
    }
    Ok(accounts.into())
}
