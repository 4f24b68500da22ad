//! The placement that follows the load: all stages on the caller while its core has time to spare,
//! the later ones on a worker thread while it has not.
//!
//! The stages change hands between two turns, through a [`HandOver`]. Their readers, closures and
//! meters go with them, so nothing is lost or repeated, and the results are those of any other
//! placement.
//!
//! *The hand-over* is between the caller and one worker. The worker gives stages back only when
//! they have nothing left to do, so that the caller is not left with events that it would have to
//! run all at once: a last stage may wait for what the caller does between two publishes. For the
//! same reason the caller may withdraw its request.

use std::sync::Arc;

use thalweg_measure::clock::Clock;

use super::control::{CALLER, Control};
use super::crew::{Crew, Placed};
use super::meter::Counters;
use super::stats::Switch;
use crate::ring::broadcast::Progress;
use crate::ring::sync::{AtomicU32, IS_MODEL, Mutex, Ordering, fault, lock, order, yield_now};

/// How long the load is watched before it counts, ns.
const WINDOW_NS: u64 = 2_000_000;
/// A thread that is busy for more than this share of [`HOT_WINDOWS`] windows on end gives stages
/// away.
const HOT_PERCENT: u64 = 80;
const HOT_WINDOWS: usize = 5;
/// If all stages together are busy for less than this share of [`COOL_WINDOWS`] windows on end,
/// they are taken back.
const COOL_PERCENT: u64 = 40;
const COOL_WINDOWS: usize = 50;

/// Looks at a worker that gets nowhere, in a model; outside of one it is given a window.
const MODEL_LOOKS: u32 = 8;

/// The number of windows after a hand-over before the gain is judged, over as many windows again.
const SETTLE_WINDOWS: usize = 5;
/// A split that brings less than this share of the rate before it is undone.
const GAIN_PERCENT: u64 = 98;
/// The number of windows (0.2 s) by which the next split is put off after an undone one, twice as
/// many each time, up to [`PUT_OFF_MAX`] (26 s).
const PUT_OFF_WINDOWS: u32 = 100;
const PUT_OFF_MAX: u32 = 12_800;

/// The caller's side.
pub(super) struct Auto<T> {
    hand_over: Arc<HandOver<T>>,
    control: Arc<Control>,
    counters: Vec<Arc<Counters>>,
    /// How far each stage is.
    progress: Vec<Progress>,
    window_ticks: u64,
    window_began: u64,
    busy_before: Vec<u64>,
    /// Ticks at work of each stage in the last window.
    busy: Vec<u64>,
    /// The cost of an event in each stage, in the cheapest of the last hot windows, in 1/1024
    /// ticks: one interrupted sample stands for 512 events and may be most of a window.
    costs: Vec<u64>,
    events_before: u64,
    windows_on_end: usize,
    trial: Trial,
    /// How often stages changed hands.
    pub(super) moves: u64,
    /// The first of these times: in ticks, with the events so far and how many stages the caller
    /// has from then on.
    switched: Vec<(u64, u64, usize)>,
}

/// How many changes are kept with their times.
const SWITCHES: usize = 64;

/// Whether a split was worth it: on a machine where the other core is taken, it is not.
#[derive(Debug)]
struct Trial {
    /// Events in each of the last windows in which the caller was busy on its own.
    alone: [u64; HOT_WINDOWS],
    /// Events in each of the last windows since the split has settled.
    split: [u64; SETTLE_WINDOWS],
    /// Windows since the split.
    windows: usize,
    /// Windows to wait before the next split, and how many after that one fails.
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

/// The bell of the worker: it is the only stage thread.
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
            moves: 0,
            switched: Vec::with_capacity(SWITCHES),
        }
    }

    /// Called with the time of a sampled publish. Returns whether stages changed hands.
    #[inline]
    pub(super) fn watch(&mut self, now: u64, crew: &mut Crew<T>) -> bool {
        let elapsed = now.saturating_sub(self.window_began);
        (elapsed >= self.window_ticks || IS_MODEL) && self.close_window(now, elapsed, crew)
    }

    /// Finds what each stage did since the last call: ticks at work in `busy`, and gives the events
    /// through the first.
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
    fn close_window(&mut self, now: u64, elapsed: u64, crew: &mut Crew<T>) -> bool {
        // A model knows no load: the stages change hands at each look.
        if IS_MODEL {
            self.costs.fill(1);
            return match self.hand_over.state() {
                EMPTY => self.give_away(crew),
                HELD => self.call_back(crew),
                _ => false,
            };
        }
        self.window_began = now;
        let events = self.since_last();
        let all: u64 = self.busy.iter().sum();
        // A window that was cut long by something else counts for what it was.
        let events = events * self.window_ticks / elapsed.max(1);
        match self.hand_over.state() {
            EMPTY => self.watch_alone(all * 100 > elapsed * HOT_PERCENT, events, crew),
            HELD => self.watch_split(all * 100 < elapsed * COOL_PERCENT, events, crew),
            _ => false,
        }
    }

    fn watch_alone(&mut self, is_hot: bool, events: u64, crew: &mut Crew<T>) -> bool {
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
        self.give_away(crew)
    }

    /// Returns whether the stages are back. They are taken back at once, not at some later call:
    /// the caller may wait for an answer that only they can give.
    fn watch_split(&mut self, is_cool: bool, events: u64, crew: &mut Crew<T>) -> bool {
        self.windows_on_end = if is_cool { self.windows_on_end + 1 } else { 0 };
        if self.windows_on_end < COOL_WINDOWS && !self.trial.has_failed(events) {
            return false;
        }
        self.windows_on_end = 0;
        self.call_back(crew)
    }

    /// Waits until the worker has nothing left to do; returns whether it gave the stages back. One
    /// that gets nowhere may wait for what the caller does next, so it keeps them.
    fn call_back(&mut self, crew: &mut Crew<T>) -> bool {
        self.hand_over.recall();
        self.control.ring(&[WORKER]);
        let clock = Clock::global();
        let passed = || self.progress.iter().map(Progress::released).sum::<u64>();
        let (mut before, mut since, mut looks) = (passed(), clock.ticks(), 0);
        let is_back = self.hand_over.wait(|| {
            yield_now();
            let now = passed();
            if now != before {
                (before, since, looks) = (now, clock.ticks(), 0);
            }
            looks += 1;
            let is_patient = match IS_MODEL {
                true => looks < MODEL_LOOKS || crate::ring::sync::fault::is("hand_over_patient"),
                false => clock.ticks().saturating_sub(since) < self.window_ticks,
            };
            // A worker whose stage panics returns nothing.
            is_patient && self.control.failure().is_none()
        });
        if is_back {
            self.take_back(crew);
        } else {
            self.trial.windows = 0;
        }
        is_back
    }

    /// Hands the later stages to the worker.
    fn give_away(&mut self, crew: &mut Crew<T>) -> bool {
        let keep = split(&self.costs);
        if keep == crew.len() {
            return false;
        }
        crew.flush();
        let mut given = crew.split_off(keep);
        let is_alone = given.len() == 1;
        for placed in &mut given {
            // The stages that come after it go with it.
            placed.stage.seat([CALLER].into(), false, is_alone, true);
        }
        #[cfg(shuttle)]
        let is_seated = crate::ring::sync::fault::is("hand_over_seat");
        #[cfg(not(shuttle))]
        let is_seated = false;
        if !is_seated {
            crew.seat(&[WORKER], false);
        }
        self.hand_over.offer(given);
        self.control.ring(&[WORKER]);
        self.moved(crew);
        true
    }

    fn take_back(&mut self, crew: &mut Crew<T>) {
        crew.flush();
        crew.extend(self.hand_over.take());
        crew.seat(&[], false);
        self.moved(crew);
    }

    fn moved(&mut self, crew: &Crew<T>) {
        self.moves += 1;
        if self.switched.len() < SWITCHES {
            let events = self.progress[0].released();
            let now = Clock::global().ticks();
            self.switched.push((now, events, crew.len()));
        }
    }

    /// When stages changed hands, the first times, counted from `began`.
    pub(super) fn switches(&self, clock: Clock, began: u64) -> Vec<Switch> {
        let switch = |&(ticks, events, caller_stages): &(u64, u64, usize)| Switch {
            at_ns: clock.ns(ticks.saturating_sub(began)),
            events,
            caller_stages,
        };
        self.switched.iter().map(switch).collect()
    }

    /// Returns whether the worker has, or is about to get, stages.
    pub(super) fn is_split(&self) -> bool {
        self.hand_over.state() != EMPTY
    }

    /// No more changes: a worker without stages may go. One that has stages ends with them.
    pub(super) fn close(&mut self) {
        if self.hand_over.close() {
            self.control.ring(&[WORKER]);
        }
    }
}

/// Returns how many of the first stages the caller keeps, by their costs, so that the busier of
/// caller and worker has the least to do; the caller has the publishing besides, so it gets another
/// stage only if that takes a sixteenth off the busier side. At least one stage goes.
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

/// Nothing in the hand-over; the worker has no stages.
const EMPTY: u32 = 0;
/// Stages in the hand-over for the worker.
const OFFERED: u32 = 1;
/// The worker has stages.
const HELD: u32 = 2;
/// The caller wants them back.
const RECALLED: u32 = 3;
/// Stages in the hand-over for the caller.
const RETURNED: u32 = 4;
/// There will be no more.
const CLOSED: u32 = 5;

/// The caller moves `state` on from `EMPTY`, `HELD` and `RETURNED`, the worker from `OFFERED`; from
/// `RECALLED` both do, under the lock of the tray.
pub(super) struct HandOver<T> {
    state: AtomicU32,
    tray: Mutex<Vec<Placed<T>>>,
}

impl<T> Default for HandOver<T> {
    fn default() -> Self {
        Self {
            state: AtomicU32::new(EMPTY),
            tray: Mutex::new(Vec::new()),
        }
    }
}

impl<T> HandOver<T> {
    pub(super) fn state(&self) -> u32 {
        // ORDERING: Acquire (order::recalled), pairs with the Release in `set`: a worker that is
        // called sees all that its stages have to do. (The stages are under the tray's lock.)
        self.state.load(order::recalled())
    }

    fn set(&self, state: u32) {
        // ORDERING: Release (order::recall), pairs with the Acquire in `state`.
        self.state.store(state, order::recall());
    }

    /// Returns whether the worker should come to the hand_over.
    pub(super) fn has_news(&self) -> bool {
        matches!(self.state(), OFFERED | RECALLED | CLOSED)
    }

    pub(super) fn is_closed(&self) -> bool {
        self.state() == CLOSED
    }

    /// The caller gives stages away. Only where the hand_over is empty.
    pub(super) fn offer(&self, given: Vec<Placed<T>>) {
        *lock(&self.tray) = given;
        self.set(OFFERED);
    }

    /// The caller wants the stages back. Only where the worker has them, or is about to.
    pub(super) fn recall(&self) {
        self.set(RECALLED);
    }

    /// Waits for the stages, for the caller, as long as `go_on` returns `true`; returns whether
    /// they are there.
    pub(super) fn wait(&self, mut go_on: impl FnMut() -> bool) -> bool {
        while self.state() != RETURNED {
            if go_on() {
                continue;
            }
            let _tray = lock(&self.tray);
            if self.state() == RECALLED {
                self.set(HELD);
                return false;
            }
        }
        true
    }

    /// Takes the stages that are back, for the caller.
    pub(super) fn take(&self) -> Vec<Placed<T>> {
        let returned = std::mem::take(&mut *lock(&self.tray));
        self.set(EMPTY);
        returned
    }

    /// Closes the hand_over, for the caller, if it is empty; returns whether it is.
    fn close(&self) -> bool {
        let is_empty = self.state() == EMPTY;
        if is_empty {
            self.set(CLOSED);
        }
        is_empty
    }

    /// The worker's visit.
    #[inline]
    pub(super) fn exchange(&self, crew: &mut Crew<T>) {
        match self.state() {
            OFFERED => {
                crew.extend(lock(&self.tray).drain(..));
                self.set(HELD);
            }
            RECALLED if !crew.is_undone() || fault::is("hand_over_undone") => self.give_back(crew),
            _ => {}
        }
    }

    #[cold]
    fn give_back(&self, crew: &mut Crew<T>) {
        let mut tray = lock(&self.tray);
        // The caller may have taken its request back.
        if self.state() == RECALLED {
            crew.flush();
            tray.extend(crew.split_off(0));
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
