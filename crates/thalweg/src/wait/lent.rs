//! Values that a thread keeps from one use to the next, so that only the first use allocates.

use crate::ring::sync::IS_MODEL;
use std::cell::Cell;
use std::thread::LocalKey;

/// Where it is kept.
type Kept<T> = LocalKey<Cell<Option<T>>>;

/// Something of this thread's, taken from where it is kept at first use and put back by the drop,
/// also in a panic. A use within a use has one of its own, which is made.
pub(crate) struct Lent<T: 'static> {
    kept: &'static Kept<T>,
    make: fn() -> T,
    value: Option<T>,
}

impl<T> Lent<T> {
    pub(crate) fn new(kept: &'static Kept<T>, make: fn() -> T) -> Self {
        let value = None;
        Self { kept, make, value }
    }

    /// It, if it was used.
    pub(crate) fn get(&self) -> Option<&T> {
        self.value.as_ref()
    }

    pub(crate) fn fetch(&mut self) -> &T {
        let (kept, make) = (self.kept, self.make);
        self.value.get_or_insert_with(|| match IS_MODEL {
            // The threads of a model share what is local to a thread.
            true => make(),
            false => kept
                .try_with(Cell::take)
                .ok()
                .flatten()
                .unwrap_or_else(make),
        })
    }
}

impl<T> Drop for Lent<T> {
    fn drop(&mut self) {
        if let Some(value) = self.value.take().filter(|_| !IS_MODEL) {
            // Where the thread is past its last breath there is nothing to keep it in.
            let _ = self.kept.try_with(|kept| kept.set(Some(value)));
        }
    }
}
