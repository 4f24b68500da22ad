//! The thread of the exchange: it owns the exchange and the sockets of all sessions.
//!
//! One turn after another: it reads what a client sent, has the exchange execute it, and writes the
//! answers, without another thread on the way. [`Scheduler`] says whose turn is next. The output of
//! the exchange is delivered after each turn ([`Outgoing`]). The disk is waited for by a thread of
//! the exchange's own, which wakes this one; market data is made into chunks by the feed, which
//! does the same. Hellos, keys and metrics are for other threads, which send a [`Request`].
//!
//! Nothing here waits for a client: see [`Output`](crate::output::Output).

mod clocks;
pub(crate) mod delivering;
mod entering;
mod flow;
mod market;
mod writing;

use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use mio::{Events, Poll, Token};
use thalweg_exchange::codec::session::CloseReason;
use thalweg_exchange::durable::{ExchangeError, Finished, Storage};
use thalweg_exchange::session::{ClientSequence, Role};
use thalweg_exchange::{Command, UserId};
use tokio::sync::oneshot;

use self::clocks::Clocks;
use self::delivering::{Mailbox, Outgoing};
use self::market::Readers;
use crate::config::SyncSetting;
use crate::driver::Driver;
use crate::drop_copy::SharedWriter;
use crate::error::ServeError;
use crate::flow::FlowRun;
use crate::inbound::{After, Turn};
use crate::lifecycle::Lifecycle;
use crate::open_order_queries::OpenOrderQuery;
use crate::outage_log::OutageLog;
use crate::output::Budget;
use crate::request::{NewSession, Request, Snapshot};
use crate::scheduler::{Scheduler, TURN_WORK, TurnKind};
use crate::session::{SessionId, Waits};
use crate::sessions::Sessions;
use crate::shared::Shared;
use crate::token_bucket::Buckets;

/// The token of the waker; those of sessions are their slots.
pub(crate) const WAKER: Token = Token(usize::MAX);
/// Events that one look at the sockets gives, at most.
const EVENTS: usize = 1024;
/// Work after which the sockets are looked at again, and answers to others are written.
const SLICE_WORK: u64 = 4 * TURN_WORK;
/// Connections that become sessions before others have their turn.
const ENTER_TOGETHER: u64 = SLICE_WORK / CONNECTION_WORK;
/// Bytes that are written before the sockets are looked at again, about.
const FLUSH_BYTES: usize = 1 << 18;
/// Bytes up to which an output is written before longer ones.
const SHORT_BYTES: usize = 1 << 12;
/// Work that a turn is at least: it reads a socket.
const TURN_WORK_LEAST: u64 = 8;
/// Work that a connection is at least: its hello, its end, and lines of the log.
const CONNECTION_WORK: u64 = 256;
/// How long the driver is not tended, where turns were given, at most.
const TEND_AFTER: Duration = Duration::from_millis(5);
/// The pause between two turns of a session whose holder fills the gateway's drop copy.
const COPY_PAUSE: Duration = Duration::from_millis(10);
/// How long the figures of a replica are not noted again, at most: less than shows that it hangs.
const NOTE_AFTER: Duration = Duration::from_millis(500);
/// How long a session that has ended may take what waits for it: less than the server waits for its
/// connections when it stops.
const LAST_TIME: Duration = Duration::from_secs(2);
/// How long sessions may take to end once the bye of a stop was written for them.
const CLOSE_GRACE: Duration = Duration::from_secs(3);

/// How long the command log may not answer before sessions end: their clients find another primary,
/// if there is one.
const LOG_SILENT_MAX: Duration = Duration::from_secs(2);
/// The text of a bye then.
const CUT_OFF: &str = "the command log does not answer here";

/// Users that are listed in a line of the log, at most.
const LISTED: usize = 100;

/// How far the thread is with a stop that it was asked for.
enum Stopping {
    No,
    /// Commands that were taken are answered.
    Draining(oneshot::Sender<Result<Finished, ServeError>>),
    /// Sessions take what is left for them, until this time.
    Closing(oneshot::Sender<Result<Finished, ServeError>>, Instant),
    /// The server was dropped: the exchange is left to recover.
    Abandoned,
}

/// See the [module](self).
pub(crate) struct ExchangeThread<S: Storage> {
    shared: Arc<Shared>,
    poll: Poll,
    requests: Receiver<Request>,
    driver: Driver<S>,
    mailbox: Mailbox,
    /// Where a gateway runs in this process.
    copy: Option<SharedWriter>,
    outgoing: Outgoing,
    next_command: u64,
    sessions: Sessions,
    scheduler: Scheduler,
    buckets: Buckets,
    budget: Rc<Budget>,
    /// Connections that are to be sessions.
    entering: VecDeque<Box<NewSession>>,
    /// Sessions that wait for room in the exchange.
    blocked: Vec<SessionId>,
    /// Sessions that wait for tokens, by the time when they have them.
    asleep: BTreeSet<(Instant, SessionId)>,
    /// Sessions for which something waits, or that have ended.
    dirty: Vec<SessionId>,
    readers: Readers,
    /// The market that trades beside the sessions.
    flow: Option<Box<FlowRun>>,
    /// Users whose open orders the gateway has asked for.
    order_queries: VecDeque<OpenOrderQuery>,
    /// Commands that a turn has decoded: their memory is used again.
    commands: Vec<(ClientSequence, Command)>,
    clocks: Clocks,
    /// When the driver is to be tended.
    tend_at: Option<Instant>,
    /// When the figures of a replica are to be noted again.
    note_at: Option<Instant>,
    is_woken: bool,
    has_failed: bool,
    /// Whether the command log has not answered for long.
    is_cut_off: bool,
    log_outage: OutageLog,
    stopping: Stopping,
    market: MarketData,
    /// Work of turns in which readers were given market data.
    market_work: u64,
    /// How often the sockets were looked at.
    polls: u64,
}

/// Whether market data is made: without a journal that syncs, not before a session wants it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MarketData {
    Off,
    /// It begins as soon as nothing is in flight; no turns are given meanwhile.
    Starting,
    On,
}

impl<S: Storage> ExchangeThread<S> {
    pub(crate) fn new(
        shared: Arc<Shared>,
        (poll, requests): (Poll, Receiver<Request>),
        (driver, mailbox, copy): (Driver<S>, Mailbox, Option<SharedWriter>),
        flow: Option<Box<FlowRun>>,
    ) -> Self {
        let (limits, sync) = (&shared.config.sessions, shared.config.journal.sync);
        let stall = Duration::from_millis(limits.stall_ms);
        Self {
            buckets: Buckets::new(limits),
            budget: Rc::new(Budget::new(limits.out_bytes_total)),
            clocks: Clocks::new(stall, Instant::now()),
            sessions: Sessions::new(Arc::clone(&shared.report_readers)),
            shared,
            poll,
            requests,
            next_command: driver.exchange().number(),
            driver,
            mailbox,
            copy,
            outgoing: Outgoing::default(),
            scheduler: Scheduler::default(),
            entering: VecDeque::new(),
            blocked: Vec::new(),
            asleep: BTreeSet::new(),
            dirty: Vec::new(),
            readers: Readers::default(),
            flow,
            order_queries: VecDeque::new(),
            commands: Vec::new(),
            tend_at: None,
            note_at: None,
            is_woken: true,
            has_failed: false,
            is_cut_off: false,
            log_outage: OutageLog::default(),
            stopping: Stopping::No,
            // Where the disk may keep commands in flight, it could not begin in the meantime.
            market: match sync {
                SyncSetting::Always => MarketData::Starting,
                SyncSetting::Never => MarketData::Off,
            },
            market_work: 0,
            polls: 0,
        }
    }

    /// Runs until the server stops, and closes the exchange.
    pub(crate) fn run(mut self) {
        let mut events = Events::with_capacity(EVENTS);
        // Before a request leaves something in flight.
        self.start_market_data();
        loop {
            let timeout = self.timeout();
            if let Err(error) = self.poll.poll(&mut events, timeout)
                && error.kind() != io::ErrorKind::Interrupted
            {
                tracing::error!(%error, "the sockets cannot be looked at");
                self.fail();
            }
            self.polls += 1;
            let now = Instant::now();
            for event in &events {
                self.note_event(event);
            }
            self.take_requests(now);
            if matches!(self.stopping, Stopping::Abandoned) {
                return;
            }
            self.tend(now);
            self.list_open_orders(now);
            self.wake_sleepers(now);
            self.serve(now);
            self.flush_all(now);
            self.look_at_clocks(now);
            if let Some(reply) = self.stop(now) {
                // The caller may not wait for it any more.
                let _ = reply.send(self.driver.close());
                return;
            }
        }
    }

    /// Returns how long to wait for something to happen.
    fn timeout(&self) -> Option<Duration> {
        let may_serve = self.market != MarketData::Starting && self.scheduler.is_waited_for();
        let is_due = self.readers.is_due() || !self.entering.is_empty() || !self.dirty.is_empty();
        if may_serve || self.is_woken || is_due {
            return Some(Duration::ZERO);
        }
        let now = Instant::now();
        let has_clocks = !self.sessions.is_empty() || self.is_stopping();
        let tick = has_clocks.then(|| self.clocks.due());
        let asleep = self.asleep.first().map(|(at, _)| *at);
        let flow = self.flow_due(now);
        let due = [tick, asleep, self.tend_at, self.note_at, flow]
            .into_iter()
            .flatten()
            .min()?;
        Some(due.saturating_duration_since(now))
    }

    fn note_event(&mut self, event: &mio::event::Event) {
        if event.token() == WAKER {
            self.is_woken = true;
            return;
        }
        let Some(id) = self.sessions.id_at(event.token().0) else {
            return;
        };
        let Some(session) = self.sessions.get(id) else {
            return;
        };
        if event.is_readable() || event.is_read_closed() || event.is_error() {
            session.is_readable = true;
            session.is_read_closed |= event.is_read_closed();
            session.has_received = true;
            self.wait_for_turn(id);
        }
        if event.is_writable() {
            self.note_dirty(id);
        }
    }

    /// Lets a session wait for a turn, if it waits for input.
    fn wait_for_turn(&mut self, id: SessionId) {
        if let Some(session) = self.sessions.get(id)
            && session.waits == Waits::Input
        {
            let ticket = self.scheduler.wait(id, TurnKind::Input, session.holder);
            session.waits = Waits::Turn(ticket);
        }
    }

    fn note_dirty(&mut self, id: SessionId) {
        if let Some(session) = self.sessions.get(id)
            && !std::mem::replace(&mut session.is_dirty, true)
        {
            self.dirty.push(id);
        }
    }

    /// Stops answering: the exchange has failed.
    fn fail(&mut self) {
        if std::mem::replace(&mut self.has_failed, true) {
            return;
        }
        let shared = Arc::clone(&self.shared);
        shared.lifecycle.change_to(Lifecycle::Failed);
        let left = self.users_left();
        if !left.is_empty() {
            let first: Vec<i64> = left.iter().take(LISTED).map(|user| user.0).collect();
            let text = "orders that go with a session are not cancelled by this server any more";
            tracing::warn!(users = left.len(), ?first, "{text}");
        }
        if let Some(mut figures) = self.driver.exchange().figures() {
            figures.stats.leads = false;
            self.shared.note_replica(figures);
        }
        let ended = self.sessions.end_all(CloseReason::Failed);
        ended.for_each(|id| self.note_dirty(id));
    }

    /// Returns the users whose orders go with a session, which are not cancelled yet.
    fn users_left(&self) -> BTreeSet<UserId> {
        let deferred = self.driver.deferred_cancels().iter().copied();
        deferred.chain(self.sessions.cancelling()).collect()
    }

    fn check<T>(&mut self, result: Result<T, ExchangeError>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(failed) => {
                if !self.has_failed {
                    tracing::error!(error = %failed, "the exchange has stopped");
                }
                self.fail();
                None
            }
        }
    }

    const fn is_stopping(&self) -> bool {
        !matches!(self.stopping, Stopping::No)
    }

    fn take_requests(&mut self, now: Instant) {
        while let Ok(request) = self.requests.try_recv() {
            match request {
                Request::Enter(new) if new.terms.key.role == Role::Admin => self.enter(*new, now),
                Request::Enter(new) => self.entering.push_back(new),
                Request::Keys(keys) => self.withdraw(&keys),
                Request::Clock(time) if !self.has_failed && !self.is_stopping() => {
                    let set = self.driver.set_time(time);
                    self.check(set);
                }
                Request::Limits(limits) if !self.has_failed => {
                    let set = self.driver.set_limits(limits);
                    self.check(set);
                }
                Request::Clock(_) | Request::Limits(_) => {}
                Request::OpenOrders(user, token) => self.order_queries.push_back((user, token)),
                Request::Stats(reply) => {
                    let snapshot = Snapshot {
                        stats: self.driver.exchange().stats(),
                        sessions: self.sessions.counts(),
                        out_bytes: self.budget.bytes(),
                        polls: self.polls,
                    };
                    let _ = reply.send(Box::new(snapshot));
                }
                Request::Abandon => self.stopping = Stopping::Abandoned,
                Request::Stop(reply) => {
                    self.driver.begin_drain();
                    self.stopping = Stopping::Draining(reply);
                }
            }
            self.deliver();
        }
        for _ in 0..ENTER_TOGETHER {
            let Some(new) = self.entering.pop_front() else {
                return;
            };
            self.enter(*new, now);
            self.deliver();
        }
    }

    /// Ends a session with a bye. Returns whether it had not ended before.
    fn end(&mut self, id: SessionId, why: CloseReason, text: &str) -> bool {
        let Some(session) = self.sessions.get(id) else {
            return false;
        };
        let is_first = session.output.ending().is_none();
        session.output.end(why, text);
        self.note_dirty(id);
        is_first
    }

    /// Takes a session that has ended out of the tables, and its orders if they go with it.
    fn leave(&mut self, id: SessionId) {
        self.read_no_more(id);
        let Some(session) = self.sessions.get(id) else {
            return;
        };
        let holder = session.holder;
        match session.waits {
            Waits::Turn(ticket) => self.scheduler.cancel(ticket, holder),
            Waits::Tokens(at) => drop(self.asleep.remove(&(at, id))),
            Waits::Input | Waits::Room | Waits::End(_) => {}
        }
        session.waits = Waits::End(Instant::now() + LAST_TIME);
        let Some(user) = self.sessions.leave(id) else {
            return;
        };
        let before = self.driver.work();
        if !self.has_failed {
            let gone = self.driver.disconnect(user);
            self.check(gone);
        }
        self.scheduler.charge(holder, self.driver.work() - before);
        self.deliver();
    }

    /// Publishes what became durable, and does what is due.
    fn tend(&mut self, now: Instant) {
        let is_due = self.tend_at.take_if(|at| *at <= now).is_some()
            | self.note_at.take_if(|at| *at <= now).is_some();
        if !(std::mem::take(&mut self.is_woken) || is_due) || self.has_failed {
            return;
        }
        self.follow_log(now);
        if self.has_failed {
            return;
        }
        let tended = self.driver.tend();
        let delay = self.check(tended).flatten();
        self.tend_at = delay.map(|delay| now + delay);
        self.hand_over_copy();
        self.deliver();
        self.look_at_log(now);
        self.start_market_data();
        self.unblock();
    }

    /// Executes what is new in the command log where this replica follows it, and takes commands
    /// from when it is the primary.
    fn follow_log(&mut self, now: Instant) {
        self.driver.follow(now);
        let Some(figures) = self.driver.exchange().figures() else {
            return;
        };
        let is_following = self.shared.lifecycle.is(Lifecycle::Following);
        if figures.stats.leads && is_following && self.shared.is_listening() {
            self.shared.lifecycle.change_to(Lifecycle::Ready);
        }
        self.note_at = Some(now + NOTE_AFTER);
        match figures.has_halted {
            true => self.fail(),
            false => self.shared.note_replica(figures),
        }
    }

    /// Ends the sessions where the command log has not answered for long, and takes them again when
    /// it answers. Its thread wakes this one meanwhile.
    fn look_at_log(&mut self, now: Instant) {
        let outage = self.driver.exchange().log_outage();
        let error = outage.as_ref().map(|(_, error)| &error[..]);
        self.log_outage.note_log(error, now);
        let is_cut_off = outage.is_some_and(|(time, _)| time >= LOG_SILENT_MAX);
        if is_cut_off == std::mem::replace(&mut self.is_cut_off, is_cut_off) {
            return;
        }
        let state = match is_cut_off {
            true => Lifecycle::CutOff,
            false => Lifecycle::Ready,
        };
        // Unless it stops, or is not ready yet.
        if is_cut_off || self.shared.lifecycle.is(Lifecycle::CutOff) {
            self.shared.lifecycle.change_to(state);
        }
        if is_cut_off {
            for id in self.sessions.ids() {
                self.end(id, CloseReason::Shutdown, CUT_OFF);
            }
        }
    }

    /// Asks for the open orders that the gateway wants, of a few users at a time.
    fn list_open_orders(&mut self, now: Instant) {
        let before = self.driver.work();
        while let Some(asked) = self.order_queries.front().copied()
            && !self.has_failed
        {
            if self.driver.work() - before >= SLICE_WORK {
                self.is_woken = true;
                return;
            }
            let listed = self
                .driver
                .list_open_orders(asked, &self.shared.open_order_queries);
            if self.check(listed) == Some(false) {
                // There is room when something in flight has ended.
                self.tend_at.get_or_insert(now + TEND_AFTER);
                return;
            }
            self.order_queries.pop_front();
            self.deliver();
        }
    }

    /// Begins to make market data, if a session waits for it and nothing is in flight.
    fn start_market_data(&mut self) {
        if self.market == MarketData::Starting && self.driver.start_feed(&self.shared.feed) {
            self.market = MarketData::On;
        }
    }

    /// Lets sessions go on that wait for room, where there is some.
    fn unblock(&mut self) {
        self.unblock_flow();
        if self.blocked.is_empty() {
            return;
        }
        let room = self.driver.room();
        if self.check(room).is_some_and(|room| room > 0) {
            for id in std::mem::take(&mut self.blocked) {
                self.go_on(id);
            }
        }
    }

    /// Lets a session wait for a turn that waited for something else than input.
    fn go_on(&mut self, id: SessionId) {
        if let Some(session) = self.sessions.get(id)
            && matches!(session.waits, Waits::Room | Waits::Tokens(_))
        {
            session.waits = Waits::Input;
            self.wait_for_turn(id);
        }
    }

    fn wake_sleepers(&mut self, now: Instant) {
        while let Some((at, id)) = self.asleep.first().copied()
            && at <= now
        {
            self.asleep.pop_first();
            self.go_on(id);
        }
    }

    /// Gives turns to sessions, until none waits or so much was done that others come first.
    fn serve(&mut self, now: Instant) {
        let work = |thread: &Self| thread.driver.work() + thread.market_work;
        let before = work(self);
        let mut turns = 0;
        self.start_market_data();
        self.wake_readers();
        self.wake_flow(now);
        while self.market != MarketData::Starting
            && work(self) - before < SLICE_WORK
            && turns < SLICE_WORK / 16
            && let Some((id, kind)) = self.scheduler.next()
        {
            turns += 1;
            match kind {
                TurnKind::Input => self.turn(id, now),
                TurnKind::Market => self.market_turn(id),
                TurnKind::Flow => self.flow_turn(now),
            }
        }
        if turns > 0 && self.tend_at.is_none() {
            self.tend_at = Some(now + TEND_AFTER);
        }
    }

    fn turn(&mut self, id: SessionId, now: Instant) {
        let before = self.driver.work();
        let Some(session) = self.sessions.get(id) else {
            return;
        };
        let Waits::Turn(ticket) = session.waits else {
            return;
        };
        let holder = session.holder;
        session.waits = Waits::Input;
        if session.output.ending().is_some() {
            self.scheduler.end(ticket, holder, 0, 0);
            return self.note_dirty(id);
        }
        let mut turn = Turn {
            shared: &self.shared,
            driver: &mut self.driver,
            scheduler: &mut self.scheduler,
            id,
            session,
            commands: &mut self.commands,
            count: 0,
            submitted: 0,
            has_asked: false,
            ending: None,
            now,
        };
        let after = turn.run();
        let (submitted, ending) = (turn.submitted, turn.ending.take());
        let work = (self.driver.work() - before).max(TURN_WORK_LEAST);
        self.scheduler.end(ticket, holder, submitted, work);
        self.deliver();
        // Behind the answers to what came before it.
        if let Some(ending) = ending
            && let Some(session) = self.sessions.get(id)
        {
            match ending.text {
                Some(text) => session.output.end(ending.why, &text),
                None => session.output.end_silently(ending.why),
            }
        }
        let Some(after) = self.check(after) else {
            return;
        };
        let after = match after {
            After::Input | After::Turn if submitted > 0 && self.scheduler.pauses(holder) => {
                After::Tokens(now + COPY_PAUSE)
            }
            after => after,
        };
        self.follow(id, after);
    }

    /// Lets a session wait for what its turn has returned.
    fn follow(&mut self, id: SessionId, after: After) {
        let Some(session) = self.sessions.get(id) else {
            return;
        };
        if session.output.ending().is_some() {
            return self.note_dirty(id);
        }
        match after {
            After::Input | After::Turn => {}
            After::Room => {
                session.waits = Waits::Room;
                self.blocked.push(id);
            }
            After::Tokens(at) => {
                session.waits = Waits::Tokens(at);
                self.asleep.insert((at, id));
            }
        }
        let has_answers = !session.output.is_empty();
        if session.has_request_changed {
            self.change_subscription(id);
        }
        match after {
            After::Input => _ = self.flush(id),
            // Its answers are written when all is taken that was read, or soon.
            After::Turn => {
                self.wait_for_turn(id);
                if has_answers {
                    self.note_dirty(id);
                }
            }
            After::Room | After::Tokens(_) => self.note_dirty(id),
        }
    }

    /// Goes on with a stop that was asked for. Returns the sender of the reply when the exchange is
    /// to be closed.
    fn stop(&mut self, now: Instant) -> Option<oneshot::Sender<Result<Finished, ServeError>>> {
        match std::mem::replace(&mut self.stopping, Stopping::No) {
            Stopping::No | Stopping::Abandoned => None,
            Stopping::Draining(reply) => {
                self.driver.exchange_mut().give_up_on_log();
                let settled = self.driver.exchange_mut().is_settled();
                self.deliver();
                self.flush_all(now);
                if self.check(settled) == Some(false) {
                    self.stopping = Stopping::Draining(reply);
                    self.tend_at = Some(now + TEND_AFTER);
                    return None;
                }
                self.stopping = Stopping::Closing(reply, now + CLOSE_GRACE);
                let ended = self.sessions.end_all(CloseReason::Shutdown);
                ended.for_each(|id| self.note_dirty(id));
                self.flush_all(now);
                self.is_woken = true;
                None
            }
            Stopping::Closing(reply, until) if self.sessions.is_empty() || until <= now => {
                Some(reply)
            }
            Stopping::Closing(reply, until) => {
                self.stopping = Stopping::Closing(reply, until);
                None
            }
        }
    }
}

#[cfg(test)]
mod tests;
