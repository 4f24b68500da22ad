//! A server as a replica: it follows the command log until it is the primary.

use std::fmt;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use thalweg::state::StateCell;
use thalweg_exchange::durable::replication::{CommandLog, FollowOptions, Follower, follow};
use thalweg_exchange::durable::{Exchange, Options, Published, Recovered, Storage};

use crate::error::ServeError;
use crate::lifecycle::Lifecycle;
use crate::request::Request;

/// The command log of a replicated exchange, and how this replica follows it.
pub struct Replication {
    /// The log.
    pub log: Box<dyn CommandLog>,
    /// How it is followed.
    pub options: FollowOptions,
}

impl fmt::Debug for Replication {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Replication");
        shown.field("options", &self.options);
        shown.finish_non_exhaustive()
    }
}

impl Replication {
    /// Opens the exchange and follows the log. Returns it when it is the primary: it publishes by
    /// this closure from then on.
    pub(crate) fn open<S: Storage>(
        self,
        (storage, options): (S, Options),
        publish: impl FnMut(Published<'_>) + Send + 'static,
        (lifecycle, requests): (&StateCell<Lifecycle>, &Receiver<Request>),
    ) -> Result<(Exchange<S>, Recovered), ServeError> {
        let (exchange, recovered) = Exchange::open_in(storage, options, |_| ())?;
        let _ = lifecycle.change_to(Lifecycle::Following, "the journal was executed");
        let holder = &self.options.holder;
        tracing::info!(%holder, commands = recovered.commands, "the replica follows the log");
        let mut writer = None;
        let pause = |replica: &Follower<S>, time| {
            log_writer(replica, &mut writer);
            goes_on(requests, time)
        };
        let Some(mut exchange) = follow(exchange, self.log, &self.options, pause)? else {
            return Err(ServeError::Panicked);
        };
        let recovered = exchange.recovered_again(recovered);
        let commands = recovered.commands;
        tracing::info!(%holder, commands, "the replica is the primary now");
        exchange.publish_by(publish);
        Ok((exchange, recovered))
    }
}

/// Logs who writes the log, where that has changed.
fn log_writer<S: Storage>(replica: &Follower<S>, writer: &mut Option<u64>) {
    let epoch = replica.seen().map(|claim| claim.epoch);
    if *writer != epoch
        && let Some(claim) = replica.seen()
    {
        tracing::info!(primary = %claim.holder, epoch = claim.epoch, "another primary");
        *writer = epoch;
    }
}

/// Waits, and takes requests meanwhile. Returns false where the server ends.
fn goes_on(requests: &Receiver<Request>, time: Duration) -> bool {
    let until = Instant::now() + time;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        match requests.recv_timeout(left) {
            Ok(Request::Abandon | Request::Stop(_)) | Err(RecvTimeoutError::Disconnected) => {
                return false;
            }
            // Statistics are those of a primary; its clock and its limits are in the log.
            Ok(_) => {}
            Err(RecvTimeoutError::Timeout) => return true,
        }
    }
}
