//! Names and API keys for the demonstration market of the server.

use std::fs;
use std::path::{Path, PathBuf};

use thalweg_exchange::UserId;

use crate::GatewayError;
use crate::keys::{self, KeyKind, NewKey};

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
    /// Writes both files into a directory: the keys with an HMAC key for each user, unless an
    /// earlier start has made it. Other keys of the file stay.
    ///
    /// # Errors
    /// A file cannot be read or written, or is wrong.
    pub fn prepare(directory: &Path, users: &[UserId]) -> Result<Self, GatewayError> {
        let symbols = directory.join("symbols.toml");
        fs::write(&symbols, SYMBOLS).map_err(|source| GatewayError::File {
            path: symbols.clone(),
            source,
        })?;
        let file = directory.join("api-keys.toml");
        let made = users.iter().map(|user| {
            let key = match keys::hmac_key(&file, *user)? {
                Some(key) => key,
                None => keys::create(&file, KeyKind::Hmac, *user, false)?,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_start_has_the_keys_of_the_first_and_those_that_were_added() {
        let name = format!("thalweg-gateway-demo-{}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        let _ = fs::remove_dir_all(&directory);
        fs::create_dir_all(&directory).expect("a directory");
        let users = [UserId(7), UserId(8)];
        let prepare = |users: &[UserId]| DemoKeys::prepare(&directory, users).expect("the keys");
        // As after a kill between two keys.
        let first = prepare(&users[..1]);
        let file = first.keys.clone();
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
        fs::remove_dir_all(&directory).expect("it is there");
    }
}
