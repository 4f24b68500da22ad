//! What the exchange is asked to do, beside commands of sessions.

use std::sync::Arc;

use thalweg_exchange::service::Query;
use thalweg_exchange::session::{ClientSequence, Refusal};
use thalweg_exchange::{Command, UserLimits};

use crate::session::Session;

/// See the [module](self).
#[derive(Debug)]
pub(crate) enum Request {
    /// A command of an administrator that goes no further.
    Refused {
        session: Arc<Session>,
        sequence: ClientSequence,
        command: Command,
        why: Refusal,
    },
    /// A question of a session.
    Query {
        session: Arc<Session>,
        id: u64,
        query: Query,
    },
    /// A connection is gone, and all that it has sent is before this. Orders may go with it.
    Left(Arc<Session>),
    /// What time it is.
    Clock(i64),
    /// The limits of users without their own, unless an administrator sets some before.
    Limits(UserLimits),
}
