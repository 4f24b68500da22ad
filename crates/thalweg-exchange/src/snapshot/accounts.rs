//! Users, and what is kept of removed ones.

use super::SnapshotError;
use super::field::{Field, written};
use super::head::{decode_limits, encode_limits};
use super::money::{Money, WAITING_MAX};
use super::reader::{Reader, ascends, within};
use super::symbols::forbid;
use super::writer::Writer;
use crate::command::SymbolType;
use crate::ids::{CurrencyId, SymbolId, UserId};
use crate::risk::{
    Account, Direction, FUTURES_LOTS_MAX, FUTURES_PRICE_MAX, Ids, Kept, Risk, User, UserStatus,
};

/// One with neither limits nor ids who was removed.
const BYTES: usize = 18;
const BALANCE_BYTES: usize = 12;
const POSITION_BYTES: usize = 29;
const WAITING_BYTES: usize = 20;

const ACTIVE: u8 = 0;
const SUSPENDED: u8 = 1;
const REMOVED: u8 = 2;

const HAS_LIMITS: u8 = 1;
const HAS_IDS: u8 = 2;

pub(super) fn encode(risk: &Risk, out: &mut Writer<'_>) {
    let accounts = risk.accounts();
    out.count(accounts.len());
    for account in &accounts {
        encode_one(account, out);
    }
}

fn encode_one(account: &Account<'_>, out: &mut Writer<'_>) {
    out.long(account.uid.0);
    out.byte(match account.user.map(|user| user.status) {
        Some(UserStatus::Active) => ACTIVE,
        Some(UserStatus::Suspended) => SUSPENDED,
        None => REMOVED,
    });
    let bit = |is_set: bool, bit: u8| if is_set { bit } else { 0 };
    let (limits, ids) = (account.limits, written(Field::UsedIds, account.ids));
    out.byte(bit(limits.is_some(), HAS_LIMITS) | bit(ids.is_some(), HAS_IDS));
    out.long(written(Field::TransactionId, account.last_transaction_id));
    if let Some(limits) = limits {
        encode_limits(&limits, out);
    }
    if let Some(ids) = ids {
        let (highest, used) = ids.parts();
        out.long(highest);
        out.longs(used.map(u64::cast_signed));
    }
    if let Some(user) = account.user {
        encode_money(user, out);
    }
}

fn encode_money(user: &User, out: &mut Writer<'_>) {
    out.count(user.balances().count());
    for (currency, amount) in user.balances() {
        out.int(currency.0);
        out.long(amount);
    }
    out.count(user.positions().len());
    for position in user.positions() {
        out.int(position.symbol.0);
        out.byte((position.direction as i8).cast_unsigned());
        out.longs([
            position.open_volume,
            position.open_price_sum,
            position.profit,
        ]);
    }
    out.count(user.waiting().len());
    for &(currency, amount) in user.waiting() {
        out.int(currency.0);
        out.wide(amount);
    }
}

pub(super) fn decode(
    fields: &mut Reader<'_>,
    risk: &mut Risk,
    money: &mut Money,
) -> Result<(), SnapshotError> {
    let count = fields.count("users", BYTES)?;
    let mut last = None;
    for _ in 0..count {
        let at = fields.at();
        let uid = fields.long("a user")?;
        ascends("users", at, &mut last, uid)?;
        let uid = UserId(uid);
        let standing = fields.small("a user's status", REMOVED)?;
        let kept = decode_kept(fields, risk)?;
        let status = match standing {
            ACTIVE => UserStatus::Active,
            SUSPENDED => UserStatus::Suspended,
            _ => {
                let is_kept = risk.rules().keep_transaction_ids;
                let is_forbidden = kept.last_transaction_id != 0 && !is_kept;
                let why = "the rules keep none of removed users";
                forbid(is_forbidden, at, "a transaction id", why)?;
                risk.restore_removed(uid, kept);
                continue;
            }
        };
        let user = risk.restore_user(uid, status, kept);
        decode_balances(fields, user, risk, money)?;
        decode_positions(fields, user, risk, money)?;
        decode_waiting(fields, user, risk, money)?;
    }
    Ok(())
}

fn decode_kept(fields: &mut Reader<'_>, risk: &Risk) -> Result<Kept, SnapshotError> {
    let bits = fields.small("a user's bits", HAS_LIMITS | HAS_IDS)?;
    let at = fields.at();
    let last_transaction_id = fields.long("a transaction id")?;
    within("a transaction id", at, last_transaction_id, 0, i64::MAX)?;
    let mut limits = None;
    if bits & HAS_LIMITS != 0 {
        limits = Some(decode_limits(fields)?);
    }
    let mut ids = None;
    if bits & HAS_IDS != 0 {
        let at = fields.at();
        let once = limits.unwrap_or(risk.limits_of_all()).ids_once;
        forbid(!once, at, "a list of order ids", "they do not count once")?;
        let highest = fields.long("the highest order id")?;
        let used = fields.longs("used order ids")?;
        let found = Ids::from_parts(highest, used.map(i64::cast_unsigned));
        forbid(
            found.is_none(),
            at,
            "a list of order ids",
            "it is of other ids",
        )?;
        ids = found.map(Box::new);
    }
    Ok(Kept {
        last_transaction_id,
        limits,
        ids,
    })
}

/// Where a currency is that something is in.
fn currency_at(at: usize, id: CurrencyId, risk: &Risk) -> Result<u32, SnapshotError> {
    risk.currency_slot(id).ok_or(SnapshotError::Unknown {
        what: "currency",
        at,
        id: id.0.into(),
    })
}

fn decode_balances(
    fields: &mut Reader<'_>,
    user: u32,
    risk: &mut Risk,
    money: &mut Money,
) -> Result<(), SnapshotError> {
    let count = fields.count("balances", BALANCE_BYTES)?;
    let least = if risk.rules().are_mended() {
        0
    } else {
        i64::MIN
    };
    let mut last = None;
    for _ in 0..count {
        let at = fields.at();
        let id = CurrencyId(fields.int("a balance's currency")?);
        ascends("balances", at, &mut last, id.0)?;
        let currency = currency_at(at, id, risk)?;
        let amount_at = fields.at();
        let amount = fields.long("a balance")?;
        within("a balance", amount_at, amount, least, i64::MAX)?;
        forbid(amount == 0, amount_at, "a balance of 0", "none is kept")?;
        risk.restore_balance(user, id, amount);
        money.note_balance(currency, amount);
    }
    Ok(())
}

fn decode_positions(
    fields: &mut Reader<'_>,
    user: u32,
    risk: &mut Risk,
    money: &mut Money,
) -> Result<(), SnapshotError> {
    let count = fields.count("positions", POSITION_BYTES)?;
    let is_covered = risk.rules().cover_futures;
    let mut last = None;
    for _ in 0..count {
        let at = fields.at();
        let symbol = SymbolId(fields.int("a position's symbol")?);
        ascends("positions", at, &mut last, symbol.0)?;
        let currency = currency_of(symbol, at, risk)?;
        let direction = match fields.byte("a position's direction")? {
            0 => Direction::Empty,
            1 => Direction::Long,
            255 => Direction::Short,
            code => {
                let value = i128::from(code.cast_signed());
                return Err(SnapshotError::OutOfRange {
                    what: "a position's direction",
                    at: at + 4,
                    value,
                    min: -1,
                    max: 1,
                });
            }
        };
        let amounts = fields.longs("open lots")?;
        check_amounts(at, direction, amounts, is_covered)?;
        if let Some(position) = risk.restore_position(user, symbol, (direction, amounts)) {
            money.note_position(currency, position, is_covered, at);
        }
    }
    Ok(())
}

/// The slot of the currency of a futures symbol that is traded.
fn currency_of(symbol: SymbolId, at: usize, risk: &Risk) -> Result<u32, SnapshotError> {
    let spec = risk
        .spec(symbol)
        .filter(|spec| spec.symbol_type == SymbolType::Futures && risk.rules().margin_trading);
    let Some(spec) = spec else {
        return Err(SnapshotError::Unknown {
            what: "futures symbol",
            at,
            id: symbol.0.into(),
        });
    };
    currency_at(at, spec.quote_currency, risk)
}

fn check_amounts(
    at: usize,
    direction: Direction,
    [volume, paid, profit]: [i64; 3],
    is_covered: bool,
) -> Result<(), SnapshotError> {
    let (min, max) = match direction {
        Direction::Empty => (0, 0),
        _ if is_covered => (1, FUTURES_LOTS_MAX),
        _ => (1, i64::MAX),
    };
    within("open lots", at + 5, volume, min, max)?;
    let (min, max) = match direction {
        Direction::Empty => (0, 0),
        _ if is_covered => (volume, volume * FUTURES_PRICE_MAX),
        _ => (i64::MIN, i64::MAX),
    };
    within("what was paid for open lots", at + 13, paid, min, max)?;
    let (min, max) = if is_covered {
        (0, 0)
    } else {
        (i64::MIN, i64::MAX)
    };
    within("profit of a position", at + 21, profit, min, max)
}

fn decode_waiting(
    fields: &mut Reader<'_>,
    user: u32,
    risk: &mut Risk,
    money: &mut Money,
) -> Result<(), SnapshotError> {
    let at = fields.at();
    let count = fields.count("amounts that wait", WAITING_BYTES)?;
    let may_wait = risk.rules().margin_trading && risk.rules().cover_futures;
    let why = "no futures are covered";
    forbid(count > 0 && !may_wait, at, "profit that waits", why)?;
    let mut last = None;
    for _ in 0..count {
        let at = fields.at();
        let id = CurrencyId(fields.int("the currency of what waits")?);
        ascends("amounts that wait", at, &mut last, id.0)?;
        let currency = currency_at(at, id, risk)?;
        let amount_at = fields.at();
        let amount = fields.wide("what waits")?;
        let max = WAITING_MAX;
        within("what waits", amount_at, amount, -max, max)?;
        forbid(amount == 0, amount_at, "0 that waits", "none is kept")?;
        risk.restore_waiting(user, id, amount);
        money.note_waiting(currency, amount);
    }
    Ok(())
}
