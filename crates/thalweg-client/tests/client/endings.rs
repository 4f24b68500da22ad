//! How a session ends, and what cannot begin.

use std::time::Duration;

use thalweg_client::exchange::codec::session::{CloseReason, ServerFrame};
use thalweg_client::exchange::session::{ClientSequence, Refusal};
use thalweg_client::exchange::{AccountSpec, Command, CurrencyId, UserId};
use thalweg_client::{
    AdminClient, AdminCommand, DisconnectReason, Event, Options, Outcome, SessionQuery, TradeClient,
};

use crate::mock::{Fault, Mock, bye, bytes_of, welcome};
use crate::{ME, cancel, connected, options, outcome, reports_until};

/// How a connection is refused, with the address as `HERE`.
async fn refused(plan: Vec<Fault>) -> String {
    let mock = Mock::new(plan);
    let reason = TradeClient::connect(options(&mock))
        .await
        .expect_err("it is refused");
    reason
        .to_string()
        .replace(&mock.address.to_string(), "HERE")
}

#[tokio::test]
async fn a_refusal_of_a_repeated_command_does_not_mean_that_it_was_not_executed() {
    for (why, is_final) in [
        (Refusal::Rate { limit: 5 }, false),
        (Refusal::NotExecuted, true),
    ] {
        // It is executed, the answer is lost, and the session has no tokens left.
        let mock = Mock::new([Fault::Mute(1), Fault::Refuse(why)]);
        let (client, events) = connected(&mock).await;
        let ticket = client.submit(cancel(1)).await.expect("it is open");
        let outcome = ticket.await;
        let sequence = ClientSequence(mock.executed()[0]);
        let expected = match is_final {
            true => Outcome::Refused { sequence, why },
            false => Outcome::Unknown { sequence },
        };
        assert_eq!(outcome, expected);
        client.close().await;
        drop(events);
    }
}

#[tokio::test]
async fn no_server_listens() {
    let mock = Mock::new([]);
    let options = options(&mock);
    let address = mock.address;
    drop(mock);
    let reason = TradeClient::connect(options)
        .await
        .expect_err("no server is there");
    let text = reason.to_string();
    assert!(
        text.starts_with(&format!("cannot connect to {address}: ")),
        "{text}"
    );
    assert!(reason.is_retryable());
}

#[tokio::test]
async fn of_several_addresses_the_one_that_answers_is_used() {
    // It breaks, and is made again where it was.
    let mock = Mock::new([Fault::AfterReading(200)]);
    let gone = [Mock::new([]), Mock::new([])].map(|gone| gone.address);
    let mut options = options(&mock);
    options.address = format!("{},{}, {}", gone[0], mock.address, gone[1]);
    let (client, _) = TradeClient::connect(options).await.expect("one listens");
    for order in 1..20 {
        let outcome = outcome(&client, order).await;
        assert!(matches!(outcome, Outcome::Executed { .. }), "{outcome}");
    }
    assert_eq!(mock.executed().len(), 19);
    assert_eq!(mock.world().hellos, 2);
    client.close().await;
}

#[tokio::test]
async fn a_replica_that_is_not_the_primary_names_it_and_commands_go_there_once() {
    // The primary is lost in the midst of a command; until it is back, none is named.
    let primary = Mock::new([Fault::AfterReading(200)]);
    let named = bye(CloseReason::NotPrimary, &primary.address.to_string());
    let unnamed = bye(CloseReason::NotPrimary, "");
    let follower = Mock::new([
        Fault::Reject(named.clone()),
        Fault::Reject(unnamed),
        Fault::Reject(named),
    ]);
    let (client, _) = TradeClient::connect(options(&follower))
        .await
        .expect("the primary is named");
    for order in 1..20 {
        let outcome = client.submit(cancel(order)).await.expect("it is open");
        let outcome = outcome.await;
        assert!(matches!(outcome, Outcome::Executed { .. }), "{outcome}");
    }
    assert_eq!(
        (primary.executed().len(), follower.executed().len()),
        (19, 0)
    );
    assert_eq!(follower.world().begun, 3);
    client.close().await;
}

#[tokio::test]
async fn replicas_that_name_each_other_are_left_after_two_steps() {
    let second = Mock::new([]);
    let plan =
        |to: &Mock| vec![Fault::Reject(bye(CloseReason::NotPrimary, &to.address.to_string())); 4];
    let first = Mock::new(plan(&second));
    second.world().plan = plan(&first).into();
    let reason = TradeClient::connect(options(&first)).await;
    let reason = reason.expect_err("there is no primary");
    let text = format!(
        "the exchange closed the connection: this replica is not the primary: {}",
        second.address
    );
    assert_eq!(reason.to_string(), text);
    assert!(reason.is_retryable());
    assert_eq!((first.world().begun, second.world().begun), (2, 1));
}

#[tokio::test]
async fn a_hello_that_is_answered_by_something_else() {
    for (answer, text) in [
        (
            bye(CloseReason::WrongKey, ""),
            "the exchange closed the connection: the key does not open this session",
        ),
        (
            Vec::new(),
            "HERE closed the connection without a welcome; is it an exchange?",
        ),
        (
            b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec(),
            "what answers at HERE is not an exchange but a web server (HTTP): it says `HTTP/1.1 \
             400 Bad Request`",
        ),
        (
            b"\x15\x03\x03\0\x02\x02(".to_vec(),
            "what answers at HERE is not an exchange but a TLS server",
        ),
        (
            b"220 mail".to_vec(),
            "what answers at HERE is not an exchange but another program: it says `220 mail`",
        ),
        (
            bytes_of(&ServerFrame::Heartbeat),
            "the exchange sent something before the welcome, which was not expected",
        ),
    ] {
        assert_eq!(refused(vec![Fault::Reject(answer)]).await, text);
    }
}

#[tokio::test]
async fn a_key_that_is_too_long_is_not_sent() {
    let mock = Mock::new([]);
    let mut options = options(&mock);
    options.key = vec![0; 257];
    let reason = TradeClient::connect(options)
        .await
        .expect_err("it is too long");
    assert_eq!(reason.to_string(), "a key of 257 bytes, the limit is 256");
    assert_eq!(mock.world().hellos, 0);
}

#[tokio::test]
async fn no_welcome_in_time() {
    // It accepts, and sends nothing.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("it has one").to_string();
    let mut options = Options::new(address.clone(), ME.0);
    options.connect_timeout = Duration::from_millis(10);
    let reason = TradeClient::connect(options).await.expect_err("no welcome");
    let text = format!("{address} gives no answer for 10ms; is it an exchange?");
    assert_eq!(reason.to_string(), text);
}

#[tokio::test]
async fn a_refused_command_has_its_refusal_as_outcome_and_is_not_executed() {
    let mock = Mock::new([Fault::Refuse(Refusal::Rate { limit: 5 })]);
    let (client, _events) = connected(&mock).await;
    let outcome = client.submit(cancel(1)).await.expect("it is open").await;
    let why = Refusal::Rate { limit: 5 };
    let sequence = ClientSequence(1);
    assert_eq!(outcome, Outcome::Refused { sequence, why });
    assert!(mock.executed().is_empty());
}

#[tokio::test]
async fn an_answer_that_is_gone_leaves_it_unknown() {
    let mock = Mock::new([Fault::Refuse(Refusal::AnswerGone)]);
    let (client, _events) = connected(&mock).await;
    let outcome = client.submit(cancel(1)).await.expect("it is open").await;
    let sequence = ClientSequence(1);
    assert_eq!(outcome, Outcome::Unknown { sequence });
}

#[tokio::test]
async fn a_goodbye_for_good_ends_the_session() {
    let mock = Mock::new([Fault::Extra(bye(CloseReason::Replaced, "from 10.0.0.9"))]);
    let (client, mut events) = connected(&mock).await;
    let mut last = None;
    while let Some(event) = events.next().await {
        last = Some(event);
    }
    let Some(Event::Closed(reason)) = last else {
        panic!("{last:?}");
    };
    let text = "the exchange closed the connection: a newer connection has this session: from \
                10.0.0.9";
    assert_eq!(reason.to_string(), text);
    let error = client.submit(cancel(1)).await.expect_err("it is closed");
    assert_eq!(error.to_string(), "the client is closed");
    assert!(client.query(SessionQuery::Account(ME)).await.is_err());
    assert_eq!(mock.world().hellos, 1);
}

#[tokio::test]
async fn a_goodbye_for_now_does_not() {
    let mock = Mock::new([Fault::Extra(bye(CloseReason::Shutdown, ""))]);
    let (client, mut events) = connected(&mock).await;
    let outcome = client.submit(cancel(1)).await.expect("it is open").await;
    assert!(matches!(outcome, Outcome::Executed { .. }), "{outcome}");
    assert!(matches!(events.next().await, Some(Event::Connected(_))));
    assert!(matches!(
        events.next().await,
        Some(Event::Disconnected(DisconnectReason::Bye { .. }))
    ));
    assert!(matches!(events.next().await, Some(Event::Connected(_))));
    assert_eq!(mock.world().hellos, 2);
}

#[tokio::test]
async fn a_frame_that_is_wrong_ends_the_session() {
    let mock = Mock::new([Fault::Extra(vec![3, 0, 0, 0, 215, 1, 0, 0])]);
    let (_client, mut events) = connected(&mock).await;
    assert!(matches!(events.next().await, Some(Event::Connected(_))));
    assert!(matches!(
        events.next().await,
        Some(Event::Closed(DisconnectReason::Frame(_)))
    ));
    assert!(events.next().await.is_none());
    while mock.world().byes.is_empty() {
        std::thread::yield_now();
    }
    assert_eq!(mock.world().byes, [CloseReason::BadFrame]);
}

#[tokio::test]
async fn a_second_welcome_is_out_of_place() {
    let again = bytes_of(&ServerFrame::Welcome(welcome()));
    let mock = Mock::new([Fault::Extra(again)]);
    let (_client, mut events) = connected(&mock).await;
    assert!(matches!(events.next().await, Some(Event::Connected(_))));
    assert!(matches!(
        events.next().await,
        Some(Event::Closed(DisconnectReason::UnexpectedFrame { .. }))
    ));
}

/// The client is dropped while its command has no answer, and another one was never sent.
#[tokio::test]
async fn a_client_that_is_dropped_leaves_outcomes_unknown() {
    let mock = Mock::new([Fault::Silent]);
    mock.world().welcome.in_flight_max = 1;
    let (client, _events) = connected(&mock).await;
    let first = client.submit(cancel(1)).await.expect("it is open");
    let second = client.submit(cancel(2)).await.expect("it is open");
    while mock.executed().is_empty() {
        tokio::task::yield_now().await;
    }
    drop(client);
    let sequence = ClientSequence(1);
    assert_eq!(first.await, Outcome::Unknown { sequence });
    assert_eq!(second.await, Outcome::NotSent);
    assert_eq!(mock.executed(), [1]);
}

#[tokio::test]
async fn attempts_come_to_an_end() {
    let mock = Mock::new([Fault::AfterReading(50)]);
    let mut options = options(&mock);
    options.attempts_max = Some(3);
    let (client, mut events) = TradeClient::connect(options).await.expect("it listens");
    drop(mock);
    let outcome = match client.submit(cancel(1)).await {
        Ok(ticket) => ticket.await,
        Err(_) => Outcome::NotSent,
    };
    assert!(
        matches!(outcome, Outcome::Unknown { .. } | Outcome::NotSent),
        "{outcome}"
    );
    let mut attempts = 0;
    while let Some(event) = events.next().await {
        attempts += usize::from(matches!(event, Event::Disconnected(_)));
    }
    assert_eq!(attempts, 3);
}

#[tokio::test]
async fn silence_is_noticed() {
    // A busy machine may be silent for as long, too: such a connection ends before the command.
    let mock = Mock::new(vec![Fault::Silent; 10_000]);
    mock.world().welcome.heartbeat_ms = 20;
    let (client, mut events) = connected(&mock).await;
    let ticket = client.submit(cancel(1)).await.expect("it is open");
    while mock.executed().is_empty() {
        tokio::task::yield_now().await;
    }
    let reason = loop {
        match events.next().await {
            Some(Event::Connected(_)) => {}
            Some(Event::Disconnected(reason)) => break reason,
            other => panic!("{other:?}"),
        }
    };
    let text = "nothing came from the exchange for 60ms";
    assert_eq!(reason.to_string(), text);
    // It was executed, and the next connection reports it.
    assert!(matches!(
        ticket.await,
        Outcome::Executed {
            is_repeated: true,
            ..
        }
    ));
}

#[tokio::test]
async fn a_command_that_is_too_long_is_not_sent() {
    let mock = Mock::new([]);
    mock.world().welcome.frame_bytes_max = 100;
    let (client, _events) = AdminClient::connect(options(&mock))
        .await
        .expect("it listens");
    let balances = vec![(CurrencyId(1), 2); 9];
    let uid = UserId(1);
    let accounts = Command::AddAccounts([AccountSpec { uid, balances }].into());
    let accounts = AdminCommand::try_from(accounts).expect("an operator's");
    let outcome = client.submit(accounts).await.expect("it is open").await;
    let (bytes, bytes_max) = (148, 100);
    assert_eq!(outcome, Outcome::TooLong { bytes, bytes_max });
    let nop = AdminCommand::try_from(Command::Nop).expect("an operator's");
    let outcome = client.submit(nop).await.expect("it is open").await;
    assert!(
        matches!(outcome, Outcome::Executed { number: 0, .. }),
        "{outcome}"
    );
}

/// Options with the addresses of two servers.
fn options_of(first: &Mock, second: &Mock) -> Options {
    let mut options = options(first);
    options.address = format!("{},{}", first.address, second.address);
    options
}

#[tokio::test]
async fn after_a_loss_the_next_address_is_tried_first() {
    // It breaks after its welcome and one answer, and would be there again at once.
    let first = Mock::new([Fault::AfterWriting(76 + 28)]);
    let second = Mock::new([]);
    let connected = TradeClient::connect(options_of(&first, &second)).await;
    let (client, _events) = connected.expect("the first answers");
    for order in 1..3 {
        let ticket = client.submit(cancel(order)).await.expect("it is open");
        assert!(matches!(ticket.await, Outcome::Executed { .. }));
    }
    assert_eq!((first.world().hellos, second.world().hellos), (1, 1));
    client.close().await;
}

#[tokio::test]
async fn a_server_that_has_fewer_reports_than_were_received_is_passed_over() {
    let first = Mock::new([Fault::AfterWriting(76 + 2 * (28 + 96))]);
    let stale = Mock::new([]);
    let connected = TradeClient::connect(options_of(&first, &stale)).await;
    let (client, mut events) = connected.expect("the first answers");
    let mut tickets = Vec::new();
    for order in 1..=4 {
        tickets.push(client.submit(cancel(order)).await.expect("it is open"));
    }
    reports_until(&mut events, 4).await;
    for ticket in tickets {
        assert!(matches!(ticket.await, Outcome::Executed { .. }));
    }
    assert_eq!(first.executed().len(), 4);
    assert_eq!((first.world().hellos, stale.world().hellos), (2, 1));
    assert!(stale.executed().is_empty());
    client.close().await;
}
