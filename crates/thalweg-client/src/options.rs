//! The options of a client.

use std::time::{Duration, SystemTime};

use thalweg_exchange::codec::session::KEY_BYTES_MAX;
use thalweg_exchange::session::{ClientSequence, ReportNumber};

use crate::disconnect_reason::DisconnectReason;

/// The time for one of several addresses, at least.
const EACH_LEAST: Duration = Duration::from_millis(500);

/// The options of a client: where it connects to, its session, and the bounds of its queues.
#[derive(Clone)]
#[non_exhaustive]
pub struct Options {
    /// Host and port, such as `127.0.0.1:7411`. Of a replicated exchange, those of all replicas,
    /// with commas between them: an attempt to connect tries one after the other, and begins with
    /// the one after that to which a connection was lost. Where a replica names the primary, it
    /// goes on there at once, whether that is in the list or not. Every replica welcomes read
    /// sessions; commands are for the primary.
    pub address: String,
    /// The user, or of an admin session the id of its key.
    pub holder: i64,
    /// Which of the holder's sessions: each program that runs at the same time has its own. A
    /// server takes numbers below its `sessions.per_holder` \[16\].
    pub number: u32,
    /// The key; empty where the exchange asks for none. At most 256 bytes.
    pub key: Vec<u8>,
    /// From which report on, where the [store](crate::SessionStore) remembers none: `None` for
    /// those that come from now on, 0 for all that are kept.
    pub reports_after: Option<ReportNumber>,
    /// Sequences are above this one, where the [store](crate::SessionStore) remembers none; `None`
    /// for the time, in nanoseconds since 1970. A program that was killed and remembers nothing may
    /// have left commands in flight, whose sequences it must not use again for others.
    pub sequences_after: Option<ClientSequence>,
    /// No reports at all.
    pub without_reports: bool,
    /// Whether the user's orders that ask for it are cancelled when the connection is lost.
    pub cancels_on_disconnect: bool,
    /// How long either side may be silent; the server has the last word.
    pub heartbeat: Duration,
    /// How long an attempt to connect may take, the welcome included: of several addresses, each
    /// has its part of it, or half a second if that is more, and a primary that is named there what
    /// is left of that, or half a second.
    pub connect_timeout: Duration,
    /// How long attempts to get the first connection go on, each as long as
    /// [`connect_timeout`](Self::connect_timeout), with the waits between them that a lost one has.
    /// 0 for one attempt: a program that is started by hand wants to know at once that no server is
    /// there, one that is started together with the exchange wants to wait for it.
    pub connect_within: Duration,
    /// Commands without an answer at most; further ones wait in `submit`. The server may allow
    /// fewer.
    pub in_flight_max: usize,
    /// Events that wait to be read at most. While that many wait, nothing more is read from the
    /// connection, answers included.
    pub events_max: usize,
    /// The first wait before another attempt to connect; it doubles each time, up to
    /// [`retry_max`](Self::retry_max). Half of it is random, so that many clients do not come back
    /// together.
    pub retry_min: Duration,
    /// The longest wait before another attempt.
    pub retry_max: Duration,
    /// The number of attempts in a row after which the client gives up; `None` for never.
    pub attempts_max: Option<u32>,
}

impl Options {
    /// Returns options with no key, session 0, reports from now on, 1,024 commands in flight,
    /// 65,536 events, a heartbeat a second, one attempt at first, and later no end of them, with
    /// waits of 20 ms to 2 s.
    #[must_use]
    pub fn new(address: impl Into<String>, holder: i64) -> Self {
        Self {
            address: address.into(),
            holder,
            number: 0,
            key: Vec::new(),
            reports_after: None,
            sequences_after: None,
            without_reports: false,
            cancels_on_disconnect: false,
            heartbeat: Duration::from_secs(1),
            connect_timeout: Duration::from_secs(5),
            connect_within: Duration::ZERO,
            in_flight_max: 1_024,
            events_max: 65_536,
            retry_min: Duration::from_millis(20),
            retry_max: Duration::from_secs(2),
            attempts_max: None,
        }
    }

    /// Returns how long an attempt at one of the addresses may take.
    pub(crate) fn time_at_each(&self) -> Duration {
        let addresses = 1 + self.address.matches(',').count() as u32;
        let part = self.connect_timeout / addresses;
        part.max(EACH_LEAST).min(self.connect_timeout)
    }

    /// Returns how long an attempt at the primary that a replica has named may take, where the
    /// attempt at that replica has taken this time.
    pub(crate) fn time_at_named(&self, spent: Duration) -> Duration {
        let left = self.time_at_each().saturating_sub(spent);
        left.max(EACH_LEAST).min(self.connect_timeout)
    }

    /// Above which sequence a session begins that remembers none.
    pub(crate) fn first_sequence(&self) -> ClientSequence {
        self.sequences_after.unwrap_or_else(|| {
            let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
            let nanoseconds = since.map_or(0, |since| since.as_nanos());
            ClientSequence(u64::try_from(nanoseconds).unwrap_or_default())
        })
    }

    /// Limits that make sense: at least one of everything, a key that fits.
    pub(crate) fn checked(mut self) -> Result<Self, DisconnectReason> {
        if self.key.len() > KEY_BYTES_MAX {
            return Err(DisconnectReason::KeyTooLong {
                bytes: self.key.len(),
            });
        }
        self.in_flight_max = self.in_flight_max.max(1);
        self.events_max = self.events_max.max(1);
        self.retry_max = self.retry_max.max(self.retry_min);
        Ok(self)
    }
}

impl std::fmt::Debug for Options {
    /// Without the key.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("Options");
        shown.field("address", &self.address);
        shown
            .field("holder", &self.holder)
            .field("number", &self.number);
        shown.finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_share_the_time_of_an_attempt() {
        let each = |address: &str, ms| {
            let mut options = Options::new(address, 1);
            options.connect_timeout = Duration::from_millis(ms);
            options.time_at_each().as_millis()
        };
        assert_eq!(each("a:1", 5_000), 5_000);
        assert_eq!(each("a:1,b:1", 5_000), 2_500);
        assert_eq!(each("a:1, b:1, c:1", 1_200), 500);
        assert_eq!(each("a:1,b:1", 300), 300);
        let named = |ms, spent_ms| {
            let mut options = Options::new("a:1,b:1", 1);
            options.connect_timeout = Duration::from_millis(ms);
            let time = options.time_at_named(Duration::from_millis(spent_ms));
            time.as_millis()
        };
        assert_eq!(named(5_000, 100), 2_400);
        assert_eq!(named(5_000, 2_400), 500);
        assert_eq!(named(300, 200), 300);
    }
}
