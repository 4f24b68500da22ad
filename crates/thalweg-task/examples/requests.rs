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
use std::process::ExitCode;
use std::rc::Rc;
use std::thread;
use std::time::Duration;

use thalweg::channel::{Receiver, Sender, Spsc, spsc};
use thalweg_measure::clock::Clock;
use thalweg_measure::histogram::Histogram;
use thalweg_measure::load::{OpenLoop, Rate};
use thalweg_measure::table::{Nanoseconds, Table};
use thalweg_task::{Core, Handle, Local, SlotRx, SlotTx, TaskId, slot};

const HELP: &str = "\
Serves requests with a task for each, and prints how long they took.

usage: requests [OPTION VALUE]...
  --requests N   how many requests the client sends (100000)
  --rate R       how many of them are due a second, such as 200k (200k)
  --backend MS   milliseconds that the backend takes for an answer (50)
  --stuck N      every Nth request gets no answer in time; 0: none (1000)
  --deadline MS  milliseconds that a task waits for its answer (250)
  --tasks N      how many requests are served at once, at most (20000)
  --ring N       room for requests, and for replies, between the threads (1024)
  --help         says this";

/// What is to be done.
#[derive(Debug, Clone)]
struct Plan {
    requests: u64,
    rate: Rate,
    backend: Duration,
    stuck: u64,
    deadline: Duration,
    tasks: usize,
    ring: usize,
}

impl Plan {
    /// The plan of these arguments; nothing where they ask for help.
    fn parse(mut args: impl Iterator<Item = String>) -> Result<Option<Self>, String> {
        let mut plan = Self {
            requests: 100_000,
            rate: Rate::per_second(200_000).map_err(|error| error.to_string())?,
            backend: Duration::from_millis(50),
            stuck: 1_000,
            deadline: Duration::from_millis(250),
            tasks: 20_000,
            ring: 1_024,
        };
        while let Some(option) = args.next() {
            if option == "--help" {
                return Ok(None);
            }
            let known = [
                "requests", "rate", "backend", "stuck", "deadline", "tasks", "ring",
            ];
            let Some(name) = option
                .strip_prefix("--")
                .filter(|name| known.contains(name))
            else {
                return Err(format!("there is no option {option:?}; see --help"));
            };
            let Some(value) = args.next() else {
                return Err(format!("{option} needs a value"));
            };
            let number = |least: u32, most: u32| match value.parse() {
                Ok(number) if (least..=most).contains(&number) => Ok(number),
                _ => Err(format!(
                    "{option} {value}: not a number from {least} to {most}"
                )),
            };
            let time = || number(0, 3_600_000).map(|ms| Duration::from_millis(ms.into()));
            match name {
                "requests" => plan.requests = number(1, u32::MAX)?.into(),
                "rate" => {
                    plan.rate = value
                        .parse()
                        .map_err(|error| format!("{option}: {error}"))?
                }
                "backend" => plan.backend = time()?,
                "stuck" => plan.stuck = number(0, u32::MAX)?.into(),
                "deadline" => plan.deadline = time()?,
                "tasks" => plan.tasks = number(1, 1 << 20)? as usize,
                _ => plan.ring = number(1, 1 << 20)? as usize,
            }
        }
        Ok(Some(plan))
    }
}

struct Request {
    number: u64,
    /// When the client meant to send it, in ticks of the clock.
    due: u64,
}

struct Reply {
    number: u64,
    due: u64,
    /// When its task began, and when it was done.
    begun: u64,
    done: u64,
    /// Nothing where the backend was late.
    answer: Option<u64>,
}

/// The backend, as a task sees it: a question goes out, and the answer comes by a slot. Here it is
/// a task that sleeps; it could be a thread behind a ring, whose receiver `Handle::feed` reads.
struct Backend {
    handle: Handle,
    plan: Plan,
}

/// A question that was asked, with the task that is to be cancelled where it is given up.
struct Question {
    answer: SlotRx<u64, Local>,
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
            // An error says that nobody waits for the answer any more.
            let _ = tx.send(question.wrapping_mul(question));
        });
        let id = task.id();
        task.detach();
        Question { answer, task: id }
    }
}

/// What the tasks of the server share.
struct Server {
    handle: Handle,
    backend: Backend,
    deadline: Duration,
    outbox: Rc<Outbox>,
    /// Says that the outbox has something.
    filled: SlotTx<(), Local>,
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
    async fn serve(self: Rc<Self>, request: Request, clock: Clock) {
        let begun = clock.ticks();
        let mut question = self.backend.ask(request.number);
        let answer = self
            .handle
            .timeout(self.deadline, question.answer.recv())
            .await;
        if answer.is_err() {
            self.handle.cancel(question.task);
        }
        let reply = Reply {
            number: request.number,
            due: request.due,
            begun,
            done: clock.ticks(),
            answer: answer.ok().and_then(Result::ok),
        };
        self.outbox.replies.borrow_mut().push_back(reply);
        // A full slot says that it was said already.
        let _ = self.filled.send(());
    }
}

/// Takes requests out of the ring, while there are not too many of them.
async fn accept(
    server: Rc<Server>,
    mut requests: Receiver<Request, Spsc>,
    mut room: SlotRx<(), Local>,
    tasks: usize,
    clock: Clock,
) {
    const BATCH: usize = 64;
    let mut batch = Vec::with_capacity(BATCH);
    // One wake-up for all requests that have come meanwhile; an error is the client's end.
    while requests.recv_many_async(&mut batch, BATCH).await.is_ok() {
        for request in batch.drain(..) {
            let served = &server.outbox.served;
            while served.get() >= tasks {
                if room.recv().await.is_err() {
                    return; // nobody takes replies any more
                }
            }
            served.set(served.get() + 1);
            let most = &server.outbox.served_max;
            most.set(most.get().max(served.get()));
            server
                .handle
                .spawn(Rc::clone(&server).serve(request, clock))
                .detach();
        }
    }
}

/// Puts the replies into their ring, and waits for room there.
async fn send_replies(
    outbox: Rc<Outbox>,
    mut replies: Sender<Reply, Spsc>,
    mut filled: SlotRx<(), Local>,
    room: SlotTx<(), Local>,
) {
    // It is over when the last task has gone, and all that was said was heard.
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

/// The server's thread; gives how many requests were served at once, at most.
fn serve(plan: &Plan, requests: Receiver<Request, Spsc>, replies: Sender<Reply, Spsc>) -> usize {
    let core = Core::new();
    let (handle, outbox) = (core.handle(), Rc::new(Outbox::default()));
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
    let clock = Clock::global();
    core.spawn(accept(server, requests, has_room, plan.tasks, clock))
        .detach();
    core.spawn(send_replies(Rc::clone(&outbox), replies, is_filled, room))
        .detach();
    core.run();
    outbox.served_max.get()
}

/// What the client has seen.
#[derive(Default)]
struct Report {
    answered: u64,
    late: u64,
    wrong: u64,
    to_task_ns: Histogram,
    in_task_ns: Histogram,
    in_all_ns: Histogram,
}

impl Report {
    fn take(&mut self, reply: &Reply, clock: Clock) {
        let Some(answer) = reply.answer else {
            self.late += 1;
            return;
        };
        self.answered += 1;
        self.wrong += u64::from(answer != reply.number.wrapping_mul(reply.number));
        let ns = |from: u64, to: u64| clock.ns(to.saturating_sub(from));
        self.to_task_ns.record(ns(reply.due, reply.begun));
        self.in_task_ns.record(ns(reply.begun, reply.done));
        self.in_all_ns.record(ns(reply.due, clock.ticks()));
    }

    /// Nothing where nothing was answered, and so nothing measured.
    fn table(&self) -> String {
        if self.answered == 0 {
            return String::new();
        }
        let mut table = Table::new(["", "p50", "p90", "p99", "p99.9", "max"]);
        for (name, latency_ns) in [
            ("due -> its task runs", &self.to_task_ns),
            ("task runs -> is done", &self.in_task_ns),
            ("due -> client has the reply", &self.in_all_ns),
        ] {
            let s = latency_ns.summary();
            let times = [s.p50, s.p90, s.p99, s.p999, s.max];
            let times = times.map(|ns| Nanoseconds(ns as f64).into());
            table.row([name.into()].into_iter().chain(times));
        }
        table.to_string()
    }
}

/// Sends requests when they are due, and takes replies meanwhile. Where their ring is full it waits
/// for a reply: latency counts from when a request was due, so that this wait is in it.
fn send_requests(
    plan: &Plan,
    mut requests: Sender<Request, Spsc>,
    mut replies: Receiver<Reply, Spsc>,
) -> Report {
    let (clock, mut report) = (Clock::global(), Report::default());
    let mut load = OpenLoop::new(clock, plan.rate).yielding(true);
    load.run(plan.requests, |number, due| {
        let mut request = Request { number, due };
        while let Err(full) = requests.try_send(request) {
            request = full.into_inner();
            // The server has requests, so replies come. One that has gone would be an error.
            let Ok(reply) = replies.recv() else { return };
            report.take(&reply, clock);
        }
        while let Ok(reply) = replies.try_recv() {
            report.take(&reply, clock);
        }
    });
    drop(requests); // the server's tasks end, and then the ring of the replies
    for reply in replies.iter() {
        report.take(&reply, clock);
    }
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
        ..
    } = report;
    if answered + late != plan.requests || wrong > 0 {
        return Err(format!(
            "{} requests, but {answered} answers, {wrong} of them wrong, and {late} too late",
            plan.requests
        ));
    }
    Ok(format!(
        "{answered} requests answered, {late} without an answer in time; at most {served_max} at \
         once\n{}",
        report.table()
    ))
}

fn program(args: impl Iterator<Item = String>) -> ExitCode {
    let plan = match Plan::parse(args) {
        Ok(Some(plan)) => plan,
        Ok(None) => {
            println!("{HELP}");
            return ExitCode::SUCCESS;
        }
        Err(misuse) => {
            eprintln!("requests: {misuse}");
            return ExitCode::from(2);
        }
    };
    match run(&plan) {
        Ok(text) => {
            print!("{text}");
            ExitCode::SUCCESS
        }
        Err(failure) => {
            eprintln!("requests: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn main() -> ExitCode {
    program(std::env::args().skip(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> impl Iterator<Item = String> + '_ {
        line.split_whitespace().map(str::to_owned)
    }

    fn output(line: &str) -> String {
        let plan = Plan::parse(words(line)).expect("the options are right");
        run(&plan.expect("no help is asked for")).expect("all requests are answered")
    }

    #[test]
    fn every_request_has_its_reply() {
        let text = output("--requests 10000 --rate max --backend 1 --stuck 0 --deadline 60000");
        assert!(text.contains("p99.9"), "{text}");
        assert!(
            text.starts_with("10000 requests answered, 0 without"),
            "{text}"
        );
    }

    #[test]
    fn a_task_waits_no_longer_than_its_deadline() {
        let text = output("--requests 300 --rate max --backend 60000 --deadline 1");
        assert!(
            text.starts_with("0 requests answered, 300 without"),
            "{text}"
        );
        assert_eq!(text.lines().count(), 1, "nothing was measured\n{text}");
    }

    #[test]
    fn with_hardly_any_room_nothing_is_lost() {
        let text =
            output("--requests 300 --rate max --backend 1 --ring 1 --tasks 2 --deadline 60000");
        assert!(text.starts_with("300 requests answered"), "{text}");
        assert!(text.contains("at most 2 at once"), "{text}");
    }

    #[test]
    fn misuse_is_named() {
        for (line, text) in [
            ("--frob 1", "there is no option \"--frob\"; see --help"),
            ("requests", "there is no option \"requests\"; see --help"),
            ("--ring", "--ring needs a value"),
            ("--tasks 0", "--tasks 0: not a number from 1 to 1048576"),
            (
                "--backend -1",
                "--backend -1: not a number from 0 to 3600000",
            ),
        ] {
            assert_eq!(Plan::parse(words(line)).expect_err(line), text);
            assert_eq!(program(words(line)), ExitCode::from(2));
        }
        assert!(Plan::parse(words("--rate x")).is_err_and(|text| text.starts_with("--rate: ")));
        let options = HELP
            .lines()
            .filter_map(|line| line.trim().strip_prefix("--"));
        for option in options.filter_map(|line| line.split(' ').next()) {
            let plan = Plan::parse(words(&format!("--{option} 7")));
            assert_eq!(plan.expect(option).is_none(), option == "help");
        }
    }
}
