//! How many endpoints a channel has on each side, as types.

mod sealed {
    /// Keeps the shapes to those of this module.
    pub trait Sealed {}
}

/// One sender, one receiver.
#[derive(Debug, Clone, Copy)]
pub enum Spsc {}
/// Many senders, one receiver.
#[derive(Debug, Clone, Copy)]
pub enum Mpsc {}
/// Many senders, many receivers.
#[derive(Debug, Clone, Copy)]
pub enum Mpmc {}

/// The shape of a channel: [`Spsc`], [`Mpsc`] or [`Mpmc`].
pub trait Shape: sealed::Sealed + 'static {
    /// Whether there may be several senders.
    const SHARES_SENDER: bool = true;
    /// Whether there may be several receivers.
    const SHARES_RECEIVER: bool = false;
}

/// Shapes whose senders can be cloned.
pub trait ManySenders: Shape {}
/// Shapes whose receivers can be cloned.
pub trait ManyReceivers: Shape {}

impl sealed::Sealed for Spsc {}
impl sealed::Sealed for Mpsc {}
impl sealed::Sealed for Mpmc {}
impl Shape for Spsc {
    const SHARES_SENDER: bool = false;
}
impl Shape for Mpsc {}
impl Shape for Mpmc {
    const SHARES_RECEIVER: bool = true;
}
impl ManySenders for Mpsc {}
impl ManySenders for Mpmc {}
impl ManyReceivers for Mpmc {}
