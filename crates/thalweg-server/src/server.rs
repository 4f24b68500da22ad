//! The server from its start to its end.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use mio::{Poll, Waker};
use thalweg_exchange::UserLimits;
use thalweg_exchange::durable::replication::forget_log;
use thalweg_exchange::durable::{
    Exchange, Files, Finished, Notes, OpenError, Options, Published, Recovered, Storage,
};
use thalweg_exchange::market::{Channels, Epoch};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::accept::listen;
use crate::audit::Audit;
use crate::catch_up::{CatchUp, PeerListener};
use crate::conditions::NetworkConditions;
use crate::config::{Config, durable_options};
use crate::driver::{Driver, HostedExchange};
use crate::drop_copy::{self, CopyWriter, DropCopy};
use crate::error::ServeError;
use crate::exchange_thread::delivering::{Mailbox, Outgoing, Publisher};
use crate::exchange_thread::{ExchangeThread, WAKER};
use crate::feed::Feed;
use crate::flow::{Flow, FlowCounts, FlowRun};
use crate::gateway_link::{ExchangeHandle, GatewayLink};
use crate::gateway_observer::GatewayObserver;
use crate::keys;
use crate::latency_monitor::LatencyMonitor;
use crate::lifecycle::Lifecycle;
use crate::listeners::{Addresses, BoundListeners};
use crate::replication::{PrimaryStart, Replica, Replication, goes_on};
use crate::request::Request;
use crate::sessions::LastReader;
use crate::shared::Shared;
use crate::wall_clock::{STOPPED_MAX, SystemClock, TimeSource, WallClock};
use crate::{http, metrics};

/// The heartbeat that the client library asks for, if its program does not say otherwise.
const CLIENT_HEARTBEAT_MS: u32 = 1_000;
/// How long connections may take to end once they were sent a bye.
const CLOSE_GRACE: Duration = Duration::from_secs(3);

/// A server that runs. It must be [stopped](Self::stop): dropping it ends its tasks and leaves the
/// exchange to recover.
#[derive(Debug)]
pub struct Server {
    shared: Arc<Shared>,
    addresses: Addresses,
    recovered: Recovered,
    listeners: Vec<JoinHandle<()>>,
    /// They end with the server, wherever they are.
    helpers: Vec<JoinHandle<()>>,
    http: Option<http::Http>,
    audit: thread::JoinHandle<()>,
    /// For the lines of a gateway.
    gateway_audit: Arc<Audit>,
    copy: Option<DropCopy>,
    /// That of a replica.
    peers: Option<PeerListener>,
    /// Dropped with the server, wherever that happens.
    _abandon: Abandon,
}

/// Ends the exchange's thread when it is dropped, unless that has ended in order.
#[derive(Debug)]
struct Abandon(Arc<Shared>);

impl Drop for Abandon {
    fn drop(&mut self) {
        self.0.requests.send(Request::Abandon);
    }
}

impl Server {
    /// Starts a server on the exchange in `directory`, and returns when it is ready for clients.
    /// Metrics are served from the beginning.
    ///
    /// # Errors
    /// A configuration that is not possible, keys that cannot be read or may open more sessions
    /// than the exchange remembers, an address that cannot be
    /// listened on, an exchange that does not open.
    pub async fn start(config: Config, directory: &Path) -> Result<Self, ServeError> {
        Self::start_with(config, directory, None).await
    }

    /// Starts as [`start`](Self::start), with a market that trades beside the users.
    ///
    /// # Errors
    /// As [`start`](Self::start), and an exchange that has another market.
    pub async fn start_with(
        config: Config,
        directory: &Path,
        flow: Option<Flow>,
    ) -> Result<Self, ServeError> {
        let files = Files::new(directory);
        let files = match &config.journal.archive {
            Some(archive) => files.archiving(archive),
            None => files,
        };
        Self::start_all(config, files, SystemClock, (flow, None)).await
    }

    /// Starts a replica, and returns when it has found its place in the command log and follows
    /// that. Until it is the primary, it serves those who only read, and names the primary to
    /// others. Where it [halts](thalweg_exchange::durable::replication::HaltReason) later, it has
    /// [failed](Self::failed), and [`stop`](Self::stop) says why.
    ///
    /// # Errors
    /// As [`start`](Self::start); and the log cannot be executed here.
    pub async fn start_replicated(
        config: Config,
        directory: &Path,
        mut replication: Replication,
    ) -> Result<Self, ServeError> {
        let files = Files::new(directory);
        let files = match &config.journal.archive {
            Some(archive) => files.archiving(archive),
            None => files,
        };
        let listen = replication.peer_listen;
        let address = listen.unwrap_or((config.trade.listen.ip(), 0).into());
        let listener = PeerListener::start(address, files.clone()).await;
        let listener = listener.map_err(|source| ServeError::Listen {
            what: "peer",
            address,
            source,
        })?;
        let place = (directory, config.journal.archive.is_some());
        let catch_up = CatchUp::new(place, &replication.options.holder, &listener);
        replication.options.peer_place = Some(catch_up.place().to_owned());
        let replication = Some((replication, catch_up));
        let mut started = Self::start_all(config, files, SystemClock, (None, replication)).await?;
        started.peers = Some(listener);
        Ok(started)
    }

    /// Starts a server in any storage, such as a simulated disk, by any clock.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub async fn start_in<S: Storage>(
        config: Config,
        storage: S,
        time: impl TimeSource,
    ) -> Result<Self, ServeError> {
        Self::start_all(config, storage, time, (None, None)).await
    }

    async fn start_all<S: Storage>(
        config: Config,
        storage: S,
        time: impl TimeSource,
        (flow, replication): (Option<Flow>, Option<(Replication, CatchUp)>),
    ) -> Result<Self, ServeError> {
        config.check("the configuration")?;
        let keys = config.keys.file.as_deref().map(keys::read).transpose()?;
        let feed = Arc::new(new_feed(&config));
        let (gateway_key, (copy_writer, copy)) = gateway_parts(&config, &feed)?;
        let conditions = flow.as_ref().and_then(|flow| flow.conditions.clone());
        if let Some(conditions) = &conditions {
            warn_of_silence(&config, conditions);
        }
        let shared = Arc::new(Shared::new(config, keys, gateway_key, feed, conditions));
        let config = &shared.config;
        let audit_file = config.admin.audit_file.as_deref();
        let (audit, audit_thread) = Audit::start(audit_file, Arc::clone(&shared.counters))
            .map_err(|source| ServeError::audit(audit_file, source))?;
        let gateway_audit = Arc::new(audit.clone());
        let mut bound = BoundListeners::bind(config)?;
        let addresses = bound.addresses()?;
        let http = start_http(&shared, &mut bound, addresses)?;
        // A thread that panics drops the sender.
        let (led, leads) = oneshot::channel();
        let is_replica = replication.is_some();
        let to_follow = replication.map(|(log, catch_up)| (log, catch_up, led));
        let parts = (copy_writer, flow, to_follow);
        let opening = open(&shared, storage, audit, parts).map_err(|_| ServeError::Panicked)?;
        let abandon = Abandon(Arc::clone(&shared));
        let recovered = opening.await.map_err(|_| ServeError::Panicked)??;
        if let Some(keys) = shared.keys()
            && let Err(error) = shared.check_sessions(&keys)
        {
            let _ = shared.requests.stop().await;
            return Err(error.into());
        }
        let feed = Arc::clone(&shared.feed);
        let mut helpers = vec![tokio::spawn(async move { feed.run().await })];
        if is_replica {
            helpers.push(tokio::spawn(lead(Arc::clone(&shared), time, leads)));
        } else {
            set_limits(&shared, recovered.limits);
            let clock = WallClock::new(time, recovered.time, STOPPED_MAX);
            helpers.push(tokio::spawn(set_clock(Arc::clone(&shared), clock)));
        }
        // Not before: a client that comes meanwhile is refused by the system, and comes again.
        let listeners = start_listeners(&shared, bound)?;
        if !is_replica {
            // Unless it has failed meanwhile.
            shared.lifecycle.change_to(Lifecycle::Ready);
        }
        log_warnings(&shared.config);
        log_opening(&recovered);
        Ok(Self {
            shared,
            addresses,
            recovered,
            listeners,
            helpers,
            http,
            audit: audit_thread,
            gateway_audit,
            copy,
            peers: None,
            _abandon: abandon,
        })
    }

    /// Returns the addresses on which it listens: with the ports that the system chose, where the
    /// configuration says 0.
    #[must_use]
    pub const fn addresses(&self) -> Addresses {
        self.addresses
    }

    /// Returns, once, what a gateway in this process works with, where the configuration has one.
    #[must_use]
    pub fn gateway_link(&mut self) -> Option<GatewayLink> {
        Some(GatewayLink {
            trade: self.addresses.trade,
            key: self.shared.gateway_key()?.into(),
            session: self.shared.config.sessions.per_holder,
            reports: self.shared.reports.get()?.clone(),
            copy: self.copy.take()?,
            open_orders_max: self.recovered.limits.open_orders,
            notes: self.shared.order_notes.clone(),
            exchange: ExchangeHandle::new(Arc::clone(&self.shared)),
            conditions: self.shared.conditions.clone(),
            observer: GatewayObserver::new(
                Arc::clone(&self.shared.gateway_rows),
                &self.gateway_audit,
            ),
            instruments: LatencyMonitor::new(Arc::clone(&self.shared)),
        })
    }

    /// Returns the findings when the directory was opened.
    #[must_use]
    pub const fn recovered(&self) -> &Recovered {
        &self.recovered
    }

    /// Waits until the exchange has stopped by itself: a failed disk, say.
    pub async fn failed(&self) {
        self.shared.lifecycle.wait_for(&[Lifecycle::Failed]).await;
    }

    /// Reads the keys again; connections whose keys are gone end. Where the file cannot be read, or
    /// is wrong, the keys are as before, which is logged.
    pub fn reload_keys(&self) {
        let Some(file) = &self.shared.config.keys.file else {
            return;
        };
        let checked = keys::read(file).map_err(ServeError::from);
        let checked = checked.and_then(|keys| {
            self.shared.check_sessions(&keys)?;
            Ok(keys)
        });
        match checked {
            Ok(keys) => self.shared.change_keys(keys),
            Err(error) => tracing::error!(%error, "keys are as before"),
        }
    }

    /// Takes no new orders, answers those that were taken, sends every connection a bye, writes a
    /// last snapshot and ends.
    ///
    /// # Errors
    /// The exchange has stopped, before or meanwhile.
    pub async fn stop(self) -> Result<Finished, ServeError> {
        let shared = self.shared;
        shared.lifecycle.change_to(Lifecycle::Draining);
        // Bytes that wait on lines go when the stop is asked for, not before.
        let flush = async { shared.lines.flush() };
        let (finished, ()) = tokio::join!(shared.requests.stop(), flush);
        let _ = tokio::time::timeout(CLOSE_GRACE, shared.lines.ended()).await;
        let deadline = tokio::time::Instant::now() + CLOSE_GRACE;
        for mut listener in self.listeners {
            if tokio::time::timeout_at(deadline, &mut listener)
                .await
                .is_err()
            {
                listener.abort();
            }
        }
        self.helpers.iter().for_each(JoinHandle::abort);
        drop(self.http);
        drop(self.peers);
        let finished = finished?;
        drop(self.gateway_audit);
        // Its lines are written when the last thread that makes some has ended.
        let written = tokio::task::spawn_blocking(move || self.audit.join());
        if tokio::time::timeout(CLOSE_GRACE, written).await.is_err() {
            tracing::error!("the audit file takes nothing: its last lines are lost");
        }
        if let Err(error) = &finished.snapshot {
            tracing::error!(%error, "the last snapshot was not written; all is in the journal");
        }
        tracing::info!(commands = finished.commands, "the exchange is closed");
        Ok(finished)
    }
}

/// Starts the listener for metrics, if there is one.
fn start_http(
    shared: &Arc<Shared>,
    bound: &mut BoundListeners,
    addresses: Addresses,
) -> Result<Option<http::Http>, ServeError> {
    let (Some(listener), Some(address)) = (bound.http()?, addresses.http) else {
        return Ok(None);
    };
    let metrics = metrics::Metrics::new(Arc::clone(shared));
    let started = http::start(listener, Arc::new(metrics));
    started.map(Some).map_err(|source| ServeError::Listen {
        what: "http",
        address,
        source,
    })
}

/// Starts the listeners for sessions.
fn start_listeners(
    shared: &Arc<Shared>,
    bound: BoundListeners,
) -> Result<Vec<JoinHandle<()>>, ServeError> {
    let listeners = bound.listen()?.into_iter();
    let start = |(kind, listener)| tokio::spawn(listen(Arc::clone(shared), kind, listener));
    let started = listeners.map(start).collect();
    shared.note_listening();
    Ok(started)
}

/// A key for the gateway, and both ends of its drop copy, where the configuration has one.
type GatewayParts = (Option<String>, (Option<CopyWriter>, Option<DropCopy>));

/// Warns of delays that are longer than clients may be silent.
fn warn_of_silence(config: &Config, conditions: &NetworkConditions) {
    let heartbeat_ms = config.sessions.heartbeat_min_ms.max(CLIENT_HEARTBEAT_MS);
    let silence_ms = u128::from(heartbeat_ms) * 3;
    let in_ms = conditions.inbound_max().as_millis();
    if in_ms >= silence_ms {
        tracing::warn!(
            in_ms,
            silence_ms,
            "the latency ends sessions of the client library: their heartbeats come too late"
        );
    }
}

fn gateway_parts(config: &Config, feed: &Feed) -> Result<GatewayParts, ServeError> {
    let has_gateway = config.gateway.listen.is_some();
    let key = has_gateway.then(keys::generate).transpose()?;
    let ends = has_gateway.then(|| drop_copy::new(feed.epoch())).unzip();
    Ok((key, ends))
}

fn new_feed(config: &Config) -> Feed {
    let market = &config.market;
    let channels = Channels {
        trades: market.trades,
        levels: true,
        best: market.best,
    };
    Feed::new(
        new_epoch(),
        channels,
        market.snapshot_levels,
        market.ring_chunks,
    )
}

/// Returns the epoch of a start on one machine: each start needs its own, later than all before,
/// and time has not been the same before.
fn new_epoch() -> Epoch {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    Epoch(now.unwrap_or_default().as_nanos() as u64)
}

/// Logs what an operator should know of the configuration.
fn log_warnings(config: &Config) {
    if config.keys.file.is_none() {
        tracing::warn!(
            "no keys are configured: every program on this machine may act for any user and as an \
             administrator; set keys.file"
        );
    }
    let archive = config.journal.archive.as_deref();
    if let Some(archive) = archive.filter(|archive| !archive.is_dir()) {
        let archive = archive.display();
        tracing::warn!(%archive, "journal.archive is not there: nothing is deleted until it is");
    }
}

/// Logs how the exchange was opened.
fn log_opening(recovered: &Recovered) {
    for skipped in &recovered.skipped {
        tracing::warn!(%skipped, "a damaged snapshot");
    }
    if recovered.snapshot.is_none() && recovered.replayed > 0 {
        tracing::warn!("no snapshot was whole: the whole journal was executed again");
    }
    tracing::info!(
        commands = recovered.commands,
        replayed = recovered.replayed,
        took_ms = recovered.took.as_millis() as u64,
        "the exchange is open"
    );
}

/// The findings when the exchange was opened.
type Opening = oneshot::Receiver<Result<Recovered, ServeError>>;

/// A command log, how this replica catches up, and where it is waited for that it writes the log.
type ToFollow = (Replication, CatchUp, oneshot::Sender<PrimaryStart>);

/// Opens the exchange on its thread, since that may take minutes.
fn open<S: Storage>(
    shared: &Arc<Shared>,
    storage: S,
    audit: Audit,
    (copy, flow, replication): (Option<CopyWriter>, Option<Flow>, Option<ToFollow>),
) -> std::io::Result<Opening> {
    let poll = Poll::new()?;
    let waker = Arc::new(Waker::new(poll.registry(), WAKER)?);
    let (sender, requests) = mpsc::channel();
    let (reply, opening) = oneshot::channel();
    let shared = Arc::clone(shared);
    let run = move || {
        let mailbox = Mailbox::default();
        let copy = copy.map(|copy| Arc::new(Mutex::new(copy)));
        let counts = Arc::<FlowCounts>::default();
        let sessions = flow.as_ref().map(Flow::session);
        let watched = sessions.map(|session| (session, Arc::clone(&counts)));
        let mut publisher = Publisher {
            mailbox: Arc::clone(&mailbox),
            outgoing: Outgoing::default(),
            feed: Arc::clone(&shared.feed),
            follows: false,
            flow: watched,
            copy: copy.clone(),
            open_order_queries: shared.open_order_queries.clone(),
            execution: Arc::clone(&shared.execution),
            readers: Arc::clone(&shared.report_readers),
            last_reader: LastReader::default(),
            time_set: Arc::clone(&shared.time_set),
        };
        let mut options = durable_options(&shared.config, &waker);
        options.notes = notes_of(&shared, replication.is_some());
        let publish = move |published: Published<'_>| publisher.take(published);
        // Before it follows: metrics are asked for meanwhile.
        shared.requests.open(sender, Arc::clone(&waker));
        let parts = (&*shared, &requests);
        let opened = open_exchange((storage, options), publish, replication, parts);
        let (exchange, recovered) = match opened {
            Ok(opened) => opened,
            Err(error) => {
                let _ = reply.send(Err(error));
                return;
            }
        };
        let flow = match open_flow(flow, &exchange, &shared, counts) {
            Ok(flow) => flow,
            Err(error) => {
                let _ = reply.send(Err(error));
                return;
            }
        };
        let _ = shared.reports.set(exchange.reports());
        shared.feed.set_waker(waker);
        // The caller waits no more where the start was given up.
        if reply.send(Ok(recovered)).is_err() {
            return;
        }
        let driver = Driver::new(exchange, Arc::clone(&shared.counters), audit);
        let lifecycle = Arc::clone(&shared.lifecycle);
        let thread = ExchangeThread::new(shared, (poll, requests), (driver, mailbox, copy), flow);
        if catch_unwind(AssertUnwindSafe(|| thread.run())).is_err() {
            lifecycle.change_to(Lifecycle::Failed);
        }
    };
    thread::Builder::new().name("exchange".into()).spawn(run)?;
    Ok(opening)
}

/// Returns where the notes of commands come from: the gateway of a replica.
fn notes_of(shared: &Shared, is_replica: bool) -> Notes {
    match is_replica && shared.gateway_key().is_some() {
        true => (shared.order_notes).source(shared.config.sessions.per_holder),
        false => Notes::default(),
    }
}

/// Opens the exchange; of a replica, once it may serve readers.
fn open_exchange<S: Storage>(
    (storage, options): (S, Options),
    publish: impl FnMut(Published<'_>) + Send + 'static,
    replication: Option<ToFollow>,
    (shared, requests): (&Shared, &mpsc::Receiver<Request>),
) -> Result<(HostedExchange<S>, Recovered), ServeError> {
    let Some((mut replication, catch_up, led)) = replication else {
        let (exchange, recovered) = Exchange::open_in(storage.clone(), options, publish)?;
        if forget_log(&storage).map_err(OpenError::from)? {
            tracing::warn!(
                "the directory of a replica is served alone: it belongs to no command log any more"
            );
        }
        return Ok((exchange.into(), recovered));
    };
    let pause = |time| goes_on(requests, time);
    if !catch_up.prepare(&options, &mut *replication.log, pause)? {
        return Err(ServeError::Stopped);
    }
    let (exchange, recovered) = Exchange::open_in(storage, options, publish)?;
    shared.lifecycle.change_to(Lifecycle::Following);
    let mut replica = Replica::start(exchange, replication, led)?;
    replica.attach(requests, |figures| shared.note_replica(figures))?;
    Ok((HostedExchange::Replica(Box::new(replica)), recovered))
}

/// Makes a market go on in an exchange that was opened.
fn open_flow<S: Storage>(
    flow: Option<Flow>,
    exchange: &Exchange<S>,
    shared: &Shared,
    counts: Arc<FlowCounts>,
) -> Result<Option<Box<FlowRun>>, ServeError> {
    let Some(flow) = flow else {
        return Ok(None);
    };
    let run = FlowRun::open(flow, exchange, Arc::clone(&counts))?;
    let _ = shared.flow.set(counts);
    Ok(Some(Box::new(run)))
}

/// Returns the limits of users without their own, where no administrator has set how many open
/// orders they may have: a start does not overwrite an administrator's limits.
fn first_limits(config: &Config, now: UserLimits) -> Option<UserLimits> {
    let open_orders = config.sessions.open_orders_max;
    if open_orders == 0 || now.open_orders == open_orders {
        return None;
    }
    if now.open_orders == UserLimits::NONE.open_orders {
        return Some(UserLimits { open_orders, ..now });
    }
    tracing::warn!(
        configured = open_orders,
        in_force = now.open_orders,
        "sessions.open_orders_max is not applied: the exchange has a limit already"
    );
    None
}

/// Submits the limits of users without their own, where they are to be set.
fn set_limits(shared: &Shared, now: UserLimits) {
    if let Some(limits) = first_limits(&shared.config, now) {
        shared.requests.send(Request::Limits(limits));
    }
}

/// Submits limits and times from when this replica is the primary.
async fn lead(shared: Arc<Shared>, time: impl TimeSource, led: oneshot::Receiver<PrimaryStart>) {
    // The server may end before.
    if let Ok(led) = led.await {
        set_limits(&shared, led.limits);
        set_clock(shared, WallClock::new(time, led.time, led.ahead_max)).await;
    }
}

/// Submits the time to the exchange, at an interval.
async fn set_clock(shared: Arc<Shared>, mut clock: WallClock<impl TimeSource>) {
    let every = Duration::from_millis(shared.config.exchange.clock_ms);
    if every.is_zero() {
        return;
    }
    let mut tick = tokio::time::interval(every);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
    loop {
        tick.tick().await;
        // ORDERING: Relaxed, pairs with the store of the publisher; a number alone.
        let set = shared.time_set.swap(i64::MIN, Ordering::Relaxed);
        if set != i64::MIN {
            clock.set(set);
        }
        let time = clock.now();
        if !shared.requests.send(Request::Clock(time)) {
            return;
        }
    }
}
