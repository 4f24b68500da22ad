//! The stages that share a thread. Either they take turns, and each processes a batch, or they *run
//! to completion*: a few events pass all stages before the next ones are begun.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::control::{Control, ROUND};
use super::lanes::Merger;
use super::meter::{Chunked, Mark, Span};
use super::stage::{Batch, Context, Stage, Turn};
use super::timeline::{Samples, Timeline};
use crate::ring::broadcast::{Availability, Lent, Loan, Published, Reader, ReaderChain, Single};
use crate::ring::sync::fault;

/// Stands for the merger in place of a stage: it calls the routes of sharded stages.
const MERGING: usize = usize::MAX;
/// Stands for one of the stages that a single event passes; the chain knows which.
const STEPPING: usize = usize::MAX - 1;
const MERGING_STAGE: &str = "(moving events from the producers)";

/// A stage with its name and its reader, for a group.
pub(super) struct Placed<T> {
    pub(super) name: Arc<str>,
    pub(super) stage: Box<dyn Stage<T>>,
    pub(super) reader: Reader<T>,
}

/// The outcome of a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Round {
    /// Events were processed; `more`: others are known to wait.
    Worked { more: bool },
    /// No event could be processed, though some wait: they wait for another thread.
    Blocked,
    /// No event waits.
    Idle,
    /// No event will come any more.
    Done,
}

/// The stages of one thread in the order of the pipeline, and the merger of the producers' lanes
/// where this thread has it.
pub(super) struct StageGroup<T> {
    names: Vec<Arc<str>>,
    stages: Vec<Box<dyn Stage<T>>>,
    /// Their readers.
    chain: ReaderChain<T>,
    merge: Option<Merger<T>>,
    timeline: Arc<Timeline>,
    samples: Samples,
    /// The time when samples were counted last, in ticks.
    counted: u64,
    control: Arc<Control>,
    /// The threads that the last stage notifies of each slot that it gives back early.
    waiters: Box<[usize]>,
    /// How the stages run to completion; `None` where they can only take turns.
    run_mode: Option<RunMode>,
    /// Another thread must be notified after each run.
    notifies: bool,
    /// The stages run to completion, and a single event needs nothing else.
    is_ready_to_step: bool,
    /// The last stage gives each event's slot back at once, and may then wait for the caller: so it
    /// does not get ahead of the other stages, which hold slots that the caller may wait for.
    is_held: bool,
    /// The stage at work, for the name in an error.
    current: usize,
    /// The largest number of events in one turn of a stage that is alone.
    limit_alone: usize,
}

impl<T> StageGroup<T> {
    pub(super) fn new(timeline: &Arc<Timeline>, control: &Arc<Control>) -> Self {
        Self {
            names: Vec::new(),
            stages: Vec::new(),
            chain: ReaderChain::new(),
            merge: None,
            timeline: Arc::clone(timeline),
            samples: Samples::new(Arc::clone(timeline)),
            counted: timeline.watch.now(),
            control: Arc::clone(control),
            waiters: Box::default(),
            run_mode: None,
            notifies: false,
            is_ready_to_step: false,
            is_held: false,
            current: 0,
            limit_alone: usize::MAX,
        }
    }

    /// Returns a group whose stages may be recalled: a stage that is alone, too, processes at most
    /// a round at a time, so that the thread checks the hand-over after each.
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
        self.choose_run_mode();
    }

    /// Appends stages.
    pub(super) fn extend(&mut self, placed: impl IntoIterator<Item = Placed<T>>) {
        for placed in placed {
            self.names.push(placed.name);
            self.stages.push(placed.stage);
            self.chain.push(placed.reader);
        }
        self.choose_run_mode();
    }

    /// Removes and returns the stages from index `at` on.
    pub(super) fn split_off(&mut self, at: usize) -> Vec<Placed<T>> {
        let (names, stages) = (self.names.split_off(at), self.stages.split_off(at));
        let readers = self.chain.split_off(at);
        self.choose_run_mode();
        let parts = names.into_iter().zip(stages).zip(readers);
        let placed = parts.map(|((name, stage), reader)| Placed {
            name,
            stage,
            reader,
        });
        placed.collect()
    }

    /// Sets the threads that every stage notifies, after they have changed.
    pub(super) fn attach(&mut self, waiters: &[usize], is_away: bool) {
        let (is_alone, is_watched) = (self.stages.len() == 1, !waiters.is_empty());
        for stage in &mut self.stages {
            stage.attach(waiters.into(), is_watched, is_alone, is_away);
        }
        self.choose_run_mode();
    }

    /// Runs every stage once. `mark` holds the publish time if the caller has just read the clock.
    #[inline(always)]
    pub(super) fn round(&mut self, mark: &mut Mark) -> Round {
        let mut merged = false;
        if let Some(merge) = &mut self.merge {
            self.current = MERGING;
            merged = merge.merge();
        }
        let ran = self.run(mark);
        let round = ran.unwrap_or_else(|| self.turns(merged, mark));
        self.end_round(mark);
        round
    }

    /// Ends a round: records the samples that were taken in it.
    #[inline(always)]
    fn end_round(&mut self, mark: &mut Mark) {
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

    /// Runs rounds until no event is known to wait.
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
            let reader = self.chain.reader(at);
            let turn = if held == Some(at) {
                let room = ceiling.saturating_sub(reader.next_sequence());
                held_turn(&mut **stage, reader, room.min(limit as u64), mark)
            } else {
                stage.turn(reader, limit, mark)
            };
            // A stage that is blocked may wait for the one that is held, and one that is done holds
            // no slot any more.
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

    /// Returns the index of the stage that must not get ahead of the others, if there is one.
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

    /// Returns whether the group is done, where its stages are: a merger without stages continues
    /// until its producers are gone.
    fn merge_is_done(&self) -> Round {
        match &self.merge {
            Some(merge) if !merge.is_done() && self.stages.is_empty() => Round::Idle,
            _ => Round::Done,
        }
    }

    /// Records all samples.
    pub(super) fn flush(&mut self) {
        self.count(self.timeline.watch.now());
    }

    /// Publishes the progress of the stages.
    pub(super) fn publish_progress(&self) {
        self.chain.publish_progress();
    }

    /// Returns the number of events that wait for the first stage.
    pub(super) fn backlog(&mut self) -> usize {
        let head = self.chain.readers().first_mut();
        head.map_or(0, Reader::waiting_now)
    }

    /// Returns whether a round would process something.
    pub(super) fn is_ready(&mut self) -> bool {
        let held = self.held();
        self.merge.as_mut().is_some_and(|merge| merge.is_ready()) || self.has_news(held)
    }

    /// Works as [`is_ready`](Self::is_ready), and also counts events that the held stage leaves to
    /// later.
    pub(super) fn is_undone(&mut self) -> bool {
        self.merge.as_mut().is_some_and(|merge| merge.is_ready()) || self.has_news(None)
    }

    /// Returns whether a turn of some stage would find an event, or all stages have come to the
    /// end. The end of one stage is not enough: the others may still wait for other threads.
    fn has_news(&mut self, held: Option<usize>) -> bool {
        let readers = self.chain.readers();
        let (mut closed, mut ceiling) = (0, u64::MAX);
        for (at, reader) in readers.iter_mut().enumerate() {
            let next = reader.next_sequence();
            match reader.poll() {
                // It waits for a stage that has no event.
                Availability::Ready(_) if held == Some(at) && next >= ceiling => {}
                Availability::Ready(_) => return true,
                Availability::Closed => closed += 1,
                Availability::Empty => ceiling = ceiling.min(next),
            }
        }
        closed > 0 && (closed == readers.len() || fault::is("end_of_one"))
    }

    /// Runs `work` on the group; if a stage panics, records the failure and drops the stages, so
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
            self.current = self.chain.behind();
        }
        let name = self.names.get(self.current);
        let name = name.map_or(MERGING_STAGE, |name| &**name);
        control.fail(name, payload);
        self.dismiss(control);
    }

    /// Drops the stages and the merger, and wakes all other threads, so that they see it. The
    /// values that a closure holds may panic while they are dropped, and so may an event, which is
    /// dropped with the ring's last end: the others are dropped all the same.
    #[cold]
    pub(super) fn dismiss(&mut self, control: &Control) {
        for placed in self.split_off(0) {
            control.let_go(&placed.name, placed.stage);
            control.let_go(&placed.name, placed.reader);
        }
        control.let_go(MERGING_STAGE, self.merge.take());
        control.notify_all();
    }
}

/// Gives a turn to a stage that is held back: none if `limit` is 0.
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

/// The number of events that a stage processes before the next stage gets them, in a run to
/// completion: its work on the second one overlaps with that of the next stage on the first, where
/// each stage depends on its own last result, and with its own work on the first where it does not.
/// More would fill the processor's window with one stage; `docs/notes/stages-on-one-thread.md` has
/// the measurement.
const LOAN: usize = 2;

/// How a group runs to completion.
#[derive(Debug, Clone, Copy)]
struct RunMode {
    /// The largest number of events between two calls of [`Stage::notify`].
    notify_interval: usize,
    /// The last stage gives each event's slot back at once.
    is_eager: bool,
}

impl<T> StageGroup<T> {
    /// Decides anew whether the stages run to completion, and how.
    fn choose_run_mode(&mut self) {
        let intervals = self.stages.iter().map(|stage| stage.notify_interval());
        let interval = intervals.reduce(|interval, next| Some(interval?.min(next?)));
        let is_many = self.stages.len() > 1;
        let interval = interval.flatten().filter(|_| self.chain.can_run());
        let run_mode = interval.map(|notify_interval| RunMode {
            notify_interval,
            is_eager: false,
        });
        self.notifies = interval.is_some_and(|interval| interval < usize::MAX);
        self.run_mode = run_mode;
        let last = self.stages.last().filter(|_| is_many);
        self.is_held = last.is_some_and(|last| last.eager_waiters().is_some());
        self.waiters = Box::default();
        if let (Some(run_mode), Some((last, others))) =
            (&mut self.run_mode, self.stages.split_last())
            && let Some(waiters) = last.eager_waiters()
        {
            run_mode.is_eager = is_many;
            self.waiters = waiters.into();
            // A slot that the last stage gives back is free only when threads that wait for other
            // stages of this group are done with it, and a run releases events later. So the stages
            // take turns.
            if others
                .iter()
                .any(|stage| stage.notify_interval() != Some(usize::MAX))
            {
                self.run_mode = None;
            }
        }
        #[cfg(shuttle)]
        if crate::ring::sync::fault::is("room_late") {
            self.run_mode
                .iter_mut()
                .for_each(|run_mode| run_mode.is_eager = false);
        }
        // Behind stages of other threads, a single event need not be the last one published.
        self.is_ready_to_step =
            self.run_mode.is_some() && self.merge.is_none() && self.chain.is_first();
    }

    /// Returns whether [`step`](Self::step) may process an event that is published and not sampled.
    #[inline(always)]
    pub(super) fn is_ready_to_step(&self) -> bool {
        self.is_ready_to_step
    }

    /// Has all stages process the event that was just published and is not sampled. Returns
    /// `Some(false)`, and does nothing, unless all of them wait for it; `None` if a stage has
    /// panicked. `EACH`: other threads may wait for any of the stages.
    #[inline(always)]
    pub(super) fn step<const EACH: bool>(
        &mut self,
        published: &Published<'_, T>,
        control: &Control,
    ) -> Option<bool> {
        let Some(single) = self.chain.published(published) else {
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
        let Some(single) = self.chain.published(published) else {
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
        self.end_round(&mut mark);
        Some(true)
    }

    /// Wakes the threads that wait for events that have passed.
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

    /// Runs the stages to completion: a few events pass all of them before the next ones. Returns
    /// `None` if there is no event with which they can run, or several for a stage that is alone.
    #[inline(always)]
    fn run(&mut self, mark: &mut Mark) -> Option<Round> {
        self.run_mode.as_ref()?;
        let (next, waiting) = self.chain.ahead();
        if waiting == 0 {
            return None;
        }
        let run_mode = self.run_mode?;
        if waiting == 1
            && let is_sampled = self.samples.next(next, 1).is_some()
            && let Some(single) = self.chain.single()
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
            self.run_many(next, waiting.min(ROUND), run_mode, mark);
        } else {
            return None;
        }
        let more = waiting > ROUND;
        Some(Round::Worked { more })
    }

    #[inline(never)]
    fn run_many(&mut self, next: u64, count: usize, run_mode: RunMode, mark: &mut Mark) {
        let end = next + count as u64;
        let batch = Batch { count, end };
        let mut left = count;
        while left > 0 {
            let count = left.min(run_mode.notify_interval);
            if run_mode.is_eager {
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

    /// Has the stages process `count` events.
    #[inline(always)]
    fn steps<const EAGERLY: bool>(&mut self, count: usize, batch: Batch, mark: &mut Mark) {
        let mut passage = Passage::<T, EAGERLY> {
            stages: &mut self.stages,
            current: &mut self.current,
            control: &self.control,
            timeline: &self.timeline,
            waiters: &self.waiters,
            batch,
        };
        let mut run = self.chain.run(count);
        while run.left() > 0 {
            let next = run.next();
            let sampled = self.samples.next(next, run.left());
            let plain = sampled.map_or(run.left(), |sampled| (sampled - next) as usize);
            for _ in 0..plain / LOAN {
                if let Some(loan) = run.loan::<LOAN>() {
                    passage.pass(loan);
                }
            }
            if sampled.is_none() || plain >= LOAN {
                mark.ticks = None;
            }
            // A sampled event stays in the loan in which it would be without the sample.
            let first = run.next();
            if sampled.is_none() {
                for _ in 0..plain % LOAN {
                    if let Some(loan) = run.loan::<1>() {
                        passage.pass(loan);
                    }
                }
            } else if let Some(loan) = run.loan::<LOAN>() {
                passage.measure(first, loan, mark);
            } else if let Some(loan) = run.loan::<1>() {
                passage.measure(first, loan, mark);
            }
        }
    }
}

/// Has all stages process the only event that waits.
#[inline(always)]
fn pass_single<const EACH: bool, T>(single: Single<'_, T>, stages: &mut [Box<dyn Stage<T>>]) {
    single.run::<EACH, _>(stages, |stage, sequence, event| {
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
    single.run::<true, _>(stages, |stage, sequence, event| {
        let begin = mark.begin(timeline);
        pass_one(&mut **stage, event, Context::new(sequence, sequence + 1));
        stage.measured(begin, Chunked::one(sequence), 1, mark);
    });
}

#[inline(always)]
fn pass_one<T>(stage: &mut dyn Stage<T>, event: Lent<'_, T>, context: Context) {
    match event {
        Lent::Shared(event) => stage.observe(event, context),
        Lent::Mut(event) => stage.change(event, context),
    }
}

/// A run to completion of a group. `EAGERLY`: the last stage gives each event's slot back at once.
struct Passage<'c, T, const EAGERLY: bool> {
    stages: &'c mut [Box<dyn Stage<T>>],
    current: &'c mut usize,
    control: &'c Control,
    timeline: &'c Timeline,
    /// The threads to notify of a slot that was given back.
    waiters: &'c [usize],
    batch: Batch,
}

impl<T, const EAGERLY: bool> Passage<'_, T, EAGERLY> {
    /// Has the stages process the events of the loan.
    #[inline(always)]
    fn pass<const N: usize>(&mut self, mut loan: Loan<'_, T, N>) {
        let last = self.stages.len() - 1;
        for (at, stage) in self.stages.iter_mut().enumerate() {
            *self.current = at;
            let (end, room) = (self.batch.end, (self.control, self.waiters));
            work_on::<EAGERLY, T, N>(&mut loan, (at, last), &mut **stage, end, room);
        }
        loan.done();
    }

    /// Works as [`pass`](Self::pass) where one of the events, from `first` on, is sampled.
    #[inline(never)]
    fn measure<const N: usize>(&mut self, first: u64, mut loan: Loan<'_, T, N>, mark: &mut Mark) {
        let last = self.stages.len() - 1;
        let chunk = Chunked {
            first,
            count: N,
            own: N,
        };
        for (at, stage) in self.stages.iter_mut().enumerate() {
            *self.current = at;
            let (end, room) = (self.batch.end, (self.control, self.waiters));
            let begin = mark.begin(self.timeline);
            work_on::<EAGERLY, T, N>(&mut loan, (at, last), &mut **stage, end, room);
            stage.measured(begin, chunk, self.batch.count, mark);
        }
        loan.done();
    }
}

/// Has stage `at` process the events of the loan. With `EAGERLY`, the last stage gives each slot
/// back at once.
#[inline(always)]
fn work_on<const EAGERLY: bool, T, const N: usize>(
    loan: &mut Loan<'_, T, N>,
    (at, last): (usize, usize),
    stage: &mut dyn Stage<T>,
    batch_end: u64,
    (control, waiters): (&Control, &[usize]),
) {
    for element in 0..N {
        loan.lend(at, element, |sequence, event| {
            pass_one(stage, event, Context::new(sequence, batch_end));
        });
        if EAGERLY && at == last {
            loan.release_early();
            notify_room(control, waiters);
        }
    }
}

#[inline(always)]
fn notify_room(control: &Control, waiters: &[usize]) {
    #[cfg(shuttle)]
    if crate::ring::sync::fault::is("room_unnotified") {
        return;
    }
    control.notify(waiters);
}

#[cfg(all(test, not(loom)))]
mod tests;
