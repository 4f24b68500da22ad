//! Clients that take nothing, or little, while much waits for them.

use std::io::{Read, Write};
use std::thread;
use std::time::{Duration, Instant};

use thalweg_exchange::codec::session::{CloseReason, Hello, OpenOrder, QueryResult, SessionQuery};
use thalweg_exchange::event::RemovalReason;
use thalweg_exchange::execution::{CancelReason, Execution};
use thalweg_exchange::session::{Refusal, Role};
use thalweg_exchange::{Action, OrderId, SymbolId, UserId};
use thalweg_server::config::Config;

use crate::client::{Client, Received, hello, order, submit_of};
use crate::deferred_cancels::bound;
use crate::limited::Limited;
use crate::silence::in_time;
use crate::test_server::{Place, TestServer, scratch};

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
    // No test is so slow that a client is cut by chance.
    config.sessions.stall_ms = 3_600_000;
}

/// Orders that another session of user 1 places.
fn place_many(server: &TestServer) -> Client {
    let number = 7;
    let busy = Hello {
        number,
        ..hello(Role::Trade, 1)
    };
    let (mut busy, _) = Client::connect(server.trade_address(), busy);
    for id in 1..=ORDERS {
        busy.submit(id as u64, &order(1, 1_000 + id, Action::Bid, id, 1));
        busy.succeeds(id as u64);
    }
    busy
}

/// Asks for much and takes nothing, until the server can write no more to it.
fn stall(server: &TestServer, client: &mut Client) {
    rustix::net::sockopt::set_socket_recv_buffer_size(&client.stream, 4096).expect("a buffer");
    for id in 1..=ANSWERS {
        client.query(id, BOOK);
    }
    let name = "thalweg_out_bytes ";
    loop {
        let (_, page) = server.get("/metrics");
        let line = page.lines().find_map(|line| line.strip_prefix(name));
        let waiting: f64 = line.and_then(|line| line.parse().ok()).expect("a metric");
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

/// Returns a stalled client with an order that goes with its connection.
fn stalled_with_an_order(server: &TestServer) -> Client {
    let asking = Hello {
        cancels_on_disconnect: true,
        ..of_session(0)
    };
    let (mut client, _) = Client::connect(server.trade_address(), asking);
    client.submit(1, &bound(1));
    client.succeeds(1);
    stall(server, &mut client);
    client
}

/// Returns the open orders of user 1, and whether there are more.
fn own_orders(client: &mut Client) -> (Vec<OpenOrder>, bool) {
    client.query(1, OWN_ORDERS);
    let Received::QueryAnswer(answer) = client.receive() else {
        panic!("an answer was expected");
    };
    let QueryResult::OpenOrders { orders, is_cut } = answer.result else {
        panic!("orders were expected");
    };
    (orders, is_cut)
}

#[test]
fn a_client_that_reads_slowly_and_steadily_is_not_cut() {
    in_time(read_slowly);
}

/// Reads slowly and steadily all that waits.
///
/// # Errors
/// The server has cut the client, which may have stalled: this thread had no core.
fn read_slowly() -> Result<(), Duration> {
    let stall_ms = 3_000;
    let server = TestServer::with_market(|config| {
        small_sockets(config);
        config.sessions.stall_ms = stall_ms;
    });
    let _busy = place_many(&server);
    let (mut slow, _) = Client::connect(server.trade_address(), of_session(0));
    let mut last = Instant::now();
    stall(&server, &mut slow);
    let bytes = ANSWERS as usize * BOOK_BYTES;
    // It takes longer than it may stall.
    let (began, took) = (Instant::now(), Duration::from_millis(stall_ms * 3 / 2));
    let (mut left, mut longest) = (bytes, Duration::ZERO);
    while left > 0 {
        let mut some = [0; 1 << 12];
        let room = left.min(some.len());
        // As long as the server sends nothing, this client does not stall.
        longest = longest.max(last.elapsed());
        let read = slow.stream.read(&mut some[..room]);
        last = Instant::now();
        let count = match read {
            Ok(count) if count > 0 => count,
            _ if longest > Duration::from_millis(stall_ms / 2) => return Err(longest),
            read => panic!("it was cut with {left} bytes to go: {read:?}"),
        };
        left -= count;
        let due = took.mul_f64(1.0 - left as f64 / bytes as f64);
        #[expect(clippy::disallowed_methods)] // a client that reads steadily is tested
        thread::sleep(due.saturating_sub(began.elapsed()));
    }
    Ok(())
}

#[test]
fn a_bye_does_not_come_within_another_frame() {
    let server = TestServer::with_market(small_sockets);
    let _busy = place_many(&server);
    let (mut client, _) = Client::connect(server.trade_address(), of_session(0));
    stall(&server, &mut client);
    client.write(&[0; 8]);
    // The server has seen it before the client begins to read.
    server.serves();
    server.serves();
    loop {
        match client.receive_cut() {
            Some(Received::QueryAnswer(answer)) => {
                assert!(matches!(answer.result, QueryResult::Book(_)), "{answer:?}");
            }
            Some(Received::Bye(why, _)) => assert_eq!(why, CloseReason::BadFrame),
            Some(Received::Closed) | None => break,
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_connection_that_was_replaced_takes_no_commands_even_if_it_reads_nothing() {
    let server = TestServer::with_market(small_sockets);
    let _busy = place_many(&server);
    let (mut older, _) = Client::connect(server.trade_address(), of_session(0));
    stall(&server, &mut older);
    let (mut newer, welcome) = Client::connect(server.trade_address(), of_session(0));
    assert_eq!(welcome.last_executed.0, 0);
    // It may be closed already.
    let late = submit_of(1, &order(1, 1, Action::Bid, 10, 1));
    let _ = older.stream.write_all(&late);
    for _ in 0..3 {
        server.serves();
    }
    newer.submit(1, &order(1, 2, Action::Bid, 10, 1));
    // An answer alone might be that of the other command with the number.
    assert_eq!(newer.report().report.order, OrderId(2));
}

#[test]
fn orders_go_with_a_stalled_session_when_the_server_stops() {
    let mut server = TestServer::with_market(small_sockets);
    let _busy = place_many(&server);
    let _stalled = stalled_with_an_order(&server);
    server.stop();
    server.start();
    let (mut reader, _) = Client::connect(server.trade_address(), of_session(1));
    let (orders, _) = own_orders(&mut reader);
    assert_eq!(orders.len(), ORDERS as usize);
    assert!(orders.iter().all(|order| order.order_id != OrderId(1)));
}

#[test]
fn orders_of_a_stalled_connection_go_before_the_one_that_replaces_it_has_some() {
    let server = TestServer::with_market(small_sockets);
    let _busy = place_many(&server);
    let _older = stalled_with_an_order(&server);
    let (mut newer, _) = Client::connect(server.trade_address(), of_session(0));
    for _ in 0..3 {
        server.serves();
    }
    newer.submit(2, &bound(2));
    let reports = [newer.report(), newer.report()];
    let kinds = reports.map(|numbered| (numbered.report.order, numbered.report.kind));
    let why = CancelReason::Removed(RemovalReason::Disconnected);
    let gone = Execution::Cancelled { size: 1, why };
    assert_eq!(kinds, [(OrderId(1), gone), (OrderId(2), Execution::New)]);
}

#[test]
fn more_open_orders_than_may_wait_are_cut_and_the_client_is_not() {
    let server = TestServer::with_market(|config| config.sessions.out_bytes_max = 1 << 14);
    let _busy = place_many(&server);
    let (mut client, _) = Client::connect(server.trade_address(), of_session(0));
    let (orders, is_cut) = own_orders(&mut client);
    assert!(is_cut && !orders.is_empty(), "{} orders", orders.len());
    let room = (1 << 13) / 80;
    assert_eq!(orders.len(), room);
}

#[test]
fn one_list_of_open_orders_is_in_flight_at_a_time() {
    let directory = scratch();
    let disk = Limited::new(&directory);
    let server = TestServer::on(Place::Limited(disk.clone()), |_| {});
    server.set_market();
    let (mut client, _) = server.trade(1);
    // An answer comes behind the commands before it, which wait for the disk.
    let stuck = disk.stick();
    client.submit(1, &order(1, 1, Action::Bid, 10, 1));
    client.query(1, OWN_ORDERS);
    client.query(2, OWN_ORDERS);
    let Received::QueryAnswer(answer) = client.receive() else {
        panic!("a refusal was expected");
    };
    let refused = QueryResult::Refused(Refusal::InFlight { limit: 1 });
    assert_eq!((answer.id, answer.result), (2, refused));
    drop(stuck);
    client.succeeds(1);
    for id in [1, 3] {
        let answer = loop {
            match client.receive() {
                Received::QueryAnswer(answer) => break answer,
                Received::Report(_) => {}
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(answer.id, id);
        assert!(matches!(answer.result, QueryResult::OpenOrders { .. }));
        client.query(3, OWN_ORDERS);
    }
    drop(server);
}
