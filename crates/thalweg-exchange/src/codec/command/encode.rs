//! Writes commands.

use super::super::batch;
use super::super::error::CodecError;
use super::super::fields::{Writer, put_int, put_longs};
use super::super::frame::{Head, kind, room, room_for};
use super::{
    AMEND_BYTES, BALANCE_BYTES, CANCEL, CANCEL_ALL_BYTES, CANCEL_BYTES, CONDITION_BITS, HAS_LIMITS,
    IDS_ONCE, MOVE, MOVE_BYTES, OF_SYMBOL, OF_USER, PLACE_BYTES, PLACE_WITH_BYTES, REDUCE,
    SET_LIMITS_BYTES, SIDE_BIT, command_bytes,
};
use crate::command::ConditionalOrder;
use crate::command::{Amend, Command, Place, UserLimits};
use crate::ids::{CurrencyId, SymbolId, UserId};

/// Writes a command's frame at the beginning of `out`; the result is its length in bytes. An order
/// [with conditions](Command::PlaceWith) that has none is written as the order that it is, and
/// comes back as a [`Command::Place`].
///
/// # Errors
/// [`CodecError::NoRoom`], or of a batch [`CodecError::TooLong`]; nothing is written then.
#[inline]
pub fn encode_command(command: &Command, out: &mut [u8]) -> Result<usize, CodecError> {
    let (head, symbol, fields) = match *command {
        Command::Place(ref place) => return encode_place(place, out),
        Command::Cancel {
            uid,
            symbol,
            order_id,
        } => {
            let out = room::<CANCEL_BYTES>(out)?;
            put_longs(out, 0, [CANCEL as i64]);
            put_int(out, 8, symbol.0);
            put_longs(out, 12, [uid.0, order_id.0]);
            return Ok(CANCEL_BYTES);
        }
        Command::Move {
            uid,
            symbol,
            order_id,
            price,
        } => (MOVE, symbol, [uid.0, order_id.0, price]),
        Command::Reduce {
            uid,
            symbol,
            order_id,
            by,
        } => (REDUCE, symbol, [uid.0, order_id.0, by]),
        _ => return encode_rare(command, out),
    };
    let out = room::<MOVE_BYTES>(out)?;
    put_longs(out, 0, [head as i64]);
    put_int(out, 8, symbol.0);
    put_longs(out, 12, fields);
    Ok(MOVE_BYTES)
}

#[inline]
fn encode_place(place: &Place, out: &mut [u8]) -> Result<usize, CodecError> {
    let out = room::<PLACE_BYTES>(out)?;
    put_place(place, Head::new(PLACE_BYTES, kind::PLACE, own(place)), out);
    Ok(PLACE_BYTES)
}

/// The own bytes of an order without conditions.
#[inline]
const fn own(place: &Place) -> [u8; 2] {
    let side = (place.action as u8) << SIDE_BIT;
    [place.order_type as u8 | side, place.flags.code()]
}

#[inline]
fn put_place<const N: usize>(place: &Place, head: Head, out: &mut [u8; N]) {
    put_longs(out, 0, [head.0 as i64]);
    put_int(out, 8, place.symbol.0);
    let (uid, order_id) = (place.uid.0, place.order_id.0);
    let (price, reserve) = (place.price, place.reserve_price);
    put_longs(out, 12, [uid, order_id, price, reserve, place.size]);
}

#[cold]
#[inline(never)]
fn encode_rare(command: &Command, out: &mut [u8]) -> Result<usize, CodecError> {
    if let Command::PlaceWith(order) = command
        && !order.has_conditions()
    {
        return encode_place(&order.place, out);
    }
    let length = command_bytes(command);
    let out = &mut Writer::new(room_for(out, length)?);
    let one_long = |out: &mut Writer<'_>, kind, value| {
        out.head(length, kind, 0);
        out.long(value);
    };
    let one_symbol = |out: &mut Writer<'_>, kind, symbol: SymbolId| {
        out.head(length, kind, 0);
        out.int(symbol.0);
    };
    match *command {
        Command::PlaceWith(ref order) => put_conditional(order, out),
        Command::Amend(ref amend) => put_amend(amend, out),
        Command::AddUser { uid } => one_long(out, kind::ADD_USER, uid.0),
        Command::Suspend { uid } => one_long(out, kind::SUSPEND, uid.0),
        Command::Resume { uid } => one_long(out, kind::RESUME, uid.0),
        Command::Disconnect { uid } => one_long(out, kind::DISCONNECT, uid.0),
        Command::Clock { time } => one_long(out, kind::CLOCK, time),
        Command::Halt { symbol } => one_symbol(out, kind::HALT, symbol),
        Command::Unhalt { symbol } => one_symbol(out, kind::UNHALT, symbol),
        Command::StartAuction { symbol } => one_symbol(out, kind::START_AUCTION, symbol),
        Command::RunStops { symbol } => one_symbol(out, kind::RUN_STOPS, symbol),
        Command::RemoveSymbol { symbol } => one_symbol(out, kind::REMOVE_SYMBOL, symbol),
        Command::Balance {
            uid,
            currency,
            amount,
            transaction_id,
            kind: adjustment,
        } => {
            let (kind, amounts) = ((kind::BALANCE, adjustment as u8), [amount, transaction_id]);
            put_payment(kind, (uid, currency), amounts, out);
        }
        Command::PayFees {
            uid,
            currency,
            amount,
            transaction_id,
        } => {
            let (kind, amounts) = ((kind::PAY_FEES, 0), [amount, transaction_id]);
            put_payment(kind, (uid, currency), amounts, out);
        }
        Command::SetLimits { uid, limits } => put_limits(uid, limits, out),
        Command::CancelAll { uid, symbol } => put_cancel_all(uid, symbol, out),
        Command::AddSymbols(ref symbols) => {
            out.head(length, kind::ADD_SYMBOLS, 0);
            batch::put_symbols(symbols, out);
        }
        Command::AddAccounts(ref accounts) => {
            out.head(length, kind::ADD_ACCOUNTS, 0);
            batch::put_accounts(accounts, out);
        }
        Command::Nop => out.head(length, kind::NOP, 0),
        Command::Reset => out.head(length, kind::RESET, 0),
        Command::Place(_)
        | Command::Cancel { .. }
        | Command::Move { .. }
        | Command::Reduce { .. } => unreachable!("`encode_command` has written these"),
        _ => put_of_a_symbol(command, length, out),
    }
    Ok(length)
}

/// A symbol and one or two numbers.
fn put_of_a_symbol(command: &Command, length: usize, out: &mut Writer<'_>) {
    match *command {
        Command::SetPriceBand { symbol, low, high } => {
            out.head(length, kind::SET_PRICE_BAND, 0);
            out.int(symbol.0);
            out.longs([low, high]);
        }
        Command::SetMarketProtection { symbol, ticks } => {
            out.head(length, kind::SET_MARKET_PROTECTION, 0);
            out.int(symbol.0);
            out.long(ticks);
        }
        Command::Uncross { symbol, reference } => {
            out.head(length, kind::UNCROSS, reference.is_some().into());
            out.int(symbol.0);
            out.long(reference.unwrap_or_default());
        }
        _ => unreachable!("`encode_rare` has written the others"),
    }
}

fn put_amend(amend: &Amend, out: &mut Writer<'_>) {
    out.head(AMEND_BYTES, kind::AMEND, amend.action as u8);
    out.int(amend.symbol.0);
    out.longs([amend.uid.0, amend.order_id.0]);
    out.longs([amend.reserve_price, amend.size_before]);
    out.longs([amend.price, amend.size]);
}

fn put_payment(
    (kind, own): (u8, u8),
    (uid, currency): (UserId, CurrencyId),
    numbers: [i64; 2],
    out: &mut Writer<'_>,
) {
    out.head(BALANCE_BYTES, kind, own);
    out.int(currency.0);
    out.long(uid.0);
    out.longs(numbers);
}

fn put_cancel_all(uid: Option<UserId>, symbol: Option<SymbolId>, out: &mut Writer<'_>) {
    let of_user = if uid.is_some() { OF_USER } else { 0 };
    let of_symbol = if symbol.is_some() { OF_SYMBOL } else { 0 };
    out.head(CANCEL_ALL_BYTES, kind::CANCEL_ALL, of_user | of_symbol);
    out.int(symbol.unwrap_or_default().0);
    out.long(uid.unwrap_or_default().0);
}

fn put_limits(uid: Option<UserId>, limits: Option<UserLimits>, out: &mut Writer<'_>) {
    let of_user = if uid.is_some() { OF_USER } else { 0 };
    let has = if limits.is_some() { HAS_LIMITS } else { 0 };
    let once = limits.is_some_and(|limits| limits.ids_once);
    let once = if once { IDS_ONCE } else { 0 };
    out.head(SET_LIMITS_BYTES, kind::SET_LIMITS, of_user | has | once);
    out.int(limits.map_or(0, |limits| limits.open_orders.cast_signed()));
    let size = limits.map_or(0, |limits| limits.order_size);
    out.longs([uid.unwrap_or_default().0, size]);
}

fn put_conditional(order: &ConditionalOrder, out: &mut Writer<'_>) {
    let conditions = [order.trigger, order.display, order.good_till];
    let [mut first, flags] = own(&order.place);
    for (bit, value) in CONDITION_BITS.into_iter().zip(conditions) {
        if value.is_some() {
            first |= bit;
        }
    }
    let mut place = [0; PLACE_BYTES];
    let head = Head::new(PLACE_WITH_BYTES, kind::PLACE_WITH, [first, flags]);
    put_place(&order.place, head, &mut place);
    out.bytes(place);
    out.longs(conditions.map(Option::unwrap_or_default));
}
