//! Counts of results and trades.

use crate::report::facts::Trades;
use std::collections::BTreeMap;
use thalweg_exchange::{Event, ResultCode};

/// The results of the commands so far.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// The number of successes, counted without a look-up, as most commands succeed.
    successes: u64,
    others: BTreeMap<ResultCode, u64>,
    trades: Trades,
}

impl Tally {
    /// Counts one command.
    pub(crate) fn count(&mut self, result: ResultCode, events: &[Event]) {
        match result {
            ResultCode::Success => self.successes += 1,
            other => *self.others.entry(other).or_default() += 1,
        }
        self.count_trades(events);
    }

    /// Counts the trades of a command.
    pub(crate) fn count_trades(&mut self, events: &[Event]) {
        for event in events {
            if let Event::Trade { size, .. } = *event {
                self.trades.count += 1;
                self.trades.volume_lots =
                    self.trades.volume_lots.saturating_add(size.unsigned_abs());
            }
        }
    }

    /// Returns the counts of all results, and the trades.
    pub(crate) fn finish(mut self) -> (BTreeMap<ResultCode, u64>, Trades) {
        if self.successes > 0 {
            self.others.insert(ResultCode::Success, self.successes);
        }
        (self.others, self.trades)
    }
}
