//! The properties that hold after every command, whatever is asked for.

use std::collections::BTreeMap;

use proptest::prelude::*;
use thalweg_exchange::report::currency_totals;
use thalweg_exchange::{
    Action, Command, ConditionalOrder, Event, OrderFlags, OrderId, OrderType, RemovalReason,
    ResultCode, SelfTrade, State, SymbolId, UserId,
};

use crate::terms::totals::totals_hold;
use crate::terms::world::{SYMBOLS, World, fitted};

/// The taker, as far as the checks must know it.
#[derive(Clone, Copy, Debug)]
struct Taker {
    uid: UserId,
    flags: OrderFlags,
}

/// A world that is looked at after every command.
pub(crate) struct Watched {
    pub(crate) world: World,
    /// How often something of interest happened, by name.
    pub(crate) seen: BTreeMap<&'static str, usize>,
    /// The stop orders that must be waiting.
    waiting: BTreeMap<(SymbolId, OrderId), ConditionalOrder>,
}

impl Watched {
    pub(crate) fn new(world: World) -> Self {
        Self {
            world,
            seen: BTreeMap::new(),
            waiting: BTreeMap::new(),
        }
    }

    fn saw(&mut self, what: &'static str) {
        *self.seen.entry(what).or_default() += 1;
    }

    /// The order that takes first when this command is executed.
    fn taker(&self, command: &Command) -> Option<Taker> {
        let (uid, flags) = match command {
            Command::Move {
                uid,
                symbol,
                order_id,
                ..
            } => (*uid, self.world.order(*symbol, order_id.0)?.flags),
            Command::Amend(amend) => {
                let order = self.world.order(amend.symbol, amend.order_id.0)?;
                (amend.uid, order.flags)
            }
            _ => command.place().map(|place| (place.uid, place.flags))?,
        };
        Some(Taker { uid, flags })
    }

    pub(crate) fn execute(&mut self, command: &Command) -> Result<ResultCode, TestCaseError> {
        let command = &fitted(&self.world.state, command);
        if matches!(command, Command::Amend(_)) {
            self.saw("amend");
        }
        let taker = self.taker(command);
        let lots = command.symbol().map(|symbol| self.lots(symbol));
        let result = self.world.apply(command);
        let own = |event: &Event| match event {
            Event::Reject { .. } => true,
            Event::Removed { why, .. } => {
                matches!(why, RemovalReason::SelfTrade | RemovalReason::Decremented)
            }
            _ => false,
        };
        prop_assert!(!result.is_refusal() || self.world.events.iter().all(own));
        let events = self.world.events.to_vec();
        if let (Command::Amend(_), ResultCode::Success) = (command, result) {
            self.saw("amended");
        }
        if result == ResultCode::Success || !events.is_empty() {
            self.note_stop(command);
            self.look_at_events(taker, command, &events)?;
            if let (Some(symbol), Some(lots)) = (command.symbol(), lots) {
                let expected = lots + change(command, &events);
                prop_assert_eq!(self.lots(symbol), expected, "lots after {:?}", command);
            }
            if let Command::Clock { time } = *command {
                self.nothing_outlived(time)?;
            }
        }
        money_is_conserved(&self.world.state)?;
        totals_hold(&self.world.state)?;
        for symbol in SYMBOLS {
            self.book_is_sound(symbol)?;
        }
        Ok(result)
    }

    /// Remembers a stop order that waits, or waited until it was triggered at once.
    fn note_stop(&mut self, command: &Command) {
        if let Command::PlaceConditional(order) = command
            && order.trigger.is_some()
            && !matches!(self.world.events.first(), Some(Event::Reject { .. }))
        {
            let place = &order.place;
            let key = (place.symbol, place.order_id);
            self.waiting.insert(key, **order);
        }
    }

    fn look_at_events(
        &mut self,
        mut taker: Option<Taker>,
        command: &Command,
        events: &[Event],
    ) -> Result<(), TestCaseError> {
        let mut chains = 0;
        let mut refilled = Vec::new();
        for event in events {
            match *event {
                Event::Trade {
                    maker_uid,
                    maker_order,
                    ..
                } => {
                    let Taker { uid, flags } = taker.expect("somebody takes");
                    prop_assert!(!flags.is_post_only(), "post-only took: {command:?}");
                    let may_meet = flags.self_trade() == SelfTrade::Allow;
                    prop_assert!(may_meet || uid != maker_uid, "self-trade: {command:?}");
                    let is_own = uid == maker_uid;
                    self.saw(if is_own { "self-trade" } else { "trade" });
                    if refilled.contains(&maker_order) {
                        self.saw("met again");
                    }
                }
                Event::Reject { .. } => {
                    let flags = taker.expect("somebody was rejected").flags;
                    if flags.is_post_only() {
                        self.saw("post-only reject");
                    }
                }
                Event::Removed {
                    symbol,
                    order,
                    size,
                    why,
                    ..
                } => self.look_at_removed((symbol, order), size, why, command)?,
                Event::Triggered { order, uid, .. } => {
                    let symbol = match command {
                        Command::Uncross { symbol, .. } => Some(*symbol),
                        _ => command.symbol(),
                    };
                    let symbol = symbol.expect("what trades has a symbol");
                    let stop = self.waiting.remove(&(symbol, order)).expect("it waited");
                    let flags = stop.place.flags;
                    taker = Some(Taker { uid, flags });
                    chains += 1;
                    self.saw("triggered");
                }
                Event::Uncrossed { uid, .. } => {
                    let flags = OrderFlags::NONE;
                    taker = Some(Taker { uid, flags });
                    self.saw("uncrossed");
                }
                Event::Refilled { order, size, .. } => {
                    prop_assert!(size > 0);
                    refilled.push(order);
                    self.saw("refilled");
                }
                Event::Reduce { .. } => {}
            }
        }
        if chains > 1 {
            self.saw("triggered by a triggered one");
        }
        is_whole_or_nothing(command, events)?;
        self.nothing_was_passed_over(command, events)
    }

    fn look_at_removed(
        &mut self,
        key: (SymbolId, OrderId),
        size: i64,
        why: RemovalReason,
        command: &Command,
    ) -> Result<(), TestCaseError> {
        self.saw(match why {
            RemovalReason::SelfTrade => "SelfTrade",
            RemovalReason::Expired => "Expired",
            RemovalReason::Cancelled => "Cancelled",
            RemovalReason::Reduced => "Reduced",
            RemovalReason::Decremented => "Decremented",
            _ => "other",
        });
        if why == RemovalReason::Reduced {
            let stop = self.waiting.get_mut(&key).expect("it waits");
            stop.place.size -= size;
            return Ok(());
        }
        if why == RemovalReason::Decremented {
            prop_assert!(size > 0);
            return Ok(());
        }
        if let Some(stop) = self.waiting.remove(&key) {
            prop_assert_eq!(stop.place.size, size);
        }
        // An order may take over the id of one that it, or one before it, removed.
        let rests = self.world.order(key.0, key.1.0);
        let is_gone = rests.is_none() || why == RemovalReason::SelfTrade;
        prop_assert!(is_gone, "{:?} rests after {command:?}", key);
        Ok(())
    }

    /// No order waits that a trade of this command reached, nor is one gone that none reached.
    fn nothing_was_passed_over(
        &self,
        command: &Command,
        events: &[Event],
    ) -> Result<(), TestCaseError> {
        let Some(symbol) = command.symbol() else {
            return Ok(());
        };
        let prices = events.iter().filter_map(|event| match event {
            Event::Trade { price, .. } => Some(*price),
            _ => None,
        });
        let prices: Vec<i64> = prices.collect();
        for ((_, order), stop) in self.waiting.iter().filter(|(key, _)| key.0 == symbol) {
            let trigger = stop.trigger.expect("a stop order has one");
            let is_reached = prices.iter().any(|&price| match stop.place.action {
                Action::Ask => price <= trigger,
                Action::Bid => price >= trigger,
            });
            prop_assert!(!is_reached, "{order} still waits after {command:?}");
        }
        Ok(())
    }

    fn nothing_outlived(&self, time: i64) -> Result<(), TestCaseError> {
        for symbol in SYMBOLS {
            let book = self.world.state.matching.book(symbol).expect("added");
            for side in [Action::Ask, Action::Bid] {
                let times = book.orders(side).filter_map(|order| order.good_till);
                prop_assert!(times.into_iter().all(|till| till > time));
            }
            let times = book.waiting().filter_map(|order| order.good_till);
            prop_assert!(times.into_iter().all(|till| till > time));
        }
        Ok(())
    }

    /// All lots that rest or wait in a symbol.
    fn lots(&self, symbol: SymbolId) -> i64 {
        let book = self.world.state.matching.book(symbol).expect("added");
        let sides = [Action::Ask, Action::Bid].into_iter();
        let resting = sides.flat_map(|side| book.orders(side));
        let resting: i64 = resting.map(|order| order.size - order.filled).sum();
        let waiting: i64 = book.waiting().map(|stop| stop.place.size).sum();
        resting + waiting
    }

    fn book_is_sound(&self, symbol: SymbolId) -> Result<(), TestCaseError> {
        let book = self.world.state.matching.book(symbol).expect("added");
        if let (Some(ask), Some(bid)) = (book.best(Action::Ask), book.best(Action::Bid)) {
            let is_apart = bid.price < ask.price || book.is_auction();
            prop_assert!(is_apart, "crossed: {bid:?} {ask:?}");
        }
        for side in [Action::Ask, Action::Bid] {
            let mut levels: BTreeMap<i64, i64> = BTreeMap::new();
            for order in book.orders(side) {
                let displayed = order.size - order.filled - order.hidden;
                prop_assert!(displayed > 0 && order.hidden >= 0, "{order:?}");
                prop_assert_eq!(order.display.is_some(), order.hidden > 0);
                let display = order.display.unwrap_or(i64::MAX);
                prop_assert!(displayed <= display, "{order:?}");
                let lots = order.size - order.filled;
                prop_assert!(lots <= display.saturating_mul(1_000), "{order:?}");
                prop_assert!(!self.waiting.contains_key(&(symbol, order.order_id)));
                *levels.entry(order.price).or_default() += displayed;
            }
            for level in book.levels(side, usize::MAX) {
                prop_assert_eq!(levels.remove(&level.price), Some(level.volume));
            }
            prop_assert!(levels.is_empty());
        }
        let waiting: BTreeMap<OrderId, ConditionalOrder> = book
            .waiting()
            .map(|stop| (stop.place.order_id, stop))
            .collect();
        let sides = [Action::Ask, Action::Bid].into_iter();
        let resting = sides.flat_map(|side| book.orders(side));
        let is_own = self.world.state.risk.rules().ids_per_user;
        let whose = |uid| if is_own { uid } else { UserId(0) };
        let resting =
            resting.filter_map(|order| Some((order.good_till?, whose(order.uid), order.order_id)));
        let stops = waiting.values().map(|stop| (stop.good_till, stop.place));
        let stops =
            stops.filter_map(|(time, place)| Some((time?, whose(place.uid), place.order_id)));
        let mut times: Vec<_> = resting.chain(stops).collect();
        let mut expiries: Vec<_> = book.expiries().collect();
        prop_assert!(expiries.is_sorted_by_key(|&(time, ..)| time));
        times.sort_unstable();
        expiries.sort_unstable();
        prop_assert_eq!(expiries, times);
        let own = self.waiting.iter().filter(|(key, _)| key.0 == symbol);
        let expected: BTreeMap<_, _> = own.map(|(key, stop)| (key.1, *stop)).collect();
        prop_assert_eq!(waiting, expected);
        Ok(())
    }
}

/// An order that must be filled whole is, or nothing happens.
fn is_whole_or_nothing(command: &Command, events: &[Event]) -> Result<(), TestCaseError> {
    if let Some(place) = command.place()
        && matches!(place.order_type, OrderType::Fok | OrderType::FokBudget)
    {
        let own = events
            .iter()
            .take_while(|event| !matches!(event, Event::Triggered { .. }));
        let (rejects, others): (Vec<&Event>, Vec<&Event>) =
            own.partition(|event| matches!(event, Event::Reject { .. }));
        prop_assert!(
            rejects.is_empty() || others.is_empty(),
            "in part: {events:?}"
        );
    }
    Ok(())
}

/// By how many lots what rests and waits in the command's symbol must have grown.
fn change(command: &Command, events: &[Event]) -> i64 {
    let placed = match command {
        Command::Amend(amend) => (amend.size - amend.size_before).max(0),
        _ => command.place().map_or(0, |place| place.size),
    };
    let gone = events.iter().map(|event| match *event {
        // The maker's and the taker's.
        Event::Trade { size, .. } => 2 * size,
        Event::Reject { size, .. } | Event::Reduce { size, .. } | Event::Removed { size, .. } => {
            size
        }
        Event::Triggered { .. } | Event::Uncrossed { .. } | Event::Refilled { .. } => 0,
    });
    placed - gone.sum::<i64>()
}

pub(crate) fn money_is_conserved(state: &State) -> Result<(), TestCaseError> {
    for total in currency_totals(state) {
        prop_assert_eq!(total.sum(), 0, "{:?}", total);
    }
    Ok(())
}
