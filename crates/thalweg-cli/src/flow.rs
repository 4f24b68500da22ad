//! A generated flow of orders that looks like a market. The flow is the same for the same seed on
//! every machine, since only whole numbers and the engine itself determine it.
//!
//! Two currency pairs share a quote currency. A fair price follows a random walk. Limit orders rest
//! around it, with heavy-tailed distances (twice the distance is half as likely) and sizes. About
//! half of the commands cancel orders or change them, mostly young ones; some cross the spread. A
//! few users have little money, and a few cancels arrive too late, so that refusals happen too.
//!
//! Numbers come from SplitMix64 (`thalweg_measure::random`). The engine runs along with the
//! generator, so that orders which were filled are rarely cancelled.

use std::sync::Arc;
use thalweg_exchange::{
    AccountSpec, Action, Command, CurrencyId, Event, Events, OrderId, OrderType, Place, State,
    SymbolId, SymbolSpec, UserId, apply,
};
use thalweg_measure::random::SplitMix;

const USERS: u64 = 400;
/// One user in this many has little money.
const POOR_EVERY: i64 = 40;
const SYMBOLS: [(SymbolId, CurrencyId); 2] =
    [(SymbolId(1), CurrencyId(11)), (SymbolId(2), CurrencyId(12))];
const QUOTE: CurrencyId = CurrencyId(20);
const PRICE_FIRST_TICKS: i64 = 50_000;
/// The random walk turns back at this price, so that prices stay well inside every limit.
const PRICE_MIN_TICKS: i64 = 25_000;
const PRICE_MAX_TICKS: i64 = 100_000;
/// The number of resting orders in a book above which more orders leave than arrive.
const RESTING_AIM: usize = 3_000;
/// The number of orders that count as young: three in four cancels go to one of them.
const YOUNG: u64 = 256;

/// An order that rests, as far as the generator knows.
#[derive(Clone, Copy, Debug)]
struct Resting {
    uid: UserId,
    order: u64,
    action: Action,
    price: i64,
}

/// The part of the flow that belongs to one symbol.
#[derive(Debug)]
struct Market {
    symbol: SymbolId,
    fair_ticks: i64,
    resting: Vec<Resting>,
}

/// The state of the generator.
struct Flow {
    random: SplitMix,
    markets: [Market; SYMBOLS.len()],
    /// The position of each order in its market's list, by order number; `GONE` if it is in no
    /// list.
    places: Vec<u32>,
    state: State,
    events: Events,
}

const GONE: u32 = u32::MAX;

/// Returns the first `count` commands of the flow of this seed. The first two set up symbols and
/// users.
pub(crate) fn commands(seed: u64, count: u64) -> Vec<Command> {
    let mut flow = Flow::new(seed);
    let mut commands = vec![symbols(), users()];
    for command in &commands {
        apply(&mut flow.state, command, &mut flow.events);
    }
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    commands.truncate(count);
    while commands.len() < count {
        commands.push(flow.next_command());
    }
    commands
}

fn symbols() -> Command {
    let specs = SYMBOLS.map(|(id, base_currency)| {
        SymbolSpec::pair(id, base_currency, QUOTE)
            .with_scales(1_000, 10)
            .with_fees(30, 10)
    });
    Command::AddSymbols(Arc::new(specs))
}

fn users() -> Command {
    let account = |i: i64| {
        let rich = i % POOR_EVERY != 0;
        let (base, quote) = if rich {
            (10_i64.pow(13), 10_i64.pow(16))
        } else {
            (200_000, 10_i64.pow(8))
        };
        let mut balances = vec![(QUOTE, quote)];
        balances.extend(SYMBOLS.map(|(_, currency)| (currency, base)));
        balances.sort_unstable();
        AccountSpec::new(UserId(i), balances)
    };
    Command::AddAccounts((1..=USERS as i64).map(account).collect())
}

impl Flow {
    fn new(seed: u64) -> Flow {
        let market = |(symbol, _)| Market {
            symbol,
            fair_ticks: PRICE_FIRST_TICKS,
            resting: Vec::new(),
        };
        Flow {
            random: SplitMix::new(seed),
            markets: SYMBOLS.map(market),
            places: vec![GONE],
            state: State::default(),
            events: Events::new(),
        }
    }

    fn next_command(&mut self) -> Command {
        // Three in four commands are about the first symbol.
        let m = usize::from(self.random.below(4) == 0);
        self.walk(m);
        let resting = self.markets[m].resting.len();
        let dice = self.random.below(1_000);
        // With few resting orders more arrive, with many more leave.
        let come = if resting < RESTING_AIM { 550 } else { 440 };
        let command = match dice {
            _ if resting < 50 => self.limit(m),
            d if d < come => self.limit(m),
            d if d < come + 30 => self.take(m),
            d if d < come + 36 => self.fill_or_kill(m),
            d if d < come + 80 => self.change_price(m),
            d if d < come + 120 => self.reduce(m),
            _ => self.cancel(m),
        };
        apply(&mut self.state, &command, &mut self.events);
        self.learn(m, &command);
        command
    }

    /// Makes one step of the fair price; most steps leave it unchanged.
    fn walk(&mut self, m: usize) {
        let step = match self.random.below(512) {
            0 => 1,
            1 => -1,
            _ => 0,
        };
        let fair = self.markets[m].fair_ticks + step;
        self.markets[m].fair_ticks = fair.clamp(PRICE_MIN_TICKS, PRICE_MAX_TICKS);
    }

    /// Returns a heavy-tailed whole number from 1 to 2^12: each doubling is half as likely.
    fn heavy_tailed(&mut self) -> i64 {
        let doublings = self.random.next_u64().trailing_zeros().min(11);
        (1 << doublings) + self.random.below(1 << doublings) as i64
    }

    fn user(&mut self) -> UserId {
        // The product of two uniform numbers makes a few users do most of the trading.
        let (a, b) = (self.random.below(USERS), self.random.below(USERS));
        UserId((a * b / USERS) as i64 + 1)
    }

    fn side(&mut self) -> Action {
        if self.random.below(2) == 0 {
            Action::Ask
        } else {
            Action::Bid
        }
    }

    /// Returns a price that is `ticks` ticks away from the fair one, on the side of the book where
    /// the order rests.
    fn away(&self, m: usize, action: Action, ticks: i64) -> i64 {
        match action {
            Action::Bid => self.markets[m].fair_ticks - ticks,
            Action::Ask => self.markets[m].fair_ticks + ticks,
        }
    }

    fn place(
        &mut self,
        m: usize,
        order_type: OrderType,
        action: Action,
        price: i64,
        size: i64,
    ) -> Command {
        let order = self.places.len() as u64;
        self.places.push(GONE);
        let slack = if action == Action::Bid && order_type == OrderType::Gtc {
            50
        } else {
            0
        };
        Command::Place(Place {
            uid: self.user(),
            symbol: self.markets[m].symbol,
            order_id: OrderId(order as i64),
            order_type,
            action,
            price,
            reserve_price: price + slack,
            size,
            flags: thalweg_exchange::OrderFlags::NONE,
        })
    }

    fn limit(&mut self, m: usize) -> Command {
        let action = self.side();
        // One in forty limit orders is priced to cross the spread.
        let ticks = match self.random.below(40) {
            0 => -self.heavy_tailed().min(8),
            _ => self.random.below(6) as i64 + self.heavy_tailed(),
        };
        let size = self.heavy_tailed();
        self.place(m, OrderType::Gtc, action, self.away(m, action, ticks), size)
    }

    fn take(&mut self, m: usize) -> Command {
        let action = self.side();
        let price = self.away(m, action, -16);
        let size = self.heavy_tailed();
        self.place(m, OrderType::Ioc, action, price, size)
    }

    fn fill_or_kill(&mut self, m: usize) -> Command {
        let action = self.side();
        let size = self.heavy_tailed();
        let budget = self.away(m, action, -4) * size;
        self.place(m, OrderType::FokBudget, action, budget, size)
    }

    fn change_price(&mut self, m: usize) -> Command {
        let Resting {
            uid,
            order,
            action,
            price,
        } = self.pick(m);
        let symbol = self.markets[m].symbol;
        let step = self.heavy_tailed().min(32);
        let price = if self.random.below(2) == 0 {
            price + step
        } else {
            price - step
        };
        // The price rarely crosses the spread: most traders only follow the price.
        let inside = self.away(m, action, 0);
        let price = match action {
            Action::Bid => price.min(inside),
            Action::Ask => price.max(inside),
        };
        Command::move_to(uid, symbol, OrderId(order as i64), price)
    }

    fn reduce(&mut self, m: usize) -> Command {
        let Resting { uid, order, .. } = self.pick(m);
        let symbol = self.markets[m].symbol;
        let by = self.heavy_tailed();
        Command::reduce(uid, symbol, OrderId(order as i64), by)
    }

    fn cancel(&mut self, m: usize) -> Command {
        let Resting { uid, mut order, .. } = self.pick(m);
        // One cancel in two hundred is late or repeated: it names an order that may be gone.
        if self.random.below(200) == 0 {
            order = self.random.below(self.places.len() as u64);
        }
        Command::cancel(uid, self.markets[m].symbol, OrderId(order as i64))
    }

    /// Returns one of the orders that rest in a market that is not empty.
    fn pick(&mut self, m: usize) -> Resting {
        let len = self.markets[m].resting.len() as u64;
        let back = match self.random.below(4) {
            0 => self.random.below(len),
            _ => self.random.below(len.min(YOUNG)),
        };
        self.markets[m].resting[(len - 1 - back) as usize]
    }

    /// Updates the lists of resting orders with the engine's results.
    fn learn(&mut self, m: usize, command: &Command) {
        for i in 0..self.events.len() {
            match self.events[i] {
                Event::Trade {
                    maker_order,
                    maker_completed: true,
                    ..
                } => {
                    self.forget(m, maker_order);
                }
                Event::Reduce {
                    completed: true, ..
                } => {
                    if let Command::Cancel { order_id, .. } | Command::Reduce { order_id, .. } =
                        *command
                    {
                        self.forget(m, order_id);
                    }
                }
                _ => {}
            }
        }
        let (order_id, uid, placed) = match *command {
            Command::Place(place) => (place.order_id, place.uid, true),
            Command::Move { order_id, uid, .. } => (order_id, uid, false),
            _ => return,
        };
        let book = self.state.matching.book(self.markets[m].symbol);
        match (book.and_then(|book| book.order(uid, order_id)), placed) {
            (Some(order), true) => {
                self.places[order_id.0 as usize] = self.markets[m].resting.len() as u32;
                let (order, action, price) = (order_id.0 as u64, order.action, order.price);
                self.markets[m].resting.push(Resting {
                    uid,
                    order,
                    action,
                    price,
                });
            }
            (Some(order), false) => {
                let place = self.places[order_id.0 as usize] as usize;
                self.markets[m].resting[place].price = order.price;
            }
            (None, _) => self.forget(m, order_id),
        }
    }

    fn forget(&mut self, m: usize, order: OrderId) {
        let place = std::mem::replace(&mut self.places[order.0 as usize], GONE);
        if place == GONE {
            return;
        }
        let resting = &mut self.markets[m].resting;
        resting.swap_remove(place as usize);
        if let Some(moved) = resting.get(place as usize) {
            self.places[moved.order as usize] = place;
        }
    }
}

/// Returns the kind of a command, in one word.
pub(crate) fn kind(command: &Command) -> &'static str {
    match command {
        Command::Place(_) => "place",
        Command::Cancel { .. } => "cancel",
        Command::Move { .. } => "move",
        Command::Reduce { .. } => "reduce",
        Command::Amend(_) => "amend",
        Command::AddUser { .. } => "add_user",
        Command::Balance { .. } => "balance",
        Command::PayFees { .. } => "pay_fees",
        Command::SetLimits { .. } => "set_limits",
        Command::Suspend { .. } => "suspend",
        Command::Resume { .. } => "resume",
        Command::AddSymbols(_) => "add_symbols",
        Command::AddAccounts(_) => "add_accounts",
        Command::PlaceConditional(_) => "place_with",
        Command::CancelAll { .. } => "cancel_all",
        Command::Disconnect { .. } => "disconnect",
        Command::Clock { .. } => "clock",
        Command::SetPriceBand { .. } => "set_price_band",
        Command::SetMarketProtection { .. } => "set_market_protection",
        Command::StartAuction { .. } => "start_auction",
        Command::Uncross { .. } => "uncross",
        Command::RunStops { .. } => "run_stops",
        Command::Halt { .. } => "halt",
        Command::Unhalt { .. } => "unhalt",
        Command::RemoveSymbol { .. } => "remove_symbol",
        Command::Nop => "nop",
        Command::Reset => "reset",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use thalweg_exchange::ResultCode;
    use thalweg_exchange::report::state_text::state_text_hash;

    fn run(commands: &[Command]) -> (State, u64, u64) {
        let (mut state, mut events) = (State::default(), Events::new());
        let (mut successes, mut trades) = (0, 0);
        for command in commands {
            let result = apply(&mut state, command, &mut events);
            successes += u64::from(result == ResultCode::Success);
            trades += events
                .iter()
                .filter(|e| matches!(e, Event::Trade { .. }))
                .count() as u64;
        }
        (state, successes, trades)
    }

    #[test]
    fn a_seed_is_a_flow_on_every_machine() {
        let (state, _, _) = run(&commands(1, 20_000));
        // If the flow or the engine's results change, this hash changes too: note it in the
        // CHANGELOG.
        assert_eq!(
            format!("{:016x}", state_text_hash(&state).hash),
            "5c6f0cdb0e9c825e"
        );
        assert_eq!(
            commands(1, 500),
            commands(1, 20_000)[..500],
            "a longer flow begins the same"
        );
        assert_ne!(commands(1, 500), commands(2, 500));
    }

    #[test]
    fn the_mix_looks_like_a_market() {
        let commands = commands(7, 50_000);
        assert_eq!(commands.len(), 50_000);
        let (state, successes, trades) = run(&commands);
        assert!(
            (49_500..50_000).contains(&successes),
            "{successes} succeed, some do not"
        );
        assert!((2_000..15_000).contains(&trades), "{trades} trades");
        for wanted in ["place", "cancel", "move", "reduce"] {
            let found = commands.iter().filter(|c| kind(c) == wanted).count();
            assert!(found > 1_000, "{found} of {wanted}");
        }
        let book = state.matching.book(SYMBOLS[0].0).unwrap();
        assert!(book.levels(Action::Bid, usize::MAX).count() > 20);
        assert!(book.best(Action::Bid).unwrap().price < book.best(Action::Ask).unwrap().price);
    }

    #[test]
    fn any_seed_and_the_shortest_lengths_work() {
        for count in [1, 2, 3] {
            assert_eq!(commands(u64::MAX, count).len() as u64, count);
        }
    }
}
