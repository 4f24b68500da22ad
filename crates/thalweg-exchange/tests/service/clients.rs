//! Several clients of one service: everyone gets the answers to its own commands.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use thalweg::pipeline::Placement;
use thalweg_exchange::service::{
    ClientError, IN_FLIGHT_MAX, Options, SharedOptions, SharedService, Ticket,
};
use thalweg_exchange::{
    AccountSpec, Action, Command, CurrencyId, Event, Events, OrderId, Place, ResultCode, State,
    SymbolId, SymbolSpec, UserId, apply,
};

/// Four users with money, and a symbol.
pub(crate) fn market() -> [Command; 2] {
    let spec = SymbolSpec::pair(SymbolId(1), CurrencyId(1), CurrencyId(2));
    let account = |uid| AccountSpec {
        uid: UserId(uid),
        balances: vec![(CurrencyId(1), 1 << 40), (CurrencyId(2), 1 << 40)],
    };
    [
        Command::AddSymbols([spec].into()),
        Command::AddAccounts((0..4).map(account).collect()),
    ]
}

/// Order `at` of user `uid`: prices cross now and then.
pub(crate) fn order(uid: i64, at: i64) -> Command {
    let action = if (uid + at) % 2 == 0 {
        Action::Ask
    } else {
        Action::Bid
    };
    let price = 100 + (uid * 7 + at * 13) % 5;
    Command::Place(Place::limit(
        (UserId(uid), OrderId(uid * 1_000_000 + at)),
        SymbolId(1),
        action,
        (price, 1 + at % 7),
    ))
}

/// A command as the publish stage saw it.
type Seen = (u64, Command, ResultCode, Vec<Event>);

fn placements() -> [Placement; 4] {
    [
        Placement::inline(),
        Placement::threads(1),
        Placement::threads(2),
        Placement::caller_and_threads(1, 1),
    ]
}

/// One client's work: calls, tickets waited for out of turn, batches. Gives sequence, command,
/// result and events of each.
fn trade(mut client: thalweg_exchange::service::Client, uid: i64) -> Vec<(u64, Seen)> {
    let mut got = Vec::new();
    let mut tickets: Vec<Ticket> = Vec::new();
    let number = u64::from(client.number());
    for round in 0..40 {
        let commands: Vec<Command> = (0..10).map(|at| order(uid, round * 10 + at)).collect();
        match round % 3 {
            0 => {
                for command in &commands {
                    let reply = client.call(command).expect("the service runs");
                    let seen = (
                        number,
                        command.clone(),
                        reply.result,
                        reply.events().to_vec(),
                    );
                    got.push((reply.sequence, seen));
                }
                continue;
            }
            1 => {
                for command in &commands {
                    tickets.push(client.submit(command).expect("the service runs"));
                }
            }
            _ => client
                .submit_batch(&commands, &mut tickets)
                .expect("the service runs"),
        }
        let mut replies = Vec::new();
        for (ticket, command) in tickets.drain(..).zip(&commands).rev() {
            let reply = ticket.wait().expect("the service runs");
            let seen = (
                number,
                command.clone(),
                reply.result,
                reply.events().to_vec(),
            );
            replies.push((reply.sequence, seen));
        }
        got.extend(replies.into_iter().rev());
    }
    got
}

#[test]
fn everyone_gets_the_answers_to_its_own_commands_in_order_and_once() {
    for placement in placements() {
        let seen: Arc<Mutex<Vec<Seen>>> = Arc::default();
        let record = Arc::clone(&seen);
        let options = SharedOptions {
            service: Options {
                placement: placement.clone(),
                capacity: 64,
                ..Options::default()
            },
            queue: 16,
            ..SharedOptions::default()
        };
        let service = SharedService::start(State::default(), options, move |outcome| {
            let mut record = record.lock().expect("no panic");
            assert_eq!(outcome.sequence, record.len() as u64);
            let events = outcome.events.to_vec();
            record.push((outcome.tag, outcome.command.clone(), outcome.result, events));
        })
        .expect("good options");
        let mut first = service.client();
        for command in market() {
            first.call(&command).expect("the service runs");
        }
        let threads: Vec<_> = (0..4)
            .map(|uid| {
                let client = first.clone();
                thread::spawn(move || trade(client, uid))
            })
            .collect();
        let replies: Vec<_> = threads
            .into_iter()
            .map(|thread| thread.join().expect("no panic"))
            .collect();
        let finished = service.join().expect("no failure");

        let seen = seen.lock().expect("no panic");
        assert_eq!(seen.len(), 2 + 4 * 400, "{placement}: once each");
        for got in &replies {
            assert_eq!(got.len(), 400);
            assert!(got.is_sorted_by(|a, b| a.0 < b.0), "{placement}: in order");
            for (sequence, reply) in got {
                assert_eq!(&seen[*sequence as usize], reply, "{placement}");
            }
        }
        let mut state = State::default();
        let mut events = Events::new();
        let mut trades = 0;
        for (_, command, result, told) in seen.iter() {
            assert_eq!(apply(&mut state, command, &mut events), *result);
            assert_eq!(&events[..], &told[..]);
            trades += told.len();
        }
        assert!(trades > 100);
        let hash = thalweg_exchange::report::state_text::state_hash;
        assert_eq!(hash(&state), hash(&finished.state));
    }
}

/// A service whose publish stage waits for a word before each command.
fn held(options: SharedOptions) -> (SharedService, Sender<()>) {
    let (go, wait): (_, Receiver<()>) = channel();
    let service = SharedService::start(State::default(), options, move |_| {
        // Nobody holds it any more once the sender is gone.
        let _ = wait.recv();
    });
    (service.expect("good options"), go)
}

#[test]
fn a_client_may_have_so_many_in_flight_and_no_more() {
    let options = SharedOptions {
        in_flight: 3,
        ..SharedOptions::default()
    };
    let (service, go) = held(options);
    let mut client = service.client();
    assert_eq!(client.in_flight_max(), 3);
    let mut tickets = Vec::new();
    let error = client
        .submit_batch(&[const { Command::Nop }; 5], &mut tickets)
        .expect_err("too many");
    assert_eq!(error, ClientError::TooManyInFlight { limit: 3 });
    assert_eq!(
        error.to_string(),
        "3 commands or replies of this client are in flight, its limit"
    );
    assert_eq!(tickets.len(), 3);
    assert_eq!(client.call(&Command::Nop).expect_err("still"), error);
    // Another client has its own.
    let other = client.clone().submit(&Command::Nop).expect("its first");
    drop(go);
    let last = tickets.pop().expect("three");
    let reply = last.wait().expect("the service runs");
    assert_eq!(reply.sequence, 2);
    drop(tickets);
    // The reply still has its place.
    let again = [(); 2].map(|()| client.submit(&Command::Nop).expect("two are free"));
    assert_eq!(client.submit(&Command::Nop).expect_err("no more"), error);
    drop(reply);
    client.call(&Command::Nop).expect("one is free");
    for ticket in again.into_iter().chain([other]) {
        assert_eq!(ticket.wait().expect("runs").result, ResultCode::Success);
    }
    let finished = service.join().expect("no failure");
    assert_eq!(finished.stats.stages[0].events, 7);
}

#[test]
fn a_full_service_says_so_and_loses_nothing_that_it_accepted() {
    let options = SharedOptions {
        service: Options {
            capacity: 4,
            placement: Placement::inline(),
            ..Options::default()
        },
        queue: 4,
        in_flight: 1_000,
        ..SharedOptions::default()
    };
    let (service, go) = held(options);
    let mut client = service.client();
    let mut tickets = Vec::new();
    let error = loop {
        match client.try_submit(&Command::Nop) {
            Ok(ticket) => tickets.push(ticket),
            Err(error) => break error,
        }
    };
    assert_eq!(error, ClientError::Full { limit: 4 });
    assert_eq!(
        error.to_string(),
        "the service is full: 4 commands wait in its queue, its limit"
    );
    assert!(tickets.len() >= 4);
    let waiting = tickets.remove(0).wait_timeout(Duration::from_millis(1));
    tickets.insert(0, waiting.expect_err("nobody lets it go"));
    // One who waits for room gets it.
    let mut other = client.clone();
    let blocked = thread::spawn(move || other.call(&Command::Nop).map(|reply| reply.result));
    drop(go);
    assert_eq!(blocked.join().expect("no panic"), Ok(ResultCode::Success));
    for (at, ticket) in tickets.into_iter().enumerate() {
        assert_eq!(ticket.wait().expect("accepted").sequence, at as u64);
    }
    service.join().expect("no failure");
}

#[test]
fn the_inbox_of_a_client_that_is_gone_is_used_again() {
    let service = SharedService::start(State::default(), SharedOptions::default(), |_| ())
        .expect("good options");
    let first = service.client();
    let second = service.client();
    assert_eq!((first.number(), second.number()), (0, 1));
    drop(first);
    assert_eq!(service.client().number(), 0);
    // But not while somebody may still read an answer there.
    let ticket = service.client().submit(&Command::Nop).expect("runs");
    assert_eq!(service.client().number(), 2);
    assert_eq!(ticket.wait().expect("runs").sequence, 0);
    assert_eq!(service.client().number(), 0);
}

#[test]
fn impossible_options_are_told_with_the_limit() {
    let start = |options| {
        SharedService::start(State::default(), options, |_| ())
            .expect_err("impossible")
            .to_string()
    };
    let default = SharedOptions::default;
    for in_flight in [0, IN_FLIGHT_MAX + 1] {
        assert_eq!(
            start(SharedOptions {
                in_flight,
                ..default()
            }),
            format!("{in_flight} commands in flight a client asked for; 1 to 65536 are possible")
        );
    }
    assert_eq!(
        start(SharedOptions {
            queue: 0,
            ..default()
        }),
        "a queue of 0 commands; it needs 1 at least"
    );
    let queue = usize::MAX;
    assert!(start(SharedOptions { queue, ..default() }).starts_with("the queue of the service: "));
    let service = Options {
        capacity: 0,
        ..Options::default()
    };
    assert_eq!(
        start(SharedOptions {
            service,
            ..default()
        }),
        "pipeline capacity 0 is outside 1 to 1073741824 events"
    );
}

#[test]
fn a_disconnect_is_told_to_its_user_as_a_mass_cancel_is() {
    let service = SharedService::start(State::default(), SharedOptions::default(), |_| ());
    let service = service.expect("valid options");
    let mut client = service.client();
    let mut call = |command: &Command| client.call(command).expect("it runs");
    market().iter().for_each(|command| {
        call(command);
    });
    let uid = UserId(1);
    for last in [
        Command::Disconnect { uid },
        Command::cancel_all(Some(uid), None),
    ] {
        let Command::Place(place) = order(1, 1) else {
            unreachable!("it makes orders");
        };
        let flags = place.flags.with_cancel_on_disconnect();
        call(&Command::Place(Place { flags, ..place }));
        let told: Vec<_> = call(&last).reports().collect();
        assert_eq!(told.len(), 1, "{last:?}");
        assert_eq!((told[0].owner, told[0].order), (uid, place.order_id));
    }
    drop(client);
    service.join().expect("nothing failed");
}
