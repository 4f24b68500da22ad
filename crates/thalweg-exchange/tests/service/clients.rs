//! Several clients of one service: each gets the replies to its own commands.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use thalweg::pipeline::Placement;
use thalweg_exchange::service::{
    Client, ClientError, Pending, Reply, ServiceOptions, SharedOptions, SharedService,
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

/// A command, its result and its events.
type Seen = (Command, ResultCode, Vec<Event>);

fn placements() -> [Placement; 4] {
    [
        Placement::inline(),
        Placement::threads(1),
        Placement::threads(2),
        Placement::caller_and_threads(1, 1),
    ]
}

/// One client's work: calls, replies received in another order, batches. Returns each command with
/// its number.
fn trade(mut client: Client, uid: i64) -> Vec<(u64, Seen)> {
    let seen = |command: &Command, reply: &Reply| {
        let seen = (command.clone(), reply.result, reply.events().to_vec());
        (reply.sequence, seen)
    };
    let mut got = Vec::new();
    let mut pending: Vec<Pending<Reply>> = Vec::new();
    for round in 0..40 {
        let commands: Vec<Command> = (0..10).map(|at| order(uid, round * 10 + at)).collect();
        match round % 3 {
            0 => {
                for command in &commands {
                    let reply = client.call(command).expect("the service runs");
                    got.push(seen(command, &reply));
                }
                continue;
            }
            1 => {
                for command in &commands {
                    pending.push(client.submit(command).expect("the service runs"));
                }
            }
            _ => client
                .submit_batch(&commands, &mut pending)
                .expect("the service runs"),
        }
        let mut replies = Vec::new();
        for (reply, command) in pending.drain(..).zip(&commands).rev() {
            replies.push(seen(command, &reply.wait().expect("the service runs")));
        }
        got.extend(replies.into_iter().rev());
    }
    got
}

#[test]
fn every_client_gets_the_replies_to_its_own_commands_in_order_and_once() {
    for placement in placements() {
        let seen: Arc<Mutex<Vec<Seen>>> = Arc::default();
        let record = Arc::clone(&seen);
        let options = SharedOptions {
            service: ServiceOptions {
                placement: placement.clone(),
                capacity: 64,
                ..ServiceOptions::default()
            },
            queue: 16,
            ..SharedOptions::default()
        };
        let service = SharedService::start(State::default(), options, move |outcome| {
            let mut record = record.lock().expect("no panic");
            assert_eq!(outcome.sequence, record.len() as u64);
            let events = outcome.events.to_vec();
            record.push((outcome.command.clone(), outcome.result, events));
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
        for (command, result, published) in seen.iter() {
            assert_eq!(apply(&mut state, command, &mut events), *result);
            assert_eq!(&events[..], &published[..]);
            trades += published.len();
        }
        assert!(trades > 100);
        let hash = thalweg_exchange::report::state_text::state_text_hash;
        assert_eq!(hash(&state), hash(&finished.state));
    }
}

/// A service whose publish stage waits for a message before each command.
fn held(options: SharedOptions) -> (SharedService, Sender<()>) {
    let (go, wait): (_, Receiver<()>) = channel();
    let service = SharedService::start(State::default(), options, move |_| {
        // It is not held any more once the sender is gone.
        let _ = wait.recv();
    });
    (service.expect("good options"), go)
}

#[test]
fn a_full_service_says_so_and_loses_nothing_that_it_accepted() {
    let options = SharedOptions {
        service: ServiceOptions {
            capacity: 4,
            placement: Placement::inline(),
            ..ServiceOptions::default()
        },
        queue: 4,
        ..SharedOptions::default()
    };
    let (service, go) = held(options);
    let mut client = service.client();
    let mut pending = Vec::new();
    let error = loop {
        match client.try_submit(&Command::Nop) {
            Ok(reply) => pending.push(reply),
            Err(error) => break error,
        }
    };
    assert_eq!(error, ClientError::Full { limit: 4 });
    assert_eq!(
        error.to_string(),
        "the service is full: 4 commands wait in its queue, its limit"
    );
    // Between the queue and the pipeline are 64 at most.
    assert!((4..=4 + 64 + 4).contains(&pending.len()));
    assert!(!pending[0].is_done());
    assert!(pending[0].wait_timeout(Duration::from_millis(1)).is_none());
    // A client that waits for room gets it.
    let mut other = client.clone();
    let blocked = thread::spawn(move || other.call(&Command::Nop).map(|reply| reply.result));
    drop(go);
    assert_eq!(blocked.join().expect("no panic"), Ok(ResultCode::Success));
    for (at, reply) in pending.into_iter().enumerate() {
        assert_eq!(reply.wait().expect("accepted").sequence, at as u64);
    }
    service.join().expect("no failure");
}

#[test]
fn a_command_whose_reply_is_dropped_is_executed() {
    let (service, go) = held(SharedOptions::default());
    let mut client = service.client();
    for _ in 0..3 {
        drop(client.submit(&Command::Nop).expect("it runs"));
    }
    drop(client);
    drop(go);
    let finished = service.join().expect("no failure");
    assert_eq!(finished.stats.stages[0].events, 3);
}

#[test]
fn impossible_options_are_refused_with_the_limit() {
    let start = |options| {
        SharedService::start(State::default(), options, |_| ())
            .expect_err("impossible")
            .to_string()
    };
    let default = SharedOptions::default;
    assert_eq!(
        start(SharedOptions {
            queue: 0,
            ..default()
        }),
        "a queue of 0 commands; it needs 1 at least"
    );
    let queue = usize::MAX;
    assert!(start(SharedOptions { queue, ..default() }).starts_with("the queue of the service: "));
    let service = ServiceOptions {
        capacity: 0,
        ..ServiceOptions::default()
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
fn a_disconnect_is_reported_to_its_user_as_a_mass_cancel_is() {
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
        let reports: Vec<_> = call(&last).reports().collect();
        assert_eq!(reports.len(), 1, "{last:?}");
        assert_eq!((reports[0].owner, reports[0].order), (uid, place.order_id));
    }
    drop(client);
    service.join().expect("nothing failed");
}
