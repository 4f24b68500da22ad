//! Commands, answers, reports, queries.

use std::sync::Arc;

use thalweg_exchange::codec::session::{ClientFrame, Hello, QueryResult, SessionQuery};
use thalweg_exchange::execution::Execution;
use thalweg_exchange::session::{Refusal, Role};
use thalweg_exchange::{Action, Command, CurrencyId, ResultCode, SymbolId, UserId};

use crate::client::{Client, Received, hello, order, submit_of};
use crate::test_server::TestServer;

#[test]
fn both_sides_of_a_trade_get_reports_and_no_other_user() {
    let server = TestServer::with_market(|_| {});
    let (mut maker, _) = server.trade(1);
    let (mut taker, _) = server.trade(2);
    let (mut reader, _) = Client::connect(server.trade_address(), hello(Role::Read, 1));
    let (mut other, _) = server.trade(3);
    maker.submit(1, &order(1, 1, Action::Ask, 10, 5));
    // The answer comes before the reports.
    assert!(matches!(maker.receive(), Received::Answer(answer) if answer.sequence.0 == 1));
    assert_eq!(maker.report().report.kind, Execution::New);
    taker.submit(5, &order(2, 1, Action::Bid, 10, 3));
    let number = taker.succeeds(5);
    let report = taker.report();
    assert_eq!((report.number.0, report.report.kind), (1, Execution::New));
    for (client, owner) in [(&mut taker, 2), (&mut maker, 1)] {
        let report = client.report();
        assert_eq!((report.number.0, report.report.owner), (2, UserId(owner)));
        assert_eq!(report.report.command, number);
        assert!(matches!(
            report.report.kind,
            Execution::Trade { size: 3, .. }
        ));
    }
    // A reader of the same user gets the same reports.
    assert_eq!(
        [reader.report(), reader.report()].map(|report| report.number.0),
        [1, 2]
    );
    other.submit(1, &order(3, 1, Action::Bid, 1, 1));
    assert!(matches!(other.receive(), Received::Answer(_)));
    assert_eq!(other.report().report.owner, UserId(3));
}

#[test]
fn a_role_cannot_do_what_is_not_its_own() {
    let server = TestServer::with_market(|_| {});
    let (mut trader, _) = server.trade(1);
    let deposit = Command::Balance {
        uid: UserId(1),
        currency: CurrencyId(20),
        amount: 1 << 40,
        transaction_id: 1 << 40,
        kind: Default::default(),
    };
    let all_users = Command::cancel_all(None, None);
    let others = Command::cancel_all(Some(UserId(2)), None);
    for (sequence, command, why) in [
        (1, deposit.clone(), Refusal::Role),
        (2, Command::Disconnect { uid: UserId(1) }, Refusal::Role),
        (3, Command::Clock { time: 9 }, Refusal::Role),
        (4, order(2, 1, Action::Bid, 1, 1), Refusal::NotYourUser),
        (5, others, Refusal::NotYourUser),
        (6, all_users, Refusal::Role),
    ] {
        trader.submit(sequence, &command);
        let refusal = trader.refused();
        assert_eq!(refusal.sequence.0, sequence, "{command:?}");
        assert!(
            refusal.why == why || refusal.why == Refusal::NotYourUser,
            "{command:?}: {refusal:?}"
        );
    }
    let (mut reader, _) = Client::connect(server.trade_address(), hello(Role::Read, 1));
    reader.submit(1, &order(1, 1, Action::Bid, 1, 1));
    assert_eq!(reader.refused().why, Refusal::Role);
    let (mut admin, _) = server.admin();
    for (sequence, command) in [
        (11, order(1, 1, Action::Bid, 1, 1)),
        (12, Command::Reset),
        (13, Command::Disconnect { uid: UserId(1) }),
    ] {
        admin.submit(sequence, &command);
        assert_eq!(admin.refused().why, Refusal::Role, "{command:?}");
    }
    admin.submit(14, &deposit);
    admin.succeeds(14);
    server.serves();
}

#[test]
fn many_commands_go_before_the_first_answer_and_stay_in_order() {
    let server = TestServer::with_market(|_| {});
    let (mut client, welcome) = server.trade(1);
    let count = u64::from(welcome.in_flight_max).min(1_000);
    let mut bytes = Vec::new();
    for id in 1..=count {
        bytes.extend(submit_of(id, &order(1, id as i64, Action::Bid, 10, 1)));
    }
    client.write(&bytes);
    let mut last = 0;
    for id in 1..=count {
        let number = client.succeeds(id);
        assert!(number > last, "{number} after {last}");
        last = number;
    }
}

#[test]
fn refusals_have_the_limit() {
    let server = TestServer::with_market(|config| {
        config.sessions.rate_per_s = 1;
        config.sessions.rate_burst = 5;
        config.sessions.open_orders_max = 2;
    });
    let (mut client, welcome) = server.trade(1);
    assert_eq!(welcome.rate_max, 1);
    for id in 1..=20 {
        client.submit(id, &order(1, id as i64, Action::Bid, 10, 1));
    }
    let (mut results, mut refused) = (Vec::new(), 0);
    while results.len() + refused < 20 {
        match client.receive() {
            Received::Answer(answer) => results.push(answer.result),
            Received::Refused(refusal) => {
                assert_eq!(refusal.why, Refusal::Rate { limit: 1 });
                refused += 1;
            }
            Received::Report(_) => {}
            other => panic!("{other:?}"),
        }
    }
    assert!(
        results.len() >= 5 && refused > 0,
        "{results:?}, {refused} refused"
    );
    assert_eq!(results[..2], [ResultCode::Success; 2]);
    assert_eq!(results[2], ResultCode::RiskTooManyOrders);
}

#[test]
fn queries_are_about_the_own_user_and_what_was_sent_before() {
    let server = TestServer::with_market(|_| {});
    let (mut client, _) = server.trade(1);
    client.submit(1, &order(1, 1, Action::Bid, 10, 4));
    client.query(7, SessionQuery::OpenOrders(UserId(1)));
    client.query(8, SessionQuery::Account(UserId(1)));
    client.query(9, SessionQuery::Account(UserId(2)));
    let symbol = SymbolId(1);
    client.query(10, SessionQuery::Book { symbol, depth: 5 });
    let symbol = SymbolId(4);
    client.query(11, SessionQuery::Book { symbol, depth: 5 });
    let mut answers = std::collections::BTreeMap::new();
    while answers.len() < 5 {
        if let Received::QueryAnswer(answer) = client.receive() {
            answers.insert(answer.id, answer.result);
        }
    }
    let QueryResult::OpenOrders { orders, is_cut } = &answers[&7] else {
        panic!("{answers:?}");
    };
    assert_eq!((orders.len(), orders[0].size, *is_cut), (1, 4, false));
    assert!(matches!(&answers[&8], QueryResult::Account(user) if user.open_orders == 1));
    assert_eq!(answers[&9], QueryResult::Refused(Refusal::NotYourUser));
    assert!(matches!(&answers[&10], QueryResult::Book(book) if book.bids.len() == 1));
    assert_eq!(answers[&11], QueryResult::UnknownSymbol);
    // An administrator may ask about any user.
    let (mut admin, _) = server.admin();
    admin.query(1, SessionQuery::Account(UserId(1)));
    let Received::QueryAnswer(answer) = admin.receive() else {
        panic!("an answer was expected");
    };
    assert!(matches!(answer.result, QueryResult::Account(_)));
}

#[test]
fn heartbeats_go_both_ways_and_silence_ends_a_session() {
    let server = TestServer::with_market(|config| config.sessions.heartbeat_min_ms = 10);
    // Long enough that a busy machine does not make the client silent.
    let heartbeat_ms = 500;
    let asked = Hello {
        heartbeat_ms,
        ..hello(Role::Trade, 1)
    };
    let (mut client, welcome) = Client::connect(server.trade_address(), asked);
    assert_eq!(welcome.heartbeat_ms, 500);
    // As long as it sends something, it stays.
    for _ in 0..6 {
        assert_eq!(client.receive(), Received::Heartbeat);
        client.send(&ClientFrame::Heartbeat);
    }
    let (why, text) = client.bye();
    assert_eq!(why, thalweg_exchange::codec::session::CloseReason::Silent);
    assert_eq!(text, "nothing for 1500 ms");
}

#[test]
fn each_command_of_an_administrator_leaves_a_line() {
    let place = crate::test_server::scratch();
    let file = place.join("audit.jsonl");
    let mut server = TestServer::new(|config| config.admin.audit_file = Some(file.clone()));
    let (mut admin, _) = server.admin();
    admin.submit(1, &Command::AddUser { uid: UserId(5) });
    admin.submit(2, &Command::AddUser { uid: UserId(5) });
    admin.succeeds(1);
    let _ = admin.answer();
    admin.submit(2, &Command::AddSymbols(Arc::new([])));
    assert_eq!(admin.refused().why, Refusal::SequenceReused);
    admin.submit(3, &order(1, 1, Action::Bid, 10, 1));
    assert_eq!(admin.refused().why, Refusal::Role);
    server.stop();
    let text = std::fs::read_to_string(&file).expect("it was made");
    let mut lines: Vec<serde_json::Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).expect("a line is an object"))
        .collect();
    lines.sort_by_key(|line| line["number"].as_u64().unwrap_or(u64::MAX));
    assert_eq!(lines.len(), 4, "{text}");
    assert_eq!(
        (&lines[0]["admin"], &lines[0]["sequence"]),
        (&1.into(), &1.into())
    );
    assert_eq!(lines[0]["result"], "SUCCESS");
    assert_eq!(lines[0]["command"], "AddUser { uid: UserId(5) }");
    assert!(lines[0]["time_ms"].as_u64() > Some(1_600_000_000_000));
    assert_eq!(lines[1]["result"], "USER_MGMT_USER_ALREADY_EXISTS");
    assert_eq!(lines[2]["result"], "SEQUENCE_REUSED");
    assert_eq!(lines[3]["result"], "ROLE");
}

#[test]
fn a_welcome_has_the_number_of_the_next_command() {
    let server = TestServer::with_market(|_| {});
    let (mut client, welcome) = server.trade(1);
    assert_eq!(welcome.next_command, 2);
    client.submit(1, &order(1, 1, Action::Bid, 10, 1));
    client.succeeds(1);
    let (_, welcome) = server.trade(2);
    assert_eq!(welcome.next_command, 3);
}
