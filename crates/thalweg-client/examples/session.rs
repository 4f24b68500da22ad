//! Buys in an exchange that listens on 127.0.0.1:7411, and prints the outcome of the order.
//! `cargo run -p thalweg-client --example session -- 1001`

use thalweg_client::exchange::{Action, OrderId, OrderType, Place, SymbolId, UserId};
use thalweg_client::{Event, Options, TradeClient};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let user: i64 = std::env::args().nth(1).unwrap_or("1001".into()).parse()?;
    let options = Options::new("127.0.0.1:7411", user);
    let (client, mut events) = TradeClient::connect(options).await?;
    let order = Place::limit(
        (UserId(user), OrderId(client.welcome().next_command as i64)),
        SymbolId(1),
        Action::Bid,
        (100, 1),
    )
    .with_type(OrderType::Ioc);
    let ticket = client.submit(order).await?;
    println!("{}", ticket.await);
    client.close().await;
    while let Some(event) = events.next().await {
        match event {
            Event::Report(report) => println!("report {}: {:?}", report.number, report.report.kind),
            Event::Closed(reason) => println!("{reason}"),
            _ => {}
        }
    }
    Ok(())
}
