//! Whether all sessions that keys may open fit into those that the exchange remembers. None is ever
//! forgotten, so that no command is executed twice; so there must be room for each before it comes.

use thalweg_exchange::session::SessionKey;
use thiserror::Error;

use crate::config::Sessions;
use crate::keys::Keys;

/// There may be more sessions than the exchange remembers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "sessions.remembered_max is {max}, and {} are needed: {holders} holders of keys with \
     {per_holder} sessions each (sessions.per_holder), and {others} that others have had",
    holders * u64::from(*per_holder) + others
)]
pub struct TooManySessions {
    /// Users and administrators whose keys may send commands.
    pub holders: u64,
    /// Sessions that each may open: `sessions.per_holder`.
    pub per_holder: u32,
    /// Sessions that are remembered of others.
    pub others: u64,
    /// `sessions.remembered_max`.
    pub max: u32,
}

/// Checks that there is room, beside these sessions, for those that holders of keys may open.
pub(crate) fn check(
    keys: &Keys,
    limits: &Sessions,
    remembered: &[SessionKey],
) -> Result<(), TooManySessions> {
    let (per_holder, max) = (limits.per_holder, limits.remembered_max);
    let senders = keys.senders();
    let is_other =
        |key: &&SessionKey| key.number >= per_holder || !senders.contains(&(key.role, key.holder));
    let others = remembered.iter().filter(is_other).count() as u64;
    let holders = senders.len() as u64;
    match holders * u64::from(per_holder) + others <= u64::from(max) {
        true => Ok(()),
        false => Err(TooManySessions {
            holders,
            per_holder,
            others,
            max,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::{Key, hash};
    use thalweg_exchange::session::Role;

    #[test]
    fn all_that_may_come_and_all_that_came_must_fit() {
        let key = |role, holder| Key {
            name: String::new(),
            role,
            holder,
            hash: hash(b"any"),
        };
        let keys = Keys::new(vec![
            key(Role::Trade, 1),
            key(Role::Trade, 1),
            key(Role::Read, 2),
            key(Role::Admin, 1),
        ]);
        let session = |role, holder, number| SessionKey::new(role, holder, number);
        let remembered = [
            session(Role::Trade, 1, 3),
            session(Role::Trade, 1, 4),
            session(Role::Trade, 2, 0),
        ];
        let limits = |remembered_max| Sessions {
            per_holder: 4,
            remembered_max,
            ..Sessions::default()
        };
        assert_eq!(check(&keys, &limits(10), &remembered), Ok(()));
        let refused = check(&keys, &limits(9), &remembered).expect_err("two are of others");
        assert_eq!(
            refused.to_string(),
            "sessions.remembered_max is 9, and 10 are needed: 2 holders of keys with 4 sessions \
             each (sessions.per_holder), and 2 that others have had"
        );
    }
}
