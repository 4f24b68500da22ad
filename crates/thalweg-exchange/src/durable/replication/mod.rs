//! The exchange on several machines: its commands are the batches of a command log that a consensus
//! engine keeps.
//!
//! The exchange is a pure function of its commands. So it outgrows one machine by putting the log
//! of commands on an existing consensus engine (a [`CommandLog`]) and running replicas of the
//! function; there is no consensus of our own.
//!
//! # Rules
//! 1. *One writer.* A replica writes under a [`Claim`]; the log refuses whatever comes under
//!    another than the present one, in the same step in which it would write. No lease and no clock
//!    is needed for safety: a false alarm costs a change of the writer, never a fork.
//! 2. *Take-over.* A replica claims the log, reads it to its end, executes that, and only then
//!    takes commands ([`Follower`]).
//! 3. *Acknowledgement.* A command is answered when the log has it on a majority of disks. Only
//!    then it is journaled, so each journal is a prefix of the log.
//! 4. *One batch under way.* What arrives meanwhile is the next batch ([`Sequencer`]); the log has
//!    it in its [packed form](pack()).
//! 5. *A chain.* A [`Batch`] holds the checksum of the one before, and the digest of all commands
//!    before and of what came of them. A replica halts at the first difference, and says where
//!    ([`HaltReason`]).
//! 6. *Exactly once.* Client sequences are in the replicated tables: what a client sends to the new
//!    primary again has its first answer.
//! 7. *Catch-up.* The log keeps a tail only. A replica that needs what is before gets a
//!    [copy](copying) of another one, checks it against the log, and goes on with that.
//!
//! `docs/replication.md` says what is promised, and how it is operated.

pub(in crate::durable) mod batch;
pub mod copying;
mod follower;
mod follower_driver;
mod halt_reason;
pub(in crate::durable) mod leading;
pub(in crate::durable) mod log;
pub(in crate::durable) mod log_file;
mod log_retention;
mod packing;
mod sequencer;
mod sequencer_thread;
#[cfg(test)]
mod simulation;

pub use self::batch::{
    BATCH_BYTES, BATCH_VERSION, Batch, BatchError, BatchHead, RECORD_BYTES_MAX, pack,
};
pub use self::follower::{Follower, PollOutcome};
pub use self::follower_driver::{
    FollowOptions, FollowOutcome, FollowerDriver, LogStatus, ReplicaStats,
};
pub use self::halt_reason::HaltReason;
pub use self::log::{Claim, CommandLog, LogError, LogStart, StoredBatch, Tail, WriteOutcome};
pub use self::log_file::{LOG_FILE, forget_log, log_of, note_log};
pub use self::sequencer::{Sequencer, Step};
pub use self::sequencer_thread::HUNG;
