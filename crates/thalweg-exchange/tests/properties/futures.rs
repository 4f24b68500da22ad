//! The plain exchange, continued: futures, by lists and 128-bit sums.

use std::collections::BTreeMap;

use thalweg_exchange::{
    Action, CurrencyId, Place, ResultCode, SymbolId, SymbolSpec, SymbolType, UserId,
};

use crate::properties::model::{Model, User};

/// A position, open lots signed: bought above zero, sold below.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stake {
    pub(crate) open: i128,
    /// Σ price × lots of what is open, not signed.
    pub(crate) paid: i128,
    pub(crate) profit: i128,
    pub(crate) sells: i128,
    pub(crate) buys: i128,
}

impl Stake {
    pub(crate) fn is_empty(&self) -> bool {
        self.open == 0 && self.sells == 0 && self.buys == 0
    }

    fn margin(&self, spec: &SymbolSpec) -> i128 {
        let buy = i128::from(spec.margin_buy) * (self.buys + self.open);
        buy.max(i128::from(spec.margin_sell) * (self.sells - self.open))
    }

    /// `last`: best ask and bid, where known.
    fn estimate(&self, spec: &SymbolSpec, last: (Option<i64>, Option<i64>)) -> i128 {
        let unknown = match self.open {
            0.. => spec.margin_buy,
            _ => spec.margin_sell,
        };
        let price = if self.open > 0 { last.1 } else { last.0 };
        self.profit
            + match price {
                _ if self.open == 0 => 0,
                Some(price) => self.open * i128::from(price) - self.open.signum() * self.paid,
                None => self.open.abs() * i128::from(unknown),
            }
    }
}

impl Model {
    pub(crate) fn is_futures(&self, spec: &SymbolSpec) -> bool {
        self.rules.margin_trading && spec.symbol_type == SymbolType::Futures
    }

    /// The last prices of a symbol; a bid at zero or an ask at the limit counts as none.
    fn last(&self, symbol: SymbolId) -> (Option<i64>, Option<i64>) {
        let (ask, bid) = self.last.get(&symbol).copied().unwrap_or((i64::MAX, 0));
        (
            Some(ask).filter(|&ask| ask != i64::MAX),
            Some(bid).filter(|&bid| bid != 0),
        )
    }

    /// Σ estimate − margin over the user's positions in a currency, without one symbol.
    pub(crate) fn free(&self, uid: UserId, currency: CurrencyId, except: Option<SymbolId>) -> i128 {
        let stakes: &BTreeMap<SymbolId, Stake> = &self.users[&uid].stakes;
        let parts = stakes.iter().map(|(symbol, stake)| {
            let spec = &self.symbols[symbol];
            if spec.quote_currency != currency || Some(*symbol) == except {
                return 0;
            }
            stake.estimate(spec, self.last(*symbol)) - stake.margin(spec)
        });
        parts.sum()
    }

    pub(crate) fn hold_margin(
        &mut self,
        place: &Place,
        spec: &SymbolSpec,
    ) -> Result<(), ResultCode> {
        if self.rules.cover_futures {
            return self.hold_cover(place, spec);
        }
        let user = &self.users[&place.uid];
        let stake = user.stakes.get(&place.symbol).copied().unwrap_or_default();
        let mut more = stake;
        match place.action {
            Action::Ask => more.sells += i128::from(place.size),
            Action::Bid => more.buys += i128::from(place.size),
        }
        let money = user.money.get(&spec.quote_currency).copied().unwrap_or(0);
        let free = self.free(place.uid, spec.quote_currency, Some(place.symbol));
        let own = stake.estimate(spec, self.last(place.symbol));
        let (today, margin) = (stake.margin(spec), more.margin(spec));
        let refused = margin > today && margin > money + free + own;
        let user = self.users.get_mut(&place.uid).expect("it was there");
        if refused {
            user.stakes
                .retain(|symbol, stake| *symbol != place.symbol || !stake.is_empty());
            return Err(ResultCode::RiskNsf);
        }
        user.stakes.insert(place.symbol, more);
        Ok(())
    }

    /// Lots are pending no more.
    pub(crate) fn unhold(&mut self, uid: UserId, spec: &SymbolSpec, action: Action, lots: i64) {
        let user = self.user(uid);
        let stake = user.stakes.entry(spec.id).or_default();
        match action {
            Action::Ask => stake.sells -= i128::from(lots),
            Action::Bid => stake.buys -= i128::from(lots),
        }
        self.tidy(uid, spec);
    }

    /// One side of a trade.
    pub(crate) fn trade(
        &mut self,
        uid: UserId,
        spec: &SymbolSpec,
        action: Action,
        (lots, price): (i64, i64),
        fee: i64,
    ) {
        let covered = self.rules.cover_futures;
        let realise = self.rules.realise_partial_close || covered;
        let stake = self.user(uid).stakes.entry(spec.id).or_default();
        let (mut lots, price) = (i128::from(lots), i128::from(price));
        let sign = match action {
            Action::Ask => {
                stake.sells -= lots;
                -1
            }
            Action::Bid => {
                stake.buys -= lots;
                1
            }
        };
        if stake.open.signum() == -sign {
            let closed = lots.min(stake.open.abs());
            let whole = closed == stake.open.abs();
            let share = match (whole, realise) {
                (true, _) => stake.paid,
                (false, true) => stake.paid * closed / stake.open.abs(),
                (false, false) => closed * price,
            };
            stake.profit += stake.open.signum() * (closed * price - share);
            stake.paid -= share;
            stake.open += sign * closed;
            lots -= closed;
        }
        stake.open += sign * lots;
        stake.paid += price * lots;
        let gain = if covered {
            std::mem::take(&mut stake.profit)
        } else {
            0
        };
        let mut fee = i128::from(fee) * lots;
        if covered {
            self.wait(uid, spec.quote_currency, gain);
            fee = fee.min(self.money(uid, spec.quote_currency));
        }
        self.pay(uid, spec.quote_currency, -fee);
        *self.fees.entry(spec.quote_currency).or_default() += fee;
        self.tidy(uid, spec);
    }

    pub(crate) fn user(&mut self, uid: UserId) -> &mut User {
        if !self.users.contains_key(&uid) {
            let suspended = User {
                suspended: true,
                last_id: self.retired.remove(&uid).unwrap_or(0),
                ..User::default()
            };
            self.users.insert(uid, suspended);
        }
        self.users.get_mut(&uid).expect("it is here")
    }

    fn tidy(&mut self, uid: UserId, spec: &SymbolSpec) {
        let stakes = &mut self.user(uid).stakes;
        if stakes[&spec.id].is_empty() {
            let gone = stakes.remove(&spec.id).expect("it is here");
            self.pay(uid, spec.quote_currency, gone.profit);
        }
    }

    /// After a command that succeeded.
    pub(crate) fn note_last(&mut self, symbol: SymbolId) {
        let prices = |action| {
            let orders = self.orders.iter();
            orders
                .filter(move |order| order.place.symbol == symbol && order.place.action == action)
                .map(|order| order.place.price)
        };
        let ask = prices(Action::Ask).min().unwrap_or(i64::MAX);
        let bid = prices(Action::Bid).max().unwrap_or(0);
        self.last.insert(symbol, (ask, bid));
    }
}
