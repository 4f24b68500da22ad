//! Times state snapshots of a book of `ORDERS` resting orders, by default a million:
//! `cargo bench -p thalweg-exchange --bench snapshot_speed -- [ORDERS]`.
//!
//! Orders of 1,000 users at 2,000 prices a side, placed in random order, as they come to lie in a
//! market that goes on: those of a queue are anywhere in memory. Prints the least and the median
//! milliseconds of several runs.

use std::error::Error;
use std::hint::black_box;
use std::time::{Duration, Instant};

use thalweg_exchange::snapshot::{decode_state, encode_state, state_hash};
use thalweg_exchange::{
    AccountSpec, Action, Command, CurrencyId, Events, OrderId, Place, ResultCode, State, SymbolId,
    SymbolSpec, UserId, apply,
};

const RUNS: usize = 15;
const USERS: u64 = 1_000;
const PRICES: u64 = 2_000;

fn main() -> Result<(), Box<dyn Error>> {
    // `cargo bench` adds `--bench`.
    let mut args = std::env::args().skip(1).filter(|text| text != "--bench");
    let orders = args.next().map_or(Ok(1_000_000), |text| text.parse())?;
    let state = market(orders);
    let mut bytes = Vec::new();
    encode_state(&state, &mut bytes);
    println!("{orders} orders, {} bytes", bytes.len());
    time("encode", || {
        let mut out = Vec::with_capacity(bytes.len());
        encode_state(black_box(&state), &mut out);
        out
    });
    time("hash", || state_hash(black_box(&state)));
    time("decode", || decode_state(black_box(&bytes)));
    Ok(())
}

fn time<T>(what: &str, mut run: impl FnMut() -> T) {
    let mut times: Vec<Duration> = (0..RUNS)
        .map(|_| {
            let start = Instant::now();
            let value = run();
            let took = start.elapsed();
            drop(value);
            took
        })
        .collect();
    times.sort_unstable();
    let ms = |at: usize| times[at].as_secs_f64() * 1e3;
    println!(
        "{what}: least {:.1} ms, median {:.1} ms",
        ms(0),
        ms(RUNS / 2)
    );
}

fn market(orders: u64) -> State {
    let (base, quote) = (CurrencyId(1), CurrencyId(2));
    let account =
        |uid| AccountSpec::new(UserId(uid as i64), vec![(base, 1 << 40), (quote, 1 << 40)]);
    let mut state = State::default();
    let mut events = Events::new();
    let symbol = SymbolId(1);
    let setup = [
        Command::AddSymbols([SymbolSpec::pair(symbol, base, quote)].into()),
        Command::AddAccounts((0..USERS).map(account).collect()),
    ];
    for command in &setup {
        assert_eq!(apply(&mut state, command, &mut events), ResultCode::Success);
    }
    for id in 0..orders {
        // SplitMix64's last step.
        let mixed = (id ^ id >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB) >> 16;
        let step = (mixed % PRICES) as i64;
        let (action, price) = match mixed & 1 << 40 {
            0 => (Action::Ask, 10_000 + step),
            _ => (Action::Bid, 9_999 - step),
        };
        let owner = (UserId((mixed / PRICES % USERS) as i64), OrderId(id as i64));
        let place = Place::limit(owner, symbol, action, (price, 1 + step % 7));
        let command = Command::Place(place);
        assert_eq!(
            apply(&mut state, &command, &mut events),
            ResultCode::Success
        );
    }
    state
}
