//! Seeded streams of our own: trade-heavy, large books, many levels, one level, chosen ids. The
//! same on every machine.

mod resting;

use counts::venue::{SYMBOL, behind, place, setup, side};
use thalweg_exchange::book::RestingOrder;
use thalweg_exchange::{
    Action, Command, Events, OrderId, OrderType, ResultCode, Rules, State, SymbolType, UserId,
    apply,
};
use thalweg_measure::random::SplitMix;

use super::flow::{Flow, levels};

pub(super) use self::resting::{IDS, Resting};

/// Makers of a sweep at most.
const SWEEP_MAX: usize = 50;

/// Nine commands in twenty take; each meets 1 to 50 makers, k or more of them with a probability
/// of k^-1.6, and fills the last one in part or whole. The others place, or cancel where much
/// rests. 1,000 users; 20 levels a side, 100 orders each to begin with.
pub(super) fn trading(count: usize) -> Flow {
    Trader::new(false).flow(count)
}

/// Takers, each meeting 1 to 50 makers with equal probability, in blocks of 100; the makers for
/// each block are placed before it, outside of the time.
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
    /// Takers of a block.
    const BLOCK: usize = 100;
    /// Makers of a side before a block: rarely used up.
    const BEFORE_BLOCK: u64 = 2 * (Self::BLOCK * SWEEP_MAX / 4) as u64;

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
        let setup = setup(SymbolType::CurrencyPair, Self::USERS);
        for command in &setup {
            self.apply(command);
        }
        let prefill = (0..2 * Self::RESTING).map(|at| {
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
        let (commands, blocks) = match self.sweeps_only {
            true => self.blocks(count),
            false => ((0..count).map(|_| self.next()).collect(), Vec::new()),
        };
        let book = self.state.matching.book(SYMBOL);
        Flow {
            symbol: SYMBOL,
            setup,
            prefill,
            commands,
            blocks,
            levels: levels(book.expect("the setup added it")),
        }
    }

    /// Makers and takers in turns, and where each of those begins.
    fn blocks(&mut self, count: usize) -> (Vec<Command>, Vec<[usize; 2]>) {
        let mut commands = Vec::new();
        let mut blocks = Vec::new();
        for _ in 0..count / Self::BLOCK {
            for action in [Action::Ask, Action::Bid] {
                let missing = Self::BEFORE_BLOCK.saturating_sub(self.resting(action));
                for _ in 0..missing {
                    let maker = self.maker(action);
                    self.apply(&maker);
                    commands.push(maker);
                }
            }
            let takers = commands.len();
            for _ in 0..Self::BLOCK {
                commands.push(self.next());
            }
            blocks.push([takers, commands.len()]);
        }
        (commands, blocks)
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
            Some(order) => Command::cancel(order.uid, SYMBOL, order.order_id),
            None => self.maker(action),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use thalweg_exchange::Event;

    /// Makers that each command of a flow meets.
    pub(super) fn met(flow: &Flow) -> Vec<usize> {
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
        let flow = sweeps(1_000);
        let met = met(&flow);
        assert_eq!(flow.blocks.len(), 10);
        let mut sum = 0;
        let mut makers = 0;
        for [begin, end] in &flow.blocks {
            assert!(met[makers..*begin].iter().all(|met| *met == 0));
            let takers = &met[*begin..*end];
            assert!(takers.iter().all(|met| (1..=SWEEP_MAX).contains(met)));
            sum += takers.iter().sum::<usize>();
            makers = *end;
        }
        assert_eq!(makers, flow.commands.len());
        assert!((23_000..28_000).contains(&sum), "{sum}");
    }
}
