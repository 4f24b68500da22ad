//! How often connections may come: one that ends at once costs time, too.
//!
//! - *A listener* takes a number a second; further ones wait in the system's queue.
//! - *An address* that sends more than its number is refused, which does not count among those that
//!   the listener takes: it refuses [`REFUSED`] times as many a second. Addresses of this machine
//!   are not: its programs, and those that come through a tunnel, have one together.
//! - *A holder* of a trade or read key is welcomed a number of times a second; further connections
//!   wait, a few of them, in the order in which they came. Administrators do not.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::IpAddr;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use thalweg_exchange::session::{Role, SessionKey};

use crate::config::Config;
use crate::connection_slots::ListenerKind;
use crate::lock;
use crate::token_bucket::TokenBucket;

/// Beyond this many addresses or holders, those that are below their limit are forgotten.
const KEPT: usize = 1 << 12;

/// The gateway's listener, behind those of [`ListenerKind`].
const GATEWAY: usize = 2;

/// This many times the connections that a listener takes may be refused.
const REFUSED: u32 = 16;

/// The connections of a holder: each is welcomed at a time that is known when it comes.
#[derive(Debug)]
struct Holder {
    every: Duration,
    /// How far ahead of its rate it may be: what comes at once.
    ahead: Duration,
    /// When it is as far ahead as it may be again.
    full_at: Instant,
    /// Those that wait.
    waiting: u32,
}

impl Holder {
    /// Returns how long the next connection waits.
    fn reserve(&mut self, now: Instant) -> Duration {
        self.full_at = self.full_at.max(now) + self.every;
        (self.full_at - now).saturating_sub(self.ahead)
    }
}

#[derive(Debug)]
struct Inner {
    /// By [`ListenerKind`], then the gateway's.
    of_listener: [TokenBucket; 3],
    refused: [TokenBucket; 3],
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
pub struct RateDecision {
    /// Whether it may be served.
    pub is_taken: bool,
    /// How long to wait before the next one is looked at.
    pub pause: Duration,
}

/// A connection of a holder that waits. One that goes before its time leaves it to others.
struct Waiting<'l> {
    limits: &'l ConnectLimits,
    id: (Role, i64),
    time: Duration,
    is_welcomed: bool,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if let Some(holder) = lock(&self.limits.inner).of_holder.get_mut(&self.id) {
            holder.waiting -= 1;
            if !self.is_welcomed {
                holder.full_at -= holder.every;
            }
        }
    }
}

/// Returns the address that connections and weights count for: a host of IPv6 has a network of 2^64
/// addresses, and one of IPv4 that came to a listener of IPv6 is itself.
#[must_use]
pub fn network(address: IpAddr) -> IpAddr {
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
        let bucket = |times: u32| {
            let [per_s, burst] = [config.server.connects_per_s, connections_max];
            TokenBucket::new(
                per_s.saturating_mul(times),
                burst.saturating_mul(times),
                now,
            )
        };
        Self {
            connections_max,
            address_per_s: config.server.connects_per_address_s,
            holder_per_s: config.sessions.connects_per_s,
            per_holder: config.sessions.per_holder,
            readers_per_holder: config.sessions.readers_per_holder,
            inner: Mutex::new(Inner {
                of_listener: [(); 3].map(|()| bucket(1)),
                refused: [(); 3].map(|()| bucket(REFUSED)),
                of_address: HashMap::new(),
                of_holder: HashMap::new(),
            }),
        }
    }

    /// Counts a connection from an address to a listener.
    pub(crate) fn arrive(
        &self,
        listener: ListenerKind,
        from: IpAddr,
        now: Instant,
    ) -> RateDecision {
        self.arrive_at(listener as usize, from, now)
    }

    /// Counts a connection from an address to the gateway's listener.
    pub(crate) fn arrive_at_gateway(&self, from: IpAddr, now: Instant) -> RateDecision {
        self.arrive_at(GATEWAY, from, now)
    }

    fn arrive_at(&self, listener: usize, from: IpAddr, now: Instant) -> RateDecision {
        let mut inner = lock(&self.inner);
        let is_taken = from.to_canonical().is_loopback() || {
            forget(&mut inner.of_address, |bucket| bucket.is_full(now));
            // One address must not have all that may come at once.
            let burst = (self.connections_max / 2).max(1);
            let new = || TokenBucket::new(self.address_per_s, burst, now);
            let of_address = inner.of_address.entry(network(from));
            of_address.or_insert_with(new).take(1, now)
        };
        let buckets = match is_taken {
            true => &mut inner.of_listener,
            false => &mut inner.refused,
        };
        let bucket = &mut buckets[listener];
        bucket.take(1, now);
        let pause = bucket.time_to(1, now);
        RateDecision { is_taken, pause }
    }

    /// Waits until a session may be welcomed.
    ///
    /// # Errors
    /// How many of its holder wait already.
    pub(crate) async fn welcome(&self, key: SessionKey) -> Result<(), String> {
        if key.role == Role::Admin {
            return Ok(());
        }
        let mut waiting = self.begin(key, Instant::now())?;
        if !waiting.time.is_zero() {
            tokio::time::sleep(waiting.time).await;
        }
        waiting.is_welcomed = true;
        Ok(())
    }

    fn begin(&self, key: SessionKey, now: Instant) -> Result<Waiting<'_>, String> {
        let together = self.per_holder.saturating_mul(4);
        let (burst, waiting_max) = match key.role {
            Role::Read => (together.saturating_add(self.readers_per_holder), u32::MAX),
            _ => (together, together),
        };
        let id = (key.role, key.holder);
        let mut inner = lock(&self.inner);
        let is_idle = |holder: &mut Holder| holder.waiting == 0 && holder.full_at <= now;
        forget(&mut inner.of_holder, is_idle);
        let every = Duration::from_secs(1).checked_div(self.holder_per_s);
        let every = every.unwrap_or_default();
        let new = || Holder {
            every,
            ahead: every * burst,
            full_at: now,
            waiting: 0,
        };
        let holder = inner.of_holder.entry(id).or_insert_with(new);
        if holder.waiting >= waiting_max {
            return Err(format!("{waiting_max} of one user wait to be welcomed"));
        }
        holder.waiting += 1;
        Ok(Waiting {
            limits: self,
            id,
            time: holder.reserve(now),
            is_welcomed: false,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let from = |at: u8| IpAddr::from([192, 0, 2, at]);
        let arrive = |at: u8| limits.arrive(ListenerKind::Trade, from(at), now);
        for at in 0..9 {
            assert_eq!(arrive(at).pause, Duration::ZERO);
        }
        assert_eq!(arrive(9).pause, SECOND / 5);
        // The other listener has a number of its own.
        let admin = limits.arrive(ListenerKind::Admin, address(1), now);
        assert_eq!(admin.pause, Duration::ZERO);
        let later = limits.arrive(ListenerKind::Trade, address(1), now + SECOND);
        assert_eq!(later.pause, Duration::ZERO);
    }

    #[test]
    fn one_address_too_often_is_refused_and_others_are_not() {
        let (limits, now) = limits(|config| config.server.connects_per_address_s = 2);
        let is_taken = |from, now| limits.arrive(ListenerKind::Trade, from, now).is_taken;
        // One network of the newer kind is one stranger.
        let taken = (0..30).filter(|at| is_taken(address(*at), now)).count();
        assert_eq!(taken, 5);
        assert!(is_taken(IpAddr::from([192, 0, 2, 1]), now));
        let loopback = std::net::Ipv4Addr::LOCALHOST;
        for here in [IpAddr::from(loopback), loopback.to_ipv6_mapped().into()] {
            assert!((0..30).all(|_| is_taken(here, now)), "{here}");
        }
        let taken = (0..30).filter(|at| is_taken(address(*at), now + SECOND));
        assert_eq!(taken.count(), 2);
    }

    #[test]
    fn connections_that_are_refused_leave_others_their_number() {
        let (limits, now) = limits(|config| {
            config.server.connects_per_s = 5;
            config.server.connects_per_address_s = 1;
        });
        let arrive = |from: u8| {
            let from = IpAddr::from([192, 0, 2, from]);
            limits.arrive(ListenerKind::Trade, from, now)
        };
        let taken = (0..100).filter(|_| arrive(1).is_taken).count();
        assert_eq!(taken, 5);
        let (is_taken, pause) = (true, Duration::ZERO);
        assert_eq!(arrive(2), RateDecision { is_taken, pause });
        // They have a number, too.
        assert!((0..100).any(|_| arrive(1).pause > Duration::ZERO));
    }

    #[test]
    fn addresses_and_holders_are_forgotten() {
        let (limits, now) = limits(|_| {});
        for at in 0..3 * KEPT as u32 {
            let now = now + at * Duration::from_millis(2);
            limits.arrive(ListenerKind::Trade, IpAddr::from(at.to_be_bytes()), now);
            let key = SessionKey::new(Role::Trade, at.into(), 0);
            drop(limits.begin(key, now));
        }
        let inner = lock(&limits.inner);
        assert!(inner.of_address.len() <= KEPT && inner.of_holder.len() <= KEPT);
    }

    #[tokio::test(start_paused = true)]
    async fn a_holder_is_welcomed_so_often_and_few_wait() {
        let (limits, now) = limits(|config| {
            config.sessions.per_holder = 1;
            config.sessions.connects_per_s = 10;
        });
        let key = |holder| SessionKey::new(Role::Trade, holder, 0);
        let waiting: Vec<_> = (0..4).map(|_| limits.begin(key(1), now)).collect();
        assert_eq!(
            limits.begin(key(1), now).err().as_deref(),
            Some("4 of one user wait to be welcomed")
        );
        drop(waiting);
        for _ in 0..4 {
            assert_eq!(limits.welcome(key(1)).await, Ok(()));
        }
        let time = |now| limits.begin(key(1), now).map(|waiting| waiting.time);
        // Those that were welcomed came a little later than `now`.
        let later = Instant::now();
        assert!(time(later).is_ok_and(|time| time > Duration::ZERO));
        assert_eq!(time(later + SECOND / 10), Ok(Duration::ZERO));
        assert_eq!(limits.welcome(key(2)).await, Ok(()));
        let admin = SessionKey::new(Role::Admin, 1, 0);
        for _ in 0..100 {
            assert_eq!(limits.welcome(admin).await, Ok(()));
        }
        assert!(
            lock(&limits.inner)
                .of_holder
                .values()
                .all(|holder| holder.waiting == 0)
        );
    }

    #[test]
    fn each_that_waits_knows_its_time_and_one_that_goes_leaves_it_to_others() {
        let (limits, now) = limits(|config| {
            (config.sessions.per_holder, config.sessions.connects_per_s) = (1, 10);
            config.sessions.readers_per_holder = 100;
        });
        let begin = || limits.begin(SessionKey::new(Role::Read, 1, 0), now);
        let mut waiting: Vec<_> = (0..204).filter_map(|_| begin().ok()).collect();
        let times = |waiting: &[Waiting<'_>]| -> Vec<u128> {
            let times = waiting.iter().map(|waiting| waiting.time.as_millis());
            times.skip(104).collect()
        };
        let expected: Vec<u128> = (1..=100).map(|at| at * 100).collect();
        assert_eq!(times(&waiting), expected);
        drop(waiting.split_off(150));
        waiting.extend((150..204).filter_map(|_| begin().ok()));
        assert_eq!(times(&waiting), expected);
    }
}
