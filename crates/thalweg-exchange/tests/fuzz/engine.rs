//! Any commands: no panic, no money made or lost, the plain book's answers, and the same again from
//! the commands' bytes through a service.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use thalweg::pipeline::Placement;
use thalweg_exchange::book::{Level, RestingOrder};
use thalweg_exchange::codec::{command_bytes, decode_command, encode_command};
use thalweg_exchange::digest::Digest;
use thalweg_exchange::report::currency_totals;
use thalweg_exchange::report::state_text::state_text_hash;
use thalweg_exchange::service::{Outcome, Service, ServiceOptions};
use thalweg_exchange::{
    Action, Command, Event, Events, OrderType, RemovalReason, ResultCode, Rules, State, SymbolId,
    apply,
};

use super::language::{Words, setup, symbols};
use super::plain::PlainBook;

/// Checks the property for any bytes; with a fault, that a settlement is now and then forgotten.
///
/// # Panics
/// If it does not hold.
pub(crate) fn check(bytes: &[u8], has_fault: bool) {
    let mut words = Words::new(bytes);
    let kind = words.byte();
    let rules = if kind & 1 == 0 {
        Rules::default()
    } else {
        Rules::REFERENCE
    };
    let is_plain = kind & 2 == 0;
    let rules = Rules {
        // The plain book does not bound what an order that meets icebergs does.
        bound_work: rules.bound_work && !is_plain,
        ..rules
    };
    let mut commands = setup().to_vec();
    commands.extend(words.commands(is_plain));
    commands.retain(|command| kind & 1 == 0 || !makes_money(command));

    let mut world = World::new(rules, is_plain);
    for command in &commands {
        world.execute(command, has_fault);
    }
    // Starting a service takes longer than all the rest: now and then.
    let is_served = kind >> 2 & 15 == 1;
    let (state, digest) = again(rules, &commands, is_served);
    assert_eq!(
        digest,
        world.digest,
        "{} did something else",
        if is_served { "the service" } else { "the copy" }
    );
    assert_eq!(state_text_hash(&state), state_text_hash(&world.state));
}

/// The reference makes or loses money by this command.
fn makes_money(command: &Command) -> bool {
    let place = match command {
        Command::Place(place) => place,
        Command::PlaceConditional(order) => &order.place,
        _ => return false,
    };
    place.action == Action::Bid
        && place.order_type.is_budget()
        && (place.size <= 0 || place.order_type == OrderType::IocBudget)
}

struct World {
    state: State,
    events: Events,
    digest: Digest,
    books: Option<BTreeMap<SymbolId, PlainBook>>,
}

impl World {
    fn new(rules: Rules, is_plain: bool) -> Self {
        let book = |spec| PlainBook::new(spec, rules);
        let books = symbols().map(|spec| (spec.id, book(spec)));
        Self {
            state: State::new(rules),
            events: Events::new(),
            digest: Digest::new(),
            books: is_plain.then(|| books.into()),
        }
    }

    fn execute(&mut self, command: &Command, has_fault: bool) {
        let checked = self.state.risk.clone().check(command);
        let result = if has_fault {
            faulty_apply(&mut self.state, command, &mut self.events)
        } else {
            apply(&mut self.state, command, &mut self.events)
        };
        self.digest.fold(command, result, &self.events);
        for total in currency_totals(&self.state) {
            assert_eq!(total.sum(), 0, "{total:?} after {command:?}: {result}");
        }
        if result.is_refusal() {
            let own = |event: &Event| match event {
                Event::Reject { .. } => true,
                Event::Removed { why, .. } => {
                    matches!(why, RemovalReason::SelfTrade | RemovalReason::Decremented)
                }
                _ => false,
            };
            assert!(self.events.iter().all(own), "{command:?}: {result}");
        }
        let book = self.books.as_mut().zip(command.symbol());
        if let Some((books, symbol)) = book
            && checked == ResultCode::ValidForMatchingEngine
            && let Some(plain) = books.get_mut(&symbol)
        {
            let expected = plain.execute(command);
            assert_eq!((result, self.events.to_vec()), expected, "{command:?}");
            let book = self.state.matching.book(symbol).expect("it was added");
            assert_eq!(book.order_count(), plain.order_count());
            for side in [Action::Ask, Action::Bid] {
                let levels: Vec<Level> = book.levels(side, usize::MAX).collect();
                assert_eq!(levels, plain.levels(side).collect::<Vec<_>>());
                let orders: Vec<RestingOrder> = book.orders(side).collect();
                assert_eq!(orders, plain.orders(side).collect::<Vec<_>>());
            }
        }
    }
}

/// The seeded fault: a taker that meets two orders is not settled.
fn faulty_apply(state: &mut State, command: &Command, events: &mut Events) -> ResultCode {
    let checked = state.risk.check(command);
    let result = state.matching.execute(command, checked, events);
    if events.len() < 2 {
        state.risk.settle(command, result, events);
    }
    result
}

/// The commands from their bytes, one by one, or in batches through a pipeline.
fn again(rules: Rules, commands: &[Command], is_served: bool) -> (State, Digest) {
    let mut bytes = vec![0; commands.iter().map(command_bytes).sum()];
    let mut at = 0;
    for command in commands {
        at += encode_command(command, &mut bytes[at..]).expect("there is room");
    }
    let mut decoded = Vec::new();
    let mut rest = &bytes[..];
    while !rest.is_empty() {
        let (command, length) = decode_command(rest).expect("good frames");
        decoded.push(command);
        rest = &rest[length..];
    }
    if is_served {
        return served(rules, &decoded);
    }
    let (mut state, mut digest) = (State::new(rules), Digest::new());
    let mut events = Events::new();
    for command in &decoded {
        let result = apply(&mut state, command, &mut events);
        digest.fold(command, result, &events);
    }
    (state, digest)
}

fn served(rules: Rules, commands: &[Command]) -> (State, Digest) {
    let options = ServiceOptions {
        capacity: 16,
        placement: Placement::inline(),
        ..ServiceOptions::default()
    };
    let digest = Arc::new(Mutex::new(Digest::new()));
    let folded = Arc::clone(&digest);
    let publish = move |outcome: Outcome<'_>| {
        let mut digest = folded.lock().expect("no panic");
        digest.fold(outcome.command, outcome.result, outcome.events);
    };
    let service = Service::start(State::new(rules), options, publish);
    let mut service = service.expect("good options");
    for batch in commands.chunks(7) {
        service.submit_batch(batch, |_| 0).expect("no panic");
    }
    let finished = service.join().expect("no panic");
    let digest = *digest.lock().expect("no panic");
    (finished.state, digest)
}
