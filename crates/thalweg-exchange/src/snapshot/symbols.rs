//! Symbols: their terms, what orders are held to, and what is remembered of them.

use std::mem::offset_of;

use super::SnapshotError;
use super::field::{Field, written};
use super::forms::{SpecForm, SymbolForm};
use super::reader::{Reader, ascends, at_least, within};
use super::writer::Writer;
use crate::book::Book;
use crate::command::{SymbolSpec, SymbolType};
use crate::matching::Matching;
use crate::risk::{FUTURES_PRICE_MAX, Risk, SavedSymbol, Seen, TradingLimits};
use crate::rules::Rules;
use crate::wire::{Form, Wire};

const SPEC_BYTES: usize = size_of::<SpecForm>();
const SEEN_AT: usize = offset_of!(SymbolForm, size_max);

/// Bits of what is the matter with a symbol.
const HALTED: u8 = 1;
const AUCTION: u8 = 2;
const HAS_LAST_PRICES: u8 = 4;
const HAS_TRADED: u8 = 8;
const HAS_LEFT_OVER: u8 = 16;
const INVERTED: u8 = 32;
const IS_CANCELLING: u8 = 64;
const BUSY: u8 = 128;

/// A symbol as its bytes have it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Listed {
    pub(super) at: usize,
    pub(super) saved: SavedSymbol,
    pub(super) protection: i64,
    /// The price of the last trade.
    pub(super) traded_at: Option<i64>,
    /// Whether stop orders are left over.
    pub(super) has_left_over: bool,
    /// Whether a mass cancel has orders left over.
    pub(super) is_cancelling: bool,
}

impl Listed {
    pub(super) const fn is_pair(&self) -> bool {
        matches!(self.saved.spec.symbol_type, SymbolType::CurrencyPair)
    }

    pub(super) const fn is_futures(&self) -> bool {
        matches!(self.saved.spec.symbol_type, SymbolType::Futures)
    }
}

pub(super) fn book_of<'s>(symbol: &SavedSymbol, books: &'s Matching) -> &'s Book {
    let book = books.book(symbol.spec.id);
    book.expect("both parts of a state have the same symbols")
}

pub(super) fn encode(symbols: &[SavedSymbol], books: &Matching, out: &mut Writer<'_>) {
    assert!(
        symbols.len() == books.books().len(),
        "both parts of a state have the same symbols"
    );
    out.count(symbols.len());
    for symbol in symbols {
        let is_cancelling = books.is_cancelling(symbol.spec.id);
        encode_one(symbol, book_of(symbol, books), is_cancelling, out);
    }
}

fn encode_one(symbol: &SavedSymbol, book: &Book, is_cancelling: bool, out: &mut Writer<'_>) {
    let SavedSymbol {
        spec, limits, seen, ..
    } = symbol;
    let traded_at = written(Field::LastTrade, book.last_price());
    let bit = |is_set: bool, bit: u8| if is_set { bit } else { 0 };
    let bits = bit(written(Field::Halt, limits.halted), HALTED)
        | bit(limits.auction, AUCTION)
        | bit(symbol.has_last_prices, HAS_LAST_PRICES)
        | bit(traded_at.is_some(), HAS_TRADED)
        | bit(book.left_over().is_some(), HAS_LEFT_OVER)
        | bit(seen.inverted, INVERTED)
        | bit(is_cancelling, IS_CANCELLING)
        | bit(limits.busy, BUSY);
    out.put(&SymbolForm {
        spec: SpecForm::of(spec).1,
        bits,
        low: limits.low.bytes(),
        high: limits.high.bytes(),
        protection: written(Field::Protection, book.market_protection()).bytes(),
        traded_at: traded_at.unwrap_or(0).bytes(),
        size_max: seen.size_max.bytes(),
        lots_total: seen.lots_total.bytes(),
        price_max: written(Field::LargestPrice, seen.price_max).bytes(),
    });
}

pub(super) fn decode(
    fields: &mut Reader<'_>,
    risk: &mut Risk,
) -> Result<Vec<Listed>, SnapshotError> {
    let count = fields.count("symbols", size_of::<SymbolForm>())?;
    let mut symbols = Vec::with_capacity(count);
    let mut last = None;
    for _ in 0..count {
        let at = fields.at();
        let form: SymbolForm = fields.get("a symbol")?;
        let spec = form.spec.value([0; 2], [at, at])?;
        ascends("symbols", at, &mut last, spec.id.0)?;
        check_spec(&spec, at, risk)?;
        let symbol = decode_rest(&form, at, spec)?;
        check_limits(&symbol, risk.rules())?;
        check_memory(&symbol, risk.rules())?;
        risk.restore_symbol(&symbol.saved);
        symbols.push(symbol);
    }
    Ok(symbols)
}

fn check_spec(spec: &SymbolSpec, at: usize, risk: &Risk) -> Result<(), SnapshotError> {
    if let Err(code) = risk.check_saved_spec(spec) {
        return Err(SnapshotError::forbidden("a symbol", at, code.name()));
    }
    let is_pair = spec.symbol_type == SymbolType::CurrencyPair;
    for currency in [spec.base_currency, spec.quote_currency] {
        if is_pair && risk.currency_slot(currency).is_none() {
            return Err(SnapshotError::unknown("currency", at, currency.0));
        }
    }
    Ok(())
}

fn decode_rest(form: &SymbolForm, at: usize, spec: SymbolSpec) -> Result<Listed, SnapshotError> {
    let bits = form.bits;
    let has = |bit: u8| bits & bit != 0;
    let protection = form.protection.get();
    let protection_at = at + offset_of!(SymbolForm, protection);
    at_least("a market protection", protection_at, protection, 0)?;
    let traded_at = Some(form.traded_at.get()).filter(|_| has(HAS_TRADED));
    if traded_at.is_none() {
        let at = at + offset_of!(SymbolForm, traded_at);
        within("a last price", at, form.traded_at.get(), 0, 0)?;
    }
    let limits = TradingLimits {
        halted: has(HALTED),
        auction: has(AUCTION),
        busy: has(BUSY),
        low: form.low.get(),
        high: form.high.get(),
    };
    let seen = Seen {
        inverted: has(INVERTED),
        size_max: form.size_max.get(),
        lots_total: form.lots_total.get(),
        price_max: form.price_max.get(),
    };
    let saved = SavedSymbol {
        spec,
        limits,
        has_last_prices: has(HAS_LAST_PRICES),
        seen,
    };
    Ok(Listed {
        at,
        saved,
        protection,
        traded_at,
        has_left_over: has(HAS_LEFT_OVER),
        is_cancelling: has(IS_CANCELLING),
    })
}

/// A band and an auction that the symbol can have.
fn check_limits(symbol: &Listed, rules: &Rules) -> Result<(), SnapshotError> {
    let Listed { at, saved, .. } = *symbol;
    let TradingLimits {
        auction, low, high, ..
    } = saved.limits;
    let [bits_at, low_at, high_at] = [SPEC_BYTES, SPEC_BYTES + 1, SPEC_BYTES + 9].map(|by| at + by);
    at_least("the highest price of a symbol", high_at, high, low)?;
    let is_covered = symbol.is_futures() && rules.margin_trading && rules.cover_futures;
    let has_band = (low, high) != (i64::MIN, i64::MAX);
    if is_covered && has_band {
        let max = FUTURES_PRICE_MAX;
        within("the lowest price of futures", low_at, low, 1, max)?;
        within("the highest price of futures", high_at, high, 1, max)?;
    }
    let may_be_auction = rules.refuse_not_positive && (symbol.is_pair() || is_covered);
    let why = "the symbol has none";
    forbid(auction && !may_be_auction, bits_at, "an auction", why)?;
    let is_traded = symbol.is_futures() && rules.margin_trading;
    let may_be_busy = rules.bound_work && (auction || is_covered);
    let why = "nothing there goes on";
    let what = "a busy symbol";
    forbid(saved.limits.busy && !may_be_busy, bits_at, what, why)?;
    let why = "the rules do not bound it";
    let is_whole = symbol.is_cancelling && !rules.bound_work;
    forbid(is_whole, bits_at, "a mass cancel that goes on", why)?;
    let why = "the symbol is no traded future";
    let what = "last prices";
    forbid(saved.has_last_prices && !is_traded, bits_at, what, why)
}

/// Nothing is remembered but where rules leave the reference's quirks.
fn check_memory(symbol: &Listed, rules: &Rules) -> Result<(), SnapshotError> {
    let Listed { at, saved, .. } = *symbol;
    let seen = saved.seen;
    at_least("the largest order", at + SEEN_AT, seen.size_max, 0)?;
    within("all lots", at + SEEN_AT + 8, seen.lots_total, 0, i128::MAX)?;
    let why = "the rules remember none";
    let is_forbidden = !rules.remember_orders() && seen != Seen::default();
    forbid(is_forbidden, at + SEEN_AT, "memory of orders", why)
}

/// The error of what must not be there.
pub(super) fn forbid(
    is_there: bool,
    at: usize,
    what: &'static str,
    why: &'static str,
) -> Result<(), SnapshotError> {
    if is_there {
        return Err(SnapshotError::forbidden(what, at, why));
    }
    Ok(())
}
