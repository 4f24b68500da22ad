//! How many events a second, as one types it.

use super::number::{NumberError, whole_number};
use std::fmt;
use std::str::FromStr;

/// The highest rate with a schedule: one event a nanosecond.
pub const PER_S_MAX: u64 = 1_000_000_000;

/// A rate of load: a whole number of events a second, or as fast as it goes.
///
/// Written as `250`, `125k`, `2.5M`, `1e6`, `0x10` or `max`.
///
/// ```
/// use thalweg_measure::load::Rate;
/// assert_eq!("2.5M".parse::<Rate>()?.per_s(), Some(2_500_000));
/// assert_eq!("max".parse::<Rate>()?, Rate::MAX);
/// # Ok::<(), thalweg_measure::load::RateError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rate {
    /// None: no schedule.
    per_s: Option<u64>,
}

impl Rate {
    /// The rate without a schedule: as fast as it goes.
    pub const MAX: Rate = Rate { per_s: None };

    /// Returns a rate in events a second.
    ///
    /// # Errors
    /// It is outside 1..=[`PER_S_MAX`].
    pub fn per_second(per_s: u64) -> Result<Rate, RateError> {
        Rate::checked(Ok(per_s), &per_s.to_string())
    }

    fn checked(number: Result<u64, NumberError>, text: &str) -> Result<Rate, RateError> {
        let error = match number {
            Ok(0) => NumberError::Negative,
            Ok(per_s @ 1..=PER_S_MAX) => return Ok(Rate { per_s: Some(per_s) }),
            Ok(_) => NumberError::TooLarge,
            Err(error) => error,
        };
        Err(RateError::new(error, text))
    }

    /// Returns the number of events a second; `None` for [`Rate::MAX`].
    #[must_use]
    pub fn per_s(self) -> Option<u64> {
        self.per_s
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(per_s) = self.per_s else {
            return f.write_str("max");
        };
        let (unit, digits, suffix) = match per_s {
            1_000_000.. => (1_000_000, 6, "M"),
            1_000.. => (1_000, 3, "k"),
            _ => return write!(f, "{per_s}"),
        };
        let whole = per_s / unit;
        let part = format!("{:0digits$}", per_s % unit);
        match part.trim_end_matches('0') {
            "" => write!(f, "{whole}{suffix}"),
            part => write!(f, "{whole}.{part}{suffix}"),
        }
    }
}

impl FromStr for Rate {
    type Err = RateError;

    /// Parses a [`whole_number`], or `max`.
    fn from_str(text: &str) -> Result<Rate, RateError> {
        match text {
            "max" => Ok(Rate::MAX),
            text => Rate::checked(whole_number(text), text),
        }
    }
}

/// The reason why a text is not a [`Rate`]. Its text names the value and what would be allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RateError(String);

impl RateError {
    fn new(error: NumberError, text: &str) -> RateError {
        RateError(match error {
            NumberError::Negative => {
                format!("rate '{text}' is too low: the least is 1 event a second")
            }
            NumberError::TooLarge => format!(
                "rate '{text}' is too high: the limit is 1000M ({PER_S_MAX}) events a second; \
                 'max' goes as fast as it can"
            ),
            NumberError::NotWhole => {
                format!("rate '{text}' is not a whole number of events a second")
            }
            NumberError::NotANumber => format!(
                "'{text}' is not a rate: expected events a second such as 250, 125k, 2.5M, or max"
            ),
        })
    }
}

impl fmt::Display for RateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for RateError {}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn per_s(text: &str) -> Option<u64> {
        text.parse::<Rate>()
            .unwrap_or_else(|error| panic!("{error}"))
            .per_s()
    }

    #[test]
    fn rates_as_people_type_them() {
        assert_eq!(per_s("125k"), Some(125_000));
        assert_eq!(per_s("125K"), Some(125_000));
        assert_eq!(per_s("1M"), Some(1_000_000));
        assert_eq!(per_s("2.5M"), Some(2_500_000));
        assert_eq!(per_s("0.000001M"), Some(1));
        assert_eq!(per_s("250"), Some(250));
        assert_eq!(per_s("250.0"), Some(250));
        assert_eq!(per_s("1000M"), Some(PER_S_MAX));
        assert_eq!(per_s("1e6"), Some(1_000_000));
        assert_eq!(per_s("0x10"), Some(16));
        assert_eq!(per_s("max"), None);
    }

    #[test]
    fn what_is_not_a_rate_is_refused_with_its_reason() {
        let error = |text: &str| text.parse::<Rate>().expect_err(text).to_string();
        let least = "is too low: the least is 1 event a second";
        assert_eq!(error("0"), format!("rate '0' {least}"));
        assert_eq!(error("0.0M"), format!("rate '0.0M' {least}"));
        assert_eq!(error("-5k"), format!("rate '-5k' {least}"));
        let high = "is too high: the limit is 1000M (1000000000) events a second; \
                    'max' goes as fast as it can";
        for text in [
            "1000000001",
            "1000.000001M",
            "99999999999999999999999999999999999999999M",
        ] {
            assert_eq!(error(text), format!("rate '{text}' {high}"));
        }
        for text in ["0.5", "1.0001k"] {
            assert_eq!(
                error(text),
                format!("rate '{text}' is not a whole number of events a second")
            );
        }
        for text in [
            "", "k", "fast", "1G", "1m", "1e6k", "+1", " 1", "1.", ".5k", "1.2.3", "--1",
        ] {
            assert_eq!(
                error(text),
                format!(
                    "'{text}' is not a rate: expected events a second such as 250, 125k, 2.5M, \
                     or max"
                )
            );
        }
        for text in ["٣", "1k\u{301}", "µ", "NaN", "inf", "-"] {
            assert!(error(text).contains("is not a rate"), "{text}");
        }
        assert_eq!(Rate::per_second(0), "0".parse());
        assert!(Rate::per_second(PER_S_MAX + 1).is_err());
    }

    proptest! {
        #[test]
        fn display_reads_back(per_s in 1..=PER_S_MAX) {
            let rate = Rate::per_second(per_s).expect("within the range");
            prop_assert_eq!(rate.to_string().parse::<Rate>(), Ok(rate));
        }

        #[test]
        fn no_text_panics(text in "\\PC{0,12}|[-0-9.kM]{0,45}") {
            let _ = text.parse::<Rate>();
        }
    }

    #[test]
    fn display_is_short() {
        for text in [
            "1", "999", "1k", "1.5k", "125k", "1M", "2.5M", "1000M", "max",
        ] {
            assert_eq!(
                text.parse::<Rate>().map(|rate| rate.to_string()),
                Ok(text.to_owned())
            );
        }
    }
}
