//! Now, in microseconds since 1970, and times in milliseconds or microseconds.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::error::ApiError;

/// The unit of times in responses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum TimeUnit {
    #[default]
    Milliseconds,
    Microseconds,
}

impl TimeUnit {
    /// Returns the unit of a name.
    ///
    /// # Errors
    /// -1194.
    pub(crate) fn named(name: &str) -> Result<Self, ApiError> {
        match name {
            "MILLISECOND" | "millisecond" => Ok(Self::Milliseconds),
            "MICROSECOND" | "microsecond" => Ok(Self::Microseconds),
            _ => Err(ApiError::TIME_UNIT),
        }
    }

    /// Returns a time in microseconds since 1970 in this unit.
    pub(crate) const fn of(self, us: i64) -> i64 {
        match self {
            Self::Milliseconds => us.div_euclid(1_000),
            Self::Microseconds => us,
        }
    }

    /// Returns a time in milliseconds since 1970 in this unit.
    pub(crate) const fn of_ms(self, ms: i64) -> i64 {
        match self {
            Self::Milliseconds => ms,
            Self::Microseconds => ms * 1_000,
        }
    }
}

/// Returns the time in microseconds since 1970.
pub(crate) fn now_us() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_micros() as i64)
}
