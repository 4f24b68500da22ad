//! Checkpoints: they keep the log short, and are read at the start.
//!
//! *Rules.*
//! 1. A checkpoint is written into the log, in turns, between other records. Each turn writes as
//!    much as came since the one before, and [`TURN_BYTES`] at least: clients do not wait long, and
//!    a checkpoint always comes to its end.
//! 2. The parts of one user or symbol are all of it at the place of the first part: reports and
//!    trades come from the same thread, and a user's lock is held for the first part. Orders that
//!    come between the parts of their user are taken into both.
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
use crate::market::{Candles, Interval, Trades};
use crate::orders::{Kept, Memory, Record};
use crate::state::State;
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
struct UnderWay {
    first: Lsn,
    /// Bytes of it so far.
    bytes: u64,
    left: Vec<Part>,
}

/// Writes checkpoints.
#[derive(Debug)]
pub(crate) struct Checkpoints {
    every_bytes: u64,
    /// Bytes that were appended since the last one was whole, before the log was opened.
    before_bytes: u64,
    /// Bytes of all records when the last one was whole.
    whole_at: u64,
    /// Bytes of all records after the last turn.
    turned_at: u64,
    /// Bytes of the last one.
    kept_bytes: u64,
    under_way: Option<UnderWay>,
}

impl Checkpoints {
    pub(crate) const fn new(every_bytes: u64) -> Self {
        Self {
            every_bytes,
            before_bytes: 0,
            whole_at: 0,
            turned_at: 0,
            kept_bytes: 0,
            under_way: None,
        }
    }

    /// Writes some of a checkpoint, if one is due or under way. All reports and trades of the log
    /// must be applied.
    pub(crate) fn turn(&mut self, state: &State, ids: &TradeIds) {
        let written = self.write(state, ids);
        self.turned_at = state.orders.log().appended_bytes();
        if let Err(error) = written {
            tracing::warn!(%error, "no checkpoint of the gateway's log was written");
            self.under_way = None;
            // It is tried again after an eighth of the time.
            self.before_bytes = self.due_bytes() / 8 * 7;
            self.whole_at = self.turned_at;
        }
    }

    fn due_bytes(&self) -> u64 {
        self.every_bytes.max(self.kept_bytes)
    }

    fn write(&mut self, state: &State, ids: &TradeIds) -> Result<(), GatewayError> {
        let log = state.orders.log();
        let begun_at = log.appended_bytes();
        if self.under_way.is_none() {
            if begun_at - self.whole_at + self.before_bytes < self.due_bytes() {
                return Ok(());
            }
            let symbols = state.market.symbols().into_iter();
            let symbols: BTreeSet<SymbolId> = symbols.chain(ids.last.keys().copied()).collect();
            let users = state.orders.users().into_iter().map(Part::User);
            self.under_way = Some(UnderWay {
                first: log.append(&Record::Kept(Kept::Begin))?,
                bytes: 0,
                left: users.chain(symbols.into_iter().map(Part::Symbol)).collect(),
            });
        }
        let Some(under_way) = &mut self.under_way else {
            return Ok(());
        };
        let turn_bytes = TURN_BYTES.max(begun_at - self.turned_at);
        while let Some(part) = under_way.left.pop() {
            match part {
                Part::User(user) => drop(state.orders.keep(user)?),
                Part::Symbol(symbol) => each_part((state, ids), symbol, |part| {
                    log.append(&Record::Kept(part)).map(drop)
                })?,
            }
            if log.appended_bytes() - begun_at >= turn_bytes {
                break;
            }
        }
        under_way.bytes += log.appended_bytes() - begun_at;
        if under_way.left.is_empty() {
            log.commit(log.append(&Record::Kept(Kept::End))?)?;
            log.retain_from(under_way.first)?;
            (self.whole_at, self.before_bytes) = (log.appended_bytes(), 0);
            self.kept_bytes = under_way.bytes;
            self.under_way = None;
        }
        Ok(())
    }
}

/// Gives all parts of a symbol.
fn each_part<E>(
    (state, ids): (&State, &TradeIds),
    symbol: SymbolId,
    mut give: impl FnMut(Kept) -> Result<(), E>,
) -> Result<(), E> {
    let (trades, candles) = state.market.read(symbol, |market| {
        (market.trades.clone(), market.candles.clone())
    });
    give(Kept::Symbol {
        symbol,
        last: ids.last.get(&symbol).copied().unwrap_or(0),
        millis: candles.millis(),
    })?;
    for trade in trades.from(i64::MIN) {
        give(Kept::Trade(*trade))?;
    }
    for trade in trades.aggregate_from(i64::MIN) {
        give(Kept::Aggregate(*trade))?;
    }
    for interval in Interval::all() {
        for candle in candles.traded(interval) {
            give(Kept::Candle(interval.index() as u8, *candle))?;
        }
    }
    give(Kept::SymbolEnd)
}

/// A symbol of which not all parts were read.
struct KeptSymbol {
    symbol: SymbolId,
    last: i64,
    trades: Trades,
    candles: Candles,
}

/// Applies the records of the log as it is read.
pub(crate) struct Replay<'s> {
    state: &'s State,
    ids: &'s mut TradeIds,
    checkpoints: &'s mut Checkpoints,
    user: Option<(UserId, Memory)>,
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
        let orders = &self.state.orders;
        match record {
            Record::Order(order) => {
                if let Some((id, memory)) = &mut self.user
                    && *id == order.user
                {
                    memory.insert((*order).clone());
                }
                orders.user(order.user).memory().insert(*order);
            }
            Record::Report(reported) => {
                let user = orders.user(reported.report.owner);
                drop(user.memory().apply(&reported, &self.state.symbols));
            }
            Record::Trade(trade, index) => {
                let command = trade.command;
                self.ids.restore(trade, TradeId { command, index });
                self.state.market.trade(&trade);
            }
            Record::Begin(user, number) => orders.user(user).memory().last_report = Some(number),
            Record::Kept(part) => self.take(part),
        }
    }

    fn take(&mut self, part: Kept) {
        let Self { user, symbol, .. } = self;
        match (part, user, symbol) {
            (Kept::Begin, ..) => self.begun_bytes = Some(0),
            (Kept::End, ..) => {
                if let Some(bytes) = self.begun_bytes.take() {
                    self.has_whole = true;
                    self.checkpoints.kept_bytes = bytes;
                    self.checkpoints.before_bytes = 0;
                }
            }
            (
                Kept::User {
                    user,
                    last_report,
                    sequence,
                },
                ..,
            ) => {
                let mut memory = self.state.orders.memory();
                memory.begin(last_report, sequence);
                self.user = Some((user, memory));
            }
            (Kept::Order(order), Some((_, memory)), _) => memory.restore(*order),
            (Kept::Fill(fill), Some((_, memory)), _) => memory.keep_fill(fill),
            (Kept::UserEnd, user, _) => {
                if let Some((user, memory)) = user.take() {
                    self.state.orders.restore(user, memory);
                }
            }
            (
                Kept::Symbol {
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
                }));
            }
            (Kept::Trade(trade), _, Some(of)) => of.trades.keep(trade),
            (Kept::Aggregate(trade), _, Some(of)) => of.trades.keep_aggregate(trade),
            (Kept::Candle(at, candle), _, Some(of)) => of.candles.keep(at, candle),
            (Kept::SymbolEnd, _, symbol) => {
                if let Some(of) = symbol.take() {
                    self.ids.last.insert(of.symbol, of.last);
                    self.state.market.restore(of.symbol, of.trades, of.candles);
                }
            }
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

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::path::Path;

    use thalweg_exchange::execution::{Execution, ExecutionReport};
    use thalweg_exchange::session::ReportNumber;
    use thalweg_exchange::{Action, OrderId};

    use super::*;
    use crate::link::tests::{Fixture, SYMBOL};
    use crate::orders::Order;
    use crate::reported::Reported;

    const USER: UserId = UserId(1);

    /// Returns everything that a log is for.
    fn all(state: &State, ids: &TradeIds) -> Vec<Kept> {
        let mut parts = Vec::new();
        for user in [USER, UserId(2)] {
            parts.extend(state.orders.user(user).memory().parts(user));
        }
        for symbol in state.market.symbols() {
            let given: Result<(), Infallible> = each_part((state, ids), symbol, |part| {
                parts.push(part);
                Ok(())
            });
            given.expect("it cannot fail");
        }
        parts
    }

    fn replayed(state: &State, records: &[Record]) -> Vec<Kept> {
        let (mut ids, mut checkpoints) = (TradeIds::default(), Checkpoints::new(1));
        let mut replay = Replay::new(state, &mut ids, &mut checkpoints);
        records
            .iter()
            .for_each(|record| replay.apply(record.clone(), 1));
        replay.end(Lsn::FIRST).expect("nothing is missing");
        all(state, &ids)
    }

    /// Returns the reports of an order that comes, and then trades or is cancelled.
    fn reports(at: u64, owner: UserId) -> [Reported; 2] {
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
        [(1, Execution::New), (2, trade)].map(|(number, kind)| Reported {
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
        matches!(record, Record::Kept(_))
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
        let mut records = Vec::new();
        let read = fixture
            .state()
            .orders
            .read(|record, _| records.push(record));
        read.expect("it is whole");
        let is = |wanted: Kept| move |record: &Record| *record == Record::Kept(wanted.clone());
        // Orders come while their user is written, and after it.
        let is_user = |record: &Record| match record {
            Record::Kept(Kept::User { user, .. }) => *user == USER,
            _ => false,
        };
        let begun = records.iter().rposition(is_user).expect("it is written");
        let mut with_orders: Vec<Record> = records[..begun].to_vec();
        for (at, record) in records[begun..].iter().enumerate() {
            with_orders.push(record.clone());
            if at % 3 == 1 {
                let key = (USER, SYMBOL.0, (1 << 52) + at as i64);
                let order = Order::pending(key, format!("o{at}"), (Action::Bid, 5, 6), 1);
                with_orders.push(Record::Order(Box::new(order)));
            }
        }
        let whole = records.iter().filter(|record| is(Kept::End)(record));
        assert!(whole.count() > 1, "a checkpoint comes after another");
        for length in 1..=with_orders.len() {
            let cut = &with_orders[..length];
            let plain: Vec<Record> = cut.iter().filter(|one| !is_kept(one)).cloned().collect();
            let expected = replayed(&fixture.another(false), &plain);
            assert_eq!(replayed(&fixture.another(false), cut), expected, "{length}");
            let Some(end) = cut.iter().rposition(is(Kept::End)) else {
                continue;
            };
            let begun = cut[..end].iter().rposition(is(Kept::Begin)).expect("one");
            let found = replayed(&fixture.another(false), &cut[begun / 2..]);
            assert_eq!(found, expected, "{length}");
        }
        fixture.end();
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
            .filter(|part| matches!(part, Kept::Candle(0, _)));
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
        fixture.end();
    }
}
