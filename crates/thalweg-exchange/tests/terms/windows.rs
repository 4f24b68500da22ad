//! Where a book keeps its levels makes no difference: exchanges whose books begin with windows of
//! different width answer alike, whatever auctions, bands and halts come while windows move.

use proptest::prelude::*;
use proptest::sample::Index;
use thalweg_exchange::Action::{Ask, Bid};
use thalweg_exchange::matching::Matching;
use thalweg_exchange::{
    Command, Event, Events, RemovalReason, ResultCode, Rules, State, SymbolId, UserId,
};

use crate::terms::watch::money_is_conserved;
use crate::terms::world::{
    FUTURES, PAIR, World, cancelled, gtc, iceberg, in_symbol, moved, opening, stop, text, with,
};

/// Returns an exchange whose books have room for this number of orders, and wide windows if that is
/// not zero.
fn exchange(orders: usize) -> World {
    let mut world = World {
        state: State::new(Rules::MENDED),
        events: Events::new(),
    };
    world.state.matching = Matching::with_capacity(Rules::MENDED, orders);
    for command in opening(1 << 48) {
        assert_eq!(world.apply(&command), ResultCode::Success);
    }
    let (symbol, low, high) = (FUTURES, 1, ANY);
    let band = Command::SetPriceBand { symbol, low, high };
    assert_eq!(world.apply(&band), ResultCode::Success);
    world
}

/// Above all prices.
const ANY: i64 = 1 << 20;

/// Prices in ascending order; bids rest below a place in the middle, asks from there on.
#[derive(Debug)]
struct Prices {
    list: Vec<i64>,
    middle: usize,
}

fn prices() -> impl Strategy<Value = Prices> {
    let start = prop::sample::select(vec![10_i64, 3_000, 60_000]);
    let gaps = prop::collection::vec(1_i64..24, 65..260);
    (start, gaps, any::<Index>()).prop_map(|(start, gaps, middle)| {
        let sum = |price: &mut i64, gap| {
            *price += gap;
            Some(*price)
        };
        let list: Vec<i64> = gaps.into_iter().scan(start, sum).collect();
        let middle = middle.index(list.len());
        Prices { list, middle }
    })
}

/// The kind of a command, its price, and its order.
type Step = (u8, Index, Index);

impl Prices {
    fn command(&self, symbol: SymbolId, id: i64, (kind, at, other): Step) -> Command {
        let index = at.index(self.list.len());
        let price = self.list[index];
        let own_side = if index < self.middle { Bid } else { Ask };
        let size = 1 + other.index(5) as i64;
        let uid = id % 4 + 1;
        let rest = |action, price| in_symbol(gtc(uid, id, action, price, size), symbol);
        let known = other.index(id as usize) as i64;
        match kind {
            0..14 => Command::Place(rest(own_side, price)),
            14..18 => Command::Place(rest(own_side.opposite(), price)),
            18 => Command::Place(rest(own_side, price + 100_000)),
            19 => with(iceberg(rest(own_side, price), 2)),
            20 => with(stop(
                rest(own_side, price),
                self.list[other.index(self.list.len())],
            )),
            21..27 => cancelled(known % 4 + 1, symbol, known),
            27..31 => moved(known % 4 + 1, symbol, known, price),
            31 => Command::cancel_all(Some(UserId(uid)), None),
            32 => {
                let end = (index + self.list.len() / 2).min(self.list.len() - 1);
                let (low, high) = (price, self.list[end]);
                Command::SetPriceBand { symbol, low, high }
            }
            33 => Command::set_price_band(symbol, 1, ANY),
            34 => Command::Halt { symbol },
            35 => Command::Unhalt { symbol },
            36 | 37 => Command::StartAuction { symbol },
            _ => Command::Uncross {
                symbol,
                reference: Some(price),
            },
        }
    }
}

/// Checks that after an uncross nothing crosses, and nothing is outside the band, all of which is
/// reported.
fn is_uncrossed(
    world: &World,
    symbol: SymbolId,
    before: &[(i64, i64)],
) -> Result<(), TestCaseError> {
    let limits = world.state.risk.limits(symbol).expect("added");
    let band = limits.low..=limits.high;
    let best = [Ask, Bid].map(|side| world.side(symbol, side).first().map(|order| order.0));
    if let [Some(ask), Some(bid)] = best {
        prop_assert!(bid < ask, "crossed");
    }
    let outside = before.iter().filter(|(price, _)| !band.contains(price));
    let outside: Vec<i64> = outside.map(|&(_, id)| id).collect();
    // Stop orders that are reached afterwards may go for the same reason.
    let gone = world.events.iter().filter_map(|event| match *event {
        Event::Removed {
            order,
            why: RemovalReason::OutsideBand,
            ..
        } => Some(order.0),
        _ => None,
    });
    let rested = |id: &i64| before.iter().any(|order| order.1 == *id);
    prop_assert_eq!(gone.filter(rested).collect::<Vec<_>>(), outside);
    Ok(())
}

proptest! {
    #[test]
    fn windows_make_no_difference_to_auctions(
        prices in prices(),
        is_pair: bool,
        steps in prop::collection::vec((0..40_u8, any::<Index>(), any::<Index>()), 1..250),
    ) {
        let symbol = if is_pair { PAIR } else { FUTURES };
        let [mut narrow, mut wide] = [0, 1_000].map(exchange);
        let first = (0..).zip(&prices.list).map(|(at, &price)| {
            let action = if at < prices.middle { Bid } else { Ask };
            let id = at as i64;
            Command::Place(in_symbol(gtc(id % 4 + 1, id, action, price, 3), symbol))
        });
        let next = prices.list.len() as i64;
        let steps = (next..).zip(steps).map(|(id, step)| prices.command(symbol, id, step));
        for (at, command) in first.chain(steps).enumerate() {
            let is_uncross = matches!(command, Command::Uncross { .. });
            let sides = [Ask, Bid].into_iter().filter(|_| is_uncross);
            let before = sides.flat_map(|side| narrow.side(symbol, side));
            let before: Vec<_> = before.map(|order| (order.0, order.1)).collect();
            let code = narrow.apply(&command);
            prop_assert_eq!(wide.apply(&command), code, "{:?}", command);
            prop_assert_eq!(narrow.events.to_vec(), wide.events.to_vec(), "{:?}", command);
            if is_uncross && code == ResultCode::Success {
                is_uncrossed(&narrow, symbol, &before)?;
            }
            if at % 32 == 0 {
                prop_assert_eq!(text(&narrow.state), text(&wide.state));
            }
        }
        prop_assert_eq!(text(&narrow.state), text(&wide.state));
        money_is_conserved(&narrow.state)?;
    }
}
