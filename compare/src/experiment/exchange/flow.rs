//! Flows of commands to be timed: streams of the reference's load generator, and seeded flows of
//! our own, which are equal on every machine.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;

use counts::venue::{SYMBOL, behind, place, setup, side};
use flate2::bufread::GzDecoder;
use thalweg_exchange::book::{Book, Level, RestingOrder};
use thalweg_exchange::stream::LoadStream;
use thalweg_exchange::{
    Action, Command, Event, Events, OrderId, OrderType, Place, ResultCode, Rules, State, SymbolId,
    SymbolType, UserId, apply,
};
use thalweg_measure::random::SplitMix;

use crate::runner::text;

const SIDES: [Action; 2] = [Action::Ask, Action::Bid];
/// A stream of the reference's load generator has this name.
pub(crate) const PAIR: &str = "perf_exchange_1m";
pub(crate) const MARGIN: &str = "perf_margin_1m";

/// The levels of both sides, asks first, best first.
pub type Levels = Vec<(Action, Level)>;

/// A flow has commands to be timed, all of one symbol.
#[derive(Debug, Clone)]
pub struct Flow {
    symbol: SymbolId,
    /// These commands add the symbol and the users, and fund them.
    setup: Vec<Command>,
    /// These commands fill the book.
    prefill: Vec<Command>,
    /// These commands are timed, or a part of them.
    pub commands: Vec<Command>,
    /// The parts that are timed: from one command to before another. An empty list times all.
    pub blocks: Vec<[usize; 2]>,
    /// The levels of the book that must be left.
    pub levels: Levels,
    /// The trades that its commands make.
    pub trades: u64,
}

/// Reads up to `most` commands of a stream from `../shared/streams` beside the workspace.
fn read(name: &str, most: u64) -> Result<LoadStream, String> {
    let manifest = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let streams = manifest.join("../../shared/streams");
    let path = streams.join(format!("{name}.csv.gz"));
    if !path.exists() {
        return Err(format!("{} is not there", path.display()));
    }
    let file = BufReader::new(File::open(&path).map_err(text)?);
    let (mut kept, mut commands) = (String::new(), 0);
    for line in BufReader::new(GzDecoder::new(file)).lines() {
        let line = line.map_err(text)?;
        commands += u64::from(line.starts_with(['P', 'C', 'M', 'R']));
        if commands > most {
            break;
        }
        kept += &line;
        kept.push('\n');
    }
    let stream = LoadStream::read(kept.as_bytes());
    stream.map_err(|error| format!("{}: {error}", path.display()))
}

impl Flow {
    /// Returns up to `most` commands of [`PAIR`] or [`MARGIN`].
    ///
    /// # Errors
    /// The stream is not there, or is not of the format.
    pub(crate) fn shared(name: &str, most: u64) -> Result<Self, String> {
        let stream = read(name, most)?;
        let flow = Self::new(stream.setup, Vec::new(), stream.commands, Vec::new());
        if !stream.final_levels.is_empty() {
            // The stream is whole, and has the levels that a plain loop must leave.
            assert_equal(&flow.levels, &stream.final_levels, "a plain loop");
        }
        Ok(flow)
    }

    /// Runs all commands in a plain loop, to know the levels that must be left.
    fn new(
        setup: Vec<Command>,
        prefill: Vec<Command>,
        commands: Vec<Command>,
        blocks: Vec<[usize; 2]>,
    ) -> Self {
        let symbol = setup.iter().find_map(|command| match command {
            Command::AddSymbols(symbols) => symbols.first().map(|symbol| symbol.id),
            _ => None,
        });
        let mut flow = Self {
            symbol: symbol.unwrap_or(SYMBOL),
            setup,
            prefill,
            commands,
            blocks,
            levels: Vec::new(),
            trades: 0,
        };
        let mut state = State::new(Rules::MENDED);
        let mut events = Events::with_capacity(1024);
        for command in flow.setup.iter().chain(&flow.prefill) {
            succeed(&mut state, command, &mut events);
        }
        for command in &flow.commands {
            apply(&mut state, command, &mut events);
            let trades = events.iter();
            let trades = trades.filter(|event| matches!(event, Event::Trade { .. }));
            flow.trades += trades.count() as u64;
        }
        flow.levels = levels(flow.book(&state));
        flow
    }

    /// Returns a state before the commands, whose memory is warm: all of them were applied to it
    /// once, and the orders that rested were cancelled. `see` gets the outcome of each command.
    pub fn ready(&self, mut see: impl FnMut(&Command, ResultCode, &Events)) -> State {
        let mut state = State::new(Rules::MENDED);
        let mut events = Events::with_capacity(1024).with_levels();
        let mut run = |state: &mut State, commands: &[Command], all_succeed: bool| {
            for command in commands {
                let code = apply(state, command, &mut events);
                let fine = !all_succeed || code == ResultCode::Success;
                assert!(fine, "wrong result of {command:?}: {code:?}");
                see(command, code, &events);
            }
        };
        run(&mut state, &self.setup, true);
        run(&mut state, &self.prefill, true);
        run(&mut state, &self.commands, false);
        let book = self.book(&state);
        let orders = SIDES.into_iter().flat_map(|side| book.orders(side));
        let cancels = orders.map(|order| Command::cancel(order.uid, self.symbol, order.order_id));
        let cancels: Vec<Command> = cancels.collect();
        run(&mut state, &cancels, true);
        run(&mut state, &self.prefill, true);
        state
    }

    /// Returns how many commands are timed.
    pub fn timed(&self) -> usize {
        match &self.blocks[..] {
            [] => self.commands.len(),
            blocks => blocks.iter().map(|[begin, end]| end - begin).sum(),
        }
    }

    /// Runs all commands in pieces that are timed or not. Returns the time of those that are, by
    /// `clock`.
    #[inline]
    pub fn time(&self, clock: impl Fn() -> u64, mut run: impl FnMut(&[Command])) -> f64 {
        let whole = [[0, self.commands.len()]];
        let blocks = match &self.blocks[..] {
            [] => &whole[..],
            blocks => blocks,
        };
        let (mut took, mut done) = (0, 0);
        for &[begin, end] in blocks {
            run(&self.commands[done..begin]);
            let before = clock();
            run(&self.commands[begin..end]);
            took += clock() - before;
            done = end;
        }
        took as f64
    }

    /// Returns the book of the flow's symbol.
    pub fn book<'s>(&self, state: &'s State) -> &'s Book {
        let book = state.matching.book(self.symbol);
        book.expect("the setup added the symbol")
    }

    /// # Panics
    /// The levels are wrong: there is no figure then.
    pub fn assert_levels(&self, state: &State, what: &str) {
        assert_equal(&levels(self.book(state)), &self.levels, what);
    }
}

fn succeed(state: &mut State, command: &Command, events: &mut Events) {
    let code = apply(state, command, events);
    assert_eq!(code, ResultCode::Success, "wrong result of {command:?}");
}

fn assert_equal(found: &Levels, expected: &Levels, what: &str) {
    let first = found.iter().zip(expected).find(|(a, b)| a != b);
    assert!(
        found == expected,
        "wrong result: {what} left {} levels instead of {}, first difference {first:?}",
        found.len(),
        expected.len(),
    );
}

/// Returns the levels of a book.
pub fn levels(book: &Book) -> Levels {
    let level = |side| {
        let levels = book.levels(side, usize::MAX);
        levels.map(move |level| (side, level))
    };
    SIDES.into_iter().flat_map(level).collect()
}

/// A sweep meets at most this many makers.
const SWEEP_MAX: usize = 50;

/// Makes a flow in which nine commands in twenty take; each meets 1 to 50 makers, k or more of them
/// with a probability of k^-1.6, and fills the last one in part or whole. The others place, or
/// cancel where many orders rest. There are 1,000 users, and 20 levels a side, with 100 orders each
/// to begin with.
pub fn trading(count: u64) -> Flow {
    Trader::new(false).flow(count)
}

/// Makes a flow of takers, each of which meets 1 to 50 makers with equal probability, in blocks of
/// 100; the makers for each block are placed before it, outside of the time.
pub fn sweeps(count: u64) -> Flow {
    Trader::new(true).flow(count)
}

/// A trader executes the commands that it makes, to know which makers a taker will meet.
struct Trader {
    state: State,
    events: Events,
    random: SplitMix,
    next_id: i64,
    sweeps_only: bool,
}

impl Trader {
    const USERS: i64 = 1_000;
    const LEVELS: i64 = 20;
    const RESTING: u64 = 2_000;
    /// A block has this many takers.
    const BLOCK: u64 = 100;
    /// A side has this many makers before a block: they rarely run out.
    const BEFORE_BLOCK: u64 = 2 * Self::BLOCK * SWEEP_MAX as u64 / 4;

    fn new(sweeps_only: bool) -> Self {
        Self {
            state: State::new(Rules::default()),
            events: Events::new(),
            random: SplitMix::new(4),
            next_id: 0,
            sweeps_only,
        }
    }

    fn flow(mut self, count: u64) -> Flow {
        let setup = setup(SymbolType::CurrencyPair, Self::USERS);
        for command in &setup {
            succeed(&mut self.state, command, &mut self.events);
        }
        let prefill = (0..2 * Self::RESTING).map(|at| {
            let maker = self.maker(SIDES[at as usize % 2]);
            self.done(maker)
        });
        let prefill = prefill.collect();
        let (mut commands, mut blocks) = (Vec::new(), Vec::new());
        if self.sweeps_only {
            for _ in 0..count.div_ceil(Self::BLOCK) {
                for action in SIDES {
                    for _ in self.resting(action)..Self::BEFORE_BLOCK {
                        let maker = self.maker(action);
                        commands.push(self.done(maker));
                    }
                }
                let takers = commands.len();
                commands.extend((0..Self::BLOCK).map(|_| self.next()));
                blocks.push([takers, commands.len()]);
            }
        } else {
            commands.extend((0..count).map(|_| self.next()));
        }
        Flow::new(setup, prefill, commands, blocks)
    }

    fn done(&mut self, command: Command) -> Command {
        succeed(&mut self.state, &command, &mut self.events);
        command
    }

    fn new_order(&mut self) -> (OrderId, UserId) {
        self.next_id += 1;
        let uid = 1 + self.random.below(Self::USERS as u64) as i64;
        (OrderId(self.next_id), UserId(uid))
    }

    fn maker(&mut self, action: Action) -> Command {
        let (order_id, uid) = self.new_order();
        let distance = 1 + self.random.below(Self::LEVELS as u64) as i64;
        let size = 1 + self.random.below(20) as i64;
        let terms = (behind(action, distance), size);
        Command::Place(place(order_id, uid, action, terms))
    }

    fn next(&mut self) -> Command {
        let action = side(&mut self.random);
        let roll = self.random.below(100);
        let command = if roll < 45 || self.sweeps_only {
            self.taker(action)
        } else if roll < 96 || self.resting(action) < Self::RESTING {
            self.maker(action)
        } else {
            let at = self.random.below(64) as usize;
            let order = self.book().orders(action).nth(at);
            let cancel = order.map(|order| Command::cancel(order.uid, SYMBOL, order.order_id));
            cancel.unwrap_or_else(|| self.maker(action))
        };
        self.done(command)
    }

    fn book(&self) -> &Book {
        let book = self.state.matching.book(SYMBOL);
        book.expect("the setup added it")
    }

    fn resting(&self, action: Action) -> u64 {
        let levels = self.book().levels(action, usize::MAX);
        levels.map(|level| level.orders).sum()
    }

    /// Makes a taker of makers of the side `action`.
    fn taker(&mut self, action: Action) -> Command {
        let makers = match self.sweeps_only {
            true => 1 + self.random.below(SWEEP_MAX as u64) as usize,
            false => (self.random.unit().powf(-1.0 / 1.6) as usize).clamp(1, SWEEP_MAX),
        };
        let met: Vec<RestingOrder> = self.book().orders(action).take(makers).collect();
        let Some((last, before)) = met.split_last() else {
            return self.maker(action);
        };
        let left = |order: &RestingOrder| order.size - order.filled;
        let whole: i64 = before.iter().map(left).sum();
        let part = 1 + self.random.below(left(last) as u64) as i64;
        let (order_id, uid) = self.new_order();
        let terms = (last.price, whole + part);
        let mut taker = place(order_id, uid, action.opposite(), terms);
        if self.random.below(2) == 0 {
            taker.order_type = OrderType::Ioc;
        }
        Command::Place(taker)
    }
}

/// Makes a flow in which orders of these users rest on these levels a side; commands on random ones
/// of them never trade, 70 of a hundred move, 8 reduce, the others place and cancel, as in the
/// reference's load generator.
pub fn resting(orders: u64, users: i64, levels: i64, count: u64) -> Flow {
    /// A bid of this many lots holds 2 * 10^10; each of 100,000 users has 9 * 10^13.
    const SIZE_MAX: u64 = 1_000;
    let mut random = SplitMix::new(11);
    let mut resting: Vec<Place> = Vec::with_capacity(orders as usize);
    let mut next_id = 0;
    let price = |random: &mut SplitMix, action: Action| {
        behind(action, 1 + random.below(levels as u64) as i64)
    };
    let mut placed = |random: &mut SplitMix, resting: &mut Vec<Place>| {
        let action = side(random);
        let uid = UserId(1 + random.below(users as u64) as i64);
        let size = 1 + random.below(SIZE_MAX) as i64;
        next_id += 1;
        let terms = (price(random, action), size);
        resting.push(place(OrderId(next_id), uid, action, terms));
        Command::Place(resting[resting.len() - 1])
    };
    let prefill = (0..orders).map(|_| placed(&mut random, &mut resting));
    let prefill: Vec<Command> = prefill.collect();
    let mut next = || {
        let roll = random.below(100);
        // As many orders are placed as are cancelled.
        if roll >= 78 && resting.len() as u64 <= orders {
            return placed(&mut random, &mut resting);
        }
        let at = random.below(resting.len() as u64) as usize;
        let order = &mut resting[at];
        let (uid, order_id) = (order.uid, order.order_id);
        if roll < 70 {
            order.price = price(&mut random, order.action);
            Command::move_to(uid, SYMBOL, order_id, order.price)
        } else if roll < 78 && order.size > 1 {
            order.size -= 1;
            Command::reduce(uid, SYMBOL, order_id, 1)
        } else {
            resting.swap_remove(at);
            Command::cancel(uid, SYMBOL, order_id)
        }
    };
    let commands = (0..count).map(|_| next()).collect();
    let setup = setup(SymbolType::CurrencyPair, users);
    Flow::new(setup, prefill, commands, Vec::new())
}
