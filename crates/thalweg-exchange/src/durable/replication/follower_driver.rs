//! Follows a log in real time, until this replica takes over.

use std::hash::{BuildHasher, RandomState};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::time::{Duration, Instant};
use std::{fmt, io, thread};

use thalweg_journal::Storage;

use super::follower::{Claiming, Follower, PollOutcome, Question, Read};
use super::halt_reason::HaltReason;
use super::log::{Claim, CommandLog, LogError, WriteOutcome};
use super::sequencer_thread::{self, NOTE_EVERY};
use crate::durable::exchange::Exchange;
use crate::durable::options::Wake;

/// How often the log is looked at where all that it had is executed.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// How long the log may not answer before a replica serves readers with what it has.
const SILENT: Duration = Duration::from_secs(2);

/// How a replica follows.
#[derive(Clone, Debug)]
pub struct FollowOptions {
    /// Where clients find this replica once it is the primary, and its name among the replicas.
    pub holder: String,
    /// Where the log is, for messages.
    pub log: String,
    /// Whether it makes the log where there is none. One replica of a new exchange does; a further
    /// one that did could begin a second history where the log was lost.
    pub bootstrap: bool,
    /// After how long without a sign of the writer it takes over \[300 ms\]. Time in which the log
    /// does not answer is not counted.
    pub takeover_timeout: Duration,
    /// Bytes of batches that the log keeps, for replicas that were stopped \[256 MiB\].
    pub kept_bytes_max: usize,
    /// Where others get copies of this replica, which it notes in the log \[nowhere\].
    pub peer_place: Option<String>,
}

impl FollowOptions {
    /// Returns the options of a replica that clients find at this address.
    #[must_use]
    pub fn new(holder: impl Into<String>) -> Self {
        Self {
            holder: holder.into(),
            log: String::new(),
            bootstrap: false,
            takeover_timeout: Duration::from_millis(300),
            kept_bytes_max: 256 << 20,
            peer_place: None,
        }
    }
}

/// Since when the writer is silent.
#[derive(Debug, Default)]
struct Silence {
    revision: Option<u64>,
    since: Option<Instant>,
}

impl Silence {
    /// Notes a look at the log, with the times at which its read began and ended. Returns for how
    /// long the writer was silent at least: it does not count how long this replica took to come
    /// back to what was read.
    fn note(&mut self, revision: Option<u64>, [began, ended]: [Instant; 2]) -> Duration {
        if self.revision != revision || self.since.is_none() {
            (self.revision, self.since) = (revision, Some(ended));
        }
        let since = self.since.unwrap_or(ended);
        began.saturating_duration_since(since)
    }

    /// The log did not answer: the writer could not show that it lives, either.
    const fn forget(&mut self) {
        self.since = None;
    }
}

/// The findings of the last look at the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogStatus {
    /// There was none yet.
    Nothing,
    /// No replica has made the log.
    Unclaimed,
    /// A replica has it.
    Claimed,
    /// It did not answer.
    Waits(String),
    /// It answered, and the disk of this replica has no room for what it has.
    NoRoom,
}

/// The outcome of a [turn](FollowerDriver::turn).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FollowOutcome {
    /// Nothing: the log is still being looked at.
    Nothing,
    /// The log was looked at, and that many commands were executed.
    Executed(u64),
    /// This replica is the primary from now on.
    Leads,
}

/// Figures of a replica.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReplicaStats {
    /// Whether it is the primary.
    pub leads: bool,
    /// The epoch of the present claim, as far as it is known; 0 before that.
    pub epoch: u64,
    /// How many commands the log has acknowledged, as far as this replica knows.
    pub commands: u64,
    /// How many of them it has not executed; where it is more than a few batches behind, at least
    /// how many.
    pub lag: u64,
    /// For how long the log has not answered.
    pub silent_for: Duration,
}

/// A call, or several, that the thread of the log makes.
#[derive(Debug)]
enum LogRequest {
    Read {
        after: Duration,
        /// A claim to be made before.
        claiming: Option<Claiming>,
        /// The position to note.
        position: Option<u64>,
        question: Question,
    },
    /// Notes why this replica has halted, with its position, and ends.
    Halt(u64, String),
}

/// The log with what was read there.
struct ReadReply {
    log: Box<dyn CommandLog>,
    /// When the read began and ended.
    times: [Instant; 2],
    /// The outcome of a claim.
    claimed: Option<WriteOutcome>,
    read: Result<Read, LogError>,
}

/// The thread that makes all calls to the log, which goes there with a request and comes back with
/// the reply.
struct LogReader {
    /// Another one ends the thread.
    requests: Option<Sender<(Box<dyn CommandLog>, LogRequest)>>,
    replies: Receiver<ReadReply>,
    /// Whether the thread notes a halt.
    has_halted: bool,
}

impl Drop for LogReader {
    /// Waits for the note of a halt, which the program would not live to see, for a while.
    fn drop(&mut self) {
        self.requests = None;
        if self.has_halted {
            // No reply comes after it.
            let _ = self.replies.recv_timeout(SILENT);
        }
    }
}

/// Wakes the owner when the thread ends, also where that has panicked.
struct WakeAtEnd(Wake);

impl Drop for WakeAtEnd {
    fn drop(&mut self) {
        if let Some(wake) = &self.0.0 {
            wake();
        }
    }
}

impl LogReader {
    /// Starts the thread, which ends when this is dropped.
    fn start(options: &FollowOptions, wake: Wake) -> io::Result<Self> {
        let (holder, mut place) = (options.holder.clone(), options.peer_place.clone());
        let (requests, received) = channel::<(Box<dyn CommandLog>, LogRequest)>();
        let (read, replies) = channel();
        let run = move || {
            // In this order: the owner is woken once no reply can come.
            let woken = WakeAtEnd(wake);
            let read = read;
            while let Ok((mut log, request)) = received.recv() {
                let (after, claiming, position, question) = match request {
                    LogRequest::Halt(commands, why) => {
                        let _ = log.note_halt(&holder, commands, &why);
                        return;
                    }
                    LogRequest::Read {
                        after,
                        claiming,
                        position,
                        question,
                    } => (after, claiming, position, question),
                };
                // Nothing is sent meanwhile, since the log is here.
                let waited = received.recv_timeout(after);
                if matches!(waited, Err(RecvTimeoutError::Disconnected)) {
                    return;
                }
                let claimed = claiming.map(|claiming| claiming.make(&mut *log));
                if let Some(commands) = position {
                    // For people: the next one comes soon.
                    let _ = log.note_position(&holder, commands);
                    place.take_if(|place| log.note_peer(&holder, place) == WriteOutcome::Acked);
                }
                // A note that takes long says nothing of how fresh the answer is.
                let began = Instant::now();
                let answer = question.ask(&mut *log);
                let reply = ReadReply {
                    log,
                    times: [began, Instant::now()],
                    claimed,
                    read: answer,
                };
                if read.send(reply).is_err() {
                    return;
                }
                if let Some(wake) = &woken.0.0 {
                    wake();
                }
            }
        };
        let thread = thread::Builder::new().name("log reader".into());
        thread.spawn(run)?;
        Ok(Self {
            requests: Some(requests),
            replies,
            has_halted: false,
        })
    }

    fn send(&self, log: Box<dyn CommandLog>, request: LogRequest) {
        if let Some(requests) = &self.requests {
            // The thread ends when this is dropped.
            let _ = requests.send((log, request));
        }
    }
}

/// A replica that follows the log in real time, until it has claimed it and executed all of it.
/// Then it is the primary: the exchange writes the log.
///
/// The log may keep a caller waiting for seconds: all calls to it are made by a thread of its own.
/// The owner of the exchange, which is [woken](crate::durable::Options::wake) for that, executes
/// what was read.
pub struct FollowerDriver<S: Storage> {
    replica: Follower<S>,
    options: FollowOptions,
    /// `None` once it is the primary.
    reader: Option<LogReader>,
    silence: Silence,
    looked: LogStatus,
    /// Whether it has executed all that the log had, once.
    was_at_end: bool,
    /// Whether the last look at the log executed all of it.
    is_at_end: bool,
    /// When the log answered last.
    answered: Instant,
    noted: Option<Instant>,
    claims: u64,
    random: RandomState,
}

impl<S: Storage> fmt::Debug for FollowerDriver<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("FollowerDriver");
        shown.field("options", &self.options);
        shown.finish_non_exhaustive()
    }
}

impl<S: Storage> FollowerDriver<S> {
    /// Has an exchange, in which nothing is in flight, follow a log.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn start(
        exchange: Exchange<S>,
        log: Box<dyn CommandLog>,
        options: FollowOptions,
    ) -> Result<Self, HaltReason> {
        let wake = exchange.options.wake.clone();
        let reader = LogReader::start(&options, wake);
        let reader = reader.map_err(|error| HaltReason::Thread(error.to_string()))?;
        let mut following = Self {
            replica: Follower::new(exchange, options.kept_bytes_max),
            options,
            reader: Some(reader),
            silence: Silence::default(),
            looked: LogStatus::Nothing,
            was_at_end: false,
            is_at_end: false,
            answered: Instant::now(),
            noted: None,
            claims: 0,
            random: RandomState::new(),
        };
        following.look(log, Duration::ZERO, None);
        Ok(following)
    }

    /// Returns the exchange.
    #[must_use]
    pub const fn exchange(&self) -> &Exchange<S> {
        self.replica.exchange()
    }

    /// Returns the exchange: to ask it, or as the primary, to submit to it.
    pub const fn exchange_mut(&mut self) -> &mut Exchange<S> {
        self.replica.exchange_mut()
    }

    /// Returns the exchange: for owners that end it.
    #[must_use]
    pub fn into_exchange(self) -> Exchange<S> {
        self.replica.into_exchange()
    }

    /// Returns the present claim, as far as it is known.
    #[must_use]
    pub const fn claim(&self) -> Option<&Claim> {
        self.replica.seen()
    }

    /// Returns what was found by the last look at the log.
    #[must_use]
    pub const fn looked(&self) -> &LogStatus {
        &self.looked
    }

    /// Returns whether readers may be served: this replica has executed all that the log had, once,
    /// or knows which exchange it is and cannot get there for now, since its disk has no room or
    /// the log has not answered for 2 s.
    #[must_use]
    pub fn may_serve(&self) -> bool {
        let cannot = match self.looked {
            LogStatus::NoRoom => true,
            LogStatus::Waits(_) => self.answered.elapsed() >= SILENT,
            _ => false,
        };
        self.leads() || self.was_at_end || cannot && self.claim().is_some()
    }

    /// Returns whether all commands were executed that the log had at the last look that it
    /// answered.
    #[must_use]
    pub const fn is_at_end(&self) -> bool {
        self.is_at_end
    }

    /// Returns whether this replica is the primary.
    #[must_use]
    pub const fn leads(&self) -> bool {
        self.reader.is_none()
    }

    /// Returns figures.
    #[must_use]
    pub fn stats(&self) -> ReplicaStats {
        let exchange = self.exchange();
        let silent = match self.leads() {
            true => exchange.log_outage().map(|(time, _)| time),
            false => matches!(self.looked, LogStatus::Waits(_)).then(|| self.answered.elapsed()),
        };
        let commands = match self.leads() {
            true => exchange.journaled(),
            false => self.replica.end(),
        };
        ReplicaStats {
            leads: self.leads(),
            epoch: self.claim().map_or(0, |claim| claim.epoch),
            commands,
            lag: commands.saturating_sub(exchange.number()),
            silent_for: silent.unwrap_or_default(),
        }
    }

    /// Has the log looked at after this time, and a claim made before.
    fn look(&mut self, log: Box<dyn CommandLog>, after: Duration, claiming: Option<Claiming>) {
        let now = Instant::now();
        let is_due = |at| now.saturating_duration_since(at) >= NOTE_EVERY;
        // A take-over does not wait for it.
        let position = claiming.is_none() && self.noted.is_none_or(is_due);
        if position {
            self.noted = Some(now);
        }
        let request = LogRequest::Read {
            after,
            claiming,
            position: position.then(|| self.exchange().number()),
            question: self.replica.question(),
        };
        if let Some(reader) = &self.reader {
            reader.send(log, request);
        }
    }

    /// Executes what was read, if the log was looked at meanwhile. Claims the log where its writer
    /// is silent, and becomes the primary when that was granted and all is executed.
    ///
    /// # Errors
    /// See [`HaltReason`]; those that may pass are waited for. Nothing more is executed after one.
    pub fn turn(&mut self) -> Result<FollowOutcome, HaltReason> {
        match self.reader.as_ref().map(|reader| reader.replies.try_recv()) {
            Some(Ok(look)) => self.take(look),
            Some(Err(TryRecvError::Disconnected)) => Err(HaltReason::ReaderEnded),
            _ => Ok(FollowOutcome::Nothing),
        }
    }

    fn take(&mut self, look: ReadReply) -> Result<FollowOutcome, HaltReason> {
        if let Some(claimed) = &look.claimed {
            self.replica.note_claim(claimed);
        }
        let taken = look.read.map_err(HaltReason::from);
        let polled = taken.and_then(|read| self.replica.take(&read));
        let polled = match polled.and_then(|polled| self.may_begin(polled)) {
            Ok(polled) => polled,
            Err(halted) if halted.is_transient() => {
                self.silence.forget();
                self.looked = match halted {
                    HaltReason::NoRoom => {
                        self.answered = Instant::now();
                        LogStatus::NoRoom
                    }
                    halted => LogStatus::Waits(halted.to_string()),
                };
                self.look(look.log, LOOK_EVERY, None);
                return Ok(FollowOutcome::Executed(0));
            }
            Err(halted) => {
                let commands = self.exchange().number();
                if let Some(reader) = &mut self.reader {
                    reader.send(look.log, LogRequest::Halt(commands, halted.to_string()));
                    reader.has_halted = true;
                }
                return Err(halted);
            }
        };
        self.answered = Instant::now();
        self.is_at_end = polled.is_at_end;
        self.was_at_end |= polled.is_at_end;
        if polled.may_lead {
            let wake = self.exchange().options.wake.clone();
            // Where it gives copies may have been refused until now.
            let place = self.options.peer_place.take();
            self.replica.lead(|sequencer, queue, kept| {
                sequencer_thread::start((look.log, sequencer, queue), (kept, place), wake)
            })?;
            self.reader = None;
            return Ok(FollowOutcome::Leads);
        }
        self.looked = match polled.revision {
            Some(_) => LogStatus::Claimed,
            None => LogStatus::Unclaimed,
        };
        if look.times[0].elapsed() > self.options.takeover_timeout {
            // The log is slow: the writer's signs are as well.
            self.silence.forget();
        }
        let claiming = self.may_claim(&polled, look.times).then(|| {
            self.claims += 1;
            self.silence.forget();
            let nonce = self.random.hash_one(self.claims);
            // Another one may be faster.
            self.replica.claiming(nonce, &self.options.holder)
        });
        // A read costs etcd a round among its nodes, as a write does: followers that read one after
        // the other, while there was something new, took as much of it as the primary.
        let goes_on = polled.executed > 0 && !polled.is_at_end;
        let after = match claiming.is_some() || goes_on || self.replica.has_log() {
            true => Duration::ZERO,
            false => LOOK_EVERY,
        };
        self.look(look.log, after, claiming);
        Ok(FollowOutcome::Executed(polled.executed))
    }

    /// Refuses to make a log for a replica whose directory belongs to another one, which may have
    /// answered more than it has, or still run.
    fn may_begin(&self, polled: PollOutcome) -> Result<PollOutcome, HaltReason> {
        if polled.revision.is_none() && self.options.bootstrap {
            let own = self.replica.own_log()?;
            own.map_or(Ok(()), |own| Err(HaltReason::NoLog { own }))?;
        }
        Ok(polled)
    }

    /// Returns whether this replica may take over after a look at the log.
    fn may_claim(&mut self, polled: &PollOutcome, times: [Instant; 2]) -> bool {
        let silent_for = self.silence.note(polled.revision, times);
        match polled.revision {
            // It would end at once as the primary.
            Some(_) if self.exchange().lacks_room() => false,
            Some(_) => polled.is_complete && silent_for >= self.options.takeover_timeout,
            None => self.options.bootstrap,
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::{Arc, mpsc};

    use thalweg_journal::{Fault, Lsn, Operation, Reader};

    use super::super::log_file::{forget_log, log_of, note_log};
    use super::*;
    use crate::command::{AccountSpec, Command};
    use crate::durable::error::{ExchangeError, SubmitError};
    use crate::durable::options::{NOTE_BYTES_MAX, Notes, Options, Wake};
    use crate::durable::published::{Outcomes, Published};
    use crate::durable::record::Origin;
    use crate::durable::replication::simulation::SimLog;
    use crate::durable::{JournalOptions, SimDisk, Submission, SubmitOutcome};
    use crate::ids::UserId;
    use crate::session::{ClientSequence, Refusal, Role, SessionKey};
    use crate::snapshot::state_hash;

    const USERS: i64 = 20;
    /// A silence after which a replica takes over that a busy machine does not cause.
    const LONG: Duration = Duration::from_secs(3);

    /// Opens a replica and follows the log until it is the primary.
    fn follow_to_the_end(name: &str, log: &SimLog) -> Exchange<SimDisk> {
        follow_on(&SimDisk::new(), (name, true), log)
    }

    fn follow_on(
        disk: &SimDisk,
        (name, in_background): (&str, bool),
        log: &SimLog,
    ) -> Exchange<SimDisk> {
        let options = Options {
            journal: JournalOptions::default()
                .segment_bytes(1 << 20)
                .in_background(in_background),
            ..Options::default()
        };
        follow_with((disk, options), name, log)
    }

    pub(in super::super) fn follow_with(
        (disk, durable): (&SimDisk, Options),
        name: &str,
        log: &SimLog,
    ) -> Exchange<SimDisk> {
        follow_after(
            FollowOptions::new(name).takeover_timeout,
            (disk, durable),
            name,
            log,
        )
    }

    fn follow_after(
        takeover_timeout: Duration,
        (disk, durable): (&SimDisk, Options),
        name: &str,
        log: &SimLog,
    ) -> Exchange<SimDisk> {
        let mut options = FollowOptions::new(name);
        (options.bootstrap, options.takeover_timeout) = (name == "first", takeover_timeout);
        let mut following = driver((disk, durable), options, log);
        while following.turn().expect("it does not halt") != FollowOutcome::Leads {
            thread::yield_now();
        }
        following.into_exchange()
    }

    fn open(disk: &SimDisk, durable: Options) -> Exchange<SimDisk> {
        let opened = Exchange::open_in(disk.clone(), durable, |_| ());
        opened.expect("it opens").0
    }

    /// Opens a replica that follows the log when it has its turns.
    fn driver(
        (disk, durable): (&SimDisk, Options),
        options: FollowOptions,
        log: &SimLog,
    ) -> FollowerDriver<SimDisk> {
        let log = Box::new(log.clone());
        let following = FollowerDriver::start(open(disk, durable), log, options);
        following.expect("there are threads")
    }

    /// Gives turns to a replica until it halts, and returns why.
    fn halted(following: &mut FollowerDriver<SimDisk>) -> HaltReason {
        loop {
            match following.turn() {
                Ok(FollowOutcome::Leads) => panic!("it leads"),
                Ok(_) => thread::yield_now(),
                Err(halted) => break halted,
            }
        }
    }

    fn user(uid: i64) -> Command {
        Command::AddUser { uid: UserId(uid) }
    }

    /// Submits a user.
    fn submit(exchange: &mut Exchange<SimDisk>, uid: i64) {
        let taken = exchange.submit(Origin::Engine, &user(uid), 0);
        taken.expect("it is taken");
    }

    /// Submits a user, and waits for the answer.
    pub(in super::super) fn add(exchange: &mut Exchange<SimDisk>, uid: i64) {
        submit(exchange, uid);
        exchange.drain().expect("it is acknowledged");
    }

    /// Submits until the exchange has failed, and returns why.
    fn failed(exchange: &mut Exchange<SimDisk>, command: &Command) -> ExchangeError {
        loop {
            match exchange.submit(Origin::Engine, command, 0) {
                Err(SubmitError::Failed(failed)) => break failed,
                _ => thread::yield_now(),
            }
        }
    }

    /// Returns a primary with its log.
    fn begun() -> (SimLog, Exchange<SimDisk>) {
        let log = SimLog::well();
        let first = follow_to_the_end("first", &log);
        (log, first)
    }

    /// Returns a primary that has executed a command, with its log.
    fn primary() -> (SimLog, Exchange<SimDisk>) {
        let (log, mut first) = begun();
        add(&mut first, 1);
        (log, first)
    }

    /// Returns a primary that does not look when it is woken, with its log.
    fn unwatched() -> (SimLog, Exchange<SimDisk>) {
        let log = SimLog::well();
        let options = Options {
            wake: Wake(Some(Arc::new(|| ()))),
            ..Options::default()
        };
        let mut first = follow_with((&SimDisk::new(), options), "first", &log);
        add(&mut first, 1);
        (log, first)
    }

    /// Waits until a primary fails at its next write or heartbeat, since it was replaced.
    fn is_fenced(mut turn: impl FnMut() -> Result<(), ExchangeError>) {
        let failed = loop {
            match turn() {
                Err(failed) => break failed,
                Ok(()) => thread::yield_now(),
            }
        };
        assert!(
            matches!(failed, ExchangeError::Fenced { epoch: 1 }),
            "{failed}"
        );
    }

    fn send_numbers(outcomes: Outcomes<'_>, sender: &mpsc::Sender<String>) {
        outcomes.for_each(|one| _ = sender.send(one.outcome.sequence.to_string()));
    }

    #[test]
    fn a_follower_takes_over_and_the_former_primary_is_fenced() {
        let (log, mut first) = begun();
        let (sender, published) = mpsc::channel();
        first.publish_by(move |published| {
            if let Published::Outcomes(outcomes) = published {
                outcomes.for_each(|one| _ = sender.send(one.outcome.sequence));
            }
        });
        (0..USERS).for_each(|uid| add(&mut first, uid));
        let answered: Vec<u64> = published.try_iter().collect();
        assert_eq!(answered, (0..USERS as u64).collect::<Vec<_>>());
        let followed = log.clone();
        let disk = SimDisk::new();
        let follow = move || follow_after(LONG, (&disk, Options::default()), "second", &followed);
        let second = std::thread::spawn(follow);
        // The owner of the first does nothing; its thread shows that it lives.
        let beats = log.world().revision + 8;
        while log.world().revision < beats {
            thread::yield_now();
        }
        assert_eq!(log.world().claims, 1);
        // Nothing of the first reaches the log.
        log.world().cut_off = Some("first".to_owned());
        let mut second = second.join().expect("no panic");
        assert_eq!(
            (second.number(), second.identity()),
            (USERS as u64, first.identity())
        );
        assert_eq!(state_hash(second.state()), state_hash(first.state()));
        log.world().cut_off = None;
        let failed = failed(&mut first, &user(99));
        assert!(
            matches!(failed, ExchangeError::Fenced { epoch: 1 }),
            "{failed}"
        );
        assert_eq!(
            published.try_iter().count(),
            0,
            "nothing is answered any more"
        );
        add(&mut second, 100);
        second.close().expect("it ends in order");
    }

    #[test]
    fn commands_that_are_taken_together_reach_the_log() {
        let (log, mut first) = primary();
        let key = SessionKey::new(Role::Admin, 1, 0);
        let users: Vec<Command> = (2..202).map(user).collect();
        let submissions = (1..).zip(&users).map(|(sequence, command)| Submission {
            origin: Origin::Session {
                key,
                sequence: ClientSequence(sequence),
            },
            command,
            tag: 0,
        });
        first.submit_many(submissions, |_, taken| {
            assert!(matches!(taken, Ok(SubmitOutcome::New { .. })), "{taken:?}");
        });
        first.drain().expect("they are acknowledged");
        let hash = state_hash(first.state());
        first.close().expect("it ends in order");
        let second = follow_to_the_end("second", &log);
        assert_eq!((second.number(), state_hash(second.state())), (201, hash));
        second.close().expect("it ends in order");
    }

    /// Whether the journal makes its segments on a thread of its own.
    fn fill_the_disk(in_background: bool) {
        let log = SimLog::well();
        let disk = SimDisk::new();
        let mut first = follow_on(&disk, ("first", in_background), &log);
        add(&mut first, 1);
        (0..10_000).for_each(|_| disk.fail(Operation::Allocate, 0, Fault::Full));
        let account = |user| AccountSpec::new(UserId(user), Vec::new());
        let long = Command::AddAccounts((2..1_000).map(account).collect());
        let failed = failed(&mut first, &long);
        let text = "there is no storage space for the journal of this replica (";
        assert!(failed.to_string().starts_with(text), "{failed}");
        // It has what was answered, and takes over though the first is still there.
        let second = follow_to_the_end("second", &log);
        assert!(second.number() >= 1);
        drop(first);
        second.close().expect("it ends in order");
    }

    #[test]
    fn a_primary_whose_disk_is_full_ends_and_another_takes_over() {
        fill_the_disk(true);
        fill_the_disk(false);
    }

    #[test]
    fn a_primary_ends_where_the_log_does_not_answer() {
        let (log, mut first) = primary();
        log.world().cut_off = Some("first".to_owned());
        submit(&mut first, 2);
        let failed = first.drain_while_room().expect_err("it gives up");
        let is_silent = |failed: &ExchangeError| {
            matches!(failed, ExchangeError::LogSilent { in_flight: 1, .. })
        };
        assert!(is_silent(&failed), "{failed}");
        let failed = first.close().expect_err("it stays so");
        assert!(is_silent(&failed), "{failed}");
    }

    #[test]
    fn what_waits_is_written_though_the_owner_does_nothing_more() {
        let (log, mut first) = primary();
        log.world().cut_off = Some("first".to_owned());
        submit(&mut first, 2);
        // Its batch is under way then.
        while first.log_outage().is_none() {
            thread::yield_now();
        }
        submit(&mut first, 3);
        log.world().cut_off = None;
        let newest = || log.clone().find(u64::MAX).expect("it answers");
        while newest().is_none_or(|batch| batch.index < 2) {
            thread::yield_now();
        }
        first.drain().expect("it is acknowledged");
        first.close().expect("it ends in order");
    }

    #[test]
    fn an_idle_sequencer_is_woken_by_a_command() {
        let (log, mut first) = begun();
        // One that is not woken writes its next heartbeat before.
        let is_woken = |uid: &i64| {
            let before = log.world().revision;
            add(&mut first, *uid);
            log.world().revision == before + 1
        };
        let woken = (0..20).filter(is_woken).count();
        assert!(woken >= 5, "{woken} of 20");
    }

    #[test]
    fn a_primary_whose_owner_hangs_is_replaced() {
        let (log, mut first) = unwatched();
        let second = follow_to_the_end("second", &log);
        assert_eq!((second.number(), log.world().claims), (1, 2));
        is_fenced(|| first.drain());
    }

    #[test]
    fn a_primary_whose_disk_hangs_learns_that_it_was_replaced() {
        let (log, mut first) = unwatched();
        first.hang();
        let second = follow_to_the_end("second", &log);
        assert_eq!((second.number(), log.world().claims), (1, 2));
        is_fenced(|| first.idle().map(drop));
    }

    #[test]
    fn a_look_that_executes_all_that_there_is_is_at_the_end() {
        let (log, mut first) = begun();
        (0..2).for_each(|uid| add(&mut first, uid));
        let mut options = FollowOptions::new("second");
        options.takeover_timeout = LONG;
        let mut second = driver((&SimDisk::new(), Options::default()), options, &log);
        assert!(!second.is_at_end());
        while second.exchange().number() < 2 {
            second.turn().expect("it does not halt");
            thread::yield_now();
        }
        // Under load each look finds commands, and the replica is up to date all the same.
        assert!(second.is_at_end());
        first.close().expect("it ends in order");
    }

    #[test]
    fn a_claim_that_another_one_came_before_is_given_up_at_the_next_look() {
        let log = SimLog::well();
        drop(follow_to_the_end("first", &log));
        let mut third = Follower::new(open(&SimDisk::new(), Options::default()), 1 << 20);
        let mut reader = log.clone();
        third.poll(&mut reader).expect("it goes on");
        // Its own outcome is not known: no answer has come.
        let claiming = third.claiming(3, "third");
        assert!(third.is_claiming());
        third.poll(&mut reader).expect("it goes on");
        assert!(third.is_claiming(), "it may still be granted");
        assert!(!third.has_log(), "nothing says that it will be");
        drop(follow_to_the_end("second", &log));
        third.poll(&mut reader).expect("it goes on");
        assert!(!third.is_claiming());
        assert_eq!(claiming.make(&mut reader), WriteOutcome::Fenced);
        assert_eq!(third.claim(&mut reader, 4, "third"), WriteOutcome::Acked);
        third.poll(&mut reader).expect("it goes on");
        assert!(third.has_log());
    }

    #[test]
    fn a_replica_that_comes_late_to_its_looks_does_not_count_that_as_silence() {
        let (mut silence, start) = (Silence::default(), Instant::now());
        let at = |ms: [u64; 2]| ms.map(|ms| start + Duration::from_millis(ms));
        assert_eq!(silence.note(Some(1), at([0, 5])), Duration::ZERO);
        // However late this one is taken: the reads are 20 ms apart.
        let silent_for = silence.note(Some(1), at([25, 30]));
        assert_eq!(silent_for, Duration::from_millis(20));
        assert_eq!(silence.note(Some(2), at([50, 55])), Duration::ZERO);
        silence.forget();
        assert_eq!(silence.note(Some(2), at([900, 905])), Duration::ZERO);
    }

    #[test]
    fn a_log_of_another_version_is_not_waited_for() {
        let log = SimLog::well();
        drop(follow_to_the_end("first", &log));
        log.world().is_foreign = true;
        let mut following = second_on(&SimDisk::new(), &log);
        let halted = loop {
            match following.turn() {
                Ok(_) => {
                    assert_eq!(*following.looked(), LogStatus::Nothing, "it goes on");
                    thread::yield_now();
                }
                Err(halted) => break halted,
            }
        };
        let text = "the command log cannot be read: a claim of version 3";
        assert_eq!(halted.to_string(), text);
    }

    #[test]
    fn no_second_log_is_made_from_the_commands_of_another_one() {
        let (disk, log) = (SimDisk::new(), SimLog::well());
        let mut first = follow_on(&disk, ("first", true), &log);
        add(&mut first, 0);
        first.close().expect("it ends in order");
        let mut options = FollowOptions::new("first");
        options.bootstrap = true;
        let lost = SimLog::well();
        let mut following = driver((&disk, Options::default()), options, &lost);
        let halted = halted(&mut following);
        let number = number_of(&log);
        assert_eq!(
            halted.to_string(),
            format!(
                "the directory of this replica belongs to the command log {number:016x}, and there \
                 is none here: look for that one first; without its file command-log.thw a new log \
                 begins with its commands"
            )
        );
        drop(following);
        // As the procedure for a log that was lost has it.
        assert!(forget_log(&disk).expect("it is removed"));
        let second = follow_on(&disk, ("first", true), &lost);
        assert_ne!(number_of(&lost), number);
        assert_eq!(second.number(), 1);
        second.close().expect("it ends in order");
    }

    #[test]
    fn a_claim_is_published_before_what_was_written_under_it() {
        let (log, mut first) = begun();
        (0..2).for_each(|uid| add(&mut first, uid));
        drop(first);
        let mut second = follow_to_the_end("second", &log);
        add(&mut second, 2);
        let (sender, published) = mpsc::channel();
        let publish = move |published: Published<'_>| {
            let _ = sender.send(match published {
                Published::Following => "following".to_owned(),
                Published::Claimed { epoch, leads } => format!("claim {epoch}, leads: {leads}"),
                Published::Outcomes(outcomes) => return send_numbers(outcomes, &sender),
                _ => return,
            });
        };
        let opened = Exchange::open_in(SimDisk::new(), Options::default(), publish);
        let (exchange, _) = opened.expect("it opens");
        let mut third = Follower::new(exchange, 1 << 20);
        let mut reader = log.clone();
        while !third.poll(&mut reader).expect("it goes on").is_at_end {
            thread::yield_now();
        }
        assert_eq!(third.exchange().identity(), second.identity());
        let published: Vec<String> = published.try_iter().collect();
        let (one, two) = ("claim 1, leads: false", "claim 2, leads: false");
        assert_eq!(published, ["following", one, "0", "1", two, "2"]);
        second.close().expect("it ends in order");
    }

    #[test]
    fn a_refusal_is_final_only_when_all_that_it_is_due_to_is_in_the_log() {
        let (log, mut first) = primary();
        let key = SessionKey::new(Role::Trade, 1, 0);
        let send = |exchange: &mut Exchange<SimDisk>, sequence, uid| {
            let sequence = ClientSequence(sequence);
            exchange.submit(Origin::Session { key, sequence }, &user(uid), 0)
        };
        log.world().cut_off = Some("first".to_owned());
        let taken = send(&mut first, 6, 1);
        assert!(matches!(taken, Ok(SubmitOutcome::New { .. })), "{taken:?}");
        for (sequence, uid) in [(5, 1), (6, 2)] {
            // Another replica may have executed it, and this one does not know yet.
            let refused = send(&mut first, sequence, uid);
            let Err(SubmitError::Refused(why)) = refused else {
                panic!("{refused:?}");
            };
            assert_eq!(why, Refusal::Resources);
        }
        log.world().cut_off = None;
        first.drain().expect("it is acknowledged");
        for (sequence, uid, final_why) in [
            (5, 1, Refusal::NotExecuted),
            (6, 2, Refusal::SequenceReused),
        ] {
            let refused = send(&mut first, sequence, uid);
            let Err(SubmitError::Refused(why)) = refused else {
                panic!("{refused:?}");
            };
            assert_eq!(why, final_why);
        }
        first.close().expect("it ends in order");
    }

    #[test]
    fn a_full_disk_of_a_follower_is_no_silence_of_the_log() {
        let (log, mut first) = begun();
        let account = |user| AccountSpec::new(UserId(user), Vec::new());
        let long = Command::AddAccounts((2..1_000).map(account).collect());
        for _ in 0..150 {
            let taken = first.submit(Origin::Engine, &long, 0);
            taken.expect("it is taken");
            first.drain().expect("it is acknowledged");
        }
        let (disk, mut options) = (SimDisk::new(), FollowOptions::new("second"));
        options.takeover_timeout = LONG;
        let journal = JournalOptions::default().segment_bytes(1 << 20);
        let durable = Options {
            journal: journal.in_background(false),
            ..Options::default()
        };
        let mut following = driver((&disk, durable), options, &log);
        (0..10_000).for_each(|_| disk.fail(Operation::Allocate, 0, Fault::Full));
        while *following.looked() != LogStatus::NoRoom {
            following.turn().expect("it may pass");
            thread::yield_now();
        }
        assert_eq!(following.stats().silent_for, Duration::ZERO);
        assert!(following.may_serve());
        drop(following);
        first.close().expect("it ends in order");
    }

    #[test]
    fn a_log_that_does_not_answer_is_seen() {
        let (log, first) = primary();
        assert_eq!(first.log_outage(), None);
        log.world().cut_off = Some("first".to_owned());
        let text = loop {
            match first.log_outage() {
                Some((_, text)) => break text,
                None => thread::yield_now(),
            }
        };
        assert_eq!(text, "no answer in time");
        log.world().cut_off = None;
        while first.log_outage().is_some() {
            thread::yield_now();
        }
        first.close().expect("it ends in order");
    }

    #[test]
    fn a_directory_of_another_log_halts_even_where_its_commands_are_the_same() {
        let two = [(); 2].map(|()| (SimLog::well(), SimDisk::new()));
        for (log, disk) in &two {
            let mut first = follow_on(disk, ("first", true), log);
            add(&mut first, 1);
            first.close().expect("it ends in order");
        }
        let [(own, disk), (other, _)] = two;
        let halted = halted(&mut second_on(&disk, &other));
        let text = format!(
            "the directory of this replica belongs to the command log {:016x}, and this one is \
             {:016x}: that of another exchange, or one that was made anew",
            number_of(&own),
            number_of(&other)
        );
        assert_eq!(halted.to_string(), text);
    }

    /// Returns a replica on this disk that follows the log, and takes nothing over.
    fn second_on(disk: &SimDisk, log: &SimLog) -> FollowerDriver<SimDisk> {
        let mut options = FollowOptions::new("second");
        options.takeover_timeout = LONG;
        driver((disk, Options::default()), options, log)
    }

    fn number_of(log: &SimLog) -> u64 {
        let claim = log.clone().read(0).expect("it answers").claim;
        claim.expect("it was made").chain_start()
    }

    #[test]
    fn the_note_of_a_log_is_there_before_its_first_command() {
        let (log, first) = primary();
        let disk = SimDisk::new();
        let mut exchange = open(&disk, Options::default());
        exchange.drain().expect("it is well");
        exchange.close().expect("it ends in order");
        note_log(&disk, 7).expect("there is room");
        (0..3).for_each(|_| disk.fail(Operation::Rename, 0, Fault::Full));
        let mut second = second_on(&disk, &log);
        let mut waited = false;
        while second.exchange().number() == 0 {
            second.turn().expect("it may pass");
            waited |= *second.looked() == LogStatus::NoRoom;
            thread::yield_now();
        }
        assert_eq!(log_of(&disk).expect("it is read"), Some(number_of(&log)));
        assert!(waited, "nothing was executed before");
        drop(second);
        first.close().expect("it ends in order");
    }

    #[test]
    fn two_logs_that_go_on_from_one_state_have_two_numbers() {
        let disk = SimDisk::new();
        let numbers = [(); 2].map(|()| {
            forget_log(&disk).expect("the disk is well");
            let log = SimLog::well();
            let first = follow_on(&disk, ("first", true), &log);
            first.close().expect("it ends in order");
            assert_eq!(log_of(&disk).expect("it is read"), Some(number_of(&log)));
            number_of(&log)
        });
        assert_ne!(numbers[0], numbers[1]);
    }

    #[test]
    fn the_note_of_a_command_comes_before_its_outcome_and_is_in_every_journal() {
        let log = SimLog::well();
        let (long, disks) = (NOTE_BYTES_MAX + 1, [(); 2].map(|()| SimDisk::new()));
        let note = move |_, sequence: ClientSequence| match sequence.0 {
            1 => Some(b"first".as_slice().into()),
            2 => None,
            _ => Some(vec![7; long].into()),
        };
        let options = Options {
            notes: Notes(Some(Arc::new(note))),
            ..Options::default()
        };
        let mut first = follow_with((&disks[0], options), "first", &log);
        for number in 1..=3 {
            let key = SessionKey::new(Role::Trade, 1, 0);
            let sequence = ClientSequence(number);
            let origin = Origin::Session { key, sequence };
            let taken = first.submit(origin, &user(number as i64), 0);
            taken.expect("it is taken");
        }
        first.drain().expect("it is acknowledged");
        let (sender, published) = mpsc::channel();
        let publish = move |published: Published<'_>| {
            let _ = sender.send(match published {
                Published::Noted(note) => String::from_utf8_lossy(note).into_owned(),
                Published::Outcomes(outcomes) => return send_numbers(outcomes, &sender),
                _ => return,
            });
        };
        let opened = Exchange::open_in(disks[1].clone(), Options::default(), publish);
        let mut second = Follower::new(opened.expect("it opens").0, 1 << 20);
        while second.exchange().number() < 3 {
            second.poll(&mut log.clone()).expect("it goes on");
        }
        let published: Vec<String> = published.try_iter().collect();
        assert_eq!(published, ["first", "0", "1", "2"]);
        second.into_exchange().close().expect("it ends in order");
        first.close().expect("it ends in order");
        let records = disks.map(|disk| {
            let mut reader = Reader::open_in(disk, Lsn::FIRST).expect("it is there");
            let mut records = Vec::new();
            while let Some(block) = reader.next_block().expect("it is whole") {
                records.extend(block.bytes().map(|(_, record)| record.to_vec()));
            }
            records
        });
        assert_eq!(records[0], records[1]);
        assert!(records[0][0].ends_with(b"first"));
        assert_eq!(records[0][0].len(), records[0][1].len() + 5);
    }

    #[test]
    fn threads_that_panic_are_not_waited_for() {
        let (log, mut first) = primary();
        let mut second = second_on(&SimDisk::new(), &log);
        log.world().panics = true;
        let halted = halted(&mut second);
        let text = "the thread that reads the command log has ended: it has panicked";
        assert_eq!(halted.to_string(), text);
        submit(&mut first, 2);
        is_fenced(|| first.idle().map(drop));
    }

    #[test]
    fn an_owner_waits_neither_for_a_claim_nor_for_the_note_of_a_halt() {
        let log = SimLog::well();
        log.world().is_hung = true;
        // An owner that waited for the log would stay in its turn: only the test releases it.
        let mut options = FollowOptions::new("first");
        options.bootstrap = true;
        let mut first = driver((&SimDisk::new(), Options::default()), options, &log);
        while log.world().waited == 0 {
            first.turn().expect("it does not halt");
            thread::yield_now();
        }
        assert_eq!(first.turn().expect("it waits"), FollowOutcome::Nothing);
        log.world().is_hung = false;
        while first.turn().expect("it does not halt") != FollowOutcome::Leads {
            thread::yield_now();
        }
        log.world().is_hung = true;
        let mut other_limits = Options::default();
        other_limits.sessions.answers_kept += 1;
        let options = FollowOptions::new("other");
        let mut other = driver((&SimDisk::new(), other_limits), options, &log);
        let halted = halted(&mut other);
        assert!(log.world().is_hung && log.world().halts.is_empty());
        log.world().is_hung = false;
        drop(other);
        assert_eq!(log.world().halts, [halted.to_string()]);
        first.into_exchange().close().expect("it ends in order");
    }

    #[test]
    fn a_replica_with_other_limits_of_sessions_is_refused() {
        let (log, first) = primary();
        let mut options = Options::default();
        options.sessions.answers_kept += 1;
        let other = FollowOptions::new("other");
        let halted = halted(&mut driver((&SimDisk::new(), options), other, &log));
        assert!(matches!(halted, HaltReason::OtherLimits), "{halted}");
        first.close().expect("it ends in order");
    }
}
