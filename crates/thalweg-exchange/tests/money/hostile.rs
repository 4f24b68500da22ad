//! Commands of hostile users who work together, and of the market's operators.

use proptest::prelude::*;
use thalweg_exchange::{
    AccountSpec, Action, Amend, Command, ConditionalOrder, CurrencyId, FeeUnit, OrderFlags,
    OrderId, OrderType, Place, SymbolId, SymbolSpec, SymbolType, UserId, UserLimits,
};

use crate::money::market::{BASE, FUTURES, PAIR, QUOTE, buy, of_type, sell};

/// Another pair and another futures symbol.
pub(crate) const OTHER_PAIR: SymbolId = SymbolId(3);
pub(crate) const OTHER_FUTURES: SymbolId = SymbolId(4);
pub(crate) const COINS: CurrencyId = CurrencyId(30);
pub(crate) const SYMBOLS: [SymbolId; 4] = [PAIR, FUTURES, OTHER_PAIR, OTHER_FUTURES];
pub(crate) const CURRENCIES: [CurrencyId; 3] = [BASE, QUOTE, COINS];
/// The hostile users are 1 to 4. This user only pays in.
pub(crate) const BYSTANDER: UserId = UserId(9);
/// This user wants to trade.
pub(crate) const RIVAL: UserId = UserId(8);
/// The deposit of those two, in each currency.
pub(crate) const DEPOSIT: i64 = 1_000_000_000_000;

/// The fees of [`SYMBOLS`], of takers and makers, and their unit.
pub(crate) type Fees = (FeeUnit, [(i64, i64); 4]);

pub(crate) const FEES_PER_LOT: Fees = (FeeUnit::PerLot, [(40, 3), (2, 1), (40, 0), (0, 7)]);

/// Fees per lot, with rebates, and of the value: a twentieth, all of it, a tenth of what is opened.
pub(crate) fn fees() -> impl Strategy<Value = Fees> {
    let (lots, value) = (FeeUnit::PerLot, FeeUnit::Millionth);
    let with_rebates = (lots, [(40, -40), (2, 1), (40, -3), (0, 7)]);
    let of_value = (
        value,
        [
            (50_000, -50_000),
            (100_000, 30_000),
            (1_000_000, 7),
            (0, 90_000),
        ],
    );
    let of_little = (
        value,
        [
            (100, 100),
            (1, 0),
            (333_333, -333_332),
            (1_000_000, 1_000_000),
        ],
    );
    prop_oneof![
        3 => Just(FEES_PER_LOT),
        1 => Just(with_rebates),
        2 => Just(of_value),
        1 => Just(of_little),
    ]
}

/// Symbols, bands, and users with money: hostile ones with little, or with much.
pub(crate) fn opening(money: i64, (fee_unit, fees): Fees) -> Vec<Command> {
    let spec = |id, symbol_type, base, quote, (taker_fee, maker_fee), margin| SymbolSpec {
        id,
        symbol_type,
        base_currency: base,
        quote_currency: quote,
        base_scale: 2,
        quote_scale: 3,
        taker_fee,
        maker_fee,
        margin_buy: margin,
        margin_sell: margin / 2,
        fee_unit,
    };
    let pair = SymbolType::CurrencyPair;
    let futures = SymbolType::Futures;
    let specs = [
        spec(PAIR, pair, BASE, QUOTE, fees[0], 0),
        spec(OTHER_PAIR, pair, QUOTE, COINS, fees[2], 0),
        spec(FUTURES, futures, BASE, QUOTE, fees[1], 4),
        spec(OTHER_FUTURES, futures, COINS, QUOTE, fees[3], 300),
    ];
    let account =
        |uid, money| AccountSpec::new(uid, CURRENCIES.map(|currency| (currency, money)).into());
    let mut accounts: Vec<_> = (1..=4).map(|uid| account(UserId(uid), money)).collect();
    accounts.push(account(RIVAL, DEPOSIT));
    accounts.push(account(BYSTANDER, DEPOSIT));
    let band = |symbol, low, high| Command::SetPriceBand { symbol, low, high };
    vec![
        Command::AddSymbols(specs.into()),
        Command::AddAccounts(accounts.into()),
        band(FUTURES, 10, 40),
        band(OTHER_FUTURES, 100, 110),
    ]
}

fn uid() -> impl Strategy<Value = UserId> {
    (1..=4_i64).prop_map(UserId)
}

fn symbol() -> impl Strategy<Value = SymbolId> {
    let pairs = prop_oneof![2 => Just(PAIR), 1 => Just(OTHER_PAIR)];
    let futures = prop_oneof![2 => Just(FUTURES), 1 => Just(OTHER_FUTURES)];
    prop_oneof![1 => pairs, 2 => futures]
}

/// Returns where the band of a symbol begins, and how wide it is, as long as it is not moved.
const fn band_of(symbol: SymbolId) -> (i64, i64) {
    match symbol {
        OTHER_FUTURES => (100, 11),
        FUTURES => (10, 31),
        _ => (1, 31),
    }
}

/// A price of the symbol's band, or any other.
fn price_in(symbol: SymbolId, price: i64) -> i64 {
    let (low, width) = band_of(symbol);
    if (10..=40).contains(&price) {
        low + (price - 10) % width
    } else {
        price
    }
}

fn price() -> impl Strategy<Value = i64> {
    let limits = vec![
        i64::MIN,
        -1,
        0,
        1,
        9,
        10,
        40,
        41,
        100,
        110,
        111,
        1 << 36,
        (1 << 36) + 1,
        9_000_000_000_000_000,
        i64::MAX / 2,
        i64::MAX,
    ];
    prop_oneof![18 => 10..=40_i64, 1 => prop::sample::select(limits)]
}

fn size() -> impl Strategy<Value = i64> {
    let limits = vec![i64::MIN, -1, 0, 1_000, 1 << 24, 1 << 25, 1 << 40, i64::MAX];
    prop_oneof![20 => 1..9_i64, 1 => prop::sample::select(limits)]
}

pub(crate) fn place() -> impl Strategy<Value = Place> {
    let order_type = prop_oneof![
        5 => Just(OrderType::Gtc),
        1 => Just(OrderType::Ioc),
        1 => prop::sample::select(OrderType::ALL.to_vec()),
    ];
    let action = prop::sample::select(vec![Action::Ask, Action::Bid]);
    // Not filtered: proptest gives up after 65,536 draws that are refused.
    let all: Vec<_> = (0..32).filter_map(OrderFlags::from_code).collect();
    let flags = prop_oneof![4 => Just(OrderFlags::NONE), 1 => prop::sample::select(all)];
    let terms = (order_type, action, flags);
    (
        uid(),
        symbol(),
        0..12_i64,
        terms,
        (price(), 0..3_i64),
        size(),
    )
        .prop_map(
            |(uid, symbol, id, (order_type, action, flags), (price, more), size)| {
                let is_budget = order_type.is_budget();
                let price = price_in(symbol, price);
                let price = if is_budget && more > 0 {
                    price.saturating_mul(size)
                } else {
                    price
                };
                Place {
                    uid,
                    symbol,
                    order_id: OrderId(id),
                    order_type,
                    action,
                    price,
                    reserve_price: if is_budget {
                        price
                    } else {
                        price.saturating_add(more)
                    },
                    size,
                    flags,
                }
            },
        )
}

fn conditional() -> impl Strategy<Value = Command> {
    let option = |most: i64| prop::option::of(1..most);
    (place(), option(45), option(1_200), option(30)).prop_map(
        |(mut place, trigger, display, good_till)| {
            place.order_type = OrderType::Gtc;
            let order = ConditionalOrder {
                trigger,
                display,
                good_till,
                ..place.into()
            };
            Command::PlaceConditional(order.into())
        },
    )
}

fn balance() -> impl Strategy<Value = Command> {
    let amount = prop_oneof![
        3 => -400..0_i64,
        2 => 1..200_i64,
        1 => prop::sample::select(vec![i64::MIN, -1_000_000, i64::MAX / 2, i64::MAX]),
    ];
    let currency = prop::sample::select(CURRENCIES.to_vec());
    // Few transaction ids, so that old ones come again.
    (uid(), currency, amount, 0..60_i64).prop_map(|(uid, currency, amount, id)| {
        Command::deposit(uid, currency, amount, 2_000_000_000 + id)
    })
}

/// Payments of fees that may not be there, some of them again.
fn payment_of_fees() -> impl Strategy<Value = Command> {
    let amount =
        prop_oneof![4 => 1..60_i64, 1 => prop::sample::select(vec![i64::MIN, 0, i64::MAX])];
    let currency = prop::sample::select(CURRENCIES.to_vec());
    (uid(), currency, amount, 0..60_i64).prop_map(|(uid, currency, amount, id)| Command::PayFees {
        uid,
        currency,
        amount,
        transaction_id: 2_000_000_000 + id,
    })
}

fn limits() -> impl Strategy<Value = Command> {
    let limits =
        (0..6_u32, 1..9_i64, any::<bool>()).prop_map(|(open_orders, order_size, ids_once)| {
            UserLimits {
                open_orders,
                order_size,
                ids_once,
            }
        });
    // Limits of all users would keep the rival from trading.
    (uid(), prop::option::of(limits)).prop_map(|(uid, limits)| Command::SetLimits {
        uid: Some(uid),
        limits,
    })
}

fn of_an_order() -> impl Strategy<Value = Command> {
    let numbers = (price(), size(), size());
    (uid(), symbol(), 0..12_i64, numbers, 0..6_u8).prop_map(|(uid, symbol, id, numbers, kind)| {
        let (number, size_before, size) = numbers;
        let order_id = OrderId(id);
        let number = price_in(symbol, number);
        match kind {
            0 => Command::move_to(uid, symbol, order_id, number),
            1 => Command::cancel(uid, symbol, order_id),
            2 => Command::reduce(uid, symbol, order_id, number / 8),
            // With few sizes, many are right.
            _ => Command::Amend(std::sync::Arc::new(Amend {
                uid,
                symbol,
                order_id,
                action: [Action::Ask, Action::Bid][usize::from(kind & 1)],
                reserve_price: number,
                size_before,
                price: if kind == 5 {
                    number
                } else {
                    price_in(symbol, number / 2)
                },
                size,
            })),
        }
    })
}

/// Commands that users can send.
pub(crate) fn of_a_user() -> impl Strategy<Value = Command> {
    prop_oneof![
        18 => place().prop_map(Command::Place),
        3 => conditional(),
        6 => of_an_order(),
        3 => balance(),
    ]
}

/// Commands of the market's operators, among them bands that move futures away from their owners'
/// money.
fn of_the_market() -> impl Strategy<Value = Command> {
    let shift = prop_oneof![3 => -25..25_i64, 1 => Just(0)];
    let band = (symbol(), shift, 0..40_i64).prop_map(|(symbol, shift, width)| {
        let low = (band_of(symbol).0 + shift).max(1);
        Command::set_price_band(symbol, low, low + width)
    });
    prop_oneof![
        12 => band,
        1 => (symbol(), -1..9_i64)
            .prop_map(|(symbol, ticks)| Command::SetMarketProtection { symbol, ticks }),
        1 => symbol().prop_map(|symbol| Command::StartAuction { symbol }),
        3 => (symbol(), prop::option::of(price()))
            .prop_map(|(symbol, reference)| Command::Uncross { symbol, reference }),
        1 => symbol().prop_map(|symbol| Command::Halt { symbol }),
        2 => symbol().prop_map(|symbol| Command::Unhalt { symbol }),
        1 => symbol().prop_map(|symbol| Command::RemoveSymbol { symbol }),
        2 => (0..40_i64).prop_map(|time| Command::Clock { time }),
        16 => payment_of_fees(),
        4 => limits(),
        2 => uid().prop_map(|uid| Command::Suspend { uid }),
        2 => uid().prop_map(|uid| Command::Resume { uid }),
        1 => uid().prop_map(|uid| Command::AddUser { uid }),
        1 => (prop::option::of(uid()), prop::option::of(symbol()))
            .prop_map(|(uid, symbol)| Command::CancelAll { uid, symbol }),
        1 => uid().prop_map(|uid| Command::Disconnect { uid }),
    ]
}

/// A user without money sells by a budget into bids that do not bring in its fee.
fn dump() -> impl Strategy<Value = Vec<Command>> {
    let types = prop::sample::select(vec![OrderType::IocBudget, OrderType::FokBudget]);
    (1..4_i64, 1..5_i64, 1..4_i64, types).prop_map(|(price, size, amount, order_type)| {
        let withdraw =
            |id: i64| Command::deposit(UserId(2), QUOTE, -amount * 20, 2_000_000_100 + id);
        let mut commands: Vec<Command> = (0..3).map(withdraw).collect();
        commands.push(buy(1, 30, PAIR, price, size));
        commands.push(of_type(&sell(2, 31, PAIR, 14, size), order_type));
        commands
    })
}

/// Users alone, in a market that stays as it is.
pub(crate) fn users_alone(length: usize) -> impl Strategy<Value = Vec<Command>> {
    let money = prop::sample::select(vec![60, 700, 9_000, 1 << 40]);
    let commands = prop::collection::vec(of_a_user(), 1..length);
    (money, fees(), dump(), commands).prop_map(|(money, fees, dump, commands)| {
        let mut all = opening(money, fees);
        all.extend(dump);
        all.extend(commands);
        all
    })
}

/// Two users trade, the band moves away from what one of them has, and both close.
fn squeeze() -> impl Strategy<Value = Vec<Command>> {
    let users = (1..=4_i64, 1..4_i64).prop_map(|(one, step)| (one, (one - 1 + step) % 4 + 1));
    (users, 1..=5_i64, 10..=40_i64, any::<bool>()).prop_map(|((one, other), size, price, up)| {
        let trade = |buyer, seller, price| {
            [
                buy(buyer, 20, FUTURES, price, size),
                sell(seller, 20, FUTURES, price, size),
            ]
        };
        let (low, high) = if up { (38, 80) } else { (1, 12) };
        let symbol = FUTURES;
        let mut commands = trade(one, other, price).to_vec();
        commands.push(Command::SetPriceBand { symbol, low, high });
        commands.extend(trade(other, one, if up { high } else { low }));
        let (low, high) = (10, 40);
        commands.push(Command::SetPriceBand { symbol, low, high });
        commands
    })
}

/// A user who has nothing is suspended, comes back, and has an old deposit sent again.
fn come_back() -> impl Strategy<Value = Vec<Command>> {
    (uid(), 1..50_i64, any::<bool>()).prop_map(|(uid, amount, is_new)| {
        let balance = |id: i64, amount| Command::deposit(uid, COINS, amount, 2_000_000_200 + id);
        let back = if is_new {
            Command::AddUser { uid }
        } else {
            Command::Resume { uid }
        };
        let deposit = balance(1, amount);
        vec![
            deposit.clone(),
            balance(2, -amount),
            Command::Suspend { uid },
            back,
            deposit,
        ]
    })
}

/// Users, and a market that moves.
pub(crate) fn everybody(length: usize) -> impl Strategy<Value = Vec<Command>> {
    everybody_for(length, fees())
}

/// Commands of users and of a market that moves, where these fees are charged.
pub(crate) fn everybody_for(
    length: usize,
    fees: impl Strategy<Value = Fees>,
) -> impl Strategy<Value = Vec<Command>> {
    let money = prop::sample::select(vec![0, 160, 170, 700, 9_000, 1 << 40]);
    let any = prop_oneof![9 => of_a_user(), 1 => of_the_market()];
    let any = prop_oneof![30 => any.prop_map(|one| vec![one]), 1 => squeeze(), 1 => come_back()];
    (money, fees, prop::collection::vec(any, 1..length)).prop_map(|(money, fees, commands)| {
        let mut all = opening(money, fees);
        all.extend(commands.concat());
        all
    })
}
