//! Receiving in loops.

use std::iter::FusedIterator;

use super::receiver::Receiver;
use super::shape::Shape;

impl<T, S: Shape> Receiver<T, S> {
    /// Calls `work` with up to `max` elements that are there now; gives how many. If `work` panics,
    /// the element it had is gone, and the others stay in the channel.
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

/// See [`Receiver::iter`].
#[derive(Debug)]
pub struct Iter<'r, T, S: Shape>(&'r mut Receiver<T, S>);

impl<T, S: Shape> Iterator for Iter<'_, T, S> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.0.recv().ok()
    }
}

impl<T, S: Shape> FusedIterator for Iter<'_, T, S> {}

/// See [`Receiver::try_iter`].
#[derive(Debug)]
pub struct TryIter<'r, T, S: Shape>(&'r mut Receiver<T, S>);

impl<T, S: Shape> Iterator for TryIter<'_, T, S> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.0.try_recv().ok()
    }
}

/// Receives until the channel is disconnected.
#[derive(Debug)]
pub struct IntoIter<T, S: Shape>(Receiver<T, S>);

impl<T, S: Shape> Iterator for IntoIter<T, S> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.0.recv().ok()
    }
}

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
