//! What blocked threads wait for, as the files under `/proc` tell a few times a second.

use super::calls;
use super::files::{Cause, Files, Seen, Wait};
use super::timeline::{Thread, Timeline};
use super::words::Words;
use crate::recording::State;
use crate::watch::now_ns;
use std::collections::{HashMap, VecDeque};

/// Threads looked at in one round.
const THREADS_MAX: usize = 64;
/// Threads whose habits are remembered.
const HABITS_MAX: usize = 4_096;
/// Looks that wait for records: some milliseconds of them.
const PENDING_MAX: usize = 16 * THREADS_MAX;

/// The name of a blocked thread, its call and its wait channel.
type Place = (Box<str>, Option<u64>, Box<str>);

/// What a look saw: true only of its moment.
#[derive(Debug)]
struct Look {
    at_ns: u64,
    tid: i32,
    wait: Wait,
    /// The wait is over, and the thread has no core yet.
    woken: bool,
}

/// The looks of a thread, by what it waited for.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Habit {
    pub(crate) blocked: f64,
    pub(crate) futex: f64,
    pub(crate) sleep: f64,
    pub(crate) poll: f64,
}

/// What was seen in all rounds.
#[derive(Debug, Default)]
pub(crate) struct Waits {
    pub(crate) rounds: u64,
    /// Rounds in which every thread of the program was blocked, by what the thread waited for
    /// whose wake ended that: the others waited for it.
    pub(crate) critical: HashMap<Cause, f64>,
    /// Of those at a futex, the ones that a timeout ended: a thread did not, as none ran.
    pub(crate) timed: f64,
    /// The ones that have a timeout, but were over: anything may have ended them.
    pub(crate) open: f64,
    /// The same by thread, call and wait channel.
    stacks: HashMap<Place, f64>,
    channels: HashMap<(i32, Option<u64>), Box<str>>,
    pub(crate) words: Words,
    pub(crate) habits: HashMap<i32, Habit>,
    /// Without events: threads that ran or wanted to, and rounds with such a one.
    pub(crate) busy_threads: f64,
    pub(crate) busy_rounds: u64,
    /// Looks that the records have not come to.
    pending: VecDeque<Look>,
    /// The last look at each thread since all of them are blocked, and how many there were.
    held: HashMap<i32, (Look, f64)>,
    /// What each thread was last seen waiting for.
    last: HashMap<i32, Wait>,
    cursor: usize,
    pub(crate) files: Files,
}

impl Waits {
    /// Looks at the threads of the program. Unless `by_state`, the records tell when none ran.
    pub(crate) fn look(&mut self, timeline: &mut Timeline, by_state: bool) {
        self.rounds += 1;
        let (tids, scale) = self.chosen(timeline, by_state);
        let mut blocked = Vec::new();
        let mut running = 0.0;
        for tid in tids {
            let Some(thread) = timeline.threads.get_mut(&tid) else {
                continue;
            };
            let looked_ns = now_ns();
            match self.files.wait(thread.pid, tid) {
                Seen::Blocked(wait) => {
                    if wait.cause == Cause::Futex && wait.call.is_some() {
                        self.words.add(thread.pid, tid, &wait.arguments, scale);
                    }
                    if wait.cause == Cause::Sleep && !by_state {
                        thread.slept_ns.get_or_insert(looked_ns);
                    }
                    self.add_habit(tid, wait.cause);
                    self.add_channel(thread.pid, tid, wait.call);
                    blocked.push(Look {
                        at_ns: looked_ns,
                        tid,
                        wait,
                        woken: false,
                    });
                    self.last.insert(tid, wait);
                }
                Seen::Running => {
                    running += scale;
                    let last = self.last.get(&tid).filter(|_| !by_state);
                    blocked.extend(last.map(|&wait| Look {
                        at_ns: looked_ns,
                        tid,
                        wait,
                        woken: true,
                    }));
                }
                Seen::Gone => {}
            }
        }
        self.words.end_round(running > 0.0);
        self.busy_threads += running;
        self.busy_rounds += u64::from(running > 0.0);
        if !by_state {
            self.pending.extend(blocked);
            let over = self.pending.len().saturating_sub(PENDING_MAX);
            self.pending.drain(..over);
        } else if running == 0.0 {
            let weight = 1.0 / blocked.len() as f64;
            let all = blocked.iter();
            all.for_each(|look| self.charge(look, weight, timeline));
        }
    }

    /// The threads to look at, and how many each of them stands for. If there are too many, those
    /// that run are left out.
    fn chosen(&mut self, timeline: &Timeline, by_state: bool) -> (Vec<i32>, f64) {
        let few = by_state || timeline.threads.len() <= THREADS_MAX;
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

    /// The records have come to `now_ns`; since `idle_since_ns` all threads are blocked.
    pub(crate) fn pass(&mut self, now_ns: u64, idle_since_ns: Option<u64>) {
        while let Some(look) = self.pending.pop_front_if(|look| look.at_ns < now_ns) {
            if idle_since_ns.is_some_and(|since_ns| since_ns <= look.at_ns) {
                let looks = self.held.get(&look.tid).map_or(0.0, |(_, looks)| *looks);
                self.held.insert(look.tid, (look, looks + 1.0));
            }
        }
    }

    /// This thread ended the time in which all were blocked: its wait is what they waited for.
    /// Without one, it may be any of them but those that wait for processes, as these are theirs.
    pub(crate) fn end_idle(&mut self, first: Option<i32>, timeline: &Timeline) {
        if self.held.is_empty() {
            return;
        }
        let held = std::mem::take(&mut self.held);
        let waits_itself = |look: &Look| look.wait.cause != Cause::Child;
        let some_do = held.values().any(|(look, _)| waits_itself(look));
        let may_be_first = |tid: i32, look: &Look| match first {
            Some(first) => first == tid,
            None => waits_itself(look) || !some_do,
        };
        let charged = held
            .iter()
            .filter(|&(&tid, (look, _))| may_be_first(tid, look));
        let threads = charged.clone().count() as f64;
        for (_, (look, looks)) in charged {
            self.charge(look, looks / threads, timeline);
        }
    }

    /// A signal ends what the program waits for: who wakes first from now on says nothing of it.
    pub(crate) fn interrupt(&mut self, timeline: &Timeline) {
        self.end_idle(None, timeline);
        self.pending.clear();
    }

    /// It is not known any more when nothing runs.
    pub(crate) fn lose_sight(&mut self) {
        self.held.clear();
    }

    fn charge(&mut self, look: &Look, weight: f64, timeline: &Timeline) {
        let (tid, wait) = (look.tid, &look.wait);
        *self.critical.entry(wait.cause).or_default() += weight;
        if wait.cause == Cause::Futex && calls::futex_is_timed(&wait.arguments) {
            match look.woken {
                true => self.open += weight,
                false => self.timed += weight,
            }
        }
        if let Some(thread) = timeline.threads.get(&tid) {
            let channel = self.channels.get(&(tid, wait.call));
            let channel = channel.cloned().unwrap_or_default();
            let place = (thread.name.clone(), wait.call, channel);
            *self.stacks.entry(place).or_default() += weight;
        }
    }

    fn add_habit(&mut self, tid: i32, cause: Cause) {
        if self.habits.len() >= HABITS_MAX && !self.habits.contains_key(&tid) {
            return;
        }
        let habit = self.habits.entry(tid).or_default();
        habit.blocked += 1.0;
        match cause {
            Cause::Futex => habit.futex += 1.0,
            Cause::Sleep => habit.sleep += 1.0,
            Cause::Poll => habit.poll += 1.0,
            _ => {}
        }
    }

    /// Where in the kernel a thread is blocked in a call is read once.
    fn add_channel(&mut self, pid: i32, tid: i32, call: Option<u64>) {
        let known = self.channels.contains_key(&(tid, call));
        if !known && self.channels.len() < HABITS_MAX {
            let channel = self.files.channel(pid, tid);
            self.channels.insert((tid, call), channel);
        }
    }

    /// What the program waited for while it did not run: thread, call and wait channel.
    pub(crate) fn stacks(&self) -> Vec<(Vec<String>, f64)> {
        let stack = |((name, call, channel), &weight): (&Place, &f64)| {
            let call = call.map(|call| match calls::name(call) {
                Some(name) => name.to_string(),
                None => format!("call {call}"),
            });
            let channel = (!channel.is_empty()).then(|| format!("{channel}_[k]"));
            let frames = [Some(name.to_string()), call, channel]
                .into_iter()
                .flatten()
                .collect();
            (frames, weight)
        };
        self.stacks.iter().map(stack).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(cause: Cause, call: i64, timeout: u64) -> Wait {
        Wait {
            cause,
            call: u64::try_from(call).ok(),
            arguments: [0, 0, 0, timeout, 0, 0],
        }
    }

    /// All threads are blocked from 100 ns on, and were looked at; which of them wakes first?
    fn charged(waits: &[(i32, Wait, bool)], first: Option<i32>) -> Waits {
        let mut timeline = Timeline::new(0, true);
        let mut seen = Waits::default();
        for (at_ns, &(tid, wait, woken)) in (101..).zip(waits) {
            timeline.adopt(1, tid, "a");
            seen.pending.push_back(Look {
                at_ns,
                tid,
                wait,
                woken,
            });
        }
        seen.pass(200, Some(100));
        seen.end_idle(first, &timeline);
        seen
    }

    /// The client ran last, and waits for an answer; the server's timeout ends that.
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
    }

    #[test]
    fn a_look_counts_only_while_nothing_runs() {
        let mut seen = charged(&[], None);
        let wait = wait(Cause::Sleep, libc::SYS_nanosleep, 0);
        for at_ns in [50, 150] {
            seen.pending.push_back(Look {
                at_ns,
                tid: 1,
                wait,
                woken: false,
            });
        }
        seen.pass(100, None);
        seen.pass(120, Some(110));
        seen.end_idle(Some(1), &Timeline::new(0, true));
        assert_eq!(seen.critical, HashMap::new());
        seen.pass(200, Some(110));
        seen.end_idle(Some(1), &Timeline::new(0, true));
        assert_eq!(seen.critical, HashMap::from([(Cause::Sleep, 1.0)]));
    }

    /// `rendezvous` was called SLEEP-POLLING, by samples of calls that saw no wake.
    #[test]
    fn a_wait_without_a_timeout_is_ended_by_a_thread() {
        let waits = |timeout, woken| {
            let one = (1, wait(Cause::Futex, libc::SYS_futex, timeout), woken);
            let seen = charged(&[one], Some(1));
            (seen.timed, seen.open)
        };
        assert_eq!(waits(0, false), (0.0, 0.0));
        assert_eq!(waits(0, true), (0.0, 0.0));
        assert_eq!(waits(0x7f00, false), (1.0, 0.0));
        assert_eq!(waits(0x7f00, true), (0.0, 1.0));
    }
}
