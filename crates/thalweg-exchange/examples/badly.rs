//! An exchange that is run badly on purpose, in one or several of three ways: `spin`, a thread for
//! each stage, whatever cores there are, and all of them spin, the caller's too; `batch`, a stage
//! publishes its progress to the next one at the end of all that it found waiting, not every 64
//! commands; `ring`, 64 slots. Without `spin` one thread runs all stages; `well` leaves everything
//! as it is. Commands come as fast as they are taken, or `RATE` times a second `BURST` at once.
//! `THALWEG_EXPORT=DIR` leaves the figures in a file there.
//!
//! `cargo run --release -p thalweg-exchange --example badly -- [HOW] [COMMANDS] [max|RATExBURST]`

use std::error::Error;

use thalweg::pipeline::Placement;
use thalweg::wait::WaitStrategy;
use thalweg_exchange::service::{Service, ServiceOptions};
use thalweg_exchange::{
    AccountSpec, Action, Command, CurrencyId, OrderId, Place, State, SymbolId, SymbolSpec, UserId,
};
use thalweg_measure::clock::Clock;
use thalweg_measure::load::{OpenLoop, Rate};

const SYMBOL: SymbolId = SymbolId(1);
const USERS: [UserId; 2] = [UserId(1), UserId(2)];

fn order(number: i64) -> Command {
    let (user, action) = match number % 2 {
        0 => (USERS[0], Action::Ask),
        _ => (USERS[1], Action::Bid),
    };
    let terms = (1_000 + number % 7, 1 + number % 5);
    Command::Place(Place::limit((user, OrderId(number)), SYMBOL, action, terms))
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let how = arguments
        .next()
        .unwrap_or_else(|| "spin+batch+ring".to_owned());
    let commands: i64 = arguments.next().as_deref().unwrap_or("2000").parse()?;
    let load = arguments.next().unwrap_or_else(|| "max".to_owned());
    let is = |fault| how.split('+').any(|word| word == fault);
    let mut options = ServiceOptions {
        sample_every: 16,
        ..ServiceOptions::default()
    };
    if is("spin") {
        options.placement = Placement::threads(2).waiting(WaitStrategy::Spin);
    } else if !is("well") {
        options.placement = Placement::threads(1);
    }
    if is("batch") {
        options.progress = Some(usize::MAX);
    }
    if is("ring") {
        options.capacity = 64;
    }
    let mut service = Service::start(State::default(), options, |_| ())?;
    let (coin, euro) = (CurrencyId(1), CurrencyId(2));
    let spec = SymbolSpec::pair(SYMBOL, coin, euro);
    let account = |uid| AccountSpec::new(uid, vec![(coin, 1 << 40), (euro, 1 << 50)]);
    service.submit(&Command::AddSymbols([spec].into()), 0)?;
    service.submit(&Command::AddAccounts(USERS.map(account).into()), 0)?;
    if load == "max" {
        for number in 0..commands {
            service.submit(&order(number), 0)?;
        }
    } else {
        let (rate, burst) = load.split_once('x').unwrap_or((&load, "1"));
        let (rate, burst): (Rate, i64) = (rate.parse()?, burst.parse()?);
        let mut load = OpenLoop::new(Clock::global(), rate);
        let mut due = 0;
        for number in 0..commands {
            if number % burst == 0 {
                due = load.next_due();
                load.wait_until(due);
            }
            service.submit_due(&order(number), due, 0)?;
        }
    }
    print!("{}", service.join()?.stats);
    Ok(())
}
