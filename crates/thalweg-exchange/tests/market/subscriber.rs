//! Somebody who has nothing but the messages, and checks them against the engine.

use std::collections::BTreeMap;

use thalweg_exchange::book::{Book, Level};
use thalweg_exchange::market::{
    BestPrices, Body, Builder, Channels, Epoch, FeedCheck, Horizon, Message, Options, OrderChange,
    OrderReference, Quote, Replica, Snapshot, SymbolSequence,
};
use thalweg_exchange::{Action, Command, Events, Rules, State, SymbolId, apply};

use crate::market::numbers::parted;

const THIN: Options = Options {
    channels: Channels {
        trades: true,
        orders: false,
        levels: true,
        best: true,
    },
    messages: 0,
    levels: 0,
};

const SIDES: [Action; 2] = [Action::Ask, Action::Bid];

/// What one subscriber knows of a symbol.
#[derive(Debug)]
struct Known {
    replica: Replica,
    /// Started from snapshots of several depths, at several times.
    late: Vec<Replica>,
    /// Reference, price, left; in the order of their place in the queue.
    orders: [Vec<(OrderReference, i64, i64)>; 2],
    /// The last reference that an order had.
    reference: OrderReference,
    best: BestPrices,
    sequence: SymbolSequence,
}

/// Engine, builder and subscriber together.
pub(crate) struct World {
    pub(crate) state: State,
    pub(crate) builder: Builder,
    /// One without the channel of orders.
    thin: Builder,
    events: Events,
    known: BTreeMap<SymbolId, Known>,
    feed: FeedCheck,
    commands: u64,
}

impl World {
    pub(crate) fn new(rules: Rules) -> Self {
        Self {
            state: State::new(rules),
            builder: Builder::new(Epoch(1), Options::default()),
            thin: Builder::new(Epoch(1), THIN),
            events: Events::new().with_levels(),
            known: BTreeMap::new(),
            feed: FeedCheck::new(),
            commands: 0,
        }
    }

    /// Executes a command and takes its messages in; `check` compares all with the engine.
    pub(crate) fn execute(&mut self, command: &Command, check: bool) {
        let result = apply(&mut self.state, command, &mut self.events);
        let number = self.commands;
        self.commands += 1;
        let messages = self
            .builder
            .apply(number, command, result, &self.events)
            .expect("in step");
        let thin = self.thin.apply(number, command, result, &self.events);
        same_but_orders(messages, thin.expect("in step"));
        let mut closed = true;
        for message in messages {
            assert_eq!(self.feed.check(message), Ok(true), "no gap");
            closed = message.is_last;
            let known = self
                .known
                .entry(message.symbol)
                .or_insert_with(|| Known::new(message.symbol));
            known.take_in(message);
        }
        assert!(closed, "the last message says so");
        assert_eq!(self.builder.sequence(), self.feed.sequence());
        if check {
            self.check(command);
        }
    }

    fn check(&self, command: &Command) {
        for book in self.state.matching.books() {
            let symbol = book.spec().id;
            assert_eq!(self.builder.order_count(symbol), book.order_count());
            for side in SIDES {
                let engine: Vec<Level> = book.levels(side, usize::MAX).collect();
                let built: Vec<Level> = self.builder.levels(symbol, side).collect();
                assert_eq!(built, engine, "{command:?}");
            }
            if let Some(known) = self.known.get(&symbol) {
                known.check(book);
                let sequence = self.builder.symbol_sequence(symbol);
                assert_eq!(known.sequence, sequence);
                assert_eq!(self.builder.best(symbol), Some(known.best));
            } else {
                assert_eq!(book.order_count(), 0, "never told of {symbol}");
            }
        }
        for (&symbol, known) in &self.known {
            if self.state.matching.book(symbol).is_none() {
                assert_eq!(known.orders, [vec![], vec![]]);
                assert_eq!(known.replica.levels(Action::Ask).len(), 0);
                assert_eq!(known.replica.levels(Action::Bid).len(), 0);
                assert_eq!(self.builder.best(symbol), None);
            }
        }
    }

    /// From now on, one more replica of each symbol follows, from a snapshot of this depth.
    pub(crate) fn join(&mut self, depth: usize) {
        for (&symbol, known) in &mut self.known {
            let mut snapshot = Snapshot::default();
            if !self.builder.snapshot(symbol, depth, &mut snapshot) {
                continue;
            }
            assert_eq!(snapshot.as_of, known.sequence);
            assert_eq!(snapshot.sequence, self.feed.sequence());
            assert!(snapshot.asks.len() <= depth && snapshot.bids.len() <= depth);
            known
                .late
                .push(Replica::from_snapshot(&snapshot).expect("it has levels"));
            assert!(self.builder.order_snapshot(symbol, &mut snapshot));
            for side in SIDES {
                // As they were told one by one, and as they would be filled.
                let orders = snapshot.orders(side).iter();
                let orders: Vec<_> = orders.map(|o| (o.order, o.price, o.left)).collect();
                assert_eq!(orders, known.in_order(side));
            }
        }
    }

    pub(crate) const fn messages(&self) -> u64 {
        self.feed.sequence().0
    }
}

/// Asserts that a feed without orders says the same, but for them and the makers' references.
fn same_but_orders(whole: &[Message], thin: &[Message]) {
    let is_order = |body: &Body| matches!(body, Body::Order(_));
    let expected = whole.iter().map(|message| parted(message).0);
    let expected = expected.filter(|body| !is_order(body));
    assert!(expected.eq(thin.iter().map(|message| message.body)));
}

impl Known {
    fn new(symbol: SymbolId) -> Self {
        Self {
            replica: Replica::new(symbol),
            late: Vec::new(),
            orders: [vec![], vec![]],
            reference: OrderReference::default(),
            best: BestPrices::default(),
            sequence: SymbolSequence(0),
        }
    }

    fn take_in(&mut self, message: &Message) {
        assert_eq!(message.symbol_sequence.0, self.sequence.0 + 1, "no gap");
        self.sequence = message.symbol_sequence;
        self.replica.apply(message).expect("no gap");
        for replica in &mut self.late {
            replica.apply(message).expect("no gap");
        }
        match message.body {
            Body::Order(change) => self.change(change),
            Body::Best(best) => {
                assert_ne!(best, self.best, "told only when it changes");
                self.best = best;
            }
            Body::Cleared => {
                self.orders = [vec![], vec![]];
                self.best = BestPrices::default();
            }
            // Its maker rests; in what comes next it is filled.
            Body::Trade { maker, .. } => {
                assert!(
                    self.orders
                        .iter()
                        .flatten()
                        .any(|&(order, ..)| order == maker)
                );
            }
            Body::Level(_) => {}
        }
    }

    fn change(&mut self, change: OrderChange) {
        let find = |orders: &[Vec<(OrderReference, i64, i64)>; 2], order: OrderReference| {
            let place = |side: usize| orders[side].iter().position(|&(id, ..)| id == order);
            (0..2)
                .find_map(|side| place(side).map(|at| (side, at)))
                .expect("a resting order")
        };
        match change {
            OrderChange::Added {
                order,
                side,
                price,
                size,
            } => {
                self.reference.0 += 1;
                assert_eq!(order, self.reference, "each order has its own");
                self.orders[side as usize].push((order, price, size));
            }
            OrderChange::Reduced {
                order,
                by: size,
                left,
            } => {
                let (side, at) = find(&self.orders, order);
                self.orders[side][at].2 -= size;
                assert_eq!(self.orders[side][at].2, left);
                assert_ne!(left, 0);
            }
            OrderChange::Filled { order, size, left } => {
                let (side, at) = find(&self.orders, order);
                self.orders[side][at].2 -= size;
                assert_eq!(self.orders[side][at].2, left);
                if left == 0 {
                    self.orders[side].remove(at);
                }
            }
            OrderChange::Removed { order, left } => {
                let (side, at) = find(&self.orders, order);
                assert_eq!(self.orders[side].remove(at).2, left);
            }
        }
    }

    /// What would be filled first comes first.
    fn in_order(&self, side: Action) -> Vec<(OrderReference, i64, i64)> {
        // A stable sort by price keeps the order of time.
        let mut orders = self.orders[side as usize].clone();
        orders.sort_by_key(|&(_, price, _)| match side {
            Action::Ask => price,
            Action::Bid => !price,
        });
        orders
    }

    fn check(&self, book: &Book) {
        for side in SIDES {
            let engine: Vec<Level> = book.levels(side, usize::MAX).collect();
            let replica: Vec<Level> = self.replica.levels(side).collect();
            assert_eq!(replica, engine);
            for late in &self.late {
                let reaches = |level: &Level| match (late.horizon(side), side) {
                    (Horizon::All, _) => true,
                    (Horizon::Nothing, _) => false,
                    (Horizon::DownTo(worst), Action::Ask) => level.price <= worst,
                    (Horizon::DownTo(worst), Action::Bid) => level.price >= worst,
                };
                let seen: Vec<Level> = engine.iter().copied().filter(reaches).collect();
                assert_eq!(late.levels(side).collect::<Vec<_>>(), seen);
            }
            let orders = self.in_order(side);
            let resting = book.orders(side).map(|order| {
                let shown = order.size - order.filled - order.hidden;
                (order.price, shown)
            });
            let told = orders.iter().map(|&(_, price, left)| (price, left));
            assert!(told.eq(resting));
        }
        let quote = |side| {
            book.best(side).map(|level| Quote {
                price: level.price,
                volume: level.volume,
            })
        };
        let best = BestPrices {
            ask: quote(Action::Ask),
            bid: quote(Action::Bid),
        };
        assert_eq!(self.best, best);
    }
}
