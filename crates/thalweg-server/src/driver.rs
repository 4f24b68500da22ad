//! The owner of the exchange: does what connections ask, each request on the thread that asks.
//!
//! [`Access`](crate::access::Access) has a lock around it.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use thalweg_exchange::codec::session::{Answer, Ending, QueryAnswer, Refused, Said, ServerFrame};
use thalweg_exchange::durable::{
    Admitted, Exchange, Failed, Finished, Origin, Request as Submission, Stats, Storage,
    SubmitError,
};
use thalweg_exchange::service::Query;
use thalweg_exchange::session::{ClientSequence, Refusal, Role, SessionKey};
use thalweg_exchange::{Command, UserId, UserLimits};

use crate::access::Owner;
use crate::audit::{Audit, AuditLine};
use crate::figures::Figures;
use crate::request::Request;
use crate::roster::Roster;
use crate::session::Session;

/// Work of a command that is in flight and comes again.
const PENDING_WORK: u64 = 256;
/// When commands of the server's own that were refused are tried again.
const RETRY: Duration = Duration::from_millis(100);

/// Queries on their way: whose, and under which number of the client.
#[derive(Debug, Default)]
pub(crate) struct Inquiries {
    asked: Mutex<HashMap<u64, (Arc<Session>, u64)>>,
}

impl Inquiries {
    fn put(&self, tag: u64, session: &Arc<Session>, id: u64) {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked.insert(tag, (Arc::clone(session), id));
    }

    /// Who asked, once.
    pub(crate) fn take(&self, tag: u64) -> Option<(Arc<Session>, u64)> {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked.remove(&tag)
    }
}

/// What the owner of the exchange shares with others.
pub(crate) struct Place {
    pub(crate) roster: Arc<Roster>,
    pub(crate) inquiries: Arc<Inquiries>,
    pub(crate) figures: Arc<Figures>,
    pub(crate) audit: Audit,
}

/// See the [module](self).
pub(crate) struct Driver<S: Storage> {
    exchange: Exchange<S>,
    place: Place,
    /// Users whose session has ended while the journal had no room.
    owed: BTreeSet<UserId>,
    /// Limits that it had no room for.
    owed_limits: Option<UserLimits>,
    /// When what is owed was tried last.
    tried: Instant,
    /// The work of all commands when the last clock command for orders that were left over was
    /// submitted: a further one follows when it was executed.
    tended: u64,
    /// Work of commands that were answered without being executed.
    unexecuted: u64,
    is_draining: bool,
    next_tag: u64,
    /// Failures of snapshots that the log has.
    failures_told: u64,
}

impl<S: Storage> Driver<S> {
    pub(crate) fn new(exchange: Exchange<S>, place: Place) -> Self {
        Self {
            exchange,
            place,
            owed: BTreeSet::new(),
            owed_limits: None,
            tried: Instant::now(),
            tended: u64::MAX,
            unexecuted: 0,
            is_draining: false,
            next_tag: 0,
            failures_told: 0,
        }
    }

    /// Logs why there is no new snapshot, once for each attempt: the exchange goes on.
    fn tell_failures(&mut self) {
        let snapshots = self.exchange.snapshots();
        if let Some(error) = snapshots.failed
            && snapshots.failures > self.failures_told
        {
            let failures = snapshots.failures;
            tracing::error!(%error, failures, "the exchange goes on without a new snapshot");
        }
        self.failures_told = snapshots.failures;
    }

    /// A command of the server's own; false where it was refused for now.
    fn own(&mut self, command: &Command) -> Result<bool, Failed> {
        match self.exchange.submit(Origin::Engine, command, 0) {
            Ok(_) => Ok(true),
            Err(SubmitError::Failed(failed)) => Err(failed),
            Err(error) => {
                tracing::warn!(%error, ?command, "a command of the server was refused");
                Ok(false)
            }
        }
    }

    fn is_owing(&self) -> bool {
        !self.owed.is_empty() || self.owed_limits.is_some()
    }

    /// Submits what is owed, as far as it has room.
    fn settle_owed(&mut self) -> Result<(), Failed> {
        self.tried = Instant::now();
        if let limits @ Some(_) = self.owed_limits {
            let command = Command::SetLimits { uid: None, limits };
            if self.exchange.room()? == 0 || !self.own(&command)? {
                return Ok(());
            }
            self.owed_limits = None;
        }
        while self.exchange.room()? > 0
            && let Some(uid) = self.owed.pop_first()
        {
            if !self.own(&Command::Disconnect { uid })? {
                self.owed.insert(uid);
                break;
            }
        }
        Ok(())
    }

    /// Why new commands of a session are not taken now. Those that were taken before have their
    /// answers all the same: a refusal would say that they were not executed.
    fn closed_to(&self, key: SessionKey) -> Option<Refusal> {
        if self.is_draining {
            return Some(Refusal::Draining);
        }
        // What the user is owed would cancel what came after.
        let is_owed = key.role == Role::Trade && self.owed.contains(&UserId(key.holder));
        is_owed.then_some(Refusal::DiskFull)
    }

    fn refuse_query(&self, session: &Session, id: u64, why: Refusal) {
        self.place.figures.refuse(why);
        session.answer_query(&QueryAnswer {
            id,
            number: self.exchange.number(),
            said: Said::Refused(why),
        });
    }
}

impl<S: Storage> Owner for Driver<S> {
    fn room(&mut self) -> Result<usize, Failed> {
        self.exchange.room()
    }

    fn serve(&mut self, request: Request) -> Result<(), Failed> {
        match request {
            Request::Query { session, id, query } => {
                let tag = self.next_tag;
                self.next_tag += 1;
                self.place.inquiries.put(tag, &session, id);
                match self.exchange.query(query, tag) {
                    Err(SubmitError::Failed(failed)) => Err(failed),
                    Err(error) => {
                        self.place.inquiries.take(tag);
                        if matches!(query, Query::OpenOrders { .. }) {
                            session.end_list();
                        }
                        let why = refusal_of(&error).unwrap_or(Refusal::DiskFull);
                        self.refuse_query(&session, id, why);
                        Ok(())
                    }
                    Ok(()) => Ok(()),
                }
            }
            Request::Refused {
                session,
                sequence,
                command,
                why,
            } => {
                let (session, place) = (&session, &self.place);
                Teller { session, place }.refuse(sequence, &command, why);
                session.wake();
                Ok(())
            }
            Request::Left(session) => match self.place.roster.leave(&session) {
                Some(user) => {
                    self.owed.insert(user);
                    self.settle_owed()
                }
                None => Ok(()),
            },
            Request::Clock(time) => self.own(&Command::Clock { time }).map(drop),
            Request::Limits(limits) => {
                self.owed_limits = Some(limits);
                self.settle_owed()
            }
        }
    }

    fn submit(
        &mut self,
        session: &Arc<Session>,
        commands: &[(ClientSequence, Command)],
    ) -> Result<(), Failed> {
        let key = session.key;
        let closed = self.closed_to(key);
        let (exchange, place) = (&mut self.exchange, &self.place);
        let mut teller = Teller { session, place };
        let taken = commands.iter().filter_map(|(sequence, command)| {
            let sequence = *sequence;
            if let Some(why) = closed
                && !exchange.knows(key, sequence)
            {
                teller.refuse(sequence, command, why);
                return None;
            }
            let origin = Origin::Session { key, sequence };
            let tag = session.id;
            Some((
                sequence,
                Submission {
                    origin,
                    command,
                    tag,
                },
            ))
        });
        let (sequences, submissions): (Vec<_>, Vec<_>) = taken.collect();
        let owed_limits = &mut self.owed_limits;
        let unexecuted = &mut self.unexecuted;
        let mut failed = None;
        exchange.submit_many(&submissions, |at, admitted| {
            if let Command::SetLimits { uid: None, .. } = submissions[at].command
                && admitted.is_ok()
            {
                *owed_limits = None;
            }
            *unexecuted += match &admitted {
                Ok(Admitted::New { .. }) => 0,
                // It was looked for among all that are in flight.
                Ok(Admitted::Pending { .. }) => PENDING_WORK,
                Ok(Admitted::Repeat(_)) | Err(_) => 1,
            };
            let failure = teller.tell(sequences[at], submissions[at].command, admitted);
            failed = failure.or(failed.take());
        });
        session.wake();
        failed.map_or(Ok(()), Err)
    }

    fn work(&self) -> u64 {
        self.exchange.work() + self.unexecuted
    }

    fn drive(&mut self) -> Result<bool, Failed> {
        self.exchange.idle()?;
        let has_expired = self.exchange.expired_by().is_some();
        Ok(self.is_owing() || has_expired || self.exchange.idle_again().is_some())
    }

    fn tend(&mut self) -> Result<Option<Duration>, Failed> {
        if self.is_owing() && self.tried.elapsed() >= RETRY {
            self.settle_owed()?;
        }
        // As many as may in one command; others have their turn before the next one.
        let mut goes_on = false;
        if let Some(time) = self.exchange.expired_by()
            && self.exchange.work() != self.tended
            && self.exchange.room()? > 0
        {
            self.tended = self.exchange.work();
            goes_on = self.own(&Command::Clock { time })?;
        }
        self.exchange.idle()?;
        self.tell_failures();
        if self.exchange.expired_by().is_some() {
            return Ok(Some(if goes_on { Duration::ZERO } else { RETRY }));
        }
        let retry = self.is_owing().then_some(RETRY);
        Ok(self.exchange.idle_again().or(retry))
    }

    fn begin_drain(&mut self) {
        self.is_draining = true;
    }

    fn is_settled(&mut self) -> Result<bool, Failed> {
        self.exchange.is_settled()
    }

    fn stats(&self) -> Option<Stats> {
        self.exchange.stats()
    }

    fn close(mut self: Box<Self>) -> Result<Finished, Failed> {
        self.owed.extend(self.place.roster.abandoned());
        let mut left = usize::MAX;
        while self.owed.len() < left {
            left = self.owed.len();
            self.exchange.drain_while_room()?;
            self.settle_owed()?;
        }
        self.exchange.close()
    }
}

/// The refusal of an error that the client is told.
fn refusal_of(error: &SubmitError) -> Option<Refusal> {
    match error {
        SubmitError::Refused(why) => Some(*why),
        _ => None,
    }
}

/// Tells a session what came of its commands where they are not executed now.
struct Teller<'t> {
    session: &'t Session,
    place: &'t Place,
}

impl Teller<'_> {
    /// The failure, if the exchange has stopped.
    fn tell(
        &mut self,
        sequence: ClientSequence,
        command: &Command,
        told: Result<Admitted, SubmitError>,
    ) -> Option<Failed> {
        match told {
            // Its outcome will be published.
            Ok(Admitted::New { .. } | Admitted::Pending { .. }) => {}
            Ok(Admitted::Repeat(first)) => {
                self.session.outbox.push(&ServerFrame::Answer(Answer {
                    sequence,
                    number: first.number,
                    result: first.result,
                    is_repeated: true,
                }));
            }
            Err(SubmitError::Refused(why)) => self.refuse(sequence, command, why),
            Err(SubmitError::Failed(failed)) => return Some(failed),
            Err(error) => {
                let text = format!("command {sequence}: {error}");
                self.session.outbox.end(Ending::FrameTooLong, text);
            }
        }
        None
    }

    fn refuse(&self, sequence: ClientSequence, command: &Command, why: Refusal) {
        self.place.figures.refuse(why);
        let refused = ServerFrame::Refused(Refused { sequence, why });
        self.session.outbox.push(&refused);
        if self.session.key.role == Role::Admin {
            let key = self.session.key;
            let name = self.session.key_name();
            let line = AuditLine::refused(key, name, sequence, command, why);
            self.place.audit.write(line);
        }
    }
}

#[cfg(test)]
mod tests;
