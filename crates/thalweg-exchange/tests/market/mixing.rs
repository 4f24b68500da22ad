//! Messages that do not belong together are refused: of other feeds, of other symbols, of feeds
//! that a replica cannot follow; and a missing message is noticed, of whatever symbol.

use thalweg_exchange::market::{
    BookReplica, Builder, Channels, Epoch, FeedError, FeedSequence, GapDetector, KnownDepth,
    Message, ReplicaError, Snapshot,
};
use thalweg_exchange::{Action, Command, State, SymbolId, SymbolSpec};

use crate::market::numbers::{SYMBOL, feed, order, session, setup};

const OTHER: SymbolId = SymbolId(6);

/// Sends equal commands to two symbols, which are added before; returns the builder after them,
/// too.
fn two_symbols() -> (Builder, Vec<Message>) {
    let mut builder = Builder::new(Epoch(1), Channels::default());
    let mut state = State::default();
    let [symbols, accounts] = setup();
    let Command::AddSymbols(specs) = &symbols else {
        unreachable!("a batch of symbols");
    };
    let other = SymbolSpec {
        id: OTHER,
        ..specs[0]
    };
    let mut commands = vec![
        symbols.clone(),
        accounts,
        Command::AddSymbols([other].into()),
    ];
    for id in 1..4 {
        for symbol in [OTHER, SYMBOL] {
            let mut ask = order(id, Action::Ask, 10 + id, 1);
            if let Command::Place(place) = &mut ask {
                place.symbol = symbol;
            }
            commands.push(ask);
        }
    }
    let messages = feed(&mut builder, &mut state, &commands);
    (builder, messages)
}

/// The last messages of a symbol are lost, and no more come of it.
#[test]
fn what_a_symbol_lost_is_seen_by_the_next_message_of_any() {
    let (builder, messages) = two_symbols();
    let last = messages.iter().rposition(|message| message.symbol == OTHER);
    let (before, after) = messages.split_at(last.expect("there are some"));
    let mut replica = BookReplica::new(OTHER);
    let mut check = GapDetector::new();
    for message in before {
        assert_eq!(check.check(message), Ok(true));
        replica.apply(message).expect("no gap");
    }
    let after = &after[1..];
    assert!(!after.is_empty());
    let gap = FeedError::Gap {
        expected: FeedSequence(before.len() as u64 + 1),
        got: after[0].sequence,
    };
    for message in after {
        // The replica cannot know it.
        assert_eq!(replica.apply(message), Ok(()));
    }
    assert_eq!(check.check(&after[0]), Err(gap));
    assert_eq!(
        gap.to_string(),
        format!(
            "the feed has a gap: message {} expected, {} came",
            before.len() + 1,
            before.len() + 2
        )
    );
    // A message that came before is not new.
    assert_eq!(check.check(&before[0]), Ok(false));
    // A snapshot mends it.
    let mut snapshot = Snapshot::default();
    assert!(builder.snapshot(OTHER, 9, &mut snapshot));
    let Snapshot {
        epoch,
        channels,
        sequence,
        ..
    } = snapshot;
    let mut check = GapDetector::after(epoch, channels, sequence);
    assert_eq!(check.sequence(), builder.sequence());
    let mut next = *messages.last().expect("the last");
    assert_eq!(check.check(&next), Ok(false));
    next.sequence.0 += 1;
    assert_eq!(check.check(&next), Ok(true));
    next.epoch = Epoch(2);
    let error = check.check(&next).expect_err("another start");
    assert!(matches!(error, FeedError::NewEpoch { .. }));
}

#[test]
fn two_feeds_of_one_epoch_are_not_mixed() {
    let levels_only = Channels {
        trades: false,
        best: false,
        ..Channels::default()
    };
    let mut full = Builder::new(Epoch(1), Channels::default());
    let mut thin = Builder::new(Epoch(1), levels_only);
    feed(&mut full, &mut State::default(), &session());
    let mut snapshot = Snapshot::default();
    assert!(full.snapshot(SYMBOL, 9, &mut snapshot));
    let mut replica = BookReplica::from_snapshot(&snapshot).expect("it has levels");
    let mut check = GapDetector::after(snapshot.epoch, snapshot.channels, snapshot.sequence);
    let error = FeedError::OtherChannels {
        current: Channels::default(),
        got: levels_only,
    };
    for message in feed(&mut thin, &mut State::default(), &session()) {
        assert_eq!(replica.apply(&message), Err(ReplicaError::Feed(error)));
        assert_eq!(check.check(&message), Err(error));
    }
    assert_eq!(
        error.to_string(),
        "the message is of another feed: it has levels, the one that is followed trades and \
         levels and best prices"
    );
}

#[test]
fn a_replica_refuses_a_feed_without_levels() {
    let channels = Channels {
        levels: false,
        ..Channels::default()
    };
    let mut builder = Builder::new(Epoch(1), channels);
    let messages = feed(&mut builder, &mut State::default(), &session());
    let error = ReplicaError::WithoutLevels { symbol: SYMBOL };
    assert_eq!(BookReplica::new(SYMBOL).apply(&messages[0]), Err(error));
    let mut snapshot = Snapshot::default();
    assert!(builder.snapshot(SYMBOL, 9, &mut snapshot));
    assert_eq!(BookReplica::from_snapshot(&snapshot).err(), Some(error));
    assert_eq!(
        error.to_string(),
        "market data of symbol 5 has no levels: a replica can not follow it"
    );
}

#[test]
fn a_snapshot_of_another_symbol_is_refused() {
    let (builder, messages) = two_symbols();
    let mut replica = BookReplica::new(SYMBOL);
    for message in &messages {
        replica.apply(message).expect("no gap");
    }
    let mut snapshot = Snapshot::default();
    assert!(builder.snapshot(OTHER, 9, &mut snapshot));
    let error = ReplicaError::OtherSymbol {
        symbol: SYMBOL,
        got: OTHER,
    };
    assert_eq!(replica.restart(&snapshot), Err(error));
    assert_eq!(
        error.to_string(),
        "the snapshot is of symbol 6, the replica of symbol 5"
    );
    assert_eq!(
        (replica.symbol(), replica.levels(Action::Ask).len()),
        (SYMBOL, 3)
    );
}

/// No price stands for it: the best one there can be is a price, too.
#[test]
fn of_a_snapshot_cut_at_no_level_nothing_is_known() {
    let level = |price| thalweg_exchange::book::Level {
        price,
        volume: 1,
        orders: 1,
    };
    let cut = Snapshot {
        symbol: SYMBOL,
        asks: vec![level(7)],
        asks_cut: true,
        bids_cut: true,
        ..Snapshot::default()
    };
    let mut replica = BookReplica::from_snapshot(&cut).expect("it has levels");
    assert_eq!(replica.horizon(Action::Ask), KnownDepth::DownTo(7));
    assert_eq!(replica.horizon(Action::Bid), KnownDepth::Nothing);
    let (mut builder, mut state) = (
        Builder::new(Epoch(0), Channels::default()),
        State::default(),
    );
    let messages = feed(&mut builder, &mut state, &session());
    messages
        .iter()
        .for_each(|message| replica.apply(message).expect("no gap"));
    assert_eq!(replica.levels(Action::Bid).len(), 0);
    replica
        .restart(&Snapshot {
            symbol: SYMBOL,
            ..Snapshot::default()
        })
        .expect("of this symbol");
    assert_eq!(replica.horizon(Action::Bid), KnownDepth::All);
}
