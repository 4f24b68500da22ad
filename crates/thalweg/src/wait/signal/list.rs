//! The waiters of a signal, first come first served.

use super::chain::Mark;
use super::{OLD, WAKING};
use crate::ring::sync::fault;
use crate::wait::roster::{Entry, Roster, Wait};
use std::task::Waker;

/// The kind of waiter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A task, which may be kept unpolled, or forgotten.
    Task,
    /// A thread that waits for other things, too: it will run and look, whatever happens.
    Select,
    /// A thread that waits for this alone, and leaves as soon as it is woken.
    Thread,
}

#[derive(Debug, Default)]
pub(super) struct List {
    waits: Roster<Kind>,
    /// How many of them are threads.
    threads: usize,
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

    /// Returns whether no waiter is listed, and none is on its way.
    pub(super) fn is_idle(&self) -> bool {
        self.len() == 0 && (self.waking.is_none() || fault::is("chain_cleared"))
    }

    /// Lists a waiter.
    pub(super) fn push(&mut self, waker: Waker, kind: Kind) -> Entry {
        self.threads += usize::from(kind != Kind::Task);
        self.waits.push(Some(waker), kind)
    }

    /// Takes a waiter that leaves; `None` if it was taken.
    pub(super) fn remove(&mut self, entry: Entry) -> Option<Wait<Kind>> {
        let wait = self.waits.remove(entry)?;
        self.threads -= usize::from(wait.element != Kind::Task);
        Some(wait)
    }

    /// Returns its waiters, for [`renew`](crate::wait::renew).
    pub(super) fn waits(&mut self) -> &mut Roster<Kind> {
        &mut self.waits
    }

    /// Waits listed ever.
    pub(super) fn listed(&self) -> u64 {
        self.waits.listed
    }

    /// Takes the waiter that came first, to be woken; and if that is a task, the first thread, too
    /// (rule 8). Remembers a thread as waking if it is one of a chain.
    pub(super) fn pop(&mut self, is_of_chain: bool) -> Option<[Option<Waker>; 2]> {
        let first = self.take(0, is_of_chain)?;
        let mut second = None;
        if first.element == Kind::Task && self.threads > 0 && !fault::is("task_trusted") {
            let at = (self.waits.waits()).position(|wait| wait.element != Kind::Task);
            second = at.and_then(|at| self.take(at, is_of_chain));
        }
        Some([first.waker, second.and_then(|wait| wait.waker)])
    }

    fn take(&mut self, at: usize, is_of_chain: bool) -> Option<Wait<Kind>> {
        let wait = self.waits.take(at)?;
        self.threads -= usize::from(wait.element != Kind::Task);
        if is_of_chain && wait.element == Kind::Thread {
            self.waking = Some(wait.entry);
        }
        self.woken += 1;
        Some(wait)
    }

    /// Returns whether a thread of a chain is on its way.
    pub(super) fn is_marked(&self) -> bool {
        self.waking.is_some()
    }

    /// Returns the mark as notifiers see it.
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

    /// Makes an old mark a fresh one; returns whether it was old.
    pub(super) fn renew(&mut self) -> bool {
        std::mem::take(&mut self.is_old)
    }

    /// Takes the mark off the waiter that was woken as `entry`, which looks next, if it has it
    /// still.
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
        // A reference in the simplest form.
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
                    let entry = list.push(waker.clone(), Kind::Task);
                    queue.push_back((entry, waker));
                }
                2 => {
                    let (got, want) = (list.pop(false), queue.pop_front());
                    assert_eq!(got.is_some(), want.is_some(), "round {round}");
                    if let (Some([got, None]), Some((entry, want))) = (got, want) {
                        assert!(got.unwrap().will_wake(&want));
                        assert!(list.remove(entry).is_none(), "it was popped");
                    }
                }
                _ if !queue.is_empty() => {
                    let (entry, want) = queue.remove(choice / 4 % queue.len()).unwrap();
                    let left = list.remove(entry).and_then(|wait| wait.waker);
                    assert!(left.unwrap().will_wake(&want));
                    assert!(list.remove(entry).is_none(), "it left");
                }
                _ => assert!(list.pop(false).is_none()),
            }
            assert_eq!(list.len() as usize, queue.len());
        }
        assert!(list.listed() > list.woken && list.woken > 0);
    }
}
