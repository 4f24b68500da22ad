//! The part of a pipeline that all of its threads share: its state, an event count for each thread,
//! and the failure of a stage, with the errors that report it.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;

use crate::ring::sync::{AtomicU64, Ordering, fault};
use crate::state::{Lifecycle, StateCell};
use crate::wait::{EventCount, discard};

/// The largest number of events in a turn of a stage that shares its thread: enough to pay for the
/// turn, few enough to stay in the first-level cache and not to delay the first of them.
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
    pub(super) state: StateCell,
    failure: OnceLock<Failure>,
    /// Events moved from the producers' lanes into the ring.
    merged: AtomicU64,
    /// One per thread: the caller's first, then the stage threads', then the producers'.
    event_counts: Box<[EventCount]>,
}

/// The index of the thread that owns the pipeline.
pub(super) const CALLER: usize = 0;

impl Control {
    pub(super) fn new(threads: usize) -> Self {
        Self {
            state: StateCell::new("pipeline", Lifecycle::Starting),
            failure: OnceLock::new(),
            merged: AtomicU64::new(0),
            event_counts: (0..threads).map(|_| EventCount::new()).collect(),
        }
    }

    /// Changes the state, unless the transition is not declared: it is beyond that state then.
    pub(super) fn enter(&self, state: Lifecycle, why: &'static str) {
        let _ = self.state.change_to(state, why);
    }

    /// Returns whether the pipeline accepts nothing more: it has failed, or was dropped without
    /// being joined, so that it does not wait for producers. A merger that sees this sees
    /// everything that the caller published in its lane before, and checks the lanes for the last
    /// time.
    #[inline]
    pub(super) fn is_ending(&self) -> bool {
        self.state.is_within(Lifecycle::ENDING)
    }

    pub(super) fn merged(&self) -> u64 {
        // ORDERING: Relaxed; the caller has acquired the lane's release, which comes after the
        // store.
        self.merged.load(Ordering::Relaxed)
    }

    /// Sets the number of events that were merged. Only the merger calls it, before it releases the
    /// lane's slots.
    pub(super) fn set_merged(&self, events: u64) {
        // ORDERING: Relaxed; ordered by the lane's release, see `merged`.
        self.merged.store(events, Ordering::Relaxed);
    }

    pub(super) fn event_count(&self, at: usize) -> &EventCount {
        &self.event_counts[at]
    }

    /// Wakes those of these threads that sleep. It costs a load for each thread while none sleeps.
    #[inline]
    pub(super) fn notify(&self, threads: &[usize]) {
        for &at in threads {
            self.event_counts[at].notify_one();
        }
    }

    pub(super) fn notify_all(&self) {
        if fault::is("failure_unnotified") && self.failure().is_some() {
            return;
        }
        for event_count in &self.event_counts {
            event_count.notify_one();
        }
    }

    /// Records the first failure. The payload is dropped, and may panic again.
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

    /// Drops a part of a stage. If that panics, it is a failure of the stage, and unwinds no
    /// further.
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
