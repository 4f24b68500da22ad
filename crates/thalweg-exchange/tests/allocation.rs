//! `apply` allocates nothing once the state has had its largest size.

use crate::market::recording;

use std::collections::BTreeMap;
use std::path::Path;

use thalweg_exchange::codec::{
    decode_command_into, decode_message, encode_command, encode_message,
};
use thalweg_exchange::durable::replication::{Batch, BatchError};
use thalweg_exchange::market::{Builder, Channels, Epoch};
use thalweg_exchange::{
    AccountSpec, Action, Command, ConditionalOrder, CurrencyId, Event, Events, OrderFlags, OrderId,
    OrderType, Place, ResultCode, Rules, State, SymbolId, SymbolSpec, SymbolType, UserId, apply,
};
use thalweg_testkit::counting::{calls, held, so_far};
use thalweg_testkit::{Random, shared};

use self::recording::recorded;

/// An exchange whose calls to the allocator are counted by command.
struct Counted {
    state: State,
    events: Events,
    calls: BTreeMap<&'static str, u64>,
    trades: u64,
}

impl Counted {
    fn new(rules: Rules) -> Self {
        Self {
            state: State::new(rules),
            events: Events::with_capacity(1024),
            calls: BTreeMap::new(),
            trades: 0,
        }
    }

    fn apply(&mut self, command: &Command) -> ResultCode {
        let before = so_far();
        let result = apply(&mut self.state, command, &mut self.events);
        let calls = so_far() - before;
        if calls > 0 {
            *self.calls.entry(name(command)).or_default() += calls;
        }
        let is_trade = |event: &&Event| matches!(event, Event::Trade { .. });
        self.trades += self.events.iter().filter(is_trade).count() as u64;
        result
    }

    /// Forgets what was counted so far.
    fn is_warm(&mut self) {
        self.calls.clear();
        self.trades = 0;
    }
}

fn name(command: &Command) -> &'static str {
    match command {
        Command::Place(_) => "place",
        Command::Cancel { .. } => "cancel",
        Command::Move { .. } => "move",
        Command::Reduce { .. } => "reduce",
        Command::Balance { .. } => "balance",
        _ => "another",
    }
}

#[test]
fn recorded_streams_allocate_nothing_when_they_come_again() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for name in [
        "edge",
        "edge_nomargin",
        "edge_quirks",
        "margin_20k",
        "exchange_20k",
        "multi_40k",
    ] {
        let file = format!("{name}.txt.gz");
        let own = Some(root.join("tests/data").join(&file)).filter(|path| path.exists());
        let Some(path) = own.or_else(|| shared(&format!("conformance/{file}"))) else {
            continue;
        };
        let (rules, mut commands) = recorded(&path);
        // It forgets everything, the memory as well.
        commands.retain(|command| *command != Command::Reset);
        let mut counted = Counted::new(rules);
        // Orders that rested at the end of the first time are met by the second.
        for _ in 0..4 {
            counted.is_warm();
            for command in &commands {
                counted.apply(command);
            }
        }
        assert!(counted.trades > 0, "{name}");
        assert_eq!(counted.calls, BTreeMap::new(), "{name}");
    }
}

const SYMBOLS: [i32; 3] = [1, 2, 3];
const USERS: u64 = 40;

/// Random commands of a stated shape, over two pairs and a futures contract.
struct Mix {
    random: Random,
    /// Prices of resting orders are at most so far from the middle.
    width: u64,
    /// Order ids in use.
    ids: u64,
    symbols: &'static [i32],
}

impl Mix {
    fn setup() -> [Command; 3] {
        let spec = |id, symbol_type| {
            SymbolSpec::pair(SymbolId(id), CurrencyId(1), CurrencyId(2))
                .with_type(symbol_type)
                .with_fees(3, 2)
                .with_margins(5, 6)
        };
        let specs = [
            spec(1, SymbolType::CurrencyPair),
            spec(2, SymbolType::CurrencyPair),
            spec(3, SymbolType::Futures),
        ];
        let account = |uid| AccountSpec {
            uid: UserId(uid),
            balances: vec![(CurrencyId(1), 1 << 50), (CurrencyId(2), 1 << 55)],
        };
        let accounts: Vec<_> = (0..USERS as i64).map(account).collect();
        [
            Command::AddSymbols(specs.into()),
            Command::AddAccounts(accounts.into()),
            Command::set_price_band(SymbolId(3), 1, 2_000_000),
        ]
    }

    fn price(&mut self) -> i64 {
        let width = self.width;
        let price = 1_000_000 + self.random.below(2 * width) - width;
        price as i64
    }

    fn next(&mut self) -> Command {
        let id = self.random.below(self.ids) as i64;
        let (uid, order_id) = (UserId(id % USERS as i64), OrderId(id));
        let symbols = self.symbols;
        let symbol = SymbolId(symbols[self.random.below(symbols.len() as u64) as usize]);
        match self.random.below(16) {
            0..6 => {
                let action = [Action::Ask, Action::Bid][self.random.below(2) as usize];
                let is_taker = self.random.below(3) == 0;
                let (order_type, size) = if is_taker {
                    (OrderType::Ioc, 30)
                } else {
                    (OrderType::Gtc, 10)
                };
                Command::Place(Place {
                    uid,
                    symbol,
                    order_id,
                    order_type,
                    action,
                    price: self.price(),
                    reserve_price: 2_000_000,
                    size: 1 + self.random.below(size) as i64,
                    flags: OrderFlags::NONE,
                })
            }
            6..9 => Command::cancel(uid, symbol, order_id),
            9..14 => Command::move_to(uid, symbol, order_id, self.price()),
            _ => Command::reduce(uid, symbol, order_id, 1 + self.random.below(4) as i64),
        }
    }
}

/// Counts the allocations of `count` commands of a mix, after `warm` commands of it.
fn run(mut mix: Mix, warm: u32, count: u32) -> Counted {
    let mut counted = Counted::new(Rules::default());
    for command in Mix::setup() {
        assert_eq!(counted.apply(&command), ResultCode::Success);
    }
    for _ in 0..warm {
        counted.apply(&mix.next());
    }
    counted.is_warm();
    for _ in 0..count {
        counted.apply(&mix.next());
    }
    counted
}

/// Orders, trades, moves, cancels and reductions in pairs and futures.
#[test]
fn random_commands_allocate_nothing_near_the_best_prices_or_far_from_them() {
    for (what, symbols, width) in [
        ("pairs", &SYMBOLS[..2], 500),
        ("futures", &SYMBOLS[2..], 500),
        ("all", &SYMBOLS[..], 500),
        ("far", &SYMBOLS[..], 500_000),
    ] {
        let mix = Mix {
            random: Random(7),
            width,
            ids: 2_000,
            symbols,
        };
        let counted = run(mix, 200_000, 200_000);
        assert!(counted.trades > 40_000, "{what}");
        assert_eq!(counted.calls, BTreeMap::new(), "{what}");
    }
}

#[test]
fn frequent_frames_are_written_and_read_without_allocation() {
    let mut mix = Mix {
        random: Random(7),
        width: 500,
        ids: 2_000,
        symbols: &SYMBOLS,
    };
    let mut state = State::default();
    let mut events = Events::with_capacity(64).with_levels();
    let mut builder = Builder::new(Epoch(1), Channels::default());
    let setup = Mix::setup();
    let begin = setup.len() as u64;
    for (number, command) in (0..).zip(setup) {
        let result = apply(&mut state, &command, &mut events);
        builder
            .apply(number, &command, result, &events)
            .expect("in step");
    }
    let (mut frame, mut read) = ([0; 4096], Command::Nop);
    let mut calls = 0;
    for sequence in begin..begin + 5_000 {
        let command = mix.next();
        let result = apply(&mut state, &command, &mut events);
        let applied = builder.apply(sequence, &command, result, &events);
        let messages = applied.expect("in step");
        let before = so_far();
        let length = encode_command(&command, &mut frame).expect("there is room");
        assert_eq!(decode_command_into(&frame, &mut read), Ok(length));
        assert_eq!(read, command);
        for message in messages {
            let length = encode_message(message, &mut frame).expect("there is room");
            assert_eq!(decode_message(&frame), Ok((*message, length)));
        }
        calls += so_far() - before;
    }
    assert_eq!(calls, 0);
}

#[test]
fn a_packed_batch_that_seems_to_be_long_is_refused_before_memory_is_taken() {
    // Its head, the length of its records, and one byte: for 64 bytes at most.
    let mut batch = [&[2][..], &[0; 55 + 8 + 1]].concat();
    for length in [65, 320 << 10, u64::from(u32::MAX), u64::MAX] {
        batch[56..64].copy_from_slice(&length.to_le_bytes());
        let mut refused = None;
        assert_eq!(calls(|| refused = Batch::read(&batch).err()), 0);
        assert!(
            matches!(refused, Some(BatchError::Packed(_))),
            "{refused:?}"
        );
    }
}

/// Stop orders of futures that go with their owner's session are in more sets than any others.
#[test]
fn a_stop_order_that_waits_takes_at_most_160_bytes() {
    /// An order's node is a line of a list that has addresses for millions of them at once.
    const NODE: i64 = 64;
    // The index of orders does not grow at these counts.
    const COUNTS: [i64; 2] = [14_000, 100_000];
    for ascending in [true, false] {
        let mut counted = Counted::new(Rules::default());
        for command in Mix::setup() {
            assert_eq!(counted.apply(&command), ResultCode::Success);
        }
        let (mut random, mut held_at) = (Random(7), Vec::new());
        for number in 1..=COUNTS[1] {
            let trigger = if ascending {
                number
            } else {
                1 + random.below(1 << 20) as i64
            };
            let owner = (UserId(number % USERS as i64), OrderId(number));
            let place = Place::limit(owner, SymbolId(3), Action::Bid, (trigger, 1));
            let flags = OrderFlags::NONE.with_cancel_on_disconnect();
            let order = ConditionalOrder::from(Place { flags, ..place }).with_trigger(trigger);
            let result = counted.apply(&Command::PlaceConditional(order.into()));
            assert_eq!(result, ResultCode::Success);
            if COUNTS.contains(&number) {
                held_at.push(held());
            }
        }
        let book = counted.state.matching.book(SymbolId(3)).expect("added");
        assert_eq!(book.waiting().count() as i64, COUNTS[1]);
        let bytes = NODE + (held_at[1] - held_at[0]) / (COUNTS[1] - COUNTS[0]);
        assert!((NODE..=160).contains(&bytes), "{bytes}");
    }
}
