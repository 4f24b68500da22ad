//! The wire format of commands, execution reports, market messages, snapshots, and the frames of a
//! connection.
//!
//! It is for gateways, journals and replicas. Each of these is a *frame*: a head of eight bytes,
//! then fields of fixed size and offset, little-endian and not aligned. `docs/exchange-codec.md`
//! has the tables.
//!
//! | at | bytes | head |
//! |---|---|---|
//! | 0 | 4 | length of the frame in bytes, these included |
//! | 4 | 1 | kind |
//! | 5 | 1 | version of its [`Family`], such as [`VERSION`] or [`REPORT_VERSION`] |
//! | 6 | 2 | small fields that depend on the kind; 0 if it has none |
//!
//! Frames stand one after another; [`peek`] says how long the first is, and of which [`Family`],
//! or that no frame has such a head.
//! One meaning has one form: what decodes gives the same bytes when it is encoded again, and every
//! bit without a meaning must be 0.
//!
//! *Cost.* Encoding writes into the caller's bytes and allocates nothing. Decoding allocates once
//! for [`PlaceConditional`](Command::PlaceConditional), for batches, and for the levels of a
//! snapshot where the caller's buffer has no room for them. All that is bounded by the bytes that
//! are there, at six bytes for one at most while they are decoded, never by a number that the bytes
//! only claim.
//!
//! ```
//! use thalweg_exchange::codec::{decode_command, encode_command};
//! use thalweg_exchange::{Command, UserId};
//!
//! let command = Command::AddUser { uid: UserId(7) };
//! let mut buffer = [0; 64];
//! let bytes = encode_command(&command, &mut buffer)?;
//! assert_eq!(decode_command(&buffer[..bytes])?, (command, bytes));
//! # Ok::<(), thalweg_exchange::codec::CodecError>(())
//! ```
//!

mod batch;
mod command;
mod error;
mod fields;
mod frame;
mod layout;
mod message;
mod report;
pub mod session;
mod snapshot;

pub(crate) use self::command::kind;
pub use self::command::{command_bytes, decode_command, decode_command_into, encode_command};
pub use self::error::CodecError;
pub use self::frame::Family;
use self::frame::Head;
pub use self::layout::{
    FRAME_BYTES_MAX, MESSAGE_VERSION, REPORT_VERSION, SESSION_VERSION, SESSION_VERSION_MAX, VERSION,
};
pub use self::message::{MESSAGE_BYTES_MAX, decode_message, encode_message, message_bytes};
pub(crate) use self::report::report_frame;
pub use self::report::{REPORT_BYTES, decode_report, encode_report};
pub use self::snapshot::{decode_snapshot, encode_snapshot, snapshot_bytes};

/// The longest frame of a command that is not a batch.
pub const SINGLE_COMMAND_BYTES_MAX: usize = 76;

#[cfg(doc)]
use crate::command::Command;

/// The decoded head of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Which of the decoders is for it.
    pub family: Family,
    /// Its length in bytes: the next frame begins right after it.
    pub bytes: usize,
}

/// Returns the kind of the first frame of `bytes` and its length; `bytes` may hold only a part of
/// the frame.
///
/// # Errors
/// A head that is not all there, or one that no frame begins with: its version or kind is not
/// known, or its length or own bytes are not of its kind. Where the number of items of a batch or a
/// snapshot is there, the length must fit that number; where the head of the command in a submit is
/// there, that must be the head of one.
pub fn peek(bytes: &[u8]) -> Result<Frame, CodecError> {
    let head = Head::read(bytes)?;
    let family = Family::of(head.kind);
    let length = head.length()?;
    match family {
        Family::Command => command::check(bytes, head)?,
        Family::Report => report::check(head)?,
        Family::Message => message::check(head)?,
        Family::Snapshot => snapshot::check(bytes, head)?,
        Family::Session => session::check(bytes, head)?,
    }
    Ok(Frame {
        family,
        bytes: length,
    })
}
