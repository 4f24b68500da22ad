//! The exchange: one command through risk, matching and settlement.
//!
//! Every book had room for all that a case will place before it is counted, so nothing grows.

mod crowded;
mod scattered;

use std::hint::black_box;

use counts::venue::{self, RESERVE, SYMBOL, behind, setup};
use thalweg_exchange::{
    Action, Command, ConditionalOrder, CurrencyId, Events, OrderId, OrderType, Place, ResultCode,
    State, SymbolId, SymbolSpec, SymbolType, UserId, apply, apply_batch,
};
use thalweg_measure::random::SplitMix;

use super::{BATCH, CAPACITY, Cases, FEW, MANY, WARM, Work, rounds};

const USERS: i64 = 100;
/// Levels that orders rest on.
const LEVELS: u64 = 64;
/// Rounds of a case in all.
const ROUNDS: u64 = WARM + FEW + MANY;
/// Lots that are never used up.
const PLENTY: i64 = 1 << 20;

pub(super) fn add(cases: &mut Cases) {
    let mut add = |name: &str, work: fn() -> Work| {
        cases.insert(format!("exchange/{name}"), work);
    };
    add("place-rest", || place_rest(SymbolType::CurrencyPair));
    add("place-rest-owners-kept", place_kept);
    add("cancel", cancel);
    add("cancel-owners-kept", cancel_kept);
    add("cancel-all-10-of-1k", || cancel_all(1_000));
    add("cancel-all-10-of-1m", || cancel_all(1_000_000));
    add("move", || move_order(SymbolType::CurrencyPair));
    add("trade-1", || sweep(1));
    add("trade-1-beside-iceberg", || sweep_beside(iceberg()));
    add("trade-1-beside-stop", || sweep_beside(stop()));
    add("sweep-10", || sweep(10));
    add("sweep-50", || sweep(50));
    add("place-rest-8-currencies", place_of_many);
    add("place-rest-futures-held", place_beside_futures);
    add("trade-1-8-currencies", || {
        sweep_in(Exchange::of(&with_accounts_before(8)), 1)
    });
    add("futures-place", || place_rest(SymbolType::Futures));
    add("futures-move", || move_order(SymbolType::Futures));
    add("mix-1024", || mix(None));
    add("mix-1024-beside-iceberg", || mix(Some(iceberg())));
    add("mix-1024-beside-stop", || mix(Some(stop())));
    add("trade-1-beside-good-till", || sweep_beside(good_till()));
    add("mix-1024-beside-good-till", || mix(Some(good_till())));
    add("mix-batch-64", batch);
    add("mix-1024-with-levels", mix_with_levels);
    crowded::add(cases);
    scattered::add(cases);
}

/// An exchange with one symbol and rich users.
pub(super) struct Exchange {
    pub(super) state: State,
    pub(super) events: Events,
}

impl Exchange {
    pub(super) fn new(symbol_type: SymbolType) -> Self {
        Self::of(&setup(symbol_type, USERS))
    }

    fn of(setup: &[Command]) -> Self {
        let mut exchange = Self {
            state: State::default(),
            events: Events::with_capacity(1024),
        };
        setup.iter().for_each(|command| exchange.apply(command));
        exchange
    }

    /// A book with room for this many orders, which were placed and cancelled.
    pub(super) fn with_room(symbol_type: SymbolType, orders: u64) -> Self {
        Self::new(symbol_type).make_room(orders)
    }

    fn make_room(mut self, orders: u64) -> Self {
        (0..orders).for_each(|number| self.apply(&ask(number)));
        (0..orders).for_each(|number| self.apply(&cancel_of(number)));
        self
    }

    fn place_beside(&mut self, order: Option<ConditionalOrder>) {
        if let Some(order) = order {
            self.apply(&Command::PlaceConditional(order.into()));
        }
    }

    #[inline]
    pub(super) fn apply(&mut self, command: &Command) {
        let code = apply(&mut self.state, black_box(command), &mut self.events);
        assert_eq!(code, ResultCode::Success);
        black_box(&self.events);
    }
}

fn uid(number: u64) -> UserId {
    UserId(1 + number as i64 % USERS)
}

/// An order of this number; two for one number have the same id and owner.
pub(super) fn place(number: u64, action: Action, price: i64, size: i64) -> Place {
    let order_id = OrderId(number as i64);
    venue::place(order_id, uid(number), action, (price, size))
}

/// A resting ask of one lot.
fn ask(number: u64) -> Command {
    let price = behind(Action::Ask, 1 + (number * 7 % LEVELS) as i64);
    Command::Place(place(number, Action::Ask, price, 1))
}

fn cancel_of(number: u64) -> Command {
    Command::Cancel {
        uid: uid(number),
        symbol: SYMBOL,
        order_id: OrderId(number as i64),
    }
}

/// The setup of the other cases, but users have balances in this many currencies, those of the
/// symbol last.
fn with_accounts_before(currencies: i32) -> Vec<Command> {
    let mut setup = setup(SymbolType::CurrencyPair, USERS);
    for command in &mut setup {
        if let Command::AddAccounts(accounts) = command {
            let mut more = accounts.to_vec();
            for account in &mut more {
                let others = 3 - currencies..=0;
                account
                    .balances
                    .extend(others.map(|id| (CurrencyId(id), 1)));
            }
            *accounts = more.into();
        }
    }
    setup
}

fn place_of_many() -> Work {
    place_in(Exchange::of(&with_accounts_before(8)).make_room(ROUNDS))
}

/// Every user has an order in futures of the same currency, too.
fn place_beside_futures() -> Work {
    const FUTURES: SymbolId = SymbolId(8);
    let mut setup = setup(SymbolType::CurrencyPair, USERS);
    for mut command in venue::setup(SymbolType::Futures, USERS) {
        match &mut command {
            Command::AddSymbols(specs) => {
                let spec = SymbolSpec {
                    id: FUTURES,
                    quote_currency: venue::BASE,
                    ..specs[0]
                };
                setup.push(Command::AddSymbols([spec].into()));
            }
            Command::SetPriceBand { symbol, .. } => {
                *symbol = FUTURES;
                setup.push(command);
            }
            _ => {}
        }
    }
    for number in 0..USERS as u64 {
        let place = place(number, Action::Ask, behind(Action::Ask, 1), 1);
        let symbol = FUTURES;
        setup.push(Command::Place(Place { symbol, ..place }));
    }
    place_in(Exchange::of(&setup).make_room(ROUNDS))
}

fn place_rest(symbol_type: SymbolType) -> Work {
    place_in(Exchange::with_room(symbol_type, ROUNDS))
}

fn place_in(mut exchange: Exchange) -> Work {
    let mut next = 0;
    rounds(move |_| {
        exchange.apply(&ask(next));
        next += 1;
    })
}

/// Where all orders of one user were cancelled once.
fn place_kept() -> Work {
    let mut exchange = Exchange::with_room(SymbolType::CurrencyPair, ROUNDS);
    exchange.apply(&cancel_all_of(uid(0)));
    place_in(exchange)
}

fn cancel_kept() -> Work {
    let mut exchange = Exchange::with_room(SymbolType::CurrencyPair, ROUNDS);
    exchange.apply(&cancel_all_of(uid(0)));
    cancel_in(exchange)
}

const fn cancel_all_of(uid: UserId) -> Command {
    Command::CancelAll {
        uid: Some(uid),
        symbol: None,
    }
}

/// Ten orders of one user, placed and cancelled at once, where this many of others rest.
fn cancel_all(others: u64) -> Work {
    let mut exchange = Exchange::with_room(SymbolType::CurrencyPair, ROUNDS);
    let users = USERS as u64;
    let numbers = (1..).filter(|number| number % users != 0);
    let numbers = numbers.take(others as usize);
    numbers.for_each(|number| exchange.apply(&ask(number)));
    let all = cancel_all_of(uid(0));
    rounds(move |_| {
        (0..10).for_each(|number| exchange.apply(&ask(number * users)));
        exchange.apply(&all);
        assert_eq!(exchange.events.len(), 10);
    })
}

fn cancel() -> Work {
    cancel_in(Exchange::with_room(SymbolType::CurrencyPair, ROUNDS))
}

fn cancel_in(mut exchange: Exchange) -> Work {
    (0..ROUNDS).for_each(|number| exchange.apply(&ask(number)));
    let mut next = 0;
    rounds(move |_| {
        exchange.apply(&cancel_of(next));
        next += 1;
    })
}

/// To another level, behind the others there.
fn move_order(symbol_type: SymbolType) -> Work {
    let orders = CAPACITY as u64;
    let mut exchange = Exchange::with_room(symbol_type, orders);
    (0..orders).for_each(|number| exchange.apply(&ask(number)));
    let mut next = 0;
    rounds(move |_| {
        let number = next % orders;
        exchange.apply(&Command::Move {
            uid: uid(number),
            symbol: SYMBOL,
            order_id: OrderId(number as i64),
            price: behind(Action::Ask, 1 + (next * 13 % LEVELS) as i64),
        });
        next += 1;
    })
}

/// An IOC bid that takes this many makers whole.
fn sweep(makers: i64) -> Work {
    sweep_in(Exchange::new(SymbolType::CurrencyPair), makers)
}

/// One maker, with another order far away.
fn sweep_beside(other: ConditionalOrder) -> Work {
    let mut exchange = Exchange::new(SymbolType::CurrencyPair);
    exchange.place_beside(Some(other));
    sweep_in(exchange, 1)
}

fn sweep_in(mut exchange: Exchange, makers: i64) -> Work {
    let all = ROUNDS * makers as u64;
    (0..all).for_each(|number| exchange.apply(&ask(number)));
    let mut next = all;
    rounds(move |_| {
        let taker = Place {
            order_type: OrderType::Ioc,
            ..place(next, Action::Bid, RESERVE, makers)
        };
        exchange.apply(&Command::Place(taker));
        assert_eq!(exchange.events.len(), makers as usize);
        next += 1;
    })
}

/// An order that rests behind all others, and hides lots.
fn iceberg() -> ConditionalOrder {
    let price = behind(Action::Ask, 10 * LEVELS as i64);
    ConditionalOrder {
        place: place(i64::MAX as u64, Action::Ask, price, 100),
        trigger: None,
        display: Some(1),
        good_till: None,
    }
}

/// An order that waits until the price has doubled.
fn stop() -> ConditionalOrder {
    ConditionalOrder {
        place: place(i64::MAX as u64, Action::Bid, RESERVE, 1),
        trigger: Some(RESERVE),
        display: None,
        good_till: None,
    }
}

/// An order that rests behind all others until a time that does not come.
fn good_till() -> ConditionalOrder {
    ConditionalOrder {
        display: None,
        good_till: Some(i64::MAX),
        ..iceberg()
    }
}

/// A command a round, in a book with another order far away or without.
fn mix(other: Option<ConditionalOrder>) -> Work {
    let (mut exchange, lap) = lap();
    exchange.place_beside(other);
    let mut at = 0;
    rounds(move |_| {
        exchange.apply(&lap[at]);
        at = (at + 1) % CAPACITY;
    })
}

/// A command a round, whose levels are listed.
fn mix_with_levels() -> Work {
    let (mut exchange, lap) = lap();
    exchange.events = Events::with_capacity(1024).with_levels();
    let mut at = 0;
    rounds(move |_| {
        exchange.apply(&lap[at]);
        at = (at + 1) % CAPACITY;
    })
}

/// 64 commands of the same laps a round, handed over together.
fn batch() -> Work {
    let (mut exchange, lap) = lap();
    let mut batches = 0..;
    rounds(move |_| {
        let begin = batches.next().unwrap_or(0) * BATCH % CAPACITY;
        let commands = black_box(&lap[begin..begin + BATCH]);
        let count = |_, result, events: &Events| {
            assert_eq!(result, ResultCode::Success);
            black_box(events);
        };
        apply_batch(&mut exchange.state, commands, &mut exchange.events, count);
    })
}

/// Commands of a lap that can be repeated for ever, and the exchange that they are for: 70 % moves,
/// and orders that come and go, that take, and that lose a lot.
pub(super) fn lap() -> (Exchange, Vec<Command>) {
    let mut exchange = Exchange::with_room(SymbolType::CurrencyPair, 2 * CAPACITY as u64);
    let mut random = SplitMix::new(4);
    let resting = CAPACITY as u64 / 2;
    let side = |number: u64| {
        if number.is_multiple_of(2) {
            Action::Ask
        } else {
            Action::Bid
        }
    };
    let price =
        |number, random: &mut SplitMix| behind(side(number), 1 + random.below(LEVELS) as i64);
    for number in 0..resting {
        let price = price(number, &mut random);
        exchange.apply(&Command::Place(place(number, side(number), price, PLENTY)));
    }
    let mut lap = Vec::with_capacity(CAPACITY);
    let mut guest = resting;
    while lap.len() < CAPACITY {
        let number = random.below(resting);
        let (uid, order_id) = (uid(number), OrderId(number as i64));
        let symbol = SYMBOL;
        let price = price(number, &mut random);
        match random.below(100) {
            0..70 => lap.push(Command::Move {
                uid,
                symbol,
                order_id,
                price,
            }),
            70..80 => lap.push(Command::Reduce {
                uid,
                symbol,
                order_id,
                by: 1,
            }),
            80..85 => {
                let action = side(guest);
                let limit = if action == Action::Bid { RESERVE } else { 1 };
                let taker = place(guest, action, limit, 3);
                let order_type = OrderType::Ioc;
                lap.push(Command::Place(Place {
                    order_type,
                    ..taker
                }));
                guest += 1;
            }
            _ if lap.len() + 2 <= CAPACITY => {
                lap.push(Command::Place(place(guest, side(number), price, 5)));
                lap.push(cancel_of(guest));
                guest += 1;
            }
            _ => {}
        }
    }
    (exchange, lap)
}
