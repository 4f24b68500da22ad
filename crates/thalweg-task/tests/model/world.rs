//! The state that all tasks of a run share, and the operations on it, which report to the oracle.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::task::Waker;
use std::time::{Duration, Instant};

use thalweg_task::slot::SendError;
use thalweg_task::{Family, Handle, SlotSender, Task, TaskId, slot};

use super::oracle::{End, How, Oracle, Sent};
use super::script::{Act, Listener, Script, Watched, play};

/// More are not spawned.
const TASKS_MAX: usize = 60;

/// How something is wrong on purpose, which the oracle must notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    None,
    WakeIsLost,
    SpuriousWake,
    ValueLeaks,
    ValueDropsTwice,
    SleepIsShort,
    SleepIsLong,
    CancelIsLost,
    SendIsLost,
    OutcomeIsAnother,
}

/// A value that is counted.
pub(crate) struct Token {
    pub(crate) number: usize,
    counts: Rc<RefCell<BTreeMap<usize, i32>>>,
}

impl Drop for Token {
    fn drop(&mut self) {
        *self.counts.borrow_mut().entry(self.number).or_default() -= 1;
    }
}

type Sender<F> = Rc<SlotSender<Token, F>>;

pub(crate) struct World<F: Family> {
    pub(crate) handle: Handle,
    pub(crate) oracle: RefCell<Oracle>,
    pub(crate) begin: Instant,
    pub(crate) now: Rc<Cell<Instant>>,
    pub(crate) scripts: Vec<Script>,
    pub(crate) fault: Fault,
    pub(crate) counts: Rc<RefCell<BTreeMap<usize, i32>>>,
    pub(crate) ids: RefCell<Vec<Option<TaskId>>>,
    pub(crate) tasks: RefCell<Vec<Option<Task<Token>>>>,
    pub(crate) senders: RefCell<Vec<Option<Sender<F>>>>,
    pub(crate) wakers: RefCell<Vec<(usize, Waker)>>,
}

impl<F: Family> World<F> {
    pub(crate) fn with_oracle<R>(&self, what: impl FnOnce(&mut Oracle) -> R) -> R {
        what(&mut self.oracle.borrow_mut())
    }

    pub(crate) fn token(&self) -> Token {
        let mut counts = self.counts.borrow_mut();
        let number = counts.len();
        counts.insert(number, 1);
        Token {
            number,
            counts: Rc::clone(&self.counts),
        }
    }

    /// Disposes of a value that is of no use any more.
    pub(crate) fn discard(&self, token: Token) {
        match self.fault {
            // As if it had leaked; a true leak would be the sanitizer's.
            Fault::ValueLeaks => *self.counts.borrow_mut().entry(token.number).or_default() += 1,
            Fault::ValueDropsTwice => {
                *self.counts.borrow_mut().entry(token.number).or_default() -= 1;
            }
            _ => drop(token),
        }
    }

    pub(crate) fn choose(&self, choice: usize) -> Option<usize> {
        choice.checked_rem(self.ids.borrow().len())
    }

    pub(crate) fn perform(self: &Rc<Self>, act: &Act) {
        match *act {
            Act::Spawn(script, deadline) => self.spawn(script, deadline),
            Act::Wake(choice) => self.wake(choice, false),
            Act::WakeElsewhere(choice) => self.wake(choice, true),
            Act::DropWaker(choice) => {
                let mut wakers = self.wakers.borrow_mut();
                let chosen = choice.checked_rem(wakers.len());
                let waker = chosen.map(|chosen| wakers.swap_remove(chosen));
                drop(wakers);
                drop(waker);
            }
            Act::Send(to, how) => self
                .choose(to)
                .into_iter()
                .for_each(|to| self.send(to, how)),
            Act::EndSender(of, end) => self
                .choose(of)
                .into_iter()
                .for_each(|of| self.mute(of, end)),
            Act::Cancel(task) => self
                .choose(task)
                .into_iter()
                .for_each(|task| self.cancel(task)),
            Act::LetGo(task) => {
                let task = self.choose(task).and_then(|task| self.take(task));
                drop(task);
            }
            Act::SetDeadline(task, after) => {
                if let Some(mut held) = self.choose(task).and_then(|task| self.take(task)) {
                    held.set_deadline(after);
                    held.put_back();
                }
            }
        }
    }

    fn spawn(self: &Rc<Self>, script: usize, deadline: Option<u64>) {
        if self.with_oracle(|oracle| oracle.count()) >= TASKS_MAX {
            return;
        }
        let script = self.scripts[script % self.scripts.len()].clone();
        let number = self.with_oracle(Oracle::spawn);
        let (tx, rx) = slot::<Token, F>();
        let listener = Listener::new(self, number, rx);
        // An executor that is gone drops the future within `spawn`.
        self.ids.borrow_mut().push(None);
        self.tasks.borrow_mut().push(None);
        self.senders.borrow_mut().push(Some(Rc::new(tx)));
        let future = Watched::new(self, number, Box::pin(play(script, listener)));
        let task = self.handle.spawn(future);
        self.ids.borrow_mut()[number] = Some(task.id());
        let mut held = Held {
            world: Rc::clone(self),
            number,
            task: Some(task),
        };
        if let Some(after) = deadline {
            held.set_deadline(after);
        }
        held.put_back();
    }

    fn wake(&self, choice: usize, elsewhere: bool) {
        let wakers = self.wakers.borrow();
        let Some(chosen) = choice.checked_rem(wakers.len()) else {
            return;
        };
        let (task, waker) = wakers[chosen].clone();
        drop(wakers);
        self.with_oracle(|oracle| oracle.wake(task));
        if self.fault == Fault::WakeIsLost {
            return;
        }
        if elsewhere {
            let thread = std::thread::spawn(move || waker.wake());
            thread.join().expect("it only wakes");
        } else {
            waker.wake();
        }
    }

    fn send(&self, to: usize, how: How) {
        let Some(tx) = self.senders.borrow()[to].clone() else {
            return;
        };
        let token = self.token();
        let (expected, must_run) = self.with_oracle(|oracle| oracle.sends(to, token.number, how));
        let polls = self.with_oracle(|oracle| oracle.polls(to));
        if self.fault == Fault::SendIsLost {
            return;
        }
        let mut ran = false;
        let result = match how {
            How::Later => tx.send(token).map(|()| None),
            How::Now => tx.send_now(token).map(|now| {
                ran = now;
                None
            }),
            How::Replace => tx.replace(token),
        };
        let (found, back) = match result {
            Ok(None) => (Sent::Taken, None),
            Ok(Some(before)) => (Sent::Replaced(before.number), Some(before)),
            Err(refused) => {
                let kind = match &refused {
                    SendError::Full(_) => Sent::Full,
                    SendError::Closed(_) => Sent::Closed,
                    _ => Sent::Cancelled,
                };
                (kind, Some(refused.into_inner()))
            }
        };
        drop(back);
        self.with_oracle(|oracle| {
            oracle.agree("a send", found, expected);
            if matches!(expected, Sent::Taken | Sent::Replaced(_))
                && let Some(must_run) = must_run
            {
                oracle.agree("a receiver ran", ran, must_run);
            }
            let was_polled = oracle.polls(to) > polls;
            if ran && !was_polled {
                oracle.complain(format!("task {to} was reported to have run"));
            }
        });
    }

    fn mute(&self, of: usize, end: End) {
        let tx = self.senders.borrow_mut()[of].take();
        let Some(tx) = tx else {
            return;
        };
        // One that sends further down the stack stays.
        match Rc::try_unwrap(tx) {
            Err(busy) => self.senders.borrow_mut()[of] = Some(busy),
            Ok(tx) => {
                self.with_oracle(|oracle| oracle.sender_ends(of, end));
                match end {
                    End::Cancelled => tx.cancel(),
                    _ => drop(tx),
                }
            }
        }
    }

    fn cancel(&self, task: usize) {
        let id = self.ids.borrow()[task];
        let expected = self.with_oracle(|oracle| oracle.cancel(task));
        if self.fault != Fault::CancelIsLost {
            let found = id.is_some_and(|id| self.handle.cancel(id));
            self.with_oracle(|oracle| oracle.agree("a cancellation", found, expected));
        }
    }

    /// Takes a task's handle from where all can reach it.
    pub(crate) fn take(self: &Rc<Self>, number: usize) -> Option<Held<F>> {
        let task = self.tasks.borrow_mut()[number].take()?;
        Some(Held {
            world: Rc::clone(self),
            number,
            task: Some(task),
        })
    }

    pub(crate) fn at(&self, after: u64) -> u64 {
        self.with_oracle(|oracle| oracle.now) + after
    }
}

/// A task's handle.
pub(crate) struct Held<F: Family> {
    world: Rc<World<F>>,
    pub(crate) number: usize,
    pub(crate) task: Option<Task<Token>>,
}

impl<F: Family> Held<F> {
    fn set_deadline(&mut self, after: u64) {
        let at = self.world.at(after);
        self.world
            .with_oracle(|oracle| oracle.deadline(self.number, at));
        let task = self.task.take().expect("it is put back");
        self.task = Some(task.deadline(Duration::from_nanos(after)));
    }

    fn put_back(mut self) {
        self.world.tasks.borrow_mut()[self.number] = self.task.take();
    }
}

impl<F: Family> Drop for Held<F> {
    fn drop(&mut self) {
        if let Some(task) = self.task.take() {
            self.world.with_oracle(|oracle| oracle.let_go(self.number));
            drop(task);
        }
    }
}
