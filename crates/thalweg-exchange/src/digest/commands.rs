//! The hash of what was asked.

use super::lists::{of_accounts, of_limits, of_symbols};
use super::{add, with};
use crate::codec::kind;
use crate::command::ConditionalOrder;
use crate::command::{Amend, Command, Place};
use crate::ids::SymbolId;
use crate::result_code::ResultCode;

/// Hashes a command's kind, its result and all its fields: before each field, what was before it is
/// multiplied; the last is left to be multiplied with the digest.
#[inline]
pub(super) fn of_command(command: &Command, result: ResultCode) -> u64 {
    // Codes have four digits.
    let result = u64::from(result.code() as u16) << 16;
    let first = |kind: u8| u64::from(kind) << 8 | result;
    match *command {
        Command::Place(ref place) => of_place(first(kind::PLACE), place),
        Command::PlaceWith(ref order) if order.has_conditions() => {
            of_conditional(first(kind::PLACE_WITH), order)
        }
        Command::PlaceWith(ref order) => of_place(first(kind::PLACE), &order.place),
        Command::Cancel {
            uid,
            symbol,
            order_id,
        } => in_symbol(first(kind::CANCEL), symbol, [uid.0, order_id.0]),
        Command::Move {
            uid,
            symbol,
            order_id,
            price,
        } => in_symbol(first(kind::MOVE), symbol, [uid.0, order_id.0, price]),
        Command::Reduce {
            uid,
            symbol,
            order_id,
            by,
        } => in_symbol(first(kind::REDUCE), symbol, [uid.0, order_id.0, by]),
        Command::Amend(ref amend) => of_amend(first(kind::AMEND), amend),
        Command::AddUser { uid } => with(first(kind::ADD_USER), &[uid.0]),
        Command::Balance {
            uid,
            currency,
            amount,
            transaction_id,
            kind: total,
        } => {
            let numbers = [uid.0, amount, currency.0.into(), transaction_id];
            with(first(kind::BALANCE) | total as u64, &numbers)
        }
        Command::PayFees {
            uid,
            currency,
            amount,
            transaction_id,
        } => {
            let numbers = [uid.0, amount, currency.0.into(), transaction_id];
            with(first(kind::PAY_FEES), &numbers)
        }
        Command::SetLimits { uid, limits } => of_limits(first(kind::SET_LIMITS), uid, limits),
        Command::Suspend { uid } => with(first(kind::SUSPEND), &[uid.0]),
        Command::Resume { uid } => with(first(kind::RESUME), &[uid.0]),
        Command::AddSymbols(ref symbols) => of_symbols(first(kind::ADD_SYMBOLS), symbols),
        Command::AddAccounts(ref accounts) => of_accounts(first(kind::ADD_ACCOUNTS), accounts),
        Command::CancelAll { uid, symbol } => {
            let of_user = [uid.is_some().into(), uid.unwrap_or_default().0];
            let of_symbol = [symbol.is_some().into(), symbol.unwrap_or_default().0.into()];
            with(with(first(kind::CANCEL_ALL), &of_user), &of_symbol)
        }
        _ => of_the_market(command, first),
    }
}

/// Hashes commands that concern no single order, account or batch.
#[cold]
#[inline(never)]
fn of_the_market(command: &Command, first: impl Fn(u8) -> u64) -> u64 {
    match *command {
        Command::Disconnect { uid } => with(first(kind::DISCONNECT), &[uid.0]),
        Command::Clock { time } => with(first(kind::CLOCK), &[time]),
        Command::SetPriceBand { symbol, low, high } => {
            with(first(kind::SET_PRICE_BAND), &[symbol.0.into(), low, high])
        }
        Command::SetMarketProtection { symbol, ticks } => with(
            first(kind::SET_MARKET_PROTECTION),
            &[symbol.0.into(), ticks],
        ),
        Command::StartAuction { symbol } => with(first(kind::START_AUCTION), &[symbol.0.into()]),
        Command::Uncross { symbol, reference } => with(
            first(kind::UNCROSS),
            &[
                symbol.0.into(),
                reference.is_some().into(),
                reference.unwrap_or_default(),
            ],
        ),
        Command::Halt { symbol } => with(first(kind::HALT), &[symbol.0.into()]),
        Command::Unhalt { symbol } => with(first(kind::UNHALT), &[symbol.0.into()]),
        Command::RunStops { symbol } => with(first(kind::RUN_STOPS), &[symbol.0.into()]),
        Command::RemoveSymbol { symbol } => with(first(kind::REMOVE_SYMBOL), &[symbol.0.into()]),
        Command::Nop => first(kind::NOP),
        Command::Reset => first(kind::RESET),
        _ => unreachable!("`of_command` has seen to these"),
    }
}

/// The upper half of the first word is the symbol.
#[inline(always)]
fn in_symbol<const F: usize>(first: u64, symbol: SymbolId, fields: [i64; F]) -> u64 {
    let first = first | u64::from(symbol.0 as u32) << 32;
    fields.into_iter().fold(first, add)
}

/// Its lowest byte is what an order says in few bits, its type and its flags; the side is the
/// highest bit of the next, since kinds of commands are below 128.
#[inline(always)]
fn of_place(first: u64, place: &Place) -> u64 {
    let Place {
        uid,
        symbol,
        order_id,
        order_type,
        action,
        price,
        reserve_price,
        size,
        flags,
    } = *place;
    let small = (action as u64) << 15 | (order_type as u64) << 5 | u64::from(flags.code());
    let fields = [uid.0, order_id.0, price, reserve_price, size];
    in_symbol(first | small, symbol, fields)
}

fn of_amend(first: u64, amend: &Amend) -> u64 {
    let Amend {
        uid,
        symbol,
        order_id,
        action,
        reserve_price,
        size_before,
        price,
        size,
    } = *amend;
    let ids = [uid.0, symbol.0.into(), order_id.0];
    let after = [reserve_price, size_before, price, size];
    with(with(first | action as u64, &ids), &after)
}

/// A condition of zero is another than none.
#[cold]
#[inline(never)]
fn of_conditional(first: u64, order: &ConditionalOrder) -> u64 {
    let ConditionalOrder {
        ref place,
        trigger,
        display,
        good_till,
    } = *order;
    let conditions = [trigger, display, good_till];
    let are_there = conditions.map(|condition| condition.is_some().into());
    let value = with(of_place(first, place), &are_there);
    with(value, &conditions.map(Option::unwrap_or_default))
}
