//! The publish thread's part: what the exchange tells goes to those whom it concerns.

use std::sync::Arc;

use thalweg_exchange::UserId;
use thalweg_exchange::codec::session::{
    AccountView, Answer, Ending, OpenOrder, QueryAnswer, ReportGap, Said, ServerFrame,
    encode_server_frame, server_frame_bytes,
};
use thalweg_exchange::durable::{Executed, NumberedReport, Origin, Published, Reports};
use thalweg_exchange::report::OpenOrders;
use thalweg_exchange::service::{Answer as Told, Answered};
use thalweg_exchange::session::{ReportNumber, Role, SessionKey};

use crate::audit::{Audit, AuditLine};
use crate::directory::Directory;
use crate::driver::Inquiries;
use crate::feed::{Feed, Tape};
use crate::outbox::ReportFate;
use crate::roster::Roster;
use crate::session::Session;
use crate::stage::{Stage, StageSwitch};

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Publisher {
    pub(crate) roster: Arc<Roster>,
    pub(crate) inquiries: Arc<Inquiries>,
    pub(crate) stage: Arc<StageSwitch>,
    pub(crate) audit: Audit,
    pub(crate) feed: Arc<Feed>,
    /// `None` before the exchange has told its books, and after an outcome was missing.
    pub(crate) tape: Option<Tape>,
    /// Where reports are fetched that a session lacks; once the exchange is open.
    pub(crate) reports: Arc<std::sync::OnceLock<Reports>>,
    pub(crate) desk: Desk,
}

/// Answers on their way to the outboxes.
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

    /// Turns to the connection of a session.
    #[inline]
    fn turn_to(&mut self, key: SessionKey) {
        self.refresh();
        if self.of.as_ref().is_none_or(|of| of.key != key) {
            self.hand_over();
            self.of = self.directory.session(key).cloned();
        }
    }

    /// An answer for whom it turned to, if there is a connection.
    #[inline]
    fn answer(&mut self, answer: Answer) {
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
    fn hand_over(&mut self) {
        if self.answers.is_empty() {
            return;
        }
        if let Some(session) = &self.of {
            session.outbox.push_bytes(&self.answers);
            touch(&mut self.touched, session);
        }
        self.answers.clear();
    }

    fn report(&mut self, report: &NumberedReport, reports: Option<&Reports>) {
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

    fn end_chunk(&mut self) {
        self.hand_over();
        for session in self.touched.drain(..) {
            session.outbox.wake();
        }
    }
}

fn touch(touched: &mut Vec<Arc<Session>>, session: &Arc<Session>) {
    let is_last = |last: &Arc<Session>| Arc::ptr_eq(last, session);
    if !touched.last().is_some_and(is_last) {
        touched.push(Arc::clone(session));
    }
}

impl Publisher {
    /// What the exchange calls.
    pub(crate) fn take(&mut self, published: Published<'_>) {
        match published {
            Published::Started { state, .. } => {
                let mut tape = Tape::new(state, Arc::clone(&self.feed));
                tape.hand_over();
                self.tape = Some(tape);
            }
            Published::Outcome(executed) => self.outcome(&executed),
            Published::Answer { tag, answered } => self.answer(tag, answered),
            Published::ChunkEnd => self.end_chunk(),
            Published::Failed(failed) => {
                tracing::error!(error = %failed, "the exchange has stopped");
                self.stage.set(Stage::Failed);
                self.roster.close(Ending::Failed, "");
            }
            _ => {}
        }
    }

    fn outcome(&mut self, executed: &Executed<'_>) {
        let outcome = &executed.outcome;
        if let Some(tape) = &mut self.tape
            && let Err(error) = tape.take(outcome)
        {
            tracing::error!(%error, "there is no market data any more");
            self.tape = None;
        }
        if let Origin::Session { key, sequence } = executed.origin {
            self.desk.turn_to(key);
            self.desk.answer(Answer {
                sequence,
                number: outcome.sequence,
                result: outcome.result,
                is_repeated: false,
            });
            if key.role == Role::Admin {
                let name = self.desk.of.as_ref().and_then(|session| session.key_name());
                let command = outcome.command;
                let line = AuditLine::executed(key, name, sequence, command, outcome.sequence);
                self.audit.write(line.with_result(outcome.result));
            }
        }
        for report in executed.reports {
            self.desk.report(report, self.reports.get());
        }
    }

    fn end_chunk(&mut self) {
        self.desk.end_chunk();
        if let Some(tape) = &mut self.tape {
            tape.hand_over();
        }
    }

    fn answer(&mut self, tag: u64, answered: Answered) {
        let Some((session, id)) = self.inquiries.take(tag) else {
            return;
        };
        self.desk.hand_over();
        let number = answered.sequence;
        let said = match answered.answer {
            Told::User(user) => Said::Account(AccountView::from(&user)),
            Told::OpenOrders(orders) => open_orders(&orders, session.outbox.half()),
            Told::Book(book) => Said::Book(book),
            Told::UnknownUser(_) => Said::UnknownUser,
            // Nothing else was asked.
            _ => Said::UnknownSymbol,
        };
        session.answer_query(&QueryAnswer { id, number, said });
    }
}

/// As many of a user's orders as fit into so many bytes: more would end the connection that asks.
fn open_orders(all: &OpenOrders, bytes_max: usize) -> Said {
    let mut orders = OpenOrder::all(all);
    let fitting = bytes_max / OPEN_ORDER_BYTES;
    let is_cut = orders.len() > fitting;
    orders.truncate(fitting);
    Said::OpenOrders { orders, is_cut }
}

/// Bytes of an order in an answer.
const OPEN_ORDER_BYTES: usize = 80;

/// Gives a session the reports after the last that it saw, or those from now on, and makes the next
/// one the next. Reports that are gone are told.
pub(crate) fn resume(
    session: &Session,
    reports: &Reports,
    user: UserId,
    last_seen: Option<ReportNumber>,
) {
    let mut frames = Vec::new();
    let after = last_seen.unwrap_or(ReportNumber(u64::MAX));
    let resumed = reports.resume(user, after, &mut frames);
    if let Some((from, to)) = resumed.gap {
        let gap = ServerFrame::ReportGap(ReportGap { from, to });
        session.outbox.push(&gap);
    }
    session.outbox.push_reports(resumed.first, &frames);
}
