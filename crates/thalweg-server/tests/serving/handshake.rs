//! Which clients are welcomed, and the answers to others.

use std::io::Write as _;

use thalweg_exchange::codec::session::{ClientFrame, CloseReason, Hello, KeyBytes};
use thalweg_exchange::session::{ReportNumber, Role};
use thalweg_server::keys;

use crate::client::{Client, Received, bytes_of, hello};
use crate::test_server::{TestServer, scratch};

#[test]
fn a_welcome_has_what_the_client_needs() {
    let server = TestServer::with_market(|config| config.sessions.answers_kept = 77);
    let (_client, welcome) = server.trade(7);
    assert_eq!((welcome.version, welcome.holder), (1, 7));
    assert_eq!(welcome.last_executed.0, 0);
    assert_eq!(welcome.next_report, ReportNumber(1));
    assert_eq!(
        (welcome.in_flight_max, welcome.frame_bytes_max),
        (77, 65_536)
    );
    assert_eq!(welcome.channels.code(), 13);
    assert_ne!(welcome.exchange, 0);
}

#[test]
fn a_key_opens_only_what_it_is_for_and_a_wrong_one_learns_nothing() {
    let place = scratch();
    let file = place.join("keys.toml");
    let mut made = Vec::new();
    for (role, holder) in [(Role::Trade, 7), (Role::Read, 8), (Role::Admin, 1)] {
        let key = keys::generate().expect("there is randomness");
        let entry = keys::Key {
            name: format!("{role} {holder}"),
            role,
            holder,
            hash: keys::hash(key.as_bytes()),
        };
        keys::append(&file, &entry).expect("it can be written");
        made.push(key);
    }
    let server = TestServer::new(|config| {
        config.keys.file = Some(file.clone());
        config.sessions.wrong_key_ms = 1;
    });
    let with = |role, holder, key: &str| {
        let to = match role {
            Role::Admin => server.addresses().admin.expect("it was asked for"),
            _ => server.trade_address(),
        };
        let key = KeyBytes(key.as_bytes());
        Client::with_hello(
            to,
            Hello {
                key,
                ..hello(role, holder)
            },
        )
        .receive()
    };
    let [trade, read, admin] = [0, 1, 2].map(|at: usize| made[at].as_str());
    for (role, holder, key) in [
        (Role::Trade, 7, trade),
        (Role::Read, 7, trade),
        (Role::Read, 8, read),
        (Role::Admin, 1, admin),
    ] {
        assert!(
            matches!(with(role, holder, key), Received::Welcome(_)),
            "{role} {holder}"
        );
    }
    let cut = &trade[..trade.len() - 1];
    for (role, holder, key) in [
        (Role::Trade, 8, read),
        (Role::Trade, 8, trade),
        (Role::Trade, 7, ""),
        (Role::Trade, 7, cut),
        (Role::Read, 9, read),
        (Role::Admin, 1, trade),
        (Role::Admin, 2, admin),
    ] {
        // The answer does not depend on what was wrong.
        let expected = Received::Bye(CloseReason::WrongKey, String::new());
        assert_eq!(with(role, holder, key), expected, "{role} {holder}");
    }
}

#[test]
fn a_key_that_is_taken_away_ends_its_session_and_opens_no_other() {
    let place = scratch();
    let file = place.join("keys.toml");
    let text = keys::generate().expect("there is randomness");
    let entry = keys::Key {
        name: "seven".to_owned(),
        role: Role::Trade,
        holder: 7,
        hash: keys::hash(text.as_bytes()),
    };
    keys::append(&file, &entry).expect("it can be written");
    let server = TestServer::new(|config| {
        config.keys.file = Some(file.clone());
        config.sessions.wrong_key_ms = 1;
    });
    let key = KeyBytes(text.as_bytes());
    let asked = Hello {
        key,
        ..hello(Role::Trade, 7)
    };
    let (mut client, _) = Client::connect(server.trade_address(), asked);
    // A file that is wrong changes nothing.
    std::fs::write(&file, "[[key]]").expect("it can be written");
    server.running().reload_keys();
    client.submit(
        1,
        &crate::client::order(7, 1, thalweg_exchange::Action::Bid, 10, 1),
    );
    let _ = client.answer();
    std::fs::write(&file, "").expect("it can be written");
    server.running().reload_keys();
    assert_eq!(client.bye().0, CloseReason::WrongKey);
    let bye = Client::with_hello(server.trade_address(), asked).bye();
    assert_eq!(bye, (CloseReason::WrongKey, String::new()));
}

#[test]
fn each_listener_serves_its_roles() {
    let server = TestServer::new(|_| {});
    let admin = server.addresses().admin.expect("it was asked for");
    for (to, role) in [
        (server.trade_address(), Role::Admin),
        (admin, Role::Trade),
        (admin, Role::Read),
    ] {
        let (why, _) = Client::with_hello(to, hello(role, 1)).bye();
        assert_eq!(why, CloseReason::Listener, "{role}");
    }
}

#[test]
fn what_is_no_hello_ends_with_a_reason() {
    let server = TestServer::new(|config| config.sessions.hello_ms = 600_000);
    let to = server.trade_address();
    let bye_to = |bytes: &[u8]| {
        let mut client = Client::silent(to);
        client.write(bytes);
        client.bye()
    };
    let heartbeat = bytes_of(&ClientFrame::Heartbeat);
    assert_eq!(bye_to(&heartbeat).0, CloseReason::NoHello);
    let (why, text) = bye_to(&[0; 8]);
    assert_eq!(why, CloseReason::BadFrame);
    assert!(text.starts_with("frame at byte 0: "), "{text}");
    let newer = Hello {
        version_min: 3,
        version_max: 9,
        ..hello(Role::Trade, 1)
    };
    let (why, text) = bye_to(&bytes_of(&ClientFrame::Hello(newer)));
    assert_eq!(
        (why, text.as_str()),
        (CloseReason::Version, "this server speaks versions 1 to 2")
    );
    let number = 16;
    let beyond = Hello {
        number,
        ..hello(Role::Trade, 1)
    };
    let (why, text) = bye_to(&bytes_of(&ClientFrame::Hello(beyond)));
    assert_eq!(why, CloseReason::Sessions);
    assert_eq!(text, "session number 16: numbers are below 16");
    let reading = Hello {
        role: Role::Read,
        ..beyond
    };
    let (why, text) = bye_to(&bytes_of(&ClientFrame::Hello(reading)));
    assert_eq!(why, CloseReason::Sessions);
    assert_eq!(text, "session number 16: numbers are below 16");
    // Sessions without reports may be there any number of times.
    let market_data_only = true;
    let looking_on = Hello {
        market_data_only,
        ..reading
    };
    let (_looking_on, _) = Client::connect(to, looking_on);
    // Nothing at all, and half of it.
    let hasty = TestServer::new(|config| config.sessions.hello_ms = 200);
    let whole = bytes_of(&ClientFrame::Hello(hello(Role::Trade, 1)));
    for bytes in [&[][..], &whole[..20]] {
        let mut client = Client::silent(hasty.trade_address());
        // It may be too late already.
        let _ = client.stream.write_all(bytes);
        let (why, text) = client.bye();
        assert_eq!(
            (why, text.as_str()),
            (CloseReason::NoHello, "none came within 200 ms")
        );
    }
}

#[test]
fn a_newer_connection_takes_the_session_over() {
    let server = TestServer::with_market(|_| {});
    let (mut older, _) = server.trade(7);
    let (mut newer, _) = server.trade(7);
    assert_eq!(older.bye().0, CloseReason::Replaced);
    newer.submit(
        1,
        &crate::client::order(7, 1, thalweg_exchange::Action::Bid, 10, 1),
    );
    newer.succeeds(1);
    // Another session of the same user stays.
    let number = 1;
    let other = Hello {
        number,
        ..hello(Role::Trade, 7)
    };
    let (_other, _) = Client::connect(server.trade_address(), other);
    newer.submit(
        2,
        &crate::client::order(7, 2, thalweg_exchange::Action::Bid, 10, 1),
    );
    newer.succeeds(2);
}

#[test]
fn a_hello_that_comes_late_takes_nothing_from_a_newer_connection() {
    let server = TestServer::with_market(|_| {});
    let mut older = Client::silent(server.trade_address());
    let (mut newer, _) = server.trade(7);
    older.send(&ClientFrame::Hello(hello(Role::Trade, 7)));
    assert_eq!(older.bye().0, CloseReason::Replaced);
    let order = crate::client::order(7, 1, thalweg_exchange::Action::Bid, 10, 1);
    newer.submit(1, &order);
    newer.succeeds(1);
}
