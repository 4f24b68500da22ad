//! The part of a pipeline that all of its threads share: its state, which threads sleep, and
//! whether a stage has failed, with the errors that say so.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;

use crate::ring::sync::{AtomicU64, Ordering, fault};
use crate::state::{Lifecycle, StateCell};
use crate::wait::{Signal, discard};

/// How many events stages that share a thread pass on at a time: enough to pay for the turn, few
/// enough to stay in the first-level cache and not to delay the first of them.
pub(super) const ROUND: usize = 64;

/// The error of a call on a pipeline that takes no more events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stopped {
    /// The stage that panicked. It is `None` where no stage did: a
    /// [`Producer`](super::Producer) outlived a pipeline that was dropped without
    /// [`join`](super::Pipeline::join).
    pub failure: Option<Failure>,
}

/// The reason why an event was not published.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum TryPublishError {
    /// Every slot holds an event that some stage still needs.
    Full,
    /// The pipeline is [paused](super::Handle::pause), and this is not its owner.
    Paused,
    /// No event will be taken any more.
    Stopped(Stopped),
}

errors! {
    Stopped {
        Self { failure: Some(failure) } => "the pipeline has stopped: {failure}";
        Self { failure: None } => "the pipeline has stopped";
    }
    TryPublishError {
        Self::Full => "the pipeline is full";
        Self::Paused => "the pipeline is paused";
        Self::Stopped(stopped) => "{stopped}";
    }
}

/// A stage panicked, and the pipeline has stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The stage's name.
    pub stage: String,
    /// The message of the panic.
    pub message: String,
}

errors!(Failure {
    Self { stage, message } => "stage {stage:?} panicked: {message}";
});

#[derive(Debug)]
pub(super) struct Control {
    pub(super) state: StateCell<Lifecycle>,
    failure: OnceLock<Failure>,
    /// Events moved from the producers' lanes into the ring.
    merged: AtomicU64,
    /// One per thread: the caller's first, then the stage threads', then the producers'.
    bells: Box<[Signal]>,
}

/// The bell of the thread that owns the pipeline.
pub(super) const CALLER: usize = 0;

impl Control {
    pub(super) fn new(bells: usize) -> Self {
        Self {
            state: StateCell::new("pipeline", Lifecycle::Starting),
            failure: OnceLock::new(),
            merged: AtomicU64::new(0),
            bells: (0..bells).map(|_| Signal::new()).collect(),
        }
    }

    /// Changes the state, unless it is beyond that.
    pub(super) fn enter(&self, state: Lifecycle, why: &'static str) {
        let _ = self.state.change_to(state, why);
    }

    /// Returns whether nothing more is taken: the pipeline has failed, or was dropped without being
    /// joined, so that producers are not waited for. A merger that sees it sees everything that the
    /// caller published in its lane before, and looks into the lanes for the last time.
    #[inline]
    pub(super) fn is_ending(&self) -> bool {
        self.state.is_within(Lifecycle::ENDING)
    }

    pub(super) fn merged(&self) -> u64 {
        // ORDERING: Relaxed; the caller has acquired the lane's release, which comes after the
        // store.
        self.merged.load(Ordering::Relaxed)
    }

    /// Only the merger calls this, before it gives the lane's slots back.
    pub(super) fn set_merged(&self, events: u64) {
        // ORDERING: Relaxed; ordered by the lane's release, see `merged`.
        self.merged.store(events, Ordering::Relaxed);
    }

    pub(super) fn bell(&self, at: usize) -> &Signal {
        &self.bells[at]
    }

    /// Wakes those of the named threads that sleep. It costs a load for each thread while none
    /// sleeps.
    #[inline]
    pub(super) fn ring(&self, bells: &[usize]) {
        for &at in bells {
            self.bells[at].notify_one();
        }
    }

    pub(super) fn ring_everybody(&self) {
        if fault::is("failure_unrung") && self.failure().is_some() {
            return;
        }
        for bell in &self.bells {
            bell.notify_one();
        }
    }

    /// Keeps the first failure. The payload is dropped, and may panic again.
    pub(super) fn fail(&self, stage: &str, payload: Box<dyn Any + Send>) {
        let message = payload
            .downcast_ref::<&str>()
            .map(|text| (*text).to_owned())
            .or_else(|| payload.downcast_ref::<String>().cloned())
            .unwrap_or_else(|| "(a payload that is not text)".to_owned());
        let _ = self.failure.set(Failure {
            stage: stage.to_owned(),
            message,
        });
        // A thread that sees that state finds the failure.
        self.enter(Lifecycle::Stopped, "a stage panicked");
        discard(payload);
    }

    /// Lets go of something of a stage's. It may panic while it is dropped: that is a failure of
    /// the stage, and goes no further.
    pub(super) fn let_go<P>(&self, stage: &str, part: P) {
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(part))) {
            self.fail(stage, payload);
        }
    }

    /// Returns the error that publishers get.
    #[cold]
    pub(super) fn stopped(&self) -> Stopped {
        let failure = self.failure().cloned();
        Stopped { failure }
    }

    pub(super) fn failure(&self) -> Option<&Failure> {
        self.failure.get()
    }
}
