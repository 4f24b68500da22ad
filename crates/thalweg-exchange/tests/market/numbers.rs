//! Numbers, errors and what happens around a reset.

use std::sync::Arc;

use thalweg_exchange::market::{
    Body, BookReplica, Builder, Channels, Epoch, Message, OutcomeError, ReplicaError, Snapshot,
    SymbolSequence,
};
use thalweg_exchange::{
    AccountSpec, Action, Command, ConditionalOrder, CurrencyId, Events, OrderId, Place, ResultCode,
    State, SymbolId, SymbolSpec, UserId, apply,
};

pub(crate) const SYMBOL: SymbolId = SymbolId(5);

pub(crate) fn setup() -> [Command; 2] {
    let spec = SymbolSpec::pair(SYMBOL, CurrencyId(1), CurrencyId(2));
    let account = AccountSpec {
        uid: UserId(1),
        balances: vec![(CurrencyId(1), 1_000_000), (CurrencyId(2), 1_000_000)],
    };
    [
        Command::AddSymbols([spec].into()),
        Command::AddAccounts([account].into()),
    ]
}

pub(crate) fn order(id: i64, action: Action, price: i64, size: i64) -> Command {
    Command::Place(Place::limit(
        (UserId(1), OrderId(id)),
        SYMBOL,
        action,
        (price, size),
    ))
}

pub(crate) fn feed(builder: &mut Builder, state: &mut State, commands: &[Command]) -> Vec<Message> {
    let mut events = Events::new().with_levels();
    let mut all = Vec::new();
    for command in commands {
        let result = apply(state, command, &mut events);
        let number = builder.command().map_or(0, |last| last + 1);
        let messages = builder
            .apply(number, command, result, &events)
            .expect("in step");
        all.extend_from_slice(messages);
    }
    all
}

/// Returns the bodies of messages.
fn bodies(messages: &[Message]) -> Vec<Body> {
    messages.iter().map(|message| message.body).collect()
}

/// 1,000 orders over ten prices go at once: each level has one message.
#[test]
fn a_mass_removal_reports_each_level_once() {
    const PRICES: i64 = 10;
    let expires = |id: i64| {
        let Command::Place(place) = order(id, Action::Ask, 10 + id % PRICES, 1) else {
            unreachable!("an order");
        };
        Command::PlaceConditional(Arc::new(
            ConditionalOrder::from(place).with_good_till(1_000 + id),
        ))
    };
    type Way = (fn(i64) -> Command, Command);
    let ways: [Way; 2] = [
        (expires, Command::Clock { time: 10_000 }),
        (
            |id| order(id, Action::Ask, 10 + id % PRICES, 1),
            Command::cancel_all(Some(UserId(1)), None),
        ),
    ];
    for (place, removal) in ways {
        let mut builder = Builder::new(Epoch(1), Channels::default());
        let mut state = State::default();
        feed(&mut builder, &mut state, &setup());
        let orders: Vec<_> = (1..=1_000).map(place).collect();
        feed(&mut builder, &mut state, &orders);
        assert_eq!(builder.order_count(SYMBOL), 1_000);
        let messages = feed(&mut builder, &mut state, &[removal]);
        let levels: Vec<_> = (messages.iter())
            .filter_map(|message| match message.body {
                Body::Level(level) => Some((level.price, level.orders)),
                _ => None,
            })
            .collect();
        let expected: Vec<_> = (10..10 + PRICES).map(|price| (price, 0)).collect();
        assert_eq!(levels, expected);
        assert_eq!(builder.order_count(SYMBOL), 0);
    }
}

pub(crate) fn session() -> Vec<Command> {
    let mut commands = setup().to_vec();
    commands.extend([
        order(1, Action::Ask, 10, 3),
        order(2, Action::Ask, 11, 3),
        order(3, Action::Bid, 11, 4),
        order(4, Action::Bid, 9, 4),
    ]);
    commands
}

#[test]
fn a_missing_message_is_noticed_and_a_snapshot_mends_it() {
    let mut builder = Builder::new(Epoch(1), Channels::default());
    let mut state = State::default();
    let messages = feed(&mut builder, &mut state, &session());
    let mut replica = BookReplica::new(SYMBOL);
    replica.apply(&messages[0]).expect("the first");
    let gap = replica.apply(&messages[2]).expect_err("one is missing");
    let expected = ReplicaError::Gap {
        symbol: SYMBOL,
        expected: SymbolSequence(2),
        got: SymbolSequence(3),
    };
    assert_eq!(gap, expected);
    assert_eq!(
        gap.to_string(),
        "market data of symbol 5 has a gap: message 2 expected, 3 came"
    );
    assert_eq!(replica.sequence(), SymbolSequence(1), "nothing changed");
    let mut snapshot = Snapshot::default();
    assert!(builder.snapshot(SYMBOL, usize::MAX, &mut snapshot));
    replica.restart(&snapshot).expect("of this symbol");
    for message in &messages {
        replica.apply(message).expect("older than the snapshot");
    }
    let levels: Vec<_> = replica
        .levels(Action::Ask)
        .map(|level| level.price)
        .collect();
    assert_eq!(levels, [11]);
    assert!(!builder.snapshot(SymbolId(6), 1, &mut snapshot));
    assert_eq!(snapshot.symbol, SYMBOL, "untouched");
}

#[test]
fn numbers_go_on_after_a_reset() {
    let mut builder = Builder::new(Epoch(1), Channels::default());
    let mut state = State::default();
    let before = feed(&mut builder, &mut state, &session());
    let last = before[before.len() - 1];
    let reset = feed(&mut builder, &mut state, &[Command::Reset]);
    assert_eq!(reset.len(), 1);
    assert_eq!(reset[0].body, Body::Cleared);
    assert!(reset[0].is_last);
    assert_eq!(reset[0].symbol_sequence.0, last.symbol_sequence.0 + 1);
    let after = feed(&mut builder, &mut state, &session());
    assert_eq!(after[0].symbol_sequence.0, last.symbol_sequence.0 + 2);
    assert_eq!(after[0].sequence.0, last.sequence.0 + 2);
    assert_eq!(bodies(&before), bodies(&after));
}

#[test]
fn a_removed_symbol_is_cleared_and_its_numbers_go_on() {
    let mut builder = Builder::new(Epoch(1), Channels::default());
    let mut state = State::default();
    let before = feed(&mut builder, &mut state, &session());
    let last = before[before.len() - 1];
    let remove = Command::RemoveSymbol { symbol: SYMBOL };
    let removed = feed(&mut builder, &mut state, &[remove]);
    assert_eq!(bodies(&removed), [Body::Cleared]);
    assert_eq!(removed[0].symbol_sequence.0, last.symbol_sequence.0 + 1);
    assert!(!builder.snapshot(SYMBOL, 1, &mut Snapshot::default()));
    assert_eq!(builder.best(SYMBOL), None);
    let again = session();
    let after = feed(&mut builder, &mut state, &again);
    assert_eq!(after[0].symbol_sequence.0, last.symbol_sequence.0 + 2);
    assert_eq!(bodies(&before), bodies(&after));
}

#[test]
fn channels_that_are_off_leave_no_gap() {
    let off = Channels {
        trades: false,
        levels: false,
        best: false,
    };
    let whole = feed(
        &mut Builder::new(Epoch(1), Channels::default()),
        &mut State::default(),
        &session(),
    );
    type Wanted = fn(&Body) -> bool;
    let cases: [(Channels, Wanted); 3] = [
        (
            Channels {
                trades: true,
                ..off
            },
            |b| matches!(b, Body::Trade { .. }),
        ),
        (
            Channels {
                levels: true,
                ..off
            },
            |b| matches!(b, Body::Level(_)),
        ),
        (Channels { best: true, ..off }, |b| {
            matches!(b, Body::Best(_))
        }),
    ];
    for (channels, wanted) in cases {
        let mut builder = Builder::new(Epoch(1), channels);
        let part = feed(&mut builder, &mut State::default(), &session());
        let expected: Vec<Body> = bodies(&whole).into_iter().filter(wanted).collect();
        assert!(!expected.is_empty());
        assert_eq!(bodies(&part), expected);
        let numbers: Vec<u64> = part.iter().map(|m| m.symbol_sequence.0).collect();
        assert_eq!(numbers, (1..=part.len() as u64).collect::<Vec<_>>());
    }
}

#[test]
fn outcomes_from_elsewhere_are_refused() {
    let mut builder = Builder::new(Epoch(1), Channels::default());
    let levels = Events::new().with_levels();
    let error = builder
        .apply(
            0,
            &order(1, Action::Ask, 1, 1),
            ResultCode::Success,
            &levels,
        )
        .expect_err("the symbol was never added");
    assert_eq!(error, OutcomeError::UnknownSymbol { symbol: SYMBOL });
    assert_eq!(
        error.to_string(),
        "market data is out of step: there is no symbol 5"
    );
    feed(&mut builder, &mut State::default(), &setup());
    let ask = order(1, Action::Ask, 1, 1);
    let error = builder
        .apply(3, &ask, ResultCode::Success, &Events::new())
        .expect_err("no levels are listed");
    assert_eq!(
        error.to_string(),
        "market data can not be made of events without levels: see Events::with_levels"
    );
    // A command that the engine refused is never looked at.
    let moved = Command::move_to(UserId(1), SYMBOL, OrderId(8), 3);
    let refused = ResultCode::MatchingUnknownOrderId;
    let messages = builder
        .apply(4, &moved, refused, &levels)
        .expect("nothing to follow");
    assert!(messages.is_empty());
}
