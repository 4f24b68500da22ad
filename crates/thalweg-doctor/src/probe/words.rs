//! Where threads wait in line: the words that calls of futex wait at.

use super::calls;
use super::wakes::Wakes;
use std::collections::{HashMap, HashSet};

/// Words and threads that are remembered.
const WORDS_MAX: usize = 4_096;
/// A word that was awaited with so many values counts something: a lock has one.
const VALUES_MANY: usize = 4;
/// Of threads that take turns at least a third of the wakes stays on one side, a half at most: by
/// this it is made a share.
const ONE_SIDED_SCALE: f64 = 2.0;
/// Threads that have this part of the run time of the program are all that could wake; below the
/// other part there is room for one that only wakes.
const RAN_ALL: f64 = 0.9;
const RAN_MOST: f64 = 0.75;
/// What that alone makes of a lock: less than half, which would be sure. Threads that wait at a
/// word each may as well be stages that work in turn.
const RAN_AT_WORD: f64 = 0.45;
const RAN_APART: f64 = 0.35;

/// A process and an address; no process for a word that several share.
type Place = (i32, u64);

#[derive(Debug, Clone, Default)]
struct Word {
    /// Sum over all rounds.
    waiters: f64,
    /// Of these, those that wait for what is taken.
    taken: f64,
    values: HashSet<u64>,
    tids: HashSet<i32>,
}

/// The threads that wait at the same futex, or for the same lock.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Line {
    /// On average over all rounds.
    pub(crate) waiters: f64,
    /// How far it is a lock that they wait for, if that can be told.
    pub(crate) locked: Option<f64>,
}

/// All words at which threads were seen waiting.
#[derive(Debug, Default)]
pub(crate) struct Words {
    rounds: f64,
    words: HashMap<Place, Word>,
    /// Rounds in which a thread waited at a word while another one ran.
    waited: HashMap<i32, f64>,
    waiters_max: f64,
    round: HashMap<Place, f64>,
    round_tids: Vec<i32>,
}

impl Words {
    /// A thread waits in a call of futex; it stands for `scale` of them.
    pub(crate) fn add(&mut self, pid: i32, tid: i32, arguments: &[u64; 6], scale: f64) {
        // Words that processes share are at the same address if they were there before a fork.
        let pid = if calls::is_private(arguments) { pid } else { 0 };
        let place = (pid, arguments[0]);
        if self.words.len() >= WORDS_MAX && !self.words.contains_key(&place) {
            return;
        }
        let word = self.words.entry(place).or_default();
        word.waiters += scale;
        word.taken += if calls::awaits_lock(arguments) {
            scale
        } else {
            0.0
        };
        if word.values.len() < VALUES_MANY {
            word.values.insert(arguments[2] & 0xffff_ffff);
        }
        if word.tids.len() < WORDS_MAX {
            word.tids.insert(tid);
        }
        self.round_tids.push(tid);
        *self.round.entry(place).or_default() += scale;
    }

    /// A round of looks is over; did it see a thread run?
    pub(crate) fn end_round(&mut self, running: bool) {
        self.rounds += 1.0;
        for tid in self.round_tids.drain(..).filter(|_| running) {
            *self.waited.entry(tid).or_default() += 1.0;
        }
        let most = self.round.drain().map(|(_, waiters)| waiters);
        self.waiters_max = most.fold(self.waiters_max, f64::max);
    }

    /// Most threads seen waiting at one word; nothing if none was seen.
    pub(crate) fn waiters_max(&self) -> Option<f64> {
        (self.waiters_max > 0.0).then_some(self.waiters_max)
    }

    /// The longest line at a lock; if there is none, the longest line. For each thread, `ran` is
    /// how long it ran.
    pub(crate) fn line(&self, wakes: &Wakes, ran: &HashMap<i32, u64>) -> Option<Line> {
        let at_words = self.words.iter().map(|(&(pid, address), word)| {
            // A condition variable of the C library waits at two neighbours in turns.
            let twin = self.words.get(&(pid, address ^ 4));
            let word = twin.and_then(|twin| joined(word, twin));
            let word = word.as_ref().unwrap_or(&self.words[&(pid, address)]);
            Line {
                waiters: word.waiters / self.rounds,
                locked: locked(word, wakes, ran),
            }
        });
        let weight = |line: &Line| (line.waiters * line.locked.unwrap_or(0.0), line.waiters);
        let lines = at_words.chain(self.line_apart(wakes, ran));
        lines.max_by(|a, b| weight(a).partial_cmp(&weight(b)).expect("numbers"))
    }

    /// Threads that wait at a word each while one of them runs, and run in turns: about equally.
    fn line_apart(&self, wakes: &Wakes, ran: &HashMap<i32, u64>) -> Option<Line> {
        let alone = self.words.values().filter(|word| word.tids.len() == 1);
        let alone: HashSet<i32> = alone.flat_map(|word| &word.tids).copied().collect();
        let (locked, tids) = match wakes.one_sided() {
            Some((share, tids)) => ((share * ONE_SIDED_SCALE).min(1.0), tids),
            None => (RAN_APART, alone.clone()),
        };
        let mean_ns = sum_ns(tids.iter(), ran) / tids.len().max(1) as f64;
        let in_turn = |tid: &&i32| sum_ns(std::iter::once(*tid), ran) >= mean_ns / 2.0;
        let in_turn: Vec<&i32> = tids.intersection(&alone).filter(in_turn).collect();
        let share = sum_ns(in_turn.iter().copied(), ran) / sum_ns(ran.keys(), ran).max(1.0);
        let waiting = in_turn.iter().filter_map(|tid| self.waited.get(tid));
        // One that waits beside the one that runs may be its partner in a hand-over.
        let waiters = waiting.sum::<f64>() / self.rounds.max(1.0) - 1.0;
        let line = Line {
            waiters: waiters.max(0.0),
            locked: Some(locked),
        };
        (share >= RAN_ALL).then_some(line)
    }
}

fn sum_ns<'a>(tids: impl Iterator<Item = &'a i32>, ran: &HashMap<i32, u64>) -> f64 {
    tids.filter_map(|tid| ran.get(tid)).sum::<u64>() as f64
}

/// Two words as one, if mostly the same threads wait there.
fn joined(one: &Word, other: &Word) -> Option<Word> {
    let both = one.tids.intersection(&other.tids).count();
    let any = one.tids.union(&other.tids).count();
    (2 * both >= any).then(|| Word {
        waiters: one.waiters + other.waiters,
        taken: one.taken + other.taken,
        values: &one.values | &other.values,
        tids: &one.tids | &other.tids,
    })
}

/// How far a word is a lock: by the value that is awaited, or as those who wake have waited there.
/// If it is not known who wakes whom: those who wake must have run.
fn locked(word: &Word, wakes: &Wakes, ran: &HashMap<i32, u64>) -> Option<f64> {
    let taken = word.taken / word.waiters;
    if taken >= 0.5 || word.tids.len() < 2 {
        return Some(taken);
    }
    let all_ns = sum_ns(ran.keys(), ran);
    let by_runs = || {
        let share = sum_ns(word.tids.iter(), ran) / all_ns;
        let counts = word.values.len() >= VALUES_MANY;
        let most = if counts { 0.0 } else { RAN_AT_WORD };
        (all_ns > 0.0).then(|| most * ((share - RAN_MOST) / (RAN_ALL - RAN_MOST)).clamp(0.0, 1.0))
    };
    wakes.within(&word.tids).or_else(by_runs)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAIT: u64 = 128;

    /// How long each thread ran, in ms.
    fn ran<const N: usize>(ms: [(i32, u64); N]) -> HashMap<i32, u64> {
        HashMap::from(ms.map(|(tid, ms)| (tid, ms * 1_000_000)))
    }

    fn equally() -> HashMap<i32, u64> {
        ran([(1, 400), (2, 400), (3, 400), (9, 400)])
    }

    fn seen(words: &[(i32, [u64; 6])], rounds: usize) -> Words {
        let mut seen = Words::default();
        for _ in 0..rounds {
            words
                .iter()
                .for_each(|(tid, word)| seen.add(1, *tid, word, 1.0));
            seen.end_round(true);
        }
        seen
    }

    /// Recorded of six threads at a mutex of the C library, as a user without events of wakes.
    #[test]
    fn a_taken_mutex_is_a_lock() {
        let mutex = [0x4040c0, WAIT, 2, 0, 0, 0];
        let waiting = [
            (1, mutex),
            (2, mutex),
            (3, mutex),
            (4, [0x7f0010, 265, 4, 0, 0, 0]),
        ];
        let line = seen(&waiting, 10)
            .line(&Wakes::default(), &equally())
            .unwrap();
        assert_eq!((line.waiters, line.locked), (3.0, Some(1.0)));
    }

    /// Two senders at a condition variable were called a lock.
    #[test]
    fn a_condition_is_no_lock() {
        let mut words = Words::default();
        for value in 0..10 {
            words.add(1, 1, &[0x1000, WAIT, value, 0, 0, 0], 1.0);
            words.add(1, 2, &[0x1000, WAIT, value, 0, 0, 0], 1.0);
            words.end_round(true);
        }
        let line = words.line(&Wakes::default(), &equally()).unwrap();
        assert_eq!((line.waiters, line.locked), (2.0, Some(0.0)));
        let mut wakes = Wakes::default();
        (0..50).for_each(|turn| wakes.add(9, 1 + turn % 2));
        // The one of the receiver is beside that of the senders.
        let (zero, next) = ([0x1000, WAIT, 0, 0, 0, 0], [0x1004, WAIT, 0, 0, 0, 0]);
        let line = seen(&[(1, zero), (2, zero), (9, next)], 10)
            .line(&wakes, &equally())
            .unwrap();
        assert_eq!((line.waiters, line.locked), (2.0, Some(0.0)));
    }

    #[test]
    fn a_condition_of_the_c_library_has_two_words() {
        let mut words = Words::default();
        for turn in 0..10 {
            let word = [0x1000 + turn % 2 * 4, WAIT, 0, 0, 0, 0];
            (1..4).for_each(|tid| words.add(1, tid, &word, 1.0));
            words.end_round(true);
        }
        assert_eq!(
            words.line(&Wakes::default(), &equally()).unwrap().waiters,
            3.0
        );
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
        let words = seen(&[own(1), own(2), own(3), own(4), own(77)], 10);
        let turns = ran([(1, 400), (2, 400), (3, 400), (4, 400)]);
        let line = words.line(&wakes, &turns).unwrap();
        assert_eq!(line.waiters, 3.0);
        assert!(line.locked > Some(0.5), "{line:?}");
        // A runtime of Go wakes threads that find nothing to do.
        let one = ran([(1, 1_000), (2, 1), (3, 1), (4, 1)]);
        assert!(words.line(&wakes, &one).unwrap().waiters <= 1.0);
        // Who wakes whom is not known: it is half a clue.
        let line = words.line(&Wakes::default(), &turns).unwrap();
        assert_eq!((line.waiters, line.locked), (3.0, Some(RAN_APART)));
    }

    /// Where wakes are not told: threads at one condition that compute in turns (one interpreter
    /// lock), workers at one that have nothing to do, and senders whose receiver runs as well.
    #[test]
    fn those_who_wake_must_have_run() {
        let zero = [0x1000, WAIT, 0, 0, 0, 0];
        let words = seen(&[(1, zero), (2, zero), (3, zero)], 10);
        let line = |ran| words.line(&Wakes::default(), &ran).unwrap();
        let turns = line(ran([(1, 400), (2, 390), (3, 410), (8, 2)]));
        assert_eq!((turns.waiters, turns.locked), (3.0, Some(RAN_AT_WORD)));
        assert_eq!(line(ran([(1, 1), (2, 1), (8, 1_200)])).locked, Some(0.0));
        assert_eq!(line(equally()).locked, Some(0.0));
        assert_eq!(line(HashMap::new()).locked, None);
        assert_eq!(Words::default().line(&Wakes::default(), &equally()), None);
    }
}
