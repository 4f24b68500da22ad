//! Commands with amounts from small ones up to the limits.

use proptest::prelude::*;

use super::{Alike, SIDES, execute};
use crate::command::{AccountSpec, ConditionalOrder, FeeUnit, Place, SymbolSpec};
use crate::{
    Command, CurrencyId, Events, OrderFlags, OrderId, OrderType, ResultCode, Rules, State,
    SymbolId, UserId, apply,
};

/// The kind of command, the user, the symbol, a price, a size, and the part of the reserve price
/// above the price.
type Step = (u8, i64, i32, i64, i64, i64);

#[derive(Clone, Debug)]
pub(super) struct Case {
    is_mended: bool,
    /// All money of a currency is below two to the power of this; the largest order likewise, as a
    /// part of that power.
    money: u32,
    lots: u32,
    scales: (u8, u8),
    fees: (u8, u8),
    steps: Vec<Step>,
}

const USERS: i64 = 5;
const CURRENCIES: i32 = 5;

pub(super) fn cases() -> impl Strategy<Value = Case> {
    let step = (
        0_u8..26,
        1..=USERS,
        1_i32..=3,
        -4_i64..=4,
        1_i64..=1_000,
        0_i64..4,
    );
    (
        prop::bool::weighted(0.7),
        20_u32..=63,
        3_u32..=8,
        (0_u8..4, 0_u8..3),
        (0_u8..4, 0_u8..6),
        prop::collection::vec(step, 1..80),
    )
        .prop_map(|(is_mended, money, lots, scales, fees, steps)| Case {
            is_mended,
            money,
            lots,
            scales,
            fees,
            steps,
        })
}

/// A case's amounts.
struct Market {
    /// The amount that each user has of each currency at first.
    each: i64,
    lots_max: i64,
    price: i64,
    spec: SymbolSpec,
}

impl Market {
    fn new(case: &Case) -> Self {
        // The rest is room for what quirks could cost.
        let each = (i64::MAX >> (63 - case.money)) / (USERS + 1);
        let lots_max = 1_i64 << (case.money / case.lots);
        let quote_scale = [1, 7, 1_000, 1 << (case.money / 6)][usize::from(case.scales.0)];
        let base_scale = [1, 3, each / (lots_max * 8)][usize::from(case.scales.1)].max(1);
        let price = (each / quote_scale / lots_max / 4).max(1);
        let taker_fee = [0, 1, price * quote_scale / 16, price * quote_scale / 2];
        let taker_fee = taker_fee[usize::from(case.fees.0)];
        let maker_fee = match (case.fees.1, case.is_mended) {
            (0, _) => 0,
            (1, _) => taker_fee,
            (2, true) => -taker_fee,
            (3, true) => -taker_fee / 3,
            (4, false) => taker_fee * 2 + 1,
            _ => taker_fee / 2,
        };
        let spec = SymbolSpec {
            base_scale,
            quote_scale,
            taker_fee,
            maker_fee,
            ..SymbolSpec::default()
        };
        Self {
            each,
            lots_max,
            price,
            spec,
        }
    }

    fn state(&self, is_mended: bool) -> State {
        let rules = [Rules::REFERENCE, Rules::MENDED][usize::from(is_mended)];
        let mut state = State::new(rules);
        let pair = |id, base, quote| SymbolSpec {
            id: SymbolId(id),
            base_currency: CurrencyId(base),
            quote_currency: CurrencyId(quote),
            ..self.spec
        };
        let mut of_value = pair(3, 5, 2);
        if is_mended {
            of_value.fee_unit = FeeUnit::Millionth;
            [of_value.taker_fee, of_value.maker_fee] = [900, -300];
        }
        let symbols = [pair(1, 1, 2), pair(2, 3, 4), of_value];
        let balances = (1..=CURRENCIES).map(|id| (CurrencyId(id), self.each));
        let balances: Vec<_> = balances.collect();
        let accounts = (1..=USERS).map(|uid| AccountSpec::new(UserId(uid), balances.clone()));
        for command in [
            Command::AddSymbols(symbols.into()),
            Command::AddAccounts(accounts.collect()),
        ] {
            let code = apply(&mut state, &command, &mut Events::new());
            assert_eq!(code, ResultCode::Success, "{:?}", self.spec);
        }
        state
    }

    fn place(&self, number: i64, (kind, uid, symbol, price, size, more): Step) -> Place {
        let tick = (self.price / 16).max(1);
        let side = (size % 2) as usize;
        let order_type = match kind {
            10 | 11 => OrderType::Ioc,
            12 => OrderType::Market,
            13 => OrderType::Fok,
            14 | 15 => OrderType::IocBudget,
            24 | 25 => OrderType::FokBudget,
            _ => OrderType::Gtc,
        };
        let size = 1 + (i128::from(self.lots_max) * i128::from(size) / 1_000) as i64;
        let mut price = self.price + price * tick;
        if more == 3 && uid == 1 {
            // Under the fee, or below zero: for the reference's rules.
            price = -tick;
        }
        if order_type.is_budget() {
            price = price.saturating_mul(size);
        }
        let more = if order_type.is_budget() { 0 } else { more };
        Place {
            order_type,
            reserve_price: price.saturating_add(more * tick),
            flags: OrderFlags::NONE,
            ..Place::limit(
                (UserId(uid), OrderId(number)),
                SymbolId(symbol),
                SIDES[side],
                (price, size),
            )
        }
    }

    /// Returns the commands of the last of these steps.
    fn commands(&self, steps: &[Step], state: &State) -> Vec<Command> {
        let number = steps.len() as i64;
        let step = steps[steps.len() - 1];
        let (kind, uid, _, _, size, _) = step;
        let place = self.place(number, step);
        let before = steps.len() - 1 - (size as usize % 16).min(steps.len() - 1);
        let order_id = OrderId(before as i64 + 1);
        let (uid, symbol) = match kind {
            16..=19 => (steps[before].1, steps[before].2),
            _ => (uid, place.symbol.0),
        };
        let (uid, symbol) = (UserId(uid), SymbolId(symbol));
        let balance = |id: i32, amount| {
            Command::deposit(uid, CurrencyId(id), amount, number * 10 + i64::from(id))
        };
        match kind {
            16 | 17 => vec![Command::move_to(uid, symbol, order_id, place.price)],
            18 => vec![Command::cancel(uid, symbol, order_id)],
            19 => vec![Command::reduce(uid, symbol, order_id, place.size)],
            // The user leaves with all the money, whatever rests,
            20 if size < 300 => {
                let has = |id| state.risk.balance(uid, CurrencyId(id)).unwrap_or(0);
                let all = (1..=CURRENCIES).map(|id| balance(id, -has(id)));
                all.chain([Command::Suspend { uid }]).collect()
            }
            // and comes back with half as much.
            20 | 21 => {
                let back = [Command::Resume { uid }, Command::AddUser { uid }];
                let all = (1..=CURRENCIES).rev().map(|id| balance(id, self.each / 2));
                back.into_iter().chain(all).collect()
            }
            22 | 23 => vec![Command::PlaceConditional(
                ConditionalOrder {
                    trigger: (kind == 22).then_some(place.price),
                    display: (kind == 23).then_some(1 + place.size / 3),
                    ..ConditionalOrder::from(place)
                }
                .into(),
            )],
            _ => vec![Command::Place(place)],
        }
    }
}

pub(super) fn run(case: &Case) -> Result<(), String> {
    let market = Market::new(case);
    let mut all = Alike::new(&market.state(case.is_mended));
    for number in 1..=case.steps.len() {
        for command in market.commands(&case.steps[..number], &all.0[0]) {
            all.step(|state| {
                // With room for hints.
                let mut events = Events::with_capacity(8);
                (execute(state, &command, &mut events), events)
            })?;
        }
    }
    Ok(())
}
