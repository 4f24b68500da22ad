//! The log: keys, and the transactions on them.
//!
//! | key | value |
//! |---|---|
//! | `<prefix>/claim` | the present claim |
//! | `<prefix>/beat` | a counter of the writer's |
//! | `<prefix>/begun` | there since the first batch |
//! | `<prefix>/log/<index, 16 hexadecimal digits>` | a batch |
//! | `<prefix>/replica/<name>` | how many commands a replica has executed |

use std::io;

use serde_json::{Value, json};
use thalweg_exchange::durable::replication::{Claim, CommandLog, LogError, Stored, Tail, Written};

use crate::address::Address;
use crate::endpoints::{CallError, Endpoints};
use crate::message::{
    Answer, Entry, delete, get, has_value, is_absent, is_there, last, put, range, transaction,
};

/// Batches that one read returns at most: 2 MiB.
const BATCHES: usize = 8;
/// Writes after which the history of values that were replaced is given up.
const COMPACT_EVERY: u64 = 2_000;

/// A command log in an etcd cluster.
///
/// Blocks the calling thread for up to 1.5 s a call.
#[derive(Debug)]
pub struct EtcdLog {
    endpoints: Endpoints,
    prefix: String,
    beats: u64,
    writes: u64,
}

impl EtcdLog {
    /// Returns the log at an address; no connection is made yet.
    ///
    /// # Errors
    /// The system gives no poll.
    pub fn new(address: Address) -> io::Result<Self> {
        Ok(Self {
            endpoints: Endpoints::new(address.endpoints)?,
            prefix: address.prefix,
            beats: 0,
            writes: 0,
        })
    }

    fn key(&self, name: &str) -> String {
        format!("{}/{name}", self.prefix)
    }

    fn batch_key(&self, index: u64) -> String {
        format!("{}/log/{index:016x}", self.prefix)
    }

    /// The end of the keys of batches.
    fn log_end(&self) -> String {
        self.key("log0")
    }

    fn transact(&mut self, compare: &[Value], success: &[Value]) -> Result<Answer, CallError> {
        let body = transaction(compare, success);
        let answer = self.endpoints.call("/v3/kv/txn", body)?;
        Answer::read(&answer).map_err(CallError::Unknown)
    }

    /// Sends a write, once.
    fn write(&mut self, compare: &[Value], success: &[Value]) -> Written {
        match self.transact(compare, success) {
            Ok(answer) => {
                self.compact_now_and_then(answer.revision);
                match answer.holds {
                    true => Written::Acked,
                    false => Written::Fenced,
                }
            }
            Err(error) => Written::Unknown(error.into_text()),
        }
    }

    /// Sends a read, to each member once if it must be.
    fn read_all(&mut self, success: &[Value]) -> Result<Vec<Vec<Entry>>, LogError> {
        let first = self.transact(&[], success);
        let answer = match first {
            Err(CallError::Unknown(_)) => self.transact(&[], success),
            first => first,
        };
        let answer = answer.map_err(|error| LogError(error.into_text()))?;
        match answer.ranges.len() == success.len() {
            true => Ok(answer.ranges),
            false => Err(LogError("an answer without all that was asked".to_owned())),
        }
    }

    /// Gives up values that were replaced or deleted: they would fill the quota.
    fn compact_now_and_then(&mut self, revision: u64) {
        self.writes += 1;
        if self.writes.is_multiple_of(COMPACT_EVERY) {
            let body = json!({ "revision": revision.to_string() });
            // Another replica may have done so; the next one comes.
            let _ = (self.endpoints).call("/v3/kv/compaction", body.to_string().into_bytes());
        }
    }

    /// Returns the index in the key of a batch.
    fn index_of(&self, key: &[u8]) -> Result<u64, LogError> {
        let text = String::from_utf8_lossy(key);
        let digits = text.strip_prefix(&self.key("log/"));
        let index = digits.and_then(|digits| u64::from_str_radix(digits, 16).ok());
        index.ok_or_else(|| LogError(format!("the key {text} is none of a batch")))
    }

    fn stored(&self, entry: Entry) -> Result<Stored, LogError> {
        Ok(Stored {
            index: self.index_of(&entry.key)?,
            bytes: entry.value,
        })
    }
}

impl CommandLog for EtcdLog {
    fn claim(&mut self, seen: Option<&Claim>, new: &Claim) -> Written {
        let key = self.key("claim");
        let compare = match seen {
            Some(seen) => has_value(&key, &seen.encode()),
            None => is_absent(&key),
        };
        self.write(&[compare], &[put(&key, &new.encode())])
    }

    fn append(
        &mut self,
        claim: &Claim,
        previous: Option<u64>,
        index: u64,
        batch: &[u8],
    ) -> Written {
        let (claim_key, key) = (self.key("claim"), self.batch_key(index));
        let mine = has_value(&claim_key, &claim.encode());
        let Some(previous) = previous else {
            let begun = self.key("begun");
            let compare = [mine, is_absent(&key), is_absent(&begun)];
            return self.write(&compare, &[put(&key, batch), put(&begun, b"1")]);
        };
        let compare = [mine, is_absent(&key), is_there(&self.batch_key(previous))];
        self.write(&compare, &[put(&key, batch)])
    }

    fn beat(&mut self, claim: &Claim) -> Written {
        self.beats += 1;
        let (claim_key, key) = (self.key("claim"), self.key("beat"));
        let beat = self.beats.to_string();
        let compare = [has_value(&claim_key, &claim.encode())];
        self.write(&compare, &[put(&key, beat.as_bytes())])
    }

    fn read(&mut self, from: u64) -> Result<Tail, LogError> {
        let (first, end) = (self.batch_key(0), self.log_end());
        let requests = [
            get(&self.key("claim")),
            get(&self.key("beat")),
            last(&first, &end, true),
            range(&self.batch_key(from), &end, BATCHES),
        ];
        let mut ranges = self.read_all(&requests)?.into_iter();
        let mut next = || ranges.next().unwrap_or_default();
        let (claim, beat, newest, batches) = (next().pop(), next().pop(), next().pop(), next());
        let revisions =
            [&claim, &beat, &newest].map(|one| one.as_ref().map_or(0, |one| one.revision));
        Ok(Tail {
            pulse: revisions.into_iter().max().unwrap_or_default(),
            claim: claim.map(|entry| Claim::decode(&entry.value)).transpose()?,
            newest: newest.map(|entry| self.index_of(&entry.key)).transpose()?,
            batches: batches
                .into_iter()
                .map(|entry| self.stored(entry))
                .collect::<Result<_, LogError>>()?,
        })
    }

    fn find(&mut self, at: u64) -> Result<Option<Stored>, LogError> {
        let end = match at.checked_add(1) {
            Some(next) => self.batch_key(next),
            None => self.log_end(),
        };
        let request = last(&self.batch_key(0), &end, false);
        let mut ranges = self.read_all(&[request])?;
        let found = ranges.pop().and_then(|mut entries| entries.pop());
        found.map(|entry| self.stored(entry)).transpose()
    }

    fn forget(&mut self, claim: &Claim, before: u64) -> Written {
        let compare = [has_value(&self.key("claim"), &claim.encode())];
        let request = delete(&self.batch_key(0), &self.batch_key(before));
        self.write(&compare, &[request])
    }

    fn note_position(&mut self, replica: &str, commands: u64) -> Written {
        let key = self.key(&format!("replica/{replica}"));
        self.write(&[], &[put(&key, commands.to_string().as_bytes())])
    }

    fn positions(&mut self) -> Result<Vec<(String, u64)>, LogError> {
        let (first, end) = (self.key("replica/"), self.key("replica0"));
        let entries = self
            .read_all(&[range(&first, &end, 100)])?
            .pop()
            .unwrap_or_default();
        let position = |entry: Entry| {
            let name = String::from_utf8_lossy(&entry.key[first.len()..]).into_owned();
            let commands = String::from_utf8_lossy(&entry.value).parse();
            let wrong = |_| LogError(format!("the position of {name} is no number"));
            let commands = commands.map_err(wrong)?;
            Ok((name, commands))
        };
        entries.into_iter().map(position).collect()
    }
}
