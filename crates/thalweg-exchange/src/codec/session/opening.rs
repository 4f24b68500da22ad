//! The first frame of each side.

use std::fmt;

use super::super::error::CodecError;
use super::super::fields::{Reader, Writer};
use super::super::frame::{HEAD_BYTES, Head, kind};
use crate::market::{Channels, Epoch};
use crate::session::{ClientSequence, ReportNumber, Role};

/// The longest key, in bytes.
pub const KEY_BYTES_MAX: usize = 256;
pub(super) const HELLO_BYTES_MIN: usize = HEAD_BYTES + 32;
/// The longest hello, in bytes: no frame before the welcome is longer.
pub const HELLO_BYTES_MAX: usize = HELLO_BYTES_MIN + KEY_BYTES_MAX;
pub(super) const WELCOME_BYTES: usize = HEAD_BYTES + 68;

const MAGIC: i32 = i32::from_le_bytes(*b"TWLG");
/// The last report seen of a client that wants none of before.
const FROM_NOW_ON: u64 = u64::MAX;
/// Bits of hello's second own byte.
const CANCEL_ON_DISCONNECT: u8 = 1;
const MARKET_DATA_ONLY: u8 = 2;
pub(super) const HELLO_OWN_MAX: [u8; 2] = [3, CANCEL_ON_DISCONNECT | MARKET_DATA_ONLY];
pub(super) const WELCOME_OWN_MAX: [u8; 2] = [Channels::CODE_MAX, 0];

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
    /// As what it comes.
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
        let flag = |is_set, bit| if is_set { bit } else { 0 };
        let flags = flag(self.cancels_on_disconnect, CANCEL_ON_DISCONNECT)
            | flag(self.market_data_only, MARKET_DATA_ONLY);
        let own = [self.role as u8, flags];
        out.bytes(Head::new(self.bytes(), kind::HELLO, own).0.to_le_bytes());
        out.int(MAGIC);
        out.bytes(self.version_min.to_le_bytes());
        out.bytes(self.version_max.to_le_bytes());
        out.bytes(self.number.to_le_bytes());
        out.bytes(self.heartbeat_ms.to_le_bytes());
        let last = self.last_report.map_or(FROM_NOW_ON, |report| report.0);
        out.longs([self.holder, last as i64]);
        out.slice(self.key.0);
    }

    pub(super) fn read(own: [u8; 2], fields: &mut Reader<'b>) -> Result<Self, CodecError> {
        let role = role(own)?;
        let at = fields.at();
        let magic = fields.int()?;
        if magic != MAGIC {
            return Err(CodecError::UnknownCode {
                what: "the mark of a hello",
                at,
                code: magic.into(),
            });
        }
        let at = fields.at();
        let versions = fields.int()?.cast_unsigned();
        let [version_min, version_max] = [versions as u16, (versions >> 16) as u16];
        if version_min > version_max {
            return Err(CodecError::OutOfRange {
                what: "the lowest version",
                at,
                value: version_min.into(),
                max: version_max.into(),
            });
        }
        let number = fields.int()?.cast_unsigned();
        let heartbeat_ms = fields.int()?.cast_unsigned();
        let holder = fields.long()?;
        let last = fields.long()? as u64;
        Ok(Self {
            version_min,
            version_max,
            role,
            holder,
            number,
            last_report: (last != FROM_NOW_ON).then_some(ReportNumber(last)),
            heartbeat_ms,
            cancels_on_disconnect: own[1] & CANCEL_ON_DISCONNECT != 0,
            market_data_only: own[1] & MARKET_DATA_ONLY != 0,
            key: KeyBytes(fields.rest()),
        })
    }
}

/// The role of a hello's own bytes, which must name one.
pub(super) fn role(own: [u8; 2]) -> Result<Role, CodecError> {
    Role::from_code(own[0]).ok_or(CodecError::UnknownCode {
        what: "the role",
        at: 6,
        code: own[0].into(),
    })
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

impl Welcome {
    pub(super) fn write(&self, out: &mut Writer<'_>) {
        let own = [self.channels.code(), 0];
        out.bytes(Head::new(WELCOME_BYTES, kind::WELCOME, own).0.to_le_bytes());
        out.bytes(u32::from(self.version).to_le_bytes());
        out.bytes(self.heartbeat_ms.to_le_bytes());
        let numbers = [self.last_executed.0, self.next_report.0, self.next_command];
        out.long(self.holder);
        out.longs(numbers.map(|number| number as i64));
        for limit in [self.in_flight_max, self.frame_bytes_max, self.rate_max] {
            out.bytes(limit.to_le_bytes());
        }
        out.longs([self.epoch.0, self.exchange].map(|number| number as i64));
    }

    pub(super) fn read(own: [u8; 2], fields: &mut Reader<'_>) -> Result<Self, CodecError> {
        let at = fields.at();
        let version = fields.int()?.cast_unsigned();
        let version = u16::try_from(version).map_err(|_| CodecError::OutOfRange {
            what: "the version of the protocol",
            at,
            value: version.into(),
            max: u16::MAX.into(),
        })?;
        let heartbeat_ms = fields.int()?.cast_unsigned();
        let holder = fields.long()?;
        let [last_executed, next_report, next_command] =
            fields.longs()?.map(|number| number as u64);
        let mut limits = [0; 3];
        for limit in &mut limits {
            *limit = fields.int()?.cast_unsigned();
        }
        let [in_flight_max, frame_bytes_max, rate_max] = limits;
        let [epoch, exchange] = fields.longs()?.map(|number| number as u64);
        Ok(Self {
            version,
            heartbeat_ms,
            holder,
            last_executed: ClientSequence(last_executed),
            next_report: ReportNumber(next_report),
            next_command,
            in_flight_max,
            frame_bytes_max,
            rate_max,
            epoch: Epoch(epoch),
            channels: super::super::message::channels_of(own[0])?,
            exchange,
        })
    }
}
