//! The owner of the exchange: what it is asked on behalf of sessions, and what it does by itself.

use std::collections::{BTreeSet, HashMap};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::{Duration, Instant};

use thalweg_exchange::codec::session::{
    Answer, CloseReason, QueryAnswer, QueryResult, Refused, ServerFrame,
};
use thalweg_exchange::durable::replication::HaltReason;
use thalweg_exchange::durable::{
    Exchange, ExchangeError, Finished, Origin, Storage, Submission, SubmitError, SubmitOutcome,
};
use thalweg_exchange::service::Query;
use thalweg_exchange::session::{ClientSequence, Refusal, Role, SessionKey};
use thalweg_exchange::{Command, UserId, UserLimits};

use crate::audit::{Audit, AuditLine};
use crate::counters::Counters;
use crate::error::ServeError;
use crate::feed::Feed;
use crate::open_order_queries::{LIST_TAG, LISTED_MAX, OpenOrderQueries, OpenOrderQuery};
use crate::replication::{Replica, ReplicaFigures};
use crate::session::{Session, SessionId};

/// Work of a command that is in flight and comes again.
const PENDING_WORK: u64 = 256;
/// When commands of the server's own that were refused are tried again.
const RETRY: Duration = Duration::from_millis(100);

/// The exchange of a server.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "a server has one")]
pub(crate) enum HostedExchange<S: Storage> {
    /// That of one machine.
    Alone(Exchange<S>),
    /// That of a replica.
    Replica(Box<Replica<S>>),
}

impl<S: Storage> From<Exchange<S>> for HostedExchange<S> {
    fn from(exchange: Exchange<S>) -> Self {
        Self::Alone(exchange)
    }
}

impl<S: Storage> Deref for HostedExchange<S> {
    type Target = Exchange<S>;

    #[inline]
    fn deref(&self) -> &Exchange<S> {
        match self {
            Self::Alone(exchange) => exchange,
            Self::Replica(replica) => replica.following.exchange(),
        }
    }
}

impl<S: Storage> DerefMut for HostedExchange<S> {
    #[inline]
    fn deref_mut(&mut self) -> &mut Exchange<S> {
        match self {
            Self::Alone(exchange) => exchange,
            Self::Replica(replica) => replica.following.exchange_mut(),
        }
    }
}

impl<S: Storage> HostedExchange<S> {
    /// Returns the replica that follows another one, where this is one.
    fn follower(&self) -> Option<&Replica<S>> {
        match self {
            Self::Replica(replica) if !replica.following.leads() => Some(replica),
            _ => None,
        }
    }

    /// Returns whether commands are executed when they are submitted.
    pub(crate) fn leads(&self) -> bool {
        self.follower().is_none()
    }

    /// Returns the address of the primary, empty where that is not known, where this replica
    /// follows it.
    pub(crate) fn primary(&self) -> Option<&str> {
        self.follower().map(Replica::primary)
    }

    /// Executes what is new in the log, where this is a replica that follows it.
    pub(crate) fn turn(&mut self, now: Instant) {
        if let Self::Replica(replica) = self
            && !replica.following.leads()
        {
            replica.turn(now);
        }
    }

    /// Returns the figures of a replica.
    pub(crate) fn figures(&self) -> Option<ReplicaFigures> {
        match self {
            Self::Alone(_) => None,
            Self::Replica(replica) => Some(replica.figures()),
        }
    }

    /// Returns the exchange, for its end.
    ///
    /// # Errors
    /// The replica has halted.
    pub(crate) fn into_exchange(self) -> Result<Exchange<S>, HaltReason> {
        match self {
            Self::Alone(exchange) => Ok(exchange),
            Self::Replica(replica) => match replica.halted {
                Some(halted) => Err(halted),
                None => Ok(replica.following.into_exchange()),
            },
        }
    }
}

/// See the [module](self).
pub(crate) struct Driver<S: Storage> {
    exchange: HostedExchange<S>,
    counters: Arc<Counters>,
    audit: Audit,
    /// Queries without an answer, by tag: the session, and the number that its client has given.
    asked: HashMap<u64, (SessionId, u64)>,
    /// Users whose session has ended while the journal had no room: their cancels are deferred.
    deferred_cancels: BTreeSet<UserId>,
    /// Limits that it had no room for.
    deferred_limits: Option<UserLimits>,
    /// When deferred commands were tried last.
    tried: Instant,
    /// Whether they lack room among what is in flight, which comes sooner than that on the disk.
    lacks_slot: bool,
    /// The work of all commands when the last command for what was left over was submitted: a
    /// further one follows when it was executed.
    tended: u64,
    /// Work of commands that were answered without being executed.
    unexecuted: u64,
    is_draining: bool,
    /// Whether a session has submitted commands since the start.
    has_others: bool,
    next_tag: u64,
    /// Failures of snapshots that the log has.
    failures_logged: u64,
    archive_failures_logged: u64,
}

impl<S: Storage> Driver<S> {
    pub(crate) fn new(
        exchange: impl Into<HostedExchange<S>>,
        counters: Arc<Counters>,
        audit: Audit,
    ) -> Self {
        Self {
            exchange: exchange.into(),
            counters,
            audit,
            asked: HashMap::new(),
            deferred_cancels: BTreeSet::new(),
            deferred_limits: None,
            tried: Instant::now(),
            lacks_slot: false,
            tended: u64::MAX,
            unexecuted: 0,
            is_draining: false,
            has_others: false,
            next_tag: 0,
            failures_logged: 0,
            archive_failures_logged: 0,
        }
    }

    /// Returns the exchange, with its part in replication.
    pub(crate) const fn exchange(&self) -> &HostedExchange<S> {
        &self.exchange
    }

    pub(crate) const fn exchange_mut(&mut self) -> &mut HostedExchange<S> {
        &mut self.exchange
    }

    /// Executes what is new in the log of a replica, unless it is to end.
    pub(crate) fn follow(&mut self, now: Instant) {
        if !self.is_draining {
            self.exchange.turn(now);
        }
    }

    /// Begins with market data, if nothing is in flight; returns whether it has.
    pub(crate) fn start_feed(&mut self, feed: &Feed) -> bool {
        if self.exchange.in_flight() > 0 {
            return false;
        }
        self.exchange.list_levels();
        feed.start(self.exchange.state());
        true
    }

    /// Returns how many commands or queries the exchange takes without blocking, besides deferred
    /// ones that waited for such room.
    pub(crate) fn room(&mut self) -> Result<usize, ExchangeError> {
        if self.lacks_slot {
            self.submit_deferred()?;
        }
        self.exchange.room()
    }

    /// Returns the work of all that was executed so far.
    pub(crate) fn work(&self) -> u64 {
        self.exchange.work() + self.unexecuted
    }

    /// Logs why there is no new snapshot, once for each attempt: the exchange goes on.
    fn log_failures(&mut self) {
        let snapshots = self.exchange.snapshots();
        if let Some(error) = snapshots.failed
            && snapshots.failures > self.failures_logged
        {
            let failures = snapshots.failures;
            tracing::error!(%error, failures, "the exchange goes on without a new snapshot");
        }
        self.failures_logged = snapshots.failures;
        let archive = snapshots.archive;
        if let Some(error) = archive.failed
            && archive.failures > self.archive_failures_logged
        {
            let failures = archive.failures;
            tracing::warn!(%error, failures, "nothing is deleted, and tried again later");
        }
        self.archive_failures_logged = archive.failures;
    }

    /// Submits a command of the server's own. Returns false where it was refused for now.
    pub(crate) fn own(&mut self, command: &Command) -> Result<bool, ExchangeError> {
        match self.exchange.submit(Origin::Engine, command, 0) {
            Ok(_) => Ok(true),
            Err(SubmitError::Failed(failed)) => Err(failed),
            Err(error) => {
                tracing::warn!(%error, ?command, "a command of the server was refused");
                Ok(false)
            }
        }
    }

    fn has_deferred(&self) -> bool {
        !self.deferred_cancels.is_empty() || self.deferred_limits.is_some()
    }

    /// Submits deferred commands, as far as there is room.
    fn submit_deferred(&mut self) -> Result<(), ExchangeError> {
        self.tried = Instant::now();
        self.lacks_slot = self.exchange.room()? == 0;
        if self.lacks_slot {
            return Ok(());
        }
        if let limits @ Some(_) = self.deferred_limits {
            let command = Command::SetLimits { uid: None, limits };
            if !self.own(&command)? {
                return Ok(());
            }
            self.deferred_limits = None;
        }
        while let Some(uid) = self.deferred_cancels.pop_first() {
            self.lacks_slot = self.exchange.room()? == 0;
            if self.lacks_slot || !self.own(&Command::Disconnect { uid })? {
                self.deferred_cancels.insert(uid);
                break;
            }
        }
        Ok(())
    }

    /// Returns the users whose orders go with a session that has ended, and wait for room.
    pub(crate) const fn deferred_cancels(&self) -> &BTreeSet<UserId> {
        &self.deferred_cancels
    }

    /// Cancels the orders that go with a user's session, now or as soon as there is room.
    pub(crate) fn disconnect(&mut self, user: UserId) -> Result<(), ExchangeError> {
        self.deferred_cancels.insert(user);
        self.submit_deferred()
    }

    /// Sets the limits of users without their own, now or as soon as there is room.
    pub(crate) fn set_limits(&mut self, limits: UserLimits) -> Result<(), ExchangeError> {
        self.deferred_limits = Some(limits);
        self.submit_deferred()
    }

    /// Sets the exchange's time, if there is room.
    pub(crate) fn set_time(&mut self, time: i64) -> Result<(), ExchangeError> {
        if self.exchange.room()? > 0 {
            self.own(&Command::Clock { time })?;
        }
        Ok(())
    }

    /// Returns why new commands of a session are not taken now. Those that were taken before have
    /// their answers all the same: a refusal would say that they were not executed.
    fn closed_to(&self, key: SessionKey) -> Option<Refusal> {
        // A replica that follows welcomes no session with commands.
        if self.is_draining || !self.exchange.leads() {
            return Some(Refusal::Draining);
        }
        // The deferred mass cancel would cancel orders that came after.
        let is_deferred =
            key.role == Role::Trade && self.deferred_cancels.contains(&UserId(key.holder));
        is_deferred.then_some(Refusal::DiskFull)
    }

    /// Submits commands of a session, for which there must be room.
    pub(crate) fn submit(
        &mut self,
        (id, session): (SessionId, &mut Session),
        commands: &[(ClientSequence, Command)],
    ) -> Result<(), ExchangeError> {
        let key = session.terms.key;
        self.has_others = true;
        let Some(why) = self.closed_to(key) else {
            return self.submit_open((id, session), commands);
        };
        for one in commands {
            let (sequence, command) = one;
            match self.exchange.knows(key, *sequence) {
                true => self.submit_open((id, session), std::slice::from_ref(one))?,
                false => self.refuse(session, (*sequence, command), why),
            }
        }
        Ok(())
    }

    /// Submits frames of a trader's session as [`Exchange::submit_frames`] does, unless new
    /// commands of the session are not taken now.
    pub(crate) fn submit_frames(
        &mut self,
        (id, key): (SessionId, SessionKey),
        bytes: &[u8],
        most: usize,
    ) -> (usize, usize) {
        if self.closed_to(key).is_some() {
            return (0, 0);
        }
        let taken = self.exchange.submit_frames((key, id.tag()), bytes, most);
        self.has_others |= taken.0 > 0;
        taken
    }

    fn submit_open(
        &mut self,
        (id, session): (SessionId, &mut Session),
        commands: &[(ClientSequence, Command)],
    ) -> Result<(), ExchangeError> {
        let (key, tag) = (session.terms.key, id.tag());
        let mut taking = Taking {
            deferred_limits: &mut self.deferred_limits,
            unexecuted: &mut self.unexecuted,
            failed: None,
            refused: Vec::new(),
        };
        let submissions = submissions(key, tag, commands);
        self.exchange.submit_many(submissions, |at, admitted| {
            // The outcome of a new one will be published.
            if !matches!(admitted, Ok(SubmitOutcome::New { .. })) || key.role == Role::Admin {
                taking.note((at, &commands[at]), admitted, session);
            }
        });
        let (failed, refused) = (taking.failed, taking.refused);
        for (at, why) in refused {
            let (sequence, command) = &commands[at];
            self.refuse(session, (*sequence, command), why);
        }
        failed.map_or(Ok(()), Err)
    }

    /// Submits commands of a market that trades beside the sessions, for which there should be
    /// room. Returns how many of the first were taken.
    pub(crate) fn submit_flow(
        &mut self,
        key: SessionKey,
        commands: &[(ClientSequence, Command)],
    ) -> Result<usize, ExchangeError> {
        if self.is_draining {
            return Ok(0);
        }
        let (mut taken, mut refused, mut failed) = (0, None, None);
        let submissions = submissions(key, 0, commands);
        self.exchange.submit_many(submissions, |at, admitted| {
            match admitted {
                Err(SubmitError::Failed(error)) => failed = Some(error),
                Err(error) => refused = refused.take().or(Some((at, error))),
                // One that is taken behind a refused one, for which there was no room, ends that.
                Ok(_) => taken = at + 1,
            }
        });
        if let Some((at, error)) = refused
            && at < taken
        {
            tracing::error!(%error, "an event of the market was left out");
        }
        failed.map_or(Ok(taken), Err)
    }

    /// Returns whether a session has submitted commands since the start.
    pub(crate) const fn has_others(&self) -> bool {
        self.has_others
    }

    /// Refuses a command. One of an administrator leaves a line in the log.
    pub(crate) fn refuse(
        &self,
        session: &mut Session,
        (sequence, command): (ClientSequence, &Command),
        why: Refusal,
    ) {
        self.counters.refuse(why);
        let refused = ServerFrame::Refused(Refused { sequence, why });
        session.output.push(&refused);
        let key = session.terms.key;
        if key.role == Role::Admin {
            let line = AuditLine::refused(key, sequence, command, why);
            self.audit.write(line.with_key(session.key_name()));
        }
    }

    /// Writes a line about an administrator's command that was executed.
    pub(crate) fn audit(&self, line: AuditLine) {
        self.audit.write(line);
    }

    /// Asks a query of a session, for which there must be room.
    pub(crate) fn query(
        &mut self,
        (session_id, session): (SessionId, &mut Session),
        id: u64,
        query: Query,
    ) -> Result<(), ExchangeError> {
        let tag = self.next_tag;
        self.next_tag += 1;
        self.asked.insert(tag, (session_id, id));
        match self.exchange.query(query, tag) {
            Ok(()) => Ok(()),
            Err(SubmitError::Failed(failed)) => Err(failed),
            Err(error) => {
                self.asked.remove(&tag);
                if matches!(query, Query::OpenOrders { .. }) {
                    session.is_listing = false;
                }
                let why = match error {
                    SubmitError::Refused(why) => why,
                    _ => Refusal::DiskFull,
                };
                self.counters.refuse(why);
                session.answer_query(QueryAnswer {
                    id,
                    number: self.exchange.number(),
                    result: QueryResult::Refused(why),
                });
                Ok(())
            }
        }
    }

    /// Asks for the open orders of a user on behalf of the gateway, if there is room: the answer
    /// is in its drop copy. Returns whether there was.
    pub(crate) fn list_open_orders(
        &mut self,
        asked: OpenOrderQuery,
        open_order_queries: &OpenOrderQueries,
    ) -> Result<bool, ExchangeError> {
        if self.room()? == 0 {
            return Ok(false);
        }
        let most = LISTED_MAX + 1;
        // It may be answered at once.
        open_order_queries.begin(asked);
        let (user, _) = asked;
        match self
            .exchange
            .query(Query::OpenOrders { user, most }, LIST_TAG)
        {
            Ok(()) => Ok(true),
            Err(SubmitError::Failed(failed)) => Err(failed),
            Err(_) => {
                open_order_queries.give_up();
                Ok(false)
            }
        }
    }

    /// Returns the session that asked a query, once, and the number that its client has given.
    pub(crate) fn asked(&mut self, tag: u64) -> Option<(SessionId, u64)> {
        self.asked.remove(&tag)
    }

    /// Publishes what became durable, and does what is due by itself. Returns the delay until its
    /// next call, or `None` if none is due.
    pub(crate) fn tend(&mut self) -> Result<Option<Duration>, ExchangeError> {
        if self.has_deferred() && self.tried.elapsed() >= RETRY {
            self.submit_deferred()?;
        }
        // As many as may in one command; others have their turn before the next one.
        let mut goes_on = false;
        let may_submit = !self.is_draining && self.exchange.leads();
        if may_submit
            && let Some(command) = self.exchange.left_over()
            && self.exchange.work() != self.tended
            && self.exchange.room()? > 0
        {
            self.tended = self.exchange.work();
            goes_on = self.own(&command)?;
        }
        self.exchange.idle()?;
        self.room()?;
        self.log_failures();
        if may_submit && self.exchange.left_over().is_some() {
            return Ok(Some(if goes_on { Duration::ZERO } else { RETRY }));
        }
        let retry = self.has_deferred().then_some(RETRY);
        Ok(self.exchange.idle_again().or(retry))
    }

    /// Refuses new commands from now on.
    pub(crate) const fn begin_drain(&mut self) {
        self.is_draining = true;
    }

    /// Ends with a last snapshot. Waits for the disk.
    ///
    /// # Errors
    /// The exchange has stopped, or the replica has halted, before or meanwhile.
    pub(crate) fn close(mut self) -> Result<Finished, ServeError> {
        let mut left = usize::MAX;
        while self.deferred_cancels.len() < left {
            left = self.deferred_cancels.len();
            self.exchange.drain_while_room()?;
            self.submit_deferred()?;
        }
        Ok(self.exchange.into_exchange()?.close()?)
    }
}

/// The refusals, and other ends, of commands of a session that were submitted together.
struct Taking<'t> {
    deferred_limits: &'t mut Option<UserLimits>,
    unexecuted: &'t mut u64,
    failed: Option<ExchangeError>,
    refused: Vec<(usize, Refusal)>,
}

impl Taking<'_> {
    /// Notes what came of a command that may not be new, or is an administrator's.
    #[cold]
    fn note(
        &mut self,
        (at, (sequence, command)): (usize, &(ClientSequence, Command)),
        admitted: Result<SubmitOutcome, SubmitError>,
        session: &mut Session,
    ) {
        if let Command::SetLimits { uid: None, .. } = command
            && admitted.is_ok()
        {
            *self.deferred_limits = None;
        }
        match admitted {
            Ok(SubmitOutcome::New { .. }) => {}
            // It was looked for among all that are in flight.
            Ok(SubmitOutcome::Pending { .. }) => *self.unexecuted += PENDING_WORK,
            Ok(SubmitOutcome::Repeat(first)) => {
                *self.unexecuted += 1;
                session.output.push(&ServerFrame::Answer(Answer {
                    sequence: *sequence,
                    number: first.number,
                    result: first.result,
                    is_repeated: true,
                }));
            }
            Err(SubmitError::Refused(why)) => {
                *self.unexecuted += refusal_work(why);
                self.refused.push((at, why));
            }
            Err(SubmitError::Failed(error)) => self.failed = Some(error),
            Err(error) => {
                let text = format!("command {sequence}: {error}");
                session.output.end(CloseReason::FrameTooLong, &text);
            }
        }
    }
}

/// Returns the submissions of commands of a session, with the same tag.
fn submissions(
    key: SessionKey,
    tag: u64,
    commands: &[(ClientSequence, Command)],
) -> impl Iterator<Item = Submission<'_>> {
    commands.iter().map(move |(sequence, command)| Submission {
        origin: Origin::Session {
            key,
            sequence: *sequence,
        },
        command,
        tag,
    })
}

/// Returns the work of a refusal: some are due to a look at all that are in flight.
const fn refusal_work(why: Refusal) -> u64 {
    match why {
        Refusal::NotExecuted | Refusal::SequenceReused | Refusal::Resources => PENDING_WORK,
        _ => 1,
    }
}

#[cfg(test)]
pub(crate) mod tests;
