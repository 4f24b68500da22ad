//! Random commands that know what rests, so that most of them do something.

use std::sync::Arc;

use thalweg_exchange::{
    AccountSpec, Action, AdjustmentKind, Amend, Command, ConditionalOrder, CurrencyId, FeeUnit,
    OrderFlags, OrderId, OrderType, Place, SymbolId, SymbolSpec, SymbolType, UserId, UserLimits,
};
use thalweg_testkit::Random;

use crate::accounts::auditor::{Auditor, Key};
use crate::accounts::orders::Order;

const USERS: i64 = 5;
/// Base and quote currency of each symbol, from 1: three pairs, then two futures.
const CURRENCIES: [(i32, i32); 5] = [(1, 2), (3, 2), (2, 1), (1, 2), (3, 2)];
const PAIRS: i32 = 3;

/// Commands, one after another.
pub(crate) struct Flow {
    random: Random,
    /// How many there were.
    at: i64,
    /// How large prices, lots, and what they are worth, are.
    scales: [i64; 3],
}

impl Flow {
    pub(crate) fn new(seed: u64) -> Self {
        let large = [1, 1, 1 << 10, 1 << 30];
        Self {
            random: Random(seed),
            at: 0,
            scales: [1, 4, 16]
                .map(|digit| large[(seed / digit % 4) as usize].min(1 << (31 / digit))),
        }
    }

    fn below(&mut self, bound: i64) -> i64 {
        self.random.below(bound as u64) as i64
    }

    fn one_in(&mut self, bound: i64) -> bool {
        self.below(bound) == 0
    }

    fn of<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len() as i64) as usize]
    }

    fn maybe(&mut self, value: i64) -> Option<i64> {
        self.one_in(2).then_some(value)
    }

    fn price(&mut self) -> i64 {
        match self.below(60) {
            0 => self.of(&[-1, 0, 1, 1 << 36, i64::MAX]),
            1 => self.steps(5, 25) + 1,
            _ => self.steps(8, 20),
        }
    }

    /// Returns a random number of price steps.
    fn steps(&mut self, from: i64, to: i64) -> i64 {
        (from + self.below(to - from)) * self.scales[0]
    }

    fn lots(&mut self, most: i64) -> i64 {
        (1 + self.below(most)) * self.scales[1]
    }

    fn size(&mut self) -> i64 {
        match self.below(60) {
            0 => self.of(&[-1, 0, 1 << 25, i64::MAX]),
            1..8 => self.lots(60),
            _ => self.lots(8),
        }
    }

    fn uid(&mut self) -> UserId {
        UserId(1 + self.below(USERS))
    }

    fn symbol(&mut self) -> SymbolId {
        SymbolId(1 + self.below(CURRENCIES.len() as i64) as i32)
    }

    fn currency(&mut self) -> CurrencyId {
        CurrencyId(1 + self.below(3) as i32)
    }

    fn spec(&mut self, id: SymbolId) -> SymbolSpec {
        let is_pair = id.0 <= PAIRS;
        let fee_unit = self.of(&[FeeUnit::PerLot, FeeUnit::Millionth]);
        let taker_fee = match fee_unit {
            FeeUnit::PerLot => self.below(5),
            FeeUnit::Millionth => self.of(&[0, 1, 250, 3_333, 100_000, 1_000_000]),
        };
        let maker_fee = self.below(taker_fee + 1);
        let is_rebate = is_pair && self.one_in(3);
        let (base, quote) = CURRENCIES[id.0 as usize - 1];
        SymbolSpec {
            id,
            symbol_type: match is_pair {
                true => SymbolType::CurrencyPair,
                false => SymbolType::Futures,
            },
            base_currency: CurrencyId(base),
            quote_currency: CurrencyId(quote),
            base_scale: (1 + self.below(3)) * self.scales[2],
            quote_scale: (1 + self.below(3)) * self.scales[2],
            taker_fee,
            maker_fee: if is_rebate { -maker_fee } else { maker_fee },
            margin_buy: self.below(4),
            margin_sell: self.below(4),
            fee_unit,
        }
    }

    fn money(&mut self) -> i64 {
        let money: i64 = self.of(&[60, 500, 2_000, 20_000, 1_000_000]);
        let scales = self.scales.iter();
        scales
            .fold(money, |money, &scale| money.saturating_mul(scale))
            .min(1 << 60)
    }

    /// The next command.
    pub(crate) fn next(&mut self, auditor: &Auditor) -> Command {
        self.at += 1;
        match self.at {
            1 => {
                let ids = (1..=CURRENCIES.len() as i32).map(SymbolId);
                Command::AddSymbols(ids.map(|id| self.spec(id)).collect())
            }
            2 => {
                let money = self.money();
                let balances: Vec<_> = (1..=3).map(|id| (CurrencyId(id), money)).collect();
                let account = |uid| AccountSpec::new(UserId(uid), balances.clone());
                Command::AddAccounts((1..=USERS).map(account).collect())
            }
            3 | 4 => self.band(SymbolId(PAIRS + self.at as i32 - 2)),
            _ => match self.below(200) {
                0..70 => Command::Place(self.place(10)),
                70..100 => self.conditional(),
                100..150 => self.of_an_order(auditor),
                150..163 => self.payment(),
                _ => self.of_the_market(),
            },
        }
    }

    fn band(&mut self, symbol: SymbolId) -> Command {
        let (low, high) = (self.steps(3, 11), self.steps(14, 28));
        Command::SetPriceBand { symbol, low, high }
    }

    fn place(&mut self, types: i64) -> Place {
        let order_type = match self.below(types) {
            type_code @ 0..5 => OrderType::ALL[1 + type_code as usize],
            _ => OrderType::Gtc,
        };
        let (mut price, size) = (self.price(), self.size());
        if order_type.is_budget() && !self.one_in(10) {
            price = price.saturating_mul(size);
        }
        let more = if order_type.is_budget() {
            0
        } else {
            self.below(6)
        };
        let modes = self.of(&[0, 0, 1, 2, 3, 8]);
        let conditions = self.of(&[0, 0, 0, 4, 16]);
        Place {
            uid: self.uid(),
            symbol: self.symbol(),
            order_id: OrderId(self.below(14) + self.at / 100),
            order_type,
            action: self.of(&[Action::Ask, Action::Bid]),
            price,
            reserve_price: price.saturating_add(more),
            size,
            flags: OrderFlags::from_code(modes | conditions).expect("a code"),
        }
    }

    fn conditional(&mut self) -> Command {
        let (trigger, display) = (self.steps(8, 20), self.lots(4));
        let till = self.at / 10 + self.below(20);
        Command::PlaceConditional(Arc::new(ConditionalOrder {
            place: self.place(20),
            trigger: self.maybe(trigger),
            display: self.maybe(display),
            good_till: self.maybe(till),
        }))
    }

    /// Mostly of one that is there.
    fn of_an_order(&mut self, auditor: &Auditor) -> Command {
        let nth = self.below(auditor.orders.len() as i64 + 1) as usize;
        let (uid, symbol, order_id, order) = match auditor.orders.iter().nth(nth) {
            Some((&(uid, symbol, id), &order)) => (uid, symbol, id, order),
            None => {
                let place = self.place(10);
                let Place {
                    uid,
                    symbol,
                    order_id,
                    ..
                } = place;
                (uid, symbol, order_id, Order::of(&place))
            }
        };
        match self.below(50) {
            0..8 => Command::cancel(uid, symbol, order_id),
            8..22 => Command::move_to(uid, symbol, order_id, self.price()),
            22..30 => Command::reduce(uid, symbol, order_id, self.lots(7) - self.scales[1]),
            _ => self.amend((uid, symbol, order_id), order),
        }
    }

    fn amend(&mut self, (uid, symbol, order_id): Key, order: Order) -> Command {
        let size_before = order.left.saturating_add(order.filled);
        let more = self.lots(13) - 5 * self.scales[1];
        let price = self.price();
        Command::Amend(Arc::new(Amend {
            uid,
            symbol,
            order_id,
            action: order.side,
            reserve_price: order.reserve,
            size_before,
            price: self.maybe(price).unwrap_or(order.price),
            size: size_before.saturating_add(more),
        }))
    }

    fn payment(&mut self) -> Command {
        let (uid, currency) = (self.uid(), self.currency());
        // Now and then one that was there already.
        let transaction_id = 2_000_000_000 + self.at - self.below(2);
        let amount = self.below(300) * self.scales[0];
        if self.one_in(4) {
            return Command::PayFees {
                uid,
                currency,
                amount: amount / 10,
                transaction_id,
            };
        }
        Command::Balance {
            uid,
            currency,
            amount: self.maybe(amount).unwrap_or(-amount),
            transaction_id,
            kind: self.of(&[AdjustmentKind::Adjustment, AdjustmentKind::Suspend]),
        }
    }

    fn of_the_market(&mut self) -> Command {
        let (uid, symbol) = (self.uid(), self.symbol());
        let is_wide = self.one_in(3);
        match self.below(38) {
            0..3 => Command::Clock {
                time: self.at / 10 + self.below(3),
            },
            3..7 => self.band(symbol),
            7..9 => Command::SetMarketProtection {
                symbol,
                ticks: self.steps(0, 6),
            },
            9..13 => Command::StartAuction { symbol },
            13..24 => {
                let price = self.steps(8, 20);
                let reference = self.maybe(price);
                Command::Uncross { symbol, reference }
            }
            24 => Command::Halt { symbol },
            25..28 => Command::Unhalt { symbol },
            28 => Command::cancel_all((!is_wide).then_some(uid), self.one_in(2).then_some(symbol)),
            29 => Command::Disconnect { uid },
            30 => Command::SetLimits {
                uid: (!is_wide).then_some(uid),
                limits: self.one_in(2).then(|| UserLimits {
                    open_orders: 3 + self.below(9) as u32,
                    order_size: self.lots(60),
                    ids_once: self.one_in(3),
                }),
            },
            31 => Command::Suspend { uid },
            32 => Command::Resume { uid },
            33 => Command::AddUser { uid },
            34 => Command::RemoveSymbol { symbol },
            35..37 => Command::AddSymbols([self.spec(symbol)].into()),
            _ => Command::Nop,
        }
    }
}
