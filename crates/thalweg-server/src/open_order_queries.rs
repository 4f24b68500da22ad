//! The users whose open orders the gateway has asked for.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use thalweg_exchange::UserId;

use crate::lock;

/// Open orders of a user that are listed, at most.
pub(crate) const LISTED_MAX: usize = 5_000;
/// The tag of the gateway's queries for open orders. They are answered in their order.
pub(crate) const LIST_TAG: u64 = u64::MAX;

/// A user, and the token of the question.
pub(crate) type OpenOrderQuery = (UserId, u64);

/// The users whose open orders were asked for and are not there yet, in that order.
#[derive(Clone, Debug, Default)]
pub(crate) struct OpenOrderQueries(Arc<Mutex<VecDeque<OpenOrderQuery>>>);

impl OpenOrderQueries {
    pub(crate) fn begin(&self, asked: OpenOrderQuery) {
        lock(&self.0).push_back(asked);
    }

    /// The last one that was begun is not asked for.
    pub(crate) fn give_up(&self) {
        lock(&self.0).pop_back();
    }

    pub(crate) fn end(&self) -> Option<OpenOrderQuery> {
        lock(&self.0).pop_front()
    }
}
