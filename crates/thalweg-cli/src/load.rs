//! `thalweg exchange load` sends orders to a served exchange in an open loop.
//!
//! This thread keeps the schedule and gives each command to its session; the sessions run in a
//! runtime with a thread of its own. A session whose window is full delays the schedule, which the
//! facts distinguish from a loader that is late by itself.

mod facts;
mod orders;
mod tally;

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use thalweg_client::{AdminClient, AdminCommand, Closed, Options, TradeClient};
use thalweg_exchange::Command;
use thalweg_measure::clock::Clock;
use thalweg_measure::load::{LoadReport, OpenLoop, Rate};
use tokio::runtime::Runtime;

use self::facts::Facts;
use self::orders::Orders;
use self::tally::{Tally, cpu_time};
use crate::arguments::Format;
use crate::arguments::connect::Load;
use crate::failure::{Failure, Finding, print, print_json};
use crate::session;
use crate::terminal::{Interruption, Notes};

/// One session: its client, the orders that it sends, and their results.
struct Session {
    client: TradeClient,
    orders: Orders,
    tally: Arc<Mutex<Tally>>,
}

pub(crate) fn load(asked: &Load) -> Result<Finding, Failure> {
    let interruption = Interruption::new();
    let notes = Notes::new(asked.quiet);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .map_err(|error| Failure::Misuse(format!("no thread for the sessions: {error}")))?;
    if let Some(address) = &asked.setup {
        set_up(asked, address, &runtime, notes)?;
    }
    let mut sessions = connect(asked, &runtime, notes)?;
    notes.hint(&format!("{} sessions, {:?}", sessions.len(), asked.time));
    let cpu_before = cpu_time();
    let report = send(asked, &runtime, &mut sessions, &interruption);
    let tallies: Vec<_> = sessions
        .iter()
        .map(|session| Arc::clone(&session.tally))
        .collect();
    for session in sessions {
        runtime.block_on(session.client.close());
    }
    let cpu = cpu_time().saturating_sub(cpu_before);
    let mut total = Tally::default();
    for tally in tallies {
        total.add(&tally.lock().unwrap_or_else(PoisonError::into_inner));
    }
    let facts = Facts::new(asked, &report, &total, cpu);
    match asked.format {
        Format::Text => print(facts.text().as_bytes())?,
        Format::Json => print_json(&facts)?,
    }
    Ok(match (interruption.has_come(), total.is_whole()) {
        (true, _) => interruption.finding(),
        (false, true) => Finding::Fine,
        (false, false) => Finding::Negative,
    })
}

/// Returns the user and the session number that trade in a session.
fn holder(asked: &Load, session: u32) -> (i64, u32) {
    match asked.key_file {
        Some(_) => (asked.user, session),
        None => (asked.user.saturating_add(session.into()), 0),
    }
}

fn connect(asked: &Load, runtime: &Runtime, notes: Notes) -> Result<Vec<Session>, Failure> {
    let in_session = |number| {
        let (holder, of_holder) = holder(asked, number);
        let key_file = asked.key_file.as_deref();
        let mut options: Options = session::options(&asked.connect, holder, key_file, notes)?;
        options.number = of_holder;
        options.in_flight_max = asked.in_flight as usize;
        options.without_reports = true;
        let connected = runtime.block_on(TradeClient::connect(options));
        // Lost connections need no message: the latency shows them.
        let failure = |lost| session::failure(lost, key_file, "--key-file");
        let (client, _) = connected.map_err(failure)?;
        let allowed = client.welcome().in_flight_max.min(asked.in_flight);
        Ok(Session {
            orders: Orders::new(asked, holder, client.welcome().next_command, number),
            tally: Arc::new(Mutex::new(Tally::of(allowed.into()))),
            client,
        })
    };
    (0..asked.sessions).map(in_session).collect()
}

/// Creates the symbol and the users.
fn set_up(asked: &Load, address: &str, runtime: &Runtime, notes: Notes) -> Result<(), Failure> {
    let options = session::options(address, asked.admin, asked.admin_key_file.as_deref(), notes)?;
    let users = (0..asked.sessions).map(|session| holder(asked, session).0);
    let commands = orders::set_up(asked, users);
    runtime.block_on(async {
        let key_file = asked.admin_key_file.as_deref();
        let failure = |lost| session::failure(lost, key_file, "--admin-key-file");
        let (client, events) = AdminClient::connect(options).await.map_err(failure)?;
        drop(events);
        for command in commands {
            execute(&client, command).await?;
        }
        client.close().await;
        Ok(())
    })
}

async fn execute(client: &AdminClient, command: Command) -> Result<(), Failure> {
    let failed = |what: String| Failure::Misuse(format!("--setup: {what}"));
    let command = AdminCommand::try_from(command).map_err(|error| failed(error.to_string()))?;
    let ticket = client.submit(command).await;
    let outcome = ticket.map_err(|Closed| failed(Closed.to_string()))?.await;
    match outcome.result() {
        Some(result) if !result.is_refusal() => Ok(()),
        _ => Err(failed(outcome.to_string())),
    }
}

fn send(
    asked: &Load,
    runtime: &Runtime,
    sessions: &mut [Session],
    interruption: &Interruption,
) -> LoadReport {
    let clock = Clock::global();
    let count = asked.rate.per_s().map(|per_s| commands(per_s, asked.time));
    let until = clock.ticks() + clock.ticks_from_ns(asked.time.as_nanos() as u64);
    let mut schedule = OpenLoop::new(clock, asked.rate).yielding(true);
    let sessions_max = sessions.len() as u64;
    schedule.run_until(count.unwrap_or(u64::MAX), |index, due| {
        let is_over = asked.rate == Rate::MAX && due >= until;
        if is_over || interruption.has_come() {
            return ControlFlow::Break(());
        }
        let session = &mut sessions[(index % sessions_max) as usize];
        let tally = Arc::clone(&session.tally);
        lock(&tally).sent();
        let done = move |outcome| {
            let latency_ns = clock.ns(clock.ticks().saturating_sub(due));
            lock(&tally).done(&outcome, latency_ns);
        };
        let submitted = session.client.submit_with(session.orders.next(), done);
        match runtime.block_on(submitted) {
            Ok(()) => ControlFlow::Continue(()),
            Err(Closed) => {
                lock(&session.tally).not_sent();
                ControlFlow::Break(())
            }
        }
    })
}

/// Returns the number of commands that are due in this time, which is at least one.
fn commands(per_s: u64, time: Duration) -> u64 {
    let count = u128::from(per_s) * time.as_nanos() / 1_000_000_000;
    u64::try_from(count).unwrap_or(u64::MAX).max(1)
}

fn lock(tally: &Mutex<Tally>) -> std::sync::MutexGuard<'_, Tally> {
    tally.lock().unwrap_or_else(PoisonError::into_inner)
}
