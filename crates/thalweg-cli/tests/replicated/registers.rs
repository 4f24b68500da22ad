//! Sessions of one user that place, cancel and look for the same order; what they have seen must be
//! linearizable.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use thalweg_client::exchange::session::Refusal;
use thalweg_client::exchange::{Action, OrderId, Place, ResultCode, SymbolId, UserId};
use thalweg_client::{BlockingTradeClient, Outcome, TradeCommand};
use thalweg_testkit::linearizable::{Call, Presence, PresenceCall, is_linearizable};

use super::queries::{Known, claim_of};
use crate::served_kills::Journaled;
use crate::served_kills::clients::options;
use crate::served_kills::served::Folder;

pub(crate) const USER: i64 = 9;
const SYMBOL: SymbolId = SymbolId(1);
/// A buyer's, at which nobody sells.
const PRICE: i64 = 1;
pub(crate) const SESSIONS: u32 = 4;
/// Calls for one order, after which the next is used.
const CALLS_PER_ORDER: u64 = 48;

/// A call, its order, and what its client had for it.
struct Made {
    order: u64,
    call: Call<Presence>,
    outcome: Outcome,
    /// The claim of the primary, where its connection was to one alone.
    claim: Option<u64>,
}

#[derive(Debug)]
pub(crate) struct Course {
    began: Instant,
    pub(crate) is_over: AtomicBool,
    calls: AtomicU64,
}

impl Course {
    pub(crate) fn now(&self) -> u64 {
        self.began.elapsed().as_nanos() as u64
    }
}

/// The sessions, each on a thread of its own.
pub(crate) struct Registers {
    pub(crate) course: Arc<Course>,
    threads: Vec<JoinHandle<Vec<Made>>>,
}

/// Returns the command of a call. A look is a move to where the order is.
fn command(order: u64, call: PresenceCall) -> TradeCommand {
    let (user, order) = (UserId(USER), OrderId(order as i64));
    match call {
        PresenceCall::Place => Place::limit((user, order), SYMBOL, Action::Bid, (PRICE, 1)).into(),
        PresenceCall::Cancel => TradeCommand::cancel(user, SYMBOL, order),
        PresenceCall::Look => TradeCommand::move_to(user, SYMBOL, order, PRICE),
    }
}

/// Makes one call after the other. A session with an odd number gives up with its connection, so
/// that a call may have no answer; another one sends it again.
fn session(number: u32, address: &str, course: &Course) -> Vec<Made> {
    let mut options = options(address, USER);
    options.number = number;
    options.without_reports = true;
    options.connect_within = Duration::from_secs(5);
    options.attempts_max = (number % 2 == 1).then_some(0);
    let mut made = Vec::new();
    let is_over = || course.is_over.load(Ordering::Relaxed);
    while !is_over() {
        let (client, _events) = match BlockingTradeClient::connect(options.clone()) {
            Ok(connected) => connected,
            Err(reason) if reason.is_retryable() => continue,
            Err(reason) => panic!("{reason}"),
        };
        let claim = (options.attempts_max.is_some()).then(|| claim_of(client.welcome().epoch));
        while !is_over() {
            let count = course.calls.fetch_add(1, Ordering::Relaxed);
            let order = 1 + count / CALLS_PER_ORDER;
            let operation = PresenceCall::ALL[(count * 7 + u64::from(number)) as usize % 3];
            let called = course.now();
            let Ok(ticket) = client.submit(command(order, operation)) else {
                break;
            };
            let outcome = ticket.wait();
            let answer = match outcome {
                Outcome::Executed { result, .. } => Some((course.now(), succeeded(result))),
                Outcome::Unknown { .. } => None,
                // An exchange that is about to end has not taken it.
                Outcome::NotSent
                | Outcome::Refused {
                    why: Refusal::Draining,
                    ..
                } => break,
                other => panic!("{other}"),
            };
            let call = Call {
                operation,
                called,
                answer,
            };
            made.push(Made {
                order,
                call,
                outcome,
                claim,
            });
        }
        client.close();
    }
    made
}

fn succeeded(result: ResultCode) -> bool {
    let has_failed = matches!(
        result,
        ResultCode::MatchingUnknownOrderId | ResultCode::MatchingRejectedDuplicateId
    );
    assert!(has_failed || result == ResultCode::Success, "{result}");
    !has_failed
}

impl Registers {
    pub(crate) fn start(address: &str) -> Self {
        let course = Arc::new(Course {
            began: Instant::now(),
            is_over: AtomicBool::new(false),
            calls: AtomicU64::new(0),
        });
        let one = |number| {
            let (course, address) = (Arc::clone(&course), address.to_owned());
            thread::spawn(move || session(number, &address, &course))
        };
        let threads = (0..SESSIONS).map(one).collect();
        Self { course, threads }
    }

    /// Ends the sessions, and returns their calls.
    pub(crate) fn end(self, place: &Folder) -> Calls {
        self.course.is_over.store(true, Ordering::Relaxed);
        let joined = self.threads.into_iter().flat_map(|thread| {
            place.wait("the end of a session", || {
                let calls = self.course.calls.load(Ordering::Relaxed);
                thread.is_finished().then_some(()).ok_or(calls)
            });
            thread
                .join()
                .unwrap_or_else(|_| place.fail("a session failed"))
        });
        Calls(joined.collect())
    }
}

/// The calls of all sessions.
pub(crate) struct Calls(Vec<Made>);

impl Calls {
    /// Returns what is known by each answer of a primary whose claim is known.
    pub(crate) fn acknowledged(&self) -> Vec<Known> {
        let of = |made: &Made| {
            let (answered, _) = made.call.answer?;
            let Outcome::Executed { number, .. } = made.outcome else {
                return None;
            };
            Some(Known {
                claim: made.claim,
                called: made.call.called,
                answered,
                commands: number + 1,
            })
        };
        self.0.iter().filter_map(of).collect()
    }

    /// Checks that what was acknowledged is in the journal once, and that all is linearizable.
    /// Returns the number of calls, and of those without an answer.
    pub(crate) fn check(self, journal: &Journaled) -> [usize; 2] {
        let mut unanswered = 0;
        let mut orders = BTreeMap::<u64, Vec<Call<Presence>>>::new();
        let calls = self.0.len();
        for made in self.0 {
            match made.outcome {
                Outcome::Executed {
                    sequence, number, ..
                } => {
                    let there = journal.get(&(USER, sequence.0));
                    let numbers: Option<Vec<u64>> =
                        there.map(|there| there.iter().map(|(number, _)| *number).collect());
                    assert_eq!(numbers, Some(vec![number]), "{sequence}");
                }
                _ => unanswered += 1,
            }
            orders.entry(made.order).or_default().push(made.call);
        }
        for (order, history) in orders {
            let holds = is_linearizable(&Presence(false), &history);
            assert!(holds, "order {order} is not linearizable: {history:#?}");
        }
        [calls, unanswered]
    }
}
