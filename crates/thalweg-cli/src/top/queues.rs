//! The queues of the programs that export to a directory, in one form for pipelines, buses and
//! channels.

use std::time::Duration;
use thalweg_doctor::evidence::export::{Exported, File, Inbox, LatencySummary, Stage, between};

/// A file that is older belongs to a program that was killed, or is stopped: a running program
/// writes ten times a second.
const SILENT_AFTER: Duration = Duration::from_secs(3);
/// From this share of the time on, a thread that is at work explains why events wait for it.
const BUSY_MIN: f64 = 0.9;
/// From this share of the looks on, senders find a queue full.
const FULL_MIN: f64 = 0.1;
/// Below this share, a thread is at work so rarely that events do not wait for its work.
const IDLE_MAX: f64 = 0.5;
/// A mean wait below this is that of a hand-over between two threads.
const SHORT_NS: f64 = 10_000.0;

/// The kind of a channel with a name.
pub(super) const CHANNEL: &str = "channel";

/// The state of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum State {
    Live,
    /// It has written nothing for this number of seconds.
    Silent(u64),
    Ended,
}

/// The messages that did not get through, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Losses {
    pub(super) lost: u64,
    pub(super) refused: u64,
    pub(super) timed_out: u64,
    pub(super) evicted: u64,
    pub(super) discarded: u64,
}

/// A queue: what waits to be sent into a ring, for a stage, or in an inbox or channel.
#[derive(Clone, Debug)]
pub(super) struct Queue {
    /// The process, the number of the pipeline, bus or channel in it, and the queue in that.
    pub(super) id: (u32, u64, usize),
    pub(super) kind: &'static str,
    pub(super) name: String,
    pub(super) state: State,
    pub(super) depth: u64,
    pub(super) depth_max: u64,
    pub(super) capacity: u64,
    /// Events that came and went a second: lately, or since the start where there is one snapshot.
    pub(super) in_per_s: f64,
    pub(super) out_per_s: f64,
    /// The share of the time in which its thread, or each of its consumers, is at work; none where
    /// it has neither.
    pub(super) busy: Option<f64>,
    /// The mean time in the queue, lately or since the start; none where nothing came.
    pub(super) wait_mean_ns: Option<f64>,
    /// Median, 99th percentile and maximum of the time in the queue, since the start; none of a
    /// bus, whose messages carry no times.
    pub(super) waits_ns: Option<[u64; 3]>,
    /// The mean time of work for an event, as the rate.
    pub(super) work_mean_ns: Option<f64>,
    /// The share of the looks that found it full.
    pub(super) full: f64,
    pub(super) consumers: Option<u64>,
    pub(super) losses: Option<Losses>,
    /// The stage that panicked.
    pub(super) failed_stage: String,
}

impl Queue {
    /// Returns the name with the process and number in front of it.
    pub(super) fn title(&self) -> String {
        format!("{}-{} {}", self.id.0, self.id.1, self.name)
    }

    pub(super) fn lost(&self) -> u64 {
        self.losses.map_or(0, |losses| losses.lost)
    }

    /// Returns why events wait, as far as the figures say.
    pub(super) fn cause(&self) -> String {
        let percent = |share: f64| format!("{:.0} %", share * 100.0);
        match (self.state, self.busy) {
            _ if !self.failed_stage.is_empty() => {
                format!("stage {} panicked", self.failed_stage)
            }
            (State::Ended, _) => "it has ended".to_owned(),
            (State::Silent(seconds), _) => {
                format!("nothing written for {seconds} s: stopped or killed")
            }
            _ if self.depth > 0 && self.consumers == Some(0) => "it has no consumer".to_owned(),
            _ if self.wait_mean_ns.is_none_or(|ns| ns <= 0.0) && self.depth == 0 => {
                "nothing waits".to_owned()
            }
            _ if self.kind == CHANNEL => self.cause_in_channel(),
            (_, None) if self.full >= FULL_MIN => {
                format!("the ring is full {} of the time", percent(self.full))
            }
            (_, None) => "the ring has room: the sender itself is late".to_owned(),
            (_, Some(busy)) if busy >= BUSY_MIN => {
                let more = match self.in_per_s > self.out_per_s * 1.05 {
                    true => ", and more comes than goes",
                    false => "",
                };
                format!("its thread is at work {} of the time{more}", percent(busy))
            }
            _ if self.wait_mean_ns.is_some_and(|ns| ns < SHORT_NS) => {
                "a hand-over between threads".to_owned()
            }
            (_, Some(busy)) if busy <= IDLE_MAX && self.full >= FULL_MIN => format!(
                "full {} of the time, and its thread at work {}: it has no core, or waits itself",
                percent(self.full),
                percent(busy)
            ),
            (_, Some(busy)) => format!(
                "bursts: at work {} of the time, up to {} at once",
                percent(busy),
                self.depth_max
            ),
        }
    }
}

impl Queue {
    fn cause_in_channel(&self) -> String {
        if self.out_per_s <= 0.0 {
            "no receiver takes anything out".to_owned()
        } else if self.full >= FULL_MIN {
            let share = self.full * 100.0;
            format!("full {share:.0} % of the time: receivers are slower than senders")
        } else if self.wait_mean_ns.is_some_and(|ns| ns < SHORT_NS) {
            "a hand-over between threads".to_owned()
        } else {
            format!("bursts: up to {} at once", self.depth_max)
        }
    }
}

/// Returns the queues of these files. Figures of the time between two listings are those since
/// `before`.
pub(super) fn queues(before: &[Exported], now: &[File]) -> Vec<Queue> {
    let files: Vec<Exported> = now.iter().map(|file| file.exported.clone()).collect();
    let lately = between(before, &files);
    let mut queues = Vec::new();
    for file in now {
        let whole = &file.exported;
        let its = |other: &&Exported| {
            (other.process, other.number) == (whole.process, whole.number)
                && other.snapshot == whole.snapshot
        };
        // One that has ended, or is silent, has no figures of lately.
        let is_new = before.iter().find(its).is_none();
        let lately = lately.iter().find(its).filter(|_| is_new).unwrap_or(whole);
        let base = Base {
            whole,
            lately,
            state: state(file),
            is_still: !is_new,
        };
        match whole.kind.as_str() {
            "pipeline" => base.pipeline(&mut queues),
            "bus" => base.bus(&mut queues),
            CHANNEL => queues.extend(base.channel()),
            _ => {}
        }
    }
    queues
}

fn state(file: &File) -> State {
    match file.exported.has_ended {
        true => State::Ended,
        false if file.age >= SILENT_AFTER => State::Silent(file.age.as_secs()),
        false => State::Live,
    }
}

/// A file with the figures of lately.
#[derive(Clone, Copy)]
struct Base<'a> {
    whole: &'a Exported,
    lately: &'a Exported,
    state: State,
    /// Nothing was written since the listing before.
    is_still: bool,
}

impl Base<'_> {
    fn queue(self, at: usize, kind: &'static str, name: String) -> Queue {
        Queue {
            id: (self.whole.process, self.whole.number, at),
            kind,
            name: plain(&name),
            state: self.state,
            depth: 0,
            depth_max: 0,
            capacity: 0,
            in_per_s: 0.0,
            out_per_s: 0.0,
            busy: None,
            wait_mean_ns: None,
            waits_ns: None,
            work_mean_ns: None,
            full: 0.0,
            consumers: None,
            losses: None,
            failed_stage: plain(&self.whole.failed_stage),
        }
    }

    /// Returns events a second: 0 where the program does nothing any more.
    fn rate(self, events: u64) -> f64 {
        match self.is_still || self.state != State::Live {
            true => 0.0,
            false => events as f64 * 1e9 / self.lately.elapsed_ns.max(1) as f64,
        }
    }

    fn busy(self, busy_ns: u64) -> f64 {
        let share = busy_ns as f64 / self.lately.elapsed_ns.max(1) as f64;
        share.min(1.0)
    }

    /// Adds what waits to be sent into the ring, and what waits for each stage.
    fn pipeline(self, queues: &mut Vec<Queue>) {
        let (whole, lately) = (self.whole, self.lately);
        let sent = self.rate(lately.published);
        let full = share(lately.queue.full_looks, lately.queue.looks);
        let is_sampled = lately.end_to_end.count > 0;
        queues.push(Queue {
            depth: whole.in_flight,
            depth_max: whole.in_flight_max,
            capacity: whole.queue.capacity,
            in_per_s: sent,
            out_per_s: sent,
            wait_mean_ns: is_sampled.then_some(lately.publish_delay_mean_ns),
            full,
            ..self.queue(0, "ring", "(send)".to_owned())
        });
        let mut arriving = sent;
        for (at, stage) in whole.stages.iter().enumerate() {
            let recent = lately.stages.get(at).unwrap_or(stage);
            let thread = lately.stages.iter().filter(|it| it.thread == stage.thread);
            let busy_ns = thread.map(|it| it.busy_ns).fold(0, u64::saturating_add);
            queues.push(Queue {
                in_per_s: arriving,
                busy: Some(self.busy(busy_ns)),
                full,
                ..self.stage(at + 1, stage, recent)
            });
            arriving = self.rate(recent.events);
        }
    }

    fn stage(self, at: usize, stage: &Stage, recent: &Stage) -> Queue {
        let mean = |times: &LatencySummary| (times.count > 0).then_some(times.mean_ns);
        let times = &stage.queueing;
        Queue {
            depth: stage.waiting,
            depth_max: stage.waiting_max,
            capacity: self.whole.queue.capacity,
            out_per_s: self.rate(recent.events),
            wait_mean_ns: mean(&recent.queueing),
            waits_ns: (times.count > 0).then_some([times.p50_ns, times.p99_ns, times.max_ns]),
            work_mean_ns: mean(&recent.service),
            ..self.queue(at, "stage", stage.name.clone())
        }
    }

    fn bus(self, queues: &mut Vec<Queue>) {
        for (at, inbox) in self.whole.inboxes.iter().enumerate() {
            let mut same = self.lately.inboxes.iter();
            let recent = same.find(|it| it.inbox == inbox.inbox).unwrap_or(inbox);
            let queue = self.queue(at, "inbox", format!("inbox {}", inbox.inbox));
            queues.push(self.inbox(inbox, recent, queue));
        }
    }

    /// Returns the queue of a channel. Nothing is known of the work of its ends.
    fn channel(self) -> Option<Queue> {
        let inbox = self.whole.inboxes.first()?;
        let recent = self.lately.inboxes.first().unwrap_or(inbox);
        let queue = self.inbox(
            inbox,
            recent,
            self.queue(0, CHANNEL, self.whole.name.clone()),
        );
        // Elements that newer ones replaced have waited, too.
        let received = recent.events as f64 / (recent.events + recent.evicted).max(1) as f64;
        Some(Queue {
            busy: None,
            wait_mean_ns: queue.wait_mean_ns.map(|ns| ns * received),
            work_mean_ns: None,
            consumers: None,
            ..queue
        })
    }

    fn inbox(self, inbox: &Inbox, recent: &Inbox, queue: Queue) -> Queue {
        let looks = recent.queue.looks.max(1) as f64;
        let depth_mean = recent.waiting_sum as f64 / looks;
        // Little 1961: the mean length of a queue is its throughput times the mean time in it.
        let elapsed_ns = self.lately.elapsed_ns as f64;
        let wait = (recent.events > 0).then(|| depth_mean * elapsed_ns / recent.events as f64);
        Queue {
            depth: inbox.waiting,
            depth_max: inbox.waiting_max,
            capacity: inbox.queue.capacity,
            in_per_s: self.rate(recent.issued),
            out_per_s: self.rate(recent.events),
            busy: Some(self.busy(recent.busy_ns / inbox.consumers.max(1))),
            wait_mean_ns: wait,
            work_mean_ns: (recent.events > 0).then(|| recent.busy_ns as f64 / recent.events as f64),
            full: share(recent.queue.full_looks, recent.queue.looks),
            consumers: Some(inbox.consumers),
            losses: Some(Losses {
                lost: inbox.lost,
                refused: inbox.refused,
                timed_out: inbox.timed_out,
                evicted: inbox.evicted,
                discarded: inbox.discarded,
            }),
            ..queue
        }
    }
}

fn share(part: u64, whole: u64) -> f64 {
    (part as f64 / whole.max(1) as f64).min(1.0)
}

/// Returns a name of a file that a terminal can show.
fn plain(name: &str) -> String {
    let cut: String = name.chars().take(64).collect();
    crate::message::shown(cut.as_ref())
}

/// The figure that queues are ordered by; those with the most come first, and those of programs
/// that have ended last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Order {
    /// Mean time in the queue
    #[default]
    Wait,
    /// Events in the queue
    Depth,
    /// Events a second
    Rate,
    /// Share of the time at work
    Busy,
    /// Messages that were lost
    Lost,
    /// Process and number, ascending
    Id,
}

impl Order {
    /// Returns the order that a key chooses.
    pub(super) fn of_key(key: u8) -> Option<Order> {
        Some(match key {
            b'w' => Order::Wait,
            b'd' => Order::Depth,
            b'r' => Order::Rate,
            b'b' => Order::Busy,
            b'l' => Order::Lost,
            b'i' => Order::Id,
            _ => return None,
        })
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Order::Wait => "wait",
            Order::Depth => "depth",
            Order::Rate => "rate",
            Order::Busy => "busy",
            Order::Lost => "lost",
            Order::Id => "id",
        }
    }

    pub(super) fn sort(self, queues: &mut [Queue]) {
        let figure = |queue: &Queue| match self {
            Order::Wait => queue.wait_mean_ns.unwrap_or(0.0),
            Order::Depth => queue.depth as f64,
            Order::Rate => queue.out_per_s,
            Order::Busy => queue.busy.unwrap_or(0.0),
            Order::Lost => queue.lost() as f64,
            Order::Id => 0.0,
        };
        queues.sort_by(|a, b| {
            let by_state = (a.state != State::Live).cmp(&(b.state != State::Live));
            let by_figure = figure(b).total_cmp(&figure(a));
            by_state.then(by_figure).then(a.id.cmp(&b.id))
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(exported: Exported) -> File {
        let age = Duration::ZERO;
        File { exported, age }
    }

    /// Returns the figures that the format's document has as its example.
    fn example() -> Exported {
        let document = include_str!("../../../../docs/export-format.md");
        let begin = document.find("```json\n").expect("an example") + 8;
        let text = &document[begin..];
        let end = text.find("```").expect("it ends");
        serde_json::from_str(&text[..end]).expect("it is JSON")
    }

    #[test]
    fn a_pipeline_has_a_queue_before_its_ring_and_one_before_each_stage() {
        let found = queues(&[], &[file(example())]);
        let [send, stage] = &found[..] else {
            panic!("{found:?}");
        };
        assert_eq!((send.title().as_str(), send.depth), ("4711-1 (send)", 60));
        assert_eq!(send.wait_mean_ns, Some(100.0));
        assert_eq!(send.cause(), "the ring is full 25 % of the time");
        assert_eq!((stage.name.as_str(), stage.capacity), ("match", 64));
        assert_eq!(stage.waits_ns, Some([700, 2_500, 40_000]));
        assert_eq!(stage.wait_mean_ns, Some(800.0));
        assert_eq!(stage.out_per_s.round(), 952_381.0);
        assert_eq!(stage.cause(), "a hand-over between threads");
    }

    #[test]
    fn figures_of_lately_are_those_between_two_snapshots() {
        let before = example();
        let mut after = before.clone();
        after.snapshot += 10;
        after.elapsed_ns += 1_000_000_000;
        after.published += 500;
        let stage = &mut after.stages[0];
        stage.events += 500;
        stage.busy_ns += 950_000_000;
        stage.queueing.count += 500;
        let sum = 3_906.0 * 800.0 + 500.0 * 50_000.0;
        stage.queueing.mean_ns = sum / stage.queueing.count as f64;
        let found = queues(std::slice::from_ref(&before), &[file(after)]);
        let stage = &found[1];
        assert_eq!((stage.in_per_s, stage.out_per_s), (500.0, 500.0));
        assert_eq!(stage.wait_mean_ns.map(f64::round), Some(50_000.0));
        assert_eq!(stage.cause(), "its thread is at work 95 % of the time");
        // Nothing was written in between.
        let still = queues(std::slice::from_ref(&before), &[file(before.clone())]);
        assert_eq!(still[1].out_per_s, 0.0);
    }

    #[test]
    fn an_inbox_has_a_mean_wait_by_its_length_and_losses_by_cause() {
        let inbox = Inbox {
            inbox: 3,
            events: 1_000,
            issued: 1_100,
            lost: 60,
            refused: 50,
            timed_out: 10,
            discarded: 2,
            waiting: 40,
            waiting_sum: 500,
            consumers: 1,
            busy_ns: 990_000_000,
            queue: thalweg_doctor::evidence::export::Queue {
                looks: 100,
                capacity: 64,
                ..Default::default()
            },
            ..Inbox::default()
        };
        let mut bus = example();
        (bus.kind, bus.elapsed_ns) = ("bus".to_owned(), 1_000_000_000);
        bus.inboxes = vec![inbox];
        let found = queues(&[], &[file(bus.clone())]);
        let queue = &found[0];
        assert_eq!(queue.name, "inbox 3");
        assert_eq!(queue.wait_mean_ns, Some(5_000_000.0));
        assert_eq!(
            queue.losses.map(|it| (it.refused, it.timed_out)),
            Some((50, 10))
        );
        assert_eq!(
            queue.cause(),
            "its thread is at work 99 % of the time, and more comes than goes"
        );
        let mut alone = bus;
        alone.inboxes[0].consumers = 0;
        assert_eq!(queues(&[], &[file(alone)])[0].cause(), "it has no consumer");
    }

    #[test]
    fn a_channel_has_its_name_and_no_work() {
        let document = include_str!("../../../../docs/export-format.md");
        let section = document.find("## A channel").expect("a section");
        let begin = document[section..].find("```json\n").expect("an example") + 8;
        let text = &document[section + begin..];
        let end = text.find("```").expect("it ends");
        let channel: Exported = serde_json::from_str(&text[..end]).expect("it is JSON");
        let found = queues(&[], &[file(channel.clone())]);
        let queue = &found[0];
        assert_eq!(queue.title(), "4711-2 orders");
        assert_eq!((queue.kind, queue.busy, queue.depth), ("channel", None, 60));
        assert_eq!(queue.wait_mean_ns, Some(50_000.0));
        assert_eq!(
            queue.cause(),
            "full 30 % of the time: receivers are slower than senders"
        );
        let mut lossy = channel.clone();
        lossy.inboxes[0].evicted = 1_000_000;
        let waits = queues(&[], &[file(lossy)]);
        assert_eq!(waits[0].wait_mean_ns, Some(25_000.0));
        let mut stuck = channel.clone();
        stuck.inboxes[0].events = 0;
        let causes = queues(&[], &[file(stuck)]);
        assert_eq!(causes[0].cause(), "no receiver takes anything out");
        let mut ended = channel;
        ended.has_ended = true;
        assert_eq!(queues(&[], &[file(ended)])[0].cause(), "it has ended");
    }

    #[test]
    fn programs_that_ended_or_write_no_more_come_last() {
        let mut ended = example();
        (ended.has_ended, ended.process) = (true, 1);
        let mut failed = ended.clone();
        (failed.failed_stage, failed.process) = ("a\u{1b}b".to_owned(), 2);
        let mut files = [file(ended), file(failed), file(example())];
        let mut silent = file(example());
        silent.exported.process = 3;
        silent.age = Duration::from_secs(7);
        let mut found = queues(&[], &[&files[..], &[silent]].concat());
        Order::Wait.sort(&mut found);
        let ids: Vec<(u32, usize)> = found.iter().map(|it| (it.id.0, it.id.2)).collect();
        let expected = [
            (4711, 1),
            (4711, 0),
            (1, 1),
            (2, 1),
            (3, 1),
            (1, 0),
            (2, 0),
            (3, 0),
        ];
        assert_eq!(ids, expected);
        let causes: Vec<String> = found[2..5].iter().map(Queue::cause).collect();
        assert_eq!(causes[0], "it has ended");
        assert_eq!(causes[1], "stage a\\x1bb panicked");
        assert_eq!(causes[2], "nothing written for 7 s: stopped or killed");
        assert!(found[2..].iter().all(|it| it.out_per_s == 0.0));
        files.reverse();
        let mut found = queues(&[], &files);
        Order::Id.sort(&mut found);
        assert_eq!(found.last().map(|it| it.id), Some((2, 1, 1)));
    }

    #[test]
    fn each_key_chooses_an_order() {
        let all = <Order as clap::ValueEnum>::value_variants();
        for order in all {
            let key = order.name().as_bytes()[0];
            assert_eq!(Order::of_key(key), Some(*order));
        }
        assert_eq!(Order::of_key(b'x'), None);
    }
}
