//! Four clients on threads of their own trade with each other; the market data is printed at the
//! end. `cargo run --release -p thalweg-exchange --example clients`

use std::error::Error;
use std::sync::mpsc;
use std::thread;
use std::time::UNIX_EPOCH;

use thalweg_exchange::market::{
    self, Body, BookReplica, Builder, Epoch, Message, ReplicaError, Snapshot,
};
use thalweg_exchange::service::{Client, ClientError, SharedOptions, SharedService};
use thalweg_exchange::{
    AccountSpec, Action, Command, CurrencyId, Event, OrderId, Place, ResultCode, State, SymbolId,
    SymbolSpec, UserId,
};

const CLIENTS: i64 = 4;
const ORDERS: i64 = 5_000;
const SYMBOL: SymbolId = SymbolId(1);

fn setup() -> [Command; 2] {
    let spec = SymbolSpec::pair(SYMBOL, CurrencyId(1), CurrencyId(2)).with_fees(2, 1);
    let account = |uid| AccountSpec {
        uid: UserId(uid),
        balances: vec![(CurrencyId(1), 10_000_000), (CurrencyId(2), 10_000_000_000)],
    };
    [
        Command::AddSymbols([spec].into()),
        Command::AddAccounts((1..=CLIENTS).map(account).collect()),
    ]
}

/// Places orders around a price that wanders, and returns the lots bought and sold as taker.
fn trade(mut client: Client, uid: i64) -> Result<(i64, i64), ClientError> {
    let mut random = uid.unsigned_abs();
    let (mut bought, mut sold) = (0, 0);
    for at in 0..ORDERS {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let dice = i64::from((random >> 33) as u32);
        let action = if dice % 2 == 0 {
            Action::Ask
        } else {
            Action::Bid
        };
        let price = 1_000 + at / 250 + dice / 2 % 11 - 5;
        let order = Command::Place(Place::limit(
            (UserId(uid), OrderId(uid * ORDERS + at)),
            SYMBOL,
            action,
            (price, 1 + dice / 22 % 10),
        ));
        let reply = client.call(&order)?;
        assert_eq!(reply.result, ResultCode::Success);
        for event in reply.events() {
            if let Event::Trade { size, .. } = event {
                *match action {
                    Action::Bid => &mut bought,
                    Action::Ask => &mut sold,
                } += size;
            }
        }
    }
    Ok((bought, sold))
}

/// Follows the feed, prints a summary of it, and returns the book at its end.
fn report(messages: impl Iterator<Item = Message>) -> Result<BookReplica, ReplicaError> {
    let mut replica = BookReplica::new(SYMBOL);
    let (mut trades, mut lots, mut last, mut count) = (0_u64, 0, 0, 0_u64);
    for message in messages {
        replica.apply(&message)?;
        count = message.sequence.0;
        if let Body::Trade { price, size, .. } = message.body {
            trades += 1;
            lots += size;
            last = price;
        }
    }
    println!("{count} messages, no gap: {trades} trades of {lots} lots, the last at {last}");
    println!("{:>10} {:>8} {:>7}", "price", "volume", "orders");
    let asks: Vec<_> = replica.levels(Action::Ask).take(5).collect();
    for level in asks.iter().rev() {
        println!(
            "{:>10} {:>8} {:>7}",
            level.price, level.volume, level.orders
        );
    }
    println!("{:>10}", "--");
    for level in replica.levels(Action::Bid).take(5) {
        println!(
            "{:>10} {:>8} {:>7}",
            level.price, level.volume, level.orders
        );
    }
    Ok(replica)
}

fn main() -> Result<(), Box<dyn Error>> {
    // The publish stage makes market data and hands it on; subscribers are on this thread.
    let (feed, messages) = mpsc::channel();
    // Each start of a feed has another epoch.
    let epoch = Epoch(u64::try_from(UNIX_EPOCH.elapsed()?.as_nanos())?);
    let mut builder = Builder::new(epoch, market::Channels::default());
    let mut options = SharedOptions::default();
    options.service.levels = true;
    let service = SharedService::start(State::default(), options, move |outcome| {
        let messages = builder.apply(
            outcome.sequence,
            outcome.command,
            outcome.result,
            outcome.events,
        );
        // There may be no listener.
        let _ = feed.send(messages.expect("every outcome comes, in order").to_vec());
    })?;
    let mut first = service.client();
    for command in setup() {
        first.call(&command)?;
    }
    let threads: Vec<_> = (1..=CLIENTS)
        .map(|uid| {
            let client = first.clone();
            thread::spawn(move || trade(client, uid))
        })
        .collect();
    for (uid, thread) in (1..).zip(threads) {
        let (bought, sold) = thread.join().expect("a client does not panic")?;
        println!(
            "client {uid}: {ORDERS} orders, took {bought} lots from sellers, {sold} from buyers"
        );
    }
    let finished = service.join()?;

    let replica = report(messages.iter().flatten())?;

    // The book of the engine is equal to it.
    let mut snapshot = Snapshot::default();
    let rebuilt = Builder::from_books(
        &finished.state.matching,
        Epoch(epoch.0 + 1),
        market::Channels::default(),
    );
    assert!(rebuilt.snapshot(SYMBOL, usize::MAX, &mut snapshot));
    assert!(
        replica
            .levels(Action::Ask)
            .eq(snapshot.asks.iter().copied())
    );
    assert!(
        replica
            .levels(Action::Bid)
            .eq(snapshot.bids.iter().copied())
    );
    Ok(())
}
