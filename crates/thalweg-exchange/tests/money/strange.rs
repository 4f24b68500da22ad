//! Commands that `hostile` leaves out: unknown users and symbols, ids and times at the ends of 64
//! bits, stop orders of every type, symbols that come back with other terms, batches, and `Reset`.

use proptest::prelude::*;
use thalweg_exchange::{
    AccountSpec, AdjustmentKind, Command, ConditionalOrder, CurrencyId, FeeUnit, OrderId,
    OrderType, Place, Rules, SymbolId, SymbolSpec, SymbolType, UserId,
};

use crate::money::hostile::{
    CURRENCIES, FEES_PER_LOT, SYMBOLS, everybody, of_a_user, opening, place as place_in_band,
};
use crate::money::placements::same_under_every_placement;
use crate::money::watch::no_user_is_robbed;
use crate::properties::commands::BEFORE_LATER_RULES;

const ENDS: [i64; 8] = [
    i64::MIN,
    i64::MIN + 1,
    -1,
    0,
    1,
    i64::MAX - 1,
    i64::MAX,
    1 << 36,
];

fn number() -> impl Strategy<Value = i64> {
    prop_oneof![3 => -3..60_i64, 2 => prop::sample::select(ENDS.to_vec())]
}

fn uid() -> impl Strategy<Value = UserId> {
    let odd = prop::sample::select(vec![i64::MIN, -1, 0, 5, 6, (1 << 32) + 1, i64::MAX]);
    prop_oneof![3 => 1..=4_i64, 2 => odd].prop_map(UserId)
}

fn symbol() -> impl Strategy<Value = SymbolId> {
    let odd = prop::sample::select(vec![i32::MIN, -1, 0, 5, i32::MAX]).prop_map(SymbolId);
    prop_oneof![9 => prop::sample::select(SYMBOLS.to_vec()), 1 => odd]
}

fn order_id() -> impl Strategy<Value = OrderId> {
    prop_oneof![3 => 0..12_i64, 1 => prop::sample::select(ENDS.to_vec())].prop_map(OrderId)
}

/// An ordinary order of any user, with any id.
fn place() -> impl Strategy<Value = Place> {
    let odd = prop::option::weighted(0.1, number());
    (place_in_band(), uid(), order_id(), odd).prop_map(|(place, uid, order_id, reserve)| Place {
        uid,
        order_id,
        reserve_price: reserve.unwrap_or(place.reserve_price),
        ..place
    })
}

fn conditional() -> impl Strategy<Value = Command> {
    let trigger = prop_oneof![3 => 1..45_i64, 1 => number()];
    let terms = (
        prop::option::of(trigger),
        prop::option::weighted(0.3, number()),
        prop::option::weighted(0.3, number()),
    );
    let order_type = prop_oneof![
        3 => Just(OrderType::Gtc),
        3 => Just(OrderType::Ioc),
        1 => prop::sample::select(OrderType::ALL.to_vec()),
    ];
    (place(), order_type, terms).prop_map(
        |(mut place, order_type, (trigger, display, good_till))| {
            place.order_type = order_type;
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

fn of_an_order() -> impl Strategy<Value = Command> {
    (uid(), symbol(), order_id(), number(), 0..3_u8).prop_map(
        |(uid, symbol, order_id, number, kind)| match kind {
            0 => Command::move_to(uid, symbol, order_id, number),
            1 => Command::cancel(uid, symbol, order_id),
            _ => Command::reduce(uid, symbol, order_id, number),
        },
    )
}

fn balance() -> impl Strategy<Value = Command> {
    let kinds = [AdjustmentKind::Adjustment, AdjustmentKind::Suspend];
    let kind = prop::sample::select(kinds.to_vec());
    let id = prop_oneof![9 => (0..60_i64).prop_map(|id| 2_000_000_000 + id), 1 => number()];
    let odd = prop::sample::select(vec![i32::MIN, 0, i32::MAX]).prop_map(CurrencyId);
    let currency = prop_oneof![4 => prop::sample::select(CURRENCIES.to_vec()), 1 => odd];
    (uid(), currency, number(), id, kind).prop_map(
        |(uid, currency, amount, transaction_id, kind)| Command::Balance {
            uid,
            currency,
            amount,
            transaction_id,
            kind,
        },
    )
}

/// The symbols of the opening, some of them with other terms; their bands, so that they trade.
fn symbols_again(is_tame: bool) -> impl Strategy<Value = Vec<Command>> {
    let ends = if is_tame { 1..9_i64 } else { 1..i64::MAX };
    let term = prop_oneof![4 => 0..9_i64, 1 => ends];
    let terms = prop::collection::vec(term, 6);
    let types = [SymbolType::CurrencyPair, SymbolType::Futures];
    let symbol_type = prop::sample::select(types.to_vec());
    let currencies = prop::sample::select(vec![(0, 1), (1, 2), (2, 0), (1, 1)]);
    let change = prop::option::of((symbol_type, terms, currencies));
    (change, prop::sample::select(SYMBOLS.to_vec())).prop_map(|(change, id)| {
        let mut commands = opening(0, FEES_PER_LOT);
        let Command::AddSymbols(specs) = &commands[0] else {
            unreachable!("symbols come first");
        };
        let mut spec = *specs
            .iter()
            .find(|spec| spec.id == id)
            .expect("it is there");
        if let Some((symbol_type, terms, (base, quote))) = change {
            spec = SymbolSpec {
                id,
                symbol_type,
                base_currency: CURRENCIES[base],
                quote_currency: CURRENCIES[quote],
                base_scale: terms[0].max(1),
                quote_scale: terms[1].max(1),
                taker_fee: terms[2],
                maker_fee: terms[3],
                margin_buy: terms[4],
                margin_sell: terms[5],
                fee_unit: [FeeUnit::PerLot, FeeUnit::Millionth][terms[4] as usize & 1],
            };
        }
        commands[0] = Command::AddSymbols([spec, spec].into());
        commands.remove(1);
        commands.insert(0, Command::RemoveSymbol { symbol: id });
        commands
    })
}

fn accounts() -> impl Strategy<Value = Command> {
    let currency = prop::sample::select(CURRENCIES.to_vec());
    let balances = prop::collection::vec((currency, number()), 0..4);
    let account = (uid(), balances).prop_map(|(uid, balances)| AccountSpec { uid, balances });
    prop::collection::vec(account, 0..3).prop_map(|all| Command::AddAccounts(all.into()))
}

fn of_the_market() -> impl Strategy<Value = Command> {
    prop_oneof![
        4 => (symbol(), number(), number())
            .prop_map(|(symbol, low, high)| Command::SetPriceBand { symbol, low, high }),
        2 => (symbol(), 1..40_i64, 0..60_i64).prop_map(|(symbol, low, width)| {
            Command::SetPriceBand { symbol, low, high: low + width }
        }),
        1 => symbol().prop_map(|symbol| Command::Halt { symbol }),
        4 => symbol().prop_map(|symbol| Command::Unhalt { symbol }),
        2 => number().prop_map(|time| Command::Clock { time }),
        2 => uid().prop_map(|uid| Command::Suspend { uid }),
        2 => uid().prop_map(|uid| Command::Resume { uid }),
        4 => uid().prop_map(|uid| Command::AddUser { uid }),
        2 => accounts(),
        1 => (prop::option::of(uid()), prop::option::of(symbol()))
            .prop_map(|(uid, symbol)| Command::CancelAll { uid, symbol }),
        1 => uid().prop_map(|uid| Command::Disconnect { uid }),
        1 => Just(Command::Nop),
    ]
}

/// Strange commands among ordinary ones. `is_tame`: no resets, and no fee that keeps all from
/// trading.
fn strange(length: usize, is_tame: bool) -> impl Strategy<Value = Vec<Command>> {
    let user = prop_oneof![
        4 => conditional(),
        3 => place().prop_map(Command::Place),
        3 => of_an_order(),
        3 => balance(),
    ];
    let one = prop_oneof![6 => of_a_user(), 6 => user, 2 => of_the_market()];
    let reset = if is_tame {
        Command::Nop
    } else {
        Command::Reset
    };
    let again = prop_oneof![
        if is_tame { 0 } else { 1 } => Just(vec![reset]),
        8 => symbols_again(is_tame),
    ];
    let some = prop_oneof![60 => one.prop_map(|one| vec![one]), 1 => again];
    (everybody(10), prop::collection::vec(some, 1..length)).prop_map(|(mut all, some)| {
        all.extend(some.concat());
        all
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(thalweg_testkit::cases(128)))]

    #[test]
    fn strange_commands_rob_no_one(commands in strange(120, true), is_older in any::<bool>()) {
        let rules = if is_older { BEFORE_LATER_RULES } else { Rules::default() };
        no_user_is_robbed(rules, &commands)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(thalweg_testkit::cases(20)))]

    #[test]
    fn strange_commands_do_the_same_under_every_placement(commands in strange(250, false)) {
        same_under_every_placement(&commands)?;
    }
}
