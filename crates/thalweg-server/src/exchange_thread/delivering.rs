//! Delivery: the output of the exchange goes to the sessions that it is for.

use std::sync::PoisonError;

use thalweg_exchange::codec::session::{NUMBERED_REPORT_BYTES, QueryAnswer};
use thalweg_exchange::durable::Storage;

use super::ExchangeThread;
use crate::publisher::{Delivery, is_list, query_result};
use crate::scheduler::HolderId;
use crate::session::{Session, SessionId};

/// Work of a report to a further session of its user: a write.
const REPORT_WRITE_WORK: u64 = 8;

impl<S: Storage> ExchangeThread<S> {
    /// Delivers what was published.
    pub(super) fn deliver(&mut self) {
        let mut outgoing = std::mem::take(&mut self.outgoing);
        {
            let mut mailbox = self.mailbox.lock().unwrap_or_else(PoisonError::into_inner);
            if mailbox.failed.is_none() && mailbox.deliveries.is_empty() {
                self.next_command = self.next_command.max(mailbox.next_command);
                self.outgoing = outgoing;
                return;
            }
            std::mem::swap(&mut *mailbox, &mut outgoing);
        }
        self.next_command = self.next_command.max(outgoing.next_command);
        let mut rest = &outgoing.bytes[..];
        for delivery in outgoing.deliveries.drain(..) {
            rest = self.deliver_one(delivery, rest);
        }
        outgoing.bytes.clear();
        if let Some(failed) = outgoing.failed.take() {
            self.check(Err::<(), _>(failed));
        }
        self.outgoing = outgoing;
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

    /// Delivers one thing, and returns what is left of the bytes.
    fn deliver_one<'b>(&mut self, delivery: Delivery, bytes: &'b [u8]) -> &'b [u8] {
        match delivery {
            Delivery::Answers {
                tag,
                key,
                bytes: length,
            } => {
                let (answers, rest) = bytes.split_at(length);
                let id = SessionId::of_tag(tag);
                let is_it = |session: &&mut Session| session.terms.key == key && !session.has_left;
                let id = match self.sessions.get(id).filter(is_it) {
                    Some(_) => Some(id),
                    None => self.sessions.of_key(key),
                };
                if let Some(id) = id {
                    self.push(id, answers);
                }
                rest
            }
            Delivery::Report(user) => {
                let (report, rest) = bytes.split_at(NUMBERED_REPORT_BYTES);
                match self.sessions.of_user(user) {
                    [] => {}
                    [only] => drop(self.push(*only, report)),
                    all => {
                        let all = all.to_vec();
                        for (at, id) in all.into_iter().enumerate() {
                            if let Some(holder) = self.push(id, report)
                                && at > 0
                            {
                                self.scheduler.charge(holder, REPORT_WRITE_WORK);
                            }
                        }
                    }
                }
                rest
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
                bytes
            }
            Delivery::Audit(line, key) => {
                let id = self.sessions.of_key(key);
                let session = id.and_then(|id| self.sessions.get(id));
                let name = session.and_then(|session| session.key_name().map(str::to_owned));
                self.driver.audit(line.with_key(name.as_deref()));
                bytes
            }
        }
    }
}
