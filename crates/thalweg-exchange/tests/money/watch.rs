//! The properties that hold after every command, whatever users do.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};
use thalweg_exchange::report::currency_totals;
use thalweg_exchange::report::state_text::write_state;
use thalweg_exchange::risk::Direction;
use thalweg_exchange::{
    Action, Command, CurrencyId, Event, Events, FeeUnit, OrderId, ResultCode, Rules, State,
    SymbolId, SymbolType, UserId, apply,
};

use crate::money::hostile::{
    BYSTANDER, CURRENCIES, DEPOSIT, OTHER_FUTURES, RIVAL, SYMBOLS, everybody, users_alone,
};
use crate::money::market::{FUTURES, order};
use crate::money::open_orders::open_orders;
use crate::money::totals::totals_hold;

type Held = Result<(), TestCaseError>;

pub(crate) fn text(state: &State) -> String {
    let mut text = String::new();
    write_state(state, &mut text).expect("a String takes everything");
    for total in state.risk.currencies() {
        let (id, pool) = (total.id, total.pool());
        let (negative, reserved) = (total.negative(), total.reserved());
        if (pool, negative, reserved) != (0, 0, 0) {
            text += &format!("R,{id},{negative},{reserved},{pool}\n");
        }
    }
    let users = state.risk.users();
    let counts = users.iter().map(|user| (user.uid, user.open_orders()));
    text + &format!("{:?}\n", counts.collect::<Vec<_>>())
}

/// A fault of a run, which must be noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    /// A taker that meets two orders is not settled.
    Unsettled,
    /// A refused order leaves a trace.
    Trace,
    /// Everybody may withdraw twice what there is: a second withdrawal is paid by the house.
    Generous,
}

fn run(state: &mut State, command: &Command, events: &mut Events, fault: Fault) -> ResultCode {
    if fault != Fault::Unsettled {
        let result = apply(state, command, events);
        if fault == Fault::Trace && result == ResultCode::RiskNsf {
            state.risk.check(&Command::AddUser { uid: UserId(77) });
        }
        return result;
    }
    let checked = state.risk.check(command);
    let result = state.matching.execute(command, checked, events);
    if events.len() < 2 {
        state.risk.settle(command, result, events);
    }
    result
}

fn withdrawal(uid: UserId, currency: CurrencyId, amount: i64) -> Command {
    Command::deposit(uid, currency, -amount, i64::MAX)
}

/// Deposits less withdrawals.
fn house(state: &State, currency: CurrencyId) -> i128 {
    let totals = currency_totals(state);
    let total = totals.iter().find(|total| total.currency == currency);
    total.map_or(0, |total| -(total.adjustments + total.suspends))
}

/// Everybody withdraws all that can be withdrawn, one after another: the house can pay.
fn all_can_be_paid(state: &State, fault: Fault) -> Held {
    let mut users: Vec<UserId> = state.risk.users().iter().map(|user| user.uid).collect();
    for _ in 0..2 {
        for currency in CURRENCIES {
            let mut state = state.clone();
            let mut left = house(&state, currency);
            for &uid in &users {
                let most = state.risk.withdrawable(uid, currency).expect("a user");
                let result = apply(
                    &mut state,
                    &withdrawal(uid, currency, most),
                    &mut Events::new(),
                );
                let id_is_used =
                    result == ResultCode::UserMgmtAccountBalanceAdjustmentAlreadyAppliedSame;
                prop_assert!(
                    result == ResultCode::Success || id_is_used,
                    "{uid}: {most} of {currency}: {result}"
                );
                left -= i128::from(most) * if fault == Fault::Generous { 2 } else { 1 };
                if uid == BYSTANDER {
                    prop_assert_eq!(most, DEPOSIT, "a bystander's deposit");
                }
            }
            prop_assert!(left >= 0, "{currency}: {left} missing");
        }
        users.reverse();
    }
    Ok(())
}

/// Checks that a user with money can trade.
fn a_rival_can_trade(state: &State) -> Held {
    for symbol in SYMBOLS {
        let Some(limits) = state.risk.limits(symbol) else {
            continue;
        };
        let book = state.matching.book(symbol).expect("it is there");
        let spec = *book.spec();
        let is_covered = spec.symbol_type == SymbolType::Futures;
        if limits.halted || limits.auction || (is_covered && limits.low < 1) {
            continue;
        }
        let price = 20.max(limits.low).min(limits.high);
        if !(0..1_000).contains(&price) || price * spec.quote_scale < 40 {
            // An ask would not bring in its fee.
            continue;
        }
        for action in [Action::Ask, Action::Bid] {
            for id in [0, 5] {
                let mut state = state.clone();
                let mut events = Events::new();
                let place = Command::Place(order(RIVAL.0, id, symbol, action, price, 1));
                let result = apply(&mut state, &place, &mut events);
                prop_assert_eq!(result, ResultCode::Success, "{:?}", place);
                let traded = !events.is_empty();
                let book = state.matching.book(symbol).expect("it is there");
                let rests = book.order(RIVAL, OrderId(id)).is_some();
                prop_assert!(traded != rests, "{:?}: {:?}", place, events);
                // A stop order that its trade triggers may be.
                let own = events.iter();
                let mut own = own.take_while(|event| !matches!(event, Event::Triggered { .. }));
                let rejected = own.any(|event| matches!(event, Event::Reject { .. }));
                prop_assert!(!rejected, "{:?}: {:?}", place, events);
            }
        }
    }
    Ok(())
}

/// Sums that must agree, and signs.
fn the_books_agree(state: &State) -> Held {
    let [counted, open] = open_orders(state);
    prop_assert_eq!(counted, open);
    totals_hold(state)?;
    for total in state.risk.currencies() {
        prop_assert_eq!((total.negative(), total.reserved()), (0, 0), "{:?}", total);
        prop_assert!(total.fees >= 0, "{:?}", total);
    }
    for user in state.risk.users() {
        for (currency, balance) in user.balances() {
            prop_assert!(balance >= 0, "{}: {} of {}", user.uid, balance, currency);
        }
    }
    Ok(())
}

/// Every balance has the fees on what its owner's futures orders can still open.
fn fees_are_there(state: &State) -> Held {
    for user in state.risk.users() {
        let mut due: BTreeMap<CurrencyId, i64> = BTreeMap::new();
        for position in user.positions() {
            let book = state.matching.book(position.symbol).expect("it is there");
            let spec = book.spec();
            if spec.fee_unit != FeeUnit::PerLot {
                continue;
            }
            let (bought, sold) = match position.direction {
                Direction::Short => (0, position.open_volume),
                _ => (position.open_volume, 0),
            };
            let buys = position.pending_buy + (position.pending_sell - bought).max(0);
            let sells = position.pending_sell + (position.pending_buy - sold).max(0);
            let opens = if sold > 0 { sells } else { buys };
            *due.entry(position.currency).or_default() +=
                opens * spec.taker_fee.max(spec.maker_fee);
        }
        for (currency, due) in due {
            let balance = user.balance(currency);
            prop_assert!(
                balance >= due,
                "{}: {} of {} in fees",
                user.uid,
                balance,
                due
            );
        }
    }
    Ok(())
}

/// A state's text without the ids that its users have used.
fn without_ids(text: &str) -> String {
    let is_kept = |line: &&str| !line.starts_with("I,");
    text.lines().filter(is_kept).collect::<Vec<_>>().join("\n")
}

struct Watch {
    state: State,
    events: Events,
    fault: Fault,
    /// Transaction ids that counted.
    counted: BTreeSet<(UserId, i64)>,
    /// Whether the market stays as it is, so that no user can owe anything.
    is_fixed: bool,
}

impl Watch {
    fn execute(&mut self, command: &Command) -> Result<ResultCode, TestCaseError> {
        let before = text(&self.state);
        let result = run(&mut self.state, command, &mut self.events, self.fault);
        // One that is rejected since it met its owner's order may cancel that.
        if result.is_refusal() && self.events.len() < 2 {
            let is_reject = |event: &Event| matches!(event, Event::Reject { .. });
            prop_assert!(self.events.iter().all(is_reject), "{:?}", command);
            let mut after = text(&self.state);
            let mut before = before;
            if !self.events.is_empty() {
                // The risk check let it pass: where ids count once, its id is used.
                before = without_ids(&before);
                after = without_ids(&after);
            }
            prop_assert_eq!(after, before, "{:?}: {}", command, result);
            return Ok(result);
        }
        if let Command::Balance {
            uid,
            transaction_id,
            ..
        }
        | Command::PayFees {
            uid,
            transaction_id,
            ..
        } = *command
        {
            let is_new = self.counted.insert((uid, transaction_id));
            prop_assert!(is_new, "{:?} counted twice", command);
        }
        the_books_agree(&self.state)?;
        if self.is_fixed {
            fees_are_there(&self.state)?;
            for user in self.state.risk.users() {
                let owes = user.waiting().iter().any(|&(_, amount)| amount < 0);
                prop_assert!(!owes, "{:?}: {:?} owes", command, user);
            }
        }
        Ok(result)
    }
}

fn holds(
    rules: Rules,
    commands: &[Command],
    is_fixed: bool,
    fault: Fault,
) -> Result<usize, TestCaseError> {
    let mut watch = Watch {
        state: State::new(rules),
        events: Events::new(),
        fault,
        counted: BTreeSet::new(),
        is_fixed,
    };
    let mut done = 0;
    for (at, command) in commands.iter().enumerate() {
        let result = watch.execute(command)?;
        done += usize::from(result == ResultCode::Success);
        // The dear checks now and then.
        if at > 1 && at % 5 == 0 || at + 1 == commands.len() {
            all_can_be_paid(&watch.state, fault)?;
            a_rival_can_trade(&watch.state)?;
        }
    }
    Ok(done)
}

/// Checks the properties in a market that moves.
pub(crate) fn no_user_is_robbed(rules: Rules, commands: &[Command]) -> Held {
    holds(rules, commands, false, Fault::None).map(drop)
}

proptest! {
    #[test]
    fn users_alone_rob_no_one_and_owe_nothing(commands in users_alone(90)) {
        holds(Rules::default(), &commands, true, Fault::None)?;
    }

    #[test]
    fn no_user_is_robbed_when_bands_move(commands in everybody(90)) {
        holds(Rules::default(), &commands, false, Fault::None)?;
    }
}

/// Whether a fault is noticed in one of many streams: as an error, or as a panic.
fn is_noticed(rules: Rules, is_fixed: bool, fault: Fault) -> bool {
    let random = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(ProptestConfig::default(), random);
    (0..400).any(|_| {
        let commands = if is_fixed {
            users_alone(90)
                .new_tree(&mut runner)
                .expect("a stream")
                .current()
        } else {
            everybody(90)
                .new_tree(&mut runner)
                .expect("a stream")
                .current()
        };
        let run = std::panic::AssertUnwindSafe(|| holds(rules, &commands, is_fixed, fault));
        !matches!(std::panic::catch_unwind(run), Ok(Ok(_)))
    })
}

#[test]
fn every_rule_is_missed_where_it_is_missing() {
    let all = Rules::default();
    for (what, rules) in [
        (
            "cover_futures",
            Rules {
                cover_futures: false,
                ..all
            },
        ),
        (
            "bound_budgets",
            Rules {
                bound_budgets: false,
                ..all
            },
        ),
        (
            "keep_transaction_ids",
            Rules {
                keep_transaction_ids: false,
                ..all
            },
        ),
        (
            "ids_per_user",
            Rules {
                ids_per_user: false,
                ..all
            },
        ),
    ] {
        let is_fixed = what != "keep_transaction_ids";
        assert!(is_noticed(rules, is_fixed, Fault::None), "without {what}");
    }
}

#[test]
fn the_watch_notices_its_seeded_faults() {
    for fault in [Fault::Unsettled, Fault::Trace, Fault::Generous] {
        assert!(is_noticed(Rules::default(), true, fault), "{fault:?}");
    }
}

/// The properties mean something only if these things happen.
#[test]
fn hostile_streams_reach_what_they_are_for() {
    let random = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(ProptestConfig::default(), random);
    let (mut trades, mut debts, mut claims, mut paid_out, mut refused) = (0, 0, 0, 0, 0);
    let (mut fees_paid, mut of_value) = (0, 0);
    for _ in 0..300 {
        let commands = everybody(120)
            .new_tree(&mut runner)
            .expect("a stream")
            .current();
        let mut state = State::default();
        let mut events = Events::new();
        for command in &commands {
            let pools = |state: &State| -> i128 {
                state
                    .risk
                    .currencies()
                    .iter()
                    .map(|total| total.pool())
                    .sum()
            };
            let before = pools(&state);
            let result = apply(&mut state, command, &mut events);
            refused += usize::from(result == ResultCode::RiskNsf);
            let is_paid = result == ResultCode::Success;
            fees_paid += usize::from(is_paid && matches!(command, Command::PayFees { .. }));
            let book = command.symbol().and_then(|id| state.matching.book(id));
            let is_of_value = book.is_some_and(|book| book.spec().fee_unit != FeeUnit::PerLot);
            let has_trade = events
                .iter()
                .any(|event| matches!(event, Event::Trade { .. }));
            of_value += usize::from(has_trade && is_of_value);
            paid_out += usize::from(pools(&state) < before);
            let is_futures = |id: Option<SymbolId>| matches!(id, Some(FUTURES | OTHER_FUTURES));
            trades += usize::from(is_futures(command.symbol()) && events.len() > 1);
            for user in state.risk.users() {
                for &(_, amount) in user.waiting() {
                    debts += usize::from(amount < 0);
                    claims += usize::from(amount > 0);
                }
            }
        }
    }
    let all = (trades, debts, claims, paid_out, refused);
    assert!(
        trades > 100 && debts > 20 && claims > 100 && paid_out > 10 && refused > 500,
        "{all:?}"
    );
    assert!(fees_paid > 10 && of_value > 300, "{fees_paid}, {of_value}");
}
