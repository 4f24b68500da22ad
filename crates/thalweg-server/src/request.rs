//! Requests of other threads to the exchange's thread, and the way there.

use std::fmt;
use std::net::{SocketAddr, TcpStream};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use mio::Waker;
use thalweg_exchange::durable::{Finished, Stats};
use thalweg_exchange::session::ReportNumber;
use thalweg_exchange::{UserId, UserLimits};
use tokio::sync::oneshot;

use crate::connection_slots::ConnectionSlot;
use crate::error::ServeError;
use crate::keys::Keys;
use crate::lock;
use crate::session::Terms;

/// How long the exchange's statistics are waited for.
const STATS_TIME: Duration = Duration::from_secs(1);

/// A connection whose hello was right.
#[derive(Debug)]
pub(crate) struct NewSession {
    pub(crate) stream: TcpStream,
    pub(crate) peer: SocketAddr,
    pub(crate) connection_slot: Arc<ConnectionSlot>,
    /// The bytes that came behind the hello.
    pub(crate) bytes: Vec<u8>,
    pub(crate) terms: Terms,
    pub(crate) last_report: Option<ReportNumber>,
}

/// Statistics that the exchange's thread has.
#[derive(Debug)]
pub(crate) struct Snapshot {
    pub(crate) stats: Option<Stats>,
    /// Sessions by role.
    pub(crate) sessions: [usize; 3],
    /// Bytes that wait for clients.
    pub(crate) out_bytes: usize,
    /// How often the thread has looked at the sockets.
    pub(crate) polls: u64,
}

/// See the [module](self).
#[derive(Debug)]
pub(crate) enum Request {
    /// A connection that is to be a session.
    Enter(Box<NewSession>),
    /// Other keys: sessions end whose key is not among them.
    Keys(Arc<Keys>),
    /// The time, in milliseconds since 1970.
    Clock(i64),
    /// Limits of users without their own.
    Limits(UserLimits),
    /// Asks for the open orders of a user, on behalf of the gateway.
    OpenOrders(UserId, u64),
    /// Asks for statistics.
    Stats(oneshot::Sender<Box<Snapshot>>),
    /// Takes no new commands, answers those that were taken, ends all sessions, and closes the
    /// exchange.
    Stop(oneshot::Sender<Result<Finished, ServeError>>),
    /// Ends the thread at once, as a crash would.
    Abandon,
}

/// The way to the exchange's thread, once that is there.
#[derive(Default)]
pub(crate) struct Requests {
    way: OnceLock<(Mutex<Sender<Request>>, Arc<Waker>)>,
}

impl fmt::Debug for Requests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Requests").finish_non_exhaustive()
    }
}

impl Requests {
    /// Opens the way.
    pub(crate) fn open(&self, sender: Sender<Request>, waker: Arc<Waker>) {
        let _ = self.way.set((Mutex::new(sender), waker));
    }

    /// Sends a request. Returns false where the thread is not there any more, or not yet.
    pub(crate) fn send(&self, request: Request) -> bool {
        let Some((sender, waker)) = self.way.get() else {
            return false;
        };
        let sender = lock(sender);
        let is_sent = sender.send(request).is_ok();
        drop(sender);
        is_sent && waker.wake().is_ok()
    }

    /// Wakes the exchange's thread, if it has begun.
    pub(crate) fn wake(&self) {
        if let Some((_, waker)) = self.way.get()
            && let Err(error) = waker.wake()
        {
            tracing::error!(%error, "the thread of the exchange could not be woken");
        }
    }

    /// Asks for statistics. Returns `None` where there are none, or they are not there in time.
    pub(crate) async fn stats(&self) -> Option<Box<Snapshot>> {
        let (sender, receiver) = oneshot::channel();
        if !self.send(Request::Stats(sender)) {
            return None;
        }
        tokio::time::timeout(STATS_TIME, receiver).await.ok()?.ok()
    }

    /// Has the exchange closed.
    ///
    /// # Errors
    /// It has failed before or meanwhile, or its thread has panicked.
    pub(crate) async fn stop(&self) -> Result<Finished, ServeError> {
        let (sender, receiver) = oneshot::channel();
        self.send(Request::Stop(sender));
        receiver.await.map_err(|_| ServeError::Panicked)?
    }
}
