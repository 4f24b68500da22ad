//! Why a message was not published.

/// The reason why a message was not published to every inbox that wants it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// An inbox holds as many messages as the message's priority allows.
    Refused,
    /// An inbox had no room in time.
    TimedOut,
    /// The bus is paused, or still was at the end of the time to wait. The message was not counted.
    Paused,
    /// The bus was drained or stopped.
    Closed,
}

/// A message that was not published to every inbox that wants it, given back.
#[non_exhaustive]
pub struct PublishError<M> {
    /// The message.
    pub message: M,
    /// The reason; if several inboxes did not take it, that of the first.
    pub reason: Reason,
    /// The number of inboxes that took it all the same. To publish it again is to publish another
    /// message, which they get as well.
    pub admitted: usize,
}

errors!(Reason {
    Self::Refused => "there is no room for a message of this priority";
    Self::TimedOut => "no room in time";
    Self::Paused => "the bus is paused";
    Self::Closed => "the bus was drained or stopped";
});

// Messages need not be `Debug`.
impl<M> std::fmt::Debug for PublishError<M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PublishError")
            .field("reason", &self.reason)
            .field("admitted", &self.admitted)
            .finish_non_exhaustive()
    }
}

impl<M> std::fmt::Display for PublishError<M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.reason.fmt(f)
    }
}

impl<M> std::error::Error for PublishError<M> {}
