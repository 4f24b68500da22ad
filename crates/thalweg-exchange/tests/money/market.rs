//! A pair and a futures symbol in one currency, and short names.

use thalweg_exchange::{
    AccountSpec, Action, Command, ConditionalOrder, CurrencyId, Events, OrderId, OrderType, Place,
    ResultCode, Rules, State, SymbolId, SymbolSpec, SymbolType, UserId, apply,
};

pub(crate) const BASE: CurrencyId = CurrencyId(10);
pub(crate) const QUOTE: CurrencyId = CurrencyId(20);
pub(crate) const PAIR: SymbolId = SymbolId(1);
pub(crate) const FUTURES: SymbolId = SymbolId(2);

pub(crate) struct Market {
    pub(crate) state: State,
    pub(crate) events: Events,
    transactions: i64,
}

impl Market {
    /// Fees of 10 a lot in the pair, none in futures, a margin of 100 a lot; users 1 to 9 have
    /// nothing.
    pub(crate) fn new(rules: Rules) -> Self {
        let pair = SymbolSpec::pair(PAIR, BASE, QUOTE).with_fees(10, 1);
        let futures = SymbolSpec {
            id: FUTURES,
            symbol_type: SymbolType::Futures,
            taker_fee: 0,
            maker_fee: 0,
            margin_buy: 100,
            margin_sell: 100,
            ..pair
        };
        let mut market = Self {
            state: State::new(rules),
            events: Events::new(),
            transactions: 2_000_000_000,
        };
        market.done(&Command::AddSymbols([pair, futures].into()));
        let users = (1..10).map(|uid| AccountSpec::new(UserId(uid), Vec::new()));
        market.done(&Command::AddAccounts(users.collect()));
        market
    }

    pub(crate) fn run(&mut self, command: &Command) -> ResultCode {
        apply(&mut self.state, command, &mut self.events)
    }

    #[track_caller]
    pub(crate) fn done(&mut self, command: &Command) {
        assert_eq!(self.run(command), ResultCode::Success, "{command:?}");
    }

    pub(crate) fn band(&mut self, symbol: SymbolId, low: i64, high: i64) -> ResultCode {
        self.run(&Command::SetPriceBand { symbol, low, high })
    }

    /// A deposit, or a withdrawal of less than nothing.
    pub(crate) fn pay(&mut self, uid: i64, currency: CurrencyId, amount: i64) -> ResultCode {
        self.transactions += 1;
        self.run(&Command::deposit(
            UserId(uid),
            currency,
            amount,
            self.transactions,
        ))
    }

    pub(crate) fn balance(&self, uid: i64, currency: CurrencyId) -> i64 {
        let balance = self.state.risk.balance(UserId(uid), currency);
        balance.unwrap_or(0)
    }

    /// The most that a user can withdraw now.
    pub(crate) fn withdrawable(&self, uid: i64, currency: CurrencyId) -> i64 {
        let can = |amount: i64| {
            let command = Command::deposit(UserId(uid), currency, -amount, i64::MAX);
            let mut state = self.state.clone();
            apply(&mut state, &command, &mut Events::new()) == ResultCode::Success
        };
        let (mut least, mut above) = (0, i64::MAX);
        while above - least > 1 {
            let middle = least + (above - least) / 2;
            if can(middle) {
                least = middle;
            } else {
                above = middle;
            }
        }
        least
    }
}

pub(crate) fn order(
    uid: i64,
    id: i64,
    symbol: SymbolId,
    action: Action,
    price: i64,
    size: i64,
) -> Place {
    Place::limit((UserId(uid), OrderId(id)), symbol, action, (price, size))
}

pub(crate) fn buy(uid: i64, id: i64, symbol: SymbolId, price: i64, size: i64) -> Command {
    Command::Place(order(uid, id, symbol, Action::Bid, price, size))
}

pub(crate) fn sell(uid: i64, id: i64, symbol: SymbolId, price: i64, size: i64) -> Command {
    Command::Place(order(uid, id, symbol, Action::Ask, price, size))
}

pub(crate) fn of_type(command: &Command, order_type: OrderType) -> Command {
    let mut place = *command.place().expect("an order");
    place.order_type = order_type;
    Command::Place(place)
}

pub(crate) fn iceberg(command: &Command, display: i64) -> Command {
    let place = *command.place().expect("an order");
    Command::PlaceConditional(ConditionalOrder::from(place).with_display(display).into())
}

pub(crate) fn moved(uid: i64, id: i64, symbol: SymbolId, price: i64) -> Command {
    Command::move_to(UserId(uid), symbol, OrderId(id), price)
}

pub(crate) fn cancelled(uid: i64, id: i64, symbol: SymbolId) -> Command {
    Command::cancel(UserId(uid), symbol, OrderId(id))
}
