//! Identifiers. Each is its own type, so that a user cannot be taken for an order.
//!
//! Any value of the underlying integer is a valid identifier, negative ones included.

use std::fmt;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
        pub struct $name(pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl From<$inner> for $name {
            fn from(value: $inner) -> Self {
                Self(value)
            }
        }
    };
}

id! {
    /// A user (an account holder): owns balances and orders.
    UserId(i64)
}
id! {
    /// A tradable symbol; one order book each.
    SymbolId(i32)
}
id! {
    /// A currency: what balances, fees and totals are counted in.
    CurrencyId(i32)
}
id! {
    /// An order, chosen by the client. Unique among its owner's orders of its symbol while it
    /// rests; under the reference's rules, within its symbol.
    OrderId(i64)
}
