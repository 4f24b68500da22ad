//! A network that is slow and loses messages, for those who test a trading program: latency of the
//! bytes of each connection, and faults of users' commands.
//!
//! A connection with latency goes through a relay (`relay.rs`) in this process: a pair of
//! sockets, and a delay line in each direction. So sessions know nothing of it, and without latency
//! there is none. `docs/market.md` is for users.

mod delay;
pub(crate) mod relay;

use std::collections::{BTreeMap, HashMap};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use thalweg_exchange::session::{Role, SessionKey};

pub use self::delay::{DELAY_MAX, Delay, Delays};
pub use self::relay::{DelayLine, DelayLines, relay};

use crate::lock;
pub(crate) use delay::Random;

/// Files of a connection that goes through a relay.
pub(crate) const RELAYED_FILES: u64 = 3;
/// Users whose commands are counted one by one; those beyond share a count.
const USERS_MAX: usize = 1 << 20;

/// The fate of a command that does not reach the exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It is lost: there is no answer.
    Drop,
    /// It is refused.
    Reject,
    /// It is lost, and its connection is cut.
    Disconnect,
}

impl Fault {
    /// All of them, by the names that options and metrics have.
    pub const ALL: [(&'static str, Self); 3] = [
        ("drop", Self::Drop),
        ("reject", Self::Reject),
        ("disconnect", Self::Disconnect),
    ];
}

/// How probable each fault of a command is; together 1 at most.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Faults {
    /// That of [`Fault::Drop`].
    pub drop: f64,
    /// That of [`Fault::Reject`].
    pub reject: f64,
    /// That of [`Fault::Disconnect`].
    pub disconnect: f64,
}

/// The network between users and the exchange.
#[derive(Debug, Default)]
pub struct NetworkConditions {
    /// The latency of connections without their own.
    pub general: Option<Delays>,
    /// The latency of connections of a user, by the user's number, or of an API key.
    pub by_key: BTreeMap<String, Delays>,
    /// The faults of users' commands.
    pub faults: Faults,
    /// The seed from which latencies and faults are drawn.
    pub seed: u64,
    /// The counts of commands and faults.
    pub drawn: FaultCounts,
}

/// Counts of what was drawn.
#[derive(Debug, Default)]
pub struct FaultCounts {
    /// Commands of each user.
    commands: Mutex<HashMap<i64, u64>>,
    /// Faults, in the order of [`Fault::ALL`].
    faults: [AtomicU64; 3],
}

impl FaultCounts {
    /// Counts a command, and returns its number among those of its user.
    fn count(&self, user: i64) -> u64 {
        let mut commands = lock(&self.commands);
        let is_known = commands.len() < USERS_MAX || commands.contains_key(&user);
        let count = commands
            .entry(if is_known { user } else { -1 })
            .or_default();
        *count += 1;
        *count
    }
}

impl NetworkConditions {
    /// Returns whether some connections have latency.
    #[must_use]
    pub fn has_latency(&self) -> bool {
        self.general.is_some() || !self.by_key.is_empty()
    }

    /// Returns the latency of a user's connection; an API key comes before its user.
    #[must_use]
    pub fn delays(&self, api_key: Option<&str>, user: i64) -> Option<Delays> {
        let own = api_key.and_then(|key| self.by_key.get(key));
        let own = own.or_else(|| self.by_key.get(&user.to_string()));
        own.or(self.general.as_ref()).copied()
    }

    /// Returns the longest delay of what clients send, by mean or median.
    pub(crate) fn inbound_max(&self) -> Duration {
        let all = self.general.iter().chain(self.by_key.values());
        let middles = all.map(|delays| delays.inbound.middle());
        middles.max().unwrap_or_default()
    }

    /// Returns the fault of the next command of a user, if it has one. The n-th command of a user
    /// has the same with the same seed, whatever others send.
    pub fn fault(&self, user: i64) -> Option<Fault> {
        let Faults {
            drop,
            reject,
            disconnect,
        } = self.faults;
        if drop + reject + disconnect == 0.0 {
            return None;
        }
        let count = self.drawn.count(user);
        let drawn = Random::new([self.seed, user as u64, count]).part();
        let bounds = [drop, drop + reject, drop + reject + disconnect];
        let at = bounds.iter().position(|bound| drawn < *bound)?;
        // ORDERING: Relaxed; a counter.
        self.drawn.faults[at].fetch_add(1, Ordering::Relaxed);
        Some(Fault::ALL[at].1)
    }

    /// Returns how many commands have met each fault, by its name.
    pub(crate) fn fault_counts(&self) -> impl Iterator<Item = (&'static str, u64)> {
        // ORDERING: Relaxed; counters.
        let counts = self
            .drawn
            .faults
            .iter()
            .map(|count| count.load(Ordering::Relaxed));
        Fault::ALL.iter().map(|(name, _)| *name).zip(counts)
    }

    /// Returns whether a session is one of a user: neither an administrator's nor the gateway's,
    /// whose number is above all others.
    pub(crate) fn concerns(key: SessionKey, per_holder: u32) -> bool {
        match key.role {
            Role::Admin => false,
            Role::Trade => key.number < per_holder,
            Role::Read => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn behind(seed: u64) -> NetworkConditions {
        NetworkConditions {
            faults: Faults {
                drop: 0.2,
                reject: 0.2,
                disconnect: 0.1,
            },
            seed,
            ..NetworkConditions::default()
        }
    }

    fn drawn(seed: u64, user: i64) -> Vec<Option<Fault>> {
        let conditions = behind(seed);
        (0..1_000).map(|_| conditions.fault(user)).collect()
    }

    #[test]
    fn each_fault_is_counted() {
        let conditions = behind(1);
        let mut met = [0; 3];
        for user in (0..3_000).map(|at| at % 3) {
            if let Some(fault) = conditions.fault(user) {
                met[fault as usize] += 1;
            }
        }
        let names = ["drop", "reject", "disconnect"];
        assert!(conditions.fault_counts().eq(names.into_iter().zip(met)));
        assert!(met.iter().all(|count| *count > 0), "{met:?}");
    }

    #[test]
    fn a_seed_gives_each_user_the_same_faults_as_often_as_asked() {
        let faults = drawn(1, 7);
        assert_eq!(faults, drawn(1, 7));
        assert_ne!(faults, drawn(2, 7));
        assert_ne!(faults, drawn(1, 8));
        let count = |fault| faults.iter().filter(|drawn| **drawn == fault).count();
        for (fault, least, most) in [
            (None, 420, 580),
            (Some(Fault::Drop), 140, 260),
            (Some(Fault::Reject), 140, 260),
            (Some(Fault::Disconnect), 60, 140),
        ] {
            let count = count(fault);
            assert!((least..=most).contains(&count), "{fault:?}: {count}");
        }
    }

    #[test]
    fn without_faults_no_command_has_one() {
        let conditions = NetworkConditions::default();
        assert!((0..1_000).all(|_| conditions.fault(7).is_none()));
    }

    #[test]
    fn an_api_key_comes_before_its_user_and_that_before_all() {
        let of = |ms| Delays {
            inbound: Delay::Fixed(Duration::from_millis(ms)),
            outbound: Delay::default(),
        };
        let by_key = [("7".to_owned(), of(2)), ("k".to_owned(), of(3))];
        let conditions = NetworkConditions {
            general: Some(of(1)),
            by_key: by_key.into(),
            ..NetworkConditions::default()
        };
        assert_eq!(conditions.inbound_max(), Duration::from_millis(3));
        assert_eq!(conditions.delays(None, 8), Some(of(1)));
        assert_eq!(conditions.delays(Some("other"), 7), Some(of(2)));
        assert_eq!(conditions.delays(Some("k"), 7), Some(of(3)));
    }

    #[test]
    fn administrators_and_the_gateway_are_left_alone() {
        let concerns =
            |role, number| NetworkConditions::concerns(SessionKey::new(role, 7, number), 4);
        assert!(concerns(Role::Trade, 3) && concerns(Role::Read, 9));
        assert!(!concerns(Role::Trade, 4) && !concerns(Role::Admin, 0));
    }
}
