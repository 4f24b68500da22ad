//! Delivery: the output of the exchange goes to the sessions that it is for.

use std::time::Instant;

use thalweg_exchange::UserId;
use thalweg_exchange::codec::session::{NUMBERED_REPORT_BYTES, QueryAnswer};
use thalweg_exchange::durable::Storage;
use thalweg_exchange::session::SessionKey;

use super::{ExchangeThread, TEND_AFTER};
use crate::drop_copy::writer;
use crate::lock;
use crate::publisher::{Delivery, is_list, query_result};
use crate::scheduler::HolderId;
use crate::session::{Session, SessionId};

/// Work of a report to a further session of its user: a write.
const REPORT_WRITE_WORK: u64 = 8;
/// Bytes of frames that are pushed together, about: an output takes all of them or none.
const RUN_BYTES: usize = 1 << 12;

/// Frames in a row for one session.
struct Run {
    id: SessionId,
    /// The tag and the session of answers that it takes.
    tag: u64,
    key: SessionKey,
    /// The user whose reports only this session wants.
    reports_of: Option<UserId>,
    bytes: usize,
}

impl Run {
    fn takes(&self, tag: u64, key: SessionKey) -> bool {
        self.tag == tag && self.key == key && self.bytes < RUN_BYTES
    }

    fn takes_reports_of(&self, user: UserId) -> bool {
        self.reports_of == Some(user) && self.bytes < RUN_BYTES
    }
}

impl<S: Storage> ExchangeThread<S> {
    /// Delivers what was published.
    pub(super) fn deliver(&mut self) {
        self.look_at_copy();
        let mut outgoing = std::mem::take(&mut self.outgoing);
        {
            let mut mailbox = lock(&self.mailbox);
            let is_empty = mailbox.deliveries.is_empty() && mailbox.copied.is_empty();
            if mailbox.failed.is_none() && is_empty {
                self.next_command = self.next_command.max(mailbox.next_command);
                self.outgoing = outgoing;
                return;
            }
            std::mem::swap(&mut *mailbox, &mut outgoing);
        }
        self.next_command = self.next_command.max(outgoing.next_command);
        let mut rest = &outgoing.bytes[..];
        let mut run = None;
        for delivery in outgoing.deliveries.drain(..) {
            self.deliver_one(delivery, &mut run, &mut rest);
        }
        self.push_run(&mut run, &mut rest);
        outgoing.bytes.clear();
        for (key, reports) in outgoing.copied.drain(..) {
            self.scheduler
                .charge_copied(key, reports as u64, Instant::now());
        }
        if let Some(failed) = outgoing.failed.take() {
            self.check(Err::<(), _>(failed));
        }
        self.outgoing = outgoing;
    }

    /// Notes whether the gateway's drop copy is half full, and has it handed over soon where books
    /// are to come anew: no command may come.
    fn look_at_copy(&mut self) {
        if let Some(copy) = writer(self.copy.as_ref()) {
            self.scheduler.note_copy(copy.is_half_full());
            if copy.is_late() {
                let at = Instant::now() + TEND_AFTER;
                self.tend_at = Some(self.tend_at.map_or(at, |before| before.min(at)));
            }
        }
    }

    /// Hands the next books over that are to come anew in the gateway's drop copy.
    pub(super) fn hand_over_copy(&mut self) {
        if let Some(mut copy) = writer(self.copy.as_ref())
            && copy.is_late()
        {
            copy.hand_over();
        }
    }

    /// Adds frames for a session. Returns its holder where a write follows that others have not
    /// caused before.
    #[inline]
    fn push(&mut self, id: SessionId, frames: &[u8]) -> Option<HolderId> {
        let session = self.sessions.get(id)?;
        session.output.push_bytes(frames);
        if std::mem::replace(&mut session.is_dirty, true) {
            return None;
        }
        self.dirty.push(id);
        Some(session.holder)
    }

    /// Begins a run of frames for a session.
    fn begin_run(&mut self, id: SessionId, tag: u64) -> Option<Run> {
        let session = self.sessions.get(id)?;
        let (key, user) = (session.terms.key, session.user());
        let reports_of = user.filter(|user| self.sessions.of_user(*user) == [id]);
        Some(Run {
            id,
            tag,
            key,
            reports_of,
            bytes: 0,
        })
    }

    /// Adds the frames of a run, which are the next bytes, to the output of its session.
    #[inline]
    fn push_run(&mut self, run: &mut Option<Run>, rest: &mut &[u8]) {
        if let Some(run) = run.take() {
            let (frames, others) = rest.split_at(run.bytes);
            *rest = others;
            self.push(run.id, frames);
        }
    }

    /// Delivers one thing, or adds it to the run of frames that are pushed together: most in a row
    /// are for one session. The bytes of the run, and then its own, are the next of the `rest`.
    fn deliver_one(&mut self, delivery: Delivery, run: &mut Option<Run>, rest: &mut &[u8]) {
        match (&delivery, &mut *run) {
            (Delivery::Answers { tag, key, bytes }, Some(run)) if run.takes(*tag, *key) => {
                run.bytes += bytes;
                return;
            }
            (Delivery::Report(user), Some(run)) if run.takes_reports_of(*user) => {
                run.bytes += NUMBERED_REPORT_BYTES;
                return;
            }
            _ => self.push_run(run, rest),
        }
        match delivery {
            Delivery::Answers { tag, key, bytes } => {
                let id = SessionId::of_tag(tag);
                let is_it = |session: &&mut Session| session.terms.key == key && !session.has_left;
                let id = match self.sessions.get(id).filter(is_it) {
                    Some(_) => Some(id),
                    None => self.sessions.of_key(key),
                };
                *run = id.and_then(|id| self.begin_run(id, tag));
                match run {
                    Some(run) => run.bytes = bytes,
                    None => *rest = &rest[bytes..],
                }
            }
            Delivery::Report(user) => {
                if let [only] = *self.sessions.of_user(user) {
                    *run = self.begin_run(only, only.tag());
                    if let Some(run) = run {
                        run.bytes = NUMBERED_REPORT_BYTES;
                        return;
                    }
                }
                let (report, others) = rest.split_at(NUMBERED_REPORT_BYTES);
                *rest = others;
                let all = self.sessions.of_user(user).to_vec();
                for (at, id) in all.into_iter().enumerate() {
                    if let Some(holder) = self.push(id, report)
                        && at > 0
                    {
                        self.scheduler.charge(holder, REPORT_WRITE_WORK);
                    }
                }
            }
            Delivery::Answered(tag, answered) => {
                if let Some((id, query)) = self.driver.asked(tag)
                    && let Some(session) = self.sessions.get(id)
                {
                    session.is_listing &= !is_list(&answered.answer);
                    let result = query_result(answered.answer, session.output.half());
                    session.answer_query(QueryAnswer {
                        id: query,
                        number: answered.sequence,
                        result,
                    });
                    self.note_dirty(id);
                }
            }
            Delivery::Audit(line, key) => {
                let id = self.sessions.of_key(key);
                let session = id.and_then(|id| self.sessions.get(id));
                let name = session.and_then(|session| session.key_name().map(str::to_owned));
                self.driver.audit(line.with_key(name.as_deref()));
            }
        }
    }
}
