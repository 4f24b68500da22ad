//! The exchange's bytes and its market data.

use std::hint::black_box;

use thalweg_exchange::codec::{
    MESSAGE_BYTES_MAX, SINGLE_COMMAND_BYTES_MAX, decode_command, encode_command, encode_message,
};
use thalweg_exchange::market::{Builder, Channels, Epoch, Message};
use thalweg_exchange::{Action, Command, Events, ResultCode};

use super::exchange::{lap, place};
use super::{CAPACITY, Cases, Work, rounds};

pub(super) fn add(cases: &mut Cases) {
    let mut add = |name: &str, work: fn() -> Work| {
        cases.insert(format!("exchange/{name}"), work);
    };
    add("codec-command", command);
    add("codec-message", message);
    add("market-mix-1024", market);
}

/// A new order encoded and decoded.
fn command() -> Work {
    let mut bytes = [0; SINGLE_COMMAND_BYTES_MAX];
    rounds(move |number| {
        let command = Command::Place(place(number, Action::Bid, 1_000, 5));
        let written = encode_command(black_box(&command), &mut bytes).expect("there is room");
        let (read, length) = decode_command(black_box(&bytes)).expect("just encoded");
        assert_eq!(length, written);
        black_box(read);
    })
}

/// The messages of the mixed lap encoded, one a round.
fn message() -> Work {
    let (mut exchange, lap) = lap();
    exchange.events = Events::with_capacity(1024).with_levels();
    let mut builder = Builder::from_books(&exchange.state.matching, Epoch(2), Channels::default());
    let mut messages: Vec<Message> = Vec::new();
    for (number, command) in (0..).zip(&lap) {
        exchange.apply(command);
        let made = builder.apply(number, command, ResultCode::Success, &exchange.events);
        messages.extend(made.expect("nothing is left out"));
    }
    messages.truncate(CAPACITY);
    assert_eq!(messages.len(), CAPACITY);
    let mut bytes = [0; MESSAGE_BYTES_MAX];
    let mut at = 0;
    rounds(move |_| {
        let written = encode_message(black_box(&messages[at]), &mut bytes);
        assert!(written.is_ok());
        black_box(&bytes);
        at = (at + 1) % CAPACITY;
    })
}

/// Market data of a command of the mixed lap, which repeats: what the exchange said is kept.
fn market() -> Work {
    let (mut exchange, lap) = lap();
    exchange.events = Events::with_capacity(1024).with_levels();
    let mut builder = Builder::from_books(&exchange.state.matching, Epoch(2), Channels::default());
    let mut events: Vec<Events> = Vec::new();
    let mut number = 0;
    // From the second lap on, every order is where the lap before left it.
    for round in 0..2 {
        events.clear();
        for (command, at) in lap.iter().zip(0..) {
            exchange.apply(command);
            events.push(exchange.events.clone());
            let messages = builder.apply(number, command, ResultCode::Success, &exchange.events);
            assert!(messages.is_ok(), "lap {round}, command {at}");
            number += 1;
        }
    }
    let mut at = 0;
    rounds(move |_| {
        let messages = builder.apply(number, &lap[at], ResultCode::Success, &events[at]);
        assert!(black_box(messages).is_ok());
        number += 1;
        at = (at + 1) % CAPACITY;
    })
}
