//! Coroutines that get messages through slots, begin and end: shared with `cargo compare tasks`.

use std::cell::Cell;
use std::fmt;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use thalweg_task::fiber::{StackError, StackOptions, StackPool};
use thalweg_task::{Family, Local, LocalExecutor, SlotReceiver, SlotSender, Task, TaskError, slot};

/// A value to send.
pub trait Message: 'static {
    /// One with this number. What has a destructor holds `counted`.
    fn of(number: u64, counted: &Rc<()>) -> Self;
    /// Its number.
    fn number(&self) -> u64;
}

impl Message for u64 {
    #[inline(always)]
    fn of(number: u64, _: &Rc<()>) -> u64 {
        number
    }

    #[inline(always)]
    fn number(&self) -> u64 {
        *self
    }
}

/// 32 bytes with a destructor: a reference is counted when it is made, and when it is dropped.
#[derive(Debug)]
pub struct Counted {
    number: u64,
    twice: [u64; 2],
    _reference: Rc<()>,
}

impl Message for Counted {
    #[inline(always)]
    fn of(number: u64, counted: &Rc<()>) -> Self {
        Self {
            number,
            twice: [number; 2],
            _reference: Rc::clone(counted),
        }
    }

    #[inline(always)]
    fn number(&self) -> u64 {
        self.number ^ self.twice[0] ^ self.twice[1]
    }
}

/// The sum of the numbers that receivers took.
#[derive(Debug, Default)]
pub struct Seen(Cell<u64>);

impl Seen {
    /// Adds the number of a message.
    #[inline(always)]
    pub fn take(&self, number: u64) {
        self.0.set(self.0.get().wrapping_add(number));
    }

    /// The sum of the messages, modulo 2^64.
    #[inline(always)]
    pub fn sum(&self) -> u64 {
        self.0.get()
    }
}

async fn listen<M: Message, F: Family>(mut rx: SlotReceiver<M, F>, seen: Rc<Seen>) {
    while let Ok(message) = rx.recv().await {
        seen.take(message.number());
    }
}

/// Where a task leaves the sender of its next message.
type Desk = Rc<Cell<Option<SlotSender<u64, Local>>>>;

async fn listen_anew(desk: Desk, seen: Rc<Seen>) {
    loop {
        let (tx, mut rx) = slot();
        desk.set(Some(tx));
        match rx.recv().await {
            Ok(number) => seen.take(number),
            Err(_) => return,
        }
    }
}

/// Tasks that make a slot for each message, as for the reply to a request.
pub struct Anew {
    desks: Vec<Desk>,
    seen: Rc<Seen>,
    _core: LocalExecutor,
}

impl fmt::Debug for Anew {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tasks = self.desks.len();
        f.debug_struct("Anew")
            .field("tasks", &tasks)
            .finish_non_exhaustive()
    }
}

impl Anew {
    /// Starts `count` tasks.
    pub fn new(count: usize) -> Self {
        let (core, seen) = (LocalExecutor::new(), Rc::new(Seen::default()));
        let desks: Vec<Desk> = (0..count).map(|_| Desk::default()).collect();
        for desk in &desks {
            let task = core.spawn(listen_anew(Rc::clone(desk), Rc::clone(&seen)));
            task.detach();
        }
        while core.poll() {}
        Self {
            desks,
            seen,
            _core: core,
        }
    }

    /// Sends to one task, which takes it, and makes its next slot, before this returns.
    ///
    /// # Panics
    /// If the task has left no sender.
    #[inline(always)]
    pub fn send_now(&self, to: usize, number: u64) {
        let tx = self.desks[to].take().expect("it waits");
        assert!(tx.send_now(number).is_ok());
    }

    /// The sum of the messages that were taken.
    pub fn seen(&self) -> &Seen {
        &self.seen
    }
}

/// Tasks that wait, each for its slot, and the senders of all.
#[derive(Debug)]
pub struct Lines<M, F: Family> {
    counted: Rc<()>,
    txs: Vec<SlotSender<M, F>>,
    seen: Rc<Seen>,
    core: LocalExecutor,
}

impl<M: Message, F: Family> Lines<M, F> {
    /// Starts `count` tasks that take messages themselves.
    pub fn new(count: usize) -> Self {
        Self::of(count, |core, rx, seen| drop(core.spawn(listen(rx, seen))))
    }

    /// Starts `count` fibers.
    ///
    /// # Errors
    /// There are fewer stacks.
    pub fn fibers(count: usize) -> Result<Self, StackError> {
        let options = StackOptions {
            size_bytes: STACK_BYTES,
            max: count,
            ..StackOptions::default()
        };
        let stacks = StackPool::new(options)?;
        let mut failed = None;
        let lines = Self::of(count, |core, mut rx, seen| {
            let fiber = stacks.fiber(move |ctx| {
                while let Ok(message) = rx.recv_fiber(ctx) {
                    seen.take(message.number());
                }
            });
            match fiber {
                Ok(fiber) => drop(core.spawn(fiber)),
                Err(error) => failed = Some(error),
            }
        });
        failed.map_or(Ok(lines), Err)
    }

    fn of(
        count: usize,
        mut spawn: impl FnMut(&LocalExecutor, SlotReceiver<M, F>, Rc<Seen>),
    ) -> Self {
        let (core, seen) = (LocalExecutor::new(), Rc::new(Seen::default()));
        let line = |_| {
            let (tx, rx) = slot::<M, F>();
            spawn(&core, rx, Rc::clone(&seen));
            tx
        };
        let txs = (0..count).map(line).collect();
        while core.poll() {}
        let counted = Rc::new(());
        Self {
            counted,
            txs,
            seen,
            core,
        }
    }

    /// Sends to one task, which takes it before this returns.
    #[inline(always)]
    pub fn send_now(&self, to: usize, number: u64) {
        let sent = self.txs[to].send_now(M::of(number, &self.counted));
        assert!(sent.is_ok());
    }

    /// Sends to one task, which takes it when the core is polled.
    #[inline(always)]
    pub fn send(&self, to: usize, number: u64) {
        let sent = self.txs[to].send(M::of(number, &self.counted));
        assert!(sent.is_ok());
    }

    /// Polls the core until there is nothing to do.
    #[inline(always)]
    pub fn poll(&self) {
        while self.core.poll() {}
    }

    /// The line of the last task; the others end.
    ///
    /// # Panics
    /// If there is none.
    pub fn into_line(mut self) -> Line<M, F> {
        Line {
            tx: self.txs.pop().expect("a line"),
            counted: self.counted,
            _core: self.core,
        }
    }

    /// The sum of the messages that were taken.
    pub fn seen(&self) -> &Seen {
        &self.seen
    }
}

/// One task that waits for a slot, and the sender.
#[derive(Debug)]
pub struct Line<M, F: Family> {
    tx: SlotSender<M, F>,
    counted: Rc<()>,
    _core: LocalExecutor,
}

impl<M: Message, F: Family> Line<M, F> {
    /// Sends to the task, which takes it before this returns.
    #[inline(always)]
    pub fn send_now(&self, number: u64) {
        let sent = self.tx.send_now(M::of(number, &self.counted));
        assert!(sent.is_ok());
    }
}

/// Room for a fiber that takes messages, and for a panic's unwinding.
const STACK_BYTES: usize = 16 << 10;

/// Tasks that begin and end.
#[derive(Debug, Default)]
pub struct Spawner {
    core: LocalExecutor,
}

impl Spawner {
    pub(crate) fn outcome<T: 'static>(mut task: Task<T>) -> Result<T, TaskError> {
        let mut context = Context::from_waker(Waker::noop());
        match Pin::new(&mut task).poll(&mut context) {
            Poll::Ready(outcome) => outcome,
            Poll::Pending => unreachable!("the task is over"),
        }
    }

    /// A task is made, run, and gives its output.
    #[inline(always)]
    pub fn create(&self, number: u64) -> u64 {
        let task = self.core.spawn(async move { number });
        self.core.poll();
        Self::outcome(task).expect("it comes to its end")
    }

    /// A task that waits for a slot, and ends since the slot's sender goes.
    #[inline(always)]
    pub fn close(&self, number: u64) -> u64 {
        let (tx, task) = self.waiting(number);
        drop(tx);
        self.core.poll();
        Self::outcome(task).expect("it comes to its end")
    }

    /// A task that waits for a slot, and is cancelled.
    #[inline(always)]
    pub fn cancel(&self, number: u64) -> u64 {
        let (tx, task) = self.waiting(number);
        task.cancel();
        drop(tx);
        match Self::outcome(task) {
            Err(TaskError::Cancelled) => number,
            _ => unreachable!("it was cancelled"),
        }
    }

    /// A task that panics with `number`, by `resume_unwind`, which asks no hook.
    pub fn panic(&self, number: u64) -> u64 {
        let task = self.core.spawn(async move {
            std::panic::resume_unwind(Box::new("a panic"));
        });
        self.core.poll();
        match Self::outcome::<()>(task) {
            Err(TaskError::Panicked(_)) => number,
            _ => unreachable!("it panicked"),
        }
    }

    #[inline(always)]
    fn waiting(&self, number: u64) -> (SlotSender<u64, Local>, Task<u64>) {
        let (tx, mut rx) = slot::<u64, Local>();
        let task = self.core.spawn(async move {
            let end = rx.recv().await;
            number + u64::from(end.is_ok())
        });
        self.core.poll();
        (tx, task)
    }
}
