//! The waiting rules under every lag between check, match and settlement, without threads; and
//! the same without the rules, which must go wrong.

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};
use thalweg::pipeline::Flow;

use super::Slot;
use super::ledger::Ledger;
use super::stages::{book, check, execute};
use crate::report::state_text::state_hash;
use crate::{
    Action, Command, Events, OrderId, OrderType, Place, ResultCode, Rules, State, SymbolId, UserId,
    apply,
};

mod sharded;

#[path = "../../tests/properties/commands.rs"]
#[allow(dead_code)] // made for the properties; this file needs a part of it
mod commands;

use commands::{Mix, accounts, bands, command, extreme_command, rules, stream, symbols};

/// Results, events and the state after the last command.
type Record = (Vec<(ResultCode, Events)>, String);

fn serial(rules: Rules, commands: &[Command]) -> Record {
    let mut state = State::new(rules);
    let apply = |command| {
        let mut events = Events::new();
        (apply(&mut state, command, &mut events), events)
    };
    let results = commands.iter().map(apply).collect();
    (results, hash(&state))
}

/// The state's hash, and what is in no text: N, R and the pool of each currency.
fn hash(state: &State) -> String {
    let totals = state.risk.currencies().into_iter();
    let totals = totals.map(|total| (total.id, total.negative(), total.reserved(), total.pool()));
    let moved =
        totals.filter(|&(_, negative, reserved, pool)| negative != 0 || reserved != 0 || pool != 0);
    format!("{:?} {:?}", state_hash(state), moved.collect::<Vec<_>>())
}

/// What a run does wrong, so that it must be noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    /// Checks do not wait.
    Hasty,
    /// Unsettled futures are taken for pairs.
    FuturesForgotten,
    /// Unsettled futures add nothing to the ledger's bound.
    RoomForgotten,
}

fn slots(commands: &[Command]) -> Vec<Slot> {
    let slot = |command: &Command| Slot {
        command: command.clone(),
        ..Slot::new(0)
    };
    commands.iter().map(slot).collect()
}

fn results(slots: Vec<Slot>) -> Vec<(ResultCode, Events)> {
    slots.into_iter().map(|s| (s.result, s.events)).collect()
}

/// Runs the stages with lags taken from `lags`.
fn lagging(rules: Rules, commands: &[Command], lags: &[usize], fault: Fault) -> Record {
    let state = State::new(rules);
    let mut ledger = Ledger::new(state.risk);
    let mut matching = state.matching;
    let mut slots = slots(commands);
    let (mut checked, mut settled) = (0, 0);
    let mut lag = lags.iter().cycle();
    while settled < slots.len() {
        // How far risk may run ahead of settlement in this turn.
        let ahead = *lag.next().expect("a cycle");
        let first = checked;
        while checked < slots.len() && checked <= settled + ahead {
            let slot = &mut slots[checked];
            match fault {
                Fault::FuturesForgotten => ledger.forget_futures(),
                Fault::RoomForgotten => ledger.forget_room(),
                Fault::None | Fault::Hasty => {}
            }
            if check(&mut ledger, slot, checked as u64) == Flow::Retry {
                if fault != Fault::Hasty {
                    break;
                }
                slot.checked.code = ledger.check_regardless(&slot.command);
            }
            checked += 1;
        }
        for slot in &mut slots[first..checked] {
            execute(&mut matching, slot);
        }
        let until = checked.min(settled + 1 + *lag.next().expect("a cycle"));
        for (at, slot) in slots.iter().enumerate().take(until).skip(settled) {
            book(&mut ledger, slot, at as u64);
        }
        settled = until;
    }
    let risk = ledger.into_risk();
    let state = State { risk, matching };
    (results(slots), hash(&state))
}

/// Whether a fault leads to another outcome, or to a panic, in one of 4,000 random streams.
fn is_noticed(
    strategy: impl Strategy<Value = Vec<Command>>,
    rules: Rules,
    run: impl Fn(&[Command]) -> Record,
) -> bool {
    let config = ProptestConfig::default();
    let random = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(config, random);
    (0..4_000).any(|_| {
        let commands = strategy.new_tree(&mut runner).unwrap().current();
        let run = std::panic::AssertUnwindSafe(|| run(&commands));
        std::panic::catch_unwind(run).map_or(true, |record| record != serial(rules, &commands))
    })
}

/// Orders in futures, most of all, and such as could leave 64 bits.
fn futures() -> impl Strategy<Value = Vec<Command>> {
    let price = || prop_oneof![6 => 1..30_i64, 1 => (1_i64 << 60)..(1 << 61)];
    let place = (
        1..=5_i64,
        0..12_i64,
        any::<bool>(),
        0..3_usize,
        price(),
        1..6_i64,
    )
        .prop_map(|(uid, id, is_bid, kind, price, size)| {
            let order_type = [OrderType::Gtc, OrderType::Gtc, OrderType::Ioc][kind];
            Command::Place(Place {
                order_type,
                ..Place::limit(
                    (UserId(uid), OrderId(id)),
                    SymbolId(if id % 4 == 0 { 8 } else { 5 }),
                    if is_bid { Action::Bid } else { Action::Ask },
                    (price, size),
                )
            })
        });
    let order = || (1..=5_i64, 0..12_i64).prop_map(|(uid, id)| (UserId(uid), id));
    let symbol_of = |id: i64| SymbolId(if id % 4 == 0 { 8 } else { 5 });
    let any = prop_oneof![
        6 => place,
        4 => (order(), price()).prop_map(move |((uid, id), price)| {
            Command::move_to(uid, symbol_of(id), OrderId(id), price)
        }),
        2 => order().prop_map(move |(uid, id)| Command::cancel(uid, symbol_of(id), OrderId(id))),
        4 => command(Mix::Quirks),
    ];
    prop::collection::vec(any, 1..200).prop_map(|mut commands| {
        // A narrow band would keep out what needs much room.
        commands.retain(|command| !matches!(command, Command::SetPriceBand { .. }));
        commands.splice(0..0, bands(29));
        commands.splice(0..0, [symbols(Mix::Quirks), accounts()]);
        commands
    })
}

#[test]
fn results_do_not_depend_on_the_lag() {
    let any = prop_oneof![
        stream(Mix::Quirks, 300),
        futures(),
        prop::collection::vec(extreme_command(), 1..200),
    ];
    let strategy = (any, prop::collection::vec(0..40_usize, 1..20), rules());
    let mut runner = TestRunner::new(ProptestConfig::with_cases(600));
    let outcome = runner.run(&strategy, |(commands, lags, rules)| {
        let expected = serial(rules, &commands);
        prop_assert_eq!(lagging(rules, &commands, &lags, Fault::None), expected);
        Ok(())
    });
    outcome.unwrap();
}

#[test]
fn without_the_waiting_rules_it_goes_wrong() {
    for fault in [Fault::Hasty, Fault::FuturesForgotten, Fault::RoomForgotten] {
        let run = |commands: &[Command]| lagging(Rules::REFERENCE, commands, &[30, 3], fault);
        let is_seen = is_noticed(futures(), Rules::REFERENCE, run);
        assert!(is_seen, "the simulation would not notice {fault:?}");
    }
}
