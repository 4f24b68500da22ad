//! Whole numbers, as one types them.

use std::fmt;

/// Parses a whole number: `250`, `2_000`, `125k`, `2.5M`, `1e6` or `0x10`.
///
/// `k` stands for a thousand and `M` for a million; a decimal point is fine where the number is
/// whole in the end.
///
/// ```
/// use thalweg_measure::load::{NumberError, whole_number};
/// assert_eq!(whole_number("2.5M"), Ok(2_500_000));
/// assert_eq!(whole_number("0x10"), Ok(16));
/// assert_eq!(whole_number("1.0001k"), Err(NumberError::NotWhole));
/// ```
///
/// # Errors
/// [`NumberError`] says what else the text is.
pub fn whole_number(text: &str) -> Result<u64, NumberError> {
    if let Some(positive) = text.strip_prefix('-') {
        return match whole_number(positive) {
            Err(NumberError::NotANumber | NumberError::Negative) => Err(NumberError::NotANumber),
            _ => Err(NumberError::Negative),
        };
    }
    let text = text.replace('_', "");
    if let Some(digits) = text.strip_prefix("0x").or(text.strip_prefix("0X")) {
        return match !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_hexdigit()) {
            true => u64::from_str_radix(digits, 16).map_err(|_| NumberError::TooLarge),
            false => Err(NumberError::NotANumber),
        };
    }
    let (number, zeros) = match (text.split_once(['e', 'E']), text.as_bytes().last()) {
        (Some((number, exponent)), _) => match exponent.parse::<u8>() {
            Ok(zeros) if !exponent.starts_with('+') => (number, usize::from(zeros)),
            _ => return Err(NumberError::NotANumber),
        },
        (None, Some(b'k' | b'K')) => (&text[..text.len() - 1], 3),
        (None, Some(b'M')) => (&text[..text.len() - 1], 6),
        _ => (&text[..], 0),
    };
    let (whole, part) = number.split_once('.').unwrap_or((number, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if !digits(whole) || !digits(part) {
        return Err(NumberError::NotANumber);
    }
    let part = part.trim_end_matches('0');
    if part.len() > zeros {
        return Err(NumberError::NotWhole);
    }
    let shifted = format!("{whole}{part:0<zeros$}");
    shifted.parse().map_err(|_| NumberError::TooLarge)
}

/// The reason why a text is not a whole number of 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NumberError {
    /// It is no number, or has a suffix that is not known.
    NotANumber,
    /// It is below zero.
    Negative,
    /// It is a number with a fraction.
    NotWhole,
    /// It is above the largest number of 64 bits.
    TooLarge,
}

impl fmt::Display for NumberError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NumberError::NotANumber => {
                f.write_str("expected a whole number such as 250, 50k, 1.5M, 1e6 or 0x10")
            }
            NumberError::Negative => f.write_str("the number is below 0"),
            NumberError::NotWhole => f.write_str("the number is not whole"),
            NumberError::TooLarge => write!(f, "the number is above the largest, {}", u64::MAX),
        }
    }
}

impl std::error::Error for NumberError {}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_as_people_type_them() {
        for (text, value) in [
            ("0", 0),
            ("250", 250),
            ("2_000", 2_000),
            ("50k", 50_000),
            ("1.5M", 1_500_000),
            ("1.50000000M", 1_500_000),
            ("1e6", 1_000_000),
            ("2.5E3", 2_500),
            ("0e255", 0),
            ("0x10", 16),
            ("0Xff_ff", 65_535),
            ("18446744073709551615", u64::MAX),
            ("0xffffffffffffffff", u64::MAX),
        ] {
            assert_eq!(whole_number(text), Ok(value), "{text}");
        }
    }

    #[test]
    fn anything_else_is_refused_with_its_reason() {
        for text in [
            "",
            "k",
            "-",
            "--1",
            "+1",
            " 1",
            "1.",
            ".5k",
            "1.2.3",
            "1m",
            "1G",
            "1e",
            "1e+6",
            "1e-3",
            "1e6k",
            "1e256",
            "e6",
            "0x",
            "0xg",
            "x10",
            "٣",
            "NaN",
            "1k\u{301}",
        ] {
            assert_eq!(whole_number(text), Err(NumberError::NotANumber), "{text}");
        }
        for text in ["-1", "-5k", "-0x1", "-0.5"] {
            assert_eq!(whole_number(text), Err(NumberError::Negative), "{text}");
        }
        for text in ["0.5", "1.0001k", "1.5e0"] {
            assert_eq!(whole_number(text), Err(NumberError::NotWhole), "{text}");
        }
        for text in [
            "18446744073709551616",
            "1e20",
            "0x10000000000000000",
            "1e255",
        ] {
            assert_eq!(whole_number(text), Err(NumberError::TooLarge), "{text}");
        }
        let texts = [
            (
                NumberError::NotANumber,
                "expected a whole number such as 250, 50k, 1.5M, 1e6 or 0x10",
            ),
            (NumberError::Negative, "the number is below 0"),
            (NumberError::NotWhole, "the number is not whole"),
            (
                NumberError::TooLarge,
                "the number is above the largest, 18446744073709551615",
            ),
        ];
        for (error, text) in texts {
            assert_eq!(error.to_string(), text);
        }
    }

    proptest! {
        #[test]
        fn plain_and_hexadecimal_digits_read_back(value: u64) {
            prop_assert_eq!(whole_number(&value.to_string()), Ok(value));
            prop_assert_eq!(whole_number(&format!("{value:#x}")), Ok(value));
        }

        #[test]
        fn no_text_panics(text in "\\PC{0,12}|[-0-9.kMex_]{0,45}") {
            let _ = whole_number(&text);
        }
    }
}
