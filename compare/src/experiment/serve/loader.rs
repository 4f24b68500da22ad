//! The loader is one thread with all sessions.

use std::net::SocketAddr;
use std::ops::Range;
use std::time::Duration;

use thalweg_measure::clock::Clock;
use thalweg_measure::histogram::Histogram;

use super::child::Child;
use super::session::{Line, Session, TIMEOUT, administer, wait};
use super::{Orders, WINDOW, set_up};
use crate::runner::{Ran, Run};
use crate::threads::thread_cpu_ns;

/// The users of the sessions have numbers from this one on.
pub(crate) const FIRST_USER: i64 = 1_000;

/// A scheduled session has at most this many commands without an answer; others that are due wait
/// here. The server refuses more than 1,024.
const IN_FLIGHT_MAX: usize = 512;

/// The load of all sessions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    /// The number of sessions that have [`WINDOW`] commands without an answer: they send another
    /// one for each answer.
    pub(crate) saturating: usize,
    /// The number of sessions that send on schedule, in turn, as soon as a command is due.
    pub(crate) scheduled: usize,
    /// The rate of these sessions together.
    pub(crate) per_s: u64,
    /// The time before the measurement, and its own.
    pub(crate) warm_up: Duration,
    pub(crate) span: Duration,
}

/// Starts a server, or the echo, and connects all sessions.
fn start(work: &str, plan: &Plan, wants_reports: bool) -> Result<(Child, Vec<Session>), String> {
    let child = Child::start(work)?;
    let users = FIRST_USER..FIRST_USER + (plan.saturating + plan.scheduled) as i64;
    if let Some(admin) = child.admin {
        administer(admin, &set_up(users.clone()))?;
    }
    let sessions = connect_all(child.trade, users, wants_reports)?;
    Ok((child, sessions))
}

/// Connects a session of each user.
pub(crate) fn connect_all(
    to: SocketAddr,
    users: Range<i64>,
    wants_reports: bool,
) -> Result<Vec<Session>, String> {
    let sessions = users.map(|user| {
        let mut orders = Orders::of(user);
        Session::connect(to, user, wants_reports, move || orders.command())
    });
    sessions.collect()
}

/// A run under way.
struct Driver<'p> {
    plan: &'p Plan,
    clock: Clock,
    begin: u64,
    counts_from: u64,
    /// The number of the command that is due next.
    next: u64,
    /// The answers of all sessions.
    answers: u64,
    /// The times from when commands of scheduled sessions were due; without such sessions, from
    /// when commands were sent.
    latency_ns: Histogram,
    /// The times by which commands were sent later than due.
    lateness_ns: Histogram,
}

impl Driver<'_> {
    fn due_of(&self, number: u64) -> u64 {
        match self.plan.per_s {
            0 => u64::MAX,
            per_s => self.begin + self.clock.ticks_from_ns(number * 1_000_000_000 / per_s),
        }
    }

    /// Sends the commands that are due, until a session has no room for its own. Where several of a
    /// session are due, since this thread had no core, they are sent together: a call for each
    /// would keep it late, and its answers unread.
    fn send_due(&mut self, sessions: &mut [impl Line]) -> Result<(), String> {
        let (now, first) = (self.clock.ticks(), self.next);
        let scheduled = &mut sessions[self.plan.saturating..];
        while self.due_of(self.next) <= now {
            let session = &mut scheduled[(self.next % self.plan.scheduled as u64) as usize];
            if session.in_flight() == IN_FLIGHT_MAX {
                break;
            }
            session.push(self.due_of(self.next));
            self.next += 1;
        }
        for session in scheduled {
            session.socket().flush()?;
        }
        let sent = self.clock.ticks();
        for number in first..self.next {
            let due = self.due_of(number);
            if due >= self.counts_from {
                let late = sent.saturating_sub(due);
                self.lateness_ns.record(self.clock.ns(late));
            }
        }
        Ok(())
    }

    /// Reads answers, and sends a command for each where the session saturates. Returns how many
    /// answers there were.
    fn receive(
        &mut self,
        at: usize,
        session: &mut impl Line,
        counts: bool,
    ) -> Result<usize, String> {
        let now = self.clock.ticks();
        let saturates = at < self.plan.saturating;
        let answers = session.receive(|due| {
            let is_measured = match saturates {
                true => self.plan.scheduled == 0,
                false => due >= self.counts_from,
            };
            if counts && is_measured {
                let latency = self.clock.ns(now.saturating_sub(due));
                self.latency_ns.record(latency);
            }
        })?;
        if counts {
            self.answers += answers as u64;
        }
        if saturates {
            (0..answers).for_each(|_| session.push(now));
        }
        session.socket().flush()?;
        Ok(answers)
    }
}

/// Runs a server, or the echo, under a plan; returns the figures of its metrics.
pub(crate) fn drive(work: &str, plan: &Plan, wants_reports: bool) -> Ran {
    let (child, sessions) = start(work, plan, wants_reports)?;
    drive_lines(&child, sessions, plan, WINDOW)
}

/// Drives connections of a child: those that saturate have `window` requests without an answer.
pub(crate) fn drive_lines(
    child: &Child,
    mut sessions: Vec<impl Line>,
    plan: &Plan,
    window: usize,
) -> Ran {
    let clock = Clock::global();
    for session in &mut sessions[..plan.saturating] {
        let now = clock.ticks();
        (0..window).for_each(|_| session.push(now));
        session.socket().flush()?;
    }
    let ticks = |time: Duration| clock.ticks_from_ns(time.as_nanos() as u64);
    let begin = clock.ticks();
    let counts_from = begin + ticks(plan.warm_up);
    let end = counts_from + ticks(plan.span);
    let mut driver = Driver {
        plan,
        clock,
        begin,
        counts_from,
        next: 0,
        answers: 0,
        latency_ns: Histogram::default(),
        lateness_ns: Histogram::default(),
    };
    let (mut before, mut ready, mut heard_at) = (None, Vec::new(), begin);
    loop {
        let now = clock.ticks();
        if before.is_none() && now >= counts_from {
            before = Some((thread_cpu_ns(), child.spent_ns(), clock.ticks()));
        }
        // One answer counts at least, however short the run.
        let sends = now < end || driver.latency_ns.count() == 0;
        let scheduled = &sessions[plan.saturating..];
        if !sends && scheduled.iter().all(|session| session.in_flight() == 0) {
            break;
        }
        if now.saturating_sub(heard_at) > ticks(TIMEOUT) {
            return Err(format!("no answer came for {TIMEOUT:?}"));
        }
        let mut limit = Duration::from_millis(1);
        if sends {
            driver.send_due(&mut sessions)?;
            let left = driver.due_of(driver.next).saturating_sub(clock.ticks());
            limit = TIMEOUT.min(Duration::from_nanos(clock.ns(left)));
        }
        wait(sessions.iter_mut().map(Line::socket), limit, &mut ready)?;
        let all = sessions.iter_mut().zip(&ready).enumerate();
        for (at, (session, _)) in all.filter(|(_, (_, ready))| **ready) {
            if driver.receive(at, session, before.is_some())? > 0 {
                heard_at = clock.ticks();
            }
        }
    }
    let (loader_ns, server_ns, began) = before.unwrap_or((0, 0, begin));
    let took_ns = clock.ns(clock.ticks() - began).max(1);
    let of_command = |ns: u64| ns as f64 / driver.answers.max(1) as f64;
    Ok(Run::of([
        driver.answers as f64 * 1e9 / took_ns as f64,
        driver.latency_ns.quantile(0.5) as f64,
        driver.latency_ns.quantile(0.99) as f64,
        driver.lateness_ns.quantile(0.99) as f64,
        // A thread that has ended since is not counted any more, such as the one that opens it.
        of_command(child.spent_ns().saturating_sub(server_ns)),
        of_command(thread_cpu_ns() - loader_ns),
    ]))
}
