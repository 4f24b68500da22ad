//! Events beside answers: reports, gaps, market data, queries; and how many of them may wait.

use thalweg_client::exchange::SymbolId;
use thalweg_client::exchange::codec::session::{Conflated, QueryResult, ReportGap, ServerFrame};
use thalweg_client::exchange::codec::{
    encode_message, encode_snapshot, message_bytes, snapshot_bytes,
};
use thalweg_client::exchange::market::{
    Body, Channels, Epoch, FeedSequence, Message, Snapshot, SymbolSequence,
};
use thalweg_client::exchange::session::ReportNumber;
use thalweg_client::{Event, Outcome, ReadClient, SessionQuery, TradeClient};

use crate::mock::{Fault, Mock, bytes_of, report};
use crate::{ME, cancel, connected, options, outcome};

fn gap(from: u64, to: u64) -> Vec<u8> {
    let (from, to) = (ReportNumber(from), ReportNumber(to));
    bytes_of(&ServerFrame::ReportGap(ReportGap { from, to }))
}

/// Returns the events that the user sees of these frames.
async fn seen(frames: Vec<Vec<u8>>, expected: usize) -> Vec<String> {
    let mock = Mock::new([Fault::Extra(frames.concat())]);
    let (_client, mut events) = connected(&mock).await;
    let mut seen = Vec::new();
    while seen.len() < expected {
        seen.push(match events.next().await.expect("the client lives") {
            Event::Connected(_) => continue,
            Event::Report(report) => format!("report {}", report.number),
            Event::ReportGap(gap) => format!("gap {}-{}", gap.from, gap.to),
            Event::Market(message) => format!("message {}", message.symbol_sequence.0),
            Event::Snapshot(snapshot) => format!("snapshot as of {}", snapshot.as_of.0),
            Event::Conflated(conflated) => format!("{} missed", conflated.missed),
            other => format!("{other:?}"),
        });
    }
    seen
}

#[tokio::test]
async fn reports_come_once_and_missing_ones_as_gaps() {
    let frame = |number| bytes_of(&report(number));
    let frames = vec![
        frame(1),
        frame(1),
        frame(4),
        gap(3, 6),
        gap(2, 5),
        frame(6),
        frame(7),
    ];
    let expected = ["report 1", "gap 2-3", "report 4", "gap 5-6", "report 7"];
    assert_eq!(seen(frames, expected.len()).await, expected);
}

#[tokio::test]
async fn market_data_comes_as_it_is() {
    let message = Message {
        symbol: SymbolId(5),
        epoch: Epoch(1),
        sequence: FeedSequence(9),
        symbol_sequence: SymbolSequence(4),
        channels: Channels::default(),
        is_last: true,
        body: Body::Cleared,
    };
    let mut first = vec![0; message_bytes(&message)];
    encode_message(&message, &mut first).expect("there is room");
    let snapshot = Snapshot {
        as_of: SymbolSequence(8),
        ..Snapshot::default()
    };
    let mut second = vec![0; snapshot_bytes(&snapshot)];
    encode_snapshot(&snapshot, &mut second).expect("there is room");
    let conflated = Conflated {
        symbol: None,
        missed: 17,
    };
    let conflated = bytes_of(&ServerFrame::Conflated(conflated));
    let expected = ["message 4", "17 missed", "snapshot as of 8"];
    assert_eq!(seen(vec![first, conflated, second], 3).await, expected);
}

#[tokio::test]
async fn subscriptions_are_made_again_on_a_new_connection() {
    let mock = Mock::new([]);
    let (client, mut events) = ReadClient::connect(options(&mock))
        .await
        .expect("it listens");
    client
        .subscribe([3, 1, 3].map(SymbolId))
        .await
        .expect("it is open");
    client.subscribe([SymbolId(2)]).await.expect("it is open");
    client.unsubscribe([SymbolId(1)]).await.expect("it is open");
    // An answer shows that what was sent before has arrived.
    let query = SessionQuery::Account(ME);
    let answer = client.query(query).await.expect("it is open");
    assert_eq!(answer.result, QueryResult::UnknownUser);
    let lists = [vec![1, 3], vec![2], vec![1]];
    let asked = lists.map(|list| (false, list.into_iter().map(SymbolId).collect::<Vec<_>>()));
    assert_eq!(mock.world().subscribed, asked);
    // Another connection.
    mock.world().plan.push_back(Fault::AfterWriting(80));
    drop(client);
    while events.next().await.is_some() {}
    let (client, _events) = ReadClient::connect(options(&mock))
        .await
        .expect("it listens");
    client
        .subscribe([3, 2].map(SymbolId))
        .await
        .expect("it is open");
    // The connection breaks in the answer, and the query is asked again on the next one.
    client.query(query).await.expect("it is open");
    assert_eq!(
        mock.world().subscribed,
        [(false, vec![SymbolId(2), SymbolId(3)])]
    );
    assert_eq!(mock.world().hellos, 3);
}

/// While events wait nothing is read; so answers wait, too, and nothing is lost.
#[tokio::test]
async fn events_that_are_not_read_hold_the_connection_up() {
    let mock = Mock::new([]);
    let mut options = options(&mock);
    options.events_max = 4;
    options.in_flight_max = 8;
    let (client, mut events) = TradeClient::connect(options).await.expect("it listens");
    let sender = client.clone();
    let sent = tokio::spawn(async move {
        let mut executed = 0;
        for order in 0..2_000 {
            let ticket = sender.submit(cancel(order)).await.expect("it is open");
            executed += usize::from(matches!(ticket.await, Outcome::Executed { .. }));
        }
        executed
    });
    crate::reports_until(&mut events, 2_000).await;
    assert_eq!(sent.await.expect("no panic"), 2_000);
}

#[tokio::test]
async fn a_client_without_an_event_receiver_gets_answers() {
    let mock = Mock::new([]);
    let mut options = options(&mock);
    options.events_max = 1;
    let (client, events) = TradeClient::connect(options).await.expect("it listens");
    drop(events);
    for order in 0..500 {
        let outcome = outcome(&client, order).await;
        assert!(matches!(outcome, Outcome::Executed { .. }), "{outcome}");
    }
    client.close().await;
}
