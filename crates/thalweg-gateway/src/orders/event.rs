//! Events of user data streams.

use serde_json::{Value, json};

use crate::rest::TimeUnit;

/// An event of a user data stream.
#[derive(Clone, Debug)]
pub(crate) enum UserEvent {
    /// A deposit or a withdrawal.
    Balance {
        asset: String,
        delta: String,
        time_us: i64,
    },
}

impl UserEvent {
    /// Returns the event as clients get it.
    pub(crate) fn to_json(&self, unit: TimeUnit) -> Value {
        match self {
            Self::Balance {
                asset,
                delta,
                time_us,
            } => json!({
                "e": "balanceUpdate",
                "E": unit.of(*time_us),
                "a": asset,
                "d": delta,
                "T": unit.of(*time_us),
            }),
        }
    }
}
