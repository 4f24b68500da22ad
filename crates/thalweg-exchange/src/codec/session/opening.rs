//! The first frame of each side.

use std::fmt;
use std::mem::offset_of;

use zerocopy::little_endian::{I64, U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::super::error::CodecError;
use super::super::fields::{Reader, Writer};
use super::super::frame::Head;
use super::super::layout::{OWN_AT, kind};
use crate::market::{Channels, Epoch};
use crate::session::{ClientSequence, ReportNumber, Role};
use crate::wire::{Bits, Wire, check_most, wire};

/// A hello before its key. Byte 6 has the role, byte 7 two flags.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct HelloForm {
    head: Head,
    magic: U32,
    version_min: U16,
    version_max: U16,
    number: U32,
    heartbeat_ms: U32,
    holder: I64,
    /// The last report seen; [`FROM_NOW_ON`] of a client that wants none of before.
    last_report: U64,
}

wire! {
    pub(super) struct WelcomeForm = Welcome [channels: Channels] {
        version: u16 | reserved: u16, heartbeat_ms: u32, holder: i64,
        last_executed: ClientSequence, next_report: ReportNumber, next_command: u64,
        in_flight_max: u32, frame_bytes_max: u32, rate_max: u32, epoch: Epoch, exchange: u64,
    }
}

/// The longest key, in bytes.
pub const KEY_BYTES_MAX: usize = 256;
pub(super) const HELLO_BYTES_MIN: usize = size_of::<HelloForm>();
/// The longest hello, in bytes: no frame before the welcome is longer.
pub const HELLO_BYTES_MAX: usize = HELLO_BYTES_MIN + KEY_BYTES_MAX;

const MAGIC: U32 = U32::from_bytes(*b"TWLG");
const FROM_NOW_ON: u64 = u64::MAX;
/// The greatest role; and both flags, that orders are cancelled, and that no reports are wanted.
pub(super) const HELLO_OWN_MAX: [u8; 2] = [3, 3];

/// A key as it was given; it does not show itself.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct KeyBytes<'b>(pub &'b [u8]);

impl fmt::Debug for KeyBytes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} secret bytes", self.0.len())
    }
}

/// The client's first frame (kind 208).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hello<'b> {
    /// The lowest version of the protocol that it speaks.
    pub version_min: u16,
    /// The highest.
    pub version_max: u16,
    /// The role that it asks for.
    pub role: Role,
    /// The user, or of an admin the id of its key.
    pub holder: i64,
    /// Which of the holder's sessions.
    pub number: u32,
    /// The last report that it has seen: those after it are sent, and 0 asks for all that are
    /// kept; `None` for none of before.
    pub last_report: Option<ReportNumber>,
    /// How many milliseconds it wants between two signs of life; 0 leaves that to the server.
    pub heartbeat_ms: u32,
    /// Whether the user's orders that [ask for it](crate::OrderFlags::with_cancel_on_disconnect)
    /// are cancelled when the connection is lost.
    pub cancels_on_disconnect: bool,
    /// Whether it wants no reports at all.
    pub market_data_only: bool,
    /// Its key; empty for none.
    pub key: KeyBytes<'b>,
}

impl<'b> Hello<'b> {
    pub(super) const fn bytes(&self) -> usize {
        HELLO_BYTES_MIN + self.key.0.len()
    }

    pub(super) fn write(&self, out: &mut Writer<'_>) {
        let flags = Bits::new(0)
            .with(self.cancels_on_disconnect)
            .with(self.market_data_only);
        out.put(&HelloForm {
            head: Head::new(self.bytes(), kind::HELLO, [self.role as u8, flags.byte()]),
            magic: MAGIC,
            version_min: self.version_min.bytes(),
            version_max: self.version_max.bytes(),
            number: self.number.bytes(),
            heartbeat_ms: self.heartbeat_ms.bytes(),
            holder: self.holder.bytes(),
            last_report: self
                .last_report
                .unwrap_or(ReportNumber(FROM_NOW_ON))
                .bytes(),
        });
        out.put(self.key.0);
    }

    pub(super) fn read(frame: &'b [u8]) -> Result<Self, CodecError> {
        let fields = &mut Reader::new(frame, 0);
        let form = fields.get::<HelloForm>()?;
        let [role, flags] = form.head.own;
        if form.magic != MAGIC {
            let (what, at) = ("the mark of a hello", offset_of!(HelloForm, magic));
            return Err(CodecError::unknown(what, at, form.magic.get()));
        }
        let [version_min, version_max] = [form.version_min.get(), form.version_max.get()];
        let at = offset_of!(HelloForm, version_min);
        check_most("the lowest version", at, version_min, version_max)?;
        let last_report = form.last_report.get();
        Ok(Self {
            version_min,
            version_max,
            role: Role::value(role, OWN_AT)?,
            holder: form.holder.get(),
            number: form.number.get(),
            last_report: (last_report != FROM_NOW_ON).then_some(ReportNumber(last_report)),
            heartbeat_ms: form.heartbeat_ms.get(),
            cancels_on_disconnect: flags & 1 != 0,
            market_data_only: flags & 2 != 0,
            key: KeyBytes(fields.rest()),
        })
    }
}

/// The server's answer to a hello that it accepts (kind 209).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Welcome {
    /// The version of the protocol that is spoken from now on: one of the client's.
    pub version: u16,
    /// How many milliseconds each side may be silent at most; 0 for any time.
    pub heartbeat_ms: u32,
    /// The holder that the client was identified as.
    pub holder: i64,
    /// The highest sequence of a command of this session that was executed.
    pub last_executed: ClientSequence,
    /// The number of the next report of its user; the missed ones that are sent are below.
    pub next_report: ReportNumber,
    /// The number of the next command of the exchange.
    pub next_command: u64,
    /// How many commands may be without an answer.
    pub in_flight_max: u32,
    /// The longest frame that the server takes, in bytes.
    pub frame_bytes_max: u32,
    /// Commands a second that it takes of this session; 0 for any number.
    pub rate_max: u32,
    /// Which start of the market data is running.
    pub epoch: Epoch,
    /// Which market messages there are.
    pub channels: Channels,
    /// Which exchange it is: the number of its journal, drawn when that was made. Sequences and
    /// report numbers belong to it.
    pub exchange: u64,
}
