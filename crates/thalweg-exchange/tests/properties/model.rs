//! The plain exchange: lists, scans and 128-bit sums, obviously right, for small numbers.

use std::collections::BTreeMap;

use thalweg_exchange::{
    AccountSpec, Action, AdjustmentKind, Command, CurrencyId, Event, OrderId, OrderType, Place,
    ResultCode, Rules, SymbolId, SymbolSpec, SymbolType, UserId,
};

#[derive(Clone, Debug, Default)]
pub(crate) struct User {
    pub(crate) suspended: bool,
    pub(crate) last_id: i64,
    pub(crate) money: BTreeMap<CurrencyId, i128>,
}

#[derive(Clone, Debug)]
pub(crate) struct Order {
    pub(crate) place: Place,
    pub(crate) filled: i64,
}

#[derive(Clone, Debug)]
pub(crate) struct Model {
    pub(crate) rules: Rules,
    pub(crate) users: BTreeMap<UserId, User>,
    pub(crate) symbols: BTreeMap<SymbolId, SymbolSpec>,
    /// All resting orders of all symbols, the oldest first.
    pub(crate) orders: Vec<Order>,
    pub(crate) fees: BTreeMap<CurrencyId, i128>,
    pub(crate) adjustments: BTreeMap<CurrencyId, i128>,
    pub(crate) suspends: BTreeMap<CurrencyId, i128>,
}

type Answer = Result<Vec<Event>, ResultCode>;

const DONE: Answer = Ok(Vec::new());

fn covers_fee(spec: &SymbolSpec, price: i64) -> bool {
    price * spec.quote_scale >= spec.taker_fee
}

fn is_pair(spec: &SymbolSpec) -> bool {
    spec.symbol_type == SymbolType::CurrencyPair
}

impl Model {
    pub(crate) fn new(rules: Rules) -> Self {
        Self {
            rules,
            users: BTreeMap::new(),
            symbols: BTreeMap::new(),
            orders: Vec::new(),
            fees: BTreeMap::new(),
            adjustments: BTreeMap::new(),
            suspends: BTreeMap::new(),
        }
    }

    pub(crate) fn apply(&mut self, command: &Command) -> (ResultCode, Vec<Event>) {
        match self.answer(command) {
            Ok(events) => (ResultCode::Success, events),
            Err(code) => (code, Vec::new()),
        }
    }

    fn answer(&mut self, command: &Command) -> Answer {
        let book = command.symbol().map(|id| self.symbols.get(&id).copied());
        let spec = match book {
            None => SymbolSpec::default(),
            Some(None) => return Err(ResultCode::MatchingInvalidOrderBookId),
            Some(Some(spec)) => spec,
        };
        match command {
            Command::Place(place) => self.place(place, &spec),
            Command::Cancel {
                uid,
                symbol,
                order_id,
            } => self.reduce(*uid, *symbol, *order_id, i64::MAX, &spec),
            Command::Reduce { by, .. } if *by <= 0 => {
                Err(ResultCode::MatchingReduceFailedWrongSize)
            }
            Command::Reduce {
                uid,
                symbol,
                order_id,
                by,
            } => self.reduce(*uid, *symbol, *order_id, *by, &spec),
            Command::Move {
                uid,
                symbol,
                order_id,
                price,
            } => self.move_order(*uid, *symbol, *order_id, *price, &spec),
            Command::AddUser { uid } => {
                if self.users.contains_key(uid) {
                    return Err(ResultCode::UserMgmtUserAlreadyExists);
                }
                self.users.insert(*uid, User::default());
                DONE
            }
            Command::Balance {
                uid,
                currency,
                amount,
                transaction_id,
                kind,
            } => self.balance(*uid, *currency, *amount, *transaction_id, *kind),
            Command::Suspend { uid } => self.suspend(*uid),
            Command::Resume { uid } => match self.users.get_mut(uid) {
                None => {
                    self.users.insert(*uid, User::default());
                    DONE
                }
                Some(user) if user.suspended => {
                    user.suspended = false;
                    DONE
                }
                Some(_) => Err(ResultCode::UserMgmtUserNotSuspended),
            },
            Command::AddSymbols(specs) => self.add_symbols(specs),
            Command::AddAccounts(accounts) => {
                accounts
                    .iter()
                    .for_each(|account| self.add_account(account));
                DONE
            }
            Command::Nop => DONE,
            Command::Reset => {
                *self = Self::new(self.rules);
                DONE
            }
        }
    }

    fn add_symbols(&mut self, specs: &[SymbolSpec]) -> Answer {
        let over = |spec: &SymbolSpec| is_pair(spec) && spec.maker_fee > spec.taker_fee;
        let new = |spec: &&SymbolSpec| !self.symbols.contains_key(&spec.id);
        if self.rules.refuse_maker_fee_over_taker && specs.iter().filter(new).any(over) {
            return Err(ResultCode::SymbolMakerFeeOverTakerFee);
        }
        for spec in specs {
            self.symbols.entry(spec.id).or_insert(*spec);
        }
        DONE
    }

    fn add_account(&mut self, account: &AccountSpec) {
        if self.users.contains_key(&account.uid) {
            return;
        }
        self.users.insert(account.uid, User::default());
        let balances: BTreeMap<_, _> = account.balances.iter().rev().copied().collect();
        for (currency, amount) in balances {
            let id = 1_000_000_000 + i64::from(currency.0);
            let _ = self.balance(
                account.uid,
                currency,
                amount,
                id,
                AdjustmentKind::Adjustment,
            );
        }
    }

    fn balance(
        &mut self,
        uid: UserId,
        currency: CurrencyId,
        amount: i64,
        id: i64,
        kind: AdjustmentKind,
    ) -> Answer {
        let user = self
            .users
            .get_mut(&uid)
            .ok_or(ResultCode::AuthInvalidUser)?;
        if id == user.last_id {
            return Err(ResultCode::UserMgmtAccountBalanceAdjustmentAlreadyAppliedSame);
        }
        if id < user.last_id {
            return Err(ResultCode::UserMgmtAccountBalanceAdjustmentAlreadyAppliedMany);
        }
        let amount = i128::from(amount);
        let balance = user.money.get(&currency).copied().unwrap_or(0) + amount;
        if amount < 0 && balance < 0 {
            return Err(ResultCode::UserMgmtAccountBalanceAdjustmentNsf);
        }
        user.money.insert(currency, balance);
        user.last_id = id;
        let totals = match kind {
            AdjustmentKind::Adjustment => &mut self.adjustments,
            AdjustmentKind::Suspend => &mut self.suspends,
        };
        *totals.entry(currency).or_default() -= amount;
        DONE
    }

    fn suspend(&mut self, uid: UserId) -> Answer {
        let user = self
            .users
            .get(&uid)
            .ok_or(ResultCode::UserMgmtUserNotFound)?;
        if user.suspended {
            return Err(ResultCode::UserMgmtUserAlreadySuspended);
        }
        if user.money.values().any(|&money| money != 0) {
            return Err(ResultCode::UserMgmtUserNotSuspendableNonEmptyAccounts);
        }
        self.users.remove(&uid);
        DONE
    }

    fn pay(&mut self, uid: UserId, currency: CurrencyId, amount: i128) {
        let suspended = User {
            suspended: true,
            ..User::default()
        };
        let user = self.users.entry(uid).or_insert(suspended);
        *user.money.entry(currency).or_default() += amount;
    }

    /// What is held for `size` lots of an order: currency and amount.
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

    fn place(&mut self, place: &Place, spec: &SymbolSpec) -> Answer {
        let user = self
            .users
            .get(&place.uid)
            .ok_or(ResultCode::AuthInvalidUser)?;
        if self.rules.refuse_suspended && user.suspended {
            return Err(ResultCode::AuthUserSuspended);
        }
        match spec.symbol_type {
            SymbolType::CurrencyPair => {}
            SymbolType::Option if self.rules.margin_trading => return Err(ResultCode::RiskNsf),
            _ => return Err(ResultCode::InvalidSymbol),
        }
        if self.rules.refuse_not_positive && place.size <= 0 {
            return Err(ResultCode::RiskSizeNotPositive);
        }
        if self.rules.refuse_not_positive && place.price <= 0 {
            return Err(ResultCode::RiskPriceNotPositive);
        }
        let later = matches!(place.order_type, OrderType::Fok) && self.rules.fill_fok
            || matches!(place.order_type, OrderType::IocBudget) && self.rules.fill_ioc_budget;
        if later {
            return Err(ResultCode::MatchingUnsupportedCommand);
        }
        let fits = match place.action {
            Action::Ask => covers_fee(spec, place.price),
            Action::Bid if place.order_type.is_budget() => place.reserve_price == place.price,
            Action::Bid => place.reserve_price >= place.price,
        };
        let (currency, hold) = Self::hold(spec, place, place.size);
        if !fits || user.money.get(&currency).copied().unwrap_or(0) < hold {
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
        let takes = match place.order_type {
            OrderType::Gtc | OrderType::Ioc => true,
            OrderType::Fok | OrderType::IocBudget => false,
            OrderType::FokBudget => self.budget_is_met(place),
        };
        if takes {
            events = self.take(&mut order, spec);
        }
        let left = place.size - order.filled;
        let known = |other: &Order| {
            other.place.symbol == place.symbol && other.place.order_id == place.order_id
        };
        if takes && left == 0 {
            return events;
        }
        if place.order_type == OrderType::Gtc && !self.orders.iter().any(known) {
            self.orders.push(order);
            return events;
        }
        let (currency, back) = match place.order_type {
            // The quirk: what a rejected IOC_BUDGET gives back is no part of what it held.
            OrderType::IocBudget => {
                let plain = Place {
                    order_type: OrderType::Gtc,
                    ..*place
                };
                Self::hold(spec, &plain, left)
            }
            _ => Self::hold(spec, place, left),
        };
        self.pay(place.uid, currency, back);
        let (price, bidder_hold_price) = (place.price, place.reserve_price);
        events.insert(
            0,
            Event::Reject {
                price,
                size: left,
                bidder_hold_price,
            },
        );
        events
    }

    fn budget_is_met(&self, place: &Place) -> bool {
        let mut prices: Vec<i64> = self
            .orders
            .iter()
            .filter(|order| {
                order.place.symbol == place.symbol && order.place.action != place.action
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
            _ if taker.order_type == OrderType::FokBudget => true,
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
        while taker.filled < taker.place.size {
            let Some(age) = self.best_maker(&taker.place) else {
                break;
            };
            let maker = &mut self.orders[age];
            let size = (maker.place.size - maker.filled).min(taker.place.size - taker.filled);
            maker.filled += size;
            taker.filled += size;
            let met = maker.place;
            let maker_completed = maker.filled == met.size;
            if maker_completed {
                self.orders.remove(age);
            }
            let buyer = if taker.place.action == Action::Bid {
                &taker.place
            } else {
                &met
            };
            events.push(Event::Trade {
                price: met.price,
                size,
                maker_order: met.order_id,
                maker_uid: met.uid,
                maker_completed,
                taker_completed: taker.filled == taker.place.size,
                bidder_hold_price: buyer.reserve_price,
                taker_action: taker.place.action,
            });
            let [lots, price] = [size, met.price].map(i128::from);
            let [scale, taker_fee, maker_fee] =
                [spec.quote_scale, spec.taker_fee, spec.maker_fee].map(i128::from);
            let value = lots * price * scale;
            let (quote, base) = (spec.quote_currency, spec.base_currency);
            let goods = lots * i128::from(spec.base_scale);
            match taker.place.action {
                Action::Bid => {
                    self.pay(met.uid, quote, value - lots * maker_fee);
                    self.pay(taker.place.uid, base, goods);
                    paid += value + lots * taker_fee;
                }
                Action::Ask => {
                    let (_, held) = Self::hold(spec, &met, size);
                    self.pay(met.uid, quote, held - value - lots * maker_fee);
                    self.pay(met.uid, base, goods);
                    self.pay(taker.place.uid, quote, value - lots * taker_fee);
                }
            }
            *self.fees.entry(quote).or_default() += lots * (taker_fee + maker_fee);
        }
        if taker.place.action == Action::Bid && !events.is_empty() {
            let size = events.iter().map(|event| match event {
                Event::Trade { size, .. } => *size,
                _ => 0,
            });
            let (currency, held) = Self::hold(spec, &taker.place, size.sum());
            self.pay(taker.place.uid, currency, held - paid);
        }
        events
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

    fn reduce(
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
        let place = order.place;
        if completed {
            self.orders.remove(age);
        }
        let (currency, back) = Self::hold(spec, &place, size);
        self.pay(uid, currency, back);
        let (price, bidder_hold_price, action) = (place.price, place.reserve_price, place.action);
        Ok(vec![Event::Reduce {
            price,
            size,
            completed,
            bidder_hold_price,
            action,
        }])
    }

    fn move_order(
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
        if self.rules.refuse_not_positive && price <= 0 {
            return Err(ResultCode::RiskPriceNotPositive);
        }
        let place = &self.orders[age].place;
        if place.action == Action::Bid && price > place.reserve_price {
            return Err(ResultCode::MatchingMoveFailedPriceOverRiskLimit);
        }
        let refuses = self.rules.refuse_moved_ask_under_fee;
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
