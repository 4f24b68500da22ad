//! The thread that follows the drop copy.

use std::collections::HashMap;
use std::sync::Arc;
use std::{io, thread};

use thalweg_exchange::SymbolId;
use thalweg_exchange::execution::{Execution, ExecutionReport, TradeId};
use thalweg_exchange::session::ReportNumber;
use thalweg_server::{Copied, DropCopy, GatewayLink};
use tokio::runtime::Handle;

use crate::market::Trade;
use crate::state::{State, now_us};

/// An entry of the drop copy, ready to be applied: trades have their ids.
#[derive(Debug)]
pub(crate) enum Entry {
    Other(Copied),
    Report(Reported),
}

/// A report, and the id of its trade.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reported {
    pub(crate) number: ReportNumber,
    pub(crate) report: ExecutionReport,
    pub(crate) trade: Option<i64>,
    pub(crate) time_us: i64,
}

/// Starts the thread; it ends with the exchange.
///
/// # Errors
/// The system gives no thread.
pub(crate) fn follow(
    state: Arc<State>,
    link: GatewayLink,
    runtime: &tokio::runtime::Runtime,
) -> io::Result<()> {
    let handle = runtime.handle().clone();
    let run = move || Follower::new(state).run(&link.copy, &handle);
    let named = thread::Builder::new().name("gateway-copy".into());
    named.spawn(run).map(drop)
}

struct Follower {
    state: Arc<State>,
    ids: TradeIds,
}

impl Follower {
    fn new(state: Arc<State>) -> Self {
        let ids = TradeIds::default();
        Self { state, ids }
    }

    fn run(mut self, copy: &DropCopy, runtime: &Handle) {
        let mut entries = Vec::new();
        while runtime.block_on(copy.next(&mut entries)) {
            let time_us = now_us();
            for entry in entries.drain(..) {
                self.apply(entry, time_us);
            }
        }
    }

    fn apply(&mut self, entry: Copied, time_us: i64) {
        let market = &self.state.market;
        match entry {
            Copied::Restart => market.restart(),
            Copied::Symbol(symbol) => self.state.symbols.add(symbol.0, symbol.1),
            Copied::Book(book) => market.book(&book),
            Copied::Message(message) => market.message(&message),
            Copied::Admin(command) => {
                self.state.symbols.apply(&command);
                market.admin(&command);
            }
            Copied::Report(_, report) => {
                if let Some((trade, true)) = self.ids.of(&report, time_us) {
                    market.trade(&trade);
                }
            }
            Copied::End(number) => market.end(number, time_us),
            _ => {}
        }
    }
}

/// The ids of trades: a count for each symbol.
#[derive(Debug, Default)]
pub(crate) struct TradeIds {
    last: HashMap<SymbolId, i64>,
    /// The trade whose other report comes next.
    open: Option<(TradeId, Trade)>,
}

impl TradeIds {
    /// Returns the trade of a report, and whether it is the first report of it.
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
        if let Some((_, trade)) = self.open.take_if(|(open, _)| *open == id) {
            return Some((trade, false));
        }
        let last = self.last.entry(report.symbol).or_default();
        *last += 1;
        let side = report.side?;
        let trade = Trade {
            id: *last,
            command: id.command,
            symbol: report.symbol,
            price,
            lots: size,
            taker_side: if is_maker { side.opposite() } else { side },
            time_us,
        };
        self.open = Some((id, trade));
        Some((trade, true))
    }
}
