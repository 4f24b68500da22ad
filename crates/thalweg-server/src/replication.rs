//! A server as a replica: it follows the command log until it is the primary.

use std::fmt;
use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use thalweg::state::StateCell;
use thalweg_exchange::durable::replication::{CommandLog, FollowOptions, Follower, Looked, follow};
use thalweg_exchange::durable::{Exchange, Options, Published, Recovered, Storage};

use crate::catch_up::CatchUp;
use crate::error::ServeError;
use crate::lifecycle::Lifecycle;
use crate::request::Request;
use crate::trouble::{Due, Trouble};
use crate::wall_clock::{AHEAD_MAX, STOPPED_MAX};

/// The command log of a replicated exchange, and how this replica follows it.
pub struct Replication {
    /// The log.
    pub log: Box<dyn CommandLog>,
    /// How it is followed.
    pub options: FollowOptions,
    /// Where it gives copies of itself to other replicas; none for the address of `trade.listen`,
    /// and any free port.
    pub peer_listen: Option<SocketAddr>,
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
    /// this closure from then on. Returns as well by how much the wall clock may be ahead of it.
    pub(crate) fn open<S: Storage>(
        mut self,
        (storage, options): (S, Options),
        catch_up: Option<CatchUp>,
        publish: impl FnMut(Published<'_>) + Send + 'static,
        (lifecycle, requests): (&StateCell<Lifecycle>, &Receiver<Request>),
    ) -> Result<(Exchange<S>, Recovered, Duration), ServeError> {
        if let Some(catch_up) = catch_up
            && !catch_up.prepare(&options, &mut *self.log, |time| goes_on(requests, time))?
        {
            return Err(ServeError::Panicked);
        }
        let (exchange, recovered) = Exchange::open_in(storage, options, |_| ())?;
        let _ = lifecycle.change_to(Lifecycle::Following, "the journal was executed");
        let holder = &self.options.holder;
        tracing::info!(%holder, commands = recovered.commands, "the replica follows the log");
        let (mut writer, mut clock) = (None, LastClock::default());
        let (mut silence, mut unclaimed) = (Trouble::default(), Trouble::default());
        let expects_log = recovered.commands > 0 && !self.options.bootstrap;
        let pause = |replica: &Follower<S>, looked: &Looked, time: Duration| {
            log_writer(replica, &mut writer);
            let error = match looked {
                Looked::Waits(error) => Some(&error[..]),
                _ => None,
            };
            silence.note_log(error, Instant::now());
            let is_unclaimed = expects_log && *looked == Looked::Unclaimed;
            if let Some(Due::Lasts(_)) = unclaimed.note(is_unclaimed, Instant::now()) {
                warn_unclaimed(&self.options.log, recovered.commands);
            }
            let has_waited = !time.is_zero() && *looked == Looked::Claimed;
            clock.note(
                replica.exchange().state().risk.clock(),
                has_waited,
                Instant::now(),
            );
            goes_on(requests, time)
        };
        let Some(mut exchange) = follow(exchange, self.log, &self.options, pause)? else {
            return Err(ServeError::Panicked);
        };
        let recovered = exchange.recovered_again(recovered);
        let commands = recovered.commands;
        tracing::info!(%holder, commands, "the replica is the primary now");
        exchange.publish_by(publish);
        Ok((exchange, recovered, clock.ahead_max(Instant::now())))
    }
}

/// When a replica has executed the time that a living primary has set.
#[derive(Debug, Default)]
struct LastClock {
    time: Option<i64>,
    at: Option<Instant>,
    is_up_to_date: bool,
}

impl LastClock {
    /// Notes the exchange's time, and whether there was nothing more in the log. What is executed
    /// up to then may be old.
    fn note(&mut self, time: Option<i64>, is_up_to_date: bool, now: Instant) {
        if self.is_up_to_date && time != self.time {
            self.at = Some(now);
        }
        self.time = time;
        self.is_up_to_date |= is_up_to_date;
    }

    /// Returns by how much the wall clock may be ahead of the exchange's time now: hardly more than
    /// has passed, unless all replicas may have been stopped.
    fn ahead_max(&self, now: Instant) -> Duration {
        self.at.map_or(STOPPED_MAX, |at| {
            AHEAD_MAX + now.saturating_duration_since(at)
        })
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

/// Warns that there is no log where this replica, which has commands, expects one.
fn warn_unclaimed(log: &str, commands: u64) {
    tracing::warn!(
        log,
        commands,
        "no replica has made this command log, and this one has commands: is the prefix right? \
         Where the log was lost, see docs/replication.md; a new one is made with --bootstrap"
    );
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

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::{Arc, Mutex};

    use thalweg_exchange::durable::SimDisk;
    use thalweg_exchange::durable::replication::{Claim, LogError, Stored, Tail, Written};

    use super::*;

    /// A log in memory with one replica, which does not answer while it is away.
    #[derive(Clone, Default)]
    pub(crate) struct OneLog {
        pub(crate) is_away: Arc<AtomicBool>,
        tail: Arc<Mutex<Tail>>,
        peers: Arc<Mutex<Vec<(String, String)>>>,
    }

    impl OneLog {
        /// Returns an exchange that writes the log.
        pub(crate) fn lead(&self, options: Options) -> Exchange<SimDisk> {
            let opened = Exchange::open_in(SimDisk::new(), options, |_| ());
            let (exchange, _) = opened.expect("the disk is empty");
            let mut options = FollowOptions::new("one");
            options.bootstrap = true;
            let led = follow(exchange, Box::new(self.clone()), &options, |_, _, _| true);
            led.expect("it does not halt").expect("it leads")
        }

        fn tail(&self) -> Result<std::sync::MutexGuard<'_, Tail>, LogError> {
            // ORDERING: Relaxed; a flag of a test.
            match self.is_away.load(Ordering::Relaxed) {
                true => Err(LogError("no answer".to_owned())),
                false => Ok(self.tail.lock().expect("no panic")),
            }
        }

        fn write(&self, write: impl FnOnce(&mut Tail)) -> Written {
            match self.tail() {
                Ok(mut tail) => {
                    tail.pulse += 1;
                    write(&mut tail);
                    Written::Acked
                }
                Err(error) => Written::Unknown(error.0),
            }
        }
    }

    impl CommandLog for OneLog {
        fn claim(&mut self, _: Option<&Claim>, new: &Claim) -> Written {
            self.write(|tail| tail.claim = Some(new.clone()))
        }

        fn append(&mut self, _: &Claim, _: Option<u64>, index: u64, bytes: &[u8]) -> Written {
            let bytes = bytes.to_vec();
            self.write(|tail| tail.batches.push(Stored { index, bytes }))
        }

        fn beat(&mut self, _: &Claim) -> Written {
            self.write(|_| ())
        }

        fn read(&mut self, from: u64) -> Result<Tail, LogError> {
            let mut tail = self.tail()?.clone();
            tail.newest = tail.batches.last().map(|stored| stored.index);
            tail.batches.retain(|stored| stored.index >= from);
            Ok(tail)
        }

        fn find(&mut self, at: u64) -> Result<Option<Stored>, LogError> {
            let tail = self.tail()?;
            let found = tail.batches.iter().rfind(|stored| stored.index <= at);
            Ok(found.cloned())
        }

        fn indices(&mut self, _: u64, _: u64) -> Result<Vec<u64>, LogError> {
            Ok(Vec::new())
        }

        fn forget(&mut self, _: &Claim, before: u64) -> Written {
            self.write(|tail| tail.batches.retain(|stored| stored.index >= before))
        }

        fn note_position(&mut self, _: &str, _: u64) -> Written {
            Written::Acked
        }

        fn positions(&mut self) -> Result<Vec<(String, u64)>, LogError> {
            Ok(Vec::new())
        }

        fn note_peer(&mut self, replica: &str, place: &str) -> Written {
            let mut peers = self.peers.lock().expect("no panic");
            peers.push((replica.to_owned(), place.to_owned()));
            Written::Acked
        }

        fn peers(&mut self) -> Result<Vec<(String, String)>, LogError> {
            Ok(self.peers.lock().expect("no panic").clone())
        }
    }

    #[test]
    fn a_clock_is_followed_far_only_where_all_may_have_been_stopped() {
        let (begin, mut clock) = (Instant::now(), LastClock::default());
        let at = |seconds| begin + Duration::from_secs(seconds);
        // Left from before: it may be of any age.
        clock.note(Some(1), false, at(0));
        clock.note(Some(2), false, at(1));
        clock.note(Some(3), true, at(2));
        assert_eq!(clock.ahead_max(at(9)), STOPPED_MAX);
        clock.note(Some(4), false, at(10));
        clock.note(Some(4), true, at(11));
        assert_eq!(clock.ahead_max(at(15)), AHEAD_MAX + Duration::from_secs(5));
    }
}
