//! Reads commands.

use std::sync::Arc;

use super::super::batch;
use super::super::error::CodecError;
use super::super::fields::{Reader, action, int, long, nothing, order_type};
use super::super::frame::{HEAD_BYTES, Head, kind};
use super::{
    AMEND_BYTES, BALANCE_BYTES, CANCEL, CANCEL_ALL_BYTES, CANCEL_BYTES, CONDITION_BITS, HAS_LIMITS,
    IDS_ONCE, MOVE, MOVE_BYTES, OF_SYMBOL, OF_USER, ONE_LONG_BYTES, ONE_SYMBOL_BYTES, PLACE,
    PLACE_BYTES, PLACE_WITH_BYTES, REDUCE, SET_LIMITS_BYTES, SET_PRICE_BAND_BYTES, SIDE_BIT,
    SYMBOL_AND_LONG_BYTES,
};
use crate::command::{AdjustmentKind, Amend, Command, OrderType, Place, UserLimits};
use crate::command::{ConditionalOrder, OrderFlags};
use crate::ids::{CurrencyId, OrderId, SymbolId, UserId};

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
    // In these three kinds all own bits are 0.
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

/// Returns the length of the frame of one of the most frequent commands by its head, which nothing
/// is wrong with; `None` of others.
#[inline(always)]
pub(in super::super) fn frequent_bytes(head: Head) -> Option<usize> {
    match head.0 {
        MOVE | REDUCE => Some(MOVE_BYTES),
        CANCEL => Some(CANCEL_BYTES),
        _ => {
            let [first, flags] = head.own();
            let is_order = first >> SIDE_BIT <= 1
                && order_type(first & 7).is_some()
                && OrderFlags::from_code(flags).is_some();
            (is_order && head.0 & Head::FORM == PLACE).then_some(PLACE_BYTES)
        }
    }
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
    let (own, kind) = (check(bytes, head)?, head.kind());
    let frame = head.frame(bytes)?;
    let mut fields = Reader::new(frame, HEAD_BYTES);
    let command = match kind {
        kind::ADD_SYMBOLS => Command::AddSymbols(batch::symbols(&mut fields)?),
        kind::ADD_ACCOUNTS => Command::AddAccounts(batch::accounts(&mut fields)?),
        kind::NOP => Command::Nop,
        kind::RESET => Command::Reset,
        kind::ADD_USER | kind::SUSPEND | kind::RESUME | kind::DISCONNECT | kind::CLOCK => {
            let value = fields.long()?;
            let uid = UserId(value);
            match kind {
                kind::ADD_USER => Command::AddUser { uid },
                kind::SUSPEND => Command::Suspend { uid },
                kind::RESUME => Command::Resume { uid },
                kind::DISCONNECT => Command::Disconnect { uid },
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
        kind::PAY_FEES => Command::PayFees {
            currency: CurrencyId(fields.int()?),
            uid: UserId(fields.long()?),
            amount: fields.long()?,
            transaction_id: fields.long()?,
        },
        kind::SET_LIMITS => set_limits(&mut fields, own[0])?,
        kind::CANCEL_ALL => cancel_all(&mut fields, own[0])?,
        kind::PLACE => Command::Place(order(&mut fields, own)?),
        kind::UNCROSS => Command::Uncross {
            symbol: SymbolId(fields.int()?),
            reference: fields.optional("the reference price of an auction without", own[0] != 0)?,
        },
        kind::AMEND => amend(&mut fields, own[0])?,
        kind::PLACE_WITH => Command::PlaceWith(Arc::new(conditional(&mut fields, own)?)),
        _ => of_symbol(kind, &mut fields)?,
    };
    fields.end()?;
    Ok((command, frame.len()))
}

/// Returns the own bytes of a command, or the error that its head, and the number of items of a
/// batch, prove whatever follows.
pub(in super::super) fn check(bytes: &[u8], head: Head) -> Result<[u8; 2], CodecError> {
    let length = head.length()?;
    let (kind, wanted) = (head.kind(), "command");
    let Form(what, least, own_max) = form(kind).ok_or(CodecError::UnknownKind { kind, wanted })?;
    let expected = match batch::Items::of(kind) {
        Some(items) => items.length_up_to(length),
        None => least,
    };
    if length != expected {
        return Err(CodecError::WrongLength {
            what,
            length,
            expected,
        });
    }
    let own = head.own_up_to(what, own_max)?;
    if matches!(kind, kind::PLACE | kind::PLACE_WITH) {
        type_and_flags(own)?;
    }
    if kind == kind::SET_LIMITS && own[0] & (HAS_LIMITS | IDS_ONCE) == IDS_ONCE {
        return Err(CodecError::UnknownCode {
            what: "what limits have",
            at: 6,
            code: own[0].into(),
        });
    }
    if kind == kind::PLACE_WITH && CONDITION_BITS.iter().all(|bit| own[0] & bit == 0) {
        return Err(CodecError::NoCondition);
    }
    if let Some(items) = batch::Items::of(kind)
        && let Some((_, count)) = bytes.split_first_chunk::<HEAD_BYTES>()
        && let Some(count) = count.first_chunk()
    {
        items.check_count(u32::from_le_bytes(*count) as usize, length)?;
    }
    Ok(own)
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

fn amend(fields: &mut Reader<'_>, own: u8) -> Result<Command, CodecError> {
    Ok(Command::Amend(Arc::new(Amend {
        symbol: SymbolId(fields.int()?),
        uid: UserId(fields.long()?),
        order_id: OrderId(fields.long()?),
        action: action(own),
        reserve_price: fields.long()?,
        size_before: fields.long()?,
        price: fields.long()?,
        size: fields.long()?,
    })))
}

fn set_limits(fields: &mut Reader<'_>, own: u8) -> Result<Command, CodecError> {
    let has_limits = own & HAS_LIMITS != 0;
    let ids_once = own & IDS_ONCE != 0;
    let at = fields.at();
    let open_orders = fields.int()?;
    if !has_limits {
        nothing(
            "the open orders of limits that are taken away",
            at,
            open_orders.into(),
        )?;
    }
    let uid = fields.optional("the user of limits of everybody", own & OF_USER != 0)?;
    let order_size = fields.optional("the size of limits that are taken away", has_limits)?;
    Ok(Command::SetLimits {
        uid: uid.map(UserId),
        limits: order_size.map(|order_size| UserLimits {
            open_orders: open_orders.cast_unsigned(),
            order_size,
            ids_once,
        }),
    })
}

/// Decodes an order's own bytes, except for its side and which conditions it has.
fn type_and_flags([first, flags]: [u8; 2]) -> Result<(OrderType, OrderFlags), CodecError> {
    let unknown = |what, at, code: u8| CodecError::UnknownCode {
        what,
        at,
        code: code.into(),
    };
    let code = first & 7;
    let order_type = order_type(code).ok_or(unknown("the order type", 6, code))?;
    let of_flags = OrderFlags::from_code(flags);
    Ok((
        order_type,
        of_flags.ok_or(unknown("the order's flags", 7, flags))?,
    ))
}

fn order(fields: &mut Reader<'_>, own: [u8; 2]) -> Result<Place, CodecError> {
    let (order_type, flags) = type_and_flags(own)?;
    Ok(Place {
        symbol: SymbolId(fields.int()?),
        uid: UserId(fields.long()?),
        order_id: OrderId(fields.long()?),
        price: fields.long()?,
        reserve_price: fields.long()?,
        size: fields.long()?,
        order_type,
        action: action(own[0] >> SIDE_BIT),
        flags,
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
        kind::START_AUCTION => Command::StartAuction { symbol },
        kind::RUN_STOPS => Command::RunStops { symbol },
        kind::REMOVE_SYMBOL => Command::RemoveSymbol { symbol },
        kind::SET_MARKET_PROTECTION => Command::SetMarketProtection {
            symbol,
            ticks: fields.long()?,
        },
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

/// The name of a kind, the length of its frames, and the greatest values of their own bytes.
struct Form(&'static str, usize, [u8; 2]);

fn form(kind: u8) -> Option<Form> {
    let flags = OrderFlags::NONE
        .with_post_only()
        .with_self_trade(crate::command::SelfTrade::Decrement)
        .with_cancel_on_disconnect()
        .code();
    let none = [0; 2];
    Some(match kind {
        kind::PLACE => Form("an order", PLACE_BYTES, [0x0D, flags]),
        kind::CANCEL => Form("a cancel", CANCEL_BYTES, none),
        kind::MOVE => Form("a move", MOVE_BYTES, none),
        kind::REDUCE => Form("a reduction", MOVE_BYTES, none),
        kind::PLACE_WITH => Form("a conditional order", PLACE_WITH_BYTES, [0x7D, flags]),
        kind::AMEND => Form("an amendment", AMEND_BYTES, [1, 0]),
        kind::CANCEL_ALL => Form("a mass cancel", CANCEL_ALL_BYTES, [OF_USER | OF_SYMBOL, 0]),
        kind::ADD_USER => Form("a new user", ONE_LONG_BYTES, none),
        kind::BALANCE => Form("an adjustment", BALANCE_BYTES, [1, 0]),
        kind::PAY_FEES => Form("a payment of fees", BALANCE_BYTES, none),
        kind::SET_LIMITS => Form("limits", SET_LIMITS_BYTES, [7, 0]),
        kind::SUSPEND => Form("a suspension", ONE_LONG_BYTES, none),
        kind::RESUME => Form("a resumption", ONE_LONG_BYTES, none),
        kind::ADD_SYMBOLS => Form("a batch of symbols", batch::BYTES_MIN, none),
        kind::ADD_ACCOUNTS => Form("a batch of accounts", batch::BYTES_MIN, none),
        kind::DISCONNECT => Form("a disconnection", ONE_LONG_BYTES, none),
        kind::CLOCK => Form("a time", ONE_LONG_BYTES, none),
        kind::SET_PRICE_BAND => Form("a price band", SET_PRICE_BAND_BYTES, none),
        kind::SET_MARKET_PROTECTION => Form("a protection", SYMBOL_AND_LONG_BYTES, none),
        kind::START_AUCTION => Form("an auction", ONE_SYMBOL_BYTES, none),
        kind::RUN_STOPS => Form("stop orders that are left over", ONE_SYMBOL_BYTES, none),
        kind::UNCROSS => Form("the end of an auction", SYMBOL_AND_LONG_BYTES, [1, 0]),
        kind::HALT => Form("a halt", ONE_SYMBOL_BYTES, none),
        kind::UNHALT => Form("the end of a halt", ONE_SYMBOL_BYTES, none),
        kind::REMOVE_SYMBOL => Form("the removal of a symbol", ONE_SYMBOL_BYTES, none),
        kind::NOP => Form("nothing", HEAD_BYTES, none),
        kind::RESET => Form("a reset", HEAD_BYTES, none),
        _ => return None,
    })
}
