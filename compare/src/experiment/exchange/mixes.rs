//! Seeded streams of our own: trade-heavy, large books, many levels, one level, chosen ids. The
//! same on every machine.

use std::collections::BTreeMap;

use thalweg_exchange::book::{Level, RestingOrder};
use thalweg_exchange::{
    AccountSpec, Action, Command, CurrencyId, Events, OrderId, OrderType, Place, ResultCode, Rules,
    State, SymbolId, SymbolSpec, SymbolType, UserId, apply,
};
use thalweg_measure::random::SplitMix;

use super::flow::{Flow, Levels, levels};

const SYMBOL: SymbolId = SymbolId(7);
const BASE: CurrencyId = CurrencyId(1);
const QUOTE: CurrencyId = CurrencyId(2);
/// The best ask begins right above it.
const MIDDLE: i64 = 1_000_000;
/// How far above its price a bid's money is held for.
const RESERVE: i64 = 1_000_000;

/// Makers of a sweep at most.
const SWEEP_MAX: usize = 50;

fn setup(users: i64) -> Vec<Command> {
    let symbol = SymbolSpec {
        id: SYMBOL,
        symbol_type: SymbolType::CurrencyPair,
        base_currency: BASE,
        quote_currency: QUOTE,
        base_scale: 10,
        quote_scale: 10,
        taker_fee: 5,
        maker_fee: 3,
        ..SymbolSpec::default()
    };
    let each = i64::MAX / (users + 1);
    let account = |uid| AccountSpec {
        uid: UserId(uid),
        balances: vec![(BASE, each), (QUOTE, each)],
    };
    let accounts: Vec<AccountSpec> = (1..=users).map(account).collect();
    vec![
        Command::AddSymbols([symbol].into()),
        Command::AddAccounts(accounts.into()),
    ]
}

fn place(order_id: OrderId, uid: UserId, action: Action, (price, size): (i64, i64)) -> Place {
    Place {
        uid,
        symbol: SYMBOL,
        order_id,
        order_type: OrderType::Gtc,
        action,
        price,
        reserve_price: if action == Action::Bid {
            MIDDLE + RESERVE
        } else {
            0
        },
        size,
        flags: thalweg_exchange::OrderFlags::NONE,
    }
}

fn side(random: &mut SplitMix) -> Action {
    if random.below(2) == 0 {
        Action::Ask
    } else {
        Action::Bid
    }
}

/// A price `distance` levels from the middle, from 1.
fn behind(action: Action, distance: i64) -> i64 {
    match action {
        Action::Ask => MIDDLE + distance,
        Action::Bid => MIDDLE + 1 - distance,
    }
}

/// Nine commands in twenty take; each meets 1 to 50 makers, k or more of them with a probability
/// of k^-1.6, and fills the last one in part or whole. The others place, or cancel where much
/// rests. 1,000 users; 20 levels a side, 100 orders each to begin with.
pub(super) fn trading(count: usize) -> Flow {
    Trader::new(false).flow(count)
}

/// Takers alone, each meeting 1 to 50 makers with equal probability, on a book of makers that
/// were all placed before.
pub(super) fn sweeps(count: usize) -> Flow {
    Trader::new(true).flow(count)
}

/// Executes what it invents, so that it knows which makers a taker will meet.
struct Trader {
    state: State,
    events: Events,
    random: SplitMix,
    next_id: i64,
    sweeps_only: bool,
}

impl Trader {
    const USERS: i64 = 1_000;
    const LEVELS: i64 = 20;
    const RESTING: u64 = 2_000;

    fn new(sweeps_only: bool) -> Self {
        Self {
            state: State::new(Rules::default()),
            events: Events::new(),
            random: SplitMix::new(4),
            next_id: 0,
            sweeps_only,
        }
    }

    fn flow(mut self, count: usize) -> Flow {
        let setup = setup(Self::USERS);
        for command in &setup {
            self.apply(command);
        }
        let makers = match self.sweeps_only {
            true => (count as u64) * (SWEEP_MAX as u64 + 10),
            false => 2 * Self::RESTING,
        };
        let prefill = (0..makers).map(|at| {
            let action = if at % 2 == 0 {
                Action::Ask
            } else {
                Action::Bid
            };
            let maker = self.maker(action);
            self.apply(&maker);
            maker
        });
        let prefill = prefill.collect();
        let commands = (0..count).map(|_| self.next()).collect();
        let book = self.state.matching.book(SYMBOL);
        Flow {
            symbol: SYMBOL,
            futures: false,
            setup,
            prefill,
            commands,
            levels: levels(book.expect("the setup added it")),
        }
    }

    fn apply(&mut self, command: &Command) {
        let code = apply(&mut self.state, command, &mut self.events);
        assert_eq!(code, ResultCode::Success, "wrong result of {command:?}");
    }

    fn new_order(&mut self) -> (OrderId, UserId) {
        self.next_id += 1;
        let uid = 1 + self.random.below(Self::USERS as u64) as i64;
        (OrderId(self.next_id), UserId(uid))
    }

    fn maker(&mut self, action: Action) -> Command {
        let (order_id, uid) = self.new_order();
        let distance = 1 + self.random.below(Self::LEVELS as u64) as i64;
        let size = 1 + self.random.below(20) as i64;
        Command::Place(place(
            order_id,
            uid,
            action,
            (behind(action, distance), size),
        ))
    }

    fn next(&mut self) -> Command {
        let action = side(&mut self.random);
        let roll = self.random.below(100);
        let command = if roll < 45 || self.sweeps_only {
            self.taker(action)
        } else if roll < 96 || self.resting(action) < Self::RESTING {
            self.maker(action)
        } else {
            self.cancel(action)
        };
        self.apply(&command);
        command
    }

    fn resting(&self, action: Action) -> u64 {
        let book = self.state.matching.book(SYMBOL);
        let book = book.expect("the setup added it");
        let levels = book.levels(action, usize::MAX);
        levels.map(|level| level.orders).sum()
    }

    /// Takes from the side of makers `action`.
    fn taker(&mut self, action: Action) -> Command {
        let makers = match self.sweeps_only {
            true => 1 + self.random.below(SWEEP_MAX as u64) as usize,
            false => (self.random.unit().powf(-1.0 / 1.6) as usize).clamp(1, SWEEP_MAX),
        };
        let book = self.state.matching.book(SYMBOL);
        let book = book.expect("the setup added it");
        let met: Vec<RestingOrder> = book.orders(action).take(makers).collect();
        let Some((last, before)) = met.split_last() else {
            return self.maker(action);
        };
        let left = |order: &RestingOrder| order.size - order.filled;
        let whole: i64 = before.iter().map(left).sum();
        let part = 1 + self.random.below(left(last) as u64) as i64;
        let (order_id, uid) = self.new_order();
        let terms = (last.price, whole + part);
        let mut taker = place(order_id, uid, action.opposite(), terms);
        if self.random.below(2) == 0 {
            taker.order_type = OrderType::Ioc;
        }
        Command::Place(taker)
    }

    fn cancel(&mut self, action: Action) -> Command {
        let at = self.random.below(64) as usize;
        let book = self.state.matching.book(SYMBOL);
        let order = book.and_then(|book| book.orders(action).nth(at));
        match order {
            Some(order) => Command::Cancel {
                uid: order.uid,
                symbol: SYMBOL,
                order_id: order.order_id,
            },
            None => self.maker(action),
        }
    }
}

/// Ids of orders: the n-th order's.
pub(super) type Ids = fn(u64) -> i64;

/// How ids may be chosen, each against another weakness of a table that does not mix them well.
pub(super) const IDS: [(&str, Ids); 4] = [
    ("random", |n| SplitMix::new(n).next_u64() as i64),
    ("sequential", |n| n as i64),
    ("multiples_of_2^40", |n| (n << 40) as i64),
    ("equal_low_bits", |n| (n << 20 | 0xA_BCDE) as i64),
];

/// A book of orders that rest, and commands on random ones of them that never trade.
#[derive(Debug, Clone, Copy)]
pub(super) struct Resting {
    pub(super) orders: usize,
    pub(super) users: i64,
    /// Levels of each side.
    pub(super) levels: i64,
    pub(super) ids: Ids,
    /// Of a hundred commands so many are moves, and so many reduce; the others place and cancel.
    pub(super) moves: u64,
    pub(super) reduces: u64,
}

impl Resting {
    /// Orders in sequence, with the load generator's share of moves.
    pub(super) const fn plain(orders: usize, users: i64, levels: i64) -> Self {
        Self {
            orders,
            users,
            levels,
            ids: IDS[1].1,
            moves: 70,
            reduces: 8,
        }
    }

    /// The stream.
    pub(super) fn flow(self, count: usize) -> Flow {
        let mut keeper = Keeper {
            shape: self,
            random: SplitMix::new(11),
            placed: 0,
            resting: Vec::with_capacity(self.orders),
        };
        let prefill = (0..self.orders).map(|_| keeper.place()).collect();
        let commands = (0..count).map(|_| keeper.next()).collect();
        Flow {
            symbol: SYMBOL,
            futures: false,
            setup: setup(self.users),
            prefill,
            commands,
            levels: keeper.levels(),
        }
    }
}

/// Knows what rests, without an engine.
struct Keeper {
    shape: Resting,
    random: SplitMix,
    placed: u64,
    resting: Vec<Place>,
}

impl Keeper {
    /// A bid of so many lots holds 2 * 10^10; one of 100,000 users has 9 * 10^13.
    const SIZE_MAX: u64 = 1_000;

    fn price(&mut self, action: Action) -> i64 {
        behind(
            action,
            1 + self.random.below(self.shape.levels as u64) as i64,
        )
    }

    fn place(&mut self) -> Command {
        let action = side(&mut self.random);
        let uid = 1 + self.random.below(self.shape.users as u64) as i64;
        let size = 1 + self.random.below(Self::SIZE_MAX) as i64;
        let order_id = OrderId((self.shape.ids)(self.placed));
        self.placed += 1;
        let price = self.price(action);
        let order = place(order_id, UserId(uid), action, (price, size));
        self.resting.push(order);
        Command::Place(order)
    }

    fn next(&mut self) -> Command {
        let Resting { moves, reduces, .. } = self.shape;
        let roll = self.random.below(100);
        // As many come as go.
        let go = self.resting.len() > self.shape.orders;
        if roll >= moves + reduces && !go {
            return self.place();
        }
        let at = self.random.below(self.resting.len() as u64) as usize;
        let (uid, symbol, order_id) = (self.resting[at].uid, SYMBOL, self.resting[at].order_id);
        if roll < moves {
            let price = self.price(self.resting[at].action);
            self.resting[at].price = price;
            Command::Move {
                uid,
                symbol,
                order_id,
                price,
            }
        } else if roll < moves + reduces && self.resting[at].size > 1 {
            self.resting[at].size -= 1;
            Command::Reduce {
                uid,
                symbol,
                order_id,
                by: 1,
            }
        } else {
            self.resting.swap_remove(at);
            Command::Cancel {
                uid,
                symbol,
                order_id,
            }
        }
    }

    fn levels(&self) -> Levels {
        let mut sides: [BTreeMap<i64, Level>; 2] = Default::default();
        for order in &self.resting {
            let level = sides[order.action as usize].entry(order.price);
            let level = level.or_insert(Level {
                price: order.price,
                volume: 0,
                orders: 0,
            });
            level.volume += order.size;
            level.orders += 1;
        }
        let [asks, bids] = sides;
        let asks = asks.into_values().map(|level| (Action::Ask, level));
        let bids = bids.into_values().rev().map(|level| (Action::Bid, level));
        asks.chain(bids).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use thalweg_exchange::Event;

    /// Makers that each command of a flow meets.
    fn met(flow: &Flow) -> Vec<usize> {
        let mut state = State::new(Rules::default());
        let mut events = Events::new();
        for command in flow.setup.iter().chain(&flow.prefill) {
            assert_eq!(apply(&mut state, command, &mut events), ResultCode::Success);
        }
        let met = flow.commands.iter().map(|command| {
            assert_eq!(apply(&mut state, command, &mut events), ResultCode::Success);
            let trades = events.iter();
            trades
                .filter(|event| matches!(event, Event::Trade { .. }))
                .count()
        });
        let met = met.collect();
        flow.assert_levels(&state, "the flow");
        met
    }

    #[test]
    fn many_trade_and_the_book_lasts() {
        let flow = trading(20_000);
        let met = met(&flow);
        let trading = met.iter().filter(|met| **met > 0).count();
        assert!(trading * 10 > met.len() * 4, "{trading}");
        assert!(met.contains(&1) && *met.iter().max().unwrap() > 40);
        assert_eq!(flow.commands, super::trading(20_000).commands);
        let orders: u64 = flow.levels.iter().map(|(_, level)| level.orders).sum();
        assert!((1_000..10_000).contains(&orders), "{orders}");
    }

    #[test]
    fn sweeps_meet_up_to_50_makers_each() {
        let met = met(&sweeps(1_000));
        assert!(met.iter().all(|met| (1..=SWEEP_MAX).contains(met)));
        let sum: usize = met.iter().sum();
        assert!((23_000..28_000).contains(&sum), "{sum}");
    }

    #[test]
    fn what_rests_is_kept_count_of_whatever_the_ids() {
        for (_, ids) in IDS {
            let shape = Resting {
                ids,
                ..Resting::plain(500, 10, 40)
            };
            let flow = shape.flow(3_000);
            assert!(met(&flow).iter().all(|met| *met == 0));
            let orders: u64 = flow.levels.iter().map(|(_, level)| level.orders).sum();
            assert!((499..=501).contains(&orders));
        }
    }
}
