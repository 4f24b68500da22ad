//! A feed that starts again: no subscriber mixes it into the book of the one before.

use thalweg_exchange::book::Level;
use thalweg_exchange::market::{
    BookReplica, Builder, Channels, Epoch, FeedError, Message, ReplicaError, Snapshot,
    SymbolSequence,
};
use thalweg_exchange::{Action, Command, State, SymbolId};

use crate::market::numbers::{SYMBOL, feed, order, session, setup};

/// Starts a feed with an epoch, and returns its first messages.
fn start(epoch: u64, commands: &[Command]) -> (Builder, State, Vec<Message>) {
    let mut builder = Builder::new(Epoch(epoch), Channels::default());
    let mut state = State::default();
    let messages = feed(&mut builder, &mut state, commands);
    assert_eq!(builder.epoch(), Epoch(epoch));
    assert!(messages.iter().all(|message| message.epoch == Epoch(epoch)));
    (builder, state, messages)
}

/// Empty books and `count` orders far from where those of [`session`] are.
fn others(count: usize) -> Vec<Command> {
    let mut commands = setup().to_vec();
    commands.extend((1..=count as i64).map(|id| order(id, Action::Ask, 100 + id, 1)));
    commands
}

fn asks(replica: &BookReplica) -> Vec<Level> {
    replica.levels(Action::Ask).collect()
}

fn follow(messages: &[Message]) -> BookReplica {
    let mut replica = BookReplica::new(SYMBOL);
    assert_eq!(replica.epoch(), None);
    for message in messages {
        replica.apply(message).expect("no gap");
    }
    replica
}

#[test]
fn a_restarted_feed_is_noticed_and_not_mixed_in() {
    let (_, _, before) = start(1, &session());
    let mut replica = follow(&before);
    let known = asks(&replica);

    // The feed starts again, over books that are empty, and its numbers happen to fit.
    let (mut builder, mut state, after) = start(2, &others(before.len()));
    assert!(after.len() > before.len());
    let error = ReplicaError::Feed(FeedError::NewEpoch {
        current: Epoch(1),
        got: Epoch(2),
    });
    for message in &after {
        assert_eq!(replica.apply(message), Err(error));
    }
    assert_eq!(
        error.to_string(),
        "the feed started again: epoch 2 came after 1, and a snapshot of epoch 2 is needed"
    );
    assert_eq!(asks(&replica), known, "nothing changed");
    assert_eq!(replica.epoch(), Some(Epoch(1)));
    // A late message of the old feed is still one of its own.
    assert_eq!(replica.apply(&before[0]), Ok(()));

    // A snapshot mends it.
    let mut snapshot = Snapshot::default();
    assert!(builder.snapshot(SYMBOL, usize::MAX, &mut snapshot));
    assert_eq!(snapshot.epoch, Epoch(2));
    replica.restart(&snapshot).expect("of this symbol");
    assert_eq!(replica.epoch(), Some(Epoch(2)));
    let cancel = Command::cancel_all(None, Some(SYMBOL));
    for message in after
        .iter()
        .chain(&feed(&mut builder, &mut state, &[cancel]))
    {
        replica.apply(message).expect("no gap");
    }
    assert_eq!(asks(&replica), []);

    // A late message of the feed before is stale.
    let stale = ReplicaError::Feed(FeedError::StaleEpoch {
        current: Epoch(2),
        got: Epoch(1),
    });
    let was = replica.sequence();
    for message in &before {
        assert_eq!(replica.apply(message), Err(stale));
    }
    assert_eq!(
        stale.to_string(),
        "the message is stale: it is of epoch 1, which was before 2"
    );
    assert_eq!((asks(&replica), replica.sequence()), (vec![], was));
}

#[test]
fn the_first_message_that_is_applied_gives_the_epoch() {
    let (_, _, first) = start(7, &session());
    let (_, _, second) = start(8, &session());
    let mut replica = BookReplica::new(SYMBOL);
    // A message after one that is missing is not applied.
    let gap = replica.apply(&first[1]).expect_err("a gap");
    assert!(matches!(gap, ReplicaError::Gap { .. }));
    assert_eq!(replica.epoch(), None);
    replica.apply(&second[0]).expect("the first");
    assert_eq!(replica.epoch(), Some(Epoch(8)));
    let stale = replica.apply(&first[1]).expect_err("of an older start");
    assert!(matches!(
        stale,
        ReplicaError::Feed(FeedError::StaleEpoch { .. })
    ));
}

/// Nothing comes of symbol 6 after the feed has started again.
#[test]
fn a_replica_of_a_silent_symbol_learns_of_a_new_epoch() {
    let (_, _, first) = start(7, &session());
    let (_, _, second) = start(8, &session());
    let mut silent = BookReplica::new(SymbolId(6));
    for message in &first {
        assert_eq!(silent.apply(message), Ok(()));
    }
    assert_eq!(silent.epoch(), Some(Epoch(7)));
    for message in &second {
        let error = silent.apply(message).expect_err("another start");
        assert!(matches!(
            error,
            ReplicaError::Feed(FeedError::NewEpoch { .. })
        ));
    }
}

/// The epoch should grow. Where it did not, nothing is mixed either, and a snapshot mends it.
#[test]
fn an_epoch_that_fell_is_noticed_and_a_snapshot_mends_it() {
    let (_, _, before) = start(9, &session());
    let mut replica = follow(&before);
    let (builder, _, after) = start(3, &others(before.len()));
    for message in &after {
        let stale = replica.apply(message).expect_err("an older epoch");
        assert!(matches!(
            stale,
            ReplicaError::Feed(FeedError::StaleEpoch { .. })
        ));
    }
    let mut snapshot = Snapshot::default();
    assert!(builder.snapshot(SYMBOL, usize::MAX, &mut snapshot));
    replica.restart(&snapshot).expect("of this symbol");
    assert_eq!(replica.epoch(), Some(Epoch(3)));
    assert!(
        replica
            .levels(Action::Ask)
            .eq(builder.levels(SYMBOL, Action::Ask))
    );
}

/// A subscriber that joins at the first message of a builder that was made of books misses the
/// orders that rest in them.
#[test]
fn what_rested_before_the_feed_is_not_missed_unseen() {
    let (_, mut state, _) = start(1, &session());
    let mut builder = Builder::from_books(&state.matching, Epoch(2), Channels::default());
    assert_eq!(builder.symbol_sequence(SYMBOL), SymbolSequence(1));
    let mut snapshot = Snapshot::default();
    assert!(builder.snapshot(SYMBOL, usize::MAX, &mut snapshot));
    let after = feed(&mut builder, &mut state, &[order(9, Action::Ask, 50, 1)]);
    assert_eq!(
        after[0].sequence.0, 2,
        "what rests counts as 1 in the feed, too"
    );
    let mut replica = BookReplica::new(SYMBOL);
    let gap = ReplicaError::Gap {
        symbol: SYMBOL,
        expected: SymbolSequence(1),
        got: SymbolSequence(2),
    };
    assert_eq!(replica.apply(&after[0]), Err(gap));
    replica.restart(&snapshot).expect("of this symbol");
    for message in &after {
        replica.apply(message).expect("no gap");
    }
    assert!(
        replica
            .levels(Action::Ask)
            .eq(builder.levels(SYMBOL, Action::Ask))
    );
    assert_eq!(asks(&replica).len(), 2);
}
