//! The memory of a session when its program starts again.

use std::io;
use std::sync::{Arc, Mutex};

use thalweg_client::exchange::session::{ClientSequence, Refusal, ReportNumber};
use thalweg_client::{
    DisconnectReason, Event, Outcome, SavedSession, SessionQuery, SessionStore, TradeClient,
};

use crate::mock::{Fault, Mock};
use crate::{cancel, options, outcome};

/// A store that outlives its clients, and notes all that was saved.
#[derive(Clone, Default)]
struct Notes(Arc<Mutex<Vec<SavedSession>>>);

impl Notes {
    fn last(&self) -> SavedSession {
        self.0
            .lock()
            .expect("no panic")
            .last()
            .copied()
            .unwrap_or_default()
    }
}

impl SessionStore for Notes {
    fn load(&mut self) -> io::Result<SavedSession> {
        Ok(self.last())
    }

    fn save(&mut self, saved: &SavedSession) -> io::Result<()> {
        self.0.lock().expect("no panic").push(*saved);
        Ok(())
    }
}

async fn sequence_of(client: &TradeClient, order: i64) -> u64 {
    match outcome(client, order).await {
        Outcome::Executed { sequence, .. } => sequence.0,
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn no_sequence_is_used_again() {
    let mock = Mock::new([]);
    let notes = Notes::default();
    let mut last = 0;
    for order in 0..3 {
        let connected = TradeClient::connect_with(options(&mock), notes.clone()).await;
        let (client, _events) = connected.expect("it listens");
        for _ in 0..2_000 {
            let sequence = sequence_of(&client, order).await;
            assert!(sequence > last && sequence <= notes.last().last_sequence.0);
            last = sequence;
        }
        // Killed: nothing more is saved.
        drop(client);
    }
    assert_eq!(mock.executed().len(), 6_000);
}

/// A session that does not remember may have commands in flight that it knows nothing of: here two
/// lives leave some that were not executed, so that their sequences are not known.
#[tokio::test]
async fn a_session_that_does_not_remember_uses_no_sequence_again() {
    let mock = Mock::new([
        Fault::Refuse(Refusal::Draining),
        Fault::Refuse(Refusal::Draining),
    ]);
    let mut last = ClientSequence(0);
    for _ in 0..3 {
        let mut options = options(&mock);
        options.sequences_after = None;
        let (client, _events) = TradeClient::connect(options).await.expect("it listens");
        for order in 0..10 {
            match outcome(&client, order).await {
                Outcome::Refused { sequence, .. } | Outcome::Executed { sequence, .. } => {
                    assert!(sequence > last, "{sequence} after {last}");
                    last = sequence;
                }
                other => panic!("{other}"),
            }
        }
    }
    assert_eq!(mock.executed().len(), 10);
}

#[tokio::test]
async fn reports_go_on_after_the_last_one_seen() {
    let mock = Mock::new([]);
    let notes = Notes::default();
    let connected = TradeClient::connect_with(options(&mock), notes.clone()).await;
    let (client, mut events) = connected.expect("it listens");
    for order in 0..5 {
        sequence_of(&client, order).await;
    }
    // The third one was given out, and the program is killed before it asks for more.
    for number in [0, 1, 2, 3] {
        match events.next().await {
            Some(Event::Connected(_)) => assert_eq!(number, 0),
            Some(Event::Report(report)) => assert_eq!(report.number.0, number),
            other => panic!("{other:?}"),
        }
    }
    client.close().await;
    drop(events);
    assert_eq!(notes.last().last_report, Some(ReportNumber(2)));
    let connected = TradeClient::connect_with(options(&mock), notes.clone()).await;
    let (_client, mut events) = connected.expect("it listens");
    assert!(matches!(events.next().await, Some(Event::Connected(_))));
    for number in [3, 4, 5] {
        match events.next().await {
            Some(Event::Report(report)) => assert_eq!(report.number.0, number),
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn another_exchange_is_refused() {
    let mock = Mock::new([]);
    let notes = Notes(Arc::new(Mutex::new(vec![SavedSession {
        exchange: Some(0xDEF),
        last_sequence: ClientSequence(9),
        last_report: None,
    }])));
    let reason = TradeClient::connect_with(options(&mock), notes)
        .await
        .expect_err("another one");
    let text = "the session's store is of exchange 0000000000000def, and this is 0000000000000abc";
    assert_eq!(reason.to_string(), text);
    assert!(!reason.is_retryable());
}

/// A store that fails after this number of saves.
struct Full(usize);

impl SessionStore for Full {
    fn load(&mut self) -> io::Result<SavedSession> {
        Ok(SavedSession::default())
    }

    fn save(&mut self, _: &SavedSession) -> io::Result<()> {
        match self.0.checked_sub(1) {
            Some(left) => self.0 = left,
            None => return Err(io::Error::from(io::ErrorKind::StorageFull)),
        }
        Ok(())
    }
}

#[tokio::test]
async fn what_cannot_be_remembered_is_not_sent() {
    let mock = Mock::new([Fault::Echo]);
    let reason = TradeClient::connect_with(options(&mock), Full(0))
        .await
        .expect_err("no room");
    assert_eq!(reason.to_string(), "the session's store: no storage space");
    let connected = TradeClient::connect_with(options(&mock), Full(1)).await;
    let (client, mut events) = connected.expect("it listens");
    let outcome = client.submit(cancel(1)).await.expect("it is open").await;
    assert_eq!(outcome, Outcome::NotSent);
    assert!(matches!(events.next().await, Some(Event::Connected(_))));
    assert!(matches!(
        events.next().await,
        Some(Event::Closed(DisconnectReason::Store(_)))
    ));
    assert!(mock.executed().is_empty());
}

/// Reports that are read after the client was closed are seen, too: the next start gets none again.
#[tokio::test]
async fn reports_that_are_read_after_the_end_do_not_come_again() {
    let mock = Mock::new([]);
    let notes = Notes::default();
    let mut last = 0;
    for round in 1..=3 {
        let connected = TradeClient::connect_with(options(&mock), notes.clone()).await;
        let (client, mut events) = connected.expect("it listens");
        for order in 0..3 {
            sequence_of(&client, order).await;
        }
        let user = SessionQuery::Account(crate::ME);
        client.query(user).await.expect("it is open");
        client.close().await;
        while let Some(event) = events.next().await {
            if let Event::Report(report) = event {
                last += 1;
                assert_eq!(report.number.0, last);
            }
        }
        assert_eq!(last, 3 * round);
        assert_eq!(notes.last().last_report, Some(ReportNumber(last)));
    }
}
