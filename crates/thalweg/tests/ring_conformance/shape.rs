//! The rings of the suite: how each is made and used.

use thalweg::ring::{Batch, CapacityError, Consumer, Layout, PopError, Producer, spsc};

/// The receiving end, by the methods that all shapes have.
pub(crate) trait Receive<T> {
    fn try_pop(&mut self) -> Result<T, PopError>;
    fn peek(&mut self) -> Result<&T, PopError>;
    fn batch(&mut self, max: usize) -> Batch<'_, T>;
    fn pop_into(&mut self, out: &mut Vec<T>, max: usize) -> usize;
    fn len(&self) -> usize;
    fn is_empty(&self) -> bool;
    fn is_closed(&self) -> bool;
    fn close(&mut self);
}

macro_rules! receive {
    ($type:ident) => {
        impl<T> Receive<T> for $type<T> {
            fn try_pop(&mut self) -> Result<T, PopError> {
                $type::try_pop(self)
            }
            fn peek(&mut self) -> Result<&T, PopError> {
                $type::peek(self)
            }
            fn batch(&mut self, max: usize) -> Batch<'_, T> {
                $type::batch(self, max)
            }
            fn pop_into(&mut self, out: &mut Vec<T>, max: usize) -> usize {
                $type::pop_into(self, out, max)
            }
            fn len(&self) -> usize {
                $type::len(self)
            }
            fn is_empty(&self) -> bool {
                $type::is_empty(self)
            }
            fn is_closed(&self) -> bool {
                $type::is_closed(self)
            }
            fn close(&mut self) {
                $type::close(self)
            }
        }
    };
}

receive!(Consumer);

/// A kind of ring, seen through one of its producers.
pub(crate) trait Shape {
    type Rx<T: Send + 'static>: Receive<T> + Send + 'static;

    fn try_ring<T: Send + 'static>(
        capacity: usize,
    ) -> Result<(Producer<T>, Self::Rx<T>), CapacityError>;

    fn ring<T: Send + 'static>(capacity: usize) -> (Producer<T>, Self::Rx<T>) {
        Self::try_ring(capacity).unwrap()
    }
}

pub(crate) struct Packed;

impl Shape for Packed {
    type Rx<T: Send + 'static> = Consumer<T>;

    fn try_ring<T: Send + 'static>(
        capacity: usize,
    ) -> Result<(Producer<T>, Consumer<T>), CapacityError> {
        spsc(capacity, Layout::Packed)
    }
}

pub(crate) struct Slotted;

impl Shape for Slotted {
    type Rx<T: Send + 'static> = Consumer<T>;

    fn try_ring<T: Send + 'static>(
        capacity: usize,
    ) -> Result<(Producer<T>, Consumer<T>), CapacityError> {
        spsc(capacity, Layout::Slotted)
    }
}
