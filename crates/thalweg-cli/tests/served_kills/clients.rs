//! Clients that trade while the exchange is killed, each on a thread of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use thalweg_client::exchange::{
    AccountSpec, Action, Command, CurrencyId, OrderId, OrderType, Place, ResultCode, SymbolId,
    SymbolSpec, UserId,
};
use thalweg_client::{AdminCommand, DisconnectReason, Event, Options, Outcome, TradeCommand};
use thalweg_client::{BlockingAdminClient, BlockingEvents, BlockingTicket, BlockingTradeClient};

use crate::served_kills::served::Folder;

pub(crate) const CLIENTS: i64 = 8;
/// Users with money: those of the clients, and others.
const USERS: i64 = 11;
const ADMIN: i64 = 0;
/// The maximum number of commands of a client without an answer.
const WINDOW: usize = 64;
const SYMBOL: SymbolId = SymbolId(1);

/// The answers that a client received: the outcome of the command, by step.
pub(crate) type Outcomes = Vec<Outcome>;

pub(crate) fn options(address: &str, holder: i64) -> Options {
    let mut options = Options::new(address, holder);
    options.key = key(holder).into_bytes();
    options.retry_max = Duration::from_millis(50);
    options.in_flight_max = WINDOW;
    options
}

/// Returns the key of a holder, at servers that ask for one.
fn key(holder: i64) -> String {
    format!("the key of {holder}")
}

/// Returns a file of the keys of all users, and of an administrator.
#[cfg(feature = "etcd")]
pub(crate) fn keys() -> String {
    let entry = |holder: i64| {
        let hash = ring::digest::digest(&ring::digest::SHA256, key(holder).as_bytes());
        let hash: String = hash
            .as_ref()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let (role, kind) = match holder {
            ADMIN => ("admin", "admin"),
            _ => ("trade", "user"),
        };
        let entry = format!("name = \"{holder}\"\nrole = \"{role}\"\n{kind} = {holder}\n");
        format!("[[key]]\n{entry}sha256 = \"{hash}\"\n")
    };
    (ADMIN..=USERS).map(entry).collect()
}

/// Creates the symbol, and users with money.
pub(crate) fn set_up(address: &str) {
    let mut options = options(address, ADMIN);
    // One that has no core may let the time of an attempt pass.
    options.connect_within = Duration::from_secs(100);
    let connected = BlockingAdminClient::connect(options);
    let (client, _events) = connected.expect("it listens");
    let symbol = SymbolSpec::pair(SYMBOL, CurrencyId(10), CurrencyId(20));
    let account = |uid| AccountSpec {
        uid: UserId(uid),
        balances: vec![(CurrencyId(10), 1 << 40), (CurrencyId(20), 1 << 40)],
    };
    let accounts: Vec<_> = (1..=USERS).map(account).collect();
    for command in [
        Command::AddSymbols([symbol].into()),
        Command::AddAccounts(accounts.into()),
    ] {
        let command = AdminCommand::try_from(command).expect("an operator's");
        let outcome = client.submit(command).expect("it is open").wait();
        assert_eq!(outcome.result(), Some(ResultCode::Success), "{outcome}");
    }
    client.close();
}

/// Returns the command of a step: two orders that may match those of other users, then a cancel of
/// the first.
pub(crate) fn command(user: i64, step: i64) -> TradeCommand {
    let order = step - step % 3;
    if step % 3 == 2 {
        return TradeCommand::cancel(UserId(user), SYMBOL, OrderId(order));
    }
    let price = 1_000 + (step * 7 + user) % 11;
    TradeCommand::from(
        Place::limit(
            (UserId(user), OrderId(step)),
            SYMBOL,
            if (step + user) % 2 == 0 {
                Action::Bid
            } else {
                Action::Ask
            },
            (price, 1 + step % 4),
        )
        .with_type(if step % 3 == 0 {
            OrderType::Gtc
        } else {
            OrderType::Ioc
        }),
    )
}

/// The state that the threads of the clients share.
#[derive(Debug, Default)]
struct Course {
    is_over: AtomicBool,
    answered: AtomicU64,
}

impl Course {
    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }
}

/// The clients of all users. Their threads end with the program if one of them hangs.
pub(crate) struct Clients {
    course: Arc<Course>,
    threads: Vec<JoinHandle<Outcomes>>,
}

impl Clients {
    pub(crate) fn start(address: &str) -> Self {
        let course = Arc::<Course>::default();
        let one = |user| {
            let (course, address) = (Arc::clone(&course), address.to_owned());
            thread::spawn(move || trade(user, &address, &course))
        };
        let threads = (1..=CLIENTS).map(one).collect();
        Self { course, threads }
    }

    pub(crate) fn answered(&self) -> u64 {
        self.course.answered.load(Ordering::Relaxed)
    }

    /// Waits for this number of further answers.
    pub(crate) fn trade(&mut self, more: u64, place: &Folder) {
        let until = self.answered() + more;
        place.wait("answers", || {
            let ended = self.threads.iter().position(JoinHandle::is_finished);
            if let Some(ended) = ended {
                let cause = self.threads.swap_remove(ended).join().map(|_| ());
                place.fail(&format!("a client ended: {}", text_of(&cause)));
            }
            let answered = self.answered();
            (answered >= until).then_some(()).ok_or(answered)
        });
    }

    /// Waits for the pending answers, and returns the answers that each client received.
    pub(crate) fn end(self, place: &Folder) -> Vec<Outcomes> {
        self.course.is_over.store(true, Ordering::Relaxed);
        let joined = self.threads.into_iter().zip(1..).map(|(thread, user)| {
            let answered = &self.course.answered;
            place.wait(&format!("the end of client {user}"), || {
                let answered = answered.load(Ordering::Relaxed);
                thread.is_finished().then_some(()).ok_or(answered)
            });
            let outcomes = thread.join();
            outcomes.unwrap_or_else(|cause| place.fail(&text_of(&Err(cause))))
        });
        joined.collect()
    }
}

fn text_of(ended: &thread::Result<()>) -> String {
    let Err(cause) = ended else {
        return "too early".to_owned();
    };
    let text = cause.downcast_ref::<String>().cloned();
    let text = text.or_else(|| cause.downcast_ref::<&str>().map(|text| (*text).to_owned()));
    text.unwrap_or_else(|| "a panic without a text".to_owned())
}

/// Runs clients of a user that trade until they are stopped, one after the other. Clients of users
/// with even numbers give up when the connection is lost, and leave commands without an answer; the
/// others reconnect by themselves.
fn trade(user: i64, address: &str, course: &Course) -> Outcomes {
    let mut options = options(address, user);
    options.attempts_max = (user % 2 == 0).then_some(0);
    let mut outcomes = Outcomes::new();
    let take = |ticket: BlockingTicket, outcomes: &mut Outcomes| {
        outcomes.push(ticket.wait());
        course.answered.fetch_add(1, Ordering::Relaxed);
    };
    while !course.is_over() {
        let (client, events) = match BlockingTradeClient::connect(options.clone()) {
            Ok(made) => made,
            // The user must make the first connection, which may coincide with a kill.
            Err(reason) if reason.is_retryable() => continue,
            Err(reason) => panic!("{user}: {reason}"),
        };
        let first = client.welcome().next_report.0;
        let reports = thread::spawn(move || check_reports(user, first, events));
        let mut waiting = Vec::new();
        while !course.is_over() && !reports.is_finished() {
            let step = outcomes.len() + waiting.len();
            let Ok(ticket) = client.submit(command(user, step as i64)) else {
                break;
            };
            waiting.push(ticket);
            if waiting.len() >= WINDOW {
                waiting
                    .drain(..WINDOW / 2)
                    .for_each(|ticket| take(ticket, &mut outcomes));
            }
        }
        waiting
            .into_iter()
            .for_each(|ticket| take(ticket, &mut outcomes));
        client.close();
        let checked = reports.join();
        assert!(checked.is_ok(), "{user}: {}", text_of(&checked));
    }
    outcomes
}

/// Checks that each report arrives once and in order, whatever happened to the connection.
fn check_reports(user: i64, first: u64, mut events: BlockingEvents) {
    let mut last = first - 1;
    while let Some(event) = events.next() {
        match event {
            Event::Report(report) => {
                assert_eq!(report.number.0, last + 1, "{user}");
                last += 1;
            }
            // A client that was away too long receives a gap notice.
            Event::ReportGap(gap) => {
                assert_eq!(gap.from.0, last + 1, "{user}");
                last = gap.to.0;
            }
            Event::Closed(reason) if !reason.is_retryable() => {
                assert!(matches!(reason, DisconnectReason::Done), "{user}: {reason}");
            }
            _ => {}
        }
    }
}
