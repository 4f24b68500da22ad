//! A subscriber that has nothing but the messages, and checks them against the engine.

use std::collections::BTreeMap;

use thalweg_exchange::book::{Book, Level};
use thalweg_exchange::market::{
    BestPrices, Body, BookReplica, Builder, Channels, Epoch, GapDetector, KnownDepth, Message,
    Quote, Snapshot, SymbolSequence,
};
use thalweg_exchange::{Action, Command, Events, Rules, State, SymbolId, apply};

const SIDES: [Action; 2] = [Action::Ask, Action::Bid];

/// The knowledge of one subscriber about a symbol.
#[derive(Debug)]
struct Known {
    replica: BookReplica,
    /// Started from snapshots of several depths, at several times.
    late: Vec<BookReplica>,
    best: BestPrices,
    sequence: SymbolSequence,
}

/// Engine, builder and subscriber together.
pub(crate) struct World {
    pub(crate) state: State,
    pub(crate) builder: Builder,
    events: Events,
    known: BTreeMap<SymbolId, Known>,
    feed: GapDetector,
    commands: u64,
}

impl World {
    pub(crate) fn new(rules: Rules) -> Self {
        Self {
            state: State::new(rules),
            builder: Builder::new(Epoch(1), Channels::default()),
            events: Events::new().with_levels(),
            known: BTreeMap::new(),
            feed: GapDetector::new(),
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
                assert_eq!(book.order_count(), 0, "no message of {symbol}");
            }
        }
        for (&symbol, known) in &self.known {
            if self.state.matching.book(symbol).is_none() {
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
                .push(BookReplica::from_snapshot(&snapshot).expect("it has levels"));
        }
    }

    pub(crate) const fn messages(&self) -> u64 {
        self.feed.sequence().0
    }
}

impl Known {
    fn new(symbol: SymbolId) -> Self {
        Self {
            replica: BookReplica::new(symbol),
            late: Vec::new(),
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
            Body::Best(best) => {
                assert_ne!(best, self.best, "sent only when it changes");
                self.best = best;
            }
            Body::Cleared => {
                self.best = BestPrices::default();
            }
            Body::Trade { .. } | Body::Level(_) => {}
        }
    }

    fn check(&self, book: &Book) {
        for side in SIDES {
            let engine: Vec<Level> = book.levels(side, usize::MAX).collect();
            let replica: Vec<Level> = self.replica.levels(side).collect();
            assert_eq!(replica, engine);
            for late in &self.late {
                let reaches = |level: &Level| match (late.horizon(side), side) {
                    (KnownDepth::All, _) => true,
                    (KnownDepth::Nothing, _) => false,
                    (KnownDepth::DownTo(worst), Action::Ask) => level.price <= worst,
                    (KnownDepth::DownTo(worst), Action::Bid) => level.price >= worst,
                };
                let seen: Vec<Level> = engine.iter().copied().filter(reaches).collect();
                assert_eq!(late.levels(side).collect::<Vec<_>>(), seen);
            }
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
