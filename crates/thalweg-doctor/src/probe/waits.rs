//! What blocked threads wait for, as the files under `/proc` tell a few times a second.

use super::calls::{self, Arguments, Class};
use super::timeline::{Thread, Timeline};
use crate::recording::State;
use crate::watch::now_ns;
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Read as _;
use std::os::unix::fs::FileTypeExt as _;

/// Threads looked at in one round.
const THREADS_MAX: usize = 64;

/// What a thread waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Cause {
    Futex,
    Disk,
    Stream,
    Sleep,
    Poll,
    Child,
    Other,
}

impl Cause {
    pub(crate) const ALL: [(Cause, &'static str); 7] = [
        (Cause::Futex, "block.futex"),
        (Cause::Disk, "block.disk"),
        (Cause::Stream, "block.stream"),
        (Cause::Sleep, "block.sleep"),
        (Cause::Poll, "block.poll"),
        (Cause::Child, "block.child"),
        (Cause::Other, "block.other"),
    ];
}

/// A blocked thread.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Wait {
    pub(crate) cause: Cause,
    /// The number of its system call, if it is in one.
    pub(crate) call: Option<u64>,
    pub(crate) arguments: Arguments,
}

/// The name of a blocked thread, its call and its wait channel.
type Place = (Box<str>, Option<u64>, Box<str>);

/// What was seen in all rounds.
#[derive(Debug, Default)]
pub(crate) struct Waits {
    pub(crate) rounds: u64,
    /// Rounds in which every thread of the program was blocked, by cause.
    pub(crate) critical: HashMap<Cause, f64>,
    /// The same by thread, call and wait channel.
    stacks: HashMap<Place, f64>,
    /// Rounds in which a thread waited at a futex; sums over these.
    pub(crate) futex_rounds: u64,
    pub(crate) waiters: f64,
    pub(crate) waiters_max: f64,
    pub(crate) same_share: f64,
    pub(crate) polls: u64,
    pub(crate) polls_timed: u64,
    /// Without events: threads that ran or wanted to, and rounds with such a one.
    pub(crate) busy_threads: f64,
    pub(crate) busy_rounds: u64,
    /// A file that could not be read for want of a right.
    pub(crate) refused: bool,
    cursor: usize,
    text: String,
}

impl Waits {
    /// Looks at the threads that the timeline has blocked (at all of them if `by_state`, as nobody
    /// tells it).
    pub(crate) fn look(&mut self, timeline: &mut Timeline, by_state: bool) {
        self.rounds += 1;
        let busy = timeline.is_busy();
        let last = timeline.last_ran;
        let wanted = |(_, thread): &(&i32, &Thread)| by_state || thread.state == State::Blocked;
        let threads = timeline.threads.iter().filter(wanted);
        let mut tids: Vec<i32> = threads.map(|(&tid, _)| tid).collect();
        tids.sort_unstable();
        let all = tids.len();
        if all > THREADS_MAX {
            self.cursor = (self.cursor + THREADS_MAX) % all;
            tids.rotate_left(self.cursor);
            tids.truncate(THREADS_MAX);
            if let Some(last) = last.filter(|last| !busy && !tids.contains(last)) {
                tids.push(last);
            }
        }
        let scale = all as f64 / tids.len().max(1) as f64;
        let mut futexes: HashMap<(i32, u64), f64> = HashMap::new();
        let mut seen = Vec::new();
        let mut running = 0.0;
        for tid in tids {
            let Some(thread) = timeline.threads.get_mut(&tid) else {
                continue;
            };
            let looked_ns = now_ns();
            match self.wait(thread.pid, tid) {
                Seen::Blocked(wait) => {
                    if wait.cause == Cause::Futex && wait.call.is_some() {
                        *futexes.entry((thread.pid, wait.arguments[0])).or_default() += scale;
                    }
                    if wait.cause == Cause::Sleep && !by_state {
                        thread.slept_ns.get_or_insert(looked_ns);
                    }
                    seen.push((tid, wait));
                }
                Seen::Running => running += scale,
                Seen::Gone => {}
            }
        }
        self.busy_threads += running;
        self.busy_rounds += u64::from(running > 0.0);
        let idle = if by_state { running == 0.0 } else { !busy };
        if idle {
            self.add_critical(&seen, last.filter(|_| !by_state), timeline);
        }
        self.add_futexes(&futexes);
    }

    fn add_critical(&mut self, seen: &[(i32, Wait)], last: Option<i32>, timeline: &Timeline) {
        let seen: Vec<_> = match last {
            Some(last) => seen.iter().filter(|(tid, _)| *tid == last).collect(),
            None => seen.iter().collect(),
        };
        for (tid, wait) in &seen {
            let weight = 1.0 / seen.len() as f64;
            *self.critical.entry(wait.cause).or_default() += weight;
            let Some(thread) = timeline.threads.get(tid) else {
                continue;
            };
            let channel = self.channel(thread.pid, *tid);
            *self
                .stacks
                .entry((thread.name.clone(), wait.call, channel))
                .or_default() += weight;
        }
    }

    fn add_futexes(&mut self, futexes: &HashMap<(i32, u64), f64>) {
        let most = futexes.values().copied().fold(0.0, f64::max);
        if most > 0.0 {
            self.futex_rounds += 1;
            self.waiters += most;
            self.waiters_max = self.waiters_max.max(most);
            self.same_share += most / futexes.values().sum::<f64>();
        }
    }

    /// Reads a file under `/proc` into `text`.
    fn read(&mut self, path: &str) -> Option<()> {
        self.text.clear();
        let mut read = || File::open(path)?.read_to_string(&mut self.text);
        match read() {
            Ok(_) => Some(()),
            Err(error) => {
                self.refused |= error.kind() == std::io::ErrorKind::PermissionDenied;
                None
            }
        }
    }

    /// Where in the kernel a thread is blocked; empty if that is hidden.
    fn channel(&mut self, pid: i32, tid: i32) -> Box<str> {
        match self.read(&format!("/proc/{pid}/task/{tid}/wchan")) {
            Some(()) if self.text != "0" => self.text.as_str().into(),
            _ => "".into(),
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

    fn wait(&mut self, pid: i32, tid: i32) -> Seen {
        let folder = format!("/proc/{pid}/task/{tid}");
        let Some(()) = self.read(&format!("{folder}/stat")) else {
            return Seen::Gone;
        };
        let state = state(&self.text);
        match state {
            'R' => return Seen::Running,
            'S' | 'D' => {}
            _ => return Seen::Gone,
        }
        let known = self
            .read(&format!("{folder}/syscall"))
            .and_then(|()| call(&self.text));
        let (number, arguments) = match known {
            Some(Call::Running) => return Seen::Running,
            Some(Call::In(number, arguments)) => (Some(number), arguments),
            None => (None, Arguments::default()),
        };
        let class = number.map_or(Class::Other, calls::class);
        if let (Class::Poll, Some(number)) = (class, number)
            && let Some(often) =
                calls::polls_often(number, &arguments, |at| calls::words_at(pid, at))
        {
            self.polls += 1;
            self.polls_timed += u64::from(often);
        }
        let cause = match class {
            // The kernel names that state after the disk; the parent of a vfork is in it too.
            _ if state == 'D' && class != Class::Child => Cause::Disk,
            Class::Futex => Cause::Futex,
            Class::Sleep => Cause::Sleep,
            Class::Poll => Cause::Poll,
            Class::File if streams(pid, arguments[0]) => Cause::Stream,
            Class::File | Class::Disk => Cause::Disk,
            Class::Stream => Cause::Stream,
            Class::Child => Cause::Child,
            Class::Yield | Class::Other => Cause::Other,
        };
        Seen::Blocked(Wait {
            cause,
            call: number,
            arguments,
        })
    }
}

enum Seen {
    Blocked(Wait),
    Running,
    Gone,
}

/// The letter of `/proc/…/stat`: the name before it may hold anything, brackets too.
fn state(stat: &str) -> char {
    let after = stat.rsplit_once(')').map_or("", |(_, after)| after);
    after.trim_start().chars().next().unwrap_or('?')
}

enum Call {
    Running,
    In(u64, Arguments),
}

/// A line of `/proc/…/syscall`: nothing for a thread that is blocked outside of a call.
fn call(line: &str) -> Option<Call> {
    let mut words = line.split_whitespace();
    let first = words.next()?;
    if first == "running" {
        return Some(Call::Running);
    }
    let mut arguments = Arguments::default();
    let number = first.parse().ok()?;
    for argument in &mut arguments {
        *argument = u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok()?;
    }
    Some(Call::In(number, arguments))
}

/// Is this open file a pipe, a socket or a terminal?
fn streams(pid: i32, file: u64) -> bool {
    fs::metadata(format!("/proc/{pid}/fd/{file}")).is_ok_and(|file| {
        let kind = file.file_type();
        kind.is_fifo() || kind.is_socket() || kind.is_char_device()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_comes_after_a_name_with_brackets() {
        assert_eq!(state("12 (a) b) D 1 12"), 'D');
        assert_eq!(state("12"), '?');
    }

    #[test]
    fn a_call_has_a_number_and_arguments() {
        let line = "202 0x7f00 0x80 0x2 0x0 0x0 0x0 0x7ffd 0x7f12\n";
        assert!(matches!(
            call(line),
            Some(Call::In(202, [0x7f00, 0x80, 2, 0, 0, 0]))
        ));
        assert!(matches!(call("running\n"), Some(Call::Running)));
        assert!(call("-1 0x7ffd 0x7f12\n").is_none());
        assert!(call("").is_none());
    }
}
