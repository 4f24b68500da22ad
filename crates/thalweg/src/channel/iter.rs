//! Receiving in loops.

use std::iter::FusedIterator;

use super::receiver::Receiver;
use super::shape::Shape;

impl<T, S: Shape> Receiver<T, S> {
    /// Calls `work` with up to `max` elements that are there now; returns how many. If `work`
    /// panics, the element it had is gone, and the others stay in the channel.
    pub fn recv_each(&mut self, max: usize, mut work: impl FnMut(T)) -> usize {
        let mut count = 0;
        for value in self.try_iter().take(max) {
            count += 1;
            work(value);
        }
        count
    }

    /// Receives until the channel is disconnected; waits for each element.
    pub fn iter(&mut self) -> Iter<'_, T, S> {
        Iter(self)
    }

    /// Receives what is there now.
    pub fn try_iter(&mut self) -> TryIter<'_, T, S> {
        TryIter(self)
    }
}

macro_rules! iterators {
    ($($(#[$doc:meta])* $name:ident<$($life:lifetime)?>($receiver:ty): $recv:ident;)+) => {$(
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $name<$($life,)? T, S: Shape>($receiver);

        impl<$($life,)? T, S: Shape> Iterator for $name<$($life,)? T, S> {
            type Item = T;

            fn next(&mut self) -> Option<T> {
                self.0.$recv().ok()
            }
        }
    )+};
}

iterators! {
    /// See [`Receiver::iter`].
    Iter<'r>(&'r mut Receiver<T, S>): recv;
    /// See [`Receiver::try_iter`].
    TryIter<'r>(&'r mut Receiver<T, S>): try_recv;
    /// Receives until the channel is disconnected.
    IntoIter<>(Receiver<T, S>): recv;
}

impl<T, S: Shape> FusedIterator for Iter<'_, T, S> {}
impl<T, S: Shape> FusedIterator for IntoIter<T, S> {}

impl<T, S: Shape> IntoIterator for Receiver<T, S> {
    type Item = T;
    type IntoIter = IntoIter<T, S>;

    fn into_iter(self) -> IntoIter<T, S> {
        IntoIter(self)
    }
}

impl<'r, T, S: Shape> IntoIterator for &'r mut Receiver<T, S> {
    type Item = T;
    type IntoIter = Iter<'r, T, S>;

    fn into_iter(self) -> Iter<'r, T, S> {
        self.iter()
    }
}
