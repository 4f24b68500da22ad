//! The placement that follows the load: all stages on the caller while its core has time to spare,
//! the later ones on a worker thread while it has not.
//!
//! Stages move between two turns, through a [`HandOver`]. Their readers, closures and meters move
//! with them, so no event is lost or repeated, and the results are those of any other placement.
//!
//! *The hand-over* is between the caller and one worker. The worker returns stages only when they
//! have no event left, so that the caller does not get a backlog that it would have to run before
//! it returns: a last stage may wait for what the caller does between two publishes. For the same
//! reason the caller may withdraw its request.

use std::sync::Arc;

use thalweg_measure::clock::Clock;

use super::control::{CALLER, Control};
use super::meter::Counters;
use super::stage_group::{Placed, StageGroup};
use super::stats::PlacementChange;
use crate::ring::broadcast::Progress;
use crate::ring::sync::{AtomicU32, IS_MODEL, Mutex, Ordering, fault, lock, order, yield_now};

/// The time over which the load is measured, ns.
const WINDOW_NS: u64 = 2_000_000;
/// A caller that is busy for more than this share of [`HOT_WINDOWS`] consecutive windows hands
/// stages to the worker.
const HOT_PERCENT: u64 = 80;
const HOT_WINDOWS: usize = 5;
/// If all stages together are busy for less than this share of [`COOL_WINDOWS`] consecutive
/// windows, the caller recalls them.
const COOL_PERCENT: u64 = 40;
const COOL_WINDOWS: usize = 50;

/// The number of checks without progress, in a model, after which the caller gives a recall up.
/// Outside of a model it waits for a window.
const MODEL_CHECKS: u32 = 8;

/// The number of windows after a hand-over before the gain is judged, over as many windows again.
const SETTLE_WINDOWS: usize = 5;
/// A split after which the rate is less than this share of the rate before is undone.
const GAIN_PERCENT: u64 = 98;
/// The number of windows (0.2 s) by which the next split is delayed after one that was undone; it
/// doubles each time, up to [`PUT_OFF_MAX`] (26 s).
const PUT_OFF_WINDOWS: u32 = 100;
const PUT_OFF_MAX: u32 = 12_800;

/// The caller's side of the automatic placement: it measures the load, and moves stages.
pub(super) struct Auto<T> {
    hand_over: Arc<HandOver<T>>,
    control: Arc<Control>,
    counters: Vec<Arc<Counters>>,
    /// The progress of each stage.
    progress: Vec<Progress>,
    window_ticks: u64,
    window_began: u64,
    busy_before: Vec<u64>,
    /// The time that each stage worked in the last window, in ticks.
    busy: Vec<u64>,
    /// The cost of an event in each stage, in the cheapest of the last hot windows, in 1/1024
    /// ticks: one interrupted sample stands for 512 events and may be most of a window.
    costs: Vec<u64>,
    events_before: u64,
    windows_on_end: usize,
    trial: Trial,
    /// The number of times that stages moved.
    pub(super) placement_change_count: u64,
    /// The first of these moves: the time in ticks, the events so far, and the number of stages
    /// that the caller has from then on.
    changes: Vec<(u64, u64, usize)>,
}

/// The number of moves that are kept with their times.
const CHANGES_MAX: usize = 64;

/// Judges whether a split has raised the rate: where another program uses the other core, it does
/// not.
#[derive(Debug)]
struct Trial {
    /// Events in each of the last windows in which the caller ran all stages and was busy.
    alone: [u64; HOT_WINDOWS],
    /// Events in each of the last windows since the split has settled.
    split: [u64; SETTLE_WINDOWS],
    /// Windows since the split.
    windows: usize,
    /// Windows left before the next split, and the delay if that one fails.
    put_off: u32,
    next_put_off: u32,
}

impl Trial {
    const fn new() -> Self {
        Self {
            alone: [0; HOT_WINDOWS],
            split: [0; SETTLE_WINDOWS],
            windows: 0,
            put_off: 0,
            next_put_off: PUT_OFF_WINDOWS,
        }
    }

    /// Counts a window since the split; returns whether the split has failed. By the medians, since
    /// a window in which something else ran says nothing.
    fn has_failed(&mut self, events: u64) -> bool {
        let Some(at) = self.windows.checked_sub(SETTLE_WINDOWS) else {
            self.windows += 1;
            return false;
        };
        let Some(window) = self.split.get_mut(at) else {
            return false;
        };
        *window = events;
        self.windows += 1;
        if at + 1 < SETTLE_WINDOWS {
            return false;
        }
        let failed = median(self.split) * 100 < median(self.alone) * GAIN_PERCENT;
        if failed {
            self.put_off = self.next_put_off;
            self.next_put_off = (2 * self.next_put_off).min(PUT_OFF_MAX);
        } else {
            self.next_put_off = PUT_OFF_WINDOWS;
        }
        failed
    }
}

fn median<const N: usize>(mut events: [u64; N]) -> u64 {
    events.sort_unstable();
    events[N / 2]
}

/// The index of the worker's thread: it is the only stage thread.
pub(super) const WORKER: usize = 1;

impl<T> Auto<T> {
    pub(super) fn new(
        hand_over: Arc<HandOver<T>>,
        control: Arc<Control>,
        counters: Vec<Arc<Counters>>,
        progress: Vec<Progress>,
    ) -> Self {
        let clock = Clock::global();
        Self {
            hand_over,
            control,
            busy_before: vec![0; counters.len()],
            busy: vec![0; counters.len()],
            costs: vec![u64::MAX; counters.len()],
            events_before: 0,
            counters,
            progress,
            window_ticks: clock.ticks_from_ns(WINDOW_NS),
            window_began: clock.ticks(),
            windows_on_end: 0,
            trial: Trial::new(),
            placement_change_count: 0,
            changes: Vec::with_capacity(CHANGES_MAX),
        }
    }

    /// Closes the window if it is over at `now`, the time of a sampled publish. Returns whether
    /// stages moved.
    #[inline]
    pub(super) fn watch(&mut self, now: u64, group: &mut StageGroup<T>) -> bool {
        let elapsed = now.saturating_sub(self.window_began);
        (elapsed >= self.window_ticks || IS_MODEL) && self.close_window(now, elapsed, group)
    }

    /// Sets `busy` to the time that each stage worked since the last call, and returns the number
    /// of events that the first stage released since then.
    fn since_last(&mut self) -> u64 {
        for ((busy, before), counters) in self
            .busy
            .iter_mut()
            .zip(&mut self.busy_before)
            .zip(&self.counters)
        {
            // ORDERING: Relaxed; an estimate.
            let total = counters.busy.load(Ordering::Relaxed);
            *busy = total - std::mem::replace(before, total);
        }
        let events = self.progress[0].released();
        events - std::mem::replace(&mut self.events_before, events)
    }

    #[cold]
    fn close_window(&mut self, now: u64, elapsed: u64, group: &mut StageGroup<T>) -> bool {
        // A model has no load: the stages move at each call.
        if IS_MODEL {
            self.costs.fill(1);
            return match self.hand_over.state() {
                EMPTY => self.give_away(group),
                HELD => self.call_back(group),
                _ => false,
            };
        }
        self.window_began = now;
        let events = self.since_last();
        let all: u64 = self.busy.iter().sum();
        // Scales the events of a window that took too long to the length of a window.
        let events = events * self.window_ticks / elapsed.max(1);
        match self.hand_over.state() {
            EMPTY => self.watch_alone(all * 100 > elapsed * HOT_PERCENT, events, group),
            HELD => self.watch_split(all * 100 < elapsed * COOL_PERCENT, events, group),
            _ => false,
        }
    }

    fn watch_alone(&mut self, is_hot: bool, events: u64, group: &mut StageGroup<T>) -> bool {
        self.trial.put_off = self.trial.put_off.saturating_sub(1);
        if !is_hot || self.trial.put_off > 0 {
            self.windows_on_end = 0;
            return false;
        }
        if self.windows_on_end == 0 {
            self.costs.fill(u64::MAX);
        }
        for (cost, busy) in self.costs.iter_mut().zip(&self.busy) {
            *cost = (*cost).min(busy * 1024 / events.max(1));
        }
        self.trial.alone[self.windows_on_end] = events;
        self.windows_on_end += 1;
        if self.windows_on_end < HOT_WINDOWS {
            return false;
        }
        self.windows_on_end = 0;
        self.trial.windows = 0;
        self.give_away(group)
    }

    /// Recalls the stages if the load is low or the split has failed; returns whether they are
    /// back. It waits for them, since the caller may next wait for an answer that only they can
    /// give.
    fn watch_split(&mut self, is_cool: bool, events: u64, group: &mut StageGroup<T>) -> bool {
        self.windows_on_end = if is_cool { self.windows_on_end + 1 } else { 0 };
        if self.windows_on_end < COOL_WINDOWS && !self.trial.has_failed(events) {
            return false;
        }
        self.windows_on_end = 0;
        self.call_back(group)
    }

    /// Recalls the stages and waits until the worker returns them, which it does when no event is
    /// left; returns whether it did. A worker without progress may be waiting for what the caller
    /// does next: then the recall is withdrawn.
    fn call_back(&mut self, group: &mut StageGroup<T>) -> bool {
        self.hand_over.recall();
        self.control.notify(&[WORKER]);
        let clock = Clock::global();
        let passed = || self.progress.iter().map(Progress::released).sum::<u64>();
        let (mut before, mut since, mut checks) = (passed(), clock.ticks(), 0);
        let is_back = self.hand_over.wait(|| {
            yield_now();
            let now = passed();
            if now != before {
                (before, since, checks) = (now, clock.ticks(), 0);
            }
            checks += 1;
            let is_patient = match IS_MODEL {
                true => checks < MODEL_CHECKS || crate::ring::sync::fault::is("hand_over_patient"),
                false => clock.ticks().saturating_sub(since) < self.window_ticks,
            };
            // A worker whose stage panics returns nothing.
            is_patient && self.control.failure().is_none()
        });
        if is_back {
            self.take_back(group);
        } else {
            self.trial.windows = 0;
        }
        is_back
    }

    /// Hands the later stages to the worker.
    fn give_away(&mut self, group: &mut StageGroup<T>) -> bool {
        let keep = split(&self.costs);
        if keep == group.len() {
            return false;
        }
        group.flush();
        let mut given = group.split_off(keep);
        let is_alone = given.len() == 1;
        for placed in &mut given {
            // The stages behind it move to the same thread.
            placed.stage.attach([CALLER].into(), false, is_alone, true);
        }
        #[cfg(shuttle)]
        let is_seated = crate::ring::sync::fault::is("hand_over_seat");
        #[cfg(not(shuttle))]
        let is_seated = false;
        if !is_seated {
            group.attach(&[WORKER], false);
        }
        self.hand_over.offer(given);
        self.control.notify(&[WORKER]);
        self.moved(group);
        true
    }

    fn take_back(&mut self, group: &mut StageGroup<T>) {
        group.flush();
        group.extend(self.hand_over.take());
        group.attach(&[], false);
        self.moved(group);
    }

    fn moved(&mut self, group: &StageGroup<T>) {
        self.placement_change_count += 1;
        if self.changes.len() < CHANGES_MAX {
            let events = self.progress[0].released();
            let now = Clock::global().ticks();
            self.changes.push((now, events, group.len()));
        }
    }

    /// Returns the first moves of stages, with times since `began`.
    pub(super) fn placement_changes(&self, clock: Clock, began: u64) -> Vec<PlacementChange> {
        let change = |&(ticks, events, caller_stages): &(u64, u64, usize)| PlacementChange {
            at_ns: clock.ns(ticks.saturating_sub(began)),
            events,
            caller_stages,
        };
        self.changes.iter().map(change).collect()
    }

    /// Returns whether the worker has stages, or stages are offered to it.
    pub(super) fn is_split(&self) -> bool {
        self.hand_over.state() != EMPTY
    }

    /// Ends the moves of stages: a worker without stages ends now, one with stages when they do.
    pub(super) fn close(&mut self) {
        if self.hand_over.close() {
            self.control.notify(&[WORKER]);
        }
    }
}

/// Returns how many of the first stages the caller keeps so that the busier of caller and worker
/// has the least work, by the stages' costs. The caller also publishes, so it gets another stage
/// only if that takes a sixteenth off the busier side. The worker gets at least one stage.
fn split(costs: &[u64]) -> usize {
    let all: u64 = costs.iter().sum();
    let mut kept = 0;
    let mut best = (all, 0);
    for (keep, stage) in costs.iter().enumerate() {
        let busier = kept.max(all - kept);
        if busier < best.0 - best.0 / 16 {
            best = (busier, keep);
        }
        kept += stage;
    }
    best.1
}

/// The hand-over is empty, and the worker has no stages.
const EMPTY: u32 = 0;
/// The caller has put stages into the hand-over.
const OFFERED: u32 = 1;
/// The worker has stages.
const HELD: u32 = 2;
/// The caller has asked for the stages.
const RECALLED: u32 = 3;
/// The worker has put the stages into the hand-over.
const RETURNED: u32 = 4;
/// No stage will move any more.
const CLOSED: u32 = 5;

/// Passes stages from one thread to the other. The caller changes `state` from `EMPTY`, `HELD` and
/// `RETURNED`, the worker from `OFFERED`; from `RECALLED` both do, under the lock of `stages`.
pub(super) struct HandOver<T> {
    state: AtomicU32,
    stages: Mutex<Vec<Placed<T>>>,
}

impl<T> Default for HandOver<T> {
    fn default() -> Self {
        Self {
            state: AtomicU32::new(EMPTY),
            stages: Mutex::new(Vec::new()),
        }
    }
}

impl<T> HandOver<T> {
    pub(super) fn state(&self) -> u32 {
        // ORDERING: Acquire (order::recalled), pairs with the Release in `set`: a worker that sees
        // the recall sees every event that its stages have to process. (The lock orders the stages
        // themselves.)
        self.state.load(order::recalled())
    }

    fn set(&self, state: u32) {
        // ORDERING: Release (order::recall), pairs with the Acquire in `state`.
        self.state.store(state, order::recall());
    }

    /// Returns whether the worker has to call [`exchange`](Self::exchange).
    pub(super) fn has_news(&self) -> bool {
        matches!(self.state(), OFFERED | RECALLED | CLOSED)
    }

    pub(super) fn is_closed(&self) -> bool {
        self.state() == CLOSED
    }

    /// Puts stages in, for the worker. The hand-over must be empty.
    pub(super) fn offer(&self, given: Vec<Placed<T>>) {
        *lock(&self.stages) = given;
        self.set(OFFERED);
    }

    /// Asks for the stages. The worker must have them, or they must be offered to it.
    pub(super) fn recall(&self) {
        self.set(RECALLED);
    }

    /// Waits until the worker has returned the stages, for as long as `go_on` returns `true`;
    /// returns whether it has. If not, the request is withdrawn.
    pub(super) fn wait(&self, mut go_on: impl FnMut() -> bool) -> bool {
        while self.state() != RETURNED {
            if go_on() {
                continue;
            }
            let _stages = lock(&self.stages);
            if self.state() == RECALLED {
                self.set(HELD);
                return false;
            }
        }
        true
    }

    /// Takes the stages that the worker returned.
    pub(super) fn take(&self) -> Vec<Placed<T>> {
        let returned = std::mem::take(&mut *lock(&self.stages));
        self.set(EMPTY);
        returned
    }

    /// Closes the hand-over if it is empty; returns whether it is. The caller calls it.
    fn close(&self) -> bool {
        let is_empty = self.state() == EMPTY;
        if is_empty {
            self.set(CLOSED);
        }
        is_empty
    }

    /// Takes offered stages, or returns stages that were recalled. The worker calls it.
    #[inline]
    pub(super) fn exchange(&self, group: &mut StageGroup<T>) {
        match self.state() {
            OFFERED => {
                group.extend(lock(&self.stages).drain(..));
                self.set(HELD);
            }
            RECALLED if !group.is_undone() || fault::is("hand_over_undone") => {
                self.give_back(group)
            }
            _ => {}
        }
    }

    #[cold]
    fn give_back(&self, group: &mut StageGroup<T>) {
        let mut stages = lock(&self.stages);
        // The caller may have withdrawn its request.
        if self.state() == RECALLED {
            group.flush();
            stages.extend(group.split_off(0));
            self.set(RETURNED);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_busier_side_gets_as_little_as_can_be() {
        assert_eq!(split(&[40, 40, 40]), 1);
        assert_eq!(split(&[745, 756, 749]), 1);
        assert_eq!(split(&[10, 10, 10, 10]), 2);
        assert_eq!(split(&[100, 10, 10]), 1);
        assert_eq!(split(&[10, 10, 100]), 2);
        assert_eq!(split(&[10]), 0);
    }

    #[test]
    fn a_split_that_brings_nothing_is_undone_and_the_next_put_off_longer() {
        let judge = |trial: &mut Trial, events: u64| {
            trial.alone = [1_000; HOT_WINDOWS];
            trial.windows = 0;
            // Something else ran in every fourth window.
            let events = (0..20).map(|at| if at % 4 == 3 { 0 } else { events });
            events.filter(|&events| trial.has_failed(events)).count()
        };
        let mut trial = Trial::new();
        assert_eq!(judge(&mut trial, 1_200), 0);
        assert_eq!(
            judge(&mut trial, 990),
            0,
            "an open loop brings what it brings"
        );
        assert_eq!(trial.put_off, 0);
        assert_eq!(judge(&mut trial, 700), 1);
        assert_eq!(trial.put_off, PUT_OFF_WINDOWS);
        assert_eq!(judge(&mut trial, 700), 1);
        assert_eq!(trial.put_off, 2 * PUT_OFF_WINDOWS);
        assert_eq!(judge(&mut trial, 2_000), 0);
        assert_eq!(judge(&mut trial, 700), 1);
        assert_eq!(trial.put_off, PUT_OFF_WINDOWS);
    }
}
