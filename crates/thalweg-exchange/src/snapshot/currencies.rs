//! Currencies: what was collected, paid in and paid out, and the room that quirks took.

use super::SnapshotError;
use super::field::{Field, written};
use super::money::Money;
use super::reader::{Reader, ascends, within};
use super::writer::Writer;
use crate::engine::state::State;
use crate::ids::CurrencyId;
use crate::risk::Risk;

const BYTES: usize = 37;

pub(super) fn encode(state: &State, out: &mut Writer<'_>) {
    let currencies = state.risk.currencies();
    out.count(currencies.len());
    for currency in currencies {
        let room = i64::try_from(currency.room());
        let room = room.expect("the ledger's rule keeps it inside 64 bits");
        out.int(currency.id.0);
        out.byte(u8::from(state.risk.looks_for_short(currency)));
        out.longs([
            currency.fees,
            currency.adjustments,
            currency.suspends,
            written(Field::Room, room),
        ]);
    }
}

pub(super) fn decode(
    fields: &mut Reader<'_>,
    risk: &mut Risk,
    money: &mut Money,
) -> Result<(), SnapshotError> {
    let count = fields.count("currencies", BYTES)?;
    let rules = *risk.rules();
    let mut last = None;
    for _ in 0..count {
        let at = fields.at();
        let id = fields.int("a currency")?;
        ascends("currencies", at, &mut last, id)?;
        let is_shaky = fields.small("whether somebody may be short", 1)? == 1;
        let totals = fields.longs("collected fees")?;
        let room_at = fields.at();
        let room = fields.long("the room that quirks took")?;
        let most = if rules.remember_orders() { i64::MAX } else { 0 };
        within("the room that quirks took", room_at, room, 0, most)?;
        risk.restore_currency(CurrencyId(id), totals);
        money.add_currency(CurrencyId(id), at, (totals, room), is_shaky);
    }
    Ok(())
}
