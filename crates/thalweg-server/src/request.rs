//! What the exchange's thread is asked to do.

use std::sync::Arc;

use thalweg::channel::{Mpsc, Sender};
use thalweg_exchange::durable::Stats;
use thalweg_exchange::service::Query;
use thalweg_exchange::session::{ClientSequence, Refusal};
use thalweg_exchange::{Command, UserLimits};
use tokio::sync::oneshot;

use crate::session::Session;

/// Commands of one session that a request has at most.
pub(crate) const COMMANDS_MAX: usize = 64;

/// See the [module](self).
#[derive(Debug)]
pub(crate) enum Request {
    /// Commands of a session, in order.
    Commands {
        session: Arc<Session>,
        commands: Vec<(ClientSequence, Command)>,
    },
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
    /// Figures, if somebody waits for them still.
    Stats(oneshot::Sender<Box<Stats>>),
    /// From now on commands are refused; told when those before are published, or have no room.
    Drain(oneshot::Sender<()>),
    /// The end: a last snapshot.
    Stop,
}

/// The way to the exchange's thread.
pub(crate) type Requests = Sender<Request, Mpsc>;
