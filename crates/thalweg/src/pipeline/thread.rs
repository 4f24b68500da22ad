//! A stage thread.

use std::sync::Arc;

use super::control::Control;
use super::crew::{Crew, Round};
use super::hand_over::HandOver;
use super::meter::Mark;
use crate::ring::sync::{spin_hint, yield_now};
use crate::wait::Waiter;

/// The numbers of events for which a thread waits for a moment: right behind the writer it would
/// pay for each line alone, and so would the writer.
const CLOSE_BEHIND: std::ops::Range<usize> = 2..32;
/// The number of pauses for which it waits.
const HANG_BACK: usize = 64;

/// A stage thread.
pub(super) struct Thread<T> {
    pub(super) crew: Crew<T>,
    pub(super) bell: usize,
    pub(super) control: Arc<Control>,
    pub(super) waiter: Waiter,
    /// Where stages are handed over, if the placement may change.
    pub(super) hand_over: Option<Arc<HandOver<T>>>,
}

impl<T> Thread<T> {
    pub(super) fn run(mut self) {
        let control = Arc::clone(&self.control);
        self.waiter.prepare();
        loop {
            if let Some(hand_over) = &self.hand_over {
                hand_over.exchange(&mut self.crew);
                if self.crew.is_empty() {
                    if hand_over.is_closed() || control.failure().is_some() {
                        return;
                    }
                    self.waiter.until(control.bell(self.bell), || {
                        hand_over.has_news() || control.failure().is_some()
                    });
                    continue;
                }
            }
            let Some(round) = self
                .crew
                .guarded(&control, |crew| crew.round(&mut Mark::default()))
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

    /// Lets a few events become more, if no thread is kept from running meanwhile.
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
            hand_over,
        } = self;
        let news = || {
            hand_over
                .as_ref()
                .is_some_and(|hand_over| hand_over.has_news())
        };
        waiter.until(control.bell(*bell), || crew.is_ready() || news());
    }
}
