//! The limits of a user: open orders, the size of one, ids that count once.

use thalweg_exchange::risk::ID_WINDOW;
use thalweg_exchange::{
    AccountSpec, Action, Command, ConditionalOrder, CurrencyId, OrderFlags, OrderId, OrderType,
    Place, ResultCode, State, SymbolId, SymbolSpec, UserId, UserLimits,
};

use crate::one_state::{done, run, text};

const SYMBOL: SymbolId = SymbolId(1);
const USER: UserId = UserId(1);
const RICH: i64 = 1 << 40;

fn exchange() -> State {
    let mut state = State::default();
    let spec = |id| SymbolSpec::pair(SymbolId(id), CurrencyId(1), CurrencyId(2));
    let account = |uid| AccountSpec {
        uid: UserId(uid),
        balances: vec![(CurrencyId(1), RICH), (CurrencyId(2), RICH)],
    };
    done(&mut state, &Command::AddSymbols([spec(1), spec(2)].into()));
    done(
        &mut state,
        &Command::AddAccounts([account(1), account(2)].into()),
    );
    state
}

fn order(uid: UserId, id: i64, size: i64) -> Place {
    Place::limit((uid, OrderId(id)), SYMBOL, Action::Ask, (100, size))
}

fn limited(open_orders: u32, order_size: i64) -> Option<UserLimits> {
    Some(
        UserLimits::NONE
            .with_open_orders(open_orders)
            .with_order_size(order_size),
    )
}

const fn set(uid: Option<UserId>, limits: Option<UserLimits>) -> Command {
    Command::SetLimits { uid, limits }
}

/// Refused, and nothing changed.
#[track_caller]
fn refused(state: &mut State, place: Place, code: ResultCode) {
    let before = text(state);
    assert_eq!(run(state, &Command::Place(place)), code);
    assert_eq!(text(state), before);
}

#[test]
fn orders_are_counted_over_all_symbols_resting_and_waiting() {
    for uid in [None, Some(USER)] {
        let mut state = exchange();
        done(&mut state, &set(uid, limited(3, i64::MAX)));
        done(&mut state, &Command::Place(order(USER, 1, 1)));
        let elsewhere = Place {
            symbol: SymbolId(2),
            ..order(USER, 2, 1)
        };
        done(&mut state, &Command::Place(elsewhere));
        let stop = |id| {
            Command::PlaceConditional(
                ConditionalOrder::from(order(USER, id, 1))
                    .with_trigger(50)
                    .into(),
            )
        };
        done(&mut state, &stop(3));
        assert_eq!(state.risk.open_orders(USER), 3);
        refused(&mut state, order(USER, 4, 1), ResultCode::RiskTooManyOrders);
        assert_eq!(run(&mut state, &stop(4)), ResultCode::RiskTooManyOrders);
        // An order that cannot rest is no open order.
        let immediate = order(USER, 4, 1).with_type(OrderType::Ioc);
        assert_ne!(
            run(&mut state, &Command::Place(immediate)),
            ResultCode::RiskTooManyOrders
        );
        // Lowered limits leave what rests.
        done(&mut state, &set(uid, limited(1, i64::MAX)));
        assert_eq!(state.risk.open_orders(USER), 3);
        let cancel = Command::cancel(USER, SYMBOL, OrderId(1));
        done(&mut state, &cancel);
        refused(&mut state, order(USER, 4, 1), ResultCode::RiskTooManyOrders);
        let all = Command::cancel_all(Some(USER), None);
        done(&mut state, &all);
        assert_eq!(state.risk.open_orders(USER), 0);
        done(&mut state, &Command::Place(order(USER, 4, 1)));
        refused(&mut state, order(USER, 5, 1), ResultCode::RiskTooManyOrders);
        // A fill makes room.
        let buy = Place {
            action: Action::Bid,
            ..order(UserId(2), 1, 1)
        };
        done(&mut state, &Command::Place(buy));
        assert_eq!(
            (
                state.risk.open_orders(USER),
                state.risk.open_orders(UserId(2))
            ),
            (0, 0)
        );
        done(&mut state, &set(uid, None));
        (5..9).for_each(|id| done(&mut state, &Command::Place(order(USER, id, 1))));
        assert_eq!(state.risk.open_orders(USER), 4);
    }
}

#[test]
fn own_limits_hold_instead_of_those_of_everybody() {
    let mut state = exchange();
    done(&mut state, &set(None, limited(u32::MAX, 10)));
    done(&mut state, &set(Some(USER), limited(u32::MAX, 20)));
    done(&mut state, &Command::Place(order(USER, 1, 20)));
    refused(
        &mut state,
        order(USER, 2, 21),
        ResultCode::RiskOrderTooLarge,
    );
    done(&mut state, &Command::Place(order(UserId(2), 1, 10)));
    refused(
        &mut state,
        order(UserId(2), 2, 11),
        ResultCode::RiskOrderTooLarge,
    );
    assert!(text(&state).contains("G,*,4294967295,10,0\nG,1,4294967295,20,0\n"));
    done(&mut state, &set(Some(USER), None));
    refused(
        &mut state,
        order(USER, 2, 11),
        ResultCode::RiskOrderTooLarge,
    );
    assert_eq!(
        run(&mut state, &set(Some(UserId(77)), None)),
        ResultCode::AuthInvalidUser
    );
}

#[test]
fn an_id_counts_once_though_its_order_is_long_gone() {
    for uid in [None, Some(USER)] {
        let mut state = exchange();
        let once = UserLimits::NONE.with_ids_once();
        // Before, ids come again as often as anybody likes.
        let cancel = Command::cancel(USER, SYMBOL, OrderId(9));
        for _ in 0..2 {
            done(&mut state, &Command::Place(order(USER, 9, 1)));
            done(&mut state, &cancel);
        }
        done(&mut state, &set(uid, Some(once)));
        done(&mut state, &Command::Place(order(USER, 9, 1)));
        done(&mut state, &cancel);
        refused(&mut state, order(USER, 9, 1), ResultCode::RiskOrderIdUsed);
        let elsewhere = Place {
            symbol: SymbolId(2),
            ..order(USER, 9, 1)
        };
        refused(&mut state, elsewhere, ResultCode::RiskOrderIdUsed);
        // One that was refused may come again.
        refused(&mut state, order(USER, 10, RICH + 1), ResultCode::RiskNsf);
        done(&mut state, &Command::Place(order(USER, 10, 1)));
        let far = 8 + ID_WINDOW as i64;
        done(&mut state, &Command::Place(order(USER, far, 1)));
        refused(&mut state, order(USER, 9, 1), ResultCode::RiskOrderIdUsed);
        done(&mut state, &Command::Place(order(USER, far + 1, 1)));
        refused(&mut state, order(USER, 9, 1), ResultCode::RiskOrderIdTooOld);
        refused(&mut state, order(USER, 10, 1), ResultCode::RiskOrderIdUsed);
        done(&mut state, &Command::Place(order(USER, 11, 1)));
        assert!(text(&state).contains(&format!("I,1,{},", far + 1)));
        done(&mut state, &set(uid, None));
        done(&mut state, &Command::Place(order(USER, 9, 1)));
    }
}

/// A journal has the short form of both.
#[test]
fn an_order_without_conditions_is_refused_for_one_reason_in_either_form() {
    let mut state = exchange();
    let once = UserLimits::NONE.with_ids_once();
    done(&mut state, &set(Some(USER), Some(once)));
    done(&mut state, &Command::Place(order(USER, 9, 1)));
    let flagged = Place {
        order_type: OrderType::Ioc,
        flags: OrderFlags::NONE.with_post_only(),
        ..order(USER, 9, 1)
    };
    let placed_with =
        |place: Place| Command::PlaceConditional(ConditionalOrder::from(place).into());
    for (place, code) in [
        (order(USER, 9, 1), ResultCode::RiskOrderIdUsed),
        (flagged, ResultCode::RiskPostOnlyOrderType),
    ] {
        refused(&mut state, place, code);
        assert_eq!(run(&mut state, &placed_with(place)), code);
    }
}

#[test]
fn limits_ids_and_counts_outlast_a_removed_user() {
    let mut state = exchange();
    let limits = UserLimits {
        open_orders: 2,
        order_size: 1 << 20,
        ids_once: true,
    };
    done(&mut state, &set(Some(USER), Some(limits)));
    let balance = |currency, transaction_id, amount| {
        Command::deposit(USER, CurrencyId(currency), amount, transaction_id)
    };
    done(&mut state, &balance(2, 2_000_000_000, -RICH));
    done(&mut state, &balance(1, 2_000_000_001, 5 - RICH));
    // All money is held for an order.
    done(&mut state, &Command::Place(order(USER, 1, 5)));
    done(&mut state, &Command::Suspend { uid: USER });
    assert_eq!(state.risk.user(USER), None);
    assert_eq!(state.risk.open_orders(USER), 1);
    let before = text(&state);
    assert!(before.contains("G,1,2,1048576,1\nI,1,1,1\n"), "{before}");
    done(&mut state, &Command::Resume { uid: USER });
    assert_eq!(state.risk.open_orders(USER), 1);
    done(&mut state, &balance(1, 2_000_000_002, 9));
    refused(&mut state, order(USER, 1, 1), ResultCode::RiskOrderIdUsed);
    done(&mut state, &Command::Place(order(USER, 2, 5)));
    refused(&mut state, order(USER, 3, 1), ResultCode::RiskTooManyOrders);
}

/// More than fit the count beside a user.
#[test]
fn very_many_orders_are_counted() {
    let mut state = exchange();
    let many = 65_540;
    let place = |id| Command::Place(order(USER, id, 1));
    (0..many).for_each(|id| done(&mut state, &place(id)));
    assert_eq!(state.risk.open_orders(USER), many as u64);
    done(&mut state, &set(Some(USER), limited(many as u32, i64::MAX)));
    refused(
        &mut state,
        order(USER, many, 1),
        ResultCode::RiskTooManyOrders,
    );
    for id in 0..10 {
        let cancel = Command::cancel(USER, SYMBOL, OrderId(id));
        done(&mut state, &cancel);
    }
    assert_eq!(state.risk.open_orders(USER), many as u64 - 10);
    (0..10).for_each(|id| done(&mut state, &place(id)));
    refused(
        &mut state,
        order(USER, many, 1),
        ResultCode::RiskTooManyOrders,
    );
    let all = Command::cancel_all(Some(USER), None);
    done(&mut state, &all);
    assert_eq!(state.risk.open_orders(USER), 0);
}

/// A client that sends an order again learns that the first one arrived, whatever else stands in
/// its way by now.
#[test]
fn a_used_id_is_refused_before_anything_else() {
    let limits = UserLimits::NONE.with_open_orders(1).with_ids_once();
    let place = order(USER, 7, 5);
    let terms = ConditionalOrder::from(order(USER, 8, 5)).with_good_till(3);
    let symbol = SYMBOL;
    for then in [
        Command::Nop,
        Command::Halt { symbol },
        Command::set_price_band(symbol, 1, 1),
        Command::StartAuction { symbol },
        Command::Clock { time: 9 },
    ] {
        for order in [
            Command::Place(place),
            Command::PlaceConditional(terms.into()),
        ] {
            let mut state = exchange();
            done(&mut state, &set(Some(USER), Some(limits)));
            done(&mut state, &order);
            run(&mut state, &then);
            let before = text(&state);
            assert_eq!(run(&mut state, &order), ResultCode::RiskOrderIdUsed);
            assert_eq!(text(&state), before, "{then:?}");
        }
    }
}

#[test]
fn ids_that_count_again_are_counted_anew() {
    let once = UserLimits::NONE.with_ids_once();
    for whose in [None, Some(USER)] {
        let mut state = exchange();
        done(&mut state, &set(whose, Some(once)));
        done(&mut state, &Command::Place(order(USER, 5_000, 1)));
        done(&mut state, &set(whose, None));
        done(&mut state, &set(whose, Some(once)));
        done(&mut state, &Command::Place(order(USER, 1, 1)));
    }
}
