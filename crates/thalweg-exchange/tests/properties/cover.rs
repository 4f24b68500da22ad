//! The plain exchange, continued: price bands, and futures that are covered by money. What can be
//! lost is found by trying.

use thalweg_exchange::{
    Action, CurrencyId, Event, Place, RemovalReason, ResultCode, SymbolId, SymbolSpec, UserId,
};

use crate::properties::futures::Stake;
use crate::properties::model::{Answer, Model};

/// The most lots of a user in a symbol, and the highest price.
const LOTS_MAX: i128 = 1 << 25;
const PRICE_MAX: i64 = 1 << 36;

/// The most lots that can be opened: trade by trade, whichever comes first.
fn opens(stake: &Stake) -> i128 {
    let (buys, sells) = if stake.open >= 0 {
        (stake.buys, stake.sells)
    } else {
        (stake.sells, stake.buys)
    };
    buys + (sells - stake.open.abs()).max(0)
}

impl Model {
    pub(crate) fn set_band(&mut self, id: SymbolId, low: i64, high: i64) -> Answer {
        let spec = *self.symbols.get(&id).ok_or(ResultCode::InvalidSymbol)?;
        let covered = self.rules.cover_futures && self.is_futures(&spec);
        if low > high || covered && (low < 1 || high > PRICE_MAX) {
            return Err(ResultCode::SymbolInvalidPriceBand);
        }
        self.bands.insert(id, (low, high));
        let mut events = Vec::new();
        if !covered {
            return Ok(events);
        }
        let outside = |place: &Place| place.symbol == id && !(low..=high).contains(&place.price);
        let (mut gone, kept) = std::mem::take(&mut self.orders)
            .into_iter()
            .partition::<Vec<_>, _>(|order| outside(&order.place));
        self.orders = kept;
        gone.sort_by_key(|order| match order.place.action {
            Action::Ask => (0, order.place.price),
            Action::Bid => (1, -order.place.price),
        });
        for order in gone {
            let (place, size) = (order.place, order.place.size - order.filled);
            self.unhold(place.uid, &spec, place.action, size);
            events.push(Event::Removed {
                symbol: id,
                order: place.order_id,
                uid: place.uid,
                action: place.action,
                price: place.price,
                size,
                left: 0,
                filled: order.filled,
                bidder_hold_price: place.reserve_price,
                why: RemovalReason::OutsideBand,
            });
        }
        Ok(events)
    }

    pub(crate) fn obeys_band(&self, symbol: SymbolId, price: i64) -> bool {
        let band = self.bands.get(&symbol);
        band.is_none_or(|&(low, high)| (low..=high).contains(&price))
    }

    pub(crate) fn money(&self, uid: UserId, currency: CurrencyId) -> i128 {
        self.users[&uid].money.get(&currency).copied().unwrap_or(0)
    }

    fn waits(&self, uid: UserId, currency: CurrencyId) -> i128 {
        self.users[&uid].waits.get(&currency).copied().unwrap_or(0)
    }

    /// The most that a stake can lose inside its band, fees included, whichever pending lots trade.
    fn loss(&self, symbol: SymbolId, stake: &Stake) -> i128 {
        let spec = &self.symbols[&symbol];
        let (low, high) = self.bands[&symbol];
        let fee = i128::from(spec.taker_fee.max(spec.maker_fee));
        let paid = stake.open.signum() * stake.paid - stake.profit;
        let [low, high] = [low, high].map(i128::from);
        let mut worst = i128::MIN;
        for last in [low, high] {
            for (buys, sells) in [
                (0, 0),
                (stake.buys, 0),
                (0, stake.sells),
                (stake.buys, stake.sells),
            ] {
                // Buys at the highest price, sells at the lowest.
                let lots = stake.open + buys - sells;
                let cost = paid + buys * high - sells * low;
                worst = worst.max(cost - lots * last);
            }
        }
        worst + fee * opens(stake)
    }

    fn margin_or_loss(&self, symbol: SymbolId, stake: &Stake) -> i128 {
        let spec = &self.symbols[&symbol];
        let fee = i128::from(spec.taker_fee.max(spec.maker_fee));
        let buying = i128::from(spec.margin_buy) * (stake.buys + stake.open);
        let margin = buying.max(i128::from(spec.margin_sell) * (stake.sells - stake.open));
        self.loss(symbol, stake).max(margin + fee * opens(stake))
    }

    /// Σ over a user's stakes in a currency, without one, less what waits.
    pub(crate) fn asked(
        &self,
        uid: UserId,
        currency: CurrencyId,
        except: Option<SymbolId>,
    ) -> i128 {
        let stakes = self.users[&uid].stakes.iter();
        let mine = stakes.filter(|(symbol, _)| {
            self.symbols[symbol].quote_currency == currency && Some(**symbol) != except
        });
        let sum: i128 = mine
            .map(|(symbol, stake)| self.margin_or_loss(*symbol, stake))
            .sum();
        sum - self.waits(uid, currency)
    }

    pub(crate) fn hold_cover(
        &mut self,
        place: &Place,
        spec: &SymbolSpec,
    ) -> Result<(), ResultCode> {
        if place.size <= 0 {
            return Err(ResultCode::RiskSizeNotPositive);
        }
        let user = &self.users[&place.uid];
        let stake = user.stakes.get(&place.symbol).copied().unwrap_or_default();
        let mut more = stake;
        match place.action {
            Action::Ask => more.sells += i128::from(place.size),
            Action::Bid => more.buys += i128::from(place.size),
        }
        let most = match place.action {
            Action::Ask => more.sells - more.open,
            Action::Bid => more.buys + more.open,
        };
        if most > LOTS_MAX {
            return Err(ResultCode::RiskTooManyLots);
        }
        let currency = spec.quote_currency;
        let [today, then] =
            [stake, more].map(|s| (self.margin_or_loss(spec.id, &s), self.loss(spec.id, &s)));
        let others = self.asked(place.uid, currency, Some(spec.id));
        let is_more = then.0 > today.0 || then.1 > today.1;
        if is_more && others + then.0 > self.money(place.uid, currency) {
            return Err(ResultCode::RiskNsf);
        }
        self.user(place.uid).stakes.insert(place.symbol, more);
        Ok(())
    }

    /// Books what was won or lost.
    pub(crate) fn wait(&mut self, uid: UserId, currency: CurrencyId, gain: i128) {
        let mut waits = self.waits(uid, currency) + gain;
        if gain != 0 && waits < 0 {
            let paid = self.money(uid, currency).min(-waits);
            self.pay(uid, currency, -paid);
            *self.pool.entry(currency).or_default() += paid;
            waits += paid;
        }
        self.user(uid).waits.insert(currency, waits);
    }

    /// How much profit can be paid out: nothing while anybody is short.
    pub(crate) fn payable(&self, uid: UserId, currency: CurrencyId) -> i128 {
        let is_short = self.users.keys().any(|&uid| {
            let stakes = self.users[&uid].stakes.iter();
            let mine = stakes.filter(|(id, _)| self.symbols[id].quote_currency == currency);
            let loss: i128 = mine.map(|(id, stake)| self.loss(*id, stake)).sum();
            loss - self.waits(uid, currency) > self.money(uid, currency)
        });
        let pool = self.pool.get(&currency).copied().unwrap_or(0);
        if is_short {
            0
        } else {
            self.waits(uid, currency).min(pool).max(0)
        }
    }

    pub(crate) fn pay_out(&mut self, uid: UserId, currency: CurrencyId, profit: i128) {
        self.pay(uid, currency, profit);
        *self.pool.entry(currency).or_default() -= profit;
        let waits = self.waits(uid, currency);
        if waits != 0 {
            self.user(uid).waits.insert(currency, 0);
            self.wait(uid, currency, waits - profit);
        }
    }
}
