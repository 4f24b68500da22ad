//! The records of a user's orders; see [`limits`](crate::risk::limits).

use super::User;
use crate::risk::ids::Ids;
use crate::risk::limits::Terms;

impl User {
    /// Returns the records of the user's orders beyond their number.
    pub(in crate::engine::risk) fn terms(&self) -> Option<&Terms> {
        self.far.as_ref().map(|far| &far.terms)
    }

    /// Returns them, to change them.
    pub(in crate::engine::risk) fn terms_mut(&mut self) -> &mut Terms {
        let far = self.far.get_or_insert_default();
        far.kept.forget();
        &mut far.terms
    }

    /// Takes them from a user who goes.
    pub(in crate::engine::risk) fn take_terms(&mut self) -> Terms {
        let far = self.far.as_mut();
        far.map_or_else(Terms::default, |far| std::mem::take(&mut far.terms))
    }

    pub(in crate::engine::risk) fn ids(&self) -> Option<&Ids> {
        self.terms()?.ids.as_deref()
    }

    #[inline]
    pub(in crate::engine::risk) fn has_limits(&self) -> bool {
        self.far
            .as_ref()
            .is_some_and(|far| far.terms.limits.is_some())
    }
}
