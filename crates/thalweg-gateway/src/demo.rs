//! Names and API keys for the demonstration market of the server.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use thalweg_exchange::UserId;

use crate::GatewayError;
use crate::keys::{self, NewKey};

/// The symbols of the demonstration: a lot is 0.00001, a unit of price 0.01.
const SYMBOLS: &str = r#"[assets]
BTC = { currency = 11, decimals = 5 }
ETH = { currency = 12, decimals = 5 }
USDT = { currency = 20, decimals = 7 }

[symbols.BTCUSDT]
symbol = 1
base = "BTC"
quote = "USDT"

[symbols.ETHUSDT]
symbol = 2
base = "ETH"
quote = "USDT"
"#;

/// A demonstration's files, and its keys.
#[derive(Clone)]
pub struct DemoKeys {
    /// The symbols.
    pub symbols: PathBuf,
    /// The API keys.
    pub keys: PathBuf,
    /// Each user with its key.
    pub users: Vec<(UserId, NewKey)>,
}

impl DemoKeys {
    /// Writes both files into a directory, into which others must not write: the keys with an HMAC
    /// key for each user, unless an earlier start has made it. Other keys of the file stay.
    ///
    /// # Errors
    /// A file cannot be read or written, is wrong, or is a symbolic link.
    pub fn prepare(directory: &Path, users: &[UserId]) -> Result<Self, GatewayError> {
        let symbols = directory.join("symbols.toml");
        write_new(&symbols, SYMBOLS).map_err(|source| GatewayError::File {
            path: symbols.clone(),
            source,
        })?;
        let file = directory.join("api-keys.toml");
        for path in [file.clone(), keys::master_path(&file)] {
            if fs::symlink_metadata(&path).is_ok_and(|found| found.is_symlink()) {
                let what = "it is a symbolic link".to_owned();
                return Err(GatewayError::Content { path, what });
            }
        }
        let made = users.iter().map(|user| {
            let key = match keys::demo_key(&file, *user)? {
                Some(key) => key,
                None => keys::create_demo(&file, *user)?,
            };
            Ok((*user, key))
        });
        let made = made.collect::<Result<_, GatewayError>>()?;
        Ok(Self {
            symbols,
            keys: file,
            users: made,
        })
    }

    /// Returns a message for the person who started the demo: the names, and keys to try.
    #[must_use]
    pub fn message(&self) -> String {
        let mut message =
            "gateway: symbols 1 and 2 are BTCUSDT and ETHUSDT; API keys for you:\n".to_owned();
        for (user, key) in &self.users {
            let NewKey { api_key, secret } = key;
            message.push_str(&format!(
                "  user {user}\n    apiKey {api_key}\n    secret {secret}\n"
            ));
        }
        message
    }
}

/// Writes a file in place of one that may be there, which may be a link to another.
fn write_new(path: &Path, text: &str) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    file.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use thalweg_testkit::Scratch;

    use super::*;
    use crate::keys::KeyKind;

    #[test]
    fn a_second_start_has_the_keys_of_the_first_and_those_that_were_added() {
        let directory = Scratch::new("gateway-demo");
        let users = [UserId(7), UserId(8)];
        let prepare = |users: &[UserId]| DemoKeys::prepare(&directory, users).expect("the keys");
        let file = directory.join("api-keys.toml");
        let handed_out = keys::create(&file, KeyKind::Hmac, UserId(7), false).expect("a key");
        // As after a kill between two keys.
        let first = prepare(&users[..1]);
        assert_ne!(first.users[0].1.api_key, handed_out.api_key);
        let read_only = keys::create(&file, KeyKind::Hmac, UserId(8), true).expect("a key");
        let both = prepare(&users);
        assert_eq!(both.users[0].1.secret, first.users[0].1.secret);
        assert_ne!(both.users[1].1.api_key, read_only.api_key);
        assert_eq!(prepare(&users).message(), both.message());
        let all = keys::ApiKeys::read(&file).expect("the keys");
        assert!(all.find(&read_only.api_key).is_some());
        // A file that is wrong is not overwritten.
        fs::write(&file, "[[key]").expect("a file");
        assert!(DemoKeys::prepare(&directory, &users).is_err());
    }

    #[test]
    fn files_that_links_lead_to_are_left_as_they_are() {
        let directory = Scratch::new("gateway-demo-links");
        let other = directory.join("other");
        fs::write(&other, "").expect("a file");
        let link = |name| {
            std::os::unix::fs::symlink(&other, directory.join(name)).expect("a link");
        };
        link("symbols.toml");
        DemoKeys::prepare(&directory, &[UserId(7)]).expect("the keys");
        fs::remove_file(directory.join("api-keys.toml")).expect("it is there");
        link("api-keys.toml");
        assert!(DemoKeys::prepare(&directory, &[UserId(7)]).is_err());
        assert_eq!(fs::read_to_string(&other).expect("a file"), "");
    }
}
