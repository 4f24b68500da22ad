//! The part of a user's balance that must stay for futures, kept from one order to the next.
//!
//! It depends on the user's records, on waiting profit or loss, and on the bands and terms of the
//! records' symbols. Code that may change a record or a waiting amount forgets it; a band that
//! moves starts a new *epoch*, and what was kept in another one does not count. Users with limits
//! of their own have nothing kept, since each of their orders takes the slow path.

use std::fmt;

use super::User;
use crate::ids::CurrencyId;

/// The kept amounts: for each side of an order, of the currency that it pays with.
#[derive(Clone, Copy, Default)]
pub(super) struct Kept {
    /// When it was found; zero is before all epochs.
    epochs: [u64; 2],
    currencies: [CurrencyId; 2],
    locked: [i64; 2],
}

impl fmt::Debug for Kept {
    /// It says nothing that the rest of the user does not, and is there or not.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Kept")
    }
}

impl Kept {
    #[inline(always)]
    pub(super) const fn forget(&mut self) {
        self.epochs = [0; 2];
    }
}

impl User {
    /// True where there is nothing of the user but the near balances, no futures and no limits.
    #[inline(always)]
    pub(in crate::engine::risk) const fn is_plain(&self) -> bool {
        self.far.is_none()
    }

    /// How much of the balance in the currency of a side must stay for futures, if that is kept.
    #[inline(always)]
    pub(in crate::engine::risk) fn kept_cover(
        &self,
        (side, currency, epoch): (usize, CurrencyId, u64),
    ) -> Option<i64> {
        let Kept {
            epochs,
            currencies,
            locked,
        } = &self.far.as_ref()?.kept;
        (epochs[side] == epoch && currencies[side] == currency).then_some(locked[side])
    }

    /// Keeps it. The user has no limits of his own.
    pub(in crate::engine::risk) fn keep_cover(
        &mut self,
        (side, currency, epoch): (usize, CurrencyId, u64),
        locked: i64,
    ) {
        if let Some(far) = &mut self.far {
            far.kept.epochs[side] = epoch;
            far.kept.currencies[side] = currency;
            far.kept.locked[side] = locked;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;

    use super::*;
    use crate::command::{
        AccountSpec, Action, Command, OrderType, Place, SymbolSpec, SymbolType, UserLimits,
    };
    use crate::ids::{OrderId, SymbolId, UserId};
    use crate::risk::Risk;
    use crate::risk::cover::locked;
    use crate::{Events, State, apply};

    const PAIR: i32 = 1;
    const USERS: i64 = 3;

    /// A fault after each command.
    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Fault {
        None,
        /// The amounts that were kept of a user stay, whatever the command did.
        Remembers,
        /// A band that moves starts no epoch.
        SameEpoch,
    }

    fn setup() -> State {
        let (base, quote) = (CurrencyId(1), CurrencyId(2));
        let pair = SymbolSpec {
            taker_fee: 1,
            margin_buy: 20,
            margin_sell: 30,
            ..SymbolSpec::pair(SymbolId(PAIR), base, quote)
        };
        let futures = |id, quote_currency| SymbolSpec {
            id: SymbolId(id),
            symbol_type: SymbolType::Futures,
            quote_currency,
            ..pair
        };
        let account = |uid| AccountSpec::new(UserId(uid), vec![(base, 2_000), (quote, 2_000)]);
        let accounts: Vec<_> = (1..=USERS).map(account).collect();
        let band = |symbol| Command::set_price_band(SymbolId(symbol), 10, 30);
        let mut state = State::default();
        for command in [
            Command::AddSymbols([pair, futures(2, quote), futures(3, base)].into()),
            Command::AddAccounts(accounts.into()),
            band(2),
            band(3),
        ] {
            apply(&mut state, &command, &mut Events::new());
        }
        state
    }

    fn place() -> impl Strategy<Value = Command> {
        let terms = (1..=USERS, PAIR..=3, 0_i64..12, any::<bool>());
        (terms, 10_i64..30, 1_i64..6, any::<bool>()).prop_map(
            |((uid, symbol, id, bid), price, size, rests)| {
                Command::Place(Place {
                    order_type: if rests {
                        OrderType::Gtc
                    } else {
                        OrderType::Ioc
                    },
                    ..Place::limit(
                        (UserId(uid), OrderId(id)),
                        SymbolId(symbol),
                        if bid { Action::Bid } else { Action::Ask },
                        (price, size),
                    )
                })
            },
        )
    }

    fn command() -> impl Strategy<Value = Command> {
        let order = (1..=USERS, PAIR..=3, 0_i64..12);
        let order = order.prop_map(|(u, s, id)| (UserId(u), SymbolId(s), OrderId(id)));
        let limits = UserLimits {
            order_size: 3,
            ..UserLimits::NONE
        };
        prop_oneof![
            12 => place(),
            1 => (order.clone(), 10_i64..30).prop_map(|((uid, symbol, order_id), price)| {
                Command::Move { uid, symbol, order_id, price }
            }),
            1 => (order.clone(), 1_i64..4).prop_map(|((uid, symbol, order_id), by)| {
                Command::Reduce { uid, symbol, order_id, by }
            }),
            1 => (2..=3, 5_i64..15, 20_i64..40).prop_map(|(symbol, low, high)| {
                Command::SetPriceBand { symbol: SymbolId(symbol), low, high }
            }),
            1 => (order.clone(), 1..=2, -200_i64..400, any::<i64>()).prop_map(
                |((uid, ..), currency, amount, transaction_id)| {
                    Command::deposit(uid, CurrencyId(currency), amount, transaction_id)
                }
            ),
            1 => (order, prop::option::of(Just(limits)), any::<bool>()).prop_map(
                |((uid, symbol, _), limits, cancels)| if cancels {
                    Command::CancelAll { uid: Some(uid), symbol: Some(symbol) }
                } else {
                    Command::SetLimits { uid: Some(uid), limits }
                }
            ),
        ]
    }

    fn commands() -> impl Strategy<Value = Vec<Command>> {
        prop::collection::vec(command(), 0..80)
    }

    /// How much is kept, and how much of that is wrong.
    fn compare(risk: &Risk) -> [usize; 2] {
        let mut found = [0; 2];
        for user in risk.users.iter() {
            for side in 0..2 {
                let currency = user.far.as_ref().map(|far| far.kept.currencies[side]);
                let key = (side, currency.unwrap_or_default(), risk.epoch);
                if let Some(kept) = user.kept_cover(key) {
                    let is_right = i128::from(kept) == locked(user, &risk.symbols, key.1);
                    found[0] += usize::from(kept > 0);
                    found[1] += usize::from(!is_right || user.has_limits());
                }
            }
        }
        found
    }

    /// Checks the kept amounts after each command, all together, as long as nothing is wrong.
    fn run(commands: &[Command], fault: Fault) -> [usize; 2] {
        let mut state = setup();
        let mut sum = [0; 2];
        for command in commands {
            let epoch = state.risk.epoch;
            let kept = |uid| {
                state
                    .risk
                    .users
                    .get(UserId(uid))?
                    .far
                    .as_ref()
                    .map(|far| far.kept)
            };
            let before: Vec<_> = (1..=USERS).map(kept).collect();
            apply(&mut state, command, &mut Events::new());
            for (uid, kept) in (1..).zip(before) {
                let user = state.risk.users.get_mut(UserId(uid));
                let now = user.and_then(|user| Some(&mut user.far.as_mut()?.kept));
                if let (Some(kept), Some(now), Fault::Remembers) = (kept, now, fault)
                    && now.epochs == [0; 2]
                {
                    *now = kept;
                }
            }
            if fault == Fault::SameEpoch {
                state.risk.epoch = epoch;
            }
            let found = compare(&state.risk);
            sum = [sum[0] + found[0], sum[1] + found[1]];
            if found[1] > 0 {
                break;
            }
        }
        sum
    }

    proptest! {
        #[test]
        fn what_is_kept_is_what_must_stay(commands in commands()) {
            prop_assert_eq!(run(&commands, Fault::None)[1], 0);
        }
    }

    /// The property above is one that can fail, of the faults that it is there for.
    #[test]
    fn what_is_kept_too_long_is_found() {
        let mut runner = TestRunner::deterministic();
        let mut cases = Vec::new();
        for _ in 0..300 {
            cases.push(commands().new_tree(&mut runner).unwrap().current());
        }
        let all = |fault| {
            let sums = cases.iter().map(|commands| run(commands, fault));
            sums.fold([0; 2], |sum, found| [sum[0] + found[0], sum[1] + found[1]])
        };
        let [kept, wrong] = all(Fault::None);
        assert!(kept > 1_000 && wrong == 0, "{kept} kept, {wrong} wrong");
        for fault in [Fault::Remembers, Fault::SameEpoch] {
            let [_, wrong] = all(fault);
            assert!(wrong > 0, "{fault:?}: {wrong} found");
        }
    }
}
