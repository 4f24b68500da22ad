//! Formats names, counts, rates and reasons for messages.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::io;
use thalweg_measure::table;

/// Returns the text of an error, without the number that the system has for it.
pub(crate) fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    match text.split_once(" (os error ") {
        Some((text, _)) => text.to_owned(),
        None => text,
    }
}

/// Returns a count with its noun, singular or plural: `1 file`, `2 files`.
pub(crate) fn counted(count: u64, what: &str) -> String {
    format!("{count} {what}{}", plural(count))
}

/// Returns the ending of the noun that follows this count.
pub(crate) fn plural(count: u64) -> &'static str {
    if count == 1 { "" } else { "s" }
}

/// Returns a file name for messages: control characters, and bytes that are not UTF-8, are written
/// as `\xNN`.
pub(crate) fn shown(name: &OsStr) -> String {
    let mut text = String::new();
    let escape = |text: &mut String, byte: u8| {
        let _ = write!(text, "\\x{byte:02x}");
    };
    for piece in name.as_encoded_bytes().utf8_chunks() {
        for c in piece.valid().chars() {
            match u8::try_from(c) {
                Ok(byte) if c.is_control() => escape(&mut text, byte),
                _ => text.push(c),
            }
        }
        piece
            .invalid()
            .iter()
            .for_each(|byte| escape(&mut text, *byte));
    }
    text
}

/// Formats a whole number with a comma between groups of three digits.
pub(crate) fn grouped(n: impl Into<i128>) -> String {
    let n = n.into();
    let sign = if n < 0 { "-" } else { "" };
    sign.to_owned() + &table::grouped(&n.unsigned_abs().to_string())
}

/// Formats a rate with three significant digits, such as `1.25 M/s`.
pub(crate) fn rate(per_s: f64) -> String {
    match per_s {
        r if r >= 999_500.0 => format!("{:.2} M/s", r / 1e6),
        r if r >= 999.5 => format!("{:.1} k/s", r / 1e3),
        r => format!("{r:.1} /s"),
    }
}

/// Formats a share as a percentage. It is rounded, but to 0 or 100 only where it is exactly that.
pub(crate) fn percent(part: f64) -> String {
    let rounded = (part * 10_000.0).round() / 100.0;
    let percent = match part {
        0.0 | 1.0.. => rounded,
        _ => rounded.clamp(0.01, 99.99),
    };
    format!("{percent:.2} %")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_come_in_threes() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1_000), "1,000");
        assert_eq!(grouped(-1_234_567), "-1,234,567");
        assert_eq!(grouped(i64::MIN), "-9,223,372,036,854,775,808");
    }

    #[test]
    fn rates_and_parts() {
        assert_eq!(rate(1_250_000.0), "1.25 M/s");
        assert_eq!(rate(125_000.0), "125.0 k/s");
        assert_eq!(rate(12.0), "12.0 /s");
        assert_eq!(percent(1.0), "100.00 %");
        assert_eq!(percent(0.99999), "99.99 %");
        assert_eq!(percent(57.0 / 100.0), "57.00 %");
        assert_eq!(percent(0.0), "0.00 %");
        assert_eq!(percent(1e-9), "0.01 %");
    }
}
