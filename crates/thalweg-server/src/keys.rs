//! Authentication: keys bound to a user or an administrator and a role.
//!
//! A key is 32 random bytes in hexadecimal behind `twk_`. The file has its SHA-256 only: a reader
//! of the file cannot connect with it. A fast hash is enough for that, since 256 random bits cannot
//! be guessed; a password would need a slow one, so there are none.
//!
//! A key that is offered is looked up by the beginning of its hash, in a table whose order is drawn
//! at random, and then compared in constant time. How long that takes may say that some key has a
//! hash that begins so, which is of no use for finding a key.

mod file;

use std::collections::{BTreeSet, HashMap};
use std::io;

use data_encoding::HEXLOWER;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use thalweg_exchange::session::Role;
use thiserror::Error;

pub use self::file::{append, read};

/// The beginning of every key, so that a key is recognised where it does not belong.
pub const PREFIX: &str = "twk_";
/// The most keys that a file may have.
pub const KEYS_MAX: usize = 100_000;
const SECRET_BYTES: usize = 32;

/// SHA-256 of a key.
pub type KeyHash = [u8; 32];

/// A key as the file has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// A name for people, which the log and the audit lines have.
    pub name: String,
    /// The permissions of its holder.
    pub role: Role,
    /// The user; of an admin key, the administrator.
    pub holder: i64,
    /// The hash of the key.
    pub hash: KeyHash,
}

/// All keys of a file.
#[derive(Clone, Debug, Default)]
pub struct Keys {
    /// By the beginning of the hash.
    keys: HashMap<[u8; 8], Vec<Key>>,
    /// The hash of the key of this process's own gateway, which trades for any user.
    gateway: Option<KeyHash>,
}

/// Why there are no keys.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum KeysError {
    /// The file cannot be read or written.
    #[error("{file}: {source}")]
    File {
        /// Its name.
        file: String,
        /// Why.
        source: io::Error,
    },
    /// A line of it is wrong.
    #[error("{file}:{line}: {what}")]
    Parse {
        /// The file's name.
        file: String,
        /// The line, from 1.
        line: usize,
        /// The error in it.
        what: String,
    },
    /// The file has too many.
    #[error("{file} has {keys} keys; {KEYS_MAX} are possible")]
    TooMany {
        /// Its name.
        file: String,
        /// How many.
        keys: usize,
    },
    /// The system has no random numbers.
    #[error("no random numbers for a key: {0}")]
    Random(#[source] getrandom::Error),
}

/// Returns the hash of a key, as files have it.
#[must_use]
pub fn hash(key: &[u8]) -> KeyHash {
    Sha256::digest(key).into()
}

/// Returns a new key of 256 random bits.
///
/// # Errors
/// [`KeysError::Random`].
pub fn generate() -> Result<String, KeysError> {
    let mut secret = [0; SECRET_BYTES];
    getrandom::fill(&mut secret).map_err(KeysError::Random)?;
    Ok(format!("{PREFIX}{}", HEXLOWER.encode(&secret)))
}

impl Keys {
    /// Makes a list of these keys.
    #[must_use]
    pub fn new(keys: Vec<Key>) -> Self {
        let mut by_hash: HashMap<_, Vec<Key>> = HashMap::with_capacity(keys.len());
        for key in keys {
            by_hash.entry(beginning(&key.hash)).or_default().push(key);
        }
        Self {
            keys: by_hash,
            gateway: None,
        }
    }

    /// Returns these keys and that of the process's own gateway.
    pub(crate) const fn with_gateway(mut self, hash: Option<KeyHash>) -> Self {
        self.gateway = hash;
        self
    }

    /// Returns whether a hash is that of the gateway's key.
    pub(crate) fn is_of_gateway(&self, hash: &KeyHash) -> bool {
        self.gateway.is_some_and(|own| own.ct_eq(hash).into())
    }

    /// Returns how many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.keys.values().map(Vec::len).sum()
    }

    /// Returns whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Returns the key that opens a session of this role for this holder: it must be of that
    /// holder, and of that role; a trade key may read, too.
    #[must_use]
    pub fn admit(&self, key: &[u8], role: Role, holder: i64) -> Option<&Key> {
        let hash = hash(key);
        let found = self.find(&hash);
        found.filter(|key| key.holder == holder && may(key.role, role))
    }

    fn find(&self, hash: &KeyHash) -> Option<&Key> {
        let candidates = self.keys.get(&beginning(hash))?;
        candidates.iter().find(|key| key.hash.ct_eq(hash).into())
    }

    /// Returns the holders that may send commands, by role.
    pub(crate) fn senders(&self) -> BTreeSet<(Role, i64)> {
        let senders = self
            .keys
            .values()
            .flatten()
            .filter(|key| key.role != Role::Read);
        senders.map(|key| (key.role, key.holder)).collect()
    }

    /// Returns whether a key of this hash, role and holder is still there.
    #[must_use]
    pub fn holds(&self, key: &Key) -> bool {
        let is_it = |other: &Key| (other.role, other.holder) == (key.role, key.holder);
        self.is_of_gateway(&key.hash) || self.find(&key.hash).is_some_and(is_it)
    }
}

fn beginning(hash: &KeyHash) -> [u8; 8] {
    let [a, b, c, d, e, f, g, h, ..] = *hash;
    [a, b, c, d, e, f, g, h]
}

fn may(has: Role, asks: Role) -> bool {
    has == asks || has == Role::Trade && asks == Role::Read
}

/// A key as it stands in the file.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    name: String,
    role: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    admin: Option<i64>,
    sha256: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(secret: &str, role: Role, holder: i64) -> Key {
        Key {
            name: "test".into(),
            role,
            holder,
            hash: hash(secret.as_bytes()),
        }
    }

    #[test]
    fn the_hash_is_sha_256() {
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(HEXLOWER.encode(&hash(b"abc")), expected);
    }

    #[test]
    fn a_key_opens_its_role_for_its_holder_only() {
        let keys = Keys::new(vec![
            key("a", Role::Trade, 7),
            key("b", Role::Read, 7),
            key("c", Role::Admin, 7),
        ]);
        let opens = |secret: &str, holder| -> Vec<Role> {
            let admitted = |role: &Role| keys.admit(secret.as_bytes(), *role, holder).is_some();
            Role::ALL.into_iter().filter(admitted).collect()
        };
        assert_eq!(opens("a", 7), [Role::Trade, Role::Read]);
        assert_eq!(opens("b", 7), [Role::Read]);
        assert_eq!(opens("c", 7), [Role::Admin]);
        for (secret, holder) in [("a", 8), ("d", 7), ("", 7), ("aa", 7)] {
            assert_eq!(opens(secret, holder), []);
        }
    }

    #[test]
    fn keys_whose_hashes_begin_alike_are_distinguished() {
        let mut other = key("a", Role::Read, 8);
        other.hash[31] ^= 1;
        let keys = Keys::new(vec![other.clone(), key("a", Role::Trade, 7)]);
        assert_eq!(keys.len(), 2);
        let admitted = keys.admit(b"a", Role::Trade, 7).expect("it is there");
        assert!(keys.holds(admitted) && keys.holds(&other));
        let stranger = Key { holder: 9, ..other };
        assert!(!keys.holds(&stranger));
    }

    #[test]
    fn new_keys_differ_and_have_256_bits() {
        let [a, b] = [generate(), generate()].map(|key| key.expect("there is randomness"));
        assert_ne!(a, b);
        assert_eq!(a.len(), PREFIX.len() + 2 * SECRET_BYTES);
        assert!(a.starts_with(PREFIX));
    }
}
