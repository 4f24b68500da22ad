//! A server as a replica: it follows the command log until it is the primary.

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use thalweg_exchange::UserLimits;
use thalweg_exchange::durable::replication::{
    CommandLog, FollowOptions, FollowOutcome, FollowerDriver, HUNG, HaltReason, LogStatus,
    ReplicaStats,
};
use thalweg_exchange::durable::{Exchange, Storage};
use thalweg_exchange::market::Epoch;
use tokio::sync::oneshot;

use crate::error::ServeError;
use crate::outage_log::{OutageLine, OutageLog};
use crate::request::Request;
use crate::wall_clock::{AHEAD_MAX, STOPPED_MAX};

/// How often it is seen whether the log was read, before anything is served.
const ATTACH_EVERY: Duration = Duration::from_millis(2);

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

/// Returns the epoch of the market data of a replica under a claim. It is above those of all
/// replicas under earlier claims, whatever their clocks say; that of the primary is above those of
/// the replicas that follow it, which have one each.
pub(crate) fn feed_epoch(claim: u64, leads: bool) -> Epoch {
    let own = match leads {
        true => u32::MAX,
        false => RandomState::new().hash_one(claim) as u32 >> 1,
    };
    Epoch(Epoch::FIRST_REPLICATED.0 | claim.min(u64::from(u32::MAX >> 1)) << 32 | u64::from(own))
}

/// The state that the clock and the limits of a primary go on from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PrimaryStart {
    /// The exchange's time.
    pub(crate) time: Option<i64>,
    pub(crate) limits: UserLimits,
    /// By how much the wall clock may be ahead of it.
    pub(crate) ahead_max: Duration,
}

/// A replica that follows the log until it is the primary.
#[derive(Debug)]
pub(crate) struct Replica<S: Storage> {
    pub(crate) following: FollowerDriver<S>,
    options: FollowOptions,
    /// Whether there must be a log.
    expects_log: bool,
    /// The epoch of the claim that was logged last.
    logged: Option<u64>,
    silence: OutageLog,
    unclaimed: OutageLog,
    clock: LastClock,
    pub(crate) halted: Option<HaltReason>,
    /// Where it is waited for that this replica leads.
    led: Option<oneshot::Sender<PrimaryStart>>,
}

impl<S: Storage> Replica<S> {
    /// Follows the log.
    pub(crate) fn start(
        exchange: Exchange<S>,
        replication: Replication,
        led: oneshot::Sender<PrimaryStart>,
    ) -> Result<Self, HaltReason> {
        let Replication { log, options, .. } = replication;
        let commands = exchange.number();
        tracing::info!(holder = %options.holder, commands, "the replica follows the log");
        Ok(Self {
            following: FollowerDriver::start(exchange, log, options.clone())?,
            expects_log: commands > 0 && !options.bootstrap,
            options,
            logged: None,
            silence: OutageLog::default(),
            unclaimed: OutageLog::default(),
            clock: LastClock::default(),
            halted: None,
            led: Some(led),
        })
    }

    /// Waits until readers may be served: all that the log has is executed, or cannot be for now.
    /// Takes requests meanwhile, and has its figures noted.
    ///
    /// # Errors
    /// The replica has halted, or the server is to end.
    pub(crate) fn attach(
        &mut self,
        requests: &Receiver<Request>,
        mut note: impl FnMut(ReplicaFigures),
    ) -> Result<(), ServeError> {
        while !self.following.may_serve() {
            if !goes_on(requests, ATTACH_EVERY) {
                return Err(ServeError::Stopped);
            }
            self.turn(Instant::now());
            note(self.figures());
            if let Some(halted) = self.halted.take() {
                return Err(halted.into());
            }
        }
        Ok(())
    }

    /// Executes what is new in the log, and takes over where it is time for that, unless it has
    /// halted.
    pub(crate) fn turn(&mut self, now: Instant) {
        if self.halted.is_some() {
            return;
        }
        match self.following.turn() {
            Ok(FollowOutcome::Executed(_)) => {}
            Ok(FollowOutcome::Leads) => return self.log_lead(now),
            Ok(_) => return,
            Err(halted) => {
                tracing::error!(error = %halted, "the replica has halted");
                self.halted = Some(halted);
                return;
            }
        }
        self.log_writer();
        const NO_ROOM: &str = "the disk has no room for the commands of the log";
        let looked = self.following.looked();
        let error = match looked {
            LogStatus::Waits(error) => Some(&error[..]),
            LogStatus::NoRoom => Some(NO_ROOM),
            _ => None,
        };
        self.silence.note_log(error, now);
        let is_unclaimed = self.expects_log && *looked == LogStatus::Unclaimed;
        if let Some(OutageLine::Lasts(_)) = self.unclaimed.note(is_unclaimed, now) {
            warn_unclaimed(&self.options.log, self.following.exchange().number());
        }
        let is_up_to_date = *looked == LogStatus::Claimed && self.following.is_at_end();
        let time = self.following.exchange().state().risk.clock();
        self.clock.note(time, is_up_to_date, now);
    }

    pub(crate) fn figures(&self) -> ReplicaFigures {
        ReplicaFigures {
            stats: self.following.stats(),
            has_halted: self.halted.is_some(),
            primary: self.primary().to_owned(),
            noted: Instant::now(),
        }
    }

    fn log_lead(&mut self, now: Instant) {
        let exchange = self.following.exchange();
        let (holder, commands) = (&self.options.holder, exchange.number());
        tracing::info!(%holder, commands, "the replica is the primary now");
        let led = PrimaryStart {
            time: exchange.state().risk.clock(),
            limits: exchange.state().risk.default_limits(),
            ahead_max: self.clock.ahead_max(now),
        };
        if let Some(waiting) = self.led.take() {
            // The server may have been given up.
            let _ = waiting.send(led);
        }
    }

    /// Logs who writes the log, where that has changed.
    fn log_writer(&mut self) {
        if let Some(claim) = self.following.claim()
            && self.logged != Some(claim.epoch)
        {
            tracing::info!(primary = %claim.holder, epoch = claim.epoch, "another primary");
            self.logged = Some(claim.epoch);
        }
    }

    /// Returns the address of the primary; empty where it is unknown, or where this replica has
    /// claimed the log but does not lead yet.
    pub(crate) fn primary(&self) -> &str {
        let claim = self.following.claim();
        let holder = claim.map_or("", |claim| &claim.holder[..]);
        match holder == self.options.holder {
            true => "",
            false => holder,
        }
    }
}

/// The figures of a replica, for metrics.
#[derive(Clone, Debug)]
pub(crate) struct ReplicaFigures {
    pub(crate) stats: ReplicaStats,
    pub(crate) has_halted: bool,
    /// The address of the primary; empty where that is not known, or is this one.
    pub(crate) primary: String,
    /// When they were so.
    pub(crate) noted: Instant,
}

impl ReplicaFigures {
    /// Returns whether the exchange's thread, which is woken for them, hangs. Another replica takes
    /// over from a primary then.
    pub(crate) fn is_hung(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.noted) >= HUNG
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

/// Waits, and takes requests meanwhile. Returns false where the server ends.
pub(crate) fn goes_on(requests: &Receiver<Request>, time: Duration) -> bool {
    let until = Instant::now() + time;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        match requests.recv_timeout(left) {
            Ok(Request::Abandon | Request::Stop(_)) | Err(RecvTimeoutError::Disconnected) => {
                return false;
            }
            // Statistics are those of an exchange that serves.
            Ok(_) => {}
            Err(RecvTimeoutError::Timeout) => return true,
        }
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

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::mpsc::channel;
    use std::sync::{Arc, Mutex};

    use thalweg_exchange::durable::replication::{
        Claim, LogError, StoredBatch, Tail, WriteOutcome,
    };
    use thalweg_exchange::durable::{Options, Origin, Published, SimDisk};
    use thalweg_exchange::service::{Answered, Query, QueryReply};
    use thalweg_exchange::{Command, UserId};

    use super::*;
    use crate::driver::HostedExchange;

    /// A log in memory with one replica, which does not answer while it is away. It gives one batch
    /// at a time.
    #[derive(Clone, Default)]
    pub(crate) struct OneLog {
        pub(crate) is_away: Arc<AtomicBool>,
        /// Whether each look shows a sign of a writer.
        pub(crate) is_alive: Arc<AtomicBool>,
        /// Why a replica has halted.
        pub(crate) halt: Arc<Mutex<Option<String>>>,
        /// Whether it takes no notes about peers.
        pub(crate) is_full: Arc<AtomicBool>,
        tail: Arc<Mutex<Tail>>,
        peers: Arc<Mutex<Vec<(String, String)>>>,
    }

    impl OneLog {
        /// Returns a replica that follows the log.
        pub(crate) fn follow(&self, holder: &str, options: Options) -> HostedExchange<SimDisk> {
            self.follow_with(holder, options, |_| ())
        }

        /// Has a batch in the log that is none.
        pub(crate) fn damage(&self) {
            self.write(|tail| {
                let last = tail.batches.last();
                let index = last.map_or(0, |last| last.index + 1);
                let bytes = vec![0; 9];
                tail.batches.push(StoredBatch { index, bytes });
            });
        }

        /// Returns the second replica, and the outcome of its wait for readers. `note` is called
        /// with each of its figures.
        fn attach(
            &self,
            note: impl FnMut(ReplicaFigures),
        ) -> (HostedExchange<SimDisk>, Result<(), ServeError>) {
            // ORDERING: Relaxed; a flag of a test.
            self.is_alive.store(true, Ordering::Relaxed);
            let mut held = self.follow("two", Options::default());
            let (_sender, requests) = channel();
            let HostedExchange::Replica(replica) = &mut held else {
                panic!("it is a replica");
            };
            let attached = replica.attach(&requests, note);
            (held, attached)
        }

        /// Returns a replica that follows the log, and publishes by this closure.
        fn follow_with(
            &self,
            holder: &str,
            options: Options,
            publish: impl FnMut(Published<'_>) + Send + 'static,
        ) -> HostedExchange<SimDisk> {
            let opened = Exchange::open_in(SimDisk::new(), options, publish);
            let (exchange, _) = opened.expect("the disk is empty");
            let mut options = FollowOptions::new(holder);
            options.bootstrap = holder == "one";
            let log = Box::new(self.clone());
            let (led, _) = oneshot::channel();
            let replication = Replication {
                log,
                options,
                peer_listen: None,
            };
            let replica = Replica::start(exchange, replication, led);
            HostedExchange::Replica(Box::new(replica.expect("there are threads")))
        }

        /// Returns a replica that writes the log.
        pub(crate) fn lead(&self, options: Options) -> HostedExchange<SimDisk> {
            let mut held = self.follow("one", options);
            while !held.leads() {
                held.turn(Instant::now());
                std::thread::yield_now();
            }
            held
        }

        fn tail(&self) -> Result<std::sync::MutexGuard<'_, Tail>, LogError> {
            // ORDERING: Relaxed; a flag of a test.
            match self.is_away.load(Ordering::Relaxed) {
                true => Err(LogError::Silent("no answer".to_owned())),
                false => Ok(self.tail.lock().expect("no panic")),
            }
        }

        fn write(&self, write: impl FnOnce(&mut Tail)) -> WriteOutcome {
            match self.tail() {
                Ok(mut tail) => {
                    tail.revision += 1;
                    write(&mut tail);
                    WriteOutcome::Acked
                }
                Err(error) => WriteOutcome::Unknown(error.to_string()),
            }
        }
    }

    impl CommandLog for OneLog {
        fn claim(&mut self, _: Option<&Claim>, new: &Claim) -> WriteOutcome {
            self.write(|tail| tail.claim = Some(new.clone()))
        }

        fn append(&mut self, _: &Claim, _: Option<u64>, index: u64, bytes: &[u8]) -> WriteOutcome {
            let bytes = bytes.to_vec();
            self.write(|tail| tail.batches.push(StoredBatch { index, bytes }))
        }

        fn heartbeat(&mut self, _: &Claim) -> WriteOutcome {
            self.write(|_| ())
        }

        fn read(&mut self, from: u64) -> Result<Tail, LogError> {
            let mut tail = {
                let mut tail = self.tail()?;
                // ORDERING: Relaxed; a flag of a test.
                tail.revision += u64::from(self.is_alive.load(Ordering::Relaxed));
                tail.clone()
            };
            tail.newest = tail.batches.last().map(|stored| stored.index);
            tail.batches.retain(|stored| stored.index >= from);
            tail.batches.truncate(1);
            Ok(tail)
        }

        fn find(&mut self, at: u64) -> Result<Option<StoredBatch>, LogError> {
            let tail = self.tail()?;
            let found = tail.batches.iter().rfind(|stored| stored.index <= at);
            Ok(found.cloned())
        }

        fn indices(&mut self, _: u64, _: u64) -> Result<Vec<u64>, LogError> {
            Ok(Vec::new())
        }

        fn delete_before(&mut self, _: &Claim, before: u64) -> WriteOutcome {
            self.write(|tail| tail.batches.retain(|stored| stored.index >= before))
        }

        fn note_position(&mut self, _: &str, _: u64) -> WriteOutcome {
            WriteOutcome::Acked
        }

        fn note_halt(&mut self, replica: &str, commands: u64, why: &str) -> WriteOutcome {
            let halt = format!("{replica} after {commands}: {why}");
            *self.halt.lock().expect("no panic") = Some(halt);
            WriteOutcome::Acked
        }

        fn positions(&mut self) -> Result<Vec<(String, u64)>, LogError> {
            Ok(Vec::new())
        }

        fn note_peer(&mut self, replica: &str, place: &str) -> WriteOutcome {
            // ORDERING: Relaxed; a flag of a test.
            if self.is_full.load(Ordering::Relaxed) {
                return WriteOutcome::Unknown("NOSPACE".to_owned());
            }
            let mut peers = self.peers.lock().expect("no panic");
            peers.push((replica.to_owned(), place.to_owned()));
            WriteOutcome::Acked
        }

        fn peers(&mut self) -> Result<Vec<(String, String)>, LogError> {
            Ok(self.peers.lock().expect("no panic").clone())
        }
    }

    #[test]
    fn epochs_of_market_data_grow_with_claims_and_are_above_those_of_clocks() {
        let mut last = Epoch(i64::MAX as u64);
        for claim in [1, 2, 3, 1 << 20, u64::from(u32::MAX >> 1)] {
            let following = [0; 2].map(|_| feed_epoch(claim, false));
            let leading = feed_epoch(claim, true);
            assert!(following.iter().all(|own| *own > last && *own < leading));
            last = leading;
        }
    }

    /// Returns what a query about a user is answered.
    fn asked(
        held: &mut HostedExchange<SimDisk>,
        answers: &Receiver<Answered>,
        uid: i64,
    ) -> (u64, bool) {
        held.query(Query::User(UserId(uid)), 0)
            .expect("there is room");
        held.idle().expect("it goes on");
        let answered = answers.try_recv().expect("it is answered at once");
        let is_known = matches!(answered.answer, QueryReply::User(_));
        (answered.sequence, is_known)
    }

    #[test]
    fn a_replica_answers_queries_from_its_own_state_names_the_primary_and_takes_over() {
        let log = OneLog::default();
        let mut first = log.lead(Options::default());
        assert_eq!(first.primary(), None);
        (0..5).for_each(|uid| add(&mut first, uid));
        let HostedExchange::Replica(leading) = &first else {
            panic!("it is a replica");
        };
        let stats = |commands, lag, leads, epoch| ReplicaStats {
            leads,
            epoch,
            commands,
            lag,
            silent_for: Duration::ZERO,
        };
        assert_eq!(leading.following.stats(), stats(5, 0, true, 1));
        // The primary writes nothing more, and shows that it lives.
        drop(first);
        // ORDERING: Relaxed; a flag of a test.
        log.is_alive.store(true, Ordering::Relaxed);
        let (sender, answers) = channel();
        let (claims, claimed) = channel();
        let publish = move |published: Published<'_>| match published {
            Published::Answer { answered, .. } => sender.send(answered).expect("it is read"),
            Published::Claimed { epoch, leads } => {
                claims.send((epoch, leads)).expect("it is read");
            }
            _ => {}
        };
        let mut second = log.follow_with("two", Options::default(), publish);
        while second.number() < 5 {
            second.turn(Instant::now());
            std::thread::yield_now();
        }
        assert_eq!(second.primary(), Some("one"));
        assert!(!second.leads());
        assert_eq!(asked(&mut second, &answers, 4), (5, true));
        assert_eq!(asked(&mut second, &answers, 5), (5, false));
        let figures = second.figures().expect("it is a replica");
        assert_eq!(
            (figures.stats, figures.has_halted),
            (stats(5, 0, false, 1), false)
        );
        assert_eq!(claimed.try_iter().collect::<Vec<_>>(), [(1, false)]);
        // ORDERING: Relaxed; a flag of a test.
        log.is_alive.store(false, Ordering::Relaxed);
        while !second.leads() {
            second.turn(Instant::now());
            std::thread::yield_now();
        }
        assert_eq!(claimed.try_iter().collect::<Vec<_>>(), [(2, true)]);
        assert_eq!(second.primary(), None);
        add(&mut second, 5);
        assert_eq!(asked(&mut second, &answers, 5), (6, true));
        let figures = second.figures().expect("it is a replica");
        assert_eq!(figures.stats, stats(6, 0, true, 2));
    }

    fn add(held: &mut HostedExchange<SimDisk>, uid: i64) {
        let command = Command::AddUser { uid: UserId(uid) };
        let taken = held.submit(Origin::Engine, &command, 0);
        taken.expect("it is taken");
        held.drain().expect("it is acknowledged");
    }

    #[test]
    fn readers_are_served_when_all_is_executed_or_the_log_does_not_answer() {
        let log = OneLog::default();
        let mut first = log.lead(Options::default());
        (0..5).for_each(|uid| add(&mut first, uid));
        drop(first);
        let (second, attached) = log.attach(|_| ());
        attached.expect("it goes on");
        assert_eq!(second.number(), 5);
        drop(second);
        // It knows which exchange it is, and there the log is lost.
        let (second, attached) = log.attach(|figures| {
            let is_away = figures.stats.epoch > 0;
            // ORDERING: Relaxed; a flag of a test.
            log.is_away.store(is_away, Ordering::Relaxed);
        });
        attached.expect("it goes on");
        assert!((1..5).contains(&second.number()), "{}", second.number());
    }

    #[test]
    fn a_replica_that_halts_at_its_start_has_figures_that_say_so() {
        let log = OneLog::default();
        let mut first = log.lead(Options::default());
        add(&mut first, 1);
        drop(first);
        log.damage();
        let mut noted = Vec::new();
        let (_, attached) = log.attach(|figures| noted.push(figures.has_halted));
        attached.expect_err("the batch is none");
        assert_eq!(noted.last(), Some(&true));
    }

    #[test]
    fn a_replica_behind_a_log_that_does_not_answer_says_for_how_long() {
        let log = OneLog::default();
        drop(log.lead(Options::default()));
        // ORDERING: Relaxed; flags of a test.
        log.is_alive.store(true, Ordering::Relaxed);
        let mut second = log.follow("two", Options::default());
        let mut look = |is_away: bool| {
            log.is_away.store(is_away, Ordering::Relaxed);
            loop {
                second.turn(Instant::now());
                let figures = second.figures().expect("it is a replica");
                let HostedExchange::Replica(replica) = &second else {
                    panic!("it is a replica");
                };
                let is_claimed = *replica.following.looked() == LogStatus::Claimed;
                if is_away != figures.stats.silent_for.is_zero() && is_away != is_claimed {
                    return;
                }
                std::thread::yield_now();
            }
        };
        look(false);
        look(true);
        look(false);
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
