//! A service for clients on several threads: one driver thread takes their commands out of a
//! channel and submits them.
//!
//! Why a driver and not the pipeline's own [producers](thalweg::pipeline::Builder::producers):
//! those are as many as were asked for when the pipeline was built, each belongs to one thread, and
//! the thread of the first stage merges them in turn, so that commands of two clients may be
//! executed in another order than that in which they were accepted. With the stages inline,
//! both ways have one hand-off in and one back;
//! the driver runs the stages itself. With stage threads, the driver is a hand-off more.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::{error, fmt};

use thalweg::channel::{self, TryRecvError, mpsc};
use thalweg::pipeline::{Failure, Placement, Stopped};
use thalweg::wait::Mode;

use super::client::{Client, ClientError, Request};
use super::office::{Answering, Office};
use super::{Finished, Options, OptionsError, Outcome, Published, Service, stages};
use crate::engine::state::State;
use crate::event::Events;
use crate::result_code::ResultCode;

/// Commands taken out of the channel together.
const ROUND: usize = 64;
/// The most that a client may have in flight.
pub const IN_FLIGHT_MAX: usize = 1 << 16;

/// How a [`SharedService`] runs.
#[derive(Clone, Debug)]
pub struct SharedOptions {
    /// The pipeline behind it. Stages "on the caller" run on the driver thread.
    pub service: Options,
    /// Commands that wait in front of the pipeline, of all clients together, before clients wait
    /// or are told [`ClientError::Full`]; 1 to 2³⁰.
    pub queue: usize,
    /// Commands and replies that one client may have in flight; 1 to [`IN_FLIGHT_MAX`]. Each
    /// takes a signal, and room for as many events as [`Options::events`] says.
    pub in_flight: usize,
    /// How the driver and the clients wait.
    pub mode: Mode,
}

impl Default for SharedOptions {
    /// All stages on the driver thread, 1,024 commands waiting, 64 in flight a client, balanced
    /// waiting.
    fn default() -> Self {
        Self {
            service: Options {
                placement: Placement::inline(),
                ..Options::default()
            },
            queue: 1024,
            in_flight: 64,
            mode: Mode::Balanced,
        }
    }
}

/// Why a [`SharedService`] was not started.
#[derive(Debug)]
#[non_exhaustive]
pub enum StartError {
    /// Options that the service behind it refuses.
    Service(OptionsError),
    /// A queue that no channel can have.
    Queue(channel::BuildError),
    /// A queue of no commands.
    NoQueue,
    /// A number of commands in flight outside 1 to [`IN_FLIGHT_MAX`].
    InFlight {
        /// What was asked for.
        asked: usize,
    },
    /// The system gives no thread.
    Thread(std::io::Error),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Service(error) => error.fmt(f),
            Self::Queue(error) => write!(f, "the queue of the service: {error}"),
            Self::NoQueue => write!(f, "a queue of 0 commands; it needs 1 at least"),
            Self::InFlight { asked } => write!(
                f,
                "{asked} commands in flight a client asked for; 1 to {IN_FLIGHT_MAX} are possible"
            ),
            Self::Thread(error) => write!(f, "no thread for the driver of the service: {error}"),
        }
    }
}

impl error::Error for StartError {}

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
    sender: mpsc::Sender<Request>,
    office: Arc<Office>,
    driver: Option<JoinHandle<Result<Finished, Failure>>>,
}

impl SharedService {
    /// Starts an exchange from `state`, and its driver thread. `publish` is called for every
    /// command, in order, by the publish stage, before the command is answered; the
    /// [`tag`](Outcome::tag) it sees is the [client's number](Client::number).
    ///
    /// # Errors
    /// Options that are out of range, or no thread.
    pub fn start(
        state: State,
        options: SharedOptions,
        mut publish: impl FnMut(Outcome<'_>) + Send + 'static,
    ) -> Result<Self, StartError> {
        let SharedOptions {
            service,
            queue,
            in_flight: asked,
            mode,
        } = options;
        if !(1..=IN_FLIGHT_MAX).contains(&asked) {
            return Err(StartError::InFlight { asked });
        }
        if queue == 0 {
            return Err(StartError::NoQueue);
        }
        let (sender, receiver) = channel::Builder::new(queue)
            // Clients bound what they have in flight themselves.
            .soft_limit(None)
            .mode(mode)
            .mpsc()
            .map_err(StartError::Queue)?;
        let office = Arc::new(Office::new(asked, service.events, mode));
        let mut answering = Answering::new(Arc::clone(&office));
        let service = stages::start(state, service, move |published| match published {
            Published::Outcome(outcome) => {
                publish(Outcome {
                    tag: Answering::client(outcome.tag),
                    ..outcome
                });
                answering.answer(
                    outcome.tag,
                    (outcome.sequence, outcome.result),
                    outcome.events,
                );
            }
            Published::Answer { tag } => {
                answering.answer(tag, (0, ResultCode::Success), &Events::new());
            }
        })
        .map_err(StartError::Service)?;
        let mut driver = Driver {
            receiver,
            batch: Vec::with_capacity(ROUND),
            farewell: Farewell(Arc::clone(&office)),
        };
        let driver = std::thread::Builder::new()
            .name("exchange".into())
            .spawn(move || driver.run(service))
            .map_err(StartError::Thread)?;
        Ok(Self {
            sender,
            office,
            driver: Some(driver),
        })
    }

    /// A new client. Allocates its places.
    #[must_use]
    pub fn client(&self) -> Client {
        Client::new(self.sender.clone(), Arc::clone(&self.office))
    }

    /// Ends the service: executes and answers everything that was accepted, tells clients
    /// [`ClientError::Closed`] from then on, and gives the state. Does not wait for clients to be
    /// dropped.
    ///
    /// # Errors
    /// A stage has panicked, and everybody who waited was told.
    ///
    /// # Panics
    /// If the driver has, which it does not.
    pub fn join(mut self) -> Result<Finished, Failure> {
        self.end().expect("not ended before")
    }

    fn end(&mut self) -> Option<Result<Finished, Failure>> {
        let driver = self.driver.take()?;
        // It fails if the driver has ended already.
        let _ = self.sender.send(Request::Close);
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

/// Tells everybody when the driver is gone, however it goes.
struct Farewell(Arc<Office>);

impl Drop for Farewell {
    fn drop(&mut self) {
        self.0.end(ClientError::Failed(Failure {
            stage: "driver".into(),
            message: "the driver of the service has panicked".into(),
        }));
    }
}

/// The thread between the channel and the pipeline.
struct Driver {
    // Dropped first to last: nothing can be sent any more when the farewell is said.
    receiver: mpsc::Receiver<Request>,
    batch: Vec<Request>,
    farewell: Farewell,
}

impl Driver {
    fn run(&mut self, mut service: Service) -> Result<Finished, Failure> {
        // A stage's panic is told by `join`, too.
        let _ = self.serve(&mut service);
        self.receiver.close();
        let finished = service.join();
        self.farewell.0.end(match &finished {
            Ok(_) => ClientError::Closed,
            Err(failure) => ClientError::Failed(failure.clone()),
        });
        finished
    }

    /// Submits what comes, until the channel is closed and empty.
    fn serve(&mut self, service: &mut Service) -> Result<(), Stopped> {
        let mut is_drained = true;
        loop {
            match self.receiver.try_recv_many(&mut self.batch, ROUND) {
                Ok(_) => {}
                // Stages on this thread run only when it drives them, and a failure is noticed
                // here only: nothing may be under way while this waits for commands.
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
        let batch = &mut self.batch;
        service
            .pipeline
            .publish_batch(batch.len(), |at, slot| match &mut batch[at] {
                Request::Command(command, tag) => {
                    std::mem::swap(&mut slot.command, command);
                    slot.become_command(*tag);
                }
                Request::Query(inquiry, tag) => slot.become_query(inquiry, *tag),
                Request::Close => {}
            })?;
        self.batch.clear();
        Ok(())
    }
}
