//! The stages that share a thread.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::control::Control;
use super::lanes::Merge;
use super::meter::Mark;
use super::stage::{Stage, Turn};
use super::timeline::{Samples, Timeline};
use crate::ring::broadcast::{Line, Polled, Reader};
use crate::ring::sync::fault;

/// How many events stages that share a thread pass on at a time: enough to pay for the turn, few
/// enough to stay in the first-level cache and not to delay the first of them.
pub(super) const ROUND: usize = 64;

/// Stages that are led take so many events in hand: the work of a stage on the second one overlaps
/// with that of the next stage on the first, where each stage goes on from its own last result, and
/// with its own on the first where it does not. More fill the processor's window with one stage;
/// `docs/notes/stages-on-one-thread.md` has the measurement.
const HANDFUL: usize = 2;

/// In place of a stage: the producers' lanes were being merged, which calls the routes of sharded
/// stages.
const MERGING: usize = usize::MAX;
const MERGING_NAME: &str = "(moving events from the producers)";

/// A stage with its name and its reader, on its way to a crew.
pub(super) struct Placed<T> {
    pub(super) name: Arc<str>,
    pub(super) stage: Box<dyn Stage<T>>,
    pub(super) reader: Reader<T>,
}

/// What came of a round.
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
    merge: Option<Box<dyn Merge>>,
    samples: Samples,
    control: Arc<Control>,
    /// Whom the last stage tells of each slot that it gives back early.
    bells: Box<[usize]>,
    /// Several stages that all take their events one at a time may be led through them together.
    gait: Option<Gait>,
    /// The stage at work, for the name in an error.
    current: usize,
    /// How many events a stage without company takes up at a time.
    limit_alone: usize,
}

/// How a crew is led.
#[derive(Debug, Clone, Copy)]
struct Gait {
    /// At most so many events are between two calls of [`Stage::tell`].
    pace: usize,
    /// Whether there is anybody to tell.
    is_told: bool,
    /// The last stage gives each event's slot back at once.
    is_eager: bool,
}

impl<T> Crew<T> {
    pub(super) fn new(timeline: &Arc<Timeline>, control: &Arc<Control>) -> Self {
        Self {
            names: Vec::new(),
            stages: Vec::new(),
            line: Line::new(),
            merge: None,
            samples: Samples::new(Arc::clone(timeline)),
            control: Arc::clone(control),
            bells: Box::default(),
            gait: None,
            current: 0,
            limit_alone: usize::MAX,
        }
    }

    /// A crew whose stages may be called back: a stage without company keeps to the round too, so
    /// that whoever wants it back waits for a round and not for a full ring.
    pub(super) fn on_call(timeline: &Arc<Timeline>, control: &Arc<Control>) -> Self {
        Self {
            limit_alone: ROUND,
            ..Self::new(timeline, control)
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.stages.is_empty() && self.merge.is_none()
    }

    /// How many stages there are.
    pub(super) fn len(&self) -> usize {
        self.stages.len()
    }

    pub(super) fn set_merge(&mut self, merge: Box<dyn Merge>) {
        self.merge = Some(merge);
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
        self.find_gait();
        let readers = self.line.split_off(at);
        let parts = names.into_iter().zip(stages).zip(readers);
        let placed = parts.map(|((name, stage), reader)| Placed {
            name,
            stage,
            reader,
        });
        placed.collect()
    }

    /// Tells every stage whose bells to ring, where they have changed.
    pub(super) fn seat(&mut self, bells: &[usize], is_away: bool) {
        let (is_alone, is_watched) = (self.stages.len() == 1, !bells.is_empty());
        for stage in &mut self.stages {
            stage.seat(bells.into(), is_watched, is_alone, is_away);
        }
        self.find_gait();
    }

    /// Looks anew how the stages may be led.
    fn find_gait(&mut self) {
        let paces = self.stages.iter().map(|stage| stage.pace());
        let pace = paces.reduce(|pace, next| Some(pace?.min(next?)));
        let is_many = self.stages.len() > 1;
        let gait = pace.flatten().filter(|_| is_many).map(|pace| Gait {
            pace,
            is_told: pace < usize::MAX,
            is_eager: false,
        });
        self.gait = gait;
        self.bells = Box::default();
        if let (Some(gait), Some((last, others))) = (&mut self.gait, self.stages.split_last())
            && let Some(bells) = last.eager_bells()
        {
            gait.is_eager = true;
            self.bells = bells.into();
            // A slot that it gives back is free only when those who wait for other stages of this
            // crew are done with it too, and what is led is released later. They take turns.
            if others.iter().any(|stage| stage.pace() != Some(usize::MAX)) {
                self.gait = None;
            }
        }
        #[cfg(shuttle)]
        if crate::ring::sync::fault::is("room_late") {
            self.gait.iter_mut().for_each(|gait| gait.is_eager = false);
        }
    }

    /// Gives every stage a turn. `mark` holds the publish time if the caller has just read the
    /// clock.
    #[inline]
    pub(super) fn round(&mut self, mark: &mut Mark) -> Round {
        let mut merged = false;
        if let Some(merge) = &mut self.merge {
            self.current = MERGING;
            merged = merge.merge();
        }
        let led = self.gait.and_then(|gait| self.lead(gait, mark));
        let round = led.unwrap_or_else(|| self.turns(merged, mark));
        if mark.noted {
            mark.noted = false;
            self.flush();
        }
        round
    }

    /// Leads all stages through a handful of events before the next one is begun. `None` if nothing
    /// is there that all of them can be led through.
    #[inline]
    fn lead(&mut self, gait: Gait, mark: &mut Mark) -> Option<Round> {
        let (mut next, waiting) = self.line.ahead();
        if waiting == 0 {
            return None;
        }
        let batch = waiting.min(ROUND);
        let end = next + batch as u64;
        while next < end {
            let left = (end - next) as usize;
            let sampled = self.samples.next(next, left);
            let plain = sampled.map_or(left, |sampled| (sampled - next) as usize);
            let count = plain.min(gait.pace);
            let done = if count == 0 {
                self.sample(batch, end, mark)
            } else {
                mark.ticks = None;
                self.steps(count, end, gait.is_eager)
            };
            next += done as u64;
            if gait.is_told {
                for stage in &mut self.stages {
                    stage.tell();
                }
            }
            debug_assert!(done > 0, "the line is closed and level");
            if done == 0 {
                break;
            }
        }
        let more = batch < waiting;
        Some(Round::Worked { more })
    }

    /// Leads the stages through `count` events, none of which is sampled; gives how many they were.
    #[inline(never)]
    fn steps(&mut self, count: usize, end: u64, is_eager: bool) -> usize {
        let Self {
            line,
            stages,
            current,
            control,
            bells,
            ..
        } = self;
        let last = stages.len() - 1;
        line.lead(count, HANDFUL, |hand| {
            let many = hand.count();
            for (at, stage) in stages.iter_mut().enumerate() {
                *current = at;
                if at < last || !is_eager {
                    stage.step(hand, many, at, end);
                    continue;
                }
                for _ in 0..many {
                    stage.step(hand, 1, at, end);
                    hand.give_back();
                    #[cfg(shuttle)]
                    if crate::ring::sync::fault::is("room_unrung") {
                        continue;
                    }
                    control.ring(bells);
                }
            }
        })
    }

    /// A step in which each stage is measured; gives 1, as the line is level again.
    #[inline(never)]
    fn sample(&mut self, batch: usize, end: u64, mark: &mut Mark) -> usize {
        for (at, stage) in self.stages.iter_mut().enumerate() {
            self.current = at;
            stage.sample(self.line.reader(at), batch, end, mark);
        }
        usize::from(self.line.level())
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
        for (at, stage) in self.stages.iter_mut().enumerate() {
            self.current = at;
            let turn = stage.turn(self.line.reader(at), limit, mark);
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

    /// All stages are done; a merger without stages of its own goes on until its producers are
    /// gone.
    fn merge_is_done(&self) -> Round {
        match &self.merge {
            Some(merge) if !merge.is_done() && self.stages.is_empty() => Round::Idle,
            _ => Round::Done,
        }
    }

    pub(super) fn flush(&mut self) {
        for stage in &mut self.stages {
            stage.flush();
        }
    }

    /// Events that wait for the first stage.
    pub(super) fn backlog(&mut self) -> usize {
        let head = self.line.readers().first_mut();
        head.map_or(0, Reader::waiting_now)
    }

    pub(super) fn is_ready(&mut self) -> bool {
        self.merge.as_mut().is_some_and(|merge| merge.is_ready()) || self.has_news()
    }

    /// Whether a turn of some stage would find something, or all of them the end. That of one is no
    /// news: the others may have to wait for other threads still.
    fn has_news(&mut self) -> bool {
        let readers = self.line.readers();
        let mut closed = 0;
        for reader in &mut *readers {
            match reader.poll() {
                Polled::Ready(_) => return true,
                Polled::Closed => closed += 1,
                Polled::Empty => {}
            }
        }
        closed > 0 && (closed == readers.len() || fault::is("end_of_one"))
    }

    /// Runs `work` on the crew; if a stage panics, notes the failure and lets the stages go, so
    /// that the other threads see the ring closed.
    pub(super) fn guarded<R>(
        &mut self,
        control: &Control,
        work: impl FnOnce(&mut Self) -> R,
    ) -> Option<R> {
        let outcome = catch_unwind(AssertUnwindSafe(|| work(self)));
        match outcome {
            Ok(result) => Some(result),
            Err(payload) => {
                self.fail(control, &*payload);
                None
            }
        }
    }

    #[cold]
    fn fail(&mut self, control: &Control, payload: &(dyn std::any::Any + Send)) {
        let name = self.names.get(self.current);
        let name = name.map_or(MERGING_NAME, |name| &**name);
        control.fail(name, payload);
        self.dismiss(control);
    }

    /// Lets the stages and the merger go, and wakes everybody, so that the other threads hear of
    /// it. What a closure holds may panic while it is dropped: that is a failure of its stage, and
    /// the others go all the same.
    #[cold]
    pub(super) fn dismiss(&mut self, control: &Control) {
        for placed in self.split_off(0) {
            let Placed {
                name,
                stage,
                reader,
            } = placed;
            if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(stage))) {
                control.fail(&name, &*payload);
            }
            drop(reader);
        }
        let merge = self.merge.take();
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(merge))) {
            control.fail(MERGING_NAME, &*payload);
        }
        control.ring_everybody();
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
