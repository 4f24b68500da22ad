//! An exchange that is run badly on purpose: a ring of 64 slots, a thread for each stage, and all
//! of them spin, the caller's too. On two cores each waits for its turn while another one waits for
//! it. `THALWEG_EXPORT=DIR` leaves the figures in a file there.
//! `cargo run --release -p thalweg-exchange --example badly -- [COMMANDS]`

use std::error::Error;

use thalweg::pipeline::Placement;
use thalweg::wait::Strategy;
use thalweg_exchange::service::{Options, Service};
use thalweg_exchange::{
    AccountSpec, Action, Command, CurrencyId, OrderId, Place, State, SymbolId, SymbolSpec, UserId,
};

fn main() -> Result<(), Box<dyn Error>> {
    let commands: i64 = std::env::args()
        .nth(1)
        .as_deref()
        .unwrap_or("2000")
        .parse()?;
    let (symbol, coin, euro) = (SymbolId(1), CurrencyId(1), CurrencyId(2));
    let users = [UserId(1), UserId(2)];
    let account = |uid| AccountSpec {
        uid,
        balances: vec![(coin, 1 << 40), (euro, 1 << 50)],
    };
    let options = Options {
        capacity: 64,
        placement: Placement::threads(4).waiting(Strategy::Spin),
        ..Options::default()
    };
    let mut service = Service::start(State::default(), options, |_| ())?;
    let spec = SymbolSpec::pair(symbol, coin, euro);
    service.submit(&Command::AddSymbols([spec].into()), 0)?;
    service.submit(&Command::AddAccounts(users.map(account).into()), 0)?;
    for number in 0..commands {
        let (user, action) = match number % 2 {
            0 => (users[0], Action::Ask),
            _ => (users[1], Action::Bid),
        };
        let terms = (1_000 + number % 7, 1 + number % 5);
        let place = Place::limit((user, OrderId(number)), symbol, action, terms);
        service.submit(&Command::Place(place), 0)?;
    }
    print!("{}", service.join()?.stats);
    Ok(())
}
