//! Values as structs of bytes: little-endian, `#[repr(C)]`, of alignment 1, without padding.
//!
//! [`wire!`](crate::wire::wire) declares such a struct once, with the value that it stands for. Its
//! fields are [`Wire`]; what takes a few bits only (a side, a flag, a type) is a [`Code`] in one of
//! two *small bytes* that stand before the struct: in the head of a frame, or beside the kind of an
//! event. A value gets no field that its struct has not: the compiler refuses it.

use zerocopy::little_endian::{I32, I64, I128, U16, U32, U64};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::codec::CodecError;
use crate::command::{Action, AdjustmentKind, FeeUnit, OrderFlags, OrderType, SymbolType};
use crate::event::{RejectReason, RemovalReason};
use crate::ids::{CurrencyId, OrderId, SymbolId, UserId};
use crate::market::{Channels, Epoch, FeedSequence, SymbolSequence};
use crate::result_code::ResultCode;
use crate::risk::UserStatus;
use crate::session::{ClientSequence, ReportNumber, Role};

/// The traits that every struct of bytes derives: any bytes are one, and one is its bytes.
pub(crate) trait Plain:
    Copy + FromBytes + IntoBytes + Immutable + KnownLayout + Unaligned + 'static
{
}

impl<T> Plain for T where
    T: Copy + FromBytes + IntoBytes + Immutable + KnownLayout + Unaligned + 'static
{
}

/// A field of fixed size.
pub(crate) trait Wire: Copy {
    /// Its bytes.
    type Bytes: Plain;

    fn bytes(self) -> Self::Bytes;

    /// Decodes the field, which is at this place of its frame.
    fn value(bytes: Self::Bytes, at: usize) -> Result<Self, CodecError>;
}

/// A value of a few bits.
pub(crate) trait Code: Copy {
    /// Its name in errors.
    const WHAT: &'static str;
    /// How many bits it takes.
    const BITS: u32;
    /// The greatest code; greater ones are no error of the code, but of the byte that it is in.
    const MAX: u8;

    fn code(self) -> u8;

    fn from_code(code: u8) -> Option<Self>;
}

/// A struct of bytes that stands for a value.
pub(crate) trait Form: Plain {
    type Value;
    /// The greatest values of its small bytes.
    const SMALL_MAX: [u8; 2];

    /// Returns the small bytes and the struct of a value; of an enum, it must be the variant that
    /// has this struct.
    fn of(value: &Self::Value) -> ([u8; 2], Self);

    /// Decodes the value. The first small byte and the struct are at these places of the frame.
    fn value(&self, small: [u8; 2], at: [usize; 2]) -> Result<Self::Value, CodecError>;
}

macro_rules! numbers {
    ($($type:ident: $bytes:ident $(, $inner:tt)?;)*) => {$(
        impl Wire for $type {
            type Bytes = $bytes;

            #[inline(always)]
            fn bytes(self) -> $bytes {
                $bytes::new(self$(.$inner)?)
            }

            #[inline(always)]
            fn value(bytes: $bytes, _: usize) -> Result<Self, CodecError> {
                numbers!(@ bytes.get(), $type $(, $inner)?)
            }
        }
    )*};
    (@ $value:expr, $type:ident, $inner:tt) => { Ok($type($value)) };
    (@ $value:expr, $type:ident) => { Ok($value) };
}

numbers! {
    u16: U16;
    u32: U32;
    i32: I32;
    u64: U64;
    i64: I64;
    i128: I128;
    SymbolId: I32, 0;
    CurrencyId: I32, 0;
    UserId: I64, 0;
    OrderId: I64, 0;
    Epoch: U64, 0;
    FeedSequence: U64, 0;
    SymbolSequence: U64, 0;
    ClientSequence: U64, 0;
    ReportNumber: U64, 0;
}

impl Wire for ResultCode {
    type Bytes = I32;

    #[inline(always)]
    fn bytes(self) -> I32 {
        I32::new(self.code())
    }

    #[inline]
    fn value(bytes: I32, at: usize) -> Result<Self, CodecError> {
        let code = bytes.get();
        Self::from_code(code).ok_or(CodecError::unknown("the result", at, code))
    }
}

/// Declares enums that are codes in a byte: name in errors, bits, greatest code.
macro_rules! small {
    ($($type:ident: $what:literal, $bits:literal, $max:expr, $code:expr, $from:expr;)*) => {$(
        impl $crate::wire::Code for $type {
            const WHAT: &'static str = $what;
            const BITS: u32 = $bits;
            const MAX: u8 = $max;

            #[inline(always)]
            fn code(self) -> u8 {
                ($code)(self)
            }

            #[inline(always)]
            fn from_code(code: u8) -> Option<Self> {
                ($from)(code)
            }
        }
    )*};
    ($($type:ident: $what:literal, $bits:literal, $max:expr;)*) => {
        small! { $($type: $what, $bits, $max, Self::code, Self::from_code;)* }
    };
}

small! {
    Action: "a side", 1, 1;
    OrderType: "the order type", 3, 5;
    OrderFlags: "the order's flags", 8, 28;
    AdjustmentKind: "the total", 1, 1;
    SymbolType: "the type of a symbol", 8, 255;
    FeeUnit: "the unit of a symbol's fees", 8, 255;
    RejectReason: "the reason of a reject", 8, 255;
    RemovalReason: "the reason of a removal", 7, 127;
    Channels: "the channels", 8, Self::CODE_MAX;
}

small! {
    Role: "the role", 8, 3, |role| role as u8, |code| Role::from_code(u32::from(code));
    bool: "a flag", 1, 1, |flag| flag as u8, |code| match code {
        0 => Some(false),
        1 => Some(true),
        _ => None,
    };
    UserStatus: "the user's status", 8, 1, |status| status as u8, |code| match code {
        0 => Some(Self::Active),
        1 => Some(Self::Suspended),
        _ => None,
    };
}

impl<C: Code> Wire for C {
    type Bytes = u8;

    #[inline(always)]
    fn bytes(self) -> u8 {
        self.code()
    }

    #[inline(always)]
    fn value(code: u8, at: usize) -> Result<Self, CodecError> {
        Self::from_code(code).ok_or(CodecError::unknown(Self::WHAT, at, code))
    }
}

/// One that is not there is 0; whether it is there, a bit says.
impl<T: Wire> Wire for Option<T> {
    type Bytes = T::Bytes;

    #[inline(always)]
    fn bytes(self) -> T::Bytes {
        self.map_or_else(T::Bytes::new_zeroed, T::bytes)
    }

    #[inline(always)]
    fn value(bytes: T::Bytes, at: usize) -> Result<Self, CodecError> {
        T::value(bytes, at).map(Some)
    }
}

/// Returns an optional field, if it is there, or 0 where it is not.
#[inline(always)]
pub(crate) fn present<T: Wire>(
    is_there: bool,
    field: Option<T>,
    what: &'static str,
    at: usize,
) -> Result<Option<T>, CodecError> {
    if is_there {
        return Ok(field);
    }
    let bytes = field.bytes();
    for (index, bytes) in bytes.as_bytes().chunks(8).enumerate() {
        let mut value = [0; 8];
        value[..bytes.len()].copy_from_slice(bytes);
        let (value, at) = (u64::from_le_bytes(value), at + index * 8);
        check_zero(what, at, value)?;
    }
    Ok(None)
}

/// Returns an error if a field without a meaning, at this place, is not 0.
#[inline(always)]
pub(crate) fn check_zero(
    what: &'static str,
    at: usize,
    value: impl Into<u64>,
) -> Result<(), CodecError> {
    check_most(what, at, value, 0_u8)
}

/// Returns an error if a field at this place is above `max`.
#[inline(always)]
pub(crate) fn check_most(
    what: &'static str,
    at: usize,
    value: impl Into<u64>,
    max: impl Into<u64>,
) -> Result<(), CodecError> {
    let (value, max) = (value.into(), max.into());
    if value <= max {
        return Ok(());
    }
    Err(CodecError::OutOfRange {
        what,
        at,
        value,
        max,
    })
}

/// The bits of one small byte, from the lowest on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bits {
    byte: u8,
    next: u32,
}

impl Bits {
    #[inline(always)]
    pub(crate) const fn new(byte: u8) -> Self {
        Self { byte, next: 0 }
    }

    #[inline(always)]
    pub(crate) fn with<C: Code>(self, value: C) -> Self {
        Self {
            byte: self.byte | value.code() << self.next,
            next: self.next + C::BITS,
        }
    }

    /// Returns the greatest value, with that of a further code.
    pub(crate) const fn with_max<C: Code>(self) -> Self {
        Self {
            byte: self.byte | C::MAX << self.next,
            next: self.next + C::BITS,
        }
    }

    /// Returns the greatest value, with the bit of an optional field.
    pub(crate) const fn with_presence(self, _: &str) -> Self {
        self.with_max::<bool>()
    }

    #[inline(always)]
    pub(crate) const fn byte(self) -> u8 {
        self.byte
    }

    /// Takes the next bits of the byte, which is at this place.
    #[inline(always)]
    pub(crate) fn take<C: Code>(&mut self, at: usize) -> Result<C, CodecError> {
        let code = (u32::from(self.byte) >> self.next) & ((1 << C::BITS) - 1);
        self.next += C::BITS;
        C::value(code as u8, at)
    }
}

/// An amount of a currency.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct AmountForm<A> {
    pub(crate) currency: I32,
    pub(crate) amount: A,
}

impl<A> AmountForm<A> {
    pub(crate) fn of<T: Wire<Bytes = A>>(&(currency, amount): &(CurrencyId, T)) -> Self {
        let (currency, amount) = (currency.bytes(), amount.bytes());
        Self { currency, amount }
    }

    pub(crate) fn amount<T: Wire<Bytes = A>>(&self) -> Result<(CurrencyId, T), CodecError>
    where
        A: Copy,
    {
        Ok((CurrencyId(self.currency.get()), T::value(self.amount, 0)?))
    }
}

/// Declares structs of bytes, and what they stand for: behind `=` a struct or a variant of an enum,
/// in brackets its codes in the first and, behind `;`, the second small byte, from bit 0 on, and in
/// braces its fields. Behind `|` are, in brackets, the optional fields, a bit each, and their names
/// in errors where they are not 0 though they are not there; in braces, a field without a meaning.
macro_rules! wire {
    ($(
        $(#[$meta:meta])*
        $vis:vis struct $name:ident = $type:ident $(:: $variant:ident)?
        $([
            $($a:ident: $a_code:ty),* $(; $($b:ident: $b_code:ty),*)?
            $(| $($option:ident: $what:literal),*)?
        ])?
        { $($field:ident: $field_type:ty $(| $zero:ident: $zero_type:ty)?),* $(,)? }
    )*) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, Debug)]
        #[derive(zerocopy::FromBytes, zerocopy::IntoBytes, zerocopy::Immutable)]
        #[derive(zerocopy::KnownLayout, zerocopy::Unaligned)]
        #[repr(C)]
        $vis struct $name {
            $(
                $vis $field: <$field_type as crate::wire::Wire>::Bytes,
                $($vis $zero: <$zero_type as crate::wire::Wire>::Bytes,)?
            )*
        }

        #[allow(
            irrefutable_let_patterns,
            unused_imports,
            unused_mut,
            unused_variables,
            reason = "a struct has no variant, and some forms have no codes or no fields"
        )]
        impl crate::wire::Form for $name {
            type Value = $type;
            const SMALL_MAX: [u8; 2] = [
                crate::wire::Bits::new(0)
                    $($(.with_max::<$a_code>())* $($(.with_presence($what))*)?)?.byte(),
                crate::wire::Bits::new(0)$($($(.with_max::<$b_code>())*)?)?.byte(),
            ];

            #[inline(always)]
            fn of(value: &$type) -> ([u8; 2], Self) {
                use crate::wire::{Bits, Wire};
                let $type $(:: $variant)? { $($($a,)* $($($b,)*)?)? $($field,)* } = *value else {
                    unreachable!("a form is made of its own variant")
                };
                let form = Self {
                    $($field: Wire::bytes($field), $($zero: Wire::bytes(0 as $zero_type),)?)*
                };
                let small = [
                    Bits::new(0)$($(.with($a))* $($(.with($option.is_some()))*)?)?.byte(),
                    Bits::new(0)$($($(.with($b))*)?)?.byte(),
                ];
                (small, form)
            }

            #[inline(always)]
            fn value(
                &self,
                small: [u8; 2],
                [small_at, at]: [usize; 2],
            ) -> Result<$type, crate::codec::CodecError> {
                use crate::wire::{Bits, Wire};
                let [mut a_bits, mut b_bits] = small.map(Bits::new);
                $(
                    $(let $a = a_bits.take::<$a_code>(small_at)?;)*
                    $($(let $b = b_bits.take::<$b_code>(small_at + 1)?;)*)?
                )?
                $(let mut $field: $field_type =
                    Wire::value(self.$field, at + std::mem::offset_of!(Self, $field))?;)*
                $($($(
                    let is_there = a_bits.take::<bool>(small_at)?;
                    let option_at = at + std::mem::offset_of!(Self, $option);
                    $option = crate::wire::present(is_there, $option, $what, option_at)?;
                )*)?)?
                $($(crate::wire::check_zero(
                    "the reserved field",
                    at + std::mem::offset_of!(Self, $zero),
                    <$zero_type as Wire>::value(self.$zero, 0)?,
                )?;)?)*
                Ok($type $(:: $variant)? {
                    $($($a,)* $($($b,)*)?)?
                    $($field,)*
                })
            }
        }
    )*};
}

pub(crate) use {small, wire};
