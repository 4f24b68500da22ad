//! Leading the stages of a crew through the events together.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::{Crew, ROUND, Round, STEPPING};
use crate::pipeline::chunk::Context;
use crate::pipeline::control::Control;
use crate::pipeline::meter::{Chunked, Mark};
use crate::pipeline::stage::{Batch, Stage};
use crate::pipeline::timeline::Timeline;
use crate::ring::broadcast::{Hand, Lent, Published, Single};

/// The number of events that stages that are led take in hand: the work of a stage on the second
/// one overlaps with that of the next stage on the first, where each stage goes on from its own
/// last result, and with its own on the first where it does not. More fill the processor's window
/// with one stage; `docs/notes/stages-on-one-thread.md` has the measurement.
const HANDFUL: usize = 2;

/// How a crew is led.
#[derive(Debug, Clone, Copy)]
pub(super) struct Gait {
    /// The largest number of events between two calls of [`Stage::notify`].
    pace: usize,
    /// The last stage gives each event's slot back at once.
    is_eager: bool,
}

impl<T> Crew<T> {
    /// Looks anew how the stages may be led.
    pub(super) fn find_gait(&mut self) {
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
    pub(in crate::pipeline) fn is_ready_to_step(&self) -> bool {
        self.is_ready_to_step
    }

    /// Leads the stages through the event that was just published and is not sampled.
    /// `Some(false)`, and nothing done, unless all of them wait for it; `None` if a stage has
    /// panicked. `EACH`: others may wait for any of them.
    #[inline(always)]
    pub(in crate::pipeline) fn step<const EACH: bool>(
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
    pub(in crate::pipeline) fn step_measured(
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
    pub(in crate::pipeline) fn notify(&mut self) {
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
    pub(super) fn lead(&mut self, mark: &mut Mark) -> Option<Round> {
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
