//! One symbol and rich users, and orders around a middle price.

use thalweg_exchange::{
    AccountSpec, Action, Command, CurrencyId, OrderFlags, OrderId, OrderType, Place, SymbolId,
    SymbolSpec, SymbolType, UserId,
};
use thalweg_measure::random::SplitMix;

/// The symbol.
pub const SYMBOL: SymbolId = SymbolId(7);
/// The currency that is traded; a futures symbol has none.
pub const BASE: CurrencyId = CurrencyId(1);
/// The currency that pays.
pub const QUOTE: CurrencyId = CurrencyId(2);
/// Asks begin right above it.
pub const MIDDLE: i64 = 1_000_000;
/// Up to where a bid may be moved: what money is held for.
pub const RESERVE: i64 = 2 * MIDDLE;

/// Adds the symbol, and users 1 to `users` who can pay for what any stream asks of them.
#[must_use]
pub fn setup(symbol_type: SymbolType, users: i64) -> Vec<Command> {
    let symbol = SymbolSpec {
        id: SYMBOL,
        symbol_type,
        base_currency: BASE,
        quote_currency: QUOTE,
        base_scale: 10,
        quote_scale: 10,
        taker_fee: 5,
        maker_fee: 3,
        margin_buy: 100,
        margin_sell: 100,
        ..SymbolSpec::default()
    };
    let each = i64::MAX / (users + 1);
    let account = |uid| AccountSpec::new(UserId(uid), vec![(BASE, each), (QUOTE, each)]);
    let accounts: Vec<AccountSpec> = (1..=users).map(account).collect();
    let mut setup = vec![
        Command::AddSymbols([symbol].into()),
        Command::AddAccounts(accounts.into()),
    ];
    if symbol_type == SymbolType::Futures {
        setup.push(Command::set_price_band(SYMBOL, 1, RESERVE));
    }
    setup
}

/// A limit order that rests where it does not match, of some lots at a price.
#[must_use]
pub const fn place(
    order_id: OrderId,
    uid: UserId,
    action: Action,
    (price, size): (i64, i64),
) -> Place {
    Place {
        uid,
        symbol: SYMBOL,
        order_id,
        order_type: OrderType::Gtc,
        action,
        price,
        reserve_price: match action {
            Action::Ask => 0,
            Action::Bid => RESERVE,
        },
        size,
        flags: OrderFlags::NONE,
    }
}

/// One side or the other.
pub fn side(random: &mut SplitMix) -> Action {
    match random.below(2) {
        0 => Action::Ask,
        _ => Action::Bid,
    }
}

/// A price `distance` levels from the middle, from 1.
#[must_use]
pub const fn behind(action: Action, distance: i64) -> i64 {
    match action {
        Action::Ask => MIDDLE + distance,
        Action::Bid => MIDDLE + 1 - distance,
    }
}
