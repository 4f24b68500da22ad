//! Order books of others, on streams of limit orders and cancels. They match; none of them knows
//! users' money, reserve prices, moves or reductions as we do, and they do this instead:
//! `orderbook-rs` shares its book between threads, checks prices and times against the clock, and
//! keeps statistics; `lobster` gives the fills of each order in a new vector.

use std::hint::black_box;

use lobster::{OrderEvent, OrderType as Order, Side as LobsterSide};
use orderbook_rs::{DefaultOrderBook, Id, Side, TimeInForce};
use thalweg_exchange::{Action, Command};

use super::engine::{Load, cpu_ns};
use super::flow::{Flow, Tape};
use crate::runner::{Run, Subject, subject};

/// Levels of a side that are compared; our streams for peers have fewer.
const DEPTH_MAX: usize = 1 << 12;

/// What all of them can do.
#[derive(Debug, Clone, Copy)]
enum Request {
    Limit {
        id: u64,
        action: Action,
        price: u64,
        size: u64,
    },
    Cancel {
        id: u64,
    },
}

/// The same stream as limit orders and cancels.
///
/// # Errors
/// It has commands that the peers do not know.
fn requests(commands: &[Command]) -> Result<Vec<Request>, String> {
    let request = |command: &Command| match command {
        // An IOC order of our streams is always filled: as a limit order it leaves nothing.
        Command::Place(place) => Ok(Request::Limit {
            id: place.order_id.0.unsigned_abs(),
            action: place.action,
            price: place.price.unsigned_abs(),
            size: place.size.unsigned_abs(),
        }),
        Command::Cancel { order_id, .. } => Ok(Request::Cancel {
            id: order_id.0.unsigned_abs(),
        }),
        _ => Err("has neither moves nor reductions like ours".to_owned()),
    };
    commands.iter().map(request).collect()
}

/// Asks and bids, best first: price and volume.
type Depth = [Vec<(u64, u64)>; 2];

/// A book of others.
trait Peer {
    fn new(orders: usize) -> Self;
    /// Places a limit order.
    fn limit(&mut self, id: u64, action: Action, price: u64, size: u64);
    /// Cancels an order; false if it is not there.
    fn cancel(&mut self, id: u64) -> bool;
    fn depth(&self) -> Depth;

    fn request(&mut self, request: Request) {
        match request {
            Request::Limit {
                id,
                action,
                price,
                size,
            } => self.limit(id, action, price, size),
            Request::Cancel { id } => {
                black_box(self.cancel(id));
            }
        }
    }
}

impl Peer for lobster::OrderBook {
    fn new(orders: usize) -> Self {
        Self::new(orders, 10, false)
    }

    #[inline]
    fn limit(&mut self, id: u64, action: Action, price: u64, size: u64) {
        let side = match action {
            Action::Ask => LobsterSide::Ask,
            Action::Bid => LobsterSide::Bid,
        };
        let id = u128::from(id);
        black_box(self.execute(Order::Limit {
            id,
            side,
            qty: size,
            price,
        }));
    }

    #[inline]
    fn cancel(&mut self, id: u64) -> bool {
        let event = self.execute(Order::Cancel { id: u128::from(id) });
        matches!(event, OrderEvent::Canceled { .. })
    }

    fn depth(&self) -> Depth {
        // It makes room for so many.
        let depth = self.depth(DEPTH_MAX);
        [depth.asks, depth.bids].map(|side| {
            let levels = side.iter().map(|level| (level.price, level.qty));
            levels.collect()
        })
    }
}

impl Peer for DefaultOrderBook {
    fn new(_: usize) -> Self {
        Self::new("7")
    }

    #[inline]
    fn limit(&mut self, id: u64, action: Action, price: u64, size: u64) {
        let side = match action {
            Action::Ask => Side::Sell,
            Action::Bid => Side::Buy,
        };
        let (id, price) = (Id::from_u64(id), u128::from(price));
        let placed = self.add_limit_order(id, price, size, side, TimeInForce::Gtc, None);
        let _ = black_box(placed);
    }

    #[inline]
    fn cancel(&mut self, id: u64) -> bool {
        matches!(self.cancel_order(Id::from_u64(id)), Ok(Some(_)))
    }

    fn depth(&self) -> Depth {
        let (bids, asks) = self.get_volume_by_price().unwrap_or_default();
        [asks, bids].map(|side| {
            let levels = side.into_iter();
            let levels = levels.map(|(price, volume)| (price as u64, volume));
            levels.collect()
        })
    }
}

/// What must be left, each side by ascending price.
fn expected(flow: &Flow) -> Depth {
    [Action::Ask, Action::Bid].map(|action| {
        let levels = flow.levels.iter().filter(|(side, _)| *side == action);
        let level = levels.map(|(_, level)| (level.price as u64, level.volume as u64));
        sorted(level.collect())
    })
}

fn sorted(mut levels: Vec<(u64, u64)>) -> Vec<(u64, u64)> {
    levels.sort_unstable();
    levels
}

fn time<P: Peer>(flow: &Flow, tape: &Tape) -> Result<f64, String> {
    let (prefill, requests) = (requests(&flow.prefill)?, requests(&flow.commands)?);
    let mut book = P::new(2 * (prefill.len() + requests.len()));
    for request in prefill.iter().chain(&requests) {
        book.request(*request);
    }
    let gone = |id: &thalweg_exchange::OrderId| book.cancel(id.0.unsigned_abs());
    if !tape.resting.iter().all(gone) {
        return Err("does not know an order that rests".to_owned());
    }
    for request in &prefill {
        book.request(*request);
    }
    let begin = cpu_ns();
    for request in &requests {
        book.request(*request);
    }
    let took = cpu_ns() - begin;
    if book.depth().map(sorted) != expected(flow) {
        return Err("left another book than ours".to_owned());
    }
    Ok(took)
}

pub(super) const NAMES: [&str; 2] = ["lobster", "orderbook-rs"];

pub(super) fn subjects() -> [Box<dyn Subject<Load>>; 2] {
    fn peer<P: Peer>(load: &Load) -> Result<Run, String> {
        Ok(load.run(time::<P>(&load.flow, &load.tape)?))
    }
    [
        subject(NAMES[0], peer::<lobster::OrderBook>),
        subject(NAMES[1], peer::<DefaultOrderBook>),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::mixes::{self, Resting};
    use super::*;

    #[test]
    fn the_peers_leave_our_book() {
        let placing = Resting {
            moves: 0,
            reduces: 0,
            ..Resting::plain(300, 10, 20)
        };
        for flow in [placing.flow(2_000), mixes::trading(2_000)] {
            let load = Load::new(flow);
            for peer in subjects() {
                let run = peer.run(&load);
                assert!(run.as_ref().is_ok_and(|run| run.values[0] > 0.0), "{run:?}");
            }
        }
    }

    #[test]
    fn what_they_cannot_do_is_told() {
        let load = Load::new(Resting::plain(100, 10, 5).flow(500));
        let error = subjects()[0].run(&load).unwrap_err();
        assert_eq!(error, "has neither moves nor reductions like ours");
    }
}
