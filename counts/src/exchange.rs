//! The exchange: one command through risk, matching and settlement.
//!
//! Every book had room for all that a case will place before it is counted, so nothing grows.

use std::hint::black_box;

use thalweg_exchange::{
    AccountSpec, Action, Command, CurrencyId, Events, OrderId, OrderType, Place, ResultCode, State,
    SymbolId, SymbolSpec, UserId, apply,
};
use thalweg_measure::random::SplitMix;

use super::{CAPACITY, Cases, FEW, MANY, WARM, Work, rounds};

const SYMBOL: SymbolId = SymbolId(7);
const BASE: CurrencyId = CurrencyId(1);
const QUOTE: CurrencyId = CurrencyId(2);
const USERS: i64 = 100;
const MIDDLE: i64 = 1_000_000;
/// Levels that orders rest on.
const LEVELS: u64 = 64;
/// Rounds of a case in all.
const ROUNDS: u64 = WARM + FEW + MANY;
/// Makers that a sweep meets.
const SWEEP: i64 = 10;
/// Lots that are never used up.
const PLENTY: i64 = 1 << 20;

pub(super) fn add(cases: &mut Cases) {
    let mut add = |name: &str, work: fn() -> Work| {
        cases.insert(format!("exchange/{name}"), work);
    };
    add("place-rest", place_rest);
    add("cancel", cancel);
    add("move", move_order);
    add("trade-1", || sweep(1));
    add("sweep-10", || sweep(SWEEP));
    add("mix-1024", mix);
}

/// An exchange with one symbol and rich users.
struct Exchange {
    state: State,
    events: Events,
}

impl Exchange {
    fn new() -> Self {
        let mut exchange = Self {
            state: State::default(),
            events: Events::with_capacity(1024),
        };
        let symbol = SymbolSpec {
            id: SYMBOL,
            base_currency: BASE,
            quote_currency: QUOTE,
            base_scale: 10,
            quote_scale: 10,
            taker_fee: 5,
            maker_fee: 3,
            ..SymbolSpec::default()
        };
        let each = i64::MAX / (USERS + 1);
        let account = |uid| AccountSpec {
            uid: UserId(uid),
            balances: vec![(BASE, each), (QUOTE, each)],
        };
        let accounts: Vec<AccountSpec> = (0..USERS).map(account).collect();
        exchange.apply(&Command::AddSymbols([symbol].into()));
        exchange.apply(&Command::AddAccounts(accounts.into()));
        exchange
    }

    /// With room for so many orders: they were there, and were cancelled.
    fn with_room(orders: u64) -> Self {
        let mut exchange = Self::new();
        (0..orders).for_each(|number| exchange.apply(&ask(number)));
        (0..orders).for_each(|number| exchange.apply(&cancel_of(number)));
        exchange
    }

    #[inline]
    fn apply(&mut self, command: &Command) {
        let code = apply(&mut self.state, black_box(command), &mut self.events);
        assert_eq!(code, ResultCode::Success);
        black_box(&self.events);
    }
}

fn uid(number: u64) -> UserId {
    UserId(number as i64 % USERS)
}

/// An order of this number; two for one number have the same id and owner.
fn place(number: u64, action: Action, price: i64, size: i64) -> Place {
    Place {
        uid: uid(number),
        symbol: SYMBOL,
        order_id: OrderId(number as i64),
        order_type: OrderType::Gtc,
        action,
        price,
        reserve_price: 2 * MIDDLE,
        size,
        flags: thalweg_exchange::OrderFlags::NONE,
    }
}

/// A resting ask of one lot.
fn ask(number: u64) -> Command {
    let price = MIDDLE + 1 + (number * 7 % LEVELS) as i64;
    Command::Place(place(number, Action::Ask, price, 1))
}

fn cancel_of(number: u64) -> Command {
    Command::Cancel {
        uid: uid(number),
        symbol: SYMBOL,
        order_id: OrderId(number as i64),
    }
}

fn place_rest() -> Work {
    let mut exchange = Exchange::with_room(ROUNDS);
    let mut next = 0;
    rounds(move |_| {
        exchange.apply(&ask(next));
        next += 1;
    })
}

fn cancel() -> Work {
    let mut exchange = Exchange::with_room(ROUNDS);
    (0..ROUNDS).for_each(|number| exchange.apply(&ask(number)));
    let mut next = 0;
    rounds(move |_| {
        exchange.apply(&cancel_of(next));
        next += 1;
    })
}

/// To another level, behind the others there.
fn move_order() -> Work {
    let orders = CAPACITY as u64;
    let mut exchange = Exchange::with_room(orders);
    (0..orders).for_each(|number| exchange.apply(&ask(number)));
    let mut next = 0;
    rounds(move |_| {
        let number = next % orders;
        exchange.apply(&Command::Move {
            uid: uid(number),
            symbol: SYMBOL,
            order_id: OrderId(number as i64),
            price: MIDDLE + 1 + (next * 13 % LEVELS) as i64,
        });
        next += 1;
    })
}

/// An IOC bid that takes so many makers whole.
fn sweep(makers: i64) -> Work {
    let mut exchange = Exchange::new();
    let all = ROUNDS * makers as u64;
    (0..all).for_each(|number| exchange.apply(&ask(number)));
    let mut next = all;
    rounds(move |_| {
        let taker = Place {
            order_type: OrderType::Ioc,
            ..place(next, Action::Bid, 2 * MIDDLE, makers)
        };
        exchange.apply(&Command::Place(taker));
        assert_eq!(exchange.events.len(), makers as usize);
        next += 1;
    })
}

/// A command a round, of a lap that can be repeated for ever: 70 % moves, and orders that come and
/// go, that take, and that lose a lot.
fn mix() -> Work {
    let mut exchange = Exchange::with_room(2 * CAPACITY as u64);
    let mut random = SplitMix::new(4);
    let resting = CAPACITY as u64 / 2;
    let side = |number: u64| {
        if number.is_multiple_of(2) {
            Action::Ask
        } else {
            Action::Bid
        }
    };
    let price = move |action, random: &mut SplitMix| {
        let distance = random.below(LEVELS) as i64;
        match action {
            Action::Ask => MIDDLE + 1 + distance,
            Action::Bid => MIDDLE - distance,
        }
    };
    for number in 0..resting {
        let price = price(side(number), &mut random);
        exchange.apply(&Command::Place(place(number, side(number), price, PLENTY)));
    }
    let mut lap = Vec::with_capacity(CAPACITY);
    let mut guest = resting;
    while lap.len() < CAPACITY {
        let number = random.below(resting);
        let (uid, order_id) = (uid(number), OrderId(number as i64));
        let symbol = SYMBOL;
        let price = price(side(number), &mut random);
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
                let limit = if action == Action::Bid { 2 * MIDDLE } else { 1 };
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
    let mut at = 0;
    rounds(move |_| {
        exchange.apply(&lap[at]);
        at = (at + 1) % CAPACITY;
    })
}
