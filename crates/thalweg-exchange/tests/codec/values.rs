//! Random commands, reports and messages of every kind.

use std::sync::Arc;

use proptest::option;
use proptest::prelude::*;
use thalweg_exchange::book::Level;
use thalweg_exchange::execution::{CancelReason, Execution, ExecutionReport, TradeId};
use thalweg_exchange::market::{
    BestPrices, Body, Channels, Epoch, FeedSequence, LevelDelta, Message, Quote, Snapshot,
    SymbolSequence,
};
use thalweg_exchange::{
    AccountSpec, Action, Amend, Command, ConditionalOrder, CurrencyId, FeeUnit, OrderFlags,
    OrderId, OrderType, Place, RejectReason, RemovalReason, ResultCode, SymbolId, SymbolSpec,
    SymbolType, UserId, UserLimits,
};

use crate::properties::commands::balance;

/// Numbers of every size, and the extreme ones often.
fn number() -> impl Strategy<Value = i64> + Clone {
    prop_oneof![
        any::<i64>(),
        -300_i64..300,
        prop::sample::select(vec![i64::MIN, i64::MAX, 0, 1, -1]),
    ]
}

fn uid() -> impl Strategy<Value = UserId> + Clone {
    number().prop_map(UserId)
}

fn order_id() -> impl Strategy<Value = OrderId> + Clone {
    number().prop_map(OrderId)
}

fn symbol() -> impl Strategy<Value = SymbolId> + Clone {
    any::<i32>().prop_map(SymbolId)
}

fn currency() -> impl Strategy<Value = CurrencyId> + Clone {
    any::<i32>().prop_map(CurrencyId)
}

fn action() -> impl Strategy<Value = Action> + Clone {
    prop::sample::select(vec![Action::Ask, Action::Bid])
}

fn place() -> impl Strategy<Value = Place> {
    let ids = (uid(), symbol(), order_id());
    let order_type = prop::sample::select(OrderType::ALL.to_vec());
    let flags = prop::sample::select(
        (0..32)
            .filter_map(OrderFlags::from_code)
            .collect::<Vec<_>>(),
    );
    let numbers = (number(), number(), number());
    (ids, order_type, action(), numbers, flags).prop_map(
        |((uid, symbol, order_id), order_type, action, (price, reserve_price, size), flags)| {
            Place {
                uid,
                symbol,
                order_id,
                order_type,
                action,
                price,
                reserve_price,
                size,
                flags,
            }
        },
    )
}

fn conditional() -> impl Strategy<Value = Command> {
    let wish = || option::of(number());
    (place(), wish(), wish(), wish(), number()).prop_map(
        |(place, trigger, display, good_till, time)| {
            // Without any it would be an order of another kind.
            let is_plain = trigger.is_none() && display.is_none();
            Command::PlaceConditional(Arc::new(ConditionalOrder {
                place,
                trigger,
                display,
                good_till: good_till.or(is_plain.then_some(time)),
            }))
        },
    )
}

fn spec() -> impl Strategy<Value = SymbolSpec> {
    let types = vec![
        SymbolType::CurrencyPair,
        SymbolType::Futures,
        SymbolType::Option,
    ];
    let ids = (symbol(), currency(), currency());
    let numbers = prop::array::uniform6(number());
    let units = vec![FeeUnit::PerLot, FeeUnit::Millionth];
    let kinds = (prop::sample::select(types), prop::sample::select(units));
    (ids, kinds, numbers).prop_map(
        |((id, base_currency, quote_currency), (symbol_type, fee_unit), numbers)| SymbolSpec {
            id,
            symbol_type,
            base_currency,
            quote_currency,
            base_scale: numbers[0],
            quote_scale: numbers[1],
            taker_fee: numbers[2],
            maker_fee: numbers[3],
            margin_buy: numbers[4],
            margin_sell: numbers[5],
            fee_unit,
        },
    )
}

fn account() -> impl Strategy<Value = AccountSpec> {
    let balances = prop::collection::vec((currency(), number()), 0..5);
    (uid(), balances).prop_map(|(uid, balances)| AccountSpec { uid, balances })
}

fn of_an_order() -> impl Strategy<Value = Command> {
    prop_oneof![
        (uid(), symbol(), order_id())
            .prop_map(|(uid, symbol, order_id)| Command::cancel(uid, symbol, order_id)),
        (uid(), symbol(), order_id(), number()).prop_map(|(uid, symbol, order_id, price)| {
            Command::move_to(uid, symbol, order_id, price)
        }),
        (uid(), symbol(), order_id(), number())
            .prop_map(|(uid, symbol, order_id, by)| Command::reduce(uid, symbol, order_id, by)),
    ]
}

fn of_a_user() -> impl Strategy<Value = Command> {
    prop_oneof![
        uid().prop_map(|uid| Command::AddUser { uid }),
        uid().prop_map(|uid| Command::Suspend { uid }),
        uid().prop_map(|uid| Command::Resume { uid }),
        balance((uid(), currency()), (number(), number())),
        (uid(), currency(), number(), number()).prop_map(
            |(uid, currency, amount, transaction_id)| Command::PayFees {
                uid,
                currency,
                amount,
                transaction_id,
            }
        ),
        (option::of(uid()), option::of(symbol()))
            .prop_map(|(uid, symbol)| Command::CancelAll { uid, symbol }),
        uid().prop_map(|uid| Command::Disconnect { uid }),
        (
            option::of(uid()),
            option::of((any::<u32>(), number(), any::<bool>()))
        )
            .prop_map(|(uid, limits)| Command::SetLimits {
                uid,
                limits: limits.map(|(open_orders, order_size, ids_once)| UserLimits {
                    open_orders,
                    order_size,
                    ids_once,
                }),
            }),
    ]
}

fn amend() -> impl Strategy<Value = Command> {
    let numbers = (number(), number(), number(), number());
    (uid(), symbol(), order_id(), action(), numbers).prop_map(
        |(uid, symbol, order_id, action, (reserve_price, size_before, price, size))| {
            Command::Amend(Arc::new(Amend {
                uid,
                symbol,
                order_id,
                action,
                reserve_price,
                size_before,
                price,
                size,
            }))
        },
    )
}

fn of_the_market() -> impl Strategy<Value = Command> {
    prop_oneof![
        number().prop_map(|time| Command::Clock { time }),
        (symbol(), number(), number())
            .prop_map(|(symbol, low, high)| Command::set_price_band(symbol, low, high)),
        amend(),
        symbol().prop_map(|symbol| Command::StartAuction { symbol }),
        symbol().prop_map(|symbol| Command::RunStops { symbol }),
        (symbol(), option::of(number()))
            .prop_map(|(symbol, reference)| Command::Uncross { symbol, reference }),
        (symbol(), number())
            .prop_map(|(symbol, ticks)| Command::SetMarketProtection { symbol, ticks }),
        symbol().prop_map(|symbol| Command::Halt { symbol }),
        symbol().prop_map(|symbol| Command::Unhalt { symbol }),
        symbol().prop_map(|symbol| Command::RemoveSymbol { symbol }),
        Just(Command::Nop),
        Just(Command::Reset),
    ]
}

/// Any command.
pub(crate) fn command() -> impl Strategy<Value = Command> {
    prop_oneof![
        3 => place().prop_map(Command::Place),
        2 => conditional(),
        3 => of_an_order(),
        3 => of_a_user(),
        3 => of_the_market(),
        1 => prop::collection::vec(spec(), 0..4)
            .prop_map(|specs| Command::AddSymbols(specs.into())),
        1 => prop::collection::vec(account(), 0..4)
            .prop_map(|accounts| Command::AddAccounts(accounts.into())),
    ]
}

fn body() -> impl Strategy<Value = Body> {
    let quote = || {
        let quote = (number(), number());
        option::of(quote.prop_map(|(price, volume)| Quote { price, volume }))
    };
    let numbers = (number(), number(), any::<u64>());
    prop_oneof![
        3 => (any::<bool>(), numbers, action()).prop_map(
            |(trades, (price, size, orders), side)| match trades {
                true => Body::Trade { price, size, taker_side: side },
                false => Body::Level(LevelDelta { side, price, volume: size, orders }),
            },
        ),
        1 => (quote(), quote()).prop_map(|(ask, bid)| Body::Best(BestPrices { ask, bid })),
        1 => Just(Body::Cleared),
    ]
}

fn channels() -> impl Strategy<Value = Channels> {
    prop::array::uniform3(any::<bool>()).prop_map(|[trades, levels, best]| Channels {
        trades,
        levels,
        best,
    })
}

/// Any market message.
pub(crate) fn message() -> impl Strategy<Value = Message> {
    let numbers = prop::array::uniform3(any::<u64>());
    (numbers, symbol(), channels(), any::<bool>(), body()).prop_map(
        |([epoch, sequence, symbol_sequence], symbol, channels, is_last, body)| Message {
            epoch: Epoch(epoch),
            sequence: FeedSequence(sequence),
            symbol_sequence: SymbolSequence(symbol_sequence),
            channels,
            symbol,
            is_last,
            body,
        },
    )
}

/// Any snapshot, also of books that there can't be.
pub(crate) fn snapshot() -> impl Strategy<Value = Snapshot> {
    let level = || {
        let level = (number(), number(), any::<u64>());
        let level = level.prop_map(|(price, volume, orders)| Level {
            price,
            volume,
            orders,
        });
        prop::collection::vec(level, 0..5)
    };
    let numbers = prop::array::uniform3(any::<u64>());
    let cuts = prop::array::uniform2(any::<bool>());
    let lists = (level(), level());
    (numbers, symbol(), channels(), cuts, lists).prop_map(
        |([epoch, sequence, as_of], symbol, channels, cuts, (asks, bids))| Snapshot {
            symbol,
            epoch: Epoch(epoch),
            channels,
            sequence: FeedSequence(sequence),
            as_of: SymbolSequence(as_of),
            asks,
            bids,
            asks_cut: cuts[0],
            bids_cut: cuts[1],
        },
    )
}

fn cancel_reason() -> impl Strategy<Value = CancelReason> {
    let left = prop::sample::select(RejectReason::ALL.to_vec());
    let removed = prop::sample::select(vec![
        RemovalReason::CancelAll,
        RemovalReason::SelfTrade,
        RemovalReason::SymbolRemoved,
        RemovalReason::OutsideBand,
        RemovalReason::Disconnected,
    ]);
    prop_oneof![
        Just(CancelReason::Requested),
        left.prop_map(CancelReason::Left),
        removed.prop_map(CancelReason::Removed),
    ]
}

fn execution() -> impl Strategy<Value = Execution> {
    let result = prop::sample::select(ResultCode::ALL.to_vec());
    let trade = (any::<u32>(), number(), number(), any::<bool>());
    prop_oneof![
        Just(Execution::New),
        trade.prop_map(|(index, price, size, is_maker)| Execution::Trade {
            id: TradeId { command: 0, index },
            price,
            size,
            is_maker,
        }),
        number().prop_map(|reduced_by| Execution::Replaced { reduced_by }),
        (number(), cancel_reason()).prop_map(|(size, why)| Execution::Cancelled { size, why }),
        number().prop_map(|size| Execution::Expired { size }),
        Just(Execution::Triggered),
        result.clone().prop_map(Execution::Rejected),
        result.prop_map(Execution::RequestRejected),
    ]
}

/// Any report: a trade's number has its command.
pub(crate) fn report() -> impl Strategy<Value = ExecutionReport> {
    let side = prop::option::of(action());
    let numbers = (number(), number(), number());
    let whose = (uid(), symbol(), order_id());
    (any::<u64>(), whose, side, numbers, execution()).prop_map(
        |(command, (owner, symbol, order), side, (price, left, filled), mut kind)| {
            if let Execution::Trade { id, .. } = &mut kind {
                id.command = command;
            }
            ExecutionReport {
                command,
                owner,
                symbol,
                order,
                side,
                price,
                left,
                filled,
                kind,
            }
        },
    )
}
