//! A made-up market without end.
//!
//! What an event comes to follows from the seed, the number of the event and the book as it is, so
//! nothing has to be kept over a restart, and the market follows what users do to its book. In each
//! symbol a fair price wanders: the sum of four waves of random height and different length, so it
//! stays within a range. Events are in blocks of 256. An order that is placed in a block is
//! cancelled 1, 2, 8 or 32 blocks later, where it still rests: by a permutation of the orders of
//! that block, so that each is cancelled once, and at most some 1,100 rest.

use std::sync::Arc;

use thalweg_exchange::{
    AccountSpec, Action, Command, CurrencyId, OrderId, OrderType, Place, State, SymbolSpec, UserId,
    UserLimits,
};
use thalweg_measure::random::SplitMix;

use super::{FLOW_USERS, Step};

/// The price around which it wanders.
pub(crate) const PRICE: i64 = 10_000;
/// Users who trade.
const USERS: i64 = 4;
/// The waves: in how many events of a symbol they turn, and how far they go.
const WAVES: [(u64, i64); 4] = [(1 << 16, 500), (1 << 13, 120), (1 << 10, 25), (1 << 7, 4)];
/// Events of a symbol in a block, and orders that are placed in it.
const BLOCK: u64 = 256;
const PLACED: u64 = BLOCK / 8 * 3;
/// By class: blocks after which an order is cancelled, and how far from the fair price it may be.
const CLASSES: [(u64, u64); 4] = [(1, 4), (2, 10), (8, 25), (32, 60)];
/// Factors of permutations: none has a common divisor with `PLACED`.
const FACTORS: [u64; 8] = [5, 7, 11, 13, 17, 19, 23, 29];
const EVENTS_PER_S: u64 = 100;

/// The made-up market; see the module.
#[derive(Debug)]
pub struct GeneratedMarket {
    seed: u64,
    symbols: Vec<SymbolSpec>,
    set_up: Vec<Command>,
}

impl GeneratedMarket {
    /// Makes a market in these symbols, which are added where they are not there. So are `others`,
    /// users with much money.
    #[must_use]
    pub fn new(seed: u64, symbols: &[SymbolSpec], others: &[UserId]) -> Self {
        let users = (0..USERS).map(|at| UserId(FLOW_USERS + at));
        let account = |uid| rich(uid, symbols);
        let accounts = users.clone().chain(others.iter().copied()).map(account);
        let mut set_up = vec![
            Command::AddSymbols(symbols.into()),
            Command::AddAccounts(accounts.collect()),
        ];
        set_up.extend(users.map(|uid| Command::SetLimits {
            uid: Some(uid),
            limits: Some(UserLimits::NONE),
        }));
        Self {
            seed,
            symbols: symbols.to_vec(),
            set_up,
        }
    }

    /// Returns the event from which on the book looks as it will: some minutes of the market.
    #[must_use]
    pub fn opening(&self) -> u64 {
        self.set_up.len() as u64 + self.symbols.len() as u64 * BLOCK * 8
    }

    /// Returns the number of the first event that is due at a time after the first one, or later.
    #[must_use]
    pub const fn event_after(after_ns: u64) -> u64 {
        after_ns.div_ceil(1_000_000_000 / EVENTS_PER_S)
    }

    pub(super) fn step(&self, event: u64) -> Step {
        match self.set_up.get(event as usize) {
            Some(command) => Step::Command(command.clone()),
            None => Step::Resolve,
        }
    }

    pub(super) fn due_ns(&self, event: u64) -> u64 {
        event.saturating_mul(1_000_000_000 / EVENTS_PER_S)
    }

    fn random(&self, of: u64) -> SplitMix {
        let mut random = SplitMix::new(self.seed);
        SplitMix::new(random.next_u64() ^ of.wrapping_mul(0x9E37_79B9_7F4A_7C15))
    }

    /// Returns the number of an event among all of its symbol, and the symbol's position.
    fn place_of(&self, event: u64) -> (u64, usize) {
        let after = event - self.set_up.len() as u64;
        let symbols = self.symbols.len() as u64;
        (after / symbols, (after % symbols) as usize)
    }

    fn order_id(&self, at: u64, symbol: usize) -> u64 {
        at * self.symbols.len() as u64 + symbol as u64 + self.set_up.len() as u64
    }

    fn fair(&self, at: u64, symbol: usize) -> i64 {
        let waves = WAVES.iter().map(|&(length, height)| {
            let end = |turn: u64| {
                let of = (turn << 24) ^ (length << 4) ^ symbol as u64;
                let width = 2 * height as u64 + 1;
                self.random(!of).below(width) as i64 - height
            };
            let (from, to) = (end(at / length), end(at / length + 1));
            from + (to - from) * (at % length) as i64 / length as i64
        });
        PRICE + waves.sum::<i64>()
    }

    pub(super) fn resolve(&self, event: u64, state: &State) -> Option<Command> {
        if let Some(command) = self.set_up.get(event as usize) {
            return Some(command.clone());
        }
        let (at, symbol) = self.place_of(event);
        match at % 8 {
            0 | 2 | 4 => Some(self.limit(event)),
            1 | 3 | 5 => self.cancel(at, symbol, state),
            _ => self.take(event),
        }
    }

    fn user(event: u64, random: &mut SplitMix) -> (UserId, OrderId) {
        let user = FLOW_USERS + random.below(USERS as u64) as i64;
        (UserId(user), OrderId(event as i64))
    }

    fn side(random: &mut SplitMix) -> Action {
        match random.below(2) {
            0 => Action::Ask,
            _ => Action::Bid,
        }
    }

    fn limit(&self, event: u64) -> Command {
        let (at, symbol) = self.place_of(event);
        let mut random = self.random(event);
        let (user, side) = (Self::user(event, &mut random), Self::side(&mut random));
        let (_, far) = CLASSES[(number_in_block(at) % 4) as usize];
        let away = 1 + random.below(far) as i64;
        let price = match side {
            Action::Ask => self.fair(at, symbol) + away,
            Action::Bid => self.fair(at, symbol) - away,
        };
        let size = 1 + random.below(20) as i64;
        Command::Place(Place::limit(
            user,
            self.symbols[symbol].id,
            side,
            (price, size),
        ))
    }

    /// Cancels an order of an earlier block, if it rests.
    fn cancel(&self, at: u64, symbol: usize, state: &State) -> Option<Command> {
        let block = at / BLOCK;
        let mut random = self.random(!block ^ symbol as u64);
        let factor = FACTORS[random.below(FACTORS.len() as u64) as usize];
        let number = (number_in_block(at) * factor + random.below(PLACED)) % PLACED;
        let block = block.checked_sub(CLASSES[(number % 4) as usize].0)?;
        let placed = block * BLOCK + number / 3 * 8 + number % 3 * 2;
        let event = self.order_id(placed, symbol);
        let (uid, order_id) = Self::user(event, &mut self.random(event));
        let symbol = self.symbols[symbol].id;
        state.matching.book(symbol)?.order(uid, order_id)?;
        Some(Command::cancel(uid, symbol, order_id))
    }

    /// Takes what rests within some ticks of the fair price.
    fn take(&self, event: u64) -> Option<Command> {
        let (at, symbol) = self.place_of(event);
        let mut random = self.random(event);
        let (user, side) = (Self::user(event, &mut random), Self::side(&mut random));
        let size_max = 2 << random.below(6);
        let size = 1 + random.below(size_max) as i64;
        let price = match side {
            Action::Ask => self.fair(at, symbol) - 5,
            Action::Bid => self.fair(at, symbol) + 5,
        };
        (random.below(2) == 0).then(|| {
            Command::Place(Place {
                order_type: OrderType::Ioc,
                ..Place::limit(user, self.symbols[symbol].id, side, (price, size))
            })
        })
    }
}

/// Returns the number of the order that an event places, or whose turn it is to be cancelled,
/// among those of a block.
const fn number_in_block(at: u64) -> u64 {
    at % BLOCK / 8 * 3 + at % 8 / 2
}

/// Returns an account with money in all currencies of some symbols.
#[must_use]
fn rich(uid: UserId, symbols: &[SymbolSpec]) -> AccountSpec {
    let mut balances: Vec<(CurrencyId, i64)> = Vec::new();
    for spec in symbols {
        balances.push((spec.base_currency, 1 << 40));
        balances.push((spec.quote_currency, 1 << 50));
    }
    balances.sort_unstable();
    balances.dedup_by_key(|(currency, _)| *currency);
    AccountSpec { uid, balances }
}

/// Returns a command that adds users with much money in all currencies of some symbols.
#[must_use]
pub fn funded_users(users: &[UserId], symbols: &[SymbolSpec]) -> Command {
    let accounts: Arc<[AccountSpec]> = users.iter().map(|uid| rich(*uid, symbols)).collect();
    Command::AddAccounts(accounts)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use thalweg_exchange::report::state_text::state_text_hash;
    use thalweg_exchange::{Event, Events, ResultCode, apply};

    use thalweg_exchange::SymbolId;

    use super::*;

    fn market(seed: u64) -> GeneratedMarket {
        let pair = |id| SymbolSpec::pair(SymbolId(id), CurrencyId(10 + id), CurrencyId(20));
        GeneratedMarket::new(seed, &[pair(1), pair(2)], &[UserId(7)])
    }

    /// Executes events, and returns how many of the commands succeeded, failed, and traded.
    fn run(
        market: &GeneratedMarket,
        state: &mut State,
        events: std::ops::Range<u64>,
        mut each: impl FnMut(u64, &mut State),
    ) -> [u64; 3] {
        let (mut counts, mut buffer) = ([0; 3], Events::new());
        for event in events {
            each(event, state);
            let Some(command) = market.resolve(event, state) else {
                continue;
            };
            let result = apply(state, &command, &mut buffer);
            counts[usize::from(result != ResultCode::Success)] += 1;
            let trades = buffer.iter().filter(|e| matches!(e, Event::Trade { .. }));
            counts[2] += trades.count() as u64;
        }
        counts
    }

    #[test]
    fn it_looks_like_a_market_from_its_opening_on_and_does_not_grow() {
        let market = market(3);
        let mut state = State::default();
        let opening = market.opening();
        run(&market, &mut state, 0..opening, |_, _| {});
        let mut prices = BTreeSet::new();
        let [good, bad, trades] = run(&market, &mut state, opening..400_000, |event, state| {
            if event % 1_000 > 0 {
                return;
            }
            for symbol in [1, 2] {
                let book = state.matching.book(SymbolId(symbol)).expect("it was added");
                let best = [Action::Bid, Action::Ask].map(|side| {
                    let levels = book.levels(side, 100).count();
                    assert!(levels >= 20, "{levels} levels at event {event}");
                    book.best(side).expect("there are levels").price
                });
                assert!((1..=30).contains(&(best[1] - best[0])), "{best:?}");
                assert!(book.order_count() < 1_200, "{}", book.order_count());
                prices.insert(best[0]);
            }
        });
        assert_eq!(bad, 0);
        assert!(good > 250_000 && trades > 50_000, "{good}, {trades}");
        assert!(prices.len() > 100, "{} prices", prices.len());
        let range = PRICE - 700..PRICE + 700;
        assert!(prices.iter().all(|price| range.contains(price)));
    }

    /// Runs a market in which a user trades at some events.
    fn with_user(seed: u64) -> u64 {
        let (market, mut state) = (market(seed), State::default());
        run(&market, &mut state, 0..20_000, |event, state| {
            if event > 5_000 && event % 97 == 0 {
                let side = if event % 2 == 0 {
                    Action::Ask
                } else {
                    Action::Bid
                };
                let order = (UserId(7), OrderId(event as i64));
                let place = Place::limit(order, SymbolId(1), side, (PRICE, 500));
                apply(state, &Command::Place(place), &mut Events::new());
            }
        });
        state_text_hash(&state).hash
    }

    #[test]
    fn the_same_seed_and_commands_of_users_lead_to_the_same_state() {
        assert_eq!(with_user(1), with_user(1));
        assert_ne!(with_user(1), with_user(2));
        let (market, mut state) = (market(1), State::default());
        run(&market, &mut state, 0..20_000, |_, _| {});
        assert_ne!(
            with_user(1),
            state_text_hash(&state).hash,
            "the user has traded"
        );
    }
}
