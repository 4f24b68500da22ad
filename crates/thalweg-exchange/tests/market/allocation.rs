//! Building market data and following it allocates nothing once buffers have their size.

use thalweg_exchange::market::{BookReplica, Builder, Channels, Epoch, Message, Snapshot};
use thalweg_exchange::{Command, Events, ResultCode, State, SymbolId, apply};
use thalweg_testkit::counting::calls;

use crate::market::recording::recorded;

/// Returns the engine's outcomes of the commands of a recorded stream.
fn outcomes() -> Vec<(Command, ResultCode, Events)> {
    let data = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let (rules, commands) = recorded(&data.join("exchange_20k.txt.gz"));
    let mut state = State::new(rules);
    let mut events = Events::new().with_levels();
    let outcome = |command: Command| {
        let result = apply(&mut state, &command, &mut events);
        (command, result, events.clone())
    };
    commands.into_iter().map(outcome).collect()
}

#[test]
fn market_data_does_not_allocate_after_warm_up() {
    let outcomes = outcomes();
    let symbol = outcomes
        .iter()
        .find_map(|(command, ..)| command.symbol())
        .expect("an order");
    let mut builder = Builder::new(Epoch(1), Channels::default());
    let mut replica = BookReplica::new(symbol);
    let mut snapshot = Snapshot::default();
    let mut messages_sent = 0;
    let mut run = |outcomes: &[(Command, ResultCode, Events)]| {
        for (command, result, events) in outcomes {
            let number = builder.command().map_or(0, |last| last + 1);
            let messages = builder
                .apply(number, command, *result, events)
                .expect("in step");
            messages_sent += messages.len();
            follow(&mut replica, messages, symbol);
            if command.symbol() == Some(symbol) {
                assert!(builder.snapshot(symbol, 20, &mut snapshot));
            }
        }
    };
    // By three quarters of this stream the book has had its largest size.
    let (first, rest) = outcomes.split_at(outcomes.len() / 4 * 3);
    run(first);
    let calls = calls(|| run(rest));
    assert!(messages_sent > 10_000);
    assert_eq!(calls, 0);
}

fn follow(replica: &mut BookReplica, messages: &[Message], symbol: SymbolId) {
    for message in messages.iter().filter(|message| message.symbol == symbol) {
        replica.apply(message).expect("no gap");
    }
}
