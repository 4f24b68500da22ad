//! Scripts of tasks, which report their steps to the oracle.

use std::future::{Future, poll_fn};
use std::panic::panic_any;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use thalweg_task::{Family, SlotReceiver, TaskError, yield_now};

use super::oracle::{End, How, TICK_NS, Waits};
use super::world::{Fault, Token, World};

/// The text of a panic of a task.
pub(crate) const PANIC: &str = "on purpose";

/// An act that any part of the test can do, and that is done when it returns. The number of its
/// target is taken modulo those that there are.
#[derive(Debug, Clone)]
pub(crate) enum Act {
    Spawn(usize, Option<u64>),
    Send(usize, How),
    EndSender(usize, End),
    Cancel(usize),
    LetGo(usize),
    SetDeadline(usize, u64),
    Wake(usize),
    WakeElsewhere(usize),
    DropWaker(usize),
}

/// A line of a task's script.
#[derive(Debug, Clone)]
pub(crate) enum Line {
    Do(Act),
    Yield,
    Receive,
    ReceiveWithin(u64),
    /// Does something while it waits already.
    ReceiveAnd(Act),
    Sleep(u64),
    Join(usize),
    Keep,
    EndReceiver(End),
    Panic,
}

#[derive(Debug, Clone)]
pub(crate) struct Script {
    pub(crate) lines: Vec<Line>,
    /// The acts of its destructor.
    pub(crate) parting: Vec<Act>,
}

/// A task's receiver.
pub(crate) struct Listener<F: Family> {
    world: Rc<World<F>>,
    number: usize,
    rx: Option<SlotReceiver<Token, F>>,
}

impl<F: Family> Listener<F> {
    pub(crate) fn new(
        world: &Rc<World<F>>,
        number: usize,
        rx: SlotReceiver<Token, F>,
    ) -> Listener<F> {
        Listener {
            world: Rc::clone(world),
            number,
            rx: Some(rx),
        }
    }

    fn end(&mut self, end: End) {
        if let Some(rx) = self.rx.take() {
            self.world
                .with_oracle(|oracle| oracle.receiver_ends(self.number, end));
            match end {
                End::Cancelled => rx.cancel(),
                _ => drop(rx),
            }
        }
    }
}

impl<F: Family> Drop for Listener<F> {
    fn drop(&mut self) {
        self.end(End::Closed);
    }
}

struct Parting<F: Family>(Rc<World<F>>, Vec<Act>);

impl<F: Family> Drop for Parting<F> {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.1.iter().for_each(|act| self.0.perform(act));
        }
    }
}

/// A task's future, which reports its polls and its end.
pub(crate) struct Watched<F: Family> {
    inner: Pin<Box<dyn Future<Output = Token>>>,
    is_over: IsOver<F>,
}

/// Behind the future, so dropped after it.
struct IsOver<F: Family>(Rc<World<F>>, usize);

impl<F: Family> Watched<F> {
    pub(crate) fn new(
        world: &Rc<World<F>>,
        number: usize,
        inner: Pin<Box<dyn Future<Output = Token>>>,
    ) -> Watched<F> {
        let is_over = IsOver(Rc::clone(world), number);
        Watched { inner, is_over }
    }
}

impl<F: Family> Future for Watched<F> {
    type Output = Token;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Token> {
        let (world, number) = (Rc::clone(&self.is_over.0), self.is_over.1);
        world.with_oracle(|oracle| oracle.begin(number));
        let polled = self.inner.as_mut().poll(context);
        world.with_oracle(|oracle| oracle.end(number, polled.is_ready()));
        polled
    }
}

impl<F: Family> Drop for Watched<F> {
    fn drop(&mut self) {
        self.is_over
            .0
            .with_oracle(|oracle| oracle.drops(self.is_over.1));
    }
}

impl<F: Family> Drop for IsOver<F> {
    fn drop(&mut self) {
        self.0.with_oracle(|oracle| oracle.over(self.1));
    }
}

pub(crate) async fn play<F: Family>(script: Script, mut listener: Listener<F>) -> Token {
    let (world, number) = (Rc::clone(&listener.world), listener.number);
    let _parting = Parting(Rc::clone(&world), script.parting);
    for line in &script.lines {
        match *line {
            Line::Do(ref act) => world.perform(act),
            Line::EndReceiver(end) => listener.end(end),
            Line::Panic => {
                world.with_oracle(|oracle| oracle.panics(number, PANIC));
                panic_any(PANIC);
            }
            Line::Yield => {
                world.with_oracle(|oracle| {
                    oracle.waits(number, Some(Waits::Turn));
                    oracle.wake(number);
                });
                yield_now().await;
            }
            Line::Keep => keep(&world, number).await,
            Line::Join(choice) => join(&world, number, choice).await,
            Line::Receive => receive(&mut listener, None, None).await,
            Line::ReceiveWithin(time) => receive(&mut listener, Some(time), None).await,
            Line::ReceiveAnd(ref act) => receive(&mut listener, None, Some(act)).await,
            Line::Sleep(time) => sleep(&world, number, time).await,
        }
        world.with_oracle(|oracle| oracle.waits(number, None));
    }
    let token = world.token();
    world.with_oracle(|oracle| oracle.comes_to(number, token.number));
    token
}

async fn keep<F: Family>(world: &World<F>, number: usize) {
    let mut has_waited = false;
    poll_fn(|context| {
        if std::mem::replace(&mut has_waited, true) {
            return Poll::Ready(());
        }
        world.with_oracle(|oracle| oracle.waits(number, Some(Waits::Waker)));
        let kept = (number, context.waker().clone());
        world.wakers.borrow_mut().push(kept);
        Poll::Pending
    })
    .await;
}

async fn join<F: Family>(world: &Rc<World<F>>, number: usize, choice: usize) {
    let chosen = world.choose(choice).filter(|&chosen| chosen != number);
    let Some(mut held) = chosen.and_then(|chosen| world.take(chosen)) else {
        return;
    };
    let joined = held.number;
    world.with_oracle(|oracle| oracle.waits(number, Some(Waits::Task(joined))));
    poll_fn(|context| {
        let task = held.task.as_mut().expect("it was taken to be joined");
        let polled = Pin::new(task).poll(context);
        let mut outcome = match &polled {
            Poll::Ready(Ok(_)) => Poll::Ready(Ok(())),
            Poll::Ready(Err(error)) => Poll::Ready(Err(error.clone())),
            Poll::Pending => Poll::Pending,
        };
        if outcome.is_ready() && world.fault == Fault::OutcomeIsAnother {
            outcome = Poll::Ready(Err(TaskError::Cancelled));
        }
        world.with_oracle(|oracle| oracle.joins(number, joined, outcome));
        if let Poll::Ready(Ok(token)) = polled {
            world.discard(token);
            return Poll::Ready(());
        }
        polled.map(drop)
    })
    .await;
}

async fn receive<F: Family>(
    listener: &mut Listener<F>,
    within: Option<u64>,
    mut and: Option<&Act>,
) {
    let (world, number) = (Rc::clone(&listener.world), listener.number);
    let Some(rx) = listener.rx.as_mut() else {
        return;
    };
    let until = within.map(|time| world.at(time));
    let waits = until.map_or(Waits::Value, Waits::ValueOrTime);
    let time = Duration::from_nanos(within.unwrap_or_default());
    let mut time = pin!(within.is_some().then(|| world.handle.sleep(time)));
    let mut recv = rx.recv();
    poll_fn(|context| {
        world.with_oracle(|oracle| oracle.waits(number, Some(waits)));
        let polled = Pin::new(&mut recv).poll(context);
        let outcome = match &polled {
            Poll::Ready(Ok(token)) => Poll::Ready(Ok(token.number)),
            Poll::Ready(Err(error)) => Poll::Ready(Err(*error)),
            Poll::Pending => Poll::Pending,
        };
        world.with_oracle(|oracle| oracle.receives(number, outcome));
        if let Poll::Ready(received) = polled {
            received.into_iter().for_each(|token| world.discard(token));
            return Poll::Ready(());
        }
        if let Some(act) = and.take() {
            world.perform(act);
        }
        let (Some(time), Some(until)) = (time.as_mut().as_pin_mut(), until) else {
            return Poll::Pending;
        };
        let polled = time.poll(context);
        world.with_oracle(|oracle| oracle.sleeps(number, until, polled.is_ready()));
        polled
    })
    .await;
    world.with_oracle(|oracle| oracle.stops_listening(number));
}

async fn sleep<F: Family>(world: &World<F>, number: usize, time: u64) {
    let until = world.at(time);
    let real = match world.fault {
        Fault::SleepIsShort => time.saturating_sub(2 * TICK_NS),
        Fault::SleepIsLong => time + 2 * TICK_NS,
        _ => time,
    };
    let mut sleep = pin!(world.handle.sleep(Duration::from_nanos(real)));
    poll_fn(|context| {
        world.with_oracle(|oracle| oracle.waits(number, Some(Waits::Time(until))));
        let polled = sleep.as_mut().poll(context);
        world.with_oracle(|oracle| oracle.sleeps(number, until, polled.is_ready()));
        if polled.is_pending() && world.fault == Fault::SpuriousWake {
            context.waker().wake_by_ref();
        }
        polled
    })
    .await;
}
