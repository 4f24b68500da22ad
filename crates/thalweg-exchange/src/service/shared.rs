//! A service for clients on several threads: a driver thread receives their requests from a channel
//! and submits them, and each request carries the sender of its result.
//!
//! The publish stage sees commands in the order in which the driver submitted them. So the senders
//! of replies wait in a queue beside the pipeline: the driver appends one as it writes a slot, and
//! the publish stage takes the first one when it has published a command. A query has the sender of
//! its answer with it.
//!
//! Why a driver and not the pipeline's own
//! [producers](thalweg::pipeline::PipelineBuilder::producers): those are as many as were asked for
//! when the pipeline was built, each belongs to one thread, and the thread of the first stage
//! merges them in turn, so that commands of two clients may be executed in another order than that
//! in which they were accepted. With the stages inline, both ways have one hand-off in and one
//! back; the driver runs the stages itself. With stage threads, the driver is a hand-off more.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use thalweg::channel::{self, OneshotSender, TryRecvError, mpsc};
use thalweg::pipeline::{Failure, Placement, Stopped};
use thalweg::wait::WaitMode;
use thiserror::Error;

use super::client::{Client, Request};
use super::query::PendingQuery;
use super::reply::{FailureCell, Reply};
use super::{LEFT_OVER_TAG, OptionsError, Outcome, Service, ServiceOptions, ServiceResults};
use crate::engine::state::State;

/// Requests received from the channel together.
const ROUND: usize = 64;

/// How a [`SharedService`] runs.
///
/// # Memory
/// The queue and the pipeline's [capacity](ServiceOptions::capacity), and 64 more between the two,
/// bound the requests that were accepted and not executed. Replies are in the memory of their
/// callers, received or [pending](super::Pending): a caller that submits without waiting bounds how
/// many it keeps.
#[derive(Clone, Debug)]
pub struct SharedOptions {
    /// The pipeline behind it. Stages "on the caller" run on the driver thread.
    pub service: ServiceOptions,
    /// Requests of all clients together that wait in front of the pipeline before clients wait for
    /// room, or get [`ClientError::Full`](super::ClientError::Full); 1 to 2³⁰.
    pub queue: usize,
    /// How the driver waits for requests, and clients for room in the queue and for replies.
    pub mode: WaitMode,
}

impl Default for SharedOptions {
    /// Returns all stages on the driver thread, 1,024 requests waiting, balanced waiting.
    fn default() -> Self {
        Self {
            service: ServiceOptions::placed(Placement::inline()),
            queue: 1024,
            mode: WaitMode::Balanced,
        }
    }
}

/// Why a [`SharedService`] was not started.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StartError {
    /// ServiceOptions that the service behind it refuses.
    #[error("{0}")]
    Service(OptionsError),
    /// A queue that no channel can have.
    #[error("the queue of the service: {0}")]
    Queue(channel::BuildError),
    /// A queue of no commands.
    #[error("a queue of 0 commands; it needs 1 at least")]
    NoQueue,
    /// The system gives no thread.
    #[error("no thread for the driver of the service: {0}")]
    Thread(std::io::Error),
}

/// The senders of the replies to the commands that are in the pipeline, in its order.
type ReplySenders = Arc<Mutex<VecDeque<OneshotSender<Reply>>>>;

fn lock(senders: &ReplySenders) -> MutexGuard<'_, VecDeque<OneshotSender<Reply>>> {
    senders.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A running exchange with any number of [`Client`]s.
///
/// Dropping it is [`join`](Self::join), but for the result.
///
/// ```
/// use thalweg_exchange::service::{SharedOptions, SharedService};
/// use thalweg_exchange::{Command, ResultCode, State, UserId};
///
/// let service = SharedService::start(State::default(), SharedOptions::default(), |_| ())?;
/// let mut threads = Vec::new();
/// for uid in 0..4 {
///     let mut client = service.client();
///     threads.push(std::thread::spawn(move || {
///         client.call(&Command::AddUser { uid: UserId(uid) }).map(|reply| reply.result)
///     }));
/// }
/// for thread in threads {
///     assert_eq!(thread.join().expect("no panic")?, ResultCode::Success);
/// }
/// assert_eq!(service.join()?.state.risk.users().len(), 4);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct SharedService {
    client: Client,
    driver: Option<JoinHandle<Result<ServiceResults, Failure>>>,
}

impl SharedService {
    /// Starts an exchange from `state`, and its driver thread. `publish` is called for every
    /// command, in order, by the publish stage, before the reply is sent; the
    /// [`tag`](Outcome::tag) is 0, or [`LEFT_OVER_TAG`].
    ///
    /// # Errors
    /// ServiceOptions that are out of range, or no thread.
    pub fn start(
        state: State,
        options: SharedOptions,
        mut publish: impl FnMut(Outcome<'_>) + Send + 'static,
    ) -> Result<Self, StartError> {
        let SharedOptions {
            service,
            queue,
            mode,
        } = options;
        if queue == 0 {
            return Err(StartError::NoQueue);
        }
        let (sender, receiver) = channel::Builder::new(queue)
            .mode(mode)
            .mpsc()
            .map_err(StartError::Queue)?;
        let senders = ReplySenders::default();
        let replies = Arc::clone(&senders);
        let service = Service::start(state, service, move |outcome| {
            publish(outcome);
            if outcome.tag == LEFT_OVER_TAG {
                return;
            }
            let sender = lock(&replies).pop_front();
            let sender = sender.expect("every command has a sender");
            // The receiver may have been dropped.
            let _ = sender.send(Reply::new(&outcome));
        })
        .map_err(StartError::Service)?;
        let failure = FailureCell::default();
        let driver = Driver {
            receiver,
            batch: Vec::with_capacity(ROUND),
            senders,
            failure: Arc::clone(&failure),
        };
        let driver = std::thread::Builder::new()
            .name("exchange".into())
            .spawn(move || driver.run(service))
            .map_err(StartError::Thread)?;
        Ok(Self {
            client: Client::new(sender, failure, mode),
            driver: Some(driver),
        })
    }

    /// Returns a new client.
    #[must_use]
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// Ends the service and returns the state: executes and answers everything that was accepted.
    /// Clients get [`ClientError::Closed`](super::ClientError::Closed) from then on. Does not wait
    /// for clients to be dropped.
    ///
    /// # Errors
    /// A stage has panicked. Everything that was accepted and not answered has
    /// [`ClientError::Failed`](super::ClientError::Failed) for a result.
    ///
    /// # Panics
    /// If the driver has, which it does not.
    pub fn join(mut self) -> Result<ServiceResults, Failure> {
        self.end().expect("not ended before")
    }

    fn end(&mut self) -> Option<Result<ServiceResults, Failure>> {
        let driver = self.driver.take()?;
        self.client.close();
        Some(match driver.join() {
            Ok(finished) => finished,
            Err(panic) => std::panic::resume_unwind(panic),
        })
    }
}

impl Drop for SharedService {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.end();
        }
    }
}

/// The thread between the channel and the pipeline. The failure is set before the pipeline and this
/// are dropped, and with them the senders of all results that were not sent.
struct Driver {
    receiver: mpsc::Receiver<Request>,
    batch: Vec<Request>,
    senders: ReplySenders,
    failure: FailureCell,
}

impl Driver {
    fn run(mut self, mut service: Service) -> Result<ServiceResults, Failure> {
        let stopped = self.serve(&mut service).err();
        if let Some(failure) = stopped.and_then(|stopped| stopped.failure) {
            self.fail(failure);
        }
        self.receiver.close();
        let finished = service.join();
        if let Err(failure) = &finished {
            self.fail(failure.clone());
        }
        finished
    }

    /// Sets the failure of the service; the first one counts.
    fn fail(&self, failure: Failure) {
        let _ = self.failure.set(failure);
    }

    /// Submits what comes, until the channel is closed and empty.
    fn serve(&mut self, service: &mut Service) -> Result<(), Stopped> {
        let mut is_drained = true;
        loop {
            match self.receiver.try_recv_many(&mut self.batch, ROUND) {
                Ok(_) => {}
                // Stages on this thread run only when it drives them, and a failure is noticed
                // here only: nothing may be in flight while this waits for commands.
                Err(TryRecvError::Empty) if !is_drained => {
                    service.drain()?;
                    is_drained = true;
                    continue;
                }
                Err(TryRecvError::Empty) => match self.receiver.recv() {
                    Ok(request) => self.batch.push(request),
                    Err(_) => return Ok(()),
                },
                Err(_) => return service.drain(),
            }
            self.submit(service)?;
            is_drained = false;
        }
    }

    fn submit(&mut self, service: &mut Service) -> Result<(), Stopped> {
        let receiver = &mut self.receiver;
        self.batch.retain(|request| {
            let is_close = matches!(request, Request::Close);
            if is_close {
                receiver.close();
            }
            !is_close
        });
        let (batch, senders) = (&mut self.batch, &self.senders);
        service.pipeline.publish_batch(batch.len(), |at, slot| {
            // Requests that are not written stay in the batch, until the failure is set.
            match std::mem::replace(&mut batch[at], Request::Close) {
                Request::Command(command, sender) => {
                    slot.command = command;
                    slot.become_command(0);
                    lock(senders).push_back(sender);
                }
                Request::Query(query, sender) => {
                    slot.become_query(PendingQuery::new(query, sender));
                }
                Request::Close => unreachable!("removed above"),
            }
        })?;
        batch.clear();
        Ok(())
    }
}

impl Drop for Driver {
    /// Sets a failure if the driver panics; its fields are dropped after that.
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.fail(Failure {
                stage: "driver".into(),
                message: "the driver of the service has panicked".into(),
            });
        }
    }
}
