//! The rings of the suite.

use thalweg::ring::{Layout, SpscConsumer, SpscProducer, spsc};

/// A layout of the ring, as a type.
pub(crate) trait Shape {
    const LAYOUT: Layout;

    fn ring<T: Send + 'static>(capacity: usize) -> (SpscProducer<T>, SpscConsumer<T>) {
        spsc(capacity, Self::LAYOUT).unwrap()
    }
}

pub(crate) struct Packed;

impl Shape for Packed {
    const LAYOUT: Layout = Layout::Packed;
}

pub(crate) struct Slotted;

impl Shape for Slotted {
    const LAYOUT: Layout = Layout::Slotted;
}
