//! The stages that share a thread, and that thread.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::auto::Desk;
use super::control::Control;
use super::lanes::Merge;
use super::meter::Mark;
use super::stage::{Stage, Turn};
use crate::ring::sync::{spin_hint, yield_now};
use crate::wait::Waiter;

/// How many events stages that share a thread pass on at a time: enough to pay for the turn, few
/// enough to stay in the first-level cache and not to delay the first of them.
pub(super) const ROUND: usize = 64;

/// A thread that would find so many events waits for a moment: right behind the writer it would pay
/// for each line alone, and so would the writer.
const CLOSE_BEHIND: std::ops::Range<usize> = 2..32;
/// For so many pauses.
const HANG_BACK: usize = 64;

/// In place of a stage: the producers' lanes were being merged, which calls the routes of sharded
/// stages.
const MERGING: usize = usize::MAX;
const MERGING_NAME: &str = "(moving events from the producers)";

/// A stage and its name.
pub(super) struct Placed {
    pub(super) name: Arc<str>,
    pub(super) stage: Box<dyn Stage>,
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
pub(super) struct Crew {
    pub(super) stages: Vec<Placed>,
    pub(super) merge: Option<Box<dyn Merge>>,
    /// The stage at work, for the name in an error.
    current: usize,
    /// How many events a stage without company takes up at a time.
    limit_alone: usize,
}

impl Crew {
    pub(super) fn new(stages: Vec<Placed>, merge: Option<Box<dyn Merge>>) -> Self {
        Self {
            stages,
            merge,
            current: 0,
            limit_alone: usize::MAX,
        }
    }

    /// A crew whose stages may be called back: a stage without company keeps to the round too, so
    /// that whoever wants it back waits for a round and not for a full ring.
    pub(super) fn on_call() -> Self {
        Self {
            limit_alone: ROUND,
            ..Self::new(Vec::new(), None)
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.stages.is_empty() && self.merge.is_none()
    }

    /// Gives every stage a turn. `mark` is the publish time if the caller has just read the clock.
    #[inline]
    pub(super) fn round(&mut self, mut mark: Mark) -> Round {
        let limit = if self.stages.len() > 1 {
            ROUND
        } else {
            self.limit_alone
        };
        let mut any = Turn::IDLE;
        let mut every = Turn::DONE;
        if let Some(merge) = &mut self.merge {
            self.current = MERGING;
            if merge.merge() {
                any = Turn::WORKED;
            }
        }
        for (at, placed) in self.stages.iter_mut().enumerate() {
            self.current = at;
            let turn = placed.stage.turn(limit, &mut mark);
            any = any.or(turn);
            every = every.and(turn);
        }
        if mark.noted {
            self.flush();
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
        for placed in &mut self.stages {
            placed.stage.flush();
        }
    }

    /// Events that wait for the first stage.
    fn backlog(&mut self) -> usize {
        self.stages
            .first_mut()
            .map_or(0, |head| head.stage.backlog())
    }

    pub(super) fn is_ready(&mut self) -> bool {
        self.merge.as_mut().is_some_and(|merge| merge.is_ready())
            || self.stages.iter_mut().any(|placed| placed.stage.is_ready())
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
        let current = self.stages.get(self.current);
        let name = current.map_or(MERGING_NAME, |placed| &*placed.name);
        control.fail(name, payload);
        self.dismiss(control);
    }

    /// Lets the stages and the merger go, and wakes everybody, so that the other threads hear of
    /// it. What a closure holds may panic while it is dropped: that is a failure of its stage, and
    /// the others go all the same.
    #[cold]
    pub(super) fn dismiss(&mut self, control: &Control) {
        for Placed { name, stage } in self.stages.drain(..) {
            if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(stage))) {
                control.fail(&name, &*payload);
            }
        }
        let merge = self.merge.take();
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(merge))) {
            control.fail(MERGING_NAME, &*payload);
        }
        control.ring_everybody();
    }
}

/// A stage thread.
pub(super) struct Thread {
    pub(super) crew: Crew,
    pub(super) bell: usize,
    pub(super) control: Arc<Control>,
    pub(super) waiter: Waiter,
    /// Where stages are handed over, if the placement may change.
    pub(super) desk: Option<Arc<Desk>>,
}

impl Thread {
    pub(super) fn run(mut self) {
        let control = Arc::clone(&self.control);
        self.waiter.prepare();
        loop {
            if let Some(desk) = &self.desk {
                desk.exchange(&mut self.crew);
                if self.crew.stages.is_empty() {
                    if desk.is_closed() || control.failure().is_some() {
                        return;
                    }
                    self.waiter.until(control.bell(self.bell), || {
                        desk.has_news() || control.failure().is_some()
                    });
                    continue;
                }
            }
            let Some(round) = self
                .crew
                .guarded(&control, |crew| crew.round(Mark::default()))
            else {
                return;
            };
            match round {
                Round::Worked { more: true } => {}
                Round::Worked { more: false } => self.hang_back(),
                // A failed pipeline settles nothing any more: what is blocked stays so.
                Round::Blocked if control.failure().is_none() => yield_now(),
                Round::Idle => self.wait(),
                Round::Blocked | Round::Done => {
                    // Statistics may be asked for after the end.
                    self.crew.flush();
                    self.crew.dismiss(&control);
                    return;
                }
            }
        }
    }

    /// Lets a few events become more, if nobody is kept from running meanwhile.
    fn hang_back(&mut self) {
        if self.waiter.may_pause() && CLOSE_BEHIND.contains(&self.crew.backlog()) {
            for _ in 0..HANG_BACK {
                spin_hint();
            }
            self.crew.backlog();
        }
    }

    fn wait(&mut self) {
        let Self {
            crew,
            bell,
            control,
            waiter,
            desk,
        } = self;
        let news = || desk.as_ref().is_some_and(|desk| desk.has_news());
        waiter.until(control.bell(*bell), || crew.is_ready() || news());
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::Mutex;

    /// Notes its limits and flushes; has something to note in every second turn.
    #[derive(Default)]
    struct Probe(Arc<Mutex<(Vec<usize>, u32)>>);

    impl Stage for Probe {
        fn turn(&mut self, limit: usize, mark: &mut Mark) -> Turn {
            let limits = &mut self.0.lock().expect("no panic").0;
            limits.push(limit);
            mark.noted |= limits.len().is_multiple_of(2);
            Turn::WORKED
        }

        fn is_ready(&mut self) -> bool {
            true
        }

        fn backlog(&mut self) -> usize {
            0
        }

        fn flush(&mut self) {
            self.0.lock().expect("no panic").1 += 1;
        }

        fn seat(&mut self, _: Box<[usize]>, _: bool, _: bool) {}
    }

    fn placed(stage: impl Stage + 'static) -> Placed {
        Placed {
            name: "probe".into(),
            stage: Box::new(stage),
        }
    }

    #[test]
    fn only_a_stage_that_nobody_shares_or_calls_back_takes_all_at_once() {
        let limit = |mut crew: Crew, stages: usize| {
            let seen = Probe::default().0;
            crew.stages = (0..stages)
                .map(|_| placed(Probe(Arc::clone(&seen))))
                .collect();
            crew.round(Mark::default());
            seen.lock().expect("no panic").0[0]
        };
        assert_eq!(limit(Crew::new(Vec::new(), None), 1), usize::MAX);
        assert_eq!(limit(Crew::new(Vec::new(), None), 2), ROUND);
        assert_eq!(limit(Crew::on_call(), 1), ROUND);
    }

    #[test]
    fn a_round_is_flushed_only_if_something_was_noted_in_it() {
        let seen = Probe::default().0;
        let mut crew = Crew::new(vec![placed(Probe(Arc::clone(&seen)))], None);
        for round in 1..=10 {
            crew.round(Mark::default());
            assert_eq!(seen.lock().expect("no panic").1, round / 2);
        }
    }
}
