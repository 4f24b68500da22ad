//! The exchange as a pipeline: execute → publish, on one thread or two.
//!
//! The execute stage owns the state and executes commands as [`apply`](crate::apply) does, in
//! order, so results and state are the engine's, whatever the placement. It prefetches the memory
//! of a chunk of commands, as [`apply_batch`](crate::apply_batch). The publish stage reports each
//! command.
//!
//! # Where the time goes
//! The pipeline counts how long commands wait for each stage and are served there:
//! [`Service::stats`]. Inside the execute stage, one command in [`ServiceOptions::sample_every`],
//! or with [`ServiceOptions::is_timed`] each, is stamped when it was checked, matched and settled:
//! [`Outcome::stamps`].
//!
//! # Work that is left over
//! What a command [leaves over](crate::State::left_over), since it had as much work as one may, is
//! executed before the next command, by further ones: each has a number and an outcome, whose
//! [`tag`](Outcome::tag) is [`LEFT_OVER_TAG`]. So a mass cancel, or the end of an auction, is done
//! when the next command is executed; who must not wait that long has a server.
//!
//! # Queries
//! Users, their open orders, books and totals can be asked for while the exchange runs:
//! [`Service::query`], [`Client::query`]. An answer is the state between two commands, and says
//! which.
//!
//! A [`Service`] has one producer, the thread that owns it: the cheapest way in. A
//! [`SharedService`] has a [`Client`] for each of any number of threads or tasks, and each command
//! a [`Reply`]. The publish stage's view of every command can be made into
//! [`market`](crate::market) data.
//!
//! ```
//! use thalweg::pipeline::Placement;
//! use thalweg_exchange::service::{ServiceOptions, Service};
//! use thalweg_exchange::{Command, ResultCode, State, UserId};
//!
//! let options = ServiceOptions::placed(Placement::threads(2));
//! let mut service = Service::start(State::default(), options, |outcome| {
//!     assert_eq!(outcome.result, ResultCode::Success);
//! })?;
//! service.submit(&Command::AddUser { uid: UserId(7) }, 0)?;
//! let finished = service.join()?;
//! assert!(finished.state.risk.user(UserId(7)).is_some());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod client;
mod prefetch;
mod query;
mod reply;
mod shared;
mod stages;
mod stamps;

use std::sync::{Arc, Mutex, PoisonError};

use thalweg::channel::oneshot;
use thalweg::pipeline::{Failure, Pipeline, Placement, SAMPLE_EVERY, Stats, Stopped};

pub use self::client::Client;
pub(crate) use self::prefetch::Prefetcher;
use self::query::PendingQuery;
pub use self::query::{Answered, Query, QueryReply};
pub use self::reply::{ClientError, Pending, Reply};
pub use self::shared::{SharedOptions, SharedService, StartError};
pub use self::stages::OptionsError;
use self::stages::Slot;
pub(crate) use self::stamps::Stamping;
pub use self::stamps::Stamps;
use crate::command::Command;
use crate::engine::state::State;
use crate::event::Events;
use crate::execution::ExecutionReports;
use crate::result_code::ResultCode;

/// The [tag](Outcome::tag) of a command that a [`Service`] executed by itself, for what others have
/// left over.
pub const LEFT_OVER_TAG: u64 = u64::MAX;

/// How a [`Service`] runs.
#[derive(Clone, Debug)]
pub struct ServiceOptions {
    /// The maximum number of commands in flight, 1 to 2³⁰, rounded up to a power of two.
    pub capacity: usize,
    /// Which threads run the stages.
    pub placement: Placement,
    /// Commands that a stage does at most before the next one sees them, 1 or more; `None` for what
    /// pipelines do. See
    /// [`PipelineBuilder::progress`](thalweg::pipeline::PipelineBuilder::progress).
    pub progress: Option<usize>,
    /// The pipeline times one command in this number at every stage (see
    /// [`PipelineBuilder::sample_every`](thalweg::pipeline::PipelineBuilder::sample_every)), and
    /// the execute stage [stamps](Outcome::stamps) one in this number.
    pub sample_every: u64,
    /// Whether every command is [stamped](Outcome::stamps). Costs three or four looks at the clock
    /// a command, some 10 ns each, and the fast path of the engine.
    pub is_timed: bool,
    /// Events for which a slot has room from the start, 64 bytes each: a command with more of them
    /// allocates. Room for this number, or for [`EVENTS_KEPT`], is kept. 0 to [`EVENTS_MAX`].
    pub events: usize,
    /// Whether the events of outcomes [list the levels](Events::with_levels) that each command
    /// changed, as [`market::Builder`](crate::market::Builder) needs them.
    pub levels: bool,
    /// The number of the first command, 0 to 2⁶³: 0, or where a service goes on after another, the
    /// number of commands before. [Outcomes](Outcome::sequence), execution reports and their trade
    /// ids, replies and answers to queries count from here.
    pub first_sequence: u64,
}

/// Events whose room, 64 bytes each, a slot of a [`Service`] keeps from one command to the next;
/// more where [`ServiceOptions::events`] says so.
///
/// Room for more is given back when the command was published: few users could else make every slot
/// keep that of the longest sweep or mass cancel. 4,096 slots keep 16 MiB. A command with more
/// events allocates anew each time, which is little beside what those cost. How many such commands
/// may be in flight: [`EVENTS_IN_FLIGHT`].
pub const EVENTS_KEPT: usize = 64;

/// Events of long commands that may wait to be published: 2²⁰, 64 MiB.
///
/// A command is long if it has more events than its slot [keeps room for](EVENTS_KEPT). While the
/// long ones that were executed and not yet published have this number of events, no further
/// command is executed: a publish stage that is slow, on another thread, could else let every slot
/// hold the events of a sweep. So what commands in flight hold is at most what slots keep, and room
/// for this number of events, and for those of the one command that reached the bound. A list that
/// grows may have room for twice as many as it holds. In a durable exchange the answers of queries
/// count too, two events an entry.
///
/// The [replies](Reply) of a [`SharedService`] have copies of their events beyond this, from when
/// a command was published until its reply is dropped.
pub const EVENTS_IN_FLIGHT: usize = 1 << 20;

/// The most [events](ServiceOptions::events) that each slot may have room for, 64 MiB.
pub const EVENTS_MAX: usize = 1 << 20;

impl ServiceOptions {
    /// Returns the default options, with the stages on these threads.
    #[must_use]
    pub fn placed(placement: Placement) -> Self {
        Self {
            placement,
            ..Self::default()
        }
    }
}

impl Default for ServiceOptions {
    /// 4,096 commands in flight, automatic placement, one command in 512 timed and more of the
    /// first ones, numbers from 0.
    fn default() -> Self {
        Self {
            capacity: 4096,
            placement: Placement::auto(),
            progress: None,
            sample_every: SAMPLE_EVERY,
            is_timed: false,
            events: 8,
            levels: false,
            first_sequence: 0,
        }
    }
}

/// The outcome of a command, as the publish stage sees it.
#[derive(Clone, Copy, Debug)]
pub struct Outcome<'o> {
    /// The command's number, from [`ServiceOptions::first_sequence`] in the order of submission.
    pub sequence: u64,
    /// The caller's own note, given with the command; or [`LEFT_OVER_TAG`].
    pub tag: u64,
    /// When it was due, given with [`submit_due`](Service::submit_due); else 0, or where a durable
    /// exchange has stamped it, when it was taken. A command for what others have left over was due
    /// when the last of these was.
    pub due: u64,
    /// The command.
    pub command: &'o Command,
    /// When it was where, if it was stamped: see [`ServiceOptions::sample_every`] and
    /// [`ServiceOptions::is_timed`].
    pub stamps: Option<&'o Stamps>,
    /// Its result.
    pub result: ResultCode,
    /// Its events, in order.
    pub events: &'o Events,
}

impl<'o> Outcome<'o> {
    /// Returns its execution reports for all users: see [`execution`](crate::execution).
    #[must_use]
    pub fn reports(&self) -> ExecutionReports<'o> {
        ExecutionReports::new(self.sequence, self.command, self.result, self.events)
    }
}

/// A running exchange.
#[derive(Debug)]
pub struct Service {
    pipeline: Pipeline<Slot>,
    /// The state, once the execute stage has ended.
    returned: Arc<Mutex<Option<State>>>,
}

/// The results of an exchange that has ended.
#[derive(Debug)]
pub struct ServiceResults {
    /// The state after the last command.
    pub state: State,
    /// Where the time went, stage by stage.
    pub stats: Stats,
}

impl Service {
    /// Starts an exchange from `state`. `publish` is called for every command, in order, by the
    /// publish stage.
    ///
    /// # Errors
    /// ServiceOptions that are out of range, or that the pipeline refuses.
    pub fn start(
        state: State,
        options: ServiceOptions,
        publish: impl FnMut(Outcome<'_>) + Send + 'static,
    ) -> Result<Self, OptionsError> {
        stages::start(state, options, publish)
    }

    /// Submits a command with a note of the caller's own, which comes back in its [`Outcome`].
    /// Waits while the pipeline is full.
    ///
    /// # Errors
    /// A stage has panicked (which means a fault in this crate, or in `publish`).
    #[inline]
    pub fn submit(&mut self, command: &Command, tag: u64) -> Result<(), Stopped> {
        self.pipeline.publish(|slot| {
            slot.command.clone_from(command);
            slot.become_command(tag);
        })
    }

    /// Submits as [`submit`](Self::submit) does a command that was due at this time, in ticks of
    /// the clock: see [`Pipeline::publish_due`](thalweg::pipeline::Pipeline::publish_due).
    ///
    /// # Errors
    /// As [`submit`](Self::submit).
    #[inline]
    pub fn submit_due(&mut self, command: &Command, due: u64, tag: u64) -> Result<(), Stopped> {
        self.pipeline.publish_due(due, |slot| {
            slot.command.clone_from(command);
            slot.become_command(tag);
            slot.due = due;
        })
    }

    /// Submits commands together, which costs less for each; `tag(at)` is the note for each.
    ///
    /// # Errors
    /// As [`submit`](Self::submit); some of the commands may have been executed.
    pub fn submit_batch(
        &mut self,
        commands: &[Command],
        mut tag: impl FnMut(usize) -> u64,
    ) -> Result<(), Stopped> {
        self.pipeline.publish_batch(commands.len(), |at, slot| {
            slot.command.clone_from(&commands[at]);
            slot.become_command(tag(at));
        })
    }

    /// Submits `count` commands that are written where they will be executed, as those that are
    /// decoded are: `write(at, command)` writes one over an older one, and gives the note for it.
    ///
    /// # Errors
    /// As [`submit`](Self::submit); some of the commands may have been executed.
    pub fn submit_with(
        &mut self,
        count: usize,
        mut write: impl FnMut(usize, &mut Command) -> u64,
    ) -> Result<(), Stopped> {
        self.pipeline.publish_batch(count, |at, slot| {
            let tag = write(at, &mut slot.command);
            slot.become_command(tag);
        })
    }

    /// Asks something, and waits for the answer: for all that was submitted before, too.
    ///
    /// ```
    /// use thalweg_exchange::service::{QueryReply, ServiceOptions, Query, Service};
    /// use thalweg_exchange::{Command, State, UserId};
    ///
    /// let mut service = Service::start(State::default(), ServiceOptions::default(), |_| ())?;
    /// service.submit(&Command::AddUser { uid: UserId(7) }, 0)?;
    /// let user = service.query(Query::User(UserId(7)))?;
    /// assert_eq!(user.sequence, 1);
    /// assert!(matches!(user.answer, QueryReply::User(user) if user.uid == UserId(7)));
    /// let unknown = service.query(Query::User(UserId(8)))?;
    /// assert!(matches!(unknown.answer, QueryReply::UnknownUser(UserId(8))));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`submit`](Self::submit).
    ///
    /// # Panics
    /// Never: without a failure, the query has been answered.
    pub fn query(&mut self, query: Query) -> Result<Answered, Stopped> {
        let (sender, mut answer) = oneshot();
        let inquiry = PendingQuery::new(query, sender);
        self.pipeline.publish(|slot| slot.become_query(inquiry))?;
        self.drain()?;
        Ok(answer.try_recv().expect("the query has passed all stages"))
    }

    /// Waits until every command submitted so far has been published.
    ///
    /// # Errors
    /// As [`submit`](Self::submit).
    pub fn drain(&mut self) -> Result<(), Stopped> {
        self.pipeline.flush()
    }

    /// Returns figures of where the time went so far, stage by stage.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.pipeline.stats()
    }

    /// Executes what was submitted, ends the threads and gives the state.
    ///
    /// # Errors
    /// A stage has panicked.
    ///
    /// # Panics
    /// Never: without a failure, the execute stage has given the state back.
    pub fn join(self) -> Result<ServiceResults, Failure> {
        let stats = self.pipeline.join()?;
        let mut returned = self.returned.lock().unwrap_or_else(PoisonError::into_inner);
        let state = returned.take().expect("the execute stage has ended");
        Ok(ServiceResults { state, stats })
    }
}
