//! The balances that may have changed, sent to those who follow a user: by one task of the user at
//! a time, so that they are in order, and until all are sent.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use thalweg_exchange::UserId;

use super::event::UserEvent;
use super::{Orders, User};
use crate::error::ApiError;
use crate::lock;
use crate::state::now_us;
use crate::symbols::Symbols;

/// The time after which balances that the exchange did not tell are asked for again.
const RETRY: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
struct State {
    /// Those whose balances are to be sent.
    currencies: BTreeSet<i32>,
    /// Whether a task sends them.
    is_sending: bool,
}

/// The balances of a user that are to be sent.
#[derive(Debug, Default)]
pub(super) struct Position(Mutex<State>);

impl Position {
    /// Returns the currencies that are to be sent; without any the task is to end.
    fn take(&self) -> Option<BTreeSet<i32>> {
        let mut state = lock(&self.0);
        state.is_sending = !state.currencies.is_empty();
        state
            .is_sending
            .then(|| std::mem::take(&mut state.currencies))
    }
}

impl Orders {
    /// Notes currencies of a user whose balances may have changed. Returns the user where a task is
    /// to be spawned that [sends](Self::send_positions) them; else one does.
    pub(crate) fn moved(&self, id: UserId, currencies: BTreeSet<i32>) -> Option<Arc<User>> {
        let user = self.tracked(id)?;
        let was_sending = {
            let mut state = lock(&user.position.0);
            state.currencies.extend(currencies);
            std::mem::replace(&mut state.is_sending, true)
        };
        (!was_sending).then_some(user)
    }

    /// Sends the balances that have changed to those who follow a user, until none is left. Where
    /// the exchange does not tell them, it is asked again as long as there are followers.
    pub(crate) async fn send_positions(&self, user: &User, symbols: &Symbols) {
        while let Some(currencies) = user.position.take() {
            match self.balances(user, symbols, Some(&currencies)).await {
                Ok((_, balances)) => {
                    let time_us = now_us();
                    let event = UserEvent::Position { balances, time_us };
                    user.followers.send(Some(event));
                }
                Err(error) => {
                    if self.gives_up(user, error) {
                        return;
                    }
                    lock(&user.position.0).currencies.extend(currencies);
                    tokio::time::sleep(RETRY).await;
                }
            }
        }
    }

    /// Ends the task of a user whose balances are not to be had, or wanted by no follower. Returns
    /// whether it has.
    fn gives_up(&self, user: &User, error: ApiError) -> bool {
        // One that follows from now on has a report that is noted after this.
        let mut state = lock(&user.position.0);
        let is_unknown = error == ApiError::REJECTED_KEY;
        let is_over = is_unknown || self.check().is_err() || user.followers.is_empty();
        if is_over {
            *state = State::default();
        }
        is_over
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;
    use thalweg_exchange::CurrencyId;
    use thalweg_exchange::codec::session::{AccountView, QueryAnswer, QueryResult};
    use thalweg_exchange::risk::UserStatus;
    use tokio::sync::{mpsc, oneshot};
    use tokio::task::JoinHandle;

    use super::super::Events;
    use super::super::session::{Request, WAITING_MAX};
    use super::*;
    use crate::link::tests::Fixture;
    use crate::time_unit::TimeUnit;

    const BTC: i32 = 11;
    const USDT: i32 = 20;

    type Requests = mpsc::Receiver<Request>;

    /// Has a task send what has moved, unless one does.
    fn moved(fixture: &Fixture, currency: i32) -> Option<JoinHandle<()>> {
        let state = Arc::clone(fixture.state());
        let user = state.orders.moved(UserId(1), [currency].into())?;
        let send = async move { state.orders.send_positions(&user, &state.symbols).await };
        Some(tokio::spawn(send))
    }

    /// Returns the next question of a task.
    async fn ask(
        requests: &mut Requests,
        task: &mut JoinHandle<()>,
    ) -> oneshot::Sender<QueryAnswer> {
        let request = tokio::select! {
            request = requests.recv() => request,
            ended = task => panic!("the task has ended: {ended:?}"),
        };
        match request {
            Some(Request::Query(_, answer)) => answer,
            other => panic!("{other:?}"),
        }
    }

    /// Answers a question, as of now, with this amount of each currency.
    fn answer(fixture: &Fixture, question: oneshot::Sender<QueryAnswer>, free: i64) {
        let view = AccountView {
            uid: UserId(1),
            status: UserStatus::Active,
            last_transaction_id: 0,
            open_orders: 0,
            balances: [BTC, USDT].map(|id| (CurrencyId(id), free)).into(),
            positions: Vec::new(),
            waiting: Vec::new(),
        };
        let (id, number) = (0, fixture.state().orders.applied());
        let result = QueryResult::Account(view);
        let answered = question.send(QueryAnswer { id, number, result });
        answered.expect("it is waited for");
    }

    async fn free(events: &mut Events) -> String {
        let event = events.recv().await.expect("it was sent");
        let event: Value = serde_json::from_str(event.text(TimeUnit::default())).expect("JSON");
        let balances = event["B"].as_array().expect("a position").iter();
        let text = |of: &Value| [&of["a"], &of["f"]].map(|text| text.to_string()).join(" ");
        balances.map(text).collect::<Vec<_>>().join(", ")
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn balances_are_sent_in_order_and_once_they_can_be_had() {
        let fixture = Fixture::new("positions").await;
        let orders = &fixture.state().orders;
        let user = orders.user(UserId(1));
        let (queue, mut requests) = mpsc::channel(WAITING_MAX);
        user.queue.set(queue).expect("nothing was asked before");
        let (following, mut events) = orders.follow(UserId(1)).expect("there is room");
        // All that has moved comes when it can be had.
        let mut task = moved(&fixture, BTC).expect("none sends");
        let question = ask(&mut requests, &mut task).await;
        assert!(moved(&fixture, USDT).is_none());
        drop(question);
        let question = ask(&mut requests, &mut task).await;
        // Currencies that move meanwhile are asked for behind it.
        assert!(moved(&fixture, USDT).is_none());
        assert!(requests.is_empty());
        answer(&fixture, question, 1);
        let question = ask(&mut requests, &mut task).await;
        answer(&fixture, question, 2);
        assert_eq!(
            free(&mut events).await,
            r#""BTC" "0.0001", "USDT" "0.000001""#
        );
        assert_eq!(free(&mut events).await, r#""USDT" "0.000002""#);
        task.await.expect("it does not panic");
        // Without followers nothing is asked again.
        let mut task = moved(&fixture, BTC).expect("none sends");
        let question = ask(&mut requests, &mut task).await;
        drop((following, question));
        task.await.expect("it does not panic");
        assert!(user.position.take().is_none());
        assert!(moved(&fixture, BTC).is_some());
    }
}
