//! The tasks of an executor, as its thread keeps them: which are there, which are ready.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::num::NonZeroU32;
use std::ptr::NonNull;
use std::rc::Rc;
use std::task::Waker;

use thalweg::wait::Entry;

use super::hub::HubRef;
use super::pool::{Place, Pool};
use super::release::{drop_ref, end_orphan, free};
use super::thread::{self, Thread};
use super::{DONE, ForeignWaker, Header, NodeRef, QUEUED, RUNNING, Waiter};
use crate::family::sealed::{WakeOnce, Wakes};
use crate::sync::order;
use crate::time::Time;
use crate::wheel::{Timer, Wheel};

/// The id of a task, unique in the process, also among tasks that have ended. It has 12 bytes, as
/// an `Option` of it has, and is `Send`.
///
/// It consists of the number of the task's executor, a slot there, and the number of earlier tasks
/// in that slot, and is displayed as these three: `2.17.0`. The first and the last wrap around
/// after 2^32 executors of the process, and 2^32 tasks in one slot: an id that is kept for that
/// long may name another task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TaskId {
    executor: NonZeroU32,
    place: SlabKey,
}

impl TaskId {
    pub(super) fn new(executor: NonZeroU32, place: SlabKey) -> Self {
        Self { executor, place }
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SlabKey { index, generation } = self.place;
        write!(f, "{}.{index}.{generation}", self.executor)
    }
}

/// The place of a task, which distinguishes it from others of its executor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub(super) struct SlabKey {
    index: u32,
    generation: u32,
}

/// The status of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Status {
    /// It will be polled.
    Ready,
    /// It is being polled, or waits for a task that it resumed.
    Running,
    /// It waits to be woken.
    Waiting,
    /// It is over, or is not one of this executor's.
    Ended,
}

/// An entry of the slab of tasks.
#[derive(Clone, Copy)]
struct SlabEntry {
    generation: u32,
    holds: Occupancy,
}

#[derive(Clone, Copy)]
enum Occupancy {
    Task(NonNull<Header>),
    /// The next free one.
    Free(Option<u32>),
}

/// The action of a timer when it is due.
pub(crate) enum Expiry {
    Wake(Waiter),
    End(TaskId),
}

/// The owner's side of an executor. `!Send`.
pub(crate) struct Scheduler {
    owner: Thread,
    hub: HubRef,
    pool: Pool,
    /// Frames that are not back in the pool.
    frames: Cell<usize>,
    /// The run list.
    first: Cell<Option<NonNull<Header>>>,
    last: Cell<Option<NonNull<Header>>>,
    ready: Cell<usize>,
    /// No task is taken in any more.
    is_closed: Cell<bool>,
    slab: RefCell<Vec<SlabEntry>>,
    free_entry: Cell<Option<u32>>,
    task_count: Cell<usize>,
    /// Timers, with their tasks or wakers.
    pub(crate) wheel: RefCell<Wheel<Expiry>>,
    pub(crate) time: Time,
    /// The waker of another runtime that drives the executor, to be notified that there is
    /// something to do.
    driver: Cell<Option<ForeignWaker>>,
    is_driven: Cell<bool>,
    /// Where that one is listed for what other threads wake.
    listed: Cell<Option<Entry>>,
}

impl Scheduler {
    pub(crate) fn new(time: Time) -> Rc<Self> {
        Rc::new(Self {
            owner: Thread::current(),
            hub: HubRef::new(),
            pool: Pool::new(),
            frames: Cell::new(0),
            first: Cell::new(None),
            last: Cell::new(None),
            ready: Cell::new(0),
            is_closed: Cell::new(false),
            slab: RefCell::default(),
            free_entry: Cell::new(None),
            task_count: Cell::new(0),
            wheel: RefCell::new(Wheel::new()),
            time,
            driver: Cell::new(None),
            is_driven: Cell::new(false),
            listed: Cell::new(None),
        })
    }

    pub(super) fn owner(&self) -> Thread {
        self.owner
    }

    pub(crate) fn hub(&self) -> &HubRef {
        &self.hub
    }

    /// Tasks that are not over.
    pub(crate) fn task_count(&self) -> usize {
        self.task_count.get()
    }

    /// Tasks in the run list.
    pub(crate) fn ready(&self) -> usize {
        self.ready.get()
    }

    /// Frames that are not back in the pool.
    #[cfg(all(test, loom))]
    pub(super) fn frames(&self) -> usize {
        self.frames.get()
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.get()
    }

    #[inline]
    pub(super) fn frame(&self, place: Place) -> NonNull<u8> {
        self.frames.set(self.frames.get() + 1);
        if self.hub.is_closed() {
            self.hub.grant(1);
        }
        self.pool.take(place, &self.hub)
    }

    /// Takes a frame's memory back.
    ///
    /// # Safety
    /// It came from [`frame`](Self::frame), for this place, and is not used any more.
    #[inline]
    pub(super) unsafe fn take_back(&self, place: Place, frame: NonNull<u8>) {
        self.frames.set(self.frames.get() - 1);
        // SAFETY: as the caller says.
        unsafe { self.pool.put(place, frame) };
    }

    /// Gives a task an entry of the slab.
    #[inline]
    pub(super) fn enter(&self, node: NonNull<Header>) -> SlabKey {
        self.task_count.set(self.task_count.get() + 1);
        let mut slab = self.slab.borrow_mut();
        let index = self.free_entry.get().unwrap_or_else(|| {
            slab.push(SlabEntry {
                generation: 0,
                holds: Occupancy::Free(None),
            });
            u32::try_from(slab.len() - 1).expect("fewer than 2^32 tasks: each has 192 bytes")
        });
        let entry = &mut slab[index as usize];
        if let Occupancy::Free(next) = entry.holds {
            self.free_entry.set(next);
        }
        entry.holds = Occupancy::Task(node);
        SlabKey {
            index,
            generation: entry.generation,
        }
    }

    /// A task is over.
    #[inline]
    pub(super) fn leave(&self, id: SlabKey, timer: Option<Timer>) {
        self.task_count.set(self.task_count.get() - 1);
        {
            let entry = &mut self.slab.borrow_mut()[id.index as usize];
            entry.generation = entry.generation.wrapping_add(1);
            entry.holds = Occupancy::Free(self.free_entry.replace(Some(id.index)));
        }
        if let Some(timer) = timer {
            // The timer that is cancelled holds an id: nothing of the caller's is dropped.
            self.wheel.borrow_mut().cancel(timer);
        }
    }

    /// Returns the task, if it is one of this executor's, and not over.
    pub(crate) fn find(&self, id: TaskId) -> Option<NodeRef> {
        let TaskId { executor, place } = id;
        if executor != self.hub.executor {
            return None;
        }
        let entry = *self.slab.borrow().get(place.index as usize)?;
        match entry.holds {
            Occupancy::Task(node) if entry.generation == place.generation => {
                Some(NodeRef::hold(node))
            }
            _ => None,
        }
    }

    pub(crate) fn status(&self, id: TaskId) -> Status {
        let Some(node) = self.find(id) else {
            return Status::Ended;
        };
        let flags = node.header().flags.get();
        if flags & RUNNING != 0 {
            Status::Running
        } else if flags & QUEUED != 0 {
            Status::Ready
        } else {
            Status::Waiting
        }
    }

    /// Returns whether this is called within a task of this executor, which some other code resumed
    /// or ends. Looks at all tasks, but only where the caller is nested in any.
    pub(crate) fn is_within_task(&self) -> bool {
        let is_running = |entry: &SlabEntry| match entry.holds {
            // SAFETY: a task with an entry is not over, so its frame is alive (rule 2).
            Occupancy::Task(node) => unsafe { node.as_ref() }.flags.get() & RUNNING != 0,
            Occupancy::Free(_) => false,
        };
        thread::is_nested() && self.slab.borrow().iter().any(is_running)
    }

    #[inline]
    pub(super) fn push(&self, node: NodeRef) {
        let pointer = std::mem::ManuallyDrop::new(node).0;
        match self.last.replace(Some(pointer)) {
            // SAFETY: it is in the list, which holds it.
            Some(last) => unsafe { last.as_ref() }.next.set(Some(pointer)),
            None => self.first.set(Some(pointer)),
        }
        self.ready.set(self.ready.get() + 1);
        self.notify_driver();
    }

    #[inline]
    fn pop(&self) -> Option<NodeRef> {
        let node = NodeRef(self.first.get()?);
        let next = node.header().next.take();
        self.first.set(next);
        if next.is_none() {
            self.last.set(None);
        }
        self.ready.set(self.ready.get() - 1);
        node.unmark(QUEUED);
        Some(node)
    }

    /// Polls the first of the run list; returns whether there was one.
    #[inline]
    pub(crate) fn run_one(&self) -> bool {
        let Some(node) = self.pop() else {
            return false;
        };
        // It may have ended, or be running further down the stack, which polls it again.
        if !node.has(RUNNING | DONE) {
            node.run();
        } else if !node.has(DONE) {
            node.wake();
        }
        true
    }

    /// Takes in what other threads woke or left.
    pub(crate) fn take_pushed(&self) {
        for node in self.hub.take() {
            // SAFETY: on the stack, a node is alive, or for the owner to end.
            let header = unsafe { node.as_ref() };
            // ORDERING: `alone`, pairs with `leave`: there is no reference left from which another
            // could be made.
            if header.refs.load(order::alone()) == 0 {
                // SAFETY: rule 2.
                unsafe { free(node) };
                continue;
            }
            // ORDERING: `again`, pairs with `mark`.
            header.pushed.swap(false, order::again());
            if header.flags.get() & DONE == 0 {
                NodeRef::hold(node).wake();
            }
            // SAFETY: the stack's reference.
            unsafe { drop_ref(node) };
        }
    }

    /// Has `driver` notified of the next task that is woken, in the place of an earlier driver.
    pub(crate) fn watch(&self, driver: &Waker) -> Entry {
        let (waker, entry) = (
            ForeignWaker::of(driver),
            self.hub.event_count.register(driver),
        );
        self.unwatch();
        self.driver.set(Some(waker));
        self.listed.set(Some(entry));
        self.is_driven.set(true);
        entry
    }

    /// Returns whether this is the driver that is notified.
    pub(crate) fn is_watched_by(&self, driver: Entry) -> bool {
        self.listed.get() == Some(driver)
    }

    /// Ends the notifications of the driver.
    pub(crate) fn unwatch(&self) {
        self.is_driven.set(false);
        let driver = self.driver.take();
        if let Some(entry) = self.listed.take() {
            // A thread that waits beside it is notified as well, by `notify`.
            let _ = self.hub.event_count.unregister(entry);
        }
        drop(driver);
    }

    /// Returns whether no task is left while the executor's driver waits: the last one was
    /// cancelled, or resumed, outside of the executor.
    #[inline]
    pub(super) fn has_ended_unseen(&self) -> bool {
        self.is_driven.get() && self.task_count.get() == 0
    }

    /// Notifies the runtime that drives the executor that there is something to do.
    #[inline]
    pub(crate) fn notify_driver(&self) {
        if self.is_driven.get() {
            self.wake_driver();
        }
    }

    #[cold]
    fn wake_driver(&self) {
        self.is_driven.set(false);
        if let Some(driver) = self.driver.take() {
            driver.wake();
        }
    }

    /// Ends all tasks, and leaves the frames that are still held to the last holder.
    pub(crate) fn close(&self) {
        self.is_closed.set(true);
        self.unwatch(); // a driver that was forgotten
        let mut index = 0;
        while let Some(entry) = { self.slab.borrow().get(index).copied() } {
            if let Occupancy::Task(node) = entry.holds {
                NodeRef::hold(node).cancel(false);
            }
            index += 1;
        }
        while self.pop().is_some() {}
        self.take_pushed();
        self.end_timers();
        for node in self.hub.close(self.frames.get()) {
            // SAFETY: as in `take_pushed`; a reference is given up, or the frame is ended.
            unsafe {
                // ORDERING: `alone`, as there.
                if node.as_ref().refs.load(order::alone()) == 0 {
                    end_orphan(node);
                } else {
                    drop_ref(node);
                }
            }
        }
    }
}
