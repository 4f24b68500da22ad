//! The thread that makes orders durable in the log, one write for all that came together.
//!
//! A session waits for it as a task, so no thread of the runtime is blocked, and the sessions do not
//! wake each other.

use std::{io, thread};

use thalweg_journal::Lsn;
use tokio::sync::{mpsc, oneshot};

use super::log::Log;

/// Records whose durability is waited for.
const WAITING_MAX: usize = 4_096;

type Wait = (Lsn, oneshot::Sender<bool>);

/// See the [module](self).
#[derive(Clone, Debug)]
pub(super) struct Committer(mpsc::Sender<Wait>);

impl Committer {
    /// Starts the thread, which ends when the last clone is dropped.
    ///
    /// # Errors
    /// The system gives no thread.
    pub(super) fn start(log: Log) -> io::Result<Self> {
        let (sender, waits) = mpsc::channel(WAITING_MAX);
        let named = thread::Builder::new().name("gateway-commit".into());
        named.spawn(move || run(&log, waits))?;
        Ok(Self(sender))
    }

    /// Waits until a record is durable. Returns whether it is.
    pub(super) async fn commit(&self, lsn: Lsn) -> bool {
        let (done, committed) = oneshot::channel();
        self.0.send((lsn, done)).await.is_ok() && committed.await.unwrap_or(false)
    }
}

fn run(log: &Log, mut waits: mpsc::Receiver<Wait>) {
    let mut group = Vec::new();
    while waits.blocking_recv_many(&mut group, WAITING_MAX) > 0 {
        let last = group.iter().map(|(lsn, _)| *lsn).max();
        let committed = last.map_or(Ok(()), |last| log.commit(last));
        if let Err(error) = &committed {
            tracing::error!(%error, "orders are refused: the gateway's log");
        }
        for (_, done) in group.drain(..) {
            let _ = done.send(committed.is_ok());
        }
    }
}
