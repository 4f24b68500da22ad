//! An exchange with one symbol and one account per side, and the commands it was given.

use super::RealFlow;
use crate::input::rows::{PriceSize, Row};
use crate::report::facts::Check;
use std::fmt;
use std::sync::Arc;
use thalweg_exchange::book::{Book, RestingOrder};
use thalweg_exchange::report::state_text::state_hash;
use thalweg_exchange::{
    AccountSpec, Action, Command, CurrencyId, Event, Events, OrderId, OrderType, Place, ResultCode,
    Rules, State, SymbolId, SymbolSpec, UserId, apply,
};

const SYMBOL: SymbolId = SymbolId(1);
const BASE: CurrencyId = CurrencyId(1);
const QUOTE: CurrencyId = CurrencyId(2);
/// More than any recorded book is worth, and far from the end of the range.
const FUNDS: i64 = i64::MAX / 4;

/// The account that trades for a side.
fn account(action: Action) -> UserId {
    match action {
        Action::Bid => UserId(1),
        Action::Ask => UserId(2),
    }
}

/// A trade as it came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fill {
    pub(super) price: i64,
    pub(super) size: i64,
    pub(super) maker: OrderId,
}

/// A recorded order that the exchange would not take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DeskError {
    order: OrderId,
    price: i64,
    size: i64,
    code: ResultCode,
}

impl fmt::Display for DeskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DeskError {
            order,
            price,
            size,
            code,
        } = self;
        write!(
            f,
            "order {order} of size {size} at price {price} is refused with {}: each side has \
             {FUNDS} units of money",
            code.name()
        )
    }
}

impl std::error::Error for DeskError {}

/// The exchange that a recording is put through.
pub(super) struct Desk {
    state: State,
    events: Events,
    commands: Vec<Command>,
    /// The line that each command was made for, and the one that is at hand.
    lines: Vec<u64>,
    line: u64,
    /// Ids of orders that are not in the recording are negative; recorded ones never are.
    last_own: i64,
}

impl Desk {
    /// An empty book without fees, and two funded accounts.
    pub(super) fn new(rules: Rules) -> Desk {
        let mut desk = Desk {
            state: State::new(rules),
            events: Events::new(),
            commands: Vec::new(),
            lines: Vec::new(),
            line: 0,
            last_own: 0,
        };
        let symbol = SymbolSpec::pair(SYMBOL, BASE, QUOTE);
        let funds = [(Action::Bid, QUOTE), (Action::Ask, BASE)]
            .map(|(action, currency)| AccountSpec::new(account(action), vec![(currency, FUNDS)]));
        desk.send(Command::AddSymbols(Arc::new([symbol])));
        desk.send(Command::AddAccounts(Arc::new(funds)));
        desk
    }

    /// A new order; its trades can be asked for until the next command.
    pub(super) fn place(
        &mut self,
        order_id: OrderId,
        action: Action,
        order_type: OrderType,
        price: i64,
        size: i64,
    ) -> Result<(), DeskError> {
        let code = self.send(Command::Place(Place {
            order_type,
            ..Place::limit((account(action), order_id), SYMBOL, action, (price, size))
        }));
        match code {
            ResultCode::Success => Ok(()),
            code => Err(DeskError {
                order: order_id,
                price,
                size,
                code,
            }),
        }
    }

    /// Rests volume that no known order explains, under an id of its own.
    pub(super) fn rest_anonymous(
        &mut self,
        action: Action,
        price: i64,
        size: i64,
    ) -> Result<OrderId, DeskError> {
        let order = self.own_order();
        self.place(order, action, OrderType::Gtc, price, size)?;
        Ok(order)
    }

    /// An id that no recorded order has.
    pub(super) fn own_order(&mut self) -> OrderId {
        self.last_own -= 1;
        OrderId(self.last_own)
    }

    /// A resting order, of the buyers' account or the sellers'.
    fn order(&self, order_id: OrderId) -> Option<RestingOrder> {
        let book = self.book()?;
        let mut sides = [Action::Ask, Action::Bid].into_iter();
        sides.find_map(|side| book.order(account(side), order_id))
    }

    /// Takes up to `lots` off an order, and says how many it were: 0 if it does not rest.
    pub(super) fn reduce(&mut self, order_id: OrderId, lots: i64) -> i64 {
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

    /// Lowers what an order has left to `left`; an order that has less or is gone stays so.
    pub(super) fn lower(&mut self, order_id: OrderId, left: i64) {
        if let Some(order) = self.order(order_id) {
            self.reduce(order_id, order.size - order.filled - left);
        }
    }

    /// The trades of the last command.
    pub(super) fn trades(&self) -> impl Iterator<Item = Fill> + '_ {
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

    /// The levels of a side, best first.
    pub(super) fn levels(&self, action: Action) -> impl Iterator<Item = PriceSize> + '_ {
        let levels = self.book().map(|book| book.levels(action, usize::MAX));
        levels
            .into_iter()
            .flatten()
            .map(|level| (level.price, level.volume))
    }

    /// The best levels of both sides.
    pub(super) fn row(&self, levels: usize) -> Row {
        Row {
            bids: self.levels(Action::Bid).take(levels).collect(),
            asks: self.levels(Action::Ask).take(levels).collect(),
        }
    }

    /// Whether an order of this side and price would trade at once.
    pub(super) fn crosses(&self, action: Action, price: i64) -> bool {
        let best = self.levels(action.opposite()).next();
        best.is_some_and(|(best, _)| match action {
            Action::Bid => best <= price,
            Action::Ask => best >= price,
        })
    }

    /// The orders of a level, the youngest first.
    pub(super) fn orders_youngest_first(&self, action: Action, price: i64) -> Vec<OrderId> {
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

    /// The commands from now on are made for this line.
    pub(super) fn at(&mut self, line: u64) {
        self.line = line;
    }

    /// The commands that were given, and the state they led to.
    pub(super) fn finish(self, check: Check) -> RealFlow {
        let hash = state_hash(&self.state).hash;
        RealFlow {
            commands: self.commands,
            lines: self.lines,
            check,
            state_hash: hash,
        }
    }

    fn book(&self) -> Option<&Book> {
        self.state.matching.book(SYMBOL)
    }

    fn send(&mut self, command: Command) -> ResultCode {
        let code = apply(&mut self.state, &command, &mut self.events);
        self.commands.push(command);
        self.lines.push(self.line);
        code
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ORDER: OrderId = OrderId(7);

    fn desk_with(left: i64) -> Desk {
        let mut desk = Desk::new(Rules::default());
        desk.place(ORDER, Action::Bid, OrderType::Gtc, 100, left)
            .unwrap();
        desk
    }

    #[test]
    fn lowering_never_raises() {
        let mut desk = desk_with(10);
        desk.lower(ORDER, 12);
        assert_eq!(desk.row(1).bids, [(100, 10)]);
        desk.lower(ORDER, 4);
        assert_eq!(desk.row(1).bids, [(100, 4)]);
        desk.lower(ORDER, 0);
        desk.lower(ORDER, 0);
        assert!(desk.row(1).bids.is_empty());
    }

    #[test]
    fn reducing_says_how_much_it_was() {
        let mut desk = desk_with(10);
        assert_eq!(desk.reduce(ORDER, 3), 3);
        assert_eq!(desk.reduce(ORDER, 30), 7);
        assert_eq!(desk.reduce(ORDER, 1), 0);
        assert_eq!(desk.reduce(OrderId(99), 1), 0);
    }

    #[test]
    fn trades_are_those_of_the_last_command() {
        let mut desk = desk_with(10);
        let taker = desk.own_order();
        desk.place(taker, Action::Ask, OrderType::Ioc, 99, 4)
            .unwrap();
        let fills: Vec<Fill> = desk.trades().collect();
        assert_eq!(
            fills,
            [Fill {
                price: 100,
                size: 4,
                maker: ORDER
            }]
        );
        desk.lower(ORDER, 1);
        assert_eq!(desk.trades().count(), 0);
        assert!(desk.crosses(Action::Ask, 100) && !desk.crosses(Action::Ask, 101));
    }

    #[test]
    fn what_is_refused_is_told() {
        let mut desk = Desk::new(Rules::default());
        let error = desk
            .place(ORDER, Action::Bid, OrderType::Gtc, i64::MAX / 8, 9)
            .unwrap_err();
        let text = error.to_string();
        assert!(text.starts_with("order 7 of size 9 at price 1152921504606846975 is refused with"));
        assert!(text.contains("2305843009213693951 units"), "{text}");
    }

    #[test]
    fn the_commands_lead_to_the_same_state() {
        let mut desk = desk_with(10);
        desk.rest_anonymous(Action::Ask, 105, 3).unwrap();
        desk.reduce(ORDER, 4);
        let flow = desk.finish(Check::default());
        let (commands, hash) = (flow.commands, flow.state_hash);
        let (mut state, mut events) = (State::default(), Events::new());
        for command in &commands {
            apply(&mut state, command, &mut events);
        }
        assert_eq!(state_hash(&state).hash, hash);
        assert_eq!(commands.len(), 5);
    }
}
