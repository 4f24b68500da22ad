//! Users, and what is kept of removed ones.

use std::mem::offset_of;

use zerocopy::little_endian::{I32, I64, I128, U64};

use super::SnapshotError;
use super::field::{Field, written};
use super::forms::{IdsForm, LimitsForm, PositionForm, UserForm};
use super::head::check_limits;
use super::money::{Money, WAITING_MAX};
use super::reader::{Reader, ascends, at_least, within};
use super::symbols::forbid;
use super::writer::Writer;
use crate::command::SymbolType;
use crate::ids::{CurrencyId, SymbolId, UserId};
use crate::risk::{
    Account, Direction, FUTURES_LOTS_MAX, FUTURES_PRICE_MAX, Ids, Risk, SavedUser, User, UserStatus,
};
use crate::wire::{AmountForm, Form, Wire};

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
    let bit = |is_set: bool, bit: u8| if is_set { bit } else { 0 };
    let (limits, ids) = (account.limits, written(Field::UsedIds, account.ids));
    out.put(&UserForm {
        uid: account.uid.bytes(),
        status: match account.user.map(|user| user.status) {
            Some(UserStatus::Active) => ACTIVE,
            Some(UserStatus::Suspended) => SUSPENDED,
            None => REMOVED,
        },
        bits: bit(limits.is_some(), HAS_LIMITS) | bit(ids.is_some(), HAS_IDS),
        last_transaction_id: written(Field::TransactionId, account.last_transaction_id).bytes(),
    });
    if let Some(limits) = limits {
        out.put(&LimitsForm::of(&limits).1);
    }
    if let Some(ids) = ids {
        let (highest, used) = ids.parts();
        out.put(&IdsForm {
            highest: I64::new(highest),
            used: used.map(U64::new),
        });
    }
    if let Some(user) = account.user {
        encode_money(user, out);
    }
}

fn encode_money(user: &User, out: &mut Writer<'_>) {
    out.count(user.balances().count());
    user.balances()
        .for_each(|balance| out.put(&AmountForm::of(&balance)));
    out.count(user.positions().len());
    for position in user.positions() {
        let paid = position.open_price_sum;
        out.put(&PositionForm {
            symbol: position.symbol.bytes(),
            direction: position.direction as i8,
            amounts: [position.open_volume, paid, position.profit].map(I64::new),
        });
    }
    out.count(user.waiting().len());
    user.waiting()
        .iter()
        .for_each(|amount| out.put(&AmountForm::of(amount)));
}

pub(super) fn decode(
    fields: &mut Reader<'_>,
    risk: &mut Risk,
    money: &mut Money,
) -> Result<(), SnapshotError> {
    let count = fields.count("users", size_of::<UserForm>())?;
    let mut last = None;
    for _ in 0..count {
        let at = fields.at();
        let form: UserForm = fields.get("a user")?;
        ascends("users", at, &mut last, form.uid.get())?;
        let uid = UserId(form.uid.get());
        within(
            "a user's status",
            at + offset_of!(UserForm, status),
            form.status,
            0,
            REMOVED,
        )?;
        let kept = decode_kept(&form, at, fields, risk)?;
        let status = match form.status {
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

fn decode_kept(
    form: &UserForm,
    at: usize,
    fields: &mut Reader<'_>,
    risk: &Risk,
) -> Result<SavedUser, SnapshotError> {
    let (bits, last_transaction_id) = (form.bits, form.last_transaction_id.get());
    let bits_at = at + offset_of!(UserForm, bits);
    within("a user's bits", bits_at, bits, 0, HAS_LIMITS | HAS_IDS)?;
    at_least("a transaction id", bits_at + 1, last_transaction_id, 0)?;
    let mut limits = None;
    if bits & HAS_LIMITS != 0 {
        let at = fields.at();
        limits = Some(check_limits(fields.get("limits")?, at)?);
    }
    let mut ids = None;
    if bits & HAS_IDS != 0 {
        let (at, what) = (fields.at(), "a list of order ids");
        let once = limits.unwrap_or(risk.default_limits()).ids_once;
        forbid(!once, at, what, "they do not count once")?;
        let form: IdsForm = fields.get(what)?;
        let found = Ids::from_parts(form.highest.get(), form.used.map(U64::get));
        forbid(found.is_none(), at, what, "it is of other ids")?;
        ids = found.map(Box::new);
    }
    Ok(SavedUser {
        last_transaction_id,
        limits,
        ids,
    })
}

/// Returns where a currency is that something is in.
fn currency_at(at: usize, id: CurrencyId, risk: &Risk) -> Result<u32, SnapshotError> {
    let slot = risk.currency_slot(id);
    slot.ok_or_else(|| SnapshotError::unknown("currency", at, id.0))
}

fn decode_balances(
    fields: &mut Reader<'_>,
    user: u32,
    risk: &mut Risk,
    money: &mut Money,
) -> Result<(), SnapshotError> {
    let count = fields.count("balances", size_of::<AmountForm<I64>>())?;
    let least = if risk.rules().keep_balances_sound() {
        0
    } else {
        i64::MIN
    };
    let mut last = None;
    for _ in 0..count {
        let at = fields.at();
        let (id, amount) = fields
            .get::<AmountForm<I64>>("a balance")?
            .amount::<i64>()?;
        ascends("balances", at, &mut last, id.0)?;
        let currency = currency_at(at, id, risk)?;
        let amount_at = at + size_of::<I32>();
        at_least("a balance", amount_at, amount, least)?;
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
    let count = fields.count("positions", size_of::<PositionForm>())?;
    let is_covered = risk.rules().cover_futures;
    let mut last = None;
    for _ in 0..count {
        let at = fields.at();
        let form: PositionForm = fields.get("a position")?;
        let (symbol, amounts) = (SymbolId(form.symbol.get()), form.amounts.map(I64::get));
        ascends("positions", at, &mut last, symbol.0)?;
        let currency = currency_of(symbol, at, risk)?;
        let direction_at = at + offset_of!(PositionForm, direction);
        let what = "a position's direction";
        within(what, direction_at, form.direction, -1, 1)?;
        let direction = match form.direction {
            -1 => Direction::Short,
            0 => Direction::Empty,
            _ => Direction::Long,
        };
        check_amounts(at, direction, amounts, is_covered)?;
        if let Some(position) = risk.restore_position(user, symbol, (direction, amounts)) {
            money.note_position(currency, position, is_covered, at);
        }
    }
    Ok(())
}

/// Returns the slot of the currency of a futures symbol that is traded.
fn currency_of(symbol: SymbolId, at: usize, risk: &Risk) -> Result<u32, SnapshotError> {
    let spec = risk
        .spec(symbol)
        .filter(|spec| spec.symbol_type == SymbolType::Futures && risk.rules().margin_trading);
    let Some(spec) = spec else {
        return Err(SnapshotError::unknown("futures symbol", at, symbol.0));
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
    let count = fields.count("amounts that wait", size_of::<AmountForm<I128>>())?;
    let may_wait = risk.rules().margin_trading && risk.rules().cover_futures;
    let why = "no futures are covered";
    forbid(count > 0 && !may_wait, at, "profit that waits", why)?;
    let mut last = None;
    for _ in 0..count {
        let at = fields.at();
        let (id, amount) = fields
            .get::<AmountForm<I128>>("what waits")?
            .amount::<i128>()?;
        ascends("amounts that wait", at, &mut last, id.0)?;
        let currency = currency_at(at, id, risk)?;
        let amount_at = at + size_of::<I32>();
        let max = WAITING_MAX;
        within("what waits", amount_at, amount, -max, max)?;
        forbid(amount == 0, amount_at, "0 that waits", "none is kept")?;
        risk.restore_waiting(user, id, amount);
        money.note_waiting(currency, amount);
    }
    Ok(())
}
