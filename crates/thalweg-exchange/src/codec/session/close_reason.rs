//! The last frame of a connection.

use std::fmt;

use super::super::error::CodecError;
use super::super::fields::{Reader, Writer};
use super::super::frame::Head;
use super::super::layout::{HEAD_BYTES, OWN_AT, kind};
use crate::codes::codes;
use crate::wire::{Wire, small};

/// The longest text of a bye, in bytes.
pub const BYE_TEXT_BYTES_MAX: usize = 512;

codes! {
    /// Why a connection ends.
    #[non_exhaustive]
    pub enum CloseReason: u8;
    /// The side that says it is done (code 1).
    Done = 1, "nothing more to say";
    /// The server stops, and may come back (code 2).
    Shutdown = 2, "the server stops";
    /// A frame could not be read (code 3); the text says where.
    BadFrame = 3, "a frame that cannot be read";
    /// A frame is longer than the server takes (code 4).
    FrameTooLong = 4, "a frame that is too long";
    /// No such holder, no such key, or not of this role: the client does not learn which (code 5).
    WrongKey = 5, "the key does not open this session";
    /// The other side speaks none of the versions (code 6).
    Version = 6, "no version of the protocol in common";
    /// A first frame that is no hello, a second hello, or none in time (code 7).
    NoHello = 7, "one hello must come first, in time";
    /// A newer connection of the same session took its place (code 8).
    Replaced = 8, "a newer connection has this session";
    /// The client reads too slowly, and too much waits for it (code 9). It may resume.
    SlowReader = 9, "too much waits to be read";
    /// Nothing came for too long (code 10).
    Silent = 10, "nothing was heard for too long";
    /// There are too many connections (code 11).
    Connections = 11, "too many connections";
    /// There are too many sessions of this holder, or in all (code 12).
    Sessions = 12, "too many sessions";
    /// This listener does not serve the role (code 13).
    Listener = 13, "this listener does not serve that role";
    /// The exchange had to stop (code 14): what was answered is durable.
    Failed = 14, "the exchange had to stop";
    /// The server is a replica that follows another one (code 15). The text is the address at which
    /// clients find the primary, host and port; empty where that is not known.
    NotPrimary = 15, "this replica is not the primary";
}

small! {
    CloseReason: "the reason of a bye", 8, 255;
}

impl CloseReason {
    /// Returns a fixed text for the reason, without the details of a single case.
    #[must_use]
    pub const fn text(self) -> &'static str {
        self.name()
    }

    /// Returns whether a client should connect again by itself: it may well succeed.
    #[must_use]
    pub const fn is_retryable(self) -> bool {
        matches!(
            self,
            Self::Shutdown
                | Self::NoHello
                | Self::SlowReader
                | Self::Silent
                | Self::Connections
                | Self::Failed
                | Self::NotPrimary
        )
    }
}

/// Why the sender closes the connection (kind 221).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bye<'b> {
    /// The reason.
    pub why: CloseReason,
    /// More about this case, for people, but for [`CloseReason::NotPrimary`]; may be empty. Up to
    /// [`BYE_TEXT_BYTES_MAX`] are sent.
    pub text: &'b str,
}

impl fmt::Display for Bye<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.text {
            "" => self.why.fmt(f),
            text => write!(f, "{}: {text}", self.why),
        }
    }
}

impl<'b> Bye<'b> {
    /// As much of the text as is sent: whole characters.
    fn sent(&self) -> &'b str {
        &self.text[..self.text.floor_char_boundary(BYE_TEXT_BYTES_MAX)]
    }

    pub(super) fn bytes(&self) -> usize {
        HEAD_BYTES + self.sent().len()
    }

    pub(super) fn write(&self, out: &mut Writer<'_>) {
        out.put(&Head::new(self.bytes(), kind::BYE, [self.why as u8, 0]));
        out.put(self.sent().as_bytes());
    }

    pub(super) fn read(own: [u8; 2], fields: &mut Reader<'b>) -> Result<Self, CodecError> {
        let why = CloseReason::value(own[0], OWN_AT)?;
        let at = fields.at();
        match str::from_utf8(fields.rest()) {
            Ok(text) => Ok(Self { why, text }),
            Err(error) => Err(CodecError::InvalidUtf8 {
                what: "the text of a bye",
                at: at + error.valid_up_to(),
            }),
        }
    }
}
