//! A recorded state of a book: the best levels of both sides.

use super::fields::Fields;

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
pub(super) fn level(fields: &mut Fields<'_>) -> Result<PriceSize, String> {
    Ok((fields.number("price", 1)?, fields.number("volume", 1)?))
}
