//! A network that is slow and loses messages, for those who test a trading program: latency of the
//! bytes of each connection, and faults of users' commands.
//!
//! A connection with latency goes through a [`relay`] in this process: a pair of sockets, and a
//! line of bytes that wait in each direction. So sessions know nothing of it, and without latency
//! there is none. `docs/market.md` is for users.

mod delay;
mod relay;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};

use thalweg_exchange::session::{Role, SessionKey};

pub use self::delay::{DELAY_MAX, Delay, Delays};
pub use self::relay::{Line, relay};
pub(crate) use delay::Random;

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
pub struct Conditions {
    /// The latency of connections without their own.
    pub general: Option<Delays>,
    /// The latency of connections of a user, by the user's number, or of an API key.
    pub by_key: BTreeMap<String, Delays>,
    /// The faults of users' commands.
    pub faults: Faults,
    /// The seed from which latencies and faults are drawn.
    pub seed: u64,
    /// How many commands of each user were looked at.
    pub counts: Mutex<HashMap<i64, u64>>,
}

impl Conditions {
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
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(user).or_default();
        *count += 1;
        let drawn = Random::new([self.seed, user as u64, *count]).part();
        [
            (drop, Fault::Drop),
            (drop + reject, Fault::Reject),
            (drop + reject + disconnect, Fault::Disconnect),
        ]
        .into_iter()
        .find_map(|(below, fault)| (drawn < below).then_some(fault))
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

    fn drawn(seed: u64, user: i64) -> Vec<Option<Fault>> {
        let conditions = Conditions {
            faults: Faults {
                drop: 0.2,
                reject: 0.2,
                disconnect: 0.1,
            },
            seed,
            ..Conditions::default()
        };
        (0..1_000).map(|_| conditions.fault(user)).collect()
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
        let conditions = Conditions::default();
        assert!((0..1_000).all(|_| conditions.fault(7).is_none()));
    }

    #[test]
    fn an_api_key_comes_before_its_user_and_that_before_all() {
        let of = |ms| Delays {
            inbound: Delay::Fixed(std::time::Duration::from_millis(ms)),
            outbound: Delay::default(),
        };
        let by_key = [("7".to_owned(), of(2)), ("k".to_owned(), of(3))];
        let conditions = Conditions {
            general: Some(of(1)),
            by_key: by_key.into(),
            ..Conditions::default()
        };
        assert_eq!(conditions.delays(None, 8), Some(of(1)));
        assert_eq!(conditions.delays(Some("other"), 7), Some(of(2)));
        assert_eq!(conditions.delays(Some("k"), 7), Some(of(3)));
    }

    #[test]
    fn administrators_and_the_gateway_are_left_alone() {
        let concerns = |role, number| Conditions::concerns(SessionKey::new(role, 7, number), 4);
        assert!(concerns(Role::Trade, 3) && concerns(Role::Read, 9));
        assert!(!concerns(Role::Trade, 4) && !concerns(Role::Admin, 0));
    }
}
