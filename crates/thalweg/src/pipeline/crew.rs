//! The stages that share a thread.

mod led;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::control::Control;
use super::lanes::Merger;
use super::meter::{Mark, Span};
use super::stage::{Stage, Turn};
use super::timeline::{Samples, Timeline};
use crate::ring::broadcast::{Line, Polled, Reader};
use crate::ring::sync::fault;
use led::Gait;

/// How many events stages that share a thread pass on at a time: enough to pay for the turn, few
/// enough to stay in the first-level cache and not to delay the first of them.
pub(super) const ROUND: usize = 64;

/// In place of a stage: the producers' lanes were being merged, which calls the routes of sharded
/// stages.
const MERGING: usize = usize::MAX;
/// In place of a stage: one of those that are led through a single event; the line knows which.
const STEPPING: usize = usize::MAX - 1;
const MERGING_NAME: &str = "(moving events from the producers)";

/// A stage with its name and its reader, on its way to a crew.
pub(super) struct Placed<T> {
    pub(super) name: Arc<str>,
    pub(super) stage: Box<dyn Stage<T>>,
    pub(super) reader: Reader<T>,
}

/// The outcome of a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Round {
    /// Something was done; `more`: something is surely left.
    Worked { more: bool },
    /// Nothing could be done, though there are events: another thread must move first.
    Blocked,
    /// Nothing to do.
    Idle,
    /// Nothing to do any more.
    Done,
}

/// The stages of one thread in the order of the pipeline, and the merging of the producers' lanes
/// if it is this thread that does it.
pub(super) struct Crew<T> {
    names: Vec<Arc<str>>,
    stages: Vec<Box<dyn Stage<T>>>,
    /// Their readers.
    line: Line<T>,
    merge: Option<Merger<T>>,
    timeline: Arc<Timeline>,
    samples: Samples,
    /// When samples were counted for the last time.
    counted: u64,
    control: Arc<Control>,
    /// The bells of the threads that the last stage notifies of each slot that it gives back early.
    bells: Box<[usize]>,
    /// Stages that all take their events one at a time may be led through them together.
    gait: Option<Gait>,
    /// Whether there is a thread to notify after each piece.
    notifies: bool,
    /// They may be, and there is nothing else to do for a single event.
    is_ready_to_step: bool,
    /// The last stage gives each event's slot back at once, and may wait for the caller meanwhile:
    /// it does not go ahead of the others, whose share of the slots the caller may wait for.
    is_held: bool,
    /// The stage at work, for the name in an error.
    current: usize,
    /// How many events a stage that is alone takes up at a time.
    limit_alone: usize,
}

impl<T> Crew<T> {
    pub(super) fn new(timeline: &Arc<Timeline>, control: &Arc<Control>) -> Self {
        Self {
            names: Vec::new(),
            stages: Vec::new(),
            line: Line::new(),
            merge: None,
            timeline: Arc::clone(timeline),
            samples: Samples::new(Arc::clone(timeline)),
            counted: timeline.watch.now(),
            control: Arc::clone(control),
            bells: Box::default(),
            gait: None,
            notifies: false,
            is_ready_to_step: false,
            is_held: false,
            current: 0,
            limit_alone: usize::MAX,
        }
    }

    /// Returns a crew whose stages may be called back: a stage that is alone keeps to the round
    /// too, so that it looks at the hand-over after each.
    pub(super) fn on_call(timeline: &Arc<Timeline>, control: &Arc<Control>) -> Self {
        Self {
            limit_alone: ROUND,
            ..Self::new(timeline, control)
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.stages.is_empty() && self.merge.is_none()
    }

    /// Returns how many stages there are.
    pub(super) fn len(&self) -> usize {
        self.stages.len()
    }

    pub(super) fn set_merge(&mut self, merge: Merger<T>) {
        self.merge = Some(merge);
        self.find_gait();
    }

    /// Takes stages in, behind the others.
    pub(super) fn extend(&mut self, placed: impl IntoIterator<Item = Placed<T>>) {
        for placed in placed {
            self.names.push(placed.name);
            self.stages.push(placed.stage);
            self.line.push(placed.reader);
        }
        self.find_gait();
    }

    /// Lets the stages from `at` on go.
    pub(super) fn split_off(&mut self, at: usize) -> Vec<Placed<T>> {
        let (names, stages) = (self.names.split_off(at), self.stages.split_off(at));
        let readers = self.line.split_off(at);
        self.find_gait();
        let parts = names.into_iter().zip(stages).zip(readers);
        let placed = parts.map(|((name, stage), reader)| Placed {
            name,
            stage,
            reader,
        });
        placed.collect()
    }

    /// Gives every stage the bells that it must ring, where they have changed.
    pub(super) fn seat(&mut self, bells: &[usize], is_away: bool) {
        let (is_alone, is_watched) = (self.stages.len() == 1, !bells.is_empty());
        for stage in &mut self.stages {
            stage.seat(bells.into(), is_watched, is_alone, is_away);
        }
        self.find_gait();
    }

    /// Gives every stage a turn. `mark` holds the publish time if the caller has just read the
    /// clock.
    #[inline(always)]
    pub(super) fn round(&mut self, mark: &mut Mark) -> Round {
        let mut merged = false;
        if let Some(merge) = &mut self.merge {
            self.current = MERGING;
            merged = merge.merge();
        }
        let led = self.lead(mark);
        let round = led.unwrap_or_else(|| self.turns(merged, mark));
        self.over(mark);
        round
    }

    /// After a round: writes down what was measured in it.
    #[inline(always)]
    fn over(&mut self, mark: &mut Mark) {
        if let Some(now) = mark.noted.take() {
            self.count(now);
        }
    }

    #[inline(never)]
    fn count(&mut self, now: u64) {
        let span = Span {
            ticks: now.saturating_sub(self.counted),
            owed: self.stages.iter().map(|stage| stage.owed()).sum(),
        };
        self.counted = now;
        for stage in &mut self.stages {
            stage.count(span);
            stage.flush();
        }
    }

    /// Gives every stage turns until there is nothing more to do for now.
    #[inline(never)]
    pub(super) fn rounds(&mut self) -> Round {
        loop {
            let round = self.round(&mut Mark::default());
            if round != (Round::Worked { more: true }) {
                return round;
            }
        }
    }

    /// Gives each stage a turn of up to a round of events.
    #[inline(never)]
    fn turns(&mut self, merged: bool, mark: &mut Mark) -> Round {
        let limit = if self.stages.len() > 1 {
            ROUND
        } else {
            self.limit_alone
        };
        let mut any = if merged { Turn::WORKED } else { Turn::IDLE };
        let mut every = Turn::DONE;
        let held = self.held();
        let mut ceiling = u64::MAX;
        for (at, stage) in self.stages.iter_mut().enumerate() {
            self.current = at;
            let reader = self.line.reader(at);
            let turn = if held == Some(at) {
                let room = ceiling.saturating_sub(reader.next_sequence());
                held_turn(&mut **stage, reader, room.min(limit as u64), mark)
            } else {
                stage.turn(reader, limit, mark)
            };
            // One that is blocked may wait for the one that is held, and one that is done has no
            // share of any slot left.
            if !turn.is(Turn::BLOCKED.or(Turn::DONE)) {
                ceiling = ceiling.min(reader.next_sequence());
            }
            any = any.or(turn);
            every = every.and(turn);
        }
        if any.is(Turn::WORKED) {
            let more = any.is(Turn::MORE.or(Turn::BLOCKED));
            Round::Worked { more }
        } else {
            self.round_without_work(any, every)
        }
    }

    /// Returns the place of a stage that does not go ahead of the others.
    fn held(&self) -> Option<usize> {
        let is_held = self.is_held && !fault::is("last_ahead");
        is_held.then(|| self.stages.len() - 1)
    }

    #[cold]
    fn round_without_work(&self, any: Turn, every: Turn) -> Round {
        if any.is(Turn::BLOCKED) {
            Round::Blocked
        } else if any.is(Turn::MORE) {
            Round::Worked { more: true }
        } else if every.is(Turn::DONE) {
            self.merge_is_done()
        } else {
            Round::Idle
        }
    }

    /// Returns whether all stages are done; a merger without stages of its own goes on until its
    /// producers are gone.
    fn merge_is_done(&self) -> Round {
        match &self.merge {
            Some(merge) if !merge.is_done() && self.stages.is_empty() => Round::Idle,
            _ => Round::Done,
        }
    }

    /// Writes down what was measured, all of it.
    pub(super) fn flush(&mut self) {
        self.count(self.timeline.watch.now());
    }

    /// Shows how far the stages are.
    pub(super) fn show(&self) {
        self.line.show();
    }

    /// Events that wait for the first stage.
    pub(super) fn backlog(&mut self) -> usize {
        let head = self.line.readers().first_mut();
        head.map_or(0, Reader::waiting_now)
    }

    /// Returns whether a round would get anywhere.
    pub(super) fn is_ready(&mut self) -> bool {
        let held = self.held();
        self.merge.as_mut().is_some_and(|merge| merge.is_ready()) || self.has_news(held)
    }

    /// Works as [`is_ready`](Self::is_ready), and counts what the last stage is held back from.
    pub(super) fn is_undone(&mut self) -> bool {
        self.merge.as_mut().is_some_and(|merge| merge.is_ready()) || self.has_news(None)
    }

    /// Returns whether a turn of some stage would find something, or all of them the end. That of
    /// one is no news: the others may have to wait for other threads still.
    fn has_news(&mut self, held: Option<usize>) -> bool {
        let readers = self.line.readers();
        let (mut closed, mut ceiling) = (0, u64::MAX);
        for (at, reader) in readers.iter_mut().enumerate() {
            let next = reader.next_sequence();
            match reader.poll() {
                // It waits for one that has nothing.
                Polled::Ready(_) if held == Some(at) && next >= ceiling => {}
                Polled::Ready(_) => return true,
                Polled::Closed => closed += 1,
                Polled::Empty => ceiling = ceiling.min(next),
            }
        }
        closed > 0 && (closed == readers.len() || fault::is("end_of_one"))
    }

    /// Runs `work` on the crew; if a stage panics, notes the failure and lets the stages go, so
    /// that the other threads see the ring closed.
    #[inline(always)]
    pub(super) fn guarded<R>(
        &mut self,
        control: &Control,
        work: impl FnOnce(&mut Self) -> R,
    ) -> Option<R> {
        let outcome = catch_unwind(AssertUnwindSafe(|| work(self)));
        match outcome {
            Ok(result) => Some(result),
            Err(payload) => {
                self.fail(control, payload);
                None
            }
        }
    }

    #[cold]
    fn fail(&mut self, control: &Control, payload: Box<dyn std::any::Any + Send>) {
        if self.current == STEPPING {
            self.current = self.line.behind();
        }
        let name = self.names.get(self.current);
        let name = name.map_or(MERGING_NAME, |name| &**name);
        control.fail(name, payload);
        self.dismiss(control);
    }

    /// Lets the stages and the merger go, and wakes all other threads, so that they learn of it.
    /// The values that a closure holds may panic while they are dropped, and so may an event, which
    /// goes with the ring's last end: the others go all the same.
    #[cold]
    pub(super) fn dismiss(&mut self, control: &Control) {
        for placed in self.split_off(0) {
            control.let_go(&placed.name, placed.stage);
            control.let_go(&placed.name, placed.reader);
        }
        control.let_go(MERGING_NAME, self.merge.take());
        control.ring_everybody();
    }
}

/// Gives a turn to a stage that is held back: nothing, if there is no `limit` to it.
fn held_turn<T>(
    stage: &mut dyn Stage<T>,
    reader: &mut Reader<T>,
    limit: u64,
    mark: &mut Mark,
) -> Turn {
    if limit == 0 {
        mark.ticks = None;
        return Turn::IDLE;
    }
    stage.turn(reader, limit as usize, mark)
}

#[cfg(all(test, not(loom)))]
mod tests;
