//! The stages that share a thread: each takes its turn over a batch, or the crew leads all of them
//! through the events together.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::control::{Control, ROUND};
use super::lanes::Merger;
use super::meter::{Chunked, Mark, Span};
use super::stage::{Batch, Context, Stage, Turn};
use super::timeline::{Samples, Timeline};
use crate::ring::broadcast::{Hand, Lent, Line, Polled, Published, Reader, Single};
use crate::ring::sync::fault;

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

/// The number of events that stages that are led take in hand: the work of a stage on the second
/// one overlaps with that of the next stage on the first, where each stage goes on from its own
/// last result, and with its own on the first where it does not. More fill the processor's window
/// with one stage; `docs/notes/stages-on-one-thread.md` has the measurement.
const HANDFUL: usize = 2;

/// How a crew is led.
#[derive(Debug, Clone, Copy)]
struct Gait {
    /// The largest number of events between two calls of [`Stage::notify`].
    pace: usize,
    /// The last stage gives each event's slot back at once.
    is_eager: bool,
}

impl<T> Crew<T> {
    /// Looks anew how the stages may be led.
    fn find_gait(&mut self) {
        let paces = self.stages.iter().map(|stage| stage.pace());
        let pace = paces.reduce(|pace, next| Some(pace?.min(next?)));
        let is_many = self.stages.len() > 1;
        let pace = pace.flatten().filter(|_| self.line.is_closed());
        let gait = pace.map(|pace| Gait {
            pace,
            is_eager: false,
        });
        self.notifies = pace.is_some_and(|pace| pace < usize::MAX);
        self.gait = gait;
        let last = self.stages.last().filter(|_| is_many);
        self.is_held = last.is_some_and(|last| last.eager_bells().is_some());
        self.bells = Box::default();
        if let (Some(gait), Some((last, others))) = (&mut self.gait, self.stages.split_last())
            && let Some(bells) = last.eager_bells()
        {
            gait.is_eager = is_many;
            self.bells = bells.into();
            // A slot that it gives back is free only when those that wait for other stages of this
            // crew are done with it too, and what is led is released later. They take turns.
            if others.iter().any(|stage| stage.pace() != Some(usize::MAX)) {
                self.gait = None;
            }
        }
        #[cfg(shuttle)]
        if crate::ring::sync::fault::is("room_late") {
            self.gait.iter_mut().for_each(|gait| gait.is_eager = false);
        }
        // Behind others, the single event need not be the one that was published last.
        self.is_ready_to_step = self.gait.is_some() && self.merge.is_none() && self.line.is_first();
    }

    /// Returns whether an event that is published and not sampled may be left to
    /// [`step`](Self::step).
    #[inline(always)]
    pub(super) fn is_ready_to_step(&self) -> bool {
        self.is_ready_to_step
    }

    /// Leads the stages through the event that was just published and is not sampled.
    /// `Some(false)`, and nothing done, unless all of them wait for it; `None` if a stage has
    /// panicked. `EACH`: others may wait for any of them.
    #[inline(always)]
    pub(super) fn step<const EACH: bool>(
        &mut self,
        published: &Published<'_, T>,
        control: &Control,
    ) -> Option<bool> {
        let Some(single) = self.line.published(published) else {
            return Some(false);
        };
        let stages = &mut self.stages[..];
        // Small enough to become part of `publish`, frame and all.
        let outcome = catch_unwind(AssertUnwindSafe(|| pass_single::<EACH, T>(single, stages)));
        if let Err(payload) = outcome {
            self.current = STEPPING;
            self.fail(control, payload);
            return None;
        }
        Some(true)
    }

    /// Works as [`step`](Self::step) for an event that is sampled.
    #[inline(never)]
    pub(super) fn step_measured(
        &mut self,
        published: &Published<'_, T>,
        control: &Control,
    ) -> Option<bool> {
        let Some(single) = self.line.published(published) else {
            return Some(false);
        };
        let (stages, timeline) = (&mut self.stages[..], &*self.timeline);
        let mut mark = Mark::default();
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            measure_single(single, stages, timeline, &mut mark);
        }));
        if let Err(payload) = outcome {
            self.current = STEPPING;
            self.fail(control, payload);
            return None;
        }
        self.over(&mut mark);
        Some(true)
    }

    /// Wakes the waiters for what was done in steps.
    #[inline(always)]
    pub(super) fn notify(&mut self) {
        if self.notifies {
            self.notify_all();
        }
    }

    #[inline(never)]
    fn notify_all(&mut self) {
        for stage in &mut self.stages {
            stage.notify();
        }
    }

    /// Leads all stages through a handful of events before the next one is begun. `None` if nothing
    /// is there that all of them can be led through, or several events for a stage that is alone.
    #[inline(always)]
    fn lead(&mut self, mark: &mut Mark) -> Option<Round> {
        self.gait.as_ref()?;
        let (next, waiting) = self.line.ahead();
        if waiting == 0 {
            return None;
        }
        let gait = self.gait?;
        if waiting == 1
            && let is_sampled = self.samples.next(next, 1).is_some()
            && let Some(single) = self.line.single()
        {
            self.current = STEPPING;
            if is_sampled {
                measure_single(single, &mut self.stages, &self.timeline, mark);
            } else {
                mark.ticks = None;
                pass_single::<true, T>(single, &mut self.stages);
            }
            self.notify();
        } else if self.stages.len() > 1 {
            self.lead_many(next, waiting.min(ROUND), gait, mark);
        } else {
            return None;
        }
        let more = waiting > ROUND;
        Some(Round::Worked { more })
    }

    #[inline(never)]
    fn lead_many(&mut self, next: u64, count: usize, gait: Gait, mark: &mut Mark) {
        let end = next + count as u64;
        let batch = Batch { count, end };
        let mut left = count;
        while left > 0 {
            let count = left.min(gait.pace);
            if gait.is_eager {
                self.steps_eagerly(count, batch, mark);
            } else {
                self.steps::<false>(count, batch, mark);
            }
            self.notify();
            left -= count;
        }
    }

    /// Works as [`steps`](Self::steps) where the last stage gives each event's slot back at once.
    #[inline(never)]
    fn steps_eagerly(&mut self, count: usize, batch: Batch, mark: &mut Mark) {
        self.steps::<true>(count, batch, mark);
    }

    /// Leads the stages through `count` events.
    #[inline(always)]
    fn steps<const EAGERLY: bool>(&mut self, count: usize, batch: Batch, mark: &mut Mark) {
        let mut walk = Walk::<T, EAGERLY> {
            stages: &mut self.stages,
            current: &mut self.current,
            control: &self.control,
            timeline: &self.timeline,
            bells: &self.bells,
            batch,
        };
        let mut lead = self.line.lead(count);
        while lead.left() > 0 {
            let next = lead.next();
            let sampled = self.samples.next(next, lead.left());
            let plain = sampled.map_or(lead.left(), |sampled| (sampled - next) as usize);
            for _ in 0..plain / HANDFUL {
                if let Some(hand) = lead.hand::<HANDFUL>() {
                    walk.pass(hand);
                }
            }
            if sampled.is_none() || plain >= HANDFUL {
                mark.ticks = None;
            }
            // A sampled event goes in the hand in which it would go anyway.
            let first = lead.next();
            if sampled.is_none() {
                for _ in 0..plain % HANDFUL {
                    if let Some(hand) = lead.hand::<1>() {
                        walk.pass(hand);
                    }
                }
            } else if let Some(hand) = lead.hand::<HANDFUL>() {
                walk.measure(first, hand, mark);
            } else if let Some(hand) = lead.hand::<1>() {
                walk.measure(first, hand, mark);
            }
        }
    }
}

/// Leads all stages through the only event that is there.
#[inline(always)]
fn pass_single<const EACH: bool, T>(single: Single<'_, T>, stages: &mut [Box<dyn Stage<T>>]) {
    single.lead::<EACH, _>(stages, |stage, sequence, event| {
        pass_one(&mut **stage, event, Context::new(sequence, sequence + 1));
    });
}

/// Works as [`pass_single`] for an event that is sampled.
#[inline(never)]
fn measure_single<T>(
    single: Single<'_, T>,
    stages: &mut [Box<dyn Stage<T>>],
    timeline: &Timeline,
    mark: &mut Mark,
) {
    single.lead::<true, _>(stages, |stage, sequence, event| {
        let begin = mark.begin(timeline);
        pass_one(&mut **stage, event, Context::new(sequence, sequence + 1));
        stage.measured(begin, Chunked::one(sequence), 1, mark);
    });
}

#[inline(always)]
fn pass_one<T>(stage: &mut dyn Stage<T>, event: Lent<'_, T>, context: Context) {
    match event {
        Lent::Look(event) => stage.look(event, context),
        Lent::Write(event) => stage.change(event, context),
    }
}

/// Stages that are led. `EAGERLY`: the last one gives each event's slot back at once.
struct Walk<'c, T, const EAGERLY: bool> {
    stages: &'c mut [Box<dyn Stage<T>>],
    current: &'c mut usize,
    control: &'c Control,
    timeline: &'c Timeline,
    /// The bells of the threads to notify of a slot that was given back.
    bells: &'c [usize],
    batch: Batch,
}

impl<T, const EAGERLY: bool> Walk<'_, T, EAGERLY> {
    /// Leads the stages through the events in the hand.
    #[inline(always)]
    fn pass<const N: usize>(&mut self, mut hand: Hand<'_, T, N>) {
        let last = self.stages.len() - 1;
        for (at, stage) in self.stages.iter_mut().enumerate() {
            *self.current = at;
            let (end, room) = (self.batch.end, (self.control, self.bells));
            work_on::<EAGERLY, T, N>(&mut hand, (at, last), &mut **stage, end, room);
        }
        hand.done();
    }

    /// Works as [`pass`](Self::pass) where one of the events, from `first` on, is sampled.
    #[inline(never)]
    fn measure<const N: usize>(&mut self, first: u64, mut hand: Hand<'_, T, N>, mark: &mut Mark) {
        let last = self.stages.len() - 1;
        let chunk = Chunked {
            first,
            count: N,
            own: N,
        };
        for (at, stage) in self.stages.iter_mut().enumerate() {
            *self.current = at;
            let (end, room) = (self.batch.end, (self.control, self.bells));
            let begin = mark.begin(self.timeline);
            work_on::<EAGERLY, T, N>(&mut hand, (at, last), &mut **stage, end, room);
            stage.measured(begin, chunk, self.batch.count, mark);
        }
        hand.done();
    }
}

/// Has the stage `at` work on the events in the hand; the last one gives each slot back at once if
/// it is to do it `EAGERLY`.
#[inline(always)]
fn work_on<const EAGERLY: bool, T, const N: usize>(
    hand: &mut Hand<'_, T, N>,
    (at, last): (usize, usize),
    stage: &mut dyn Stage<T>,
    batch_end: u64,
    (control, bells): (&Control, &[usize]),
) {
    for element in 0..N {
        hand.lend(at, element, |sequence, event| {
            pass_one(stage, event, Context::new(sequence, batch_end));
        });
        if EAGERLY && at == last {
            hand.give_back();
            notify_room(control, bells);
        }
    }
}

#[inline(always)]
fn notify_room(control: &Control, bells: &[usize]) {
    #[cfg(shuttle)]
    if crate::ring::sync::fault::is("room_unrung") {
        return;
    }
    control.ring(bells);
}

#[cfg(all(test, not(loom)))]
mod tests;
