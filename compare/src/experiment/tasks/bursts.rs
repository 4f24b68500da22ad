//! Bursts from another thread to 64 tasks, message by message. Time counts from the first `send`
//! until the last message is taken; then the next burst begins. Each thread has its core.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::mpsc as std_mpsc;
use std::time::Instant;

use counts::coroutines::Seen;
use thalweg::channel::spsc;
use thalweg_task::{Core, Local, slot};
use tokio::sync::mpsc;
use tokio::task::LocalSet;

use super::load;
use crate::experiment::channels::duo::Seats;
use crate::runner::{Run, Subject, subject};

pub(super) const TASKS: usize = 64;
/// Messages of a burst, the tasks in turn.
pub(super) const BURST: u64 = 1_024;

#[derive(Debug)]
pub(super) struct Bursts(pub(super) u64);

type Ends = std_mpsc::Receiver<Instant>;

/// Sends all bursts, after one that is not timed; gives the time of a message, ns.
fn produce(bursts: &Bursts, ends: &Ends, mut send: impl FnMut(usize, u64)) -> Result<f64, String> {
    let mut ns = 0;
    for burst in 0..=bursts.0 {
        let begin = Instant::now();
        for number in burst * BURST + 1..=(burst + 1) * BURST {
            send(number as usize % TASKS, number);
        }
        let end = ends.recv().map_err(|_| "the receivers are gone")?;
        if burst > 0 {
            ns += end.saturating_duration_since(begin).as_nanos();
        }
    }
    Ok(ns as f64 / (bursts.0 * BURST) as f64)
}

/// Where the tasks note what they took.
struct Board {
    seen: Seen,
    count: Cell<u64>,
    ended: std_mpsc::Sender<Instant>,
}

impl Board {
    #[inline]
    fn take(&self, number: u64) {
        self.seen.take(number);
        self.count.set(self.count.get() + 1);
        if self.count.get().is_multiple_of(BURST) {
            // A sender that is gone needs no word.
            let _ = self.ended.send(Instant::now());
        }
    }
}

/// Runs `serve` on a core of its own, and the sender on another.
fn across(
    bursts: &Bursts,
    send: impl FnMut(usize, u64),
    serve: impl FnOnce(Rc<Board>) -> Result<(), String> + Send,
) -> Result<Run, String> {
    let (ended, ends) = std_mpsc::channel();
    let sent = move || produce(bursts, &ends, send);
    let all = (bursts.0 + 1) * BURST;
    let served = move || {
        let board = Rc::new(Board {
            seen: Seen::default(),
            count: Cell::new(0),
            ended,
        });
        serve(Rc::clone(&board))?;
        Ok::<Run, String>(load::run(board.seen.sum(), all, 0.0))
    };
    let (ns, run) = Seats::apart()?.run(sent, served)?;
    let mut run = run?;
    run.values = vec![ns?];
    Ok(run)
}

fn in_local_set(listeners: impl FnOnce(&LocalSet)) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    let tasks = LocalSet::new();
    listeners(&tasks);
    // Until all are through.
    runtime.block_on(tasks);
    Ok(())
}

/// Each task has a channel, and the other thread all their senders.
fn tokio_each(bursts: &Bursts) -> Result<Run, String> {
    let (txs, rxs): (Vec<_>, Vec<_>) = (0..TASKS)
        .map(|_| mpsc::channel::<u64>(BURST as usize))
        .unzip();
    let send = move |to: usize, number| {
        // There is room for a whole burst.
        let _ = txs[to].try_send(number);
    };
    across(bursts, send, |board| {
        in_local_set(|tasks| {
            for mut rx in rxs {
                let board = Rc::clone(&board);
                tasks.spawn_local(async move {
                    while let Some(number) = rx.recv().await {
                        board.take(number);
                    }
                });
            }
        })
    })
}

/// One channel between the threads, and behind it a task that hands on to those of the others.
fn tokio_handed_on(bursts: &Bursts) -> Result<Run, String> {
    let (tx, mut rx) = mpsc::channel::<(usize, u64)>(BURST as usize);
    let send = move |to, number| {
        // There is room for a whole burst.
        let _ = tx.try_send((to, number));
    };
    across(bursts, send, |board| {
        in_local_set(|tasks| {
            let mut desks = Vec::with_capacity(TASKS);
            for _ in 0..TASKS {
                let (tx, mut rx) = mpsc::channel::<u64>(BURST as usize);
                desks.push(tx);
                let board = Rc::clone(&board);
                tasks.spawn_local(async move {
                    while let Some(number) = rx.recv().await {
                        board.take(number);
                    }
                });
            }
            tasks.spawn_local(async move {
                while let Some((to, number)) = rx.recv().await {
                    // There is room for a whole burst.
                    let _ = desks[to].try_send(number);
                }
            });
        })
    })
}

/// A ring between the threads, from which a core takes batches; each message resumes its task.
fn fed(bursts: &Bursts) -> Result<Run, String> {
    let (mut tx, rx) = spsc::<(usize, u64)>(BURST as usize);
    let send = move |to, number| {
        // A receiver that is gone shows in what came.
        let _ = tx.send((to, number));
    };
    across(bursts, send, |board| {
        let core = Core::new();
        let mut desks = Vec::with_capacity(TASKS);
        for _ in 0..TASKS {
            let (tx, mut rx) = slot::<u64, Local>();
            desks.push(tx);
            let board = Rc::clone(&board);
            core.spawn(async move {
                while let Ok(number) = rx.recv().await {
                    board.take(number);
                }
            })
            .detach();
        }
        while core.poll() {}
        let feed = core.handle().feed(rx, move |(to, number): (usize, u64)| {
            // What was not taken shows in what came.
            let _ = desks[to].send_now(number);
        });
        let fed = core.block_on(feed).map_err(|error| error.to_string())?;
        match fed == (bursts.0 + 1) * BURST {
            true => Ok(()),
            false => Err(format!("{fed} messages came through the ring")),
        }
    })
}

pub(super) const OURS: &str = "thalweg ring and slots";
pub(super) const TOKIO_EACH: &str = "tokio mpsc, one a task";
pub(super) const TOKIO_HANDED_ON: &str = "tokio mpsc, handed on";

pub(super) fn subjects() -> Vec<Box<dyn Subject<Bursts>>> {
    vec![
        subject(OURS, fed),
        subject(TOKIO_EACH, tokio_each),
        subject(TOKIO_HANDED_ON, tokio_handed_on),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_burst_arrives_whole() {
        if let Err(why) = Seats::apart() {
            println!("skipped: {why}");
            return;
        }
        for subject in subjects() {
            // On a thread of its own, which it pins.
            let run = || subject.run(&Bursts(3)).map(|run| run.lost);
            let ran = std::thread::scope(|scope| scope.spawn(run).join());
            let ran = ran.expect("no panic");
            assert_eq!(ran, Ok(0), "{}", subject.name());
        }
    }
}
