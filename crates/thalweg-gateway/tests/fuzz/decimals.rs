//! Decimals, parsed and printed beside another library: `bigdecimal`.

use std::str::FromStr;

use bigdecimal::{BigDecimal, ToPrimitive};

use crate::decimal::{DECIMALS_MAX, DecimalError, format, parse};

/// Returns what a text says, by the documented form and another library's arithmetic.
fn reference(text: &str, decimals: u32) -> Result<i64, DecimalError> {
    let digits = text.chars().filter(char::is_ascii_digit).count();
    let points = text.chars().filter(|one| *one == '.').count();
    let is_form = points <= 1
        && digits + points == text.chars().count()
        && text.split('.').all(|part| (1..=20).contains(&part.len()));
    let value = BigDecimal::from_str(text).ok().filter(|_| is_form);
    let value = value.ok_or(DecimalError::Malformed)?;
    let units = value * BigDecimal::new(1.into(), -i64::from(decimals));
    if !units.is_integer() {
        return Err(DecimalError::TooPrecise);
    }
    units.to_i64().ok_or(DecimalError::TooLarge)
}

/// Checks an input: decimals, a number of units, and a text. The fault rounds what has too many
/// decimals.
pub(crate) fn check(bytes: &[u8], has_fault: bool) {
    let Some(([places, units @ ..], text)) = bytes.split_first_chunk::<9>() else {
        return;
    };
    let decimals = u32::from(*places) % (DECIMALS_MAX + 1);
    let text = String::from_utf8_lossy(text);
    let expected = reference(&text, decimals);
    let mut parsed = parse(&text, decimals);
    if has_fault && parsed == Err(DecimalError::TooPrecise) {
        let (whole, part) = text.split_once('.').expect("it has decimals");
        let cut = &part[..decimals as usize];
        let cut = if cut.is_empty() { "0" } else { cut };
        parsed = parse(&format!("{whole}.{cut}"), decimals);
    }
    assert_eq!(parsed, expected, "{text:?} with {decimals} decimals");

    let units = i64::from_le_bytes(*units);
    let printed = format(units.into(), decimals);
    let value = BigDecimal::from_str(&printed).expect("a number");
    assert_eq!(
        value,
        BigDecimal::new(units.into(), decimals.into()),
        "{printed}"
    );
    let (whole, part) = printed.split_once('.').unwrap_or((&printed, ""));
    assert_eq!(part.len(), decimals as usize, "{printed}");
    let whole = whole.strip_prefix('-').unwrap_or(whole);
    assert!(whole == "0" || !whole.starts_with('0'), "{printed}");
    match units {
        0.. => assert_eq!(parse(&printed, decimals), Ok(units)),
        _ => assert_eq!(parse(&printed, decimals), Err(DecimalError::Malformed)),
    }
}
