//! State that a stage owns while it runs, and gives back when it ends.

use std::sync::{Arc, Mutex, PoisonError};

/// `S`, until dropped.
#[derive(Debug)]
pub(super) struct Loan<S> {
    state: Option<S>,
    back: Arc<Mutex<Option<S>>>,
}

impl<S> Loan<S> {
    pub(super) fn new(state: S, back: &Arc<Mutex<Option<S>>>) -> Self {
        Self {
            state: Some(state),
            back: Arc::clone(back),
        }
    }

    #[inline]
    pub(super) fn get<R>(&mut self, work: impl FnOnce(&mut S) -> R) -> R {
        work(self.state.as_mut().expect("taken only by drop"))
    }
}

impl<S> Drop for Loan<S> {
    fn drop(&mut self) {
        *self.back.lock().unwrap_or_else(PoisonError::into_inner) = self.state.take();
    }
}
