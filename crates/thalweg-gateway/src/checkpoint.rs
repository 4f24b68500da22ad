//! Checkpoints: they keep the log short, and are read at the start.
//!
//! *Rules.*
//! 1. A checkpoint is written into the log, in turns, between other records. Each turn writes as
//!    much as came since the one before, and [`TURN_BYTES`] at least: clients do not wait long, and
//!    a checkpoint always comes to its end.
//! 2. All parts of one user or symbol show its state at the first part: they are copied then, under
//!    its lock, and appended by their position, over as many turns as they take. No
//!    other user or symbol begins between them. Orders, reports and trades that come between are
//!    applied again behind the last part.
//! 3. Segments are removed when the checkpoint is whole and durable: those before its beginning.
//!
//! *Why it works.* Read from any place before the beginning of a whole checkpoint, the log gives
//! the same: whatever was made of records that have lost those before them is replaced. A
//! checkpoint that a crash tore needs nothing: the one before is still there, and the users and
//! symbols of the torn one that are whole say what is so already.

use std::collections::BTreeSet;

use thalweg_exchange::execution::TradeId;
use thalweg_exchange::{SymbolId, UserId};
use thalweg_journal::Lsn;

use crate::GatewayError;
use crate::market::{Candles, Interval, Trade, Trades};
use crate::orders::{CheckpointPart, Memory, Record};
use crate::state::State;
use crate::symbols::Symbols;
use crate::trade_ids::TradeIds;

/// Bytes of a checkpoint in a turn.
const TURN_BYTES: u64 = 1 << 20;

#[derive(Clone, Copy, Debug)]
enum Part {
    User(UserId),
    Symbol(SymbolId),
}

/// A checkpoint that is being written.
#[derive(Debug)]
struct PendingCheckpoint {
    first: Lsn,
    /// Bytes of it so far.
    bytes: u64,
    left: Vec<Part>,
    /// The parts of one that has begun.
    parts: std::vec::IntoIter<CheckpointPart>,
}

/// Writes checkpoints.
#[derive(Debug)]
pub(crate) struct Checkpoints {
    every_bytes: u64,
    /// Bytes of a checkpoint in a turn.
    turn_bytes: u64,
    /// Bytes that were appended since the last one was whole, before the log was opened.
    before_bytes: u64,
    /// Bytes of all records when the last one was whole.
    whole_at: u64,
    /// Bytes of all records after the last turn.
    turned_at: u64,
    /// Bytes of the last one.
    kept_bytes: u64,
    pending: Option<PendingCheckpoint>,
}

impl Checkpoints {
    pub(crate) const fn new(every_bytes: u64) -> Self {
        Self {
            every_bytes,
            turn_bytes: TURN_BYTES,
            before_bytes: 0,
            whole_at: 0,
            turned_at: 0,
            kept_bytes: 0,
            pending: None,
        }
    }

    /// Writes some of a checkpoint, if one is due or under way. All reports and trades of the log
    /// must be applied.
    pub(crate) fn turn(&mut self, state: &State, ids: &TradeIds) {
        let written = self.write(state, ids);
        self.turned_at = state.orders.log().appended_bytes();
        if let Err(error) = written {
            tracing::warn!(%error, "no checkpoint of the gateway's log was written");
            self.pending = None;
            // It is tried again after an eighth of the time.
            self.before_bytes = self.due_bytes() / 8 * 7;
            self.whole_at = self.turned_at;
        }
    }

    #[cfg(test)]
    pub(crate) const fn set_turn_bytes(&mut self, bytes: u64) {
        self.turn_bytes = bytes;
    }

    /// Appends what is left of the user or symbol that has begun: another one is to come now.
    pub(crate) fn finish_begun(&mut self, state: &State) -> Result<(), GatewayError> {
        let log = state.orders.log();
        if let Some(pending) = &mut self.pending {
            let begun_at = log.appended_bytes();
            // One that cannot be appended now is there when this is called again.
            while let Some(part) = pending.parts.as_slice().first() {
                log.append(&Record::Checkpoint(part.clone()))?;
                pending.parts.next();
            }
            pending.bytes += log.appended_bytes() - begun_at;
        }
        Ok(())
    }

    fn due_bytes(&self) -> u64 {
        self.every_bytes.max(self.kept_bytes)
    }

    fn write(&mut self, state: &State, ids: &TradeIds) -> Result<(), GatewayError> {
        let log = state.orders.log();
        let begun_at = log.appended_bytes();
        if self.pending.is_none() {
            if begun_at - self.whole_at + self.before_bytes < self.due_bytes() {
                return Ok(());
            }
            let symbols = state.market.symbols().into_iter();
            let symbols: BTreeSet<SymbolId> = symbols.chain(ids.last.keys().copied()).collect();
            let users = state.orders.users().into_iter().map(Part::User);
            self.pending = Some(PendingCheckpoint {
                first: log.append(&Record::Checkpoint(CheckpointPart::Begin))?,
                bytes: 0,
                left: users.chain(symbols.into_iter().map(Part::Symbol)).collect(),
                parts: Vec::new().into_iter(),
            });
        }
        let Some(pending) = &mut self.pending else {
            return Ok(());
        };
        let turn_bytes = self.turn_bytes.max(begun_at - self.turned_at);
        let mut is_over = false;
        while !is_over {
            if let Some(part) = pending.parts.next() {
                log.append(&Record::Checkpoint(part))?;
            } else if let Some(next) = pending.left.pop() {
                let parts = match next {
                    Part::User(user) => state.orders.begin_to_keep(user)?.1,
                    Part::Symbol(symbol) => parts_of((state, ids), symbol),
                };
                pending.parts = parts.into_iter();
            } else {
                break;
            }
            is_over = log.appended_bytes() - begun_at >= turn_bytes;
        }
        pending.bytes += log.appended_bytes() - begun_at;
        if pending.left.is_empty() && pending.parts.len() == 0 {
            log.commit(log.append(&Record::Checkpoint(CheckpointPart::End))?)?;
            log.truncate_before(pending.first)?;
            (self.whole_at, self.before_bytes) = (log.appended_bytes(), 0);
            self.kept_bytes = pending.bytes;
            self.pending = None;
        }
        Ok(())
    }
}

/// Returns all parts of a symbol.
fn parts_of((state, ids): (&State, &TradeIds), symbol: SymbolId) -> Vec<CheckpointPart> {
    let (trades, candles) = state.market.read(symbol, |market| {
        (market.trades.clone(), market.candles.clone())
    });
    let mut parts = vec![CheckpointPart::Symbol {
        symbol,
        last: ids.last.get(&symbol).copied().unwrap_or(0),
        millis: candles.millis(),
    }];
    parts.extend(trades.from(i64::MIN).copied().map(CheckpointPart::Trade));
    let aggregate = trades.aggregate_from(i64::MIN).copied();
    parts.extend(aggregate.map(CheckpointPart::Aggregate));
    for interval in Interval::all() {
        let candles = candles.traded(interval);
        parts.extend(candles.map(|candle| CheckpointPart::Candle(interval.index() as u8, *candle)));
    }
    parts.push(CheckpointPart::SymbolEnd);
    parts
}

/// A user of whom not all parts were read.
struct KeptUser {
    user: UserId,
    memory: Memory,
    /// Records about the user that came between the parts.
    later: Vec<Record>,
}

/// A symbol of which not all parts were read.
struct KeptSymbol {
    symbol: SymbolId,
    last: i64,
    trades: Trades,
    candles: Candles,
    /// Trades that came between the parts.
    later: Vec<(Trade, TradeId)>,
}

/// Applies the records of the log as it is read.
pub(crate) struct Replay<'s> {
    state: &'s State,
    ids: &'s mut TradeIds,
    checkpoints: &'s mut Checkpoints,
    user: Option<KeptUser>,
    symbol: Option<Box<KeptSymbol>>,
    /// Bytes since the last checkpoint began, if one did.
    begun_bytes: Option<u64>,
    has_whole: bool,
}

impl<'s> Replay<'s> {
    pub(crate) fn new(
        state: &'s State,
        ids: &'s mut TradeIds,
        checkpoints: &'s mut Checkpoints,
    ) -> Self {
        Self {
            state,
            ids,
            checkpoints,
            user: None,
            symbol: None,
            begun_bytes: None,
            has_whole: false,
        }
    }

    /// Applies a record with its length. `symbols` of the state must be listed.
    pub(crate) fn apply(&mut self, record: Record, bytes: u64) {
        self.checkpoints.before_bytes += bytes;
        if let Some(begun) = &mut self.begun_bytes {
            *begun += bytes;
        }
        match record {
            Record::Trade(trade, index) => {
                let command = trade.command;
                self.trade(trade, TradeId { command, index });
            }
            Record::Checkpoint(part) => self.take(part),
            record => {
                let id = match &record {
                    Record::Order(order) => order.user,
                    Record::Report(reported) => reported.report.owner,
                    Record::Begin(user, _) | Record::Forgotten(user, _) => *user,
                    _ => return,
                };
                let user = self.state.orders.user(id);
                if let Some(kept) = self.user.as_mut().filter(|kept| kept.user == id) {
                    kept.later.push(record.clone());
                }
                apply_to(&mut user.memory(), record, &self.state.symbols);
            }
        }
    }

    fn trade(&mut self, trade: Trade, id: TradeId) {
        if let Some(kept) = self.symbol.as_mut().filter(|of| of.symbol == trade.symbol) {
            kept.later.push((trade, id));
        }
        self.ids.restore(trade, id);
        self.state.market.trade(&trade);
    }

    fn end_user(&mut self) {
        let Some(mut kept) = self.user.take() else {
            return;
        };
        for record in kept.later {
            apply_to(&mut kept.memory, record, &self.state.symbols);
        }
        self.state.orders.restore(kept.user, kept.memory);
    }

    fn end_symbol(&mut self) {
        let Some(of) = self.symbol.take() else {
            return;
        };
        self.ids.last.insert(of.symbol, of.last);
        self.state.market.restore(of.symbol, of.trades, of.candles);
        for (trade, id) in of.later {
            self.trade(trade, id);
        }
    }

    fn take(&mut self, part: CheckpointPart) {
        let Self { user, symbol, .. } = self;
        match (part, user, symbol) {
            (CheckpointPart::Begin, ..) => {
                // One that is not whole by now was torn by a crash.
                (self.user, self.symbol) = (None, None);
                self.begun_bytes = Some(0);
            }
            (CheckpointPart::End, ..) => {
                if let Some(bytes) = self.begun_bytes.take() {
                    self.has_whole = true;
                    self.checkpoints.kept_bytes = bytes;
                    self.checkpoints.before_bytes = 0;
                }
            }
            (
                CheckpointPart::User {
                    user,
                    last_report,
                    sequence,
                },
                ..,
            ) => {
                let mut memory = self.state.orders.memory();
                memory.begin(last_report, sequence);
                self.user = Some(KeptUser {
                    user,
                    memory,
                    later: Vec::new(),
                });
            }
            (CheckpointPart::Order(order), Some(kept), _) => kept.memory.restore(*order),
            (CheckpointPart::Fill(fill), Some(kept), _) => kept.memory.keep_fill(fill),
            (CheckpointPart::UserEnd, ..) => self.end_user(),
            (
                CheckpointPart::Symbol {
                    symbol,
                    last,
                    millis,
                },
                ..,
            ) => {
                self.symbol = Some(Box::new(KeptSymbol {
                    symbol,
                    last,
                    trades: Trades::default(),
                    candles: Candles::kept_at(millis),
                    later: Vec::new(),
                }));
            }
            (CheckpointPart::Trade(trade), _, Some(of)) => of.trades.keep(trade),
            (CheckpointPart::Aggregate(trade), _, Some(of)) => of.trades.keep_aggregate(trade),
            (CheckpointPart::Candle(at, candle), _, Some(of)) => of.candles.keep(at, candle),
            (CheckpointPart::SymbolEnd, ..) => self.end_symbol(),
            // The first part was removed with its segment: a whole checkpoint follows.
            _ => {}
        }
    }

    /// Checks that nothing is missing; `first` is the first record that was read.
    ///
    /// # Errors
    /// Segments are gone, and no whole checkpoint has what they had.
    pub(crate) fn end(self, first: Lsn) -> Result<(), GatewayError> {
        if first > Lsn::FIRST && !self.has_whole {
            let what = format!(
                "it begins with record {}, and no whole checkpoint follows",
                first.number()
            );
            return Err(self.state.orders.log().content(what));
        }
        Ok(())
    }
}

/// Applies a record about a user to its memory.
fn apply_to(memory: &mut Memory, record: Record, symbols: &Symbols) {
    match record {
        Record::Order(order) => memory.insert(*order),
        Record::Report(reported) => drop(memory.apply(&reported, symbols)),
        Record::Begin(_, number) => memory.last_report = Some(number),
        Record::Forgotten(_, key) => _ = memory.forget_unexecuted(key),
        Record::Trade(..) | Record::Checkpoint(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use thalweg_exchange::execution::{Execution, ExecutionReport};
    use thalweg_exchange::session::ReportNumber;
    use thalweg_exchange::{Action, OrderId};

    use super::*;
    use crate::link::tests::{Fixture, SYMBOL};
    use crate::orders::{Order, UserReport};

    const USER: UserId = UserId(1);

    /// Returns everything that a log is for.
    fn all(state: &State, ids: &TradeIds) -> Vec<CheckpointPart> {
        let mut parts = Vec::new();
        for user in [USER, UserId(2)] {
            parts.extend(state.orders.user(user).memory().parts(user));
        }
        for symbol in state.market.symbols() {
            parts.extend(parts_of((state, ids), symbol));
        }
        parts
    }

    fn replayed(state: &State, records: &[Record]) -> Vec<CheckpointPart> {
        let (mut ids, mut checkpoints) = (TradeIds::default(), Checkpoints::new(1));
        let mut replay = Replay::new(state, &mut ids, &mut checkpoints);
        records
            .iter()
            .for_each(|record| replay.apply(record.clone(), 1));
        replay.end(Lsn::FIRST).expect("nothing is missing");
        all(state, &ids)
    }

    /// Returns the reports of an order that comes, and then trades or is cancelled.
    fn reports(at: u64, owner: UserId) -> [UserReport; 2] {
        let id = TradeId {
            command: at,
            index: 0,
        };
        let trade = Execution::Trade {
            id,
            price: 100,
            size: 1,
            is_maker: at.is_multiple_of(2),
        };
        [(1, Execution::New), (2, trade)].map(|(number, kind)| UserReport {
            number: ReportNumber(2 * at + number),
            report: ExecutionReport {
                command: at,
                owner,
                symbol: SYMBOL,
                order: OrderId(at as i64),
                side: Some(Action::Bid),
                price: 100,
                left: if number == 2 { (at % 3) as i64 } else { 3 },
                filled: number as i64 - 1,
                kind,
            },
            trade: None,
            time_us: at as i64 * 700_000,
            is_auction: at.is_multiple_of(5),
        })
    }

    fn is_kept(record: &Record) -> bool {
        matches!(record, Record::Checkpoint(_))
    }

    /// Returns the records of a log with checkpoints, and with orders of `USER` that come while it
    /// is written, and after it; some have names of others.
    fn with_orders(fixture: &Fixture) -> Vec<Record> {
        let mut records = Vec::new();
        let read = fixture
            .state()
            .orders
            .read(|record, _| records.push(record));
        read.expect("it is whole");
        let is_user = |record: &Record| match record {
            Record::Checkpoint(CheckpointPart::User { user, .. }) => *user == USER,
            _ => false,
        };
        let begun = records.iter().rposition(is_user).expect("it is written");
        let mut all: Vec<Record> = records[..begun].to_vec();
        for (at, record) in records[begun..].iter().enumerate() {
            all.push(record.clone());
            if at % 3 == 1 {
                let key = (USER, SYMBOL.0, (1 << 52) + at as i64);
                let name = format!("o{}", at / 2);
                let order = Order::pending(key, name, (Action::Bid, 5, 6), 1);
                all.push(Record::Order(Box::new(order)));
            }
        }
        all
    }

    /// Compares what the log says with what it would say without checkpoints, up to each place in
    /// `step`.
    fn check_cuts(fixture: &mut Fixture, records: &[Record], step: usize) {
        let is = |wanted: CheckpointPart| {
            move |record: &Record| *record == Record::Checkpoint(wanted.clone())
        };
        for length in (1..=records.len()).step_by(step).chain([records.len()]) {
            let cut = &records[..length];
            let plain: Vec<Record> = cut.iter().filter(|one| !is_kept(one)).cloned().collect();
            let expected = replayed(&fixture.another(false), &plain);
            assert_eq!(replayed(&fixture.another(false), cut), expected, "{length}");
            let Some(end) = cut.iter().rposition(is(CheckpointPart::End)) else {
                continue;
            };
            let begun = cut[..end]
                .iter()
                .rposition(is(CheckpointPart::Begin))
                .expect("one");
            let found = replayed(&fixture.another(false), &cut[begun / 2..]);
            assert_eq!(found, expected, "{length}");
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn whatever_a_crash_leaves_of_a_checkpoint_the_log_says_the_same() {
        let mut fixture = Fixture::new("checkpoint").await;
        fixture.state().orders.user(USER);
        fixture.state().orders.user(UserId(2));
        fixture.checkpoints_each(1);
        for at in 0..12 {
            let owner = UserId(1 + at as i64 % 2);
            let reports = reports(at, owner);
            fixture.follow(reports.iter());
        }
        let records = with_orders(&fixture);
        let whole = records
            .iter()
            .filter(|record| **record == Record::Checkpoint(CheckpointPart::End));
        assert!(whole.count() > 1, "a checkpoint comes after another");
        check_cuts(&mut fixture, &records, 1);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn reports_and_trades_between_the_parts_of_a_checkpoint_are_not_lost() {
        let mut fixture = Fixture::new("turns").await;
        fixture.state().orders.user(USER);
        fixture.state().orders.user(UserId(2));
        fixture.checkpoints_each(1);
        fixture.short_turns();
        let (mut at, mut turns) = (0, 0);
        let is_end = |record: &Record| *record == Record::Checkpoint(CheckpointPart::End);
        let records = loop {
            for _ in 0..20 {
                let before = fixture.state().orders.log().appended_bytes();
                let reports = reports(at, UserId(1 + at as i64 % 2));
                fixture.follow(reports.iter());
                // As much of the checkpoint as came, and a part: not a user or symbol at once.
                let after = fixture.state().orders.log().appended_bytes();
                assert!(after - before < 3_000, "{}", after - before);
                (at, turns) = (at + 1, turns + 1);
            }
            if turns == 100 {
                // Another user comes in the midst of one: it is whole nevertheless.
                fixture.keep(UserId(2));
            }
            let records = with_orders(&fixture);
            if records.iter().filter(|record| is_end(record)).count() > 1 {
                break records;
            }
            assert!(turns < 10_000, "a checkpoint comes to its end");
        };
        // Reports came between the parts of their user, trades between those of their symbol.
        let between = records.windows(3).filter(|three| {
            is_kept(&three[0]) && !is_kept(&three[1]) && !matches!(three[1], Record::Order(_))
        });
        assert!(between.count() > 10);
        let step = records.len() / 40 + 1;
        check_cuts(&mut fixture, &records, step);
    }

    fn bytes_of(directory: &Path) -> u64 {
        let files = std::fs::read_dir(directory).expect("a directory");
        let lengths = files.map(|file| file.and_then(|file| file.metadata()));
        lengths.map(|meta| meta.expect("a file").len()).sum()
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn the_log_stays_short_and_a_start_has_all_orders_trades_and_candles() {
        let mut fixture = Fixture::new("short").await;
        fixture.state().orders.user(USER);
        fixture.checkpoints_each(1 << 16);
        for first in (0..20_000).step_by(100) {
            let reports: Vec<_> = (first..first + 100).map(|at| reports(at, USER)).collect();
            fixture.follow(reports.as_flattened().iter());
        }
        let appended = fixture.state().orders.log().appended_bytes();
        let live = fixture.all(all);
        let candles = live
            .iter()
            .filter(|part| matches!(part, CheckpointPart::Candle(0, _)));
        assert_eq!(candles.count(), Candles::KEPT);
        let length = bytes_of(&fixture.log());
        assert!(appended > 2 * length, "{appended}, {length}");
        // As after kill -9.
        let state = fixture.another(true);
        let (mut ids, mut checkpoints) = (TradeIds::default(), Checkpoints::new(1));
        let mut replay = Replay::new(&state, &mut ids, &mut checkpoints);
        let read = state
            .orders
            .read(|record, bytes| replay.apply(record, bytes));
        let first = read.expect("it is whole");
        assert!(first > Lsn::FIRST);
        replay.end(first).expect("nothing is missing");
        assert_eq!(all(&state, &ids), live);
        // Without the checkpoint there is nothing to begin with.
        let (mut ids, mut checkpoints) = (TradeIds::default(), Checkpoints::new(1));
        let replay = Replay::new(&state, &mut ids, &mut checkpoints);
        let error = replay.end(first).expect_err("it is missing").to_string();
        assert!(error.contains("no whole checkpoint follows"), "{error}");
    }
}
