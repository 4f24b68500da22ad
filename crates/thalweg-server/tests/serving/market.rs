//! Market data over the wire.

use thalweg_exchange::codec::session::Hello;
use thalweg_exchange::market::{Body, BookReplica};
use thalweg_exchange::session::Role;
use thalweg_exchange::{Action, SymbolId};

use crate::client::{Client, Received, hello, order};
use crate::test_server::{TestServer, symbols};

fn reader(server: &TestServer, number: u32, symbols: &[i32]) -> Client {
    let asked = Hello {
        number,
        market_data_only: true,
        ..hello(Role::Read, 9)
    };
    let (mut client, _) = Client::connect(server.trade_address(), asked);
    client.subscribe(symbols);
    client
}

#[test]
fn a_subscriber_gets_a_snapshot_and_the_numbered_changes_after_it() {
    let mut server = TestServer::with_market(|_| {});
    let (mut client, _) = server.trade(1);
    client.submit(1, &order(1, 1, Action::Bid, 10, 4));
    client.succeeds(1);
    // The books of a server that starts again are those of before.
    server.stop();
    server.start();
    let (mut client, _) = server.trade(1);
    let mut reader = reader(&server, 0, &[]);
    let Received::Snapshot(snapshot) = reader.receive() else {
        panic!("a snapshot was expected");
    };
    assert_eq!((snapshot.symbol, snapshot.bids[0].volume), (SymbolId(1), 4));
    let mut replica = BookReplica::from_snapshot(&snapshot).expect("it has levels");
    client.submit(2, &order(1, 2, Action::Bid, 10, 3));
    client.submit(3, &order(1, 3, Action::Ask, 10, 5));
    let mut trades = 0;
    while replica
        .levels(Action::Bid)
        .next()
        .is_none_or(|best| best.volume != 2)
    {
        let Received::Message(message) = reader.receive() else {
            panic!("a message was expected");
        };
        replica.apply(&message).expect("no message is missing");
        trades += u32::from(matches!(message.body, Body::Trade { .. }));
    }
    assert_eq!(trades, 2);
    // A symbol that is added later.
    let (mut admin, welcome) = server.admin();
    admin.submit(welcome.last_executed.0 + 1, &symbols(&[2]));
    loop {
        match reader.receive() {
            Received::Snapshot(snapshot) => break assert_eq!(snapshot.symbol, SymbolId(2)),
            Received::Message(_) => {}
            other => panic!("{other:?}"),
        }
    }
}

/// The number of rounds in each of which 50 orders are placed: many times what the ring and a
/// stalled reader's socket hold.
const ROUNDS: usize = 80;

#[test]
fn stalled_readers_are_conflated_and_the_others_receive_everything() {
    let server = TestServer::with_market(|config| {
        config.market.ring_chunks = 8;
        config.sessions.rate_per_s = 0;
        config.sessions.socket_bytes = 1 << 14;
        // However long the rounds take, those who stall are conflated, and not cut.
        config.sessions.stall_ms = 3_600_000;
    });
    let mut stalled: Vec<Client> = (0..50).map(|number| reader(&server, number, &[])).collect();
    let mut others: Vec<Client> = (50..100)
        .map(|number| reader(&server, number, &[1]))
        .collect();
    for client in &stalled {
        let small = rustix::net::sockopt::set_socket_recv_buffer_size(&client.stream, 1 << 12);
        small.expect("a socket has the option");
    }
    // All are there before the first order.
    for client in stalled.iter_mut().chain(&mut others) {
        assert!(matches!(client.receive(), Received::Snapshot(_)));
    }
    let (mut trader, _) = server.trade(1);
    let mut replicas: Vec<BookReplica> = others
        .iter()
        .map(|_| BookReplica::new(SymbolId(1)))
        .collect();
    let mut sequence = 0;
    for _ in 0..ROUNDS {
        for _ in 0..50 {
            sequence += 1;
            let price = 1 + (sequence % 97) as i64;
            trader.submit(sequence, &order(1, sequence as i64, Action::Bid, price, 1));
        }
        (sequence - 49..=sequence).for_each(|at| _ = trader.succeeds(at));
        for (client, replica) in others.iter_mut().zip(&mut replicas) {
            follow(client, replica, sequence as i64);
        }
        assert!(metric(&server, "thalweg_market_inlet_bytes") <= f64::from(16 << 20));
    }
    server.serves();
    // A client that begins to read is notified, gets the book, and goes on.
    let client = &mut stalled[0];
    let mut replica = BookReplica::new(SymbolId(1));
    let mut missed = 0;
    let last = sequence as i64;
    while replica
        .levels(Action::Bid)
        .map(|level| level.volume)
        .sum::<i64>()
        < last
    {
        match client.receive() {
            Received::Message(message) => {
                let _ = replica.apply(&message);
            }
            Received::Conflated(conflated) => missed += conflated.missed,
            Received::Snapshot(snapshot) => replica.restart(&snapshot).expect("it has levels"),
            other => panic!("{other:?}"),
        }
    }
    assert!(missed > 0, "a stalled reader received everything");
    assert!(metric(&server, "thalweg_market_conflations_total") >= 1.0);
}

#[test]
fn a_reader_that_takes_nothing_is_cut() {
    let server = TestServer::with_market(|config| {
        config.sessions.rate_per_s = 0;
        config.sessions.socket_bytes = 1 << 14;
        config.sessions.stall_ms = 200;
    });
    let mut stalled = reader(&server, 0, &[]);
    let small = rustix::net::sockopt::set_socket_recv_buffer_size(&stalled.stream, 1 << 12);
    small.expect("a socket has the option");
    assert!(matches!(stalled.receive(), Received::Snapshot(_)));
    let (mut trader, _) = server.trade(1);
    let ended = "thalweg_connections_ended_total{reason=\"SlowReader\"} 1";
    let mut sequence = 0;
    while !server.get("/metrics").1.contains(ended) {
        for _ in 0..50 {
            sequence += 1;
            let price = 1 + (sequence % 97) as i64;
            trader.submit(sequence, &order(1, sequence as i64, Action::Bid, price, 1));
            trader.succeeds(sequence);
        }
    }
    // It has what its socket held, and then its end.
    while !matches!(stalled.receive_cut(), Some(Received::Closed) | None) {}
}

/// Lots that a reader sees on offer to sellers.
fn lots(replica: &BookReplica) -> i64 {
    replica.levels(Action::Bid).map(|level| level.volume).sum()
}

/// A reader that reads gets every message, with none missing, until it sees this number of lots.
fn follow(client: &mut Client, replica: &mut BookReplica, until: i64) {
    while lots(replica) < until {
        match client.receive() {
            Received::Message(message) => replica.apply(&message).expect("no message is missing"),
            other => panic!("{other:?}"),
        }
    }
}

fn metric(server: &TestServer, name: &str) -> f64 {
    let (_, page) = server.get("/metrics");
    let line = page.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|rest| rest.trim().parse().ok())
        .unwrap_or_else(|| panic!("{name} is not among the metrics"))
}
