//! Commands are executed and published without allocation after warm-up, and a client's command
//! allocates its reply; the memory of long ones is given back.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};

use thalweg::pipeline::Placement;
use thalweg_exchange::market::{Builder, Channels, Epoch};
use thalweg_exchange::service::{
    self, EVENTS_IN_FLIGHT, EVENTS_KEPT, Service, SharedOptions, SharedService,
};
use thalweg_exchange::{
    Action, Command, ConditionalOrder, Events, OrderId, OrderType, Place, ResultCode, Rules, State,
    SymbolId, UserId, apply,
};
use thalweg_testkit::counting::{held, so_far};

use crate::service::clients::{market, order};

/// Returns a state in which one command may have any number of events.
fn unbounded() -> State {
    State::new(Rules {
        bound_work: false,
        ..Rules::default()
    })
}

/// Orders that come, meet, and are cancelled, so that a round may be repeated.
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
    allocates_nothing(false);
}

#[test]
fn nor_does_it_where_every_command_is_stamped() {
    allocates_nothing(true);
}

fn allocates_nothing(is_timed: bool) {
    let options = service::ServiceOptions {
        placement: Placement::inline(),
        is_timed,
        levels: true,
        ..service::ServiceOptions::default()
    };
    let mut builder = Builder::new(Epoch(1), Channels::default());
    let mut service = Service::start(unbounded(), options, move |outcome| {
        let command = outcome.command;
        let events = outcome.events;
        let messages = builder.apply(outcome.sequence, command, outcome.result, events);
        messages.expect("in step");
    })
    .expect("good options");
    service.submit_batch(&market(), |_| 0).expect("it runs");
    let commands = round(60);
    let mut run = |rounds: u32| {
        let before = so_far();
        for _ in 0..rounds {
            for command in &commands {
                service.submit(command, 0).expect("it runs");
            }
            for piece in commands.chunks(40) {
                service.submit_batch(piece, |_| 0).expect("it runs");
            }
            service.drain().expect("it runs");
        }
        so_far() - before
    };
    run(40);
    assert_eq!(run(20), 0);
}

/// Counts calls of the allocator, a reply's allocation and its release. The client allocates the
/// reply, the driver its events; the client releases the events, and either of them the reply.
#[test]
fn a_client_s_command_allocates_its_reply_and_the_events_of_that() {
    const ROUNDS: u64 = 20;
    let driver = Arc::new(AtomicU64::new(0));
    let record = Arc::clone(&driver);
    let service = SharedService::start(unbounded(), SharedOptions::default(), move |_| {
        // ORDERING: Relaxed; the reply that is sent after it orders it.
        record.store(so_far(), Ordering::Relaxed);
    })
    .expect("good options");
    let mut client = service.client();
    for command in market() {
        client.call(&command).expect("it runs");
    }
    let commands = round(60);
    let mut pending = Vec::with_capacity(commands.len());
    let mut run = || {
        let client_before = so_far();
        // ORDERING: Relaxed, as above.
        let driver_before = driver.load(Ordering::Relaxed);
        for _ in 0..ROUNDS {
            for command in &commands {
                client.call(command).expect("it runs");
            }
            client
                .submit_batch(&commands, &mut pending)
                .expect("it runs");
            for reply in pending.drain(..) {
                reply.wait().expect("it runs");
            }
        }
        // ORDERING: Relaxed, as above.
        let driver = driver.load(Ordering::Relaxed) - driver_before;
        (so_far() - client_before, driver)
    };
    run();
    let (by_client, by_driver) = run();
    let commands = ROUNDS * 2 * commands.len() as u64;
    assert!(by_client <= 3 * commands, "{by_client}");
    assert!(by_driver <= 2 * commands, "{by_driver}");
    service.join().expect("no failure");
}

/// Four iceberg orders that show one lot in a thousand at a time, and one that takes them all: that
/// has 8,000 events.
fn sweep(round: i64) -> Vec<Command> {
    sweep_of(round, 4)
}

/// A sweep of a number of iceberg orders, 2,000 events each.
fn sweep_of(round: i64, icebergs: i64) -> Vec<Command> {
    let place = |uid: i64, at: i64, action, size| {
        Place::limit(
            (
                UserId(uid),
                OrderId(1_000_000 + round * (icebergs + 1) + at),
            ),
            SymbolId(1),
            action,
            (100, size),
        )
        .with_type(if at < icebergs {
            OrderType::Gtc
        } else {
            OrderType::Ioc
        })
    };
    let iceberg = |at: i64| {
        let iceberg =
            ConditionalOrder::from(place(at % 2 * 2, at, Action::Ask, 1_000)).with_display(1);
        Command::PlaceConditional(iceberg.into())
    };
    let sweep = place(1, icebergs, Action::Bid, 1_000 * icebergs);
    let icebergs = (0..icebergs).map(iceberg);
    icebergs.chain([Command::Place(sweep)]).collect()
}

/// A number of takers of 64,000 events each, in a row, and the orders that they take.
fn long_ones(count: usize) -> (Vec<Command>, Vec<Command>) {
    let all = (0..count as i64).flat_map(|round| sweep_of(round, 32));
    all.partition(|command| matches!(command, Command::PlaceConditional(_)))
}

/// The memory that a slot may keep above its first, in bytes.
const KEPT_BYTES: i64 = EVENTS_KEPT as i64 * 64;

#[test]
fn slots_give_the_memory_of_long_commands_back() {
    const SLOTS: usize = 64;
    let options = service::ServiceOptions {
        placement: Placement::inline(),
        capacity: SLOTS,
        ..service::ServiceOptions::default()
    };
    let longest = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&longest);
    let mut service = Service::start(unbounded(), options, move |outcome| {
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
    let options = service::ServiceOptions {
        placement: Placement::inline(),
        capacity: 64,
        ..service::ServiceOptions::default()
    };
    let [most, longest] = [(); 2].map(|()| Arc::new(AtomicI64::new(0)));
    let (held_most, seen) = (Arc::clone(&most), Arc::clone(&longest));
    let mut service = Service::start(unbounded(), options, move |outcome| {
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
        let options = service::ServiceOptions {
            placement,
            capacity: 64,
            ..service::ServiceOptions::default()
        };
        let events = Arc::new(AtomicUsize::new(0));
        let sum = Arc::clone(&events);
        let mut service = Service::start(unbounded(), options, move |outcome| {
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

/// The events to be published are above the bound then, and the next command is executed after it.
#[test]
fn a_mass_cancel_of_more_than_may_be_in_flight_goes_through() {
    let (mut state, mut events) = (unbounded(), Events::new());
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
    let options = service::ServiceOptions::placed(Placement::inline());
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
