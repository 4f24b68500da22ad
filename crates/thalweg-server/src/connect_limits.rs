//! How often connections may come: one that ends at once costs time, too.
//!
//! - *A listener* takes a number a second; further ones wait in the system's queue.
//! - *An address* that sends more than its number is refused. Addresses of this machine are not:
//!   its programs, and those that come through a tunnel, have one together.
//! - *A holder* of a trade or read key is welcomed a number of times a second; further connections
//!   wait, a few of them. Administrators do not.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use thalweg_exchange::session::{Role, SessionKey};

use crate::config::Config;
use crate::token_bucket::TokenBucket;

/// Beyond this many addresses or holders, those that are below their limit are forgotten.
const KEPT: usize = 1 << 12;

/// The connections of a holder.
#[derive(Debug)]
struct Holder {
    bucket: TokenBucket,
    /// Those that wait for a token.
    waiting: u32,
}

#[derive(Debug)]
struct Inner {
    of_listener: [TokenBucket; 2],
    of_address: HashMap<IpAddr, TokenBucket>,
    of_holder: HashMap<(Role, i64), Holder>,
}

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct ConnectLimits {
    connections_max: u32,
    address_per_s: u32,
    holder_per_s: u32,
    per_holder: u32,
    readers_per_holder: u32,
    inner: Mutex<Inner>,
}

/// The decision about a connection that has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arrival {
    pub(crate) is_taken: bool,
    /// How long to wait before the next one is looked at.
    pub(crate) pause: Duration,
}

/// A connection of a holder that waits.
struct Waiting<'l> {
    limits: &'l ConnectLimits,
    id: (Role, i64),
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if let Some(holder) = self.limits.inner().of_holder.get_mut(&self.id) {
            holder.waiting -= 1;
        }
    }
}

/// Returns the part of an address that one stranger has: of the newer kind, a network.
fn stranger(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6((address.to_bits() >> 64 << 64).into()),
        address @ IpAddr::V4(_) => address,
    }
}

/// Makes room in a table for one more, as far as entries say nothing.
fn forget<K: Eq + Hash, V>(table: &mut HashMap<K, V>, is_idle: impl Fn(&mut V) -> bool) {
    if table.len() >= KEPT {
        table.retain(|_, value| !is_idle(value));
    }
}

impl ConnectLimits {
    pub(crate) fn new(config: &Config, now: Instant) -> Self {
        let connections_max = u32::try_from(config.server.connections_max).unwrap_or(u32::MAX);
        let bucket = || TokenBucket::new(config.server.connects_per_s, connections_max, now);
        Self {
            connections_max,
            address_per_s: config.server.connects_per_address_s,
            holder_per_s: config.sessions.connects_per_s,
            per_holder: config.sessions.per_holder,
            readers_per_holder: config.sessions.readers_per_holder,
            inner: Mutex::new(Inner {
                of_listener: [bucket(), bucket()],
                of_address: HashMap::new(),
                of_holder: HashMap::new(),
            }),
        }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a connection from an address to the listener of this number.
    pub(crate) fn arrive(&self, listener: usize, from: IpAddr, now: Instant) -> Arrival {
        let mut inner = self.inner();
        let bucket = &mut inner.of_listener[listener];
        bucket.take(1, now);
        let pause = bucket.time_to(1, now);
        let is_taken = from.is_loopback() || {
            forget(&mut inner.of_address, |bucket| bucket.is_full(now));
            let new = || TokenBucket::new(self.address_per_s, self.connections_max, now);
            let of_address = inner.of_address.entry(stranger(from));
            of_address.or_insert_with(new).take(1, now)
        };
        Arrival { is_taken, pause }
    }

    /// Waits until a session may be welcomed.
    ///
    /// # Errors
    /// How many of its holder wait already.
    pub(crate) async fn welcome(&self, key: SessionKey) -> Result<(), String> {
        if key.role == Role::Admin {
            return Ok(());
        }
        let waiting = self.begin(key, Instant::now())?;
        while let Some(wait) = self.wait(waiting.id, Instant::now()) {
            tokio::time::sleep(wait).await;
        }
        Ok(())
    }

    fn begin(&self, key: SessionKey, now: Instant) -> Result<Waiting<'_>, String> {
        let together = self.per_holder.saturating_mul(4);
        let (burst, waiting_max) = match key.role {
            Role::Read => (together.saturating_add(self.readers_per_holder), u32::MAX),
            _ => (together, together),
        };
        let id = (key.role, key.holder);
        let mut inner = self.inner();
        let is_idle = |holder: &mut Holder| holder.waiting == 0 && holder.bucket.is_full(now);
        forget(&mut inner.of_holder, is_idle);
        let new = || Holder {
            bucket: TokenBucket::new(self.holder_per_s, burst, now),
            waiting: 0,
        };
        let holder = inner.of_holder.entry(id).or_insert_with(new);
        if holder.waiting >= waiting_max {
            return Err(format!("{waiting_max} of one user wait to be welcomed"));
        }
        holder.waiting += 1;
        let limits = self;
        Ok(Waiting { limits, id })
    }

    /// Takes a token, or returns when there may be one.
    fn wait(&self, id: (Role, i64), now: Instant) -> Option<Duration> {
        let mut inner = self.inner();
        let bucket = &mut inner.of_holder.get_mut(&id)?.bucket;
        (!bucket.take(1, now)).then(|| bucket.time_to(1, now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRADE: usize = 0;
    const ADMIN: usize = 1;
    const SECOND: Duration = Duration::from_secs(1);

    fn limits(change: impl FnOnce(&mut Config)) -> (ConnectLimits, Instant) {
        let mut config = Config::default();
        config.server.connections_max = 10;
        change(&mut config);
        let now = Instant::now();
        (ConnectLimits::new(&config, now), now)
    }

    fn address(last: u16) -> IpAddr {
        IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, last])
    }

    #[test]
    fn a_listener_rests_when_its_number_has_come() {
        let (limits, now) = limits(|config| config.server.connects_per_s = 5);
        let arrive = |at: u16| limits.arrive(TRADE, address(at), now);
        for at in 0..9 {
            assert_eq!(arrive(at).pause, Duration::ZERO);
        }
        assert_eq!(arrive(9).pause, SECOND / 5);
        // The other listener has a number of its own.
        let admin = limits.arrive(ADMIN, address(1), now);
        assert_eq!(admin.pause, Duration::ZERO);
        let later = limits.arrive(TRADE, address(1), now + SECOND);
        assert_eq!(later.pause, Duration::ZERO);
    }

    #[test]
    fn one_address_too_often_is_refused_and_others_are_not() {
        let (limits, now) = limits(|config| config.server.connects_per_address_s = 2);
        let is_taken = |from, now| limits.arrive(TRADE, from, now).is_taken;
        // One network of the newer kind is one stranger.
        let taken = (0..30).filter(|at| is_taken(address(*at), now)).count();
        assert_eq!(taken, 10);
        assert!(is_taken(IpAddr::from([192, 0, 2, 1]), now));
        assert!((0..30).all(|_| is_taken(IpAddr::from([127, 0, 0, 1]), now)));
        let taken = (0..30).filter(|at| is_taken(address(*at), now + SECOND));
        assert_eq!(taken.count(), 2);
    }

    #[test]
    fn addresses_and_holders_are_forgotten() {
        let (limits, now) = limits(|_| {});
        for at in 0..3 * KEPT as u32 {
            let now = now + at * Duration::from_millis(2);
            limits.arrive(TRADE, IpAddr::from(at.to_be_bytes()), now);
            let key = SessionKey::new(Role::Trade, at.into(), 0);
            drop(limits.begin(key, now));
        }
        let inner = limits.inner();
        assert!(inner.of_address.len() <= KEPT && inner.of_holder.len() <= KEPT);
    }

    #[tokio::test(start_paused = true)]
    async fn a_holder_is_welcomed_so_often_and_few_wait() {
        let (limits, now) = limits(|config| {
            config.sessions.per_holder = 1;
            config.sessions.connects_per_s = 10;
        });
        let key = |holder| SessionKey::new(Role::Trade, holder, 0);
        let id = (Role::Trade, 1);
        let waiting: Vec<_> = (0..4).map(|_| limits.begin(key(1), now)).collect();
        assert_eq!(
            limits.begin(key(1), now).err().as_deref(),
            Some("4 of one user wait to be welcomed")
        );
        assert!((0..4).all(|_| limits.wait(id, now).is_none()));
        assert_eq!(limits.wait(id, now), Some(SECOND / 10));
        drop(waiting);
        let fifth = limits.begin(key(1), now);
        assert_eq!(limits.wait(id, now + SECOND / 10), None);
        drop(fifth);
        assert_eq!(limits.welcome(key(2)).await, Ok(()));
        let admin = SessionKey::new(Role::Admin, 1, 0);
        for _ in 0..100 {
            assert_eq!(limits.welcome(admin).await, Ok(()));
        }
        assert!(
            limits
                .inner()
                .of_holder
                .values()
                .all(|holder| holder.waiting == 0)
        );
    }
}
