//! Market data against models of it.

mod candles;
mod depth;
mod events;
mod memory;

use thalweg_exchange::{Action, SymbolId};

use super::units::Unit;
use super::{Label, Trade, Units};

thalweg_testkit::count_allocations!();

const SYMBOL: SymbolId = SymbolId(1);

/// Returns a trade of a command of its own.
fn trade(id: i64, time_us: i64, price: i64, lots: i64) -> Trade {
    Trade {
        id,
        command: id as u64,
        symbol: SYMBOL,
        price,
        lots,
        taker_side: Action::Bid,
        time_us,
    }
}

/// Returns the label of a symbol.
pub(super) fn label() -> Label {
    let unit = |factor, decimals| Unit { factor, decimals };
    Label {
        name: "BTCUSDT".to_owned(),
        units: Units {
            price: unit(1, 2),
            size: unit(10, 4),
            quote: unit(10, 6),
        },
    }
}
