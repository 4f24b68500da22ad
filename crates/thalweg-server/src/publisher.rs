//! The publisher: makes frames of the exchange's output for the sessions that it concerns.
//!
//! The exchange publishes on the thread that owns it, in the midst of a call. Its output is
//! gathered in an [`Outgoing`], which that thread delivers after the call.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};

use thalweg_exchange::codec::session::{
    ANSWER_BYTES, AccountView, Answer, NUMBERED_REPORT_BYTES, OpenOrder, QueryResult, answer_frame,
    numbered_report,
};
use thalweg_exchange::durable::{Executed, Failed, Origin, Published};
use thalweg_exchange::market::Epoch;
use thalweg_exchange::report::OpenOrders;
use thalweg_exchange::service::{Answered, QueryReply};
use thalweg_exchange::session::{Role, SessionKey};
use thalweg_exchange::{Command, ResultCode, UserId};

use crate::audit::AuditLine;
use crate::drop_copy::{SharedWriter, writer};
use crate::execution::ExecutionTimes;
use crate::feed::{Feed, Tape};
use crate::flow::FlowCounts;
use crate::inbound::{OPEN_ORDER_BYTES, QUERY_ORDERS_MAX};
use crate::listing::{LIST_TAG, Listing};
use crate::lock;
use crate::replication::feed_epoch;
use crate::sessions::{LastReader, ReportReaders};

/// Something for a session or for a user.
#[derive(Debug)]
pub(crate) enum Delivery {
    /// The next bytes are answers for a session: the connection with this tag, if it is of this
    /// session still, or else the one that the session has now.
    Answers {
        tag: u64,
        key: SessionKey,
        bytes: usize,
    },
    /// The next bytes are a report for the sessions that want those of a user.
    Report(UserId),
    /// The query with this tag was answered.
    Answered(u64, Box<Answered>),
    /// An administrator's command was executed; the line lacks the name of the key.
    Audit(Box<AuditLine>, SessionKey),
}

/// The output that was published and is to be delivered, in order.
#[derive(Debug, Default)]
pub(crate) struct Outgoing {
    pub(crate) deliveries: Vec<Delivery>,
    /// The bytes of answers and reports.
    pub(crate) bytes: Vec<u8>,
    /// Sessions, and the reports that their commands have left in the drop copy.
    pub(crate) copied: Vec<(SessionKey, usize)>,
    /// The number of the first command that was not published.
    pub(crate) next_command: u64,
    pub(crate) failed: Option<Failed>,
}

impl Outgoing {
    fn answer(&mut self, tag: u64, key: SessionKey, answer: Answer) {
        self.bytes.extend_from_slice(&answer_frame(&answer));
        // One session mostly has many in a row.
        if let Some(Delivery::Answers {
            tag: last, bytes, ..
        }) = self.deliveries.last_mut()
            && *last == tag
        {
            *bytes += ANSWER_BYTES;
            return;
        }
        let bytes = ANSWER_BYTES;
        self.deliveries.push(Delivery::Answers { tag, key, bytes });
    }

    /// Notes reports of a session's command that a gateway follows.
    pub(crate) fn copied(&mut self, key: SessionKey, reports: usize) {
        match self.copied.last_mut() {
            Some((last, count)) if *last == key => *count += reports,
            _ => self.copied.push((key, reports)),
        }
    }

    pub(crate) fn append(&mut self, other: &mut Self) {
        self.copied.append(&mut other.copied);
        if self.deliveries.is_empty() {
            std::mem::swap(&mut self.deliveries, &mut other.deliveries);
            std::mem::swap(&mut self.bytes, &mut other.bytes);
        } else {
            self.deliveries.append(&mut other.deliveries);
            self.bytes.append(&mut other.bytes);
        }
        self.next_command = other.next_command;
    }
}

/// The way from the publisher to the thread that delivers: the same thread.
pub(crate) type Mailbox = Arc<Mutex<Outgoing>>;

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Publisher {
    pub(crate) mailbox: Mailbox,
    pub(crate) outgoing: Outgoing,
    pub(crate) feed: Arc<Feed>,
    /// `None` before a session wants market data, and after an outcome was missing.
    pub(crate) tape: Option<Box<Tape>>,
    /// Whether commands are those of another replica, which answers them.
    pub(crate) follows: bool,
    /// Where a market trades beside the sessions: its session and its counts.
    pub(crate) flow: Option<(SessionKey, Arc<FlowCounts>)>,
    /// Where a gateway runs in this process.
    pub(crate) copy: Option<SharedWriter>,
    pub(crate) listing: Listing,
    pub(crate) execution: Arc<ExecutionTimes>,
    pub(crate) readers: Arc<ReportReaders>,
    pub(crate) last_reader: LastReader,
    /// Where the clock finds a time that an administrator has set.
    pub(crate) time_set: Arc<AtomicI64>,
}

impl Publisher {
    /// Takes what the exchange publishes.
    pub(crate) fn take(&mut self, published: Published<'_>) {
        match published {
            Published::Started { number, state } => {
                self.outgoing.next_command = number;
                if let Some(mut copy) = writer(self.copy.as_ref()) {
                    copy.start(state, number);
                }
            }
            Published::Outcome(executed) => {
                self.outcome(&executed);
                self.execution.passages.note(&executed.outcome);
            }
            Published::Noted(note) => {
                if let Some(mut copy) = writer(self.copy.as_ref()) {
                    copy.noted(note);
                }
            }
            Published::Following => {
                self.follows = true;
                self.copy_claim(0, false);
            }
            Published::Claimed { epoch, leads } => {
                self.follows = !leads;
                self.copy_claim(epoch, leads);
                self.begin_epoch(feed_epoch(epoch, leads));
            }
            Published::Answer { tag, answered } if tag == LIST_TAG => {
                if let Some(asked) = self.listing.end()
                    && let Some(mut copy) = writer(self.copy.as_ref())
                {
                    copy.list(asked, &answered);
                }
            }
            Published::Answer { tag, answered } => {
                let answered = Delivery::Answered(tag, Box::new(answered));
                self.outgoing.deliveries.push(answered);
            }
            Published::ChunkEnd => {
                if let Some(mut copy) = writer(self.copy.as_ref()) {
                    copy.hand_over();
                }
                self.hand_over();
                if let Some(tape) = &mut self.tape {
                    tape.hand_over();
                }
            }
            Published::Failed(failed) => {
                let mut mailbox = lock(&self.mailbox);
                mailbox.failed = Some(failed.clone());
            }
            _ => {}
        }
    }

    fn copy_claim(&self, epoch: u64, leads: bool) {
        if let Some(mut copy) = writer(self.copy.as_ref()) {
            copy.claimed(epoch, leads);
            // Nothing may be published for long after it.
            copy.hand_over();
        }
    }

    /// Has market data begin anew.
    fn begin_epoch(&mut self, epoch: Epoch) {
        self.feed.begin_epoch(epoch);
        if let Some(tape) = self.feed.take_start() {
            self.tape = Some(tape);
        }
        if let Some(tape) = &mut self.tape {
            tape.begin_epoch(epoch);
        }
    }

    fn hand_over(&mut self) {
        let mut mailbox = lock(&self.mailbox);
        mailbox.append(&mut self.outgoing);
    }

    fn outcome(&mut self, executed: &Executed<'_>) {
        let outcome = &executed.outcome;
        self.outgoing.next_command = outcome.sequence + 1;
        if let Some(stamps) = &outcome.stamps {
            self.execution.note(stamps);
        }
        if let Some(tape) = self.feed.take_start() {
            self.tape = Some(tape);
        }
        if let Some(mut copy) = writer(self.copy.as_ref()) {
            copy.take(executed);
            if let Origin::Session { key, .. } = executed.origin
                && !executed.reports.is_empty()
            {
                self.outgoing.copied(key, executed.reports.len());
            }
        }
        if let Some(tape) = &mut self.tape
            && let Err(error) = tape.take(outcome)
        {
            tracing::error!(%error, "there is no market data any more");
            self.tape = None;
        }
        let flow = self.flow.as_ref().map(|(key, counts)| {
            let is_own = executed.origin.key() == Some(*key);
            counts.note(executed, is_own);
            is_own
        });
        if let Origin::Session { key, sequence } = executed.origin
            && flow != Some(true)
            && !self.follows
        {
            let answer = Answer {
                sequence,
                number: outcome.sequence,
                result: outcome.result,
                is_repeated: false,
            };
            self.outgoing.answer(outcome.tag, key, answer);
            if key.role == Role::Admin {
                if let Command::Clock { time } = *outcome.command
                    && outcome.result == ResultCode::Success
                {
                    // ORDERING: Relaxed, pairs with the swap in set_clock(); a number alone.
                    self.time_set.store(time, Ordering::Relaxed);
                }
                let command = outcome.command;
                let line = AuditLine::executed(key, sequence, command, outcome.sequence);
                let line = Box::new(line.with_result(outcome.result));
                self.outgoing.deliveries.push(Delivery::Audit(line, key));
            }
        }
        for report in executed.reports {
            if !self.last_reader.wants(&self.readers, report.owner) {
                continue;
            }
            let numbered: [u8; NUMBERED_REPORT_BYTES] =
                numbered_report(report.number, &report.frame);
            self.outgoing.bytes.extend_from_slice(&numbered);
            let delivery = Delivery::Report(report.owner);
            self.outgoing.deliveries.push(delivery);
        }
    }
}

/// Returns whether an answer may be that to a query for open orders.
pub(crate) const fn is_list(answer: &QueryReply) -> bool {
    matches!(
        answer,
        QueryReply::OpenOrders(_) | QueryReply::UnknownUser(_)
    )
}

/// Returns the answer for a client. It lists as many open orders as fit into `bytes_max`: more
/// would end the connection.
pub(crate) fn query_result(answer: QueryReply, bytes_max: usize) -> QueryResult {
    match answer {
        QueryReply::User(user) => QueryResult::Account(AccountView::from(&user)),
        QueryReply::OpenOrders(orders) => open_orders(&orders, bytes_max),
        QueryReply::Book(book) => QueryResult::Book(book),
        QueryReply::UnknownUser(_) => QueryResult::UnknownUser,
        // Nothing else was asked.
        _ => QueryResult::UnknownSymbol,
    }
}

fn open_orders(all: &OpenOrders, bytes_max: usize) -> QueryResult {
    let mut orders = OpenOrder::all(all);
    let fitting = QUERY_ORDERS_MAX.min(bytes_max / OPEN_ORDER_BYTES);
    let is_cut = orders.len() > fitting;
    orders.truncate(fitting);
    QueryResult::OpenOrders { orders, is_cut }
}
