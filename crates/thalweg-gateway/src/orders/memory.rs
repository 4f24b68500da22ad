//! The orders and trades of one user, made of the log's records.

use std::collections::{BTreeMap, HashMap, VecDeque, btree_map};
use std::sync::Arc;

use thalweg_exchange::execution::{Execution, ExecutionReport};
use thalweg_exchange::session::ReportNumber;
use thalweg_exchange::{Action, ResultCode, SymbolId, UserId};

use super::checkpoint_part::{CheckpointPart, SavedOrder};
use super::event::{Executed, UserEvent};
use super::order::{Fill, Order, Status, UserReport};
use crate::symbols::{Symbol, Symbols};

/// The ids of orders that the gateway places are this and the sequence of their command: programs
/// that speak the exchange's own protocol for the same user mostly number theirs from 1, or by the
/// time. JSON carries numbers up to twice this exactly.
pub(super) const ORDER_IDS: i64 = 1 << 52;

/// The sequences of a claim begin at a multiple of this, and as many at least behind the last that
/// was executed: behind those that a primary of before may have sent and that no log has. So no id
/// of an order is given twice.
const CLAIM_SEQUENCES: i64 = 1 << 16;

/// Changes of what is held that are kept, for answers of a command before the last.
const MOVES_MAX: usize = 4_096;

pub(crate) type OrderKey = (i32, i64);

/// The number of a command, and the amount of a currency by which it changed what is held.
type Move = (u64, i32, i128);

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Memory {
    open: BTreeMap<OrderKey, Order>,
    closed: BTreeMap<OrderKey, Order>,
    /// Closed orders, the one that ended first in front.
    by_end: VecDeque<OrderKey>,
    /// The newest order of each client order id.
    by_client_id: HashMap<(i32, String), OrderKey>,
    /// For an order, the one before it with the same client order id, which counts again where the
    /// later one was not executed.
    former: HashMap<OrderKey, OrderKey>,
    fills: VecDeque<Fill>,
    moves: VecDeque<Move>,
    /// The moves of this command and of those before it are not all kept.
    moved_before: u64,
    kept: usize,
    /// Orders on their way of which the session gives no outcome any more, each with the token of
    /// the first list that may tell.
    unanswered: Vec<(OrderKey, u64)>,
    /// The lots that requests in flight take off stop orders that wait.
    reducing: BTreeMap<OrderKey, i64>,
    /// The event of the last trade of an order by `quoteOrderQty`.
    held_event: Option<Box<Executed>>,
    /// The last list of open orders was cut: what it lacks may be open.
    pub(super) is_cut: bool,
    /// The last report that was applied; `None` before the first, or a beginning.
    pub(crate) last_report: Option<ReportNumber>,
    /// The sequence of the last command of the user's session.
    pub(super) sequence: i64,
    /// The claim of the command log under which that is; 0 on one machine.
    claim: u64,
}

/// Returns whether an order is refused because its id is in use or was.
const fn is_of_id(code: ResultCode) -> bool {
    matches!(
        code,
        ResultCode::RiskOrderIdUsed
            | ResultCode::RiskOrderIdTooOld
            | ResultCode::MatchingRejectedDuplicateId
    )
}

/// Returns the sequence of the command that has placed an order of the gateway's. Ids of others may
/// be any number.
const fn sequence_of(id: i64) -> i64 {
    id.saturating_sub(ORDER_IDS)
}

impl Memory {
    /// `kept` closed orders, and as many trades, are kept.
    pub(super) fn new(kept: usize) -> Self {
        Self {
            open: BTreeMap::new(),
            closed: BTreeMap::new(),
            by_end: VecDeque::new(),
            by_client_id: HashMap::new(),
            former: HashMap::new(),
            fills: VecDeque::new(),
            moves: VecDeque::new(),
            moved_before: 0,
            kept,
            unanswered: Vec::new(),
            reducing: BTreeMap::new(),
            held_event: None,
            is_cut: false,
            last_report: None,
            sequence: 0,
            claim: 0,
        }
    }

    /// Begins with other sequences where the claim is another one. `executed` returns the last
    /// sequence that was executed before.
    pub(super) fn begin_claim(&mut self, claim: u64, executed: impl FnOnce() -> i64) {
        if claim != self.claim {
            self.claim = claim;
            let last = self.sequence.max(executed());
            self.sequence = (last / CLAIM_SEQUENCES + 2) * CLAIM_SEQUENCES;
        }
    }

    /// Takes an order that is about to be sent.
    pub(crate) fn insert(&mut self, order: Order) {
        self.sequence = self.sequence.max(sequence_of(order.id));
        let key = (order.symbol, order.id);
        self.replace_closed(key);
        let name = (order.symbol, order.client_id.clone());
        if let Some(former) = self.by_client_id.insert(name, key) {
            self.former.insert(key, former);
        }
        self.open.insert(key, order);
    }

    /// Forgets an order that was not executed.
    pub(super) fn forget(&mut self, symbol: i32, id: i64) {
        if let Some(order) = self.open.remove(&(symbol, id)) {
            self.forget_name(&order);
        }
    }

    fn forget_name(&mut self, order: &Order) {
        let key = (order.symbol, order.id);
        let name = (order.symbol, order.client_id.clone());
        let former = self.former.remove(&key);
        if self.by_client_id.get(&name) != Some(&key) {
            return;
        }
        match former.filter(|former| self.closed.contains_key(former)) {
            Some(former) => self.by_client_id.insert(name, former),
            None => self.by_client_id.remove(&name),
        };
    }

    /// Notes that a stop order that waits is about to be reduced. Returns its key, or nothing where
    /// it is not as it was, or such a request is in flight: the exchange takes lots off whatever
    /// the order has then.
    pub(super) fn begin_reduction(&mut self, was: &Order, by: i64) -> Option<OrderKey> {
        let key = (was.symbol, was.id);
        let now = self.open.get(&key);
        let is_same = now.is_some_and(|now| now.lots == was.lots && now.working_us == 0);
        let may_begin = is_same && !self.reducing.contains_key(&key);
        may_begin.then(|| {
            self.reducing.insert(key, by);
            key
        })
    }

    #[cfg(test)]
    pub(crate) fn is_reducing(&self, key: OrderKey) -> bool {
        self.reducing.contains_key(&key)
    }

    pub(super) fn end_reduction(&mut self, key: OrderKey) {
        self.reducing.remove(&key);
    }

    /// Ends a reduction by its report, as the request's own task may be gone.
    fn note_reduced(&mut self, key: OrderKey, report: &ExecutionReport) {
        let ends = |by: i64| match report.kind {
            Execution::Replaced { reduced_by } => reduced_by == by,
            Execution::RequestRejected(_) => true,
            _ => report.is_final(),
        };
        if self.reducing.get(&key).is_some_and(|by| ends(*by)) {
            self.reducing.remove(&key);
            self.unanswered.retain(|(unanswered, _)| *unanswered != key);
        }
    }

    /// Notes that no outcome of an order's command will come: a list with this token or a higher
    /// one decides whether the command was executed.
    pub(super) fn note_unanswered(&mut self, key: OrderKey, token: u64) {
        self.unanswered.push((key, token));
    }

    /// Forgets what was noted of a command that was not executed: the reduction of an order, or an
    /// order without a report. Returns whether an order was forgotten.
    pub(crate) fn forget_unexecuted(&mut self, key: OrderKey) -> bool {
        let is_order = self.reducing.remove(&key).is_none()
            && (self.open.get(&key)).is_some_and(|order| order.status == Status::Pending);
        if is_order {
            self.forget(key.0, key.1);
        }
        is_order
    }

    /// Ends what is known of orders on their way that are not open, where all reports up to the
    /// command with sequence `executed`, and some more, are applied: the executed ones are of
    /// unknown execution, and those without an outcome are forgotten that the list with this token
    /// would have. Returns how many.
    pub(super) fn close_unknown(&mut self, executed: i64, token: u64) -> usize {
        let of_unknown = |(key, order): (&OrderKey, &Order)| {
            let is_unknown = order.status == Status::Pending && sequence_of(key.1) <= executed;
            is_unknown.then_some(*key)
        };
        let unknown: Vec<OrderKey> = self.open.iter().filter_map(of_unknown).collect();
        for key in &unknown {
            if let Some(mut order) = self.open.remove(key) {
                order.status = Status::Unknown;
                self.keep_closed(order);
            }
        }
        let has_it = |one: &mut (OrderKey, u64)| one.1 <= token;
        let answered: Vec<_> = self.unanswered.extract_if(.., has_it).collect();
        let unexecuted = answered
            .iter()
            .filter(|(key, _)| self.forget_unexecuted(*key));
        unknown.len() + unexecuted.count()
    }

    /// Forgets the orders that were never executed: those without a report; after a list that was
    /// cut, the next whole one tells. Returns how many.
    pub(crate) fn forget_unsent(&mut self) -> usize {
        let unsent = self.open.values().filter(|o| o.status == Status::Pending);
        let unsent: Vec<OrderKey> = unsent.map(|order| (order.symbol, order.id)).collect();
        if self.is_cut {
            self.unanswered
                .extend(unsent.into_iter().map(|key| (key, 0)));
            return 0;
        }
        unsent
            .iter()
            .for_each(|(symbol, id)| self.forget(*symbol, *id));
        unsent.len()
    }

    /// Applies a report, if its number is the next, or 0: then it is none of the exchange's, but
    /// made of a comparison. Returns the events that it makes.
    ///
    /// Those of an order are in order. That of a trade by `quoteOrderQty` comes with the next
    /// report of the order: the last one says that the order is filled, though its rest is
    /// cancelled after that. Where a user trades with himself, the events of his other order come
    /// before it.
    pub(crate) fn apply(
        &mut self,
        reported: &UserReport,
        symbols: &Symbols,
    ) -> [Option<UserEvent>; 2] {
        let event = self.applied(reported, symbols);
        let report = &reported.report;
        let key = (report.symbol.0, report.order.0);
        let is_over = |held: &mut Box<Executed>| {
            (held.order.symbol, held.order.id) == key || held.order.command != report.command
        };
        let held = self.held_event.take_if(is_over);
        if self.held_event.is_some() {
            return [event, None];
        }
        match (held, event) {
            (held, Some(UserEvent::Execution(trade)))
                if trade.order.quote > 0 && trade.order.status == Status::PartiallyFilled =>
            {
                self.held_event = Some(trade);
                [held.map(UserEvent::Execution), None]
            }
            (Some(mut last), Some(UserEvent::Execution(end)))
                if (last.order.symbol, last.order.id) == key
                    && end.order.status == Status::Filled
                    && end.change.fill.is_none() =>
            {
                last.order = end.order;
                [Some(UserEvent::Execution(last)), None]
            }
            (held, event) => [held.map(UserEvent::Execution), event],
        }
    }

    fn applied(&mut self, reported: &UserReport, symbols: &Symbols) -> Option<UserEvent> {
        if reported.number != ReportNumber::default() {
            self.last_report = Some(reported.number);
        }
        let report = &reported.report;
        let key = (report.symbol.0, report.order.0);
        self.note_reduced(key, report);
        if let (Some(order), Execution::Rejected(_)) = (self.open.get(&key), report.kind)
            && order.status != Status::Pending
        {
            // Another order with its id was refused: the first report of an order says that.
            return None;
        }
        if !self.open.contains_key(&key) && !self.reopen_unknown(key, report.kind) {
            if report.kind != Execution::New {
                return None;
            }
            let order = Order::of_other_session(report, reported.time_us)?;
            let sequence = self.sequence;
            self.insert(order);
            // Its id is none of this session's.
            self.sequence = sequence;
        }
        let symbol = symbols.by_id(report.symbol);
        let order = self.open.get_mut(&key)?;
        let before = symbol.as_ref().map(|symbol| held_for(order, symbol));
        let change = order.apply(reported, symbol.as_deref())?;
        let order = order.clone();
        if let (Some(symbol), Some((currency, before))) = (&symbol, before) {
            let after = held_for(&order, symbol).1;
            self.note_move((report.command, currency, after - before));
        }
        if let Some(fill) = change.fill {
            self.keep_fill(fill);
        }
        if !order.status.is_open() || report.is_final() {
            self.close(key);
        }
        let reason = match report.kind {
            Execution::Rejected(code) => code.name(),
            _ => "NONE",
        };
        Some(UserEvent::Execution(Box::new(Executed {
            order,
            change,
            symbol: symbol?,
            reason,
            id: reported.number.0,
            time_us: reported.time_us,
        })))
    }

    /// Has an order of unknown execution on its way again, where its first report comes after all.
    fn reopen_unknown(&mut self, key: OrderKey, kind: Execution) -> bool {
        let is_first = match kind {
            Execution::Rejected(code) => !is_of_id(code),
            kind => kind == Execution::New,
        };
        let closed = self.closed.get(&key);
        if !is_first || closed.is_none_or(|order| order.status != Status::Unknown) {
            return false;
        }
        if let Some(mut order) = self.take_closed(key) {
            order.status = Status::Pending;
            self.open.insert(key, order);
        }
        true
    }

    fn take_closed(&mut self, key: OrderKey) -> Option<Order> {
        let order = self.closed.remove(&key)?;
        if let Some(at) = self.by_end.iter().rposition(|other| *other == key) {
            self.by_end.remove(at);
        }
        Some(order)
    }

    /// Forgets a closed order whose id another one has now.
    fn replace_closed(&mut self, key: OrderKey) {
        if let Some(order) = self.take_closed(key) {
            self.forget_name(&order);
        }
    }

    fn close(&mut self, key: OrderKey) {
        let Some(order) = self.open.remove(&key) else {
            return;
        };
        if order.status == Status::Rejected {
            self.forget_name(&order);
            return;
        }
        self.keep_closed(order);
    }

    fn keep_closed(&mut self, order: Order) {
        let key = (order.symbol, order.id);
        // An order by quoteOrderQty may trade once more.
        if self.by_end.len() >= self.kept
            && let Some(oldest) = self.by_end.pop_front()
            && let Some(order) = self.closed.remove(&oldest)
        {
            self.forget_name(&order);
        }
        self.by_end.push_back(key);
        self.closed.insert(key, order);
    }

    pub(crate) fn keep_fill(&mut self, fill: Fill) {
        if self.fills.len() >= self.kept {
            self.fills.pop_front();
        }
        self.fills.push_back(fill);
    }

    /// Returns the first of the parts of a checkpoint that have all of this.
    pub(super) const fn kept_first(&self, user: UserId) -> CheckpointPart {
        CheckpointPart::User {
            user,
            last_report: self.last_report,
            sequence: self.sequence,
        }
    }

    /// Returns the parts after the first.
    pub(super) fn kept(&self) -> Vec<CheckpointPart> {
        let order = |order: &Order, is_open| {
            let key = (order.symbol, order.id);
            let name = (order.symbol, order.client_id.clone());
            CheckpointPart::Order(Box::new(SavedOrder {
                is_open,
                is_newest: self.by_client_id.get(&name) == Some(&key),
                former: self.former.get(&key).map(|former| former.1),
                order: order.clone(),
            }))
        };
        let closed = self.by_end.iter().filter_map(|key| self.closed.get(key));
        let mut parts: Vec<CheckpointPart> = closed.map(|one| order(one, false)).collect();
        parts.extend(self.open.values().map(|one| order(one, true)));
        parts.extend(self.fills.iter().copied().map(CheckpointPart::Fill));
        parts.push(CheckpointPart::UserEnd);
        parts
    }

    /// Returns all parts.
    #[cfg(test)]
    pub(crate) fn parts(&self, user: UserId) -> Vec<CheckpointPart> {
        let first = self.kept_first(user);
        [vec![first], self.kept()].concat()
    }

    /// Begins with what the first part of a checkpoint has.
    pub(crate) const fn begin(&mut self, last_report: Option<ReportNumber>, sequence: i64) {
        (self.last_report, self.sequence) = (last_report, sequence);
    }

    /// Takes an order of a checkpoint.
    pub(crate) fn restore(&mut self, kept: SavedOrder) {
        let SavedOrder { order, former, .. } = kept;
        let key = (order.symbol, order.id);
        if kept.is_newest {
            let name = (order.symbol, order.client_id.clone());
            self.by_client_id.insert(name, key);
        }
        if let Some(former) = former {
            self.former.insert(key, (order.symbol, former));
        }
        match kept.is_open {
            true => drop(self.open.insert(key, order)),
            false => {
                // A checkpoint of before may have an id twice.
                self.take_closed(key);
                self.keep_closed(order);
            }
        }
    }

    /// Returns an order of a symbol by its id, also one that is on its way.
    pub(crate) fn sent(&self, symbol: SymbolId, id: i64) -> Option<&Order> {
        let key = (symbol.0, id);
        self.open.get(&key).or_else(|| self.closed.get(&key))
    }

    /// Returns an order of a symbol by its id.
    pub(crate) fn order(&self, symbol: SymbolId, id: i64) -> Option<&Order> {
        let order = self.sent(symbol, id);
        order.filter(|order| order.status.is_shown())
    }

    /// Returns the newest order of a symbol by its client order id, also one that is on its way.
    pub(crate) fn sent_by_client(&self, symbol: SymbolId, client_id: &str) -> Option<&Order> {
        let key = self.by_client_id.get(&(symbol.0, client_id.to_owned()))?;
        self.sent(symbol, key.1)
    }

    /// Returns whether an order with this client order id is open, or on its way.
    pub(super) fn is_open_client(&self, symbol: SymbolId, client_id: &str) -> bool {
        let key = self.by_client_id.get(&(symbol.0, client_id.to_owned()));
        key.is_some_and(|key| self.open.contains_key(key))
    }

    /// Returns the open orders, of one symbol or of all, by symbol and id.
    pub(crate) fn open(&self, symbol: Option<SymbolId>) -> impl Iterator<Item = &Order> {
        let orders = self.open_or_sent(symbol);
        orders.filter(|order| order.status.is_shown())
    }

    /// Returns the open orders, and those that are on their way, as [`open`](Self::open) does.
    pub(super) fn open_or_sent(&self, symbol: Option<SymbolId>) -> impl Iterator<Item = &Order> {
        let (first, last) = symbol.map_or((i32::MIN, i32::MAX), |symbol| (symbol.0, symbol.0));
        let orders = self.open.range((first, i64::MIN)..=(last, i64::MAX));
        orders.map(|(_, order)| order)
    }

    /// Returns all orders of a symbol from an id on, by id; the last one first with `is_reversed`.
    /// Visits what it gives.
    pub(crate) fn all(
        &self,
        symbol: SymbolId,
        from: i64,
        is_reversed: bool,
    ) -> impl Iterator<Item = &Order> {
        let range = (symbol.0, from)..=(symbol.0, i64::MAX);
        let merged = Merged {
            ranges: [self.open.range(range.clone()), self.closed.range(range)],
            next: [None, None],
            is_reversed,
        };
        merged.filter(|order| order.status.is_shown())
    }

    /// Returns the closed orders that commands from this one on have ended, the last one first,
    /// and those between them of which the execution is unknown.
    fn ended_since(&self, command: u64) -> impl Iterator<Item = &Order> {
        let last = self.by_end.iter().rev();
        let orders = last.filter_map(|key| self.closed.get(key));
        orders.take_while(move |o| o.command >= command || o.status == Status::Unknown)
    }

    /// Returns the orders of a symbol that a command has cancelled, by id. Visits those that it and
    /// later ones have ended.
    pub(crate) fn cancelled(&self, symbol: SymbolId, command: u64) -> Vec<Order> {
        let ended = self.ended_since(command).filter(|o| o.symbol == symbol.0);
        let own = ended.filter(|o| o.command == command && o.status == Status::Canceled);
        let mut cancelled: Vec<Order> = own.cloned().collect();
        cancelled.sort_unstable_by_key(|order| order.id);
        cancelled
    }

    /// Returns the trades of a symbol, by id.
    pub(crate) fn fills(&self, symbol: SymbolId) -> impl DoubleEndedIterator<Item = &Fill> {
        self.fills
            .iter()
            .filter(move |fill| fill.symbol == symbol.0)
    }

    /// Returns the trades of commands from this one on, the last one first.
    pub(crate) fn fills_since(&self, command: u64) -> impl Iterator<Item = &Fill> {
        let last = self.fills.iter().rev();
        last.take_while(move |fill| fill.command >= command)
    }

    fn note_move(&mut self, change: Move) {
        if change.2 == 0 {
            return;
        }
        if self.moves.len() == MOVES_MAX
            && let Some((command, ..)) = self.moves.pop_front()
        {
            self.moved_before = command;
        }
        self.moves.push_back(change);
    }

    /// Returns what is held for open orders before the command with this number, which came lately:
    /// amounts by currency. `None` where too much has changed since.
    pub(crate) fn held(
        &self,
        number: u64,
        symbol_of: impl Fn(SymbolId) -> Option<Arc<Symbol>>,
    ) -> Option<BTreeMap<i32, i128>> {
        if self.moved_before >= number {
            return None;
        }
        let mut held: BTreeMap<i32, i128> = BTreeMap::new();
        for order in self.open(None) {
            if let Some(symbol) = symbol_of(SymbolId(order.symbol)) {
                let (currency, amount) = held_for(order, &symbol);
                *held.entry(currency).or_default() += amount;
            }
        }
        let later = self.moves.iter().rev();
        for (_, currency, amount) in later.take_while(|(command, ..)| *command >= number) {
            *held.entry(*currency).or_default() -= amount;
        }
        Some(held)
    }
}

/// The orders of two ranges of one symbol, by id.
struct Merged<'m> {
    ranges: [btree_map::Range<'m, OrderKey, Order>; 2],
    /// The next order of each range.
    next: [Option<&'m Order>; 2],
    is_reversed: bool,
}

impl<'m> Iterator for Merged<'m> {
    type Item = &'m Order;

    fn next(&mut self) -> Option<&'m Order> {
        for (range, next) in self.ranges.iter_mut().zip(&mut self.next) {
            if next.is_none() {
                let taken = if self.is_reversed {
                    range.next_back()
                } else {
                    range.next()
                };
                *next = taken.map(|(_, order)| order);
            }
        }
        let at = match self.next {
            [Some(open), Some(closed)] => usize::from((open.id > closed.id) != self.is_reversed),
            [None, _] => 1,
            [_, None] => 0,
        };
        self.next[at].take()
    }
}

/// Returns the currency and the amount that is held for an order, once the engine has it.
fn held_for(order: &Order, symbol: &Symbol) -> (i32, i128) {
    let left = match order.status {
        Status::Pending => 0,
        _ => i128::from(order.left()),
    };
    match order.side {
        Action::Ask => (
            symbol.spec.base_currency.0,
            left * i128::from(symbol.spec.base_scale),
        ),
        Action::Bid => (
            symbol.spec.quote_currency.0,
            left * symbol.held_per_lot(order.reserve),
        ),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use thalweg_exchange::execution::{CancelReason, TradeId};
    use thalweg_exchange::risk::TradingLimits;
    use thalweg_exchange::{CurrencyId, FeeUnit, OrderId, RejectReason, SymbolSpec};
    use thalweg_testkit::counting::held;

    use super::super::fields::{Bytes, Writer};
    use super::*;

    const SYMBOL: SymbolId = SymbolId(1);

    fn order(id: i64, command: u64, status: Status) -> Order {
        let key = (UserId(1), SYMBOL.0, id);
        Order {
            status,
            command,
            ..Order::pending(key, format!("o{id}"), (Action::Bid, 5, 6), 1)
        }
    }

    fn symbols() -> Symbols {
        let text = include_str!("../../tests/symbols.toml");
        let symbols = Symbols::parse(Path::new("symbols.toml"), text).expect("it is right");
        let mut spec = SymbolSpec::pair(SYMBOL, CurrencyId(11), CurrencyId(20));
        // A tenth of the value.
        (spec.fee_unit, spec.taker_fee) = (FeeUnit::Millionth, 100_000);
        symbols.add(spec, TradingLimits::NONE);
        symbols
    }

    /// A bid of ten lots, reports on which are applied one by one.
    struct Reports {
        memory: Memory,
        symbols: Symbols,
        number: u64,
        price: i64,
    }

    impl Reports {
        fn new(kept: usize) -> Self {
            let (memory, symbols) = (Memory::new(kept), symbols());
            let (number, price) = (0, 100);
            Self {
                memory,
                symbols,
                number,
                price,
            }
        }

        /// Applies a report of a command about an order of which lots are filled.
        fn apply(
            &mut self,
            command: u64,
            id: i64,
            filled: i64,
            kind: Execution,
        ) -> [Option<UserEvent>; 2] {
            self.number += 1;
            let (lots, trade) = match kind {
                Execution::Rejected(_) | Execution::Cancelled { .. } => (filled, None),
                Execution::Trade { .. } => (10, Some(self.number as i64)),
                _ => (10, None),
            };
            let report = ExecutionReport {
                command,
                owner: UserId(1),
                symbol: SYMBOL,
                order: OrderId(id),
                side: Some(Action::Bid),
                price: self.price,
                left: lots - filled,
                filled,
                kind,
            };
            let reported = UserReport {
                number: ReportNumber(self.number),
                report,
                trade,
                time_us: 1,
                is_auction: false,
            };
            self.memory.apply(&reported, &self.symbols)
        }

        fn trade(
            &mut self,
            command: u64,
            id: i64,
            filled: i64,
            (size, is_maker): (i64, bool),
        ) -> [Option<UserEvent>; 2] {
            let (price, trade) = (self.price, TradeId::default());
            let kind = Execution::Trade {
                id: trade,
                price,
                size,
                is_maker,
            };
            self.apply(command, id, filled, kind)
        }

        fn ids(&self) -> Vec<i64> {
            let all = self.memory.all(SYMBOL, i64::MIN, false);
            all.map(|order| order.id).collect()
        }
    }

    const CANCELLED: Execution = Execution::Cancelled {
        size: 10,
        why: CancelReason::Requested,
    };

    #[test]
    fn an_open_order_stays_where_another_one_with_its_id_is_refused() {
        let mut reports = Reports::new(10);
        reports.apply(1, 7, 0, Execution::New);
        for (command, code) in (2..).zip([
            ResultCode::RiskNsf,
            ResultCode::RiskPriceOutsideBand,
            ResultCode::MatchingRejectedDuplicateId,
            ResultCode::MatchingRejectedFillOrKill,
        ]) {
            reports.apply(command, 7, 0, Execution::Rejected(code));
            let order = reports.memory.order(SYMBOL, 7).expect("it is known");
            assert_eq!((order.status, order.command), (Status::New, 1), "{code:?}");
        }
        reports.trade(9, 7, 4, (4, true));
        let order = reports.memory.order(SYMBOL, 7).expect("it is known");
        assert_eq!((order.status, order.filled), (Status::PartiallyFilled, 4));
        assert_eq!(reports.memory.fills(SYMBOL).count(), 1);
    }

    #[test]
    fn an_order_by_amount_ends_with_the_trade_that_fills_it() {
        let mut reports = Reports::new(10);
        let key = (UserId(1), SYMBOL.0, 7);
        reports.memory.insert(Order {
            quote: 500,
            ..Order::pending(key, "a".to_owned(), (Action::Bid, 100, 0), 1)
        });
        let why = CancelReason::Left(RejectReason::Budget);
        let events = [
            reports.apply(1, 7, 0, Execution::New),
            reports.trade(1, 7, 3, (3, false)),
            // One of another order of the user does not wait for it.
            reports.apply(1, 8, 0, Execution::New),
            reports.trade(1, 7, 5, (2, false)),
            reports.apply(1, 7, 5, Execution::Cancelled { size: 5, why }),
        ];
        let shown = events
            .into_iter()
            .flatten()
            .flatten()
            .map(|event| match event {
                UserEvent::Execution(one) => {
                    let trade = one.change.fill.map_or(0, |fill| fill.lots);
                    (
                        one.order.id,
                        one.change.what,
                        one.order.status.name(),
                        trade,
                    )
                }
                _ => panic!("an execution"),
            });
        let expected = [
            (7, "NEW", "NEW", 0),
            (8, "NEW", "NEW", 0),
            (7, "TRADE", "PARTIALLY_FILLED", 3),
            (7, "TRADE", "FILLED", 2),
        ];
        assert_eq!(shown.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn the_end_of_another_order_leaves_a_held_trade_as_it_was() {
        let mut reports = Reports::new(10);
        for id in [7, 8] {
            let key = (UserId(1), SYMBOL.0, id);
            reports.memory.insert(Order {
                quote: 500,
                ..Order::pending(key, format!("o{id}"), (Action::Bid, 100, 0), 1)
            });
        }
        reports.apply(2, 8, 0, Execution::New);
        reports.trade(2, 8, 5, (5, false));
        reports.apply(1, 7, 0, Execution::New);
        reports.trade(1, 7, 3, (3, false));
        let why = CancelReason::Left(RejectReason::Budget);
        let events = reports.apply(2, 8, 5, Execution::Cancelled { size: 5, why });
        let shown = events.map(|event| match event {
            Some(UserEvent::Execution(one)) => (one.order.id, one.order.status.name()),
            _ => panic!("an execution"),
        });
        assert_eq!(shown, [(7, "PARTIALLY_FILLED"), (8, "FILLED")]);
    }

    #[test]
    fn an_order_has_any_id_that_another_session_gives() {
        let mut reports = Reports::new(10);
        let ids = [i64::MIN, i64::MIN + 1, -1, 0, i64::MAX];
        for (command, id) in (1..).zip(ids) {
            reports.apply(command, id, 0, Execution::New);
        }
        assert_eq!(reports.ids(), ids);
        assert_eq!(reports.memory.sequence, 0);
        assert_eq!(reports.memory.close_unknown(i64::MAX, 1), 0);
    }

    #[test]
    fn an_id_that_is_used_again_is_the_newest_orders_alone() {
        let mut reports = Reports::new(2);
        for (command, id) in (1..).step_by(2).zip([7, 7, 8, 7]) {
            reports.apply(command, id, 0, Execution::New);
            let count = reports.ids().iter().filter(|other| **other == id).count();
            assert_eq!(count, 1);
            reports.apply(command + 1, id, 0, CANCELLED);
        }
        assert_eq!(reports.ids(), [7, 8]);
        let newest = reports.memory.order(SYMBOL, 7).expect("it is kept");
        assert_eq!(
            (newest.command, newest.client_id.as_str()),
            (8, "session-7")
        );
        assert!(reports.memory.sent_by_client(SYMBOL, "session-7").is_some());
        // The one that ended first goes.
        reports.apply(10, 9, 0, Execution::New);
        reports.apply(11, 9, 0, CANCELLED);
        assert_eq!(reports.ids(), [7, 9]);
        assert_eq!(reports.memory.by_end.len(), 2);
    }

    #[test]
    fn the_fee_of_a_taker_that_was_moved_is_that_of_the_command_that_moved_it() {
        let mut reports = Reports::new(10);
        reports.apply(1, 7, 0, Execution::New);
        // 3 lots at 101: 303, of which a tenth is rounded up.
        reports.price = 101;
        reports.trade(1, 7, 3, (3, false));
        reports.apply(2, 7, 3, Execution::Replaced { reduced_by: 0 });
        // 101 and 101: the second is rounded with the first.
        reports.trade(2, 7, 4, (1, false));
        reports.trade(2, 7, 5, (1, false));
        let fees = reports.memory.fills(SYMBOL).map(|fill| fill.fee);
        assert_eq!(fees.collect::<Vec<_>>(), [31, 11, 10]);
    }

    #[test]
    fn money_is_held_at_the_price_of_before_where_an_order_is_moved_down() {
        let mut reports = Reports::new(10);
        reports.apply(1, 7, 0, Execution::New);
        reports.price = 90;
        reports.apply(2, 7, 0, Execution::Replaced { reduced_by: 0 });
        let held = |reports: &Reports| {
            let symbols = &reports.symbols;
            reports.memory.held(3, |id| symbols.by_id(id))
        };
        // 10 lots at 100, and a tenth.
        let expected = Some(BTreeMap::from([(20, 1_100)]));
        assert_eq!(held(&reports), expected);
        let mut again = Reports::new(10);
        for part in reports.memory.kept() {
            let mut bytes = Writer(Vec::new());
            part.encode(&mut bytes);
            let read = CheckpointPart::decode(bytes.0[0], &mut Bytes(&bytes.0[1..]));
            if let CheckpointPart::Order(order) = read.expect("it is whole") {
                again.memory.restore(*order);
            }
        }
        assert_eq!(held(&again), expected);
    }

    fn kept(order: Order, is_open: bool) -> SavedOrder {
        SavedOrder {
            order,
            is_open,
            is_newest: true,
            former: None,
        }
    }

    #[test]
    fn each_claim_has_sequences_that_no_claim_before_can_have_given() {
        let mut memory = Memory::new(10);
        memory.begin_claim(0, || panic!("there is no log of commands on one machine"));
        memory.sequence = 7;
        memory.begin_claim(1, || 5);
        assert_eq!(memory.sequence, 2 * CLAIM_SEQUENCES);
        memory.sequence += 3;
        memory.begin_claim(1, || panic!("it is the same"));
        assert_eq!(memory.sequence, 2 * CLAIM_SEQUENCES + 3);
        // Others were executed, placed at another replica meanwhile.
        memory.begin_claim(5, || 4 * CLAIM_SEQUENCES - 1);
        assert_eq!(memory.sequence, 5 * CLAIM_SEQUENCES);
    }

    #[test]
    fn a_closed_order_takes_0_6_kilobytes_and_a_trade_0_2() {
        let before = held();
        let mut memory = filled();
        let orders = held() - before;
        assert!(orders <= 600 * 10_000, "{orders}");
        for command in 1..=10_000 {
            memory.keep_fill(fill(command, 2));
        }
        let trades = held() - before - orders;
        assert!(trades <= 200 * 10_000, "{trades}");
    }

    fn fill(command: u64, symbol: i32) -> Fill {
        Fill {
            id: command as i64,
            order: 1,
            symbol,
            price: 1,
            lots: 1,
            fee: 0,
            side: Action::Bid,
            is_maker: false,
            time_us: 0,
            command,
        }
    }

    /// Returns a memory of many closed orders, which command 1 and so on have ended.
    fn filled() -> Memory {
        let mut memory = Memory::new(10_000);
        for id in 1..=10_000 {
            memory.restore(kept(order(id, id as u64, Status::Filled), false));
        }
        memory
    }

    #[test]
    fn orders_that_a_command_cancelled_are_found_among_those_that_ended_last() {
        let mut memory = filled();
        memory.restore(kept(order(20_001, 3, Status::Unknown), false));
        let [one, other, later] = [(20_000, 20_000), (7, 20_000), (30_000, 20_001)]
            .map(|(id, command)| order(id, command, Status::Canceled));
        let filled = order(20_002, 20_000, Status::Filled);
        for order in [one, filled, other, later] {
            memory.restore(kept(order, false));
        }
        let ids = |orders: Vec<Order>| orders.iter().map(|o| o.id).collect::<Vec<_>>();
        assert_eq!(ids(memory.cancelled(SYMBOL, 20_000)), [7, 20_000]);
        assert!(memory.cancelled(SymbolId(2), 20_000).is_empty());
        // They and those between are visited, not the 10,000 before.
        assert_eq!(memory.ended_since(20_000).count(), 5);
        assert_eq!(memory.ended_since(20_002).count(), 0);
    }

    #[test]
    fn trades_of_a_command_are_found_among_the_last_ones_of_all_symbols() {
        let mut memory = Memory::new(10_000);
        for command in 1..=10_000 {
            memory.keep_fill(fill(command, 2));
        }
        memory.keep_fill(fill(10_001, SYMBOL.0));
        assert_eq!(memory.fills_since(10_001).count(), 1);
        assert_eq!(memory.fills_since(10_002).count(), 0);
    }

    #[test]
    fn open_and_closed_orders_come_by_id_from_the_end_that_is_asked_for() {
        let mut memory = filled();
        for id in [0, 500_000, 10_001] {
            memory.restore(kept(order(id, 1, Status::New), true));
        }
        memory.restore(kept(order(10_002, 1, Status::Pending), true));
        let ids = |from, is_reversed, count| -> Vec<i64> {
            let all = memory.all(SYMBOL, from, is_reversed);
            all.take(count).map(|order| order.id).collect()
        };
        assert_eq!(ids(0, false, 3), [0, 1, 2]);
        assert_eq!(ids(9_999, false, 9), [9_999, 10_000, 10_001, 500_000]);
        assert_eq!(ids(0, true, 4), [500_000, 10_001, 10_000, 9_999]);
        let mut backwards = ids(0, true, usize::MAX);
        backwards.reverse();
        assert_eq!(backwards, ids(0, false, usize::MAX));
        assert_eq!(backwards.len(), 10_003);
        assert_eq!(memory.open(Some(SymbolId(2))).count(), 0);
        assert_eq!(memory.open(Some(SYMBOL)).count(), 3);
    }
}
