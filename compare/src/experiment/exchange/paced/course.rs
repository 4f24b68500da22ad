//! One exchange that goes through a stream run by run, and another beside it that checks it.

use thalweg_exchange::{Command, Events, Rules, State, apply};

use super::super::flow::Flow;
use crate::sender::WARM_UP_NS;

/// Commands of a run at most; the stream has twice as many.
pub(super) const COMMANDS_MAX: usize = 400_000;

/// Where in the stream a subject is.
#[derive(Debug)]
pub(super) struct Course {
    /// Waits for the next run.
    state: Option<State>,
    /// Did the same in a plain loop.
    twin: State,
    next: usize,
    events: Events,
}

impl Course {
    /// The state for a run, and its commands: from where the last run ended, or from the tenth part
    /// of the stream on, which fills the book and warms the memory.
    pub(super) fn of<'f>(
        course: &mut Option<Self>,
        flow: &'f Flow,
        schedule: (u64, u64),
    ) -> (State, &'f [Command]) {
        let count = count(schedule);
        let goes_on = course.as_mut().and_then(|course| {
            let commands = flow.commands.get(course.next..course.next + count)?;
            Some((course.state.take()?, commands))
        });
        goes_on.unwrap_or_else(|| {
            let begin = flow.commands.len() / 10;
            let mut state = State::new(Rules::MENDED);
            let mut events = Events::with_capacity(1024);
            let lead = flow.setup.iter().chain(&flow.prefill);
            for command in lead.chain(&flow.commands[..begin]) {
                apply(&mut state, command, &mut events);
            }
            *course = Some(Self {
                state: None,
                twin: state.clone(),
                next: begin,
                events,
            });
            (state, &flow.commands[begin..begin + count])
        })
    }

    /// Takes the state back after so many commands.
    ///
    /// # Panics
    /// The book is not the one that a plain loop leaves: there is no figure then.
    pub(super) fn go_on(&mut self, state: State, done: usize, flow: &Flow) {
        for command in &flow.commands[self.next..self.next + done] {
            apply(&mut self.twin, command, &mut self.events);
        }
        self.next += done;
        flow.assert_same_levels(&state, &self.twin);
        self.state = Some(state);
    }
}

/// Commands that a schedule of a rate and a span sends, and a few more.
fn count((per_s, span_ns): (u64, u64)) -> usize {
    let span_ns = u128::from(span_ns + WARM_UP_NS);
    (u128::from(per_s) * span_ns / 1_000_000_000) as usize + 2
}
