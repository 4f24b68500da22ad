//! Tasks and fibers of this project that wait for slots, what it takes to begin and end one, and
//! timers. What they do is in `counts`, where its instructions are counted.

use std::hint::black_box;

use counts::coroutines::{Anew, Counted, Lines, Message, Spawner};
use counts::timers::Timers;
use thalweg_task::fiber::{Generator, StackOptions, StackPool, Step};
use thalweg_task::{Family, Local, Shared};

use super::load::{self, Load};
use crate::runner::{Run, Subject, subject};

pub(super) const LOCAL: &str = "thalweg Local";
pub(super) const LOCAL_DESTRUCTOR: &str = "thalweg Local, destructor";
pub(super) const LOCAL_BY_CALL: &str = "thalweg Local, by call";
pub(super) const FIBER: &str = "thalweg fiber";
pub(super) const SWITCH: &str = "thalweg stack switch";
pub(super) const CREATE: &str = "thalweg create, run, end";
pub(super) const TIMER: &str = "thalweg sleep_until";
/// A slot for each message, as with others' oneshots.
const ANEW: &str = "thalweg slot a message";

/// The receiver takes each message before `send_now` returns.
fn now<M: Message, F: Family>(lines: &Lines<M, F>, load: &Load) -> Run {
    let ns = load.timed(|at, number| lines.send_now(at, black_box(number)));
    load::run(lines.seen().sum(), load.sent(), ns)
}

/// All messages of a round are sent, then the core is polled.
fn deferred<M: Message, F: Family>(load: &Load) -> Result<Run, String> {
    let lines = Lines::<M, F>::new(load.coroutines);
    let mut left = load.coroutines;
    let ns = load.timed(|at, number| {
        lines.send(at, black_box(number));
        left -= 1;
        if left == 0 {
            lines.poll();
            left = load.coroutines;
        }
    });
    Ok(load::run(lines.seen().sum(), load.sent(), ns))
}

fn tasks<M: Message, F: Family>(load: &Load) -> Result<Run, String> {
    Ok(now(&Lines::<M, F>::new(load.coroutines), load))
}

fn by_call<M: Message, F: Family>(load: &Load) -> Result<Run, String> {
    Ok(now(&Lines::<M, F>::by_call(load.coroutines), load))
}

fn by_boxed_call(load: &Load) -> Result<Run, String> {
    Ok(now(
        &Lines::<u64, Local>::by_boxed_call(load.coroutines),
        load,
    ))
}

fn anew(load: &Load) -> Result<Run, String> {
    let tasks = Anew::new(load.coroutines);
    let ns = load.timed(|at, number| tasks.send_now(at, black_box(number)));
    Ok(load::run(tasks.seen().sum(), load.sent(), ns))
}

fn fibers<M: Message, F: Family>(load: &Load) -> Result<Run, String> {
    let lines = Lines::<M, F>::fibers(load.coroutines).map_err(|error| error.to_string())?;
    Ok(now(&lines, load))
}

/// A number goes into a stack that is resumed, and comes back when it suspends itself: no channel
/// and no task.
fn switch(load: &Load) -> Result<Run, String> {
    let options = StackOptions {
        size_bytes: 16 << 10,
        max: load.coroutines,
        ..StackOptions::default()
    };
    let stacks = StackPool::new(options).map_err(|error| error.to_string())?;
    let echo = |_| {
        stacks.generator(|ctx, mut number| {
            loop {
                number = ctx.suspend(number);
            }
        })
    };
    let echoes: Result<Vec<Generator<u64, u64, ()>>, _> = (0..load.coroutines).map(echo).collect();
    let mut echoes = echoes.map_err(|error| error.to_string())?;
    let mut sum = 0;
    let mut take = |echo: &mut Generator<u64, u64, ()>, number| {
        if let Step::Yielded(number) = echo.resume(black_box(number)) {
            sum += number;
        }
    };
    let ns = match &mut echoes[..] {
        [echo] => load.timed(|_, number| take(echo, number)),
        all => load.timed(|at, number| take(&mut all[at], number)),
    };
    Ok(load::run(sum, load.sent(), ns))
}

/// Those that get messages.
pub(super) fn receivers() -> Vec<Box<dyn Subject<Load>>> {
    vec![
        subject(LOCAL, tasks::<u64, Local>),
        subject(LOCAL_DESTRUCTOR, tasks::<Counted, Local>),
        subject(LOCAL_BY_CALL, by_call::<u64, Local>),
        subject("thalweg Local, by boxed call", by_boxed_call),
        subject("thalweg Local, deferred", deferred::<u64, Local>),
        subject("thalweg Shared", tasks::<u64, Shared>),
        subject("thalweg Shared, destructor", tasks::<Counted, Shared>),
        subject("thalweg Shared, deferred", deferred::<u64, Shared>),
        subject(FIBER, fibers::<u64, Local>),
        subject("thalweg fiber, destructor", fibers::<Counted, Local>),
        subject(SWITCH, switch),
    ]
}

/// Those that stand beside the peers: one slot for all messages, which they are held against, and
/// one for each.
pub(super) fn beside_peers() -> Vec<Box<dyn Subject<Load>>> {
    vec![subject(LOCAL, tasks::<u64, Local>), subject(ANEW, anew)]
}

fn ended(load: &Load, operation: impl Fn(&Spawner, u64) -> u64) -> Result<Run, String> {
    let (spawner, mut sum) = (Spawner::default(), 0);
    let ns = load.timed(|_, number| sum += operation(&spawner, black_box(number)));
    Ok(load::run(sum, load.sent(), ns))
}

/// Tasks from their beginning to their end.
pub(super) fn ends() -> Vec<Box<dyn Subject<Load>>> {
    vec![
        subject(CREATE, |load| {
            ended(load, |spawner, number| spawner.create(number))
        }),
        subject("thalweg closed while it waits", |load| {
            ended(load, |spawner, number| spawner.close(number))
        }),
        subject("thalweg cancelled while it waits", |load| {
            ended(load, |spawner, number| spawner.cancel(number))
        }),
    ]
}

/// Apart, since it takes a hundred times as long.
pub(super) fn panics() -> Vec<Box<dyn Subject<Load>>> {
    vec![subject("thalweg panics", |load| {
        ended(load, |spawner, number| spawner.panic(number))
    })]
}

/// Sleeps under way beside the one that is timed.
pub(super) const PENDING: u64 = 10_000;

fn timed(load: &Load, operation: impl Fn(&Timers, u64)) -> Result<Run, String> {
    let timers = Timers::new(PENDING);
    let ns = load.timed(|_, number| operation(&timers, black_box(number)));
    let mut run = load::run(0, 0, ns);
    run.lost = PENDING - timers.pending() as u64;
    Ok(run)
}

/// What takes a timer. The first is told when it ends, so it reads no clock; the others do.
pub(super) fn timers() -> Vec<Box<dyn Subject<Load>>> {
    vec![
        subject(TIMER, |load| timed(load, Timers::insert_cancel)),
        subject("thalweg sleep", |load| timed(load, Timers::sleep)),
        subject("thalweg task with a deadline", |load| {
            timed(load, |timers, number| {
                assert_eq!(timers.deadline(number), number);
            })
        }),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::tasks::load::Order;

    #[test]
    fn every_message_and_task_comes_to_its_end() {
        for order in [Order::Made, Order::Random] {
            let load = Load::new(30, 4, order);
            let all = [receivers(), ends(), panics(), timers()];
            for subject in all.into_iter().flatten() {
                let ran = subject.run(&load).map(|run| run.lost);
                assert_eq!(ran, Ok(0), "{} {order:?}", subject.name());
            }
        }
    }
}
