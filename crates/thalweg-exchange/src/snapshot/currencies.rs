//! Currencies: what was collected, paid in and paid out, and the room that quirks took.

use std::collections::BTreeMap;

use super::SnapshotError;
use super::field::{Field, told};
use super::money::Money;
use super::reader::{Reader, ascends, within};
use super::writer::Writer;
use crate::command::{Action, SymbolType};
use crate::engine::state::State;
use crate::ids::CurrencyId;
use crate::risk::Risk;

const BYTES: usize = 37;

pub(super) fn encode(state: &State, out: &mut Writer<'_>) {
    let reserved = reserved_by_futures(state);
    let currencies = state.risk.currencies();
    out.count(currencies.len());
    for currency in currencies {
        let found = reserved.get(&currency.id).copied().unwrap_or(0);
        let room = i64::try_from(currency.reserved() - found);
        let room = room.expect("the ledger's rule keeps it inside 64 bits");
        out.int(currency.id.0);
        out.byte(u8::from(state.risk.looks_for_short(currency)));
        out.longs([
            currency.fees,
            currency.adjustments,
            currency.suspends,
            told(Field::Room, room),
        ]);
    }
}

/// R of futures that are not covered: it falls when lots trade, go, or are closed. The rest of R
/// was taken by quirks, and stays.
fn reserved_by_futures(state: &State) -> BTreeMap<CurrencyId, i128> {
    let mut reserved: BTreeMap<CurrencyId, i128> = BTreeMap::new();
    let rules = state.risk.rules();
    if rules.cover_futures || !rules.margin_trading {
        return reserved;
    }
    for book in state.matching.books() {
        let spec = book.spec();
        if spec.symbol_type != SymbolType::Futures {
            continue;
        }
        let resting = [Action::Ask, Action::Bid].into_iter();
        let resting = resting.flat_map(|side| book.orders(side));
        let resting = resting.map(|order| (order.price, order.size - order.filled));
        let waiting = book
            .waiting()
            .map(|stop| (stop.place.price, stop.place.size));
        let lots = resting.chain(waiting);
        let sum: i128 = lots
            .map(|(price, lots)| state.risk.reserved_for(spec.id, price, lots))
            .sum();
        *reserved.entry(spec.quote_currency).or_default() += sum;
    }
    for position in state.risk.users().iter().flat_map(|user| user.positions()) {
        *reserved.entry(position.currency).or_default() += i128::from(position.open_volume);
    }
    reserved
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
