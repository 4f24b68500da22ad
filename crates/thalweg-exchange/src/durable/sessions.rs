//! Sessions and the answers to their last commands: what makes a command that comes again be
//! executed once.

use std::collections::VecDeque;

use super::options::SessionLimits;
use crate::engine::index::{Index, Key, fold};
use crate::result_code::ResultCode;
use crate::session::{ClientSequence, Refusal, SessionKey};

impl Key for SessionKey {
    #[inline(always)]
    fn hash(self, secrets: [u64; 2]) -> u32 {
        let number = u64::from(self.number) << 8 | self.role as u64;
        fold(
            self.holder.cast_unsigned() ^ secrets[0],
            secrets[1] ^ number << 1,
        )
    }
}

/// A session's place in the tables, the same in all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SessionSlot(pub(super) u32);

/// The first answer to a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FirstAnswer {
    /// The command's number.
    pub number: u64,
    /// Its result.
    pub result: ResultCode,
}

/// A command that was executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) sequence: u64,
    pub(super) number: u64,
    pub(super) result: ResultCode,
    /// The [`check`](crate::digest::check) of the command.
    pub(super) check: u32,
}

/// The state of a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SessionState {
    /// The sequence of its last command that was executed and made durable; 0 if there is none.
    pub last_executed: ClientSequence,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Session {
    pub(super) key: SessionKey,
    pub(super) last_executed: u64,
    /// The last sequence whose answer was not kept when the session was read: see
    /// [`Sessions::kept`].
    pub(super) gone_until: u64,
    /// By rising sequence: those that are kept, and where there were more, the one before.
    pub(super) answers: VecDeque<Answer>,
    /// The session was copied after the commands below this number; 0 where it was not.
    pub(super) since: u64,
}

/// All sessions.
#[derive(Clone, Debug)]
pub(super) struct Sessions {
    list: Vec<Session>,
    index: Index<SessionKey>,
    answers_kept: usize,
}

impl Sessions {
    pub(super) fn new(limits: &SessionLimits) -> Self {
        Self {
            list: Vec::new(),
            index: Index::default(),
            answers_kept: limits.answers_kept as usize,
        }
    }

    pub(super) fn list(&self) -> &[Session] {
        &self.list
    }

    pub(super) fn find(&self, key: SessionKey) -> Option<SessionSlot> {
        let key_of = |slot: u32| self.list[slot as usize].key;
        self.index.find(key, key_of).map(SessionSlot)
    }

    /// The slot of a session, which may be new.
    pub(super) fn open(&mut self, key: SessionKey) -> SessionSlot {
        self.find(key).unwrap_or_else(|| {
            self.add(Session {
                key,
                last_executed: 0,
                gone_until: 0,
                answers: VecDeque::new(),
                since: 0,
            })
        })
    }

    /// Adds one that is not here.
    pub(super) fn add(&mut self, mut session: Session) -> SessionSlot {
        let slot = u32::try_from(self.list.len()).expect("limits are below 2^32");
        while session.answers.len() > self.answers_kept {
            forget_first(&mut session);
        }
        self.index.insert(session.key, slot);
        self.list.push(session);
        SessionSlot(slot)
    }

    pub(super) fn key(&self, slot: SessionSlot) -> SessionKey {
        self.list[slot.0 as usize].key
    }

    pub(super) fn last_executed(&self, slot: SessionSlot) -> u64 {
        self.list[slot.0 as usize].last_executed
    }

    pub(super) fn since(&self, slot: SessionSlot) -> u64 {
        self.list[slot.0 as usize].since
    }

    pub(super) fn state(&self, key: SessionKey) -> SessionState {
        let state = |slot: SessionSlot| SessionState {
            last_executed: ClientSequence(self.last_executed(slot)),
        };
        self.find(key).map_or_else(SessionState::default, state)
    }

    /// A command was executed.
    #[inline]
    pub(super) fn note(&mut self, slot: SessionSlot, answer: Answer) {
        let session = &mut self.list[slot.0 as usize];
        if session.answers.len() > self.answers_kept {
            // The next one says until where they are gone; this one is not read, since it left the
            // cache long ago.
            session.answers.pop_front();
        }
        session.last_executed = answer.sequence;
        session.answers.push_back(answer);
    }

    /// The first answer to a command that comes again, which the [`check`](Answer::check) with its
    /// result says; none while it may not have been executed.
    pub(super) fn first_answer(
        &self,
        slot: SessionSlot,
        sequence: u64,
        check: impl FnOnce(ResultCode) -> u32,
    ) -> Option<Result<FirstAnswer, Refusal>> {
        let session = &self.list[slot.0 as usize];
        (sequence <= session.last_executed).then(|| self.find_answer(session, sequence, check))
    }

    fn find_answer(
        &self,
        session: &Session,
        sequence: u64,
        check: impl FnOnce(ResultCode) -> u32,
    ) -> Result<FirstAnswer, Refusal> {
        if sequence <= self.kept(session).0 {
            return Err(Refusal::AnswerGone);
        }
        let found = session
            .answers
            .binary_search_by_key(&sequence, |answer| answer.sequence);
        let answer = found.map_or(Err(Refusal::NotExecuted), |at| Ok(session.answers[at]))?;
        if answer.check != check(answer.result) {
            return Err(Refusal::SequenceReused);
        }
        Ok(FirstAnswer {
            number: answer.number,
            result: answer.result,
        })
    }

    /// Returns the last sequence of a session whose answer is not kept, and the answers that are.
    pub(super) fn kept<'s>(
        &self,
        session: &'s Session,
    ) -> (u64, impl ExactSizeIterator<Item = &'s Answer>) {
        let over = session.answers.len().saturating_sub(self.answers_kept);
        let gone_until = match over.checked_sub(1) {
            Some(last) => session.answers[last].sequence,
            None => session.gone_until,
        };
        (gone_until, session.answers.range(over..))
    }
}

fn forget_first(session: &mut Session) {
    if let Some(first) = session.answers.pop_front() {
        session.gone_until = first.sequence;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::Role;

    const KEY: SessionKey = SessionKey::new(Role::Trade, 7, 1);

    fn answer(sequence: u64) -> Answer {
        Answer {
            sequence,
            number: 100 + sequence,
            result: ResultCode::Success,
            check: 5,
        }
    }

    fn sessions(answers_kept: u32) -> (Sessions, SessionSlot) {
        let mut sessions = Sessions::new(&SessionLimits {
            answers_kept,
            ..SessionLimits::default()
        });
        let slot = sessions.open(KEY);
        for sequence in [2, 3, 7, 9] {
            sessions.note(slot, answer(sequence));
        }
        (sessions, slot)
    }

    #[test]
    fn a_repeat_has_its_first_answer_or_a_refusal() {
        let (sessions, slot) = sessions(3);
        let of = |sequence, check| sessions.first_answer(slot, sequence, |_| check);
        let first = |number| {
            let result = ResultCode::Success;
            Some(Ok(FirstAnswer { number, result }))
        };
        assert_eq!(of(9, 5), first(109));
        assert_eq!(of(3, 5), first(103));
        assert_eq!(of(3, 6), Some(Err(Refusal::SequenceReused)));
        assert_eq!(of(8, 5), Some(Err(Refusal::NotExecuted)));
        assert_eq!(of(2, 5), Some(Err(Refusal::AnswerGone)));
        assert_eq!(of(1, 5), Some(Err(Refusal::AnswerGone)));
        assert_eq!(of(10, 5), None, "it may be in flight");
    }

    #[test]
    fn sessions_differ_by_every_part_of_their_key() {
        let (mut sessions, slot) = sessions(3);
        let others = [
            SessionKey { number: 2, ..KEY },
            SessionKey { holder: 8, ..KEY },
            SessionKey {
                role: Role::Admin,
                ..KEY
            },
        ];
        for (at, other) in (1..).zip(others) {
            assert_eq!(sessions.find(other), None);
            assert_eq!(sessions.open(other), SessionSlot(at));
            assert_eq!(sessions.state(other), SessionState::default());
        }
        assert_eq!(sessions.open(KEY), slot);
        assert_eq!(sessions.state(KEY).last_executed, ClientSequence(9));
        assert_eq!(sessions.key(SessionSlot(2)), others[1]);
    }

    #[test]
    fn fewer_answers_are_taken_over_where_fewer_are_kept() {
        let (all, slot) = sessions(4);
        let mut fewer = Sessions::new(&SessionLimits {
            answers_kept: 1,
            ..SessionLimits::default()
        });
        fewer.add(all.list()[slot.0 as usize].clone());
        let (gone_until, answers) = fewer.kept(&fewer.list()[0]);
        assert_eq!((gone_until, answers.len()), (7, 1));
    }
}
