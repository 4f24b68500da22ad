//! An exchange with one symbol and one account per side, which keeps the commands it was given.

use crate::input::fields::{PriceSize, Row};
use crate::realflow::{RealFlow, Recorded, Remainder};
use crate::report::facts::{Check, Count};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use thalweg_exchange::book::{Book, RestingOrder};
use thalweg_exchange::report::state_text::state_text_hash;
use thalweg_exchange::{
    AccountSpec, Action, Command, CurrencyId, Event, Events, OrderId, OrderType, Place, ResultCode,
    Rules, State, SymbolId, SymbolSpec, UserId, apply,
};

/// The symbol of a recorded market.
pub(crate) const SYMBOL: SymbolId = SymbolId(1);
const BASE: CurrencyId = CurrencyId(1);
const QUOTE: CurrencyId = CurrencyId(2);
/// The initial money of an account: more than any recorded book is worth, and far from the end of
/// the range.
const FUNDS: i64 = i64::MAX / 4;

/// Returns the account that trades for a side.
fn account(action: Action) -> UserId {
    match action {
        Action::Bid => UserId(1),
        Action::Ask => UserId(2),
    }
}

/// A trade that resulted from a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fill {
    pub(crate) price: i64,
    pub(crate) size: i64,
    pub(crate) maker: OrderId,
}

/// The reason why a row of a recording is skipped: it yields no order, or one that the exchange
/// rejects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Skipped {
    /// A row creates an order whose number the recording has used before.
    Repeated,
    /// A new order or a trade has the size 0.
    WithoutSize,
    /// A bid or a trade has the price 0.
    WithoutPrice,
    /// A market order finds no order to trade with.
    MarketWithoutBook,
    /// An order is worth more than an account can hold.
    BeyondFunds,
    /// The exchange rejects the order for another reason.
    Rejected,
}

impl Skipped {
    /// Returns the name of the count in the report.
    fn name(self) -> &'static str {
        match self {
            Skipped::Repeated => "passed_over_repeated_order",
            Skipped::WithoutSize => "passed_over_without_size",
            Skipped::WithoutPrice => "passed_over_without_price",
            Skipped::MarketWithoutBook => "passed_over_market_order_without_book",
            Skipped::BeyondFunds => "passed_over_beyond_funds",
            Skipped::Rejected => "passed_over_rejected",
        }
    }
}

/// The exchange that a recording is put through.
pub(crate) struct Replay {
    state: State,
    events: Events,
    commands: Vec<Command>,
    /// The line that each command was made for, and the current line.
    lines: Vec<u64>,
    line: u64,
    recorded: Recorded,
    /// The time of the current line.
    time_ns: u64,
    /// The last id of an order that is not in the recording. Such ids are negative; recorded ones
    /// never are.
    last_own: i64,
    /// The number of rows that were skipped, by reason, and the line of the first of them.
    skipped: BTreeMap<Skipped, u64>,
    first_skipped: Option<u64>,
}

impl Replay {
    /// Creates an empty book without fees, and two funded accounts.
    pub(crate) fn new(rules: Rules) -> Replay {
        let mut replay = Replay {
            state: State::new(rules),
            events: Events::new(),
            commands: Vec::new(),
            lines: Vec::new(),
            line: 0,
            recorded: Recorded::default(),
            time_ns: 0,
            last_own: 0,
            skipped: BTreeMap::new(),
            first_skipped: None,
        };
        let symbol = SymbolSpec::pair(SYMBOL, BASE, QUOTE);
        let funds = [(Action::Bid, QUOTE), (Action::Ask, BASE)]
            .map(|(action, currency)| AccountSpec::new(account(action), vec![(currency, FUNDS)]));
        replay.send(Command::AddSymbols(Arc::new([symbol])));
        replay.send(Command::AddAccounts(Arc::new(funds)));
        replay
    }

    /// Places an order, or counts its row as skipped. The trades of the order can be read until the
    /// next command or row.
    pub(crate) fn place(
        &mut self,
        order_id: OrderId,
        action: Action,
        order_type: OrderType,
        price: i64,
        size: i64,
    ) {
        let code = self.send(Command::Place(
            Place::limit((account(action), order_id), SYMBOL, action, (price, size))
                .with_type(order_type),
        ));
        match code {
            ResultCode::Success => {}
            ResultCode::RiskNsf | ResultCode::RiskArithmeticOverflow => {
                self.pass_over(Skipped::BeyondFunds);
            }
            _ => self.pass_over(Skipped::Rejected),
        }
    }

    /// Places an order without a price: it trades with the orders that rest on the other side, up
    /// to its size, and its remainder is cancelled. The limit is the worst price that it needs,
    /// because an account must have the money for the whole size at the limit.
    pub(crate) fn take(&mut self, order_id: OrderId, action: Action, size: i64) {
        let (mut limit, mut found) = (None, 0);
        for (price, volume) in self.levels(action.opposite()) {
            limit = Some(price);
            found = volume.saturating_add(found).min(size);
            if found == size {
                break;
            }
        }
        match limit {
            Some(limit) => self.place(order_id, action, OrderType::Ioc, limit, found),
            None => self.pass_over(Skipped::MarketWithoutBook),
        }
    }

    /// Counts a row that yields no order.
    pub(crate) fn pass_over(&mut self, why: Skipped) {
        *self.skipped.entry(why).or_default() += 1;
        self.first_skipped.get_or_insert(self.line);
    }

    /// Rests volume that no known order explains, under an id of its own, and returns that id.
    fn rest_anonymous(&mut self, action: Action, price: i64, size: i64) -> OrderId {
        let order = self.own_order();
        self.place(order, action, OrderType::Gtc, price, size);
        order
    }

    /// Returns an id that no recorded order has.
    pub(crate) fn own_order(&mut self) -> OrderId {
        self.last_own -= 1;
        OrderId(self.last_own)
    }

    /// Returns a resting order, of the buyers' account or the sellers'.
    fn order(&self, order_id: OrderId) -> Option<RestingOrder> {
        let book = self.book()?;
        let mut sides = [Action::Ask, Action::Bid].into_iter();
        sides.find_map(|side| book.order(account(side), order_id))
    }

    /// Takes up to `lots` off an order, and returns the number of lots: 0 if the order does not
    /// rest.
    pub(crate) fn reduce(&mut self, order_id: OrderId, lots: i64) -> i64 {
        let Some(order) = self.order(order_id) else {
            return 0;
        };
        let left = order.size - order.filled;
        let (uid, symbol) = (account(order.action), SYMBOL);
        if lots <= 0 {
            return 0;
        }
        let command = match lots < left {
            true => Command::reduce(uid, symbol, order_id, lots),
            false => Command::cancel(uid, symbol, order_id),
        };
        self.send(command);
        lots.min(left)
    }

    /// Lowers the remainder of an order to `left`. An order that has less or is gone does not
    /// change.
    pub(crate) fn lower(&mut self, order_id: OrderId, left: i64) {
        if let Some(order) = self.order(order_id) {
            self.reduce(order_id, order.size - order.filled - left);
        }
    }

    /// Returns the trades of the last command.
    pub(crate) fn trades(&self) -> impl Iterator<Item = Fill> + '_ {
        self.events.into_iter().filter_map(|event| match *event {
            Event::Trade {
                price,
                size,
                maker_order: maker,
                ..
            } => Some(Fill { price, size, maker }),
            _ => None,
        })
    }

    /// Returns the levels of a side, the best first.
    pub(crate) fn levels(&self, action: Action) -> impl Iterator<Item = PriceSize> + '_ {
        let levels = self.book().map(|book| book.levels(action, usize::MAX));
        levels
            .into_iter()
            .flatten()
            .map(|level| (level.price, level.volume))
    }

    /// Returns the best levels of both sides.
    pub(crate) fn row(&self, levels: usize) -> Row {
        Row {
            bids: self.levels(Action::Bid).take(levels).collect(),
            asks: self.levels(Action::Ask).take(levels).collect(),
        }
    }

    /// Returns whether an order of this side and price would trade at once.
    pub(crate) fn crosses(&self, action: Action, price: i64) -> bool {
        let best = self.levels(action.opposite()).next();
        best.is_some_and(|(best, _)| match action {
            Action::Bid => best <= price,
            Action::Ask => best >= price,
        })
    }

    /// Returns the orders of a level, the youngest first.
    fn orders_youngest_first(&self, action: Action, price: i64) -> Vec<OrderId> {
        let orders = self.book().map(|book| book.orders(action));
        let mut found: Vec<OrderId> = orders
            .into_iter()
            .flatten()
            .filter(|order| order.price == price)
            .map(|order| order.order_id)
            .collect();
        found.reverse();
        found
    }

    /// Sets the line that the commands from now on are made for.
    pub(crate) fn at(&mut self, line: u64) {
        self.line = line;
        self.events.clear();
    }

    /// Sets the time of the current line; times never go back.
    pub(crate) fn set_time(&mut self, time_ns: u64) {
        self.time_ns = self.time_ns.max(time_ns);
    }

    /// Notes what is left of a recorded order by now, after a message about it.
    pub(crate) fn note_remainder(&mut self, order_id: OrderId, action: Action) {
        let left = self
            .order(order_id)
            .map_or(0, |order| order.size - order.filled);
        self.recorded.remainders.push(Remainder {
            after_commands: self.commands.len(),
            time_ns: self.time_ns,
            uid: account(action),
            order_id,
            left,
        });
    }

    /// Returns the commands that were given, and the state they led to.
    pub(crate) fn finish(self, mut check: Check) -> RealFlow {
        let hash = state_text_hash(&self.state).hash;
        let skipped = self.skipped.iter();
        check
            .counts
            .extend(skipped.map(|(why, rows)| Count::new(why.name(), *rows)));
        RealFlow {
            commands: self.commands,
            lines: self.lines,
            recorded: self.recorded,
            check,
            state_hash: hash,
            passed_over: self
                .first_skipped
                .map(|line| (self.skipped.values().sum(), line)),
        }
    }

    fn book(&self) -> Option<&Book> {
        self.state.matching.book(SYMBOL)
    }

    fn send(&mut self, command: Command) -> ResultCode {
        let code = apply(&mut self.state, &command, &mut self.events);
        self.commands.push(command);
        self.lines.push(self.line);
        self.recorded.times_ns.push(self.time_ns);
        code
    }
}

/// The degree to which a recorded row is trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trust {
    /// The row may be some messages early or late: only anonymous orders follow it.
    Loose,
    /// The row is the state after exactly this message. Known orders that the row has no room for
    /// left while they were out of view, and are removed too, the youngest first.
    Exact,
}

/// The anonymous orders of one book.
#[derive(Debug, Default)]
pub(crate) struct Unknown {
    /// Anonymous orders of each level, oldest first.
    levels: BTreeMap<(Action, i64), Vec<OrderId>>,
    all: BTreeSet<OrderId>,
    /// The number of levels that gained anonymous volume.
    learnt: u64,
    /// The number of levels whose anonymous volume was lowered to the recorded volume.
    lowered: u64,
    /// The number of known orders that were lowered or removed because a row has no room for them.
    pub(crate) corrected: u64,
}

impl Unknown {
    /// Returns whether an order stands for volume older than the recording.
    pub(crate) fn is_anonymous(&self, order: OrderId) -> bool {
        self.all.contains(&order)
    }

    /// Returns how many levels were learnt and lowered.
    pub(crate) fn level_counts(&self) -> [Count; 2] {
        [
            Count::new("levels_learnt", self.learnt),
            Count::new("levels_lowered", self.lowered),
        ]
    }

    /// Takes lots off the anonymous orders of a level, the oldest first, and returns how many were
    /// taken.
    pub(crate) fn take(
        &mut self,
        replay: &mut Replay,
        action: Action,
        price: i64,
        lots: i64,
    ) -> i64 {
        let mut wanted = lots;
        for &order in self.levels.get(&(action, price)).into_iter().flatten() {
            wanted -= replay.reduce(order, wanted);
        }
        lots - wanted
    }

    /// Sets the anonymous volume of every level in view to the volume that the row leaves
    /// unexplained. Volume that would trade at once is not learnt: the sides of a loose row may be
    /// apart.
    pub(crate) fn learn(&mut self, replay: &mut Replay, row: &Row, trust: Trust) {
        for action in [Action::Bid, Action::Ask] {
            let recorded = side(row, action);
            let Some(&(worst, _)) = recorded.last() else {
                continue;
            };
            let recorded: BTreeMap<i64, i64> = recorded.iter().copied().collect();
            let mut ours: BTreeMap<i64, i64> = replay
                .levels(action)
                .take_while(|&(price, _)| !is_worse(action, price, worst))
                .collect();
            for &price in recorded.keys() {
                ours.entry(price).or_insert(0);
            }
            for (price, size) in ours {
                let wanted = recorded.get(&price).copied().unwrap_or(0);
                self.adjust(replay, action, price, wanted - size, trust);
            }
        }
    }

    fn adjust(&mut self, replay: &mut Replay, action: Action, price: i64, by: i64, trust: Trust) {
        if by > 0 {
            if replay.crosses(action, price) {
                return;
            }
            let order = replay.rest_anonymous(action, price, by);
            self.levels.entry((action, price)).or_default().push(order);
            self.all.insert(order);
            self.learnt += 1;
        } else if by < 0 {
            let taken = self.take(replay, action, price, -by);
            self.lowered += u64::from(taken > 0);
            let mut over = -by - taken;
            if trust == Trust::Exact && over > 0 {
                for order in replay.orders_youngest_first(action, price) {
                    let gone = replay.reduce(order, over);
                    over -= gone;
                    self.corrected += u64::from(gone > 0);
                }
            }
        }
    }
}

/// Returns the levels of one side of a row.
pub(crate) fn side(row: &Row, action: Action) -> &[PriceSize] {
    match action {
        Action::Bid => &row.bids,
        Action::Ask => &row.asks,
    }
}

/// Returns whether a price lies deeper in its book than another.
fn is_worse(action: Action, price: i64, than: i64) -> bool {
    match action {
        Action::Bid => price < than,
        Action::Ask => price > than,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ORDER: OrderId = OrderId(7);

    fn desk_with(left: i64) -> Replay {
        let mut replay = Replay::new(Rules::default());
        replay.place(ORDER, Action::Bid, OrderType::Gtc, 100, left);
        replay
    }

    #[test]
    fn lowering_never_raises() {
        let mut replay = desk_with(10);
        replay.lower(ORDER, 12);
        assert_eq!(replay.row(1).bids, [(100, 10)]);
        replay.lower(ORDER, 4);
        assert_eq!(replay.row(1).bids, [(100, 4)]);
        replay.lower(ORDER, 0);
        replay.lower(ORDER, 0);
        assert!(replay.row(1).bids.is_empty());
    }

    #[test]
    fn reducing_says_how_much_it_was() {
        let mut replay = desk_with(10);
        assert_eq!(replay.reduce(ORDER, 3), 3);
        assert_eq!(replay.reduce(ORDER, 30), 7);
        assert_eq!(replay.reduce(ORDER, 1), 0);
        assert_eq!(replay.reduce(OrderId(99), 1), 0);
    }

    #[test]
    fn trades_are_those_of_the_last_command() {
        let mut replay = desk_with(10);
        let taker = replay.own_order();
        replay.place(taker, Action::Ask, OrderType::Ioc, 99, 4);
        let fills: Vec<Fill> = replay.trades().collect();
        assert_eq!(
            fills,
            [Fill {
                price: 100,
                size: 4,
                maker: ORDER
            }]
        );
        replay.lower(ORDER, 1);
        assert_eq!(replay.trades().count(), 0);
        assert!(replay.crosses(Action::Ask, 100) && !replay.crosses(Action::Ask, 101));
    }

    #[test]
    fn what_is_rejected_is_counted_by_its_reason() {
        let mut replay = desk_with(10);
        for line in [3, 4] {
            replay.at(line);
            replay.place(
                OrderId(line as i64),
                Action::Bid,
                OrderType::Gtc,
                i64::MAX / 8,
                9,
            );
        }
        replay.at(5);
        replay.place(ORDER, Action::Bid, OrderType::Gtc, 100, 1);
        let flow = replay.finish(Check::default());
        assert_eq!(flow.count("passed_over_beyond_funds"), 2);
        assert_eq!(flow.count("passed_over_rejected"), 1);
        assert_eq!(flow.passed_over, Some((3, 3)));
    }

    #[test]
    fn an_order_without_a_price_takes_what_rests() {
        let mut replay = desk_with(10);
        replay.place(OrderId(8), Action::Bid, OrderType::Gtc, 50, 5);
        for (size, best) in [(12, Some((50, 3))), (9, None)] {
            replay.at(1);
            replay.take(OrderId(size), Action::Ask, size);
            assert_eq!(replay.levels(Action::Bid).next(), best);
        }
        replay.take(OrderId(99), Action::Ask, 1);
        let flow = replay.finish(Check::default());
        assert_eq!(flow.count("passed_over_market_order_without_book"), 1);
    }

    #[test]
    fn the_commands_lead_to_the_same_state() {
        let mut replay = desk_with(10);
        replay.place(ORDER, Action::Bid, OrderType::Gtc, i64::MAX / 8, 9);
        replay.rest_anonymous(Action::Ask, 105, 3);
        replay.reduce(ORDER, 4);
        let flow = replay.finish(Check::default());
        let (commands, hash) = (flow.commands, flow.state_hash);
        let (mut state, mut events) = (State::default(), Events::new());
        for command in &commands {
            apply(&mut state, command, &mut events);
        }
        assert_eq!(state_text_hash(&state).hash, hash);
        assert_eq!(commands.len(), 6);
    }
}
