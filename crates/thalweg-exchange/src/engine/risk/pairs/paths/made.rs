//! Events made by hand: fees and rebates per lot are about as large as the price, so that values
//! leave 64 bits where what is paid does not.

use proptest::prelude::*;

use super::{Alike, SIDES};
use crate::command::{AccountSpec, Place, SymbolSpec};
use crate::event::UserHint;
use crate::{
    Action, Command, CurrencyId, Event, Events, OrderId, ResultCode, Rules, State, SymbolId,
    UserId, apply,
};

#[derive(Clone, Debug)]
pub(super) struct Case {
    /// The taker fee, as a power of two, and what is above it.
    fee: (u32, i64),
    /// Both fees of a lot together.
    fees: i64,
    side: usize,
    /// Each trade: the maker, the lots, and the money left to the seller and to the buyer per lot.
    trades: Vec<(i64, i64, i64, i64)>,
    scale: i64,
}

const SYMBOL: SymbolId = SymbolId(1);
const TAKER: UserId = UserId(1);

pub(super) fn cases() -> impl Strategy<Value = Case> {
    let trade = (2_i64..6, 1_i64..8, 0_i64..1_000, 0_i64..1_000);
    // How many bits the value of eight units of lots has, and such a unit.
    let bits = prop_oneof![30_u32..58, 58_u32..67, 58_u32..67];
    (
        (bits, 0_u32..21, 0_i64..9),
        0_i64..50,
        0_usize..2,
        prop::collection::vec(trade, 1..7),
        1_i64..4,
    )
        .prop_map(|((bits, unit, above), fees, side, mut trades, scale)| {
            trades.iter_mut().for_each(|trade| trade.1 <<= unit);
            Case {
                fee: ((bits - unit - 3).clamp(6, 58), above),
                fees,
                side,
                trades,
                scale,
            }
        })
}

fn state(spec: SymbolSpec) -> State {
    let mut state = State::new(Rules::MENDED);
    let accounts = (1..6).map(|uid| AccountSpec {
        uid: UserId(uid),
        balances: vec![(CurrencyId(1), 1 << 40), (CurrencyId(2), 1 << 40)],
    });
    for command in [
        Command::AddSymbols([spec].into()),
        Command::AddAccounts(accounts.collect()),
    ] {
        let code = apply(&mut state, &command, &mut Events::new());
        assert_eq!(code, ResultCode::Success);
    }
    state
}

/// Returns the prices at which a lot leaves so much to both sides: the trade's, and the hold price.
fn prices(action: Action, spec: &SymbolSpec, (sells, buys): (i64, i64), most: i64) -> (i64, i64) {
    let (taker, maker) = (spec.taker_fee, spec.maker_fee);
    match action {
        // The seller gets price - taker fee, the buyer hold - price + taker fee - maker fee.
        Action::Ask => (taker + sells, maker + sells + buys),
        // The seller gets price - maker fee, the buyer hold - price; all have one hold price.
        Action::Bid => (maker + sells, maker + most),
    }
}

pub(super) fn run(case: &Case) -> Result<(), String> {
    let taker_fee = (1 << case.fee.0) + case.fee.1;
    let spec = SymbolSpec {
        taker_fee: taker_fee * case.scale,
        maker_fee: (case.fees - taker_fee) * case.scale,
        quote_scale: case.scale,
        base_scale: 3,
        ..SymbolSpec::pair(SYMBOL, CurrencyId(1), CurrencyId(2))
    };
    let per_price = SymbolSpec {
        taker_fee,
        maker_fee: case.fees - taker_fee,
        ..spec
    };
    let mut all = Alike::new(&state(spec));
    let action = SIDES[case.side];
    let mut events = Events::with_capacity(8);
    for &(maker, size, sells, buys) in &case.trades {
        let (price, hold) = prices(action, &per_price, (sells, buys), 1_000);
        events.hint_next(UserHint(maker as u32 - 1));
        events.push(Event::Trade {
            price,
            size,
            maker_order: OrderId(maker),
            maker_uid: UserId(maker),
            maker_filled: size,
            maker_left: 1,
            maker_completed: false,
            taker_completed: false,
            bidder_hold_price: hold,
            taker_action: action,
        });
    }
    let lots: i64 = case.trades.iter().map(|trade| trade.1).sum();
    let order = (TAKER, OrderId(1));
    let place = Place::limit(order, SYMBOL, action, (1, lots + 1));
    let command = Command::Place(place);
    all.step(|state| state.risk.settle(&command, ResultCode::Success, &events))
}
