//! Questions to an exchange that runs: the answers are the state between two commands.

use std::sync::{Arc, Mutex};
use std::thread;

use thalweg_exchange::digest::Digest;
use thalweg_exchange::execution::Execution;
use thalweg_exchange::report::{BookReport, book_report, currency_totals, orders_of};
use thalweg_exchange::service::{
    Answered, ClientError, Query, QueryReply, Service, ServiceOptions, SharedOptions, SharedService,
};
use thalweg_exchange::{
    Action, Command, ConditionalOrder, Events, Place, State, SymbolId, UserId, apply,
};

use crate::service::clients::{market, order};
use crate::service::placements;

/// Every placement.
fn all() -> Vec<ServiceOptions> {
    let options = |placement| ServiceOptions {
        capacity: 64,
        placement,
        ..ServiceOptions::default()
    };
    placements().into_iter().map(options).collect()
}

fn all_of(user: i64) -> Query {
    Query::OpenOrders {
        user: UserId(user),
        most: usize::MAX,
    }
}

fn queries() -> Vec<Query> {
    vec![
        Query::User(UserId(1)),
        Query::User(UserId(77)),
        all_of(2),
        all_of(77),
        Query::Book {
            symbol: SymbolId(1),
            depth: 3,
        },
        Query::Book {
            symbol: SymbolId(9),
            depth: 3,
        },
        Query::Totals,
    ]
}

/// Returns the state's own answer, as text.
fn expected(state: &State, query: Query) -> String {
    let answer = match query {
        Query::User(uid) => {
            (state.risk.user(uid).cloned()).map_or(QueryReply::UnknownUser(uid), QueryReply::User)
        }
        Query::OpenOrders { user: uid, .. } if state.risk.user(uid).is_none() => {
            QueryReply::UnknownUser(uid)
        }
        Query::OpenOrders { user, .. } => QueryReply::OpenOrders(orders_of(state, user)),
        Query::Book { symbol, depth } => book_report(state, symbol, depth)
            .map_or(QueryReply::UnknownSymbol(symbol), QueryReply::Book),
        _ => QueryReply::Totals(currency_totals(state)),
    };
    text(&answer)
}

fn text(answer: &QueryReply) -> String {
    match answer {
        // Where a record is kept is no part of it.
        QueryReply::User(user) => {
            let balances: Vec<_> = user.balances().collect();
            format!(
                "{} {:?} {balances:?} {:?}",
                user.uid,
                user.status,
                user.waiting()
            )
        }
        other => format!("{other:?}"),
    }
}

fn stop(uid: i64, id: i64) -> Command {
    let Command::Place(place) = order(uid, id) else {
        unreachable!("it is an order")
    };
    let place = Place {
        price: 100,
        reserve_price: 100,
        ..place
    };
    let trigger = Some(if place.action == Action::Ask {
        1
    } else {
        1_000
    });
    Command::PlaceConditional(
        ConditionalOrder {
            trigger,
            ..place.into()
        }
        .into(),
    )
}

fn commands() -> Vec<Command> {
    let mut commands: Vec<Command> = market().into();
    for at in 0..40 {
        commands.extend((0..4).map(|uid| order(uid, at)));
        commands.push(stop(at % 4, 10_000 + at));
    }
    commands
}

#[test]
fn answers_are_the_state_between_two_commands() {
    let commands = commands();
    for options in all() {
        let mut service =
            Service::start(State::default(), options.clone(), |_| ()).expect("good options");
        let (mut state, mut events) = (State::default(), Events::new());
        let mut sequence = 0;
        for piece in commands.chunks(7) {
            service.submit_batch(piece, |_| 0).expect("it runs");
            for command in piece {
                apply(&mut state, command, &mut events);
                sequence += 1;
            }
            for query in queries() {
                let Answered {
                    sequence: at,
                    answer,
                } = service.query(query).expect("it runs");
                assert_eq!(at, sequence);
                assert_eq!(
                    text(&answer),
                    expected(&state, query),
                    "{query:?} {options:?}"
                );
            }
        }
        let seen = service.join().expect("no stage panics");
        assert_eq!(currency_totals(&seen.state), currency_totals(&state));
    }
}

#[test]
fn queries_have_no_numbers_and_no_callback_sees_them() {
    for options in all() {
        let digests = [false, true].map(|asks| {
            let mut next = 0;
            let digest = Arc::new(Mutex::new(Digest::new()));
            let folded = Arc::clone(&digest);
            let check = move |outcome: thalweg_exchange::service::Outcome<'_>| {
                assert_eq!((outcome.sequence, outcome.tag), (next, next));
                next += 1;
                let mut digest = folded.lock().expect("no panic");
                digest.fold(outcome.command, outcome.result, outcome.events);
            };
            let mut service =
                Service::start(State::default(), options.clone(), check).expect("good options");
            for (at, command) in (0..).zip(&commands()) {
                service.submit(command, at).expect("it runs");
                if asks {
                    service.query(Query::Totals).expect("it runs");
                }
            }
            service.join().expect("no stage panics");
            *digest.lock().expect("no panic")
        });
        assert_eq!(digests[0], digests[1]);
    }
}

/// Users trade as fast as they can, while another asks: every answer adds up.
#[test]
fn answers_under_load_are_consistent() {
    for options in all() {
        let options = SharedOptions {
            service: options,
            queue: 16,
            ..SharedOptions::default()
        };
        let service =
            SharedService::start(State::default(), options, |_| ()).expect("good options");
        let mut client = service.client();
        for command in market() {
            client.call(&command).expect("it runs");
        }
        let traders: Vec<_> = (0..2)
            .map(|uid| {
                let mut client = service.client();
                thread::spawn(move || {
                    for at in 0..300 {
                        let reply = client.call(&order(uid, at)).expect("it runs");
                        let first = reply.reports().next().expect("its order is reported");
                        assert_eq!((first.kind, first.owner), (Execution::New, UserId(uid)));
                        assert!(reply.reports().all(|report| report.owner == UserId(uid)));
                    }
                })
            })
            .collect();
        let mut last = 0;
        let mut rounds = 0;
        while rounds < 20 || traders.iter().any(|trader| !trader.is_finished()) {
            rounds += 1;
            let submitted = queries()
                .into_iter()
                .map(|query| client.submit_query(query));
            let pending: Vec<_> = submitted.map(|answer| answer.expect("it runs")).collect();
            for answer in pending {
                let Answered { sequence, answer } = answer.wait().expect("it runs");
                assert!(sequence >= last, "time goes on");
                last = sequence;
                match answer {
                    QueryReply::Totals(totals) => {
                        assert!(totals.iter().all(|total| total.sum() == 0), "{totals:?}");
                    }
                    QueryReply::Book(BookReport { asks, bids }) => {
                        let best = (bids.first(), asks.first());
                        let is_crossed =
                            matches!(best, (Some(bid), Some(ask)) if bid.price >= ask.price);
                        assert!(!is_crossed, "{best:?}");
                    }
                    QueryReply::OpenOrders(orders) => assert!(orders.is_empty(), "user 2 has none"),
                    QueryReply::User(user) => assert_eq!(user.uid, UserId(1)),
                    QueryReply::UnknownUser(uid) => assert_eq!(uid, UserId(77)),
                    QueryReply::UnknownSymbol(symbol) => assert_eq!(symbol, SymbolId(9)),
                    other => panic!("{other:?}"),
                }
            }
        }
        for trader in traders {
            trader.join().expect("no panic");
        }
        assert_eq!(client.query(Query::Totals).expect("it runs").sequence, 602);
        service.join().expect("no stage panics");
        let error = client.query(Query::Totals).expect_err("it has ended");
        assert_eq!(error, ClientError::Closed);
    }
}

#[test]
fn a_query_whose_answer_is_dropped_holds_nothing_up() {
    for service in all() {
        let options = SharedOptions {
            service,
            queue: 2,
            ..SharedOptions::default()
        };
        let service = SharedService::start(State::default(), options, |_| ());
        let service = service.expect("good options");
        let mut client = service.client();
        for at in 0..100 {
            drop(client.submit_query(Query::Totals).expect("it runs"));
            drop(client.query_async(Query::Totals));
            assert_eq!(client.call(&Command::Nop).expect("it runs").sequence, at);
            let kept = client.submit_query(Query::Totals).expect("it runs");
            assert_eq!(kept.wait().expect("it runs").sequence, at + 1);
        }
        service.join().expect("no failure");
    }
}
