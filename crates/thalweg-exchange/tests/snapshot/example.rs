//! A small state with something of everything, whose numbers are each there once.

use thalweg_exchange::{
    AccountSpec, Action, AdjustmentKind, Command, ConditionalOrder, CurrencyId, Events, OrderFlags,
    OrderId, Place, ResultCode, Rules, SelfTrade, State, SymbolId, SymbolSpec, SymbolType, UserId,
    UserLimits, apply,
};

pub(crate) const PAIR: SymbolId = SymbolId(11);
pub(crate) const FUTURES: SymbolId = SymbolId(12);

fn symbols() -> Command {
    let pair = SymbolSpec::pair(PAIR, CurrencyId(101), CurrencyId(102))
        .with_scales(3, 2)
        .with_fees(71, 37);
    let futures = SymbolSpec {
        id: FUTURES,
        symbol_type: SymbolType::Futures,
        margin_buy: 5_003,
        margin_sell: 4_003,
        ..pair
    };
    let option = SymbolSpec {
        id: SymbolId(13),
        symbol_type: SymbolType::Option,
        ..pair
    };
    Command::AddSymbols([pair, futures, option].into())
}

pub(crate) fn limit(
    symbol: SymbolId,
    uid: i64,
    id: i64,
    action: Action,
    lots: (i64, i64),
) -> Place {
    Place::limit((UserId(uid), OrderId(id)), symbol, action, lots)
}

fn asks() -> Vec<Command> {
    use Action::{Ask, Bid};
    let flags = OrderFlags::NONE
        .with_self_trade(SelfTrade::CancelBoth)
        .with_cancel_on_disconnect();
    let flagged = limit(PAIR, 1002, 2003, Ask, (70_007, 31)).with_flags(flags);
    let order = |place| ConditionalOrder::from(place);
    let iceberg = order(limit(PAIR, 1001, 2004, Ask, (70_007, 53)))
        .with_display(17)
        .with_good_till(600_011);
    let same_time = order(limit(PAIR, 1001, 2005, Bid, (60_013, 7))).with_good_till(600_011);
    let stop = |id, action, trigger, price| {
        order(limit(PAIR, 1001, id, action, (price, 9))).with_trigger(trigger)
    };
    let late = stop(2008, Bid, 90_017, 90_023).with_good_till(600_029);
    let with = |order: ConditionalOrder| Command::PlaceConditional(order.into());
    vec![
        Command::Place(limit(PAIR, 1001, 2001, Ask, (66_001, 11))),
        Command::Place(limit(PAIR, 1002, 2002, Bid, (66_001, 4))),
        Command::Place(flagged),
        with(iceberg),
        with(same_time),
        with(stop(2006, Ask, 50_021, 50_017)),
        with(stop(2007, Ask, 50_009, 50_007)),
        with(late),
        Command::Place(limit(FUTURES, 1001, 2010, Bid, (30_011, 19))),
        Command::Place(limit(FUTURES, 1002, 2011, Ask, (30_011, 13))),
    ]
}

/// Everything: users of every status, limits, ids, a clock, bands, a halt; orders that rest, wait,
/// hide and expire; positions.
pub(crate) fn commands() -> Vec<Command> {
    let account = |uid, amounts: [i64; 2]| AccountSpec {
        uid: UserId(uid),
        balances: [(CurrencyId(101), amounts[0]), (CurrencyId(102), amounts[1])].into(),
    };
    let accounts = [
        account(1001, [7_000_000_003, 8_000_000_009]),
        account(1002, [7_100_000_003, 8_100_000_009]),
    ];
    let limits = UserLimits {
        open_orders: 77,
        order_size: 9_999,
        ids_once: true,
    };
    let balance = |amount, transaction_id| Command::Balance {
        uid: UserId(1003),
        currency: CurrencyId(101),
        amount,
        transaction_id,
        kind: AdjustmentKind::Suspend,
    };
    let last = Command::Place(limit(PAIR, 1003, 2012, Action::Ask, (88_001, 1)));
    let set = |uid, limits| Command::SetLimits {
        uid,
        limits: Some(limits),
    };
    let of_all = UserLimits::NONE.with_open_orders(4_000_001);
    let mut commands = vec![
        symbols(),
        Command::AddAccounts(accounts.into()),
        set(None, of_all),
        set(Some(UserId(1002)), limits),
        Command::Clock { time: 500_009 },
        Command::set_price_band(FUTURES, 20_011, 40_009),
        Command::SetMarketProtection {
            symbol: PAIR,
            ticks: 313,
        },
    ];
    commands.extend(asks());
    commands.extend([
        Command::AddUser { uid: UserId(1003) },
        balance(3, 3_000_000_019),
        last,
        Command::Suspend { uid: UserId(1003) },
        Command::AddUser { uid: UserId(1004) },
        Command::Halt {
            symbol: SymbolId(13),
        },
    ]);
    commands
}

pub(crate) fn state(rules: Rules) -> State {
    let mut state = State::new(rules);
    for command in &commands() {
        let result = apply(&mut state, command, &mut Events::new());
        assert_eq!(result, ResultCode::Success, "{command:?}");
    }
    state
}
