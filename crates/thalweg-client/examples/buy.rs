//! Buys 3 lots on `thalweg exchange serve --demo`, with the key of user 7 that it prints:
//! `cargo run -p thalweg-client --example buy -- KEY`
use std::error::Error;
use thalweg_client::exchange::execution::Execution;
use thalweg_client::exchange::{Action, OrderId, OrderType, Place, SymbolId, UserId};
use thalweg_client::{BlockingTradeClient, Event, Options};

pub(crate) fn buy(address: &str, key: &str) -> Result<(), Box<dyn Error>> {
    let mut options = Options::new(address, 7);
    options.key = key.into();
    let (client, mut events) = BlockingTradeClient::connect(options)?;
    let order = OrderId(client.welcome().next_command as i64);
    let mut buy = Place::limit((UserId(7), order), SymbolId(1), Action::Bid, (20_000, 3));
    buy.order_type = OrderType::Ioc;
    println!("{}", client.submit(buy)?.wait());
    while let Some(event) = events.next() {
        let Event::Report(report) = event else {
            continue;
        };
        if let Execution::Trade { price, size, .. } = report.report.kind {
            println!("bought {size} at {price}");
        }
        if report.report.is_final() {
            break;
        }
    }
    Ok(())
}

#[allow(dead_code, reason = "the suite of thalweg-cli calls buy() alone")]
fn main() -> Result<(), Box<dyn Error>> {
    let key = std::env::args().nth(1).ok_or("which key?")?;
    buy("127.0.0.1:7411", &key)
}
