//! Random streams of orders with operations among them, over the small world of the properties.

use proptest::prelude::*;
use thalweg_exchange::{
    Action, Command, ConditionalOrder, CurrencyId, OrderFlags, OrderType, Rules, SymbolId,
    SymbolSpec, SymbolType, UserId, UserLimits,
};

use crate::operations::commands::{self, Mix};

fn symbol() -> impl Strategy<Value = SymbolId> {
    prop_oneof![6 => Just(1), 2 => Just(2), 3 => Just(5), 2 => Just(8), 1 => 0..10_i32]
        .prop_map(SymbolId)
}

/// Two that are there from the beginning and two that are not, with any terms.
fn listing() -> impl Strategy<Value = Command> {
    let id = prop::sample::select(vec![1, 2, 5, 8, 7, 9]);
    let currency = || prop::sample::select(vec![10, 20, 30]);
    let terms = (1..5_i64, 1..4_i64, 0..6_i64, 0..4_i64);
    (id, any::<bool>(), currency(), currency(), terms).prop_map(
        |(id, pair, base, quote, (base_scale, quote_scale, fee, more))| {
            let spec = SymbolSpec::pair(SymbolId(id), CurrencyId(base), CurrencyId(quote))
                .with_scales(base_scale, quote_scale)
                .with_type(if pair {
                    SymbolType::CurrencyPair
                } else {
                    SymbolType::Futures
                })
                .with_fees(fee + more, fee)
                .with_margins(more, fee);
            Command::AddSymbols([spec].into())
        },
    )
}

fn operation() -> impl Strategy<Value = Command> {
    let uid = || prop::option::weighted(0.8, (0..7_i64).prop_map(UserId));
    let band = (-3..12_i64, 0..14_i64).prop_map(|(low, width)| (low, low + width - 1));
    let none = Just((i64::MIN, i64::MAX));
    prop_oneof![
        6 => (uid(), prop::option::weighted(0.7, symbol()))
            .prop_map(|(uid, symbol)| Command::CancelAll { uid, symbol }),
        1 => (uid(), prop::option::of((5..40_u32, 8..60_i64, prop::bool::weighted(0.2))))
            .prop_map(|(uid, limits)| Command::SetLimits {
                uid,
                limits: limits.map(|(open_orders, order_size, ids_once)| UserLimits {
                    open_orders,
                    order_size,
                    ids_once,
                }),
            }),
        6 => (0..7_i64).prop_map(|uid| Command::Disconnect { uid: UserId(uid) }),
        // A futures symbol that comes again needs one.
        3 => (symbol(), prop_oneof![2 => band, 1 => none])
            .prop_map(|(symbol, (low, high))| Command::SetPriceBand { symbol, low, high }),
        1 => symbol().prop_map(|symbol| Command::Halt { symbol }),
        4 => symbol().prop_map(|symbol| Command::Unhalt { symbol }),
        4 => prop_oneof![2 => symbol(), 1 => prop::sample::select(vec![SymbolId(5), SymbolId(8)])]
            .prop_map(|symbol| Command::RemoveSymbol { symbol }),
        9 => listing(),
        // As if no time went by yet: see `as_time_goes_by`.
        6 => (-2..9_i64).prop_map(|time| Command::Clock { time }),
    ]
}

/// A command of the properties; orders among them may ask for something.
fn order(mix: Mix) -> impl Strategy<Value = Command> {
    let one_of = |range: std::ops::Range<i64>| prop::option::weighted(0.3, range);
    let flags = prop::sample::select(
        (0..32)
            .filter_map(OrderFlags::from_code)
            .collect::<Vec<_>>(),
    );
    let conditions = (flags, one_of(2..16), one_of(1..4), one_of(0..40));
    let conditions = prop::option::weighted(0.4, conditions);
    (commands::command(mix), conditions).prop_map(|(command, conditions)| {
        let (Command::Place(mut place), Some((flags, trigger, display, good_till))) =
            (command.clone(), conditions)
        else {
            return command;
        };
        place.flags = flags;
        if place.order_type == OrderType::Fok || place.order_type.is_budget() {
            return Command::Place(place);
        }
        let order = ConditionalOrder {
            trigger,
            display: display.filter(|_| place.order_type == OrderType::Gtc),
            good_till,
            ..place.into()
        };
        Command::PlaceConditional(order.into())
    })
}

/// Turns times from now on into times by the log.
fn as_time_goes_by(now: i64, command: &mut Command) {
    match command {
        Command::Clock { time } => *time += now,
        Command::PlaceConditional(order) => {
            let mut later = **order;
            later.good_till = later.good_till.map(|time| time + now);
            *order = later.into();
        }
        _ => {}
    }
}

/// True where the reference makes or loses money by this command.
fn breaks_the_sum(command: &Command) -> bool {
    matches!(command, Command::Place(place)
        if place.action == Action::Bid && place.order_type.is_budget()
            && (place.size <= 0
                || place.order_type == thalweg_exchange::OrderType::IocBudget))
}

/// Rules, and a stream under which money is conserved.
pub(crate) fn market(length: usize) -> impl Strategy<Value = (Rules, Vec<Command>)> {
    let command = prop_oneof![10 => order(Mix::Quirks), 1 => operation()];
    let commands = prop::collection::vec(command, 1..length);
    let rules = prop_oneof![
        3 => Just(Rules::REFERENCE),
        3 => Just(Rules::default()),
        1 => Just(Rules::REFERENCE.with_margin_trading(false)),
        1 => Just(Rules::default().with_margin_trading(false)),
    ];
    (rules, commands).prop_map(|(rules, mut commands)| {
        let mix = if rules.refuse_maker_fee_over_taker {
            Mix::Plain
        } else {
            Mix::Quirks
        };
        commands.retain(|command| rules.fill_ioc_budget || !breaks_the_sum(command));
        commands::with_fresh_ids(&mut commands);
        for (now, command) in (0_i64..).zip(&mut commands) {
            if command.place().is_some() || now % 10 > 0 {
                *command = commands::with_owners(std::mem::take(command));
            }
            as_time_goes_by(now, command);
        }
        commands.splice(0..0, commands::bands(17));
        commands.splice(0..0, [commands::symbols(mix), commands::accounts()]);
        (rules, commands)
    })
}
