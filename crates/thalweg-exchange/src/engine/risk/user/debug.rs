//! The debug text of a user.

use std::fmt;

use super::User;

impl fmt::Debug for User {
    /// Everything but where a balance is kept, as with `==`. What settles from events finds makers
    /// in another way than what trades, and so may keep other balances near.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let far = self.far.as_deref().cloned().unwrap_or_default();
        f.debug_struct("User")
            .field("uid", &self.uid)
            .field("status", &self.status)
            .field("is_gone", &self.is_gone)
            .field("open", &self.open)
            .field("last_transaction_id", &self.last_transaction_id)
            .field("balances", &self.balances().collect::<Vec<_>>())
            .field("positions", &far.positions)
            .field("waiting", &far.waiting)
            .field("terms", &far.terms)
            .field("kept", &far.kept)
            .finish()
    }
}
