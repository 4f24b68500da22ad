//! The exchange as a pipeline: risk → match → settle → publish, on any number of threads.
//!
//! Results and state are those of [`apply`](crate::apply), command by command, whatever the
//! placement. The risk stage checks command *n* + 1 while settlements of earlier commands are
//! still under way, but only where that can make no difference:
//!
//! 1. A command that changes users, balances or symbols
//!    ([`Risk::is_barrier`](crate::risk::Risk::is_barrier)) is checked when everything before it is
//!    settled.
//! 2. So is a command behind an unsettled one whose settlement may lower a balance
//!    ([`Risk::settlement_may_lower`](crate::risk::Risk::settlement_may_lower)).
//! 3. Any other command is checked at once. An acceptance holds, since what is pending can only
//!    raise balances. A refusal does not: the command waits until everything before it is settled,
//!    and is checked again.
//!
//! [`risk`](crate::risk) has the proof. [`Finished::waits`] counts the commands that waited.
//!
//! A [`Service`] has one producer, the thread that owns it: the cheapest way in. A
//! [`SharedService`] has a [`Client`] for each of any number of threads or tasks, which get the
//! answers to their own commands. What the publish stage sees of every command can be made into
//! [`market`](crate::market) data.
//!
//! ```
//! use thalweg::pipeline::Placement;
//! use thalweg_exchange::service::{Options, Service};
//! use thalweg_exchange::{Command, ResultCode, State, UserId};
//!
//! let options = Options { placement: Placement::threads(2), ..Options::default() };
//! let mut service = Service::start(State::default(), options, |outcome| {
//!     assert_eq!(outcome.result, ResultCode::Success);
//! })?;
//! service.submit(&Command::AddUser { uid: UserId(7) }, 0)?;
//! let finished = service.join()?;
//! assert!(finished.state.risk.user(UserId(7)).is_some());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod client;
mod desk;
mod ledger;
mod loan;
mod office;
mod shared;
#[cfg(test)]
mod simulation;
mod ticket;

use std::sync::{Arc, Mutex, PoisonError};

use thalweg::pipeline::{BuildError, Failure, Pipeline, Placement, Stats, Stopped};

pub use self::client::{Client, ClientError};
use self::ledger::{Ledger, lock};
use self::loan::Loan;
pub use self::shared::{IN_FLIGHT_MAX, SharedOptions, SharedService, StartError};
pub use self::ticket::{Reply, Ticket};
use crate::command::Command;
use crate::event::{Event, Events};
use crate::result_code::ResultCode;
use crate::state::State;

/// How a [`Service`] runs.
#[derive(Clone, Debug)]
pub struct Options {
    /// Commands in flight at most, at least; rounded up to a power of two. 1 to 2³⁰.
    pub capacity: usize,
    /// Which threads run the stages.
    pub placement: Placement,
    /// One command in so many is timed at every stage; see
    /// [`Builder::sample_every`](thalweg::pipeline::Builder::sample_every).
    pub sample_every: u64,
    /// The longest list of events that a command can have without allocation, while warming up.
    pub events: usize,
}

impl Default for Options {
    /// 4,096 commands in flight, automatic placement, one command in 64 timed.
    fn default() -> Self {
        Self {
            capacity: 4096,
            placement: Placement::auto(),
            sample_every: 64,
            events: 8,
        }
    }
}

/// What came of a command, as the publish stage sees it.
#[derive(Clone, Copy, Debug)]
pub struct Outcome<'o> {
    /// The command's number, from 0 in the order of submission.
    pub sequence: u64,
    /// The caller's own note, given with the command.
    pub tag: u64,
    /// The command.
    pub command: &'o Command,
    /// Its result.
    pub result: ResultCode,
    /// Its events, in order.
    pub events: &'o [Event],
}

/// A command on its way through the stages.
#[derive(Debug)]
struct Slot {
    command: Command,
    tag: u64,
    checked: ResultCode,
    result: ResultCode,
    events: Events,
}

/// A running exchange.
#[derive(Debug)]
pub struct Service {
    pipeline: Pipeline<Slot>,
    ledger: Arc<Mutex<Ledger>>,
    matching: Arc<Mutex<Option<crate::matching::Matching>>>,
}

/// What an exchange leaves when it ends.
#[derive(Debug)]
pub struct Finished {
    /// The state after the last command.
    pub state: State,
    /// Where the time went, stage by stage.
    pub stats: Stats,
    /// Commands whose risk check had to wait for earlier settlements.
    pub waits: u64,
}

impl Service {
    /// Starts an exchange from `state`. `publish` is called for every command, in order, by the
    /// publish stage.
    ///
    /// # Errors
    /// Options that the pipeline refuses.
    pub fn start(
        state: State,
        options: Options,
        mut publish: impl FnMut(Outcome<'_>) + Send + 'static,
    ) -> Result<Self, BuildError> {
        let ledger = Arc::new(Mutex::new(Ledger::new(state.risk)));
        let (check, settle) = (Arc::clone(&ledger), Arc::clone(&ledger));
        let returned = Arc::new(Mutex::new(None));
        let mut matching = Loan::new(state.matching, &returned);
        let events = options.events;
        let slot = move || Slot {
            command: Command::Nop,
            tag: 0,
            checked: ResultCode::New,
            result: ResultCode::New,
            events: Events::with_capacity(events),
        };
        let pipeline = Pipeline::builder(options.capacity, slot)
            .stage_chunks("risk", move |chunk| {
                let mut ledger = lock(&check);
                chunk.try_for_each(|slot: &mut Slot, context| {
                    ledger.check(&slot.command, context.sequence(), &mut slot.checked)
                })
            })
            .stage("match", move |slot, _| {
                slot.result = matching.get(|matching| {
                    matching.execute(&slot.command, slot.checked, &mut slot.events)
                });
            })
            .after("risk")
            .stage_chunks("settle", move |chunk| {
                let mut ledger = lock(&settle);
                chunk.for_each(|slot: &mut Slot, context| {
                    ledger.settle(&slot.command, slot.result, &slot.events, context.sequence());
                })
            })
            .after("match")
            .observe("publish", move |slot: &Slot, context| {
                publish(Outcome {
                    sequence: context.sequence(),
                    tag: slot.tag,
                    command: &slot.command,
                    result: slot.result,
                    events: &slot.events,
                });
            })
            .after("settle")
            .placement(options.placement)
            .sample_every(options.sample_every)
            .build()?;
        Ok(Self {
            pipeline,
            ledger,
            matching: returned,
        })
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
            slot.tag = tag;
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
            slot.tag = tag(at);
        })
    }

    /// Waits until every command submitted so far has been published.
    ///
    /// # Errors
    /// As [`submit`](Self::submit).
    pub fn drain(&mut self) -> Result<(), Stopped> {
        self.pipeline.drain()
    }

    /// Where the time went so far, stage by stage.
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
    /// Never: without a failure, the stages have given their parts of the state back.
    pub fn join(self) -> Result<Finished, Failure> {
        let stats = self.pipeline.join()?;
        let matching = self
            .matching
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let matching = matching.expect("the match stage has ended and returned its books");
        let ledger = Arc::into_inner(self.ledger).expect("all stages have ended");
        let ledger = ledger.into_inner().unwrap_or_else(PoisonError::into_inner);
        let waits = ledger.waits();
        let state = State {
            risk: ledger.into_risk(),
            matching,
        };
        Ok(Finished {
            state,
            stats,
            waits,
        })
    }
}
