//! A service executes by itself what commands leave over, before the next one.

use std::sync::{Arc, Mutex};

use thalweg::pipeline::Placement;
use thalweg_exchange::Action::{Ask, Bid};
use thalweg_exchange::digest::Digest;
use thalweg_exchange::service::{
    LEFT_OVER_TAG, Query, Service, ServiceOptions, SharedOptions, SharedService,
};
use thalweg_exchange::snapshot::state_hash;
use thalweg_exchange::{
    Action, Command, ConditionalOrder, Events, OrderId, Place, ResultCode, State, SymbolId, UserId,
    apply, apply_left_over,
};

use crate::service::clients::market;

const SYMBOL: SymbolId = SymbolId(1);

fn limit(id: i64, action: Action, price: i64) -> Place {
    Place::limit((UserId(id % 4), OrderId(id)), SYMBOL, action, (price, 1))
}

/// An auction of 3,000 orders of a side; stop orders that a halt keeps waiting; a mass cancel; and
/// a removal of the symbol, which is refused while many orders are there.
fn commands() -> Vec<Command> {
    let mut commands = market().to_vec();
    commands.push(Command::StartAuction { symbol: SYMBOL });
    for id in 0..3_000 {
        commands.push(Command::Place(limit(id, Ask, 100 + id % 7)));
        commands.push(Command::Place(limit(10_000 + id, Bid, 104 + id % 3)));
    }
    commands.push(Command::Uncross {
        symbol: SYMBOL,
        reference: None,
    });
    // It is accepted: the auction has ended.
    commands.push(Command::Place(limit(20_000, Ask, 200)));
    for id in 0..2_500 {
        let order = ConditionalOrder::from(limit(30_000 + id, Bid, 50)).with_trigger(150);
        commands.push(Command::PlaceConditional(order.into()));
    }
    commands.push(Command::Place(limit(20_001, Bid, 200)));
    commands.push(Command::cancel_all(None, None));
    commands.push(Command::RemoveSymbol { symbol: SYMBOL });
    commands
}

/// The commands, each with what it has left over, and their results; how many came by themselves;
/// and the state's hash and the digest after them.
fn expected() -> (Vec<(Command, ResultCode)>, usize, u64, u64) {
    let (mut state, mut events, mut digest) = (State::default(), Events::new(), Digest::new());
    let (mut outcomes, mut further) = (Vec::new(), 0);
    for command in commands() {
        let result = apply(&mut state, &command, &mut events);
        assert_eq!(result, ResultCode::Success, "{command:?}");
        digest.fold(&command, result, &events);
        outcomes.push((command, result));
        apply_left_over(&mut state, &mut events, |command, result, events| {
            digest.fold(command, result, events);
            outcomes.push((command.clone(), result));
            further += 1;
        });
    }
    (outcomes, further, state_hash(&state), digest.value())
}

#[test]
fn what_is_left_over_is_executed_before_the_next_command() {
    let (expected, further, hash, digest) = expected();
    assert!(further > 5, "{further}");
    for placement in [
        Placement::inline(),
        Placement::threads(1),
        Placement::threads(2),
    ] {
        let options = ServiceOptions {
            placement,
            ..ServiceOptions::default()
        };
        let seen = Arc::new(Mutex::new((Vec::new(), Digest::new())));
        let published = Arc::clone(&seen);
        let publish = move |outcome: thalweg_exchange::service::Outcome<'_>| {
            let (seen, digest) = &mut *published.lock().expect("no panic");
            digest.fold(outcome.command, outcome.result, outcome.events);
            assert_eq!(outcome.sequence, seen.len() as u64);
            let is_further = outcome.tag == LEFT_OVER_TAG;
            seen.push((outcome.command.clone(), outcome.result, is_further));
        };
        let mut service = Service::start(State::default(), options, publish).expect("it starts");
        service
            .submit_batch(&commands(), |at| at as u64)
            .expect("it runs");
        let answered = service.query(Query::Totals).expect("it runs");
        assert_eq!(answered.sequence, expected.len() as u64);
        let finished = service.join().expect("no failure");
        assert_eq!(state_hash(&finished.state), hash);
        let (seen, folded) = &*seen.lock().expect("no panic");
        assert_eq!(folded.value(), digest);
        assert_eq!(
            seen.iter().filter(|(.., is_further)| *is_further).count(),
            further
        );
        let seen: Vec<_> = seen
            .iter()
            .map(|(command, result, _)| (command.clone(), *result))
            .collect();
        assert!(seen == expected);
    }
}

#[test]
fn clients_get_the_replies_to_their_own_commands() {
    let service = SharedService::start(State::default(), SharedOptions::default(), |_| ());
    let service = service.expect("it starts");
    let mut client = service.client();
    let (outcomes, ..) = expected();
    let mut numbers = (0..).zip(&outcomes);
    for command in commands() {
        let reply = client.call(&command).expect("it runs");
        let number = numbers
            .find(|(_, (other, _))| *other == command)
            .map(|(number, _)| number);
        assert_eq!(
            (Some(reply.sequence), reply.result),
            (number, ResultCode::Success)
        );
    }
    service.join().expect("no failure");
}

/// A service ends in the midst of each command that leaves something over, and another one goes on.
#[test]
fn a_service_that_starts_with_work_left_over_does_it_first() {
    let (expected, _, hash, digest) = expected();
    let (mut state, mut events, mut before) = (State::default(), Events::new(), Digest::new());
    let mut commands = commands().into_iter().peekable();
    let mut number = 0;
    while state.left_over().is_none() {
        let command = commands.next().expect("something is left over");
        let result = apply(&mut state, &command, &mut events);
        before.fold(&command, result, &events);
        number += 1;
    }
    let options = ServiceOptions {
        first_sequence: number,
        ..ServiceOptions::default()
    };
    let seen = Arc::new(Mutex::new((Vec::new(), before)));
    let published = Arc::clone(&seen);
    let mut next = number;
    let publish = move |outcome: thalweg_exchange::service::Outcome<'_>| {
        assert_eq!(outcome.sequence, next);
        next += 1;
        let (seen, digest) = &mut *published.lock().expect("no panic");
        digest.fold(outcome.command, outcome.result, outcome.events);
        seen.push((outcome.command.clone(), outcome.result));
    };
    let mut service = Service::start(state, options, publish).expect("it starts");
    assert!(!seen.lock().expect("no panic").0.is_empty());
    let rest: Vec<Command> = commands.collect();
    service
        .submit_batch(&rest, |at| at as u64)
        .expect("it runs");
    let finished = service.join().expect("no failure");
    let (seen, folded) = &*seen.lock().expect("no panic");
    assert!(seen[..] == expected[number as usize..]);
    assert_eq!(state_hash(&finished.state), hash);
    assert_eq!(folded.value(), digest);
}

/// The command that opens a symbol is no work, and stop orders are left over there.
#[test]
fn what_a_halt_has_kept_is_executed_when_it_ends() {
    let mut commands = commands();
    let taker = commands.len() - 3;
    commands.truncate(taker);
    // Before the trade that reaches all stop orders is done with them, the symbol is halted.
    let (mut state, mut events) = (State::default(), Events::new());
    for command in &commands {
        apply(&mut state, command, &mut events);
        apply_left_over(&mut state, &mut events, |_, _, _| {});
    }
    let all = Place {
        size: 3_000,
        ..limit(20_001, Bid, 200)
    };
    apply(&mut state, &Command::Place(all), &mut events);
    assert!(state.left_over().is_some());
    apply(&mut state, &Command::Halt { symbol: SYMBOL }, &mut events);
    assert!(state.left_over().is_none());
    let mut service = Service::start(state, ServiceOptions::default(), |_| ()).expect("it starts");
    service.submit(&Command::Nop, 0).expect("it runs");
    service
        .submit(&Command::Unhalt { symbol: SYMBOL }, 0)
        .expect("it runs");
    let finished = service.join().expect("no failure");
    let book = finished.state.matching.book(SYMBOL).expect("added");
    assert_eq!(book.waiting().count(), 0);
}
