//! A plain model of tasks, slots and time. It gets each event as it happens, returns what must
//! follow from it, and notes what can't be right. The order in which tasks are polled is free; but
//! no task is polled that was not woken, and no task that was woken is forgotten.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::task::Poll;

use thalweg_task::TaskError;
use thalweg_task::slot::RecvError;

/// A timer that is late by less is not late.
pub(crate) const TICK_NS: u64 = 1 << 14;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Open,
    Closed,
    Cancelled,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    Later,
    Now,
    Replace,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sent {
    Taken,
    Replaced(usize),
    Full,
    Closed,
    Cancelled,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waits {
    Turn,
    Value,
    Time(u64),
    ValueOrTime(u64),
    Task(usize),
    Waker,
}

/// A task, and the slot that it receives from.
#[derive(Debug)]
struct Known {
    waits: Option<Waits>,
    /// It must be polled before the executor is at rest.
    is_woken: bool,
    /// Wake-ups since then, of which several may be one poll.
    wakes: u32,
    timer_counted: bool,
    is_running: bool,
    /// Its future is being dropped.
    is_ending: bool,
    cause: Option<Result<(), TaskError>>,
    outcome: Option<Result<(), TaskError>>,
    deadline: Option<u64>,
    polls: u32,
    is_held: bool,
    joiner: Option<usize>,
    /// The value that it came to.
    output: Option<usize>,
    value: Option<usize>,
    sender: End,
    receiver: End,
    listens: bool,
    /// A slot keeps the receiver that it woke, and wakes it once more at its end.
    is_kept: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Oracle {
    tasks: Vec<Known>,
    pub(crate) now: u64,
    pub(crate) is_closed: bool,
    /// The first thing that was wrong.
    pub(crate) wrong: Option<String>,
}

impl Oracle {
    pub(crate) fn complain(&mut self, what: String) {
        self.wrong.get_or_insert(what);
    }

    pub(crate) fn agree<T: PartialEq + Debug>(&mut self, what: &str, found: T, expected: T) {
        if found != expected {
            self.complain(format!("{what}: {found:?}, expected {expected:?}"));
        }
    }

    pub(crate) fn count(&self) -> usize {
        self.tasks.len()
    }

    pub(crate) fn spawn(&mut self) -> usize {
        self.tasks.push(Known {
            waits: None,
            is_woken: !self.is_closed,
            wakes: 1,
            timer_counted: false,
            is_running: false,
            is_ending: false,
            cause: None,
            outcome: None,
            deadline: None,
            polls: 0,
            is_held: true,
            joiner: None,
            output: None,
            value: None,
            sender: End::Open,
            receiver: End::Open,
            listens: false,
            is_kept: false,
        });
        self.tasks.len() - 1
    }

    pub(crate) fn wake(&mut self, task: usize) {
        let known = &mut self.tasks[task];
        if known.outcome.is_none() {
            known.is_woken = true;
            known.wakes += 1;
        }
    }

    pub(crate) fn begin(&mut self, task: usize) {
        let now = self.now;
        let known = &mut self.tasks[task];
        if let Some(Waits::Time(until) | Waits::ValueOrTime(until)) = known.waits
            && until <= now
            && !known.timer_counted
        {
            known.timer_counted = true;
            known.wakes += 1;
        }
        let is_right = known.wakes > 0 && known.outcome.is_none() && !known.is_running;
        let state = format!("task {task} was polled: {known:?}");
        known.wakes = known.wakes.saturating_sub(1);
        (known.is_woken, known.is_running) = (false, true);
        known.polls += 1;
        if !is_right {
            self.complain(state);
        }
    }

    pub(crate) fn end(&mut self, task: usize, is_ready: bool) {
        let known = &mut self.tasks[task];
        known.is_running = false;
        if is_ready {
            known.cause = Some(Ok(()));
        }
    }

    pub(crate) fn panics(&mut self, task: usize, text: &str) {
        let known = &mut self.tasks[task];
        known.is_running = false;
        known.is_ending = true;
        known.cause = Some(Err(TaskError::Panicked(text.to_owned())));
    }

    pub(crate) fn waits(&mut self, task: usize, waits: Option<Waits>) {
        let known = &mut self.tasks[task];
        known.waits = waits;
        known.timer_counted = false;
    }

    /// Notes that the future is about to be dropped, which must have a reason.
    pub(crate) fn drops(&mut self, task: usize) {
        let now = self.now;
        let is_closed = self.is_closed;
        let known = &mut self.tasks[task];
        known.is_running = false;
        known.is_ending = true;
        if known.cause.is_some() {
            return;
        }
        let is_late = known.deadline.is_some_and(|deadline| deadline <= now);
        known.cause = Some(Err(if is_late && !is_closed {
            TaskError::TimedOut
        } else {
            TaskError::Cancelled
        }));
        if !is_late && !is_closed {
            self.complain(format!("task {task} was ended without a reason"));
        }
    }

    /// The future has been dropped.
    pub(crate) fn over(&mut self, task: usize) {
        let known = &mut self.tasks[task];
        if known.outcome.is_some() {
            return self.complain(format!("task {task} was dropped twice"));
        }
        known.outcome = known.cause.clone();
        (known.is_woken, known.is_ending, known.waits) = (false, false, None);
        if !known.is_held || known.outcome != Some(Ok(())) {
            known.output = None;
        }
        if let Some(joiner) = known.joiner.take() {
            self.wake(joiner);
        }
    }

    /// Sets the outcome that the task will have, if nothing prevents it.
    pub(crate) fn comes_to(&mut self, task: usize, value: usize) {
        self.tasks[task].output = Some(value);
    }

    pub(crate) fn outcome(&self, task: usize) -> Option<Result<(), TaskError>> {
        self.tasks[task].outcome.clone()
    }

    pub(crate) fn polls(&self, task: usize) -> u32 {
        self.tasks[task].polls
    }

    pub(crate) fn cancel(&mut self, task: usize) -> bool {
        let known = &mut self.tasks[task];
        // One whose future is dropped for another reason is past cancelling, but for a poll that
        // was ready or panicked: such a task is cancelled in vain.
        let in_vain = matches!(known.cause, Some(Ok(()) | Err(TaskError::Panicked(_))));
        if known.outcome.is_some() || (known.cause.is_some() && !in_vain) {
            return false;
        }
        if !in_vain {
            known.cause = Some(Err(TaskError::Cancelled));
        }
        true
    }

    pub(crate) fn deadline(&mut self, task: usize, at: u64) {
        let known = &mut self.tasks[task];
        known.deadline = known.outcome.is_none().then_some(at);
    }

    pub(crate) fn let_go(&mut self, task: usize) {
        let known = &mut self.tasks[task];
        (known.is_held, known.joiner) = (false, None);
        if known.outcome.is_some() {
            known.output = None;
        }
    }

    pub(crate) fn joins(&mut self, task: usize, joined: usize, found: Poll<Result<(), TaskError>>) {
        let known = &mut self.tasks[joined];
        let expected = known.outcome.clone().map_or(Poll::Pending, Poll::Ready);
        match &expected {
            Poll::Pending => known.joiner = Some(task),
            Poll::Ready(_) => known.output = None,
        }
        self.agree("a join", found, expected);
    }

    /// Gives what a send must come to, and whether it must run the receiver, if that is certain.
    pub(crate) fn sends(&mut self, to: usize, value: usize, how: How) -> (Sent, Option<bool>) {
        let depth = self.tasks.iter().filter(|known| known.is_running).count();
        let known = &mut self.tasks[to];
        match (known.receiver, known.value, how) {
            (End::Closed, ..) => return (Sent::Closed, None),
            (End::Cancelled, ..) => return (Sent::Cancelled, None),
            (End::Open, Some(_), How::Later | How::Now) => return (Sent::Full, None),
            _ => {}
        }
        let before = known.value.replace(value);
        let can_run = known.listens && !known.is_running && !known.is_ending;
        let runs = match can_run {
            true if depth > 16 => None,
            runs => Some(runs && how == How::Now),
        };
        if std::mem::take(&mut known.listens) {
            self.wake(to);
        }
        (before.map_or(Sent::Taken, Sent::Replaced), runs)
    }

    pub(crate) fn sender_ends(&mut self, of: usize, end: End) {
        let known = &mut self.tasks[of];
        known.sender = end;
        if end == End::Cancelled {
            known.value = None;
        }
        self.wake_kept(of);
    }

    pub(crate) fn receiver_ends(&mut self, of: usize, end: End) {
        let known = &mut self.tasks[of];
        known.receiver = end;
        known.value = None;
        self.wake_kept(of);
    }

    fn wake_kept(&mut self, of: usize) {
        let known = &mut self.tasks[of];
        known.wakes += u32::from(std::mem::take(&mut known.is_kept));
        if std::mem::take(&mut known.listens) {
            self.wake(of);
        }
    }

    pub(crate) fn receives(&mut self, task: usize, found: Poll<Result<usize, RecvError>>) {
        let known = &mut self.tasks[task];
        let expected = match (known.value.take(), known.sender) {
            (Some(value), _) => Poll::Ready(Ok(value)),
            (None, End::Open) => Poll::Pending,
            (None, End::Closed) => Poll::Ready(Err(RecvError::Closed)),
            (None, End::Cancelled) => Poll::Ready(Err(RecvError::Cancelled)),
        };
        known.listens = expected.is_pending();
        known.is_kept |= known.listens;
        self.agree("a receive", found, expected);
    }

    pub(crate) fn stops_listening(&mut self, task: usize) {
        self.tasks[task].listens = false;
    }

    pub(crate) fn sleeps(&mut self, task: usize, until: u64, is_over: bool) {
        let now = self.now;
        if is_over && now < until {
            self.complain(format!("task {task} slept until {now}, not {until}"));
        }
    }

    /// Checks what must hold where nothing is left to do. `alive` are the values that are there.
    pub(crate) fn rests(&mut self, live: usize, alive: &BTreeSet<usize>) {
        let now = self.now;
        let is_late = |at: u64| at + TICK_NS <= now;
        let mut forgotten = Vec::new();
        let mut values = BTreeSet::new();
        for (task, known) in self.tasks.iter_mut().enumerate() {
            known.wakes = 0;
            values.extend(known.value);
            if known.outcome.is_some() {
                values.extend(known.output);
                continue;
            }
            let (is_there, is_open) = (known.value.is_some(), known.sender == End::Open);
            let is_due = match known.waits {
                None | Some(Waits::Turn) => true,
                Some(Waits::Waker | Waits::Task(_)) => false,
                Some(Waits::Value) => is_there || !is_open,
                Some(Waits::Time(until)) => is_late(until),
                Some(Waits::ValueOrTime(until)) => is_there || !is_open || is_late(until),
            };
            if known.is_woken || is_due || known.deadline.is_some_and(is_late) {
                forgotten.push(format!("task {task} was forgotten: {known:?}"));
            }
        }
        for known in &self.tasks {
            if let (None, Some(Waits::Task(joined))) = (&known.outcome, known.waits)
                && self.tasks[joined].outcome.is_some()
            {
                forgotten.push(format!("who joins task {joined} was forgotten"));
            }
        }
        forgotten.into_iter().for_each(|what| self.complain(what));
        let expected = self.tasks.iter().filter(|known| known.outcome.is_none());
        let expected = expected.count();
        self.agree("live tasks", live, expected);
        if *alive != values {
            self.complain(format!("values {alive:?} are there, expected {values:?}"));
        }
    }
}
