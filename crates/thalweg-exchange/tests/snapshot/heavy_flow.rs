//! Random commands for books that are used much: hundreds of orders, far from each other, which
//! windows move for; auctions that take long; orders that expire together.

use std::sync::Arc;

use thalweg_exchange::{
    AccountSpec, Action, Amend, Command, ConditionalOrder, CurrencyId, OrderFlags, OrderId,
    OrderType, Place, SymbolId, SymbolSpec, SymbolType, UserId, UserLimits,
};
use thalweg_testkit::Random;

const USERS: i64 = 20;
/// Three pairs and a futures symbol: ids of every kind.
const SYMBOLS: [i32; 4] = [7, -3, 70_000, 8];

pub(crate) struct HeavyFlow {
    random: Random,
    at: i64,
    /// Where the market is.
    middle: i64,
}

impl HeavyFlow {
    pub(crate) const fn new(seed: u64) -> Self {
        Self {
            random: Random(seed),
            at: 0,
            middle: 20_000,
        }
    }

    pub(crate) fn below(&mut self, bound: i64) -> i64 {
        self.random.below(bound as u64) as i64
    }

    fn maybe(&mut self, value: i64, one_in: i64) -> Option<i64> {
        (self.below(one_in) == 0).then_some(value)
    }

    fn uid(&mut self) -> UserId {
        UserId(1 + self.below(USERS))
    }

    fn symbol(&mut self) -> SymbolId {
        SymbolId(SYMBOLS[self.below(4) as usize])
    }

    fn order(&mut self) -> (UserId, SymbolId, OrderId) {
        let newer = 1 + self.below(600).min(self.at);
        let id = self.at - newer;
        (UserId(1 + id.rem_euclid(USERS)), self.symbol(), OrderId(id))
    }

    /// Mostly near the market, sometimes far.
    fn price(&mut self) -> i64 {
        let width = match self.below(20) {
            0 => 18_000,
            1..4 => 3_000,
            _ => 40,
        };
        (self.middle + self.below(2 * width) - width).max(1)
    }

    pub(crate) fn next(&mut self) -> Command {
        self.at += 1;
        if self.at % 700 == 0 {
            self.middle += self.below(9_000) - 4_500;
        }
        match self.at {
            1 => Self::symbols(),
            2 => Self::accounts(),
            3 => Command::set_price_band(SymbolId(8), 1, 60_000),
            _ => match self.below(400) {
                0..240 => Command::Place(self.place()),
                240..280 => self.conditional(),
                280..320 => self.moved(),
                320..350 => self.gone(),
                350..370 => self.amended(),
                _ => self.of_the_market(),
            },
        }
    }

    fn symbols() -> Command {
        let pair = |id, (base, quote), fee| SymbolSpec {
            taker_fee: fee,
            maker_fee: fee / 2,
            base_scale: 2,
            ..SymbolSpec::pair(SymbolId(id), CurrencyId(base), CurrencyId(quote))
        };
        let futures = pair(SYMBOLS[3], (1, 2), 5)
            .with_type(SymbolType::Futures)
            .with_margins(100, 90);
        let pairs = [
            pair(SYMBOLS[0], (1, 2), 5),
            pair(SYMBOLS[1], (3, 2), 0),
            pair(SYMBOLS[2], (-4, 1 << 30), 7),
        ];
        Command::AddSymbols(pairs.into_iter().chain([futures]).collect())
    }

    fn accounts() -> Command {
        let account = |uid| AccountSpec {
            uid: UserId(uid),
            balances: [1, 2, 3, -4, 1 << 30]
                .map(|id| (CurrencyId(id), 40_000_000))
                .into(),
        };
        Command::AddAccounts((1..=USERS).map(account).collect())
    }

    fn place(&mut self) -> Place {
        let price = self.price();
        let bid = (price < self.middle) != (self.below(8) == 0);
        let order_type = match self.below(40) {
            0 => OrderType::Ioc,
            1 => OrderType::Fok,
            2 => OrderType::Market,
            _ => OrderType::Gtc,
        };
        let flags = [0, 0, 0, 1, 2, 3, 4, 8, 16][self.below(9) as usize];
        let is_gtc = order_type == OrderType::Gtc;
        Place {
            uid: UserId(1 + self.at.rem_euclid(USERS)),
            symbol: self.symbol(),
            order_id: OrderId(self.at),
            order_type,
            action: if bid { Action::Bid } else { Action::Ask },
            price,
            reserve_price: price + self.below(3),
            size: 1 + self.below(9),
            flags: OrderFlags::from_code(if is_gtc { flags } else { flags & 11 })
                .unwrap_or(OrderFlags::NONE),
        }
    }

    fn conditional(&mut self) -> Command {
        let trigger = self.price();
        // Few times, so that many expire together.
        let till = self.at / 200 + 1 + self.below(4);
        let mut place = self.place();
        place.order_type = OrderType::Gtc;
        let display = 1 + self.below(3);
        Command::PlaceConditional(Arc::new(ConditionalOrder {
            place,
            trigger: self.maybe(trigger, 2),
            display: self.maybe(display, 2),
            good_till: self.maybe(till, 2),
        }))
    }

    fn moved(&mut self) -> Command {
        let (uid, symbol, order_id) = self.order();
        Command::move_to(uid, symbol, order_id, self.price())
    }

    fn gone(&mut self) -> Command {
        let (uid, symbol, order_id) = self.order();
        let by = 1 + self.below(9);
        Command::reduce(uid, symbol, order_id, by)
    }

    fn amended(&mut self) -> Command {
        let (uid, symbol, order_id) = self.order();
        let price = self.price();
        Command::Amend(Arc::new(Amend {
            uid,
            symbol,
            order_id,
            action: [Action::Ask, Action::Bid][self.below(2) as usize],
            reserve_price: price,
            size_before: 1 + self.below(9),
            price,
            size: 1 + self.below(12),
        }))
    }

    fn of_the_market(&mut self) -> Command {
        let (uid, symbol) = (self.uid(), self.symbol());
        match self.below(80) {
            0..4 => Command::StartAuction { symbol },
            4..9 => Command::Uncross {
                symbol,
                reference: None,
            },
            9..30 => Command::Clock {
                time: self.at / 200,
            },
            30..34 => Command::Halt { symbol },
            34..50 => Command::Unhalt { symbol },
            50..54 => Command::SetMarketProtection {
                symbol,
                ticks: self.below(50),
            },
            54 => Command::cancel_all(Some(uid), None),
            55..58 => Command::Disconnect { uid },
            58 => Command::SetPriceBand {
                symbol: SymbolId(8),
                low: 1 + self.below(9_000),
                high: 30_000 + self.below(30_000),
            },
            59..62 => Command::SetLimits {
                uid: Some(uid),
                limits: self.maybe(1, 2).map(|_| UserLimits {
                    open_orders: 400,
                    order_size: 8,
                    ids_once: true,
                }),
            },
            62..70 => Command::deposit(
                uid,
                CurrencyId(2),
                self.below(90_000) - 30_000,
                3_000_000_000 + self.at,
            ),
            _ => Command::Nop,
        }
    }
}
