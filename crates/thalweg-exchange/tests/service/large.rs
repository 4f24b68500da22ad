//! Books, users and symbols that are too many for the nearer caches: their memory is asked for
//! ahead, and nothing else is different.

use thalweg::pipeline::Placement;
use thalweg_exchange::report::state_text::state_text_hash;
use thalweg_exchange::service::ServiceOptions;
use thalweg_exchange::{
    AccountSpec, Action, Command, CurrencyId, Events, OrderId, Place, Rules, State, SymbolId,
    SymbolSpec, UserId, apply_batch,
};
use thalweg_measure::random::SplitMix;

use super::{Record, serial, served_as};

const MIDDLE: i64 = 1_000;

/// Orders of many users in many symbols.
#[derive(Clone, Copy)]
struct Shape {
    orders: u64,
    symbols: i32,
    users: i64,
}

impl Shape {
    /// The last symbol's id is found by its hash.
    const LAST: SymbolId = SymbolId(-7);

    fn symbol_of(self, number: u64) -> SymbolId {
        match (number % self.symbols as u64) as i32 {
            last if last == self.symbols - 1 => Self::LAST,
            id => SymbolId(id),
        }
    }

    fn uid_of(self, number: u64) -> UserId {
        UserId((number * 7 % self.users as u64) as i64)
    }

    fn setup(self) -> Vec<Command> {
        let pair = |id| SymbolSpec::pair(id, CurrencyId(1), CurrencyId(2));
        let ids = (0..self.symbols as u64).map(|number| self.symbol_of(number));
        let account = |uid| AccountSpec {
            uid: UserId(uid),
            balances: vec![(CurrencyId(1), 1 << 40), (CurrencyId(2), 1 << 40)],
        };
        let accounts: Vec<AccountSpec> = (0..self.users).map(account).collect();
        vec![
            Command::AddSymbols(ids.map(pair).collect()),
            Command::AddAccounts(accounts.into()),
        ]
    }

    fn place(self, number: u64, action: Action, random: &mut SplitMix) -> Command {
        let terms = (price(random, action), 1 + random.below(9) as i64);
        let ids = (self.uid_of(number), OrderId(number as i64));
        Command::Place(Place::limit(ids, self.symbol_of(number), action, terms))
    }

    /// Changes an order that may not be there; now and then in a symbol or at a price that is not.
    fn change(self, number: u64, random: &mut SplitMix) -> Command {
        let (uid, order_id) = (self.uid_of(number), OrderId(number as i64));
        let symbol = match random.below(100) {
            0 => SymbolId(self.symbols + 5),
            _ => self.symbol_of(number),
        };
        match random.below(10) {
            0..7 => Command::move_to(
                uid,
                symbol,
                order_id,
                match random.below(60) {
                    0 => i64::MIN,
                    1 => i64::MAX,
                    _ => price(random, Action::Ask),
                },
            ),
            7 => Command::reduce(uid, symbol, order_id, 1),
            8 => Command::Nop,
            _ => Command::cancel(uid, symbol, order_id),
        }
    }

    fn stream(self) -> Vec<Command> {
        let mut random = SplitMix::new(5);
        let mut commands = self.setup();
        for number in 0..self.orders {
            let action = [Action::Ask, Action::Bid][(number / 3 % 2) as usize];
            commands.push(self.place(number, action, &mut random));
        }
        let mut next = self.orders;
        for _ in 0..self.orders {
            let number = random.below(next + 3);
            commands.push(if number.is_multiple_of(10) {
                next += 1;
                self.place(next, Action::Bid, &mut random)
            } else {
                self.change(number, &mut random)
            });
        }
        commands
    }
}

/// Both sides share only the middle price.
fn price(random: &mut SplitMix, side: Action) -> i64 {
    let distance = random.below(40) as i64;
    match side {
        Action::Ask => MIDDLE + distance,
        Action::Bid => MIDDLE - distance,
    }
}

fn in_batches(commands: &[Command]) -> Record {
    let (mut state, mut record) = (State::new(Rules::default()), Record::default());
    for batch in commands.chunks(1_000) {
        apply_batch(
            &mut state,
            batch,
            &mut Events::new(),
            |_, result, events| {
                record.results.push(result);
                record.events.extend_from_slice(events);
            },
        );
    }
    record.state = format!("{:?}", state_text_hash(&state));
    record
}

#[test]
fn what_is_asked_for_ahead_changes_nothing() {
    for (orders, symbols, users) in [(40_000, 2, 20_000), (6_000, 400, 50)] {
        let shape = Shape {
            orders,
            symbols,
            users,
        };
        let commands = shape.stream();
        let expected = serial(Rules::default(), &commands);
        let batches = in_batches(&commands);
        assert!(batches.results == expected.results && batches.events == expected.events);
        assert_eq!(batches.state, expected.state);
        for (placement, is_timed) in [
            (Placement::inline(), false),
            (Placement::inline(), true),
            (Placement::threads(2), false),
        ] {
            let options = ServiceOptions {
                capacity: 256,
                placement,
                is_timed,
                ..ServiceOptions::default()
            };
            let name = format!("{options:?}");
            let record = served_as(Rules::default(), &commands, options, 64);
            assert!(record == expected, "{name}");
        }
    }
}
