//! Whether a side of the ring is shared or has one end only, as a type.

/// A side of a [`Ticket`](super::Ticket): the producers or the consumers.
pub trait Side: sealed::Sealed {
    /// Whether there is one end only.
    const SOLE: bool;
}

/// Any number of threads: methods on the shared ring, which take tickets by compare-and-swap.
#[derive(Debug)]
pub enum Many {}

/// One end, which is made with the ring and cannot be cloned. It needs no compare-and-swap.
#[derive(Debug)]
pub enum Sole {}

impl Side for Many {
    const SOLE: bool = false;
}

impl Side for Sole {
    const SOLE: bool = true;
}

mod sealed {
    /// Kept from others.
    pub trait Sealed {}
    impl Sealed for super::Many {}
    impl Sealed for super::Sole {}
}
