//! Records of 28 and of 32 bytes, without padding.

/// 28 bytes, side by side.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
#[repr(C, packed)]
pub struct Packed {
    user: u64,
    price: u64,
    order: u64,
    lots: u32,
}

/// The same, and 4 bytes more.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
#[repr(C, packed)]
pub struct Padded {
    fields: Packed,
    zero: u32,
}

const _: () = assert!(size_of::<Packed>() == 28 && size_of::<Padded>() == 32);

/// A record whose fields can be set.
pub trait Fields: Copy + Default + 'static {
    /// Sets each of them, to something that depends on `number`.
    fn set(&mut self, number: u64);
}

impl Fields for Packed {
    #[inline(always)]
    fn set(&mut self, number: u64) {
        self.user = number;
        self.price = number ^ 7;
        self.order = number + 1;
        self.lots = number as u32;
    }
}

impl Fields for Padded {
    #[inline(always)]
    fn set(&mut self, number: u64) {
        self.fields.set(number);
        self.zero = 0;
    }
}
