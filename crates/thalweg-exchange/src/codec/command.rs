//! Commands as bytes. The four that make up nearly all of a stream have a path of their own, with
//! every place known when it is compiled; the others, and whatever is wrong, go field by field.

use std::sync::Arc;

use super::batch;
use super::error::CodecError;
use super::fields::{Reader, Writer, action, int, long, order_type, put_int, put_longs, small};
use super::frame::{HEAD_BYTES, Head, kind, room, room_for};
use crate::command::{AdjustmentKind, Command, Place};
use crate::ids::{CurrencyId, OrderId, SymbolId, UserId};
use crate::order_terms::{ConditionalOrder, OrderFlags};

const PLACE_BYTES: usize = 52;
const CANCEL_BYTES: usize = 28;
/// Also of a reduction.
const MOVE_BYTES: usize = 36;
const PLACE_WITH_BYTES: usize = PLACE_BYTES + 24;
/// Of a command that has one user or one time, and nothing else.
const ONE_LONG_BYTES: usize = 16;
/// Of a command that has one symbol, and nothing else.
const ONE_SYMBOL_BYTES: usize = 12;
const BALANCE_BYTES: usize = 36;
const CANCEL_ALL_BYTES: usize = 20;
const SET_PRICE_BAND_BYTES: usize = 28;

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

/// How long a command's frame is, in bytes.
#[must_use]
pub fn command_bytes(command: &Command) -> usize {
    match command {
        Command::Place(_) => PLACE_BYTES,
        Command::PlaceWith(_) => PLACE_WITH_BYTES,
        Command::Cancel { .. } => CANCEL_BYTES,
        Command::Move { .. } | Command::Reduce { .. } => MOVE_BYTES,
        Command::AddUser { .. }
        | Command::Suspend { .. }
        | Command::Resume { .. }
        | Command::Clock { .. } => ONE_LONG_BYTES,
        Command::Balance { .. } => BALANCE_BYTES,
        Command::AddSymbols(symbols) => batch::symbols_bytes(symbols),
        Command::AddAccounts(accounts) => batch::accounts_bytes(accounts),
        Command::CancelAll { .. } => CANCEL_ALL_BYTES,
        Command::SetPriceBand { .. } => SET_PRICE_BAND_BYTES,
        Command::Halt { .. } | Command::Unhalt { .. } | Command::RemoveSymbol { .. } => {
            ONE_SYMBOL_BYTES
        }
        Command::Nop | Command::Reset => HEAD_BYTES,
    }
}

/// Writes a command's frame at the beginning of `out`; the result is its length in bytes.
///
/// # Errors
/// [`CodecError::NoRoom`], or of a batch [`CodecError::TooLong`]; nothing is written then.
#[inline]
pub fn encode_command(command: &Command, out: &mut [u8]) -> Result<usize, CodecError> {
    let (head, symbol, fields) = match *command {
        Command::Place(ref place) => {
            let out = room::<PLACE_BYTES>(out)?;
            put_place(place, Head::new(PLACE_BYTES, kind::PLACE, own(place)), out);
            return Ok(PLACE_BYTES);
        }
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
        Command::AddUser { uid } => one_long(out, kind::ADD_USER, uid.0),
        Command::Suspend { uid } => one_long(out, kind::SUSPEND, uid.0),
        Command::Resume { uid } => one_long(out, kind::RESUME, uid.0),
        Command::Clock { time } => one_long(out, kind::CLOCK, time),
        Command::Halt { symbol } => one_symbol(out, kind::HALT, symbol),
        Command::Unhalt { symbol } => one_symbol(out, kind::UNHALT, symbol),
        Command::RemoveSymbol { symbol } => one_symbol(out, kind::REMOVE_SYMBOL, symbol),
        Command::Balance {
            uid,
            currency,
            amount,
            transaction_id,
            kind: adjustment,
        } => {
            out.head(length, kind::BALANCE, adjustment as u8);
            out.int(currency.0);
            out.longs([uid.0, amount, transaction_id]);
        }
        Command::CancelAll { uid, symbol } => {
            let of_user = if uid.is_some() { OF_USER } else { 0 };
            let of_symbol = if symbol.is_some() { OF_SYMBOL } else { 0 };
            out.head(length, kind::CANCEL_ALL, of_user | of_symbol);
            out.int(symbol.unwrap_or_default().0);
            out.long(uid.unwrap_or_default().0);
        }
        Command::SetPriceBand { symbol, low, high } => {
            out.head(length, kind::SET_PRICE_BAND, 0);
            out.int(symbol.0);
            out.longs([low, high]);
        }
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
    }
    Ok(length)
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

/// Reads the command at the beginning of `bytes`; with it, the length of its frame in bytes.
///
/// # Errors
/// [`CodecError::Incomplete`] where more bytes could make a frame of it; any other where not.
#[inline]
pub fn decode_command(bytes: &[u8]) -> Result<(Command, usize), CodecError> {
    let mut command = Command::Nop;
    let length = decode_command_into(bytes, &mut command)?;
    Ok((command, length))
}

/// As [`decode_command`], but puts the command where it is to be and gives the length: twice as
/// fast, since nothing is moved that was just written.
///
/// # Errors
/// As [`decode_command`]; the command is left as it was.
#[inline]
pub fn decode_command_into(bytes: &[u8], command: &mut Command) -> Result<usize, CodecError> {
    let head = Head::read(bytes)?;
    // Of these three, all own bits are 0.
    match head.0 {
        MOVE | REDUCE => {
            if let Some(frame) = bytes.first_chunk::<MOVE_BYTES>() {
                let (symbol, uid, order_id) = whose(frame);
                let value = long(frame, 28);
                *command = if head.0 == MOVE {
                    Command::Move {
                        uid,
                        symbol,
                        order_id,
                        price: value,
                    }
                } else {
                    Command::Reduce {
                        uid,
                        symbol,
                        order_id,
                        by: value,
                    }
                };
                return Ok(MOVE_BYTES);
            }
        }
        CANCEL => {
            if let Some(frame) = bytes.first_chunk::<CANCEL_BYTES>() {
                let (symbol, uid, order_id) = whose(frame);
                *command = Command::Cancel {
                    uid,
                    symbol,
                    order_id,
                };
                return Ok(CANCEL_BYTES);
            }
        }
        _ => {
            if head.0 & Head::FORM == PLACE
                && let Some(frame) = bytes.first_chunk::<PLACE_BYTES>()
                && let Some(place) = place(frame, head.own())
            {
                *command = Command::Place(place);
                return Ok(PLACE_BYTES);
            }
        }
    }
    let (decoded, length) = decode_rare(bytes, head)?;
    *command = decoded;
    Ok(length)
}

#[inline(always)]
fn whose<const N: usize>(frame: &[u8; N]) -> (SymbolId, UserId, OrderId) {
    let (uid, order_id) = (long(frame, 12), long(frame, 20));
    (SymbolId(int(frame, 8)), UserId(uid), OrderId(order_id))
}

/// An order without conditions; `None` where its own bytes mean nothing.
#[inline(always)]
fn place<const N: usize>(frame: &[u8; N], [first, flags]: [u8; 2]) -> Option<Place> {
    if first >> SIDE_BIT > 1 {
        return None;
    }
    let (symbol, uid, order_id) = whose(frame);
    Some(Place {
        uid,
        symbol,
        order_id,
        order_type: order_type(first & 7)?,
        action: action(first >> SIDE_BIT),
        price: long(frame, 28),
        reserve_price: long(frame, 36),
        size: long(frame, 44),
        flags: OrderFlags::from_code(flags)?,
    })
}

/// Any frame, field by field: what is rare, and what is wrong.
#[cold]
#[inline(never)]
fn decode_rare(bytes: &[u8], head: Head) -> Result<(Command, usize), CodecError> {
    let length = head.length()?;
    let wanted = "command";
    let kind = head.kind();
    let Form(what, expected, own_max) =
        form(kind).ok_or(CodecError::UnknownKind { kind, wanted })?;
    let is_batch = matches!(kind, kind::ADD_SYMBOLS | kind::ADD_ACCOUNTS);
    if length < expected || length > expected && !is_batch {
        return Err(CodecError::WrongLength {
            what,
            length,
            expected,
        });
    }
    let own = head.own_up_to(what, own_max)?;
    let frame = head.frame(bytes)?;
    let mut fields = Reader::new(frame, HEAD_BYTES);
    let command = match kind {
        kind::ADD_SYMBOLS => Command::AddSymbols(batch::symbols(&mut fields)?),
        kind::ADD_ACCOUNTS => Command::AddAccounts(batch::accounts(&mut fields)?),
        kind::NOP => Command::Nop,
        kind::RESET => Command::Reset,
        kind::ADD_USER | kind::SUSPEND | kind::RESUME | kind::CLOCK => {
            let value = fields.long()?;
            let uid = UserId(value);
            match kind {
                kind::ADD_USER => Command::AddUser { uid },
                kind::SUSPEND => Command::Suspend { uid },
                kind::RESUME => Command::Resume { uid },
                _ => Command::Clock { time: value },
            }
        }
        kind::BALANCE => Command::Balance {
            currency: CurrencyId(fields.int()?),
            uid: UserId(fields.long()?),
            amount: fields.long()?,
            transaction_id: fields.long()?,
            kind: match own[0] {
                0 => AdjustmentKind::Adjustment,
                _ => AdjustmentKind::Suspend,
            },
        },
        kind::CANCEL_ALL => cancel_all(&mut fields, own[0])?,
        kind::PLACE => Command::Place(order(&mut fields, own)?),
        kind::PLACE_WITH => Command::PlaceWith(Arc::new(conditional(&mut fields, own)?)),
        _ => of_symbol(kind, &mut fields)?,
    };
    fields.end()?;
    Ok((command, length))
}

fn cancel_all(fields: &mut Reader<'_>, own: u8) -> Result<Command, CodecError> {
    let at = fields.at();
    let symbol = fields.int()?;
    if own & OF_SYMBOL == 0 && symbol != 0 {
        return Err(CodecError::OutOfRange {
            what: "the symbol of a mass cancel in all",
            at,
            value: u64::from(symbol as u32),
            max: 0,
        });
    }
    let uid = fields.optional("the user of a mass cancel of all", own & OF_USER != 0)?;
    Ok(Command::CancelAll {
        uid: uid.map(UserId),
        symbol: (own & OF_SYMBOL != 0).then_some(SymbolId(symbol)),
    })
}

fn order(fields: &mut Reader<'_>, [first, flags]: [u8; 2]) -> Result<Place, CodecError> {
    let code = small("the order type", 6, first & 7, 4)?;
    let unknown = |what, at, code: u8| CodecError::UnknownCode {
        what,
        at,
        code: code.into(),
    };
    Ok(Place {
        symbol: SymbolId(fields.int()?),
        uid: UserId(fields.long()?),
        order_id: OrderId(fields.long()?),
        price: fields.long()?,
        reserve_price: fields.long()?,
        size: fields.long()?,
        order_type: order_type(code).ok_or(unknown("the order type", 6, code))?,
        action: action(first >> SIDE_BIT),
        flags: OrderFlags::from_code(flags).ok_or(unknown("the order's flags", 7, flags))?,
    })
}

fn conditional(fields: &mut Reader<'_>, own: [u8; 2]) -> Result<ConditionalOrder, CodecError> {
    let [trigger, display, good_till] = CONDITION_BITS.map(|bit| own[0] & bit != 0);
    Ok(ConditionalOrder {
        place: order(fields, own)?,
        trigger: fields.optional("the trigger of an order without one", trigger)?,
        display: fields.optional("the display size of an order without one", display)?,
        good_till: fields.optional("the last time of an order without one", good_till)?,
    })
}

/// The commands whose first field is a symbol, but for orders.
fn of_symbol(kind: u8, fields: &mut Reader<'_>) -> Result<Command, CodecError> {
    let symbol = SymbolId(fields.int()?);
    Ok(match kind {
        kind::HALT => Command::Halt { symbol },
        kind::UNHALT => Command::Unhalt { symbol },
        kind::REMOVE_SYMBOL => Command::RemoveSymbol { symbol },
        kind::SET_PRICE_BAND => Command::SetPriceBand {
            symbol,
            low: fields.long()?,
            high: fields.long()?,
        },
        _ => {
            let (uid, order_id) = (UserId(fields.long()?), OrderId(fields.long()?));
            match kind {
                kind::CANCEL => Command::Cancel {
                    uid,
                    symbol,
                    order_id,
                },
                kind::MOVE => Command::Move {
                    uid,
                    symbol,
                    order_id,
                    price: fields.long()?,
                },
                _ => Command::Reduce {
                    uid,
                    symbol,
                    order_id,
                    by: fields.long()?,
                },
            }
        }
    })
}

/// What a kind is called, how long its frames are, and the greatest values of their own bytes.
struct Form(&'static str, usize, [u8; 2]);

fn form(kind: u8) -> Option<Form> {
    let flags = OrderFlags::NONE
        .with_post_only()
        .with_self_trade(crate::order_terms::SelfTrade::CancelBoth)
        .code();
    let none = [0; 2];
    Some(match kind {
        kind::PLACE => Form("an order", PLACE_BYTES, [0x0C, flags]),
        kind::CANCEL => Form("a cancel", CANCEL_BYTES, none),
        kind::MOVE => Form("a move", MOVE_BYTES, none),
        kind::REDUCE => Form("a reduction", MOVE_BYTES, none),
        kind::PLACE_WITH => Form("a conditional order", PLACE_WITH_BYTES, [0x7C, flags]),
        kind::CANCEL_ALL => Form("a mass cancel", CANCEL_ALL_BYTES, [OF_USER | OF_SYMBOL, 0]),
        kind::ADD_USER => Form("a new user", ONE_LONG_BYTES, none),
        kind::BALANCE => Form("an adjustment", BALANCE_BYTES, [1, 0]),
        kind::SUSPEND => Form("a suspension", ONE_LONG_BYTES, none),
        kind::RESUME => Form("a resumption", ONE_LONG_BYTES, none),
        kind::ADD_SYMBOLS => Form("a batch of symbols", batch::BYTES_MIN, none),
        kind::ADD_ACCOUNTS => Form("a batch of accounts", batch::BYTES_MIN, none),
        kind::CLOCK => Form("a time", ONE_LONG_BYTES, none),
        kind::SET_PRICE_BAND => Form("a price band", SET_PRICE_BAND_BYTES, none),
        kind::HALT => Form("a halt", ONE_SYMBOL_BYTES, none),
        kind::UNHALT => Form("the end of a halt", ONE_SYMBOL_BYTES, none),
        kind::REMOVE_SYMBOL => Form("the removal of a symbol", ONE_SYMBOL_BYTES, none),
        kind::NOP => Form("nothing", HEAD_BYTES, none),
        kind::RESET => Form("a reset", HEAD_BYTES, none),
        _ => return None,
    })
}
