//! A client's commands are submitted, executed and answered without allocation after warm-up; the
//! memory of long ones is given back.

use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use thalweg::pipeline::Placement;
use thalweg_exchange::market::{Builder, Epoch, Options};
use thalweg_exchange::service::{self, EVENTS_KEPT, Service, SharedOptions, SharedService};
use thalweg_exchange::{
    Action, Command, ConditionalOrder, OrderFlags, OrderId, OrderType, Place, State, SymbolId,
    UserId,
};

use crate::clients::{market, order};
use crate::counting::{held, so_far};

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

/// Four iceberg orders that show one lot in a thousand at a time, and one that takes them all: that
/// has 8,000 events.
fn sweep(round: i64) -> [Command; 5] {
    let place = |uid: i64, at: i64, action, size| Place {
        uid: UserId(uid),
        symbol: SymbolId(1),
        order_id: OrderId(1_000_000 + round * 5 + at),
        order_type: if at < 4 {
            OrderType::Gtc
        } else {
            OrderType::Ioc
        },
        action,
        price: 100,
        reserve_price: 100,
        size,
        flags: OrderFlags::NONE,
    };
    let sweep = Command::Place(place(1, 4, Action::Bid, 4_000));
    let iceberg = |at: i64| {
        let iceberg = ConditionalOrder {
            display: Some(1),
            ..place(at % 2 * 2, at, Action::Ask, 1_000).into()
        };
        Command::PlaceWith(iceberg.into())
    };
    [iceberg(0), iceberg(1), iceberg(2), iceberg(3), sweep]
}

/// What a slot or a place may keep above what it had at first, in bytes.
const KEPT_BYTES: i64 = EVENTS_KEPT as i64 * 64;

#[test]
fn slots_give_the_memory_of_long_commands_back() {
    const SLOTS: usize = 64;
    let options = service::Options {
        placement: Placement::inline(),
        capacity: SLOTS,
        ..service::Options::default()
    };
    let longest = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&longest);
    let mut service = Service::start(State::default(), options, move |outcome| {
        seen.fetch_max(outcome.events.len(), Ordering::Relaxed);
    })
    .expect("good options");
    service.submit_batch(&market(), |_| 0).expect("it runs");
    let mut run = |rounds: std::ops::Range<i64>| {
        for round in rounds {
            // An odd number, so that every slot has a turn.
            service.submit_batch(&sweep(round), |_| 0).expect("it runs");
        }
        service.drain().expect("it runs");
        held()
    };
    let before = run(0..1);
    let kept = run(1..1 + SLOTS as i64) - before;
    assert!(longest.load(Ordering::Relaxed) >= 7_990, "{longest:?}");
    assert!(kept <= SLOTS as i64 * KEPT_BYTES, "{kept} bytes");
}

#[test]
fn so_do_the_places_of_clients_read_or_not() {
    let options = SharedOptions::default();
    let slots = (options.service.capacity + options.in_flight) as i64;
    let driver = Arc::new(AtomicI64::new(0));
    let told = Arc::clone(&driver);
    let service = SharedService::start(State::default(), options, move |_| {
        told.store(held(), Ordering::Relaxed);
    })
    .expect("good options");
    let mut client = service.client();
    for command in market() {
        client.call(&command).expect("it runs");
    }
    let mut tickets = Vec::with_capacity(64);
    let mut longest = 0;
    let mut run = |rounds: std::ops::Range<i64>| {
        for round in rounds {
            let commands: Vec<Command> = (round * 12..round * 12 + 12).flat_map(sweep).collect();
            client
                .submit_batch(&commands, &mut tickets)
                .expect("it runs");
            for (at, ticket) in tickets.drain(..).enumerate() {
                match (round % 3, at % 10) {
                    // Not waited for, and mostly not answered yet.
                    (1, _) => drop(ticket),
                    // Answered, and not read.
                    (2, 4) => {
                        while !ticket.is_done() {
                            std::thread::yield_now();
                        }
                    }
                    _ => {
                        let reply = ticket.wait().expect("it runs");
                        longest = longest.max(reply.events().len());
                    }
                }
            }
            // Everything before it is answered.
            client.call(&Command::Nop).expect("it runs");
        }
        held() + driver.load(Ordering::Relaxed)
    };
    let before = run(0..1);
    let kept = run(1..6) - before;
    assert!(longest >= 7_990, "{longest}");
    assert!(kept <= slots * KEPT_BYTES, "{kept} bytes");
}
