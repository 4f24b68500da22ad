//! Sessions: who sends commands, and how each is executed exactly once.
//!
//! A *session* is one program of one holder. It outlives its connections: it ends with neither a
//! broken cable nor a restart of the exchange. Each of its commands has a [`ClientSequence`], above
//! all before it; a command that comes again, because its answer was lost, is recognised by that
//! and not executed again. Each user's execution reports are numbered from 1 ([`ReportNumber`]), so
//! that a program that comes back can say which one it saw last.

mod refusal;

use std::fmt;

pub use self::refusal::Refusal;
use crate::codes::codes;

codes! {
    /// The permissions of the holder of a key.
    pub enum Role: u8;
    /// Trades for one user (code 1): [`TradeCommand`](crate::codec::session::TradeCommand)s.
    Trade = 1, "trade";
    /// Looks on (code 2): market data, and the reports and the account of one user. No commands.
    Read = 2, "read";
    /// Runs the market (code 3): [`AdminCommand`](crate::codec::session::AdminCommand)s.
    Admin = 3, "admin";
}

/// Which session: a holder runs several programs under numbers of its own choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionKey {
    /// Its permissions.
    pub role: Role,
    /// The user, or of an admin session the id of its key.
    pub holder: i64,
    /// Which of the holder's programs.
    pub number: u32,
}

impl SessionKey {
    /// Returns the key of the `number`-th program of this holder, in this role.
    #[must_use]
    pub const fn new(role: Role, holder: i64, number: u32) -> Self {
        Self {
            role,
            holder,
            number,
        }
    }
}

impl fmt::Display for SessionKey {
    /// Such as `trade session 2 of 7001`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            role,
            holder,
            number,
        } = self;
        write!(f, "{role} session {number} of {holder}")
    }
}

macro_rules! number {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u64);

        impl $name {
            /// Returns the number after it.
            #[must_use]
            pub const fn next(self) -> Self {
                Self(self.0 + 1)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

number! {
    /// The number that a session gives a command: at least 1, above those of all its commands
    /// before; numbers may be left out. 0 stands for none yet.
    ClientSequence
}
number! {
    /// The number of an execution report among those of its user: from 1, without gaps. 0 stands
    /// for none yet.
    ReportNumber
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_are_found_by_their_codes() {
        for code in 0..=u8::MAX {
            let role = Role::from_code(code);
            assert_eq!(
                role.map(|role| role as u8),
                (1..=3).contains(&code).then_some(code)
            );
        }
        assert_eq!(Role::ALL.map(|role| role as u8), [1, 2, 3]);
    }

    #[test]
    fn the_text_of_a_session_has_its_role_number_and_holder() {
        let key = SessionKey::new(Role::Trade, 7001, 2);
        assert_eq!(key.to_string(), "trade session 2 of 7001");
        assert_eq!(ClientSequence(8).next().to_string(), "9");
    }
}
