//! Decimal text and integers: exact, or an error. Nothing is ever rounded.
//!
//! A value with `decimals` decimals is an integer number of units of 10^−decimals.

use std::fmt;

/// The most decimals of a value.
pub const DECIMALS_MAX: u32 = 18;
/// The most digits before and behind the point that a text may have.
const DIGITS_MAX: usize = 20;

/// Why a text is no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecimalError {
    /// It is not `digits` or `digits.digits`, up to 20 each: no sign, no exponent, no space.
    #[error("not a decimal number")]
    Malformed,
    /// It has digits other than 0 beyond the decimals.
    #[error("too many decimals")]
    TooPrecise,
    /// It is greater than 64 bits can say.
    #[error("too large")]
    TooLarge,
}

/// Parses a text as a number of units of 10^−`decimals`. Zeros beyond the decimals change nothing
/// and are accepted.
///
/// # Errors
/// A [`DecimalError`].
///
/// ```
/// use thalweg_gateway::decimal::{DecimalError, parse};
/// assert_eq!(parse("0.0015", 4), Ok(15));
/// assert_eq!(parse("0.00150", 4), Ok(15));
/// assert_eq!(parse("0.00151", 4), Err(DecimalError::TooPrecise));
/// assert_eq!(parse("1e3", 4), Err(DecimalError::Malformed));
/// ```
pub fn parse(text: &str, decimals: u32) -> Result<i64, DecimalError> {
    let (whole, part) = match text.split_once('.') {
        Some((whole, part)) => (whole, Some(part)),
        None => (text, None),
    };
    let is_number = |digits: &str| {
        (1..=DIGITS_MAX).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit())
    };
    if !is_number(whole) || !part.is_none_or(is_number) {
        return Err(DecimalError::Malformed);
    }
    let part = part.unwrap_or("").trim_end_matches('0');
    if part.len() > decimals as usize {
        return Err(DecimalError::TooPrecise);
    }
    let zeros = decimals as usize - part.len();
    let digits = whole.bytes().chain(part.bytes());
    let digits = digits.chain(std::iter::repeat_n(b'0', zeros));
    let value = digits.into_iter().try_fold(0_i64, |value, digit| {
        value.checked_mul(10)?.checked_add(i64::from(digit - b'0'))
    });
    value.ok_or(DecimalError::TooLarge)
}

/// Returns a number of units of 10^−`decimals` as text, with all decimals.
///
/// ```
/// assert_eq!(thalweg_gateway::decimal::format(15, 4), "0.0015");
/// ```
#[must_use]
pub fn format(units: i128, decimals: u32) -> String {
    let decimals = decimals as u8;
    Decimal {
        scaled: units,
        decimals,
    }
    .to_string()
}

/// An integer with a decimal point in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Decimal {
    /// All digits.
    pub(crate) scaled: i128,
    /// How many of them are behind the point.
    pub(crate) decimals: u8,
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.scaled < 0 { "-" } else { "" };
        let scaled = self.scaled.unsigned_abs();
        if self.decimals == 0 {
            return write!(f, "{sign}{scaled}");
        }
        let one = 10_u128.pow(self.decimals.into());
        let width = usize::from(self.decimals);
        write!(f, "{sign}{}.{:0width$}", scaled / one, scaled % one)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_forms_are_malformed() {
        let long = "1".repeat(40);
        for text in [
            "",
            ".",
            "1.",
            ".5",
            "-1",
            "+1",
            "1e3",
            "1E-7",
            "NaN",
            "inf",
            "Infinity",
            " 1",
            "1 ",
            "1,5",
            "1.2.3",
            "0x10",
            "１",
            &long,
            "1.000000000000000000000",
        ] {
            assert_eq!(parse(text, 8), Err(DecimalError::Malformed), "{text}");
        }
    }

    #[test]
    fn values_are_exact_or_refused() {
        assert_eq!(parse("92233720368.54775807", 8), Ok(i64::MAX));
        assert_eq!(
            parse("92233720368.54775808", 8),
            Err(DecimalError::TooLarge)
        );
        assert_eq!(parse("0.000000001", 8), Err(DecimalError::TooPrecise));
        assert_eq!(parse("007.10", 1), Ok(71));
        assert_eq!(
            parse("99999999999999999999", 0),
            Err(DecimalError::TooLarge)
        );
    }

    #[test]
    fn texts_have_all_decimals() {
        assert_eq!(format(0, 8), "0.00000000");
        assert_eq!(format(-150, 2), "-1.50");
        assert_eq!(format(7, 0), "7");
        assert_eq!(format(i128::from(i64::MIN), 0), "-9223372036854775808");
    }
}
