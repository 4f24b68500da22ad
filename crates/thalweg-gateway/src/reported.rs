//! Reports with the ids of their trades.

use thalweg_exchange::execution::ExecutionReport;
use thalweg_exchange::session::ReportNumber;

/// A report, and the id of its trade.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Reported {
    pub(crate) number: ReportNumber,
    pub(crate) report: ExecutionReport,
    pub(crate) trade: Option<i64>,
    pub(crate) time_us: i64,
    /// It is of an auction: both sides pay the taker's fee.
    pub(crate) is_auction: bool,
}
