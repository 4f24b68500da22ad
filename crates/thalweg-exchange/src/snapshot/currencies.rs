//! Currencies: what was collected, paid in and paid out, and the room that quirks took.

use std::mem::offset_of;

use zerocopy::little_endian::I64;

use super::SnapshotError;
use super::field::{Field, written};
use super::forms::CurrencyForm;
use super::money::Money;
use super::reader::{Reader, ascends, within};
use super::writer::Writer;
use crate::engine::state::State;
use crate::ids::CurrencyId;
use crate::risk::Risk;
use crate::wire::Wire;

pub(super) fn encode(state: &State, out: &mut Writer<'_>) {
    let currencies = state.risk.currencies();
    out.count(currencies.len());
    for currency in currencies {
        let room = i64::try_from(currency.room());
        let room = room.expect("the ledger's rule keeps it inside 64 bits");
        out.put(&CurrencyForm {
            id: currency.id.bytes(),
            must_check_cover: state.risk.finds_short_users(currency).into(),
            totals: [currency.fees, currency.adjustments, currency.suspends].map(I64::new),
            room: I64::new(written(Field::Room, room)),
        });
    }
}

pub(super) fn decode(
    fields: &mut Reader<'_>,
    risk: &mut Risk,
    money: &mut Money,
) -> Result<(), SnapshotError> {
    let count = fields.count("currencies", size_of::<CurrencyForm>())?;
    let rules = *risk.rules();
    let mut last = None;
    for _ in 0..count {
        let at = fields.at();
        let form: CurrencyForm = fields.get("a currency")?;
        let (id, room) = (form.id.get(), form.room.get());
        ascends("currencies", at, &mut last, id)?;
        let cover_at = at + offset_of!(CurrencyForm, must_check_cover);
        let what = "whether somebody may be short";
        within(what, cover_at, form.must_check_cover, 0, 1)?;
        let totals = form.totals.map(I64::get);
        let room_at = at + offset_of!(CurrencyForm, room);
        let most = if rules.remember_orders() { i64::MAX } else { 0 };
        within("the room that quirks took", room_at, room, 0, most)?;
        risk.restore_currency(CurrencyId(id), totals);
        money.add_currency(
            CurrencyId(id),
            at,
            (totals, room),
            form.must_check_cover == 1,
        );
    }
    Ok(())
}
