//! Finds where threads queue, from the words at which futex calls wait.

use super::calls;
use super::wakes::Wakes;
use std::collections::{HashMap, HashSet};

/// The maximum number of words and threads that are remembered.
const WORDS_MAX: usize = 4_096;
/// The number of distinct awaited values from which on a word is a counter; a lock has one value.
const VALUES_MANY: usize = 4;
/// The factor that turns the one-sided share of wake-ups into a share: for threads that take turns
/// it is between a third and a half.
const ONE_SIDED_SCALE: f64 = 2.0;
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
pub(crate) struct Deeds {
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
pub(crate) enum Spot {
    Word(Place),
    File((u64, u64)),
}

#[derive(Debug, Clone, Default)]
struct Word {
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

impl Word {
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
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Line {
    /// The mean number of waiters over all rounds.
    pub(crate) waiters: f64,
    /// The degree to which they wait for a lock, if it is known.
    pub(crate) locked: Option<f64>,
}

/// All words at which threads were seen waiting.
#[derive(Debug, Default)]
pub(crate) struct Words {
    rounds: f64,
    words: HashMap<Place, Word>,
    /// For each lock of a file, by device and inode: the waiters, summed over all rounds, and the
    /// number of waits that were seen.
    files: HashMap<(u64, u64), (f64, f64)>,
    /// These values for Java monitors, by process.
    monitors: HashMap<i32, (f64, f64)>,
    /// The place at which each thread was last seen waiting, and since when.
    present: HashMap<i32, (Spot, u64)>,
    /// Whether it is known when waits begin.
    timed: bool,
    /// The rounds in which a thread waited at a word while another one ran.
    waited: HashMap<i32, f64>,
    waiters_max: f64,
    round: HashMap<Place, f64>,
    round_files: HashMap<(u64, u64), f64>,
    round_tids: Vec<(i32, Doing)>,
}

impl Words {
    /// Adds a thread that waits in a futex call; it represents `scale` threads.
    pub(crate) fn add(&mut self, pid: i32, tid: i32, arguments: &[u64; 6], scale: f64) -> Spot {
        // Words that processes share are at the same address if they existed before a fork.
        let pid = if calls::is_private(arguments) { pid } else { 0 };
        let place = (pid, arguments[0]);
        if self.words.len() >= WORDS_MAX && !self.words.contains_key(&place) {
            return Spot::Word(place);
        }
        let word = self.words.entry(place).or_default();
        word.waiters += scale;
        let part = |is: bool| if is { scale } else { 0.0 };
        word.taken += part(calls::awaits_lock(arguments));
        word.maybe += part(calls::may_await_lock(arguments));
        if word.values.len() < VALUES_MANY {
            word.values.insert(arguments[2] & 0xffff_ffff);
        }
        if word.tids.len() < WORDS_MAX || word.tids.contains_key(&tid) {
            *word.tids.entry(tid).or_default() += scale;
        }
        let doing = Doing::WaitsAt(place, calls::awaits_lock(arguments));
        self.round_tids.push((tid, doing));
        *self.round.entry(place).or_default() += scale;
        Spot::Word(place)
    }

    /// Adds a thread that waits for the lock of a file; it represents `scale` threads.
    pub(crate) fn add_file(&mut self, file: (u64, u64), scale: f64) -> Spot {
        if self.files.len() < WORDS_MAX || self.files.contains_key(&file) {
            self.files.entry(file).or_default().0 += scale;
            *self.round_files.entry(file).or_default() += scale;
        }
        Spot::File(file)
    }

    /// Adds threads of a process that wait to enter monitors: their number, summed over all rounds,
    /// and the number of waits that were seen.
    pub(crate) fn add_monitor(&mut self, pid: i32, waiters: f64, waits: f64) {
        self.monitors.insert(pid, (waiters, waits));
    }

    /// Adds a wait that was sampled, when the records have reached the sample. The thread has
    /// waited since this time; it represents `scale` threads. The time is unknown while the records
    /// pause.
    pub(crate) fn wait(&mut self, tid: i32, spot: Spot, since_ns: Option<u64>, scale: f64) {
        self.timed = true;
        let now = since_ns.map(|since_ns| (spot, since_ns));
        if now.is_some() && self.present.get(&tid) == now.as_ref() {
            return;
        }
        match spot {
            Spot::File(file) => {
                if let Some((_, waits)) = self.files.get_mut(&file) {
                    *waits += scale;
                }
            }
            Spot::Word(place) => {
                let Some(word) = self.words.get_mut(&place) else {
                    return;
                };
                word.waits += scale;
                let came_ns = since_ns.unwrap_or(0);
                let before = word
                    .last_wakers
                    .extract_if(.., |(at_ns, _)| *at_ns <= came_ns);
                for (_, waker) in before {
                    *word.wakers.entry(waker).or_default() += 1.0;
                }
            }
        }
        if self.present.len() < WORDS_MAX || self.present.contains_key(&tid) {
            self.present.extend(now.map(|now| (tid, now)));
        }
    }

    /// Records that a thread of the program ended a wait that another one began at this time.
    pub(crate) fn wake(&mut self, waker: i32, woken: i32, since_ns: u64, now_ns: u64) {
        let ended = self.present.remove(&woken).filter(|it| it.1 == since_ns);
        if let Some((Spot::Word(place), _)) = ended
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
        for place in self.round.keys() {
            let Some(word) = self.words.get_mut(place).filter(|it| it.tids.len() > 1) else {
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
        let at_words = self.round.drain().map(|(_, waiters)| waiters);
        let most = at_words.chain(self.round_files.drain().map(|(_, waiters)| waiters));
        self.waiters_max = most.fold(self.waiters_max, f64::max);
    }

    /// Returns the largest number of threads seen waiting at one word or file; `None` if none was
    /// seen.
    pub(crate) fn waiters_max(&self) -> Option<f64> {
        (self.waiters_max > 0.0).then_some(self.waiters_max)
    }

    /// Returns the longest queue at a lock; if there is none, the longest queue. The program was
    /// observed for this many seconds.
    pub(crate) fn line(
        &self,
        wakes: &Wakes,
        deeds: &HashMap<i32, Deeds>,
        seconds: f64,
    ) -> Option<Line> {
        let at_words = self.words.iter().map(|(&(pid, address), word)| {
            let near = [address.wrapping_add(4), address.wrapping_sub(4)];
            let mut near = near.iter().filter_map(|&at| self.words.get(&(pid, at)));
            let joined = near.find_map(|near| joined(word, near));
            let word = joined.as_ref().unwrap_or(word);
            let round = self.goes_round(word.waits, seconds);
            Line {
                waiters: word.waiters / self.rounds,
                locked: match round > 0.0 {
                    true => locked(word, deeds).map(|locked| locked * round),
                    false => Some(0.0),
                },
            }
        });
        let weight = |line: &Line| (line.waiters * line.locked.unwrap_or(0.0), line.waiters);
        // Threads at these wait for nothing but a lock.
        let known = self.files.values().chain(self.monitors.values());
        let at_files = known.map(|(waiters, waits)| Line {
            waiters: waiters / self.rounds,
            locked: Some(self.goes_round(*waits, seconds)),
        });
        let lines = at_words
            .chain(at_files)
            .chain(self.line_apart(wakes, deeds, seconds));
        lines.max_by(|a, b| weight(a).partial_cmp(&weight(b)).expect("numbers"))
    }

    /// Returns a queue of threads that each wait at a word of their own while one of them runs, and
    /// that run in turns, for about equal times. Where no thread runs, no lock can be seen held:
    /// workers without work wait like that.
    fn line_apart(&self, wakes: &Wakes, deeds: &HashMap<i32, Deeds>, seconds: f64) -> Option<Line> {
        let mut alone: HashMap<i32, f64> = HashMap::new();
        for word in self.words.values().filter(|word| word.tids.len() == 1) {
            for &tid in word.tids.keys() {
                *alone.entry(tid).or_default() += word.waits;
            }
        }
        let (locked, tids) = match wakes.one_sided() {
            Some((share, tids)) => ((share * ONE_SIDED_SCALE).min(1.0), tids),
            None => (RAN_APART, alone.keys().copied().collect()),
        };
        let ran_ns = |tid: &i32| deeds.get(tid).map_or(0, |it| it.ran_ns) as f64;
        let mean_ns = tids.iter().map(ran_ns).sum::<f64>() / tids.len().max(1) as f64;
        let in_turn = |tid: &&i32| alone.contains_key(tid) && ran_ns(tid) >= mean_ns / 2.0;
        let in_turn: Vec<&i32> = tids.iter().filter(in_turn).collect();
        let waits = in_turn.iter().filter_map(|tid| alone.get(tid)).sum();
        let ran = in_turn.iter().map(|tid| ran_ns(tid)).sum::<f64>();
        let all = sum(deeds.keys(), deeds, |it| it.ran_ns).max(1.0);
        let waiting = in_turn.iter().filter_map(|tid| self.waited.get(tid));
        // A thread that waits beside the running one may be its partner in a hand-over.
        let waiters = waiting.sum::<f64>() / self.rounds.max(1.0) - 1.0;
        let line = Line {
            waiters: waiters.max(0.0),
            locked: Some(locked * self.goes_round(waits, seconds)),
        };
        (ran / all >= RAN_ALL).then_some(line)
    }
}

fn sum<'a>(
    tids: impl Iterator<Item = &'a i32>,
    deeds: &HashMap<i32, Deeds>,
    of: impl Fn(&Deeds) -> u64,
) -> f64 {
    tids.filter_map(|tid| deeds.get(tid)).map(of).sum::<u64>() as f64
}

/// Joins two adjacent words into one: if mostly the same threads wait there, as at a condition
/// variable of the C library; or if they mostly wait for something that is taken, as the readers
/// and the writers of a lock do.
fn joined(one: &Word, other: &Word) -> Option<Word> {
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
fn locked(word: &Word, deeds: &HashMap<i32, Deeds>) -> Option<f64> {
    let taken = word.taken_share();
    let parties = word.parties();
    if taken >= 0.5 {
        return Some(taken * (1.0 - word.held_by_waiter(&parties)));
    }
    if parties.len() < THREADS_TELLING {
        return Some(0.0);
    }
    let all_ns = sum(deeds.keys(), deeds, |it| it.ran_ns);
    let by_runs = || {
        let share = |of: fn(&Deeds) -> u64| {
            sum(parties.iter(), deeds, of) / sum(deeds.keys(), deeds, of).max(1.0)
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

#[cfg(test)]
mod tests;
