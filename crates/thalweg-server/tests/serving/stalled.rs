//! Clients that take nothing, or little, while much is owed to them.

use std::io::{Read, Write};
use std::thread;
use std::time::Duration;

use thalweg_exchange::codec::session::{Ending, Hello, QueryResult, SessionQuery};
use thalweg_exchange::event::Removal;
use thalweg_exchange::execution::{CancelReason, Execution};
use thalweg_exchange::session::{Refusal, Role};
use thalweg_exchange::{Action, OrderId, SymbolId, UserId};
use thalweg_server::config::Config;

use crate::client::{Client, Heard, hello, order, submit_of};
use crate::house::{House, Place, scratch};
use crate::limited::Limited;
use crate::owed::bound;

/// Orders of user 1, each on a level of its own, so that an answer with all of them is long.
const ORDERS: i64 = 500;
/// The number of answers with the book: much more than sockets hold, and less than may wait.
const ANSWERS: u64 = 60;
const BOOK_BYTES: usize = 32 + ORDERS as usize * 24;

const BOOK: SessionQuery = SessionQuery::Book {
    symbol: SymbolId(1),
    depth: u32::MAX,
};
const OWN_ORDERS: SessionQuery = SessionQuery::OpenOrders(UserId(1));

fn small_sockets(config: &mut Config) {
    config.sessions.socket_bytes = 4096;
    config.sessions.rate_per_s = 0;
}

/// Orders that another session of user 1 places.
fn place_many(house: &House) -> Client {
    let number = 7;
    let busy = Hello {
        number,
        ..hello(Role::Trade, 1)
    };
    let (mut busy, _) = Client::connect(house.trade_address(), busy);
    for id in 1..=ORDERS {
        busy.submit(id as u64, &order(1, 1_000 + id, Action::Bid, id, 1));
        busy.succeeds(id as u64);
    }
    busy
}

/// Asks for much and takes nothing, until the server can write no more to it.
fn stall(house: &House, client: &mut Client) {
    rustix::net::sockopt::set_socket_recv_buffer_size(&client.stream, 4096).expect("a buffer");
    for id in 1..=ANSWERS {
        client.query(id, BOOK);
    }
    let name = "thalweg_out_bytes ";
    loop {
        let (_, page) = house.get("/metrics");
        let line = page.lines().find_map(|line| line.strip_prefix(name));
        let waiting: f64 = line.and_then(|line| line.parse().ok()).expect("a figure");
        if waiting > (ANSWERS as usize * BOOK_BYTES / 2) as f64 {
            return;
        }
        thread::yield_now();
    }
}

fn of_session(number: u32) -> Hello<'static> {
    Hello {
        number,
        last_report: None,
        ..hello(Role::Trade, 1)
    }
}

#[test]
fn a_client_that_reads_slowly_and_steadily_is_not_cut() {
    let house = House::with_market(|config| {
        small_sockets(config);
        config.sessions.stall_ms = 3_000;
    });
    let _busy = place_many(&house);
    let (mut slow, _) = Client::connect(house.trade_address(), of_session(0));
    stall(&house, &mut slow);
    let mut left = ANSWERS as usize * BOOK_BYTES;
    while left > 0 {
        let mut some = [0; 1 << 14];
        let room = left.min(some.len());
        let count = slow.stream.read(&mut some[..room]).expect("it is open");
        assert_ne!(count, 0, "it was cut with {left} bytes to go");
        left -= count;
        thread::sleep(Duration::from_millis(4));
    }
}

#[test]
fn a_bye_does_not_come_within_another_frame() {
    let house = House::with_market(small_sockets);
    let _busy = place_many(&house);
    let (mut client, _) = Client::connect(house.trade_address(), of_session(0));
    stall(&house, &mut client);
    client.write(&[0; 8]);
    // The server has seen it before the client begins to read.
    house.serves();
    house.serves();
    loop {
        match client.hear_cut() {
            Some(Heard::QueryAnswer(told)) => {
                assert!(matches!(told.result, QueryResult::Book(_)), "{told:?}");
            }
            Some(Heard::Bye(why, _)) => assert_eq!(why, Ending::BadFrame),
            Some(Heard::Closed) | None => break,
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_connection_that_was_replaced_takes_no_commands_even_if_it_reads_nothing() {
    let house = House::with_market(small_sockets);
    let _busy = place_many(&house);
    let (mut older, _) = Client::connect(house.trade_address(), of_session(0));
    stall(&house, &mut older);
    let (mut newer, welcome) = Client::connect(house.trade_address(), of_session(0));
    assert_eq!(welcome.last_executed.0, 0);
    // It may be closed already.
    let late = submit_of(1, &order(1, 1, Action::Bid, 10, 1));
    let _ = older.stream.write_all(&late);
    for _ in 0..3 {
        house.serves();
    }
    newer.submit(1, &order(1, 2, Action::Bid, 10, 1));
    // An answer alone might be that of the other command with the number.
    assert_eq!(newer.report().report.order, OrderId(2));
}

#[test]
fn orders_go_with_a_stalled_session_when_the_server_stops() {
    let mut house = House::with_market(small_sockets);
    let _busy = place_many(&house);
    let asking = Hello {
        cancels_on_disconnect: true,
        ..of_session(0)
    };
    let (mut stalled, _) = Client::connect(house.trade_address(), asking);
    stalled.submit(1, &bound(1));
    stalled.succeeds(1);
    stall(&house, &mut stalled);
    house.stop();
    house.start();
    let (mut reader, _) = Client::connect(house.trade_address(), of_session(1));
    reader.query(1, OWN_ORDERS);
    let Heard::QueryAnswer(told) = reader.hear() else {
        panic!("an answer was expected");
    };
    let QueryResult::OpenOrders { orders, .. } = told.result else {
        panic!("orders were expected");
    };
    assert_eq!(orders.len(), ORDERS as usize);
    assert!(orders.iter().all(|order| order.order_id != OrderId(1)));
}

#[test]
fn orders_of_a_stalled_connection_go_before_the_one_that_replaces_it_has_some() {
    let house = House::with_market(small_sockets);
    let _busy = place_many(&house);
    let asking = Hello {
        cancels_on_disconnect: true,
        ..of_session(0)
    };
    let (mut older, _) = Client::connect(house.trade_address(), asking);
    older.submit(1, &bound(1));
    older.succeeds(1);
    stall(&house, &mut older);
    let (mut newer, _) = Client::connect(house.trade_address(), of_session(0));
    for _ in 0..3 {
        house.serves();
    }
    newer.submit(2, &bound(2));
    let told = [newer.report(), newer.report()].map(|told| (told.report.order, told.report.kind));
    let why = CancelReason::Removed(Removal::Disconnected);
    let gone = Execution::Cancelled { size: 1, why };
    assert_eq!(told, [(OrderId(1), gone), (OrderId(2), Execution::New)]);
}

#[test]
fn more_open_orders_than_may_wait_are_cut_and_the_client_is_not() {
    let house = House::with_market(|config| config.sessions.out_bytes_max = 1 << 14);
    let _busy = place_many(&house);
    let (mut client, _) = Client::connect(house.trade_address(), of_session(0));
    client.query(1, OWN_ORDERS);
    let Heard::QueryAnswer(told) = client.hear() else {
        panic!("an answer was expected");
    };
    let QueryResult::OpenOrders { orders, is_cut } = told.result else {
        panic!("orders were expected");
    };
    assert!(is_cut && !orders.is_empty(), "{} orders", orders.len());
    let room = (1 << 13) / 80;
    assert_eq!(orders.len(), room);
}

#[test]
fn one_list_of_open_orders_is_under_way_at_a_time() {
    let directory = scratch();
    let disk = Limited::new(&directory);
    let house = House::on(Place::Limited(disk.clone()), |_| {});
    house.set_market();
    let (mut client, _) = house.trade(1);
    // An answer comes behind the commands before it, which wait for the disk.
    let stuck = disk.stick();
    client.submit(1, &order(1, 1, Action::Bid, 10, 1));
    client.query(1, OWN_ORDERS);
    client.query(2, OWN_ORDERS);
    let Heard::QueryAnswer(told) = client.hear() else {
        panic!("a refusal was expected");
    };
    let refused = QueryResult::Refused(Refusal::InFlight { limit: 1 });
    assert_eq!((told.id, told.result), (2, refused));
    drop(stuck);
    client.succeeds(1);
    for id in [1, 3] {
        let told = loop {
            match client.hear() {
                Heard::QueryAnswer(told) => break told,
                Heard::Report(_) => {}
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(told.id, id);
        assert!(matches!(told.result, QueryResult::OpenOrders { .. }));
        client.query(3, OWN_ORDERS);
    }
    drop(house);
    let _ = std::fs::remove_dir_all(directory);
}
