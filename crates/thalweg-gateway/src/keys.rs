//! API keys: who signs, by which algorithm, and which user it is.
//!
//! The secret of an HMAC key is derived: HMAC-SHA256 of the API key under one master secret, which
//! is in a file of its own that only the owner may read. So no list of secrets exists. Of Ed25519
//! and RSA keys the file has the public half.

use std::collections::HashMap;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use data_encoding::HEXLOWER;
use ring::signature::KeyPair;
use ring::{hmac, signature};
use serde::Deserialize;
use thalweg_exchange::UserId;
use thalweg_server::private_files;

use crate::GatewayError;
use crate::signature::Verifier;

/// The length of an API key.
pub const API_KEY_CHARS: usize = 64;
const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789AB";
/// The bytes of a public Ed25519 key in PEM before the key itself (RFC 8410).
const ED25519_HEAD: [u8; 12] = [
    0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00,
];

/// How a key signs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KeyKind {
    /// HMAC-SHA256.
    Hmac,
    /// Ed25519.
    Ed25519,
    /// RSASSA-PKCS1-v1_5 with SHA-256.
    Rsa,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    api_key: String,
    user: i64,
    kind: KeyKind,
    #[serde(default)]
    public_key: Option<String>,
    /// Whether it only reads.
    #[serde(default)]
    read_only: bool,
    /// Whether a demonstration made it, for the person who started it.
    #[serde(default)]
    demo: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entries {
    #[serde(default)]
    key: Vec<Entry>,
}

/// An API key.
#[derive(Debug)]
pub struct ApiKey {
    name: String,
    /// The hash of all that the file says of it.
    identity: Vec<u8>,
    /// Its user.
    pub user: UserId,
    /// Whether it may place and cancel orders.
    pub may_trade: bool,
    /// Checks its signatures.
    pub verifier: Verifier,
}

impl ApiKey {
    pub(crate) fn name(&self) -> &str {
        &self.name
    }
}

/// The difference that reading the keys again has made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyChanges {
    /// Keys that are new.
    pub added: usize,
    /// Keys that are gone.
    pub removed: usize,
    /// Keys that have another user, role or secret.
    pub changed: usize,
}

impl fmt::Display for KeyChanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            added,
            removed,
            changed,
        } = self;
        write!(f, "{added} added, {removed} removed, {changed} changed")
    }
}

#[cfg(test)]
impl ApiKey {
    /// Returns a key of a user that may not trade.
    pub(crate) fn read_only(user: UserId) -> Self {
        Self {
            name: String::new(),
            identity: Vec::new(),
            user,
            may_trade: false,
            verifier: Verifier::hmac("secret"),
        }
    }
}

type ByKey = HashMap<String, Arc<ApiKey>>;

/// The API keys of a gateway.
#[derive(Debug)]
pub struct ApiKeys {
    path: PathBuf,
    keys: RwLock<Arc<ByKey>>,
}

impl ApiKeys {
    /// Reads the keys of a file; where there is no file there are none.
    ///
    /// # Errors
    /// The file cannot be read or is wrong; it has HMAC keys, and there is no master secret.
    pub fn read(path: &Path) -> Result<Self, GatewayError> {
        Ok(Self {
            keys: RwLock::new(Arc::new(read(path)?)),
            path: path.to_owned(),
        })
    }

    /// Reads the file again.
    ///
    /// # Errors
    /// As [`read`](Self::read); the keys are as before.
    pub fn reload(&self) -> Result<KeyChanges, GatewayError> {
        let mut keys = read(&self.path)?;
        let mut current = self.keys.write().unwrap_or_else(PoisonError::into_inner);
        let (mut same, mut changed) = (0, 0);
        for (name, key) in &mut keys {
            match current.get(name) {
                Some(old) if old.identity == key.identity => {
                    *key = Arc::clone(old);
                    same += 1;
                }
                Some(_) => changed += 1,
                None => {}
            }
        }
        let changes = KeyChanges {
            added: keys.len() - same - changed,
            removed: current.len() - same - changed,
            changed,
        };
        *current = Arc::new(keys);
        Ok(changes)
    }

    pub(crate) fn len(&self) -> usize {
        let keys = self.keys.read().unwrap_or_else(PoisonError::into_inner);
        keys.len()
    }

    /// Returns a key.
    #[must_use]
    pub fn find(&self, api_key: &str) -> Option<Arc<ApiKey>> {
        let keys = self.keys.read().unwrap_or_else(PoisonError::into_inner);
        keys.get(api_key).cloned()
    }

    /// Returns whether a key that was found is in the file still, and unchanged.
    #[must_use]
    pub fn is_current(&self, key: &Arc<ApiKey>) -> bool {
        let keys = self.keys.read().unwrap_or_else(PoisonError::into_inner);
        let now = keys.get(&key.name);
        now.is_some_and(|now| Arc::ptr_eq(now, key))
    }

    /// Returns the users that have keys, each once.
    #[must_use]
    pub fn users(&self) -> Vec<UserId> {
        let keys = self.keys.read().unwrap_or_else(PoisonError::into_inner);
        let mut users: Vec<UserId> = keys.values().map(|key| key.user).collect();
        users.sort_unstable();
        users.dedup();
        users
    }
}

/// Returns whether a text has the form of an API key.
#[must_use]
pub fn is_api_key(text: &str) -> bool {
    text.len() == API_KEY_CHARS && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// Returns the place of the master secret beside a file of keys.
#[must_use]
pub fn master_path(keys: &Path) -> PathBuf {
    keys.with_extension("master")
}

/// Returns the secret of an HMAC key.
#[must_use]
pub fn secret_of(master: &[u8], api_key: &str) -> String {
    let tag = hmac::sign(
        &hmac::Key::new(hmac::HMAC_SHA256, master),
        api_key.as_bytes(),
    );
    HEXLOWER.encode(tag.as_ref())
}

/// Reads a file of keys; where there is none, it has none.
fn read_entries(path: &Path) -> Result<Entries, GatewayError> {
    let text = match fs::read_to_string(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        read => read.map_err(|source| GatewayError::File {
            path: path.to_owned(),
            source,
        })?,
    };
    toml::from_str(&text).map_err(|error| GatewayError::Content {
        path: path.to_owned(),
        what: error.to_string(),
    })
}

fn read(path: &Path) -> Result<ByKey, GatewayError> {
    let wrong = |what: String| GatewayError::Content {
        path: path.to_owned(),
        what,
    };
    let entries = read_entries(path)?;
    let master = match entries.key.iter().any(|key| key.kind == KeyKind::Hmac) {
        true => read_master(&master_path(path))?,
        false => Vec::new(),
    };
    let mut keys = ByKey::new();
    for entry in entries.key {
        let name = entry.api_key;
        if !is_api_key(&name) {
            return Err(wrong(format!(
                "`{name}` is no API key: 64 letters and digits"
            )));
        }
        let public = || {
            let text = entry.public_key.as_deref();
            let der = text.and_then(pem_der);
            der.ok_or_else(|| wrong(format!("key {name} has no public_key in PEM")))
        };
        let broken = || wrong(format!("the public key of {name} is not of that kind"));
        let verifier = match entry.kind {
            KeyKind::Hmac => Verifier::hmac(&secret_of(&master, &name)),
            KeyKind::Ed25519 => Verifier::ed25519(&public()?).ok_or_else(broken)?,
            KeyKind::Rsa => Verifier::rsa(&public()?).ok_or_else(broken)?,
        };
        let secret = match entry.kind {
            KeyKind::Hmac => secret_of(&master, &name),
            KeyKind::Ed25519 | KeyKind::Rsa => entry.public_key.clone().unwrap_or_default(),
        };
        let all = format!(
            "{:?} {} {} {secret}",
            entry.kind, entry.user, entry.read_only
        );
        let identity = ring::digest::digest(&ring::digest::SHA256, all.as_bytes());
        let key = ApiKey {
            name: name.clone(),
            identity: identity.as_ref().to_vec(),
            user: UserId(entry.user),
            may_trade: !entry.read_only,
            verifier,
        };
        if keys.insert(name.clone(), Arc::new(key)).is_some() {
            return Err(wrong(format!("key {name} is there twice")));
        }
    }
    Ok(keys)
}

/// Digits of a master secret.
const MASTER_DIGITS: usize = 64;

/// Reads a master secret: of an empty one, everybody knew the secrets that are derived from it.
fn read_master(path: &Path) -> Result<Vec<u8>, GatewayError> {
    let failed = |source| GatewayError::File {
        path: path.to_owned(),
        source,
    };
    let wrong = |what: &str| GatewayError::Content {
        path: path.to_owned(),
        what: what.to_owned(),
    };
    let mode = fs::metadata(path).map_err(failed)?.permissions().mode();
    if mode & 0o077 != 0 {
        return Err(wrong("others than its owner may read or write it"));
    }
    let text = fs::read_to_string(path).map_err(failed)?;
    let digits = text.trim();
    if digits.len() != MASTER_DIGITS || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(wrong("it is no master secret: 64 hexadecimal digits"));
    }
    Ok(digits.as_bytes().to_vec())
}

/// Returns the bytes of a PEM text.
fn pem_der(text: &str) -> Option<Vec<u8>> {
    let lines = text.trim().lines().map(str::trim);
    let body: String = lines.filter(|line| !line.starts_with("-----")).collect();
    STANDARD.decode(body).ok()
}

fn pem(label: &str, der: &[u8]) -> String {
    let body = STANDARD.encode(der);
    let lines: Vec<&str> = (0..body.len())
        .step_by(64)
        .map(|at| &body[at..body.len().min(at + 64)])
        .collect();
    format!(
        "-----BEGIN {label}-----\n{}\n-----END {label}-----\n",
        lines.join("\n")
    )
}

/// A new key, as its owner gets it.
#[derive(Clone)]
pub struct NewKey {
    /// The API key.
    pub api_key: String,
    /// The secret of an HMAC key, or a private key in PEM.
    pub secret: String,
}

/// Returns the key that a demonstration made for a user, with its secret, if the file has one.
///
/// # Errors
/// As of [`ApiKeys::read`].
pub(crate) fn demo_key(keys: &Path, user: UserId) -> Result<Option<NewKey>, GatewayError> {
    let read = read_entries(keys)?;
    let mut entries = read.key.into_iter();
    let is_it = |key: &Entry| key.demo && key.kind == KeyKind::Hmac && key.user == user.0;
    let Some(entry) = entries.find(is_it) else {
        return Ok(None);
    };
    let secret = secret_of(&read_master(&master_path(keys))?, &entry.api_key);
    Ok(Some(NewKey {
        api_key: entry.api_key,
        secret,
    }))
}

/// Makes a key for a user and adds it to the file `keys`; the master secret beside it is made if it
/// is not there. RSA keys are made by other programs: see `docs/gateway.md`.
///
/// # Errors
/// A file cannot be written or is wrong; there is no randomness; or the kind is RSA.
pub fn create(
    keys: &Path,
    kind: KeyKind,
    user: UserId,
    read_only: bool,
) -> Result<NewKey, GatewayError> {
    let more = if read_only { "read_only = true\n" } else { "" };
    create_with(keys, kind, user, more)
}

/// Makes a key of a demonstration, which [`demo_key`] finds again.
pub(crate) fn create_demo(keys: &Path, user: UserId) -> Result<NewKey, GatewayError> {
    create_with(keys, KeyKind::Hmac, user, "demo = true\n")
}

fn create_with(
    keys: &Path,
    kind: KeyKind,
    user: UserId,
    more: &str,
) -> Result<NewKey, GatewayError> {
    let api_key = random_letters()?;
    let (secret, public) = match kind {
        KeyKind::Hmac => (secret_of(&master(&master_path(keys))?, &api_key), None),
        KeyKind::Ed25519 => ed25519_pair()?,
        KeyKind::Rsa => {
            let what = "RSA keys are made elsewhere; add the public half".to_owned();
            let path = keys.to_owned();
            return Err(GatewayError::Content { path, what });
        }
    };
    let kind = match kind {
        KeyKind::Hmac => "hmac",
        KeyKind::Ed25519 | KeyKind::Rsa => "ed25519",
    };
    let mut text = format!("[[key]]\napi_key = \"{api_key}\"\nuser = {user}\nkind = \"{kind}\"\n");
    if let Some(public) = public {
        text.push_str(&format!("public_key = \"\"\"\n{public}\"\"\"\n"));
    }
    text.push_str(more);
    text.push('\n');
    let failed = |source| GatewayError::File {
        path: keys.to_owned(),
        source,
    };
    let mut file = private_files::options();
    let mut file = file.create(true).append(true).open(keys).map_err(failed)?;
    file.write_all(text.as_bytes()).map_err(failed)?;
    file.sync_all().map_err(failed)?;
    Ok(NewKey { api_key, secret })
}

/// Returns a private key in PEM, and its public half.
fn ed25519_pair() -> Result<(String, Option<String>), GatewayError> {
    let mut seed = [0; 32];
    getrandom::fill(&mut seed).map_err(GatewayError::Random)?;
    let pair = signature::Ed25519KeyPair::from_seed_unchecked(&seed);
    let pair = pair.expect("a seed has 32 bytes");
    // A form without the public half (RFC 5958's first version), which every library reads.
    let mut short = vec![
        0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04,
        0x20,
    ];
    short.extend_from_slice(&seed);
    let public = [&ED25519_HEAD, pair.public_key().as_ref()].concat();
    Ok((pem("PRIVATE KEY", &short), Some(pem("PUBLIC KEY", &public))))
}

/// Returns the master secret of a file, which is made if it is not there.
fn master(path: &Path) -> Result<Vec<u8>, GatewayError> {
    if path.exists() {
        return read_master(path);
    }
    let failed = |source| GatewayError::File {
        path: path.to_owned(),
        source,
    };
    let mut secret = [0; 32];
    getrandom::fill(&mut secret).map_err(GatewayError::Random)?;
    let text = HEXLOWER.encode(&secret);
    // It has its name only once it is whole.
    let part = path.with_extension("part");
    let _ = fs::remove_file(&part);
    let mut file = private_file(&part).map_err(failed)?;
    file.write_all(format!("{text}\n").as_bytes())
        .and_then(|()| file.sync_all())
        .and_then(|()| fs::hard_link(&part, path))
        .and_then(|()| fs::remove_file(&part))
        .map_err(failed)?;
    Ok(text.into_bytes())
}

/// Makes a file that only its owner may read. An existing file is left unchanged, with an error.
///
/// # Errors
/// The file exists or cannot be made.
pub fn private_file(path: &Path) -> io::Result<File> {
    private_files::options()
        .write(true)
        .create_new(true)
        .open(path)
}

fn random_letters() -> Result<String, GatewayError> {
    let mut bytes = [0; API_KEY_CHARS];
    getrandom::fill(&mut bytes).map_err(GatewayError::Random)?;
    let letters = bytes.iter().map(|byte| LETTERS[usize::from(byte % 64)]);
    Ok(letters.map(char::from).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ed25519_key_is_read_again_and_checks_what_its_secret_signs() {
        let (private, public) = ed25519_pair().expect("there is randomness");
        let der = pem_der(&public.expect("there is one")).expect("it is PEM");
        let verifier = Verifier::ed25519(&der).expect("it is a key");
        let private = pem_der(&private).expect("it is PEM");
        assert_eq!(private.len(), 48);
        let pair = signature::Ed25519KeyPair::from_pkcs8_maybe_unchecked(&private);
        let signed = pair.expect("it is a key").sign(b"payload");
        let text = STANDARD.encode(signed);
        assert!(verifier.verify(b"payload", &text));
        assert!(!verifier.verify(b"payloae", &text));
    }

    #[test]
    fn what_is_made_for_keys_is_its_owners_alone() {
        let name = format!("thalweg-gateway-private-{}", std::process::id());
        let above = std::env::temp_dir().join(name);
        let _ = fs::remove_dir_all(&above);
        let directory = above.join("gateway");
        private_files::make_directory(&directory).expect("there is room");
        let keys = directory.join("api-keys.toml");
        create_demo(&keys, UserId(1)).expect("there is room");
        let mode = |path: &Path| {
            fs::metadata(path)
                .expect("it is there")
                .permissions()
                .mode()
        };
        assert_eq!(mode(&above) & 0o777, 0o700);
        assert_eq!(mode(&directory) & 0o777, 0o700);
        assert_eq!(mode(&keys) & 0o777, 0o600);
        fs::remove_dir_all(&above).expect("it is there");
    }

    /// The secrets of an empty master can be computed from API keys.
    #[test]
    fn a_master_secret_that_is_not_whole_or_not_private_is_refused() {
        let place = thalweg_testkit::Scratch::new("gateway-master");
        let path = place.join("master");
        let made = master(&path).expect("there is room");
        assert_eq!(master(&path).expect("it is there"), made);
        let whole = fs::read_to_string(&path).expect("it is there");
        for text in ["", "\n", &whole[..63], &whole.replace(&whole[..1], "g")] {
            fs::write(&path, text).expect("there is room");
            let refused = master(&path).expect_err(text).to_string();
            assert!(refused.contains("64 hexadecimal digits"), "{refused}");
        }
        fs::write(&path, &whole).expect("there is room");
        assert_eq!(master(&path).expect("it is whole"), made);
        let open = fs::Permissions::from_mode(0o640);
        fs::set_permissions(&path, open).expect("it is there");
        let refused = master(&path).expect_err("others may read it");
        assert!(refused.to_string().contains("others than its owner"));
    }

    #[test]
    fn secrets_are_derived_from_master_and_key() {
        let one = secret_of(b"master", "a");
        assert_eq!(one.len(), 64);
        assert_eq!(one, secret_of(b"master", "a"));
        assert_ne!(one, secret_of(b"master", "b"));
        assert_ne!(one, secret_of(b"other", "a"));
    }
}
