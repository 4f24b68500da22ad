//! Watching and pausing a pipeline from elsewhere.

use std::sync::Arc;

use super::Pipeline;
use super::control::Control;
use super::figures::Figures;
use super::stats::Stats;
use crate::state::{ChangeError, Lifecycle, StateView};

/// Watches a pipeline and pauses its producers, from any thread, and outlives it.
///
/// ```
/// use thalweg::pipeline::{Pipeline, Placement, TryPublishError};
/// use thalweg::state::Lifecycle;
///
/// let mut pipeline = Pipeline::builder(64, || 0_u64)
///     .stage("double", |event, _| *event *= 2)
///     .placement(Placement::inline())
///     .producers(1)
///     .build()?;
/// let mut producer = pipeline.take_producers().remove(0);
/// let handle = pipeline.handle();
/// handle.pause("maintenance")?;
/// assert_eq!(producer.try_publish(|event| *event = 1), Err(TryPublishError::Paused));
/// handle.resume("done")?;
/// producer.publish(|event| *event = 1)?;
/// drop(producer);
/// pipeline.join()?;
/// handle.state().wait_for(Lifecycle::Stopped)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Handle {
    control: Arc<Control>,
    figures: Arc<Figures>,
}

shown!([] Handle, "Handle", this, "state": this.state().get());

impl Handle {
    /// Works as [`Pipeline::state`].
    pub fn state(&self) -> &StateView<Lifecycle> {
        &self.control.state
    }

    /// Works as [`Pipeline::stats`], from any thread, and without the moves of the automatic
    /// placement. Stages on the thread of the pipeline's owner may be some events, at most from one
    /// sampled event to the next, further than it says.
    pub fn stats(&self) -> Stats {
        self.figures.stats()
    }

    /// Holds back the [`Producer`](super::Producer)s: they wait, or get an error that it is paused.
    /// One that publishes at this very moment may not see it yet. Published events go on their way,
    /// and the owner may publish all the same.
    ///
    /// # Errors
    /// It is not running.
    pub fn pause(&self, why: &'static str) -> Result<(), ChangeError<Lifecycle>> {
        let state = &self.control.state;
        state.change(Lifecycle::Running, Lifecycle::Paused, why)
    }

    /// Lets the producers go on.
    ///
    /// # Errors
    /// It is not paused.
    pub fn resume(&self, why: &'static str) -> Result<(), ChangeError<Lifecycle>> {
        let state = &self.control.state;
        state.change(Lifecycle::Paused, Lifecycle::Running, why)
    }
}

impl<T> Pipeline<T> {
    /// Returns the state of the pipeline, with its last changes. It is *draining* when nothing more
    /// is taken: once it is joined and no [`Producer`](super::Producer) is left, or once it is
    /// dropped. It is *stopped* when all stages are done, or as soon as one has panicked.
    pub fn state(&self) -> &StateView<Lifecycle> {
        &self.control.state
    }

    /// Returns a handle for other threads, which may also pause the producers.
    pub fn handle(&self) -> Handle {
        Handle {
            control: Arc::clone(&self.control),
            figures: Arc::clone(&self.figures),
        }
    }
}
