//! Integers as decimals.

use crate::decimal::Decimal;
use crate::symbols::Symbol;

/// How integers of one kind are written: as multiples of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unit {
    /// The worth of 1, in the last decimal.
    pub(crate) factor: i64,
    /// The number of decimals.
    pub(crate) decimals: u8,
}

impl Unit {
    /// Returns the decimal of a value: exact, with all decimals.
    pub(crate) fn text(self, value: impl Into<i128>) -> Decimal {
        Decimal {
            scaled: value.into().saturating_mul(self.factor.into()),
            decimals: self.decimals,
        }
    }
}

/// How the numbers of a symbol are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Units {
    /// Prices.
    pub(crate) price: Unit,
    /// Lots.
    pub(crate) size: Unit,
    /// Price × lots.
    pub(crate) quote: Unit,
}

impl From<&Symbol> for Units {
    fn from(symbol: &Symbol) -> Self {
        let unit = |factor, decimals: u32| Unit {
            factor,
            decimals: decimals as u8,
        };
        Self {
            price: unit(symbol.price_unit, symbol.price_decimals),
            size: unit(symbol.spec.base_scale, symbol.base.decimals),
            quote: unit(symbol.spec.quote_scale, symbol.quote.decimals),
        }
    }
}

impl Units {
    /// Returns a quotient of price × lots and lots: a price, whose further decimals are cut off.
    pub(crate) fn average(&self, quote_volume: i128, volume: i128) -> Decimal {
        let scaled = match volume {
            0 => 0,
            _ => quote_volume.saturating_mul(self.price.factor.into()) / volume,
        };
        Decimal {
            scaled,
            decimals: self.price.decimals,
        }
    }
}

/// Returns a change in percent of a price, with three decimals; further ones are cut off.
pub(crate) fn percent(change: i128, of: i64) -> Decimal {
    let scaled = match of {
        0 => 0,
        _ => change.saturating_mul(100_000) / i128::from(of),
    };
    Decimal {
        scaled,
        decimals: 3,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_written_with_all_their_digits() {
        let text = |factor, decimals, value: i64| Unit { factor, decimals }.text(value).to_string();
        assert_eq!(text(1, 2, 12_345), "123.45");
        assert_eq!(text(5, 2, 1), "0.05");
        assert_eq!(text(1, 8, -1), "-0.00000001");
        assert_eq!(text(1, 0, -7), "-7");
        assert_eq!(text(10, 3, 100), "1.000");
        assert_eq!(text(1, 18, i64::MIN), "-9.223372036854775808");
    }

    #[test]
    fn quotients_lose_what_they_have_no_decimals_for() {
        let unit = Unit {
            factor: 1,
            decimals: 2,
        };
        let units = Units {
            price: unit,
            size: unit,
            quote: unit,
        };
        assert_eq!(units.average(200, 3).to_string(), "0.66");
        assert_eq!(units.average(200, 0).to_string(), "0.00");
        assert_eq!(percent(-1, 3).to_string(), "-33.333");
        assert_eq!(percent(5, 0).to_string(), "0.000");
    }
}
