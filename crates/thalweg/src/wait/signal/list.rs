//! The waiters of a signal, first come first served: a list inside a vector of slots.

use super::chain::Mark;
use super::{OLD, WAKING};
use std::task::Waker;

/// Waiters for which there is room without allocating.
const SLOTS_MIN: usize = 16;
/// The end of a chain of slots.
const NONE: u32 = u32::MAX;

/// One wait, from [`Signal::register`](super::Signal::register) until it is notified or leaves.
/// No two waits of a signal have the same, so that an old one does no harm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "a wait that is not unregistered swallows a notification"]
pub struct Entry {
    slot: u32,
    ticket: u64,
}

#[derive(Debug)]
struct Slot {
    /// The wait that is listed here; of a free slot, any that was.
    ticket: u64,
    /// There is none in a free slot.
    waker: Option<Waker>,
    /// It wakes a thread, which will run and look, whatever happens.
    is_thread: bool,
    previous: u32,
    /// The next waiter, or the next free slot.
    next: u32,
}

/// Waiters in the order in which they came. Every operation takes the same few steps, however many
/// there are; slots are allocated only beyond the largest number that ever waited together.
#[derive(Debug)]
pub(super) struct List {
    slots: Vec<Slot>,
    free: u32,
    first: u32,
    last: u32,
    len: u32,
    /// Waits listed ever; also the ticket of the last one.
    parked: u64,
    /// Waits taken off by a notification, ever.
    woken: u64,
    /// A thread that was woken as one of a chain and has not looked yet.
    waking: Option<Entry>,
    /// Notifications have passed that mark without a fence.
    is_old: bool,
}

impl List {
    pub(super) fn new() -> Self {
        Self {
            slots: Vec::with_capacity(SLOTS_MIN),
            free: NONE,
            first: NONE,
            last: NONE,
            len: 0,
            parked: 0,
            woken: 0,
            waking: None,
            is_old: false,
        }
    }

    pub(super) fn len(&self) -> u32 {
        self.len
    }

    /// Whether nobody is listed, and nobody on the way.
    pub(super) fn is_idle(&self) -> bool {
        #[cfg(loom)]
        if crate::ring::sync::fault::is("chain_cleared") {
            return self.len == 0;
        }
        self.len == 0 && self.waking.is_none()
    }

    pub(super) fn parked(&self) -> u64 {
        self.parked
    }

    pub(super) fn woken(&self) -> u64 {
        self.woken
    }

    /// Appends a waiter.
    pub(super) fn push(&mut self, waker: Waker, is_thread: bool) -> Entry {
        self.parked += 1;
        let ticket = self.parked;
        let previous = self.last;
        let new = Slot {
            ticket,
            waker: Some(waker),
            is_thread,
            previous,
            next: NONE,
        };
        let slot = match self.free {
            NONE => {
                self.slots.push(new);
                self.slots.len() as u32 - 1
            }
            free => {
                let place = &mut self.slots[free as usize];
                self.free = place.next;
                *place = new;
                free
            }
        };
        match previous {
            NONE => self.first = slot,
            previous => self.slots[previous as usize].next = slot,
        }
        self.last = slot;
        self.len += 1;
        Entry { slot, ticket }
    }

    /// Takes the waiter that came first, to be woken.
    pub(super) fn pop(&mut self) -> Option<Waker> {
        if self.first == NONE {
            return None;
        }
        self.woken += 1;
        self.take(self.first)
    }

    /// As [`pop`](Self::pop), and remembers it as waking if it is a thread.
    pub(super) fn pop_of_chain(&mut self) -> Option<Waker> {
        let slot = self.slots.get(self.first as usize)?;
        if slot.is_thread {
            self.waking = Some(Entry {
                slot: self.first,
                ticket: slot.ticket,
            });
        }
        self.pop()
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
        #[cfg(loom)]
        if crate::ring::sync::fault::is("chain_kept") {
            return Some(Mark::Fresh);
        }
        self.waking = None;
        Some(if self.renew() { Mark::Old } else { Mark::Fresh })
    }

    /// Takes a waiter that leaves; `None` if it was popped.
    pub(super) fn remove(&mut self, entry: Entry) -> Option<Waker> {
        self.waker_mut(entry)?;
        self.take(entry.slot)
    }

    /// The waker of a waiter that is still listed.
    pub(super) fn waker_mut(&mut self, entry: Entry) -> Option<&mut Waker> {
        let slot = self.slots.get_mut(entry.slot as usize)?;
        if slot.ticket == entry.ticket {
            slot.waker.as_mut()
        } else {
            None
        }
    }

    /// Unlinks a slot that is listed, and frees it.
    fn take(&mut self, at: u32) -> Option<Waker> {
        let slot = &mut self.slots[at as usize];
        let (previous, next) = (slot.previous, slot.next);
        let waker = slot.waker.take();
        slot.next = self.free;
        self.free = at;
        match previous {
            NONE => self.first = next,
            previous => self.slots[previous as usize].next = next,
        }
        match next {
            NONE => self.last = previous,
            next => self.slots[next as usize].previous = previous,
        }
        self.len -= 1;
        waker
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::collections::VecDeque;
    use std::sync::Arc;
    use std::task::Wake;

    /// A waker that is told from others by its address.
    struct Numbered;

    impl Wake for Numbered {
        fn wake(self: Arc<Self>) {}
    }

    fn waker() -> Waker {
        Waker::from(Arc::new(Numbered))
    }

    #[test]
    fn waiters_are_served_as_they_came_and_may_leave_from_anywhere() {
        let mut list = List::new();
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
                    let entry = list.push(waker.clone(), false);
                    queue.push_back((entry, waker));
                }
                2 => {
                    let (got, want) = (list.pop(), queue.pop_front());
                    assert_eq!(got.is_some(), want.is_some(), "round {round}");
                    if let (Some(got), Some((entry, want))) = (got, want) {
                        assert!(got.will_wake(&want));
                        assert!(list.remove(entry).is_none(), "it was popped");
                    }
                }
                _ if !queue.is_empty() => {
                    let (entry, want) = queue.remove(choice / 4 % queue.len()).unwrap();
                    assert!(list.waker_mut(entry).unwrap().will_wake(&want));
                    assert!(list.remove(entry).unwrap().will_wake(&want));
                    assert!(list.waker_mut(entry).is_none(), "it left");
                }
                _ => assert!(
                    list.remove(Entry {
                        slot: 99,
                        ticket: 1
                    })
                    .is_none()
                ),
            }
            assert_eq!(list.len() as usize, queue.len());
        }
        assert!(list.slots.len() <= 40, "slots are used again");
        assert!(list.parked() > list.woken() && list.woken() > 0);
    }
}
