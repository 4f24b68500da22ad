//! Many connections that do nothing, and connections that are half open.

use std::net::TcpStream;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use thalweg_exchange::codec::session::{ClientFrame, CloseReason, Hello};
use thalweg_exchange::session::Role;

use crate::client::{Client, bytes_of, hello};
use crate::test_server::TestServer;

/// As many connections as are needed and the system lets this process have, which holds both ends.
fn possible(needed: usize) -> usize {
    let limit = getrlimit(Resource::Nofile);
    let maximum = limit.maximum.unwrap_or(1 << 20);
    let raised = Rlimit {
        current: Some(maximum),
        maximum: limit.maximum,
    };
    setrlimit(Resource::Nofile, raised).expect("up to its maximum it can be raised");
    let possible = (maximum as usize).saturating_sub(500) / 2;
    if possible < needed {
        println!("{possible} connections instead of {needed}: {maximum} files may be open");
    }
    possible.min(needed)
}

#[test]
fn thousands_of_idle_connections_leave_the_others_alone() {
    let count = possible(5_000);
    let server = TestServer::with_market(|config| {
        config.sessions.hello_ms = 600_000;
        config.server.connections_max = count + 100;
        config.sessions.readers_per_holder = count as u32;
    });
    let to = server.trade_address();
    // One third sends nothing, one third half of a hello, and one third is welcomed.
    let whole = bytes_of(&ClientFrame::Hello(hello(Role::Read, 1)));
    let mut idle = Vec::new();
    let mut welcomed = Vec::new();
    for at in 0..count {
        match at % 3 {
            0 => idle.push(Client::silent(to)),
            1 => {
                let mut client = Client::silent(to);
                client.write(&whole[..whole.len() / 2]);
                idle.push(client);
            }
            _ => {
                // Without reports, of which a user has 16.
                let looking_on = Hello {
                    number: at as u32,
                    market_data_only: true,
                    ..hello(Role::Read, 1)
                };
                welcomed.push(Client::connect(to, looking_on).0);
            }
        }
    }
    for _ in 0..20 {
        server.serves();
    }
    let (_, page) = server.get("/metrics");
    let line = format!("thalweg_sessions{{role=\"read\"}} {}.0", welcomed.len());
    assert!(page.contains(&line), "{line} is not among the metrics");
    // All are still there.
    for mut client in idle.into_iter().chain(welcomed) {
        client
            .stream
            .set_nonblocking(true)
            .expect("a socket can be");
        let mut byte = [0];
        let read = std::io::Read::read(&mut client.stream, &mut byte);
        let error = read.expect_err("nothing was sent");
        assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock);
    }
}

#[test]
fn one_connection_too_many_is_refused_with_the_limit() {
    let server = TestServer::new(|config| config.server.connections_max = 3);
    let to = server.trade_address();
    // Connections without a hello make room.
    let mut silent: Vec<Client> = (0..3).map(|_| Client::silent(to)).collect();
    let held: Vec<_> = (1..=3).map(|user| server.trade(user)).collect();
    for silent in &mut silent {
        assert_eq!(silent.bye().0, CloseReason::Connections);
    }
    let (why, text) = Client::silent(to).bye();
    assert_eq!(
        (why, text.as_str()),
        (CloseReason::Connections, "3 are served")
    );
    drop(held);
    // There is room again, as soon as the server has noticed.
    while !matches!(
        Client::with_hello(to, hello(Role::Read, 1)).receive(),
        crate::client::Received::Welcome(_)
    ) {
        std::thread::yield_now();
    }
}

#[test]
fn connections_that_vanish_leave_nothing_behind() {
    let server = TestServer::with_market(|_| {});
    for _ in 0..200 {
        drop(TcpStream::connect(server.trade_address()).expect("it listens"));
        let (client, _) = server.trade(3);
        drop(client);
        // Its last frame comes together with its end.
        let (mut client, _) = server.trade(4);
        client.send(&ClientFrame::Heartbeat);
        drop(client);
    }
    loop {
        let (_, page) = server.get("/metrics");
        if page.contains("\nthalweg_connections 0.0\n") {
            break;
        }
        std::thread::yield_now();
    }
    server.serves();
}
