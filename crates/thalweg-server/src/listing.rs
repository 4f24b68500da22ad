//! The users whose open orders the gateway has asked for.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use thalweg_exchange::UserId;

/// Open orders of a user that are listed, at most.
pub(crate) const LISTED_MAX: usize = 5_000;
/// The tag of the gateway's queries for open orders. They are answered in their order.
pub(crate) const LIST_TAG: u64 = u64::MAX;

/// A user, and the token of the question.
pub(crate) type Asked = (UserId, u64);

/// The users whose open orders were asked for and are not there yet, in that order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Listing(Arc<Mutex<VecDeque<Asked>>>);

impl Listing {
    fn all(&self) -> MutexGuard<'_, VecDeque<Asked>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn begin(&self, asked: Asked) {
        self.all().push_back(asked);
    }

    /// The last one that was begun is not asked for.
    pub(crate) fn give_up(&self) {
        self.all().pop_back();
    }

    pub(crate) fn end(&self) -> Option<Asked> {
        self.all().pop_front()
    }
}
