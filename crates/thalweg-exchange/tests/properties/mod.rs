//! Properties of the state machine over random streams.

#[allow(dead_code)] // other files need the rest
pub(crate) mod commands;
mod cover;
mod draining;
mod futures;
mod model;
pub(crate) mod open_orders;
pub(crate) mod parts;
pub(crate) mod served;
pub(crate) use crate::money::totals;
mod trading;

use std::collections::BTreeMap;

use proptest::prelude::*;
use thalweg_exchange::report::open_interest;
use thalweg_exchange::report::state_text::state_text_hash;
use thalweg_exchange::risk::UserStatus;
use thalweg_exchange::{
    Action, Command, Event, Events, OrderId, Place, ResultCode, Rules, State, SymbolId, UserId,
    apply,
};

use crate::one_state::text;
use crate::terms::watch::money_is_conserved;

use self::commands::{Mix, extreme_command, rules, stream};
use self::model::Model;
use self::parts::parts_agree;
use self::totals::totals_hold;

fn user_lines(model: &Model, uid: UserId, user: &model::User, lines: &mut Vec<String>) {
    lines.push(format!(
        "U,{uid},{},{}",
        u8::from(user.suspended),
        user.last_id
    ));
    for (currency, money) in user.money.iter().filter(|(_, money)| **money != 0) {
        lines.push(format!("A,{uid},{currency},{money}"));
    }
    for (symbol, stake) in &user.stakes {
        let currency = model.symbols[symbol].quote_currency;
        let (direction, open) = (stake.open.signum(), stake.open.abs());
        let (paid, profit, sells, buys) = (stake.paid, stake.profit, stake.sells, stake.buys);
        lines.push(format!(
            "P,{uid},{symbol},{currency},{direction},{open},{paid},{profit},{sells},{buys}"
        ));
    }
}

fn waiting_lines(uid: UserId, user: &model::User, lines: &mut Vec<String>) {
    for (currency, amount) in user.waits.iter().filter(|(_, amount)| **amount != 0) {
        lines.push(format!("W,{uid},{currency},{amount}"));
    }
}

fn market_lines(model: &Model, lines: &mut Vec<String>) {
    if model.rules.trigger_passed_stops {
        let trades = model.last_trades.iter();
        lines.extend(trades.map(|(symbol, price)| format!("K,{symbol},{price}")));
    }
    let protections = model.protections.iter();
    lines.extend(protections.map(|(symbol, ticks)| format!("M,{symbol},{ticks}")));
}

/// The canonical text of the plain exchange.
fn model_text(model: &Model) -> String {
    let mut lines = Vec::new();
    for (uid, user) in &model.users {
        user_lines(model, *uid, user, &mut lines);
        waiting_lines(*uid, user, &mut lines);
    }
    for (uid, last) in &model.retired {
        lines.push(format!("T,{uid},{last}"));
    }
    for (kind, totals) in [
        ("F", &model.fees),
        ("X", &model.adjustments),
        ("Z", &model.suspends),
    ] {
        for (currency, total) in totals.iter().filter(|(_, total)| **total != 0) {
            lines.push(format!("{kind},{currency},{total}"));
        }
    }
    let last = model.last.iter();
    lines.extend(last.map(|(symbol, (ask, bid))| format!("L,{symbol},{ask},{bid}")));
    let bands = model.bands.iter();
    let bands = bands.filter(|(_, band)| **band != (i64::MIN, i64::MAX));
    lines.extend(bands.map(|(symbol, (low, high))| format!("B,{symbol},{low},{high}")));
    let mut levels = Vec::new();
    for symbol in model.symbols.keys() {
        for (letter, action) in [("A", Action::Ask), ("B", Action::Bid)] {
            let mut side: Vec<_> = model
                .orders
                .iter()
                .filter(|order| order.place.symbol == *symbol && order.place.action == action)
                .collect();
            // Stable, so orders of one price stay in order of time.
            side.sort_by_key(|order| match action {
                Action::Ask => order.place.price,
                Action::Bid => -order.place.price,
            });
            let mut volumes: BTreeMap<i64, (i64, u64)> = BTreeMap::new();
            for order in &side {
                let place = &order.place;
                lines.push(format!(
                    "O,{symbol},{letter},{},{},{},{},{},{}",
                    place.price,
                    place.order_id,
                    place.uid,
                    place.size,
                    order.filled,
                    place.reserve_price
                ));
                let level = volumes.entry(place.price).or_default();
                level.0 += place.size - order.filled;
                level.1 += 1;
            }
            let mut side: Vec<_> = volumes.into_iter().collect();
            if action == Action::Bid {
                side.reverse();
            }
            levels.extend(side.iter().map(|(price, (volume, orders))| {
                format!("Q,{symbol},{letter},{price},{volume},{orders}")
            }));
        }
    }
    lines.append(&mut levels);
    market_lines(model, &mut lines);
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// Runs a stream through both; every result, event and state must agree.
fn agrees_with_model(rules: Rules, commands: &[Command]) -> Result<(), TestCaseError> {
    let mut state = State::new(rules);
    let mut model = Model::new(rules);
    let mut events = Events::new();
    for command in commands {
        let result = apply(&mut state, command, &mut events);
        let expected = model.apply(command);
        prop_assert_eq!((result, events.to_vec()), expected, "{:?}", command);
        prop_assert_eq!(text(&state), model_text(&model), "{:?}", command);
        totals_hold(&state)?;
    }
    Ok(())
}

/// The text without empty positions: a refusal may remove the one that an order of no size left.
fn kept(text: &str) -> Vec<&str> {
    let is_empty = |line: &&str| line.starts_with('P') && line.ends_with(",0,0,0,0,0,0");
    text.lines().filter(|line| !is_empty(line)).collect()
}

/// True where the reference makes or loses money by this command.
fn breaks_the_sum(command: &Command) -> bool {
    matches!(command, Command::Place(place)
        if place.action == Action::Bid && place.order_type.is_budget()
            && (place.size <= 0 || place.order_type == thalweg_exchange::OrderType::IocBudget))
}

proptest! {
    #[test]
    fn both_dialects_agree_with_the_plain_exchange(
        commands in stream(Mix::Quirks, 120),
        margin_trading: bool,
    ) {
        agrees_with_model(Rules::REFERENCE.with_margin_trading(margin_trading), &commands)?;
        let mut mended = commands;
        mended[0] = commands::symbols(Mix::Plain);
        agrees_with_model(Rules::default().with_margin_trading(margin_trading), &mended)?;
    }

    #[test]
    fn without_quirks_both_dialects_are_one(commands in stream(Mix::Plain, 150)) {
        let mended = Rules {
            refuse_rejected: false,
            trigger_passed_stops: false,
            ..Rules::default()
        };
        let mut states = [State::new(Rules::REFERENCE), State::new(mended)];
        let mut events = [Events::new(), Events::new()];
        for command in &commands {
            let results = [0, 1].map(|i| apply(&mut states[i], command, &mut events[i]));
            prop_assert_eq!(results[0], results[1], "{:?}", command);
            prop_assert_eq!(&events[0], &events[1], "{:?}", command);
        }
        prop_assert_eq!(state_text_hash(&states[0]), state_text_hash(&states[1]));
        money_is_conserved(&states[0])?;
    }

    #[test]
    fn money_sums_to_zero_after_every_command(commands in stream(Mix::Quirks, 120)) {
        let mut commands = commands;
        let mut events = Events::new();
        let mut state = State::new(Rules::REFERENCE);
        for command in commands.iter().filter(|command| !breaks_the_sum(command)) {
            apply(&mut state, command, &mut events);
            money_is_conserved(&state)?;
        }
        commands[0] = commands::symbols(Mix::Plain);
        let mut state = State::default();
        for command in &commands {
            apply(&mut state, command, &mut events);
            money_is_conserved(&state)?;
        }
    }

    #[test]
    fn commands_in_parts_give_what_whole_ones_give(
        commands in stream(Mix::Quirks, 150),
        plain in stream(Mix::Plain, 150),
        draining in draining::stream(1, 80),
        rules in draining::one_quirk(),
    ) {
        parts_agree(rules, &draining)?;
        parts_agree(Rules::REFERENCE, &commands)?;
        let mut mended = commands;
        mended[0] = commands::symbols(Mix::Plain);
        parts_agree(Rules::default(), &mended)?;
        parts_agree(Rules::default(), &plain)?;
        parts_agree(Rules::REFERENCE, &plain)?;
    }

    #[test]
    fn extreme_numbers_neither_panic_nor_break_the_sum(
        rules in rules(),
        small in stream(Mix::Quirks, 40),
        extreme in prop::collection::vec(extreme_command(), 1..120),
        draining in draining::stream(draining::UNIT_MAX, 120),
        one_quirk in draining::one_quirk(),
    ) {
        let mut commands = small;
        commands.extend(extreme);
        let mut state = State::new(rules);
        let mut events = Events::new();
        let mut sums = true;
        for command in &commands {
            let before = text(&state);
            let result = apply(&mut state, command, &mut events);
            sums &= rules.refuse_not_positive && rules.fill_ioc_budget || !breaks_the_sum(command);
            if sums {
                money_is_conserved(&state)?;
            }
            totals_hold(&state)?;
            if result.is_refusal() {
                let is_reject = |event: &Event| matches!(event, Event::Reject { .. });
                prop_assert!(events.iter().all(is_reject), "{:?}", command);
                let after = text(&state);
                prop_assert_eq!(kept(&after), kept(&before), "{:?}", command);
            }
        }
        parts_agree(rules, &commands)?;
        parts_agree(one_quirk, &draining)?;
    }

    #[test]
    fn a_refused_check_changes_nothing(
        rules in rules(),
        small in stream(Mix::Quirks, 60),
        extreme in prop::collection::vec(extreme_command(), 1..40),
    ) {
        for commands in [small, extreme] {
            let mut state = State::new(rules);
            let mut events = Events::new();
            for command in &commands {
                // The debug text shows everything, what is remembered of symbols included.
                let before = format!("{:?}", state.risk);
                let mut tried = state.risk.clone();
                let result = tried.check(command);
                let users = state.risk.users();
                let mut positions = users.iter().flat_map(|user| user.positions());
                // See `kept`.
                let is_special = positions.any(|position| position.is_empty());
                if result.is_refusal() && !is_special {
                    prop_assert_eq!(format!("{tried:?}"), before, "{:?}", command);
                    prop_assert_eq!(tried.check(command), result);
                }
                apply(&mut state, command, &mut events);
            }
        }
    }
}

#[test]
fn an_order_in_a_pair_sees_the_fees_of_futures_before_it() {
    let place = |uid, symbol, action, price, size| {
        Command::Place(Place::limit(
            (UserId(uid), OrderId(uid)),
            SymbolId(symbol),
            action,
            (price, size),
        ))
    };
    let mut commands = draining::setup(1);
    commands.extend([
        place(1, 3, Action::Ask, 5, 5),
        // 5 lots take a fee of 40 each from 800; before it is booked, a margin of 30 each.
        place(2, 3, Action::Bid, 5, 5),
        // 8 lots at 20·2 + 40 take 640, when there are 600.
        place(2, 1, Action::Bid, 20, 8),
    ]);
    let mut state = State::default();
    let results = commands
        .iter()
        .map(|command| apply(&mut state, command, &mut Events::new()));
    assert_eq!(results.last(), Some(ResultCode::RiskNsf));
    parts_agree(Rules::default(), &commands).expect("it agrees");
}

/// The properties mean something only if these things happen.
#[test]
fn the_random_streams_reach_what_they_are_for() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;

    let mut runner = TestRunner::deterministic();
    let (mut suspended, mut refused, mut open) = (0, 0, 0);
    let mut codes: BTreeMap<ResultCode, usize> = BTreeMap::new();
    for _ in 0..100 {
        let commands = stream(Mix::Quirks, 150)
            .new_tree(&mut runner)
            .expect("a stream")
            .current();
        let extreme = prop::collection::vec(extreme_command(), 80);
        let extreme = extreme.new_tree(&mut runner).expect("a stream").current();
        let mut reference = State::new(Rules::REFERENCE);
        let mut mended = State::default();
        apply(
            &mut mended,
            &commands::symbols(Mix::Plain),
            &mut Events::new(),
        );
        for command in &commands {
            apply(&mut reference, command, &mut Events::new());
            let result = apply(&mut mended, command, &mut Events::new());
            refused += usize::from(result == ResultCode::AuthUserSuspended);
            let user = |user: &&thalweg_exchange::risk::User| user.status == UserStatus::Suspended;
            open += open_interest(&reference).len();
            suspended += reference.risk.users().into_iter().filter(user).count();
        }
        for command in &extreme {
            *codes
                .entry(apply(&mut reference, command, &mut Events::new()))
                .or_default() += 1;
        }
    }
    assert!(open > 1_000, "positions open after {open} commands");
    assert!(
        suspended > 20 && refused > 5,
        "{suspended} suspended, {refused} refused"
    );
    assert!(
        codes[&ResultCode::RiskArithmeticOverflow] > 100,
        "{codes:?}"
    );
    assert!(codes[&ResultCode::Success] > 1_000, "{codes:?}");
}
