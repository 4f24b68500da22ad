//! The client for threads.

use std::sync::mpsc;
use std::time::Duration;

use thalweg_client::BlockingTradeClient;
use thalweg_client::exchange::codec::session::{CloseReason, QueryResult};
use thalweg_client::{DisconnectReason, Event, Outcome, SessionQuery};

use crate::mock::{Fault, Mock, bye};
use crate::{ME, cancel, options};

#[test]
fn a_thread_trades_over_a_connection_that_breaks() {
    let mock = Mock::new([Fault::AfterWriting(300), Fault::Mute(3)]);
    let (client, mut events) = BlockingTradeClient::connect(options(&mock)).expect("it listens");
    assert_eq!(client.welcome().exchange, 0xABC);
    let tickets: Vec<_> = (0..20)
        .map(|order| client.submit(cancel(order)).expect("it is open"))
        .collect();
    for (ticket, expected) in tickets.into_iter().zip(0..) {
        match ticket.wait() {
            Outcome::Executed { number, .. } => assert_eq!(number, expected),
            other => panic!("{other}"),
        }
    }
    let (sender, outcomes) = mpsc::channel();
    let callback = move |outcome| sender.send(outcome).expect("it is awaited");
    client
        .submit_with(cancel(20), callback)
        .expect("it is open");
    assert!(matches!(
        outcomes.recv(),
        Ok(Outcome::Executed { number: 20, .. })
    ));
    let answer = client.query(SessionQuery::Account(ME)).expect("it is open");
    assert_eq!(
        (answer.number, answer.result),
        (21, QueryResult::UnknownUser)
    );
    let mut reports = 0;
    while reports < 21 {
        let event = events.next().expect("the client lives");
        reports += u64::from(matches!(event, Event::Report(_)));
    }
    client.close();
    let last = events.next();
    assert!(
        matches!(last, Some(Event::Closed(DisconnectReason::Done))),
        "{last:?}"
    );
    assert!(events.next().is_none());
    assert_eq!(mock.executed().len(), 21);
}

#[test]
fn a_client_that_is_dropped_settles_its_tickets() {
    let mock = Mock::new([Fault::Silent]);
    let (client, events) = BlockingTradeClient::connect(options(&mock)).expect("it listens");
    let ticket = client.submit(cancel(1)).expect("it is open");
    while mock.executed().is_empty() {
        std::thread::yield_now();
    }
    drop(client);
    assert!(matches!(ticket.wait(), Outcome::Unknown { .. }));
    drop(events);
}

#[test]
fn a_failed_connect_has_a_reason() {
    let mock = Mock::new([Fault::Reject(Vec::new())]);
    let reason = BlockingTradeClient::connect(options(&mock)).expect_err("it is closed");
    let text = "closed the connection without a welcome; is it an exchange?";
    assert_eq!(reason.to_string(), format!("{} {text}", mock.address));
}

#[test]
fn no_call_waits_longer_than_its_timeout_while_the_exchange_is_away() {
    let mock = Mock::new([Fault::AfterReading(50)]);
    let mut options = options(&mock);
    options.in_flight_max = 1;
    let (client, mut events) = BlockingTradeClient::connect(options).expect("it listens");
    let first = client.submit(cancel(1)).expect("it is open");
    drop(mock);
    let short = Duration::from_millis(20);
    while !matches!(events.next_timeout(short), Some(Event::Disconnected(_))) {}
    let first = first.wait_timeout(short).expect_err("no server answers");
    let query = client.query_timeout(SessionQuery::Account(ME), short);
    assert_eq!(query, Ok(None));
    // Room for requests that wait is bounded.
    let more = (2..).map(|order| client.submit_timeout(cancel(order), short));
    let sent = more.take_while(|sent| matches!(sent, Ok(Some(_))));
    assert!(sent.count() >= 1);
    drop(client);
    assert!(matches!(
        first.wait_timeout(Duration::from_secs(600)),
        Ok(Outcome::Unknown { .. } | Outcome::NotSent)
    ));
}

#[test]
fn an_exchange_that_comes_later_is_waited_for() {
    let closed = || Fault::Reject(Vec::new());
    let mock = Mock::new([closed(), closed(), closed()]);
    let mut options = options(&mock);
    options.connect_within = Duration::from_secs(600);
    let (client, _events) = BlockingTradeClient::connect(options.clone()).expect("it comes");
    let ticket = client.submit(cancel(1)).expect("it is open");
    assert!(matches!(ticket.wait(), Outcome::Executed { .. }));
    // Not for ever, and not where it makes no sense.
    options.connect_within = Duration::from_millis(50);
    let address = mock.address;
    drop((client, mock));
    let reason = BlockingTradeClient::connect(options).expect_err("no server is there");
    let text = format!("cannot connect to {address}: ");
    assert!(reason.to_string().starts_with(&text), "{reason}");
    let wrong = bye(CloseReason::WrongKey, "");
    let mock = Mock::new([Fault::Reject(wrong)]);
    let mut options = crate::options(&mock);
    options.connect_within = Duration::from_secs(600);
    let reason = BlockingTradeClient::connect(options).expect_err("it is refused");
    assert!(!reason.is_retryable());
}
