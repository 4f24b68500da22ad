//! Orders and trades by user: placing, cancelling, following, asking.
//!
//! *Rules.*
//! 1. A user's memory is under one lock. Under it a command gets its sequence, its order a record
//!    in the log, and both their place in the queue of the session: so the order of sequences, of
//!    records and of the queue is one.
//! 2. Memory changes by reports only, after these are durable in the log; but for orders on their
//!    way, which no query shows.
//! 3. A report is applied once: its number is the next of its user. Numbers that are left out are
//!    asked for at the exchange.
//! 4. Who waits for a command waits until the drop copy has passed its number.

mod applied_commands;
mod checkpoint_part;
mod committer;
mod event;
mod fields;
mod following;
mod log;
mod memory;
mod order;
mod placing;
mod positions;
mod primary;
mod reconciliation;
mod reconciliation_queue;
mod request;
mod session;

use std::collections::{BTreeSet, HashMap};
use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use thalweg_client::TradeCommand;
use thalweg_exchange::codec::session::{AccountView, QueryResult, SessionQuery};
use thalweg_exchange::codec::{REPORT_BYTES, decode_report};
use thalweg_exchange::durable::Reports;
use thalweg_exchange::execution::ExecutionReport;
use thalweg_exchange::market::BestPrices;
use thalweg_exchange::session::ReportNumber;
use thalweg_exchange::{Command, SymbolId, UserId};
use thalweg_journal::Lsn;
use thalweg_server::{GatewayLink, OpenOrdersOf, config};
use tokio::sync::{mpsc, oneshot};

use self::applied_commands::AppliedCommands;
pub(crate) use self::checkpoint_part::CheckpointPart;
use self::committer::Committer;
use self::event::{Balance, UserEvent};
use self::following::Followers;
pub(crate) use self::following::{Events, Following};
pub(crate) use self::log::{Log, Record};
pub(crate) use self::memory::Memory;
use self::memory::{ORDER_IDS, OrderKey};
pub(crate) use self::order::{Fill, Order, Status, UserReport};
pub(crate) use self::placing::Placed;
use self::positions::Position;
use self::primary::Primary;
use self::reconciliation_queue::ReconciliationQueue;
pub(crate) use self::request::{Amount, Detail, Draft, check_notional, client_id, lots_of};
use self::session::{Access, Done, Executed, Request, Submit};
use crate::GatewayError;
use crate::decimal;
use crate::error::ApiError;
use crate::lock;
use crate::symbols::Symbols;

/// Attempts to read balances while more changes than are kept.
const BALANCES_MAX: usize = 4;
/// How long a command that was executed may take to be seen in the drop copy, and a query to be
/// answered.
const ANSWER_TIME: Duration = Duration::from_secs(10);

/// A user with an API key, or with orders in the log.
#[derive(Debug)]
pub(crate) struct User {
    id: UserId,
    memory: Mutex<Memory>,
    queue: OnceLock<mpsc::Sender<Request>>,
    followers: Arc<Followers>,
    position: Position,
}

impl User {
    pub(crate) fn memory(&self) -> MutexGuard<'_, Memory> {
        lock(&self.memory)
    }
}

/// The note in a user's memory of a command that is not executed yet.
enum Noted {
    Nothing,
    Order(Box<Order>),
    /// A stop order that waits is reduced.
    Reduction(OrderKey),
}

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Orders {
    log: Log,
    committer: Committer,
    users: RwLock<HashMap<UserId, Arc<User>>>,
    access: Access,
    primary: Primary,
    reports: Reports,
    reconciliation: Arc<ReconciliationQueue>,
    kept: usize,
    applied: AppliedCommands,
    best: RwLock<HashMap<SymbolId, BestPrices>>,
    /// The drop copy is not followed any more.
    has_ended: AtomicBool,
}

impl Orders {
    /// Opens the log.
    pub(crate) fn open(
        config: &config::Gateway,
        directory: &Path,
        link: &GatewayLink,
    ) -> Result<Self, GatewayError> {
        let log = Log::open(directory, config.checkpoint_bytes)?;
        let committer = Committer::start(log.clone()).map_err(GatewayError::Threads)?;
        let primary = Primary::new(link.exchange.clone());
        Ok(Self {
            log,
            committer,
            users: RwLock::default(),
            access: Access {
                primary: primary.clone(),
                notes: link.notes.clone(),
                trade: link.trade,
                key: link.key.clone(),
                number: link.session,
            },
            primary,
            reconciliation: Arc::new(ReconciliationQueue::new(
                link.exchange.clone(),
                link.reports.clone(),
                link.session,
            )),
            reports: link.reports.clone(),
            kept: config.orders_kept,
            applied: AppliedCommands::default(),
            best: RwLock::default(),
            has_ended: AtomicBool::new(false),
        })
    }

    /// Returns a user, which is followed from now on. Orders that it has are listed.
    pub(crate) fn user(&self, id: UserId) -> Arc<User> {
        if let Some(user) = self.tracked(id) {
            return user;
        }
        let user = self.insert(id);
        self.reconciliation.want(id);
        user
    }

    fn insert(&self, id: UserId) -> Arc<User> {
        let mut users = self.users.write().unwrap_or_else(PoisonError::into_inner);
        let user = users.entry(id).or_insert_with(|| {
            let mut memory = Memory::new(self.kept);
            memory.sequence = self.reconciliation.executed(id);
            Arc::new(User {
                id,
                memory: Mutex::new(memory),
                queue: OnceLock::new(),
                followers: Arc::default(),
                position: Position::default(),
            })
        });
        Arc::clone(user)
    }

    /// Returns a user that is followed.
    pub(crate) fn tracked(&self, id: UserId) -> Option<Arc<User>> {
        let users = self.users.read().unwrap_or_else(PoisonError::into_inner);
        users.get(&id).cloned()
    }

    // The drop copy's side.

    /// Gives the records of the log: see [`Log::read`].
    pub(crate) fn read(&self, record: impl FnMut(Record, u64)) -> Result<Lsn, GatewayError> {
        self.log.read(record)
    }

    /// Takes a user as a checkpoint has it, in place of that of before.
    pub(crate) fn restore(&self, user: UserId, memory: Memory) {
        let user = self.user(user);
        let mut current = user.memory();
        let sequence = current.sequence.max(memory.sequence);
        *current = memory;
        current.sequence = sequence;
    }

    /// Appends all parts of a user. Its reports must be applied. Returns the last record.
    pub(crate) fn keep(&self, id: UserId) -> Result<Lsn, GatewayError> {
        let (mut last, parts) = self.begin_to_keep(id)?;
        for part in parts {
            last = self.log.append(&Record::Checkpoint(part))?;
        }
        Ok(last)
    }

    /// Appends the first part of a user, and returns the record and the other parts. Its reports
    /// must be applied.
    pub(crate) fn begin_to_keep(
        &self,
        id: UserId,
    ) -> Result<(Lsn, Vec<CheckpointPart>), GatewayError> {
        let user = self.user(id);
        // Orders of records before the first part are in the others.
        let memory = user.memory();
        let first = self
            .log
            .append(&Record::Checkpoint(memory.kept_first(id)))?;
        Ok((first, memory.kept()))
    }

    /// Returns the users that are followed.
    pub(crate) fn users(&self) -> Vec<UserId> {
        self.followed().iter().map(|user| user.id).collect()
    }

    /// Returns an empty memory, for a user of a checkpoint.
    pub(crate) fn memory(&self) -> Memory {
        Memory::new(self.kept)
    }

    pub(crate) const fn log(&self) -> &Log {
        &self.log
    }

    /// Returns, for each user that is followed, the reports of some commands after the one in
    /// `last`, or else the last that was applied, in the order of the commands.
    pub(crate) fn missed(
        &self,
        commands: RangeInclusive<u64>,
        last: &HashMap<UserId, ReportNumber>,
    ) -> Vec<(ReportNumber, ExecutionReport)> {
        let mut all = Vec::new();
        for user in self.followed() {
            let applied = || user.memory().last_report;
            let last = last.get(&user.id).copied().or_else(applied);
            all.extend(self.reports_after(user.id, last.unwrap_or_default()));
        }
        all.retain(|(_, report)| commands.contains(&report.command));
        all.sort_by_key(|(_, report)| report.command);
        all
    }

    fn followed(&self) -> Vec<Arc<User>> {
        let users = self.users.read().unwrap_or_else(PoisonError::into_inner);
        users.values().cloned().collect()
    }

    fn reports_after(
        &self,
        user: UserId,
        after: ReportNumber,
    ) -> Vec<(ReportNumber, ExecutionReport)> {
        let mut frames = Vec::new();
        let resumed = self.reports.resume(user, after, &mut frames);
        if let Some((from, to)) = resumed.gap {
            tracing::error!(%user, %from, %to, "lost reports: open orders are compared");
            self.reconciliation.want(user);
        }
        let frames = frames.chunks(REPORT_BYTES).zip(resumed.first.0..);
        let decoded = frames.filter_map(|(frame, number)| {
            let (report, _) = decode_report(frame).ok()?;
            Some((ReportNumber(number), report))
        });
        decoded.collect()
    }

    /// Returns the reports of a user that are to be applied for one that came: none where it was
    /// applied, itself, or with those that were left out before it.
    pub(crate) fn due(
        &self,
        number: ReportNumber,
        report: ExecutionReport,
        last: Option<ReportNumber>,
    ) -> Vec<(ReportNumber, ExecutionReport)> {
        match last {
            Some(last) if number <= last => Vec::new(),
            Some(last) if number > last.next() => {
                let mut all = self.reports_after(report.owner, last);
                all.retain(|(other, _)| *other < number);
                all.push((number, report));
                all
            }
            _ => vec![(number, report)],
        }
    }

    /// Begins to follow users whose reports before now are not wanted. Returns records for the log.
    pub(crate) fn begin(&self, users: &[UserId]) -> Vec<Record> {
        let begin = |id: &UserId| {
            let user = self.insert(*id);
            let mut memory = user.memory();
            if memory.last_report.is_some() {
                return None;
            }
            let last = ReportNumber(self.reports.next(*id).0 - 1);
            memory.last_report = Some(last);
            // From now on: a list of before lacks what the reports did since.
            self.reconciliation.want(*id);
            Some(Record::Begin(*id, last))
        };
        users.iter().filter_map(begin).collect()
    }

    /// Returns whether no user's open orders are to be compared.
    pub(crate) fn is_compared(&self) -> bool {
        self.reconciliation.is_done()
    }

    /// Lists that were to come may have been dropped.
    pub(crate) fn list_again(&self) {
        self.reconciliation.ask_again();
    }

    /// Returns the reports that are missing of a user's open orders; see [`reconciliation`]. All
    /// reports of before the list must be applied.
    pub(crate) fn missing_reports(&self, list: &OpenOrdersOf) -> Vec<ExecutionReport> {
        let waited = self
            .reconciliation
            .answered(list)
            .and(self.tracked(list.user));
        waited.map_or_else(Vec::new, |user| {
            reconciliation::missing_reports(&user.memory(), list)
        })
    }

    /// Ends what is known of orders without a report that a list lacks, if it is whole; the missing
    /// reports must be applied. Returns whether there were any: the user is to be kept in the log
    /// then, before it is [compared](Self::compared).
    pub(crate) fn close_unknown(&self, list: &OpenOrdersOf) -> bool {
        let Some((user, asked)) = self
            .tracked(list.user)
            .zip(self.reconciliation.answered(list))
        else {
            return false;
        };
        let closed = {
            let mut memory = user.memory();
            memory.is_cut = list.is_cut;
            match list.is_cut {
                true => 0,
                false => memory.close_unknown(asked.executed, asked.token),
            }
        };
        if closed > 0 {
            tracing::error!(user = %user.id, closed, "the execution of orders is unknown");
        }
        closed > 0
    }

    /// Ends the comparison of a user, if this is the list that was waited for.
    pub(crate) fn compared(&self, list: &OpenOrdersOf) {
        if self.reconciliation.answered(list).is_some() {
            self.reconciliation.done(list.user);
        }
    }

    /// Forgets the orders that were never executed: all that are executed must be compared, and
    /// sessions not begun. Returns the users that had some: they are to be kept in the log, so that
    /// the next start does not find those again among the ones that may be sent still.
    pub(crate) fn forget_unsent(&self) -> Vec<UserId> {
        let forget = |user: &Arc<User>| {
            let forgotten = user.memory().forget_unsent();
            if forgotten > 0 {
                tracing::warn!(user = %user.id, forgotten, "orders of before were not executed");
            }
            (forgotten > 0).then_some(user.id)
        };
        self.followed().iter().filter_map(forget).collect()
    }

    /// Takes an order that the gateway of another replica has sent. Its record is durable.
    pub(crate) fn noted(&self, order: Order) {
        if let Some(user) = self.tracked(order.user) {
            user.memory().insert(order);
        }
    }

    /// Returns whether an order that the gateway of another replica has sent is to be taken: its
    /// user is followed, and it is not known.
    pub(crate) fn is_wanted(&self, order: &Order) -> bool {
        let user = self.tracked(order.user);
        let is_new = |user: &User| {
            let memory = user.memory();
            memory.sent(SymbolId(order.symbol), order.id).is_none()
        };
        user.is_some_and(|user| is_new(&user))
    }

    /// Applies a report, which is durable, and sends its event. Returns whether somebody follows.
    pub(crate) fn apply(&self, reported: &UserReport, symbols: &Symbols) -> bool {
        let Some(user) = self.tracked(reported.report.owner) else {
            return false;
        };
        let [first, last] = user.memory().apply(reported, symbols);
        user.followers.send(first);
        user.followers.send(last)
    }

    /// Sends a deposit, a withdrawal or fees that are paid out to those who follow their user.
    pub(crate) fn adjusted(&self, command: &Command, symbols: &Symbols, time_us: i64) {
        let (Command::Balance {
            uid,
            currency,
            amount,
            ..
        }
        | Command::PayFees {
            uid,
            currency,
            amount,
            ..
        }) = command
        else {
            return;
        };
        if let (Some(user), Some(asset)) = (self.tracked(*uid), symbols.asset(*currency))
            && !user.followers.is_empty()
        {
            let delta = decimal::format((*amount).into(), asset.decimals);
            let asset = asset.name.clone();
            let event = UserEvent::Balance {
                asset,
                delta,
                time_us,
            };
            user.followers.send(Some(event));
        }
    }

    /// Keeps the best prices of a symbol.
    pub(crate) fn note_best(&self, symbol: SymbolId, best: BestPrices) {
        let mut all = self.best.write().unwrap_or_else(PoisonError::into_inner);
        all.insert(symbol, best);
    }

    fn best(&self, symbol: SymbolId) -> BestPrices {
        let all = self.best.read().unwrap_or_else(PoisonError::into_inner);
        all.get(&symbol).copied().unwrap_or_default()
    }

    /// All commands below this number are applied.
    pub(crate) fn pass(&self, next: u64) {
        self.applied.advance(next);
    }

    /// Returns the number below which all commands are applied.
    pub(crate) fn applied(&self) -> u64 {
        self.applied.next()
    }

    /// Takes a claim of the command log, after all that came before it.
    pub(crate) fn claimed(&self, epoch: u64, leads: bool) {
        self.primary.note(epoch, leads);
    }

    /// The drop copy is not followed any more: from now on nothing is placed or shown.
    pub(crate) fn end(&self) {
        // ORDERING: Relaxed; a flag alone, and a command that is sent meanwhile is not answered.
        self.has_ended.store(true, Ordering::Relaxed);
    }

    // The clients' side.

    /// Returns an error where executions are not seen any more.
    ///
    /// # Errors
    /// -1016.
    pub(crate) fn check(&self) -> Result<(), ApiError> {
        // ORDERING: Relaxed, as in `end`.
        match self.has_ended.load(Ordering::Relaxed) {
            true => Err(ApiError::STOPPING),
            false => Ok(()),
        }
    }

    /// Returns an error where this replica of the exchange takes no orders.
    ///
    /// # Errors
    /// -1001.
    pub(crate) fn check_primary(&self) -> Result<(), ApiError> {
        self.primary.claim().map(drop)
    }

    /// Follows a user's orders, balances and deposits from now on.
    ///
    /// # Errors
    /// -1034.
    pub(crate) fn follow(&self, user: UserId) -> Result<(Following, Events), ApiError> {
        self.user(user).followers.follow()
    }

    /// Waits until a user's orders are those that the exchange has open: they are compared when the
    /// user is followed first, and where reports were lost.
    ///
    /// # Errors
    /// -1007, after some time.
    pub(crate) async fn compare(&self, id: UserId) -> Result<(), ApiError> {
        self.user(id);
        if !self.reconciliation.has(id) {
            return Ok(());
        }
        let compared = tokio::time::timeout(ANSWER_TIME, self.reconciliation.compared(id)).await;
        compared.map_err(|_| ApiError::TIMEOUT)
    }

    /// Waits until a command is applied.
    ///
    /// # Errors
    /// -1007.
    async fn reach(&self, number: u64) -> Result<(), ApiError> {
        let reached = tokio::time::timeout(ANSWER_TIME, self.applied.wait_for(number)).await;
        reached.map_err(|_| ApiError::TIMEOUT)
    }

    fn queue<'u>(&self, user: &'u User, last: i64) -> &'u mpsc::Sender<Request> {
        let spawn = || session::spawn(&self.access, user.id, &self.committer, last as u64);
        user.queue.get_or_init(spawn)
    }

    /// Gives a command a sequence and has it sent before `limit_us`; `make` gets the id for an
    /// order of it, and may have one for the log.
    ///
    /// # Errors
    /// What `make` returns; -1001 at a replica that follows; -1008 where too much waits, or the log
    /// is full; -1016. Its outcome is -1021 where it was not sent in time.
    fn submit(
        &self,
        user: &Arc<User>,
        limit_us: i64,
        make: impl FnOnce(&mut Memory, i64) -> Result<(Noted, TradeCommand), ApiError>,
    ) -> Result<(i64, oneshot::Receiver<Result<Executed, ApiError>>), ApiError> {
        self.check()?;
        let claim = self.primary.claim()?;
        let mut memory = user.memory();
        memory.begin_claim(claim, || self.reconciliation.executed(user.id));
        let queue = self.queue(user, memory.sequence);
        let permit = queue.try_reserve().map_err(|_| ApiError::BUSY)?;
        let sequence = memory.sequence + 1;
        let id = ORDER_IDS + sequence;
        let mut lsn = self.begin_with(user.id, &mut memory)?;
        let (noted, command) = make(&mut memory, id)?;
        let mut note = None;
        let noted = match noted {
            Noted::Nothing => None,
            Noted::Reduction(key) => Some(key),
            Noted::Order(order) => {
                let key = (order.symbol, id);
                let record = Record::Order(order);
                // On one machine none else needs it.
                note = (claim > 0).then(|| record.encode().into());
                lsn = Some(self.append_or_refuse(&record)?);
                if let Record::Order(order) = record {
                    memory.insert(*order);
                }
                Some(key)
            }
        };
        memory.sequence = sequence;
        let (sender, outcome) = oneshot::channel();
        permit.send(Request::Submit(Box::new(Submit {
            sequence: sequence as u64,
            lsn,
            limit_us,
            command,
            note,
            done: Done {
                sender,
                noted: noted.map(|key| (Arc::clone(user), key)),
                reconciliation: Arc::clone(&self.reconciliation),
                log: self.log.clone(),
            },
        })));
        Ok((id, outcome))
    }

    /// Appends where a user's reports begin that are wanted, unless that is known. The key of such
    /// a user came after the start.
    ///
    /// # Errors
    /// -1008.
    fn begin_with(&self, id: UserId, memory: &mut Memory) -> Result<Option<Lsn>, ApiError> {
        if memory.last_report.is_some() {
            return Ok(None);
        }
        let last = ReportNumber(self.reports.next(id).0 - 1);
        let lsn = self.append_or_refuse(&Record::Begin(id, last))?;
        memory.last_report = Some(last);
        self.reconciliation.want(id);
        Ok(Some(lsn))
    }

    fn append_or_refuse(&self, record: &Record) -> Result<Lsn, ApiError> {
        self.log.append(record).map_err(|error| {
            tracing::error!(%error, "a command is refused: the gateway's log");
            ApiError::BUSY
        })
    }

    /// Returns a user's account as the exchange has it.
    ///
    /// # Errors
    /// -1008 where too much waits; -1007; -1016; -2015 for a user that the exchange does not know.
    pub(crate) async fn account(&self, user: &User) -> Result<AccountView, ApiError> {
        self.account_at(user).await.map(|(view, _)| view)
    }

    /// Works as [`account`](Self::account); the number is that of the first command that it does
    /// not have.
    async fn account_at(&self, user: &User) -> Result<(AccountView, u64), ApiError> {
        self.check()?;
        let (sender, answer) = oneshot::channel();
        {
            let last = user.memory().sequence;
            let queue = self.queue(user, last);
            let request = Request::Query(SessionQuery::Account(user.id), sender);
            queue.try_send(request).map_err(|_| ApiError::BUSY)?;
        }
        let answered = tokio::time::timeout(ANSWER_TIME, answer).await;
        let answered = answered
            .ok()
            .and_then(Result::ok)
            .ok_or(ApiError::TIMEOUT)?;
        match answered.result {
            QueryResult::Account(view) => {
                if answered.number > 0 {
                    self.reach(answered.number - 1).await?;
                }
                Ok((view, answered.number))
            }
            QueryResult::Refused(_) => Err(ApiError::BUSY),
            _ => Err(ApiError::REJECTED_KEY),
        }
    }

    /// Returns the balances of a user, of all assets that have a name, or of some: all after the
    /// same command.
    ///
    /// # Errors
    /// As [`account`](Self::account).
    pub(crate) async fn balances(
        &self,
        user: &User,
        symbols: &Symbols,
        only: Option<&BTreeSet<i32>>,
    ) -> Result<(AccountView, Vec<Balance>), ApiError> {
        let mut attempts = 0;
        let (view, held) = loop {
            let (view, number) = self.account_at(user).await?;
            // The orders are those of the same command, whatever came since.
            if let Some(held) = user.memory().held(number, |id| symbols.by_id(id)) {
                break (view, held);
            }
            attempts += 1;
            if attempts == BALANCES_MAX {
                return Err(ApiError::BUSY);
            }
        };
        let assets = symbols.assets().iter();
        let chosen = assets.filter(|a| only.is_none_or(|only| only.contains(&a.currency.0)));
        let balances = chosen.map(|asset| {
            let free = view.balances.iter().find(|(id, _)| *id == asset.currency);
            let free = free.map_or(0, |(_, amount)| i128::from(*amount));
            let locked = held.get(&asset.currency.0).copied().unwrap_or(0);
            Balance {
                asset: asset.name.clone(),
                free: decimal::format(free, asset.decimals),
                locked: decimal::format(locked, asset.decimals),
            }
        });
        let balances = balances.collect();
        Ok((view, balances))
    }
}
