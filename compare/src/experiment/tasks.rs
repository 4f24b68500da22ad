//! Coroutines and their channels: the cost of a message whose receiver waits as a coroutine.
//!
//! A message is sent, its receiver is resumed, takes it, and waits again. One coroutine gets a
//! million of them, or 30,000 coroutines get 100 each. Our coroutines are in `counts`, where their
//! instructions are counted.

pub(crate) mod peers;

use std::hint::black_box;
use std::time::Instant;

use counts::coroutines::{Anew, Counted, Lines, Message, Spawner};
use counts::timers::Timers;
use thalweg_task::fiber::{Generator, StackOptions, StackPool, Step};
use thalweg_task::{Family, Local, Shared};

use super::Experiment;
use crate::case::{Case, Goal, Settings};
use crate::runner::{Metric, Ran, Run, Subjects, subject, text};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "tasks",
    shows: "messages to coroutines on one thread, fibers, and timers",
    peers: &["futures-channel", "oneshot", "tokio"],
    notes: "By hand: the receiver's future is polled without an executor, which is what the \
            channel alone costs; LocalSet: as tasks of tokio's, which is what a program pays. A \
            channel for one element is made for each message, by the receiver.",
    cases,
};

const METRICS: &[Metric] = &[Metric::lower("time of one", "ns")];
/// There are this many coroutines where there are many; each gets [`MANY_ROUNDS`] messages.
const MANY: u64 = 30_000;
const MANY_ROUNDS: u64 = 100;

const LOCAL: &str = "thalweg Local";
const DESTRUCTOR: &str = "thalweg Local, destructor";
const FIBER: &str = "thalweg fiber";
const SWITCH: &str = "thalweg stack switch";

fn cases(settings: &Settings) -> Vec<Case> {
    let messages = settings.count(1_000_000).max(1_000);
    let case = |name: &str, heading: &str, subjects, coroutines: u64, rounds: u64| {
        let load = Load {
            coroutines: coroutines as usize,
            rounds,
        };
        Case::of(name, heading, METRICS, subjects, load).repeated(21)
    };
    let heading = "one coroutine, one message after the other";
    let one = case("one", heading, receivers(), 1, messages);
    let one = one.goals([
        Goal::at_most(LOCAL, 0, 8.0),
        Goal::at_most(DESTRUCTOR, 0, 8.5),
        Goal::at_most(SWITCH, 0, 4.0),
        Goal::at_most(FIBER, 0, 7.0),
    ]);
    let count = settings.count(MANY).max(100);
    let heading = format!("{count} coroutines, {MANY_ROUNDS} messages each");
    let many = case("many/in order", &heading, receivers(), count, MANY_ROUNDS);
    let many = many.goal(Goal::at_most(LOCAL, 0, 9.5));
    let mut beside = vec![
        subject(LOCAL, tasks::<u64, Local>),
        subject("thalweg slot a message", anew),
    ];
    beside.extend(peers::subjects());
    let heading = "one coroutine, one message after the other";
    let peers = case("peers/one", heading, beside, 1, messages);
    let peers = peers.goals([
        Goal::ratio([LOCAL, "tokio oneshot, by hand"], 0, 4.0),
        Goal::ratio([LOCAL, "oneshot, by hand"], 0, 3.0),
        Goal::ratio([LOCAL, "futures unbounded, by hand"], 0, 2.0),
    ]);
    let create = "thalweg create, run, end";
    let ends = vec![subject(create, |load: &Load| {
        let (spawner, mut sum) = (Spawner::default(), 0);
        let ns = load.timed(|_, number| sum += spawner.create(black_box(number)));
        Ok(ran(sum, load.sent(), ns))
    })];
    let heading = "a task from its beginning to its end";
    let ends = case("ends", heading, ends, 1, messages / 4);
    let ends = ends.goal(Goal::at_most(create, 0, 20.0));
    let sleep = "thalweg sleep_until";
    let timers = vec![subject(sleep, |load: &Load| {
        let timers = Timers::new(PENDING);
        let ns = load.timed(|_, number| timers.insert_cancel(black_box(number)));
        Ok(Run::of([ns]).with_lost(PENDING - timers.pending() as u64))
    })];
    let heading = format!("begun and given up, {PENDING} under way");
    let timers = case("timers", &heading, timers, 1, messages / 4);
    let timers = timers.goal(Goal::at_most(sleep, 0, 15.0));
    vec![one, many, peers, ends, timers]
}

/// Returns the coroutines and fibers of this project.
fn receivers() -> Subjects<Load> {
    vec![
        subject(LOCAL, tasks::<u64, Local>),
        subject(DESTRUCTOR, tasks::<Counted, Local>),
        subject("thalweg Shared", tasks::<u64, Shared>),
        subject(FIBER, fibers::<u64, Local>),
        subject(SWITCH, switch),
    ]
}

#[derive(Debug, Clone)]
pub(crate) struct Load {
    coroutines: usize,
    rounds: u64,
}

impl Load {
    /// Returns the messages of all rounds.
    fn messages(&self) -> u64 {
        self.coroutines as u64 * self.rounds
    }

    /// Sends the messages of all rounds, after a round that is not timed. Returns the time of one,
    /// ns. `each` gets the coroutine and the message's number: 1, 2, 3…
    fn timed(&self, mut each: impl FnMut(usize, u64)) -> f64 {
        let first = self.coroutines as u64;
        let (mut place, mut ns) = (0, 0);
        // `each` is called in one place, so that it is inlined.
        for numbers in [1..=first, first + 1..=self.sent()] {
            let begin = Instant::now();
            for number in numbers {
                each(place, number);
                place = if place + 1 == self.coroutines {
                    0
                } else {
                    place + 1
                };
            }
            ns = begin.elapsed().as_nanos();
        }
        ns as f64 / self.messages() as f64
    }

    /// Returns how many messages [`timed`](Self::timed) sends, the first round included.
    fn sent(&self) -> u64 {
        self.messages() + self.coroutines as u64
    }
}

/// Makes a run of messages with the numbers from 1 to `sent`; those that were received have this
/// sum.
pub fn ran(sum: u64, sent: u64, ns: f64) -> Run {
    let all = (1..=sent).fold(0, u64::wrapping_add);
    Run::of([ns]).with_lost(u64::from(sum != all))
}

/// Sends messages that the receivers take before `send_now` returns.
fn now<M: Message, F: Family>(lines: &Lines<M, F>, load: &Load) -> Run {
    let ns = load.timed(|at, number| lines.send_now(at, black_box(number)));
    ran(lines.seen().sum(), load.sent(), ns)
}

fn tasks<M: Message, F: Family>(load: &Load) -> Ran {
    Ok(now(&Lines::<M, F>::new(load.coroutines), load))
}

fn anew(load: &Load) -> Ran {
    let tasks = Anew::new(load.coroutines);
    let ns = load.timed(|at, number| tasks.send_now(at, black_box(number)));
    Ok(ran(tasks.seen().sum(), load.sent(), ns))
}

fn fibers<M: Message, F: Family>(load: &Load) -> Ran {
    let lines = Lines::<M, F>::fibers(load.coroutines).map_err(text)?;
    Ok(now(&lines, load))
}

/// Passes a number into a stack that is resumed, which suspends itself with it: there is no channel
/// and no task.
fn switch(load: &Load) -> Ran {
    let options = StackOptions {
        size_bytes: 16 << 10,
        max: load.coroutines,
        ..StackOptions::default()
    };
    let stacks = StackPool::new(options).map_err(text)?;
    let echo = |_| {
        stacks.generator(|ctx, mut number| {
            loop {
                number = ctx.suspend(number);
            }
        })
    };
    let echoes: Result<Vec<Generator<u64, u64, ()>>, _> = (0..load.coroutines).map(echo).collect();
    let mut echoes = echoes.map_err(text)?;
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
    Ok(ran(sum, load.sent(), ns))
}

/// This many sleeps are under way beside the one that is timed.
const PENDING: u64 = 10_000;
