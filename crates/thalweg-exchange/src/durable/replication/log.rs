//! The command log: what an exchange of several machines asks of a consensus engine.

use thalweg_hash::xxh64;
use zerocopy::little_endian::{U16, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::batch::BatchError;

/// The version of claims, at byte 0.
const CLAIM_VERSION: u16 = 2;

/// The outcome of a write to the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WriteOutcome {
    /// A majority has it on disk.
    Acked,
    /// Nothing was written: what the write requires does not hold.
    Fenced,
    /// It is not known whether it was, or will be, written: a time-out, a broken connection. The
    /// text is for people.
    Unknown(String),
}

/// The log could not be read. The texts are for people.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LogError {
    /// It does not answer for now.
    #[error("the command log cannot be read: {0}")]
    Silent(String),
    /// It has something that this version has not written.
    #[error("the command log cannot be read: {0}")]
    Foreign(String),
}

/// The state from which a log goes on: that of the replica that made the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogStart {
    /// How many commands were executed before.
    pub commands: u64,
    /// The value of their [digest](crate::digest::Digest).
    pub digest: u64,
    /// The [hash of the state](crate::snapshot::state_hash), which covers the rules.
    pub state_hash: u64,
    /// The [hash](crate::durable::SessionLimits::hash) of the limits of sessions, by which commands
    /// are refused.
    pub limits_hash: u64,
}

/// The claim to be the one writer of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The number of the claim: each is one higher than the one it replaces.
    pub epoch: u64,
    /// A random number: no two claims are equal.
    pub nonce: u64,
    /// The random number of the log's first claim, the same in every claim of a log: two logs that
    /// go on from one state are two logs.
    pub log: u64,
    /// The identity of the exchange, the same in every claim of a log.
    pub identity: u64,
    /// The beginning of the log, the same in every claim of a log.
    pub start: LogStart,
    /// Where clients find the claimant.
    pub holder: String,
}

/// A claim as bytes; the holder's name follows.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct ClaimForm {
    version: U16,
    reserved: [u8; 6],
    epoch: U64,
    nonce: U64,
    log: U64,
    identity: U64,
    commands: U64,
    digest: U64,
    state_hash: U64,
    limits_hash: U64,
}

impl Claim {
    /// Returns the bytes of the claim.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let form = ClaimForm {
            version: U16::new(CLAIM_VERSION),
            reserved: [0; 6],
            epoch: U64::new(self.epoch),
            nonce: U64::new(self.nonce),
            log: U64::new(self.log),
            identity: U64::new(self.identity),
            commands: U64::new(self.start.commands),
            digest: U64::new(self.start.digest),
            state_hash: U64::new(self.start.state_hash),
            limits_hash: U64::new(self.start.limits_hash),
        };
        [form.as_bytes(), self.holder.as_bytes()].concat()
    }

    /// Reads a claim.
    ///
    /// # Errors
    /// The bytes are those of no claim.
    pub fn decode(bytes: &[u8]) -> Result<Self, LogError> {
        let not_one = || LogError::Foreign(format!("{} bytes that are no claim", bytes.len()));
        let (form, holder) = ClaimForm::ref_from_prefix(bytes).map_err(|_| not_one())?;
        if form.version.get() != CLAIM_VERSION || form.reserved != [0; 6] {
            let (version, known) = (form.version.get(), CLAIM_VERSION);
            let text = format!("a claim of version {version}, only {known} is known");
            return Err(LogError::Foreign(text));
        }
        Ok(Self {
            epoch: form.epoch.get(),
            nonce: form.nonce.get(),
            log: form.log.get(),
            identity: form.identity.get(),
            start: LogStart {
                commands: form.commands.get(),
                digest: form.digest.get(),
                state_hash: form.state_hash.get(),
                limits_hash: form.limits_hash.get(),
            },
            holder: String::from_utf8(holder.to_vec()).map_err(|_| not_one())?,
        })
    }

    /// Returns the number that stands in the first batch in place of a previous checksum.
    #[must_use]
    pub fn chain_start(&self) -> u64 {
        let LogStart {
            commands,
            digest,
            state_hash,
            limits_hash,
        } = self.start;
        let words = [
            self.log,
            self.identity,
            commands,
            digest,
            state_hash,
            limits_hash,
        ];
        xxh64(0, words.map(u64::to_le_bytes).as_flattened())
    }
}

/// A batch as the log has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredBatch {
    /// Its index: the number of its first command.
    pub index: u64,
    /// Its bytes: see [`Batch`](super::Batch).
    pub bytes: Vec<u8>,
}

/// The contents of the log at one moment, from an index on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tail {
    /// The claim under which batches are written; none of a log that was never claimed.
    pub claim: Option<Claim>,
    /// A number that changes with each write, heartbeats included.
    pub revision: u64,
    /// The index of the newest batch.
    pub newest: Option<u64>,
    /// The batches from an index on, in order: all, or as many as one answer holds, and at least
    /// one where there are any.
    pub batches: Vec<StoredBatch>,
}

/// A replicated, linearizable store of batches with one writer at a time.
///
/// # What it must keep
/// 1. Each call takes effect at once and as a whole, at one moment between its begin and its end,
///    or after its end where the outcome is [`WriteOutcome::Unknown`]; [`read`](Self::read) and
///    [`find`](Self::find) see everything that was acknowledged before they began.
/// 2. What was acknowledged is on the disks of a majority.
/// 3. A write happens at most once: an implementation never repeats one by itself.
pub trait CommandLog: Send {
    /// Puts `new` in the place of the claim `seen`, if that is still the present one.
    fn claim(&mut self, seen: Option<&Claim>, new: &Claim) -> WriteOutcome;

    /// Appends a batch, if `claim` is the present one, nothing has this index, and the batch with
    /// the index `previous` is there; of `None`, if no batch was ever appended. Without the last of
    /// these, an append that arrives late could come in again after it was
    /// [deleted](Self::delete_before).
    fn append(
        &mut self,
        claim: &Claim,
        previous: Option<u64>,
        index: u64,
        batch: &[u8],
    ) -> WriteOutcome;

    /// Shows other replicas that the writer lives, if `claim` is the present one.
    fn heartbeat(&mut self, claim: &Claim) -> WriteOutcome;

    /// Reads the batches whose index is `from` or higher, the claim and the revision, all of one
    /// moment.
    ///
    /// # Errors
    /// No majority answers in time, or what is there is not ours.
    fn read(&mut self, from: u64) -> Result<Tail, LogError>;

    /// Finds the batch with the highest index up to `at`.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    fn find(&mut self, at: u64) -> Result<Option<StoredBatch>, LogError>;

    /// Returns the indices of batches from `from` on, ascending and below `before`: the first of
    /// them, as many as an answer may hold, and at least one where there are any.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    fn indices(&mut self, from: u64, before: u64) -> Result<Vec<u64>, LogError>;

    /// Deletes the batches whose index is below `before`, if `claim` is the present one. The newest
    /// batch is never among them.
    fn delete_before(&mut self, claim: &Claim, before: u64) -> WriteOutcome;

    /// Notes how many commands a replica has executed, for [`positions`](Self::positions).
    fn note_position(&mut self, replica: &str, commands: u64) -> WriteOutcome;

    /// Notes why a replica has halted, in the place of its position: for people. A log that keeps
    /// nothing of it acknowledges that as well.
    fn note_halt(&mut self, replica: &str, commands: u64, _why: &str) -> WriteOutcome {
        self.note_position(replica, commands)
    }

    /// Returns the replicas that have noted a position, by name.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    fn positions(&mut self) -> Result<Vec<(String, u64)>, LogError>;

    /// Notes where others get a copy of a replica, for [`peers`](Self::peers).
    fn note_peer(&mut self, replica: &str, place: &str) -> WriteOutcome;

    /// Returns the replicas that have noted where others get a copy of them, by name.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    fn peers(&mut self) -> Result<Vec<(String, String)>, LogError>;
}

impl From<BatchError> for LogError {
    fn from(error: BatchError) -> Self {
        Self::Foreign(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim() -> Claim {
        Claim {
            epoch: 3,
            nonce: 0x1122,
            log: 0x3344,
            identity: 7,
            start: LogStart {
                commands: 1,
                digest: 2,
                state_hash: 3,
                limits_hash: 4,
            },
            holder: "a:7411".to_owned(),
        }
    }

    #[test]
    fn claims_are_read_as_they_were_written_and_others_are_refused() {
        let bytes = claim().encode();
        assert_eq!(bytes.len(), 72 + 6);
        assert_eq!(Claim::decode(&bytes), Ok(claim()));
        let refused = |bytes: &[u8]| {
            let error = Claim::decode(bytes).expect_err("no claim");
            assert!(matches!(error, LogError::Foreign(_)), "it will not pass");
            error.to_string()
        };
        let text = "the command log cannot be read: 71 bytes that are no claim";
        assert_eq!(refused(&bytes[..71]), text);
        let mut newer = bytes.clone();
        newer[0] = 3;
        let text = "the command log cannot be read: a claim of version 3, only 2 is known";
        assert_eq!(refused(&newer), text);
    }

    #[test]
    fn the_chain_begins_with_what_the_log_goes_on_from() {
        let start = LogStart {
            state_hash: 4,
            ..claim().start
        };
        let of_another_state = Claim { start, ..claim() };
        let made_again = Claim { log: 1, ..claim() };
        for other in [of_another_state, made_again] {
            assert_ne!(claim().chain_start(), other.chain_start());
        }
        let later = Claim {
            epoch: 9,
            nonce: 5,
            ..claim()
        };
        assert_eq!(claim().chain_start(), later.chain_start());
    }
}
