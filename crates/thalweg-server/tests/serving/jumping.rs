//! A clock that jumps, seen by trading sessions.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use thalweg_exchange::codec::session::Hello;
use thalweg_exchange::execution::Execution;
use thalweg_exchange::session::Role;
use thalweg_exchange::{Action, Command, ConditionalOrder};
use thalweg_server::TimeSource;

use crate::client::{Client, hello, order};
use crate::test_server::{Place, TestServer};

/// The wall's time is set by the test; a second passes at each look, where the test permits it.
#[derive(Clone, Debug)]
pub(crate) struct JumpingClock {
    began: Instant,
    wall_s: Arc<AtomicI64>,
    permitted_s: Arc<AtomicU64>,
    passed_s: u64,
}

impl JumpingClock {
    fn new(wall_s: i64) -> JumpingClock {
        JumpingClock {
            began: Instant::now(),
            wall_s: Arc::new(AtomicI64::new(wall_s)),
            permitted_s: Arc::default(),
            passed_s: 0,
        }
    }

    fn set(&self, wall_s: i64) {
        // ORDERING: Relaxed, pairs with the load in now(); a number and nothing else.
        self.wall_s.store(wall_s, Ordering::Relaxed);
    }

    /// Lets that many seconds pass from now on, and then none.
    fn permit(&self, seconds: u64) {
        // ORDERING: Relaxed, pairs with the update in now(); a number and nothing else.
        self.permitted_s.store(seconds, Ordering::Relaxed);
    }
}

impl TimeSource for JumpingClock {
    fn now(&mut self) -> (SystemTime, Instant) {
        let one = |permitted: u64| permitted.checked_sub(1);
        // ORDERING: Relaxed, pairs with the store in permit(); a number and nothing else.
        let order = Ordering::Relaxed;
        let passed = self.permitted_s.fetch_update(order, order, one);
        self.passed_s += u64::from(passed.is_ok());
        // ORDERING: Relaxed, pairs with the store in set().
        let wall_s = self.wall_s.load(Ordering::Relaxed).cast_unsigned();
        let wall = UNIX_EPOCH + Duration::from_secs(wall_s);
        (wall, self.began + Duration::from_secs(self.passed_s))
    }
}

const START_S: i64 = 1_000_000;

/// Returns an order of user 1 that is good until this number of seconds after the start.
fn until(id: i64, after_s: i64) -> Command {
    let Command::Place(place) = order(1, id, Action::Bid, 10, 1) else {
        unreachable!("it is an order");
    };
    Command::PlaceConditional(Arc::new(
        ConditionalOrder::from(place).with_good_till((START_S + after_s) * 1_000),
    ))
}

#[track_caller]
fn expires(reader: &mut Client, id: i64) {
    let reports = [reader.report(), reader.report()].map(|numbered| numbered.report);
    let kinds = reports.map(|report| (report.order.0, report.kind));
    let ends = Execution::Expired { size: 1 };
    assert_eq!(kinds, [(id, Execution::New), (id, ends)]);
}

#[test]
fn orders_end_in_time_whatever_the_clock_on_the_wall_does() {
    let clock = JumpingClock::new(START_S);
    let mut server = TestServer::on(Place::Time(clock.clone()), |config| {
        config.exchange.clock_ms = 1;
    });
    server.set_market();
    let (mut client, _) = server.trade(1);
    let (mut reader, _) = Client::connect(server.trade_address(), hello(Role::Read, 1));
    // Back by days: the time goes on by itself.
    clock.set(10);
    client.submit(1, &until(1, 300));
    client.succeeds(1);
    clock.permit(301);
    expires(&mut reader, 1);
    clock.permit(0);
    // The server is started while the clock is behind.
    server.stop();
    server.start();
    let (mut client, _) = server.trade(1);
    let asked = Hello {
        last_report: None,
        ..hello(Role::Read, 1)
    };
    let (mut reader, _) = Client::connect(server.trade_address(), asked);
    client.submit(2, &until(2, 3_000));
    client.succeeds(2);
    clock.permit(2_701);
    expires(&mut reader, 2);
    clock.permit(0);
    // Ahead by a little: orders end.
    let (mut admin, _) = server.admin();
    clock.set(START_S + 3_010);
    client.submit(3, &until(3, 3_030));
    client.succeeds(3);
    clock.set(START_S + 3_050);
    expires(&mut reader, 3);
    // Ahead by years: they do not, and new ones are taken, until an administrator sets the time.
    client.submit(4, &until(4, 1_000_000));
    client.succeeds(4);
    clock.set(3 * START_S);
    clock.permit(10);
    client.submit(5, &until(5, 1_000_000));
    client.succeeds(5);
    let time = 1_000 * 3 * START_S;
    admin.submit(9, &Command::Clock { time });
    admin.succeeds(9);
    let mut ended = Vec::new();
    while ended.len() < 2 {
        let report = reader.report().report;
        if report.kind != Execution::New {
            ended.push((report.order.0, report.kind));
        }
    }
    let ends = Execution::Expired { size: 1 };
    assert_eq!(ended, [(4, ends), (5, ends)]);
}
