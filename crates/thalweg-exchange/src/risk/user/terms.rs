//! What is known of a user's orders; see [`limits`](crate::risk::limits).

use super::User;
use crate::risk::ids::Ids;
use crate::risk::limits::Terms;

impl User {
    /// What is known of the user's orders beyond their number.
    pub(in crate::risk) fn terms(&self) -> Option<&Terms> {
        self.far.as_ref().map(|far| &far.terms)
    }

    /// The same, to change it.
    pub(in crate::risk) fn terms_mut(&mut self) -> &mut Terms {
        &mut self.far.get_or_insert_default().terms
    }

    /// The same, taken from a user who goes.
    pub(in crate::risk) fn take_terms(&mut self) -> Terms {
        let far = self.far.as_mut();
        far.map_or_else(Terms::default, |far| std::mem::take(&mut far.terms))
    }

    pub(in crate::risk) fn ids(&self) -> Option<&Ids> {
        self.terms()?.ids.as_deref()
    }

    #[inline]
    pub(in crate::risk) fn has_limits(&self) -> bool {
        self.far
            .as_ref()
            .is_some_and(|far| far.terms.limits.is_some())
    }

    /// True where nothing of futures and no limits of the user's own ask for a closer look.
    #[inline]
    pub(in crate::risk) fn is_simple(&self) -> bool {
        self.far.is_none() || !(self.has_futures() || self.has_limits())
    }
}
