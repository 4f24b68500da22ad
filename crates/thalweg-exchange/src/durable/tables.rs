//! The durable tables beside the state: sessions with the answers to their last commands, and the
//! last execution reports of each user.
//!
//! The answers are what makes a command that comes again be executed once. A user's reports are
//! numbered from 1 without gaps. The numbers depend on the journal alone, not on which session
//! caused the reports, so that a client that reconnects can name the last report that it saw, also
//! after a crash.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use thalweg::ring::prefetch;

use super::options::{REPORTS_LEAST, SessionLimits};
use super::recent::Recent;
use super::record::{Origin, RecordError};
use crate::codec::{REPORT_BYTES, decode_report, report_frame};
use crate::digest::Digest;
use crate::engine::index::{Index, Key, fold};
use crate::execution::{ExecutionReport, TakesReports, for_each_report};
use crate::ids::UserId;
use crate::result_code::ResultCode;
use crate::service::Outcome;
use crate::session::{ClientSequence, Refusal, ReportNumber, SessionKey};

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

/// The session and the sequence of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Note {
    /// The place of the session.
    pub(super) session: u32,
    /// The number that its session gave it.
    pub(super) sequence: u64,
}

impl Note {
    /// The note of a command that no session sent.
    pub(super) const NONE: Self = Self {
        session: u32::MAX,
        sequence: 0,
    };
}

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

#[derive(Clone, Debug)]
pub(super) struct Session {
    pub(super) key: SessionKey,
    pub(super) last_executed: u64,
    /// The last sequence whose answer was not kept when the session was read: see
    /// [`Sessions::kept`].
    pub(super) gone_until: u64,
    /// By rising sequence: those that are kept, and where there were more, the one before.
    pub(super) answers: Recent<Answer>,
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

    /// Returns the slot of a session, which may be new.
    pub(super) fn open(&mut self, key: SessionKey) -> SessionSlot {
        self.find(key).unwrap_or_else(|| {
            self.add(Session {
                key,
                last_executed: 0,
                gone_until: 0,
                answers: Recent::default(),
                since: 0,
            })
        })
    }

    /// Adds one that is not here.
    pub(super) fn add(&mut self, mut session: Session) -> SessionSlot {
        let slot = u32::try_from(self.list.len()).expect("limits are below 2^32");
        let over = session.answers.len().saturating_sub(self.answers_kept);
        if let Some(last) = over.checked_sub(1).and_then(|at| session.answers.get(at)) {
            session.gone_until = last.sequence;
            session.answers.forget(over);
        }
        self.index.insert(session.key, slot);
        self.list.push(session);
        SessionSlot(slot)
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
        session.last_executed = answer.sequence;
        if session.answers.len() > self.answers_kept {
            // The next one says until where they are gone; this one is not read, since it left the
            // cache long ago.
            session.answers.replace_first(answer);
        } else {
            session.answers.add(answer);
        }
    }

    /// Returns the first answer to a command that comes again, which the [`check`](Answer::check)
    /// with its result says; none while it may not have been executed.
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
        let find = |part: &[Answer]| {
            let found = part.binary_search_by_key(&sequence, |answer| answer.sequence);
            found.ok().map(|at| part[at])
        };
        let found = session.answers.parts().into_iter().find_map(find);
        let answer = found.ok_or(Refusal::NotExecuted)?;
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
        let last_gone = over.checked_sub(1).and_then(|at| session.answers.get(at));
        let gone_until = last_gone.map_or(session.gone_until, |answer| answer.sequence);
        (gone_until, session.answers.from(over))
    }
}

/// The frame of a report.
pub(super) type Frame = [u8; REPORT_BYTES];

/// The answer to a user who resumes after a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resumed {
    /// Reports that are not kept any more: the first and the last of them.
    pub gap: Option<(ReportNumber, ReportNumber)>,
    /// The number of the first one that was given; [`next`](Self::next) if none was.
    pub first: ReportNumber,
    /// The number that the user's next report gets.
    pub next: ReportNumber,
}

#[derive(Clone, Debug)]
pub(super) struct UserReports {
    pub(super) user: UserId,
    /// The number of the next one.
    pub(super) next: u64,
    /// The last ones.
    pub(super) kept: Recent<Frame>,
    /// The list was copied after the commands below this number; 0 where it was not.
    pub(super) since: u64,
}

impl UserReports {
    /// Returns the number of the oldest that is kept.
    fn oldest(&self) -> u64 {
        self.next - self.kept.len() as u64
    }
}

/// The reports of all users.
#[derive(Clone, Debug)]
pub(super) struct ReportTable {
    list: Vec<UserReports>,
    index: Index,
    /// The user whose report was numbered last: most often the next one is the same user's.
    last: Option<(UserId, u32)>,
    /// The highest [`since`](UserReports::since).
    since_max: u64,
    /// Kept of all users together.
    total: usize,
    kept: usize,
    total_max: usize,
}

impl ReportTable {
    pub(super) fn new(limits: &SessionLimits) -> Self {
        Self {
            list: Vec::new(),
            index: Index::default(),
            last: None,
            since_max: 0,
            total: 0,
            kept: limits.reports_kept as usize,
            total_max: limits.reports_max as usize,
        }
    }

    pub(super) fn list(&self) -> &[UserReports] {
        &self.list
    }

    /// Kept of all users together: at most the limit, and [`REPORTS_LEAST`] for each user.
    pub(super) fn total(&self) -> usize {
        self.total
    }

    /// Returns whether the limit is reached. Once it is, it stays so.
    pub(super) fn is_full(&self) -> bool {
        self.total >= self.total_max
    }

    /// Returns whether a user's list was copied after this command, and so has its reports.
    #[inline(always)]
    pub(super) fn has(&self, user: UserId, command: u64) -> bool {
        command < self.since_max && self.was_copied_after(user, command)
    }

    #[cold]
    fn was_copied_after(&self, user: UserId, command: u64) -> bool {
        let slot = self.find(user);
        slot.is_some_and(|slot| command < self.list[slot as usize].since)
    }

    fn find(&self, user: UserId) -> Option<u32> {
        let id_of = |slot: u32| self.list[slot as usize].user.0;
        self.index.find(user.0, id_of)
    }

    /// Adds a user who is not here.
    pub(super) fn add(&mut self, mut reports: UserReports) -> u32 {
        let slot = u32::try_from(self.list.len()).expect("memory runs out before users do");
        let over = reports.kept.len().saturating_sub(self.kept);
        reports.kept.forget(over);
        self.total += reports.kept.len();
        self.since_max = self.since_max.max(reports.since);
        self.index.insert(reports.user.0, slot);
        self.list.push(reports);
        slot
    }

    /// Numbers and keeps a report.
    #[inline(always)]
    pub(super) fn push(&mut self, user: UserId, frame: &Frame) -> ReportNumber {
        let slot = match self.last {
            Some((last, slot)) if last == user => slot,
            _ => self.slot_of(user),
        };
        let reports = &mut self.list[slot as usize];
        let kept = reports.kept.len();
        let may_grow = kept < REPORTS_LEAST as usize || self.total < self.total_max;
        if kept < self.kept && may_grow {
            self.total += 1;
            reports.kept.add(*frame);
        } else {
            reports.kept.replace_first(*frame);
        }
        let number = ReportNumber(reports.next);
        reports.next += 1;
        number
    }

    /// Returns the place of a user, who may be new.
    #[inline(never)]
    fn slot_of(&mut self, user: UserId) -> u32 {
        let slot = self.find(user).unwrap_or_else(|| {
            self.add(UserReports {
                user,
                next: 1,
                kept: Recent::default(),
                since: 0,
            })
        });
        self.last = Some((user, slot));
        slot
    }

    /// Prefetches the lines that the user's next report is written to: others' reports have had the
    /// caches since the last one.
    #[inline]
    pub(super) fn prefetch(&self, user: UserId) {
        if let Some(slot) = self.find(user)
            && let Some([first, .., last]) = self.list[slot as usize].kept.get(0)
        {
            prefetch(first);
            prefetch(last);
        }
    }

    pub(super) fn next(&self, user: UserId) -> ReportNumber {
        let next = |slot: u32| self.list[slot as usize].next;
        ReportNumber(self.find(user).map_or(1, next))
    }

    /// Appends the frames after a report that are kept.
    pub(super) fn resume(&self, user: UserId, after: ReportNumber, out: &mut Vec<u8>) -> Resumed {
        let Some(slot) = self.find(user) else {
            let none = ReportNumber(1);
            return Resumed {
                gap: None,
                first: none,
                next: none,
            };
        };
        let reports = &self.list[slot as usize];
        let wanted = after.0.saturating_add(1).min(reports.next);
        let first = wanted.max(reports.oldest());
        let skipped = (first - reports.oldest()) as usize;
        for frame in reports.kept.from(skipped) {
            out.extend_from_slice(frame);
        }
        Resumed {
            gap: (wanted < first).then(|| (ReportNumber(wanted), ReportNumber(first - 1))),
            first: ReportNumber(first),
            next: ReportNumber(reports.next),
        }
    }
}

/// An execution report with its number among those of its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReportFrame {
    /// The number.
    pub number: ReportNumber,
    /// The user whom it is for.
    pub owner: UserId,
    /// The codec's frame of it.
    pub frame: [u8; REPORT_BYTES],
}

impl ReportFrame {
    /// Returns the report.
    ///
    /// # Panics
    /// Never, if the frame is that of a report.
    #[must_use]
    pub fn report(&self) -> ExecutionReport {
        let (report, _) = decode_report(&self.frame).expect("the frame was encoded from one");
        report
    }
}

/// The tables.
#[derive(Clone, Debug)]
pub(super) struct Tables {
    pub(super) sessions: Sessions,
    pub(super) reports: ReportTable,
    /// The digest of the commands that are noted here, in the tables of an open exchange.
    pub(super) noted: Digest,
}

impl Tables {
    pub(super) fn new(limits: &SessionLimits) -> Self {
        Self {
            sessions: Sessions::new(limits),
            reports: ReportTable::new(limits),
            noted: Digest::new(),
        }
    }

    /// Returns the note of the command with this number out of the journal; none where its session
    /// was copied after it.
    pub(super) fn note_of(&mut self, origin: Origin, number: u64) -> Result<Note, RecordError> {
        let Origin::Session { key, sequence } = origin else {
            return Ok(Note::NONE);
        };
        let slot = self.sessions.open(key);
        if number < self.sessions.since(slot) {
            return Ok(Note::NONE);
        }
        let last = self.sessions.last_executed(slot);
        if sequence.0 <= last {
            let sequence = sequence.0;
            return Err(RecordError::Repeated { sequence, last });
        }
        Ok(Note {
            session: slot.0,
            sequence: sequence.0,
        })
    }

    /// Keeps the answer of a command that was executed, with its check, and numbers and keeps its
    /// reports, which are added to `reported`.
    #[inline(always)]
    pub(super) fn note(
        &mut self,
        outcome: &Outcome<'_>,
        (note, check): (Note, u32),
        reported: Option<&mut Vec<ReportFrame>>,
    ) {
        if note.session != Note::NONE.session {
            let answer = Answer {
                sequence: note.sequence,
                number: outcome.sequence,
                result: outcome.result,
                check,
            };
            self.sessions.note(SessionSlot(note.session), answer);
        }
        let Outcome {
            sequence,
            result,
            command,
            events,
            ..
        } = *outcome;
        let mut keeping = Keeping {
            reports: &mut self.reports,
            reported,
        };
        for_each_report(sequence, command, (result, events), &mut keeping);
    }
}

/// Numbers and keeps reports, and adds them to those that are published, where some are.
struct Keeping<'t> {
    reports: &'t mut ReportTable,
    reported: Option<&'t mut Vec<ReportFrame>>,
}

impl TakesReports for Keeping<'_> {
    #[inline(always)]
    fn take(&mut self, report: &ExecutionReport) {
        let owner = report.owner;
        if self.reports.has(owner, report.command) {
            return;
        }
        let frame = report_frame(report);
        let number = self.reports.push(owner, &frame);
        if let Some(reported) = &mut self.reported {
            reported.push(ReportFrame {
                number,
                owner,
                frame,
            });
        }
    }
}

/// A handle to the sessions and the reports, for any thread: all that it returns is durable.
#[derive(Clone, Debug)]
pub struct Reports(Arc<Mutex<Tables>>);

impl Reports {
    pub(super) fn new(tables: Tables) -> Self {
        Self(Arc::new(Mutex::new(tables)))
    }

    /// Returns whether a thread has panicked with the lock: the tables may be unfinished.
    pub(super) fn is_poisoned(&self) -> bool {
        self.0.is_poisoned()
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Tables> {
        // A thread that panics with the lock stops the exchange.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends the frames of a user's reports after this one to `out`, as far as they are kept,
    /// [`REPORT_BYTES`] each. With [`ReportNumber`]`(u64::MAX)`, none.
    ///
    /// A report may come twice to a user who also gets those that are published: from here, and
    /// right after, by `publish`. Its number shows the repetition.
    pub fn resume(&self, user: UserId, after: ReportNumber, out: &mut Vec<u8>) -> Resumed {
        self.lock().reports.resume(user, after, out)
    }

    /// Returns the number that the user's next report gets.
    #[must_use]
    pub fn next(&self, user: UserId) -> ReportNumber {
        self.lock().reports.next(user)
    }

    /// Returns all sessions that have executed a command.
    #[must_use]
    pub fn sessions(&self) -> Vec<SessionKey> {
        let tables = self.lock();
        tables.sessions.list().iter().map(|one| one.key).collect()
    }

    /// Returns the state of a session; of one that never sent a command, that there is none.
    #[must_use]
    pub fn session(&self, key: SessionKey) -> SessionState {
        self.lock().sessions.state(key)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::command::Command;
    use crate::engine::state::{State, apply};
    use crate::event::Events;
    use crate::ids::{OrderId, SymbolId};
    use crate::session::Role;

    /// Returns a state and tables after three commands: of the exchange itself, and two of a
    /// session, which are refused, and reported.
    pub(in crate::durable) fn filled() -> (State, Tables, Digest) {
        let mut state = State::default();
        let mut tables = Tables::new(&SessionLimits::default());
        let (mut digest, mut events) = (Digest::new(), Events::new());
        let key = SessionKey {
            role: Role::Trade,
            holder: 7,
            number: 1,
        };
        for number in 0..3 {
            let command = match number {
                0 => Command::AddUser { uid: UserId(7) },
                number => Command::Cancel {
                    uid: UserId(7),
                    symbol: SymbolId(1),
                    order_id: OrderId(number),
                },
            };
            let result = apply(&mut state, &command, &mut events);
            let check = digest.fold_and_check(&command, result, &events);
            let origin = match number {
                0 => Origin::Engine,
                number => Origin::Session {
                    key,
                    sequence: ClientSequence(1 + number as u64 * 2),
                },
            };
            let note = tables.note_of(origin, number as u64).expect("they rise");
            let outcome = Outcome {
                sequence: number as u64,
                tag: 0,
                due: 0,
                stamps: None,
                command: &command,
                result,
                events: &events,
            };
            tables.note(&outcome, (note, check), None);
        }
        (state, tables, digest)
    }

    #[test]
    fn a_sequence_is_not_executed_twice() {
        let (_, mut tables, _) = filled();
        let key = tables.sessions.list()[0].key;
        let again = |sequence| Origin::Session {
            key,
            sequence: ClientSequence(sequence),
        };
        let refused = tables.note_of(again(5), 3).expect_err("it was executed");
        let text = "its sequence is 5, and the session executed 5 before";
        assert_eq!(refused.to_string(), text);
        assert!(tables.note_of(again(6), 3).is_ok());
    }

    const KEY: SessionKey = SessionKey::new(Role::Trade, 7, 1);

    fn answer(sequence: u64) -> Answer {
        Answer {
            sequence,
            number: 100 + sequence,
            result: ResultCode::Success,
            check: 5,
        }
    }

    fn empty(answers_kept: u32) -> (Sessions, SessionSlot) {
        let mut sessions = Sessions::new(&SessionLimits {
            answers_kept,
            ..SessionLimits::default()
        });
        let slot = sessions.open(KEY);
        (sessions, slot)
    }

    fn sessions(answers_kept: u32) -> (Sessions, SessionSlot) {
        let (mut sessions, slot) = empty(answers_kept);
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
    fn repeats_have_their_answers_wherever_the_list_begins() {
        for count in 1..=9 {
            let (mut sessions, slot) = empty(3);
            (1..=count).for_each(|of| sessions.note(slot, answer(2 * of)));
            let mut fewer = Sessions::new(&SessionLimits {
                answers_kept: 2,
                ..SessionLimits::default()
            });
            assert_eq!(fewer.add(sessions.list[0].clone()), slot);
            for (sessions, kept) in [(sessions, 3), (fewer, 2)] {
                for sequence in 1..=2 * count {
                    let first = sessions.first_answer(slot, sequence, |_| 5);
                    let first = first.expect("it was executed");
                    let expected = match sequence {
                        gone if gone + 2 * kept <= 2 * count => Err(Refusal::AnswerGone),
                        odd if odd % 2 == 1 => Err(Refusal::NotExecuted),
                        even => Ok(100 + even),
                    };
                    assert_eq!(
                        first.map(|first| first.number),
                        expected,
                        "{count}: {sequence}"
                    );
                }
                let listed = sessions.list[0].answers.len() as u64;
                assert!(listed <= kept + 1, "a list does not grow on: {listed}");
                let answers = sessions.kept(&sessions.list[0]).1;
                let rising = (1..=2 * count).filter(|of| of % 2 == 0);
                let skipped = (count.saturating_sub(kept)) as usize;
                assert!(answers.map(|one| one.sequence).eq(rising.skip(skipped)));
            }
        }
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
        assert_eq!(sessions.list()[2].key, others[1]);
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

    fn table(reports_kept: u32, reports_max: u32) -> ReportTable {
        ReportTable::new(&SessionLimits {
            reports_kept,
            reports_max,
            ..SessionLimits::default()
        })
    }

    fn frame(of: u64) -> Frame {
        [of as u8; REPORT_BYTES]
    }

    fn resumed(table: &ReportTable, user: i64, after: u64) -> (Resumed, Vec<u8>) {
        let mut out = Vec::new();
        let resumed = table.resume(UserId(user), ReportNumber(after), &mut out);
        let firsts = out.chunks(REPORT_BYTES).map(|frame| frame[0]).collect();
        (resumed, firsts)
    }

    #[test]
    fn a_user_goes_on_after_the_last_one_seen_and_learns_of_a_gap() {
        let mut table = table(3, 100);
        for number in 1..=5 {
            assert_eq!(table.push(UserId(7), &frame(number)), ReportNumber(number));
        }
        assert_eq!(table.push(UserId(8), &frame(9)), ReportNumber(1));
        let [one, two, four, five, next] = [1, 2, 4, 5, 6].map(ReportNumber);
        let (all, frames) = resumed(&table, 7, 0);
        assert_eq!(all.gap, Some((one, two)));
        assert_eq!((all.first, all.next), (ReportNumber(3), next));
        assert_eq!(frames, [3, 4, 5]);
        let (some, frames) = resumed(&table, 7, 3);
        assert_eq!((some.gap, some.first, frames), (None, four, vec![4, 5]));
        assert_eq!(resumed(&table, 7, 4).0.first, five);
        for nothing in [5, 6, u64::MAX] {
            let (resumption, frames) = resumed(&table, 7, nothing);
            assert_eq!(
                (resumption.gap, resumption.first, resumption.next),
                (None, next, next)
            );
            assert!(frames.is_empty());
        }
        assert_eq!(resumed(&table, 1, 0).0.next, one);
        assert_eq!(table.next(UserId(7)), next);
        assert_eq!(table.next(UserId(1)), one);
    }

    #[test]
    fn no_user_loses_reports_because_others_have_many() {
        let mut table = table(100, 50);
        let push = |table: &mut ReportTable, user, count| {
            (0..count).for_each(|of| _ = table.push(UserId(user), &frame(of)));
        };
        push(&mut table, 1, 40);
        push(&mut table, 2, 30);
        push(&mut table, 3, 30);
        push(&mut table, 1, 100);
        let kept: Vec<usize> = table.list().iter().map(|user| user.kept.len()).collect();
        assert_eq!(kept, [40, 16, 16]);
        assert_eq!(table.total(), 72);
        (4..1_000).for_each(|user| push(&mut table, user, 100));
        assert_eq!(table.total(), 40 + 998 * REPORTS_LEAST as usize);
        assert_eq!(resumed(&table, 1, 0).0.first, ReportNumber(101));
    }

    #[test]
    fn fewer_reports_are_taken_over_where_fewer_are_kept() {
        let mut all = table(5, 100);
        (1..=5).for_each(|of| _ = all.push(UserId(7), &frame(of)));
        let mut fewer = table(2, 100);
        fewer.add(all.list()[0].clone());
        let (resumption, frames) = resumed(&fewer, 7, 0);
        assert_eq!((resumption.first, frames), (ReportNumber(4), vec![4, 5]));
        assert_eq!(fewer.push(UserId(7), &frame(6)), ReportNumber(6));
        assert_eq!(resumed(&fewer, 7, 0).1, [5, 6]);
    }
}
