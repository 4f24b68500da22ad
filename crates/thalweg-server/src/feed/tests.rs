use std::sync::Arc;

use thalweg_exchange::codec::{decode_message, decode_snapshot, session::decode_server_frame};
use thalweg_exchange::codec::{encode_snapshot, snapshot_bytes};
use thalweg_exchange::market::Snapshot;
use thalweg_exchange::service::Outcome;
use thalweg_exchange::{
    AccountSpec, Command, CurrencyId, Events, OrderId, Place, ResultCode, State, SymbolId,
    SymbolSpec, UserId, apply,
};

use super::subscription::TAKE_BYTES;
use super::*;
use thalweg_exchange::Action;
use thalweg_exchange::codec::session::ServerFrame;
use thalweg_exchange::market::BookReplica;

/// An exchange whose outcomes go to a writer.
struct Market {
    state: State,
    events: Events,
    number: u64,
    feed_writer: FeedWriter,
    feed: Arc<Feed>,
    bytes: Vec<u8>,
}

impl Market {
    fn new(ring_chunks: usize) -> Self {
        let market = Self::unread(ring_chunks);
        market.feed.want();
        market
    }

    fn unread(ring_chunks: usize) -> Self {
        let feed = Arc::new(Feed::new(Epoch(9), Channels::default(), 0, ring_chunks));
        let state = State::default();
        let mut market = Self {
            feed_writer: FeedWriter::new(&state, &feed),
            state,
            events: Events::new().with_levels(),
            number: 0,
            feed,
            bytes: Vec::new(),
        };
        let pair = |id| SymbolSpec::pair(SymbolId(id), CurrencyId(10 + id), CurrencyId(20));
        market.run(Command::AddSymbols(Arc::new([pair(1), pair(2)])));
        let account = AccountSpec::new(UserId(7), vec![(CurrencyId(20), 1 << 50)]);
        market.run(Command::AddAccounts(Arc::new([account])));
        market
    }

    fn run(&mut self, command: Command) {
        let result = apply(&mut self.state, &command, &mut self.events);
        assert_eq!(result, ResultCode::Success, "{command:?}");
        let outcome = Outcome {
            sequence: self.number,
            tag: 0,
            due: 0,
            command: &command,
            stamps: None,
            result,
            events: &self.events,
        };
        self.feed_writer
            .take(&outcome)
            .expect("outcomes come in order");
        self.number += 1;
    }

    /// Bids of one lot each, at prices that differ.
    fn bids(&mut self, symbol: i32, count: i64) {
        for _ in 0..count {
            let price = 1 + self.number as i64;
            self.run(Command::Place(Place::limit(
                (UserId(7), OrderId(price)),
                SymbolId(symbol),
                Action::Bid,
                (price, 1),
            )));
        }
    }

    /// Hands over and lets the task have its turn.
    fn turn(&mut self) {
        self.feed_writer.hand_over(&self.feed);
        self.feed.turn(&mut self.bytes);
    }

    /// The best bid is that of the engine, and there are as many levels.
    fn same(&self, replica: &BookReplica) {
        let book = self
            .state
            .matching
            .book(replica.symbol())
            .expect("it is there");
        let of_engine: Vec<_> = book.levels(Action::Bid, usize::MAX).collect();
        let of_reader: Vec<_> = replica.levels(Action::Bid).collect();
        assert_eq!(of_reader, of_engine);
    }
}

/// The knowledge of a subscriber.
struct Reader {
    subscription: Subscription,
    replicas: Vec<BookReplica>,
    conflated: Vec<(Option<SymbolId>, u64)>,
    messages: u64,
}

impl Reader {
    fn new(market: &Market, symbols: &[i32]) -> Self {
        let mut subscription = Subscription::new(Arc::clone(&market.feed));
        subscription.serve(Requested {
            all: symbols.is_empty(),
            symbols: Arc::new(symbols.iter().map(|id| SymbolId(*id)).collect()),
        });
        Self {
            subscription,
            replicas: Vec::new(),
            conflated: Vec::new(),
            messages: 0,
        }
    }

    /// Reads all that is there.
    fn read(&mut self) {
        let mut out = Vec::new();
        loop {
            out.clear();
            self.subscription.take(&mut out);
            if out.is_empty() {
                return;
            }
            self.take(&out);
        }
    }

    fn take(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let mut snapshot = Snapshot::default();
            let length = if let Ok((message, length)) = decode_message(bytes) {
                self.messages += 1;
                let replica = self.replica(message.symbol);
                replica.apply(&message).expect("no message is missing");
                length
            } else if let Ok(length) = decode_snapshot(bytes, &mut snapshot) {
                let replica = self.replica(snapshot.symbol);
                replica.restart(&snapshot).expect("it has levels");
                length
            } else {
                let (frame, length) = decode_server_frame(bytes).expect("it is a frame");
                let ServerFrame::Conflated(conflated) = frame else {
                    panic!("{frame:?}");
                };
                self.conflated.push((conflated.symbol, conflated.missed));
                length
            };
            bytes = &bytes[length..];
        }
    }

    fn replica(&mut self, symbol: SymbolId) -> &mut BookReplica {
        let at = self
            .replicas
            .iter()
            .position(|replica| replica.symbol() == symbol);
        let at = at.unwrap_or_else(|| {
            self.replicas.push(BookReplica::new(symbol));
            self.replicas.len() - 1
        });
        &mut self.replicas[at]
    }
}

#[test]
fn a_subscriber_gets_snapshots_and_all_messages_after_them() {
    let mut market = Market::new(16);
    market.bids(1, 5);
    market.turn();
    let mut all = Reader::new(&market, &[]);
    let mut second = Reader::new(&market, &[2]);
    all.read();
    second.read();
    market.bids(1, 3);
    market.bids(2, 2);
    market.turn();
    for reader in [&mut all, &mut second] {
        reader.read();
        assert_eq!(reader.conflated, []);
    }
    assert_eq!(all.replicas.len(), 2);
    all.replicas.iter().for_each(|replica| market.same(replica));
    assert_eq!(second.replicas.len(), 1);
    market.same(&second.replicas[0]);
    // A level and the best price, for each order.
    assert_eq!((all.messages, second.messages), (10, 4));
}

#[test]
fn a_symbol_that_is_added_later_is_in_a_subscription_to_all() {
    let mut market = Market::new(16);
    market.turn();
    let mut reader = Reader::new(&market, &[]);
    let third = SymbolSpec::pair(SymbolId(3), CurrencyId(13), CurrencyId(20));
    market.run(Command::AddSymbols(Arc::new([third])));
    market.bids(3, 2);
    market.turn();
    reader.read();
    market.same(reader.replica(SymbolId(3)));
}

#[test]
fn a_reader_behind_the_ring_gets_an_exact_loss_count_and_goes_on() {
    let mut market = Market::new(2);
    market.turn();
    let mut all = Reader::new(&market, &[]);
    let mut first = Reader::new(&market, &[1]);
    all.read();
    first.read();
    for _ in 0..10 {
        market.bids(1, 1);
        market.bids(2, 1);
        market.turn();
    }
    all.read();
    first.read();
    // The ring has the last two turns, but a reader that starts again does so from the books.
    assert_eq!(all.conflated, [(None, 40)]);
    assert_eq!(first.conflated, [(Some(SymbolId(1)), 20)]);
    assert_eq!((all.messages, first.messages), (0, 0));
    market.bids(1, 1);
    market.turn();
    all.read();
    first.read();
    assert_eq!((all.messages, first.messages), (2, 2));
    all.replicas.iter().for_each(|replica| market.same(replica));
    market.same(&first.replicas[0]);
}

#[tokio::test(start_paused = true)]
async fn many_short_hand_overs_do_not_push_each_other_out_of_the_ring() {
    let mut market = Market::new(256);
    market.turn();
    let mut reader = Reader::new(&market, &[]);
    reader.read();
    let feed = Arc::clone(&market.feed);
    tokio::spawn(async move { feed.run().await });
    for _ in 0..300 {
        market.bids(1, 1);
        market.feed_writer.hand_over(&market.feed);
        // The task has its turn.
        tokio::task::yield_now().await;
    }
    let before = market.feed.chunks();
    tokio::time::sleep(2 * GATHER).await;
    assert_eq!(market.feed.chunks(), before + 1);
    reader.read();
    assert_eq!((reader.conflated.len(), reader.messages), (0, 600));
    market.same(reader.replica(SymbolId(1)));
}

/// Adds symbols, with a book of one level each.
fn add_symbols(market: &mut Market, ids: std::ops::Range<i32>) {
    let pair = |id| SymbolSpec::pair(SymbolId(id), CurrencyId(10 + id), CurrencyId(20));
    let specs: Vec<SymbolSpec> = ids.clone().map(pair).collect();
    market.run(Command::AddSymbols(specs.into()));
    ids.for_each(|id| market.bids(id, 1));
}

#[test]
fn a_subscription_to_thousands_of_books_goes_through_few_together() {
    let visited = [100, 10_000].map(|count| {
        let mut market = Market::new(16);
        add_symbols(&mut market, 100..100 + count);
        market.turn();
        let mut readers = [vec![], (100..100 + count).collect()].map(|symbols: Vec<i32>| {
            let mut reader = Reader::new(&market, &symbols);
            let mut out = Vec::new();
            let (has_more, seen) = reader.subscription.take(&mut out);
            let most = (TAKE_BYTES + (1 << 10), TAKE_BYTES + (1 << 10));
            assert!(seen <= most.0 && out.len() <= most.1 && has_more == (count > 100));
            reader.take(&out);
            reader.replicas.len()
        });
        readers.sort_unstable();
        readers
    });
    assert_eq!(visited[0], [100, 102]);
    assert!(visited[1][1] <= TAKE_BYTES / 256, "{visited:?}");
}

#[test]
fn no_message_is_missing_after_snapshots_that_are_given_one_by_one() {
    let mut market = Market::new(16);
    add_symbols(&mut market, 100..1_100);
    market.turn();
    let mut all = Reader::new(&market, &[]);
    let mut named = Reader::new(&market, &(100..1_100).collect::<Vec<_>>());
    let mut out = Vec::new();
    for round in 0..40 {
        for symbol in (100 + round..1_100).step_by(37) {
            market.bids(symbol, 1);
        }
        market.turn();
        for reader in [&mut all, &mut named] {
            out.clear();
            reader.subscription.take(&mut out);
            // A message that was left out would be noticed.
            reader.take(&out);
        }
        if round == 20 {
            // All begins again, and the other goes on.
            for reader in [&mut all, &mut named] {
                reader.subscription.conflate();
            }
        }
    }
    all.read();
    named.read();
    for reader in [&all, &named] {
        reader
            .replicas
            .iter()
            .for_each(|replica| market.same(replica));
        assert!(reader.replicas.len() >= 1_000);
    }
}

#[test]
fn a_reader_that_begins_again_has_an_exact_count_while_its_snapshots_are_given() {
    let mut market = Market::new(2);
    add_symbols(&mut market, 100..1_100);
    market.turn();
    let mut all = Reader::new(&market, &[]);
    all.read();
    let before = lock(&market.feed.books).sequence;
    (0..10).for_each(|_| {
        market.bids(1_099, 1);
        market.turn();
    });
    let mut out = Vec::new();
    // Behind the ring: the first snapshots, and not that of the symbol that trades.
    all.subscription.take(&mut out);
    market.bids(1_099, 1);
    market.bids(100, 1);
    market.turn();
    all.take(&out);
    all.read();
    let sequence = lock(&market.feed.books).sequence;
    let missed: u64 = all.conflated.iter().map(|(_, missed)| missed).sum();
    assert_eq!(all.conflated, [(None, 20)]);
    assert_eq!(missed + all.messages, sequence - before);
    all.replicas.iter().for_each(|replica| market.same(replica));
}

#[test]
fn a_task_without_a_turn_costs_bounded_memory_and_readers_are_notified() {
    let mut market = Market::new(16);
    market.turn();
    let mut reader = Reader::new(&market, &[]);
    reader.read();
    let fill = vec![0; INLET_BYTES_MAX];
    // The task gets no turn, and the inlet is full.
    assert!(market.feed.leave(&mut fill.clone(), false));
    market.bids(1, 3);
    market.feed_writer.hand_over(&market.feed);
    assert_eq!(lock(&market.feed.inlet).bytes.len(), INLET_BYTES_MAX);
    market.bids(1, 3);
    market.feed_writer.hand_over(&market.feed);
    assert!(
        market.feed_writer.bytes_kept() < 1 << 12,
        "what is dropped takes no memory"
    );
    // There is room again.
    lock(&market.feed.inlet).bytes.clear();
    market.bids(1, 1);
    market.turn();
    reader.read();
    assert_eq!(reader.conflated, [(None, 14)]);
    market.same(reader.replica(SymbolId(1)));
    market.bids(1, 1);
    market.turn();
    reader.read();
    market.same(reader.replica(SymbolId(1)));
}

#[test]
fn a_book_whose_end_was_dropped_is_empty_for_readers_who_are_notified() {
    let symbol = SymbolId(2);
    // The writer is behind before it, or falls behind with it.
    for (command, is_behind, missed) in [
        (Command::RemoveSymbol { symbol }, false, 1),
        (Command::RemoveSymbol { symbol }, true, 1),
        (Command::Reset, false, 2),
        (Command::Reset, true, 2),
    ] {
        let mut market = Market::new(16);
        market.bids(2, 3);
        market.turn();
        let mut readers = [&[][..], &[2]].map(|symbols| Reader::new(&market, symbols));
        readers.iter_mut().for_each(Reader::read);
        // The task gets no turn, and the inlet is full.
        assert!(market.feed.leave(&mut vec![0; INLET_BYTES_MAX], false));
        if is_behind {
            market.feed_writer.fall_behind();
        }
        market.run(command);
        market.feed_writer.hand_over(&market.feed);
        lock(&market.feed.inlet).bytes.clear();
        market.turn();
        readers.iter_mut().for_each(Reader::read);
        assert_eq!(readers[0].conflated, [(None, missed)]);
        assert_eq!(readers[1].conflated, [(Some(symbol), 1)]);
        let late = [&[][..], &[2]].map(|symbols| Reader::new(&market, symbols));
        for mut reader in readers.into_iter().chain(late) {
            reader.read();
            assert_eq!(reader.replica(symbol).levels(Action::Bid).len(), 0);
        }
    }
}

#[test]
fn nothing_is_handed_over_before_a_subscription_and_the_first_sees_all_that_was_followed() {
    let mut market = Market::unread(4);
    market.bids(1, 5);
    market.turn();
    market.feed.begin_epoch(Epoch(12));
    market.feed_writer.begin_epoch(&market.feed, Epoch(12));
    market.bids(1, 5);
    market.turn();
    assert_eq!((market.feed.chunks(), market.feed.load()), (0, (0, 0)));
    assert_eq!(market.feed_writer.bytes_kept(), 0);
    let mut early = Reader::new(&market, &[1]);
    early.read();
    assert_eq!(early.replicas.len(), 0);
    market.feed.want();
    market.turn();
    let mut late = Reader::new(&market, &[]);
    for reader in [&mut early, &mut late] {
        reader.read();
        assert_eq!(reader.conflated, []);
        assert_eq!(reader.replica(SymbolId(1)).epoch(), Some(Epoch(12)));
        market.same(reader.replica(SymbolId(1)));
    }
    market.bids(1, 3);
    market.turn();
    early.read();
    assert_eq!(early.messages, 6);
    market.same(early.replica(SymbolId(1)));
}

#[test]
fn what_finds_an_empty_inlet_is_let_in_whatever_its_length() {
    let feed = Feed::new(Epoch(9), Channels::default(), 0, 4);
    let mut books = vec![0; INLET_BYTES_MAX + 1];
    assert!(feed.leave(&mut books, false));
    assert!(!feed.leave(&mut vec![0], false));
    assert!(feed.leave(&mut vec![0], true));
    assert_eq!(feed.load().0, INLET_BYTES_MAX + 2);
}

#[test]
fn a_new_epoch_begins_with_snapshots_behind_the_messages_of_the_one_before() {
    let mut market = Market::new(4);
    market.bids(1, 5);
    market.turn();
    let mut readers = [&[][..], &[1], &[2]].map(|symbols| Reader::new(&market, symbols));
    readers.iter_mut().for_each(Reader::read);
    // Some wait in the inlet, and the second book has none.
    market.bids(1, 3);
    market.feed_writer.hand_over(&market.feed);
    market.feed.begin_epoch(Epoch(12));
    market.feed_writer.begin_epoch(&market.feed, Epoch(12));
    market.turn();
    for reader in &mut readers {
        reader.read();
        assert_eq!(reader.conflated, []);
        for replica in &reader.replicas {
            assert_eq!(replica.epoch(), Some(Epoch(12)));
            market.same(replica);
        }
    }
    assert_eq!(readers.each_ref().map(|reader| reader.messages), [6, 6, 0]);
    assert_eq!(
        readers.each_ref().map(|reader| reader.replicas.len()),
        [2, 1, 1]
    );
    // Numbers go on: a reader that was behind the ring gets the exact count.
    let mut late = Reader::new(&market, &[]);
    late.read();
    let before = lock(&market.feed.books).sequence;
    for epoch in 13..20 {
        market.bids(1, 1);
        market.turn();
        market.feed_writer.begin_epoch(&market.feed, Epoch(epoch));
        market.turn();
    }
    late.read();
    let missed: u64 = late.conflated.iter().map(|(_, missed)| missed).sum();
    assert_eq!(
        missed + late.messages,
        lock(&market.feed.books).sequence - before
    );
    assert_eq!(late.replica(SymbolId(1)).epoch(), Some(Epoch(19)));
    market.same(late.replica(SymbolId(1)));
}

#[test]
fn a_symbol_that_was_removed_has_no_snapshot_of_an_older_epoch() {
    let mut market = Market::new(4);
    market.turn();
    market.run(Command::RemoveSymbol {
        symbol: SymbolId(2),
    });
    market.turn();
    market.feed.begin_epoch(Epoch(12));
    market.feed_writer.begin_epoch(&market.feed, Epoch(12));
    market.turn();
    let mut all = Reader::new(&market, &[]);
    let mut named = Reader::new(&market, &[2]);
    all.read();
    named.read();
    let epochs: Vec<_> = all.replicas.iter().map(BookReplica::epoch).collect();
    assert_eq!(epochs, [Some(Epoch(12))]);
    assert_eq!(named.replicas.len(), 0);
    // One that comes back is there again.
    let pair = SymbolSpec::pair(SymbolId(2), CurrencyId(12), CurrencyId(20));
    market.run(Command::AddSymbols(Arc::new([pair])));
    market.bids(2, 3);
    market.turn();
    named.read();
    market.same(named.replica(SymbolId(2)));
}

#[test]
fn a_reader_that_saw_neither_the_end_of_a_book_nor_the_new_epoch_has_it_empty() {
    let mut market = Market::new(4);
    market.bids(2, 3);
    market.turn();
    let mut named = Reader::new(&market, &[2]);
    named.read();
    market.same(named.replica(SymbolId(2)));
    let symbol = SymbolId(2);
    market.run(Command::RemoveSymbol { symbol });
    market.turn();
    market.feed.begin_epoch(Epoch(12));
    market.feed_writer.begin_epoch(&market.feed, Epoch(12));
    for _ in 0..5 {
        market.turn();
        market.bids(1, 1);
    }
    named.read();
    assert_eq!(named.conflated, [(Some(symbol), 1)]);
    assert_eq!(named.replica(symbol).levels(Action::Bid).len(), 0);
    assert_eq!(named.replica(symbol).epoch(), Some(Epoch(12)));
}

#[test]
fn pieces_end_with_a_command() {
    let mut market = Market::new(16);
    market.turn();
    market.bids(1, 50);
    market.feed_writer.hand_over(&market.feed);
    let bytes = lock(&market.feed.inlet).bytes.clone();
    let pieces: Vec<&[u8]> = Pieces::of(&bytes, 200).collect();
    assert!(pieces.len() > 10, "{}", pieces.len());
    assert_eq!(pieces.concat(), bytes);
    for piece in pieces {
        let last = chunk::marks(piece).last().expect("it is not empty");
        let is_last = decode_message(last.frame).is_ok_and(|(message, _)| message.is_last);
        assert!(is_last || last.is_snapshot);
    }
    let snapshot = Snapshot::default();
    let mut frame = vec![0; snapshot_bytes(&snapshot)];
    encode_snapshot(&snapshot, &mut frame).expect("there is room");
    assert!(chunk::Mark::first(&frame).is_some_and(|mark| mark.is_snapshot));
}
