//! The order book against the plain one: results, events, levels and orders after every command.

mod flow;
pub(crate) mod plain;

use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use thalweg_exchange::book::{Book, Level, RestingOrder};
use thalweg_exchange::matching::Matching;
use thalweg_exchange::{
    Action, Command, Event, Events, OrderId, OrderType, Place, ResultCode, Rules, SymbolSpec,
    SymbolType, UserId,
};

use self::flow::{Flow, Prices, SYMBOL, prices};
use self::plain::PlainBook;
use thalweg_testkit::Random;

const SIDES: [Action; 2] = [Action::Ask, Action::Bid];

fn spec(symbol_type: SymbolType) -> SymbolSpec {
    SymbolSpec {
        id: SYMBOL,
        symbol_type,
        base_scale: 1,
        quote_scale: 2,
        taker_fee: 7,
        ..SymbolSpec::default()
    }
}

/// Both books, side by side.
struct Pair {
    matching: Matching,
    plain: PlainBook,
    events: Events,
}

impl Pair {
    fn new(spec: SymbolSpec, rules: Rules, capacity: usize) -> Self {
        let mut matching = Matching::with_capacity(rules, capacity);
        let mut events = Events::new();
        let add = Command::AddSymbols([spec].into());
        matching.execute(&add, ResultCode::Success, &mut events);
        Self {
            matching,
            plain: PlainBook::new(spec, rules),
            events,
        }
    }

    fn book(&self) -> &Book {
        self.matching.book(SYMBOL).expect("it was added")
    }

    /// Executes a command in both, and returns what they answer.
    fn answers(&mut self, command: &Command) -> [(ResultCode, Vec<Event>); 2] {
        let checked = match command {
            Command::SetMarketProtection { .. } => ResultCode::Success,
            _ => ResultCode::ValidForMatchingEngine,
        };
        let result = self.matching.execute(command, checked, &mut self.events);
        [(result, self.events.to_vec()), self.plain.execute(command)]
    }

    /// Executes a command in both and compares what they answer.
    fn execute(&mut self, command: &Command) -> ResultCode {
        let [answer, expected] = self.answers(command);
        assert_eq!(answer, expected, "{command:?}");
        let book = self.matching.book(SYMBOL).expect("it was added");
        assert_eq!(book.order_count(), self.plain.order_count(), "{command:?}");
        for side in SIDES {
            let best = self.plain.levels(side).next();
            assert_eq!(book.best(side), best, "{side:?} after {command:?}");
        }
        answer.0
    }

    fn compare_all(&self) {
        for side in SIDES {
            let levels: Vec<Level> = self.book().levels(side, usize::MAX).collect();
            assert_eq!(levels, self.plain.levels(side).collect::<Vec<_>>());
            let orders: Vec<RestingOrder> = self.book().orders(side).collect();
            assert_eq!(orders, self.plain.orders(side).collect::<Vec<_>>());
            for order in orders {
                assert_eq!(self.book().order(order.uid, order.order_id), Some(order));
            }
        }
    }
}

fn rules() -> impl Strategy<Value = Rules> {
    any::<[bool; 6]>().prop_map(|[fok, budget, moved, bound, own, rejected]| Rules {
        fill_fok: fok,
        fill_ioc_budget: budget,
        refuse_moved_ask_under_fee: moved,
        bound_budgets: bound,
        ids_per_user: own,
        refuse_rejected: rejected,
        ..Rules::REFERENCE
    })
}

proptest! {
    #[test]
    fn agrees_with_the_plain_book(
        seed: u64,
        prices in prices(),
        rules in rules(),
        ids in prop::sample::select(vec![6_u64, 40, 2_000]),
        odd_sizes: bool,
        icebergs: bool,
        is_pair: bool,
        capacity in prop::sample::select(vec![0_usize, 1, 1_000]),
        length in 1_usize..600,
    ) {
        let kind = if is_pair { SymbolType::CurrencyPair } else { SymbolType::Futures };
        let mut pair = Pair::new(spec(kind), rules, capacity);
        let odd_sizes = odd_sizes && !rules.fill_ioc_budget;
        let mut flow = Flow::new(seed, prices, ids, odd_sizes).with_icebergs(icebergs);
        for _ in 0..length {
            pair.execute(&flow.next());
            pair.compare_all();
        }
    }
}

/// 40,000 commands, or as many as `THALWEG_BOOK_COMMANDS` says, spread over worlds of every kind,
/// and as many again with iceberg orders.
#[test]
fn a_long_stream_agrees_with_the_plain_book() {
    let commands = std::env::var("THALWEG_BOOK_COMMANDS").map_or(40_000, |text| {
        text.parse::<u64>().expect("a number of commands")
    });
    let worlds = [
        (30_000, 300, u64::MAX, 2_000, 900),
        (30_000, 5_000, 1_000, 500, 4_000),
        (0, 50_000, 50, 5_000, 1 << 20),
        (i64::MAX - 100, 2_000, 100, 300, 9_000),
        (i64::MIN + 5_000, 4_000, u64::MAX, 400, 5_000),
    ];
    // The plain book has no bound of work, which icebergs of many displays would reach.
    let unbounded = Rules {
        bound_work: false,
        ..Rules::MENDED
    };
    let kinds = [(Rules::MENDED, false), (unbounded, true)];
    let worlds = kinds
        .into_iter()
        .flat_map(|kind| worlds.map(|world| (kind, world)));
    for (seed, ((rules, icebergs), world)) in (1..).zip(worlds) {
        let (center, width, hostile, jump, far) = world;
        let prices = Prices {
            center,
            width,
            hostile,
            jump,
            far,
        };
        let mut pair = Pair::new(spec(SymbolType::CurrencyPair), rules, 0);
        let mut flow = Flow::new(seed, prices, 4_000, false).with_icebergs(icebergs);
        let mut seen = BTreeSet::new();
        for count in 0..commands / 5 {
            let result = pair.execute(&flow.next());
            seen.insert(result);
            if count % 512 == 0 {
                pair.compare_all();
            }
        }
        pair.compare_all();
        assert!(pair.book().order_count() > 300, "world {seed} is empty");
        assert!(seen.len() >= 4, "world {seed}: {seen:?}");
    }
}

/// Faults of the plain book with icebergs.
const FAULTS: [&str; 4] = [
    "refilled lots are first",
    "displayed lots go first",
    "a move replenishes nothing",
    "FOK counts displayed lots only",
];

/// Returns how many random streams it takes to find a fault, if it is found.
fn streams_to_find(fault: &'static str, runner: &mut TestRunner) -> Option<usize> {
    let finds = |seed| {
        let prices = prices().new_tree(runner).expect("prices").current();
        let rules = rules().new_tree(runner).expect("rules").current();
        let mut pair = Pair::new(spec(SymbolType::Futures), rules, 0);
        pair.plain.fault = Some(fault);
        let mut flow = Flow::new(seed, prices, 40, false).with_icebergs(true);
        (0..300).any(|_| {
            let [answer, expected] = pair.answers(&flow.next());
            let differs = |side| !pair.book().orders(side).eq(pair.plain.orders(side));
            answer != expected || SIDES.into_iter().any(differs)
        })
    };
    (0..64)
        .map(finds)
        .position(|is_found| is_found)
        .map(|at| at + 1)
}

#[test]
fn a_book_that_handles_icebergs_in_another_way_is_found() {
    for fault in FAULTS {
        let found = streams_to_find(fault, &mut TestRunner::deterministic());
        assert!(found.is_some(), "{fault}");
    }
}

/// Where a book's window has many levels with gaps between them, it leaves them in many steps, and
/// each ends anywhere. Random streams come there seldom, and are elsewhere at once.
#[derive(Debug)]
struct Leaving {
    random: Random,
    side: Action,
    prices: Vec<i64>,
    ids: i64,
}

impl Leaving {
    fn new(seed: u64, side: Action, levels: u64) -> Self {
        let mut random = Random(seed);
        let mut price = 10_000;
        let mut next = || {
            price += 1 + random.below(9).cast_signed();
            price
        };
        let prices = (0..levels).map(|_| next()).collect();
        Self {
            random,
            side,
            prices,
            ids: 0,
        }
    }

    fn rest(&mut self, price: i64) -> Command {
        self.ids += 1;
        rest(self.ids, self.side, price, 2)
    }

    /// Every level, in no order; then prices far from them, which are better, and all that can be
    /// done to any order.
    fn next(&mut self, at: usize) -> Command {
        let levels = self.prices.len();
        if at < levels {
            let other = at + self.random.below((levels - at) as u64) as usize;
            self.prices.swap(at, other);
            return self.rest(self.prices[at]);
        }
        let id = 1 + self.random.below(self.ids.cast_unsigned()).cast_signed();
        let (uid, order_id) = (UserId(id), OrderId(id));
        let price = self.prices[self.random.below(levels as u64) as usize];
        let far = match self.side {
            Action::Ask => 1_000 + self.random.below(50).cast_signed(),
            Action::Bid => 90_000 + self.random.below(50).cast_signed(),
        };
        match self.random.below(12) {
            0..5 => self.rest(far),
            5 => self.rest(price),
            6..9 => Command::cancel(uid, SYMBOL, order_id),
            9 => Command::reduce(uid, SYMBOL, order_id, 1),
            10 => Command::move_to(uid, SYMBOL, order_id, price),
            _ => place(OrderType::Ioc, self.side.opposite(), far, 3),
        }
    }
}

proptest! {
    #[test]
    fn agrees_with_the_plain_book_while_its_window_leaves_levels_with_gaps(
        seed: u64,
        is_bid: bool,
        levels in 65_u64..400,
        length in 1_usize..900,
    ) {
        let side = if is_bid { Action::Bid } else { Action::Ask };
        let mut pair = Pair::new(spec(SymbolType::CurrencyPair), Rules::MENDED, 0);
        let mut leaving = Leaving::new(seed, side, levels);
        for at in 0..levels as usize + length {
            pair.execute(&leaving.next(at));
            if at % 8 == 0 || at % 64 > 60 {
                pair.compare_all();
            }
        }
    }
}

fn place(order_type: OrderType, action: Action, price: i64, size: i64) -> Command {
    Command::Place(
        Place::limit((UserId(1), OrderId(99)), SYMBOL, action, (price, size)).with_type(order_type),
    )
}

fn rest(id: i64, action: Action, price: i64, size: i64) -> Command {
    Command::Place(Place::limit(
        (UserId(id), OrderId(id)),
        SYMBOL,
        action,
        (price, size),
    ))
}

fn with_asks() -> Pair {
    let mut pair = Pair::new(spec(SymbolType::CurrencyPair), Rules::MENDED, 0);
    for (id, price, size) in [(1, 100, 5), (2, 101, 5), (3, 9_000_000, 5)] {
        pair.execute(&rest(id, Action::Ask, price, size));
    }
    pair
}

fn summary(events: &Events) -> Vec<(&'static str, i64, i64)> {
    let short = |event: &Event| match *event {
        Event::Trade { price, size, .. } => ("trade", price, size),
        Event::Reject { price, size, .. } => ("reject", price, size),
        Event::Reduce { price, size, .. } => ("reduce", price, size),
        Event::Removed { price, size, .. } => ("removed", price, size),
        Event::Triggered { price, size, .. } => ("triggered", price, size),
        Event::Uncrossed { price, size, .. } => ("uncrossed", price, size),
        Event::Refilled { size, .. } => ("refilled", 0, size),
    };
    events.iter().map(short).collect()
}

#[test]
fn fill_or_kill_fills_fully_within_its_limit_or_not_at_all() {
    let mut pair = with_asks();
    pair.execute(&place(OrderType::Fok, Action::Bid, 101, 11));
    assert_eq!(summary(&pair.events), [("reject", 101, 11)]);
    pair.execute(&place(OrderType::Fok, Action::Bid, 101, 7));
    assert_eq!(
        summary(&pair.events),
        [("trade", 100, 5), ("trade", 101, 2)]
    );
}

#[test]
fn a_budget_buys_whole_lots_and_the_rest_is_rejected_first() {
    let mut pair = with_asks();
    // 5·100 + 2·101 = 702; one lot more would be 803.
    pair.execute(&place(OrderType::IocBudget, Action::Bid, 802, 9));
    let expected = [("reject", 802, 2), ("trade", 100, 5), ("trade", 101, 2)];
    assert_eq!(summary(&pair.events), expected);
    let is_completed = |event: &Event| {
        matches!(
            event,
            Event::Trade {
                taker_completed: true,
                ..
            }
        )
    };
    assert!(!pair.events.iter().any(is_completed));
    pair.execute(&place(OrderType::IocBudget, Action::Bid, 303, 3));
    assert_eq!(summary(&pair.events), [("trade", 101, 3)]);
    assert!(pair.events.iter().any(is_completed));
}
