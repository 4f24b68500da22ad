//! The risk check of what an order asks for beyond price, size and type.
//!
//! Terms that make no sense are refused before anything else is looked at: they depend on the
//! command alone.

use crate::command::{OrderType, Place};
use crate::result_code::ResultCode;

/// Refuses flags that do not fit the type of a new order.
#[cold]
pub(super) fn check_flags(place: &Place) -> Result<(), ResultCode> {
    if place.flags.is_post_only() && place.order_type != OrderType::Gtc {
        return Err(ResultCode::RiskPostOnlyOrderType);
    }
    Ok(())
}
