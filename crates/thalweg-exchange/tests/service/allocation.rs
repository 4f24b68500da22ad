//! A client's commands are submitted, executed and answered without allocation after warm-up.

use std::sync::{Arc, Mutex};

use thalweg_exchange::market::{Builder, Epoch, Options};
use thalweg_exchange::service::{self, SharedOptions, SharedService};
use thalweg_exchange::{Command, OrderId, State, SymbolId, UserId};

use crate::clients::{market, order};
use crate::counting::so_far;

/// The same orders again and again: they come, meet, and the rest is cancelled.
fn round(orders: i64) -> Vec<Command> {
    let cancel = |at: i64| Command::Cancel {
        uid: UserId(at % 4),
        symbol: SymbolId(1),
        order_id: OrderId(at % 4 * 1_000_000 + at),
    };
    let places = (0..orders).map(|at| order(at % 4, at));
    places.chain((0..orders).map(cancel)).collect()
}

#[test]
fn the_command_path_does_not_allocate_after_warm_up() {
    allocates_nothing(SharedOptions::default());
}

#[test]
fn nor_does_that_of_a_sharded_service() {
    let defaults = SharedOptions::default();
    let service = service::Options {
        risk_shards: 2,
        match_shards: 3,
        ..defaults.service
    };
    allocates_nothing(SharedOptions {
        service,
        ..defaults
    });
}

fn allocates_nothing(options: SharedOptions) {
    // What the driver's thread had allocated by the time each command was published.
    let driver: Arc<Mutex<Vec<u64>>> = Arc::new(Mutex::new(Vec::with_capacity(100_000)));
    let record = Arc::clone(&driver);
    let mut builder = Builder::new(Epoch(1), Options::default());
    let service = SharedService::start(State::default(), options, move |outcome| {
        let command = outcome.command;
        let events = outcome.events;
        let told = builder.apply(outcome.sequence, command, outcome.result, events);
        told.expect("in step");
        record.lock().expect("no panic").push(so_far());
    })
    .expect("good options");
    let mut client = service.client();
    for command in market() {
        client.call(&command).expect("it runs");
    }
    let commands = round(60);
    let mut tickets = Vec::with_capacity(commands.len());
    let mut run = |rounds: u32| {
        for _ in 0..rounds {
            for command in &commands {
                client.call(command).expect("it runs");
            }
            for piece in commands.chunks(40) {
                client.submit_batch(piece, &mut tickets).expect("it runs");
                for ticket in tickets.drain(..) {
                    ticket.wait().expect("it runs");
                }
            }
        }
    };
    run(20);
    let warm = driver.lock().expect("no panic").len();
    let before = so_far();
    run(20);
    let calls = so_far() - before;
    drop(service.join().expect("no failure"));
    let driver = driver.lock().expect("no panic");
    assert!(driver.len() > warm + 1_000);
    assert_eq!(calls, 0, "by the client");
    assert_eq!(driver[driver.len() - 1] - driver[warm], 0, "by the driver");
}
