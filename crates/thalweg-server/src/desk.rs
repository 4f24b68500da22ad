//! Answers and reports on their way from the publisher to the outboxes.
//!
//! Most often one session has many outcomes in a row: their answers are put together, and go into
//! its outbox under one lock.

use std::sync::Arc;

use thalweg_exchange::codec::session::{
    Answer, ServerFrame, encode_server_frame, server_frame_bytes,
};
use thalweg_exchange::durable::{NumberedReport, Reports};
use thalweg_exchange::session::{ReportNumber, SessionKey};

use crate::directory::Directory;
use crate::outbox::ReportFate;
use crate::publisher::resume;
use crate::roster::Roster;
use crate::session::Session;

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Desk {
    directory: Directory,
    /// Whose answers are at hand: one session mostly has many in a row.
    of: Option<Arc<Session>>,
    answers: Vec<u8>,
    /// Sessions to be woken at the end of the chunk.
    touched: Vec<Arc<Session>>,
}

/// Answers that go into an outbox together.
const ANSWERS_BYTES: usize = 1 << 12;

impl Desk {
    pub(crate) fn new(roster: Arc<Roster>) -> Self {
        Self {
            directory: Directory::new(roster),
            of: None,
            answers: Vec::with_capacity(ANSWERS_BYTES),
            touched: Vec::new(),
        }
    }

    /// Turns away from whoever may have been replaced.
    #[inline]
    fn refresh(&mut self) {
        if self.directory.refresh() {
            self.hand_over();
            self.of = None;
        }
    }

    /// The name of the key of whom it turned to.
    pub(crate) fn key_name(&self) -> Option<&str> {
        self.of.as_ref().and_then(|session| session.key_name())
    }

    /// Turns to the connection of a session.
    #[inline]
    pub(crate) fn turn_to(&mut self, key: SessionKey) {
        self.refresh();
        if self.of.as_ref().is_none_or(|of| of.key != key) {
            self.hand_over();
            self.of = self.directory.session(key).cloned();
        }
    }

    /// An answer for whom it turned to, if there is a connection.
    #[inline]
    pub(crate) fn answer(&mut self, answer: Answer) {
        if self.of.is_none() {
            return;
        }
        let frame = ServerFrame::Answer(answer);
        let at = self.answers.len();
        self.answers.resize(at + server_frame_bytes(&frame), 0);
        if encode_server_frame(&frame, &mut self.answers[at..]).is_err() {
            self.answers.truncate(at);
        }
        if self.answers.len() >= ANSWERS_BYTES {
            self.hand_over();
        }
    }

    /// Puts the answers at hand into their outbox. They come before all else that it gets.
    pub(crate) fn hand_over(&mut self) {
        if self.answers.is_empty() {
            return;
        }
        if let Some(session) = &self.of {
            session.outbox.push_bytes(&self.answers);
            touch(&mut self.touched, session);
        }
        self.answers.clear();
    }

    /// A report for whoever wants its owner's, behind the answers at hand. Those that a session
    /// lacks are fetched.
    pub(crate) fn report(&mut self, report: &NumberedReport, reports: Option<&Reports>) {
        let user = report.report.owner;
        self.refresh();
        if self.directory.of_user(user).is_empty() {
            return;
        }
        self.hand_over();
        for session in self.directory.of_user(user) {
            if let ReportFate::Early(next) = session.outbox.report(report.number, &report.frame)
                && let Some(reports) = reports
            {
                let last_seen = ReportNumber(next.0 - 1);
                resume(session, reports, user, Some(last_seen));
            }
            touch(&mut self.touched, session);
        }
    }

    /// Lets the writers look.
    pub(crate) fn end_chunk(&mut self) {
        self.hand_over();
        for session in self.touched.drain(..) {
            session.wake();
        }
    }
}

fn touch(touched: &mut Vec<Arc<Session>>, session: &Arc<Session>) {
    let is_last = |last: &Arc<Session>| Arc::ptr_eq(last, session);
    if !touched.last().is_some_and(is_last) {
        touched.push(Arc::clone(session));
    }
}

#[cfg(test)]
mod tests {
    use thalweg_exchange::codec::REPORT_BYTES;
    use thalweg_exchange::codec::session::decode_server_frame;
    use thalweg_exchange::execution::{Execution, ExecutionReport};
    use thalweg_exchange::session::{ClientSequence, Role};
    use thalweg_exchange::{OrderId, ResultCode, SymbolId, UserId};

    use super::*;

    fn session(id: u64, holder: i64) -> Arc<Session> {
        let session = Session::unkeyed(id, Role::Trade, holder, true);
        session.outbox.push_reports(ReportNumber(1), &[]);
        Arc::new(session)
    }

    fn answer(sequence: u64) -> Answer {
        Answer {
            sequence: ClientSequence(sequence),
            number: sequence,
            result: ResultCode::Success,
            is_repeated: false,
        }
    }

    fn report(user: i64) -> NumberedReport {
        let report = ExecutionReport {
            command: 1,
            owner: UserId(user),
            symbol: SymbolId(1),
            order: OrderId(1),
            side: None,
            price: 1,
            left: 1,
            filled: 0,
            kind: Execution::New,
        };
        let mut frame = [0; REPORT_BYTES];
        thalweg_exchange::codec::encode_report(&report, &mut frame).expect("there is room");
        NumberedReport {
            number: ReportNumber(1),
            report,
            frame,
        }
    }

    /// What waits: the sequences of answers, and 0 for a report.
    fn told(session: &Session) -> Vec<u64> {
        let mut bytes = Vec::new();
        session.outbox.take(&mut bytes);
        let mut rest = &bytes[..];
        let mut told = Vec::new();
        while let Ok((frame, length)) = decode_server_frame(rest) {
            told.push(match frame {
                ServerFrame::Answer(answer) => answer.sequence.0,
                _ => 0,
            });
            rest = &rest[length..];
        }
        told
    }

    #[test]
    fn answers_and_reports_of_a_session_keep_their_order() {
        let roster = Arc::<Roster>::default();
        let [one, two] = [session(1, 1), session(2, 2)];
        for session in [&one, &two] {
            assert!(roster.enter(session, || ()).is_ok());
        }
        let mut desk = Desk::new(roster);
        for (of, sequence) in [(&one, 1), (&one, 2), (&two, 1), (&one, 3)] {
            desk.turn_to(of.key);
            desk.answer(answer(sequence));
        }
        desk.report(&report(1), None);
        desk.answer(answer(4));
        desk.end_chunk();
        assert_eq!(told(&one), [1, 2, 3, 0, 4]);
        assert_eq!(told(&two), [1]);
        // As many as do not go together are not held back.
        desk.turn_to(one.key);
        (1..=200).for_each(|sequence| desk.answer(answer(sequence)));
        assert!(!told(&one).is_empty());
    }

    #[test]
    fn a_newer_connection_gets_the_answers_from_then_on() {
        let roster = Arc::<Roster>::default();
        let [older, newer] = [1, 2].map(|id| session(id, 1));
        assert!(roster.enter(&older, || ()).is_ok());
        let mut desk = Desk::new(Arc::clone(&roster));
        desk.turn_to(older.key);
        desk.answer(answer(1));
        // Not yet in its outbox: it ends as it is replaced, and gets nothing more.
        assert!(roster.enter(&newer, || ()).is_ok());
        desk.report(&report(9), None);
        desk.turn_to(newer.key);
        desk.answer(answer(2));
        desk.end_chunk();
        assert_eq!(told(&newer), [2]);
        roster.leave(&newer);
        desk.turn_to(newer.key);
        desk.answer(answer(3));
        desk.end_chunk();
        assert!(told(&newer).is_empty() && told(&older).is_empty());
    }
}
