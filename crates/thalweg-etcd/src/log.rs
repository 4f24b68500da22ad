//! The log: keys, and the transactions on them.
//!
//! | key | value |
//! |---|---|
//! | `<prefix>/claim` | the present claim |
//! | `<prefix>/beat` | a counter of the writer's |
//! | `<prefix>/log/<index, 16 hexadecimal digits>` | a batch |
//! | `<prefix>/newest` | the index of the newest batch, as in its key; empty before the first |
//! | `<prefix>/replica/<name>` | commands a replica has executed, when (ms), why it has halted |
//! | `<prefix>/peer/<name>` | where others get a copy of a replica |

use std::io;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use thalweg_exchange::durable::replication::{
    Claim, CommandLog, LogError, StoredBatch, Tail, WriteOutcome,
};

use crate::address::Address;
use crate::endpoints::{CallError, Endpoints};
use crate::message::{
    Answer, Entry, Fields, delete, get, has_value, is_absent, is_there, number, put, range,
};

/// Batches that a read returns at most: these at first, so that long ones have 2 MiB, or 300 KiB
/// where they are packed, and up to that many where they are short.
const BATCHES: usize = 8;
const BATCHES_MAX: usize = 64;
const READ_BYTES: usize = 512 << 10;
/// How far before an index a batch that holds it is looked for first.
const WINDOW: u64 = 64;
/// Replicas whose notes are read at most.
const REPLICAS: usize = 100;
/// Keys that one read returns at most.
const KEYS: usize = 256;
/// Writes, and bytes of them, after which the history of values that were replaced or deleted is
/// given up.
const COMPACT_EVERY: u64 = 2_000;
const COMPACT_BYTES: usize = 64 << 20;

/// The writes since the history was given up.
#[derive(Debug, Default)]
struct History {
    writes: u64,
    bytes: usize,
    /// The revision of the last one.
    revision: u64,
}

impl History {
    /// Notes a write.
    fn note(&mut self, revision: u64, bytes: usize) {
        self.writes += 1;
        self.bytes += bytes;
        self.revision = revision;
    }

    /// Returns the revision before which the history is to be given up, if it is to be.
    fn take_due(&mut self) -> Option<u64> {
        let is_due = self.writes >= COMPACT_EVERY || self.bytes >= COMPACT_BYTES;
        is_due.then(|| std::mem::take(self).revision)
    }
}

/// How far a replica was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position {
    /// The name of the replica.
    pub replica: String,
    /// How many commands it had executed.
    pub commands: u64,
    /// When it has noted that, by its own clock, in milliseconds since 1970.
    pub noted_ms: u64,
    /// Why it has halted then, if it has.
    pub halted: Option<String>,
}

/// How long calls may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// How long a connection may take to be made.
    pub connect: Duration,
    /// How long a call may take at most, a write as well. A read can be of many MiB. It is from 1
    /// ms to 10,000 s: others are taken for the nearest of these.
    pub call: Duration,
    /// How long a write may take at least, however quickly etcd has answered those before.
    pub write_min: Duration,
}

impl Default for Times {
    /// Returns 0.3 s for a connection, and 1.5 s for a call, of which a write has 0.4 s at least.
    fn default() -> Self {
        let ms = Duration::from_millis;
        let (connect, call, write_min) = (ms(300), ms(1_500), ms(400));
        Self {
            connect,
            call,
            write_min,
        }
    }
}

/// A command log in an etcd cluster.
///
/// Blocks the calling thread until a member has answered, as long as its [`Times`] allow: those of
/// a call, that of a connection more for each member that cannot be reached, and once more where a
/// connection has to be looked at; what reads may call twice. To find a batch takes several reads.
#[derive(Debug)]
pub struct EtcdLog {
    endpoints: Endpoints,
    prefix: String,
    beats: u64,
    /// Batches that the next read returns at most.
    page: usize,
    history: History,
    times: Times,
    write_time: WriteTime,
}

/// How long the next write may take.
///
/// A write that was under way when etcd lost its leader is never answered, so where writes are
/// answered quickly, one that is not is given up soon. The next one has the longest time: etcd may
/// be slow, and what is given up costs it twice. It is sent behind a read, which fails as long as
/// there is no leader.
#[derive(Debug)]
struct WriteTime {
    expected: Duration,
    /// The last write was given up.
    is_given_up: bool,
}

impl WriteTime {
    /// No write has been answered yet, or the next one is to have the time that there is.
    fn longest(times: Times) -> Self {
        Self {
            expected: times.call,
            is_given_up: false,
        }
    }

    fn limit(&self, times: Times) -> Duration {
        match self.is_given_up {
            true => times.call,
            false => self.expected,
        }
    }

    /// Notes a write that took this time.
    fn note(&mut self, times: Times, took: Duration, is_answered: bool) {
        if is_answered {
            let expected = (4 * took).max(self.expected / 2);
            self.expected = expected.max(times.write_min).min(times.call);
            self.is_given_up = false;
        } else if took >= self.limit(times) {
            self.is_given_up = true;
        }
    }
}

/// Returns how many batches the next read returns at most, after one that has returned this number,
/// which have this number of bytes together.
fn next_page(page: usize, batches: usize, bytes: usize) -> usize {
    match bytes {
        READ_BYTES.. => BATCHES,
        _ if batches == page && bytes < READ_BYTES / 4 => (page * 2).min(BATCHES_MAX),
        _ => page,
    }
}

impl EtcdLog {
    /// Returns the log at an address; no connection is made yet.
    ///
    /// # Errors
    /// The system gives no poll.
    pub fn new(address: Address) -> io::Result<Self> {
        Self::with_times(address, Times::default())
    }

    /// Returns the log at an address, with other times for its calls.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn with_times(address: Address, times: Times) -> io::Result<Self> {
        let call = times
            .call
            .clamp(Duration::from_millis(1), Duration::from_secs(10_000));
        let times = Times { call, ..times };
        Ok(Self {
            endpoints: Endpoints::new(address.endpoints, times.connect)?,
            prefix: address.prefix,
            beats: 0,
            page: BATCHES,
            history: History::default(),
            times,
            write_time: WriteTime::longest(times),
        })
    }

    fn key(&self, name: &str) -> String {
        format!("{}/{name}", self.prefix)
    }

    fn batch_key(&self, index: u64) -> String {
        format!("{}/log/{}", self.prefix, digits(index))
    }

    /// Returns the end of the keys of batches.
    fn log_end(&self) -> String {
        self.key("log0")
    }

    fn transact(
        &mut self,
        compare: &[Fields],
        success: &[Fields],
        time: Duration,
    ) -> Result<Answer, CallError> {
        let parts: Vec<&[u8]> = (compare.iter().chain(success)).map(Vec::as_slice).collect();
        let answer = self.endpoints.call("Txn", &parts, time)?;
        Answer::read(&answer).map_err(CallError::Unknown)
    }

    /// Sends a write, once.
    fn write(&mut self, compare: &[Fields], success: &[Fields]) -> WriteOutcome {
        self.write_bytes(compare, success, 0)
    }

    /// Sends a write of about this number of bytes, once.
    fn write_bytes(
        &mut self,
        compare: &[Fields],
        success: &[Fields],
        bytes: usize,
    ) -> WriteOutcome {
        let began = Instant::now();
        let answer = self.transact(compare, success, self.write_time.limit(self.times));
        let took = began.elapsed();
        self.write_time.note(self.times, took, answer.is_ok());
        match answer {
            Ok(answer) => {
                self.history.note(answer.revision, bytes);
                match answer.holds {
                    true => WriteOutcome::Acked,
                    false => WriteOutcome::Fenced,
                }
            }
            Err(error) => WriteOutcome::Unknown(error.into_text()),
        }
    }

    /// Sends a read, to each member once if it must be.
    fn read_all(&mut self, success: &[Fields]) -> Result<Vec<Vec<Entry>>, LogError> {
        let time = self.times.call;
        let first = self.transact(&[], success, time);
        let answer = match first {
            Err(CallError::Unknown(_)) => self.transact(&[], success, time),
            first => first,
        };
        let answer = answer.map_err(|error| LogError::Silent(error.into_text()))?;
        match answer.ranges.len() == success.len() {
            true => Ok(answer.ranges),
            false => Err(LogError::Silent(
                "an answer without all that was asked".to_owned(),
            )),
        }
    }

    /// Gives up values that were replaced or deleted, where there are many: they would fill the
    /// quota. An append does not, since its clients would wait for it.
    fn compact_now_and_then(&mut self) {
        if let Some(revision) = self.history.take_due() {
            let (revision, time) = (number(1, revision), self.write_time.limit(self.times));
            // Another replica may have done so; the next one comes.
            let _ = self.endpoints.call("Compact", &[&revision], time);
        }
    }

    /// Returns the index in the key of a batch.
    fn index_of(&self, key: &[u8]) -> Result<u64, LogError> {
        let prefix = self.key("log/");
        index_in(key.strip_prefix(prefix.as_bytes()).unwrap_or(key))
    }

    /// Returns the index in the value of `<prefix>/newest`.
    fn newest_in(entry: Option<&Entry>) -> Result<Option<u64>, LogError> {
        let value = entry.map(|entry| &entry.value[..]);
        let digits = value.filter(|value| !value.is_empty());
        digits.map(index_in).transpose()
    }

    /// Returns the replicas that have noted a position, by name.
    ///
    /// # Errors
    /// No majority answers in time, or what is there is not ours.
    pub fn noted(&mut self) -> Result<Vec<Position>, LogError> {
        let position = |(replica, value): (String, String)| {
            let mut words = value.splitn(3, ' ');
            let mut number = || words.next().and_then(|word| word.parse().ok());
            let (Some(commands), Some(noted_ms)) = (number(), number()) else {
                return Err(LogError::Foreign(format!(
                    "the position of {replica} is no number"
                )));
            };
            Ok(Position {
                replica,
                commands,
                noted_ms,
                halted: words.next().map(str::to_owned),
            })
        };
        self.under("replica")?.into_iter().map(position).collect()
    }

    /// Returns what is noted under a key for each replica, by name.
    fn under(&mut self, key: &str) -> Result<Vec<(String, String)>, LogError> {
        let (first, end) = (self.key(&format!("{key}/")), self.key(&format!("{key}0")));
        let request = range(&first, &end, REPLICAS, false);
        let entries = self.read_all(&[request])?.pop().unwrap_or_default();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let noted = |entry: Entry| match entry.key.strip_prefix(first.as_bytes()) {
            Some(name) => Ok((text(name), text(&entry.value))),
            None => Err(LogError::Foreign(format!(
                "{} was not asked",
                text(&entry.key)
            ))),
        };
        entries.into_iter().map(noted).collect()
    }

    fn note(&mut self, replica: &str, commands: u64, why: &str) -> WriteOutcome {
        let key = self.key(&format!("replica/{replica}"));
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.unwrap_or_default().as_millis();
        let value = format!("{commands} {now}{why}");
        self.write(&[], &[put(&key, value.as_bytes())])
    }

    /// Returns the first index of a batch in a range, without its end.
    fn first_in(&mut self, from: u64, end: u64) -> Result<Option<u64>, LogError> {
        let request = range(&self.batch_key(from), &self.batch_key(end), 1, true);
        let first = self.read_all(&[request])?.pop().unwrap_or_default().pop();
        first.map(|entry| self.index_of(&entry.key)).transpose()
    }

    /// Returns the highest index of a batch below `end`: requests of a single key, about twice as
    /// many as the distance has bits.
    fn last_below(&mut self, end: u64) -> Result<Option<u64>, LogError> {
        let (mut end, mut window) = (end, WINDOW);
        let mut found = loop {
            let from = end.saturating_sub(window);
            match self.first_in(from, end)? {
                Some(first) => break first,
                None if from == 0 => return Ok(None),
                None => (end, window) = (from, window.saturating_mul(2)),
            }
        };
        let mut from = found + 1;
        while from < end {
            let middle = from + (end - from) / 2;
            match self.first_in(middle, end)? {
                Some(later) => (found, from) = (later, later + 1),
                None => end = middle,
            }
        }
        Ok(Some(found))
    }

    fn stored(&self, entry: Entry) -> Result<StoredBatch, LogError> {
        Ok(StoredBatch {
            index: self.index_of(&entry.key)?,
            bytes: entry.value,
        })
    }
}

fn digits(index: u64) -> String {
    format!("{index:016x}")
}

fn index_in(text: &[u8]) -> Result<u64, LogError> {
    let text = String::from_utf8_lossy(text);
    let index = u64::from_str_radix(&text, 16);
    index.map_err(|_| LogError::Foreign(format!("{text} is no index of a batch")))
}

impl CommandLog for EtcdLog {
    fn claim(&mut self, seen: Option<&Claim>, new: &Claim) -> WriteOutcome {
        // One that is given up and counts all the same is another replica's to this one.
        self.write_time = WriteTime::longest(self.times);
        let key = self.key("claim");
        let claim = put(&key, &new.encode());
        match seen {
            Some(seen) => self.write(&[has_value(&key, &seen.encode())], &[claim]),
            None => {
                let newest = put(&self.key("newest"), b"");
                self.write(&[is_absent(&key)], &[claim, newest])
            }
        }
    }

    fn append(
        &mut self,
        claim: &Claim,
        previous: Option<u64>,
        index: u64,
        batch: &[u8],
    ) -> WriteOutcome {
        let (key, newest) = (self.batch_key(index), self.key("newest"));
        let compare = [
            has_value(&self.key("claim"), &claim.encode()),
            is_absent(&key),
            match previous {
                Some(previous) => is_there(&self.batch_key(previous)),
                None => has_value(&newest, b""),
            },
        ];
        let puts = [put(&key, batch), put(&newest, digits(index).as_bytes())];
        self.write_bytes(&compare, &puts, batch.len())
    }

    fn heartbeat(&mut self, claim: &Claim) -> WriteOutcome {
        if self.write_time.is_given_up
            && let Err(error) = self.read_all(&[get(&self.key("claim"))])
        {
            return WriteOutcome::Unknown(error.to_string());
        }
        self.beats += 1;
        let (claim_key, key) = (self.key("claim"), self.key("beat"));
        let beat = self.beats.to_string();
        let compare = [has_value(&claim_key, &claim.encode())];
        let written = self.write(&compare, &[put(&key, beat.as_bytes())]);
        self.compact_now_and_then();
        written
    }

    fn read(&mut self, from: u64) -> Result<Tail, LogError> {
        let requests = [
            get(&self.key("claim")),
            get(&self.key("beat")),
            get(&self.key("newest")),
            range(&self.batch_key(from), &self.log_end(), self.page, false),
        ];
        // One that was too large to come in time is smaller the next time.
        let page = std::mem::replace(&mut self.page, BATCHES);
        let mut ranges = self.read_all(&requests)?.into_iter();
        let mut next = || ranges.next().unwrap_or_default();
        let (claim, beat, newest, batches) = (next().pop(), next().pop(), next().pop(), next());
        let bytes = batches.iter().map(|entry| entry.value.len()).sum();
        self.page = next_page(page, batches.len(), bytes);
        let revisions =
            [&claim, &beat, &newest].map(|one| one.as_ref().map_or(0, |one| one.revision));
        Ok(Tail {
            revision: revisions.into_iter().max().unwrap_or_default(),
            claim: claim.map(|entry| Claim::decode(&entry.value)).transpose()?,
            newest: Self::newest_in(newest.as_ref())?,
            batches: batches
                .into_iter()
                .map(|entry| self.stored(entry))
                .collect::<Result<_, LogError>>()?,
        })
    }

    fn find(&mut self, at: u64) -> Result<Option<StoredBatch>, LogError> {
        let requests = [get(&self.batch_key(at)), get(&self.key("newest"))];
        let mut ranges = self.read_all(&requests)?.into_iter();
        let mut next = || ranges.next().unwrap_or_default().pop();
        let (exact, newest) = (next(), next());
        if let Some(exact) = exact {
            return self.stored(exact).map(Some);
        }
        let index = match Self::newest_in(newest.as_ref())? {
            Some(newest) if newest > at => self.last_below(at)?,
            newest => newest,
        };
        let Some(index) = index else {
            return Ok(None);
        };
        let mut ranges = self.read_all(&[get(&self.batch_key(index))])?;
        // It may have been given up meanwhile.
        let found = ranges.pop().and_then(|mut entries| entries.pop());
        found.map(|entry| self.stored(entry)).transpose()
    }

    fn indices(&mut self, from: u64, before: u64) -> Result<Vec<u64>, LogError> {
        let request = range(&self.batch_key(from), &self.batch_key(before), KEYS, true);
        let entries = self.read_all(&[request])?.pop().unwrap_or_default();
        entries
            .iter()
            .map(|entry| self.index_of(&entry.key))
            .collect()
    }

    fn delete_before(&mut self, claim: &Claim, before: u64) -> WriteOutcome {
        let compare = [has_value(&self.key("claim"), &claim.encode())];
        let request = delete(&self.batch_key(0), &self.batch_key(before));
        self.write(&compare, &[request])
    }

    fn note_position(&mut self, replica: &str, commands: u64) -> WriteOutcome {
        self.compact_now_and_then();
        self.note(replica, commands, "")
    }

    fn note_halt(&mut self, replica: &str, commands: u64, why: &str) -> WriteOutcome {
        // It is tried once, and etcd may be electing a leader.
        self.write_time = WriteTime::longest(self.times);
        self.note(replica, commands, &format!(" {why}"))
    }

    fn positions(&mut self) -> Result<Vec<(String, u64)>, LogError> {
        let noted = self.noted()?.into_iter();
        Ok(noted.map(|one| (one.replica, one.commands)).collect())
    }

    fn note_peer(&mut self, replica: &str, place: &str) -> WriteOutcome {
        let key = self.key(&format!("peer/{replica}"));
        self.write(&[], &[put(&key, place.as_bytes())])
    }

    fn peers(&mut self) -> Result<Vec<(String, String)>, LogError> {
        self.under("peer")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_returns_many_short_batches_and_few_long_ones() {
        let (mut page, long) = (BATCHES, 256 << 10);
        for expected in [16, 32, 64, 64] {
            page = next_page(page, page, page * 100);
            assert_eq!(page, expected);
        }
        assert_eq!(next_page(page, 20, 2_000), 64);
        assert_eq!(next_page(BATCHES, BATCHES, BATCHES * 38_628), BATCHES);
        assert_eq!(next_page(page, page, page * long), BATCHES);
        assert_eq!(next_page(BATCHES, 3, 3 * long), BATCHES);
    }

    #[test]
    fn a_write_is_given_up_soon_where_etcd_is_quick() {
        let (ms, times) = (Duration::from_millis, Times::default());
        assert_eq!((times.call, times.write_min), (ms(1_500), ms(400)));
        let mut time = WriteTime::longest(times);
        assert_eq!(time.limit(times), times.call);
        (0..2).for_each(|_| time.note(times, ms(3), true));
        assert_eq!(time.limit(times), ms(400));
        // A connection that is refused says nothing.
        time.note(times, ms(1), false);
        assert_eq!(time.limit(times), ms(400));
        time.note(times, ms(401), false);
        assert_eq!(time.limit(times), times.call, "it may be slow");
        time.note(times, ms(1_000), true);
        assert_eq!(time.limit(times), times.call);
        time.note(times, ms(3), true);
        assert_eq!(
            time.limit(times),
            times.call / 2,
            "a short one says little of a long one"
        );
    }

    #[test]
    fn the_history_is_given_up_by_writes_and_by_bytes() {
        let mut history = History::default();
        for (bytes, writes) in [(0, COMPACT_EVERY), (256 << 10, 256)] {
            let mut notes = 1..;
            let due = notes.find_map(|count| {
                history.note(count + 10, bytes);
                history.take_due()
            });
            assert_eq!(due, Some(writes + 10));
        }
    }
}
