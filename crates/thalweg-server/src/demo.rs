//! A demonstration: keys for two users and an administrator, beside a market that trades.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use thalweg_exchange::durable::{Files, JournalError, OpenError, Storage};
use thalweg_exchange::session::Role;
use thalweg_exchange::{CurrencyId, SymbolId, SymbolSpec, UserId};

use crate::ServeError;
use crate::config::Config;
use crate::keys::{self, Key};
use crate::private_files;

/// Users whose keys are shown to the person who started the demo.
const GUESTS: [i64; 2] = [7, 8];
const ADMIN: i64 = 1;
const SYMBOLS: [i32; 2] = [1, 2];
const QUOTE: CurrencyId = CurrencyId(20);

/// A demonstration: where it is, and the keys of this start.
#[derive(Debug)]
pub struct Demo {
    directory: PathBuf,
    keys: Vec<(Key, String)>,
}

impl Demo {
    /// Makes keys in a directory, in place of those of an earlier start.
    ///
    /// # Errors
    /// The directory or the file cannot be made; the directory is another user's, or others may
    /// write into it: keys in it may be theirs.
    pub fn prepare(directory: &Path) -> Result<Self, ServeError> {
        let file = directory.join("keys.toml");
        let failed = |source| keys::KeysError::File {
            file: file.display().to_string(),
            source,
        };
        let made = private_files::make_directory(directory);
        made.and_then(|()| check_private(directory))
            .map_err(|source| keys::KeysError::File {
                file: directory.display().to_string(),
                source: match directory.is_file() {
                    true => io::ErrorKind::NotADirectory.into(),
                    false => source,
                },
            })?;
        // The keys of a demo that runs are not touched.
        let exchange = Files::new(directory.join("exchange"));
        if directory.join("exchange").is_dir() && matches!(exchange.lock(), Ok(None)) {
            let location = exchange.location();
            return Err(OpenError::Journal(JournalError::InUse { location }).into());
        }
        match fs::remove_file(&file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(error))?,
            _ => {}
        }
        let holders = GUESTS.into_iter().map(|user| (Role::Trade, user));
        let mut made = Vec::new();
        for (role, holder) in holders.chain([(Role::Admin, ADMIN)]) {
            let text = keys::generate()?;
            let key = Key {
                name: format!("demo {role} {holder}"),
                role,
                holder,
                hash: keys::hash(text.as_bytes()),
            };
            keys::append(&file, &key)?;
            made.push((key, text));
        }
        Ok(Self {
            directory: directory.to_owned(),
            keys: made,
        })
    }

    /// Returns the users who have keys for the person who started the demo.
    #[must_use]
    pub fn guests() -> [UserId; 2] {
        GUESTS.map(UserId)
    }

    /// Returns the symbols of a demonstration whose market is made up.
    #[must_use]
    pub fn symbols() -> [SymbolSpec; 2] {
        SYMBOLS.map(|id| SymbolSpec::pair(SymbolId(id), CurrencyId(10 + id), QUOTE))
    }

    /// Returns the directory of the exchange.
    #[must_use]
    pub fn exchange(&self) -> PathBuf {
        self.directory.join("exchange")
    }

    /// Returns the configuration with the keys.
    #[must_use]
    pub fn configure(&self, mut config: Config) -> Config {
        config.keys.file = Some(self.directory.join("keys.toml"));
        config
    }

    /// Returns a message for the person who started the demo: the market, and keys to try.
    #[must_use]
    pub fn message(&self, market: &str) -> String {
        let mut message = format!("demo: {market}; keys for you:\n");
        for (key, text) in &self.keys {
            let holder = key.holder;
            let kind = match key.role {
                Role::Admin => "admin",
                _ => "user ",
            };
            message.push_str(&format!("  {kind} {holder}  {text}\n"));
        }
        message
    }
}

/// Returns an error for a directory into which others may have put keys or links.
fn check_private(directory: &Path) -> io::Result<()> {
    use std::os::unix::fs::MetadataExt as _;
    let (link, found) = (fs::symlink_metadata(directory)?, fs::metadata(directory)?);
    let owner = rustix::process::geteuid().as_raw();
    let why = not_private(owner, [link.uid(), found.uid()], found.mode());
    why.map_or(Ok(()), |why| {
        Err(io::Error::new(io::ErrorKind::PermissionDenied, why))
    })
}

/// Returns why a directory is not private to its owner; `found` has the owners of the link to it,
/// if it is one, and of itself.
fn not_private(owner: u32, found: [u32; 2], mode: u32) -> Option<&'static str> {
    if found != [owner, owner] {
        return Some("it is another user's: remove it, or give another directory");
    }
    let is_shared = mode & 0o022 != 0;
    is_shared.then_some("others may write into it: remove it, or give another directory")
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_directory_into_which_others_may_write_is_refused() {
        let place = thalweg_testkit::Scratch::new("demo");
        let directory = place.join("shared");
        assert!(Demo::prepare(&directory).is_ok());
        for mode in [0o720, 0o702] {
            let shared = fs::Permissions::from_mode(mode);
            fs::set_permissions(&directory, shared).expect("it is there");
            let refused = Demo::prepare(&directory).expect_err("it is shared");
            assert!(
                refused.to_string().contains("others may write"),
                "{refused}"
            );
        }
    }

    #[test]
    fn a_directory_and_a_link_of_another_user_are_refused() {
        assert_eq!(not_private(7, [7, 7], 0o40755), None);
        for found in [[8, 8], [8, 7], [7, 8]] {
            assert!(not_private(7, found, 0o40700).is_some(), "{found:?}");
        }
    }
}
