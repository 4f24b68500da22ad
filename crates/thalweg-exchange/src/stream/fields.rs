//! One comma-separated line, field by field.

use std::num::IntErrorKind;
use std::str::Split;

use super::error::StreamError;
use crate::command::{SymbolSpec, SymbolType};
use crate::ids::{CurrencyId, SymbolId};

/// The fields of a line, taken from left to right.
pub(super) struct Fields<'a> {
    line: u64,
    number: usize,
    fields: Split<'a, char>,
}

impl<'a> Fields<'a> {
    pub(super) fn new(line: u64, text: &'a str) -> Self {
        Self {
            line,
            number: 0,
            fields: text.split(','),
        }
    }

    /// Returns the next field, if there is one.
    pub(super) fn optional(&mut self) -> Option<&'a str> {
        let field = self.fields.next()?;
        self.number += 1;
        Some(field)
    }

    pub(super) fn text(&mut self, name: &'static str) -> Result<&'a str, StreamError> {
        let number = self.number + 1;
        self.optional()
            .ok_or_else(|| self.error(format!("field {number} ({name}) is missing")))
    }

    /// Returns the next field as a number between `min` and `max`.
    pub(super) fn within(
        &mut self,
        name: &'static str,
        (min, max): (i64, i64),
    ) -> Result<i64, StreamError> {
        let text = self.text(name)?;
        self.parse(name, text, (min, max))
    }

    /// Returns any 64-bit number.
    pub(super) fn i64(&mut self, name: &'static str) -> Result<i64, StreamError> {
        self.within(name, (i64::MIN, i64::MAX))
    }

    /// Returns any 32-bit number.
    pub(super) fn i32(&mut self, name: &'static str) -> Result<i32, StreamError> {
        let value = self.within(name, (i32::MIN.into(), i32::MAX.into()))?;
        Ok(i32::try_from(value).expect("it is within its limits"))
    }

    /// Reads `text`, which is the current field or a part of it.
    pub(super) fn parse(
        &self,
        name: &'static str,
        text: &str,
        (min, max): (i64, i64),
    ) -> Result<i64, StreamError> {
        let wrong = |what: String| self.error(format!("field {} ({name}) is {what}", self.number));
        let out_of_range = || wrong(format!("{text}, outside its limits {min} to {max}"));
        let parsed = if text.starts_with('+') {
            "+".parse::<i64>()
        } else {
            text.parse()
        };
        match parsed {
            Ok(value) if (min..=max).contains(&value) => Ok(value),
            Ok(_) => Err(out_of_range()),
            Err(error) => Err(match error.kind() {
                IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => out_of_range(),
                _ => wrong(format!("'{text}', not a whole number")),
            }),
        }
    }

    /// Returns the next field as one of `words`.
    pub(super) fn word<T: Copy>(
        &mut self,
        name: &'static str,
        words: &[(&str, T)],
        allowed: &'static str,
    ) -> Result<T, StreamError> {
        let text = self.text(name)?;
        let found = words.iter().find(|(word, _)| *word == text);
        let found = found.map(|&(_, value)| value);
        found.ok_or_else(|| self.unknown_word(name, text, allowed))
    }

    /// Returns the symbol whose fields follow: its scales are between `scale`, its fees between
    /// `fee`.
    pub(super) fn symbol(
        mut self,
        scale: (i64, i64),
        fee: (i64, i64),
    ) -> Result<SymbolSpec, StreamError> {
        let id = SymbolId(self.i32("symbol")?);
        let type_code = self.within("type", (0, 2))?;
        let spec = SymbolSpec {
            id,
            symbol_type: SymbolType::ALL[usize::try_from(type_code).expect("0 to 2")],
            base_currency: CurrencyId(self.i32("base currency")?),
            quote_currency: CurrencyId(self.i32("quote currency")?),
            base_scale: self.within("base scale", scale)?,
            quote_scale: self.within("quote scale", scale)?,
            taker_fee: self.within("taker fee", fee)?,
            maker_fee: self.within("maker fee", fee)?,
            margin_buy: self.within("margin buy", fee)?,
            margin_sell: self.within("margin sell", fee)?,
            ..SymbolSpec::default()
        };
        self.end()?;
        Ok(spec)
    }

    /// There must be no further field.
    pub(super) fn end(mut self) -> Result<(), StreamError> {
        let limit = self.number;
        match self.optional() {
            None => Ok(()),
            Some(_) => Err(self.error(format!(
                "more fields than the {limit} that this kind of line has"
            ))),
        }
    }

    /// Returns the error of the current field, which is none of the allowed words.
    pub(super) fn unknown_word(&self, name: &str, text: &str, allowed: &str) -> StreamError {
        let text: String = text.chars().take(20).collect();
        let number = self.number;
        self.error(format!(
            "field {number} ({name}) is '{text}', not one of {allowed}"
        ))
    }

    /// Returns the error of a line that begins with nothing that is known.
    pub(super) fn unknown_kind(&self, kind: &str) -> StreamError {
        let kind: String = kind.chars().take(20).collect();
        self.error(format!("unknown kind of line '{kind}'"))
    }

    pub(super) fn error(&self, what: String) -> StreamError {
        StreamError::content(self.line, what)
    }
}
