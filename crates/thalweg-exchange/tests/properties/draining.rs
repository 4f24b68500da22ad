//! Random commands in a world of high fees and little money, where settlements do lower balances,
//! if the rules let them: asks moved under the fee, a maker fee above the taker fee, budget asks,
//! and futures.

use proptest::prelude::*;
use thalweg_exchange::{
    AccountSpec, Action, Command, CurrencyId, OrderId, OrderType, Place, Rules, SymbolId,
    SymbolSpec, SymbolType, UserId,
};

/// Money of each of the three users, of either currency, before it is scaled.
const MONEY: i64 = 800;
/// Scales everything so that all money together is just inside 64 bits.
pub(crate) const UNIT_MAX: i64 = i64::MAX / (3 * MONEY);

/// Symbols, and money for users 1 to 3.
pub(crate) fn setup(unit: i64) -> Vec<Command> {
    let pair = |id, taker_fee, maker_fee| {
        SymbolSpec::pair(SymbolId(id), CurrencyId(10), CurrencyId(20))
            .with_scales(5 * unit, 2 * unit)
            .with_fees(taker_fee * unit, maker_fee * unit)
    };
    // Fees and margin that take much of what a user has.
    let futures = pair(3, 40, 20)
        .with_type(SymbolType::Futures)
        .with_margins(30 * unit, 20 * unit);
    let money = vec![
        (CurrencyId(10), MONEY * unit),
        (CurrencyId(20), MONEY * unit),
    ];
    let account = |uid| AccountSpec::new(UserId(uid), money.clone());
    vec![
        Command::AddSymbols([pair(1, 40, 20)].into()),
        // Refused where that is mended.
        Command::AddSymbols([pair(2, 3, 2_000)].into()),
        Command::AddSymbols([futures].into()),
        Command::AddAccounts((1..4).map(account).collect()),
        Command::set_price_band(SymbolId(3), 1, 9),
        // Refused where a band is needed.
        Command::set_price_band(SymbolId(3), i64::MIN, i64::MAX),
    ]
}

fn place() -> impl Strategy<Value = Command> {
    let order_type = prop_oneof![
        5 => Just(OrderType::Gtc),
        2 => Just(OrderType::Ioc),
        3 => Just(OrderType::FokBudget),
        1 => Just(OrderType::IocBudget),
    ];
    let action = prop::sample::select(vec![Action::Ask, Action::Bid]);
    let price = prop_oneof![4 => 1..40_i64, 1 => prop::sample::select(vec![-400, -4, 0])];
    let size = prop_oneof![9 => 1..9_i64, 1 => -3..1_i64];
    (
        1..4_i64,
        1..4_i32,
        0..9_i64,
        order_type,
        action,
        (price, 0..3_i64),
        size,
    )
        .prop_map(
            |(uid, symbol, order_id, order_type, action, (price, shift), size)| {
                let budget = order_type.is_budget();
                Command::Place(Place {
                    uid: UserId(uid),
                    symbol: SymbolId(symbol),
                    order_id: OrderId(order_id),
                    order_type,
                    action,
                    price: if budget && action == Action::Bid {
                        price * size
                    } else {
                        price
                    },
                    reserve_price: if budget { price * size } else { price + shift },
                    size,
                    flags: thalweg_exchange::OrderFlags::NONE,
                })
            },
        )
}

fn command() -> impl Strategy<Value = Command> {
    let order = || {
        (1..4_i64, 1..4_i32, 0..9_i64)
            .prop_map(|(uid, symbol, id)| (UserId(uid), SymbolId(symbol), OrderId(id)))
    };
    let price = prop_oneof![4 => 1..40_i64, 1 => Just(-400)];
    let shift = (order(), price).prop_map(|((uid, symbol, order_id), price)| {
        Command::move_to(uid, symbol, order_id, price)
    });
    prop_oneof![
        6 => place(),
        3 => shift,
        1 => order().prop_map(|(uid, symbol, order_id)| Command::Cancel { uid, symbol, order_id }),
    ]
}

/// A stream over this world; `unit` scales all money.
pub(crate) fn stream(unit: i64, length: usize) -> impl Strategy<Value = Vec<Command>> {
    prop::collection::vec(command(), 1..length).prop_map(move |mut commands| {
        commands.splice(0..0, setup(unit));
        commands
    })
}

/// All rules mended but one, or none: so that no quirk hides another.
pub(crate) fn one_quirk() -> impl Strategy<Value = Rules> {
    let mended = Rules::MENDED;
    prop::sample::select(vec![
        mended,
        Rules {
            refuse_maker_fee_over_taker: false,
            ..mended
        },
        Rules {
            refuse_moved_ask_under_fee: false,
            ..mended
        },
        Rules {
            refuse_not_positive: false,
            ..mended
        },
        Rules::REFERENCE,
    ])
}
