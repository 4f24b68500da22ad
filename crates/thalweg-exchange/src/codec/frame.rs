//! The head of a frame, its family, and frames of fixed length.

use zerocopy::little_endian::U32;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned, transmute};

use super::error::CodecError;
use super::layout::{
    FRAME_BYTES_MAX, HEAD_BYTES, MESSAGE_VERSION, OWN_AT, REPORT_VERSION, SESSION_VERSION, VERSION,
};
use crate::wire::{Form, Plain};

/// The kind of a frame's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    /// A [`Command`](crate::Command): kinds 0 to 127.
    Command,
    /// An [`ExecutionReport`](crate::execution::ExecutionReport): kinds 128 to 159.
    Report,
    /// A market [`Message`](crate::market::Message): kinds 160 to 191.
    Message,
    /// A [`Snapshot`](crate::market::Snapshot): kinds 192 to 207.
    Snapshot,
    /// A frame of a [session](super::session): kinds from 208.
    Session,
}

impl Family {
    pub(super) const fn of(kind: u8) -> Self {
        match kind {
            0..128 => Self::Command,
            128..160 => Self::Report,
            160..192 => Self::Message,
            192..208 => Self::Snapshot,
            208.. => Self::Session,
        }
    }

    const fn version(self) -> u8 {
        match self {
            Self::Command => VERSION,
            Self::Report => REPORT_VERSION,
            Self::Message | Self::Snapshot => MESSAGE_VERSION,
            Self::Session => SESSION_VERSION,
        }
    }
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

const _: () = assert!(size_of::<Head>() == HEAD_BYTES);
const _: () = assert!(std::mem::offset_of!(Head, own) == OWN_AT);

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

    /// Returns the head of a frame of `length` bytes with its kind's own bytes.
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

    /// Returns all of it as one number, so that it is compared at once.
    #[inline(always)]
    pub(super) const fn number(self) -> u64 {
        u64::from_le_bytes(transmute!(self))
    }

    /// Returns the frame's length, if version and length are possible.
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

    /// Returns the error of a kind that is not known among those wanted.
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
                return Err(CodecError::HeadByte {
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

    /// Returns the frame that begins `bytes`, if it is all there.
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

    /// Decodes the value; the rest of the head is not looked at.
    #[inline(always)]
    pub(super) fn value(&self) -> Result<B::Value, CodecError> {
        self.body.value(self.head.own, [OWN_AT, HEAD_BYTES])
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
        return Err(CodecError::BufferTooSmall { needed, have });
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
    frame.value()
}

/// Returns the beginning of `out` that a frame of `needed` bytes takes.
#[inline]
pub(super) fn room_for(out: &mut [u8], needed: usize) -> Result<&mut [u8], CodecError> {
    if needed > FRAME_BYTES_MAX {
        return Err(CodecError::TooLong { length: needed });
    }
    let have = out.len();
    out.get_mut(..needed)
        .ok_or(CodecError::BufferTooSmall { needed, have })
}
