//! The pipelined service as an engine of the checker.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Engine;
use crate::command::Command;
use crate::engine::state::{State, apply};
use crate::event::Events;
use crate::result_code::ResultCode;
use crate::rules::Rules;
use crate::service::{OptionsError, Outcome, Service, ServiceOptions};

type Answers = Arc<Mutex<VecDeque<(ResultCode, Events)>>>;

/// Runs commands through a [`Service`], as many at once as the checker announces; the service is
/// drained before their answers are asked for, and ended for its state at each checkpoint.
///
/// Results, events, checkpoints and the final state are the service's. The changes of a single
/// command cannot be seen in a service whose risk check is ahead, so those lines are taken from a
/// state that executes the same commands one by one.
#[derive(Debug)]
pub struct ServiceEngine {
    options: ServiceOptions,
    answers: Answers,
    service: Option<Service>,
    /// The state that the last service left, while none runs.
    whole: State,
    serial: State,
}

fn lock(answers: &Answers) -> MutexGuard<'_, VecDeque<(ResultCode, Events)>> {
    answers.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ServiceEngine {
    /// Returns an empty exchange that runs as `options` say.
    ///
    /// # Errors
    /// ServiceOptions that the service refuses.
    pub fn new(rules: Rules, options: ServiceOptions) -> Result<Self, OptionsError> {
        let mut served = Self {
            options,
            answers: Answers::default(),
            service: None,
            whole: State::new(rules),
            serial: State::new(rules),
        };
        served.service = Some(served.started()?);
        Ok(served)
    }

    /// Returns a service that goes on from where the last one ended.
    fn started(&self) -> Result<Service, OptionsError> {
        let answers = Arc::clone(&self.answers);
        let options = self.options.clone();
        Service::start(self.whole.clone(), options, move |outcome: Outcome<'_>| {
            let mut events = Events::new();
            outcome.events.iter().for_each(|&event| events.push(event));
            lock(&answers).push_back((outcome.result, events));
        })
    }
}

impl Engine for ServiceEngine {
    fn ahead(&mut self, commands: &[Command]) {
        if self.service.is_none() {
            let service = self.started();
            self.service = Some(service.expect("the options were good before"));
        }
        let service = self.service.as_mut().expect("started just now");
        service
            .submit_batch(commands, |_| 0)
            .and_then(|()| service.drain())
            .expect("a stage of the service panicked");
    }

    fn execute(&mut self, command: &Command, events: &mut Events) -> ResultCode {
        apply(&mut self.serial, command, events);
        let answer = lock(&self.answers).pop_front();
        let (result, answered) = answer.expect("the service got the command before");
        *events = answered;
        result
    }

    fn state(&mut self) -> &State {
        &self.serial
    }

    fn settled(&mut self) -> &State {
        if let Some(service) = self.service.take() {
            let finished = service.join().expect("a stage of the service panicked");
            self.whole = finished.state;
        }
        &self.whole
    }
}
