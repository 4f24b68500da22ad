//! Queries about the orders and the account of a user, while replicas change. Each answer is the
//! state after as many commands as it says. One of a primary has all that was acknowledged before
//! it was asked, unless another one had replaced it; a replica does not go back in time.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::slice::from_ref;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use thalweg_client::exchange::codec::session::{AccountView, OpenOrder, QueryResult};
use thalweg_client::exchange::market::Epoch;
use thalweg_client::exchange::report::orders_of;
use thalweg_client::exchange::{State, UserId};
use thalweg_client::{
    BlockingClient, BlockingReadClient, BlockingTradeClient, SessionCommand, SessionQuery,
};

use super::registers::{Course, SESSIONS, USER};
use crate::served_kills::clients::options;
use crate::served_kills::replay_with;
use crate::served_kills::served::Folder;

/// A query costs tokens.
const ASK_EVERY: Duration = Duration::from_millis(5);
/// Answers over one connection to a replica, whichever that is, before the next is asked.
const ANSWERS: usize = 50;
const QUERIES: [SessionQuery; 2] = [
    SessionQuery::OpenOrders(UserId(USER)),
    SessionQuery::Account(UserId(USER)),
];

/// The knowledge of the log that an answer to a command or a query gives.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known {
    /// The claim of the primary that has answered; none of a replica that may follow another one.
    pub(crate) claim: Option<u64>,
    pub(crate) called: u64,
    pub(crate) answered: u64,
    /// How many commands the log had, at least.
    pub(crate) commands: u64,
}

/// An answer to a query.
#[derive(Clone, Debug)]
struct Asked {
    connection: usize,
    known: Known,
    query: usize,
    result: QueryResult,
}

/// Returns the claim of a primary, from the epoch of its market data.
pub(crate) fn claim_of(epoch: Epoch) -> u64 {
    (epoch.0 - Epoch::FIRST_REPLICATED.0) >> 32
}

/// Asks over one connection, until that ends or has given `most` answers.
fn ask<C: SessionCommand>(
    client: &BlockingClient<C>,
    (connection, claim, most): (usize, Option<u64>, usize),
    course: &Course,
    asked: &mut Vec<Asked>,
) {
    for turn in 0..most {
        let query = turn % QUERIES.len();
        let called = course.now();
        let Ok(answer) = client.query(QUERIES[query]) else {
            return;
        };
        let known = Known {
            claim,
            called,
            answered: course.now(),
            commands: answer.number,
        };
        let result = answer.result;
        // A replica that is about to end has not answered.
        if !matches!(result, QueryResult::Refused(_)) {
            asked.push(Asked {
                connection,
                known,
                query,
                result,
            });
        }
        if course.is_over.load(Ordering::Relaxed) {
            return;
        }
        thread::park_timeout(ASK_EVERY);
    }
}

/// Asks the primary, or each replica in its turn, until the course is over.
fn ask_all(addresses: &str, at_primary: bool, course: &Course) -> Vec<Asked> {
    let mut asked = Vec::new();
    let replicas: Vec<&str> = addresses.split(',').collect();
    for connection in 0.. {
        if course.is_over.load(Ordering::Relaxed) {
            break;
        }
        let address = match at_primary {
            true => addresses,
            false => replicas[connection % replicas.len()],
        };
        let mut options = options(address, USER);
        (options.number, options.without_reports) = (SESSIONS, true);
        (options.attempts_max, options.connect_within) = (Some(0), Duration::from_secs(1));
        if at_primary {
            if let Ok((client, _events)) = BlockingTradeClient::connect(options) {
                let claim = claim_of(client.welcome().epoch);
                ask(
                    &client,
                    (connection, Some(claim), usize::MAX),
                    course,
                    &mut asked,
                );
            }
        } else if let Ok((client, _events)) = BlockingReadClient::connect(options) {
            ask(&client, (connection, None, ANSWERS), course, &mut asked);
        }
        thread::park_timeout(ASK_EVERY);
    }
    asked
}

/// The clients that ask, each on a thread of its own.
pub(crate) struct Queries {
    course: Arc<Course>,
    threads: Vec<JoinHandle<Vec<Asked>>>,
}

impl Queries {
    pub(crate) fn start(addresses: &str, course: &Arc<Course>) -> Self {
        let one = |at_primary| {
            let (course, addresses) = (Arc::clone(course), addresses.to_owned());
            thread::spawn(move || ask_all(&addresses, at_primary, &course))
        };
        Self {
            course: Arc::clone(course),
            threads: [true, false].map(one).into(),
        }
    }

    /// Waits for the clients, whose course is over.
    pub(crate) fn end(self, place: &Folder) -> Answers {
        let joined = self.threads.into_iter().map(|thread| {
            place.wait("the end of a client that asks", || {
                thread.is_finished().then_some(()).ok_or(self.course.now())
            });
            let ended = thread.join();
            ended.unwrap_or_else(|_| place.fail("a client that asks failed"))
        });
        Answers(joined.collect())
    }
}

/// The answers to the queries of each client.
pub(crate) struct Answers(Vec<Vec<Asked>>);

/// The answers to both queries after a number of commands.
type States = BTreeMap<u64, [QueryResult; 2]>;

fn answers_of(state: &State) -> [QueryResult; 2] {
    let user = state.risk.user(UserId(USER));
    let account = user.map_or(QueryResult::UnknownUser, |user| {
        QueryResult::Account(AccountView::from(user))
    });
    let orders = OpenOrder::all(&orders_of(state, UserId(USER)));
    let is_cut = false;
    [QueryResult::OpenOrders { orders, is_cut }, account]
}

impl Answers {
    /// Checks all answers by a journal, and by what else was acknowledged. Returns how many there
    /// are of a primary, and of any replica.
    pub(crate) fn check(self, directory: &Path, acknowledged: &[Known]) -> [usize; 2] {
        let all = self.0.iter().flatten();
        let wanted: BTreeSet<u64> = all.map(|asked| asked.known.commands).collect();
        let mut states = States::new();
        replay_with(directory, |commands, state| {
            if wanted.contains(&commands) {
                states.insert(commands, answers_of(state));
            }
        });
        for answers in &self.0 {
            check(answers, acknowledged, &states).unwrap_or_else(|why| panic!("{why}"));
        }
        self.refuse_stale(acknowledged, &states);
        let counts = self.0.iter().map(Vec::len);
        counts.collect::<Vec<_>>().try_into().expect("two clients")
    }

    /// Makes an answer of the primary an earlier one, in full and in part: neither must pass.
    fn refuse_stale(&self, acknowledged: &[Known], states: &States) {
        let answers = &self.0[0];
        let step = QUERIES.len();
        let pairs = answers.iter().zip(answers.iter().skip(step));
        let is_late = |early: &Asked, late: &Asked| {
            let is_known = |known: &&Known| {
                known.claim == late.known.claim
                    && known.answered < late.known.called
                    && known.commands > early.known.commands
            };
            early.query == late.query
                && early.result != late.result
                && acknowledged.iter().any(|known| is_known(&known))
        };
        let mut pairs = pairs.filter(|(early, late)| is_late(early, late));
        let (early, late) = pairs.next().expect("commands are executed between queries");
        let mut stale = late.clone();
        stale.result = early.result.clone();
        let refused = |stale: &Asked| check(from_ref(stale), acknowledged, states).is_err();
        assert!(refused(&stale), "{stale:?} is not the state");
        stale.known.commands = early.known.commands;
        assert!(refused(&stale), "{stale:?} is stale");
    }
}

/// Checks the answers that a client had, in order.
fn check(asked: &[Asked], acknowledged: &[Known], states: &States) -> Result<(), String> {
    for pair in asked.windows(2) {
        let [before, after] = pair else {
            continue;
        };
        if before.connection == after.connection && before.known.commands > after.known.commands {
            return Err(format!("{after:?} goes back behind {before:?}"));
        }
    }
    for one in asked {
        let state = states.get(&one.known.commands);
        let expected = state.map(|answers| &answers[one.query]);
        if expected != Some(&one.result) {
            return Err(format!("{one:?} is not what the journal has: {expected:?}"));
        }
    }
    let own = asked.iter().map(|one| one.known);
    let known: Vec<Known> = acknowledged.iter().copied().chain(own).collect();
    asked.iter().try_for_each(|one| check_time(one, &known))
}

/// Checks that an answer of a primary has all that was acknowledged before it was asked, under its
/// claim or an earlier one.
fn check_time(one: &Asked, known: &[Known]) -> Result<(), String> {
    let Known {
        claim: Some(claim),
        called,
        commands,
        ..
    } = one.known
    else {
        return Ok(());
    };
    let missing = known.iter().find(|before| {
        let is_before = before.claim.is_some_and(|before| before <= claim);
        is_before && before.answered < called && before.commands > commands
    });
    missing.map_or(Ok(()), |missing| {
        Err(format!(
            "{one:?} is stale: {missing:?} was acknowledged before"
        ))
    })
}

#[test]
fn a_stale_answer_of_a_primary_is_refused_and_that_of_a_replaced_one_is_not() {
    let state = answers_of(&State::default());
    let states: States = (0..9).map(|commands| (commands, state.clone())).collect();
    let known = |claim, called, commands| Known {
        claim,
        called,
        answered: called + 2,
        commands,
    };
    let asked = |claim, called, commands| Asked {
        connection: 0,
        known: known(claim, called, commands),
        query: 0,
        result: state[0].clone(),
    };
    let acknowledged = [known(Some(2), 10, 5)];
    let holds = |one: Asked| check(&[one], &acknowledged, &states).is_ok();
    assert!(holds(asked(Some(2), 13, 5)));
    assert!(!holds(asked(Some(2), 13, 4)), "it was acknowledged");
    assert!(!holds(asked(Some(3), 13, 4)), "a later primary has it, too");
    assert!(holds(asked(Some(2), 11, 4)), "it was under way");
    assert!(holds(asked(Some(1), 13, 4)), "it may have been replaced");
    assert!(holds(asked(None, 13, 4)), "a follower may be behind");
    let mut other = asked(None, 13, 4);
    other.result = QueryResult::UnknownSymbol;
    assert!(!holds(other), "it is not the state");
    let back = [asked(None, 1, 4), asked(None, 5, 3)];
    assert!(check(&back, &[], &states).is_err(), "a replica goes back");
}
