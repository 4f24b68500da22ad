//! Draining and ending a pipeline.

use super::control::{CALLER, Failure};
use super::crew::Round;
use super::publish::Stopped;
use super::stats::Stats;
use super::{Intake, Pipeline};
use crate::ring::sync::{fence, order, yield_now};
use crate::state::Lifecycle;

impl<T> Pipeline<T> {
    /// Waits until everything published so far by this handle and merged from the producers' lanes
    /// has been through all stages. With other producers still at work it waits for a moment when
    /// nothing is left.
    ///
    /// # Errors
    /// The pipeline has stopped.
    pub fn drain(&mut self) -> Result<(), Stopped> {
        loop {
            let round = self.run()?;
            if self.control.failure().is_some() {
                return Err(self.control.stopped());
            }
            let drained = match &self.intake {
                Intake::Direct(direct) => direct.publisher.is_drained(),
                Intake::Lane(producer) => producer.lane.is_drained() && self.is_level(),
                Intake::Closed => true,
            };
            if drained {
                return Ok(());
            }
            if !matches!(round, Round::Worked { .. }) {
                yield_now();
            }
        }
    }

    /// Returns whether all stages have passed everything that was merged.
    fn is_level(&self) -> bool {
        let passed = self
            .figures
            .gauges
            .iter()
            .map(|gauge| gauge.progress.released());
        are_level(passed, self.control.merged())
    }

    /// Closes the pipeline, finishes everything that was published, and ends the threads. With
    /// several producers it first waits until they are dropped, and resumes them if they are
    /// paused; those not taken are dropped here.
    ///
    /// # Errors
    /// The stage that panicked. Events behind the panic have not been through all stages.
    pub fn join(mut self) -> Result<Stats, Failure> {
        self.finish();
        match self.control.failure() {
            Some(failure) => Err(failure.clone()),
            None => Ok(self.stats()),
        }
    }

    fn finish(&mut self) {
        self.producers.clear();
        match self.intake {
            // Producers may be held back, and are waited for.
            Intake::Lane(_) => {
                let state = &self.control.state;
                let _ = state.change(Lifecycle::Paused, Lifecycle::Running, "joined");
            }
            _ => self.control.enter(Lifecycle::Draining, "joined"),
        }
        if let Some(auto) = &mut self.auto {
            auto.close();
        }
        self.intake = Intake::Closed;
        self.control.ring_everybody();
        while !self.crew.is_empty() {
            match self.run() {
                Ok(Round::Worked { .. }) => {}
                Ok(Round::Blocked) if self.control.failure().is_none() => yield_now(),
                Ok(Round::Idle) => {
                    let crew = &mut self.crew;
                    self.waiter
                        .until(self.control.bell(CALLER), || crew.is_ready());
                }
                Ok(Round::Blocked | Round::Done) | Err(_) => break,
            }
        }
        self.crew.flush();
        self.crew.dismiss(&self.control);
        for thread in self.threads.drain(..) {
            // A stage thread catches its stages' panics, so there is no error left to collect.
            let _ = thread.join();
        }
        self.control.enter(Lifecycle::Stopped, "everything is done");
    }
}

/// Returns whether stages that have `passed` these numbers of events have all passed `merged`.
pub(super) fn are_level(mut passed: impl Iterator<Item = u64>, merged: u64) -> bool {
    let are_level = passed.all(|passed| passed == merged);
    // ORDERING: Acquire (order::level), pairs with the Release in `Reader::release_until`, whose
    // values `passed` has read relaxed: what the stages did is visible to the caller when `drain`
    // returns.
    fence(order::level());
    are_level
}

impl<T> Drop for Pipeline<T> {
    fn drop(&mut self) {
        // There is no caller left to be notified of a producer that never ends; see `Pipeline`.
        self.control.enter(Lifecycle::Draining, "dropped");
        self.finish();
    }
}
