//! The waiters of a signal, first come first served.

use super::chain::Mark;
use super::{OLD, WAKING};
use crate::ring::sync::fault;
use crate::wait::roster::{Entry, Roster};
use std::task::Waker;

#[derive(Debug, Default)]
pub(super) struct List {
    /// And whether the waker wakes a thread, which will run and look, whatever happens.
    pub(super) waits: Roster<bool>,
    /// Waits taken off by a notification, ever.
    pub(super) woken: u64,
    /// A thread that was woken as one of a chain and has not looked yet.
    waking: Option<Entry>,
    /// Notifications have passed that mark without a fence.
    is_old: bool,
}

impl List {
    pub(super) fn len(&self) -> u32 {
        self.waits.len() as u32
    }

    /// Whether nobody is listed, and nobody on the way.
    pub(super) fn is_idle(&self) -> bool {
        self.len() == 0 && (self.waking.is_none() || fault::is("chain_cleared"))
    }

    /// Takes the waiter that came first, to be woken; remembers it as waking if it is a thread and
    /// one of a chain.
    pub(super) fn pop(&mut self, is_of_chain: bool) -> Option<Waker> {
        let wait = self.waits.take(0)?;
        if is_of_chain && wait.element {
            self.waking = Some(wait.entry);
        }
        self.woken += 1;
        wait.waker
    }

    /// Whether a thread of a chain is on its way.
    pub(super) fn is_marked(&self) -> bool {
        self.waking.is_some()
    }

    /// The mark as notifiers see it.
    pub(super) fn mark(&self) -> u32 {
        match self.waking {
            None => 0,
            Some(_) if self.is_old => WAKING + OLD,
            Some(_) => WAKING,
        }
    }

    pub(super) fn make_old(&mut self) {
        self.is_old = true;
    }

    /// The mark, if it is old, is as a fresh one from here on; gives whether it was.
    pub(super) fn renew(&mut self) -> bool {
        std::mem::take(&mut self.is_old)
    }

    /// The one that was woken as `entry` looks next: takes its mark off, if it has it still.
    pub(super) fn unmark(&mut self, entry: Entry) -> Option<Mark> {
        if self.waking != Some(entry) {
            return None;
        }
        if fault::is("chain_kept") {
            return Some(Mark::Fresh);
        }
        self.waking = None;
        Some(if self.renew() { Mark::Old } else { Mark::Fresh })
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::collections::VecDeque;
    use std::sync::Arc;
    use std::task::Wake;

    /// A waker that is identified by its address.
    struct Numbered;

    impl Wake for Numbered {
        fn wake(self: Arc<Self>) {}
    }

    fn waker() -> Waker {
        Waker::from(Arc::new(Numbered))
    }

    #[test]
    fn waiters_are_served_as_they_came_and_may_leave_from_anywhere() {
        let mut list = List::default();
        // The same in plain words.
        let mut queue: VecDeque<(Entry, Waker)> = VecDeque::new();
        let mut random = 1_u64;
        for round in 0..20_000 {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let choice = (random >> 40) as usize;
            match choice % 4 {
                0 | 1 if queue.len() < 40 => {
                    let waker = waker();
                    let entry = list.waits.push(Some(waker.clone()), false);
                    queue.push_back((entry, waker));
                }
                2 => {
                    let (got, want) = (list.pop(false), queue.pop_front());
                    assert_eq!(got.is_some(), want.is_some(), "round {round}");
                    if let (Some(got), Some((entry, want))) = (got, want) {
                        assert!(got.will_wake(&want));
                        assert!(list.waits.remove(entry).is_none(), "it was popped");
                    }
                }
                _ if !queue.is_empty() => {
                    let (entry, want) = queue.remove(choice / 4 % queue.len()).unwrap();
                    let left = list.waits.remove(entry).and_then(|wait| wait.waker);
                    assert!(left.unwrap().will_wake(&want));
                    assert!(list.waits.remove(entry).is_none(), "it left");
                }
                _ => assert!(list.pop(false).is_none()),
            }
            assert_eq!(list.len() as usize, queue.len());
        }
        assert!(list.waits.listed > list.woken && list.woken > 0);
    }
}
