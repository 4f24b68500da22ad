//! The loader: one thread with all sessions.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use thalweg_measure::clock::Clock;
use thalweg_measure::histogram::Histogram;

use super::child::{Child, Spent, spent_between};
use super::greeting::administer;
use super::sessions::{Session, wait};
use super::{Told, venue};

/// Users of the sessions.
const FIRST_USER: i64 = 1_000;
/// No answer for so long ends a run.
const PATIENCE: Duration = Duration::from_secs(20);

/// What came of a run.
#[derive(Debug, Default)]
pub(super) struct Ran {
    pub(super) answers: u64,
    /// How long it took.
    pub(super) ns: u64,
    pub(super) latency_ns: Histogram,
    /// How much later than due commands were sent, in an open loop.
    pub(super) lateness_ns: Histogram,
    /// How long the loader was on a processor.
    pub(super) loader_ns: u64,
    /// The same of the server's threads.
    pub(super) spent: Spent,
}

/// Sessions that are welcome, on a market that is open.
pub(super) fn connect_all(child: &Child, count: u32, wants_reports: bool) -> Told<Vec<Session>> {
    let users = || FIRST_USER..FIRST_USER + i64::from(count);
    if let Some(admin) = child.admin {
        administer(admin, &venue::set_up(users()))?;
    }
    let connected = users().map(|user| Session::connect(child.trade, user, wants_reports));
    connected.collect()
}

fn thread_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// What is read at the beginning and at the end of the time that counts.
struct Meter<'c> {
    child: &'c Child,
    clock: Clock,
    begin_ticks: u64,
    end_ticks: u64,
    before: Option<(u64, Spent, u64)>,
}

impl<'c> Meter<'c> {
    /// From `warm_up` after now on.
    fn new(child: &'c Child, warm_up: Duration, span: Duration) -> Self {
        let clock = Clock::global();
        let ticks = |time: Duration| clock.ticks_from_ns(time.as_nanos() as u64);
        let begin_ticks = clock.ticks() + ticks(warm_up);
        Self {
            child,
            clock,
            begin_ticks,
            end_ticks: begin_ticks + ticks(span),
            before: None,
        }
    }

    /// Whether the time counts; reads what there is to read when it begins to.
    fn is_on(&mut self, now_ticks: u64) -> bool {
        if self.before.is_none() && now_ticks >= self.begin_ticks {
            let spent = self.child.spent();
            self.before = Some((thread_ns(), spent, self.clock.ticks()));
        }
        self.before.is_some()
    }

    fn finish(self, ran: &mut Ran) {
        let Some((loader_ns, spent, ticks)) = self.before else {
            return;
        };
        ran.ns = self.clock.ns(self.clock.ticks() - ticks);
        ran.loader_ns = thread_ns() - loader_ns;
        ran.spent = spent_between(&spent, &self.child.spent());
    }
}

/// Every session keeps `window` commands without an answer: for each answer it sends another one.
pub(super) fn pipelined(
    child: &Child,
    sessions: &mut [Session],
    window: usize,
    [warm_up, span]: [Duration; 2],
) -> Told<Ran> {
    let mut ran = Ran::default();
    let mut meter = Meter::new(child, warm_up, span);
    let clock = meter.clock;
    for session in &mut *sessions {
        let now = clock.ticks();
        (0..window).for_each(|_| session.push(now));
        session.flush()?;
    }
    let mut ready = Vec::new();
    loop {
        wait(sessions, Some(PATIENCE), &mut ready)?;
        let now = clock.ticks();
        let counts = meter.is_on(now);
        if now >= meter.end_ticks {
            break;
        }
        if !ready.contains(&true) {
            return Err(format!("no answer came for {PATIENCE:?}"));
        }
        for (session, _) in sessions.iter_mut().zip(&ready).filter(|(_, ready)| **ready) {
            let now = clock.ticks();
            let answers = session.receive(|due| {
                if counts {
                    ran.latency_ns.record(clock.ns(now.saturating_sub(due)));
                }
            })?;
            ran.answers += if counts { answers as u64 } else { 0 };
            (0..answers).for_each(|_| session.push(now));
            session.flush()?;
        }
    }
    meter.finish(&mut ran);
    Ok(ran)
}

/// Commands at a fixed rate, in turn by the sessions, sent as soon as they are due; latency counts
/// from when they were.
pub(super) fn open(
    child: &Child,
    sessions: &mut [Session],
    per_s: u64,
    [warm_up, span]: [Duration; 2],
) -> Told<Ran> {
    let mut ran = Ran::default();
    let mut meter = Meter::new(child, warm_up, span);
    let clock = meter.clock;
    let begin = clock.ticks();
    let due_of = |number: u64| begin + clock.ticks_from_ns(number * 1_000_000_000 / per_s);
    let mut ready = Vec::new();
    let mut next = 0;
    loop {
        let now = clock.ticks();
        let counts = meter.is_on(now);
        let sends = now < meter.end_ticks;
        if !sends && sessions.iter().all(|session| session.under_way() == 0) {
            break;
        }
        if now > meter.end_ticks + clock.ticks_from_ns(PATIENCE.as_nanos() as u64) {
            return Err(format!("no answer came for {PATIENCE:?}"));
        }
        while sends && due_of(next) <= now {
            let due = due_of(next);
            let at = (next % sessions.len() as u64) as usize;
            sessions[at].push(due);
            sessions[at].flush()?;
            if counts {
                ran.lateness_ns.record(clock.ns(clock.ticks() - due));
            }
            next += 1;
        }
        let until_due = clock.ns(due_of(next).saturating_sub(clock.ticks()));
        let limit = if sends { until_due } else { 1_000_000 };
        wait(sessions, Some(Duration::from_nanos(limit)), &mut ready)?;
        let now = clock.ticks();
        for (session, _) in sessions.iter_mut().zip(&ready).filter(|(_, ready)| **ready) {
            ran.answers += session.receive(|due| {
                if due >= meter.begin_ticks {
                    ran.latency_ns.record(clock.ns(now.saturating_sub(due)));
                }
            })? as u64;
            session.flush()?;
        }
    }
    meter.finish(&mut ran);
    Ok(ran)
}
