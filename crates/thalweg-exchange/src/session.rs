//! Sessions: who sends commands, and how each is executed exactly once.
//!
//! A *session* is one program of one holder. It outlives its connections: it ends with neither a
//! broken cable nor a restart of the exchange. Each of its commands has a [`ClientSequence`], above
//! all before it; a command that comes again, because its answer was lost, is recognised by that
//! and not executed again. Each user's execution reports are numbered from 1 ([`ReportNumber`]), so
//! that a program that comes back can say which one it saw last.

use std::{error, fmt};

/// The permissions of the holder of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Role {
    /// Trades for one user (code 1): [`TradeCommand`](crate::codec::session::TradeCommand)s.
    Trade = 1,
    /// Looks on (code 2): market data, and the reports and the account of one user. No commands.
    Read = 2,
    /// Runs the market (code 3): [`AdminCommand`](crate::codec::session::AdminCommand)s.
    Admin = 3,
}

impl Role {
    /// Every role, in the order of its code.
    pub const ALL: [Self; 3] = [Self::Trade, Self::Read, Self::Admin];

    /// Returns the role with this code.
    #[must_use]
    pub const fn from_code(code: u8) -> Option<Self> {
        match code {
            1 => Some(Self::Trade),
            2 => Some(Self::Read),
            3 => Some(Self::Admin),
            _ => None,
        }
    }

    /// `trade`, `read` or `admin`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Trade => "trade",
            Self::Read => "read",
            Self::Admin => "admin",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
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

// Why a command did not come into the exchange.

/// Why a command was not taken. A command that is refused so was not executed, is in no journal,
/// and changed nothing; except for [`AnswerGone`](Self::AnswerGone) and
/// [`SequenceReused`](Self::SequenceReused), whose sequence belongs to an earlier command.
///
/// A command that *was* taken and failed has a [`ResultCode`](crate::ResultCode) instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Refusal {
    /// The session sends faster than it may (code 1).
    Rate {
        /// Commands a second that it may send.
        limit: u32,
    },
    /// Too many commands of the session have no answer yet (code 2).
    InFlight {
        /// How many may.
        limit: u32,
    },
    /// The user has too many open orders (code 3).
    OpenOrders {
        /// How many it may have.
        limit: u32,
    },
    /// There are too many sessions, of this holder or in all (code 4).
    Sessions {
        /// How many there may be.
        limit: u32,
    },
    /// The journal has no room (code 5). Later it may have some.
    DiskFull,
    /// The exchange is about to stop (code 6).
    Draining,
    /// The session's role has no such command, or no such query (code 7).
    Role,
    /// It is about another user than the session's (code 8).
    NotYourUser,
    /// The sequence was used for another command (code 9).
    SequenceReused,
    /// A command with that sequence, or with a higher one, was executed so long ago that its answer
    /// is not kept (code 10).
    AnswerGone,
    /// A command with a higher sequence was executed, and this one was not; nor will it be
    /// (code 11).
    NotExecuted,
    /// The system has no file descriptor or no memory for the journal (code 12). Later it may have.
    Resources,
}

impl Refusal {
    /// One of each, with a limit of 0.
    pub const ALL: [Self; 12] = [
        Self::Rate { limit: 0 },
        Self::InFlight { limit: 0 },
        Self::OpenOrders { limit: 0 },
        Self::Sessions { limit: 0 },
        Self::DiskFull,
        Self::Draining,
        Self::Role,
        Self::NotYourUser,
        Self::SequenceReused,
        Self::AnswerGone,
        Self::NotExecuted,
        Self::Resources,
    ];

    /// Returns the fixed number.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::Rate { .. } => 1,
            Self::InFlight { .. } => 2,
            Self::OpenOrders { .. } => 3,
            Self::Sessions { .. } => 4,
            Self::DiskFull => 5,
            Self::Draining => 6,
            Self::Role => 7,
            Self::NotYourUser => 8,
            Self::SequenceReused => 9,
            Self::AnswerGone => 10,
            Self::NotExecuted => 11,
            Self::Resources => 12,
        }
    }

    /// Returns the limit that was reached; 0 where there is none.
    #[must_use]
    pub const fn limit(self) -> u32 {
        match self {
            Self::Rate { limit }
            | Self::InFlight { limit }
            | Self::OpenOrders { limit }
            | Self::Sessions { limit } => limit,
            _ => 0,
        }
    }

    /// Returns the refusal with this number and limit. `None` where the number is of none, or the
    /// limit is not 0 and the refusal has none.
    #[must_use]
    pub const fn from_parts(code: u8, limit: u32) -> Option<Self> {
        let refusal = match code {
            1 => return Some(Self::Rate { limit }),
            2 => return Some(Self::InFlight { limit }),
            3 => return Some(Self::OpenOrders { limit }),
            4 => return Some(Self::Sessions { limit }),
            5 => Self::DiskFull,
            6 => Self::Draining,
            7 => Self::Role,
            8 => Self::NotYourUser,
            9 => Self::SequenceReused,
            10 => Self::AnswerGone,
            11 => Self::NotExecuted,
            12 => Self::Resources,
            _ => return None,
        };
        if limit == 0 { Some(refusal) } else { None }
    }

    /// Returns the name of its reason, such as `DISK_FULL`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rate { .. } => "RATE",
            Self::InFlight { .. } => "IN_FLIGHT",
            Self::OpenOrders { .. } => "OPEN_ORDERS",
            Self::Sessions { .. } => "SESSIONS",
            Self::DiskFull => "DISK_FULL",
            Self::Draining => "DRAINING",
            Self::Role => "ROLE",
            Self::NotYourUser => "NOT_YOUR_USER",
            Self::SequenceReused => "SEQUENCE_REUSED",
            Self::AnswerGone => "ANSWER_GONE",
            Self::NotExecuted => "NOT_EXECUTED",
            Self::Resources => "RESOURCES",
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Rate { limit } => {
                write!(f, "the session may send {limit} commands a second")
            }
            Self::InFlight { limit } => {
                write!(f, "the session may have {limit} commands without an answer")
            }
            Self::OpenOrders { limit } => write!(f, "the user may have {limit} open orders"),
            Self::Sessions { limit } => write!(f, "there may be {limit} sessions"),
            Self::DiskFull => f.write_str("the journal's disk is full"),
            Self::Draining => f.write_str("the exchange is about to stop"),
            Self::Role => f.write_str("the session's role does not allow it"),
            Self::NotYourUser => f.write_str("it is about another user than the session's"),
            Self::SequenceReused => {
                f.write_str("another command of the session has the same sequence")
            }
            Self::AnswerGone => f.write_str("the answer to that sequence is not kept any more"),
            Self::NotExecuted => {
                f.write_str("it was not executed, and a later command of the session was")
            }
            Self::Resources => f.write_str("the system lacks files or memory for the journal"),
        }
    }
}

impl error::Error for Refusal {}

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
