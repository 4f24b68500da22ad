//! The structs of a state's bytes, in the order in which they come.

use zerocopy::little_endian::{I32, I64, I128, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::command::{FeeUnit, SymbolSpec, SymbolType, UserLimits};
use crate::ids::{CurrencyId, SymbolId};
use crate::wire::wire;

/// Declares structs whose fields are little-endian integers, and other such structs.
macro_rules! forms {
    ($(
        $(#[$meta:meta])*
        struct $name:ident { $($(#[$doc:meta])* $field:ident: $type:ty),* $(,)? }
    )*) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, Debug)]
        #[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
        #[repr(C)]
        pub(super) struct $name {
            $($(#[$doc])* pub(super) $field: $type,)*
        }
    )*};
}

wire! {
    pub(super) struct LimitsForm = UserLimits { open_orders: u32, order_size: i64, ids_once: bool }
    pub(super) struct SpecForm = SymbolSpec {
        id: SymbolId, symbol_type: SymbolType, fee_unit: FeeUnit,
        base_currency: CurrencyId, quote_currency: CurrencyId, base_scale: i64, quote_scale: i64,
        taker_fee: i64, maker_fee: i64, margin_buy: i64, margin_sell: i64,
    }
}

forms! {
    /// Says what bytes these are.
    struct MarkForm { magic: [u8; 4], version: U32 }
    /// The rules, a bit each; the clock, 0 where there is none; the default limits.
    struct HeadForm { rules: U32, has_clock: u8, clock: I64, limits: LimitsForm }
    struct CurrencyForm {
        id: I32,
        /// Whether a payment of profit looks for users who are short of cover.
        must_check_cover: u8,
        /// Fees, adjustments and suspended money.
        totals: [I64; 3],
        room: I64,
    }
    struct SymbolForm {
        spec: SpecForm, bits: u8, low: I64, high: I64, protection: I64, traded_at: I64,
        /// The memory of orders.
        size_max: I64, lots_total: I128, price_max: U64,
    }
    /// A user; limits and used ids follow, where the bits say so, and then the money.
    struct UserForm { uid: I64, status: u8, bits: u8, last_transaction_id: I64 }
    struct IdsForm { highest: I64, used: [U64; 16] }
    /// A position: lots that are open, what was paid for them, profit.
    struct PositionForm { symbol: I32, direction: i8, amounts: [I64; 3] }
    /// An order in its level. Hidden lots, and when it expires, follow where the bits say so.
    struct OrderForm {
        uid: I64, order_id: I64, reserve_price: I64, left: I64, filled: I64, flags: u8, bits: u8,
    }
    struct HiddenForm { hidden: I64, display: I64 }
    /// When an order expires, and its turn among those that do so at the same time.
    struct ExpiryForm { good_till: I64, turn: U32 }
    /// A stop order. Its display, and when it expires, follow where the bits say so.
    struct StopForm {
        uid: I64, order_id: I64, trigger: I64, price: I64, reserve_price: I64, size: I64,
        order_type: u8, flags: u8, bits: u8,
    }
    /// The search for the price of an auction: the price and the lots of the best ask and the best
    /// bid that are left, which cross; the worst ask and the worst bid that traded; the volume.
    struct SearchForm {
        ask: I64, ask_lots: I64, bid: I64, bid_lots: I64, worst_ask: I64, worst_bid: I64,
        volume: I64,
    }
}
