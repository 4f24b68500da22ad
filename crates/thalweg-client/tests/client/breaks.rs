//! Connections that break, at every byte: each command is executed once, in order, and answered;
//! each report comes once.

use thalweg_client::exchange::ResultCode;
use thalweg_client::{Outcome, TradeClient};

use crate::mock::{Fault, Mock};
use crate::{cancel, options, reports_until};

const COMMANDS: u64 = 5;

/// Sends commands over connections with these faults. Returns the bytes that were read and written
/// on the last one.
async fn trade(plan: Vec<Fault>) -> [usize; 2] {
    let context = format!("{plan:?}");
    let mock = Mock::new(plan);
    let (client, mut events) = loop {
        // The first connection must be made by the user.
        match TradeClient::connect(options(&mock)).await {
            Ok(made) => break made,
            Err(reason) => assert!(reason.is_retryable(), "{context}: {reason}"),
        }
    };
    let mut tickets = Vec::new();
    for order in 0..COMMANDS {
        tickets.push(
            client
                .submit(cancel(order as i64))
                .await
                .expect("it is open"),
        );
    }
    let mut sequences = Vec::new();
    for (ticket, expected) in tickets.into_iter().zip(0..) {
        match ticket.await {
            Outcome::Executed {
                sequence,
                number,
                result,
                ..
            } => {
                assert_eq!(
                    (number, result),
                    (expected, ResultCode::Success),
                    "{context}"
                );
                sequences.push(sequence.0);
            }
            other => panic!("{context}: {other}"),
        }
    }
    reports_until(&mut events, COMMANDS).await;
    assert_eq!(mock.executed(), sequences, "{context}");
    let commands: Vec<_> = mock
        .world()
        .executed
        .iter()
        .map(|(_, sent)| sent.clone())
        .collect();
    let sent: Vec<_> = (0..COMMANDS as i64)
        .map(|order| cancel(order).into_command())
        .collect();
    assert_eq!(commands, sent, "{context}");
    client.close().await;
    while events.next().await.is_some() {}
    drop(events);
    let hellos = mock.world().hellos;
    assert!(hellos >= 1, "{context}");
    // The connection's thread notes them when the client is gone.
    loop {
        let world = mock.world();
        if world.ended == world.begun {
            return world.bytes;
        }
        drop(world);
        std::thread::yield_now();
    }
}

#[tokio::test]
async fn a_connection_that_breaks_after_any_byte_of_the_client() {
    let [whole, _] = trade(Vec::new()).await;
    assert!(whole > 5 * 44, "{whole}");
    for bytes in 0..whole {
        trade(vec![Fault::AfterReading(bytes)]).await;
    }
}

#[tokio::test]
async fn a_connection_that_breaks_after_any_byte_of_the_server() {
    // Welcome, answers, reports.
    let whole = 76 + 5 * (28 + 96);
    for bytes in 0..whole {
        trade(vec![Fault::AfterWriting(bytes)]).await;
    }
}

#[tokio::test]
async fn connections_that_break_one_after_the_other() {
    for bytes in (1..300).step_by(7) {
        trade(vec![
            Fault::AfterReading(bytes),
            Fault::AfterWriting(76 + bytes),
            Fault::Mute(1),
            Fault::AfterWriting(bytes),
            Fault::AfterReading(300 - bytes),
        ])
        .await;
    }
}

#[tokio::test]
async fn answers_that_are_lost() {
    for executed in 1..=COMMANDS as usize {
        trade(vec![Fault::Mute(executed)]).await;
    }
}

#[tokio::test]
async fn answers_that_come_twice() {
    trade(vec![Fault::Echo]).await;
}
