//! The plain book: a map of queues per side. Slow, and obviously right.

use std::collections::{BTreeMap, HashMap, VecDeque};

use thalweg_exchange::book::{Level, RestingOrder};
use thalweg_exchange::{
    Action, Command, Event, OrderId, OrderType, Place, RejectReason, ResultCode, Rules, SymbolSpec,
    SymbolType, UserId,
};

#[derive(Debug)]
pub(crate) struct PlainBook {
    spec: SymbolSpec,
    rules: Rules,
    /// Per side (ask, bid) and price, the oldest order first.
    sides: [BTreeMap<i64, VecDeque<RestingOrder>>; 2],
    /// How far from the best price a market order takes.
    protection: i64,
    /// Side and price of every order.
    places: HashMap<Key, (Action, i64)>,
    /// The fault that is seeded, to show that comparing finds it.
    pub(crate) fault: Option<&'static str>,
}

/// The owner, where ids are per user, and the id.
type Key = (UserId, OrderId);

/// Why a look-up cannot fail.
const KNOWN: &str = "every order is where `places` says";

/// Returns how many of a number of lots a taker may still take at a price.
type Allow<'a> = &'a mut dyn FnMut(i64, i64) -> i64;

impl PlainBook {
    pub(crate) fn new(spec: SymbolSpec, rules: Rules) -> Self {
        Self {
            spec,
            rules,
            sides: [BTreeMap::new(), BTreeMap::new()],
            protection: i64::MAX,
            places: HashMap::new(),
            fault: None,
        }
    }

    pub(crate) fn order_count(&self) -> usize {
        self.places.len()
    }

    fn key(&self, uid: UserId, id: OrderId) -> Key {
        let owner = if self.rules.ids_per_user {
            uid
        } else {
            UserId(0)
        };
        (owner, id)
    }

    fn key_of(&self, order: &RestingOrder) -> Key {
        self.key(order.uid, order.order_id)
    }

    /// The order of this key, if it belongs to `uid`.
    fn own(&self, uid: UserId, id: OrderId) -> Option<&RestingOrder> {
        let key = self.key(uid, id);
        let &(side, price) = self.places.get(&key)?;
        let queue = &self.sides[side as usize][&price];
        let order = queue.iter().find(|order| self.key_of(order) == key);
        order.filter(|order| order.uid == uid)
    }

    fn order_mut(&mut self, key: Key) -> &mut RestingOrder {
        let (side, price) = self.places[&key];
        let queue = &self.sides[side as usize][&price];
        let at = queue.iter().position(|order| self.key_of(order) == key);
        let queue = self.sides[side as usize].get_mut(&price).expect(KNOWN);
        &mut queue[at.expect(KNOWN)]
    }

    fn queues(&self, side: Action) -> Box<dyn Iterator<Item = &VecDeque<RestingOrder>> + '_> {
        let queues = self.sides[side as usize].values();
        match side {
            Action::Ask => Box::new(queues),
            Action::Bid => Box::new(queues.rev()),
        }
    }

    pub(crate) fn orders(&self, side: Action) -> impl Iterator<Item = RestingOrder> + '_ {
        self.queues(side).flatten().copied()
    }

    pub(crate) fn levels(&self, side: Action) -> impl Iterator<Item = Level> + '_ {
        self.queues(side).map(|queue| Level {
            price: queue[0].price,
            volume: queue.iter().map(displayed).sum(),
            orders: queue.len() as u64,
        })
    }

    /// Price and lots of each level, hidden ones included.
    fn lots(&self, side: Action) -> impl Iterator<Item = (i64, i64)> + '_ {
        let counts_hidden = self.fault != Some("FOK counts displayed lots only");
        let left = move |order: &RestingOrder| match counts_hidden {
            true => order.size - order.filled,
            false => displayed(order),
        };
        self.queues(side)
            .map(move |queue| (queue[0].price, queue.iter().map(left).sum()))
    }

    fn add(&mut self, order: RestingOrder) {
        let place = (order.action, order.price);
        let key = self.key_of(&order);
        assert!(self.places.insert(key, place).is_none());
        let side = &mut self.sides[order.action as usize];
        side.entry(order.price).or_default().push_back(order);
    }

    fn remove(&mut self, key: Key) -> RestingOrder {
        let (side, price) = self.places.remove(&key).expect(KNOWN);
        let queue = &self.sides[side as usize][&price];
        let at = queue.iter().position(|order| self.key_of(order) == key);
        let at = at.expect(KNOWN);
        let side = &mut self.sides[side as usize];
        let queue = side.get_mut(&price).expect(KNOWN);
        let order = queue.remove(at).expect(KNOWN);
        if queue.is_empty() {
            side.remove(&price);
        }
        order
    }

    pub(crate) fn execute(&mut self, command: &Command) -> (ResultCode, Vec<Event>) {
        let mut events = Vec::new();
        let code = match *command {
            Command::Place(ref place) => self.place(place, None, &mut events),
            Command::PlaceConditional(ref order) => {
                assert_eq!((order.trigger, order.good_till), (None, None));
                self.place(&order.place, order.display, &mut events)
            }
            Command::Cancel { uid, order_id, .. } => {
                self.reduce(uid, order_id, i64::MAX, &mut events)
            }
            Command::Reduce {
                uid, order_id, by, ..
            } => self.reduce(uid, order_id, by, &mut events),
            Command::Move {
                uid,
                order_id,
                price,
                ..
            } => self.move_order(uid, order_id, price, &mut events),
            Command::SetMarketProtection { ticks, .. } => {
                self.protection = ticks;
                ResultCode::Success
            }
            _ => unreachable!("not for a book"),
        };
        (code, events)
    }

    fn place(
        &mut self,
        place: &Place,
        display: Option<i64>,
        events: &mut Vec<Event>,
    ) -> ResultCode {
        let mut order = unfilled(place, display);
        let rests = place.order_type == OrderType::Gtc;
        if place.order_type == OrderType::Market {
            order.price = self.market_price(place);
        }
        let key = self.key(place.uid, place.order_id);
        let is_taken =
            self.rules.refuse_rejected && place.size != 0 && self.places.contains_key(&key);
        let is_tried = match place.order_type {
            _ if is_taken => false,
            OrderType::Gtc | OrderType::Ioc | OrderType::Market => true,
            OrderType::Fok => self.rules.fill_fok && place.size > 0 && self.is_filled_by(place),
            OrderType::IocBudget => self.rules.fill_ioc_budget,
            OrderType::FokBudget => self.is_budget_met(place),
        };
        let mut budget = i128::from(place.price);
        let is_floor = self.rules.bound_budgets && place.action == Action::Ask;
        let mut sold = (0, 0);
        let mut spend = |price, lots| {
            let mut bought = 0;
            if is_floor {
                return sell_for_share(place, &mut sold, price, lots);
            }
            // Lot by lot.
            while bought < lots && budget >= 0 && budget >= i128::from(price) {
                budget -= i128::from(price);
                bought += 1;
            }
            bought
        };
        let mut all = |_, lots| lots;
        let allow: Allow<'_> = if place.order_type == OrderType::IocBudget {
            &mut spend
        } else {
            &mut all
        };
        if is_tried {
            self.take(&mut order, !place.order_type.is_budget(), allow, events);
        }
        let left = order.size - order.filled;
        if rests && left != 0 && !self.places.contains_key(&key) {
            replenish(&mut order);
            self.add(order);
        } else if left != 0 || !is_tried {
            let why = self.why(place, is_taken, is_tried);
            let event = Event::Reject {
                order: place.order_id,
                price: place.price,
                size: left,
                bidder_hold_price: place.reserve_price,
                why,
            };
            events.insert(0, event);
        }
        match events[..] {
            [Event::Reject { why, .. }] if self.rules.refuse_rejected => why.result(),
            _ => ResultCode::Success,
        }
    }

    /// Up to where a market order takes.
    fn market_price(&self, place: &Place) -> i64 {
        match (self.levels(place.action.opposite()).next(), place.action) {
            (None, _) => place.price,
            (Some(best), Action::Bid) => {
                place.price.min(best.price.saturating_add(self.protection))
            }
            (Some(best), Action::Ask) => {
                place.price.max(best.price.saturating_sub(self.protection))
            }
        }
    }

    /// Why what is left of a new order is rejected.
    fn why(&self, place: &Place, is_taken: bool, is_tried: bool) -> RejectReason {
        let side = place.action.opposite();
        let best = self.queues(side).next().map(|queue| queue[0].price);
        match place.order_type {
            _ if is_taken => RejectReason::DuplicateId,
            OrderType::Gtc => RejectReason::DuplicateId,
            OrderType::Fok | OrderType::FokBudget => RejectReason::FillOrKill,
            OrderType::IocBudget
                if !is_tried
                    || best.is_some_and(|price| self.is_in_budget(place.action, price)) =>
            {
                RejectReason::Budget
            }
            OrderType::Ioc | OrderType::IocBudget | OrderType::Market => {
                RejectReason::ImmediateOrCancel
            }
        }
    }

    /// Trades with the other side, best price first, then the oldest order first.
    fn take(
        &mut self,
        taker: &mut RestingOrder,
        is_limited: bool,
        allow: Allow<'_>,
        events: &mut Vec<Event>,
    ) {
        while taker.filled != taker.size {
            let side = taker.action.opposite();
            let Some(maker) = self.queues(side).next().map(|queue| queue[0]) else {
                break;
            };
            if !is_limited && !self.is_in_budget(taker.action, maker.price) {
                break;
            }
            if is_limited && !takes(taker.action, taker.price, maker.price) {
                break;
            }
            let lots = (taker.size - taker.filled).min(displayed(&maker));
            let size = allow(maker.price, lots);
            if size == 0 {
                break;
            }
            taker.filled += size;
            self.order_mut(self.key_of(&maker)).filled += size;
            let maker_completed = maker.filled + size == maker.size;
            let buyer = if side == Action::Bid { &maker } else { &*taker };
            events.push(Event::Trade {
                price: maker.price,
                size,
                maker_order: maker.order_id,
                maker_uid: maker.uid,
                maker_filled: maker.filled + size,
                maker_left: maker.size - maker.filled - size,
                maker_completed,
                taker_completed: taker.filled == taker.size,
                bidder_hold_price: buyer.reserve_price,
                taker_action: taker.action,
            });
            if size != displayed(&maker) {
                break;
            }
            let mut maker = self.remove(self.key_of(&maker));
            if !maker_completed {
                replenish(&mut maker);
                self.add(maker);
                events.push(refilled(&maker, displayed(&maker)));
                if self.fault == Some("refilled lots are first") {
                    let queues = &mut self.sides[side as usize];
                    queues.get_mut(&maker.price).expect(KNOWN).rotate_right(1);
                }
            }
        }
    }

    /// Whether the levels within the limit price have the size.
    fn is_filled_by(&self, place: &Place) -> bool {
        let levels = self.lots(place.action.opposite());
        let mut found = 0;
        levels
            .take_while(|&(price, _)| takes(place.action, place.price, price))
            .any(|(_, lots)| {
                found += lots;
                found >= place.size
            })
    }

    /// Whether a budget order takes at a price at all: a lot that is sold must bring in its fee.
    fn is_in_budget(&self, action: Action, price: i64) -> bool {
        let value = i128::from(price) * i128::from(self.spec.quote_scale);
        let is_free = action == Action::Bid || self.spec.symbol_type != SymbolType::CurrencyPair;
        !self.rules.bound_budgets || is_free || value >= i128::from(self.spec.taker_fee)
    }

    /// Whether the levels have the size, at a cost that the budget allows.
    fn is_budget_met(&self, place: &Place) -> bool {
        let mut left = place.size;
        let mut cost = 0;
        for (price, all) in self.lots(place.action.opposite()) {
            if !self.is_in_budget(place.action, price) {
                break;
            }
            let lots = left.min(all);
            cost += i128::from(lots) * i128::from(price);
            if left <= all {
                return match place.action {
                    Action::Bid => cost <= i128::from(place.price),
                    Action::Ask => cost >= i128::from(place.price),
                };
            }
            left -= lots;
        }
        false
    }

    fn reduce(&mut self, uid: UserId, id: OrderId, by: i64, events: &mut Vec<Event>) -> ResultCode {
        if by <= 0 {
            return ResultCode::MatchingReduceFailedWrongSize;
        }
        let Some(&order) = self.own(uid, id) else {
            return ResultCode::MatchingUnknownOrderId;
        };
        let left = order.size - order.filled;
        let size = by.min(left);
        if size == left {
            self.remove(self.key(uid, id));
        } else {
            let takes_hidden = self.fault != Some("displayed lots go first");
            let order = self.order_mut(self.key(uid, id));
            order.size -= size;
            if takes_hidden {
                order.hidden = (order.hidden - size).max(0);
            }
            order.display = order.display.filter(|_| order.hidden > 0);
        }
        events.push(Event::Reduce {
            order: id,
            price: order.price,
            size,
            left: left - size,
            filled: order.filled,
            completed: size == left,
            bidder_hold_price: order.reserve_price,
            action: order.action,
        });
        ResultCode::Success
    }

    fn move_order(
        &mut self,
        uid: UserId,
        id: OrderId,
        price: i64,
        events: &mut Vec<Event>,
    ) -> ResultCode {
        let Some(order) = self.own(uid, id) else {
            return ResultCode::MatchingUnknownOrderId;
        };
        let is_pair = self.spec.symbol_type == SymbolType::CurrencyPair;
        if is_pair && order.action == Action::Bid && price > order.reserve_price {
            return ResultCode::MatchingMoveFailedPriceOverRiskLimit;
        }
        let value = i128::from(price) * i128::from(self.spec.quote_scale);
        let fee_is_covered = value >= i128::from(self.spec.taker_fee);
        let is_refused = self.rules.refuse_moved_ask_under_fee && !fee_is_covered;
        if is_pair && order.action == Action::Ask && is_refused {
            return ResultCode::MatchingMoveFailedPriceLowerThanFee;
        }
        let mut order = self.remove(self.key(uid, id));
        order.price = price;
        let (before, filled) = (displayed(&order), order.filled);
        self.take(&mut order, true, &mut |_, lots| lots, events);
        if order.filled != order.size {
            if self.fault != Some("a move replenishes nothing") {
                replenish(&mut order);
            }
            let more = displayed(&order) - (before - (order.filled - filled));
            if more != 0 {
                events.push(refilled(&order, more));
            }
            self.add(order);
        }
        ResultCode::Success
    }
}

fn unfilled(place: &Place, display: Option<i64>) -> RestingOrder {
    RestingOrder {
        order_id: place.order_id,
        uid: place.uid,
        action: place.action,
        price: place.price,
        reserve_price: place.reserve_price,
        size: place.size,
        filled: 0,
        hidden: 0,
        display,
        good_till: None,
        flags: place.flags,
    }
}

fn displayed(order: &RestingOrder) -> i64 {
    order.size - order.filled - order.hidden
}

/// Hides what is left of an order beyond its display. One without hidden lots is no iceberg.
fn replenish(order: &mut RestingOrder) {
    let left = order.size - order.filled;
    order.display = order.display.filter(|&display| left > display);
    order.hidden = order.display.map_or(0, |display| left - display);
}

fn refilled(order: &RestingOrder, size: i64) -> Event {
    Event::Refilled {
        order: order.order_id,
        uid: order.uid,
        size,
    }
}

/// Lot by lot: what is sold must bring in its share of the budget.
fn sell_for_share(place: &Place, sold: &mut (i128, i128), price: i64, lots: i64) -> i64 {
    let (budget, size) = (i128::from(place.price), i128::from(place.size));
    let mut now = 0;
    while now < lots {
        let (count, brought) = (sold.0 + 1, sold.1 + i128::from(price));
        if brought * size < budget * count {
            break;
        }
        *sold = (count, brought);
        now += 1;
    }
    now
}

fn takes(taker: Action, limit: i64, price: i64) -> bool {
    match taker {
        Action::Bid => price <= limit,
        Action::Ask => price >= limit,
    }
}
