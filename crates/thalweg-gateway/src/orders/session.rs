//! A user's trade session with the exchange: commands leave in the order of their sequences, each
//! after its order is durable in the log.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use thalweg_client::{Closed, Options, Outcome, ReadClient, TradeClient, TradeCommand};
use thalweg_exchange::codec::session::{QueryAnswer, SessionQuery};
use thalweg_exchange::session::ClientSequence;
use thalweg_exchange::{OrderId, ResultCode, SymbolId, UserId};
use thalweg_journal::Lsn;
use thalweg_server::OrderNotes;
use tokio::sync::{mpsc, oneshot};

use super::User;
use super::committer::Committer;
use super::log::{Log, Record};
use super::memory::{ORDER_IDS, OrderKey};
use super::primary::Primary;
use super::reconciliation_queue::ReconciliationQueue;
use crate::error::ApiError;
use crate::time_unit::now_us;

/// Commands and queries of a user that wait for its session.
pub(super) const WAITING_MAX: usize = 1_024;
/// How long a session may take to be connected.
const CONNECT_TIME: Duration = Duration::from_secs(5);

/// How sessions are opened.
#[derive(Clone)]
pub(super) struct Access {
    pub(super) trade: SocketAddr,
    pub(super) key: Vec<u8>,
    pub(super) number: u32,
    pub(super) primary: Primary,
    pub(super) notes: OrderNotes,
}

impl std::fmt::Debug for Access {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { trade, number, .. } = self;
        let mut shown = f.debug_struct("Access");
        shown.field("trade", trade).field("number", number);
        shown.finish_non_exhaustive()
    }
}

/// A request to a session.
#[derive(Debug)]
pub(super) enum Request {
    Submit(Box<Submit>),
    Query(SessionQuery, oneshot::Sender<QueryAnswer>),
}

/// A command with the sequence that it must have.
#[derive(Debug)]
pub(super) struct Submit {
    pub(super) sequence: u64,
    /// The record that must be durable before.
    pub(super) lsn: Option<Lsn>,
    /// The time after which it may not be sent any more.
    pub(super) limit_us: i64,
    pub(super) command: TradeCommand,
    /// The note of the order for the gateways of other replicas.
    pub(super) note: Option<Arc<[u8]>>,
    pub(super) done: Done,
}

/// The receiver of a command's outcome, and the order that the command places or reduces.
#[derive(Debug)]
pub(super) struct Done {
    pub(super) sender: oneshot::Sender<Result<Executed, ApiError>>,
    /// The order that is noted in its user's memory before the command is executed.
    pub(super) noted: Option<(Arc<User>, OrderKey)>,
    pub(super) reconciliation: Arc<ReconciliationQueue>,
    pub(super) log: Log,
}

impl Done {
    /// Sends the outcome; the client may be gone. What was noted of a command that was not executed
    /// is forgotten: an order also by the log, since later ones may be executed. Where that is not
    /// known, a list of the open orders decides: the connection is gone, so the command was
    /// executed before now, or never will be.
    pub(super) fn settle(self, outcome: Result<Executed, ApiError>) {
        if let Some((user, key)) = self.noted {
            // Under one lock: a list that is asked for before says nothing of it.
            let mut memory = user.memory();
            match &outcome {
                Ok((_, ResultCode::Success)) => {}
                Ok(_) => memory.end_reduction(key),
                Err(error) if *error == ApiError::TIMEOUT => {
                    memory.note_unanswered(key, self.reconciliation.want(user.id));
                }
                Err(_) => {
                    if memory.forget_unexecuted(key) {
                        let _ = self.log.append(&Record::Forgotten(user.id, key));
                    }
                }
            }
        }
        let _ = self.sender.send(outcome);
    }
}

/// The number of a command that was executed, and its result.
pub(super) type Executed = (u64, ResultCode);

/// Serves the requests of a user until their sender is dropped; `last` is the sequence of the last
/// command of the session.
pub(super) async fn run(
    access: Access,
    user: UserId,
    committer: Committer,
    mut requests: mpsc::Receiver<Request>,
    mut last: u64,
) {
    let mut client: Option<Connected> = None;
    // The last sequence of the open session.
    let mut sent = last;
    let mut batch = Vec::new();
    while requests.recv_many(&mut batch, WAITING_MAX).await > 0 {
        let record = batch.iter().rev().find_map(|request| match request {
            Request::Submit(submit) => submit.lsn,
            Request::Query(..) => None,
        });
        let is_logged = match record {
            None => true,
            Some(lsn) => committer.commit(lsn).await,
        };
        // One attempt for all that came together.
        let mut may_connect = true;
        for request in batch.drain(..) {
            if let Request::Submit(submit) = &request {
                last = submit.sequence - 1;
            }
            // One that read before a take-over is closed.
            let takes_orders = access.primary.claim().is_ok();
            client.take_if(|client| takes_orders && matches!(client, Connected::Read(_)));
            // With a claim other sequences begin: a session that a query opened is before them.
            client.take_if(|_| matches!(request, Request::Submit(_)) && sent != last);
            let connected = match client.take() {
                None if may_connect => {
                    sent = last;
                    connect(&access, user, takes_orders.then_some(last)).await
                }
                connected => connected,
            };
            may_connect = connected.is_some();
            if let Request::Submit(submit) = &request {
                (last, sent) = (submit.sequence, submit.sequence);
            }
            let Some(connected) = connected else {
                refuse(request);
                continue;
            };
            if serve(&connected, (&access.notes, user), request, is_logged).await {
                client = Some(connected);
            }
        }
    }
}

/// A session of a user.
enum Connected {
    Trade(TradeClient),
    /// At a replica that follows the primary.
    Read(ReadClient),
}

/// Opens a session: one that trades, whose sequences come after `last`, or else one that reads.
async fn connect(access: &Access, user: UserId, last: Option<u64>) -> Option<Connected> {
    let mut options = Options::new(access.trade.to_string(), user.0);
    options.number = access.number;
    options.key.clone_from(&access.key);
    options.without_reports = true;
    options.connect_within = CONNECT_TIME;
    options.heartbeat = Duration::from_secs(5);
    options.sequences_after = last.map(ClientSequence);
    // There are no events but those of the connection.
    let connected = match last {
        Some(_) => (TradeClient::connect(options).await).map(|(one, _)| Connected::Trade(one)),
        None => (ReadClient::connect(options).await).map(|(one, _)| Connected::Read(one)),
    };
    match connected {
        Ok(connected) => Some(connected),
        Err(error) => {
            tracing::error!(%error, %user, "the gateway has no session");
            None
        }
    }
}

fn refuse(request: Request) {
    if let Request::Submit(submit) = request {
        submit.done.settle(Err(ApiError::BUSY));
    }
}

fn pass_on(answered: Result<QueryAnswer, Closed>, answer: oneshot::Sender<QueryAnswer>) {
    if let Ok(answered) = answered {
        let _ = answer.send(answered);
    }
}

/// Sends a request. Returns false where the client is closed.
async fn serve(
    client: &Connected,
    (notes, user): (&OrderNotes, UserId),
    request: Request,
    is_logged: bool,
) -> bool {
    match (request, client) {
        (Request::Query(query, answer), Connected::Trade(client)) => {
            let client = client.clone();
            tokio::spawn(async move { pass_on(client.query(query).await, answer) });
            true
        }
        (Request::Query(query, answer), Connected::Read(client)) => {
            let client = client.clone();
            tokio::spawn(async move { pass_on(client.query(query).await, answer) });
            true
        }
        (request, Connected::Read(_)) => {
            refuse(request);
            true
        }
        (Request::Submit(submit), Connected::Trade(client)) => {
            let Submit {
                sequence,
                limit_us,
                command,
                note,
                done,
                ..
            } = *submit;
            let refused = match is_logged {
                false => Some(ApiError::BUSY),
                true if now_us() > limit_us => Some(ApiError::TIMESTAMP),
                true => None,
            };
            if let Some(error) = refused {
                // Something must have its sequence, so that the next ones are as they should be. No
                // order has its id.
                let id = OrderId(ORDER_IDS + sequence as i64);
                let nothing = TradeCommand::cancel(user, SymbolId(0), id);
                done.settle(Err(error));
                return client.submit_with(nothing, |_| ()).await.is_ok();
            }
            let noted = note.map(|note| {
                notes.put(user, sequence, note);
                notes.clone()
            });
            let callback = move |outcome| {
                if let Some(noted) = noted {
                    noted.remove(user, sequence);
                }
                done.settle(result_of(outcome, sequence));
            };
            client.submit_with(command, callback).await.is_ok()
        }
    }
}

/// Returns the outcome of a command that must have a sequence.
fn result_of(outcome: Outcome, expected: u64) -> Result<Executed, ApiError> {
    use thalweg_exchange::session::Refusal;
    match outcome {
        Outcome::Executed {
            sequence,
            number,
            result,
            ..
        } => {
            if sequence.0 != expected {
                tracing::error!(%sequence, expected, "a command has another sequence");
            }
            Ok((number, result))
        }
        Outcome::Refused { why, .. } => Err(match why {
            Refusal::Rate { .. } | Refusal::InFlight { .. } => ApiError::ORDER_RATE.after(1),
            Refusal::Draining => ApiError::STOPPING,
            _ => ApiError::BUSY,
        }),
        Outcome::Unknown { .. } => Err(ApiError::TIMEOUT),
        Outcome::NotSent | Outcome::TooLong { .. } => Err(ApiError::DISCONNECTED),
    }
}

/// Spawns the task of a session.
pub(super) fn spawn(
    access: &Access,
    user: UserId,
    committer: &Committer,
    last: u64,
) -> mpsc::Sender<Request> {
    let (sender, receiver) = mpsc::channel(WAITING_MAX);
    tokio::spawn(run(access.clone(), user, committer.clone(), receiver, last));
    sender
}

#[cfg(test)]
mod tests {
    use thalweg_exchange::{Action, Command, CurrencyId, Place, SymbolSpec};

    use super::*;
    use crate::link::tests::Fixture;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn an_order_whose_record_is_not_durable_cancels_none_of_another_session() {
        let fixture = Fixture::new("not-durable").await;
        let (symbol, user) = (SymbolId(0), UserId(1));
        let spec = SymbolSpec::pair(symbol, CurrencyId(11), CurrencyId(20));
        fixture.run(Command::AddSymbols([spec].into())).await;
        let place = Place::limit((user, OrderId(1)), symbol, Action::Bid, (100, 5));
        fixture.submit(place).await;
        let orders = &fixture.state().orders;
        let connected = connect(&orders.access, user, Some(0)).await;
        let connected = connected.expect("a session");
        let (sender, outcome) = oneshot::channel();
        let submit = Submit {
            sequence: 1,
            lsn: None,
            limit_us: i64::MAX,
            command: place.into(),
            note: None,
            done: Done {
                sender,
                noted: None,
                reconciliation: Arc::clone(&orders.reconciliation),
                log: orders.log.clone(),
            },
        };
        let request = Request::Submit(Box::new(submit));
        assert!(serve(&connected, (&orders.access.notes, user), request, false).await);
        let outcome = outcome.await.expect("it is settled");
        assert_eq!(outcome, Err(ApiError::BUSY));
        // The query comes behind what was sent in the place of the order.
        let Connected::Trade(client) = &connected else {
            panic!("it trades");
        };
        client
            .query(SessionQuery::Account(user))
            .await
            .expect("it is open");
        let cancel = TradeCommand::cancel(user, symbol, OrderId(1));
        let Outcome::Executed { result, .. } = fixture.submit(cancel).await else {
            panic!("it is executed");
        };
        assert_eq!(result, ResultCode::Success, "it is open");
    }
}
