//! A server of requests: a client's thread sends them by a ring, a task serves each, and replies go
//! back by another ring. A task asks a backend, which takes its time, and waits for the answer with
//! a deadline; so there are thousands of tasks at a time, on one thread.
//!
//! `cargo run --release -p thalweg-task --example requests`
//!
//! Nothing is lost and nothing grows without bounds: where the client does not take its replies, or
//! tasks are as many as allowed, requests stay in their ring, and the client waits for room.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::thread;
use std::time::Duration;

use thalweg::channel::{Receiver, Sender, Spsc, spsc};
use thalweg_task::{Handle, Local, LocalExecutor, SlotReceiver, SlotSender, TaskId, slot};

/// The load of a run, and how the backend answers it.
#[derive(Debug, Clone)]
struct Plan {
    /// How many requests the client sends.
    requests: u64,
    /// The time that the backend takes for an answer.
    backend: Duration,
    /// Every such request gets no answer in time; 0 for none.
    stuck: u64,
    /// How long a task waits for its answer.
    deadline: Duration,
    /// How many requests are served at once, at most.
    tasks: usize,
    /// Room for requests, and for replies, between the threads.
    ring: usize,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            requests: 100_000,
            backend: Duration::from_millis(50),
            stuck: 1_000,
            deadline: Duration::from_millis(250),
            tasks: 20_000,
            ring: 1_024,
        }
    }
}

struct Reply {
    number: u64,
    /// Nothing where the backend was late.
    answer: Option<u64>,
}

/// The backend, as a task sees it: a question goes out, and the answer comes by a slot. Here it is
/// a task that sleeps; it could be a thread behind a ring, whose receiver `Handle::spawn_for_each`
/// reads.
struct Backend {
    handle: Handle,
    plan: Plan,
}

/// A question that was asked, with the task that is to be cancelled where it is given up.
struct Question {
    answer: SlotReceiver<u64, Local>,
    task: TaskId,
}

impl Backend {
    fn ask(&self, question: u64) -> Question {
        let (tx, answer) = slot();
        let is_stuck = self.plan.stuck > 0 && (question + 1).is_multiple_of(self.plan.stuck);
        let late = Duration::from_secs(3600);
        let sleep = self
            .handle
            .sleep(if is_stuck { late } else { self.plan.backend });
        let task = self.handle.spawn(async move {
            sleep.await;
            // An error says that no task waits for the answer any more.
            let _ = tx.send(question.wrapping_mul(question));
        });
        let id = task.id();
        task.detach();
        Question { answer, task: id }
    }
}

/// The state that the tasks of the server share.
struct Server {
    handle: Handle,
    backend: Backend,
    deadline: Duration,
    outbox: Rc<Outbox>,
    /// Signals that the outbox has something.
    filled: SlotSender<(), Local>,
}

/// Replies that are ready, and requests that have none in their ring yet.
#[derive(Default)]
struct Outbox {
    replies: RefCell<VecDeque<Reply>>,
    served: Cell<usize>,
    served_max: Cell<usize>,
}

impl Server {
    /// One request, from its ring to the outbox.
    async fn serve(self: Rc<Self>, number: u64) {
        let mut question = self.backend.ask(number);
        let answer = self
            .handle
            .timeout(self.deadline, question.answer.recv())
            .await;
        if answer.is_err() {
            self.handle.cancel(question.task);
        }
        let reply = Reply {
            number,
            answer: answer.ok().and_then(Result::ok),
        };
        self.outbox.replies.borrow_mut().push_back(reply);
        // A full slot means that it was signalled already.
        let _ = self.filled.send(());
    }
}

/// Takes requests out of the ring, while there are not too many of them.
async fn accept(
    server: Rc<Server>,
    mut requests: Receiver<u64, Spsc>,
    mut room: SlotReceiver<(), Local>,
    tasks: usize,
) {
    const BATCH: usize = 64;
    let mut batch = Vec::with_capacity(BATCH);
    // One wake-up for all requests that have come meanwhile; an error is the client's end.
    while requests.recv_many_async(&mut batch, BATCH).await.is_ok() {
        for request in batch.drain(..) {
            let served = &server.outbox.served;
            while served.get() >= tasks {
                if room.recv().await.is_err() {
                    return; // no client takes replies any more
                }
            }
            served.set(served.get() + 1);
            let most = &server.outbox.served_max;
            most.set(most.get().max(served.get()));
            server
                .handle
                .spawn(Rc::clone(&server).serve(request))
                .detach();
        }
    }
}

/// Puts the replies into their ring, and waits for room there.
async fn send_replies(
    outbox: Rc<Outbox>,
    mut replies: Sender<Reply, Spsc>,
    mut filled: SlotReceiver<(), Local>,
    room: SlotSender<(), Local>,
) {
    // It is over when the last task has gone, and all output was received.
    while filled.recv().await.is_ok() {
        loop {
            let next = outbox.replies.borrow_mut().pop_front();
            let Some(reply) = next else { break };
            if replies.send_async(reply).await.is_err() {
                return;
            }
            outbox.served.set(outbox.served.get() - 1);
            let _ = room.send(());
        }
    }
}

/// The server's thread; returns how many requests were served at once, at most.
fn serve(plan: &Plan, requests: Receiver<u64, Spsc>, replies: Sender<Reply, Spsc>) -> usize {
    let executor = LocalExecutor::new();
    let (handle, outbox) = (executor.handle(), Rc::new(Outbox::default()));
    let (filled, is_filled) = slot();
    let (room, has_room) = slot();
    let server = Rc::new(Server {
        backend: Backend {
            handle: handle.clone(),
            plan: plan.clone(),
        },
        handle,
        deadline: plan.deadline,
        outbox: Rc::clone(&outbox),
        filled,
    });
    executor
        .spawn(accept(server, requests, has_room, plan.tasks))
        .detach();
    executor
        .spawn(send_replies(Rc::clone(&outbox), replies, is_filled, room))
        .detach();
    executor.run();
    outbox.served_max.get()
}

/// The answers that the client has seen, counted.
#[derive(Default)]
struct Report {
    answered: u64,
    late: u64,
    wrong: u64,
}

impl Report {
    fn take(&mut self, reply: &Reply) {
        match reply.answer {
            None => self.late += 1,
            Some(answer) => {
                self.answered += 1;
                self.wrong += u64::from(answer != reply.number.wrapping_mul(reply.number));
            }
        }
    }
}

/// Sends requests, and takes replies meanwhile. Where their ring is full it waits for a reply.
fn send_requests(
    plan: &Plan,
    mut requests: Sender<u64, Spsc>,
    mut replies: Receiver<Reply, Spsc>,
) -> Report {
    let mut report = Report::default();
    for number in 0..plan.requests {
        while requests.try_send(number).is_err() {
            // The server has requests, so replies come. One that has gone would be an error.
            let Ok(reply) = replies.recv() else {
                return report;
            };
            report.take(&reply);
        }
    }
    drop(requests); // the server's tasks end, and then the ring of the replies
    replies.iter().for_each(|reply| report.take(&reply));
    report
}

/// The whole run; gives what is to be printed.
fn run(plan: &Plan) -> Result<String, String> {
    let (to_server, requests) = spsc(plan.ring);
    let (to_client, replies) = spsc(plan.ring);
    let (report, served_max) = thread::scope(|scope| {
        let server = scope.spawn(|| serve(plan, requests, to_client));
        let report = send_requests(plan, to_server, replies);
        (report, server.join().expect("the server does not panic"))
    });
    let Report {
        answered,
        late,
        wrong,
    } = report;
    if answered + late != plan.requests || wrong > 0 {
        return Err(format!(
            "{} requests, but {answered} answers, {wrong} of them wrong, and {late} too late",
            plan.requests
        ));
    }
    Ok(format!(
        "{answered} requests answered, {late} without an answer in time; at most {served_max} at \
         once\n"
    ))
}

fn main() -> Result<(), String> {
    print!("{}", run(&Plan::default())?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(requests: u64, backend_ms: u64, deadline_ms: u64) -> Plan {
        Plan {
            requests,
            backend: Duration::from_millis(backend_ms),
            deadline: Duration::from_millis(deadline_ms),
            ..Plan::default()
        }
    }

    fn output(plan: &Plan) -> String {
        run(plan).expect("all requests are answered")
    }

    #[test]
    fn every_request_has_its_reply() {
        let text = output(&Plan {
            stuck: 0,
            ..plan(10_000, 1, 60_000)
        });
        assert!(
            text.starts_with("10000 requests answered, 0 without"),
            "{text}"
        );
    }

    #[test]
    fn a_task_waits_no_longer_than_its_deadline() {
        let text = output(&plan(300, 60_000, 1));
        assert!(
            text.starts_with("0 requests answered, 300 without"),
            "{text}"
        );
    }

    #[test]
    fn with_hardly_any_room_nothing_is_lost() {
        let text = output(&Plan {
            ring: 1,
            tasks: 2,
            ..plan(300, 1, 60_000)
        });
        assert!(text.starts_with("300 requests answered"), "{text}");
        // On a busy machine the second may always come when the first is done.
        let at_once = ["at most 1 at once", "at most 2 at once"];
        assert!(at_once.iter().any(|most| text.contains(most)), "{text}");
    }
}
