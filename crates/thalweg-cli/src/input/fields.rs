//! Comma-separated whole numbers, with errors that name the field, the text and the limit.

use crate::input::error::excerpt;

/// The fields of one line, from left to right.
pub(crate) struct Fields<'a> {
    rest: Option<&'a [u8]>,
}

impl<'a> Fields<'a> {
    /// Splits `line` into fields, which are separated by commas and never quoted.
    pub(crate) fn new(line: &'a [u8]) -> Fields<'a> {
        Fields { rest: Some(line) }
    }

    /// Returns the next field unchanged.
    pub(crate) fn text(&mut self, name: &str) -> Result<&'a [u8], String> {
        let rest = self
            .rest
            .ok_or_else(|| format!("the field {name} is missing"))?;
        let (field, after) = match rest.iter().position(|&b| b == b',') {
            Some(comma) => (&rest[..comma], Some(&rest[comma + 1..])),
            None => (rest, None),
        };
        self.rest = after;
        Ok(field.trim_ascii())
    }

    /// Parses the next field as a whole number of at least `min`.
    pub(crate) fn number(&mut self, name: &str, min: i64) -> Result<i64, String> {
        number(self.text(name)?, name, min)
    }

    /// Returns whether there is another field.
    pub(crate) fn more(&self) -> bool {
        self.rest.is_some()
    }

    /// Checks that no field is left.
    pub(crate) fn end(self) -> Result<(), String> {
        match self.rest {
            None => Ok(()),
            Some(rest) => Err(format!("{} is one field too many", excerpt(rest))),
        }
    }
}

/// Parses a whole number of at least `min`, in the range of a signed 64-bit integer.
pub(crate) fn number(field: &[u8], name: &str, min: i64) -> Result<i64, String> {
    let shown = || excerpt(field);
    let digits = field.strip_prefix(b"-").unwrap_or(field);
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(format!("{name} {} is not a whole number", shown()));
    }
    let text = std::str::from_utf8(field).map_err(|_| format!("{name} is not a number"))?;
    match text.parse::<i64>() {
        Err(_) if field.starts_with(b"-") => Err(format!(
            "{name} {} is below the smallest value {min}",
            shown()
        )),
        Err(_) => Err(format!(
            "{name} {} is above the largest value {}",
            shown(),
            i64::MAX
        )),
        Ok(value) if value < min => {
            Err(format!("{name} {value} is below the smallest value {min}"))
        }
        Ok(value) => Ok(value),
    }
}

/// A price and the size that rests at it.
pub(crate) type PriceSize = (i64, i64);

/// The recorded levels of both sides, each with the best level first. The sides may have different
/// lengths.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) bids: Vec<PriceSize>,
    pub(crate) asks: Vec<PriceSize>,
}

/// Parses the next two fields as a level.
pub(crate) fn level(fields: &mut Fields<'_>) -> Result<PriceSize, String> {
    Ok((fields.number("price", 1)?, fields.number("volume", 1)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_limits() {
        let parse = |s: &str| number(s.as_bytes(), "size", 1);
        assert_eq!(parse("9223372036854775807"), Ok(i64::MAX));
        let wrong = |s: &str| parse(s).unwrap_err();
        assert_eq!(wrong("12a"), "size `12a` is not a whole number");
        assert_eq!(wrong(""), "size `` is not a whole number");
        assert_eq!(wrong("-"), "size `-` is not a whole number");
        assert_eq!(wrong("+1"), "size `+1` is not a whole number");
        assert_eq!(wrong("-5"), "size -5 is below the smallest value 1");
        assert_eq!(
            wrong("9223372036854775808"),
            "size `9223372036854775808` is above the largest value 9223372036854775807"
        );
        assert_eq!(
            wrong("-9223372036854775809"),
            "size `-9223372036854775809` is below the smallest value 1"
        );
    }

    #[test]
    fn fields_come_left_to_right() {
        let mut fields = Fields::new(b"a, 7,");
        assert_eq!(fields.text("kind"), Ok(&b"a"[..]));
        assert_eq!(fields.number("id", 0), Ok(7));
        assert!(fields.more());
        assert_eq!(fields.text("side"), Ok(&b""[..]));
        assert_eq!(
            fields.number("price", 0).unwrap_err(),
            "the field price is missing"
        );
        assert!(!fields.more());
        let mut fields = Fields::new(b"a,b,c");
        fields.text("kind").unwrap();
        assert_eq!(fields.end().unwrap_err(), "`b,c` is one field too many");
    }
}
