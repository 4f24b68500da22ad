//! The figures of a gateway in this process, for `/metrics`, and its lines in the audit log.

use std::fmt;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Instant;

pub use thalweg_measure::histogram::Histogram;

use crate::audit::{Audit, GatewayLine};
use crate::token_bucket::LogLimit;

/// The labels of a figure: names and values.
pub type RowLabels = Vec<(&'static str, String)>;

/// A figure of a gateway. Its name on the page has `thalweg_gateway_` before it.
#[derive(Clone, Debug)]
pub struct GatewayRow {
    /// The name.
    pub name: &'static str,
    /// A sentence that says what it is.
    pub help: &'static str,
    /// Its values.
    pub values: RowValues,
}

/// The values of a figure, by labels.
#[derive(Clone, Debug)]
pub enum RowValues {
    /// Counts since the start.
    Counters(Vec<(RowLabels, u64)>),
    /// Values that rise and fall.
    Gauges(Vec<(RowLabels, f64)>),
    /// Times in nanoseconds.
    Seconds(Vec<(RowLabels, Histogram)>),
}

/// Returns the figures; the argument is the number of commands that the exchange took.
type Provider = Box<dyn Fn(u64) -> Vec<GatewayRow> + Send + Sync>;

/// The figures, once a gateway has given them.
#[derive(Default)]
pub(crate) struct GatewayRows(OnceLock<Provider>);

impl fmt::Debug for GatewayRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GatewayRows").finish_non_exhaustive()
    }
}

impl GatewayRows {
    pub(crate) fn read(&self, commands: u64) -> Vec<GatewayRow> {
        let provider = self.0.get();
        provider.map_or_else(Vec::new, |provider| provider(commands))
    }
}

/// Where a gateway gives its figures and its audit lines.
#[derive(Clone, Debug)]
pub struct GatewayObserver {
    rows: Arc<GatewayRows>,
    /// Not counted: the audit log ends with the server, whatever becomes of the gateway.
    audit: Weak<Audit>,
    refused: Arc<LogLimit>,
}

impl GatewayObserver {
    pub(crate) fn new(rows: Arc<GatewayRows>, audit: &Arc<Audit>) -> Self {
        Self {
            rows,
            audit: Arc::downgrade(audit),
            refused: Arc::new(LogLimit::new(5, 50)),
        }
    }

    /// Has a function give the gateway's figures whenever `/metrics` is read; it gets the number of
    /// commands that the exchange took. Only the first one counts.
    pub fn figures(&self, rows: impl Fn(u64) -> Vec<GatewayRow> + Send + Sync + 'static) {
        let _ = self.rows.0.set(Box::new(rows));
    }

    /// Writes a line to the audit log.
    pub fn audit(&self, line: GatewayLine) {
        if let Some(audit) = self.audit.upgrade() {
            audit.write_gateway(line);
        }
    }

    /// Writes a line that strangers may cause: five a second, 50 at once. The next line says how
    /// many were left out.
    pub fn audit_refused(&self, mut line: GatewayLine) {
        if let Some(left_out) = self.refused.pass(Instant::now()) {
            if left_out > 0 {
                line.result
                    .push_str(&format!(" ({left_out} lines left out before)"));
            }
            self.audit(line);
        }
    }
}
