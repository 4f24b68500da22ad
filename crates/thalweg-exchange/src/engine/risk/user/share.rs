//! Users dealt to shares and put together again; see [`share`](crate::risk::share).

use super::Users;
use crate::ids::UserId;

impl Users {
    /// Deals the users to `of` shares by `share_of`. Cost: copies every user, but where there is
    /// one share only.
    pub(in crate::engine::risk) fn deal(
        self,
        of: usize,
        share_of: impl Fn(UserId) -> usize,
    ) -> Vec<Self> {
        if of == 1 {
            return vec![self];
        }
        let empty = || Self {
            lost_any: self.lost_any,
            ..Self::default()
        };
        let mut shares: Vec<Self> = (0..of).map(|_| empty()).collect();
        for user in self.sorted() {
            shares[share_of(user.uid)].copy(user);
        }
        for (uid, retired) in self.retired {
            shares[share_of(uid)].retired.insert(uid, retired);
        }
        shares
    }

    /// Adds another share's users.
    pub(in crate::engine::risk) fn join(&mut self, other: &Self) {
        self.lost_any |= other.lost_any;
        let retired = other.retired.iter();
        self.retired
            .extend(retired.map(|(&uid, retired)| (uid, retired.clone())));
        for user in other.sorted() {
            self.copy(user);
        }
    }

    fn copy(&mut self, user: &super::User) {
        let slot = self.add(user.uid, user.status);
        self.users[slot].clone_from(user);
        // Another share's epochs are its own.
        self.users[slot].forget_cover();
    }
}
