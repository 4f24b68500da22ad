//! The head of a frame, and the kinds.

use zerocopy::little_endian::U32;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned, transmute};

use super::error::CodecError;
use super::{command, message, outcome, report, session, snapshot};
use crate::wire::{Form, Plain};

/// The version of the layout of commands, at byte 5 of their frames.
pub const VERSION: u8 = 1;
/// The version of the layout of outcomes and execution reports, at byte 5 of their frames. From 2
/// on, events name their order and say how much of it is filled and left; from 3 on, outcomes say
/// how futures books stand, and long ones go on in further frames.
pub const OUTCOME_VERSION: u8 = 3;
/// The version of the layout of market messages and snapshots, at byte 5 of their frames. From 2 on
/// they have an [`Epoch`](crate::market::Epoch), from 3 on [channels](crate::market::Channels) and
/// no number of a command, from 4 on nothing of single orders; logs of commands stay readable.
pub const MESSAGE_VERSION: u8 = 4;
/// The version of the layout of the frames of a session, at byte 5, and of the protocol, which
/// hello and welcome agree on.
pub const SESSION_VERSION: u8 = 1;
/// The longest frame, in bytes: 16 MiB.
pub const FRAME_BYTES_MAX: usize = 1 << 24;
pub(super) const HEAD_BYTES: usize = size_of::<Head>();
/// Where the kind's own bytes are.
pub(super) const OWN_AT: usize = std::mem::offset_of!(Head, own);

/// The kinds of frames. A [`Digest`](crate::digest::Digest) has those of commands, too.
pub(crate) mod kind {
    pub(crate) use super::command::kind::*;

    pub(crate) const OUTCOME: u8 = 128;
    pub(crate) const REPORT: u8 = 129;
    pub(crate) const OUTCOME_ON: u8 = 130;

    pub(crate) const TRADE: u8 = 160;
    // 161 to 165 were changes of orders.
    pub(crate) const LEVEL: u8 = 166;
    pub(crate) const BEST: u8 = 167;
    pub(crate) const CLEARED: u8 = 168;

    pub(crate) const SNAPSHOT: u8 = 192;

    pub(crate) const HELLO: u8 = 208;
    pub(crate) const WELCOME: u8 = 209;
    pub(crate) const SUBMIT: u8 = 210;
    pub(crate) const ANSWER: u8 = 211;
    pub(crate) const REFUSED: u8 = 212;
    pub(crate) const NUMBERED_REPORT: u8 = 213;
    pub(crate) const REPORT_GAP: u8 = 214;
    pub(crate) const HEARTBEAT: u8 = 215;
    pub(crate) const SUBSCRIBE: u8 = 216;
    pub(crate) const UNSUBSCRIBE: u8 = 217;
    pub(crate) const CONFLATED: u8 = 218;
    pub(crate) const QUERY: u8 = 219;
    pub(crate) const QUERY_ANSWER: u8 = 220;
    pub(crate) const BYE: u8 = 221;
}

/// The kind of a frame's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    /// A [`Command`](crate::Command): kinds 0 to 127.
    Command,
    /// An [`OutcomeHead`](super::OutcomeHead) (kind 128, further frames of it 130) or an
    /// [`ExecutionReport`](crate::execution::ExecutionReport) (kind 129): kinds 128 to 159.
    Outcome,
    /// A market [`Message`](crate::market::Message): kinds 160 to 191.
    Message,
    /// A [`Snapshot`](crate::market::Snapshot): kinds 192 to 207.
    Snapshot,
    /// A frame of a [session](super::session): kinds from 208.
    Session,
}

impl Family {
    const fn of(kind: u8) -> Self {
        match kind {
            0..128 => Self::Command,
            128..160 => Self::Outcome,
            160..192 => Self::Message,
            192..208 => Self::Snapshot,
            208.. => Self::Session,
        }
    }

    const fn version(self) -> u8 {
        match self {
            Self::Command => VERSION,
            Self::Outcome => OUTCOME_VERSION,
            Self::Message | Self::Snapshot => MESSAGE_VERSION,
            Self::Session => SESSION_VERSION,
        }
    }
}

/// The decoded head of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Which of the decoders is for it.
    pub family: Family,
    /// Its length in bytes: the next frame begins right after it.
    pub bytes: usize,
    /// Whether the next frame belongs to it: an outcome goes on there. Its decoder wants them all.
    pub goes_on: bool,
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
        Family::Outcome if head.kind == kind::REPORT => report::check(head)?,
        Family::Outcome => outcome::check(head)?,
        Family::Message => message::check(head)?,
        Family::Snapshot => snapshot::check(bytes, head)?,
        Family::Session => session::check(bytes, head)?,
    }
    Ok(Frame {
        family,
        bytes: length,
        goes_on: family == Family::Outcome && head.own[1] != 0 && head.kind != kind::REPORT,
    })
}

/// The head with which every frame begins.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct Head {
    /// Bytes of the frame, these included.
    length: U32,
    pub(super) kind: u8,
    version: u8,
    /// The kind's own bytes: small fields, 0 where there are none.
    pub(super) own: [u8; 2],
}

impl Head {
    /// Length, kind and version, without the kind's own bytes.
    pub(super) const FORM: u64 = 0xFFFF_FFFF_FFFF;

    /// # Errors
    /// [`CodecError::Incomplete`].
    #[inline]
    pub(super) fn read(bytes: &[u8]) -> Result<Self, CodecError> {
        let incomplete = CodecError::Incomplete {
            needed: HEAD_BYTES,
            have: bytes.len(),
        };
        let (head, _) = Self::read_from_prefix(bytes).map_err(|_| incomplete)?;
        Ok(head)
    }

    /// The head of a frame of `length` bytes with its kind's own bytes.
    #[inline(always)]
    pub(super) const fn new(length: usize, kind: u8, own: [u8; 2]) -> Self {
        debug_assert!(length <= FRAME_BYTES_MAX);
        Self {
            length: U32::new(length as u32),
            kind,
            version: Family::of(kind).version(),
            own,
        }
    }

    /// All of it as one number, so that it is compared at once.
    #[inline(always)]
    pub(super) const fn number(self) -> u64 {
        u64::from_le_bytes(transmute!(self))
    }

    /// The frame's length, if version and length are possible.
    pub(super) const fn length(self) -> Result<usize, CodecError> {
        let version = self.version;
        let known = Family::of(self.kind).version();
        if version != known {
            return Err(CodecError::UnknownVersion { version, known });
        }
        let length = self.length.get() as usize;
        if length < HEAD_BYTES {
            return Err(CodecError::TooShort { length });
        }
        if length > FRAME_BYTES_MAX {
            return Err(CodecError::TooLong { length });
        }
        Ok(length)
    }

    /// The error of a kind that is not known among those wanted.
    pub(super) const fn unknown<T>(self, wanted: &'static str) -> Result<T, CodecError> {
        let kind = self.kind;
        Err(CodecError::UnknownKind { kind, wanted })
    }

    /// Checks that the length is this one.
    pub(super) fn check_length(
        self,
        what: &'static str,
        expected: usize,
    ) -> Result<(), CodecError> {
        let length = self.length()?;
        if length == expected {
            return Ok(());
        }
        Err(CodecError::WrongLength {
            what,
            length,
            expected,
        })
    }

    /// Checks that the own bytes are at most these.
    pub(super) fn check_own(self, what: &'static str, max: [u8; 2]) -> Result<(), CodecError> {
        for (at, (value, max)) in (OWN_AT..).zip(self.own.into_iter().zip(max)) {
            if value > max {
                return Err(CodecError::OwnByte {
                    what,
                    at,
                    value,
                    max,
                });
            }
        }
        Ok(())
    }

    /// Checks the head of a frame of fixed length, the codes in its own bytes included.
    pub(super) fn check<B: Body>(self) -> Result<(), CodecError> {
        self.check_length(B::WHAT, B::BYTES)?;
        self.check_own(B::WHAT, B::SMALL_MAX)?;
        B::check_codes(self.own)
    }

    /// The frame that begins `bytes`, if it is all there.
    pub(super) fn frame(self, bytes: &[u8]) -> Result<&[u8], CodecError> {
        let needed = self.length()?;
        let have = bytes.len();
        bytes
            .get(..needed)
            .ok_or(CodecError::Incomplete { needed, have })
    }
}

/// The struct of a frame of fixed length, behind its head.
pub(super) trait Body: Form {
    const KIND: u8;
    /// Its name in errors.
    const WHAT: &'static str;
    /// The length of the frame.
    const BYTES: usize = HEAD_BYTES + size_of::<Self>();
    /// The head, with own bytes of 0.
    const HEAD: u64 = Head::new(Self::BYTES, Self::KIND, [0; 2]).number();

    /// Checks the codes in own bytes: as if zeros followed.
    fn check_codes(own: [u8; 2]) -> Result<(), CodecError> {
        Self::new_zeroed()
            .value(own, [OWN_AT, HEAD_BYTES])
            .map(drop)
    }
}

/// A frame of fixed length.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct Whole<B> {
    head: Head,
    body: B,
}

impl<B: Body> Whole<B> {
    #[inline(always)]
    pub(super) const fn new(own: [u8; 2], body: B) -> Self {
        let head = Head::new(B::BYTES, B::KIND, own);
        Self { head, body }
    }

    #[inline(always)]
    pub(super) fn of(value: &B::Value) -> Self {
        let (own, body) = B::of(value);
        Self::new(own, body)
    }
}

/// Writes a frame of fixed length at the beginning of `out`, and returns its length.
#[inline(always)]
pub(super) fn put<B: Body>(value: &B::Value, out: &mut [u8]) -> Result<usize, CodecError> {
    put_form(Whole::<B>::of(value), out)
}

/// Writes a struct at the beginning of `out`, and returns its length.
#[inline(always)]
pub(super) fn put_form<T: Plain>(form: T, out: &mut [u8]) -> Result<usize, CodecError> {
    let (needed, have) = (size_of::<T>(), out.len());
    let Ok((place, _)) = T::mut_from_prefix(out) else {
        return Err(CodecError::NoRoom { needed, have });
    };
    *place = form;
    Ok(needed)
}

/// Reads a frame of fixed length whose head was checked.
///
/// # Errors
/// It is not all there; a field has a value that it cannot have.
#[inline(always)]
pub(super) fn read<B: Body>(bytes: &[u8], head: Head) -> Result<B::Value, CodecError> {
    let (needed, have) = (head.length()?, bytes.len());
    let Ok((frame, _)) = Whole::<B>::ref_from_prefix(bytes) else {
        return Err(CodecError::Incomplete { needed, have });
    };
    frame.body.value(head.own, [OWN_AT, HEAD_BYTES])
}

/// The beginning of `out` that a frame of `needed` bytes takes.
#[inline]
pub(super) fn room_for(out: &mut [u8], needed: usize) -> Result<&mut [u8], CodecError> {
    if needed > FRAME_BYTES_MAX {
        return Err(CodecError::TooLong { length: needed });
    }
    let have = out.len();
    out.get_mut(..needed)
        .ok_or(CodecError::NoRoom { needed, have })
}
