//! Halted symbols take no new and no moved orders, banded ones none outside the band; everything
//! else goes on as if there were neither.

use proptest::prelude::*;
use thalweg_exchange::risk::TradingLimits;
use thalweg_exchange::{
    Command, ConditionalOrder, Event, Events, OrderType, Place, RemovalReason, ResultCode, Rules,
    State, SymbolId, apply,
};

use crate::operations::stream::market;
use crate::operations::{money_is_conserved, text};

/// The symbol and limit price of a new or moved order; none where its price is a budget.
fn order(command: &Command) -> Option<(SymbolId, Option<i64>)> {
    match *command {
        Command::Place(Place {
            symbol,
            order_type,
            price,
            ..
        }) => Some((symbol, order_type.has_limit().then_some(price))),
        Command::PlaceConditional(ref order) => Some((order.place.symbol, Some(order.place.price))),
        Command::Move { symbol, price, .. } => Some((symbol, Some(price))),
        _ => None,
    }
}

fn refusal(limits: TradingLimits, price: Option<i64>) -> Option<ResultCode> {
    if limits.halted {
        return Some(ResultCode::SymbolHalted);
    }
    price
        .filter(|price| !(limits.low..=limits.high).contains(price))
        .map(|_| ResultCode::RiskPriceOutsideBand)
}

/// The state without halts and bands, and its text without them.
fn opened(state: &State) -> State {
    let mut open = state.clone();
    for (symbol, limits) in state.risk.symbols_with_limits() {
        if limits.halted {
            apply(&mut open, &Command::Unhalt { symbol }, &mut Events::new());
        }
        let band = Command::set_price_band(symbol, i64::MIN, i64::MAX);
        apply(&mut open, &band, &mut Events::new());
    }
    assert_eq!(open.risk.symbols_with_limits(), []);
    open
}

fn ungated(text: &str) -> Vec<&str> {
    let is_gate = |line: &&str| line.starts_with("H,") || line.starts_with("B,");
    text.lines().filter(|line| !is_gate(line)).collect()
}

/// The command; a market order is an IOC order.
fn with_limit(command: &Command) -> Command {
    let with_limit = |place: Place| {
        place.with_type(match place.order_type {
            OrderType::Market => OrderType::Ioc,
            other => other,
        })
    };
    match command {
        Command::Place(place) => Command::Place(with_limit(*place)),
        Command::PlaceConditional(order) => {
            let place = with_limit(order.place);
            Command::PlaceConditional(ConditionalOrder { place, ..**order }.into())
        }
        other => other.clone(),
    }
}

/// A stop order that was triggered outside the band.
const fn is_outside(event: &Event) -> bool {
    matches!(
        event,
        Event::Removed {
            why: RemovalReason::OutsideBand,
            ..
        }
    )
}

proptest! {
    #[test]
    fn only_what_a_gate_refuses_is_refused_more((rules, commands) in market(150)) {
        // Where futures are covered, a band says how much money an order needs; where budgets are
        // bounded, it says what they take.
        let rules = Rules { cover_futures: false, bound_budgets: false, ..rules };
        let mut state = State::new(rules);
        let mut events = Events::new();
        for command in &commands {
            // So does it for market orders.
            let command = &with_limit(command);
            if state.risk.symbols_with_limits().is_empty() {
                apply(&mut state, command, &mut events);
                continue;
            }
            let before = text(&state);
            let mut open = opened(&state);
            let gated = order(command)
                .and_then(|(symbol, price)| Some((state.risk.limits(symbol)?, price)))
                .and_then(|(limits, price)| refusal(limits, price));
            let result = apply(&mut state, command, &mut events);
            money_is_conserved(&state, command)?;
            let is_gate = matches!(command, Command::Halt { .. } | Command::Unhalt { .. }
                | Command::SetPriceBand { .. });
            let mut open_events = Events::new();
            let expected = apply(&mut open, command, &mut open_events);
            if let Some(code) = gated {
                prop_assert!(result.is_refusal(), "{:?}: {}", command, result);
                prop_assert!(events.is_empty());
                prop_assert_eq!(text(&state), before);
                if expected == ResultCode::Success {
                    prop_assert_eq!(result, code);
                }
            } else if !is_gate && !events.iter().any(is_outside) {
                prop_assert_eq!(result, expected, "{:?}", command);
                prop_assert_eq!(&events, &open_events);
                let (state, open) = (text(&state), text(&open));
                prop_assert_eq!(ungated(&state), ungated(&open));
            }
        }
    }
}

#[test]
fn halts_and_bands_answer_with_codes() {
    let mut state = State::default();
    let mut run = |command: &Command| crate::operations::run(&mut state, command);
    let (symbol, unknown) = (SymbolId(1), SymbolId(99));
    let band = |symbol, low, high| Command::SetPriceBand { symbol, low, high };
    run(&crate::operations::commands::symbols(
        crate::operations::commands::Mix::Plain,
    ));
    for (command, code) in [
        (Command::Halt { symbol }, ResultCode::Success),
        (Command::Halt { symbol }, ResultCode::SymbolAlreadyHalted),
        (Command::Unhalt { symbol }, ResultCode::Success),
        (Command::Unhalt { symbol }, ResultCode::SymbolNotHalted),
        (Command::Halt { symbol: unknown }, ResultCode::InvalidSymbol),
        (
            Command::Unhalt { symbol: unknown },
            ResultCode::InvalidSymbol,
        ),
        (band(symbol, 3, 2), ResultCode::SymbolInvalidPriceBand),
        (band(symbol, 2, 2), ResultCode::Success),
        (band(unknown, 2, 2), ResultCode::InvalidSymbol),
    ] {
        assert_eq!(run(&command), code, "{command:?}");
    }
    let limits = state.risk.limits(symbol).expect("it is known");
    assert_eq!((limits.halted, limits.low, limits.high), (false, 2, 2));
    assert!(text(&state).contains("B,1,2,2\n"));
    assert_eq!(state.risk.limits(unknown), None);
}
