//! Random commands: small worlds where orders meet and money is short, and extreme numbers.

use std::collections::BTreeMap;

use proptest::prelude::*;
use thalweg_exchange::{
    AccountSpec, Action, AdjustmentKind, Amend, Command, CurrencyId, OrderId, OrderType, Place,
    Rules, SymbolId, SymbolSpec, SymbolType, UserId,
};

/// Which quirks of the reference a stream may meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mix {
    /// None: both sets of rules must agree.
    Plain,
    /// All that the plain exchange models.
    Quirks,
}

fn pair(id: i32, currencies: (i32, i32), scales: (i64, i64), fees: (i64, i64)) -> SymbolSpec {
    SymbolSpec::pair(
        SymbolId(id),
        CurrencyId(currencies.0),
        CurrencyId(currencies.1),
    )
    .with_scales(scales.0, scales.1)
    .with_type(SymbolType::CurrencyPair)
    .with_fees(fees.0, fees.1)
}

fn futures(id: i32, currencies: (i32, i32), fees: (i64, i64), margin: (i64, i64)) -> SymbolSpec {
    pair(id, currencies, (1, 1), fees)
        .with_type(SymbolType::Futures)
        .with_margins(margin.0, margin.1)
}

/// Symbols 1 to 3 are pairs, 4 a pair that drains buying makers (where quirks are allowed), 5 and 8
/// futures contracts, 6 an option.
pub(crate) fn symbols(mix: Mix) -> Command {
    let mut specs = vec![
        pair(1, (10, 20), (5, 2), (7, 3)),
        pair(2, (10, 20), (1, 1), (0, 0)),
        pair(3, (20, 30), (3, 1), (4, 4)),
        futures(5, (10, 20), (2, 3), (9, 7)),
        futures(8, (30, 20), (1, 0), (0, 11)),
        pair(6, (10, 20), (1, 1), (0, 0)).with_type(SymbolType::Option),
    ];
    if mix == Mix::Quirks {
        specs.push(pair(4, (10, 20), (1, 2), (3, 9)));
    }
    Command::AddSymbols(specs.into())
}

/// Bands for the futures contracts, which take no orders without one where they are covered; there
/// is none where that is not asked for.
pub(crate) fn bands(high: i64) -> [Command; 4] {
    let band = |symbol, low, high| Command::set_price_band(SymbolId(symbol), low, high);
    // The second of each is refused where the first is needed.
    let none = (i64::MIN, i64::MAX);
    [
        band(5, 1, high),
        band(5, none.0, none.1),
        band(8, 1, high),
        band(8, none.0, none.1),
    ]
}

/// A command about one order with the user and id that are given for those it names, and for
/// whether the order is new.
pub(crate) fn renamed(
    mut command: Command,
    mut name: impl FnMut(bool, SymbolId, UserId, OrderId) -> (UserId, OrderId),
) -> Command {
    match &mut command {
        Command::Place(place) => {
            let named = name(true, place.symbol, place.uid, place.order_id);
            (place.uid, place.order_id) = named;
        }
        Command::PlaceConditional(order) => {
            let mut own = **order;
            let place = &mut own.place;
            let named = name(true, place.symbol, place.uid, place.order_id);
            (place.uid, place.order_id) = named;
            *order = own.into();
        }
        Command::Amend(amend) => {
            let (uid, order_id) = name(false, amend.symbol, amend.uid, amend.order_id);
            let symbol = amend.symbol;
            *amend = Amend {
                uid,
                symbol,
                order_id,
                ..**amend
            }
            .into();
        }
        Command::Move {
            uid,
            symbol,
            order_id,
            ..
        }
        | Command::Cancel {
            uid,
            symbol,
            order_id,
        }
        | Command::Reduce {
            uid,
            symbol,
            order_id,
            ..
        } => {
            (*uid, *order_id) = name(false, *symbol, *uid, *order_id);
        }
        _ => {}
    }
    command
}

/// Gives every user ids that no other user has.
pub(crate) fn with_own_ids(command: Command) -> Command {
    renamed(command, |_, _, uid, id| {
        (uid, OrderId(id.0 + uid.0 * 1_000))
    })
}

/// Gives most new orders the next id of their symbol: one in use is rejected before it trades. An
/// id of 0 that was drawn for a new order stands for the one before; those of other commands say
/// how many orders of the symbol are newer.
pub(crate) fn with_fresh_ids(commands: &mut [Command]) {
    let mut next: BTreeMap<SymbolId, i64> = BTreeMap::new();
    for command in commands {
        *command = renamed(std::mem::take(command), |is_new, symbol, uid, drawn| {
            let next = next.entry(symbol).or_default();
            let is_fresh = is_new && drawn.0 > 0;
            *next += i64::from(is_fresh);
            let newer = if is_fresh { 0 } else { drawn.0 };
            (uid, OrderId(*next - newer))
        });
    }
}

/// Gives most orders with an id the same owner, so that other commands mostly find them.
pub(crate) fn with_owners(command: Command) -> Command {
    renamed(command, |_, _, _, id| (UserId(id.0.rem_euclid(5) + 1), id))
}

pub(crate) fn accounts() -> Command {
    let account = |uid, money: i64| AccountSpec {
        uid: UserId(uid),
        balances: vec![
            (CurrencyId(20), money * 9),
            (CurrencyId(10), money),
            (CurrencyId(30), money),
        ],
    };
    // Two with so little that they may be suspended while an order of theirs rests.
    let poor =
        |uid, currency, amount| AccountSpec::new(UserId(uid), vec![(CurrencyId(currency), amount)]);
    let rich = [account(1, 300), account(2, 60), account(3, 100)];
    let poor = [poor(4, 10, 1), poor(5, 20, 7)];
    Command::AddAccounts(rich.into_iter().chain(poor).collect())
}

/// Users 4 and 5 put all they have into an order, and are suspended.
fn suspended_with_orders() -> [Command; 4] {
    let place = |uid, action, price| {
        Place::limit((UserId(uid), OrderId(uid)), SymbolId(2), action, (price, 1))
    };
    [
        Command::Place(place(4, Action::Ask, 10)),
        Command::Place(place(5, Action::Bid, 7)),
        Command::Suspend { uid: UserId(4) },
        Command::Suspend { uid: UserId(5) },
    ]
}

fn place(mix: Mix) -> impl Strategy<Value = Command> {
    let lowest = if mix == Mix::Quirks { -2 } else { 4 };
    let types = if mix == Mix::Quirks {
        prop::sample::select(OrderType::ALL.to_vec())
    } else {
        prop::sample::select(vec![OrderType::Gtc, OrderType::Ioc, OrderType::FokBudget])
    };
    let order_type = prop_oneof![3 => Just(OrderType::Gtc), 2 => types];
    let action = prop::sample::select(vec![Action::Ask, Action::Bid]);
    let smallest = if mix == Mix::Quirks { 0 } else { 1 };
    let price = lowest..16_i64;
    let shift = prop_oneof![8 => 0..6_i64, 1 => Just(-1)];
    (
        1..=5_i64,
        symbol(mix),
        0..20_i64,
        order_type,
        action,
        price,
        shift,
        smallest..9_i64,
    )
        .prop_map(
            |(uid, symbol, order_id, order_type, action, price, shift, size)| {
                let budget = order_type.is_budget();
                // FOK_BUDGET needs a price above zero: see `extreme` for the others.
                let price = if budget {
                    (price.max(1) + shift.max(0)) * size.max(1)
                } else {
                    price
                };
                let reserve_price = match action {
                    Action::Ask => 0,
                    Action::Bid if budget && shift >= 0 => price,
                    Action::Bid => price + shift,
                };
                Command::Place(
                    Place::limit(
                        (UserId(uid), OrderId(order_id)),
                        symbol,
                        action,
                        (price, size),
                    )
                    .with_type(order_type)
                    .with_reserve(reserve_price),
                )
            },
        )
}

/// Both sets of rules differ in futures where a position is closed in part, so a plain stream has
/// none.
fn symbol(mix: Mix) -> impl Strategy<Value = SymbolId> {
    let futures = if mix == Mix::Quirks { 4 } else { 0 };
    prop_oneof![
        6 => Just(1), 2 => Just(2), 2 => Just(3), 2 => Just(4), 1 => 6..8,
        futures => Just(5), futures / 2 => Just(8),
    ]
    .prop_map(SymbolId)
}

fn order(mix: Mix) -> impl Strategy<Value = (UserId, SymbolId, OrderId)> {
    (1..=5_i64, symbol(mix), 0..20_i64)
        .prop_map(|(uid, symbol, id)| (UserId(uid), symbol, OrderId(id)))
}

/// Returns changes of balances, of a user in a currency, by an amount and a transaction id.
pub(crate) fn balance(
    place: (
        impl Strategy<Value = UserId>,
        impl Strategy<Value = CurrencyId>,
    ),
    (amount, id): (impl Strategy<Value = i64>, impl Strategy<Value = i64>),
) -> impl Strategy<Value = Command> {
    let kind = prop::sample::select(vec![AdjustmentKind::Adjustment, AdjustmentKind::Suspend]);
    (place, amount, id, kind).prop_map(|((uid, currency), amount, transaction_id, kind)| {
        Command::Balance {
            uid,
            currency,
            amount,
            transaction_id,
            kind,
        }
    })
}

pub(crate) fn command(mix: Mix) -> impl Strategy<Value = Command> {
    let lowest = if mix == Mix::Quirks { -2 } else { 4 };
    let uid = || (1..=5_i64).prop_map(UserId);
    let ids = (1..=3_i32).prop_map(|id| CurrencyId(id * 10));
    let balance = balance((uid(), ids), (-400..400_i64, 0..2_000_000_000_i64));
    // The mended rules refuse suspended users, so a plain stream has none.
    let protection = (symbol(mix), 0..5_i64)
        .prop_map(|(symbol, ticks)| Command::SetMarketProtection { symbol, ticks });
    let suspend = if mix == Mix::Quirks { 4 } else { 0 };
    prop_oneof![
        60 => place(mix),
        16 => (order(mix), lowest..18_i64).prop_map(|((uid, symbol, order_id), price)| {
            Command::Move { uid, symbol, order_id, price }
        }),
        10 => order(mix).prop_map(|(uid, symbol, order_id)| {
            Command::Cancel { uid, symbol, order_id }
        }),
        10 => (order(mix), -1..8_i64).prop_map(|((uid, symbol, order_id), by)| {
            Command::Reduce { uid, symbol, order_id, by }
        }),
        4 => balance,
        2 => uid().prop_map(|uid| Command::AddUser { uid }),
        suspend / 2 => (prop::bool::ANY, -2..6_i64, 8..18_i64).prop_map(|(five, low, high)| {
            let symbol = SymbolId(if five { 5 } else { 8 });
            Command::SetPriceBand { symbol, low, high }
        }),
        suspend => (4..=5_i64).prop_map(UserId).prop_map(|uid| Command::Suspend { uid }),
        2 => uid().prop_map(|uid| Command::Resume { uid }),
        1 => prop_oneof![Just(Command::Nop), protection],
    ]
}

/// A stream over the small world.
pub(crate) fn stream(mix: Mix, length: usize) -> impl Strategy<Value = Vec<Command>> {
    prop::collection::vec(command(mix), 1..length).prop_map(move |mut commands| {
        commands.splice(0..0, [symbols(mix), accounts()]);
        if mix == Mix::Quirks {
            commands.splice(2..2, suspended_with_orders());
            commands.splice(2..2, bands(17));
        } else {
            commands = commands.into_iter().map(with_own_ids).collect();
        }
        commands
    })
}

/// Numbers at and around the limits, and small ones.
fn extreme() -> impl Strategy<Value = i64> {
    let limits = vec![
        i64::MIN,
        i64::MIN + 1,
        -(1 << 62),
        -(1 << 32),
        -7,
        -1,
        0,
        1,
        2,
        3,
        100,
        1 << 31,
        1 << 32,
        3_037_000_500,
        1 << 61,
        1 << 62,
        i64::MAX / 2,
        i64::MAX - 1,
        i64::MAX,
    ];
    prop_oneof![3 => prop::sample::select(limits), 3 => -3..12_i64, 1 => any::<i64>()]
}

fn extreme_spec() -> impl Strategy<Value = SymbolSpec> {
    let scale = || prop_oneof![4 => 1..4_i64, 1 => extreme()];
    let fee = || prop_oneof![4 => 0..6_i64, 1 => extreme()];
    (
        1..4_i32,
        1..4_i32,
        1..4_i32,
        (scale(), scale()),
        (fee(), fee()),
        prop::option::weighted(0.4, (fee(), fee())),
    )
        .prop_map(|(id, base, quote, scales, fees, margin)| match margin {
            None => pair(id, (base, quote), scales, fees),
            Some(margin) => futures(id, (base, quote), fees, margin),
        })
}

fn extreme_admin() -> impl Strategy<Value = Command> {
    let uid = || (1..4_i64).prop_map(UserId);
    let money = prop::collection::vec((1..4_i32, extreme()), 0..4);
    let accounts = prop::collection::vec((1..4_i64, money), 1..3).prop_map(|accounts| {
        let account = |(uid, money): (i64, Vec<(i32, i64)>)| AccountSpec {
            uid: UserId(uid),
            balances: money
                .into_iter()
                .map(|(id, amount)| (CurrencyId(id), amount))
                .collect(),
        };
        Command::AddAccounts(accounts.into_iter().map(account).collect())
    });
    let specs = prop::collection::vec(extreme_spec(), 1..3);
    prop_oneof![
        4 => specs.prop_map(|specs| Command::AddSymbols(specs.into())),
        6 => accounts,
        3 => uid().prop_map(|uid| Command::AddUser { uid }),
        1 => uid().prop_map(|uid| Command::Suspend { uid }),
        1 => uid().prop_map(|uid| Command::Resume { uid }),
        1 => Just(Command::Nop),
    ]
}

/// Bands that can be had, most of them, and such as cannot.
fn extreme_band() -> impl Strategy<Value = Command> {
    let valid = (1..3_i64, prop_oneof![Just(3_i64), Just(100), Just(1 << 36)]);
    let bounds = prop_oneof![3 => valid, 1 => (extreme(), extreme())];
    (1..4_i32, bounds)
        .prop_map(|(symbol, (low, high))| Command::set_price_band(SymbolId(symbol), low, high))
}

/// Any command with any numbers, over few users, symbols and ids.
pub(crate) fn extreme_command() -> impl Strategy<Value = Command> {
    let uid = || (1..4_i64).prop_map(UserId);
    let symbol = || (1..4_i32).prop_map(SymbolId);
    let id = || (1..6_i64).prop_map(OrderId);
    let order_type = prop::sample::select(OrderType::ALL.to_vec());
    let action = prop::sample::select(vec![Action::Ask, Action::Bid]);
    let prices = (extreme(), extreme(), any::<bool>());
    let place = (uid(), symbol(), id(), order_type, action, prices, extreme()).prop_map(
        |(uid, symbol, order_id, order_type, action, (price, other, same), size)| {
            let reserve_price = if same { price } else { other };
            Command::Place(
                Place::limit((uid, order_id), symbol, action, (price, size))
                    .with_type(order_type)
                    .with_reserve(reserve_price),
            )
        },
    );
    let ids = (1..4_i32).prop_map(CurrencyId);
    let balance = balance((uid(), ids), (extreme(), extreme()));
    prop_oneof![
        10 => place,
        4 => (uid(), symbol(), id(), extreme()).prop_map(|(uid, symbol, order_id, price)| {
            Command::Move { uid, symbol, order_id, price }
        }),
        1 => (uid(), symbol(), id()).prop_map(|(uid, symbol, order_id)| {
            Command::Cancel { uid, symbol, order_id }
        }),
        2 => (uid(), symbol(), id(), extreme()).prop_map(|(uid, symbol, order_id, by)| {
            Command::Reduce { uid, symbol, order_id, by }
        }),
        5 => balance,
        1 => extreme_band(),
        3 => extreme_admin(),
    ]
}

/// The rules of an exchange that was begun before the latest ones.
pub(crate) const BEFORE_LATER_RULES: Rules = Rules {
    refuse_rejected: false,
    bound_work: false,
    hold_futures_fees: false,
    ..Rules::MENDED
};

/// Every mix of mended and unmended quirks.
pub(crate) fn rules() -> impl Strategy<Value = Rules> {
    let mixed = any::<[bool; 17]>().prop_map(|on| Rules {
        margin_trading: on[0],
        fill_fok: on[1],
        fill_ioc_budget: on[2],
        refuse_not_positive: on[3],
        refuse_maker_fee_over_taker: on[4],
        refuse_moved_ask_under_fee: on[5],
        refuse_suspended: on[6],
        withdrawal_keeps_margin: on[7],
        realise_partial_close: on[8],
        cover_futures: on[9],
        bound_budgets: on[10],
        keep_transaction_ids: on[11],
        ids_per_user: on[12],
        refuse_rejected: on[13],
        trigger_passed_stops: on[14],
        bound_work: on[15],
        hold_futures_fees: on[16],
    });
    prop_oneof![
        1 => Just(Rules::REFERENCE),
        1 => Just(Rules::default()),
        1 => Just(BEFORE_LATER_RULES),
        2 => mixed,
    ]
}
