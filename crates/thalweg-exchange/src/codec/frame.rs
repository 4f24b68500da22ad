//! The head of a frame, and the kinds.

use super::error::CodecError;
use super::{command, message, outcome, report, session, snapshot};

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
/// The version of the layout of the frames of a session, at byte 5. The version of the protocol,
/// which hello and welcome agree on, is another number.
pub const SESSION_VERSION: u8 = 1;
/// The longest frame, in bytes: 16 MiB.
pub const FRAME_BYTES_MAX: usize = 1 << 24;
pub(super) const HEAD_BYTES: usize = 8;

/// The kinds of commands; where the reference engine has a code for a command, it is the kind. A
/// [`Digest`](crate::digest::Digest) has them, too.
pub(crate) mod kind {
    pub(crate) const PLACE: u8 = 1;
    pub(crate) const CANCEL: u8 = 2;
    pub(crate) const MOVE: u8 = 3;
    pub(crate) const REDUCE: u8 = 4;
    pub(crate) const PLACE_WITH: u8 = 5;
    pub(crate) const AMEND: u8 = 9;
    pub(crate) const CANCEL_ALL: u8 = 7;
    pub(crate) const DISCONNECT: u8 = 8;
    pub(crate) const ADD_USER: u8 = 10;
    pub(crate) const BALANCE: u8 = 11;
    pub(crate) const SUSPEND: u8 = 12;
    pub(crate) const RESUME: u8 = 13;
    pub(crate) const PAY_FEES: u8 = 14;
    pub(crate) const SET_LIMITS: u8 = 15;
    pub(crate) const ADD_SYMBOLS: u8 = 20;
    pub(crate) const ADD_ACCOUNTS: u8 = 21;
    pub(crate) const CLOCK: u8 = 30;
    pub(crate) const SET_PRICE_BAND: u8 = 31;
    pub(crate) const HALT: u8 = 32;
    pub(crate) const UNHALT: u8 = 33;
    pub(crate) const REMOVE_SYMBOL: u8 = 34;
    pub(crate) const SET_MARKET_PROTECTION: u8 = 35;
    pub(crate) const START_AUCTION: u8 = 36;
    pub(crate) const UNCROSS: u8 = 37;
    pub(crate) const RUN_STOPS: u8 = 38;
    pub(crate) const NOP: u8 = 120;
    pub(crate) const RESET: u8 = 124;

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
    /// An [`Outcome`](super::Outcome) (kind 128, further frames of it 130) or an
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
    let family = Family::of(head.kind());
    let length = head.length()?;
    match family {
        Family::Command => drop(command::check(bytes, head)?),
        Family::Outcome if head.kind() == kind::REPORT => drop(report::check(head)?),
        Family::Outcome => drop(outcome::check(head)?),
        Family::Message => drop(message::check(head)?),
        Family::Snapshot => drop(snapshot::check(bytes, head)?),
        Family::Session => drop(session::check(bytes, head)?),
    }
    Ok(Frame {
        family,
        bytes: length,
        goes_on: family == Family::Outcome && head.own()[1] != 0 && head.kind() != kind::REPORT,
    })
}

/// The head as one number, so that length, kind and version are compared at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head(pub(super) u64);

impl Head {
    /// Length, kind and version, without the kind's own bytes.
    pub(super) const FORM: u64 = 0xFFFF_FFFF_FFFF;

    /// # Errors
    /// [`CodecError::Incomplete`].
    #[inline]
    pub(super) fn read(bytes: &[u8]) -> Result<Self, CodecError> {
        match bytes.first_chunk() {
            Some(head) => Ok(Self(u64::from_le_bytes(*head))),
            None => Err(CodecError::Incomplete {
                needed: HEAD_BYTES,
                have: bytes.len(),
            }),
        }
    }

    /// The head of a frame of `length` bytes with its kind's own bytes.
    pub(super) const fn new(length: usize, kind: u8, own: [u8; 2]) -> Self {
        debug_assert!(length <= FRAME_BYTES_MAX);
        Self(
            length as u64
                | (kind as u64) << 32
                | (Family::of(kind).version() as u64) << 40
                | (own[0] as u64) << 48
                | (own[1] as u64) << 56,
        )
    }

    /// Length, kind and version of a kind whose frames have one length.
    pub(super) const fn form(length: usize, kind: u8) -> u64 {
        Self::new(length, kind, [0; 2]).0
    }

    pub(super) const fn kind(self) -> u8 {
        (self.0 >> 32) as u8
    }

    /// The kind's own bytes.
    pub(super) const fn own(self) -> [u8; 2] {
        [(self.0 >> 48) as u8, (self.0 >> 56) as u8]
    }

    /// The frame's length, if version and length are possible.
    pub(super) const fn length(self) -> Result<usize, CodecError> {
        let version = (self.0 >> 40) as u8;
        let known = Family::of(self.kind()).version();
        if version != known {
            return Err(CodecError::UnknownVersion { version, known });
        }
        let length = self.0 as u32 as usize;
        if length < HEAD_BYTES {
            return Err(CodecError::TooShort { length });
        }
        if length > FRAME_BYTES_MAX {
            return Err(CodecError::TooLong { length });
        }
        Ok(length)
    }

    /// The own bytes, if they are at most these.
    pub(super) fn own_up_to(self, what: &'static str, max: [u8; 2]) -> Result<[u8; 2], CodecError> {
        let own = self.own();
        for (at, (value, max)) in (6..).zip(own.into_iter().zip(max)) {
            if value > max {
                return Err(CodecError::OwnByte {
                    what,
                    at,
                    value,
                    max,
                });
            }
        }
        Ok(own)
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

/// The beginning of `out` that a frame of `N` bytes takes.
#[inline]
pub(super) fn room<const N: usize>(out: &mut [u8]) -> Result<&mut [u8; N], CodecError> {
    let have = out.len();
    let needed = N;
    out.first_chunk_mut()
        .ok_or(CodecError::NoRoom { needed, have })
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
