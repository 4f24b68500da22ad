//! A service that goes on where another ended gives the numbers that one service would have given.

use std::sync::{Arc, Mutex};

use thalweg::pipeline::Placement;
use thalweg_exchange::digest::Digest;
use thalweg_exchange::execution::ExecutionReport;
use thalweg_exchange::service::{Query, Service, ServiceOptions, SharedOptions, SharedService};
use thalweg_exchange::{Command, State, UserId};

use crate::service::clients::{market, order};

type Reports = Vec<(u64, Vec<ExecutionReport>)>;

fn commands() -> Vec<Command> {
    let orders = (0..60).map(|at| order(at % 3, at));
    market().into_iter().chain(orders).collect()
}

fn options(placement: Placement) -> ServiceOptions {
    ServiceOptions {
        placement,
        ..ServiceOptions::default()
    }
}

fn run(
    commands: &[Command],
    state: State,
    options: ServiceOptions,
    (reported, digest): (&mut Reports, &mut Digest),
) -> State {
    let list = Arc::new(Mutex::new((Reports::new(), *digest)));
    let publish = Arc::clone(&list);
    let end = options.first_sequence + commands.len() as u64;
    let mut service = Service::start(state, options, move |outcome| {
        let reports = outcome.reports().collect();
        let (list, digest) = &mut *publish.lock().expect("no panic");
        digest.fold(outcome.command, outcome.result, outcome.events);
        list.push((outcome.sequence, reports));
    })
    .expect("good options");
    for command in commands {
        service.submit(command, 0).expect("it runs");
        service.query(Query::User(UserId(1))).expect("it runs");
    }
    let answered = service.query(Query::Totals).expect("it runs");
    assert_eq!(answered.sequence, end);
    let finished = service.join().expect("no failure");
    let (list, folded) = &mut *list.lock().expect("no panic");
    reported.append(list);
    *digest = *folded;
    finished.state
}

#[test]
fn numbers_go_on_where_the_service_before_ended() {
    let commands = commands();
    for placement in [Placement::inline(), Placement::threads(2)] {
        let options = options(placement);
        let (mut whole, mut parts) = (Reports::new(), Reports::new());
        let (mut once, mut twice) = (Digest::new(), Digest::new());
        let state = State::default();
        run(
            &commands,
            state.clone(),
            options.clone(),
            (&mut whole, &mut once),
        );
        let (before, after) = commands.split_at(31);
        let state = run(before, state, options.clone(), (&mut parts, &mut twice));
        let second = ServiceOptions {
            first_sequence: 31,
            ..options
        };
        run(after, state, second, (&mut parts, &mut twice));
        assert_eq!(parts, whole);
        assert_eq!(twice, once);
        let trades = |(_, reports): &(u64, Vec<ExecutionReport>)| reports.len() > 1;
        assert!(whole[31..].iter().any(trades), "trade ids were compared");
    }
}

#[test]
fn so_do_those_of_replies() {
    let service = ServiceOptions {
        first_sequence: 1 << 63,
        ..options(Placement::inline())
    };
    let options = SharedOptions {
        service,
        ..SharedOptions::default()
    };
    let service = SharedService::start(State::default(), options, |_| ()).expect("good options");
    let mut client = service.client();
    for (at, command) in commands().iter().enumerate() {
        let reply = client.call(command).expect("it runs");
        assert_eq!(reply.sequence, (1 << 63) + at as u64);
        assert!(
            reply
                .reports()
                .all(|report| report.command == reply.sequence)
        );
    }
    service.join().expect("no failure");
}
