//! The numbers of the layout: versions, lengths, and the kinds of frames.

/// The version of the layout of commands, at byte 5 of their frames.
pub const VERSION: u8 = 1;
/// The version of the layout of execution reports, at byte 5 of their frames.
pub const REPORT_VERSION: u8 = 3;
/// The version of the layout of market messages and snapshots, at byte 5 of their frames. From 2 on
/// they have an [`Epoch`](crate::market::Epoch), from 3 on [channels](crate::market::Channels) and
/// no number of a command, from 4 on nothing of single orders; logs of commands stay readable.
pub const MESSAGE_VERSION: u8 = 4;
/// The version of the layout of the frames of a session, at byte 5, and the lowest version of the
/// protocol, which hello and welcome agree on.
pub const SESSION_VERSION: u8 = 1;
/// The highest version of the protocol. From 2 on, a replica that is not the primary ends
/// connections with [`CloseReason::NotPrimary`](super::session::CloseReason::NotPrimary), which
/// clients of version 1 cannot read. The frames are those of version 1.
pub const SESSION_VERSION_MAX: u8 = 2;
/// The longest frame, in bytes: 16 MiB.
pub const FRAME_BYTES_MAX: usize = 1 << 24;
/// The length of a frame's head, in bytes.
pub(super) const HEAD_BYTES: usize = 8;
/// Where the two bytes of a kind's own are in its head.
pub(super) const OWN_AT: usize = 6;

/// The kinds of frames that are no commands; [those](super::command::kind) have a table of their
/// own.
pub(crate) mod kind {
    // 128 and 130 were outcomes.
    pub(crate) const REPORT: u8 = 129;

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
