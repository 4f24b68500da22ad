//! What the exchange publishes goes to those whom it concerns.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use thalweg::state::StateCell;
use thalweg_exchange::codec::session::{
    AccountView, Answer, Ending, OpenOrder, QueryAnswer, ReportGap, Said, ServerFrame,
};
use thalweg_exchange::durable::{Executed, Origin, Published, Reports};
use thalweg_exchange::report::OpenOrders;
use thalweg_exchange::service::{Answer as Told, Answered};
use thalweg_exchange::session::{ReportNumber, Role};
use thalweg_exchange::{Command, ResultCode, UserId};
use tokio::sync::Notify;

use crate::audit::{Audit, AuditLine};
use crate::desk::Desk;
use crate::driver::Inquiries;
use crate::execution::ExecutionTimes;
use crate::feed::{Feed, Tape};
use crate::reading::{OPEN_ORDER_BYTES, QUERY_ORDERS_MAX};
use crate::roster::Roster;
use crate::session::Session;
use crate::stage::Stage;

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Publisher {
    pub(crate) roster: Arc<Roster>,
    pub(crate) inquiries: Arc<Inquiries>,
    pub(crate) stage: Arc<StateCell<Stage>>,
    pub(crate) audit: Audit,
    pub(crate) feed: Arc<Feed>,
    /// `None` before the exchange has told its books, and after an outcome was missing.
    pub(crate) tape: Option<Tape>,
    /// Where reports are fetched that a session lacks; once the exchange is open.
    pub(crate) reports: Arc<std::sync::OnceLock<Reports>>,
    pub(crate) desk: Desk,
    /// The number of the next command, for those who come.
    pub(crate) next_command: Arc<AtomicU64>,
    pub(crate) execution: Arc<ExecutionTimes>,
    /// Where the clock finds a time that an administrator has set.
    pub(crate) time_set: Arc<AtomicI64>,
    /// Told when commands have left the pipeline.
    pub(crate) room: Arc<Notify>,
}

impl Publisher {
    /// What the exchange calls.
    pub(crate) fn take(&mut self, published: Published<'_>) {
        match published {
            Published::Started { state, number } => {
                self.go_on_from(number);
                let mut tape = Tape::new(state, Arc::clone(&self.feed));
                tape.hand_over();
                self.tape = Some(tape);
            }
            Published::Outcome(executed) => self.outcome(&executed),
            Published::Answer { tag, answered } => self.answer(tag, answered),
            Published::ChunkEnd => self.end_chunk(),
            Published::Room => self.room.notify_one(),
            Published::Failed(failed) => {
                tracing::error!(error = %failed, "the exchange has stopped");
                let _ = self
                    .stage
                    .change_to(Stage::Failed, "the exchange has stopped");
                self.roster.close(Ending::Failed, "");
                self.room.notify_one();
            }
            _ => {}
        }
    }

    fn go_on_from(&self, number: u64) {
        // ORDERING: Relaxed, pairs with the load of a welcome. Who was answered and comes again
        // finds what was stored before: the answer went through a lock and the network.
        self.next_command.store(number, Ordering::Relaxed);
    }

    fn outcome(&mut self, executed: &Executed<'_>) {
        let outcome = &executed.outcome;
        self.go_on_from(outcome.sequence + 1);
        if let Some(stamps) = &outcome.stamps {
            self.execution.note(stamps);
        }
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
                if let Command::Clock { time } = *outcome.command
                    && outcome.result == ResultCode::Success
                {
                    // ORDERING: Relaxed, pairs with the swap in set_clock(); a number alone.
                    self.time_set.store(time, Ordering::Relaxed);
                }
                let name = self.desk.key_name();
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
            Told::OpenOrders(orders) => {
                let said = open_orders(&orders, session.outbox.half());
                session.end_list();
                said
            }
            Told::Book(book) => Said::Book(book),
            Told::UnknownUser(_) => {
                session.end_list();
                Said::UnknownUser
            }
            // Nothing else was asked.
            _ => Said::UnknownSymbol,
        };
        session.answer_query(&QueryAnswer { id, number, said });
    }
}

/// As many of a user's orders as fit into so many bytes: more would end the connection that asks.
fn open_orders(all: &OpenOrders, bytes_max: usize) -> Said {
    let mut orders = OpenOrder::all(all);
    let fitting = QUERY_ORDERS_MAX.min(bytes_max / OPEN_ORDER_BYTES);
    let is_cut = orders.len() > fitting;
    orders.truncate(fitting);
    Said::OpenOrders { orders, is_cut }
}

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
