//! Two users, money, two orders, a trade, and the book that is left.
//! `cargo run -p thalweg-exchange --example trade`

use thalweg_exchange::execution::ExecutionReports;
use thalweg_exchange::{
    AccountSpec, Action, Command, CurrencyId, Events, OrderId, Place, State, SymbolId, SymbolSpec,
    UserId, apply,
};

fn main() {
    let (symbol, coin, euro) = (SymbolId(1), CurrencyId(1), CurrencyId(2));
    let (alice, bob) = (UserId(1), UserId(2));
    let account = |uid, money| AccountSpec::new(uid, vec![money]);
    let order =
        |uid, action, terms| Command::Place(Place::limit((uid, OrderId(1)), symbol, action, terms));
    let commands = [
        Command::AddSymbols([SymbolSpec::pair(symbol, coin, euro)].into()),
        Command::AddAccounts([account(alice, (coin, 10)), account(bob, (euro, 5_000))].into()),
        // Alice sells 10 coins at 120 or better. Bob buys 4 at 125 or better, and gets them at 120.
        order(alice, Action::Ask, (120, 10)),
        order(bob, Action::Bid, (125, 4)),
    ];
    let (mut state, mut events) = (State::default(), Events::new());
    for (sequence, command) in (0..).zip(&commands) {
        let result = apply(&mut state, command, &mut events);
        println!("command {sequence}: {result}");
        for report in ExecutionReports::new(sequence, command, result, &events) {
            let (to, what, left) = (report.owner, report.kind, report.left);
            println!("  to {to:?}: {what:?}, {left} left");
        }
    }
    println!("alice has {:?} euro", state.risk.balance(alice, euro));
    println!("bob has {:?} coins", state.risk.balance(bob, coin));
    let asks = state
        .matching
        .book(symbol)
        .map(|book| book.levels(Action::Ask, 5));
    println!("asks: {:?}", asks.into_iter().flatten().collect::<Vec<_>>());
}
