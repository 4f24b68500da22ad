//! The client against a scripted server.

mod breaks;
mod endings;
mod events;
mod memory;
mod mock;
mod threads;

use std::time::Duration;

use thalweg_client::exchange::session::ClientSequence;
use thalweg_client::exchange::{OrderId, SymbolId, UserId};
use thalweg_client::{Event, Events, Options, Outcome, TradeClient, TradeCommand};

use crate::mock::Mock;

const ME: UserId = UserId(7);

/// Returns a command that differs from others by its order.
fn cancel(order: i64) -> TradeCommand {
    TradeCommand::cancel(ME, SymbolId(1), OrderId(order))
}

/// The options of the tests: attempts without a wait.
fn options(mock: &Mock) -> Options {
    let mut options = Options::new(mock.address.to_string(), ME.0);
    options.sequences_after = Some(ClientSequence(0));
    options.retry_min = Duration::ZERO;
    options.retry_max = Duration::ZERO;
    // No test waits for one.
    options.connect_timeout = Duration::from_secs(600);
    options
}

/// Returns a client of a server that welcomes it, and its events.
async fn connected(mock: &Mock) -> (TradeClient, Events) {
    let connected = TradeClient::connect(options(mock)).await;
    connected.expect("it is welcomed")
}

/// Returns the outcome of a command.
async fn outcome(client: &TradeClient, order: i64) -> Outcome {
    let ticket = client.submit(cancel(order)).await;
    ticket.expect("it is open").await
}

/// Reports until number `last`: none twice, none left out.
async fn reports_until(events: &mut Events, last: u64) {
    let mut next = 1;
    while next <= last {
        match events.next().await.expect("the client lives") {
            Event::Report(report) => {
                assert_eq!(report.number.0, next);
                next += 1;
            }
            Event::ReportGap(gap) => panic!("{gap:?} at {next}"),
            _ => {}
        }
    }
}
