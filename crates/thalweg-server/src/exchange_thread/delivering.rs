//! The output of the exchange becomes frames, which go to the sessions that they are for.
//!
//! The exchange publishes on the thread that owns it, in the midst of a call: the [`Publisher`]
//! gathers its output in an [`Outgoing`], which that thread delivers after the call.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use thalweg_exchange::codec::session::{
    ANSWER_BYTES, AccountView, Answer, NUMBERED_REPORT_BYTES, OpenOrder, QueryAnswer, QueryResult,
    answer_frame, numbered_report,
};
use thalweg_exchange::durable::{ExchangeError, Executed, Origin, Published, ReportFrame, Storage};
use thalweg_exchange::report::OpenOrders;
use thalweg_exchange::service::{Answered, QueryReply};
use thalweg_exchange::session::{ClientSequence, Role, SessionKey};
use thalweg_exchange::{Command, ResultCode, UserId};

use super::{ExchangeThread, TEND_AFTER};
use crate::audit::AuditLine;
use crate::drop_copy::{SharedWriter, writer};
use crate::execution_times::ExecutionTimes;
use crate::feed::{Feed, FeedWriter};
use crate::flow::FlowCounts;
use crate::inbound::{OPEN_ORDER_BYTES, QUERY_ORDERS_MAX};
use crate::lock;
use crate::open_order_queries::{LIST_TAG, OpenOrderQueries};
use crate::replication::feed_epoch;
use crate::scheduler::HolderId;
use crate::session::{Session, SessionId};
use crate::sessions::{LastReader, ReportReaders};

/// Work of a report to a further session of its user: a write.
const REPORT_WRITE_WORK: u64 = 8;
/// Bytes of frames that are pushed together, about: an output takes all of them or none.
const RUN_BYTES: usize = 1 << 12;

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
    pub(crate) failed: Option<ExchangeError>,
}

impl Outgoing {
    #[inline(always)]
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

/// Makes frames of what the exchange publishes, for the sessions that it concerns.
#[derive(Debug)]
pub(crate) struct Publisher {
    pub(crate) mailbox: Mailbox,
    pub(crate) outgoing: Outgoing,
    pub(crate) feed: Arc<Feed>,
    /// Whether commands are those of another replica, which answers them.
    pub(crate) follows: bool,
    /// Where a market trades beside the sessions: its session and its counts.
    pub(crate) flow: Option<(SessionKey, Arc<FlowCounts>)>,
    /// Where a gateway runs in this process.
    pub(crate) copy: Option<SharedWriter>,
    pub(crate) open_order_queries: OpenOrderQueries,
    pub(crate) execution: Arc<ExecutionTimes>,
    pub(crate) readers: Arc<ReportReaders>,
    pub(crate) last_reader: LastReader,
    /// Where the clock finds a time that an administrator has set.
    pub(crate) time_set: Arc<AtomicI64>,
}

impl Publisher {
    /// Takes what the exchange publishes.
    #[inline]
    pub(crate) fn take(&mut self, published: Published<'_>) {
        match published {
            Published::Outcomes(outcomes) => self.take_outcomes(outcomes),
            other => self.take_other(other),
        }
    }

    #[inline(never)]
    fn take_other(&mut self, published: Published<'_>) {
        match published {
            Published::Started { number, state } => {
                self.outgoing.next_command = number;
                if let Some(mut copy) = writer(self.copy.as_ref()) {
                    copy.start(state, number);
                }
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
                self.feed.begin_epoch(feed_epoch(epoch, leads));
            }
            Published::Answer { tag, answered } if tag == LIST_TAG => {
                if let Some(asked) = self.open_order_queries.end()
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
                self.feed.hand_over();
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

    fn hand_over(&mut self) {
        let mut mailbox = lock(&self.mailbox);
        mailbox.append(&mut self.outgoing);
    }

    /// Takes outcomes; one with stamps is alone.
    fn take_outcomes<'p>(&mut self, outcomes: impl Iterator<Item = Executed<'p>> + Clone) {
        let feed = Arc::clone(&self.feed);
        let mut feed_writer = lock(&feed.writer);
        let first = outcomes.clone().next().map(|executed| executed.outcome);
        let is_watched = self.copy.is_some() || feed_writer.is_some() || self.flow.is_some();
        if is_watched || self.follows {
            outcomes.for_each(|executed| self.take_watched(executed, &mut feed_writer));
        } else {
            outcomes.for_each(|executed| self.answer(executed));
        }
        // At the end: publishing is the last part of a trace.
        if let Some(outcome) = first
            && let Some(stamps) = outcome.stamps
        {
            self.execution.note(stamps);
            self.execution.traces.note(&outcome);
        }
    }

    /// Makes frames of the answer to a command, and of its reports.
    #[inline(always)]
    fn answer(&mut self, executed: Executed<'_>) {
        let number = executed.outcome.sequence;
        self.outgoing.next_command = number + 1;
        if let Origin::Session { key, sequence } = executed.origin {
            let result = executed.outcome.result;
            let answer = Answer {
                sequence,
                number,
                result,
                is_repeated: false,
            };
            self.outgoing.answer(executed.outcome.tag, key, answer);
            if key.role == Role::Admin {
                let command = executed.outcome.command;
                self.note_administrator((key, sequence), (number, command), result);
            }
        }
        self.report(executed.reports);
    }

    /// Has the gateway, the feed and the counts of a market see an outcome. One that nobody else
    /// answers is answered.
    #[inline(never)]
    fn take_watched(&mut self, executed: Executed<'_>, feed_writer: &mut Option<FeedWriter>) {
        if let Some(copy) = &self.copy {
            lock(copy).take(&executed);
            if let Origin::Session { key, .. } = executed.origin
                && !executed.reports.is_empty()
            {
                self.outgoing.copied(key, executed.reports.len());
            }
        }
        if let Some(writer) = feed_writer
            && let Err(error) = writer.take(&executed.outcome)
        {
            tracing::error!(%error, "there is no market data any more");
            *feed_writer = None;
        }
        let is_of_flow = self.flow.as_ref().is_some_and(|(key, counts)| {
            let is_own = executed.origin.key() == Some(*key);
            counts.note(&executed, is_own);
            is_own
        });
        if is_of_flow || self.follows {
            self.outgoing.next_command = executed.outcome.sequence + 1;
            self.report(executed.reports);
        } else {
            self.answer(executed);
        }
    }

    /// Notes a command of an administrator, its number and its result.
    #[cold]
    fn note_administrator(
        &mut self,
        (key, sequence): (SessionKey, ClientSequence),
        (number, command): (u64, &Command),
        result: ResultCode,
    ) {
        if let Command::Clock { time } = *command
            && result == ResultCode::Success
        {
            // ORDERING: Relaxed, pairs with the swap in set_clock(); a number alone.
            self.time_set.store(time, Ordering::Relaxed);
        }
        let line = AuditLine::executed(key, sequence, command, number).with_result(result);
        let line = Delivery::Audit(Box::new(line), key);
        self.outgoing.deliveries.push(line);
    }

    /// Makes frames of the reports that sessions want.
    #[inline(always)]
    fn report(&mut self, reports: &[ReportFrame]) {
        for report in reports {
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
const fn is_list(answer: &QueryReply) -> bool {
    matches!(
        answer,
        QueryReply::OpenOrders(_) | QueryReply::UnknownUser(_)
    )
}

/// Returns the answer for a client. It lists as many open orders as fit into `bytes_max`: more
/// would end the connection.
fn query_result(answer: QueryReply, bytes_max: usize) -> QueryResult {
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::{iter, thread};

    use thalweg_exchange::codec::REPORT_BYTES;
    use thalweg_exchange::market::{Channels, Epoch};
    use thalweg_exchange::service::{Outcome, Stamps};
    use thalweg_exchange::session::ReportNumber;
    use thalweg_exchange::{Events, State};
    use thalweg_measure::clock::Clock;

    use super::*;
    use crate::drop_copy;

    fn publisher() -> Publisher {
        Publisher {
            mailbox: Mailbox::default(),
            outgoing: Outgoing::default(),
            feed: Arc::new(Feed::new(Epoch(1), Channels::default(), 1, 2)),
            follows: false,
            flow: None,
            copy: None,
            open_order_queries: OpenOrderQueries::default(),
            execution: Arc::default(),
            readers: Arc::default(),
            last_reader: LastReader::default(),
            time_set: Arc::default(),
        }
    }

    const TRADER: SessionKey = SessionKey::new(Role::Trade, 7, 0);
    const ADMIN: SessionKey = SessionKey::new(Role::Admin, 1, 0);

    /// Returns the outcome of a command with this number, with a report of users 7 and 8 each.
    fn executed<'p>(
        number: u64,
        command: &'p Command,
        reports: &'p [ReportFrame],
        events: &'p Events,
    ) -> Executed<'p> {
        let key = match number {
            0 | 1 => Some((TRADER, 70)),
            2 => Some((ADMIN, 10)),
            _ => None,
        };
        let sequence = ClientSequence(1 + number);
        Executed {
            outcome: Outcome {
                sequence: number,
                tag: key.map_or(0, |(_, tag)| tag),
                due: 0,
                command,
                stamps: None,
                result: ResultCode::Success,
                events,
            },
            origin: key.map_or(Origin::Engine, |(key, _)| Origin::Session { key, sequence }),
            reports,
        }
    }

    /// Has a publisher take four outcomes at once: two of a trader, one of an administrator and one
    /// of the exchange. Returns the outcomes that it answers and the reports, in order.
    fn delivered(publisher: &mut Publisher) -> String {
        publisher.readers.set(UserId(7), true);
        let reports: Vec<ReportFrame> = (1..=4)
            .flat_map(|number| [7, 8].map(|user| report(user, number)))
            .collect();
        let (clock, events) = (Command::Clock { time: 5 }, Events::default());
        let outcomes = reports.chunks(2).zip(0..);
        let outcomes = outcomes.map(|(own, at)| executed(at, &clock, own, &events));
        publisher.take_outcomes(outcomes);
        let Outgoing {
            deliveries,
            bytes,
            next_command,
            ..
        } = &publisher.outgoing;
        assert_eq!(*next_command, 4);
        let (mut rest, mut all) = (&bytes[..], String::new());
        for delivery in deliveries {
            let (what, length) = match delivery {
                Delivery::Answers { tag, key, bytes } => {
                    assert_eq!(*key, if *tag == 70 { TRADER } else { ADMIN });
                    (format!("{} to {tag}", bytes / ANSWER_BYTES), *bytes)
                }
                Delivery::Report(user) => (format!("report of {}", user.0), NUMBERED_REPORT_BYTES),
                Delivery::Audit(_, key) => (format!("audit of {}", key.holder), 0),
                Delivery::Answered(..) => ("answer".to_owned(), 0),
            };
            rest = rest.split_at(length).1;
            all += &format!("{what}, ");
        }
        assert!(rest.is_empty());
        all
    }

    fn report(user: i64, number: u64) -> ReportFrame {
        ReportFrame {
            number: ReportNumber(number),
            owner: UserId(user),
            frame: [0; REPORT_BYTES],
        }
    }

    #[test]
    fn who_watches_changes_nothing_for_sessions() {
        let all = "1 to 70, report of 7, 1 to 70, report of 7, 1 to 10, audit of 1, \
                   report of 7, report of 7, ";
        let mut alone = publisher();
        assert_eq!(delivered(&mut alone), all);
        // ORDERING: Relaxed; the same thread.
        assert_eq!(alone.time_set.load(Ordering::Relaxed), 5);
        let copy = Arc::new(Mutex::new(drop_copy::new(Epoch(1)).0));
        let mut copied = Publisher {
            copy: Some(copy),
            ..publisher()
        };
        assert_eq!(delivered(&mut copied), all);
        assert_eq!(copied.outgoing.copied, [(TRADER, 4), (ADMIN, 2)]);
    }

    #[test]
    fn answers_in_a_row_are_together_for_each_session_and_a_refused_time_is_none() {
        let mut publisher = publisher();
        let (clock, events) = (Command::Clock { time: 5 }, Events::default());
        let outcomes = (0..3).map(|number| {
            let mut refused = executed(number, &clock, &[], &events);
            refused.outcome.result = ResultCode::MatchingUnknownOrderId;
            refused
        });
        publisher.take_outcomes(outcomes);
        let all = publisher.outgoing.deliveries.iter();
        let all = all.map(|delivery| match delivery {
            Delivery::Answers { tag, key, bytes } => Some((*tag, *key, bytes / ANSWER_BYTES)),
            _ => None,
        });
        assert!(all.eq([Some((70, TRADER, 2)), Some((10, ADMIN, 1)), None]));
        // ORDERING: Relaxed; the same thread.
        assert_eq!(publisher.time_set.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn market_data_begin_with_the_first_outcome_behind_their_start() {
        let mut fed = publisher();
        fed.feed.start(&State::default());
        delivered(&mut fed);
        let (command, events) = (Command::Nop, Events::default());
        let mut writer = lock(&fed.feed.writer);
        let writer = writer.as_mut().expect("nothing is missing");
        let mut take = |number| writer.take(&executed(number, &command, &[], &events).outcome);
        assert!(take(3).is_err(), "it came");
        assert!(take(4).is_ok());
    }

    #[test]
    fn who_answers_elsewhere_is_not_answered_here() {
        let reports = "report of 7, ".repeat(4);
        let mut follower = Publisher {
            follows: true,
            ..publisher()
        };
        assert_eq!(delivered(&mut follower), reports);
        let counts = Arc::<FlowCounts>::default();
        let mut market = Publisher {
            flow: Some((TRADER, Arc::clone(&counts))),
            ..publisher()
        };
        let others = "report of 7, report of 7, 1 to 10, audit of 1, report of 7, report of 7, ";
        assert_eq!(delivered(&mut market), others);
        assert_eq!(counts.all()[0], ("commands", 2));
    }

    #[test]
    fn a_trace_ends_behind_all_that_publishing_does() {
        let copy = Arc::new(Mutex::new(drop_copy::new(Epoch(1)).0));
        let execution = Arc::<ExecutionTimes>::default();
        let mut publisher = Publisher {
            copy: Some(Arc::clone(&copy)),
            execution: Arc::clone(&execution),
            ..publisher()
        };
        assert_eq!(execution.traces.take(), [], "somebody watches");
        let due = Clock::global().ticks();
        let stamps = Stamps {
            begun: due,
            checked: due,
            matched: due,
            settled: due,
            journaled: due,
        };
        let has_begun = &AtomicBool::new(false);
        // While this thread has the copy, the outcome is being published.
        let held = lock(&copy);
        let released = thread::scope(|scope| {
            scope.spawn(move || {
                // ORDERING: Relaxed; a flag alone.
                has_begun.store(true, Ordering::Relaxed);
                publisher.take_outcomes(iter::once(Executed {
                    outcome: Outcome {
                        sequence: 1,
                        tag: 0,
                        due,
                        command: &Command::Nop,
                        stamps: Some(&stamps),
                        result: ResultCode::Success,
                        events: &Events::default(),
                    },
                    origin: Origin::Engine,
                    reports: &[],
                }));
            });
            // ORDERING: Relaxed, as above.
            while !has_begun.load(Ordering::Relaxed) {
                thread::yield_now();
            }
            (0..1_000).for_each(|_| thread::yield_now());
            let released = Clock::global().ticks();
            drop(held);
            released
        });
        let noted = execution.traces.take();
        assert_eq!(noted.len(), 1);
        assert!(noted[0].total >= Clock::global().ns(released - due));
        let counts = execution.parts().map(|(_, times)| times.count());
        assert_eq!(counts, [1; 3], "a command with a trace is among the times");
    }
}
