//! Sessions: who sends commands, and how each is executed exactly once.
//!
//! A *session* is one program of one holder. It outlives its connections: it ends with neither a
//! broken cable nor a restart of the exchange. Each of its commands has a [`ClientSequence`], above
//! all before it; a command that comes again, because its answer was lost, is recognised by that
//! and not executed again. Each user's execution reports are numbered from 1 ([`ReportNumber`]), so
//! that a program that comes back can say which one it saw last.

use std::fmt;

use thiserror::Error;

use crate::codes::codes;

codes! {
    /// The permissions of the holder of a key.
    pub enum Role: u32;
    /// Trades for one user (code 1): [`TradeCommand`](crate::codec::session::TradeCommand)s.
    Trade = 1, "trade";
    /// Reads (code 2): market data, and the reports and the account of one user. No commands.
    Read = 2, "read";
    /// Runs the market (code 3): [`AdminCommand`](crate::codec::session::AdminCommand)s.
    Admin = 3, "admin";
}

// A role has four bytes, so that a key has none without a value: it is copied with each command.
const _: () = assert!(size_of::<SessionKey>() == 16 && size_of::<Role>() == 4);

/// The key of a session: a holder runs several programs, under numbers that it chooses.
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
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
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

// Why a command did not come into the exchange.

/// Why a command was not taken. A command that is refused so was not executed, is in no journal,
/// and changed nothing; except for [`AnswerGone`](Self::AnswerGone) and
/// [`SequenceReused`](Self::SequenceReused), whose sequence belongs to an earlier command.
///
/// A command that *was* taken and failed has a [`ResultCode`](crate::ResultCode) instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The session sends faster than it may (code 1).
    #[error("the session may send {limit} commands a second")]
    Rate {
        /// Commands a second that it may send.
        limit: u32,
    },
    /// Too many commands of the session have no answer yet (code 2).
    #[error("the session may have {limit} commands without an answer")]
    InFlight {
        /// How many may.
        limit: u32,
    },
    /// The user has too many open orders (code 3). Reserved: no server sends it, and an order
    /// beyond the limit has an answer, [`RiskTooManyOrders`](crate::ResultCode::RiskTooManyOrders).
    #[error("the user may have {limit} open orders")]
    OpenOrders {
        /// How many it may have.
        limit: u32,
    },
    /// There are too many sessions, of this holder or in all (code 4).
    #[error("there may be {limit} sessions")]
    Sessions {
        /// How many there may be.
        limit: u32,
    },
    /// The journal has no room (code 5). Later it may have some.
    #[error("the journal's disk is full")]
    DiskFull,
    /// The exchange is about to stop (code 6).
    #[error("the exchange is about to stop")]
    Draining,
    /// The session's role has no such command, or no such query (code 7).
    #[error("the session's role does not allow it")]
    Role,
    /// It is about another user than the session's (code 8).
    #[error("it is about another user than the session's")]
    NotYourUser,
    /// The sequence was used for another command (code 9).
    #[error("another command of the session has the same sequence")]
    SequenceReused,
    /// A command with that sequence, or with a higher one, was executed so long ago that its answer
    /// is not kept (code 10).
    #[error("the answer to that sequence is not kept any more")]
    AnswerGone,
    /// A command with a higher sequence was executed, and this one was not; nor will it be
    /// (code 11).
    #[error("it was not executed, and a later command of the session was")]
    NotExecuted,
    /// The system has no file descriptor or no memory for the journal (code 12). Later it may have.
    #[error("the system lacks files or memory for the journal")]
    Resources,
}

/// The codes and names of all, and the limits that some have.
macro_rules! refusals {
    ($($variant:ident $({ $limit:ident })? = $code:literal, $name:literal;)*) => {
        impl Refusal {
            /// One of each, with a limit of 0.
            pub const ALL: [Self; [$($code),*].len()] = [$(Self::$variant $({ $limit: 0 })?),*];

            /// Returns the fixed number.
            #[must_use]
            pub const fn code(self) -> u8 {
                match self {
                    $(Self::$variant { .. } => $code,)*
                }
            }

            /// Returns the limit that it names; 0 where it names none.
            #[must_use]
            pub const fn limit(self) -> u32 {
                match self {
                    $($(Self::$variant { $limit } => $limit,)?)*
                    _ => 0,
                }
            }

            /// Returns the refusal with this number and this limit, which must be 0 where it names
            /// none.
            #[must_use]
            pub const fn from_parts(code: u8, limit: u32) -> Option<Self> {
                let refusal = match code {
                    $($code => Self::$variant $({ $limit: limit })?,)*
                    _ => return None,
                };
                if refusal.limit() == limit { Some(refusal) } else { None }
            }

            /// Returns the fixed name, such as `DISK_FULL`.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant { .. } => $name,)*
                }
            }
        }
    };
}

refusals! {
    Rate { limit } = 1, "RATE";
    InFlight { limit } = 2, "IN_FLIGHT";
    OpenOrders { limit } = 3, "OPEN_ORDERS";
    Sessions { limit } = 4, "SESSIONS";
    DiskFull = 5, "DISK_FULL";
    Draining = 6, "DRAINING";
    Role = 7, "ROLE";
    NotYourUser = 8, "NOT_YOUR_USER";
    SequenceReused = 9, "SEQUENCE_REUSED";
    AnswerGone = 10, "ANSWER_GONE";
    NotExecuted = 11, "NOT_EXECUTED";
    Resources = 12, "RESOURCES";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_are_found_by_their_codes() {
        for code in 0..=u32::from(u8::MAX) {
            let role = Role::from_code(code);
            let expected = (1..=3).contains(&code).then_some(code);
            assert_eq!(role.map(Role::code), expected);
        }
        assert_eq!(Role::ALL.map(Role::code), [1, 2, 3]);
    }

    #[test]
    fn the_text_of_a_session_has_its_role_number_and_holder() {
        let key = SessionKey::new(Role::Trade, 7001, 2);
        assert_eq!(key.to_string(), "trade session 2 of 7001");
        assert_eq!(ClientSequence(8).next().to_string(), "9");
    }
}

#[cfg(test)]
mod refusal_tests {
    use super::*;

    #[test]
    fn codes_count_from_one_and_come_back() {
        for (refusal, code) in Refusal::ALL.into_iter().zip(1..) {
            assert_eq!(refusal.code(), code);
            assert_eq!(Refusal::from_parts(code, 0), Some(refusal));
            let limited = Refusal::from_parts(code, 9);
            assert_eq!(limited.is_some(), code <= 4);
            assert_eq!(limited.map_or(9, Refusal::limit), 9);
        }
        assert_eq!(Refusal::from_parts(0, 0), None);
        assert_eq!(Refusal::from_parts(13, 0), None);
    }

    #[test]
    fn texts_say_why_and_name_the_limit() {
        let texts = Refusal::ALL.map(|refusal| {
            Refusal::from_parts(refusal.code(), 5)
                .unwrap_or(refusal)
                .to_string()
        });
        assert_eq!(
            texts,
            [
                "the session may send 5 commands a second",
                "the session may have 5 commands without an answer",
                "the user may have 5 open orders",
                "there may be 5 sessions",
                "the journal's disk is full",
                "the exchange is about to stop",
                "the session's role does not allow it",
                "it is about another user than the session's",
                "another command of the session has the same sequence",
                "the answer to that sequence is not kept any more",
                "it was not executed, and a later command of the session was",
                "the system lacks files or memory for the journal",
            ]
        );
    }
}
