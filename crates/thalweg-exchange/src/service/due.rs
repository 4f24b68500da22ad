//! Commands that count from when they were due.

use thalweg::pipeline::Stopped;

use super::Service;
use crate::command::Command;

impl Service {
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
}
