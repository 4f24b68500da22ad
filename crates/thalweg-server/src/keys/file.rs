//! The file of the keys: TOML, a table `[[key]]` for each.

use std::io::{self, Write};
use std::path::Path;

use data_encoding::{HEXLOWER, HEXLOWER_PERMISSIVE};
use serde::Deserialize;
use thalweg_exchange::session::Role;
use toml::Spanned;

use super::{Entry, KEYS_MAX, Key, KeyHash, Keys, KeysError};
use crate::config::{line_of, read_text};
use crate::private_files;

/// The longest file of keys, in bytes: [`KEYS_MAX`] of them have some 20 MB.
const FILE_BYTES_MAX: u64 = 64 << 20;

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Listed {
    key: Vec<Spanned<Entry>>,
}

/// Reads the keys of a file.
///
/// # Errors
/// The file cannot be read; or a line of it is wrong, which the error names. Two entries with one
/// hash are refused: which of them would count?
pub fn read(path: &Path) -> Result<Keys, KeysError> {
    let file = path.display().to_string();
    let text = read_text(path, FILE_BYTES_MAX).map_err(|source| KeysError::File {
        file: file.clone(),
        source,
    })?;
    parse(&file, &text)
}

fn parse(file: &str, text: &str) -> Result<Keys, KeysError> {
    let at = |line: usize, what: String| KeysError::Parse {
        file: file.to_owned(),
        line,
        what,
    };
    let listed: Listed = toml::from_str(text)
        .map_err(|error| at(line_of(text, &error), error.message().trim_end().to_owned()))?;
    if listed.key.len() > KEYS_MAX {
        return Err(KeysError::TooMany {
            file: file.to_owned(),
            keys: listed.key.len(),
        });
    }
    let mut keys: Vec<Key> = Vec::with_capacity(listed.key.len());
    let mut hashes = std::collections::BTreeSet::new();
    for entry in &listed.key {
        let before = &text.as_bytes()[..entry.span().start];
        let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
        let key = entry.get_ref().key().map_err(|what| at(line, what))?;
        if !hashes.insert(key.hash) {
            let what = format!("key `{}` has the hash of a key before it", key.name);
            return Err(at(line, what));
        }
        keys.push(key);
    }
    Ok(Keys::new(keys))
}

impl Entry {
    fn key(&self) -> Result<Key, String> {
        let name = &self.name;
        let role = Role::ALL.into_iter().find(|role| role.name() == self.role);
        let role = role.ok_or_else(|| {
            format!(
                "key `{name}` has role `{}`; there are trade, read and admin",
                self.role
            )
        })?;
        let holder = match (role, self.user, self.admin) {
            (Role::Admin, None, Some(admin)) => admin,
            (Role::Trade | Role::Read, Some(user), None) => user,
            (Role::Admin, ..) => return Err(format!("key `{name}` needs `admin` and no `user`")),
            _ => return Err(format!("key `{name}` needs `user` and no `admin`")),
        };
        if holder < 0 {
            return Err(format!(
                "key `{name}` is of {holder}; 0 and more are possible"
            ));
        }
        let hash = hash_of(&self.sha256)
            .ok_or_else(|| format!("key `{name}`: sha256 is not 64 hexadecimal digits"))?;
        let name = name.clone();
        Ok(Key {
            name,
            role,
            holder,
            hash,
        })
    }
}

fn hash_of(text: &str) -> Option<KeyHash> {
    let hash = HEXLOWER_PERMISSIVE.decode(text.as_bytes()).ok()?;
    hash.try_into().ok()
}

/// Adds a key to a file, which is made if it is not there, readable by its owner alone.
///
/// # Errors
/// The file cannot be read or written, is wrong already, or has this hash; it is as before then.
pub fn append(path: &Path, key: &Key) -> Result<(), KeysError> {
    let file = path.display().to_string();
    let failed = |source| KeysError::File {
        file: file.clone(),
        source,
    };
    let text = match read_text(path, FILE_BYTES_MAX) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        read => read.map_err(failed)?,
    };
    let mut entry = String::new();
    if !text.is_empty() && !text.ends_with('\n') {
        entry.push('\n');
    }
    let holder = if key.role == Role::Admin {
        "admin"
    } else {
        "user"
    };
    let name = toml::Value::String(key.name.clone());
    entry.push_str(&format!(
        "[[key]]\nname = {name}\nrole = \"{}\"\n{holder} = {}\nsha256 = \"{}\"\n\n",
        key.role,
        key.holder,
        HEXLOWER.encode(&key.hash)
    ));
    parse(&file, &format!("{text}{entry}"))?;
    let mut options = private_files::options();
    let opened = options.append(true).create(true).open(path);
    let mut out = opened.map_err(failed)?;
    out.write_all(entry.as_bytes()).map_err(failed)?;
    out.sync_all().map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::super::hash;
    use super::*;

    fn entry(name: &str, rest: &str) -> String {
        format!("[[key]]\nname = \"{name}\"\n{rest}\n")
    }

    fn hashed(secret: &str) -> String {
        format!("sha256 = \"{}\"", HEXLOWER.encode(&hash(secret.as_bytes())))
    }

    #[track_caller]
    fn refused(text: &str, expected: &str) {
        let error = parse("keys.toml", text).expect_err("it is refused");
        assert_eq!(error.to_string(), expected);
    }

    #[test]
    fn keys_are_read() {
        let text = entry("a", &format!("role = \"trade\"\nuser = 7\n{}", hashed("s")))
            + &entry(
                "b",
                &format!("role = \"admin\"\nadmin = 1\n{}", hashed("t")),
            );
        let keys = parse("keys.toml", &text).expect("they are fine");
        let key = keys.admit(b"s", Role::Trade, 7).expect("it is there");
        assert_eq!(key.name, "a");
        assert!(keys.admit(b"t", Role::Admin, 1).is_some());
        assert!(parse("keys.toml", "").expect("no key is fine").is_empty());
    }

    #[test]
    fn wrong_entries_are_refused_with_their_line() {
        let hash = hashed("s");
        let first = entry("a", &format!("role = \"trade\"\nuser = 7\n{hash}"));
        refused(
            &(first.clone() + &entry("b", &format!("role = \"boss\"\nuser = 7\n{hash}"))),
            "keys.toml:6: key `b` has role `boss`; there are trade, read and admin",
        );
        refused(
            &(first.clone() + &entry("b", &format!("role = \"read\"\nuser = 8\n{hash}"))),
            "keys.toml:6: key `b` has the hash of a key before it",
        );
        refused(
            &entry("a", &format!("role = \"admin\"\nuser = 7\n{hash}")),
            "keys.toml:1: key `a` needs `admin` and no `user`",
        );
        for (role, holder) in [("admin", "admin"), ("trade", "user"), ("read", "user")] {
            let negative = format!("role = \"{role}\"\n{holder} = -1\n{hash}");
            let why = "keys.toml:1: key `a` is of -1; 0 and more are possible";
            refused(&entry("a", &negative), why);
        }
        refused(
            &entry("a", &format!("role = \"trade\"\n{hash}")),
            "keys.toml:1: key `a` needs `user` and no `admin`",
        );
        refused(
            &entry("a", "role = \"read\"\nuser = 7\nsha256 = \"12\""),
            "keys.toml:1: key `a`: sha256 is not 64 hexadecimal digits",
        );
        refused(
            &entry("a", "rôle = 1"),
            "keys.toml:3: invalid unquoted key, expected letters, numbers, `-`, `_`",
        );
        refused(
            "[[key]]\nname = \"a\"\n",
            "keys.toml:1: missing field `role`",
        );
    }
}
