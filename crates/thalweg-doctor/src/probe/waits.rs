//! Samples what blocked threads wait for, from the files under `/proc`, a few times a second.

use crate::probe::blocked::{self, Cause, Files, Seen, Wait};
use crate::probe::futex::{FutexWords, Line, QueueId, Turn};
use crate::probe::memory::{Frame, Memory};
use crate::probe::procfs::{self, Scheduled};
use crate::probe::record::{Event, What};
use crate::probe::symbols::Symbols;
use crate::probe::syscall::{self, Class};
use crate::probe::thread::Thread;
use crate::probe::timeline::Timeline;
use crate::recording::State;
use crate::sys::now_ns;
use std::collections::{HashMap, VecDeque};

/// The maximum number of threads that are sampled in one round.
const THREADS_MAX: usize = 64;
/// The maximum number of threads whose wait causes are remembered.
const HABITS_MAX: usize = 4_096;
/// The maximum number of samples that wait for records, which are those of some milliseconds.
const PENDING_MAX: usize = 16 * THREADS_MAX;

/// A wait that ends this long before its timeout was ended by something else: the kernel rounds
/// timeouts up, and the call begins some µs before the thread is blocked.
const EARLY_NS: u64 = 100_000;
/// Where the ends of waits are not recorded, a poll that starts again within this time is assumed
/// to end by a timeout.
const SOON_NS: u64 = 100_000_000;

/// The place where a thread is blocked.
#[derive(Debug, Default)]
struct Spot {
    /// The function of the kernel.
    channel: Box<str>,
    /// The file or peer of the call.
    object: Box<str>,
    /// The functions that called it, the innermost first, once it was seen twice: many brief
    /// processes are each seen once.
    stack: Option<Box<[Frame]>>,
}

/// A thread, its call, and the call's first argument.
type CallOf = (i32, Option<u64>, u64);

/// A sample, which is valid only for its moment.
#[derive(Debug)]
struct ThreadSample {
    at_ns: u64,
    tid: i32,
    wait: Wait,
    /// The place where the thread may queue, and the number of threads that it represents there.
    spot: Option<(QueueId, f64)>,
    /// How often the thread had got a core, if it is known.
    runs: Option<u64>,
    /// Whether the wait is over, and the thread has no core yet.
    woken: bool,
    /// The time at which a timeout, or a timer that it polls, ends the wait at the latest, if
    /// nothing else does.
    due_ns: Option<u64>,
    /// The time at which the wait began at the latest, and whether it may have begun before.
    since_ns: Option<u64>,
    began_before: bool,
}

impl ThreadSample {
    fn new(at_ns: u64, tid: i32, wait: Wait) -> ThreadSample {
        ThreadSample {
            at_ns,
            tid,
            wait,
            spot: None,
            runs: None,
            woken: false,
            due_ns: None,
            since_ns: None,
            began_before: false,
        }
    }

    /// Returns whether the timeout or timer of a wait that ended by itself had come, if that is
    /// known.
    fn is_timed(&self, timeline: &Timeline) -> Option<bool> {
        // Where records were lost meanwhile, it may have woken, and waited once more.
        if self
            .since_ns
            .is_some_and(|at_ns| timeline.is_doubtful(at_ns))
        {
            return None;
        }
        let has_come = |due_ns| due_ns <= timeline.now_ns + EARLY_NS;
        let timed = self.due_ns.is_some_and(has_come);
        // A wait that began before is due before.
        let is_known = timed || !self.began_before || self.wait.timeout_ns.is_none();
        is_known.then_some(timed)
    }
}

/// The number of samples of a thread by the cause of its wait, indexed by `Cause as usize`.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Habit([f64; Cause::ALL.len()]);

impl Habit {
    /// Returns the share of a cause in the samples.
    pub(crate) fn share(&self, cause: Cause) -> f64 {
        self.0[cause as usize] / self.0.iter().sum::<f64>().max(1.0)
    }
}

/// The results of all rounds.
#[derive(Debug, Default)]
pub(crate) struct Waits {
    pub(crate) rounds: u64,
    /// The rounds in which every thread of the program was blocked, by the cause of the wait that
    /// ended first: the other threads waited for that thread.
    pub(crate) critical: HashMap<Cause, f64>,
    /// By cause, the waits that a timeout or a timer ended, as its time had come, and those that
    /// have one, but were over at the sample: their end may have any cause.
    ends: HashMap<Cause, (f64, f64)>,
    /// The length of the waits at a futex that a timeout ended, summed over all samples, and the
    /// number of those whose length is known.
    timed_ns: f64,
    timed_known: f64,
    /// The blocked rounds by thread, call and wait channel.
    stacks: HashMap<(Box<str>, CallOf), f64>,
    /// The wait channel and the file or peer, by thread, call and its first argument.
    channels: HashMap<CallOf, Spot>,
    pub(crate) words: FutexWords,
    monitors: Monitors,
    pub(crate) habits: HashMap<i32, Habit>,
    /// Without events: the number of threads that ran or were runnable, and of rounds with such a
    /// thread.
    pub(crate) busy_threads: f64,
    pub(crate) busy_rounds: u64,
    /// The samples that the records have not reached.
    pending: VecDeque<ThreadSample>,
    /// The last sample of each thread since all of them are blocked, and the number of samples.
    held: HashMap<i32, (ThreadSample, f64)>,
    /// The last seen wait of each thread.
    last: HashMap<i32, Wait>,
    cursor: usize,
    pub(crate) files: Files,
}

impl Waits {
    /// Samples the threads of the program. Unless `by_state`, the records show when none ran.
    pub(crate) fn sample(&mut self, timeline: &mut Timeline, memory: &mut Memory, by_state: bool) {
        let (tids, scale) = self.chosen(timeline, by_state);
        let timed = !by_state && !timeline.in_gap();
        let mut blocked = Vec::new();
        let mut running = 0.0;
        for tid in tids {
            let Some(thread) = timeline.threads.get_mut(&tid) else {
                continue;
            };
            let looked_ns = now_ns();
            let scheduled = Scheduled::of(thread.pid, tid);
            match scheduled {
                Some(scheduled) if by_state => thread.account(scheduled),
                Some(scheduled) if timed => thread.see_waits(scheduled),
                _ => {}
            }
            match self.files.wait(thread.pid, tid) {
                Seen::Blocked(wait) => {
                    let since_ns = if timed { thread.since_ns } else { looked_ns };
                    let runs = scheduled.map(|it| it.runs);
                    let place = (thread.pid, tid);
                    let turn = runs.unwrap_or(since_ns);
                    let spot = self.add_line(place, &wait, turn, scale, memory);
                    if wait.cause == Cause::Sleep && !by_state {
                        thread.slept_ns.get_or_insert(looked_ns);
                    }
                    self.add_habit(tid, wait.cause);
                    self.add_channel(thread.pid, tid, &wait, memory);
                    blocked.push(ThreadSample {
                        spot: spot.map(|spot| (spot, scale)),
                        runs,
                        ..ThreadSample::new(looked_ns, tid, wait)
                    });
                    self.last.insert(tid, wait);
                }
                Seen::Running => {
                    running += scale;
                    self.words.add_other(tid, false);
                    let last = self.last.get(&tid).filter(|_| !by_state);
                    blocked.extend(last.map(|&wait| ThreadSample {
                        woken: true,
                        ..ThreadSample::new(looked_ns, tid, wait)
                    }));
                }
                Seen::Gone => {}
            }
        }
        // A program that has ended shows nothing of how it ran.
        if running == 0.0 && blocked.is_empty() {
            return;
        }
        self.rounds += 1;
        self.words.end_round(running > 0.0);
        self.busy_threads += running;
        self.busy_rounds += u64::from(running > 0.0);
        if !by_state {
            self.pending.extend(blocked);
            let over = self.pending.len().saturating_sub(PENDING_MAX);
            self.pending.drain(..over);
            return;
        }
        self.take_by_state(&blocked, running == 0.0, timeline);
    }

    /// Returns events for the threads that the last rounds found blocked, where records were lost:
    /// those of their switches may be among them. Those of a round may be returned again.
    pub(crate) fn seen_blocked<'a>(
        &'a self,
        timeline: &'a Timeline,
    ) -> impl Iterator<Item = Event> + 'a {
        let looks = self.pending.iter();
        let looks = looks.filter(|look| timeline.totals.lost > 0 && !look.woken);
        looks.map(|look| Event {
            time_ns: look.at_ns,
            core: 0,
            pid: 0,
            tid: look.tid,
            what: What::SeenBlocked,
        })
    }

    /// Counts the samples of a round where no records follow; `idle` is whether no thread ran.
    fn take_by_state(&mut self, blocked: &[ThreadSample], idle: bool, timeline: &Timeline) {
        let is_cause = causes(blocked.iter());
        let weight = 1.0 / blocked.iter().filter(|look| is_cause(look)).count().max(1) as f64;
        for look in blocked {
            if let Some((spot, scale)) = look.spot {
                let (runs, since_ns) = (look.runs, None);
                let turn = Turn { runs, since_ns };
                self.words.wait(look.tid, spot, turn, scale);
            }
            if idle && is_cause(look) {
                let soon = |after_ns: Option<u64>| after_ns.is_some_and(|ns| ns < SOON_NS);
                let left_ns = (look.wait.timer_at_ns).map(|at_ns| at_ns.saturating_sub(look.at_ns));
                let timed = soon(look.wait.timeout_ns) || soon(left_ns);
                self.charge(look, weight, Some(timed), timeline);
            }
        }
    }

    /// Adds a thread to the queue where it waits, if there is one; `turn` is a number of this wait.
    fn add_line(
        &mut self,
        place: (i32, i32),
        wait: &Wait,
        turn: u64,
        scale: f64,
        memory: &mut Memory,
    ) -> Option<QueueId> {
        let (pid, tid) = place;
        if wait.cause == Cause::Futex && wait.call.is_some() {
            (self.monitors).see(place, turn, wait.stack, scale, memory);
            return Some(self.words.add(pid, tid, &wait.arguments, scale));
        }
        let accepts = wait.call.is_some_and(syscall::accepts);
        self.words.add_other(tid, accepts);
        let file = || blocked::identity(pid, wait.arguments[0]);
        (wait.cause == Cause::FileLock).then(|| self.words.add_file(file(), scale))
    }

    /// Finds the queues for which function names are needed: those at Java monitors, one for each
    /// process.
    pub(crate) fn find_monitors(&mut self, symbols: &mut Symbols, memory: &Memory) {
        for (pid, line) in self.monitors.lines(symbols, memory) {
            self.words.add_monitor(pid, line);
        }
    }

    /// Returns the threads to sample, and the number of threads that each represents. If there are
    /// too many, running ones are left out.
    fn chosen(&mut self, timeline: &Timeline, by_state: bool) -> (Vec<i32>, f64) {
        // Where records were lost, the timeline does not know which threads are blocked.
        let is_lost = timeline.totals.lost > 0;
        let few = by_state || is_lost || timeline.threads.len() <= THREADS_MAX;
        let wanted = |(_, thread): &(&i32, &Thread)| few || thread.state == State::Blocked;
        let threads = timeline.threads.iter().filter(wanted);
        let mut tids: Vec<i32> = threads.map(|(&tid, _)| tid).collect();
        tids.sort_unstable();
        let all = tids.len();
        if all > THREADS_MAX {
            self.cursor = (self.cursor + THREADS_MAX) % all;
            tids.rotate_left(self.cursor);
            tids.truncate(THREADS_MAX);
        }
        let scale = all as f64 / tids.len().max(1) as f64;
        (tids, scale)
    }

    /// Handles the samples up to `now_ns`, which the records have reached.
    pub(crate) fn pass(&mut self, now_ns: u64, timeline: &Timeline) {
        while let Some(mut look) = self.pending.pop_front_if(|look| look.at_ns < now_ns) {
            let thread = timeline.threads.get(&look.tid);
            let is_there = |it: &&Thread| it.state == State::Blocked || timeline.in_gap();
            if let (Some((spot, scale)), Some(thread)) = (look.spot, thread.filter(is_there)) {
                let (runs, since_ns) = (look.runs, thread.since_ns);
                let since_ns = (!timeline.in_gap()).then_some(since_ns);
                self.words
                    .wait(look.tid, spot, Turn { runs, since_ns }, scale);
            }
            let is_idle = |since_ns| since_ns <= look.at_ns;
            if timeline.idle_since_ns.is_some_and(is_idle) {
                let since_ns = thread.map(|thread| thread.since_ns);
                let after = look.wait.timeout_ns.zip(since_ns);
                let after_ns = after.map(|(timeout, since)| since.saturating_add(timeout));
                look.since_ns = since_ns;
                look.began_before = thread.is_some_and(|thread| thread.began_before);
                look.due_ns = after_ns.into_iter().chain(look.wait.timer_at_ns).min();
                let looks = self.held.get(&look.tid).map_or(0.0, |(_, looks)| *looks);
                self.held.insert(look.tid, (look, looks + 1.0));
            }
        }
    }

    /// Ends a span in which all threads were blocked. The wait of the thread `first`, which ended
    /// it, is what they waited for. Without such a thread, it may be any of the [`causes`].
    pub(crate) fn end_idle(&mut self, first: Option<i32>, timeline: &Timeline) {
        if self.held.is_empty() {
            return;
        }
        let held = std::mem::take(&mut self.held);
        let is_cause = causes(held.values().map(|(look, _)| look));
        let may_be_first = |tid: i32, look: &ThreadSample| match first {
            Some(first) => first == tid,
            None => is_cause(look),
        };
        let charged = held
            .iter()
            .filter(|&(&tid, (look, _))| may_be_first(tid, look));
        let threads = charged.clone().count() as f64;
        for (_, (look, looks)) in charged {
            let timed = first.and_then(|_| look.is_timed(timeline));
            self.charge(look, looks / threads, timed, timeline);
        }
    }

    /// Handles a signal, which ends the program's waits: which thread wakes first from now on says
    /// nothing about their causes.
    pub(crate) fn interrupt(&mut self, timeline: &Timeline) {
        self.end_idle(None, timeline);
        self.pending.clear();
    }

    /// Returns the time of the last sample that the records have not reached.
    pub(crate) fn last_look_ns(&self) -> Option<u64> {
        self.pending.back().map(|look| look.at_ns)
    }

    /// Drops the samples of the current blocked span, because it is no longer known when no thread
    /// runs.
    pub(crate) fn lose_sight(&mut self) {
        self.held.clear();
    }

    /// Counts a sample; `timed` is whether its timeout had come when the wait ended, `None` if its
    /// end was not seen, or not by itself.
    fn charge(
        &mut self,
        look: &ThreadSample,
        weight: f64,
        timed: Option<bool>,
        timeline: &Timeline,
    ) {
        let (tid, wait) = (look.tid, &look.wait);
        *self.critical.entry(wait.cause).or_default() += weight;
        let (by_timeout, open) = self.ends.entry(wait.cause).or_default();
        let may_be_timed = wait.timeout_ns.is_some() || wait.timer_at_ns.is_some();
        if may_be_timed && (look.woken || timed.is_none()) {
            *open += weight;
        } else if timed == Some(true) {
            *by_timeout += weight;
            let has_length = wait.cause == Cause::Futex && !look.began_before;
            let since_ns = look.since_ns.filter(|_| has_length);
            if let Some(since_ns) = since_ns {
                self.timed_ns += weight * timeline.now_ns.saturating_sub(since_ns) as f64;
                self.timed_known += weight;
            }
        }
        if let Some(thread) = timeline.threads.get(&tid) {
            let place = (thread.name.clone(), (tid, wait.call, wait.arguments[0]));
            *self.stacks.entry(place).or_default() += weight;
        }
    }

    /// Returns the mean length of the waits at a futex that a timeout ends, in µs, weighted by
    /// their time.
    pub(crate) fn timeout_us(&self) -> Option<f64> {
        (self.timed_known >= 0.5).then(|| self.timed_ns / self.timed_known / 1e3)
    }

    /// Returns the share of the waits for a cause that a timeout or a timer ended, because its time
    /// had come, if it is known.
    pub(crate) fn timed_share(&self, cause: Cause) -> Option<f64> {
        let (timed, open) = self.ends.get(&cause)?;
        let known = self.critical.get(&cause)? - open;
        (known >= 0.5).then(|| (timed / known).clamp(0.0, 1.0))
    }

    fn add_habit(&mut self, tid: i32, cause: Cause) {
        if self.habits.len() >= HABITS_MAX && !self.habits.contains_key(&tid) {
            return;
        }
        self.habits.entry(tid).or_default().0[cause as usize] += 1.0;
    }

    /// Reads once where a thread is blocked in a call, and for which file.
    fn add_channel(&mut self, pid: i32, tid: i32, wait: &Wait, memory: &mut Memory) {
        let key = (tid, wait.call, wait.arguments[0]);
        if let Some(spot) = self.channels.get_mut(&key) {
            (spot.stack).get_or_insert_with(|| memory.stack(pid, wait.stack));
        } else if self.channels.len() < HABITS_MAX {
            let object = blocked::object(pid, wait).unwrap_or_default().into();
            let channel = self.files.channel(pid, tid);
            let spot = Spot {
                channel,
                object,
                stack: None,
            };
            self.channels.insert(key, spot);
        }
    }

    /// Returns the threads, calls, files or peers, and callers that were waited for while nothing
    /// ran.
    pub(crate) fn places(&self, symbols: &mut Symbols, memory: &Memory) -> HashMap<String, f64> {
        let mut places = HashMap::new();
        for ((name, key), &weight) in &self.stacks {
            let call = key.1.and_then(syscall::name).unwrap_or("the kernel");
            let object = self.channels.get(key).map_or("", |spot| &spot.object);
            let of = if object.is_empty() { "" } else { " of " };
            let callers = symbols.callers(self.stack_of(key), memory);
            let from = if callers.is_empty() { "" } else { ", from " };
            let place = format!("{name} in {call}{of}{object}{from}{callers}");
            *places.entry(place).or_default() += weight;
        }
        places
    }

    /// Returns the callers of a thread that waits in a futex call, at this word if there is one, or
    /// for the lock of a file.
    pub(crate) fn callers(
        &self,
        tid: i32,
        word: Option<u64>,
        symbols: &mut Symbols,
        memory: &Memory,
    ) -> String {
        let queues = |call: &&CallOf| match call.1.map(syscall::class) {
            Some(Class::Futex) => word.is_none_or(|word| call.2 == word),
            Some(Class::FileLock) => word.is_none(),
            _ => false,
        };
        let known = self.channels.keys().filter(|call| call.0 == tid);
        let known = known.filter(|call| queues(call) && !self.stack_of(call).is_empty());
        // The least one is the same in each report.
        known.min().map_or_else(String::new, |call| {
            symbols.callers(self.stack_of(call), memory)
        })
    }

    fn stack_of(&self, call: &CallOf) -> &[Frame] {
        let stack = self.channels.get(call).and_then(|spot| spot.stack.as_ref());
        stack.map_or(&[], |stack| stack)
    }

    /// Returns what the program waited for while it did not run: thread, functions, call and wait
    /// channel.
    pub(crate) fn stacks(&self, symbols: &mut Symbols, memory: &Memory) -> Vec<(Vec<String>, f64)> {
        let stack = |((name, key), &weight): (&(Box<str>, CallOf), &f64)| {
            let mut frames = vec![name.to_string()];
            let callers = self.stack_of(key).iter().rev();
            frames.extend(callers.map(|&frame| symbols.label(frame, memory)));
            frames.extend(key.1.map(|call| match syscall::name(call) {
                Some(name) => name.to_string(),
                None => format!("call {call}"),
            }));
            let channel = self.channels.get(key).map(|spot| &spot.channel);
            let channel = channel.filter(|channel| !channel.is_empty());
            frames.extend(channel.map(|channel| format!("{channel}_[k]")));
            (frames, weight)
        };
        self.stacks.iter().map(stack).collect()
    }
}

/// Returns a condition for samples of one time: whether what the thread waits for may be what the
/// program waited for. It is if the thread does not wait for a child process, as that process's own
/// wait is the cause then, unless all threads wait for such.
fn causes<'a>(mut looks: impl Iterator<Item = &'a ThreadSample>) -> impl Fn(&ThreadSample) -> bool {
    let waits_itself = |look: &ThreadSample| look.wait.cause != Cause::Child;
    let some_do = looks.any(waits_itself);
    move |look| waits_itself(look) || !some_do
}

const LIBRARY: &str = "/libjvm.so";
/// The maximum number of threads and places that are remembered.
const KEPT_MAX: usize = 4_096;
/// The size of the stack that is read. The frames from the futex call up to the reason take about
/// 300 bytes (OpenJDK 17, x86-64).
const STACK_BYTES: usize = 1 << 10;
/// The functions `ObjectMonitor::EnterI`, and `ReenterI` after a wait for a condition.
const ENTERS: [&str; 2] = ["13ObjectMonitor6EnterI", "13ObjectMonitor8ReenterI"];

/// The callers of the futex call: the two innermost functions of the virtual machine.
type Callers = [Frame; 2];

/// The places at which Java threads were seen to wait.
#[derive(Debug, Default)]
struct Monitors {
    parked: HashMap<(i32, Callers), Line>,
    /// The callers at which a thread was seen, and the number of that wait.
    known: HashMap<i32, (u64, Callers)>,
}

impl Monitors {
    /// Records a thread in a futex call, with the number of this wait and its stack pointer.
    pub(crate) fn see(
        &mut self,
        (pid, tid): (i32, i32),
        turn: u64,
        stack: u64,
        scale: f64,
        memory: &mut Memory,
    ) {
        let Some(code) = memory.mapped(pid, LIBRARY) else {
            return;
        };
        let known = self.known.get(&tid).filter(|known| known.0 == turn);
        let waits = if known.is_some() { 0.0 } else { scale };
        let callers = match known {
            Some(&(_, callers)) => Some(callers),
            None => callers(pid, stack, &code).map(|both| both.map(|at| memory.frame(pid, at))),
        };
        let Some(callers) = callers else { return };
        if self.known.len() < KEPT_MAX {
            self.known.insert(tid, (turn, callers));
        }
        if self.parked.len() < KEPT_MAX || self.parked.contains_key(&(pid, callers)) {
            let parked = self.parked.entry((pid, callers)).or_default();
            parked.waiters += scale;
            parked.waits += waits;
            *parked.tids.entry(tid).or_default() += scale;
        }
    }

    /// Returns the processes with threads that wait to enter a monitor, and these threads.
    pub(crate) fn lines(&self, symbols: &mut Symbols, memory: &Memory) -> HashMap<i32, Line> {
        let mut lines: HashMap<i32, Line> = HashMap::new();
        for (&(pid, callers), parked) in &self.parked {
            let mut enters = |frame| {
                let name = symbols.name(frame, memory).unwrap_or_default();
                ENTERS.iter().any(|part| name.contains(part))
            };
            if callers.into_iter().any(&mut enters) {
                let line = lines.entry(pid).or_default();
                line.waiters += parked.waiters;
                line.waits += parked.waits;
                line.tids.extend(&parked.tids);
            }
        }
        lines
    }
}

/// Returns the two innermost return addresses of a stack that are in this code.
fn callers(pid: i32, stack: u64, code: &std::ops::Range<u64>) -> Option<[u64; 2]> {
    let mut bytes = [[0; 8]; STACK_BYTES / 8];
    procfs::memory(pid, stack, bytes.as_flattened_mut())?;
    let words = bytes.iter().map(|bytes| u64::from_ne_bytes(*bytes));
    let mut addresses = words.filter(|word| code.contains(word));
    Some([addresses.next()?, addresses.next()?])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(cause: Cause, call: i64, timeout: u64) -> Wait {
        Wait {
            cause,
            call: u64::try_from(call).ok(),
            arguments: [0, 0, 0, timeout, 0, 0],
            stack: 0,
            timeout_ns: (timeout > 0).then_some(timeout),
            timer_at_ns: None,
        }
    }

    /// All threads are blocked from 100 ns on, and are sampled; `first` wakes first.
    fn charged(waits: &[(i32, Wait, bool)], first: Option<i32>) -> Waits {
        let mut timeline = Timeline::new(0, true);
        let mut seen = Waits::default();
        for (at_ns, &(tid, wait, woken)) in (101..).zip(waits) {
            timeline.adopt(1, tid, "a");
            let thread = timeline.threads.get_mut(&tid).expect("it was adopted");
            thread.began_before = false;
            seen.pending.push_back(ThreadSample {
                woken,
                ..ThreadSample::new(at_ns, tid, wait)
            });
        }
        (timeline.now_ns, timeline.idle_since_ns) = (200, Some(100));
        seen.pass(200, &timeline);
        seen.end_idle(first, &timeline);
        seen
    }

    /// The client ran last, and waits for an answer; the server's timeout ends that wait.
    #[test]
    fn all_wait_for_the_one_that_wakes_first() {
        let server = (1, wait(Cause::Poll, libc::SYS_epoll_pwait, 1), false);
        let client = (2, wait(Cause::Futex, libc::SYS_futex, 0), false);
        let seen = charged(&[server, client], Some(1));
        assert_eq!(seen.critical, HashMap::from([(Cause::Poll, 1.0)]));
        let nobody = charged(&[server, client], None);
        assert_eq!(nobody.critical.values().sum::<f64>(), 1.0);
        assert_eq!(charged(&[client], Some(1)).critical, HashMap::new());
    }

    /// A shell is killed before the program that it waits for, and so wakes first.
    #[test]
    fn who_wakes_first_after_a_signal_says_nothing() {
        let shell = wait(Cause::Child, libc::SYS_wait4, 0);
        let sleep = wait(Cause::Sleep, libc::SYS_nanosleep, 0);
        let seen = charged(&[(1, shell, false), (2, sleep, false)], None);
        assert_eq!(seen.critical, HashMap::from([(Cause::Sleep, 1.0)]));
        let alone = charged(&[(1, shell, false)], None);
        assert_eq!(alone.critical, HashMap::from([(Cause::Child, 1.0)]));
        // Without events, a shell had half of the time.
        let by_state = |waits: &[Wait]| {
            let looks = (1..).zip(waits);
            let looks = looks.map(|(tid, &wait)| ThreadSample::new(0, tid, wait));
            let looks: Vec<ThreadSample> = looks.collect();
            let mut seen = Waits::default();
            seen.take_by_state(&looks, true, &Timeline::new(0, false));
            seen.critical
        };
        let slept = |share| HashMap::from([(Cause::Sleep, share)]);
        assert_eq!(by_state(&[shell, sleep]), slept(1.0));
        assert_eq!(by_state(&[sleep, shell, sleep]), slept(1.0));
        assert_eq!(by_state(&[shell]), alone.critical);
    }

    #[test]
    fn a_look_counts_only_while_nothing_runs() {
        let mut seen = charged(&[], None);
        let wait = wait(Cause::Sleep, libc::SYS_nanosleep, 0);
        for at_ns in [50, 150] {
            seen.pending.push_back(ThreadSample::new(at_ns, 1, wait));
        }
        let mut timeline = Timeline::new(0, true);
        timeline.idle_since_ns = None;
        seen.pass(100, &timeline);
        timeline.idle_since_ns = Some(110);
        seen.pass(120, &timeline);
        seen.end_idle(Some(1), &timeline);
        assert_eq!(seen.critical, HashMap::new());
        seen.pass(200, &timeline);
        seen.end_idle(Some(1), &timeline);
        assert_eq!(seen.critical, HashMap::from([(Cause::Sleep, 1.0)]));
    }

    /// `rendezvous` was judged SLEEP-POLLING, because samples of calls showed no wake-up.
    #[test]
    fn a_wait_without_a_timeout_is_ended_by_a_thread() {
        let waits = |timeout, woken| {
            let one = (1, wait(Cause::Futex, libc::SYS_futex, timeout), woken);
            let seen = charged(&[one], Some(1));
            seen.ends[&Cause::Futex]
        };
        assert_eq!(waits(0, false), (0.0, 0.0));
        assert_eq!(waits(0, true), (0.0, 0.0));
        assert_eq!(waits(0x7f00, false), (1.0, 0.0));
        assert_eq!(waits(0x7f00, true), (0.0, 1.0));
        // Two threads of node that wait for each other with a timeout of 50 ms: as `nobody`, who
        // cannot see that one of them waits for a core, every wait had ended by its timeout.
        assert_eq!(waits(50_000_000, false), (0.0, 0.0));
    }

    /// Returns a timeline in which thread 1 was seen to block at this time.
    fn blocked_since(time_ns: u64) -> Timeline {
        let mut timeline = Timeline::new(0, true);
        timeline.adopt(1, 1, "a");
        for (time_ns, what) in [
            (time_ns - 1, What::In),
            (time_ns, What::Out { preempted: false }),
        ] {
            let (core, pid, tid) = (0, 1, 1);
            let event = Event {
                time_ns,
                core,
                pid,
                tid,
                what,
            };
            timeline.apply(&event, &mut |_| {});
        }
        timeline
    }

    /// On a busy machine, with switches for 26 % of the time, a program that polled a silent pipe
    /// for 20 ms at a time had a share of 0.886: the waits under way at the end of a gap were timed
    /// from there, so they ended before their timeouts.
    #[test]
    fn a_wait_that_began_in_a_gap_is_not_timed() {
        let ended = |timeout_ns, timer_at_ns| {
            let mut timeline = blocked_since(1_000_000);
            timeline.begin_gap(2_000_000, 0.0, |_, _| None, &mut |_| {});
            timeline.end_gap(12_000_000, |_, _| None, &mut |_| {});
            let mut seen = Waits::default();
            let poll = wait(Cause::Poll, libc::SYS_epoll_pwait, 0);
            let poll = Wait {
                timeout_ns,
                timer_at_ns,
                ..poll
            };
            seen.pending
                .push_back(ThreadSample::new(13_000_000, 1, poll));
            seen.pass(20_000_000, &timeline);
            timeline.advance(20_000_000);
            seen.end_idle(Some(1), &timeline);
            assert_eq!(seen.critical, HashMap::from([(Cause::Poll, 1.0)]));
            seen.timed_share(Cause::Poll)
        };
        assert_eq!(ended(Some(9_000_000), None), None, "begun at 11 ms, say");
        assert_eq!(ended(Some(7_000_000), None), Some(1.0), "due at the latest");
        assert_eq!(ended(None, Some(20_000_000)), Some(1.0), "its timer");
        assert_eq!(ended(None, Some(30_000_000)), Some(0.0), "an answer");
        assert_eq!(ended(None, None), Some(0.0));
    }

    /// A heartbeat was judged BLOCKING-IO at 0.57.
    #[test]
    fn a_poll_that_ends_when_its_time_has_come_was_not_answered() {
        let poll = wait(Cause::Poll, libc::SYS_epoll_pwait, 0);
        let ended = |timeout_ns, timer_at_ns, first| {
            let mut timeline = blocked_since(1_000_000);
            let mut seen = Waits::default();
            seen.pending.push_back(ThreadSample::new(
                2_000_000,
                1,
                Wait {
                    timeout_ns,
                    timer_at_ns,
                    ..poll
                },
            ));
            seen.pass(9_000_000, &timeline);
            timeline.advance(9_000_000);
            seen.end_idle(first, &timeline);
            assert_eq!(seen.critical, HashMap::from([(Cause::Poll, 1.0)]));
            let share = seen.timed_share(Cause::Poll);
            assert_eq!(share.is_some(), first.is_some(), "its end says nothing");
            seen.ends[&Cause::Poll].0
        };
        assert_eq!(ended(Some(8_000_000), None, Some(1)), 1.0, "its timeout");
        assert_eq!(ended(None, Some(9_000_000), Some(1)), 1.0, "its timer");
        assert_eq!(ended(Some(90_000_000), Some(8_500_000), Some(1)), 1.0);
        assert_eq!(
            ended(Some(90_000_000), Some(12_000_000), Some(1)),
            0.0,
            "an answer"
        );
        assert_eq!(ended(None, None, Some(1)), 0.0);
        assert_eq!(ended(Some(8_000_000), None, None), 0.0, "it had not ended");
    }

    /// The records of its end and of the next wait were lost, which had another timeout.
    #[test]
    fn a_wait_in_which_records_were_lost_has_no_known_end() {
        let mut timeline = blocked_since(1_000_000);
        let mut seen = Waits::default();
        let poll = wait(Cause::Poll, libc::SYS_epoll_pwait, 8_000_000);
        seen.pending
            .push_back(ThreadSample::new(2_000_000, 1, poll));
        timeline.totals.lost = 1;
        assert_eq!(seen.seen_blocked(&timeline).count(), 1);
        seen.pass(9_000_000, &timeline);
        let lost = Event {
            time_ns: 5_000_000,
            core: 0,
            pid: 0,
            tid: 0,
            what: What::Lost(2),
        };
        timeline.apply(&lost, &mut |_| {});
        timeline.advance(9_000_000);
        seen.end_idle(Some(1), &timeline);
        assert_eq!(seen.critical, HashMap::from([(Cause::Poll, 1.0)]));
        assert_eq!(seen.timed_share(Cause::Poll), None);
    }

    /// The JVM's own thread, which wakes every 50 ms, made a Java program that waits for a socket
    /// look like one that polls: the futex calls were those of its start.
    #[test]
    fn a_wait_that_times_out_has_a_length() {
        let after = |since_ns| {
            let mut timeline = blocked_since(since_ns);
            let mut seen = Waits::default();
            seen.pending.push_back(ThreadSample::new(
                60_000_000,
                1,
                wait(Cause::Futex, libc::SYS_futex, 0x7f00),
            ));
            seen.pass(70_000_000, &timeline);
            timeline.advance(70_000_000);
            seen.end_idle(Some(1), &timeline);
            seen.timeout_us()
        };
        assert_eq!(after(20_000_000), Some(50_000.0));
        assert_eq!(after(59_000_000), Some(11_000.0));
        assert_eq!(Waits::default().timeout_us(), None);
    }

    #[test]
    fn return_addresses_are_found_on_the_stack() {
        let own = std::process::id().cast_signed();
        let mut stack = [0_u64; STACK_BYTES / 8 + 1];
        (stack[3], stack[4], stack[9], stack[20]) = (0x500, 0x7010, 0x7020, 0x7030);
        let at = std::hint::black_box(&stack).as_ptr() as u64;
        assert_eq!(callers(own, at, &(0x7000..0x8000)), Some([0x7010, 0x7020]));
        assert_eq!(
            callers(own, at, &(0x7020..0x7030)),
            None,
            "one is no reason"
        );
        assert_eq!(callers(own, 8, &(0x7000..0x8000)), None);
    }

    #[test]
    fn code_that_is_not_javas_is_not_looked_at() {
        let mut seen = Monitors::default();
        seen.see((1, 1), 0, 8, 1.0, &mut Memory::default());
        assert!(seen.parked.is_empty());
    }
}
