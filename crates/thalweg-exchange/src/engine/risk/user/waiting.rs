//! Profit and loss realised in covered futures and not paid yet; see [`cover`](crate::risk::cover).

use super::User;
use crate::ids::CurrencyId;

impl User {
    /// Where futures are covered: what was realised there and neither paid out nor paid in yet, by
    /// ascending currency. Above zero it is profit, below a debt; none is zero.
    #[must_use]
    pub fn waiting(&self) -> &[(CurrencyId, i128)] {
        self.far.as_ref().map_or(&[], |far| &far.waiting)
    }

    /// Returns the waiting amount in one currency; zero where nothing waits.
    #[must_use]
    pub fn waiting_in(&self, currency: CurrencyId) -> i128 {
        let waiting = self.waiting().iter();
        let mut found = waiting.filter(|(other, _)| *other == currency);
        found.next().map_or(0, |&(_, amount)| amount)
    }

    /// Changes what waits in a currency.
    pub(in crate::engine::risk) fn set_waiting(&mut self, currency: CurrencyId, amount: i128) {
        let far = self.far.get_or_insert_default();
        far.kept.forget();
        let waiting = &mut far.waiting;
        match waiting.binary_search_by_key(&currency, |&(other, _)| other) {
            Ok(place) if amount == 0 => drop(waiting.remove(place)),
            Ok(place) => waiting[place].1 = amount,
            Err(_) if amount == 0 => {}
            Err(place) => waiting.insert(place, (currency, amount)),
        }
    }

    /// Whether futures have a claim on the user's money: a record there, or what waits.
    #[inline]
    pub(in crate::engine::risk) fn has_futures(&self) -> bool {
        let far = self.far.as_ref();
        far.is_some_and(|far| !far.positions.as_slice().is_empty() || !far.waiting.is_empty())
    }
}
