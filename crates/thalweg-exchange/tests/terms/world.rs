//! A small exchange: two pairs and a futures symbol, five users with money; and short names.

use thalweg_exchange::book::RestingOrder;
use thalweg_exchange::report::currency_totals;
use thalweg_exchange::{
    AccountSpec, Action, Amend, Command, ConditionalOrder, CurrencyId, Event, Events, OrderFlags,
    OrderId, OrderType, Place, RejectReason, RemovalReason, ResultCode, Rules, State, SymbolId,
    SymbolSpec, SymbolType, UserId, apply,
};

pub(crate) use crate::one_state::text;

pub(crate) const PAIR: SymbolId = SymbolId(1);
pub(crate) const OTHER_PAIR: SymbolId = SymbolId(2);
pub(crate) const FUTURES: SymbolId = SymbolId(3);
pub(crate) const SYMBOLS: [SymbolId; 3] = [PAIR, OTHER_PAIR, FUTURES];

fn spec(id: SymbolId, currencies: (i32, i32), scales: (i64, i64), fees: (i64, i64)) -> SymbolSpec {
    SymbolSpec::pair(id, CurrencyId(currencies.0), CurrencyId(currencies.1))
        .with_scales(scales.0, scales.1)
        .with_fees(fees.0, fees.1)
}

pub(crate) fn opening(money: i64) -> Vec<Command> {
    let futures = spec(FUTURES, (1, 2), (1, 1), (2, 1))
        .with_type(SymbolType::Futures)
        .with_margins(5, 4);
    let specs = [
        spec(PAIR, (1, 2), (3, 2), (3, 1)),
        spec(OTHER_PAIR, (2, 3), (1, 1), (0, 0)),
        futures,
    ];
    let accounts = (1..=5).map(|uid| AccountSpec {
        uid: UserId(uid),
        balances: (1..=3).map(|id| (CurrencyId(id), money)).collect(),
    });
    vec![
        Command::AddSymbols(specs.into()),
        Command::AddAccounts(accounts.collect()),
        Command::set_price_band(FUTURES, 1, 300),
    ]
}

pub(crate) struct World {
    pub(crate) state: State,
    pub(crate) events: Events,
}

impl World {
    pub(crate) fn new(rules: Rules) -> Self {
        Self::with_money(rules, 1_000_000)
    }

    pub(crate) fn with_money(rules: Rules, money: i64) -> Self {
        let mut world = Self {
            state: State::new(rules),
            events: Events::new(),
        };
        for command in opening(money) {
            assert_eq!(world.apply(&command), ResultCode::Success);
        }
        world
    }

    pub(crate) fn apply(&mut self, command: &Command) -> ResultCode {
        apply(&mut self.state, command, &mut self.events)
    }

    /// Executes a command that must succeed, or be rejected for the reason that its events give,
    /// and gives its events, [plain](Self::plain). The money must be all there.
    #[track_caller]
    pub(crate) fn done(&mut self, command: impl Into<Command>) -> Vec<Event> {
        let command = command.into();
        let result = self.apply(&command);
        let mut expected = ResultCode::Success;
        if let (Some(Event::Reject { size, why, .. }), Some(place)) =
            (self.events.first(), command.place())
            && *size == place.size
            && self.state.risk.rules().refuse_rejected
        {
            expected = why.result();
        }
        assert_eq!(result, expected, "{command:?}");
        for total in currency_totals(&self.state) {
            assert_eq!(total.sum(), 0, "{total:?} after {command:?}");
        }
        self.plain()
    }

    /// The events without why something was rejected and how much of orders is filled and left: the
    /// tests of execution reports look at that.
    pub(crate) fn plain(&self) -> Vec<Event> {
        let mut events = self.events.to_vec();
        for event in &mut events {
            match event {
                Event::Trade {
                    maker_filled: filled,
                    maker_left: left,
                    ..
                }
                | Event::Reduce { filled, left, .. }
                | Event::Removed { filled, left, .. } => (*filled, *left) = (0, 0),
                Event::Reject { why, .. } => *why = RejectReason::ImmediateOrCancel,
                Event::Uncrossed { filled, .. } => *filled = 0,
                Event::Triggered { .. } | Event::Refilled { .. } => {}
            }
        }
        events
    }

    /// Executes a command that must be refused with this code and change nothing.
    #[track_caller]
    pub(crate) fn refused(&mut self, command: impl Into<Command>, code: ResultCode) {
        let before = text(&self.state);
        let command = command.into();
        assert_eq!(self.apply(&command), code, "{command:?}");
        assert!(self.events.is_empty(), "{command:?}");
        assert_eq!(text(&self.state), before, "{command:?}");
    }

    pub(crate) fn order(&self, symbol: SymbolId, id: i64) -> Option<RestingOrder> {
        let book = self.state.matching.book(symbol).expect("it was added");
        let mut orders = book.orders(Action::Ask).chain(book.orders(Action::Bid));
        orders.find(|order| order.order_id == OrderId(id))
    }

    /// Prices, ids and displayed lots of one side, best first.
    pub(crate) fn side(&self, symbol: SymbolId, side: Action) -> Vec<(i64, i64, i64)> {
        let book = self.state.matching.book(symbol).expect("it was added");
        let orders = book.orders(side);
        orders
            .map(|order| {
                let displayed = order.size - order.filled - order.hidden;
                (order.price, order.order_id.0, displayed)
            })
            .collect()
    }

    /// Ids of the stop orders that wait, as they would be triggered.
    pub(crate) fn waiting(&self, symbol: SymbolId) -> Vec<i64> {
        let book = self.state.matching.book(symbol).expect("it was added");
        book.waiting().map(|stop| stop.place.order_id.0).collect()
    }

    pub(crate) fn balance(&self, uid: i64, currency: i32) -> i64 {
        let balance = self.state.risk.balance(UserId(uid), CurrencyId(currency));
        balance.expect("everybody has an account")
    }
}

/// An amendment as its owner would send it, who knows the order: the side, the size (and what is
/// meant to be wrong with it), the reserve price, and where it is 4 the price are those of the
/// order.
pub(crate) fn fitted(state: &State, command: &Command) -> Command {
    let Command::Amend(amend) = command else {
        return command.clone();
    };
    let book = state.matching.book(amend.symbol);
    let Some(order) = book.and_then(|book| book.order(amend.uid, amend.order_id)) else {
        return command.clone();
    };
    let price = if amend.price == 4 {
        order.price
    } else {
        amend.price
    };
    let amend = Amend {
        action: order.action,
        reserve_price: order.reserve_price,
        size_before: order.size + amend.size_before,
        price,
        ..**amend
    };
    Command::Amend(amend.into())
}

pub(crate) fn gtc(uid: i64, id: i64, action: Action, price: i64, size: i64) -> Place {
    Place::limit((UserId(uid), OrderId(id)), PAIR, action, (price, size))
}

pub(crate) fn ask(uid: i64, id: i64, price: i64, size: i64) -> Place {
    gtc(uid, id, Action::Ask, price, size)
}

pub(crate) fn bid(uid: i64, id: i64, price: i64, size: i64) -> Place {
    gtc(uid, id, Action::Bid, price, size)
}

pub(crate) fn of_type(place: Place, order_type: OrderType) -> Command {
    let place = place.with_type(order_type);
    Command::Place(place)
}

pub(crate) fn flagged(place: Place, flags: OrderFlags) -> Place {
    Place { flags, ..place }
}

pub(crate) fn in_symbol(place: Place, symbol: SymbolId) -> Place {
    Place { symbol, ..place }
}

pub(crate) fn moved(uid: i64, symbol: SymbolId, id: i64, price: i64) -> Command {
    Command::move_to(UserId(uid), symbol, OrderId(id), price)
}

/// A trade of a taker that sells, or buys with this reserve price, with an order of user `maker.0`.
pub(crate) fn trade(
    taker: Action,
    (price, size): (i64, i64),
    maker: (i64, i64),
    (maker_completed, taker_completed): (bool, bool),
    hold: i64,
) -> Event {
    Event::Trade {
        price,
        size,
        maker_order: OrderId(maker.1),
        maker_uid: UserId(maker.0),
        maker_filled: 0,
        maker_left: 0,
        maker_completed,
        taker_completed,
        bidder_hold_price: hold,
        taker_action: taker,
    }
}

/// The rejection of lots of an order.
pub(crate) fn reject(place: &Place, size: i64) -> Event {
    Event::Reject {
        order: place.order_id,
        price: place.price,
        size,
        bidder_hold_price: place.reserve_price,
        why: RejectReason::ImmediateOrCancel,
    }
}

/// The removal of lots of an order.
pub(crate) fn removed(place: &Place, size: i64, why: RemovalReason) -> Event {
    Event::Removed {
        symbol: place.symbol,
        order: place.order_id,
        uid: place.uid,
        action: place.action,
        price: place.price,
        size,
        left: 0,
        filled: 0,
        bidder_hold_price: place.reserve_price,
        why,
    }
}

/// An order with conditions.
pub(crate) fn with(order: ConditionalOrder) -> Command {
    Command::PlaceConditional(order.into())
}

pub(crate) fn good_till(place: Place, time: i64) -> ConditionalOrder {
    ConditionalOrder::from(place).with_good_till(time)
}

pub(crate) fn iceberg(place: Place, display: i64) -> ConditionalOrder {
    ConditionalOrder::from(place).with_display(display)
}

pub(crate) fn stop(place: Place, trigger: i64) -> ConditionalOrder {
    ConditionalOrder::from(place).with_trigger(trigger)
}

pub(crate) fn cancelled(uid: i64, symbol: SymbolId, id: i64) -> Command {
    Command::cancel(UserId(uid), symbol, OrderId(id))
}

pub(crate) fn reduced(uid: i64, symbol: SymbolId, id: i64, by: i64) -> Command {
    Command::reduce(UserId(uid), symbol, OrderId(id), by)
}

pub(crate) fn refilled(uid: i64, id: i64, size: i64) -> Event {
    Event::Refilled {
        order: OrderId(id),
        uid: UserId(uid),
        size,
    }
}

/// Returns the event of a cancel or a reduction of a resting order.
pub(crate) fn reduce(place: &Place, size: i64, completed: bool) -> Event {
    Event::Reduce {
        order: place.order_id,
        price: place.price,
        size,
        left: 0,
        filled: 0,
        completed,
        bidder_hold_price: place.reserve_price,
        action: place.action,
    }
}

pub(crate) fn triggered(place: &Place) -> Event {
    Event::Triggered {
        order: place.order_id,
        uid: place.uid,
        action: place.action,
        price: place.price,
        size: place.size,
        bidder_hold_price: place.reserve_price,
    }
}
