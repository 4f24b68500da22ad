//! Bytes that mean harm, while others are served.

use std::io::Write;
use std::net::Shutdown;
use std::time::{Duration, Instant};

use thalweg_exchange::codec::session::{
    ClientFrame, CloseReason, Hello, QueryResult, SessionQuery, Symbols,
};
use thalweg_exchange::session::{Refusal, Role};
use thalweg_exchange::{Action, ResultCode, UserId};
use thalweg_measure::random::SplitMix;

use crate::client::{Client, Received, bytes_of, hello, order, submit_of};
use crate::test_server::TestServer;

#[test]
fn bytes_that_come_one_by_one_are_a_session_too() {
    let server = TestServer::with_market(|_| {});
    let mut client = Client::silent(server.trade_address());
    let mut bytes = bytes_of(&ClientFrame::Hello(hello(Role::Trade, 1)));
    bytes.extend(submit_of(1, &order(1, 1, Action::Bid, 10, 1)));
    bytes.extend(submit_of(2, &order(1, 2, Action::Bid, 10, 1)));
    for byte in bytes {
        client.write(&[byte]);
    }
    assert!(matches!(client.receive(), Received::Welcome(_)));
    client.succeeds(1);
    client.succeeds(2);
}

#[test]
fn frames_that_cannot_be_read_end_the_session_with_their_place() {
    let server = TestServer::with_market(|_| {});
    let good = submit_of(1, &order(1, 1, Action::Bid, 10, 1));
    let cases: [(&str, Vec<u8>, CloseReason); 5] = [
        ("no length", vec![0; 8], CloseReason::BadFrame),
        (
            "an unknown kind",
            [&[8, 0, 0, 0, 255, 1, 0, 0][..]].concat(),
            CloseReason::BadFrame,
        ),
        (
            "too long",
            [&70_000_u32.to_le_bytes()[..], &[210, 1, 0, 0]].concat(),
            CloseReason::BadFrame,
        ),
        (
            "a second hello",
            bytes_of(&ClientFrame::Hello(hello(Role::Trade, 1))),
            CloseReason::NoHello,
        ),
        (
            "a wrong order type",
            wrong_order_type(&good),
            CloseReason::BadFrame,
        ),
    ];
    for (what, bytes, expected) in cases {
        let (mut client, welcome) = server.trade(1);
        let sequence = welcome.last_executed.0 + 1;
        let before = submit_of(sequence, &order(1, sequence as i64, Action::Bid, 10, 1));
        client.write(&before);
        client.succeeds(sequence);
        client.write(&bytes);
        let (why, text) = client.bye();
        let is_long = what == "too long" && why == CloseReason::FrameTooLong;
        assert!(why == expected || is_long, "{what}: {why:?} {text}");
        if why != CloseReason::NoHello {
            let place = format!("frame at byte {} after the hello: ", before.len());
            assert!(text.starts_with(&place), "{what}: {text}");
        }
        server.serves();
    }
}

fn wrong_order_type(good: &[u8]) -> Vec<u8> {
    let mut bytes = good.to_vec();
    // The first own byte of the command.
    bytes[16 + 6] = 7;
    bytes
}

#[test]
fn a_frame_above_the_limit_is_refused_before_it_is_read() {
    let server = TestServer::with_market(|config| {
        config.sessions.frame_bytes_max = 1024;
        config.sessions.admin_frame_bytes_max = 4096;
    });
    let many = crate::test_server::accounts(100..300);
    let bytes = submit_of(9, &many);
    assert!(bytes.len() > 4096);
    let (mut admin, _) = server.admin();
    // Its head alone is enough.
    admin.write(&bytes[..32]);
    let (why, text) = admin.bye();
    assert_eq!(why, CloseReason::FrameTooLong);
    let expected = format!(
        "frame at byte 0 after the hello: {} bytes, the limit is 4096",
        bytes.len()
    );
    assert_eq!(text, expected);
    server.serves();
}

#[test]
fn random_bytes_never_harm_other_sessions() {
    let server = TestServer::with_market(|config| config.sessions.hello_ms = 100);
    let mut random = SplitMix::new(7);
    let (mut other, _) = server.trade(2);
    for round in 1..=100 {
        let mut bytes: Vec<u8> = match round % 3 {
            0 => Vec::new(),
            1 => bytes_of(&ClientFrame::Hello(hello(Role::Trade, 1))),
            _ => {
                let mut hello = bytes_of(&ClientFrame::Hello(hello(Role::Trade, 1)));
                let at = random.below(hello.len() as u64) as usize;
                hello[at] ^= 1 << random.below(8);
                hello
            }
        };
        let count = random.below(2_000);
        let mut noise: Vec<u8> = (0..count).map(|_| random.below(256) as u8).collect();
        if let Some(head) = noise.first_chunk_mut::<8>() {
            // A head that is nearly right goes deeper.
            *head = [40, 0, 0, 0, 208 + random.below(14) as u8, 1, 0, 0];
        }
        bytes.extend(noise);
        let mut client = Client::silent(server.trade_address());
        let _ = client.stream.write_all(&bytes);
        let _ = client.stream.shutdown(Shutdown::Write);
        while !matches!(client.receive_cut(), None | Some(Received::Closed)) {}
        other.submit(round, &order(2, round as i64, Action::Bid, 10, 1));
        other.succeeds(round);
    }
}

#[test]
fn a_flood_is_held_back_and_others_get_their_answers() {
    let server = TestServer::with_market(|config| {
        config.sessions.rate_per_s = 0;
        config.sessions.answers_kept = 64;
        config.exchange.capacity = 256;
    });
    const FLOOD: u64 = 50_000;
    let (flood, _) = server.trade(1);
    let mut to = flood.stream.try_clone().expect("a socket can be cloned");
    let writer = std::thread::spawn(move || {
        for sequence in 1..=FLOOD {
            let bytes = submit_of(sequence, &order(1, sequence as i64, Action::Bid, 10, 1));
            to.write_all(&bytes).expect("the server reads on");
        }
    });
    let mut flood = flood;
    let (mut other, _) = server.trade(2);
    let (mut executed, mut refused) = (0_u64, 0_u64);
    let mut sequence = 0;
    while executed + refused < FLOOD {
        match flood.receive() {
            Received::Answer(answer) => {
                assert_eq!(answer.result, ResultCode::Success);
                executed += 1;
            }
            Received::Refused(refusal) => {
                assert_eq!(refusal.why, Refusal::InFlight { limit: 64 });
                refused += 1;
            }
            Received::Report(_) => {}
            other => panic!("{other:?}"),
        }
        if (executed + refused).is_multiple_of(1_000) {
            sequence += 1;
            other.submit(sequence, &order(2, sequence as i64, Action::Bid, 10, 1));
            other.succeeds(sequence);
        }
    }
    writer.join().expect("it wrote everything");
    assert!(executed > 0, "{executed} executed, {refused} refused");
}

#[test]
fn a_client_that_never_reads_market_data_or_answers_is_bounded() {
    let server = TestServer::with_market(|config| {
        config.sessions.stall_ms = 200;
        config.sessions.rate_per_s = 0;
    });
    let asked = Hello {
        number: 3,
        ..hello(Role::Trade, 1)
    };
    let (mut silent, _) = Client::connect(server.trade_address(), asked);
    let mut sequence = 0;
    // It sends, and reads no answer, until it is cut.
    loop {
        sequence += 1;
        let bytes = submit_of(sequence, &order(1, sequence as i64, Action::Bid, 10, 1));
        if silent.stream.write_all(&bytes).is_err() {
            break;
        }
    }
    server.serves();
}

#[test]
fn connections_that_fill_the_trade_listener_leave_room_for_an_administrator() {
    let server = TestServer::new(|config| {
        config.server.connections_max = 2;
        config.sessions.hello_ms = 600_000;
    });
    let _connected = [server.trade(1), server.trade(2)];
    let to = server.trade_address();
    assert_eq!(Client::silent(to).bye().0, CloseReason::Connections);
    let (mut admin, _) = server.admin();
    admin.submit(1, &crate::test_server::symbols(&[1]));
    admin.succeeds(1);
}

#[test]
fn subscriptions_use_up_what_a_session_may_ask() {
    let server = TestServer::with_market(|config| {
        config.sessions.rate_per_s = 1;
        config.sessions.rate_burst = 210;
    });
    let (mut client, _) = server.trade(1);
    client.subscribe(&[1]);
    client.send(&ClientFrame::Unsubscribe(Symbols::ALL));
    client.query(1, SessionQuery::Account(UserId(1)));
    loop {
        match client.receive() {
            Received::Snapshot(_) => {}
            Received::QueryAnswer(answer) => {
                let why = Refusal::Rate { limit: 1 };
                return assert_eq!(answer.result, QueryResult::Refused(why));
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_subscription_waits_for_its_turn() {
    let server = TestServer::with_market(|config| {
        config.sessions.rate_per_s = 1_000;
        config.sessions.rate_burst = 150;
    });
    let (mut client, _) = server.trade(1);
    for _ in 0..5 {
        client.subscribe(&[1]);
        assert!(matches!(client.receive(), Received::Snapshot(_)));
        client.send(&ClientFrame::Unsubscribe(Symbols::ALL));
    }
    server.serves();
}

#[test]
fn a_new_connection_has_no_more_commands_than_the_one_before() {
    let server = TestServer::with_market(|config| {
        config.sessions.rate_per_s = 1;
        config.sessions.rate_burst = 4;
    });
    let mut executed = 0;
    for id in 1..=16 {
        let (mut client, welcome) = server.trade(1);
        let sequence = welcome.last_executed.0 + 1;
        client.submit(sequence, &order(1, id, Action::Bid, 10, 1));
        let refused = loop {
            match client.receive() {
                Received::Answer(_) => break false,
                Received::Refused(refusal) => {
                    assert_eq!(refusal.why, Refusal::Rate { limit: 1 });
                    break true;
                }
                _ => {}
            }
        };
        if refused {
            return;
        }
        executed += 1;
    }
    panic!("{executed} commands, with a limit of 1 a second and 4 at once");
}

/// The first four are welcomed at once, and the next one a second later.
#[test]
fn a_user_that_reconnects_all_the_time_waits_and_others_are_welcomed() {
    let server = TestServer::with_market(|config| {
        config.sessions.per_holder = 1;
        config.sessions.connects_per_s = 1;
    });
    let started = Instant::now();
    for _ in 0..4 {
        drop(server.trade(1));
    }
    let mut fifth = Client::with_hello(server.trade_address(), hello(Role::Trade, 1));
    for _ in 0..4 {
        drop(server.trade(2));
        drop(server.admin());
    }
    assert!(matches!(fifth.receive(), Received::Welcome(_)));
    assert!(started.elapsed() >= Duration::from_secs(1));
}

#[test]
fn a_listener_takes_a_number_of_connections_a_second_and_the_others_later() {
    let server = TestServer::new(|config| {
        config.server.connections_max = 20;
        config.server.connects_per_s = 10;
    });
    let started = Instant::now();
    // The first of them at once.
    (0..31).for_each(|_| drop(server.trade(1)));
    assert!(started.elapsed() >= Duration::from_secs(1));
}
