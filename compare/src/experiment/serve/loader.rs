//! The loader: one thread with all sessions.

use std::time::Duration;

use thalweg_measure::clock::Clock;
use thalweg_measure::histogram::Histogram;

use super::child::{Child, Work};
use super::session::{PATIENCE, Session, administer, wait};
use super::{WINDOW, set_up};
use crate::threads::thread_cpu_ns;

/// Users of the sessions.
const FIRST_USER: i64 = 1_000;

/// What the sessions send.
#[derive(Debug, Clone, Copy)]
pub(super) struct Plan {
    /// Sessions with [`WINDOW`] commands without an answer: for each answer they send another one.
    pub(super) saturating: usize,
    /// Sessions that send on schedule, in turn, as soon as a command is due.
    pub(super) scheduled: usize,
    /// Their rate, all together.
    pub(super) per_s: u64,
    /// Before the run counts, and how long it does.
    pub(super) warm_up: Duration,
    pub(super) span: Duration,
}

/// What came of a run.
#[derive(Debug, Default)]
pub(super) struct Drove {
    /// Answers of all sessions.
    pub(super) answers: u64,
    /// How long it took.
    pub(super) ns: u64,
    /// From when a command was due, of the scheduled sessions; of the others where there are none,
    /// from when it was sent.
    pub(super) latency_ns: Histogram,
    /// How much later than due commands were sent.
    pub(super) lateness_ns: Histogram,
    /// How long the loader was on a processor.
    pub(super) loader_ns: u64,
    /// The same of the server's threads.
    pub(super) server_ns: u64,
}

/// Starts a server, or the echo, connects all sessions, and fills the windows of those that
/// saturate.
fn start(work: Work, plan: &Plan, wants_reports: bool) -> Result<(Child, Vec<Session>), String> {
    let child = Child::start(work)?;
    let users = FIRST_USER..FIRST_USER + (plan.saturating + plan.scheduled) as i64;
    if let Some(admin) = child.admin {
        administer(admin, &set_up(users.clone()))?;
    }
    let sessions = users.map(|user| Session::connect(child.trade, user, wants_reports));
    let mut sessions = sessions.collect::<Result<Vec<_>, String>>()?;
    for session in &mut sessions[..plan.saturating] {
        let now = Clock::global().ticks();
        (0..WINDOW).for_each(|_| session.push(now));
        session.flush()?;
    }
    Ok((child, sessions))
}

/// Runs a server, or the echo, under a plan.
pub(super) fn drive(work: Work, plan: &Plan, wants_reports: bool) -> Result<Drove, String> {
    let (child, mut sessions) = start(work, plan, wants_reports)?;
    let clock = Clock::global();
    let ticks = |time: Duration| clock.ticks_from_ns(time.as_nanos() as u64);
    let (mut drove, mut before) = (Drove::default(), None);
    let begin = clock.ticks();
    let (counts_from, end) = (
        begin + ticks(plan.warm_up),
        begin + ticks(plan.warm_up + plan.span),
    );
    let due_of = |number: u64| match plan.per_s {
        0 => u64::MAX,
        per_s => begin + clock.ticks_from_ns(number * 1_000_000_000 / per_s),
    };
    let (mut next, mut ready, mut heard_at) = (0, Vec::new(), begin);
    loop {
        let now = clock.ticks();
        if before.is_none() && now >= counts_from {
            before = Some((thread_cpu_ns(), child.spent_ns(), clock.ticks()));
        }
        let scheduled = &sessions[plan.saturating..];
        if now >= end && scheduled.iter().all(|session| session.under_way() == 0) {
            break;
        }
        if clock.ns(now.saturating_sub(heard_at)) > PATIENCE.as_nanos() as u64 {
            return Err(format!("no answer came for {PATIENCE:?}"));
        }
        while now < end && due_of(next) <= now {
            let due = due_of(next);
            let at = plan.saturating + (next % plan.scheduled as u64) as usize;
            sessions[at].push(due);
            sessions[at].flush()?;
            if due >= counts_from {
                let late = clock.ticks().saturating_sub(due);
                drove.lateness_ns.record(clock.ns(late));
            }
            next += 1;
        }
        let until_due = clock.ns(due_of(next).saturating_sub(clock.ticks()));
        let limit = if now < end { until_due } else { 1_000_000 };
        wait(
            &sessions,
            Some(PATIENCE.min(Duration::from_nanos(limit))),
            &mut ready,
        )?;
        let all = sessions.iter_mut().zip(&ready).enumerate();
        for (at, (session, _)) in all.filter(|(_, (_, ready))| **ready) {
            let now = clock.ticks();
            let is_saturating = at < plan.saturating;
            let is_measured = !is_saturating || plan.scheduled == 0;
            let answers = session.receive(|due| {
                if is_measured && due >= counts_from {
                    drove.latency_ns.record(clock.ns(now.saturating_sub(due)));
                }
            })?;
            if answers > 0 {
                heard_at = now;
            }
            drove.answers += if before.is_some() { answers as u64 } else { 0 };
            if is_saturating {
                (0..answers).for_each(|_| session.push(now));
            }
            session.flush()?;
        }
    }
    if let Some((loader_ns, server_ns, ticks)) = before {
        drove.ns = clock.ns(clock.ticks() - ticks);
        drove.loader_ns = thread_cpu_ns() - loader_ns;
        drove.server_ns = child.spent_ns() - server_ns;
    }
    Ok(drove)
}
