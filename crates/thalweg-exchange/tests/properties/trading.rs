//! The plain exchange, continued: orders, matching by scanning, and what is paid for it.

use thalweg_exchange::{
    Action, CurrencyId, Event, OrderId, OrderType, Place, RejectReason, ResultCode, SymbolId,
    SymbolSpec, SymbolType, UserId,
};

use crate::properties::model::{Answer, Model, Order};

fn covers_fee(spec: &SymbolSpec, price: i64) -> bool {
    price * spec.quote_scale >= spec.taker_fee
}

/// How many of `lots` a seller with a budget sells: what is sold must bring in its share of it.
fn sell_for_share(taker: &Order, brought: &mut i64, price: i64, lots: i64) -> i64 {
    let share = |sold: i64| (taker.filled + sold) * taker.place.price;
    let may = |sold: &i64| (*brought + sold * price) * taker.place.size >= share(*sold);
    let sold = (1..=lots).take_while(may).last().unwrap_or(0);
    *brought += sold * price;
    sold
}

/// How many of `lots` a budget covers at a price: spends that much.
fn spend(budget: &mut i64, price: i64, mut lots: i64) -> i64 {
    while lots > 0 && (*budget < 0 || price > 0 && price * lots > *budget) {
        lots -= 1;
    }
    *budget -= price * lots;
    lots
}

impl Model {
    /// Returns the hold for `size` lots of an order: currency and amount.
    fn hold(spec: &SymbolSpec, place: &Place, size: i64) -> (CurrencyId, i128) {
        let [size, price, reserve] = [size, place.price, place.reserve_price].map(i128::from);
        let [scale, fee] = [spec.quote_scale, spec.taker_fee].map(i128::from);
        match place.action {
            Action::Ask => (spec.base_currency, size * i128::from(spec.base_scale)),
            Action::Bid if place.order_type.is_budget() => {
                (spec.quote_currency, price * scale + size * fee)
            }
            Action::Bid => (spec.quote_currency, size * (reserve * scale + fee)),
        }
    }

    pub(crate) fn place(&mut self, place: &Place, spec: &SymbolSpec) -> Answer {
        let user = self
            .users
            .get(&place.uid)
            .ok_or(ResultCode::AuthInvalidUser)?;
        if self.rules.refuse_suspended && user.suspended {
            return Err(ResultCode::AuthUserSuspended);
        }
        match spec.symbol_type {
            SymbolType::CurrencyPair => {}
            SymbolType::Futures if self.rules.margin_trading => {}
            SymbolType::Option if self.rules.margin_trading => return Err(ResultCode::RiskNsf),
            _ => return Err(ResultCode::InvalidSymbol),
        }
        if place.order_type.has_limit() && !self.obeys_band(place.symbol, place.price) {
            return Err(ResultCode::RiskPriceOutsideBand);
        }
        let is_futures = self.is_futures(spec);
        if is_futures && self.rules.cover_futures && !self.bands.contains_key(&spec.id) {
            return Err(ResultCode::SymbolWithoutPriceBand);
        }
        if self.rules.refuse_not_positive && place.size <= 0 {
            return Err(ResultCode::RiskSizeNotPositive);
        }
        if self.rules.refuse_not_positive && place.price <= 0 {
            return Err(ResultCode::RiskPriceNotPositive);
        }
        if spec.symbol_type == SymbolType::Futures {
            self.hold_margin(place, spec)?;
            return Ok(self.execute(place, spec));
        }
        let fits = match place.action {
            Action::Ask => covers_fee(spec, place.price),
            Action::Bid if place.order_type.is_budget() => place.reserve_price == place.price,
            Action::Bid => place.reserve_price >= place.price,
        };
        let (currency, hold) = Self::hold(spec, place, place.size);
        let money = user.money.get(&currency).copied().unwrap_or(0);
        let free = if self.rules.cover_futures {
            -self.asked(place.uid, currency, None).max(0)
        } else {
            self.free(place.uid, currency, None)
        };
        if !fits || money + free < hold {
            return Err(ResultCode::RiskNsf);
        }
        self.pay(place.uid, currency, -hold);
        Ok(self.execute(place, spec))
    }

    /// Matches and settles a new order whose money is held.
    fn execute(&mut self, place: &Place, spec: &SymbolSpec) -> Vec<Event> {
        let mut order = Order {
            place: *place,
            filled: 0,
        };
        let mut events = Vec::new();
        let known = |other: &Order| {
            let is_same = other.place.order_id == place.order_id;
            let may_be = !self.rules.ids_per_user || other.place.uid == place.uid;
            other.place.symbol == place.symbol && is_same && may_be
        };
        let is_taken =
            self.rules.refuse_rejected && place.size != 0 && self.orders.iter().any(known);
        let takes = match place.order_type {
            _ if is_taken => false,
            OrderType::Gtc | OrderType::Ioc => true,
            OrderType::Market => {
                order.place.price = self.worst_price(place);
                true
            }
            OrderType::Fok => self.rules.fill_fok && place.size > 0 && self.limit_is_met(place),
            OrderType::IocBudget => self.rules.fill_ioc_budget,
            OrderType::FokBudget => self.budget_is_met(place),
        };
        if takes {
            events = self.take(&mut order, spec);
        }
        let left = place.size - order.filled;
        let known = |other: &Order| {
            let is_same = other.place.order_id == place.order_id;
            let may_be = !self.rules.ids_per_user || other.place.uid == place.uid;
            other.place.symbol == place.symbol && is_same && may_be
        };
        if takes && left == 0 {
            return events;
        }
        if place.order_type == OrderType::Gtc && !self.orders.iter().any(known) {
            self.orders.push(order);
            return events;
        }
        let why = match place.order_type {
            _ if is_taken => RejectReason::DuplicateId,
            OrderType::Gtc => RejectReason::DuplicateId,
            OrderType::Fok | OrderType::FokBudget => RejectReason::FillOrKill,
            OrderType::IocBudget if !takes || self.best_maker(place).is_some() => {
                RejectReason::Budget
            }
            OrderType::Ioc | OrderType::IocBudget | OrderType::Market => {
                RejectReason::ImmediateOrCancel
            }
        };
        if self.is_futures(spec) {
            self.unhold(place.uid, spec, place.action, left);
        } else {
            self.give_back(place, left, spec);
        }
        let (price, bidder_hold_price) = (place.price, place.reserve_price);
        events.insert(
            0,
            Event::Reject {
                order: place.order_id,
                price,
                size: left,
                bidder_hold_price,
                why,
            },
        );
        events
    }

    /// Up to where a market order takes.
    fn worst_price(&self, place: &Place) -> i64 {
        let none = (i64::MIN, i64::MAX);
        let (low, high) = self.bands.get(&place.symbol).copied().unwrap_or(none);
        let ticks = self.protections.get(&place.symbol).copied();
        let ticks = ticks.unwrap_or(i64::MAX);
        let best = |taker| {
            self.best_maker(&taker)
                .map(|age| self.orders[age].place.price)
        };
        let any = |price| Place {
            price,
            order_type: OrderType::Gtc,
            ..*place
        };
        match place.action {
            Action::Bid => {
                let best = best(any(i64::MAX)).unwrap_or(0);
                place.price.min(high).min(best.saturating_add(ticks))
            }
            Action::Ask => {
                let best = best(any(i64::MIN)).unwrap_or(0);
                place.price.max(low).max(best.saturating_sub(ticks))
            }
        }
    }

    /// Pays back what was held for rejected lots.
    fn give_back(&mut self, place: &Place, left: i64, spec: &SymbolSpec) {
        let (currency, back) = match place.order_type {
            // The unspent part of the budget; `take` has paid for the other, and its fees.
            OrderType::IocBudget
                if place.action == Action::Bid
                    && (self.rules.fill_ioc_budget || self.rules.refuse_rejected) =>
            {
                let fee = i128::from(left) * i128::from(spec.taker_fee);
                let none = Place { price: 0, ..*place };
                let budget = Self::hold(spec, place, 0).1 - Self::hold(spec, &none, 0).1;
                let whole = left == place.size;
                (spec.quote_currency, fee + if whole { budget } else { 0 })
            }
            // The quirk: what a rejected IOC_BUDGET gives back is no part of what it held.
            OrderType::IocBudget => {
                let plain = place.with_type(OrderType::Gtc);
                Self::hold(spec, &plain, left)
            }
            _ => Self::hold(spec, place, left),
        };
        self.pay(place.uid, currency, back);
    }

    fn limit_is_met(&self, place: &Place) -> bool {
        let makers = self.orders.iter().filter(|order| {
            let maker = &order.place;
            let crosses = match place.action {
                Action::Bid => maker.price <= place.price,
                Action::Ask => maker.price >= place.price,
            };
            maker.symbol == place.symbol && maker.action != place.action && crosses
        });
        let lots: i64 = makers.map(|order| order.place.size - order.filled).sum();
        lots >= place.size
    }

    /// Whether a budget order takes at a price at all.
    fn is_in_budget(&self, taker: &Place, price: i64) -> bool {
        let spec = &self.symbols[&taker.symbol];
        let is_pair = spec.symbol_type == SymbolType::CurrencyPair;
        let brings_fee = !is_pair || taker.action == Action::Bid || covers_fee(spec, price);
        !self.rules.bound_budgets || brings_fee && self.obeys_band(taker.symbol, price)
    }

    fn budget_is_met(&self, place: &Place) -> bool {
        let mut prices: Vec<i64> = self
            .orders
            .iter()
            .filter(|order| {
                order.place.symbol == place.symbol
                    && order.place.action != place.action
                    && self.is_in_budget(place, order.place.price)
            })
            .flat_map(|order| {
                let left = usize::try_from(order.place.size - order.filled)
                    .expect("sizes are not negative here");
                std::iter::repeat_n(order.place.price, left)
            })
            .collect();
        prices.sort_unstable();
        if place.action == Action::Ask {
            prices.reverse();
        }
        let size = usize::try_from(place.size).expect("sizes are not negative here");
        if prices.is_empty() || prices.len() < size {
            return false;
        }
        let cost: i64 = prices[..size].iter().sum();
        match place.action {
            Action::Bid => cost <= place.price,
            Action::Ask => cost >= place.price,
        }
    }

    /// The place in the list of the order that a taker meets first.
    fn best_maker(&self, taker: &Place) -> Option<usize> {
        let crosses = |maker: &Place| match taker.action {
            _ if taker.order_type.is_budget() => self.is_in_budget(taker, maker.price),
            Action::Bid => maker.price <= taker.price,
            Action::Ask => maker.price >= taker.price,
        };
        let makers = self.orders.iter().enumerate().filter(|(_, order)| {
            let maker = &order.place;
            maker.symbol == taker.symbol && maker.action != taker.action && crosses(maker)
        });
        let better = |order: &Order| match taker.action {
            Action::Bid => order.place.price,
            Action::Ask => -order.place.price,
        };
        makers
            .min_by_key(|(age, order)| (better(order), *age))
            .map(|(age, _)| age)
    }

    fn take(&mut self, taker: &mut Order, spec: &SymbolSpec) -> Vec<Event> {
        let mut events = Vec::new();
        let mut paid = 0;
        let mut budget = taker.place.price;
        let mut brought = 0;
        while taker.filled < taker.place.size {
            let Some(age) = self.best_maker(&taker.place) else {
                break;
            };
            let maker = &mut self.orders[age];
            let mut size = (maker.place.size - maker.filled).min(taker.place.size - taker.filled);
            if taker.place.order_type == OrderType::IocBudget {
                let price = maker.place.price;
                let is_floor = self.rules.bound_budgets && taker.place.action == Action::Ask;
                size = if is_floor {
                    sell_for_share(taker, &mut brought, price, size)
                } else {
                    spend(&mut budget, price, size)
                };
            }
            if size == 0 {
                break;
            }
            let short = size < (maker.place.size - maker.filled);
            maker.filled += size;
            taker.filled += size;
            let met = maker.place;
            let (maker_filled, maker_left) = (maker.filled, met.size - maker.filled);
            let maker_completed = maker_left == 0;
            if maker_completed {
                self.orders.remove(age);
            }
            let buyer = [&met, &taker.place][taker.place.action as usize];
            events.push(Event::Trade {
                price: met.price,
                size,
                maker_order: met.order_id,
                maker_uid: met.uid,
                maker_filled,
                maker_left,
                maker_completed,
                taker_completed: taker.filled == taker.place.size,
                bidder_hold_price: buyer.reserve_price,
                taker_action: taker.place.action,
            });
            if self.is_futures(spec) {
                let action = taker.place.action;
                let lots = (size, met.price);
                self.trade(taker.place.uid, spec, action, lots, spec.taker_fee);
                self.trade(met.uid, spec, action.opposite(), lots, spec.maker_fee);
                if short {
                    break;
                }
                continue;
            }
            paid += self.pay_for(&taker.place, &met, size, spec);
            if short {
                break;
            }
        }
        if !self.is_futures(spec) {
            self.return_unspent(&taker.place, &events, paid, spec);
        }
        events
    }

    /// Returns the part of a buying taker's hold for its trades that it did not pay.
    fn return_unspent(&mut self, taker: &Place, events: &[Event], paid: i128, spec: &SymbolSpec) {
        if taker.action == Action::Bid && !events.is_empty() {
            let size = events.iter().map(|event| match event {
                Event::Trade { size, .. } => *size,
                _ => 0,
            });
            let (currency, held) = Self::hold(spec, taker, size.sum());
            self.pay(taker.uid, currency, held - paid);
        }
    }

    /// Pays for a trade in a pair, except what a buying taker pays: that is returned.
    fn pay_for(&mut self, taker: &Place, met: &Place, size: i64, spec: &SymbolSpec) -> i128 {
        let [lots, price] = [size, met.price].map(i128::from);
        let [scale, taker_fee, maker_fee] =
            [spec.quote_scale, spec.taker_fee, spec.maker_fee].map(i128::from);
        let value = lots * price * scale;
        let (quote, base) = (spec.quote_currency, spec.base_currency);
        let base_amount = lots * i128::from(spec.base_scale);
        *self.fees.entry(quote).or_default() += lots * (taker_fee + maker_fee);
        match taker.action {
            Action::Bid => {
                self.pay(met.uid, quote, value - lots * maker_fee);
                self.pay(taker.uid, base, base_amount);
                value + lots * taker_fee
            }
            Action::Ask => {
                let (_, held) = Self::hold(spec, met, size);
                self.pay(met.uid, quote, held - value - lots * maker_fee);
                self.pay(met.uid, base, base_amount);
                self.pay(taker.uid, quote, value - lots * taker_fee);
                0
            }
        }
    }

    fn own(&self, uid: UserId, symbol: SymbolId, id: OrderId) -> Result<usize, ResultCode> {
        let wanted = |order: &Order| {
            let place = &order.place;
            place.uid == uid && place.symbol == symbol && place.order_id == id
        };
        self.orders
            .iter()
            .position(wanted)
            .ok_or(ResultCode::MatchingUnknownOrderId)
    }

    pub(crate) fn reduce(
        &mut self,
        uid: UserId,
        symbol: SymbolId,
        order_id: OrderId,
        by: i64,
        spec: &SymbolSpec,
    ) -> Answer {
        let age = self.own(uid, symbol, order_id)?;
        let order = &mut self.orders[age];
        let size = by.min(order.place.size - order.filled);
        order.place.size -= size;
        let completed = order.place.size == order.filled;
        let (place, filled) = (order.place, order.filled);
        if completed {
            self.orders.remove(age);
        }
        if self.is_futures(spec) {
            self.unhold(uid, spec, place.action, size);
        } else {
            let (currency, back) = Self::hold(spec, &place, size);
            self.pay(uid, currency, back);
        }
        let (price, bidder_hold_price, action) = (place.price, place.reserve_price, place.action);
        Ok(vec![Event::Reduce {
            order: order_id,
            price,
            size,
            left: place.size - filled,
            filled,
            completed,
            bidder_hold_price,
            action,
        }])
    }

    pub(crate) fn move_order(
        &mut self,
        uid: UserId,
        symbol: SymbolId,
        order_id: OrderId,
        price: i64,
        spec: &SymbolSpec,
    ) -> Answer {
        let age = self.own(uid, symbol, order_id)?;
        if self.rules.refuse_suspended && self.users.get(&uid).is_none_or(|user| user.suspended) {
            return Err(ResultCode::AuthUserSuspended);
        }
        if !self.obeys_band(symbol, price) && spec.symbol_type != SymbolType::Option {
            return Err(ResultCode::RiskPriceOutsideBand);
        }
        if self.rules.refuse_not_positive && price <= 0 {
            return Err(ResultCode::RiskPriceNotPositive);
        }
        let place = &self.orders[age].place;
        let pair = spec.symbol_type == SymbolType::CurrencyPair;
        if pair && place.action == Action::Bid && price > place.reserve_price {
            return Err(ResultCode::MatchingMoveFailedPriceOverRiskLimit);
        }
        let refuses = pair && self.rules.refuse_moved_ask_under_fee;
        if place.action == Action::Ask && refuses && !covers_fee(spec, price) {
            return Err(ResultCode::MatchingMoveFailedPriceLowerThanFee);
        }
        let mut order = self.orders.remove(age);
        order.place.price = price;
        let events = self.take(&mut order, spec);
        if order.filled < order.place.size {
            self.orders.push(order);
        }
        Ok(events)
    }
}
