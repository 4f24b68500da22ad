//! Bursts from another thread to 64 tasks, message by message. Time counts from the first `send`
//! until the last message is taken; then the next burst begins. Each thread has a core.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::mpsc as std_mpsc;
use std::time::Instant;

use counts::coroutines::Seen;
use thalweg::channel::spsc;
use thalweg_task::{Core, Local, slot};
use tokio::sync::mpsc;
use tokio::task::LocalSet;

use super::{METRICS, ran};
use crate::case::{Case, Goal};
use crate::runner::{Ran, Run, subject, text};
use crate::threads::Seats;

const TASKS: usize = 64;
/// A burst has this many messages, to the tasks in turn.
const BURST: u64 = 1_024;

type Ends = std_mpsc::Receiver<Instant>;

/// Sends all bursts, after one that is not timed. Returns the time of a message, ns.
fn produce(bursts: &u64, ends: &Ends, mut send: impl FnMut(usize, u64)) -> Result<f64, String> {
    let mut ns = 0;
    for burst in 0..=*bursts {
        let begin = Instant::now();
        for number in burst * BURST + 1..=(burst + 1) * BURST {
            send(number as usize % TASKS, number);
        }
        let end = ends.recv().map_err(|_| "the receivers are gone")?;
        if burst > 0 {
            ns += end.saturating_duration_since(begin).as_nanos();
        }
    }
    Ok(ns as f64 / (*bursts * BURST) as f64)
}

/// A board counts the messages that the tasks took.
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
            // A sender that is gone needs no notification.
            let _ = self.ended.send(Instant::now());
        }
    }
}

/// Runs `serve` on a core of its own, and the sender on another.
fn across(
    bursts: &u64,
    send: impl FnMut(usize, u64),
    serve: impl FnOnce(Rc<Board>) -> Result<(), String> + Send,
) -> Ran {
    let (ended, ends) = std_mpsc::channel();
    let sent = move || produce(bursts, &ends, send);
    let all = (*bursts + 1) * BURST;
    let served = move || {
        let board = Rc::new(Board {
            seen: Seen::default(),
            count: Cell::new(0),
            ended,
        });
        serve(Rc::clone(&board))?;
        Ok::<Run, String>(ran(board.seen.sum(), all, 0.0))
    };
    let (ns, run) = Seats::apart()?.run(sent, served)?;
    let mut run = run?;
    run.values = vec![ns?];
    Ok(run)
}

/// Gives each task a channel, and the other thread all their senders.
fn tokio_each(bursts: &u64) -> Ran {
    let (txs, rxs): (Vec<_>, Vec<_>) = (0..TASKS)
        .map(|_| mpsc::channel::<u64>(BURST as usize))
        .unzip();
    let send = move |to: usize, number| {
        // There is room for a whole burst.
        let _ = txs[to].try_send(number);
    };
    across(bursts, send, |board| {
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        let runtime = runtime.map_err(text)?;
        let tasks = LocalSet::new();
        for mut rx in rxs {
            let board = Rc::clone(&board);
            tasks.spawn_local(async move {
                while let Some(number) = rx.recv().await {
                    board.take(number);
                }
            });
        }
        // The tasks end with their channels.
        runtime.block_on(tasks);
        Ok(())
    })
}

/// Puts a ring between the threads, from which a core takes batches; each message resumes its task.
fn fed(bursts: &u64) -> Ran {
    let (mut tx, rx) = spsc::<(usize, u64)>(BURST as usize);
    let send = move |to, number| {
        // A receiver that is gone shows in the sum of the messages.
        let _ = tx.send((to, number));
    };
    across(bursts, send, |board| {
        let core = Core::new();
        let mut lines = Vec::with_capacity(TASKS);
        for _ in 0..TASKS {
            let (tx, mut rx) = slot::<u64, Local>();
            lines.push(tx);
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
            // A message that was not taken shows in the sum.
            let _ = lines[to].send_now(number);
        });
        let fed = core.block_on(feed).map_err(text)?;
        match fed == (*bursts + 1) * BURST {
            true => Ok(()),
            false => Err(format!("{fed} messages came through the ring")),
        }
    })
}

pub(crate) fn case(messages: u64) -> Case {
    const OURS: &str = "thalweg ring and slots";
    const TOKIO: &str = "tokio mpsc, one a task";
    let subjects = vec![subject(OURS, fed), subject(TOKIO, tokio_each)];
    let heading = format!("{BURST} messages from another thread to {TASKS} tasks");
    let load = (messages / BURST / 2).max(2);
    let case = Case::of("burst", heading, METRICS, subjects, load).repeated(21);
    case.goal(Goal::ratio([OURS, TOKIO], 0, 5.0))
}
