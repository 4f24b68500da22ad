//! A client's commands are submitted, executed and answered without allocation after warm-up; the
//! memory of long ones is given back.

use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use thalweg::pipeline::Placement;
use thalweg_exchange::market::{Builder, Epoch, Options};
use thalweg_exchange::service::{
    self, EVENTS_IN_FLIGHT, EVENTS_KEPT, Service, SharedOptions, SharedService,
};
use thalweg_exchange::{
    Action, Command, ConditionalOrder, Events, OrderId, OrderType, Place, ResultCode, State,
    SymbolId, UserId, apply,
};
use thalweg_testkit::counting::{held, so_far};

use crate::service::clients::{market, order};

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
fn nor_does_it_where_every_command_is_stamped() {
    let defaults = SharedOptions::default();
    let service = service::Options {
        is_timed: true,
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
fn sweep(round: i64) -> Vec<Command> {
    sweep_of(round, 4)
}

/// The same of so many iceberg orders, 2,000 events each.
fn sweep_of(round: i64, icebergs: i64) -> Vec<Command> {
    let place = |uid: i64, at: i64, action, size| Place {
        order_type: if at < icebergs {
            OrderType::Gtc
        } else {
            OrderType::Ioc
        },
        ..Place::limit(
            (
                UserId(uid),
                OrderId(1_000_000 + round * (icebergs + 1) + at),
            ),
            SymbolId(1),
            action,
            (100, size),
        )
    };
    let iceberg = |at: i64| {
        let iceberg = ConditionalOrder {
            display: Some(1),
            ..place(at % 2 * 2, at, Action::Ask, 1_000).into()
        };
        Command::PlaceWith(iceberg.into())
    };
    let sweep = place(1, icebergs, Action::Bid, 1_000 * icebergs);
    let icebergs = (0..icebergs).map(iceberg);
    icebergs.chain([Command::Place(sweep)]).collect()
}

/// So many takers of 64,000 events each, one right after the other, and the orders for them.
fn long_ones(count: usize) -> (Vec<Command>, Vec<Command>) {
    let all = (0..count as i64).flat_map(|round| sweep_of(round, 32));
    all.partition(|command| matches!(command, Command::PlaceWith(_)))
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

/// Sweeps of 64,000 events each, three times as many as may be in flight, in one batch. The stages
/// run on this thread, so without a bound all of them are matched before the first is published.
#[test]
fn events_in_flight_are_bounded_however_late_they_are_published() {
    const SWEEPS: usize = 3 * EVENTS_IN_FLIGHT / 64_000;
    let options = service::Options {
        placement: Placement::inline(),
        capacity: 64,
        ..service::Options::default()
    };
    let [most, longest] = [(); 2].map(|()| Arc::new(AtomicI64::new(0)));
    let (held_most, seen) = (Arc::clone(&most), Arc::clone(&longest));
    let mut service = Service::start(State::default(), options, move |outcome| {
        held_most.fetch_max(held(), Ordering::Relaxed);
        seen.fetch_max(outcome.events.len() as i64, Ordering::Relaxed);
    })
    .expect("good options");
    service.submit_batch(&market(), |_| 0).expect("it runs");
    let (makers, takers) = long_ones(SWEEPS);
    service.submit_batch(&makers, |_| 0).expect("it runs");
    let before = held();
    most.store(before, Ordering::Relaxed);
    service.submit_batch(&takers, |_| 0).expect("it runs");
    service.join().expect("it runs");
    let longest = longest.load(Ordering::Relaxed);
    assert!(longest > 63_900, "{longest}");
    let bound = 2 * 64 * (EVENTS_IN_FLIGHT as i64 + longest) + 64 * KEPT_BYTES;
    let most = most.load(Ordering::Relaxed) - before;
    assert!(most <= bound, "{most} bytes, {bound} are the bound");
}

/// As many of them on stages that wait for each other's threads.
#[test]
fn sweeps_go_through_under_every_placement() {
    let (makers, takers) = long_ones(18);
    for placement in [
        Placement::threads(1),
        Placement::threads(2),
        Placement::caller_and_threads(1, 1),
    ] {
        let options = service::Options {
            placement,
            capacity: 64,
            ..service::Options::default()
        };
        let events = Arc::new(AtomicUsize::new(0));
        let sum = Arc::clone(&events);
        let mut service = Service::start(State::default(), options, move |outcome| {
            sum.fetch_add(outcome.events.len(), Ordering::Relaxed);
        })
        .expect("good options");
        service.submit_batch(&market(), |_| 0).expect("it runs");
        service.submit_batch(&makers, |_| 0).expect("it runs");
        service.submit_batch(&takers, |_| 0).expect("it runs");
        service.join().expect("it runs");
        assert!(events.load(Ordering::Relaxed) > EVENTS_IN_FLIGHT);
    }
}

/// What waits to be published is above the bound then, and what comes behind is executed after it.
#[test]
fn a_mass_cancel_of_more_than_may_be_in_flight_goes_through() {
    let (mut state, mut events) = (State::default(), Events::new());
    let orders = EVENTS_IN_FLIGHT as i64 + 10;
    let orders = (0..orders).map(|at| {
        let ids = (UserId(at % 4), OrderId(at));
        let terms = (100 + at % 50, 1);
        Command::Place(Place::limit(ids, SymbolId(1), Action::Ask, terms))
    });
    for command in market().into_iter().chain(orders) {
        let result = apply(&mut state, &command, &mut events);
        assert_eq!(result, ResultCode::Success);
    }
    let options = service::Options {
        placement: Placement::inline(),
        ..service::Options::default()
    };
    let longest = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&longest);
    let mut service = Service::start(state, options, move |outcome| {
        seen.fetch_max(outcome.events.len(), Ordering::Relaxed);
    })
    .expect("good options");
    let all = Command::cancel_all(None, None);
    let commands = [vec![all.clone()], sweep(0), vec![all]].concat();
    service.submit_batch(&commands, |_| 0).expect("it runs");
    service.join().expect("it runs");
    assert_eq!(longest.load(Ordering::Relaxed), EVENTS_IN_FLIGHT + 10);
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
