//! The ids of trades.

use std::collections::{HashMap, VecDeque};

use thalweg_exchange::SymbolId;
use thalweg_exchange::execution::{Execution, ExecutionReport, TradeId};

use crate::market::Trade;

/// The trades whose ids are found again, of the latest.
const RECENT_MAX: usize = 1 << 16;

/// The ids of trades: a count for each symbol.
#[derive(Debug, Default)]
pub(crate) struct TradeIds {
    pub(crate) last: HashMap<SymbolId, i64>,
    recent: HashMap<TradeId, Trade>,
    order: VecDeque<TradeId>,
}

impl TradeIds {
    /// Returns the trade of a report, and whether it has its id only now.
    pub(crate) fn of(&mut self, report: &ExecutionReport, time_us: i64) -> Option<(Trade, bool)> {
        let Execution::Trade {
            id,
            price,
            size,
            is_maker,
        } = report.kind
        else {
            return None;
        };
        if let Some(trade) = self.recent.get(&id) {
            return Some((*trade, false));
        }
        let side = report.side?;
        let trade = Trade {
            id: self.last.get(&report.symbol).copied().unwrap_or(0) + 1,
            command: id.command,
            symbol: report.symbol,
            price,
            lots: size,
            taker_side: if is_maker { side.opposite() } else { side },
            time_us,
        };
        self.restore(trade, id);
        Some((trade, true))
    }

    /// Takes a trade that has its id.
    pub(crate) fn restore(&mut self, trade: Trade, id: TradeId) {
        self.last.insert(trade.symbol, trade.id);
        if self.order.len() >= RECENT_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.recent.remove(&oldest);
        }
        self.order.push_back(id);
        self.recent.insert(id, trade);
    }
}

#[cfg(test)]
mod tests {
    use thalweg_exchange::{Action, OrderId, UserId};

    use super::*;

    fn report(symbol: i32, command: u64, index: u32, is_maker: bool) -> ExecutionReport {
        let side = if is_maker { Action::Ask } else { Action::Bid };
        ExecutionReport {
            command,
            owner: UserId(1),
            symbol: SymbolId(symbol),
            order: OrderId(1),
            side: Some(side),
            price: 5,
            left: 0,
            filled: 1,
            kind: Execution::Trade {
                id: TradeId { command, index },
                price: 5,
                size: 1,
                is_maker,
            },
        }
    }

    #[test]
    fn ids_count_by_symbol_and_both_reports_of_a_trade_have_the_same() {
        let mut ids = TradeIds::default();
        let mut id = |symbol, command, index, is_maker| {
            let of = ids.of(&report(symbol, command, index, is_maker), 0);
            of.map(|(trade, is_new)| (trade.id, is_new, trade.taker_side))
        };
        assert_eq!(id(1, 5, 0, false), Some((1, true, Action::Bid)));
        assert_eq!(id(1, 5, 0, true), Some((1, false, Action::Bid)));
        assert_eq!(id(1, 5, 1, true), Some((2, true, Action::Bid)));
        assert_eq!(id(2, 6, 0, false), Some((1, true, Action::Bid)));
        assert_eq!(id(1, 5, 1, false), Some((2, false, Action::Bid)));
    }
}
