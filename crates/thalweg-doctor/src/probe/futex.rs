//! Determines at which futex words, locks of files and monitors threads queue, and who wakes whom.

use crate::probe::record::{Event, What};
use crate::probe::syscall;
use std::collections::{HashMap, HashSet, VecDeque};

/// The maximum number of words and threads that are remembered.
const WORDS_MAX: usize = 4_096;
/// The number of distinct awaited values from which on a word is a counter; a lock has one value.
const VALUES_MANY: usize = 4;
/// Threads with the first share of the program's run time are all possible wakers; below the second
/// share there is room for a thread that only wakes.
const RAN_ALL: f64 = 0.9;
const RAN_MOST: f64 = 0.75;
/// The maximum degree to which this alone makes a word a lock: less than a half, which would be
/// certain. Threads that each wait at a word of their own may as well be stages that work in turn.
const RAN_AT_WORD: f64 = 0.45;
const RAN_APART: f64 = 0.35;

/// The minimum share of the samples at a word that makes a thread a party.
const PART_MIN: f64 = 0.02;
/// The minimum number of threads that indicates a lock: two threads wake each other, whatever they
/// wait for.
const THREADS_TELLING: usize = 3;

/// The number of hand-overs per second from which on a lock counts as contended, and the number
/// below which it does not. Each time a thread begins to wait there counts as one.
const ROUND_PER_S: f64 = 10.0;
const STILL_PER_S: f64 = 5.0;
/// The minimum number of wake-ups for a statement on which threads wake the waiters.
const WAKES_MIN: f64 = 8.0;

/// The activity of a thread.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ThreadTotals {
    pub(crate) ran_ns: u64,
    /// The number of times that it blocked.
    pub(crate) blocks: u64,
}

/// Threads with this share of the program's blocks are what the program waits for.
const BLOCKED_MOST: f64 = 0.5;

/// A process and an address; the process is 0 for a word that several processes share.
type Place = (i32, u64);

/// The place where a thread waits: a word, or the lock of a file, by device and inode.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum QueueId {
    Queue(Place),
    File((u64, u64)),
}

/// One wait of a thread, which differs from its next one.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Turn {
    /// How often the thread had got a core before it, where the kernel counts this.
    pub(crate) runs: Option<u64>,
    /// The time at which it began, where this is recorded.
    pub(crate) since_ns: Option<u64>,
}

impl Turn {
    fn is_same(self, other: Turn) -> bool {
        match (self.runs, other.runs) {
            (Some(one), Some(other)) => one == other,
            _ => self.since_ns.is_some() && self.since_ns == other.since_ns,
        }
    }
}

#[derive(Debug, Clone, Default)]
struct Queue {
    /// The number of waiters, summed over all rounds.
    waiters: f64,
    /// The waiters that wait for something that is taken, and those that may do so.
    taken: f64,
    maybe: f64,
    values: HashSet<u64>,
    tids: HashMap<i32, f64>,
    /// The number of rounds in which a thread waits here, and for each other thread the number of
    /// these rounds in which it waits at another word for no lock, or does anything else.
    rounds: f64,
    away: HashMap<i32, Away>,
    /// The number of distinct waits that were seen here, and how many of them each thread ended.
    waits: f64,
    wakers: HashMap<i32, f64>,
    /// The times and wakers of the waits that ended since a thread last began to wait here. At its
    /// end a program wakes all waiters, and none returns: that shows nothing about the owner of a
    /// lock.
    last_wakers: Vec<(u64, i32)>,
}

/// Threads that wait for nothing but a lock.
#[derive(Debug, Clone, Default)]
pub(crate) struct Line {
    /// Their number, summed over all rounds.
    pub(crate) waiters: f64,
    /// The number of waits that were seen.
    pub(crate) waits: f64,
    pub(crate) tids: HashMap<i32, f64>,
}

/// The rounds in which a thread was not at a word where others waited.
#[derive(Debug, Clone, Copy, Default)]
struct Away {
    waiting: f64,
    busy: f64,
}

/// The activity of a thread in a round.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Doing {
    /// It waits at a word; the flag is whether for something that is taken.
    WaitsAt(Place, bool),
    /// It waits for others to give it work.
    Accepts,
    Else,
}

impl Queue {
    /// Returns the share of the waiters that wait for something that is taken. Several threads at
    /// one word are not parked individually.
    fn taken_share(&self) -> f64 {
        let maybe = if self.tids.len() > 1 { self.maybe } else { 0.0 };
        (self.taken + maybe) / self.waiters
    }

    /// Returns the share of the time in which the holder of what these threads wait for itself
    /// waits for work, as workers do that take their work in turns: no thread is delayed then.
    fn held_by_waiter(&self, parties: &HashSet<i32>) -> f64 {
        // A thread that takes the lock again before a woken thread runs may never wait for it.
        let all: f64 = self.wakers.values().sum();
        let often = self
            .wakers
            .iter()
            .filter(|(_, wakes)| **wakes >= PART_MIN * all);
        let holders: HashSet<i32> = parties
            .iter()
            .chain(often.map(|(tid, _)| tid))
            .copied()
            .collect();
        let away = holders.iter().filter_map(|tid| self.away.get(tid));
        let (waiting, busy) =
            away.fold((0.0, 0.0), |sum, it| (sum.0 + it.waiting, sum.1 + it.busy));
        let rounds = self.rounds.max(1.0);
        (waiting / rounds).min(1.0) * (1.0 - busy / rounds).max(0.0)
    }

    /// Returns the share that the word's own parties have in the waits that threads of the program
    /// ended.
    fn woken_within(&self, parties: &HashSet<i32>) -> Option<f64> {
        let all: f64 = self.wakers.values().sum();
        let within = parties.iter().filter_map(|tid| self.wakers.get(tid));
        let within = within.fold(0.0, |sum, wakes| sum + wakes);
        (all >= WAKES_MIN).then(|| within / all)
    }

    /// Returns the threads that are seen here often enough to be parties.
    fn parties(&self) -> HashSet<i32> {
        let all: f64 = self.tids.values().sum();
        let often = self
            .tids
            .iter()
            .filter(|(_, seen)| **seen >= PART_MIN * all);
        often.map(|(&tid, _)| tid).collect()
    }
}

/// The threads that wait at the same futex, or for the same lock.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LockQueue {
    /// The place, such as the address of the word.
    pub(crate) place: String,
    /// The address of the word, if it is one word.
    pub(crate) word: Option<u64>,
    /// The threads that wait there, those that do most often first, and the threads that end their
    /// waits.
    pub(crate) tids: Vec<i32>,
    pub(crate) wakers: Vec<i32>,
    /// The mean number of waiters over all rounds.
    pub(crate) waiters: f64,
    /// The degree to which they wait for a lock, if it is known.
    pub(crate) locked: Option<f64>,
}

/// All words at which threads were seen waiting.
#[derive(Debug, Default)]
pub(crate) struct FutexWords {
    rounds: f64,
    words: HashMap<Place, Queue>,
    /// The locks of files, by device and inode, and the Java monitors, by process.
    files: HashMap<(u64, u64), Line>,
    monitors: HashMap<i32, Line>,
    /// The place at which each thread was last seen waiting, and which of its waits this was.
    present: HashMap<i32, (QueueId, Turn)>,
    /// Whether it is known when waits begin.
    timed: bool,
    /// Whether code of Go runs.
    pub(crate) has_goroutines: bool,
    /// The rounds in which a thread waited at a word while another one ran.
    waited: HashMap<i32, f64>,
    /// The words at which threads wait in this round.
    round: HashSet<Place>,
    round_tids: Vec<(i32, Doing)>,
}

impl FutexWords {
    /// Adds a thread that waits in a futex call; it represents `scale` threads.
    pub(crate) fn add(&mut self, pid: i32, tid: i32, arguments: &[u64; 6], scale: f64) -> QueueId {
        // FutexWords that processes share are at the same address if they existed before a fork.
        let pid = if syscall::is_private(arguments) {
            pid
        } else {
            0
        };
        let place = (pid, arguments[0]);
        if self.words.len() >= WORDS_MAX && !self.words.contains_key(&place) {
            return QueueId::Queue(place);
        }
        let word = self.words.entry(place).or_default();
        word.waiters += scale;
        let part = |is: bool| if is { scale } else { 0.0 };
        word.taken += part(syscall::awaits_lock(arguments));
        word.maybe += part(syscall::may_await_lock(arguments));
        if word.values.len() < VALUES_MANY {
            word.values.insert(arguments[2] & 0xffff_ffff);
        }
        if word.tids.len() < WORDS_MAX || word.tids.contains_key(&tid) {
            *word.tids.entry(tid).or_default() += scale;
        }
        let doing = Doing::WaitsAt(place, syscall::awaits_lock(arguments));
        self.round_tids.push((tid, doing));
        self.round.insert(place);
        QueueId::Queue(place)
    }

    /// Adds a thread that waits for the lock of a file; it represents `scale` threads.
    pub(crate) fn add_file(&mut self, file: (u64, u64), scale: f64) -> QueueId {
        if self.files.len() < WORDS_MAX || self.files.contains_key(&file) {
            self.files.entry(file).or_default().waiters += scale;
        }
        QueueId::File(file)
    }

    /// Adds the threads of a process that wait to enter monitors.
    pub(crate) fn add_monitor(&mut self, pid: i32, line: Line) {
        self.monitors.insert(pid, line);
    }

    /// Adds a wait that was sampled, when the records have reached the sample; the thread
    /// represents `scale` threads.
    pub(crate) fn wait(&mut self, tid: i32, spot: QueueId, turn: Turn, scale: f64) {
        self.timed |= turn != Turn::default();
        let is_same = |last: &(QueueId, Turn)| last.0 == spot && last.1.is_same(turn);
        if self.present.get(&tid).is_some_and(is_same) {
            return;
        }
        match spot {
            QueueId::File(file) => {
                if let Some(line) = self.files.get_mut(&file) {
                    line.waits += scale;
                    *line.tids.entry(tid).or_default() += scale;
                }
            }
            QueueId::Queue(place) => {
                let Some(word) = self.words.get_mut(&place) else {
                    return;
                };
                word.waits += scale;
                let came_ns = turn.since_ns.unwrap_or(0);
                let before = word
                    .last_wakers
                    .extract_if(.., |(at_ns, _)| *at_ns <= came_ns);
                for (_, waker) in before {
                    *word.wakers.entry(waker).or_default() += 1.0;
                }
            }
        }
        if self.present.len() < WORDS_MAX || self.present.contains_key(&tid) {
            self.present.insert(tid, (spot, turn));
        }
    }

    /// Records that a thread of the program ended a wait that another one began at this time.
    pub(crate) fn wake(&mut self, waker: i32, woken: i32, since_ns: u64, now_ns: u64) {
        let ended = self.present.remove(&woken);
        let ended = ended.filter(|it| it.1.since_ns == Some(since_ns));
        if let Some((QueueId::Queue(place), _)) = ended
            && let Some(word) = self.words.get_mut(&place)
            && word.last_wakers.len() < WORDS_MAX
            && waker != woken
        {
            word.last_wakers.push((now_ns, waker));
        }
    }

    /// Returns the degree to which the awaited object changes hands, from the number of waits that
    /// were seen in this many seconds.
    fn goes_round(&self, waits: f64, seconds: f64) -> f64 {
        let rate = waits / seconds.max(f64::MIN_POSITIVE);
        let round = (rate - STILL_PER_S) / (ROUND_PER_S - STILL_PER_S);
        if self.timed {
            round.clamp(0.0, 1.0)
        } else {
            1.0
        }
    }

    /// Adds a thread that does something other than wait at a word; `accepts` is whether it may
    /// wait for work.
    pub(crate) fn add_other(&mut self, tid: i32, accepts: bool) {
        let doing = if accepts { Doing::Accepts } else { Doing::Else };
        self.round_tids.push((tid, doing));
    }

    /// Ends a round of samples; `running` is whether a thread was seen to run in it.
    pub(crate) fn end_round(&mut self, running: bool) {
        self.rounds += 1.0;
        for place in self.round.drain() {
            let Some(word) = self.words.get_mut(&place).filter(|it| it.tids.len() > 1) else {
                continue;
            };
            word.rounds += 1.0;
            for &(tid, doing) in &self.round_tids {
                if word.away.len() >= WORDS_MAX && !word.away.contains_key(&tid) {
                    continue;
                }
                match doing {
                    // The adjacent words belong to the same lock.
                    Doing::WaitsAt(at, _) if at.0 == place.0 && at.1.abs_diff(place.1) <= 4 => {}
                    Doing::WaitsAt(_, false) | Doing::Accepts => {
                        word.away.entry(tid).or_default().waiting += 1.0;
                    }
                    Doing::WaitsAt(_, true) | Doing::Else => {
                        word.away.entry(tid).or_default().busy += 1.0;
                    }
                }
            }
        }
        for (tid, doing) in self.round_tids.drain(..) {
            if running && matches!(doing, Doing::WaitsAt(..)) {
                *self.waited.entry(tid).or_default() += 1.0;
            }
        }
    }

    /// Returns the longest queue at a lock; if there is none, the longest queue. The program was
    /// observed for this many seconds.
    pub(crate) fn queue(
        &self,
        wakes: &Wakes,
        threads: &HashMap<i32, ThreadTotals>,
        seconds: f64,
    ) -> Option<LockQueue> {
        let at_words = self.words.iter().map(|(&(pid, address), word)| {
            let near = [address.wrapping_add(4), address.wrapping_sub(4)];
            let mut near = near.iter().filter_map(|&at| self.words.get(&(pid, at)));
            let joined = near.find_map(|near| joined(word, near));
            let word = joined.as_ref().unwrap_or(word);
            let round = self.goes_round(word.waits, seconds);
            LockQueue {
                place: match pid {
                    0 => format!("the shared word {address:#x}"),
                    _ => format!("word {address:#x} of process {pid}"),
                },
                word: Some(address),
                tids: most(&word.tids),
                wakers: most(&word.wakers),
                waiters: word.waiters / self.rounds,
                locked: match round > 0.0 {
                    true => locked(word, threads).map(|locked| locked * round),
                    false => Some(0.0),
                },
            }
        });
        let weight = |line: &LockQueue| (line.waiters * line.locked.unwrap_or(0.0), line.waiters);
        // Threads at these wait for nothing but a lock.
        let files = self.files.iter().map(|((device, inode), counts)| {
            let place = format!("the lock of the file with inode {inode} on device {device:#x}");
            (place, counts)
        });
        let monitors = self.monitors.iter();
        let monitors = monitors.map(|(pid, it)| (format!("a monitor of process {pid}"), it));
        let at_files = files.chain(monitors).map(|(place, line)| LockQueue {
            place,
            word: None,
            tids: most(&line.tids),
            wakers: Vec::new(),
            waiters: line.waiters / self.rounds,
            locked: Some(self.goes_round(line.waits, seconds)),
        });
        let lines = at_words
            .chain(at_files)
            .chain(self.line_apart(wakes, threads, seconds));
        lines.max_by(|a, b| weight(a).partial_cmp(&weight(b)).expect("numbers"))
    }

    /// Returns a queue of threads that each wait at a word of their own while one of them runs, and
    /// that run in turns, for about equal times. Where no thread runs, no lock can be seen held:
    /// workers without work wait like that, and so do threads of Go that have no goroutine to run.
    fn line_apart(
        &self,
        wakes: &Wakes,
        threads: &HashMap<i32, ThreadTotals>,
        seconds: f64,
    ) -> Option<LockQueue> {
        if self.has_goroutines {
            return None;
        }
        let mut alone: HashMap<i32, f64> = HashMap::new();
        for word in self.words.values().filter(|word| word.tids.len() == 1) {
            for &tid in word.tids.keys() {
                *alone.entry(tid).or_default() += word.waits;
            }
        }
        let unknown = || (RAN_APART, alone.keys().copied().collect());
        let (locked, tids) = wakes.in_turns().unwrap_or_else(unknown);
        let ran_ns = |tid: &i32| threads.get(tid).map_or(0, |it| it.ran_ns) as f64;
        let mean_ns = tids.iter().map(ran_ns).sum::<f64>() / tids.len().max(1) as f64;
        let in_turn = |tid: &&i32| alone.contains_key(tid) && ran_ns(tid) >= mean_ns / 2.0;
        let in_turn: Vec<&i32> = tids.iter().filter(in_turn).collect();
        let waits = in_turn.iter().filter_map(|tid| alone.get(tid)).sum();
        let ran = in_turn.iter().map(|tid| ran_ns(tid)).sum::<f64>();
        let all = sum(threads.keys(), threads, |it| it.ran_ns).max(1.0);
        let waiting = in_turn.iter().filter_map(|tid| self.waited.get(tid));
        // A thread that waits beside the running one may be its partner in a hand-over.
        let waiters = waiting.sum::<f64>() / self.rounds.max(1.0) - 1.0;
        let line = LockQueue {
            place: "a word of each thread".to_owned(),
            word: None,
            tids: in_turn.iter().map(|tid| **tid).collect(),
            wakers: Vec::new(),
            waiters: waiters.max(0.0),
            locked: Some(locked * self.goes_round(waits, seconds)),
        };
        (ran / all >= RAN_ALL).then_some(line)
    }
}

/// Returns the threads with the largest counts first.
fn most(counts: &HashMap<i32, f64>) -> Vec<i32> {
    let mut tids: Vec<_> = counts.iter().map(|(&tid, &count)| (count, tid)).collect();
    tids.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    tids.into_iter().map(|(_, tid)| tid).collect()
}

fn sum<'a>(
    tids: impl Iterator<Item = &'a i32>,
    threads: &HashMap<i32, ThreadTotals>,
    of: impl Fn(&ThreadTotals) -> u64,
) -> f64 {
    tids.filter_map(|tid| threads.get(tid)).map(of).sum::<u64>() as f64
}

/// Joins two adjacent words into one: if mostly the same threads wait there, as at a condition
/// variable of the C library; or if they mostly wait for something that is taken, as the readers
/// and the writers of a lock do.
fn joined(one: &Queue, other: &Queue) -> Option<Queue> {
    let both = (one.tids.keys())
        .filter(|tid| other.tids.contains_key(tid))
        .count();
    let any = one.tids.len() + other.tids.len() - both;
    let mut word = one.clone();
    word.waiters += other.waiters;
    word.taken += other.taken;
    word.maybe += other.maybe;
    word.rounds += other.rounds;
    for (&tid, away) in &other.away {
        let sum = word.away.entry(tid).or_default();
        sum.waiting += away.waiting;
        sum.busy += away.busy;
    }
    word.waits += other.waits;
    for (&tid, wakes) in &other.wakers {
        *word.wakers.entry(tid).or_default() += wakes;
    }
    word.values.extend(&other.values);
    for (&tid, seen) in &other.tids {
        *word.tids.entry(tid).or_default() += seen;
    }
    (2 * both >= any || word.taken_share() >= 0.5).then_some(word)
}

/// Returns the degree to which a word is a lock: by the value that is awaited, or by whether the
/// wakers have waited there. If the wakers are not known, the parties must have run for most of the
/// time.
fn locked(word: &Queue, threads: &HashMap<i32, ThreadTotals>) -> Option<f64> {
    let taken = word.taken_share();
    let parties = word.parties();
    if parties.len() < 2 {
        return Some(0.0);
    }
    if taken >= 0.5 {
        return Some(taken * (1.0 - word.held_by_waiter(&parties)));
    }
    if parties.len() < THREADS_TELLING {
        return Some(0.0);
    }
    let all_ns = sum(threads.keys(), threads, |it| it.ran_ns);
    let by_runs = || {
        let share = |of: fn(&ThreadTotals) -> u64| {
            sum(parties.iter(), threads, of) / sum(threads.keys(), threads, of).max(1.0)
        };
        let ran = (share(|it| it.ran_ns) - RAN_MOST) / (RAN_ALL - RAN_MOST);
        let counts = word.values.len() >= VALUES_MANY;
        // Threads that hold a lock asleep run less than the start of a program does.
        let is_open = ran <= 0.0 && !counts && share(|it| it.blocks) >= BLOCKED_MOST;
        let most = if counts { 0.0 } else { RAN_AT_WORD };
        (all_ns > 0.0 && !is_open).then(|| most * ran.clamp(0.0, 1.0))
    };
    word.woken_within(&parties).or_else(by_runs)
}

/// The maximum number of pairs of threads that are remembered.
const PAIRS_MAX: usize = 4_096;
/// The minimum number of wake-ups for a statement on which thread wakes which.
const SIDE_WAKES_MIN: f64 = 8.0;
/// The minimum share of the wake-ups that two threads need to count as a pair.
const SIDE_PART_MIN: f64 = 0.02;

/// The wake-ups of the threads of the program, by waker.
#[derive(Debug, Default)]
pub(crate) struct Wakes {
    /// The number of wake-ups by waker and woken thread.
    pairs: HashMap<(i32, i32), f64>,
}

impl Wakes {
    /// Adds a wake-up of one thread of the program by another one.
    pub(crate) fn add(&mut self, waker: i32, woken: i32) {
        let pair = (waker, woken);
        let known = self.pairs.len() < PAIRS_MAX || self.pairs.contains_key(&pair);
        if waker != woken && known {
            *self.pairs.entry(pair).or_default() += 1.0;
        }
    }

    /// Returns the share of the wake-ups between threads of which both wake a third one, or are
    /// woken by it, and the threads that take part in wake-ups. Senders and receivers wake only
    /// each other, as adjacent stages do: they have no such share. Of threads that take turns, each
    /// wakes any other.
    fn in_turns(&self) -> Option<(f64, HashSet<i32>)> {
        let all: f64 = self.pairs.values().sum();
        if all < SIDE_WAKES_MIN {
            return None;
        }
        let mut pairs: HashMap<(i32, i32), f64> = HashMap::new();
        for (&(a, b), count) in &self.pairs {
            *pairs.entry((a.min(b), a.max(b))).or_default() += count;
        }
        pairs.retain(|_, count| *count >= SIDE_PART_MIN * all);
        let tids: HashSet<i32> = pairs.keys().flat_map(|&(a, b)| [a, b]).collect();
        let is_pair = |a: i32, b: i32| pairs.contains_key(&(a.min(b), a.max(b)));
        let has_third = |&(&(a, b), _): &(&(i32, i32), &f64)| {
            tids.iter().any(|&tid| is_pair(a, tid) && is_pair(b, tid))
        };
        let turns = pairs.iter().filter(has_third).map(|(_, count)| count);
        Some((turns.sum::<f64>() / all, tids))
    }
}

/// The maximum time until a woken thread gets a core, if one is free: 5 to 50 µs (Zen 4, KVM).
const WAKE_NS: u64 = 50_000;

/// The most recent switches.
#[derive(Debug, Default)]
pub(crate) struct InferredWakes {
    /// The thread on each core.
    running: HashMap<u32, i32>,
    /// The threads that left a core, with the times.
    left: VecDeque<(u64, i32)>,
    /// The threads that blocked when they left a core.
    blocked: HashSet<i32>,
}

impl InferredWakes {
    /// Takes an event of the program, in the order of time. Returns the thread that must have woken
    /// the one that now gets a core, because no other thread of the program ran within the time
    /// that a wake-up takes.
    pub(crate) fn see(&mut self, event: &Event) -> Option<i32> {
        let Event { tid, core, .. } = *event;
        match event.what {
            What::Out { preempted } => {
                if self.running.get(&core) == Some(&tid) {
                    self.running.remove(&core);
                }
                self.left.push_back((event.time_ns, tid));
                if !preempted {
                    self.blocked.insert(tid);
                }
                None
            }
            What::In => {
                let since_ns = event.time_ns.saturating_sub(WAKE_NS);
                while self
                    .left
                    .pop_front_if(|(at_ns, _)| *at_ns < since_ns)
                    .is_some()
                {}
                let waker = self.waker(tid);
                self.running.insert(core, tid);
                self.blocked.remove(&tid).then_some(waker).flatten()
            }
            What::Exited => {
                self.blocked.remove(&tid);
                self.running.retain(|_, running| *running != tid);
                None
            }
            _ => None,
        }
    }

    /// Returns the other thread that runs or has just run, if there is exactly one.
    fn waker(&self, woken: i32) -> Option<i32> {
        let left = self.left.iter().map(|(_, tid)| *tid);
        let mut others = left
            .chain(self.running.values().copied())
            .filter(|&tid| tid != woken);
        let first = others.next()?;
        others.all(|tid| tid == first).then_some(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAIT: u64 = 128;
    const SECONDS: f64 = 2.0;

    /// Returns threads that ran for these times, in ms.
    fn ran<const N: usize>(ms: [(i32, u64); N]) -> HashMap<i32, ThreadTotals> {
        let threads = |ms| ThreadTotals {
            ran_ns: ms * 1_000_000,
            blocks: 0,
        };
        HashMap::from(ms.map(|(tid, ms)| (tid, threads(ms))))
    }

    fn equally() -> HashMap<i32, ThreadTotals> {
        ran([(1, 400), (2, 400), (3, 400), (9, 400)])
    }

    fn seen(words: &[(i32, [u64; 6])], rounds: usize) -> FutexWords {
        let mut seen = FutexWords::default();
        for _ in 0..rounds {
            words
                .iter()
                .for_each(|(tid, word)| _ = seen.add(1, *tid, word, 1.0));
            seen.end_round(true);
        }
        seen
    }

    /// Adds waits at a word that end by these wakers, after which one of the threads waits again.
    fn woken(words: &mut FutexWords, address: u64, pairs: &[(i32, i32)]) {
        let spot = QueueId::Queue((1, address));
        for (turn, &(waker, woken)) in (1..).zip(pairs) {
            words.wait(woken, spot, since(10 * turn), 1.0);
            words.wake(waker, woken, 10 * turn, 10 * turn + 5);
        }
        words.wait(pairs[0].1, spot, since(u64::MAX), 1.0);
    }

    fn judged(words: &FutexWords, wakes: &Wakes, totals: &HashMap<i32, ThreadTotals>) -> LockQueue {
        let line = words.queue(wakes, totals, SECONDS);
        line.expect("seen at a futex, a lock or a monitor")
    }

    /// Returns the queue of threads that ran equally, by unknown wakers.
    fn line_of(words: &FutexWords) -> LockQueue {
        judged(words, &Wakes::default(), &equally())
    }

    fn since(ns: u64) -> Turn {
        Turn {
            runs: None,
            since_ns: Some(ns),
        }
    }

    fn pairs(turns: i32, pair: impl Fn(i32) -> (i32, i32)) -> Vec<(i32, i32)> {
        (0..turns).map(pair).collect()
    }

    /// Recorded from six threads at a mutex of the C library, by a user without wake-up events.
    #[test]
    fn a_taken_mutex_is_a_lock() {
        let mutex = [0x4040c0, WAIT, 2, 0, 0, 0];
        let waiting = [
            (1, mutex),
            (2, mutex),
            (3, mutex),
            (4, [0x7f0010, 265, 4, 0, 0, 0]),
        ];
        let line = line_of(&seen(&waiting, 10));
        assert_eq!((line.waiters, line.locked), (3.0, Some(1.0)));
    }

    /// A thread at a condition variable of Rust that was notified twice: the counter holds the
    /// value of a taken mutex. It was judged LOCK-CONVOY at 0.94, more so where the begin of the
    /// wait was not recorded: each sample counted as a wait.
    #[test]
    fn a_word_that_never_changes_hands_is_no_lock() {
        let counter = [0x1000, WAIT, 2, 0, 0, 0];
        let locked = |threads: i32, turn: &dyn Fn(i32, u64) -> Turn| {
            let mut words = FutexWords::default();
            for round in 0..200 {
                for tid in 1..=threads {
                    let spot = words.add(1, tid, &counter, 1.0);
                    words.wait(tid, spot, turn(tid, round), 1.0);
                }
                words.end_round(true);
            }
            line_of(&words).locked
        };
        let with = |runs, since_ns| Turn { runs, since_ns };
        assert_eq!(locked(1, &|_, round| since(round)), Some(0.0), "alone");
        let still = locked(3, &|_, _| with(Some(7), None));
        assert_eq!(still, Some(0.0), "while records pause");
        let still = locked(3, &|tid, round| {
            with(Some(tid as u64), (round % 2 == 0).then_some(9))
        });
        assert_eq!(still, Some(0.0), "with and without records");
        assert_eq!(locked(3, &|_, round| with(Some(round), None)), Some(1.0));
    }

    /// Two senders at a condition variable were judged to be at a lock.
    #[test]
    fn a_condition_is_no_lock() {
        let mut words = FutexWords::default();
        for value in 0..10 {
            words.add(1, 1, &[0x1000, WAIT, value, 0, 0, 0], 1.0);
            words.add(1, 2, &[0x1000, WAIT, value, 0, 0, 0], 1.0);
            words.end_round(true);
        }
        let line = line_of(&words);
        assert_eq!((line.waiters, line.locked), (2.0, Some(0.0)));
        // The receiver's word is next to that of the senders.
        let (zero, next) = ([0x1000, WAIT, 0, 0, 0, 0], [0x1004, WAIT, 0, 0, 0, 0]);
        let mut words = seen(&[(1, zero), (2, zero), (9, next)], 10);
        woken(&mut words, 0x1000, &pairs(50, |turn| (9, 1 + turn % 2)));
        let line = line_of(&words);
        assert_eq!((line.waiters, line.locked), (2.0, Some(0.0)));
    }

    #[test]
    fn a_condition_of_the_c_library_has_two_words() {
        let mut words = FutexWords::default();
        for turn in 0..10 {
            let word = [0x1000 + turn % 2 * 4, WAIT, 0, 0, 0, 0];
            (1..4).for_each(|tid| _ = words.add(1, tid, &word, 1.0));
            words.end_round(true);
        }
        assert_eq!(line_of(&words).waiters, 3.0);
    }

    /// Java parks each thread at a word of its own.
    #[test]
    fn threads_that_take_turns_are_in_line_wherever_they_wait() {
        let mut wakes = Wakes::default();
        for (waker, woken) in (0..60).map(|turn| (1 + turn % 4, 1 + turn / 4 % 4)) {
            wakes.add(waker, woken);
        }
        let own = |tid: i32| {
            (
                tid,
                [0x1000 * u64::from(tid.unsigned_abs()), 393, 0, 0, 0, 0],
            )
        };
        let mut words = seen(&[own(1), own(2), own(3), own(4), own(77)], 10);
        let turns = ran([(1, 400), (2, 400), (3, 400), (4, 400)]);
        let line = judged(&words, &wakes, &turns);
        assert_eq!(line.waiters, 3.0);
        assert!(line.locked > Some(0.5), "{line:?}");
        // A Go runtime wakes threads that find nothing to do.
        let one = ran([(1, 1_000), (2, 1), (3, 1), (4, 1)]);
        assert!(judged(&words, &wakes, &one).waiters <= 1.0);
        // Without known wakers, this is only weak evidence.
        let line = judged(&words, &Wakes::default(), &turns);
        assert_eq!((line.waiters, line.locked), (3.0, Some(RAN_APART)));
        // A channel between two goroutines with threads of their own was LOCK-CONVOY at 0.56.
        words.has_goroutines = true;
        let line = judged(&words, &wakes, &turns);
        assert_eq!((line.waiters, line.locked), (1.0, Some(0.0)));
    }

    /// Cases without wake-up records: threads at one condition that compute in turns (an
    /// interpreter lock), idle workers at one condition, and senders whose receiver runs as well.
    #[test]
    fn those_who_wake_must_have_run() {
        let zero = [0x1000, WAIT, 0, 0, 0, 0];
        let words = seen(&[(1, zero), (2, zero), (3, zero)], 10);
        let line = |ran| judged(&words, &Wakes::default(), &ran);
        let turns = line(ran([(1, 400), (2, 390), (3, 410), (8, 2)]));
        assert_eq!((turns.waiters, turns.locked), (3.0, Some(RAN_AT_WORD)));
        assert_eq!(line(ran([(1, 1), (2, 1), (8, 1_200)])).locked, Some(0.0));
        assert_eq!(line(equally()).locked, Some(0.0));
        assert_eq!(line(HashMap::new()).locked, None);
        let mut start = ran([(1, 1), (2, 1), (3, 1), (8, 1_200)]);
        start
            .iter_mut()
            .for_each(|(tid, it)| it.blocks = if *tid == 8 { 9 } else { 99 });
        assert_eq!(
            line(start).locked,
            None,
            "they block, and who wakes them is not known"
        );
        assert_eq!(
            FutexWords::default().queue(&Wakes::default(), &equally(), SECONDS),
            None
        );
    }

    /// Threads at a condition that the next one of them signals, as at the lock of an interpreter.
    #[test]
    fn the_wakers_of_a_lock_have_waited_there() {
        let zero = [0x1000, WAIT, 0, 0, 0, 0];
        let locked = |wakes: &[(i32, i32)]| {
            let mut words = seen(&[(1, zero), (2, zero), (3, zero)], 10);
            woken(&mut words, 0x1000, wakes);
            // Wake-ups elsewhere, as at the program's start, show nothing about this word.
            let mut elsewhere = Wakes::default();
            (0..100).for_each(|turn| elsewhere.add(1 + turn % 3, 1 + (turn + 1) % 3));
            judged(&words, &elsewhere, &ran([(9, 1_000)])).locked
        };
        assert_eq!(
            locked(&pairs(50, |turn| (1 + turn % 3, 1 + (turn + 1) % 3))),
            Some(1.0)
        );
        assert_eq!(locked(&pairs(50, |turn| (9, 1 + turn % 3))), Some(0.0));
    }

    /// An idle Python pool was judged LOCK-CONVOY: its main thread blocks often, and at the
    /// program's end each worker wakes the next one.
    #[test]
    fn a_pool_that_is_idle_is_no_lock_when_woken_at_the_end() {
        for value in [0, 2] {
            let word = [0x1000, WAIT, value, 0, 0, 0];
            let pool: Vec<_> = (1..=12).map(|tid| (tid, word)).collect();
            let mut words = seen(&pool, 200);
            let spot = QueueId::Queue((1, 0x1000));
            for _ in 0..200 {
                (1..=12).for_each(|tid| words.wait(tid, spot, since(tid as u64), 1.0));
            }
            let locked = |words: &FutexWords, seconds| {
                let mut threads = ran([(1, 1), (2, 1), (9, 1_000)]);
                (threads.values_mut()).for_each(|it| it.blocks = 100);
                let line = words.queue(&Wakes::default(), &threads, seconds);
                line.expect("seen at a futex").locked
            };
            (1..12).for_each(|tid| words.wake(tid, tid + 1, tid as u64 + 1, 900));
            assert_eq!(locked(&words, 6.0), Some(0.0), "{value}");
            // The run was short, and the waits were frequent: the end still shows nothing.
            if value == 0 {
                assert_ne!(locked(&words, 0.1), Some(11.0 / 11.0));
                words.wait(1, spot, since(1_000), 1.0);
                assert_eq!(locked(&words, 0.1), Some(1.0), "it was not the end");
            }
        }
    }

    /// Readers and writers at Rust's lock, made by hand after `price-cache`: the readers wait at
    /// the lock's word, the writers at a counter next to it.
    #[test]
    fn readers_and_writers_wait_in_one_line() {
        let mut words = FutexWords::default();
        for value in 0..10 {
            let readers = [0x1000, WAIT, 0x7fff_ffff, 0, 0, 0];
            (1..=4).for_each(|tid| _ = words.add(1, tid, &readers, 1.0));
            words.add(1, 6, &[0x1004, WAIT, value, 0, 0, 0], 1.0);
            words.end_round(true);
        }
        // Writers wake the readers, and never wait where these do.
        let wakes = pairs(50, |turn| (6 + turn % 2, 1 + turn % 5));
        for wakes in [&[][..], &wakes] {
            if !wakes.is_empty() {
                woken(&mut words, 0x1000, wakes);
            }
            let line = line_of(&words);
            assert_eq!(line.waiters, 5.0);
            assert!(line.locked > Some(0.8), "{line:?}");
        }
    }

    /// A mutex next to the condition variable that it belongs to: few threads wait for it.
    #[test]
    fn a_mutex_makes_no_lock_of_the_condition_beside_it() {
        let mut words = FutexWords::default();
        for value in 0..10 {
            let condition = [0x1004, WAIT, 100 + value, 0, 0, 0];
            (1..4).for_each(|tid| _ = words.add(1, tid, &condition, 1.0));
            words.end_round(true);
        }
        words.add(1, 9, &[0x1000, WAIT, 2, 0, 0, 0], 1.0);
        words.end_round(true);
        woken(&mut words, 0x1004, &pairs(50, |turn| (9, 1 + turn % 3)));
        let line = line_of(&words);
        assert!(line.waiters * line.locked.unwrap_or(1.0) < 0.5, "{line:?}");
    }

    /// Two threads wake each other, whatever they wait for; a third that was seen once is not a
    /// party. Two threads at a mutex are recognised by its value.
    #[test]
    fn two_threads_tell_no_lock_from_a_hand_over() {
        let wakes = pairs(50, |turn| (1 + turn % 2, 2 - turn % 2));
        let line = |value| {
            let word = [0x1000, WAIT, value, 0, 0, 0];
            let mut words = seen(&[(1, word), (2, word)], 100);
            words.add(1, 3, &word, 1.0);
            woken(&mut words, 0x1000, &wakes);
            line_of(&words).locked
        };
        assert_eq!((line(0), line(2)), (Some(0.0), Some(1.0)));
    }

    /// The word at which a parked Rust thread waits looks like a reader-writer lock.
    #[test]
    fn a_parked_thread_waits_for_no_lock() {
        let at = |address| [address, WAIT, u64::from(u32::MAX), 0, 0, 0];
        let locked = |words: &[(i32, [u64; 6])]| {
            judged(&seen(words, 10), &Wakes::default(), &HashMap::new()).locked
        };
        assert_eq!(locked(&[(1, at(0x1000))]), Some(0.0));
        let both = [(1, at(0x1000)), (2, at(0x1000)), (3, at(0x1000))];
        assert_eq!(locked(&both), Some(1.0));
    }

    /// A Java pool, made by hand after `scatter-gather`: one thread gives work to four, which also
    /// wake each other, and then sleeps. Each waits at a word of its own, and no thread holds a
    /// lock meanwhile.
    #[test]
    fn workers_that_have_nothing_to_do_are_in_no_line() {
        let mut wakes = Wakes::default();
        (0..60).for_each(|turn| wakes.add(1 + turn % 5, 1 + turn / 5 % 4));
        assert!(
            wakes.in_turns().expect("wakes were recorded").0 > 0.5,
            "as of threads in turn"
        );
        let waiting = |running: fn(u64) -> bool| {
            let mut words = FutexWords::default();
            for round in 0..20 {
                (1..=4_u8).for_each(|tid| {
                    let own = [0x1000 * u64::from(tid), 393, 0, 0, 0, 0];
                    words.add(1, tid.into(), &own, 1.0);
                });
                words.end_round(running(round));
            }
            // The result must not depend on how long the start of the virtual machine has run.
            [0, 200].map(|start_ms| {
                let mut threads = ran([(1, 40), (2, 40), (3, 40), (4, 40), (9, start_ms)]);
                (threads.values_mut()).for_each(|it| it.blocks = 100);
                let line = judged(&words, &wakes, &threads);
                line.waiters * line.locked.unwrap_or(1.0)
            })
        };
        assert_eq!(waiting(|_| false), [0.0, 0.0]);
        assert_eq!(waiting(|round| round % 4 == 0), [0.0, 0.0]);
        let [held, _] = waiting(|round| round % 4 != 0);
        assert!(held > 0.5, "while one of them runs they wait: {held}");
    }

    /// Five processes at `flock` were judged CPU-COMPUTE, because no futex is called.
    #[test]
    fn who_waits_for_the_lock_of_a_file_is_in_line() {
        let mut seen = FutexWords::default();
        for _ in 0..10 {
            (0..4).for_each(|_| _ = seen.add_file((1, 7), 1.0));
            seen.add_file((1, 8), 1.0);
            seen.end_round(true);
        }
        let line = judged(&seen, &Wakes::default(), &HashMap::new());
        assert_eq!((line.waiters, line.locked), (4.0, Some(1.0)));
        assert!(line.place.contains("inode 7"), "{line:?}");
    }

    /// Another program holds it, and the main thread blocks often meanwhile.
    #[test]
    fn a_lock_of_a_file_that_never_changes_hands_is_none_that_goes_round() {
        let locked = |waits: u64| {
            let mut seen = FutexWords::default();
            for round in 0..100 {
                for tid in 1..=3 {
                    let spot = seen.add_file((1, 7), 1.0);
                    seen.wait(tid, spot, since(round * waits / 100), 1.0);
                }
                seen.end_round(true);
            }
            line_of(&seen).locked
        };
        assert_eq!([locked(1), locked(20)], [Some(0.0), Some(1.0)]);
    }

    /// Six workers that share a receiver under a mutex were judged LOCK-CONVOY: one of them holds
    /// it and waits for work, and five wait for the mutex. If the holder waits for another lock, it
    /// does delay this one.
    #[test]
    fn a_lock_whose_holder_waits_for_work_holds_nobody_up() {
        let mutex = [0x1000, WAIT, 2, 0, 0, 0];
        let locked = |holder: &dyn Fn(&mut FutexWords, i32)| {
            let mut words = FutexWords::default();
            for round in 0..60 {
                let holds = 1 + round % 6;
                let others = (1..=6).filter(|&tid| tid != holds);
                others.for_each(|tid| _ = words.add(1, tid, &mutex, 1.0));
                holder(&mut words, holds);
                words.add_other(9, false);
                words.end_round(true);
            }
            let line = line_of(&words);
            (
                line.waiters,
                line.locked.expect("the word's value tells it"),
            )
        };
        let at = |value| [0x2000, WAIT, value, 0, 0, 0];
        let for_work = locked(&|words, tid| _ = words.add(1, tid, &at(0), 1.0));
        assert!(for_work.1 < 0.01, "{for_work:?}");
        let accepts = locked(&|words, tid| words.add_other(tid, true));
        assert!(accepts.1 < 0.01, "{accepts:?}");
        let for_a_lock = locked(&|words, tid| _ = words.add(1, tid, &at(2), 1.0));
        assert_eq!(for_a_lock, (5.0, 1.0));
        let works = locked(&|words, tid| words.add_other(tid, false));
        assert_eq!(works, (5.0, 1.0));
        // One of them holds it nearly always, as it takes it again before the threads that it wakes
        // run.
        let always = |accepts| {
            let mut words = FutexWords::default();
            for _ in 0..60 {
                (1..=5).for_each(|tid| _ = words.add(1, tid, &mutex, 1.0));
                words.add_other(6, accepts);
                words.end_round(true);
            }
            woken(&mut words, 0x1000, &pairs(60, |turn| (6, 1 + turn % 5)));
            line_of(&words).locked
        };
        assert_eq!([always(true), always(false)], [Some(0.0), Some(1.0)]);
    }

    /// Eight Java handlers whose monitor is held asleep were judged SLEEP-POLLING.
    #[test]
    fn who_waits_for_a_monitor_is_in_line() {
        let mut seen = FutexWords::default();
        (0..10).for_each(|_| seen.end_round(false));
        let line = Line {
            waiters: 70.0,
            waits: 40.0,
            tids: HashMap::from([(8, 40.0), (9, 30.0)]),
        };
        seen.add_monitor(1, line);
        let line = judged(&seen, &Wakes::default(), &HashMap::new());
        assert_eq!((line.waiters, line.locked), (7.0, Some(1.0)));
        assert_eq!(line.tids, [8, 9]);
    }

    fn wakes(pairs: &[(i32, i32, usize)]) -> Wakes {
        let mut wakes = Wakes::default();
        for &(waker, woken, count) in pairs {
            (0..count).for_each(|_| wakes.add(waker, woken));
        }
        wakes
    }

    fn share(pairs: &[(i32, i32, usize)]) -> f64 {
        wakes(pairs).in_turns().expect("enough wakes").0
    }

    #[test]
    fn senders_and_receivers_wake_each_other_across() {
        let queue = [(1, 9, 50), (2, 9, 40), (9, 1, 45), (9, 2, 44)];
        assert_eq!(share(&queue), 0.0);
        let stages = [(1, 2, 50), (2, 3, 50), (3, 4, 50), (4, 3, 20), (2, 1, 9)];
        assert_eq!(share(&stages), 0.0);
    }

    #[test]
    fn threads_that_take_turns_have_no_two_sides() {
        let turns = |threads: i32| {
            let pairs = (0..threads).flat_map(|a| (0..threads).map(move |b| (a, b, 3)));
            share(&pairs.filter(|(a, b, _)| a != b).collect::<Vec<_>>())
        };
        assert_eq!((turns(3), turns(6)), (1.0, 1.0));
        let (_, threads) = wakes(&[(1, 2, 9), (2, 3, 9), (3, 1, 9)])
            .in_turns()
            .expect("enough wakes");
        assert_eq!(threads, HashSet::from([1, 2, 3]));
        // A thread that woke each of them once, when they began, is no party.
        let begun = [(1, 2, 90), (2, 1, 90), (9, 1, 1), (9, 2, 1)];
        assert_eq!(share(&begun), 0.0);
    }

    const BLOCKS: What = What::Out { preempted: false };

    fn wakers(events: Vec<(u64, i32, u32, What)>) -> Vec<(i32, i32)> {
        let mut turns = InferredWakes::default();
        let mut seen = Vec::new();
        for (us, tid, core, what) in events {
            let event = Event {
                time_ns: us * 1_000,
                pid: 1,
                tid,
                core,
                what,
            };
            seen.extend(turns.see(&event).map(|waker| (waker, tid)));
        }
        seen
    }

    /// The holder of the lock waits for a disk meanwhile, and then wakes the next thread.
    #[test]
    fn a_thread_is_woken_by_the_one_that_just_ran() {
        let mut events = vec![(0, 1, 0, What::In), (5, 1, 0, BLOCKS)];
        for turn in 0..3_u64 {
            let (holder, next) = (1 + turn as i32, 2 + turn as i32);
            let at = 1_000 * (turn + 1);
            // The disk wakes it: no thread of the program ran.
            events.push((at, holder, 0, What::In));
            events.push((at + 4, holder, 0, BLOCKS));
            events.push((at + 20, next, 1, What::In));
            events.push((at + 24, next, 1, BLOCKS));
        }
        // It is known only from the second time on that they ever blocked.
        assert_eq!(wakers(events.clone()), []);
        events.extend(
            events
                .clone()
                .into_iter()
                .map(|(us, tid, core, what)| (us + 100_000, tid, core, what)),
        );
        assert_eq!(wakers(events), [(1, 2), (2, 3), (3, 4)]);
    }

    #[test]
    fn of_two_that_ran_none_is_named() {
        let ready = [(0, 3, 0, What::In), (1, 3, 0, BLOCKS)];
        let run = |second_us| {
            let more = [
                (1_000, 1, 0, What::In),
                (second_us, 2, 1, What::In),
                (second_us + 1, 2, 1, BLOCKS),
                (3_000, 3, 1, What::In),
            ];
            wakers(ready.clone().into_iter().chain(more).collect())
        };
        assert_eq!(run(2_990), [], "either of them");
        assert_eq!(run(2_000), [(1, 3)]);
    }

    #[test]
    fn one_that_was_preempted_is_not_woken() {
        let events = vec![
            (0, 1, 0, What::In),
            (0, 2, 1, What::In),
            (10, 2, 1, What::Out { preempted: true }),
            (900, 2, 1, What::In),
        ];
        assert_eq!(wakers(events), []);
    }
}
