//! A command in the journal: who sent it, and the codec's frame of it.
//!
//! `docs/durable-format.md` has the table.

use thiserror::Error;
use zerocopy::little_endian::{I64, U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::codec::{CodecError, command_bytes, decode_command_into, encode_command};
use crate::command::Command;
use crate::session::{ClientSequence, Role, SessionKey};

/// The version of records, at byte 0.
pub const RECORD_VERSION: u8 = 1;

/// The fields of a record before the frame of its command.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
struct RecordForm {
    version: u8,
    /// 0 the exchange itself, and the other fields are 0; 1 a trader's session, 2 an admin's.
    origin: u8,
    /// The length of the note behind the frame.
    note_bytes: U16,
    /// The number of the session, its holder, and the sequence of the command.
    number: U32,
    holder: I64,
    sequence: U64,
}

pub(super) const HEAD_BYTES: usize = size_of::<RecordForm>();

/// The sender of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The exchange itself: its clock, or a user whose connection broke. Executed once by being in
    /// the journal, and never sent again.
    Engine,
    /// A program, which may send it again.
    Session {
        /// Which.
        key: SessionKey,
        /// The number that it gave the command.
        sequence: ClientSequence,
    },
}

impl Origin {
    /// Returns the session's key; none of the exchange itself.
    #[must_use]
    pub const fn key(&self) -> Option<SessionKey> {
        match self {
            Self::Engine => None,
            Self::Session { key, .. } => Some(*key),
        }
    }
}

/// Why a record of a journal is none of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RecordError {
    /// It is shorter than what stands before the frame.
    #[error("it has {bytes} bytes, a command has {HEAD_BYTES} at least")]
    TooShort {
        /// Its length in bytes.
        bytes: usize,
    },
    /// It is of a version that is not known here.
    #[error("its version is {version}, only {RECORD_VERSION} is known")]
    Version {
        /// Its version.
        version: u8,
    },
    /// A field before the frame has a value that it cannot have.
    #[error("{what} at byte {at} is {value}, which cannot be")]
    Field {
        /// The field.
        what: &'static str,
        /// Where it is.
        at: usize,
        /// The value that was found.
        value: u64,
    },
    /// The frame cannot be read.
    #[error("the frame at byte {HEAD_BYTES}: {0}")]
    Frame(CodecError),
    /// The record goes on after the frame.
    #[error("{bytes} bytes follow its frame")]
    TrailingBytes {
        /// Bytes after it.
        bytes: usize,
    },
    /// Its session has executed this sequence, or a higher one, before.
    #[error("its sequence is {sequence}, and the session executed {last} before")]
    Repeated {
        /// The sequence.
        sequence: u64,
        /// The last one of the session before.
        last: u64,
    },
}

/// Returns how long the record of a command is, in bytes, without its note.
#[inline]
pub(super) fn record_bytes(command: &Command) -> usize {
    HEAD_BYTES + command_bytes(command)
}

/// Writes the note of a record over its end.
pub(super) fn encode_note(note: &[u8], record: &mut [u8]) {
    let length = u16::try_from(note.len()).expect("a note is shorter than its greatest length");
    let (head, rest) = RecordForm::mut_from_prefix(record).expect("a record has a head");
    head.note_bytes = U16::new(length);
    let at = rest.len() - note.len();
    rest[at..].copy_from_slice(note);
}

/// Returns the note of a record that was read.
pub(super) fn note_in(record: &[u8]) -> &[u8] {
    let head = RecordForm::ref_from_prefix(record);
    let length = head.map_or(0, |(head, _)| head.note_bytes.get().into());
    &record[record.len().saturating_sub(length)..]
}

/// Writes a record over `out`, which has [`record_bytes`].
#[inline(always)]
pub(super) fn encode(origin: Origin, command: &Command, out: &mut [u8]) -> Result<(), CodecError> {
    let (needed, have) = (HEAD_BYTES, out.len());
    let (head, frame) = RecordForm::mut_from_prefix(out)
        .map_err(|_| CodecError::BufferTooSmall { needed, have })?;
    *head = RecordForm::of(origin);
    encode_command(command, frame).map(drop)
}

/// Writes the record of a command whose frame this is over `out`: as [`encode`] does, since one
/// command has one frame.
#[inline(always)]
pub(super) fn encode_frame(origin: Origin, frame: &[u8], out: &mut [u8]) {
    let (head, rest) = RecordForm::mut_from_prefix(out).expect("a record has a head");
    *head = RecordForm::of(origin);
    // The frames of the most frequent commands have 28 to 52 bytes: two moves that overlap, without
    // a look at the length.
    if let (Some(first), Some(last)) = (frame.first_chunk::<28>(), frame.last_chunk::<28>())
        && frame.len() <= 56
        && frame.len() == rest.len()
    {
        let at = rest.len() - last.len();
        rest[..first.len()].copy_from_slice(first);
        rest[at..].copy_from_slice(last);
    } else {
        rest.copy_from_slice(frame);
    }
}

impl RecordForm {
    #[inline(always)]
    fn of(origin: Origin) -> Self {
        let form = Self {
            version: RECORD_VERSION,
            ..Self::default()
        };
        match origin {
            Origin::Engine => form,
            Origin::Session { key, sequence } => Self {
                origin: if key.role == Role::Admin { 2 } else { 1 },
                number: U32::new(key.number),
                holder: I64::new(key.holder),
                sequence: U64::new(sequence.0),
                ..form
            },
        }
    }
}

/// Reads a record.
#[inline]
pub(super) fn decode_into(bytes: &[u8], command: &mut Command) -> Result<Origin, RecordError> {
    let too_short = RecordError::TooShort { bytes: bytes.len() };
    let (head, frame) = RecordForm::ref_from_prefix(bytes).map_err(|_| too_short)?;
    let origin = origin_of(head)?;
    let note_bytes: usize = head.note_bytes.get().into();
    let Some((frame, _)) = frame.split_at_checked(frame.len().wrapping_sub(note_bytes)) else {
        return Err(RecordError::Field {
            what: "the length of the note",
            at: 2,
            value: note_bytes as u64,
        });
    };
    let length = decode_command_into(frame, command).map_err(RecordError::Frame)?;
    if length != frame.len() {
        let bytes = frame.len() - length;
        return Err(RecordError::TrailingBytes { bytes });
    }
    Ok(origin)
}

#[inline]
fn origin_of(form: &RecordForm) -> Result<Origin, RecordError> {
    let wrong = |what, at, value| Err(RecordError::Field { what, at, value });
    let version = form.version;
    if version != RECORD_VERSION {
        return Err(RecordError::Version { version });
    }
    let (number, holder, sequence) = (form.number.get(), form.holder.get(), form.sequence.get());
    let role = match form.origin {
        0 if number != 0 => return wrong("the session of none", 4, number.into()),
        0 if holder != 0 => return wrong("the holder of no session", 8, holder as u64),
        0 if sequence != 0 => return wrong("the sequence of no session", 16, sequence),
        0 => return Ok(Origin::Engine),
        1 => Role::Trade,
        2 => Role::Admin,
        code => return wrong("the origin", 1, code.into()),
    };
    if sequence == 0 {
        return wrong("the client sequence", 16, 0);
    }
    let key = SessionKey::new(role, holder, number);
    let sequence = ClientSequence(sequence);
    Ok(Origin::Session { key, sequence })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::UserId;

    fn session(role: Role) -> Origin {
        Origin::Session {
            key: SessionKey::new(role, -7, 9),
            sequence: ClientSequence(0x1122),
        }
    }

    fn encoded(origin: Origin, command: &Command) -> Vec<u8> {
        let mut bytes = vec![0xFF; record_bytes(command)];
        encode(origin, command, &mut bytes).expect("there is room");
        let mut decoded = Command::Nop;
        let read = decode_into(&bytes, &mut decoded);
        assert_eq!(read, Ok(origin));
        assert_eq!(&decoded, command);
        bytes
    }

    #[test]
    fn records_are_these_bytes() {
        let command = Command::AddUser { uid: UserId(7) };
        let bytes = encoded(session(Role::Trade), &command);
        let head = [
            1, 1, 0, 0, 9, 0, 0, 0, 0xF9, 255, 255, 255, 255, 255, 255, 255, 0x22, 0x11, 0, 0, 0,
            0, 0, 0,
        ];
        assert_eq!(bytes[..24], head);
        assert_eq!(
            bytes[24..],
            [16, 0, 0, 0, 10, 1, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0]
        );
        assert_eq!(encoded(session(Role::Admin), &command)[1], 2);
        assert_eq!(
            encoded(Origin::Engine, &Command::Nop)[..24],
            [
                1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0
            ]
        );
    }

    #[test]
    fn a_note_is_behind_the_frame_and_is_none_of_the_command() {
        let command = Command::AddUser { uid: UserId(7) };
        let plain = encoded(session(Role::Trade), &command);
        assert_eq!(note_in(&plain), b"");
        let mut noted = [&plain[..], b"????"].concat();
        encode_note(b"note", &mut noted);
        assert_eq!((noted[2], &noted[3..plain.len()]), (4, &plain[3..]));
        assert_eq!(note_in(&noted), b"note");
        let mut read = Command::Nop;
        assert_eq!(decode_into(&noted, &mut read), Ok(session(Role::Trade)));
        assert_eq!(read, command);
    }

    #[test]
    fn what_is_no_record_is_refused_and_says_why() {
        let good = encoded(session(Role::Trade), &Command::Nop);
        let refused = |bytes: &[u8]| {
            let read = decode_into(bytes, &mut Command::Nop);
            read.expect_err("it is refused").to_string()
        };
        let with = |at: usize, value: u8| {
            let mut bytes = good.clone();
            bytes[at] = value;
            refused(&bytes)
        };
        assert_eq!(
            refused(&good[..23]),
            "it has 23 bytes, a command has 24 at least"
        );
        assert_eq!(with(0, 2), "its version is 2, only 1 is known");
        assert_eq!(with(1, 3), "the origin at byte 1 is 3, which cannot be");
        assert_eq!(
            with(1, 0),
            "the session of none at byte 4 is 9, which cannot be"
        );
        assert_eq!(
            with(3, 1),
            "the length of the note at byte 2 is 256, which cannot be"
        );
        let mut unnumbered = good.clone();
        unnumbered[16..24].fill(0);
        let text = "the client sequence at byte 16 is 0, which cannot be";
        assert_eq!(refused(&unnumbered), text);
        let text = "the frame at byte 24: the kind at byte 4 is 99, which is no known command";
        assert_eq!(with(28, 99), text);
        let longer = [good.as_slice(), &[0; 3]].concat();
        assert_eq!(refused(&longer), "3 bytes follow its frame");
    }
}
