//! Books of orders that rest, and commands that never trade.

use std::collections::BTreeMap;

use counts::venue::{SYMBOL, behind, place, setup, side};
use thalweg_exchange::book::Level;
use thalweg_exchange::{Action, Command, OrderId, Place, SymbolType, UserId};
use thalweg_measure::random::SplitMix;

use super::super::flow::{Flow, Levels};

/// Ids of orders: the n-th order's.
pub(in super::super) type Ids = fn(u64) -> i64;

/// How ids may be chosen, each against another weakness of a table that does not mix them well.
pub(in super::super) const IDS: [(&str, Ids); 5] = [
    ("random", |n| SplitMix::new(n).next_u64() as i64),
    ("sequential", |n| n as i64),
    ("multiples_of_2^40", |n| (n << 40) as i64),
    ("equal_low_bits", |n| (n << 20 | 0xA_BCDE) as i64),
    ("products_in_sequence", |n| n.wrapping_mul(INVERSE) as i64),
];

/// The factor that tables hash with who multiply and take the high bits: 2^64 over the golden
/// ratio.
const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;
/// Times [`FACTOR`] it is 1, so that the products of the ids above are small: no high bits.
const INVERSE: u64 = {
    let mut inverse = FACTOR;
    let mut round = 0;
    // Each round doubles the bits that are right, from three.
    while round < 5 {
        inverse = inverse.wrapping_mul(2_u64.wrapping_sub(FACTOR.wrapping_mul(inverse)));
        round += 1;
    }
    inverse
};

/// A book of orders that rest, and commands on random ones of them that never trade.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct Resting {
    pub(in super::super) orders: usize,
    pub(in super::super) users: i64,
    /// Levels of each side.
    pub(in super::super) levels: i64,
    pub(in super::super) ids: Ids,
    /// Of a hundred commands so many are moves, and so many reduce; the others place and cancel.
    pub(in super::super) moves: u64,
    pub(in super::super) reduces: u64,
}

impl Resting {
    /// Orders in sequence, with the load generator's share of moves.
    pub(in super::super) const fn plain(orders: usize, users: i64, levels: i64) -> Self {
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
    pub(in super::super) fn flow(self, count: usize) -> Flow {
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
            setup: setup(SymbolType::CurrencyPair, self.users),
            prefill,
            commands,
            blocks: Vec::new(),
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
            Command::move_to(uid, symbol, order_id, price)
        } else if roll < moves + reduces && self.resting[at].size > 1 {
            self.resting[at].size -= 1;
            Command::reduce(uid, symbol, order_id, 1)
        } else {
            self.resting.swap_remove(at);
            Command::cancel(uid, symbol, order_id)
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
    use super::super::tests::met;
    use super::*;

    #[test]
    fn what_rests_is_kept_count_of_whatever_the_ids() {
        assert_eq!(FACTOR.wrapping_mul(INVERSE), 1);
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
