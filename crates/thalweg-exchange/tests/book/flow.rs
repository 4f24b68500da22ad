//! Random commands for one book.

use proptest::prelude::*;
use thalweg_exchange::{
    Action, Command, ConditionalOrder, OrderId, OrderType, Place, SymbolId, UserId,
};
use thalweg_testkit::Random;

pub(crate) const SYMBOL: SymbolId = SymbolId(1);

/// The distribution of a stream's prices.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Prices {
    /// The middle at first.
    pub(crate) center: i64,
    /// Mostly so far from the middle, at most.
    pub(crate) width: u64,
    /// One command in this number has a price anywhere, or at the limits.
    pub(crate) hostile: u64,
    /// The middle jumps after about this number of commands.
    pub(crate) jump: u64,
    /// How far it jumps, at most.
    pub(crate) far: u64,
}

pub(crate) fn prices() -> impl Strategy<Value = Prices> {
    let center = prop_oneof![
        4 => Just(30_000_i64),
        1 => Just(i64::MAX),
        1 => Just(i64::MIN),
        1 => Just(0),
        1 => any::<i64>(),
    ];
    let width = prop::sample::select(vec![2_u64, 10, 500, 3_000, 9_000, 1 << 40]);
    let hostile = prop::sample::select(vec![u64::MAX, 100, 8]);
    let jump = prop::sample::select(vec![u64::MAX, 200, 30]);
    let far = prop::sample::select(vec![3, 1_000, 5_000, 1 << 33]);
    (center, width, hostile, jump, far).prop_map(|(center, width, hostile, jump, far)| Prices {
        center,
        width,
        hostile,
        jump,
        far,
    })
}

/// A stream of commands; about `rest` orders rest.
#[derive(Debug)]
pub(crate) struct Flow {
    random: Random,
    prices: Prices,
    ids: u64,
    /// Sizes of zero and below, too.
    odd_sizes: bool,
    /// Iceberg orders, too.
    icebergs: bool,
    count: u64,
}

impl Flow {
    pub(crate) fn new(seed: u64, prices: Prices, ids: u64, odd_sizes: bool) -> Self {
        Self {
            random: Random(seed),
            prices,
            ids,
            odd_sizes,
            icebergs: false,
            count: 0,
        }
    }

    /// The stream with a display for a third of the orders that may rest.
    pub(crate) fn with_icebergs(self, icebergs: bool) -> Self {
        Self { icebergs, ..self }
    }

    /// A distance from the middle: small ones more often.
    fn distance(&mut self) -> i64 {
        let width = self.random.below(self.prices.width) + 1;
        self.random.below(width).cast_signed()
    }

    fn price(&mut self, action: Action) -> i64 {
        if self.random.one_in(self.prices.hostile) {
            let limits = [i64::MIN, i64::MIN + 1, -1, 0, 1, i64::MAX - 1, i64::MAX];
            return match self.random.below(10) as usize {
                at if at < limits.len() => limits[at],
                _ => self.random.next_u64().cast_signed(),
            };
        }
        // One in four is on the far side of the middle, and may trade.
        let distance = self.distance();
        let crosses = self.random.one_in(4);
        if (action == Action::Ask) == crosses {
            self.prices.center.saturating_sub(distance)
        } else {
            self.prices.center.saturating_add(distance)
        }
    }

    fn order(&mut self) -> (UserId, OrderId) {
        // The owner follows from the id, but for one in sixteen.
        let id = self.random.below(self.ids);
        let uid = if self.random.one_in(16) { id + 1 } else { id };
        let uid = UserId((uid % 5).cast_signed());
        (
            uid,
            OrderId(id.wrapping_mul(0x1_0001_0001).cast_signed() - 9),
        )
    }

    fn size(&mut self) -> i64 {
        let size = match self.random.below(20) {
            0 => self.random.below(2_000),
            1..4 => self.random.below(100),
            _ => self.random.below(9),
        };
        let least = if self.odd_sizes { -2 } else { 1 };
        size.cast_signed() + least
    }

    fn place(&mut self) -> Command {
        let random = &mut self.random;
        let order_type = match random.below(20) {
            0 => OrderType::Ioc,
            1 => OrderType::IocBudget,
            2 => OrderType::Fok,
            3 => OrderType::FokBudget,
            4 => OrderType::Market,
            _ => OrderType::Gtc,
        };
        let action = if random.one_in(2) {
            Action::Ask
        } else {
            Action::Bid
        };
        let (uid, order_id) = self.order();
        let mut price = self.price(action);
        let size = self.size();
        if order_type.is_budget() && !self.random.one_in(9) {
            // The worst budget of the plain book is counted lot by lot.
            price = price.saturating_mul(size.min(40));
        }
        let over = self
            .random
            .below(self.prices.width.min(1 << 30))
            .cast_signed();
        let place = Place::limit((uid, order_id), SYMBOL, action, (price, size))
            .with_type(order_type)
            .with_reserve(price.saturating_add(over));
        let may_hide = self.icebergs && order_type == OrderType::Gtc && size > 0;
        if may_hide && self.random.one_in(3) {
            let display = Some(1 + self.random.below(6).cast_signed());
            let order = ConditionalOrder {
                display,
                ..place.into()
            };
            return Command::PlaceConditional(order.into());
        }
        Command::Place(place)
    }

    pub(crate) fn next(&mut self) -> Command {
        self.count += 1;
        if self.random.one_in(self.prices.jump) {
            let far = self.random.below(2 * self.prices.far).cast_signed();
            let step = far - self.prices.far.cast_signed();
            self.prices.center = self.prices.center.saturating_add(step);
        }
        let (uid, order_id) = self.order();
        match self.random.below(100) {
            0 => Command::SetMarketProtection {
                symbol: SYMBOL,
                ticks: match self.random.below(4) {
                    0 => i64::MAX,
                    1 => 0,
                    _ => self.distance(),
                },
            },
            1..50 => self.place(),
            50..75 => {
                let action = if self.random.one_in(2) {
                    Action::Ask
                } else {
                    Action::Bid
                };
                Command::move_to(uid, SYMBOL, order_id, self.price(action))
            }
            75..88 => Command::cancel(uid, SYMBOL, order_id),
            _ => Command::reduce(
                uid,
                SYMBOL,
                order_id,
                match self.random.below(30) {
                    0 => i64::MAX,
                    1 => i64::MIN,
                    _ => self.size(),
                },
            ),
        }
    }
}
